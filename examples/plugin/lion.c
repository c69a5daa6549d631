/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in with an optimizer, and a registry function that uses it: Lion (Chen et al. 2023, algorithm 2).
 *
 *     c = sign(beta1 m + (1 - beta1) g);  p = p (1 - lr weight_decay) - lr c;  m = beta2 m + (1 - beta2) g
 *
 *     cc -std=c17 -shared -fPIC $(pkg-config --cflags ctitan) lion.c -o lion.so
 *     CTITAN_PLUGIN_PATH=$PWD ctitan train --module lion --config llama3_debugmodel_lion
 *     CTITAN_PLUGIN_PATH=$PWD ctitan train --module llama3 --config llama3_debugmodel --optimizer.name lion.Lion --optimizer.lr 1e-4
 */
#include <ctitan/plugin.h>

/* ---- the update: of p and m in place -------------------------------------------------------------------------------------- */

typedef struct update_attrs {
    ct_i64_list segments; /* (begin, end, group)* */
    ct_f64_list beta1, beta2, weight_decay; /* of each group */
} update_attrs;
/* clang-format off */
#define ROW(name, KIND) {#name, CT_FIELD_##KIND, offsetof(update_attrs, name), "", "", "", "", "", 0, NULL, ""}
/* clang-format on */
static const ct_field update_fields[] = {ROW(segments, I64_LIST), ROW(beta1, F64_LIST), ROW(beta2, F64_LIST), ROW(weight_decay, F64_LIST)};

static float load(const ct_tensor *t, int64_t i)
{
    return t->dtype == CT_DTYPE_F32 ? ((const float *)t->data)[i] : ct_bf16_to_f32(((const uint16_t *)t->data)[i]);
}

static void store(const ct_tensor *t, int64_t i, float x)
{
    if (t->dtype == CT_DTYPE_F32) {
        ((float *)t->data)[i] = x;
    } else {
        ((uint16_t *)t->data)[i] = ct_f32_to_bf16(x);
    }
}

typedef struct range { /* of one segment */
    const ct_launch *launch;
    int64_t begin;
    float beta1, beta2, rate, keep, coef;
} range;

static void update_range(void *ctx, int64_t first, int64_t end, int thread)
{
    const range *r = ctx;
    const ct_tensor *p = &r->launch->in[0], *g = &r->launch->in[1], *m = &r->launch->in[2];
    (void)thread;
    for (int64_t i = r->begin + first; i < r->begin + end; i++) {
        const float grad = load(g, i) * r->coef, old = load(m, i);
        const float c = r->beta1 * old + (1.0f - r->beta1) * grad;
        store(p, i, load(p, i) * r->keep - r->rate * (float)((c > 0.0f) - (c < 0.0f)));
        store(m, i, r->beta2 * old + (1.0f - r->beta2) * grad);
    }
}

static ct_status run_update(const ct_launch *launch, ct_err *err)
{
    enum { SHARE = 4096 };
    const update_attrs *a = launch->attrs;
    const double *lr = launch->in[3].data;
    if (((const int32_t *)launch->in[5].data)[0] == 0) { /* something was not finite: the step is left out */
        return CT_OK;
    }
    for (int64_t s = 0; s + 2 < a->segments.n; s += 3) {
        const int64_t begin = a->segments.items[s], end = a->segments.items[s + 1], k = a->segments.items[s + 2];
        if (begin < 0 || begin > end || end > launch->in[0].dims[0] || k < 0 || k >= a->beta1.n || k >= launch->in[3].dims[0]) {
            return CT_FAIL(err, CT_ERR_RANGE, "lion.update: segment %lld lies outside", (long long)(s / 3));
        }
        range r = {launch, begin, (float)a->beta1.items[k], (float)a->beta2.items[k], (float)lr[k], (float)(1.0 - lr[k] * a->weight_decay.items[k]),
                   ((const float *)launch->in[4].data)[0]};
        ct_parallel_for(end - begin, SHARE, update_range, &r);
    }
    return CT_OK;
}

