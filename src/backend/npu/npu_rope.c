/* SPDX-License-Identifier: Apache-2.0 */
/* rope, qkv_rope, rope_rows, rotary_mul: rotations of adjacent pairs, by RotaryPositionEmbedding in its interleaved mode, in f32. That mode takes one
 * row of cos and sin a position for all rows of the batch: positions of ours differ between rows, so that all tokens stand in one row. */
#include "backend/npu/npu_table.h"

enum { INTERLEAVED = 1 };

/* cos and sin [1, T, 1, h], each entry twice, side by side. */
static void spread_rows(cti_npu_seq *s, cti_npu_view rows, int64_t tokens, int64_t h, cti_npu_view cos, cti_npu_view sin)
{
    const int64_t dims[] = {tokens, h / 2, 2}, one[] = {tokens, h / 2, 1}, strides[] = {h, 2, 1};
    cti_npu_spread(s, cti_npu_as(cos, 3, dims), cti_npu_strided(rows, 0, 3, one, strides));
    cti_npu_spread(s, cti_npu_as(sin, 3, dims), cti_npu_strided(rows, 1, 3, one, strides));
}

/* Rows of the table by position, [T, h]: (cos, sin) pairs. */
static cti_npu_view look_up(cti_npu_seq *s, const ct_tensor *pos, const ct_tensor *table)
{
    const int64_t tokens = cti_npu_count(pos), h = table->dims[1] * 2;
    const cti_npu_view rows = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(tokens, h));
    NPU_CALL(s, IndexSelect, NPU_T(s, cti_npu_as(cti_npu_of(table), NPU_DIMS(table->dims[0], h))), 0, NPU_T(s, cti_npu_flat(pos)), NPU_T(s, rows));
    return rows;
}

typedef struct turn {
    cti_npu_view cos, sin; /* f32 [1, T, 1, h] */
} turn;

static turn turn_of(cti_npu_seq *s, const ct_tensor *pos, const ct_tensor *table, bool inverse)
{
    const int64_t tokens = cti_npu_count(pos), h = table->dims[1] * 2;
    const cti_npu_view rows = look_up(s, pos, table);
    const turn t = {cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(1, tokens, 1, h)), cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(1, tokens, 1, h))};
    spread_rows(s, rows, tokens, h, t.cos, t.sin);
    if (inverse) {
        NPU_CALL(s, InplaceMuls, NPU_T(s, t.sin), NPU_F(s, -1.0));
    }
    return t;
}

/* y = x turned, both f32 [1, T, n, h]. */
static void rotate(cti_npu_seq *s, cti_npu_view y, cti_npu_view x, const turn *t)
{
    NPU_CALL(s, RotaryPositionEmbedding, NPU_T(s, x), NPU_T(s, t->cos), NPU_T(s, t->sin), INTERLEAVED, NPU_T(s, y));
}

/* x and y [T, n, h] of any float dtype. */
static void rotate_tensor(cti_npu_seq *s, const ct_tensor *y, const ct_tensor *x, const turn *t)
{
    const int64_t h = cti_npu_last(x), heads = x->dims[x->ndim - 2], tokens = cti_npu_count(x) / (heads * h);
    const cti_npu_view from = cti_npu_f32(s, cti_npu_as(cti_npu_of(x), NPU_DIMS(1, tokens, heads, h)));
    const cti_npu_view out = cti_npu_as(cti_npu_of(y), NPU_DIMS(1, tokens, heads, h));
    const cti_npu_view to = out.dtype == ACL_FLOAT ? out : cti_npu_temp(s, ACL_FLOAT, out.ndim, out.dims);
    rotate(s, to, from, t);
    if (out.dtype != ACL_FLOAT) {
        cti_npu_cast(s, out, to);
    }
}

void cti_npu_op_rope(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_rope *attrs = l->attrs;
    if (cti_npu_count(&l->out[0]) > 0) {
        const turn t = turn_of(s, &l->in[1], &l->in[2], attrs->inverse);
        rotate_tensor(s, &l->out[0], &l->in[0], &t);
    }
}

void cti_npu_op_rope_rows(cti_npu_seq *s, const ct_launch *l)
{
    const int64_t tokens = cti_npu_count(&l->in[0]), h = l->in[1].dims[1] * 2;
    if (tokens > 0) {
        const cti_npu_view rows = look_up(s, &l->in[0], &l->in[1]);
        spread_rows(s, rows, tokens, h, cti_npu_of(&l->out[0]), cti_npu_of(&l->out[1]));
    }
}

