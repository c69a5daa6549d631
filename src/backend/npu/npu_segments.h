/* SPDX-License-Identifier: Apache-2.0 */
/* The segments of an attention call as CANN's flash attention can take them. */
#ifndef CTI_BACKEND_NPU_NPU_SEGMENTS_H
#define CTI_BACKEND_NPU_NPU_SEGMENTS_H

#include "backend/npu/npu_table.h"

typedef struct cti_npu_segment {
    int64_t q, q_len, k, k_len; /* tokens */
} cti_npu_segment;

/* FIXED: rows of equal length that cover all: one call for the batch. PACKED: segments back to back from 0: calls with their ends, as many segments a
 * call as CANN takes. ALONE: anything else: one call a segment. */
typedef enum cti_npu_segment_form { CTI_NPU_FIXED, CTI_NPU_PACKED, CTI_NPU_ALONE } cti_npu_segment_form;

typedef struct cti_npu_segments {
    cti_npu_segment *list; /* owns; those in which some query sees some key; queries that see none are cut off */
    int64_t n;
    int64_t q_tokens, k_tokens, q_end, k_end; /* ends: of what PACKED covers */
    cti_npu_segment_form form;
    bool is_all_q, is_all_k;  /* every token of q (k) is in one */
    bool is_square;           /* q_len is k_len in all */
    bool is_apart;            /* no key is in two */
} cti_npu_segments;

/* From [segments, n] or [ends_q, ends_k, n] at in[at]. While only shapes are asked about: rows of equal length. ERR_RANGE as ref has it. */
void cti_npu_segments_of(cti_npu_seq *s, const ct_launch *l, int32_t at, bool by_ends, const ct_tensor *q, const ct_tensor *k, cti_npu_segments *out);
void cti_npu_segments_deinit(cti_npu_seq *s, cti_npu_segments *g);

#endif
