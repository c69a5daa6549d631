/* SPDX-License-Identifier: Apache-2.0 */
/* A replacement beside what it replaces, in every quantity that training takes from it. */
#include "train/override_proof.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "config/config.h"
#include "model/model.h"
#include "train/generate.h"
#include "train/override_probe.h"

/* Usual ones; odd ones, of which nothing divides by 8; the smallest there is. */
static const cti_probe_shape shapes[] = {{64, 4, 2, 96, 128, 2, 24}, {36, 3, 1, 27, 97, 1, 7}, {6, 1, 1, 1, 2, 3, 1}};
/* Inputs of parts: usual, small beside what norms add, large. */
static const double scales[] = {1.0, 1e-3, 30.0};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0], N_SCALES = sizeof scales / sizeof scales[0], N_DTYPES = 3, MAX_UNITS = 16 };
static const ct_dtype dtypes[N_DTYPES] = {CT_DTYPE_F32, CT_DTYPE_BF16, CT_DTYPE_F64}; /* f64 last: its bound is made from f32's */

typedef struct side { /* the debug model, stock or replaced */
    ct_tree *tree;
    ct_component *root;
    cti_overrides_applied applied;
} side;

typedef struct run {
    cti_proof *proof;
    const ct_alloc *alloc;
    const ct_registry *registry;
    cti_plugins *plugins;
    const ct_backend *backend, *ref;
    const char *target;
    const char *units[MAX_UNITS]; /* paths of the parts to compare alone; the proof's */
    int n_units;
    cti_probe *probes[2][N_DTYPES]; /* of stock and other; NULL where it cannot run */
    cti_probe *truth;
    bool replaces_model;  /* something below model_spec */
    double most_gradient; /* the largest element of all gradients at hand: what is 0 by cancellation is made of such */
} run;

static ct_status open_side(const run *r, const cti_probe_shape *shape, bool with_override, side *out, ct_err *err)
{
    *out = (side){0};
    CT_TRY(ct_tree_create(r->alloc, &out->tree, err));
    CT_TRY(cti_registry_make(r->registry, "llama3", "llama3_debugmodel", out->tree, &out->root, err));
    ct_component *spec = ct_component_child(out->root, "model_spec");
    cti_model_spec_config *m = spec->values;
    m->dim = shape->dim;
    m->n_heads = shape->n_heads;
    m->n_kv_heads = shape->n_kv_heads;
    m->ffn_hidden = shape->ffn_hidden;
    m->vocab_size = shape->vocab;
    CT_TRY(cti_llama3_build(out->tree, spec, err));
    if (with_override) {
        CT_TRY(ct_component_set(out->tree, ct_component_find(out->root, "override"), "imports", &r->target, 1, CT_SOURCE_FLAG, err));
        CT_TRY(cti_overrides_apply(r->registry, r->plugins, out->tree, out->root, &out->applied, err));
    }
    return CT_OK;
}

/* ---- what is compared ---------------------------------------------------------------------------------------------- */

static bool is_unit(const ct_component *c)
{
    return ct_class_is_a(c->cls, &cti_attention_class) || ct_class_is_a(c->cls, &cti_feed_forward_class) || ct_class_is_a(c->cls, &cti_rmsnorm_class) ||
           ct_class_is_a(c->cls, &cti_block_class);
}

/* The part that holds `node` and takes and gives [B, S, D]; NULL: only the whole model does. */
static const ct_component *unit_of(const ct_component *node)
{
    while (node != NULL && !is_unit(node)) {
        node = node->parent;
    }
    return node;
}

