/* SPDX-License-Identifier: Apache-2.0 */
/* One part of a model alone on a device, with gradients. */
#include "train/override_probe.h"

#include <math.h>
#include <string.h>

#include "autodiff/autodiff.h"
#include "base/base.h"
#include "model/model.h"
#include "passes/passes.h"

static ct_status add_input(cti_probe *p, const char *name, ct_dtype dtype, int32_t ndim, int64_t d0, int64_t d1, int64_t d2, ct_value_id *out, ct_err *err)
{
    const ct_value_spec spec = {name, dtype, ndim, {d0, d1, d2}, CT_VALUE_INPUT};
    return ct_graph_add_value(p->graph, &spec, out, err);
}

/* x -> unit -> y -> loss */
static ct_status build_unit(cti_probe *p, const ct_component *unit, ct_err *err)
{
    const cti_probe_shape *s = &p->shape;
    CT_TRY(ct_graph_create(p->alloc, "check", &p->graph, err));
    p->build = (ct_build){.graph = p->graph, .mode = CT_BUILD_TRAIN, .param_dtype = p->dtype, .batch = s->batch, .seq_len = s->seq_len};
    ct_build *b = &p->build;
    b->tokens = b->cache_start = CT_NO_VALUE;
    ct_graph_set_program(p->graph, CT_PROGRAM_FORWARD);
    CT_TRY(add_input(p, "positions", CT_DTYPE_I32, 2, s->batch, s->seq_len, 0, &b->positions, err));
    CT_TRY(add_input(p, "segments", CT_DTYPE_I32, 2, s->batch * s->seq_len, 4, 0, &b->segments, err));
    CT_TRY(add_input(p, "n_segments", CT_DTYPE_I32, 1, 1, 0, 0, &b->n_segments, err));
    CT_TRY(add_input(p, "labels", CT_DTYPE_I32, 2, s->batch, s->seq_len, 0, &b->labels, err));
    CT_TRY(add_input(p, "inv_tokens", CT_DTYPE_F32, 1, 1, 0, 0, &b->inv_tokens, err));
    CT_TRY(add_input(p, "x", p->dtype, 3, s->batch, s->seq_len, s->dim, &p->x, err));
    CT_TRY(add_input(p, "w", p->dtype, 2, s->vocab, s->dim, 0, &p->w, err));
    CT_TRY(ct_build_child(b, unit->parent, unit->name, &p->x, 1, &p->y, 1, err));
    const ct_value_id in[4] = {p->y, p->w, b->labels, b->inv_tokens};
    const ct_attrs_loss attrs = {.chunks = 1};
    ct_value_id out[3];
    CT_TRY(ct_op_emit(p->graph, CT_OP_linear_cross_entropy, &attrs, in, 4, out, err));
    p->loss = out[0];
    return CT_OK;
}

static ct_status build_model(cti_probe *p, const ct_component *root, ct_err *err)
{
    const cti_graph_options o = {.mode = CT_BUILD_TRAIN, .param_dtype = p->dtype, .batch = p->shape.batch, .seq_len = p->shape.seq_len,
                                 .loss = ct_component_child(root, "loss"), .loss_chunks = 1};
    return cti_graph_build(p->alloc, ct_component_child(root, "model_spec"), &o, &p->graph, &p->build, &p->loss, err);
}

static ct_status differentiate(cti_probe *p, ct_err *err)
{
    const int32_t n = p->build.n_params + 1;
    p->wrt = ct_arena_alloc(ct_graph_arena(p->graph), (size_t)n * sizeof *p->wrt, err);
    p->grads = ct_arena_alloc(ct_graph_arena(p->graph), (size_t)n * sizeof *p->grads, err);
    if (p->wrt == NULL || p->grads == NULL) {
        return CT_ERR_MEMORY;
    }
    if (p->x != CT_NO_VALUE) {
        p->wrt[p->n_wrt++] = p->x;
    }
    for (int32_t i = 0; i < p->build.n_params; i++) {
        p->wrt[p->n_wrt++] = p->build.params[i].value;
    }
    CT_TRY(ct_autodiff(p->graph, p->loss, p->wrt, p->n_wrt, p->grads, err));
    for (int32_t i = 0; i < p->n_wrt; i++) {
        if (p->grads[i] == CT_NO_VALUE) {
            return CT_FAIL(err, CT_ERR_UNSUPPORTED, "the loss does not depend on '%s'", ct_graph_value_c(p->graph, p->wrt[i])->name);
        }
    }
    return ct_graph_verify(p->graph, err);
}

