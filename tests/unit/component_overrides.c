/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: model component config passes autodiff ops ir mesh base */
/* labels: fast */
/* override.imports as a whole: what matches, what is refused (each error of TorchTitan's mechanism, and what only C can get wrong), what is
 * logged; overrides of sections as well as of parts of the model. */
#include "base/base.h"
#include "component/component.h"
#include "model/model.h"
#include "unit/base_test.h"

/* ---- overrides to play with ---------------------------------------------------------------------------------------- */

static ct_class plain_norm, short_norm, moved_norm, fast_optimizer, other_full, stranger = {.name = "Stranger"};
static ct_field moved_fields[8];
static ct_component *kept; /* what `reuse` gives again and again */

static ct_status derive_norm(ct_tree *tree, ct_component *matched, const char *args, ct_component **out, ct_err *err)
{
    CT_TRY(ct_component_derive(tree, matched, &plain_norm, out, err));
    return ct_component_set_json(tree, *out, args, err);
}

static ct_status unchanged(ct_tree *tree, ct_component *matched, const char *args, ct_component **out, ct_err *err)
{
    (void)tree;
    (void)args;
    (void)err;
    *out = matched;
    return CT_OK;
}

static ct_status nothing(ct_tree *tree, ct_component *matched, const char *args, ct_component **out, ct_err *err)
{
    (void)unchanged(tree, matched, args, out, err);
    *out = NULL;
    return CT_OK;
}

static ct_status silent(ct_tree *tree, ct_component *matched, const char *args, ct_component **out, ct_err *err)
{
    (void)unchanged(tree, matched, args, out, err);
    return CT_ERR_UNSUPPORTED;
}

static ct_status reuse(ct_tree *tree, ct_component *matched, const char *args, ct_component **out, ct_err *err)
{
    (void)unchanged(tree, matched, args, out, err);
    *out = kept;
    return CT_OK;
}

static ct_status out_of_bounds(ct_tree *tree, ct_component *matched, const char *args, ct_component **out, ct_err *err)
{
    (void)args;
    CT_TRY(ct_component_derive(tree, matched, &plain_norm, out, err));
    ((cti_rmsnorm_config *)(*out)->values)->eps = -1.0;
    return CT_OK;
}

#define DERIVED(name, class)                                                                                                            \
    static ct_status name(ct_tree *tree, ct_component *matched, const char *args, ct_component **out, ct_err *err)                      \
    {                                                                                                                                   \
        CT_TRY(ct_component_derive(tree, matched, &(class), out, err));                                                                 \
        return ct_component_set_json(tree, *out, args, err);                                                                            \
    }
DERIVED(derive_short, short_norm)
DERIVED(derive_moved, moved_norm)
DERIVED(derive_stranger, stranger)
DERIVED(derive_optimizer, fast_optimizer)
DERIVED(derive_full, other_full)

static ct_status derive_nothing(ct_tree *tree, ct_component *matched, const char *args, ct_component **out, ct_err *err)
{
    (void)args;
    return ct_component_derive(tree, matched, NULL, out, err);
}

/* A section of the same class with other values. */
static ct_status same_class(ct_tree *tree, ct_component *matched, const char *args, ct_component **out, ct_err *err)
{
    CT_TRY(ct_component_derive(tree, matched, matched->cls, out, err));
    return ct_component_set_json(tree, *out, args, err);
}

static ct_class copy_of(const ct_class *base, const char *name)
{
    ct_class cls = *base;
    cls.name = name;
    cls.base = base;
    return cls;
}

static const char *const last_norm[] = {"model_spec.model.norm"}, *const attention_norms[] = {"*attention_norm"},
                  *const layer_1[] = {"model_spec.*.1.*"}, *const validation[] = {"validator.*"};

