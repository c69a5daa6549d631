/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one op on one backend under guard, and compares backends.
 *
 *     op_case c = op_case_begin(arena, seed, CT_OP_matmul, CT_DTYPE_F32, &(ct_attrs_matmul){.tb = true});
 *     op_add_f(&c, 1.0, OP_DIMS(3, 5));                     // normal, std 1, dtype f
 *     op_add_f(&c, 1.0, OP_DIMS(7, 5));
 *     op_compare(ct_backend_cpu(), ct_backend_ref(), &c);   // fails the cmocka test, naming op, seed, element, bound
 *
 * op_execute() alone runs a case: output shapes come from the op's shape rule, every buffer stands between guard bytes that are NaN to a
 * reader and checked afterwards, unwritten output elements are NaN, workspace is as large as asked for and no larger, inputs must not
 * change (but where an update op says so), and a second run must give the same bits unless the op is unordered. A join runs once more
 * with its inputs lying in its output.
 * op_check_op() runs all standard cases (op/cases.h) of an op in every dtype the backend's table names.
 * Tolerances: op/bound.h. */
#ifndef CT_TESTS_OP_HARNESS_H
#define CT_TESTS_OP_HARNESS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "base/num.h"
#include "base/rng.h"
#include "ctitan/ops.h"

enum { OP_MAX_IN = 16, OP_MAX_OUT = 4, OP_GUARD = 192, OP_NO_ALIAS = -1, OP_ALL_IN = OP_MAX_IN };

static bool op_hides_host; /* devices are not told what the host wrote: kernels read it back */

typedef struct op_case {
    int32_t op;
    ct_dtype f;
    const void *attrs;
    int32_t n_in;
    ct_tensor in[OP_MAX_IN]; /* host memory, the arena's; ndim -1: absent */
    bool is_f[OP_MAX_IN];    /* of the op's dtype f, not of a named one: what op_widen() widens */
    uint64_t seed;
    ct_arena *arena;
} op_case;

typedef struct op_result {
    ct_status status;
    ct_err err;
    int32_t n_out;
    ct_tensor out[OP_MAX_OUT]; /* host memory, the arena's */
} op_result;

