/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: component autodiff backend/ref */
/* Gradients of whole graphs against central differences, in f64 on the reference backend: every
 * differentiable op in every variant of its rule, one of a plug-in too, then a small transformer with a tied embedding. (cast is
 * left to unit.autodiff_graph: a difference cannot see through rounding.) Each graph ends in a
 * linear_cross_entropy over all f64 outputs of the op, scaled by fixed random weights.
 *
 * The tolerance of an element is computed, as the sum of
 *   - truncation: |d(h) - d(2h)|, three times the leading error of d(h), the difference with step h;
 *   - rounding of the loss over the step: 4 n u M / h, with n the elements of all values (more than are ever
 *     added up) and M the sum of magnitudes behind the loss; the gradient's own rounding is h times that;
 *   - statistics saved in f32 (rstd, lse): sum over their elements v of |d grad / d v| u32 |v|, measured by
 *     moving each by 2^-12, twice.
 *
 * It has to stay below 1e-3 of the largest gradient, or the test would prove nothing. */
#include "unit/ops_cases.h"

#include <math.h>

#include "autodiff/autodiff.h"
#include "backend/ref/ref.h"
#include "base/rng.h"
#include "op/interp.h"

#include "../examples/plugin/squared_relu.c"

enum { MAX_VALUES = 24, VOCAB = 5 };
static const double STEP = 1e-3;

/* How an input is filled. */
typedef enum fill { FILL_NORMAL, FILL_GIVEN, FILL_TABLE, FILL_COS, FILL_SIN } fill;

typedef struct source {
    ct_value_id id;
    fill how;
    double std; /* of FILL_NORMAL */
    int32_t given[16];
} source;

typedef struct trial {
    const char *what;
    ct_graph *g;
    ct_err err;
    cti_rng_key key;
    source sources[MAX_VALUES];
    int32_t n_sources;
    ct_value_id wrt[MAX_VALUES], grads[MAX_VALUES];
    int32_t n_wrt;
    ct_value_id x, w, loss; /* inputs 0 and 1 of the loss node */
    interp run;
} trial;

