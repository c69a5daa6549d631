/* SPDX-License-Identifier: Apache-2.0 */
/* embedding, embedding_grad, local_ids. CANN's operators do not know ids that another rank holds: those look up row 0, and their rows are multiplied
 * by 0. Gradients are added up in f32. */
#include "backend/npu/npu_table.h"

typedef struct looked_up {
    cti_npu_view ids;  /* i32 [T], 0 where the id is elsewhere */
    cti_npu_view mask; /* [T, 1] of `dtype`: 1, or 0 there */
} looked_up;

static looked_up look(cti_npu_seq *s, const ct_tensor *t, aclDataType dtype)
{
    const cti_npu_view ids = cti_npu_flat(t);
    const int64_t n = cti_npu_numel(&ids);
    const cti_npu_view is_here = cti_npu_temp(s, ACL_BOOL, NPU_DIMS(n)), zeros = cti_npu_temp(s, ACL_INT32, NPU_DIMS(n));
    const looked_up out = {cti_npu_temp(s, ACL_INT32, NPU_DIMS(n)), cti_npu_temp(s, dtype, NPU_DIMS(n, 1))};
    NPU_CALL(s, GeScalar, NPU_T(s, ids), cti_npu_scalar(s, ACL_INT32, 0), NPU_T(s, is_here));
    cti_npu_zero(s, zeros);
    NPU_CALL(s, SWhere, NPU_T(s, is_here), NPU_T(s, ids), NPU_T(s, zeros), NPU_T(s, out.ids));
    NPU_CALL(s, Cast, NPU_T(s, is_here), dtype, NPU_T(s, cti_npu_as(out.mask, NPU_DIMS(n))));
    return out;
}

void cti_npu_op_embedding(cti_npu_seq *s, const ct_launch *l)
{
    const cti_npu_view y = cti_npu_rows(&l->out[0]);
    if (cti_npu_numel(&y) > 0) {
        const looked_up at = look(s, &l->in[1], y.dtype);
        NPU_CALL(s, Embedding, NPU_T(s, cti_npu_of(&l->in[0])), NPU_T(s, at.ids), NPU_T(s, y));
        NPU_CALL(s, InplaceMul, NPU_T(s, y), NPU_T(s, at.mask));
    }
}

void cti_npu_op_embedding_grad(cti_npu_seq *s, const ct_launch *l)
{
    const cti_npu_view dy = cti_npu_rows(&l->in[0]), dw = cti_npu_of(&l->out[0]);
    if (cti_npu_numel(&dy) == 0 || cti_npu_numel(&dw) == 0) {
        cti_npu_zero(s, dw);
        return;
    }
    const looked_up at = look(s, &l->in[1], ACL_FLOAT);
    const cti_npu_view masked = cti_npu_temp(s, ACL_FLOAT, dy.ndim, dy.dims), dw32 = dw.dtype == ACL_FLOAT ? dw : cti_npu_temp(s, ACL_FLOAT, dw.ndim, dw.dims);
    cti_npu_cast(s, masked, dy);
    NPU_CALL(s, InplaceMul, NPU_T(s, masked), NPU_T(s, at.mask));
    NPU_CALL(s, EmbeddingDenseBackward, NPU_T(s, masked), NPU_T(s, at.ids), (uint64_t)dw.dims[0], UINT64_MAX, false, NPU_T(s, dw32));
    if (dw.dtype != ACL_FLOAT) {
        cti_npu_cast(s, dw, dw32);
    }
}

/* On the host, which knows the ids. */
void cti_npu_op_local_ids(cti_npu_seq *s, const ct_launch *l)
{
    enum { IGNORED = -100 };
    const ct_attrs_local_ids *a = l->attrs;
    const int32_t *ids = cti_npu_host(s, &l->in[0]);
    const int64_t n = cti_npu_count(&l->in[0]);
    int32_t *out = ids != NULL && n > 0 ? ct_alloc_zeroed(s->dev->alloc, (size_t)n, sizeof *out, s->err) : NULL;
    if (out == NULL) {
        cti_npu_stop(s, ids != NULL && n > 0 ? CT_ERR_MEMORY : CT_OK);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = ids[i] - a->start;
        out[i] = ids[i] == IGNORED ? IGNORED : ids[i] >= 0 && at >= 0 && at < a->count ? (int32_t)at : CT_ID_ELSEWHERE;
    }
    cti_npu_put(s, &l->out[0], out, (size_t)n * sizeof *out);
    ct_alloc_free(s->dev->alloc, out);
}
