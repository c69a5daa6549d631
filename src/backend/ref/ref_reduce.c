/* SPDX-License-Identifier: Apache-2.0 */
/* sumsq, add_n, clip_coef: the gradient norm and what follows from it. */
#include "backend/ref/ref.h"

enum { SUMSQ_BLOCK = 4096 }; /* elements; part of the op's meaning */

ct_status cti_ref_sumsq(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_tensor *x = &launch->in[0];
    const int64_t n = cti_ref_numel(x);
    double total = 0.0;
    for (int64_t begin = 0; begin < n; begin += SUMSQ_BLOCK) {
        const int64_t end = cti_min_i64(begin + SUMSQ_BLOCK, n);
        double sum = 0.0;
        for (int64_t i = begin; i < end; i++) {
            const double a = cti_ref_load(x, i);
            sum += a * a;
        }
        total += sum;
    }
    cti_ref_store(&launch->out[0], 0, total);
    return CT_OK;
}

ct_status cti_ref_add_n(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_tensor *y = &launch->out[0];
    const int64_t n = cti_ref_numel(y);
    for (int64_t i = 0; i < n; i++) {
        double sum = cti_ref_load(&launch->in[0], i);
        for (int32_t k = 1; k < launch->n_in; k++) {
            sum += cti_ref_load(&launch->in[k], i);
        }
        cti_ref_store(y, i, sum);
    }
    return CT_OK;
}

/* Where the norm is not a number coef is 1 and go 0: nothing is updated with it. */
ct_status cti_ref_clip_coef(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_clip *attrs = launch->attrs;
    const double norm = sqrt(cti_ref_load(&launch->in[0], 0)), loss = cti_ref_load(&launch->in[1], 0);
    const double coef = attrs->max_norm / (norm + 1e-6);
    cti_ref_store(&launch->out[0], 0, coef < 1.0 ? coef : 1.0);
    cti_ref_store(&launch->out[1], 0, norm);
    *(int32_t *)launch->out[2].data = isfinite(norm) && isfinite(loss);
    return CT_OK;
}
