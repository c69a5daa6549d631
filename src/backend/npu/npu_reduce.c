/* SPDX-License-Identifier: Apache-2.0 */
/* sumsq, add_n, clip_coef. Squares are added up by CANN's vector norm in f32, which the cube's neighbours have no f64 for; from one number a leaf on all is
 * f64, which runs on the device's own CPU. */
#include "backend/npu/npu_table.h"

void cti_npu_op_sumsq(cti_npu_seq *s, const ct_launch *l)
{
    const int64_t leaves = ((const ct_attrs_sumsq *)l->attrs)->leaves, n = cti_npu_count(&l->in[0]);
    const cti_npu_view out = cti_npu_flat(&l->out[0]);
    if (n == 0) {
        cti_npu_zero(s, out);
        return;
    }
    const cti_npu_view norms = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(leaves)), squares = cti_npu_temp(s, ACL_DOUBLE, NPU_DIMS(leaves));
    NPU_CALL(s, LinalgVectorNorm, NPU_T(s, cti_npu_as(cti_npu_of(&l->in[0]), NPU_DIMS(leaves, n / leaves))), NPU_F(s, 2.0), NPU_I(s, 1), false, ACL_FLOAT,
             NPU_T(s, norms));
    cti_npu_cast(s, squares, norms);
    if (leaves == 1) {
        NPU_CALL(s, Mul, NPU_T(s, squares), NPU_T(s, squares), NPU_T(s, out));
        return;
    }
    NPU_CALL(s, Mul, NPU_T(s, squares), NPU_T(s, squares), NPU_T(s, squares));
    NPU_CALL(s, ReduceSum, NPU_T(s, squares), NPU_I(s, 0), true, ACL_DOUBLE, NPU_T(s, out));
}

void cti_npu_op_add_n(cti_npu_seq *s, const ct_launch *l)
{
    const cti_npu_view out = cti_npu_flat(&l->out[0]);
    bool has_any = false;
    for (int32_t k = 0; k < l->n_in; k++) {
        const int64_t n = cti_npu_count(&l->in[k]);
        for (int64_t i = 0; i < n; i++) {
            const cti_npu_view one = cti_npu_part(cti_npu_of(&l->in[k]), i, NPU_DIMS(1));
            if (has_any) {
                NPU_CALL(s, InplaceAdd, NPU_T(s, out), NPU_T(s, one), cti_npu_scalar(s, ACL_DOUBLE, 1.0));
            } else {
                cti_npu_cast(s, out, one);
            }
            has_any = true;
        }
    }
    if (!has_any) {
        cti_npu_zero(s, out);
    }
}

/* coef = c where c = max_norm / (norm + 1e-6) is below 1, else 1, where c is no number too. */
void cti_npu_op_clip_coef(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_clip *attrs = l->attrs;
    const cti_npu_view norm = cti_npu_flat(&l->out[1]), c = cti_npu_temp(s, ACL_DOUBLE, NPU_DIMS(1)), max_norm = cti_npu_temp(s, ACL_DOUBLE, NPU_DIMS(1)),
                       ones = cti_npu_temp(s, ACL_DOUBLE, NPU_DIMS(1)), is_small = cti_npu_temp(s, ACL_BOOL, NPU_DIMS(1)),
                       norm_ok = cti_npu_temp(s, ACL_BOOL, NPU_DIMS(1)), loss_ok = cti_npu_temp(s, ACL_BOOL, NPU_DIMS(1));
    cti_npu_fill(s, max_norm, attrs->max_norm);
    cti_npu_fill(s, ones, 1.0);
    NPU_CALL(s, Sqrt, NPU_T(s, cti_npu_flat(&l->in[0])), NPU_T(s, norm));
    NPU_CALL(s, Adds, NPU_T(s, norm), cti_npu_scalar(s, ACL_DOUBLE, 1e-6), cti_npu_scalar(s, ACL_DOUBLE, 1.0), NPU_T(s, c));
    NPU_CALL(s, Div, NPU_T(s, max_norm), NPU_T(s, c), NPU_T(s, c));
    NPU_CALL(s, LtScalar, NPU_T(s, c), cti_npu_scalar(s, ACL_DOUBLE, 1.0), NPU_T(s, is_small));
    NPU_CALL(s, SWhere, NPU_T(s, is_small), NPU_T(s, c), NPU_T(s, ones), NPU_T(s, c));
    cti_npu_cast(s, cti_npu_flat(&l->out[0]), c);
    NPU_CALL(s, IsFinite, NPU_T(s, norm), NPU_T(s, norm_ok));
    NPU_CALL(s, IsFinite, NPU_T(s, cti_npu_flat(&l->in[1])), NPU_T(s, loss_ok));
    NPU_CALL(s, LogicalAnd, NPU_T(s, norm_ok), NPU_T(s, loss_ok), NPU_T(s, norm_ok));
    cti_npu_cast(s, cti_npu_flat(&l->out[2]), norm_ok);
}