#define OK(t, expr)                                                     \
    do {                                                                \
        if ((expr) != CT_OK) {                                          \
            fail_msg("%s: %s: %s", (t)->what, #expr, (t)->err.message); \
        }                                                               \
    } while (0)

static void trial_begin(trial *t, const char *what)
{
    *t = (trial){.what = what, .g = case_graph("fd"), .key = cti_rng_key_make(7, what)};
}

static ct_value_id add_source(trial *t, ct_value_spec spec, fill how, bool is_wrt)
{
    char name[24];
    (void)snprintf(name, sizeof name, "in%d", (int)t->n_sources);
    spec.name = name;
    spec.kind = CT_VALUE_INPUT;
    ct_value_id id;
    assert_true(t->n_sources < MAX_VALUES);
    OK(t, ct_graph_add_value(t->g, &spec, &id, &t->err));
    t->sources[t->n_sources++] = (source){.id = id, .how = how, .std = 1.0};
    if (is_wrt) {
        t->wrt[t->n_wrt++] = id;
    }
    return id;
}

static ct_value_id add_param(trial *t, int32_t ndim, int64_t d0, int64_t d1)
{
    return add_source(t, (ct_value_spec){.dtype = CT_DTYPE_F64, .ndim = ndim, .dims = {d0, d1}}, FILL_NORMAL,
                      true);
}

static ct_value_id add_ints(trial *t, int32_t ndim, int64_t d0, int64_t d1, const int32_t *values)
{
    const ct_value_id id = add_source(
        t, (ct_value_spec){.dtype = CT_DTYPE_I32, .ndim = ndim, .dims = {d0, d1}}, FILL_GIVEN, false);
    const int64_t n = ct_value_numel(ct_graph_value_c(t->g, id));
    assert_true(n <= (int64_t)N_OF(t->sources[0].given));
    memcpy(t->sources[t->n_sources - 1].given, values, (size_t)n * sizeof *values);
    return id;
}

/* An input from a word: "f64[2,3]" to differentiate by, "i32[2]=0,1" with its values, "T…" a table of (cos,
 * sin), "C…" and "S…" cosines and sines in equal pairs, "N…" f64 that is not differentiated by. */
static ct_value_id add_word(trial *t, char *word)
{
    const char kind = word[0];
    char *values = strchr(word, '=');
    if (values != NULL) {
        *values++ = '\0';
        const ct_value_spec spec = case_spec(word);
        int32_t given[16];
        int n = 0;
        for (char *p = values; *p != '\0';) {
            assert_true(n < 16);
            given[n++] = (int32_t)strtol(p, &p, 10);
            p += *p == ',';
        }
        return add_ints(t, spec.ndim, spec.dims[0], spec.dims[1], given);
    }
    if (kind == 'T' || kind == 'C' || kind == 'S') {
        word[0] = 'f';
        return add_source(t, case_spec(word),
                          kind == 'T'   ? FILL_TABLE
                          : kind == 'C' ? FILL_COS
                                        : FILL_SIN,
                          false);
    }
    word[0] = 'f';
    return add_source(t, case_spec(word), FILL_NORMAL, kind == 'f');
}

static void fill_sources(trial *t)
{
    for (int32_t i = 0; i < t->n_sources; i++) {
        const source *s = &t->sources[i];
        const cti_rng_key angles = cti_rng_key_make(3, "angles");
        for (int64_t k = 0; k < ct_value_numel(ct_graph_value_c(t->g, s->id)); k++) {
            const double angle = 6.0 * cti_rng_uniform(angles, (uint64_t)(k / 2));
            double x = s->std * cti_rng_normal(t->key, (uint64_t)(1000 * i + k));
            switch (s->how) {
            case FILL_NORMAL:
                break;
            case FILL_GIVEN:
                x = (double)s->given[k];
                break;
            case FILL_TABLE:
                x = k % 2 == 0 ? cos(angle) : sin(angle);
                break;
            case FILL_COS:
                x = cos(angle);
                break;
            case FILL_SIN:
                x = sin(angle);
                break;
            }
            interp_set(&t->run, s->id, k, x);
        }
    }
}

/* The loss over x [T, D], D not 0, with the given labels and head. */
static void add_loss(trial *t, ct_value_id x, ct_value_id w, const int32_t *labels, int64_t chunks)
{
    const ct_value v = *ct_graph_value_c(t->g, x);
    assert_int_equal(v.ndim, 2);
    const ct_value_id label_id = add_ints(t, 1, v.dims[0], 0, labels);
    const ct_value_id inv =
        add_source(t, (ct_value_spec){.dtype = CT_DTYPE_F32, .ndim = 1, .dims = {1}}, FILL_NORMAL, false);
    ct_value_id outs[3];
    OK(t, ct_op_emit(t->g, CT_OP_linear_cross_entropy, &(ct_attrs_loss){chunks},
                     (ct_value_id[]){x, w, label_id, inv}, 4, outs, &t->err));
    t->x = x;
    t->w = w;
    t->loss = outs[0];
}

/* All f64 outputs times fixed weights, end to end in one row, into the loss. */
static void contract(trial *t, const ct_value_id *outs, int32_t n_out)
{
    ct_value_id rows[8], x;
    int32_t n = 0;
    for (int32_t i = 0; i < n_out; i++) {
        const ct_value v = *ct_graph_value_c(t->g, outs[i]);
        if (v.dtype == CT_DTYPE_F64) {
            ct_value_id weighted;
            const ct_value_id weights =
                add_source(t,
                           (ct_value_spec){.dtype = CT_DTYPE_F64,
                                           .ndim = v.ndim,
                                           .dims = {v.dims[0], v.dims[1], v.dims[2], v.dims[3]}},
                           FILL_NORMAL, false);
            OK(t, ct_op_mul(t->g, outs[i], weights, &weighted, &t->err));
            OK(t, ct_op_reshape(t->g, weighted, (int64_t[]){1, -1}, 2, &rows[n++], &t->err));
        }
    }
    OK(t, ct_op_emit(t->g, CT_OP_concat, &(ct_attrs_concat){1}, rows, n, &x, &t->err));
    const int64_t d = ct_graph_value_c(t->g, x)->dims[1];
    const ct_value_id w = add_source(t, (ct_value_spec){.dtype = CT_DTYPE_F64, .ndim = 2, .dims = {VOCAB, d}},
                                     FILL_NORMAL, false);
    t->sources[t->n_sources - 1].std =
        1.0 / sqrt((double)d); /* logits near 1: no saturated softmax, whose gradients vanish */
    add_loss(t, x, w, (int32_t[]){2}, 1);
}

static double loss_now(trial *t)
{
    interp_run(&t->run, CT_PROGRAM_FORWARD);
    return interp_get(&t->run, t->loss, 0);
}

/* Rounding of the loss: 4 n u M. */
static double loss_rounding(const trial *t)
{
    double n = 0.0, magnitude = 0.0;
    for (int32_t i = 0; i < ct_graph_n_values(t->g); i++) {
        n += (double)ct_value_numel(ct_graph_value_c(t->g, i));
    }
    const ct_value *x = ct_graph_value_c(t->g, t->x), *w = ct_graph_value_c(t->g, t->w);
    for (int64_t r = 0; r < x->dims[0]; r++) {
        double largest = 0.0;
        for (int64_t v = 0; v < w->dims[0]; v++) {
            double sum = 0.0;
            for (int64_t j = 0; j < x->dims[1]; j++) {
                sum += fabs(interp_get(&t->run, t->x, r * x->dims[1] + j) *
                            interp_get(&t->run, t->w, v * x->dims[1] + j));
            }
            largest = fmax(largest, sum);
        }
        magnitude += 2.0 * largest + log((double)w->dims[0]);
    }
    return 4.0 * n * ct_dtype_unit_roundoff(CT_DTYPE_F64) * magnitude;
}

/* All gradients end to end, in the order of wrt. */
static int64_t read_grads(const trial *t, double *out)
{
    int64_t n = 0;
    for (int32_t k = 0; k < t->n_wrt; k++) {
        const int64_t numel = ct_value_numel(ct_graph_value_c(t->g, t->wrt[k]));
        for (int64_t i = 0; i < numel; i++, n++) {
            if (out != NULL) {
                out[n] = interp_get(&t->run, t->grads[k], i);
            }
        }
    }
    return n;
}

/* Is it an f32 activation that only the backward nodes read? */
static bool is_saved_statistic(const trial *t, ct_value_id id)
{
    const ct_value *value = ct_graph_value_c(t->g, id);
    bool is_read = false;
    for (int32_t i = 0; i < ct_graph_order_len(t->g); i++) {
        const ct_node *node = ct_graph_node_c(t->g, ct_graph_order(t->g)[i]);
        for (int32_t k = 0; k < node->n_in; k++) {
            if (node->in[k] == id) {
                if (node->program == CT_PROGRAM_FORWARD) {
                    return false;
                }
                is_read = true;
            }
        }
    }
    return is_read && value->kind == CT_VALUE_ACT && value->dtype == CT_DTYPE_F32;
}

/* Adds to bound[i] what the f32 rounding of saved statistics may do to gradient i of n. Uses the buffers as
 * the last run left them. */
static void add_saved_f32(trial *t, const double *base, double *bound, double *moved, int64_t n)
{
    const double eps = 0x1p-12, u32 = ct_dtype_unit_roundoff(CT_DTYPE_F32);
    for (int32_t id = 0; id < ct_graph_n_values(t->g); id++) {
        if (!is_saved_statistic(t, id)) {
            continue;
        }
        for (int64_t e = 0; e < ct_value_numel(ct_graph_value_c(t->g, id)); e++) {
            const double was = interp_get(&t->run, id, e);
            if (!isfinite(was)) {
                continue; /* lse of a token in no segment is -inf, exactly */
            }
            interp_set(&t->run, id, e, was * (1.0 + eps));
            interp_run(&t->run, CT_PROGRAM_BACKWARD);
            assert_int_equal(read_grads(t, moved), n);
            for (int64_t i = 0; i < n; i++) {
                bound[i] += 2.0 * fabs(moved[i] - base[i]) * u32 / eps;
            }
            interp_set(&t->run, id, e, was);
        }
    }
}

/* The loss as element i of `id` moves by h. */
static double slope(trial *t, ct_value_id id, int64_t i, double h)
{
    const double at = interp_get(&t->run, id, i);
    interp_set(&t->run, id, i, at + h);
    const double up = loss_now(t);
    interp_set(&t->run, id, i, at - h);
    const double down = loss_now(t);
    interp_set(&t->run, id, i, at);
    return (up - down) / (2.0 * h);
}

static void compare(trial *t, const double *base, const double *bound, double rounding)
{
    double largest = 0.0, loosest = 0.0;
    int64_t at = 0;
    for (int32_t k = 0; k < t->n_wrt; k++) {
        const int64_t numel = ct_value_numel(ct_graph_value_c(t->g, t->wrt[k]));
        for (int64_t i = 0; i < numel; i++, at++) {
            const double near = slope(t, t->wrt[k], i, STEP), far = slope(t, t->wrt[k], i, 2.0 * STEP);
            const double tolerance = fabs(near - far) + rounding / STEP + bound[at];
            if (!(fabs(base[at] - near) <= tolerance)) {
                fail_msg("%s: gradient of input %d [%d] is %.12g, by differences %.12g (tolerance %.3g)",
                         t->what, (int)k, (int)i, base[at], near, tolerance);
            }
            largest = fmax(largest, fabs(base[at]));
            loosest = fmax(loosest, tolerance);
        }
    }
    if (!(loosest < 1e-3 * largest)) {
        fail_msg("%s: a tolerance of %.3g proves nothing about gradients of %.3g", t->what, loosest, largest);
    }
}

static void trial_end(trial *t)
{
    OK(t, ct_autodiff(t->g, t->loss, t->wrt, t->n_wrt, t->grads, &t->err));
    OK(t, ct_graph_verify(t->g, &t->err));
    interp_init(&t->run, t->g, ct_backend_ref());
    fill_sources(t);
    const int64_t n = read_grads(t, NULL);
    double *base = CT_NEW_ARRAY(ct_alloc_system(), double, 3 * n, NULL);
    assert_true(n > 0 && base != NULL);
    (void)loss_now(t);
    interp_run(&t->run, CT_PROGRAM_BACKWARD);
    (void)read_grads(t, base);
    const double rounding = loss_rounding(t);
    add_saved_f32(t, base, base + n, base + 2 * n, n);
    compare(t, base, base + n, rounding);
    ct_alloc_free(ct_alloc_system(), base);
    interp_deinit(&t->run);
    ct_graph_destroy(&t->g);
}

static void every_rule(void **state)
{
    (void)state;
    static const struct {
        const char *what, *op, *attrs, *inputs;
    } table[] = {
        /* clang-format off */
        {"embedding, an id twice", "embedding", "", "f64[4,3] i32[2,3]=3,0,1,3,3,2"},
        {"matmul", "matmul", "", "f64[2,3,4] f64[4,5]"},
        {"matmul tb", "matmul", "tb=true", "f64[2,3,4] f64[5,4]"},
        {"matmul ta", "matmul", "ta=true", "f64[2,3,4] f64[2,3,5]"},
        {"matmul ta, b flat", "matmul", "ta=true", "f64[2,3,4] f64[6,5]"},
        {"matmul ta tb", "matmul", "ta=true;tb=true", "f64[2,3,4] f64[5,6]"},
        {"matmul c", "matmul", "", "f64[6,4] f64[2,2,5] f64[6,5]"},
        {"matmul c tb", "matmul", "tb=true", "f64[6,4] f64[2,2,4] f64[6,4]"},
        {"add", "add", "", "f64[2,3] f64[2,3]"},
        {"mul", "mul", "", "f64[2,3] f64[2,3]"},
        {"mul by what is fixed", "mul", "", "f64[2,3] N64[2,3]"},
        {"scale", "scale", "alpha=-0.75", "f64[2,3]"},
        {"reshape", "reshape", "dims=3 -1", "f64[2,3]"},
        {"transpose", "transpose", "perm=2 0 1", "f64[2,3,4]"},
        {"transpose of four", "transpose", "perm=0 2 1 3", "f64[2,3,2,2]"},
        {"slice", "slice", "dim=1;start=1;len=2", "f64[2,4,2]"},
        {"concat", "concat", "dim=1", "f64[2,3] f64[2,1] f64[2,2]"},
        {"concat along 0", "concat", "", "f64[1,3] f64[2,3]"},
        {"rmsnorm", "rmsnorm", "eps=1e-2", "f64[2,3,4] f64[4]"},
        {"rope", "rope", "", "f64[2,3,2,4] i32[2,3]=0,1,2,5,0,1 T32[6,2,2]"},
        {"rope inverse", "rope", "inverse=true", "f64[1,3,2,4] i32[1,3]=4,1,2 T32[6,2,2]"},
        {"qkv_rope", "qkv_rope", "heads=2;kv_heads=1", "f64[2,3,16] i32[2,3]=0,1,2,5,0,1 T32[6,2,2]"},
        {"rotary_mul", "rotary_mul", "", "f64[2,3,2,4] C32[2,3,4] S32[2,3,4]"},
        {"rotary_mul inverse", "rotary_mul", "inverse=true", "f64[1,3,2,4] C32[1,3,4] S32[1,3,4]"},
        {"sdpa, two documents", "sdpa", "scale=0.5", "f64[1,6,2,4] f64[1,6,2,4] f64[1,6,2,4] i32[3,4]=0,4,0,4,4,2,4,2,0,0,0,0 i32[1]=2"},
        {"sdpa, a token in no segment", "sdpa", "", "f64[5,1,2] f64[5,1,2] f64[5,1,2] i32[1,4]=0,4,0,4 i32[1]=1"},
        {"sdpa, not causal", "sdpa", "scale=0.5;causal=false", "f64[3,2,2] f64[4,2,2] f64[4,2,2] i32[1,4]=0,3,0,4 i32[1]=1"},
        {"sdpa, grouped heads, longer keys", "sdpa", "scale=0.7", "f64[3,4,2] f64[5,2,2] f64[5,2,2] i32[1,4]=0,3,0,5 i32[1]=1"},
        {"sdpa, a window", "sdpa", "window=2", "f64[6,1,2] f64[6,1,2] f64[6,1,2] i32[1,4]=0,6,0,6 i32[1]=1"},
        {"sdpa_tnd", "sdpa_tnd", "scale=0.6", "f64[6,2,2] f64[6,1,2] f64[6,1,2] i32[2]=4,6 i32[2]=4,6 i32[1]=2"},
        {"sdpa_tnd, not causal", "sdpa_tnd", "causal=false", "f64[4,2,2] f64[5,2,2] f64[5,2,2] i32[2]=1,4 i32[2]=2,5 i32[1]=2"},
        {"silu_mul", "silu_mul", "", "f64[3,4] f64[3,4]"},
        {"swiglu", "swiglu", "", "f64[3,8]"},
        {"an op of a plug-in", "squared_relu.gated", "", "f64[3,4] f64[3,4]"},
        {"flat_split, out of order, with gaps", "flat_split", "offsets=8 0;ndims=1 2;dims=3 2 2", "f64[12]"},
        {"all_gather of one", "all_gather", "degree=1;reduce_dtype=3", "f64[2,3]"},
        {"reduce_scatter of one", "reduce_scatter", "degree=1", "f64[2,3]"},
        {"all_reduce of one", "all_reduce", "degree=1", "f64[2,3]"},
        {"owe of one", "owe", "degree=1;reduce_dtype=-1", "f64[2,3]"},
        /* clang-format on */
    };
    ct_err err = {0};
    assert_int_equal(cti_op_register(&gated_row, &gated, &err), CT_OK);
    assert_int_equal(cti_op_register(&gated_grad_row, &gated_grad, &err), CT_OK);
    bool is_tried[CT_OP_COUNT] = {[CT_OP_cast] = true, [CT_OP_linear_cross_entropy] = true};
    for (size_t i = 0; i < N_OF(table); i++) {
        trial t;
        trial_begin(&t, table[i].what);
        const ct_op *op = ct_op_find(table[i].op);
        assert_non_null(op);
        if (op->id < CT_OP_COUNT) {
            is_tried[op->id] = true;
        }
        ct_value_id in[8], outs[8];
        int32_t n_in = 0;
        char word[80];
        for (const char *p = table[i].inputs; (p = case_next(p, ' ', word, sizeof word)) != NULL; n_in++) {
            in[n_in] = add_word(&t, word);
        }
        void *attrs = case_attrs(t.g, op, table[i].attrs);
        OK(&t, ct_op_emit(t.g, op->id, attrs, in, n_in, outs, &t.err));
        contract(&t, outs, ct_op_n_out(op, attrs));
        trial_end(&t);
    }
    for (int32_t i = 0; i < CT_OP_COUNT; i++) {
        if (!is_tried[i] && cti_grad_why_not(i) == NULL) {
            fail_msg("op '%s' has a gradient rule and no case here", ct_op_row(i)->name);
        }
    }
}

/* The root alone: several tokens, an ignored one, chunks. */
static void loss_alone(void **state)
{
    (void)state;
    trial t;
    trial_begin(&t, "linear_cross_entropy");
    const ct_value_id x = add_param(&t, 2, 5, 3), w = add_param(&t, 2, VOCAB, 3);
    add_loss(&t, x, w, (int32_t[]){4, -100, 0, 2, 2}, 2);
    trial_end(&t);
}

/* One value read three times, once by an op that reads it twice. */
static void fan_in(void **state)
{
    (void)state;
    trial t;
    trial_begin(&t, "fan-in");
    const ct_value_id x = add_param(&t, 2, 3, 4);
    ct_value_id square, y;
    OK(&t, ct_op_mul(t.g, x, x, &square, &t.err));
    OK(&t, ct_op_silu_mul(t.g, square, x, &y, &t.err));
    OK(&t, ct_op_add(t.g, y, x, &y, &t.err));
    contract(&t, &y, 1);
    trial_end(&t);
}

/* A block of a Llama with one embedding for both ends: every gradient through residuals, norms, attention and
 * the tied table. */
static void transformer(void **state)
{
    (void)state;
    enum { S = 4, D = 4, H = 2, HEAD = 2, F = 6 };
    trial t;
    trial_begin(&t, "transformer");
    const ct_value_id emb = add_param(&t, 2, VOCAB, D), norm1 = add_param(&t, 1, D, 0),
                      norm2 = add_param(&t, 1, D, 0), wqkv = add_param(&t, 2, 3 * D, D),
                      wo = add_param(&t, 2, D, D), w1 = add_param(&t, 2, F, D), w3 = add_param(&t, 2, F, D),
                      w2 = add_param(&t, 2, D, F);
    const ct_value_id ids = add_ints(&t, 2, 1, S, (int32_t[]){1, 3, 3, 0}),
                      pos = add_ints(&t, 2, 1, S, (int32_t[]){0, 1, 2, 0}),
                      segments = add_ints(&t, 2, 2, 4, (int32_t[]){0, 3, 0, 3, 3, 1, 3, 1}),
                      n_segments = add_ints(&t, 1, 1, 0, (int32_t[]){2});
    const ct_value_id table = add_source(
        &t, (ct_value_spec){.dtype = CT_DTYPE_F32, .ndim = 3, .dims = {S, HEAD / 2, 2}}, FILL_TABLE, false);
    ct_value_id x, h, qkv, part[3], o, gate, up;
    ct_graph *g = t.g;
    OK(&t, ct_op_embedding(g, emb, ids, &x, &t.err));
    OK(&t, ct_op_rmsnorm(g, x, norm1, 1e-5, &h, &t.err));
    OK(&t, ct_op_matmul(g, h, wqkv, CT_NO_VALUE, false, true, &qkv, &t.err));
    for (int64_t i = 0; i < 3; i++) {
        OK(&t, ct_op_emit(g, CT_OP_slice, &(ct_attrs_slice){2, i * D, D}, &qkv, 1, &part[i], &t.err));
        OK(&t, ct_op_reshape(g, part[i], (int64_t[]){1, S, H, HEAD}, 4, &part[i], &t.err));
        if (i < 2) {
            OK(&t, ct_op_rope(g, part[i], pos, table, &part[i], &t.err));
        }
    }
    OK(&t, ct_op_sdpa(g, part[0], part[1], part[2], segments, n_segments, 0.7, &o, &t.err));
    OK(&t, ct_op_reshape(g, o, (int64_t[]){1, S, D}, 3, &o, &t.err));
    OK(&t, ct_op_matmul(g, o, wo, x, false, true, &x, &t.err)); /* the residual is matmul's c */
    OK(&t, ct_op_rmsnorm(g, x, norm2, 1e-5, &h, &t.err));
    OK(&t, ct_op_matmul(g, h, w1, CT_NO_VALUE, false, true, &gate, &t.err));
    OK(&t, ct_op_matmul(g, h, w3, CT_NO_VALUE, false, true, &up, &t.err));
    OK(&t, ct_op_silu_mul(g, gate, up, &h, &t.err));
    OK(&t, ct_op_matmul(g, h, w2, CT_NO_VALUE, false, true, &h, &t.err));
    OK(&t, ct_op_add(g, x, h, &x, &t.err));
    OK(&t, ct_op_reshape(g, x, (int64_t[]){S, D}, 2, &x, &t.err));
    add_loss(&t, x, emb, (int32_t[]){3, 3, 0, 1}, 2);
    trial_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule),
        cmocka_unit_test(loss_alone),
        cmocka_unit_test(fan_in),
        cmocka_unit_test(transformer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
