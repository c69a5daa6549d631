/* SPDX-License-Identifier: Apache-2.0 */
/* momentum and descend: the two halves of SGD, and of Muon around its newton_schulz. Each element in f64, each result rounded once. */
#include "backend/ref/ref.h"
#include "ops/ops.h"

ct_status cti_ref_momentum(const ct_launch *launch, ct_err *err)
{
    const ct_attrs_momentum *a = launch->attrs;
    const ct_tensor *m = &launch->in[0], *g = &launch->in[1], *p = &launch->in[2], *d = &launch->out[1];
    const int64_t n = cti_ref_numel(m);
    CT_TRY(cti_check_segments("momentum", &a->segments, n, a->momentum.n, err));
    for (int64_t k = 0; k < n; k++) {
        cti_ref_store(d, k, 0.0);
    }
    if (*(const int32_t *)launch->in[4].data == 0) {
        return CT_OK;
    }
    const double coef = cti_ref_load(&launch->in[3], 0);
    for (int64_t i = 0; i + 2 < a->segments.n; i += 3) {
        const int64_t *s = a->segments.items + i;
        const double mu = a->momentum.items[s[2]], share = a->share.items[s[2]], decay = a->weight_decay.items[s[2]];
        for (int64_t k = s[0]; k < s[1]; k++) {
            const double x = share * (cti_ref_load(g, k) * coef + decay * cti_ref_load(p, k));
            const double kept = mu * cti_ref_load(m, k) + x;
            cti_ref_store(&launch->out[0], k, kept);
            cti_ref_store(d, k, a->nesterov.items[s[2]] != 0 ? x + mu * kept : kept);
        }
    }
    return CT_OK;
}

ct_status cti_ref_descend(const ct_launch *launch, ct_err *err)
{
    const ct_attrs_descend *a = launch->attrs;
    const ct_tensor *p = &launch->in[0], *d = &launch->in[1];
    const double coef = launch->n_in > 4 && launch->in[4].ndim >= 0 ? cti_ref_load(&launch->in[4], 0) : 1.0;
    if (*(const int32_t *)launch->in[3].data == 0) {
        return CT_OK;
    }
    CT_TRY(cti_check_segments("descend", &a->segments, cti_ref_numel(p), a->weight_decay.n, err));
    for (int64_t i = 0; i + 2 < a->segments.n; i += 3) {
        const int64_t *s = a->segments.items + i;
        const double lr = cti_ref_load(&launch->in[2], s[2]), keep = 1.0 - lr * a->weight_decay.items[s[2]], l2 = a->l2.items[s[2]];
        for (int64_t k = s[0]; k < s[1]; k++) {
            const double old = cti_ref_load(p, k);
            cti_ref_store(&launch->out[0], k, old * keep - lr * (cti_ref_load(d, k) * coef + l2 * old));
        }
    }
    return CT_OK;
}
