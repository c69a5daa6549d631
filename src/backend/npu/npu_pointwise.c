/* SPDX-License-Identifier: Apache-2.0 */
/* add, mul, scale, cast, fill, accumulate, silu_mul, swiglu and their gradients. Results are rounded once: what CANN would round in between is
 * computed in f32. */
#include "backend/npu/npu_table.h"

void cti_npu_op_add(cti_npu_seq *s, const ct_launch *l)
{
    if (cti_npu_count(&l->out[0]) > 0) {
        NPU_CALL(s, Add, NPU_T(s, cti_npu_flat(&l->in[0])), NPU_T(s, cti_npu_flat(&l->in[1])), NPU_F(s, 1.0), NPU_T(s, cti_npu_flat(&l->out[0])));
    }
}

void cti_npu_op_mul(cti_npu_seq *s, const ct_launch *l)
{
    if (cti_npu_count(&l->out[0]) > 0) {
        NPU_CALL(s, Mul, NPU_T(s, cti_npu_flat(&l->in[0])), NPU_T(s, cti_npu_flat(&l->in[1])), NPU_T(s, cti_npu_flat(&l->out[0])));
    }
}

/* A scalar beside a bf16 tensor may be rounded to bf16: in f32. */
void cti_npu_op_scale(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_scale *attrs = l->attrs;
    const cti_npu_view y = cti_npu_flat(&l->out[0]);
    if (cti_npu_numel(&y) == 0) {
        return;
    }
    const cti_npu_view x = cti_npu_f32(s, cti_npu_flat(&l->in[0]));
    const cti_npu_view to = y.dtype == ACL_FLOAT ? y : x;
    NPU_CALL(s, Muls, NPU_T(s, x), NPU_F(s, attrs->alpha), NPU_T(s, to));
    if (y.dtype != ACL_FLOAT) {
        cti_npu_cast(s, y, to);
    }
}

void cti_npu_op_fill(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_fill *attrs = l->attrs;
    const cti_npu_view y = cti_npu_flat(&l->out[0]);
    if (attrs->value == 0.0) {
        cti_npu_zero(s, y);
    } else {
        cti_npu_fill(s, y, attrs->value);
    }
}

void cti_npu_op_cast(cti_npu_seq *s, const ct_launch *l)
{
    cti_npu_cast(s, cti_npu_flat(&l->out[0]), cti_npu_flat(&l->in[0]));
}

void cti_npu_op_accumulate(cti_npu_seq *s, const ct_launch *l)
{
    const cti_npu_view acc = cti_npu_flat(&l->out[0]);
    cti_npu_view x = cti_npu_flat(&l->in[1]);
    const int32_t *first = cti_npu_host(s, &l->in[2]);
    if (cti_npu_numel(&acc) == 0) {
        return;
    }
    if (first != NULL && *first == 1) {
        cti_npu_cast(s, acc, x);
        return;
    }
    if (x.dtype != acc.dtype && !(acc.dtype == ACL_FLOAT && x.dtype == ACL_BF16)) { /* that pair adds in f32 as it is */
        const cti_npu_view same = cti_npu_temp(s, acc.dtype, x.ndim, x.dims);
        cti_npu_cast(s, same, x);
        x = same;
    }
    NPU_CALL(s, InplaceAdd, NPU_T(s, acc), NPU_T(s, x), cti_npu_scalar(s, acc.dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT, 1.0));
}

/* ---- SwiGLU ------------------------------------------------------------------------------------------------------ */

/* Columns [first, first + width) of rows of 2 width. */
static cti_npu_view half(cti_npu_view both, int64_t first, int64_t rows, int64_t width)
{
    return cti_npu_strided(both, first, NPU_DIMS(rows, width), (const int64_t[]){2 * width, 1});
}

/* g and u side by side in each row, as CANN's SwiGlu wants them. */
static cti_npu_view join(cti_npu_seq *s, cti_npu_view g, cti_npu_view u)
{
    const int64_t rows = g.dims[0], width = g.dims[1];
    const cti_npu_view both = cti_npu_temp(s, g.dtype, NPU_DIMS(rows, 2 * width));
    cti_npu_spread(s, half(both, 0, rows, width), g);
    cti_npu_spread(s, half(both, width, rows, width), u);
    return both;
}

void cti_npu_op_silu_mul(cti_npu_seq *s, const ct_launch *l)
{
    if (cti_npu_count(&l->out[0]) > 0) {
        const cti_npu_view both = join(s, cti_npu_rows(&l->in[0]), cti_npu_rows(&l->in[1]));
        NPU_CALL(s, SwiGlu, NPU_T(s, both), 1, NPU_T(s, cti_npu_rows(&l->out[0])));
    }
}

void cti_npu_op_silu_mul_grad(cti_npu_seq *s, const ct_launch *l)
{
    const cti_npu_view dg = cti_npu_rows(&l->out[0]);
    const int64_t rows = dg.dims[0], width = dg.dims[1];
    if (cti_npu_numel(&dg) > 0) {
        const cti_npu_view both = join(s, cti_npu_rows(&l->in[1]), cti_npu_rows(&l->in[2])), grads = cti_npu_temp(s, both.dtype, both.ndim, both.dims);
        NPU_CALL(s, SwiGluGrad, NPU_T(s, cti_npu_rows(&l->in[0])), NPU_T(s, both), 1, NPU_T(s, grads));
        cti_npu_spread(s, dg, half(grads, 0, rows, width));
        cti_npu_spread(s, cti_npu_rows(&l->out[1]), half(grads, width, rows, width));
    }
}

void cti_npu_op_swiglu(cti_npu_seq *s, const ct_launch *l)
{
    if (cti_npu_count(&l->out[0]) > 0) {
        NPU_CALL(s, SwiGlu, NPU_T(s, cti_npu_rows(&l->in[0])), 1, NPU_T(s, cti_npu_rows(&l->out[0])));
    }
}

/* The result may lie over the input: it then comes by way of a temporary, for which there is room in any case. */
void cti_npu_op_swiglu_grad(cti_npu_seq *s, const ct_launch *l)
{
    const cti_npu_view out = cti_npu_rows(&l->out[0]);
    if (cti_npu_numel(&out) == 0) {
        return;
    }
    const cti_npu_view other = cti_npu_temp(s, out.dtype, out.ndim, out.dims), to = l->out[0].data == l->in[0].data || l->out[0].data == l->in[1].data ? other : out;
    NPU_CALL(s, SwiGluGrad, NPU_T(s, cti_npu_rows(&l->in[0])), NPU_T(s, cti_npu_rows(&l->in[1])), 1, NPU_T(s, to));
    cti_npu_cast(s, out, to);
}
