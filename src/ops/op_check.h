/* SPDX-License-Identifier: Apache-2.0 */
/* What shape rules are written with: each check fails with ERR_SHAPE, the op, the shapes it was given, and a
 * sentence. */
#ifndef CTI_OPS_OP_CHECK_H
#define CTI_OPS_OP_CHECK_H

#include "ops/ops.h"

typedef struct cti_check {
    const char *op;
    const ct_value *const *in;
    int32_t n_in;
    ct_err *err;
} cti_check;
#define CTI_CHECK(op_name)                                  \
    {                                                       \
        .op = (op_name), .in = in, .n_in = n_in, .err = err \
    }

/* "matmul(f32 [8, 256], f32 [3, 4]): <sentence>". */
CT_MUST_CHECK ct_status cti_want(const cti_check *c, bool ok, const char *fmt, ...) CT_PRINTF(3, 4);
CT_MUST_CHECK ct_status cti_want_float(const cti_check *c, int32_t i); /* f32, bf16 or f64 */
CT_MUST_CHECK ct_status cti_want_dtype(const cti_check *c, int32_t i, ct_dtype dtype);
CT_MUST_CHECK ct_status cti_want_same_dtype(const cti_check *c, int32_t i, int32_t j);
CT_MUST_CHECK ct_status cti_want_ndim(const cti_check *c, int32_t i, int32_t ndim);
CT_MUST_CHECK ct_status cti_want_ndim_min(const cti_check *c, int32_t i, int32_t ndim);
CT_MUST_CHECK ct_status cti_want_same(const cti_check *c, int32_t i, int32_t j); /* dims and dtype */
CT_MUST_CHECK ct_status cti_want_same_dims(const cti_check *c, int32_t i, int32_t j);
/* Input i has exactly these dims. */
CT_MUST_CHECK ct_status cti_want_dims(const cti_check *c, int32_t i, const int64_t *dims, int32_t ndim);
/* Input i is [n] of a dtype. n -1: any length. */
CT_MUST_CHECK ct_status cti_want_vector(const cti_check *c, int32_t i, ct_dtype dtype, int64_t n);

/* Product of all dims but the last `last`. The dims of a value never overflow. */
int64_t cti_rows(const ct_value *v, int32_t last);
ct_value_spec cti_spec_like(const ct_value *v);
ct_value_spec cti_spec(ct_dtype dtype, int32_t ndim, const int64_t *dims);
/* "f32 [8, 256]", cut to the buffer. */
void cti_value_text(const ct_value *v, char *buf, size_t size);

#endif
