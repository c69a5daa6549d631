/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that only move elements, of any dtype: transpose, slice, slice_grad, concat, flat_concat, fill, kv_append. */
#include <inttypes.h>

#include "backend/cpu/isa/cpu_kernel.h"
#include "base/pool.h"

enum { TURN_BYTES = 1 << 16 }; /* that one thread moves at a time */

/* Product of dims [from, to). */
static int64_t dims_between(const ct_tensor *t, int64_t from, int64_t to)
{
    int64_t n = 1;
    for (int64_t i = from; i < to; i++) {
        n *= t->dims[i];
    }
    return n;
}

/* Rows of so many bytes that make a turn. */
static int64_t rows_of_turn(int64_t bytes)
{
    return cti_max_i64(1, TURN_BYTES / cti_max_i64(1, bytes));
}

typedef struct rows_run {
    char *dst;
    int64_t dst_step;
    const char *src;
    int64_t src_step, bytes;
} rows_run;

static void copy_turn(void *ctx, int64_t first, int64_t end, int thread)
{
    const rows_run *c = ctx;
    (void)thread;
    for (int64_t r = first; r < end; r++) {
        memcpy(c->dst + r * c->dst_step, c->src + r * c->src_step, (size_t)c->bytes);
    }
}

static void copy_bytes(void *ctx, int64_t first, int64_t end, int thread)
{
    const rows_run *c = ctx;
    (void)thread;
    memcpy(c->dst + first, c->src + first, (size_t)(end - first));
}

/* n_rows pieces of `bytes`: dst + r * dst_step <- src + r * src_step. */
static void copy_rows(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t bytes, int64_t n_rows)
{
    rows_run c = {dst, dst_step, src, src_step, bytes};
    if (n_rows == 1) { /* one long piece: threads share it */
        cti_pool_run(bytes, TURN_BYTES, copy_bytes, &c);
    } else {
        cti_pool_run(n_rows, rows_of_turn(bytes), copy_turn, &c);
    }
}

/* Element copy with strides in elements; size is a constant at each call. */
CTI_INLINE void copy_strided(char *dst, const char *src, int64_t n, int64_t src_stride, const size_t size)
{
    for (int64_t i = 0; i < n; i++) {
        memcpy(dst + (size_t)i * size, src + (size_t)(i * src_stride) * size, size);
    }
}

typedef struct transpose_run {
    const ct_tensor *a, *y;
    int64_t stride[CT_MAX_NDIM]; /* in a's elements, per dim of y */
} transpose_run;

/* Rows of y: its elements along the last dim. */
static void transpose_rows(void *ctx, int64_t first, int64_t end, int thread)
{
    const transpose_run *run = ctx;
    const ct_tensor *y = run->y;
    const int nd = y->ndim;
    const size_t size = ct_dtype_size_bytes(y->dtype);
    const int64_t last = y->dims[nd - 1], step = run->stride[nd - 1];
    (void)thread;
    for (int64_t r = first; r < end; r++) {
        int64_t at = 0, rest = r;
        for (int i = nd - 2; i >= 0; i--) {
            at += rest % y->dims[i] * run->stride[i];
            rest /= y->dims[i];
        }
        const char *src = (const char *)run->a->data + (size_t)at * size;
        char *dst = (char *)y->data + (size_t)(r * last) * size;
        if (step == 1) {
            memcpy(dst, src, (size_t)last * size);
        } else if (size == 4) {
            copy_strided(dst, src, last, step, 4);
        } else if (size == 2) {
            copy_strided(dst, src, last, step, 2);
        } else {
            copy_strided(dst, src, last, step, size);
        }
    }
}

ct_status CTI_CPU_FN(transpose)(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_tensor *a = &launch->in[0], *y = &launch->out[0];
    const int64_t *perm = ((const ct_attrs_transpose *)launch->attrs)->perm.items;
    const size_t size = ct_dtype_size_bytes(a->dtype);
    const int nd = a->ndim;
    if (t_numel(y) == 0) {
        return CT_OK;
    }
    if (nd == 0) {
        memcpy(y->data, a->data, size);
        return CT_OK;
    }
    transpose_run run = {.a = a, .y = y};
    for (int i = 0; i < nd; i++) {
        run.stride[i] = dims_between(a, perm[i] + 1, nd);
    }
    const int64_t last = y->dims[nd - 1];
    cti_pool_run(t_numel(y) / last, rows_of_turn(last * (int64_t)size), transpose_rows, &run);
    return CT_OK;
}

ct_status CTI_CPU_FN(slice)(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_slice *attrs = launch->attrs;
    const ct_tensor *a = &launch->in[0], *y = &launch->out[0];
    const int64_t size = (int64_t)ct_dtype_size_bytes(a->dtype);
    const int64_t inner = dims_between(a, attrs->dim + 1, a->ndim) * size;
    const int64_t outer = dims_between(a, 0, attrs->dim);
    copy_rows(y->data, attrs->len * inner, (const char *)a->data + attrs->start * inner, a->dims[attrs->dim] * inner,
              attrs->len * inner, outer);
    return CT_OK;
}

typedef struct grad_run {
    char *y;
    const char *dy;
    int64_t before, len, after; /* bytes of a row of y */
} grad_run;

