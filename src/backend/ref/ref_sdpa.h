/* SPDX-License-Identifier: Apache-2.0 */
/* What sdpa and its gradient share: the segments of a call, checked, whichever way they are written. */
#ifndef CTI_BACKEND_REF_REF_SDPA_H
#define CTI_BACKEND_REF_REF_SDPA_H

#include "backend/ref/ref.h"

typedef struct cti_ref_segments {
    const int32_t *rows;            /* [C, 4]; NULL: given by ends */
    const int32_t *ends_q, *ends_k; /* [C] */
    int32_t n;
} cti_ref_segments;

typedef struct cti_ref_segment {
    int64_t q_start, q_len, k_start, k_len; /* tokens */
} cti_ref_segment;

static inline cti_ref_segment cti_ref_segment_at(const cti_ref_segments *s, int32_t i)
{
    if (s->rows != NULL) {
        const int32_t *r = s->rows + 4 * (int64_t)i;
        return (cti_ref_segment){r[0], r[1], r[2], r[3]};
    }
    const int64_t q0 = i > 0 ? s->ends_q[i - 1] : 0, k0 = i > 0 ? s->ends_k[i - 1] : 0;
    return (cti_ref_segment){q0, s->ends_q[i] - q0, k0, s->ends_k[i] - k0};
}

/* Keys of the segment that query i sees: [first, last), both within [0, k_len]. */
static inline void cti_ref_visible(const ct_attrs_sdpa *attrs, const cti_ref_segment *s, int64_t i, int64_t *out_first,
                                   int64_t *out_last)
{
    const int64_t diagonal = i + s->k_len - s->q_len;
    int64_t first = 0, last = s->k_len;
    if (attrs->causal) {
        last = cti_min_i64(last, cti_max_i64(diagonal + 1, 0));
    }
    if (attrs->window > 0) {
        first = cti_max_i64(first, diagonal - attrs->window + 1);
    }
    *out_first = cti_min_i64(first, last);
    *out_last = last;
}

/* The call's segments, from [segments, n] or [ends_q, ends_k, n] at in[at]; ERR_RANGE naming `op` where their number is over
 * the table's capacity or one leaves the q_tokens or k_tokens. */
CT_MUST_CHECK ct_status cti_ref_segments_of(const char *op, const ct_tensor *in, bool by_ends, int64_t q_tokens,
                                            int64_t k_tokens, cti_ref_segments *out, ct_err *err);

#endif
