/* SPDX-License-Identifier: Apache-2.0 */
/* matmul: y = op(a) op(b) (+ c). Each element is a sum over p in order, in f64; c is added last. matmul_swiglu: matmul, then swiglu. */
#include "backend/ref/ref.h"

/* One row of y. */
size_t cti_ref_matmul_workspace_bytes(const ct_launch *launch)
{
    return (size_t)cti_ref_last_dim(&launch->out[0]) * sizeof(double);
}

ct_status cti_ref_matmul(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_matmul *attrs = launch->attrs;
    const ct_tensor *a = &launch->in[0], *b = &launch->in[1], *y = &launch->out[0];
    const ct_tensor *c = launch->n_in > 2 && launch->in[2].ndim >= 0 ? &launch->in[2] : NULL;
    const int64_t a_rows = cti_ref_rows(a), a_cols = cti_ref_last_dim(a);
    const int64_t b_rows = cti_ref_rows(b), b_cols = cti_ref_last_dim(b);
    const int64_t m = attrs->ta ? a_cols : a_rows, inner = attrs->ta ? a_rows : a_cols, q = attrs->tb ? b_rows : b_cols;
    double *row = launch->workspace;
    for (int64_t i = 0; i < m; i++) {
        memset(row, 0, (size_t)q * sizeof *row);
        if (attrs->tb) {
            for (int64_t j = 0; j < q; j++) {
                double sum = 0.0;
                for (int64_t p = 0; p < inner; p++) {
                    sum += cti_ref_load(a, attrs->ta ? p * a_cols + i : i * a_cols + p) * cti_ref_load(b, j * b_cols + p);
                }
                row[j] = sum;
            }
        } else {
            for (int64_t p = 0; p < inner; p++) {
                const double left = cti_ref_load(a, attrs->ta ? p * a_cols + i : i * a_cols + p);
                for (int64_t j = 0; j < q; j++) {
                    row[j] += left * cti_ref_load(b, p * b_cols + j);
                }
            }
        }
        for (int64_t j = 0; j < q; j++) {
            cti_ref_store(y, i * q + j, c == NULL ? row[j] : row[j] + cti_ref_load(c, i * q + j));
        }
    }
    return CT_OK;
}

size_t cti_ref_matmul_swiglu_workspace_bytes(const ct_launch *launch)
{
    return cti_ref_matmul_workspace_bytes(launch);
}

ct_status cti_ref_matmul_swiglu(const ct_launch *launch, ct_err *err)
{
    CT_TRY(cti_ref_matmul(launch, err));
    ct_launch second = *launch;
    second.in = &launch->out[0];
    second.n_in = 1;
    second.out = &launch->out[1];
    second.n_out = 1;
    return cti_ref_swiglu(&second, err);
}
