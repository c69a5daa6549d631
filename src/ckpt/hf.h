/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of Llama-class models in Hugging Face folders, read and written by native names. The rows of q and k are permuted between
 * the two: native rotates adjacent pairs, Hugging Face rotates halves.
 *
 *     CT_TRY(ct_hf_open(alloc, "assets/hf/Llama-3.2-1B", &shape, &hf, err));
 *     CT_TRY(ct_hf_read(hf, "layers.0.attention.qkv_linear.wq.weight", begin, end, CT_DTYPE_F32, dst, err));
 *     ct_hf_close(&hf);
 */
#ifndef CTI_CKPT_HF_H
#define CTI_CKPT_HF_H

#include <stdbool.h>
#include <stdint.h>

#include "ctitan/alloc.h"
#include "ctitan/dtype.h"

typedef struct ct_hf_shape {
    int64_t dim, n_layers, n_heads, n_kv_heads, head_dim, ffn_hidden, vocab_size;
    double rope_theta, norm_eps;
    bool is_tied;
    /* for config.json of an export */
    bool has_rope_scaling; /* llama3's rule */
    double rope_factor, rope_low_freq_factor, rope_high_freq_factor;
    int64_t rope_original_max, max_seq_len;
    int64_t bos_id, eos_id; /* -1: not written */
} ct_hf_shape;

typedef struct ct_hf ct_hf;

/* The files of model.safetensors.index.json, all of which must be there, or else model.safetensors, or else all *.safetensors, none of which may
 * hold a tensor of another; other files are not looked at. Every tensor is looked for: missing ones, unknown ones (rotary_emb.inv_freq and those
 * of dtypes that are none of ours are dropped) and wrong shapes and dtypes are named, all at once; config.json, where present, must agree with the
 * shape. */
CT_MUST_CHECK ct_status ct_hf_open(const ct_alloc *alloc, const char *folder, const ct_hf_shape *shape, ct_hf **out_hf,
                                   ct_err *err);
void ct_hf_close(ct_hf **hf);
/* Elements [begin, end) of a native parameter, converted to dtype (f32, bf16, f16). */
CT_MUST_CHECK ct_status ct_hf_read(const ct_hf *hf, const char *native_name, int64_t begin, int64_t end, ct_dtype dtype,
                                   void *dst, ct_err *err);

/* Elements of a native parameter in f32, for an export. */
typedef ct_status (*ct_hf_source)(void *ctx, const char *native_name, int64_t begin, int64_t end, float *dst, ct_err *err);
/* Writes model.safetensors (several files and an index above max_file_bytes; 0: 5 GB) and config.json into folder (made; a temporary
 * one renamed at the end). */
CT_MUST_CHECK ct_status ct_hf_write(const ct_alloc *alloc, const char *folder, const ct_hf_shape *shape, ct_dtype dtype,
                                    int64_t max_file_bytes, ct_hf_source source, void *ctx, ct_err *err);

#endif