static void slice_grad_rows(void *ctx, int64_t first, int64_t end, int thread)
{
    const grad_run *g = ctx;
    (void)thread;
    for (int64_t r = first; r < end; r++) {
        char *dst = g->y + r * (g->before + g->len + g->after);
        memset(dst, 0, (size_t)g->before);
        memcpy(dst + g->before, g->dy + r * g->len, (size_t)g->len);
        memset(dst + g->before + g->len, 0, (size_t)g->after);
    }
}

ct_status CTI_CPU_FN(slice_grad)(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_slice_grad *attrs = launch->attrs;
    const ct_tensor *dy = &launch->in[0], *y = &launch->out[0];
    const int64_t size = (int64_t)ct_dtype_size_bytes(dy->dtype);
    const int64_t inner = dims_between(dy, attrs->dim + 1, dy->ndim) * size;
    const int64_t outer = dims_between(dy, 0, attrs->dim);
    grad_run g = {.y = y->data, .dy = dy->data, .before = attrs->start * inner, .len = dy->dims[attrs->dim] * inner};
    g.after = attrs->full * inner - g.before - g.len;
    cti_pool_run(outer, rows_of_turn(attrs->full * inner), slice_grad_rows, &g);
    return CT_OK;
}

ct_status CTI_CPU_FN(concat)(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const int64_t dim = ((const ct_attrs_concat *)launch->attrs)->dim;
    const ct_tensor *y = &launch->out[0];
    const int64_t size = (int64_t)ct_dtype_size_bytes(y->dtype);
    const int64_t inner = dims_between(y, dim + 1, y->ndim) * size;
    const int64_t outer = dims_between(y, 0, dim), row = y->dims[dim] * inner;
    int64_t at = 0;
    for (int32_t i = 0; i < launch->n_in; i++) {
        const int64_t bytes = launch->in[i].dims[dim] * inner;
        copy_rows((char *)y->data + at, row, launch->in[i].data, bytes, bytes, outer);
        at += bytes;
    }
    return CT_OK;
}

ct_status CTI_CPU_FN(flat_concat)(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_flat_concat *attrs = launch->attrs;
    const ct_tensor *y = &launch->out[0];
    const int64_t size = (int64_t)ct_dtype_size_bytes(y->dtype);
    int64_t end = 0; /* elements written so far: the inputs come in order of their offsets */
    for (int32_t i = 0; i < launch->n_in; i++) {
        const int64_t n = t_numel(&launch->in[i]), at = attrs->offsets.items[i];
        if (at > end) {
            memset((char *)y->data + end * size, 0, (size_t)((at - end) * size));
        }
        if (launch->in[i].data != (char *)y->data + at * size) { /* the plan may have had it made there */
            copy_rows((char *)y->data + at * size, 0, launch->in[i].data, 0, n * size, 1);
        }
        end = cti_max_i64(end, at + n);
    }
    if (attrs->total > end) {
        memset((char *)y->data + end * size, 0, (size_t)((attrs->total - end) * size));
    }
    return CT_OK;
}

ct_status CTI_CPU_FN(fill)(const ct_launch *launch, ct_err *err)
{
    const double value = ((const ct_attrs_fill *)launch->attrs)->value;
    const ct_tensor *y = &launch->out[0];
    const int64_t n = t_numel(y);
    union {
        float f32;
        uint16_t b16;
        double f64;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
    } one = {.i64 = 0};
    switch (y->dtype) {
    case CT_DTYPE_F32: one.f32 = (float)value; break;
    case CT_DTYPE_BF16: one.b16 = cti_f32_to_bf16((float)value); break;
    case CT_DTYPE_F16: one.b16 = cti_f32_to_f16((float)value); break;
    case CT_DTYPE_F64: one.f64 = value; break;
    case CT_DTYPE_I32: one.i32 = (int32_t)value; break;
    case CT_DTYPE_I64: one.i64 = (int64_t)value; break;
    case CT_DTYPE_U8: one.u8 = (uint8_t)value; break;
    case CT_DTYPE_COUNT: return CT_FAIL(err, CT_ERR_UNSUPPORTED, "cpu: fill has no dtype");
    }
    const size_t size = ct_dtype_size_bytes(y->dtype);
    for (int64_t i = 0; i < n; i++) {
        memcpy((char *)y->data + (size_t)i * size, &one, size);
    }
    return CT_OK;
}

ct_status CTI_CPU_FN(kv_append)(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *x = &launch->in[1], *cache = &launch->out[0];
    const int64_t start = *(const int32_t *)launch->in[2].data;
    if (start < 0) {
        return CT_FAIL(err, CT_ERR_RANGE, "cpu: kv_append's start is %" PRId64 ", it cannot be negative", start);
    }
    const int64_t room = cache->dims[1], len = x->dims[1];
    const int64_t row = dims_between(x, 2, x->ndim) * (int64_t)ct_dtype_size_bytes(x->dtype);
    const int64_t n = cti_max_i64(0, cti_min_i64(len, room - start));
    for (int64_t b = 0; b < x->dims[0] && n > 0; b++) {
        memcpy((char *)cache->data + (b * room + start) * row, (const char *)x->data + b * len * row, (size_t)(n * row));
    }
    return CT_OK;
}
