/* SPDX-License-Identifier: Apache-2.0 */
/* rmsnorm, rmsnorm_grad. With r = 1/sqrt(mean(x^2) + eps) and y = x r w:
 *     dx = r (dy w - x r^2 mean(dy w x)) + c,  dw = sum over tokens of dy x r. */
#include "backend/ref/ref.h"

ct_status cti_ref_rmsnorm(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_rmsnorm *attrs = launch->attrs;
    const ct_tensor *x = &launch->in[0], *w = &launch->in[1], *y = &launch->out[0], *rstd = &launch->out[1];
    const int64_t n = cti_ref_rows(x), d = cti_ref_last_dim(x);
    for (int64_t t = 0; t < n; t++) {
        double sum = 0.0;
        for (int64_t j = 0; j < d; j++) {
            const double a = cti_ref_load(x, t * d + j);
            sum += a * a;
        }
        const double r = 1.0 / sqrt(sum / (double)d + attrs->eps);
        cti_ref_store(rstd, t, r);
        for (int64_t j = 0; j < d; j++) {
            cti_ref_store(y, t * d + j, cti_ref_load(x, t * d + j) * r * cti_ref_load(w, j));
        }
    }
    return CT_OK;
}

/* dw's sums. */
size_t cti_ref_rmsnorm_grad_workspace_bytes(const ct_launch *launch)
{
    return (size_t)cti_ref_last_dim(&launch->in[1]) * sizeof(double);
}

/* rstd is read as it was saved, in f32: in f64 the gradients carry its rounding. */
ct_status cti_ref_rmsnorm_grad(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_tensor *dy = &launch->in[0], *x = &launch->in[1], *w = &launch->in[2], *rstd = &launch->in[3];
    const ct_tensor *dx = &launch->out[0], *dw = &launch->out[1];
    const int64_t n = cti_ref_rows(x), d = cti_ref_last_dim(x);
    double *dw_sum = launch->workspace;
    memset(dw_sum, 0, (size_t)d * sizeof *dw_sum);
    for (int64_t t = 0; t < n; t++) {
        const double r = cti_ref_load(rstd, t);
        double dot = 0.0;
        for (int64_t j = 0; j < d; j++) {
            const double dyx = cti_ref_load(dy, t * d + j) * cti_ref_load(x, t * d + j);
            dot += dyx * cti_ref_load(w, j);
            dw_sum[j] += dyx * r;
        }
        const double k = r * r * dot / (double)d;
        for (int64_t j = 0; j < d; j++) {
            const double a = cti_ref_load(x, t * d + j);
            const double c = launch->n_in > 4 ? cti_ref_load(&launch->in[4], t * d + j) : 0.0;
            cti_ref_store(dx, t * d + j, r * (cti_ref_load(dy, t * d + j) * cti_ref_load(w, j) - a * k) + c);
        }
    }
    for (int64_t j = 0; j < d; j++) {
        cti_ref_store(dw, j, dw_sum[j]);
    }
    return CT_OK;
}