/* Parts of one name in blocks are one: the first stands for them. */
static ct_status add_unit(run *r, const char *path, ct_err *err)
{
    const char *name = strrchr(path, '.');
    for (int i = 0; i < r->n_units; i++) {
        const bool in_block[2] = {strstr(path, ".layers.") != NULL, strstr(r->units[i], ".layers.") != NULL};
        const char *have = strrchr(r->units[i], '.');
        if (in_block[0] == in_block[1] && (strcmp(have, name) == 0 || (in_block[0] && strspn(have + 1, "0123456789") == strlen(have + 1) &&
                                                                       strspn(name + 1, "0123456789") == strlen(name + 1)))) {
            return CT_OK;
        }
    }
    if (r->n_units < MAX_UNITS) {
        r->units[r->n_units] = ct_arena_strdup(r->proof->arena, path, err);
        if (r->units[r->n_units++] == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    return CT_OK;
}

/* Which parts, and whether there is anything with ops among what is replaced. */
static ct_status find_units(run *r, side *stock, side *other, ct_err *err)
{
    const cti_overrides_applied *a = &other->applied;
    cti_proof *p = r->proof;
    p->n_nodes = a->n_nodes;
    if (a->n_nodes == 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%s' matches nothing in llama3's debugmodel, so there is nothing to compare", r->target);
    }
    p->first_node = ct_arena_strdup(p->arena, a->lines[0], err);
    for (int64_t i = 0; i < a->n_nodes && p->first_node != NULL; i++) {
        const ct_component *node = ct_component_find(stock->root, a->fqns[i]), *with = ct_component_find(other->root, a->fqns[i]);
        const bool has_ops = cti_starts_with(a->fqns[i], "model_spec") || (with != NULL && with->cls->build != NULL);
        const ct_component *unit = has_ops && node != NULL ? unit_of(node) : NULL;
        p->has_ops = p->has_ops || has_ops;
        r->replaces_model = r->replaces_model || cti_starts_with(a->fqns[i], "model_spec.");
        p->replaces_attention = p->replaces_attention || cti_str_eq(a->fqns[i], "model_spec.model.layers.0.attention");
        if (unit != NULL) {
            const char *path = ct_component_fqn(stock->tree, unit, err);
            CT_TRY(path != NULL ? add_unit(r, path, err) : CT_ERR_MEMORY);
        }
    }
    return p->first_node != NULL ? CT_OK : CT_ERR_MEMORY;
}

/* ---- differences --------------------------------------------------------------------------------------------------- */

static double largest(const double *x, const double *minus, int64_t n)
{
    double most = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs(minus != NULL ? x[i] - minus[i] : x[i]);
        most = d > most || isnan(d) ? d : most;
        if (isnan(most)) {
            return (double)INFINITY; /* where both are not finite nothing is proved either */
        }
    }
    return most;
}

static ct_status note(run *r, const char *unit, const char *what, ct_dtype dtype, const cti_probe_shape *shape, double scale, bool has_scale, double difference,
                      double allowed, ct_err *err)
{
    cti_proof *p = r->proof;
    cti_proof_line *line = NULL;
    for (int32_t i = 0; i < p->n_lines && line == NULL; i++) {
        cti_proof_line *l = &p->lines[i];
        line = l->dtype == dtype && cti_str_eq(l->unit, unit) && cti_str_eq(l->what, what) ? l : NULL;
    }
    const bool is_new = line == NULL;
    if (is_new && p->n_lines == p->cap_lines) {
        const int32_t room = p->cap_lines == 0 ? 64 : 2 * p->cap_lines;
        cti_proof_line *grown = ct_arena_alloc(p->arena, (size_t)room * sizeof *grown, err);
        if (grown == NULL) {
            return CT_ERR_MEMORY;
        }
        memcpy(grown, p->lines, (size_t)p->n_lines * sizeof *grown);
        p->lines = grown;
        p->cap_lines = room;
    }
    if (!(difference <= allowed)) {
        const bool is_forward = !cti_starts_with(what, "gradient");
        p->is_forward_equal = p->is_forward_equal && !is_forward;
        p->are_gradients_equal = p->are_gradients_equal && is_forward;
    }
    /* In roundings: the one nearest to its bound stands for all; equal bits count as 0. */
    if (!is_new && difference / allowed <= line->difference / line->allowed) {
        return CT_OK;
    }
    if (is_new) {
        line = &p->lines[p->n_lines++];
    }
    char with[64] = "";
    if (has_scale) {
        (void)snprintf(with, sizeof with, ", x of size %g", scale);
    }
    *line = (cti_proof_line){.unit = ct_arena_strdup(p->arena, unit, err), .what = ct_arena_strdup(p->arena, what, err), .dtype = dtype,
                             .difference = difference, .allowed = allowed,
                             .shape = ct_arena_printf(p->arena, err, "%" PRId64 " x %" PRId64 " tokens, dim %" PRId64 ", hidden %" PRId64 "%s", shape->batch,
                                                      shape->seq_len, shape->dim, shape->ffn_hidden, with)};
    return line->unit != NULL && line->what != NULL && line->shape != NULL ? CT_OK : CT_ERR_MEMORY;
}

/* Quantity i of the stock part by its number in the other; -1: it has none of this name and dims. */
static int32_t counterpart(cti_probe *stock, cti_probe *other, int32_t i)
{
    const int32_t first = 1 + (stock->x != CT_NO_VALUE);
    if (i < first) {
        return i;
    }
    const ct_param *wanted = &stock->build.params[i - first];
    for (int32_t k = 0; k < other->build.n_params; k++) {
        const ct_param *p = &other->build.params[k];
        if (strcmp(p->name, wanted->name) == 0 && p->ndim == wanted->ndim && memcmp(p->dims, wanted->dims, (size_t)p->ndim * sizeof *p->dims) == 0) {
            return first + k;
        }
    }
    return -1;
}

/* The first one is told. who: which of the two lacks it. */
static ct_status mismatch(run *r, const char *unit, const char *who, const char *name, ct_err *err)
{
    cti_proof *p = r->proof;
    p->mismatch = p->mismatch != NULL ? p->mismatch : ct_arena_printf(p->arena, err, "%s: %s has no parameter '%s' of these dims", unit, who, name);
    return p->mismatch != NULL ? CT_OK : CT_ERR_MEMORY;
}

static ct_status compare_quantity(run *r, const char *unit, const cti_probe_shape *shape, double scale, int32_t i, ct_err *err)
{
    double *truth = NULL, *stock = NULL, *other = NULL, roundings = 0.0;
    int64_t n, n_stock, n_other;
    ct_status st;
    CT_TRY(cti_probe_read(r->truth, i, &truth, &n, err));
    const char *what = cti_probe_name(r->truth, i, err);
    const double size = largest(truth, NULL, n);
    st = what == NULL ? CT_ERR_MEMORY : CT_OK;
    for (int d = 0; d < N_DTYPES && st == CT_OK; d++) {
        cti_probe *a = r->probes[0][d], *b = r->probes[1][d];
        const double u = ct_dtype_unit_roundoff(dtypes[d]);
        if (b == NULL || (a == NULL && dtypes[d] != CT_DTYPE_F64)) {
            continue;
        }
        const int32_t k = counterpart(r->truth, b, i);
        if (k < 0) {
            st = mismatch(r, unit, "the replacement", what + sizeof "gradient of " - 1, err);
            continue;
        }
        st = cti_probe_read(b, k, &other, &n_other, err);
        double own = 0.0;
        if (st == CT_OK && dtypes[d] != CT_DTYPE_F64) {
            st = cti_probe_read(a, i, &stock, &n_stock, err);
            own = st == CT_OK ? largest(stock, truth, n) : 0.0;
            roundings = dtypes[d] == CT_DTYPE_F32 ? own / u : roundings;
        }
        if (st == CT_OK) {
            const double near = fmax(size, i > 0 ? r->most_gradient / 4.0 : 0.0);
            const double allowed = dtypes[d] == CT_DTYPE_F64 ? 64.0 * (roundings + near) * u : 3.0 * own + 4.0 * u * near;
            st = note(r, unit, what, dtypes[d], shape, scale, r->truth->x != CT_NO_VALUE, n_other == n ? largest(other, truth, n) : (double)INFINITY,
                      fmax(allowed, DBL_MIN), err);
        }
        ct_alloc_free(r->alloc, stock);
        ct_alloc_free(r->alloc, other);
        stock = other = NULL;
    }
    ct_alloc_free(r->alloc, truth);
    return st;
}

/* ---- one part at one size ------------------------------------------------------------------------------------------ */

static void close_probes(run *r)
{
    for (int d = 0; d < N_DTYPES; d++) {
        cti_probe_destroy(&r->probes[0][d]);
        cti_probe_destroy(&r->probes[1][d]);
    }
    cti_probe_destroy(&r->truth);
}

static ct_status skip(run *r, const char *text, ct_err *err)
{
    if (strstr(r->proof->skipped, text) == NULL) {
        r->proof->skipped = ct_arena_printf(r->proof->arena, err, "%s%s%s", r->proof->skipped, r->proof->skipped[0] != '\0' ? "\n" : "", text);
    }
    return r->proof->skipped != NULL ? CT_OK : CT_ERR_MEMORY;
}

static ct_status open_probes(run *r, const side sides[2], const char *path, const cti_probe_shape *shape, ct_err *err)
{
    const ct_component *units[2];
    for (int s = 0; s < 2; s++) {
        units[s] = path != NULL ? ct_component_find(sides[s].root, path) : NULL;
        CT_ASSERT(path == NULL || units[s] != NULL);
    }
    CT_TRY(cti_probe_create(r->alloc, r->ref, sides[0].root, units[0], CT_DTYPE_F64, shape, &r->truth, err));
    for (int d = 0; d < N_DTYPES; d++) {
        const bool is_f64 = dtypes[d] == CT_DTYPE_F64;
        for (int s = is_f64 ? 1 : 0; s < 2; s++) {
            ct_err why = {0};
            const ct_status st =
                cti_probe_create(r->alloc, is_f64 ? r->ref : r->backend, sides[s].root, units[s], dtypes[d], shape, &r->probes[s][d], &why);
            if (st != CT_OK && (st != CT_ERR_UNSUPPORTED || dtypes[d] == CT_DTYPE_F32)) {
                return CT_FAIL(err, st, "%s, %s on '%s': %s", s == 0 ? "the stock part" : r->target, ct_dtype_name(dtypes[d]), r->backend->name, why.message);
            }
            if (st != CT_OK) {
                const char *text = ct_arena_printf(r->proof->arena, err, "not compared in %s on '%s': %s", ct_dtype_name(dtypes[d]),
                                                   is_f64 ? r->ref->name : r->backend->name, why.message);
                CT_TRY(text != NULL ? skip(r, text, err) : CT_ERR_MEMORY);
            }
        }
    }
    return CT_OK;
}

/* Parameters that only the replacement has. */
static ct_status check_surplus(run *r, const char *unit, ct_err *err)
{
    cti_probe *other = r->probes[1][0];
    for (int32_t i = 1 + (other->x != CT_NO_VALUE); i < cti_probe_count(other); i++) {
        if (counterpart(other, r->truth, i) < 0) {
            return mismatch(r, unit, "the stock part", other->build.params[i - 1 - (other->x != CT_NO_VALUE)].name, err);
        }
    }
    return CT_OK;
}

static ct_status measure_gradients(run *r, ct_err *err)
{
    r->most_gradient = 0.0;
    for (int32_t i = 1; i < cti_probe_count(r->truth); i++) {
        double *values;
        int64_t n;
        CT_TRY(cti_probe_read(r->truth, i, &values, &n, err));
        r->most_gradient = fmax(r->most_gradient, largest(values, NULL, n));
        ct_alloc_free(r->alloc, values);
    }
    return CT_OK;
}

static ct_status compare_probes(run *r, const char *unit, const cti_probe_shape *shape, bool is_model, ct_err *err)
{
    CT_TRY(check_surplus(r, unit, err));
    for (int k = 0; k < (is_model ? 1 : N_SCALES); k++) {
        CT_TRY(cti_probe_run(r->truth, scales[k], err));
        for (int d = 0; d < N_DTYPES; d++) {
            for (int s = 0; s < 2; s++) {
                if (r->probes[s][d] != NULL) {
                    CT_TRY(cti_probe_run(r->probes[s][d], scales[k], err));
                }
            }
        }
        CT_TRY(measure_gradients(r, err));
        for (int32_t i = 0; i < cti_probe_count(r->truth); i++) {
            CT_TRY(compare_quantity(r, unit, shape, scales[k], i, err));
        }
    }
    return CT_OK;
}

/* ---- generating ---------------------------------------------------------------------------------------------------- */

enum { N_PROMPT = 7, N_READ = 3 }; /* a prompt, then two more tokens one by one */

/* The logits after the prompt and after each token: CT_BUILD_PREFILL and CT_BUILD_DECODE with their caches. Caller frees. */
static ct_status logits_of(run *r, const ct_backend *backend, const side *s, ct_dtype dtype, double **out, int64_t *out_n, ct_err *err)
{
    const cti_generator_options o = {.cache_len = 16, .dtype = dtype};
    const ct_component *spec = ct_component_child(s->root, "model_spec");
    const int64_t vocab = ((const cti_model_spec_config *)ct_component_values(spec))->vocab_size;
    cti_generator *gen = NULL;
    int32_t ids[N_PROMPT + N_READ - 1];
    double *values = CT_NEW_ARRAY(r->alloc, double, N_READ * vocab, err);
    ct_status st = values == NULL ? CT_ERR_MEMORY : cti_generator_create(r->alloc, backend, spec, &o, &gen, err);
    st = st == CT_OK ? cti_generator_load(gen, cti_probe_weight, gen->layout, err) : st;
    for (int i = 0; i < N_PROMPT + N_READ - 1; i++) {
        ids[i] = (int32_t)cti_rng_below(cti_rng_key_make(7, "prompt"), (uint64_t)i, (uint64_t)vocab);
    }
    for (int i = 0; i < N_READ && st == CT_OK; i++) {
        st = cti_generator_feed(gen, i == 0 ? ids : ids + N_PROMPT + i - 1, i == 0 ? N_PROMPT : 1, err);
        for (int64_t v = 0; v < vocab && st == CT_OK; v++) {
            values[i * vocab + v] = (double)gen->logit_values[v];
        }
    }
    cti_generator_destroy(&gen);
    if (st != CT_OK) {
        ct_alloc_free(r->alloc, values);
        return st;
    }
    *out = values;
    *out_n = N_READ * vocab;
    return CT_OK;
}

/* The measure is the stock model in f32 on the reference backend, whose sums are in double. */
static ct_status compare_generation(run *r, const side sides[2], const cti_probe_shape *shape, ct_err *err)
{
    static const char unit[] = "whole model", what[] = "logits of prompt and next tokens";
    double *truth = NULL;
    int64_t n;
    CT_TRY(logits_of(r, r->ref, &sides[0], CT_DTYPE_F32, &truth, &n, err));
    const double size = largest(truth, NULL, n);
    ct_status st = CT_OK;
    for (int d = 0; d < 2 && st == CT_OK; d++) {
        double *values[2] = {NULL, NULL};
        ct_err why = {0};
        for (int k = 0; k < 2 && st == CT_OK; k++) {
            st = logits_of(r, r->backend, &sides[k], dtypes[d], &values[k], &n, &why);
        }
        if (st == CT_OK) {
            const double u = ct_dtype_unit_roundoff(dtypes[d]);
            st = note(r, unit, what, dtypes[d], shape, 1.0, false, largest(values[1], truth, n), 3.0 * largest(values[0], truth, n) + 4.0 * u * size, err);
        } else if (st == CT_ERR_UNSUPPORTED && values[0] == NULL) { /* the device generates nothing in this format */
            const char *text = ct_arena_printf(r->proof->arena, err, "logits not compared in %s on '%s': %s", ct_dtype_name(dtypes[d]), r->backend->name,
                                               why.message);
            st = text != NULL ? skip(r, text, err) : CT_ERR_MEMORY;
        } else if (st != CT_ERR_MEMORY && values[0] != NULL) { /* the stock model generates: a replacement that fails is another */
            const char *text = ct_arena_printf(r->proof->arena, err, "generating fails in %s on '%s': %s", ct_dtype_name(dtypes[d]), r->backend->name, why.message);
            r->proof->is_forward_equal = false;
            st = text != NULL ? skip(r, text, err) : CT_ERR_MEMORY;
        } else {
            (void)CT_FAIL(err, st, "the stock model, generating in %s on '%s': %s", ct_dtype_name(dtypes[d]), r->backend->name, why.message);
        }
        ct_alloc_free(r->alloc, values[0]);
        ct_alloc_free(r->alloc, values[1]);
    }
    ct_alloc_free(r->alloc, truth);
    return st;
}

static ct_status compare_at(run *r, const cti_probe_shape *shape, bool is_first, ct_err *err)
{
    side sides[2] = {{0}, {0}};
    ct_status st;
    CT_TRY_GOTO(st, open_side(r, shape, false, &sides[0], err), out);
    CT_TRY_GOTO(st, open_side(r, shape, true, &sides[1], err), out);
    if (is_first) {
        CT_TRY_GOTO(st, find_units(r, &sides[0], &sides[1], err), out);
    }
    for (int u = 0; r->proof->has_ops && u <= r->n_units && st == CT_OK; u++) {
        const char *path = u < r->n_units ? r->units[u] : NULL;
        const char *name = path != NULL ? path + (cti_starts_with(path, "model_spec.model.") ? sizeof "model_spec.model." - 1 : 0) : "whole model";
        st = open_probes(r, sides, path, shape, err);
        st = st == CT_OK ? compare_probes(r, name, shape, path == NULL, err) : st;
        close_probes(r);
        st = st == CT_OK && path == NULL && r->replaces_model ? compare_generation(r, sides, shape, err) : st;
    }
out:
    ct_tree_destroy(&sides[0].tree);
    ct_tree_destroy(&sides[1].tree);
    return st;
}

ct_status cti_proof_create(const ct_alloc *alloc, const ct_registry *registry, cti_plugins *plugins, const ct_backend *backend, const ct_backend *ref,
                           const char *target, cti_proof **out_proof, ct_err *err)
{
    cti_proof *p = CT_NEW(alloc, cti_proof, err);
    if (p == NULL) {
        return CT_ERR_MEMORY;
    }
    *p = (cti_proof){.alloc = alloc, .is_forward_equal = true, .are_gradients_equal = true, .skipped = ""};
    run r = {.proof = p, .alloc = alloc, .registry = registry, .plugins = plugins, .backend = backend, .ref = ref, .target = target};
    ct_status st = ct_arena_create(alloc, 0, &p->arena, err);
    for (int i = 0; i < N_SHAPES && st == CT_OK; i++) {
        st = compare_at(&r, &shapes[i], i == 0, err);
    }
    if (st != CT_OK) {
        cti_proof_destroy(&p);
        return st;
    }
    *out_proof = p;
    return CT_OK;
}

void cti_proof_destroy(cti_proof **proof)
{
    if (*proof != NULL) {
        ct_arena_destroy(&(*proof)->arena);
        ct_alloc_free((*proof)->alloc, *proof);
        *proof = NULL;
    }
}
