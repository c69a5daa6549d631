/* SPDX-License-Identifier: Apache-2.0 */
/* matmul: transposes are strided views; an addend goes through Addmm, which adds it to the product before that is rounded. Products of bf16 are
 * added up in f32 by the cube and rounded once. matmul_swiglu is two operators. */
#include "backend/npu/npu_table.h"

void cti_npu_op_matmul(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_matmul *attrs = l->attrs;
    const cti_npu_view a = attrs->ta ? cti_npu_t(cti_npu_rows(&l->in[0])) : cti_npu_rows(&l->in[0]);
    const cti_npu_view b = attrs->tb ? cti_npu_t(cti_npu_rows(&l->in[1])) : cti_npu_rows(&l->in[1]);
    const cti_npu_view y = cti_npu_as(cti_npu_of(&l->out[0]), NPU_DIMS(a.dims[0], b.dims[1]));
    const bool has_addend = l->n_in > 2 && l->in[2].ndim >= 0;
    if (cti_npu_numel(&y) == 0) {
        return;
    }
    if (!has_addend) {
        cti_npu_mm(s, y, a, b, false, false);
        return;
    }
    const cti_npu_view c = cti_npu_as(cti_npu_of(&l->in[2]), NPU_DIMS(a.dims[0], b.dims[1]));
    if (a.dims[1] == 0) {
        cti_npu_cast(s, y, c);
    } else if (c.data != NULL && c.data == y.data) {
        NPU_CALL(s, InplaceAddmm, NPU_T(s, y), NPU_T(s, a), NPU_T(s, b), NPU_F(s, 1.0), NPU_F(s, 1.0), ACL_CUBE_KEEP_DTYPE);
    } else {
        NPU_CALL(s, Addmm, NPU_T(s, c), NPU_T(s, a), NPU_T(s, b), NPU_F(s, 1.0), NPU_F(s, 1.0), NPU_T(s, y), ACL_CUBE_KEEP_DTYPE);
    }
}

void cti_npu_op_matmul_swiglu(cti_npu_seq *s, const ct_launch *l)
{
    cti_npu_op_matmul(s, l);
    ct_launch second = *l;
    second.in = &l->out[0];
    second.n_in = 1;
    second.out = &l->out[1];
    second.n_out = 1;
    cti_npu_op_swiglu(s, &second);
}
