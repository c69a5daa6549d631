/* SPDX-License-Identifier: Apache-2.0 */
/* newton_schulz (Jordan 2024): the matrices that lie in a vector, each near to the orthogonal matrix of its polar decomposition. In f64. */
#include "backend/ref/ref.h"

/* Two copies of the largest matrix, two squares of its short side. */
size_t cti_ref_newton_schulz_workspace_bytes(const ct_launch *launch)
{
    const ct_attrs_newton_schulz *a = launch->attrs;
    int64_t most = 0;
    for (int64_t i = 0; i + 3 < a->matrices.n; i += 4) {
        const int64_t rows = a->matrices.items[i + 1], cols = a->matrices.items[i + 2], r = cti_min_i64(rows, cols);
        most = cti_max_i64(most, 2 * rows * cols + 2 * r * r);
    }
    return (size_t)most * sizeof(double);
}

/* One turn: y = a x + (b g + c g g) x with g = x x^T; where x has more rows than columns, of its transpose. x[i][k] at i * si + k * sk. */
static void turn(const double *x, double *y, double *gram, double *poly, int64_t r, int64_t n, int64_t si, int64_t sk, const double abc[3])
{
    for (int64_t i = 0; i < r; i++) {
        for (int64_t j = 0; j < r; j++) {
            double sum = 0.0;
            for (int64_t k = 0; k < n; k++) {
                sum += x[i * si + k * sk] * x[j * si + k * sk];
            }
            gram[i * r + j] = sum;
        }
    }
    for (int64_t i = 0; i < r; i++) {
        for (int64_t j = 0; j < r; j++) {
            double sum = 0.0;
            for (int64_t k = 0; k < r; k++) {
                sum += gram[i * r + k] * gram[k * r + j];
            }
            poly[i * r + j] = abc[1] * gram[i * r + j] + abc[2] * sum + (i == j ? abc[0] : 0.0);
        }
    }
    for (int64_t i = 0; i < r; i++) {
        for (int64_t k = 0; k < n; k++) {
            double sum = 0.0;
            for (int64_t j = 0; j < r; j++) {
                sum += poly[i * r + j] * x[j * si + k * sk];
            }
            y[i * si + k * sk] = sum;
        }
    }
}

ct_status cti_ref_newton_schulz(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_newton_schulz *a = launch->attrs;
    const ct_tensor *u = &launch->in[0], *o = &launch->out[0];
    for (int64_t k = 0, n = cti_ref_numel(u); k < n; k++) {
        cti_ref_store(o, k, 0.0);
    }
    for (int64_t i = 0; i + 3 < a->matrices.n; i += 4) {
        const int64_t first = a->matrices.items[i], rows = a->matrices.items[i + 1], cols = a->matrices.items[i + 2];
        const int64_t group = a->matrices.items[i + 3], size = rows * cols, r = cti_min_i64(rows, cols);
        const bool is_wide = rows <= cols;
        double *x = launch->workspace, *y = x + size, *gram = y + size, *poly = gram + r * r, sum = 0.0;
        for (int64_t k = 0; k < size; k++) {
            x[k] = cti_ref_load(u, first + k);
            sum += x[k] * x[k];
        }
        const double norm = fmax(sqrt(sum), a->eps.items[group]);
        for (int64_t k = 0; k < size; k++) {
            x[k] = norm > 0.0 ? x[k] / norm : 0.0;
        }
        for (int64_t s = 0; s < a->steps.items[group]; s++) {
            turn(x, y, gram, poly, r, is_wide ? cols : rows, is_wide ? cols : 1, is_wide ? 1 : cols, a->coefficients.items + 3 * group);
            double *t = x;
            x = y;
            y = t;
        }
        for (int64_t k = 0; k < size; k++) {
            cti_ref_store(o, first + k, a->scale.items[i / 4] * x[k]);
        }
    }
    return CT_OK;
}