static ct_status update_shape(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs, ct_value_spec *out, ct_err *err)
{
    (void)graph;
    (void)n_in;
    (void)attrs;
    for (int32_t i = 0; i < 3; i++) {
        if (in[i]->ndim != 1 || in[i]->dims[0] != in[0]->dims[0] || in[i]->dtype != in[0]->dtype) {
            return CT_FAIL(err, CT_ERR_SHAPE, "lion.update: p, g and m must be vectors of one length and dtype");
        }
    }
    if (in[3]->dtype != CT_DTYPE_F64 || in[4]->dtype != CT_DTYPE_F32 || in[5]->dtype != CT_DTYPE_I32) {
        return CT_FAIL(err, CT_ERR_SHAPE, "lion.update: lr must be f64, coef f32 and go i32");
    }
    for (int32_t o = 0; o < 2; o++) {
        out[o] = (ct_value_spec){.dtype = in[0]->dtype, .ndim = 1, .dims = {in[0]->dims[0]}};
    }
    return CT_OK;
}

static const int32_t update_alias[] = {0, 2}; /* p and m */
static const ct_op_kernel update_kernels[] = {{"cpu", {.run = run_update, .dtypes = CT_BIT(F32) | CT_BIT(BF16)}},
                                              {"ref", {.run = run_update, .dtypes = CT_BIT(F32) | CT_BIT(BF16)}}};
static int32_t update;
static const ct_op update_row = {.name = "lion.update",
                                 .n_in_min = 6,
                                 .n_in_max = 6,
                                 .n_out = 2,
                                 .flags = CT_OP_UPDATE,
                                 .shard = CT_SHARD_REPLICATED,
                                 .tolerance = CT_TOL_EXACT,
                                 .attr_fields = update_fields,
                                 .n_attr_fields = 4,
                                 .attrs_bytes = sizeof(update_attrs),
                                 .shape = update_shape,
                                 .alias = update_alias,
                                 .no_gradient = "it updates state in place",
                                 .kernels = update_kernels,
                                 .n_kernels = 2};

/* ---- the optimizer: one update for each group of parameters that lie end to end --------------------------------------------- */

static ct_status emit(const ct_optimizer_call *call, ct_err *err)
{
    ct_arena *arena = ct_graph_arena(call->graph);
    const size_t n = (size_t)call->n_groups;
    double *numbers = ct_arena_alloc(arena, 3 * n * sizeof *numbers, err);
    if (numbers == NULL) {
        return CT_ERR_MEMORY;
    }
    for (size_t k = 0; k < n; k++) {
        numbers[k] = call->groups[k].beta1;
        numbers[n + k] = call->groups[k].beta2;
        numbers[2 * n + k] = call->groups[k].weight_decay;
    }
    const update_attrs attrs = {call->segments, {call->n_groups, numbers}, {call->n_groups, numbers + n}, {call->n_groups, numbers + 2 * n}};
    const ct_value_id in[6] = {call->param, call->grad, call->states[0], call->lr, call->coef, call->go};
    ct_value_id out[2];
    return ct_op_emit(call->graph, update, &attrs, in, 6, out, err);
}

/* ---- the registry function: llama3_debugmodel with Lion, and rates that suit it ---------------------------------------------- */

static ct_status change(ct_tree *tree, ct_component *root, ct_err *err)
{
    static const char *const name[] = {"lion.Lion"}, *const lr[] = {"1e-4"}, *const betas[] = {"0.9", "0.99"};
    ct_component *group = ct_component_find(root, "optimizer.param_groups.0"), *kwargs = ct_component_find(root, "optimizer.param_groups.0.optimizer_kwargs");
    if (group == NULL || kwargs == NULL) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "no group of parameters");
    }
    CT_TRY(ct_component_set(tree, group, "optimizer_name", name, 1, CT_SOURCE_REGISTRY, err));
    CT_TRY(ct_component_set(tree, kwargs, "lr", lr, 1, CT_SOURCE_REGISTRY, err));
    return ct_component_set(tree, kwargs, "betas", betas, 2, CT_SOURCE_REGISTRY, err);
}

static ct_status setup(ct_registry *registry, ct_err *err)
{
    const ct_optimizer lion = {.name = "lion.Lion", .description = "sign of an interpolated momentum", .states = CT_STATE_EXP_AVG, .emit = emit};
    CT_TRY(ct_registry_add_op(registry, &update_row, &update, err));
    CT_TRY(ct_registry_add_optimizer(registry, &lion, err));
    return ct_registry_add_variant(registry, "lion", "llama3_debugmodel_lion", "llama3", "llama3_debugmodel", change, err);
}

__attribute__((visibility("default"))) const ct_plugin_info *ct_plugin_entry(void);
const ct_plugin_info *ct_plugin_entry(void)
{
    static const ct_plugin_info info = {CT_PLUGIN_ABI, sizeof(ct_plugin_info), "lion", "1.0", setup};
    return &info;
}
