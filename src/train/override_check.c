/* SPDX-License-Identifier: Apache-2.0 */
/* Proves an override of attention equal to what it replaces. */
#include "train/override_check.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "model/model.h"
#include "train/engine.h"

enum { B = 2, S = 192, T = B * S };

/* One attention alone on a device. */
typedef struct probe {
    const ct_alloc *alloc;
    ct_tree *tree;
    ct_graph *graph;
    ct_build build;
    cti_engine *engine;
    ct_value_id x, q, k, v, o;
} probe;

static void probe_close(probe *p)
{
    cti_engine_destroy(&p->engine);
    ct_graph_destroy(&p->graph);
    ct_tree_destroy(&p->tree);
}

/* The llama3 debug model's tree, with the override applied where `target` is not NULL. */
static ct_status make_tree(probe *p, const ct_registry *registry, cti_plugins *plugins, const char *target,
                           ct_component **out_layer, ct_err *err)
{
    ct_component *root;
    CT_TRY(ct_tree_create(p->alloc, &p->tree, err));
    CT_TRY(cti_registry_make(registry, "llama3", "llama3_debugmodel", p->tree, &root, err));
    if (target != NULL) {
        cti_overrides_applied applied;
        CT_TRY(ct_component_set(p->tree, ct_component_find(root, "override"), "imports", &target, 1, CT_SOURCE_FLAG, err));
        CT_TRY(cti_overrides_apply(registry, plugins, p->tree, root, &applied, err));
    }
    *out_layer = ct_component_find(root, "model_spec.model.layers.0");
    return CT_OK;
}

static ct_status add_input(probe *p, const char *name, ct_dtype dtype, int32_t ndim, const int64_t *dims, ct_value_id *out,
                           ct_err *err)
{
    ct_value_spec spec = {name, dtype, ndim, {0}, CT_VALUE_INPUT};
    memcpy(spec.dims, dims, (size_t)ndim * sizeof *dims);
    return ct_graph_add_value(p->graph, &spec, out, err);
}

static ct_status find_attention(probe *p, const char *who, ct_err *err)
{
    for (int32_t i = 0; i < ct_graph_order_len(p->graph); i++) {
        const ct_node *node = ct_graph_node_c(p->graph, ct_graph_order(p->graph)[i]);
        if (ct_op_row(node->op)->flags & CT_OP_ATTENTION) {
            p->q = node->in[0];
            p->k = node->in[1];
            p->v = node->in[2];
            p->o = node->out[0];
            return CT_OK;
        }
    }
    return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s emits no op that is an attention: there is nothing to prove", who);
}

