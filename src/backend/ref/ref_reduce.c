/* SPDX-License-Identifier: Apache-2.0 */
/* sumsq, add_n, clip_coef: the gradient norm and what follows from it. */
#include "backend/ref/ref.h"

enum { SUMSQ_BLOCK = 4096 }; /* elements; part of the op's meaning */

/* Squares of elements [begin, end), block by block. */
static double part_sumsq(const ct_tensor *x, int64_t begin, int64_t end)
{
    double total = 0.0;
    for (int64_t at = begin; at < end; at += SUMSQ_BLOCK) {
        const int64_t stop = cti_min_i64(at + SUMSQ_BLOCK, end);
        double sum = 0.0;
        for (int64_t i = at; i < stop; i++) {
            const double a = cti_ref_load(x, i);
            sum += a * a;
        }
        total += sum;
    }
    return total;
}

/* Leaves [first, first + n) of `size` elements each, by halves. The depth is log2 of the leaves. */
static double leaves_sumsq(const ct_tensor *x, int64_t size, int64_t first, int64_t n)
{
    if (n == 1) {
        return part_sumsq(x, first * size, (first + 1) * size);
    }
    return leaves_sumsq(x, size, first, n / 2) + leaves_sumsq(x, size, first + n / 2, n - n / 2);
}

ct_status cti_ref_sumsq(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const int64_t leaves = ((const ct_attrs_sumsq *)launch->attrs)->leaves;
    cti_ref_store(&launch->out[0], 0, leaves_sumsq(&launch->in[0], cti_ref_numel(&launch->in[0]) / leaves, 0, leaves));
    return CT_OK;
}

ct_status cti_ref_add_n(const ct_launch *launch, ct_err *err)
{
    (void)err;
    double sum = 0.0;
    bool has_any = false;
    for (int32_t k = 0; k < launch->n_in; k++) {
        const int64_t n = cti_ref_numel(&launch->in[k]);
        for (int64_t i = 0; i < n; i++) {
            const double v = cti_ref_load(&launch->in[k], i);
            sum = has_any ? sum + v : v;
            has_any = true;
        }
    }
    cti_ref_store(&launch->out[0], 0, sum);
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