#define ALL NULL, 0
#define AT(globs) globs, 1
/* X(name, target, globs, exact, factory) */
#define ROWS(X)                                                                                                         \
    X("x.norm", cti_rmsnorm_class, ALL, false, derive_norm)                                                             \
    X("x.last_norm", cti_rmsnorm_class, AT(last_norm), false, derive_norm)                                              \
    X("x.attention_norms", cti_rmsnorm_class, AT(attention_norms), false, derive_norm)                                  \
    X("x.norm_of_layer_1", cti_rmsnorm_class, AT(layer_1), false, derive_norm)                                          \
    X("x.block", cti_block_class, ALL, false, unchanged)                                                                \
    X("x.root", cti_trainer_class, ALL, false, unchanged)                                                               \
    X("x.none", stranger, ALL, false, unchanged)                                                                        \
    X("x.nothing_given", cti_rmsnorm_class, AT(last_norm), false, nothing)                                              \
    X("x.silent", cti_rmsnorm_class, AT(last_norm), false, silent)                                                      \
    X("x.reuse", cti_rmsnorm_class, AT(last_norm), false, reuse)                                                        \
    X("x.out_of_bounds", cti_rmsnorm_class, AT(last_norm), false, out_of_bounds)                                        \
    X("x.short", cti_rmsnorm_class, AT(last_norm), false, derive_short)                                                 \
    X("x.moved", cti_rmsnorm_class, AT(last_norm), false, derive_moved)                                                 \
    X("x.no_class", cti_rmsnorm_class, AT(last_norm), false, derive_nothing)                                            \
    X("x.list", ct_class_list, ALL, false, unchanged)                                                                   \
    X("x.optimizer", cti_optimizer_class, ALL, false, derive_optimizer)                                                 \
    X("x.no_optimizer", cti_optimizer_class, ALL, false, derive_stranger)                                               \
    X("x.spec", cti_model_spec_class, ALL, false, derive_stranger)                                                      \
    X("x.loaders", cti_dataloader_class, ALL, false, same_class)                                                        \
    X("x.loader", cti_dataloader_class, ALL, true, same_class)                                                          \
    X("x.validation", cti_dataloader_class, AT(validation), false, same_class)                                          \
    X("x.metrics", cti_metrics_class, ALL, false, same_class)                                                           \
    X("x.training", cti_training_class, ALL, false, same_class)                                                         \
    X("x.loss", cti_chunked_loss_class, ALL, false, same_class)                                                         \
    X("x.loss_fn", cti_cross_entropy_class, ALL, false, same_class)                                                     \
    X("x.checkpoint", cti_checkpoint_class, ALL, false, same_class)                                                     \
    X("x.kwargs", cti_optimizer_kwargs_class, ALL, false, same_class)                                                   \
    X("x.ac", cti_ac_selective_class, ALL, false, derive_full)

typedef struct world {
    ct_registry *registry;
    cti_plugins *plugins;
    cti_run_config run;
    cti_overrides_applied applied;
    ct_err err;
} world;

static void make_classes(void)
{
    plain_norm = copy_of(&cti_rmsnorm_class, "PlainNorm");
    fast_optimizer = copy_of(&cti_optimizer_class, "FastOptimizers");
    other_full = copy_of(&cti_ac_full_class, "OtherFullAC");
    short_norm = copy_of(&cti_rmsnorm_class, "ShortNorm");
    short_norm.values_bytes -= 8;
    short_norm.n_fields -= 1;
    moved_norm = copy_of(&cti_rmsnorm_class, "MovedNorm");
    memcpy(moved_fields, cti_rmsnorm_class.fields, (size_t)cti_rmsnorm_class.n_fields * sizeof *moved_fields);
    moved_fields[1].offset += 8;
    moved_norm.fields = moved_fields;
    moved_norm.values_bytes += 8;
}

static void open_world(world *w)
{
    const ct_alloc *alloc = ct_alloc_system();
    *w = (world){0};
    make_classes();
    assert_int_equal(ct_registry_create(alloc, &w->registry, &w->err), CT_OK);
    assert_int_equal(cti_register_sections(w->registry, &w->err), CT_OK);
    assert_int_equal(cti_register_llama3(w->registry, &w->err), CT_OK);
    assert_int_equal(cti_plugins_create(alloc, w->registry, "/nowhere", NULL, &w->plugins, &w->err), CT_OK);
#define ADD(name_, target_, globs, n_globs, exact, factory_)                                                                           \
    assert_int_equal(ct_registry_add_override(w->registry, &(ct_override){.name = name_, .target = &target_, .fqns = globs, .n_fqns = n_globs, \
                                                                         .is_exact = exact, .factory = factory_}, &w->err), CT_OK);
#define ADD_ROW(...) ADD(__VA_ARGS__)
    ROWS(ADD_ROW)
    assert_int_equal(ct_tree_create(alloc, &w->run.tree, &w->err), CT_OK);
    assert_int_equal(cti_registry_make(w->registry, "llama3", "llama3_debugmodel", w->run.tree, &w->run.root, &w->err), CT_OK);
    kept = ct_component_find(w->run.root, "model_spec.model.layers.0.ffn_norm");
}