static ct_status start(cti_probe *p, const ct_backend *backend, ct_err *err)
{
    ct_value_id *keep = ct_arena_alloc(ct_graph_arena(p->graph), (size_t)(p->n_wrt + 2) * sizeof *keep, err);
    int32_t n = 0;
    if (keep == NULL) {
        return CT_ERR_MEMORY;
    }
    keep[n++] = p->loss;
    if (p->y != CT_NO_VALUE) {
        keep[n++] = p->y;
    }
    for (int32_t i = 0; i < p->n_wrt; i++) {
        bool have = false; /* joined parameters have one gradient */
        for (int32_t k = 0; k < i; k++) {
            have = have || p->grads[k] == p->grads[i];
        }
        if (!have) {
            keep[n++] = p->grads[i];
        }
    }
    CT_TRY(ct_pass_schedule(p->graph, keep, n, false, err));
    const ct_plan_item item = {p->graph, keep, n};
    ct_comm *comms[CT_MAX_AXES] = {0};
    CT_TRY(cti_engine_create(p->alloc, backend, &item, 1, comms, &p->engine, err));
    return cti_engine_init_consts(p->engine, &p->build, err);
}

ct_status cti_probe_create(const ct_alloc *alloc, const ct_backend *backend, const ct_component *root, const ct_component *unit, ct_dtype dtype,
                           const cti_probe_shape *shape, cti_probe **out_probe, ct_err *err)
{
    cti_probe *p = CT_NEW(alloc, cti_probe, err);
    if (p == NULL) {
        return CT_ERR_MEMORY;
    }
    *p = (cti_probe){.alloc = alloc, .dtype = dtype, .shape = *shape, .x = CT_NO_VALUE, .w = CT_NO_VALUE, .y = CT_NO_VALUE};
    ct_status st = unit != NULL ? build_unit(p, unit, err) : build_model(p, root, err);
    st = st == CT_OK ? differentiate(p, err) : st;
    st = st == CT_OK ? start(p, backend, err) : st;
    if (st != CT_OK) {
        cti_probe_destroy(&p);
        return st;
    }
    *out_probe = p;
    return CT_OK;
}

void cti_probe_destroy(cti_probe **probe)
{
    if (*probe == NULL) {
        return;
    }
    cti_engine_destroy(&(*probe)->engine);
    ct_graph_destroy(&(*probe)->graph);
    ct_alloc_free((*probe)->alloc, *probe);
    *probe = NULL;
}

/* ---- inputs -------------------------------------------------------------------------------------------------------- */

/* Numbers that every format holds exactly: differences come from the arithmetic alone. */
static double rounded(double x)
{
    return (double)cti_bf16_to_f32(cti_f32_to_bf16((float)x));
}

static void store(ct_dtype dtype, void *to, int64_t i, double x)
{
    if (dtype == CT_DTYPE_F64) {
        ((double *)to)[i] = x;
    } else if (dtype == CT_DTYPE_F32) {
        ((float *)to)[i] = (float)x;
    } else {
        ((uint16_t *)to)[i] = cti_f32_to_bf16((float)x);
    }
}

