/* SPDX-License-Identifier: Apache-2.0 */
/* rmsnorm and its gradient. CANN keeps rstd and dgamma in f32. */
#include "backend/npu/npu_table.h"

void cti_npu_op_rmsnorm(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_rmsnorm *attrs = l->attrs;
    const cti_npu_view x = cti_npu_rows(&l->in[0]), rstd = cti_npu_as(cti_npu_of(&l->out[1]), NPU_DIMS(x.dims[0], 1));
    if (cti_npu_numel(&x) > 0) {
        NPU_CALL(s, RmsNorm, NPU_T(s, x), NPU_T(s, cti_npu_flat(&l->in[1])), attrs->eps, NPU_T(s, cti_npu_rows(&l->out[0])), NPU_T(s, rstd));
    }
}

/* With an addend all is computed in f32, so that dx is rounded once, behind the sum. dx may lie over an input, CANN's may not: it then comes by way of
 * a temporary, for which there is room in any case. */
void cti_npu_op_rmsnorm_grad(cti_npu_seq *s, const ct_launch *l)
{
    const bool has_addend = l->n_in > 4 && l->in[4].ndim >= 0;
    const cti_npu_view dx = cti_npu_rows(&l->out[0]), dw = cti_npu_flat(&l->out[1]);
    const int64_t rows = dx.dims[0], d = dx.dims[1];
    if (cti_npu_numel(&dx) == 0) {
        cti_npu_zero(s, dw);
        return;
    }
    cti_npu_view dy = cti_npu_rows(&l->in[0]), x = cti_npu_rows(&l->in[1]), w = cti_npu_flat(&l->in[2]);
    const cti_npu_view rstd = cti_npu_as(cti_npu_of(&l->in[3]), NPU_DIMS(rows, 1));
    if (has_addend) {
        dy = cti_npu_f32(s, dy);
        x = cti_npu_f32(s, x);
        w = cti_npu_f32(s, w);
    }
    bool is_over = false;
    for (int32_t k = 0; k < 4; k++) {
        is_over = is_over || l->out[0].data == l->in[k].data;
    }
    const cti_npu_view other = cti_npu_temp(s, x.dtype, NPU_DIMS(rows, d)), to = is_over || has_addend ? other : dx;
    const cti_npu_view dw32 = dw.dtype == ACL_FLOAT ? dw : cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(d));
    NPU_CALL(s, RmsNormGrad, NPU_T(s, dy), NPU_T(s, x), NPU_T(s, rstd), NPU_T(s, w), NPU_T(s, to), NPU_T(s, dw32));
    if (dw.dtype != ACL_FLOAT) {
        cti_npu_cast(s, dw, dw32);
    }
    if (has_addend) {
        NPU_CALL(s, InplaceAdd, NPU_T(s, to), NPU_T(s, cti_npu_rows(&l->in[4])), NPU_F(s, 1.0));
    }
    cti_npu_cast(s, dx, to);
}