static void close_world(world *w)
{
    cti_run_config_deinit(&w->run);
    cti_plugins_destroy(&w->plugins);
    ct_registry_destroy(&w->registry);
}

/* tokens: joined with blanks, for tests; "~" stands for a blank inside of one. */
static ct_status apply(world *w, const char *tokens)
{
    static char room[8][200];
    const char *list[8];
    size_t n = 0;
    for (const char *at = tokens; *at != '\0';) {
        const size_t len = strcspn(at, " ");
        memcpy(room[n], at, len);
        room[n][len] = '\0';
        for (char *p = room[n]; *p != '\0'; p++) {
            *p = *p == '~' ? ' ' : *p;
        }
        list[n] = room[n];
        n++;
        at += len + (at[len] == ' ');
    }
    assert_int_equal(ct_component_set(w->run.tree, ct_component_child(w->run.root, "override"), "imports", list, n, CT_SOURCE_FLAG, &w->err), CT_OK);
    return cti_run_config_override(ct_alloc_system(), w->registry, w->plugins, &w->run, 1, false, &w->applied, &w->err);
}

/* ---- what is refused ---------------------------------------------------------------------------------------------- */

/* theirs: what TorchTitan says of the same case; NULL: it has none such. All of ours exit 2 but for a plug-in's own faults (1). */
static const struct {
    const char *theirs, *tokens;
    ct_status status;
    const char *ours[3];
} refused[] = {
    {"ValueError: must be a module.function path", "nodot", CT_ERR_USAGE, {"'nodot' is no target", "plugin.name"}},
    {"the same", ".x", CT_ERR_USAGE, {"'.x' is no target"}},
    {"the same", "x.", CT_ERR_USAGE, {"'x.' is no target"}},
    {"ImportError: module could not be imported", "missing.norm", CT_ERR_USAGE, {"'missing.norm'", "missing.so", "CTITAN_PLUGIN_PATH"}},
    {"ImportError", "../etc.norm", CT_ERR_USAGE, {"'../etc'", "cannot name a plug-in"}},
    {"ValueError: names no registered override", "x.nrom", CT_ERR_USAGE, {"'x.nrom' is no override", "x.norm, x.last_norm"}},
    {"ValueError: named by two entries, list it once", "x.norm x.norm", CT_ERR_USAGE, {"'x.norm' is named by two entries", "list it once"}},
    {"the same, in a comma group", "x.norm,x.norm", CT_ERR_USAGE, {"'x.norm' is named by two entries"}},
    {"parse error: must be an object", "x.norm=[1]", CT_ERR_USAGE, {"'x.norm': wanted a JSON object after '='"}},
    {"parse error", "x.norm={\"eps\":", CT_ERR_USAGE, {"'x.norm': wanted a JSON object after '='", "arguments"}},
    {"parse error", "x.norm=", CT_ERR_USAGE, {"'x.norm': wanted a JSON object after '='"}},
    {"parse error: kwargs go to one target", "x.norm,x.last_norm={}", CT_ERR_USAGE, {"'x.norm,x.last_norm': arguments go to one target"}},
    {"TypeError: unexpected keyword argument", "x.last_norm={\"epz\":1}", CT_ERR_USAGE,
     {"override 'x.last_norm' at 'model_spec.model.norm'", "PlainNorm has no field 'epz' (nearest: 'eps')"}},
    {NULL, "x.last_norm={\"eps\":\"small\"}", CT_ERR_USAGE, {"'eps': wanted FLOAT, found a text"}},
    {NULL, "x.last_norm={\"eps\":-1}", CT_ERR_USAGE, {"'eps': ", "-1"}},
    {NULL, "x.last_norm={\"eps\":[1,2]}", CT_ERR_USAGE, {"'eps': wanted one value, found a list of 2"}},
    {NULL, "x.last_norm={\"eps\":{\"a\":1}}", CT_ERR_USAGE, {"'eps': wanted FLOAT, found an object"}},
    {NULL, "x.metrics={\"log_freq\":null}", CT_ERR_USAGE, {"'log_freq': wanted INT, found null"}},
    {NULL, "x.metrics={\"log_freq\":true}", CT_ERR_USAGE, {"'log_freq': wanted INT, found true"}},
    {"ValueError: the root cannot be replaced in place", "x.root", CT_ERR_USAGE, {"'x.root' claims the root (Trainer)"}},
    {"ValueError: both claim node", "x.norm x.last_norm", CT_ERR_USAGE,
     {"'x.norm' and 'x.last_norm' both claim 'model_spec.model.norm'", "narrow their fqns"}},
    {"ValueError: claims an ancestor of", "x.attention_norms x.block", CT_ERR_USAGE,
     {"'x.block' claims 'model_spec.model.layers.0', which holds 'model_spec.model.layers.0.attention_norm', claimed by 'x.attention_norms'",
      "narrow their fqns"}},
    {"the same, the other way round", "x.block x.attention_norms", CT_ERR_USAGE, {"'x.block' claims 'model_spec.model.layers.0', which holds"}},
    {"ValueError of validation after overrides", "x.training={\"seq_len\":1073741824}", CT_ERR_USAGE, {"after the overrides: --training.seq-len"}},
    {"TypeError: derive wants a config class", "x.no_class", CT_ERR_RANGE, {"'x.no_class' at", "without a class"}},
    {NULL, "x.nothing_given", CT_ERR_PLUGIN, {"'x.nothing_given' at 'model_spec.model.norm': its factory gave no component"}},
    {NULL, "x.silent", CT_ERR_UNSUPPORTED, {"'x.silent' at 'model_spec.model.norm': "}},
    {NULL, "x.reuse", CT_ERR_PLUGIN, {"'x.reuse' at", "stands in the tree already"}},
    {NULL, "x.out_of_bounds", CT_ERR_USAGE, {"'x.out_of_bounds' at", "'eps': "}},
    {NULL, "x.short", CT_ERR_PLUGIN, {"'ShortNorm' says it is a 'RMSNorm'", "bytes"}},
    {NULL, "x.moved", CT_ERR_PLUGIN, {"'MovedNorm' says it is a 'RMSNorm'", "'eps'"}},
    {NULL, "x.no_optimizer", CT_ERR_PLUGIN, {"OptimizersContainer.Config is read by the trainer", "'Stranger'"}},
    {NULL, "x.spec", CT_ERR_PLUGIN, {"ModelSpec.Config is read by the trainer"}},
};

