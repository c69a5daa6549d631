/* SPDX-License-Identifier: Apache-2.0 */
/* newton_schulz (Jordan 2024; the quintic iteration of Muon) in f32, with the shared product: b g + c g g + a 1 is built as g (c g + b 1) + a 1, so that a
 * turn is three products. All but the products is linear in the matrix and done by one thread. */
#include <math.h>

#include "backend/cpu/isa/cpu_gemm.h"
#include "backend/cpu/isa/cpu_kernel.h"
#include "base/pool.h"

static int64_t line_up(int64_t floats)
{
    return cti_round_up(floats, 16); /* 64 bytes */
}

size_t CTI_CPU_WORKSPACE(newton_schulz)(const ct_launch *shapes)
{
    const ct_attrs_newton_schulz *a = shapes->attrs;
    int64_t most = 0;
    for (int64_t i = 0; i + 3 < a->matrices.n; i += 4) {
        const int64_t rows = a->matrices.items[i + 1], cols = a->matrices.items[i + 2], r = cti_min_i64(rows, cols);
        most = cti_max_i64(most, 2 * line_up(rows * cols) + 3 * line_up(r * r));
    }
    return (size_t)most * sizeof(float) + CTI_CPU_FN(gemm_scratch_bytes)(cti_pool_threads());
}

/* A matrix on its way: x and y change places at each turn. */
typedef struct iteration {
    int64_t rows, cols, r; /* r: the smaller one */
    float *x, *y, *gram, *inner, *poly;
    void *scratch;
    size_t scratch_bytes;
} iteration;

static void product(const iteration *it, int64_t m, int64_t k, int64_t n, cti_cpu_mat a, cti_cpu_mat b, float *y)
{
    const cti_cpu_gemm g = {.m = m, .k = k, .n = n, .a = a, .b = b, .y = y, .y_dtype = CT_DTYPE_F32, .ldy = n};
    CTI_CPU_FN(gemm)(&g, it->scratch, it->scratch_bytes);
}

static cti_cpu_mat plain(const float *data, int64_t cols)
{
    return (cti_cpu_mat){data, CT_DTYPE_F32, cols, 1};
}

static void turn(iteration *it, const double abc[3])
{
    const bool is_wide = it->rows <= it->cols;
    const int64_t r = it->r;
    const cti_cpu_mat x = plain(it->x, it->cols), xt = {it->x, CT_DTYPE_F32, 1, it->cols};
    product(it, r, is_wide ? it->cols : it->rows, r, is_wide ? x : xt, is_wide ? xt : x, it->gram);
    for (int64_t i = 0; i < r * r; i++) {
        it->inner[i] = (float)abc[2] * it->gram[i];
    }
    for (int64_t i = 0; i < r; i++) {
        it->inner[i * r + i] += (float)abc[1];
    }
    product(it, r, r, r, plain(it->gram, r), plain(it->inner, r), it->poly);
    for (int64_t i = 0; i < r; i++) {
        it->poly[i * r + i] += (float)abc[0];
    }
    if (is_wide) {
        product(it, r, r, it->cols, plain(it->poly, r), x, it->y);
    } else {
        product(it, it->rows, r, r, x, plain(it->poly, r), it->y);
    }
    float *t = it->x;
    it->x = it->y;
    it->y = t;
}

/* Divided by its Frobenius norm; the sum of squares in f64, in order. */
static void normalize(float *x, int64_t n, double eps)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    const double norm = fmax(sqrt(sum), eps);
    const float by = norm > 0 ? (float)(1.0 / norm) : 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] *= by;
    }
}

ct_status CTI_CPU_FN(newton_schulz)(const ct_launch *launch, ct_err *err)
{
    const ct_attrs_newton_schulz *a = launch->attrs;
    const ct_tensor *u = &launch->in[0], *o = &launch->out[0];
    CT_TRY(check_floats("newton_schulz", "input", launch->in, 1, err));
    CT_TRY(check_scratch("newton_schulz", launch, CTI_CPU_WORKSPACE(newton_schulz)(launch), err));
    memset(o->data, 0, (size_t)t_numel(o) * ct_dtype_size_bytes(o->dtype));
    for (int64_t i = 0; i + 3 < a->matrices.n; i += 4) {
        const int64_t *m = a->matrices.items + i; /* offset, rows, cols, group */
        iteration it = {.rows = m[1], .cols = m[2], .r = cti_min_i64(m[1], m[2]), .x = launch->workspace};
        const int64_t size = it.rows * it.cols, square = line_up(it.r * it.r);
        it.y = it.x + line_up(size);
        it.gram = it.y + line_up(size);
        it.inner = it.gram + square;
        it.poly = it.inner + square;
        it.scratch = it.poly + square;
        it.scratch_bytes = launch->workspace_bytes - (size_t)((char *)it.scratch - (char *)launch->workspace);
        v_widen(it.x, u->data, u->dtype, m[0], size);
        normalize(it.x, size, a->eps.items[m[3]]);
        for (int64_t s = 0; s < a->steps.items[m[3]]; s++) {
            turn(&it, a->coefficients.items + 3 * m[3]);
        }
        const float scale = (float)a->scale.items[i / 4];
        for (int64_t k = 0; k < size; k++) {
            it.x[k] *= scale;
        }
        v_narrow(o->data, o->dtype, m[0], it.x, size);
    }
    return CT_OK;
}