/* Normal numbers around `mean`, by name and index. */
static ct_status write_random(cti_probe *p, const char *name, int64_t n, int64_t first, double mean, double std, ct_value_id input, const char *buffer,
                              ct_err *err)
{
    const size_t size = ct_dtype_size_bytes(p->dtype);
    void *host = ct_alloc_zeroed(p->alloc, (size_t)n, size, err);
    if (host == NULL) {
        return CT_ERR_MEMORY;
    }
    const cti_rng_key key = cti_rng_key_make(11, name);
    for (int64_t i = 0; i < n; i++) {
        store(p->dtype, host, i, rounded(mean + std * cti_rng_normal(key, (uint64_t)i)));
    }
    ct_status st = CT_OK;
    const ct_buffer *at = buffer != NULL ? ct_plan_find(p->engine->plan, buffer) : NULL;
    if (buffer == NULL) {
        st = ct_runtime_write(p->engine->runtime, 0, input, host, (size_t)n * size, err);
    } else if (at != NULL) { /* else no op reads it */
        st = ct_runtime_write_at(p->engine->runtime, at->offset + first * (int64_t)size, host, (size_t)n * size, err);
    }
    ct_alloc_free(p->alloc, host);
    return st;
}

/* What a weight of so many dims and columns is drawn from. */
static void weight_rule(int32_t ndim, int64_t cols, double *out_mean, double *out_std)
{
    *out_mean = ndim == 1 ? 1.0 : 0.0; /* norms */
    *out_std = ndim == 1 ? 0.25 : 1.0 / sqrt((double)cols);
}

ct_status cti_probe_weight(const void *ctx, const char *name, int64_t begin, int64_t end, ct_dtype dtype, void *dst, ct_err *err)
{
    int32_t m = 0;
    const int32_t g = ct_flat_find(ctx, name, &m);
    double mean, std;
    if (g < 0) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "no parameter '%s'", name);
    }
    const ct_flat_member *member = &((const ct_flat_layout *)ctx)->groups[g].members[m];
    const cti_rng_key key = cti_rng_key_make(11, name);
    weight_rule(member->ndim, member->dims[member->ndim - 1], &mean, &std);
    for (int64_t i = begin; i < end; i++) {
        store(dtype, dst, i - begin, rounded(mean + std * cti_rng_normal(key, (uint64_t)i)));
    }
    return CT_OK;
}

static ct_status write_params(cti_probe *p, ct_err *err)
{
    for (int32_t i = 0; i < p->build.n_params; i++) {
        const ct_param *param = &p->build.params[i];
        const int64_t n = cti_dims_product(param->dims, param->ndim);
        double mean, std;
        weight_rule(param->ndim, param->dims[param->ndim - 1], &mean, &std);
        CT_TRY(write_random(p, param->name, n, param->part * n, mean, std, CT_NO_VALUE, ct_graph_value_c(p->graph, param->value)->name, err));
    }
    return CT_OK;
}

static ct_status put_ints(cti_probe *p, ct_value_id value, const int32_t *host, int64_t n, ct_err *err)
{
    const char *name = value != CT_NO_VALUE ? ct_graph_value_c(p->graph, value)->name : "";
    return value == CT_NO_VALUE || ct_graph_find(p->graph, name) == CT_NO_VALUE
               ? CT_OK
               : ct_runtime_write(p->engine->runtime, 0, value, host, (size_t)n * sizeof *host, err);
}