static void each_wrong_use_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(refused); i++) {
        world w;
        open_world(&w);
        const ct_status st = apply(&w, refused[i].tokens);
        bool says_all = st == refused[i].status;
        for (size_t k = 0; k < N_OF(refused[i].ours) && refused[i].ours[k] != NULL; k++) {
            says_all = says_all && strstr(w.err.message, refused[i].ours[k]) != NULL;
        }
        if (!says_all) {
            fail_msg("%s (there: %s): status %d, '%s'", refused[i].tokens, refused[i].theirs != NULL ? refused[i].theirs : "-", (int)st, w.err.message);
        }
        close_world(&w);
    }
}

static void claims_are_checked_before_anything_changes(void **state)
{
    (void)state;
    world w;
    open_world(&w);
    ct_component *norm = ct_component_find(w.run.root, "model_spec.model.norm");
    assert_int_equal(apply(&w, "x.last_norm x.attention_norms x.silent"), CT_ERR_USAGE);
    assert_ptr_equal(ct_component_find(w.run.root, "model_spec.model.norm"), norm);
    close_world(&w);
    open_world(&w);
    norm = ct_component_find(w.run.root, "model_spec.model.layers.0.attention_norm");
    assert_int_equal(apply(&w, "x.attention_norms x.silent"), CT_ERR_UNSUPPORTED); /* a factory fails: none is put in */
    assert_ptr_equal(ct_component_find(w.run.root, "model_spec.model.layers.0.attention_norm"), norm);
    close_world(&w);
}

static void rows_are_checked_where_they_are_registered(void **state)
{
    (void)state;
    world w;
    open_world(&w);
    static const struct {
        ct_override row;
        const char *wanted;
    } wrong[] = {
        {{.name = "nodot", .target = &cti_rmsnorm_class, .factory = unchanged}, "plugin.name"},
        {{.name = NULL, .target = &cti_rmsnorm_class, .factory = unchanged}, "plugin.name"},
        {{.name = "x.new", .factory = unchanged}, "'x.new' has no target class"}, /* TypeError there */
        {{.name = "x.new", .target = &cti_rmsnorm_class}, "'x.new' has no factory"},
        {{.name = "x.norm", .target = &cti_rmsnorm_class, .factory = unchanged}, "'x.norm' is registered already"}, /* ValueError there */
    };
    for (size_t i = 0; i < N_OF(wrong); i++) {
        w.err = (ct_err){0};
        assert_int_equal(ct_registry_add_override(w.registry, &wrong[i].row, &w.err), CT_ERR_RANGE);
        if (strstr(w.err.message, wrong[i].wanted) == NULL) {
            fail_msg("%zu: '%s'", i, w.err.message);
        }
    }
    close_world(&w);
}

