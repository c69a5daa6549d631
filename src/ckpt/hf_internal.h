/* SPDX-License-Identifier: Apache-2.0 */
/* Between hf_read.c and hf_write.c: the list of a model's tensors under both names. */
#ifndef CTI_CKPT_HF_INTERNAL_H
#define CTI_CKPT_HF_INTERNAL_H

#include "ckpt/hf.h"
#include "ckpt/safetensors.h"

typedef struct cti_hf_tensor {
    char native[96], hf[96];
    int32_t ndim;
    int64_t dims[2];
    int64_t permuted_heads; /* q, k: heads whose rows are permuted; 0: none */
} cti_hf_tensor;

/* Number of tensors of a model; the i-th of them. */
int32_t cti_hf_n_tensors(const ct_hf_shape *shape);
void cti_hf_tensor_at(const ct_hf_shape *shape, int32_t i, cti_hf_tensor *out_tensor);
/* Native rotates adjacent pairs, Hugging Face halves: native row h*d + 2i + j is its row h*d + j*d/2 + i, d the head's width. */
int64_t cti_hf_row_of(int64_t native_row, int64_t head_dim);

#endif