/* Documents of 1 to 9 tokens, back to back, none across a row; positions within them; labels of which some are left out. */
static ct_status write_ints(cti_probe *p, ct_err *err)
{
    const int64_t s = p->shape.seq_len, n = p->shape.batch * s;
    int32_t *room = CT_NEW_ARRAY(p->alloc, int32_t, 7 * n, err);
    if (room == NULL) {
        return CT_ERR_MEMORY;
    }
    int32_t *segments = room, *positions = room + 4 * n, *labels = room + 5 * n, *tokens = room + 6 * n, n_segments = 0;
    const cti_rng_key key = cti_rng_key_make(5, "documents");
    for (int64_t at = 0, len; at < n; at += len) {
        len = cti_min_i64(1 + (int64_t)cti_rng_below(key, (uint64_t)n_segments, 9), s - at % s);
        const int32_t row[4] = {(int32_t)at, (int32_t)len, (int32_t)at, (int32_t)len};
        memcpy(segments + 4 * n_segments++, row, sizeof row);
        for (int64_t i = 0; i < len; i++) {
            positions[at + i] = (int32_t)i;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        labels[i] = i % 5 == 3 ? -100 : (int32_t)cti_rng_below(key, (uint64_t)(1000 + i), (uint64_t)p->shape.vocab);
        tokens[i] = (int32_t)cti_rng_below(key, (uint64_t)(5000 + i), (uint64_t)p->shape.vocab);
    }
    const ct_build *b = &p->build;
    const float inv_tokens = 1.0F / (float)n;
    ct_status st;
    CT_TRY_GOTO(st, put_ints(p, b->segments, segments, 4 * n, err), out);
    CT_TRY_GOTO(st, put_ints(p, b->n_segments, &n_segments, 1, err), out);
    CT_TRY_GOTO(st, put_ints(p, b->positions, positions, n, err), out);
    CT_TRY_GOTO(st, put_ints(p, b->labels, labels, n, err), out);
    CT_TRY_GOTO(st, put_ints(p, b->tokens, tokens, n, err), out);
    st = ct_runtime_write(p->engine->runtime, 0, b->inv_tokens, &inv_tokens, sizeof inv_tokens, err);
out:
    ct_alloc_free(p->alloc, room);
    return st;
}

ct_status cti_probe_run(cti_probe *p, double scale, ct_err *err)
{
    const cti_probe_shape *s = &p->shape;
    CT_TRY(write_params(p, err));
    CT_TRY(write_ints(p, err));
    if (p->x != CT_NO_VALUE) {
        CT_TRY(write_random(p, "x", s->batch * s->seq_len * s->dim, 0, 0.0, scale, p->x, NULL, err));
        CT_TRY(write_random(p, "w", s->vocab * s->dim, 0, 0.0, 1.0 / sqrt((double)s->dim), p->w, NULL, err));
    }
    CT_TRY(ct_runtime_run(p->engine->runtime, 0, CT_PROGRAM_FORWARD, err));
    return ct_runtime_run(p->engine->runtime, 0, CT_PROGRAM_BACKWARD, err);
}

/* ---- results ------------------------------------------------------------------------------------------------------- */

int32_t cti_probe_count(const cti_probe *p)
{
    return 1 + p->n_wrt;
}

/* The parameter that quantity i is the gradient of; NULL: of none. */
static const ct_param *param_of(const cti_probe *p, int32_t i)
{
    const int32_t at = i - 1 - (p->x != CT_NO_VALUE);
    return at >= 0 ? &p->build.params[at] : NULL;
}

const char *cti_probe_name(cti_probe *p, int32_t i, ct_err *err)
{
    const ct_param *param = param_of(p, i);
    return i == 0 ? "forward" : ct_arena_printf(ct_graph_arena(p->graph), err, "gradient of %s", param != NULL ? param->name : "x");
}

ct_status cti_probe_read(cti_probe *p, int32_t i, double **out_values, int64_t *out_n, ct_err *err)
{
    const ct_value_id id = i > 0 ? p->grads[i - 1] : p->y != CT_NO_VALUE ? p->y : p->loss;
    const ct_param *param = i > 0 ? param_of(p, i) : NULL;
    const ct_value *v = ct_graph_value_c(p->graph, id);
    const int64_t all = ct_value_numel(v), n = param != NULL ? cti_dims_product(param->dims, param->ndim) : all;
    const size_t bytes = ct_value_size_bytes(v);
    const ct_dtype dtype = v->dtype;
    void *host = ct_alloc_zeroed(p->alloc, 1, bytes, err);
    double *values = CT_NEW_ARRAY(p->alloc, double, n, err);
    ct_status st = host == NULL || values == NULL ? CT_ERR_MEMORY : ct_runtime_read(p->engine->runtime, 0, id, host, bytes, err);
    for (int64_t k = 0, first = param != NULL ? param->part * n : 0; st == CT_OK && k < n; k++) {
        values[k] = dtype == CT_DTYPE_F64   ? ((const double *)host)[first + k]
                    : dtype == CT_DTYPE_F32 ? (double)((const float *)host)[first + k]
                                            : (double)cti_bf16_to_f32(((const uint16_t *)host)[first + k]);
    }
    ct_alloc_free(p->alloc, host);
    if (st != CT_OK) {
        ct_alloc_free(p->alloc, values);
        return st;
    }
    *out_values = values;
    *out_n = n;
    return CT_OK;
}