void cti_npu_op_rotary_mul(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_rope *attrs = l->attrs;
    if (cti_npu_count(&l->out[0]) == 0) {
        return;
    }
    const int64_t h = cti_npu_last(&l->in[1]), tokens = cti_npu_count(&l->in[1]) / h;
    turn t = {cti_npu_as(cti_npu_of(&l->in[1]), NPU_DIMS(1, tokens, 1, h)), cti_npu_as(cti_npu_of(&l->in[2]), NPU_DIMS(1, tokens, 1, h))};
    if (attrs->inverse) {
        const cti_npu_view back = cti_npu_temp(s, ACL_FLOAT, t.sin.ndim, t.sin.dims);
        NPU_CALL(s, Neg, NPU_T(s, t.sin), NPU_T(s, back));
        t.sin = back;
    }
    rotate_tensor(s, &l->out[0], &l->in[0], &t);
}

/* Heads [first, first + n) of rows of `row` elements: [T, n, h]. */
static cti_npu_view heads_of(const ct_tensor *t, int64_t tokens, int64_t row, int64_t first, int64_t n, int64_t h)
{
    return cti_npu_strided(cti_npu_of(t), first * h, NPU_DIMS(tokens, n, h), (const int64_t[]){row, h, 1});
}

/* q's heads and k's are neighbours in a row and turn as one. */
void cti_npu_op_qkv_rope(cti_npu_seq *s, const ct_launch *l)
{
    const ct_tensor *qkv = &l->in[0];
    const int64_t tokens = cti_npu_count(&l->in[1]), q = l->out[0].dims[2], k = l->out[1].dims[2], h = l->out[0].dims[3], row = qkv->dims[2];
    if (tokens == 0) {
        return;
    }
    const turn t = turn_of(s, &l->in[1], &l->in[2], false);
    const cti_npu_view from = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(1, tokens, q + k, h)), to = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(1, tokens, q + k, h));
    cti_npu_spread(s, cti_npu_as(from, NPU_DIMS(tokens, q + k, h)), heads_of(qkv, tokens, row, 0, q + k, h));
    rotate(s, to, from, &t);
    const int64_t strides[] = {(q + k) * h, h, 1};
    cti_npu_spread(s, cti_npu_as(cti_npu_of(&l->out[0]), NPU_DIMS(tokens, q, h)), cti_npu_strided(to, 0, NPU_DIMS(tokens, q, h), strides));
    cti_npu_spread(s, cti_npu_as(cti_npu_of(&l->out[1]), NPU_DIMS(tokens, k, h)), cti_npu_strided(to, q * h, NPU_DIMS(tokens, k, h), strides));
    cti_npu_spread(s, cti_npu_as(cti_npu_of(&l->out[2]), NPU_DIMS(tokens, k, h)), heads_of(qkv, tokens, row, q + k, k, h));
}

void cti_npu_op_qkv_rope_grad(cti_npu_seq *s, const ct_launch *l)
{
    const ct_tensor *dqkv = &l->out[0];
    const int64_t tokens = cti_npu_count(&l->in[3]), q = l->in[0].dims[2], k = l->in[1].dims[2], h = l->in[0].dims[3], row = dqkv->dims[2];
    if (tokens == 0) {
        return;
    }
    const turn t = turn_of(s, &l->in[3], &l->in[4], true);
    const cti_npu_view from = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(1, tokens, q + k, h)), to = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(1, tokens, q + k, h));
    const int64_t strides[] = {(q + k) * h, h, 1};
    cti_npu_spread(s, cti_npu_strided(from, 0, NPU_DIMS(tokens, q, h), strides), cti_npu_as(cti_npu_of(&l->in[0]), NPU_DIMS(tokens, q, h)));
    cti_npu_spread(s, cti_npu_strided(from, q * h, NPU_DIMS(tokens, k, h), strides), cti_npu_as(cti_npu_of(&l->in[1]), NPU_DIMS(tokens, k, h)));
    rotate(s, to, from, &t);
    cti_npu_spread(s, heads_of(dqkv, tokens, row, 0, q + k, h), cti_npu_as(to, NPU_DIMS(tokens, q + k, h)));
    cti_npu_spread(s, heads_of(dqkv, tokens, row, q + k, k, h), cti_npu_as(cti_npu_of(&l->in[2]), NPU_DIMS(tokens, k, h)));
}