/* ---- what matches ------------------------------------------------------------------------------------------------- */

static const struct {
    const char *tokens;
    int64_t n_nodes;
    const char *line, *last; /* one of the lines, the last one; NULL: none */
    const char *warning;
} matched[] = {
    {"x.norm", 13, "[Override] x.norm: model_spec.model.layers.5.ffn_norm RMSNorm.Config -> PlainNorm.Config", "Applied 13 override(s)", NULL},
    {"x.last_norm={\"eps\":0.001}", 1, "[Override] x.last_norm: model_spec.model.norm RMSNorm.Config -> PlainNorm.Config with eps=0.001",
     "Applied 1 override(s)", NULL},
    {"x.attention_norms,x.last_norm", 7, "[Override] x.last_norm: model_spec.model.norm RMSNorm.Config -> PlainNorm.Config", "Applied 7 override(s)", NULL},
    {"x.norm_of_layer_1", 2, "[Override] x.norm_of_layer_1: model_spec.model.layers.1.ffn_norm RMSNorm.Config -> PlainNorm.Config",
     "Applied 2 override(s)", NULL},
    /* given back unchanged: counted and told all the same */
    {"x.block", 6, "[Override] x.block: model_spec.model.layers.0 Llama3TransformerBlock.Config -> Llama3TransformerBlock.Config",
     "Applied 6 override(s)", NULL},
    /* a matched list is not searched below */
    {"x.list", 2, "[Override] x.list: optimizer.param_groups list.Config -> list.Config", "Applied 2 override(s)", NULL},
    /* classes derived from the target too, unless exact */
    {"x.loaders={\"seed\":7}", 2, "[Override] x.loaders: validator.dataloader ValidationDataLoader.Config -> ValidationDataLoader.Config with seed=7",
     "Applied 2 override(s)", NULL},
    {"x.loader={\"seed\":7}", 1, "[Override] x.loader: dataloader HuggingFaceTextDataLoader.Config -> HuggingFaceTextDataLoader.Config with seed=7",
     "Applied 1 override(s)", NULL},
    {"x.validation={\"infinite\":false}", 1,
     "[Override] x.validation: validator.dataloader ValidationDataLoader.Config -> ValidationDataLoader.Config with infinite=False",
     "Applied 1 override(s)", NULL},
    {"x.optimizer={\"implementation\":\"fused_opt_states_bf16\"}", 1,
     "[Override] x.optimizer: optimizer OptimizersContainer.Config -> FastOptimizers.Config with implementation='fused_opt_states_bf16'",
     "Applied 1 override(s)", NULL},
    {"x.kwargs={\"betas\":[0.8,0.99],\"lr\":1e-05}", 1, "[Override] x.kwargs: optimizer.param_groups.0.optimizer_kwargs OptimizerKwargs.Config -> "
     "OptimizerKwargs.Config with betas=[0.8, 0.99], lr=1e-05", "Applied 1 override(s)", NULL},
    {"x.ac", 1, "[Override] x.ac: activation_checkpoint SelectiveAC.Config -> OtherFullAC.Config", "Applied 1 override(s)", NULL},
    {"x.loss={\"num_chunks\":3}", 1, "[Override] x.loss: loss ChunkedCELoss.Config -> ChunkedCELoss.Config with num_chunks=3", "Applied 1 override(s)", NULL},
    {"x.loss_fn={\"global_vocab_size\":null}", 1,
     "[Override] x.loss_fn: loss.loss_fn CrossEntropyLoss.Config -> CrossEntropyLoss.Config with global_vocab_size=None", "Applied 1 override(s)", NULL},
    {"x.checkpoint={\"folder\":\"it's~here\",\"exclude_from_loading\":[\"dataloader\",\"train_state\"]}", 1,
     "[Override] x.checkpoint: checkpoint CheckpointManager.Config -> CheckpointManager.Config with folder=\"it's here\", "
     "exclude_from_loading=['dataloader', 'train_state']", "Applied 1 override(s)", NULL},
    {"x.none", 0, NULL, NULL, "override.imports=['x.none'] produced no replacements"},
    {"x.none x.last_norm", 1, "[Override] x.last_norm: model_spec.model.norm RMSNorm.Config -> PlainNorm.Config", "Applied 1 override(s)",
     "override.imports=['x.none'] produced no replacements"},
    {"", 0, NULL, NULL, NULL},
};

