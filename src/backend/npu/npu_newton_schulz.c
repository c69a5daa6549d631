/* SPDX-License-Identifier: Apache-2.0 */
/* newton_schulz (Jordan 2024), matrix by matrix, in f32. With x [rows, cols] and s = x x^T, or x^T x where that is the smaller:
 * x' = a x + (b s + c s s) x, or a x + x (b s + c s s). */
#include "backend/npu/npu_table.h"

static void one_matrix(cti_npu_seq *s, cti_npu_view u, cti_npu_view o, int64_t steps, double eps, double scale, const double abc[3])
{
    const size_t mark = s->at;
    const int64_t rows = u.dims[0], cols = u.dims[1], side = rows < cols ? rows : cols;
    const bool is_tall = rows > cols;
    cti_npu_view x = cti_npu_temp(s, ACL_FLOAT, u.ndim, u.dims), next = cti_npu_temp(s, ACL_FLOAT, u.ndim, u.dims);
    const cti_npu_view gram = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(side, side)), poly = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(side, side)),
                       norm = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(1)), least = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(1));
    cti_npu_cast(s, x, u);
    NPU_CALL(s, LinalgVectorNorm, NPU_T(s, cti_npu_as(x, NPU_DIMS(1, rows * cols))), NPU_F(s, 2.0), NPU_I(s, 1), false, ACL_FLOAT, NPU_T(s, norm));
    cti_npu_fill(s, least, eps);
    NPU_CALL(s, Maximum, NPU_T(s, norm), NPU_T(s, least), NPU_T(s, norm));
    NPU_CALL(s, Div, NPU_T(s, x), NPU_T(s, norm), NPU_T(s, x));
    for (int64_t i = 0; i < steps; i++) {
        cti_npu_mm(s, gram, is_tall ? cti_npu_t(x) : x, is_tall ? x : cti_npu_t(x), false, false);
        NPU_CALL(s, Addmm, NPU_T(s, gram), NPU_T(s, gram), NPU_T(s, gram), NPU_F(s, abc[1]), NPU_F(s, abc[2]), NPU_T(s, poly), ACL_CUBE_KEEP_DTYPE);
        NPU_CALL(s, Addmm, NPU_T(s, x), NPU_T(s, is_tall ? x : poly), NPU_T(s, is_tall ? poly : x), NPU_F(s, abc[0]), NPU_F(s, 1.0), NPU_T(s, next),
                 ACL_CUBE_KEEP_DTYPE);
        const cti_npu_view old = x;
        x = next;
        next = old;
    }
    NPU_CALL(s, InplaceMuls, NPU_T(s, x), NPU_F(s, scale));
    cti_npu_cast(s, o, x);
    s->at = mark;
}

void cti_npu_op_newton_schulz(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_newton_schulz *a = l->attrs;
    cti_npu_zero(s, cti_npu_flat(&l->out[0]));
    for (int64_t i = 0; i + 3 < a->matrices.n; i += 4) {
        const int64_t *m = a->matrices.items + i;
        if (m[1] * m[2] > 0) {
            one_matrix(s, cti_npu_part(cti_npu_flat(&l->in[0]), m[0], NPU_DIMS(m[1], m[2])), cti_npu_part(cti_npu_flat(&l->out[0]), m[0], NPU_DIMS(m[1], m[2])),
                       a->steps.items[m[3]], a->eps.items[m[3]], a->scale.items[i / 4], a->coefficients.items + 3 * m[3]);
        }
    }
}
