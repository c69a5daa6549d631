/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of bytes: transpose, slice, slice_grad, concat, flat_concat, kv_append. Strided views go through CANN's InplaceCopy, runs through plain copies. */
#include <string.h>

#include "backend/npu/npu_table.h"

static int64_t count_of(const ct_tensor *t, int32_t begin, int32_t end)
{
    int64_t n = 1;
    for (int32_t d = begin; d < end; d++) {
        n *= t->dims[d];
    }
    return n;
}

void cti_npu_op_transpose(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_transpose *attrs = l->attrs;
    const cti_npu_view a = cti_npu_of(&l->in[0]), y = cti_npu_of(&l->out[0]);
    int64_t strides[CT_MAX_NDIM];
    for (int32_t d = 0; d < y.ndim; d++) {
        strides[d] = a.strides[attrs->perm.items[d]];
    }
    cti_npu_spread(s, y, cti_npu_strided(a, 0, y.ndim, y.dims, strides));
}

/* [outer, len, inner] of t from `start` on along `dim`. */
static cti_npu_view cut(const ct_tensor *t, int64_t dim, int64_t start, int64_t len)
{
    const int32_t d = (int32_t)dim;
    const int64_t inner = count_of(t, d + 1, t->ndim), outer = count_of(t, 0, d), step = t->dims[d] * inner;
    return cti_npu_strided(cti_npu_of(t), start * inner, NPU_DIMS(outer, len, inner), (const int64_t[]){step, inner, 1});
}

/* A cut of one outer row is a run. */
static void move_cut(cti_npu_seq *s, cti_npu_view to, cti_npu_view from)
{
    if (to.dims[0] == 1) {
        const int64_t n = cti_npu_numel(&to);
        cti_npu_cast(s, cti_npu_as(to, NPU_DIMS(n)), cti_npu_as(from, NPU_DIMS(n)));
    } else {
        cti_npu_spread(s, to, from);
    }
}

void cti_npu_op_slice(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_slice *attrs = l->attrs;
    move_cut(s, cut(&l->out[0], attrs->dim, 0, attrs->len), cut(&l->in[0], attrs->dim, attrs->start, attrs->len));
}

void cti_npu_op_slice_grad(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_slice_grad *attrs = l->attrs;
    const int64_t len = l->in[0].dims[attrs->dim];
    cti_npu_zero(s, cti_npu_flat(&l->out[0]));
    move_cut(s, cut(&l->out[0], attrs->dim, attrs->start, len), cut(&l->in[0], attrs->dim, 0, len));
}

void cti_npu_op_concat(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_concat *attrs = l->attrs;
    for (int32_t k = 0, at = 0; k < l->n_in; k++) {
        const int64_t len = l->in[k].dims[attrs->dim];
        move_cut(s, cut(&l->out[0], attrs->dim, at, len), cut(&l->in[k], attrs->dim, 0, len));
        at += (int32_t)len;
    }
}

/* Inputs that lie at their place already are left there; what no input covers is zero. */
void cti_npu_op_flat_concat(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_flat_concat *attrs = l->attrs;
    const cti_npu_view flat = cti_npu_flat(&l->out[0]);
    int64_t end = 0;
    for (int32_t k = 0; k < l->n_in; k++) {
        const int64_t at = attrs->offsets.items[k], n = cti_npu_count(&l->in[k]);
        cti_npu_zero(s, cti_npu_part(flat, end, NPU_DIMS(at - end)));
        cti_npu_cast(s, cti_npu_part(flat, at, NPU_DIMS(n)), cti_npu_flat(&l->in[k]));
        end = at + n;
    }
    cti_npu_zero(s, cti_npu_part(flat, end, NPU_DIMS(attrs->total - end)));
}

void cti_npu_op_kv_append(cti_npu_seq *s, const ct_launch *l)
{
    const ct_tensor *x = &l->in[1], *cache = &l->out[0];
    const int32_t *start = cti_npu_host(s, &l->in[2]);
    if (start == NULL) {
        return;
    }
    if (*start < 0) {
        NPU_FAIL(s, CT_ERR_RANGE, "kv_append: start is %d; it must be at least 0", (int)*start);
        return;
    }
    const int64_t room = cache->dims[1] - *start, rows = x->dims[1] < room ? x->dims[1] : room, row = count_of(x, 2, x->ndim);
    for (int64_t b = 0; b < x->dims[0] && rows > 0; b++) {
        cti_npu_cast(s, cti_npu_part(cti_npu_of(cache), (b * cache->dims[1] + *start) * row, NPU_DIMS(rows * row)),
                     cti_npu_part(cti_npu_of(x), b * x->dims[1] * row, NPU_DIMS(rows * row)));
    }
}
