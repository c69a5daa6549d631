/* SPDX-License-Identifier: Apache-2.0 */
/* adamw (Loshchilov, Hutter 2019), in place. Each element in f64, each state rounded once; elements in no segment stay. */
#include "backend/ref/ref.h"
#include "ops/ops.h"

static ct_status check_adamw(const ct_launch *launch, ct_err *err)
{
    const ct_attrs_adamw *attrs = launch->attrs;
    const int64_t n = cti_ref_numel(&launch->in[0]);
    int64_t groups = cti_ref_numel(&launch->in[4]);
    const int64_t step = *(const int64_t *)launch->in[5].data;
    if (step < 1) {
        return CT_FAIL(err, CT_ERR_RANGE, "adamw: step is %lld; steps count from 1", (long long)step);
    }
    const int64_t lists[] = {attrs->beta1.n, attrs->beta2.n, attrs->eps.n, attrs->weight_decay.n, attrs->l2.n > 0 ? attrs->l2.n : groups};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        groups = cti_min_i64(groups, lists[i]);
    }
    return cti_check_segments("adamw", &attrs->segments, n, groups, err);
}

ct_status cti_ref_adamw(const ct_launch *launch, ct_err *err)
{
    const ct_attrs_adamw *attrs = launch->attrs;
    const ct_tensor *p = &launch->in[0], *g = &launch->in[1], *m = &launch->in[2], *v = &launch->in[3];
    if (*(const int32_t *)launch->in[7].data == 0) {
        return CT_OK;
    }
    CT_TRY(check_adamw(launch, err));
    const double step = (double)*(const int64_t *)launch->in[5].data, coef = cti_ref_load(&launch->in[6], 0);
    for (int64_t i = 0; i + 2 < attrs->segments.n; i += 3) {
        const int64_t begin = attrs->segments.items[i], end = attrs->segments.items[i + 1];
        const int64_t group = attrs->segments.items[i + 2];
        const double lr = cti_ref_load(&launch->in[4], group), decay = attrs->weight_decay.items[group];
        const double b1 = attrs->beta1.items[group], b2 = attrs->beta2.items[group], eps = attrs->eps.items[group];
        const double l2 = attrs->l2.n > 0 ? attrs->l2.items[group] : 0.0;
        const double step_size = lr / (1.0 - pow(b1, step)), root = sqrt(1.0 - pow(b2, step));
        for (int64_t k = begin; k < end; k++) {
            const double grad = cti_ref_load(g, k) * coef + (l2 != 0.0 ? l2 * cti_ref_load(p, k) : 0.0);
            const double m1 = b1 * cti_ref_load(m, k) + (1.0 - b1) * grad;
            const double v1 = b2 * cti_ref_load(v, k) + (1.0 - b2) * grad * grad;
            const double p1 = cti_ref_load(p, k) * (1.0 - lr * decay) - step_size * m1 / (sqrt(v1) / root + eps);
            cti_ref_store(&launch->out[0], k, p1);
            cti_ref_store(&launch->out[1], k, m1);
            cti_ref_store(&launch->out[2], k, v1);
        }
    }
    return CT_OK;
}