static void overrides_find_their_nodes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(matched); i++) {
        world w;
        open_world(&w);
        if (apply(&w, matched[i].tokens) != CT_OK) {
            fail_msg("%s: %s", matched[i].tokens, w.err.message);
        }
        const cti_overrides_applied *a = &w.applied;
        bool has_line = matched[i].line == NULL && a->n_lines == 0;
        for (size_t k = 0; k < a->n_lines; k++) {
            has_line = has_line || (matched[i].line != NULL && strcmp(a->lines[k], matched[i].line) == 0);
        }
        const bool has_last = matched[i].last == NULL || (a->n_lines > 0 && strcmp(a->lines[a->n_lines - 1], matched[i].last) == 0);
        const bool warns = matched[i].warning == NULL ? a->warning == NULL : a->warning != NULL && strstr(a->warning, matched[i].warning) != NULL;
        if (a->n_nodes != matched[i].n_nodes || !has_line || !has_last || !warns) {
            fail_msg("%s: %lld nodes, first line '%s', warning '%s'", matched[i].tokens, (long long)a->n_nodes, a->n_lines > 0 ? a->lines[0] : "",
                     a->warning != NULL ? a->warning : "");
        }
        close_world(&w);
    }
}

static void the_trainer_reads_the_replacements(void **state)
{
    (void)state;
    world w;
    open_world(&w);
    assert_int_equal(apply(&w, "x.kwargs={\"lr\":0.25} x.metrics={\"log_freq\":7,\"enable_tensorboard\":true} x.loss={\"num_chunks\":3} x.training={\"steps\":5}"),
                     CT_OK);
    const cti_optimizer_kwargs_config *k = ct_component_values(ct_component_find(w.run.root, "optimizer.param_groups.0.optimizer_kwargs"));
    assert_true(k->lr > 0.2499 && k->lr < 0.2501);
    assert_int_equal(k->betas.n, 2); /* the rest is as it was */
    assert_int_equal(CTI_SECTION(w.run.root, "metrics", metrics)->log_freq, 7);
    assert_true(CTI_SECTION(w.run.root, "metrics", metrics)->enable_tensorboard);
    assert_int_equal(CTI_SECTION(w.run.root, "training", training)->steps, 5);
    const ct_component *metrics = ct_component_child(w.run.root, "metrics");
    const ct_field *field = ct_field_find(metrics->cls->fields, (size_t)metrics->cls->n_fields, "log_freq");
    assert_int_equal(metrics->sources[field - metrics->cls->fields], CT_SOURCE_OVERRIDE);
    assert_non_null(ct_component_find(w.run.root, "loss.loss_fn")); /* children come along */
    close_world(&w);
}

/* The order of the entries does not matter. */
static void order_does_not_matter(void **state)
{
    (void)state;
    static const char *const orders[] = {"x.attention_norms={\"eps\":0.5} x.last_norm={\"eps\":0.25} x.metrics={\"log_freq\":3}",
                                         "x.metrics={\"log_freq\":3} x.last_norm={\"eps\":0.25} x.attention_norms={\"eps\":0.5}"};
    double eps[2][2];
    for (int i = 0; i < 2; i++) {
        world w;
        open_world(&w);
        assert_int_equal(apply(&w, orders[i]), CT_OK);
        eps[i][0] = ((const cti_rmsnorm_config *)ct_component_values(ct_component_find(w.run.root, "model_spec.model.layers.3.attention_norm")))->eps;
        eps[i][1] = ((const cti_rmsnorm_config *)ct_component_values(ct_component_find(w.run.root, "model_spec.model.norm")))->eps;
        assert_int_equal(CTI_SECTION(w.run.root, "metrics", metrics)->log_freq, 3);
        close_world(&w);
    }
    assert_memory_equal(eps[0], eps[1], sizeof eps[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wrong_use_is_refused),
        cmocka_unit_test(claims_are_checked_before_anything_changes),
        cmocka_unit_test(rows_are_checked_where_they_are_registered),
        cmocka_unit_test(overrides_find_their_nodes),
        cmocka_unit_test(the_trainer_reads_the_replacements),
        cmocka_unit_test(order_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