static ct_status probe_build(probe *p, const ct_component *layer, const ct_backend *backend, const char *who, ct_err *err)
{
    const ct_component *attention = ct_component_child(layer, "attention");
    const cti_attention_config *c = ct_component_values(attention);
    const int64_t rows[2] = {B, S}, table[2] = {T, 4}, one = 1, x[3] = {B, S, c->dim};
    CT_TRY(ct_graph_create(p->alloc, "check", &p->graph, err));
    ct_graph_set_program(p->graph, CT_PROGRAM_EVAL);
    p->build = (ct_build){.graph = p->graph, .mode = CT_BUILD_EVAL, .param_dtype = CT_DTYPE_F32, .batch = B, .seq_len = S};
    ct_build *b = &p->build;
    b->tokens = b->labels = b->cache_start = b->inv_tokens = CT_NO_VALUE;
    CT_TRY(add_input(p, "positions", CT_DTYPE_I32, 2, rows, &b->positions, err));
    CT_TRY(add_input(p, "segments", CT_DTYPE_I32, 2, table, &b->segments, err));
    CT_TRY(add_input(p, "n_segments", CT_DTYPE_I32, 1, &one, &b->n_segments, err));
    CT_TRY(add_input(p, "x", CT_DTYPE_F32, 3, x, &p->x, err));
    ct_value_id y;
    CT_TRY(ct_build_child(b, layer, "attention", &p->x, 1, &y, 1, err));
    CT_TRY(ct_graph_verify(p->graph, err));
    CT_TRY(find_attention(p, who, err));
    const ct_value_id keep[5] = {p->q, p->k, p->v, p->o, y};
    const ct_plan_item item = {p->graph, keep, 5};
    ct_comm *comms[CT_MAX_AXES] = {0};
    CT_TRY(cti_engine_create(p->alloc, backend, &item, 1, comms, &p->engine, err));
    return cti_engine_init_consts(p->engine, b, err);
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static const float extremes[] = {0.0F, -0.0F, 1.0F, -1.0F, 1e30F, -1e30F, 1e-30F, FLT_MIN, FLT_MIN / 8.0F, 16777217.0F,
                                 3.0e5F, -7.5e-9F};
enum { N_EXTREMES = sizeof extremes / sizeof extremes[0] };

/* Parameters: unit matrices (q = k = v = x, exactly) or random. Square only for the unit ones. */
static ct_status write_params(probe *p, bool is_unit, ct_err *err)
{
    for (int32_t i = 0; i < p->build.n_params; i++) {
        const ct_param *param = &p->build.params[i];
        const ct_buffer *buffer = ct_plan_find(p->engine->plan, param->name);
        if (buffer == NULL) {
            continue;
        }
        const int64_t n = cti_dims_product(param->dims, param->ndim), cols = param->dims[param->ndim - 1];
        float *host = CT_NEW_ARRAY(p->alloc, float, n, err);
        if (host == NULL) {
            return CT_ERR_MEMORY;
        }
        const cti_rng_key key = cti_rng_key_make(11, param->name);
        for (int64_t e = 0; e < n; e++) {
            host[e] = is_unit ? (float)(e / cols == e % cols)
                              : (float)(cti_rng_normal(key, (uint64_t)e) / sqrt((double)cols));
        }
        const ct_status st = ct_runtime_write_at(p->engine->runtime, buffer->offset, host, (size_t)n * sizeof *host, err);
        ct_alloc_free(p->alloc, host);
        CT_TRY(st);
    }
    return CT_OK;
}

static ct_status put(probe *p, ct_value_id value, const void *host, ct_err *err)
{
    return ct_runtime_write(p->engine->runtime, 0, value, host,
                            ct_value_size_bytes(ct_graph_value_c(p->graph, value)), err);
}

/* Documents of 1 to 40 tokens, back to back, none across a row. */
static int32_t make_documents(int32_t *segments, int32_t *positions, uint64_t seed)
{
    const cti_rng_key key = cti_rng_key_make(seed, "documents");
    int32_t n = 0;
    memset(segments, 0, T * 4 * sizeof *segments);
    for (int32_t at = 0; at < T;) {
        int32_t len = 1 + (int32_t)cti_rng_below(key, (uint64_t)n, 40);
        len = at % S + len > S ? S - at % S : len;
        const int32_t row[4] = {at, len, at, len};
        memcpy(segments + 4 * n++, row, sizeof row);
        for (int32_t i = 0; i < len; i++) {
            positions[at + i] = i;
        }
        at += len;
    }
    return n;
}

static ct_status run_probe(probe *p, const float *x, const int32_t *positions, const int32_t *segments, int32_t n_segments,
                           ct_err *err)
{
    CT_TRY(put(p, p->x, x, err));
    if (ct_graph_find(p->graph, "positions") != CT_NO_VALUE) {
        CT_TRY(put(p, p->build.positions, positions, err));
    }
    CT_TRY(put(p, p->build.segments, segments, err));
    CT_TRY(put(p, p->build.n_segments, &n_segments, err));
    return ct_runtime_run(p->engine->runtime, 0, CT_PROGRAM_EVAL, err);
}

static ct_status read_value(probe *p, ct_value_id value, float **out, ct_err *err)
{
    const size_t bytes = ct_value_size_bytes(ct_graph_value_c(p->graph, value));
    float *host = ct_alloc_zeroed(p->alloc, 1, bytes, err);
    if (host == NULL) {
        return CT_ERR_MEMORY;
    }
    *out = host;
    return ct_runtime_read(p->engine->runtime, 0, value, host, bytes, err);
}

/* ---- rope -------------------------------------------------------------------------------------------------------- */

/* True where all bits are equal; else `text` names the first place. */
static ct_status same_bits(probe *a, ct_value_id va, probe *b, ct_value_id vb, const char *name, const char *inputs,
                           char text[512], bool *out_equal, ct_err *err)
{
    float *x = NULL, *y = NULL;
    const int64_t n = ct_value_numel(ct_graph_value_c(a->graph, va));
    *out_equal = n == ct_value_numel(ct_graph_value_c(b->graph, vb));
    if (!*out_equal) {
        (void)snprintf(text, 512, "%s has %" PRId64 " elements, the stock one %" PRId64, name,
                       ct_value_numel(ct_graph_value_c(b->graph, vb)), n);
        return CT_OK;
    }
    ct_status st;
    CT_TRY_GOTO(st, read_value(a, va, &x, err), out);
    CT_TRY_GOTO(st, read_value(b, vb, &y, err), out);
    const ct_value *v = ct_graph_value_c(a->graph, va);
    const int64_t h = v->dims[v->ndim - 1], heads = v->dims[v->ndim - 2];
    for (int64_t i = 0; i < n && *out_equal; i++) {
        if (memcmp(&x[i], &y[i], sizeof *x) != 0) {
            *out_equal = false;
            (void)snprintf(text, 512,
                           "rope differs (%s inputs): %s of token %" PRId64 ", head %" PRId64 ", element %" PRId64
                           ": wanted %.9g, found %.9g, off by %.3g",
                           inputs, name, i / (h * heads), i / h % heads, i % h, (double)x[i], (double)y[i],
                           (double)y[i] - (double)x[i]);
        }
    }
out:
    ct_alloc_free(a->alloc, x);
    ct_alloc_free(a->alloc, y);
    return st;
}

static ct_status check_rope(probe *stock, probe *other, float *x, int64_t n_x, cti_override_proof *proof, ct_err *err)
{
    int32_t positions[T], segments[T * 4];
    const int32_t n_segments = make_documents(segments, positions, 1);
    proof->is_rope_equal = true;
    CT_TRY(write_params(stock, true, err));
    CT_TRY(write_params(other, true, err));
    for (int round = 0; round < 4 && proof->is_rope_equal; round++) {
        const bool is_extreme = round % 2 == 1;
        const cti_rng_key key = cti_rng_key_make((uint64_t)round, "rope");
        for (int64_t i = 0; i < n_x; i++) {
            x[i] = is_extreme ? extremes[cti_rng_below(key, (uint64_t)i, N_EXTREMES)]
                              : (float)cti_rng_normal(key, (uint64_t)i);
        }
        for (int32_t i = 0; i < T && round >= 2; i++) { /* any position of the table, not only those of documents */
            positions[i] = i % 7 == 0 ? S - 1 : (int32_t)cti_rng_below(key, (uint64_t)(n_x + i), S);
        }
        CT_TRY(run_probe(stock, x, positions, segments, n_segments, err));
        CT_TRY(run_probe(other, x, positions, segments, n_segments, err));
        const char *inputs = is_extreme ? "extreme" : "random";
        CT_TRY(same_bits(stock, stock->q, other, other->q, "q", inputs, proof->rope, &proof->is_rope_equal, err));
        if (proof->is_rope_equal) {
            CT_TRY(same_bits(stock, stock->k, other, other->k, "k", inputs, proof->rope, &proof->is_rope_equal, err));
        }
    }
    if (proof->is_rope_equal) {
        (void)snprintf(proof->rope, sizeof proof->rope,
                       "q and k of %d tokens are bit for bit those of ComplexRoPE, over random and extreme inputs and positions",
                       4 * T);
    }
    return CT_OK;
}

/* ---- mask -------------------------------------------------------------------------------------------------------- */

typedef struct attention_case {
    const float *q, *k, *v, *o; /* [T, H, h], [T, K, h] */
    int64_t n_heads, n_kv, h;
} attention_case;

/* One query against its document, in double: the output's error bound is that of f32 scores (h products of a sum, scale), exp and
 * sums over n keys, u = 2^-24: |o - o'| <= 2 max|v| (exp(2 ds) - 1 + (n + 8) u), ds = (h + 2) u scale sum|q k|. */
static double query_excess(const attention_case *c, int64_t head, int64_t t, int64_t first, double *out_error,
                           double *out_bound)
{
    double score[S], weight = 0.0, top = -(double)INFINITY, ds = 0.0, excess = 0.0;
    const double u = ct_dtype_unit_roundoff(CT_DTYPE_F32), scale = 1.0 / sqrt((double)c->h);
    const int64_t kv = head / (c->n_heads / c->n_kv), n = t - first + 1;
    const float *q = c->q + (t * c->n_heads + head) * c->h;
    for (int64_t j = 0; j < n; j++) {
        const float *k = c->k + ((first + j) * c->n_kv + kv) * c->h;
        double dot = 0.0, magnitude = 0.0;
        for (int64_t e = 0; e < c->h; e++) {
            dot += (double)q[e] * (double)k[e];
            magnitude += fabs((double)q[e] * (double)k[e]);
        }
        score[j] = dot * scale;
        top = fmax(top, score[j]);
        ds = fmax(ds, (double)(c->h + 2) * u * scale * magnitude);
    }
    for (int64_t j = 0; j < n; j++) {
        score[j] = exp(score[j] - top);
        weight += score[j];
    }
    for (int64_t e = 0; e < c->h; e++) {
        double wanted = 0.0, v_max = 0.0;
        for (int64_t j = 0; j < n; j++) {
            const double v = (double)c->v[((first + j) * c->n_kv + kv) * c->h + e];
            wanted += score[j] / weight * v;
            v_max = fmax(v_max, fabs(v));
        }
        const double error = fabs((double)c->o[(t * c->n_heads + head) * c->h + e] - wanted);
        const double bound = 2.0 * v_max * (exp(2.0 * ds) - 1.0 + (double)(n + 8) * u);
        if (!(error <= bound) && !(error / bound <= excess)) {
            excess = error / bound;
            *out_error = error;
            *out_bound = bound;
        }
    }
    return excess;
}

static void compare_attention(const attention_case *c, const int32_t *segments, int32_t n_segments, cti_override_proof *proof)
{
    proof->is_mask_equal = true;
    for (int32_t s = 0; s < n_segments && proof->is_mask_equal; s++) {
        const int64_t first = segments[4 * s], len = segments[4 * s + 1];
        for (int64_t t = first; t < first + len && proof->is_mask_equal; t++) {
            for (int64_t head = 0; head < c->n_heads && proof->is_mask_equal; head++) {
                double error = 0.0, bound = 0.0;
                if (query_excess(c, head, t, first, &error, &bound) != 0.0) {
                    proof->is_mask_equal = false;
                    (void)snprintf(proof->mask, sizeof proof->mask,
                                   "attention differs: token %" PRId64 " (document %d, its token %" PRId64 "), head %" PRId64
                                   ": off by %.3g, bound %.3g",
                                   t, s, t - first, head, error, bound);
                }
            }
        }
    }
    if (proof->is_mask_equal) {
        (void)snprintf(proof->mask, sizeof proof->mask,
                       "%d tokens in %d documents agree with plain causal attention per document, within the bound of float32",
                       T, n_segments);
    }
}

static ct_status check_mask(probe *p, float *x, int64_t n_x, cti_override_proof *proof, ct_err *err)
{
    int32_t positions[T], segments[T * 4];
    const int32_t n_segments = make_documents(segments, positions, 2);
    const cti_rng_key key = cti_rng_key_make(3, "mask");
    for (int64_t i = 0; i < n_x; i++) {
        x[i] = (float)cti_rng_normal(key, (uint64_t)i) * 2.0F;
    }
    CT_TRY(write_params(p, false, err));
    CT_TRY(run_probe(p, x, positions, segments, n_segments, err));
    const ct_value *q = ct_graph_value_c(p->graph, p->q), *k = ct_graph_value_c(p->graph, p->k);
    float *host[4] = {NULL, NULL, NULL, NULL};
    const ct_value_id ids[4] = {p->q, p->k, p->v, p->o};
    ct_status st = CT_OK;
    for (int i = 0; i < 4 && st == CT_OK; i++) {
        st = read_value(p, ids[i], &host[i], err);
    }
    if (st == CT_OK) {
        const attention_case c = {host[0], host[1], host[2], host[3], q->dims[q->ndim - 2], k->dims[k->ndim - 2],
                                  q->dims[q->ndim - 1]};
        compare_attention(&c, segments, n_segments, proof);
    }
    for (int i = 0; i < 4; i++) {
        ct_alloc_free(p->alloc, host[i]);
    }
    return st;
}

ct_status cti_override_check(const ct_alloc *alloc, const ct_registry *registry, cti_plugins *plugins,
                             const ct_backend *backend, const char *target, cti_override_proof *out_proof, ct_err *err)
{
    probe stock = {.alloc = alloc}, other = {.alloc = alloc};
    ct_component *stock_layer, *other_layer;
    float *x = NULL;
    ct_status st;
    *out_proof = (cti_override_proof){0};
    CT_TRY_GOTO(st, make_tree(&stock, registry, plugins, NULL, &stock_layer, err), out);
    CT_TRY_GOTO(st, make_tree(&other, registry, plugins, target, &other_layer, err), out);
    if (ct_component_child(stock_layer, "attention")->cls == ct_component_child(other_layer, "attention")->cls) {
        st = CT_FAIL(err, CT_ERR_UNSUPPORTED,
                     "'%s' does not replace the attention of llama3's debugmodel: only replacements of attention can be proved",
                     target);
        goto out;
    }
    CT_TRY_GOTO(st, probe_build(&stock, stock_layer, backend, "GQAttention", err), out);
    CT_TRY_GOTO(st, probe_build(&other, other_layer, backend, target, err), out);
    const int64_t n_x = ct_value_numel(ct_graph_value_c(stock.graph, stock.x));
    x = CT_NEW_ARRAY(alloc, float, n_x, err);
    if (x == NULL) {
        st = CT_ERR_MEMORY;
        goto out;
    }
    CT_TRY_GOTO(st, check_rope(&stock, &other, x, n_x, out_proof, err), out);
    st = check_mask(&other, x, n_x, out_proof, err);
out:
    ct_alloc_free(alloc, x);
    probe_close(&stock);
    probe_close(&other);
    return st;
}