#define OP_DIMS(...) \
    (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

static inline int64_t op_numel(const ct_tensor *t)
{
    int64_t n = 1;
    for (int32_t d = 0; d < t->ndim; d++) {
        n *= t->dims[d];
    }
    return n;
}
static inline size_t op_bytes(const ct_tensor *t)
{
    return t->ndim < 0 ? 0 : (size_t)op_numel(t) * ct_dtype_size_bytes(t->dtype);
}

static inline void *op_must(void *ptr)
{
    if (ptr == NULL) {
        fail_msg("out of memory in the harness");
    }
    return ptr;
}

/* The harness has its own accessors: it must not lean on the reference backend's. */
static inline double op_get(const ct_tensor *t, int64_t i)
{
    switch ((int)t->dtype) {
    case CT_DTYPE_F32:
        return (double)((const float *)t->data)[i];
    case CT_DTYPE_BF16:
        return (double)cti_bf16_to_f32(((const uint16_t *)t->data)[i]);
    case CT_DTYPE_F16:
        return (double)cti_f16_to_f32(((const uint16_t *)t->data)[i]);
    case CT_DTYPE_F64:
        return ((const double *)t->data)[i];
    case CT_DTYPE_I32:
        return (double)((const int32_t *)t->data)[i];
    case CT_DTYPE_I64:
        return (double)((const int64_t *)t->data)[i];
    default:
        return (double)((const uint8_t *)t->data)[i];
    }
}
static inline void op_set(const ct_tensor *t, int64_t i, double x)
{
    switch ((int)t->dtype) {
    case CT_DTYPE_F32:
        ((float *)t->data)[i] = (float)x;
        break;
    case CT_DTYPE_BF16:
        ((uint16_t *)t->data)[i] = cti_f32_to_bf16((float)x);
        break;
    case CT_DTYPE_F16:
        ((uint16_t *)t->data)[i] = cti_f32_to_f16((float)x);
        break;
    case CT_DTYPE_F64:
        ((double *)t->data)[i] = x;
        break;
    case CT_DTYPE_I32:
        ((int32_t *)t->data)[i] = (int32_t)x;
        break;
    case CT_DTYPE_I64:
        ((int64_t *)t->data)[i] = (int64_t)x;
        break;
    default:
        ((uint8_t *)t->data)[i] = (uint8_t)x;
        break;
    }
}

static inline ct_tensor op_tensor(ct_arena *arena, ct_dtype dtype, int32_t ndim, const int64_t *dims)
{
    ct_tensor t = {.dtype = dtype, .ndim = ndim};
    for (int32_t d = 0; d < ndim; d++) {
        t.dims[d] = dims[d];
    }
    t.data = op_must(ct_arena_alloc(arena, op_bytes(&t) + 1, NULL));
    return t;
}

static inline op_case op_case_begin(ct_arena *arena, uint64_t seed, int32_t op, ct_dtype f, const void *attrs)
{
    return (op_case){.op = op, .f = f, .attrs = attrs, .seed = seed, .arena = arena};
}

static inline ct_tensor *op_add(op_case *c, ct_dtype dtype, bool is_f, int32_t ndim, const int64_t *dims)
{
    assert_true(c->n_in < OP_MAX_IN);
    c->is_f[c->n_in] = is_f;
    c->in[c->n_in] = op_tensor(c->arena, dtype, ndim, dims);
    return &c->in[c->n_in++];
}

static inline void op_fill_normal(const op_case *c, const ct_tensor *t, double std)
{
    char name[32];
    (void)snprintf(name, sizeof name, "in%d", (int)c->n_in);
    const cti_rng_key key = cti_rng_key_make(c->seed, name);
    const int64_t n = op_numel(t);
    for (int64_t i = 0; i < n; i++) {
        op_set(t, i, ct_dtype_is_float(t->dtype) ? std * cti_rng_normal(key, (uint64_t)i)
                                                 : (double)cti_rng_below(key, (uint64_t)i, 100));
    }
}

/* A normal input of dtype f (small integers where f is one). */
static inline ct_tensor *op_add_f(op_case *c, double std, int32_t ndim, const int64_t *dims)
{
    ct_tensor *t = op_add(c, c->f, true, ndim, dims);
    op_fill_normal(c, t, std);
    return t;
}
/* A normal input of a dtype that the op list names. */
static inline ct_tensor *op_add_named(op_case *c, ct_dtype dtype, double std, int32_t ndim, const int64_t *dims)
{
    ct_tensor *t = op_add(c, dtype, false, ndim, dims);
    op_fill_normal(c, t, std);
    return t;
}
/* i32 in [0, below). */
static inline ct_tensor *op_add_ids(op_case *c, uint64_t below, int32_t ndim, const int64_t *dims)
{
    ct_tensor *t = op_add(c, CT_DTYPE_I32, false, ndim, dims);
    const cti_rng_key key = cti_rng_key_make(c->seed + (uint64_t)c->n_in, "ids");
    for (int64_t i = 0, n = op_numel(t); i < n; i++) {
        op_set(t, i, (double)cti_rng_below(key, (uint64_t)i, below));
    }
    return t;
}
/* Given values, copied. */
static inline ct_tensor *op_add_data(op_case *c, ct_dtype dtype, bool is_f, const void *data, int32_t ndim, const int64_t *dims)
{
    ct_tensor *t = op_add(c, dtype, is_f, ndim, dims);
    if (op_bytes(t) > 0) {
        memcpy(t->data, data, op_bytes(t));
    }
    return t;
}
static inline ct_tensor *op_add_i32(op_case *c, int32_t value)
{
    return op_add_data(c, CT_DTYPE_I32, false, &value, OP_DIMS(1));
}
static inline void op_add_absent(op_case *c)
{
    c->in[c->n_in++] = (ct_tensor){.ndim = -1};
}

/* The same case with every f input as f64: what the exact answer is computed from. */
static inline op_case op_widen(const op_case *c)
{
    op_case wide = *c;
    wide.f = CT_DTYPE_F64;
    for (int32_t k = 0; k < c->n_in; k++) {
        if (c->is_f[k] && c->in[k].ndim >= 0) {
            wide.in[k] = op_tensor(c->arena, CT_DTYPE_F64, c->in[k].ndim, c->in[k].dims);
            for (int64_t i = 0, n = op_numel(&c->in[k]); i < n; i++) {
                op_set(&wide.in[k], i, op_get(&c->in[k], i));
            }
        }
    }
    return wide;
}

/* Shapes of the outputs by the op's own rule. */
static inline void op_infer(const op_case *c, op_result *r)
{
    ct_graph *graph = NULL;
    ct_value_id in[OP_MAX_IN], out[OP_MAX_OUT];
    ct_err err = {0};
    r->n_out = ct_op_n_out(ct_op_row(c->op), c->attrs);
    if (r->n_out > OP_MAX_OUT) {
        fail_msg("%s has %d outputs", ct_op_row(c->op)->name, (int)r->n_out);
    }
    ct_status st = ct_graph_create(ct_alloc_system(), "case", &graph, &err);
    for (int32_t k = 0; st == CT_OK && k < c->n_in; k++) {
        in[k] = CT_NO_VALUE;
        if (c->in[k].ndim >= 0) {
            char name[16];
            (void)snprintf(name, sizeof name, "in%d", (int)k);
            ct_value_spec spec = {name, c->in[k].dtype, c->in[k].ndim, {0}, CT_VALUE_STATE};
            memcpy(spec.dims, c->in[k].dims, sizeof spec.dims);
            st = ct_graph_add_value(graph, &spec, &in[k], &err);
        }
    }
    if (st == CT_OK) {
        st = ct_op_emit(graph, c->op, c->attrs, in, c->n_in, out, &err);
    }
    if (st != CT_OK) {
        ct_graph_destroy(&graph);
        fail_msg("%s: the case has no shapes: %s", ct_op_row(c->op)->name, err.message);
    }
    for (int32_t k = 0; k < r->n_out; k++) {
        const ct_value *v = ct_graph_value_c(graph, out[k]);
        r->out[k] = op_tensor(c->arena, v->dtype, v->ndim, v->dims);
    }
    ct_graph_destroy(&graph);
}

/* A device that is no host stays open from case to case, as it does in a run, until op_close_device(). */
static const ct_backend *op_kept_backend;
static void *op_kept_device;

static inline ct_status op_open_device(const ct_backend *b, void **out_device, ct_err *err)
{
    if (b->stream == NULL) {
        return b->device_open(ct_alloc_system(), 0, out_device, err);
    }
    ct_status st = CT_OK;
    if (op_kept_device == NULL) {
        op_kept_backend = b;
        st = b->device_open(ct_alloc_system(), 0, &op_kept_device, err);
    }
    *out_device = op_kept_device;
    return st;
}
static inline void op_close_device(void)
{
    if (op_kept_device != NULL) {
        op_kept_backend->device_close(&op_kept_device);
    }
}

/* A device buffer between two guards. */
typedef struct op_buffer {
    char *device; /* the whole block; the tensor starts at + OP_GUARD */
    size_t bytes; /* of the tensor */
} op_buffer;

static inline op_buffer op_buffer_make(const ct_backend *b, void *device, ct_arena *arena, const void *data, size_t bytes)
{
    op_buffer buffer = {NULL, bytes};
    ct_err err = {0};
    char *host = op_must(ct_arena_alloc(arena, bytes + 2 * OP_GUARD, NULL));
    memset(host, 0xff, bytes + 2 * OP_GUARD);
    if (data != NULL && bytes > 0) {
        memcpy(host + OP_GUARD, data, bytes);
    }
    void *block = NULL;
    if (b->memory_alloc(device, bytes + 2 * OP_GUARD, &block, &err) != CT_OK ||
        b->copy_to_device(device, block, host, bytes + 2 * OP_GUARD, NULL, &err) != CT_OK) {
        fail_msg("%s: %s", b->name, err.message);
    }
    assert_true((uintptr_t)block % 64 == 0);
    buffer.device = block;
    return buffer;
}

/* Copies the tensor to `host`, checks the guards, frees the block. */
static inline void op_buffer_take(const ct_backend *b, void *device, ct_arena *arena, op_buffer *buffer, void *host,
                                  const char *op, const char *what, int32_t index)
{
    ct_err err = {0};
    const size_t whole = buffer->bytes + 2 * OP_GUARD;
    unsigned char *all = op_must(ct_arena_alloc(arena, whole, NULL));
    if (b->copy_to_host(device, all, buffer->device, whole, NULL, &err) != CT_OK) {
        fail_msg("%s: %s", b->name, err.message);
    }
    b->memory_free(device, buffer->device, whole);
    for (size_t i = 0; i < OP_GUARD; i++) {
        if (all[i] != 0xff) {
            fail_msg("%s: %s wrote %zu bytes before %s %d", b->name, op, (size_t)OP_GUARD - i, what, (int)index);
        }
        if (all[OP_GUARD + buffer->bytes + i] != 0xff) {
            fail_msg("%s: %s wrote %zu bytes past the end of %s %d", b->name, op, i + 1, what, (int)index);
        }
    }
    if (host != NULL && buffer->bytes > 0) {
        memcpy(host, all + OP_GUARD, buffer->bytes);
    }
}

/* Which input output k is written over: as the row says for updates; `alias_in` for output 0 of others. */
static inline int32_t op_alias_of(const op_case *c, int32_t k, int32_t alias_in)
{
    int64_t offset = 0;
    const ct_op *row = ct_op_row(c->op);
    if ((row->flags & CT_OP_UPDATE) != 0) {
        return ct_op_alias(row, c->attrs, k, &offset);
    }
    return k == 0 && (row->flags & CT_OP_JOIN) == 0 ? alias_in : OP_NO_ALIAS;
}

/* Moves input k of a join to its part of the output. */
static inline void op_join_input(const ct_backend *b, void *device, const op_case *c, int32_t k, const ct_tensor *out, ct_tensor *in)
{
    const int64_t at = ((const ct_attrs_flat_concat *)c->attrs)->offsets.items[k];
    ct_err err = {0};
    in->data = (char *)out->data + (size_t)at * ct_dtype_size_bytes(out->dtype);
    if (op_bytes(in) > 0 && b->copy_to_device(device, in->data, c->in[k].data, op_bytes(in), NULL, &err) != CT_OK) {
        fail_msg("%s: %s", b->name, err.message);
    }
}

/* alias_in: the input that output 0 is written over, where the op may do that; for a join, the input that lies in the output, OP_ALL_IN: all. */
static inline void op_execute_once(const ct_backend *b, const op_case *c, int32_t alias_in, op_result *r)
{
    const char *op = ct_op_row(c->op)->name;
    memset(r, 0, sizeof *r);
    op_infer(c, r);
    ct_tensor in[OP_MAX_IN], out[OP_MAX_OUT];
    op_buffer in_buf[OP_MAX_IN], out_buf[OP_MAX_OUT], work = {NULL, 0};
    bool is_overwritten[OP_MAX_IN] = {false};
    const ct_kernel *kernel = NULL;
    void *device = NULL;
    memcpy(in, c->in, sizeof in);
    memcpy(out, r->out, sizeof out);
    for (int32_t k = 0; k < OP_MAX_IN; k++) {
        in[k].data = NULL;
    }
    for (int32_t k = 0; k < OP_MAX_OUT; k++) {
        out[k].data = NULL;
    }
    ct_launch launch = {.in = in, .n_in = c->n_in, .out = out, .n_out = r->n_out, .attrs = c->attrs};
    if (ct_kernel_find(b, c->op, cti_launch_dtype(&launch), &kernel, &r->err) != CT_OK ||
        op_open_device(b, &device, &r->err) != CT_OK) {
        fail_msg("%s", r->err.message);
    }
    launch.workspace_bytes = kernel->workspace_bytes != NULL ? kernel->workspace_bytes(&launch) : 0;
    for (int32_t k = 0; k < c->n_in; k++) {
        if (in[k].ndim >= 0) {
            in_buf[k] = op_buffer_make(b, device, c->arena, c->in[k].data, op_bytes(&c->in[k]));
            in[k].data = in_buf[k].device + OP_GUARD;
        }
    }
    for (int32_t k = 0; k < r->n_out; k++) {
        const int32_t over = op_alias_of(c, k, alias_in);
        if (over >= 0) {
            assert_int_equal(op_bytes(&out[k]), op_bytes(&in[over]));
            is_overwritten[over] = true;
            out[k].data = in[over].data;
        } else {
            out_buf[k] = op_buffer_make(b, device, c->arena, NULL, op_bytes(&out[k]));
            out[k].data = out_buf[k].device + OP_GUARD;
        }
    }
    for (int32_t k = 0; k < c->n_in && (ct_op_row(c->op)->flags & CT_OP_JOIN) != 0; k++) {
        if (alias_in == k || alias_in == OP_ALL_IN) {
            op_join_input(b, device, c, k, &out[0], &in[k]);
        }
    }
    if (b->stream != NULL) { /* a device: the host knows what it wrote */
        launch.device = device;
        launch.stream = b->stream(device, 0);
        for (int32_t k = 0; k < c->n_in; k++) {
            in[k].host = in[k].ndim >= 0 && op_bytes(&in[k]) <= CT_MIRROR_MAX_BYTES && !op_hides_host ? c->in[k].data : NULL;
        }
    }
    if (launch.workspace_bytes > 0) {
        work = op_buffer_make(b, device, c->arena, NULL, launch.workspace_bytes);
        launch.workspace = work.device + OP_GUARD;
    }
    r->status = kernel->prepare != NULL ? kernel->prepare(&launch, &launch.state, &r->err) : CT_OK;
    if (r->status == CT_OK) {
        r->status = kernel->run(&launch, &r->err);
    }
    if (r->status == CT_OK) {
        r->status = b->synchronize(device, NULL, &r->err);
    }
    if (launch.state != NULL) {
        kernel->release(device, launch.state);
    }
    for (int32_t k = 0; k < r->n_out; k++) {
        if (op_alias_of(c, k, alias_in) < 0) {
            op_buffer_take(b, device, c->arena, &out_buf[k], r->out[k].data, op, "output", k);
        }
    }
    for (int32_t k = 0; k < c->n_in; k++) {
        if (in[k].ndim < 0) {
            continue;
        }
        char *after = op_must(ct_arena_alloc(c->arena, op_bytes(&in[k]) + 1, NULL));
        op_buffer_take(b, device, c->arena, &in_buf[k], after, op, "input", k);
        if (!is_overwritten[k] && op_bytes(&in[k]) > 0 && memcmp(after, c->in[k].data, op_bytes(&in[k])) != 0) {
            fail_msg("%s: %s changed its input %d", b->name, op, (int)k);
        }
        for (int32_t o = 0; o < r->n_out; o++) {
            if (op_alias_of(c, o, alias_in) == k) {
                memcpy(r->out[o].data, after, op_bytes(&in[k]));
            }
        }
    }
    if (work.device != NULL) {
        op_buffer_take(b, device, c->arena, &work, NULL, op, "workspace", 0);
    }
    if (device != op_kept_device) {
        b->device_close(&device);
    }
}

static inline void op_same_bits(const char *who, const op_case *c, const op_result *a, const op_result *b, const char *why)
{
    for (int32_t k = 0; k < a->n_out; k++) {
        if (op_bytes(&a->out[k]) > 0 && memcmp(a->out[k].data, b->out[k].data, op_bytes(&a->out[k])) != 0) {
            fail_msg("%s: %s %s, seed %llu: output %d has other bits %s", who, ct_op_row(c->op)->name, ct_dtype_name(c->f),
                     (unsigned long long)c->seed, (int)k, why);
        }
    }
}

/* Runs the case; the kernel's status is in r. Twice, and once more over each input that it may overwrite. */
static inline void op_execute(const ct_backend *b, const op_case *c, op_result *r)
{
    op_result again;
    const ct_op *row = ct_op_row(c->op);
    op_execute_once(b, c, OP_NO_ALIAS, r);
    if (r->status != CT_OK) {
        return;
    }
    if ((row->flags & CT_OP_UNORDERED) == 0) {
        op_execute_once(b, c, OP_NO_ALIAS, &again);
        op_same_bits(b->name, c, r, &again, "in a second run");
    }
    for (int32_t k = 0; k <= c->n_in && (row->flags & CT_OP_JOIN) != 0; k++) {
        op_execute_once(b, c, k < c->n_in ? k : OP_ALL_IN, &again);
        op_same_bits(b->name, c, r, &again, "with inputs in its output");
    }
    if ((row->flags & (CT_OP_ELEMENTWISE | CT_OP_IN_PLACE)) != 0) {
        for (int32_t k = 0; k < c->n_in; k++) {
            if (c->in[k].ndim < 0 || c->in[k].dtype != r->out[0].dtype || op_bytes(&c->in[k]) != op_bytes(&r->out[0])) {
                continue;
            }
            op_execute_once(b, c, k, &again);
            op_same_bits(b->name, c, r, &again, "when written over an input");
        }
    }
}

#include "op/bound.h"

static inline void op_print_case(const op_case *c)
{
    for (int32_t k = 0; k < c->n_in; k++) {
        print_error("  input %d: %s [", (int)k, c->in[k].ndim < 0 ? "absent" : ct_dtype_name(c->in[k].dtype));
        for (int32_t d = 0; d < c->in[k].ndim; d++) {
            print_error("%s%lld", d > 0 ? ", " : "", (long long)c->in[k].dims[d]);
        }
        print_error("]\n");
    }
}

/* got[k] against ref[k] within bound[k] (0: the same bits, NaNs alike). */
static inline void op_compare_output(const ct_backend *b, const op_case *c, int32_t k, const ct_tensor *got,
                                     const ct_tensor *ref, const double *bound)
{
    for (int64_t i = 0, n = op_numel(ref); i < n; i++) {
        const double x = op_get(got, i), y = op_get(ref, i), limit = bound == NULL ? 0.0 : bound[i];
        const bool is_equal = x == y || (isnan(x) && isnan(y));
        if (!is_equal && !(fabs(x - y) <= limit)) {
            op_print_case(c);
            fail_msg("%s: %s %s, seed %llu: output %d [%lld] is %.17g, not %.17g (off by %.3g, bound %.3g)", b->name,
                     ct_op_row(c->op)->name, ct_dtype_name(c->f), (unsigned long long)c->seed, (int)k, (long long)i, x, y,
                     fabs(x - y), limit);
        }
    }
}

/* Runs the case on backend and ref and compares. EXACT ops: the same bits as ref on the same inputs. Others: within the computed bound
 * of ref on the inputs widened to f64. Both must fail with the same status where the case is a faulty one. */
static inline void op_compare(const ct_backend *backend, const ct_backend *ref, const op_case *c)
{
    const bool is_exact = ct_op_row(c->op)->tolerance == CT_TOL_EXACT;
    op_result got, want;
    const op_case wide = is_exact ? *c : op_widen(c);
    op_execute(backend, c, &got);
    op_execute_once(ref, &wide, OP_NO_ALIAS, &want);
    if (got.status != want.status) {
        op_print_case(c);
        fail_msg("%s: %s %s, seed %llu: status %s (%s), not %s", backend->name, ct_op_row(c->op)->name, ct_dtype_name(c->f),
                 (unsigned long long)c->seed, ct_status_name(got.status), got.err.message, ct_status_name(want.status));
    }
    for (int32_t k = 0; got.status == CT_OK && k < got.n_out; k++) {
        double *bound = is_exact || !ct_dtype_is_float(got.out[k].dtype) ? NULL : op_bound(c, &wide, &want, k, got.out[k].dtype);
        op_compare_output(backend, c, k, &got.out[k], &want.out[k], bound);
    }
}

#include "op/cases.h"

/* All standard cases of an op, in every dtype that the backend's table names. Returns how many ran. */
static inline int op_check_op(const ct_backend *backend, const ct_backend *ref, int32_t op, uint64_t seed)
{
    int n = 0;
    const ct_kernel *kernel = &backend->kernels[op];
    for (int f = 0; f < (int)CT_DTYPE_COUNT && kernel->run != NULL; f++) {
        if ((kernel->dtypes & (1u << f)) == 0) {
            continue;
        }
        for (int i = 0;; i++) {
            ct_arena *arena = NULL;
            op_case c;
            assert_int_equal(ct_arena_create(ct_alloc_system(), 0, &arena, NULL), CT_OK);
            const bool is_there = op_standard_case(arena, seed + (uint64_t)i, op, (ct_dtype)f, i, &c);
            if (is_there) {
                op_compare(backend, ref, &c);
                n++;
            }
            ct_arena_destroy(&arena);
            if (!is_there) {
                break;
            }
        }
    }
    return n;
}

#endif
