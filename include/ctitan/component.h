/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration tree: typed nodes (components) with field tables. Settings sections, model parts, optimizer, loss and
 * dataloader are all components; the command line is derived from the instantiated tree; overrides replace nodes of it.
 *
 *     ct_tree *tree;
 *     CT_TRY(ct_tree_create(alloc, &tree, err));
 *     ct_component *root, *training;
 *     CT_TRY(ct_component_create(tree, &cti_trainer_class, &root, err));
 *     CT_TRY(ct_component_create(tree, &cti_training_class, &training, err));      // fields hold the class's defaults
 *     ((ct_training_config *)training->values)->steps = 10;
 *     CT_TRY(ct_component_add(tree, root, "training", training, err));
 *     const ct_training_config *t = ct_component_values(ct_component_find(root, "training"));
 *     ct_tree_destroy(&tree);
 */
#ifndef CTITAN_COMPONENT_H
#define CTITAN_COMPONENT_H

#include <stdbool.h>

#include "ctitan/field.h"
#include "ctitan/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ct_component ct_component;
typedef struct ct_class ct_class;
typedef struct ct_tree ct_tree;
typedef struct ct_build ct_build;

/* Where a value came from, lowest precedence first. */
#define CT_SOURCE_LIST(X) X(DEFAULT, default) X(REGISTRY, registry) X(BASE, base) X(FILE, file) X(ENV, env) X(FLAG, flag) \
    X(OVERRIDE, override)
typedef enum ct_source {
#define CT_SOURCE_ENUM(NAME, name) CT_SOURCE_##NAME,
    CT_SOURCE_LIST(CT_SOURCE_ENUM)
#undef CT_SOURCE_ENUM
        CT_SOURCE_COUNT
} ct_source;

/* Static storage, one per class. */
struct ct_class {
    const char *name;      /* "GQAttention"; printed as "GQAttention.Config" */
    const ct_class *base;  /* an override of `base` also matches this class (unless exact); NULL: none */
    const ct_field *fields;
    int32_t n_fields;
    size_t values_bytes;
    /* Checks across fields; NULL: none. ERR_USAGE with one sentence that names the fields. */
    ct_status (*check)(const ct_component *self, ct_err *err);
    /* Emits the component's ops. in/out as the class's header says; NULL for what has no ops (sections). */
    ct_status (*build)(const ct_component *self, ct_build *build, const ct_value_id *in, int32_t n_in, ct_value_id *out,
                       int32_t n_out, ct_err *err);
};

struct ct_component {
    const ct_class *cls;
    void *values;            /* cls->values_bytes, the tree's */
    uint8_t *sources;        /* ct_source of each field, the tree's */
    const char **origins;    /* of a field that a file set: "my.yaml:12"; NULL: of none. The tree's */
    const char *name;        /* in its parent: "attention", "0"; "" for the root */
    ct_component *parent;
    ct_component **children; /* the tree's */
    int32_t n_children;
    bool is_hidden;          /* this node and all below are not in --help (the parts of a model), but can be set */
};

CT_MUST_CHECK ct_status ct_tree_create(const ct_alloc *alloc, ct_tree **out_tree, ct_err *err);
void ct_tree_destroy(ct_tree **tree);
ct_arena *ct_tree_arena(ct_tree *tree);

CT_MUST_CHECK ct_status ct_component_create(ct_tree *tree, const ct_class *cls, ct_component **out_component, ct_err *err);
/* A container without fields (a list such as `layers`, or a namespace): class `ct_class_list`. */
extern const ct_class ct_class_list;
CT_MUST_CHECK ct_status ct_component_add(ct_tree *tree, ct_component *parent, const char *name, ct_component *child,
                                         ct_err *err); /* ERR_RANGE where the name is taken */
/* Puts `with` at `old`'s place in its parent; old's subtree is dropped. ERR_RANGE for the root. */
CT_MUST_CHECK ct_status ct_component_replace(ct_component *old, ct_component *with, ct_err *err);
/* By dotted path relative to `from` ('-' counts as '_'); NULL where there is none. "" is `from` itself. */
ct_component *ct_component_find(const ct_component *from, const char *path);
ct_component *ct_component_child(const ct_component *parent, const char *name);
const void *ct_component_values(const ct_component *component); /* NULL for NULL */
bool ct_class_is_a(const ct_class *cls, const ct_class *base);
/* Full path from the root, "model_spec.model.layers.0.attention". Tree arena's memory. */
const char *ct_component_fqn(ct_tree *tree, const ct_component *component, ct_err *err);
/* Sets a field by name from text, recording the source. */
CT_MUST_CHECK ct_status ct_component_set(ct_tree *tree, ct_component *component, const char *field,
                                         const char *const *tokens, size_t n_tokens, ct_source source, ct_err *err);
/* Sets fields by name from a JSON object, {"eps": 1e-6, "sizes": [1, 2]}: what stands behind '=' in override.imports. Source OVERRIDE. ERR_USAGE
 * for a key that is no field (with the nearest), a value of another kind, out of bounds, or JSON that is no object. */
CT_MUST_CHECK ct_status ct_component_set_json(ct_tree *tree, ct_component *component, const char *args_json, ct_err *err);
/* A new component of class `cls` with the fields that both classes have by name and kind copied from `src`, and src's
 * children shared by name (overrides' way to make a replacement). */
CT_MUST_CHECK ct_status ct_component_derive(ct_tree *tree, const ct_component *src, const ct_class *cls,
                                            ct_component **out_component, ct_err *err);

/* ---- building ops -------------------------------------------------------------------------------------------- */

typedef enum ct_build_mode { CT_BUILD_TRAIN, CT_BUILD_EVAL, CT_BUILD_PREFILL, CT_BUILD_DECODE } ct_build_mode;

typedef enum ct_init_kind { CT_INIT_CONST, CT_INIT_NORMAL, CT_INIT_TRUNC_NORMAL } ct_init_kind;
typedef struct ct_init {
    ct_init_kind kind;
    double value;     /* CONST */
    double std;       /* mean 0 */
    double low, high; /* TRUNC_NORMAL: absolute cut-offs */
} ct_init;

/* Fills a CONST value on the host, n elements of f32. */
typedef ct_status (*ct_const_fn)(const ct_component *self, float *data, int64_t n, ct_err *err);

typedef struct ct_param {
    const char *name; /* dotted, relative to the model: "layers.0.attention.wo.weight" */
    ct_value_id value;
    int32_t ndim;
    int64_t dims[CT_MAX_NDIM];
    ct_init init;
    int32_t part, n_parts; /* n_parts above 1: `value` is so many parameters, one below the other, and this is number `part` of them */
} ct_param;
typedef struct ct_const {
    const char *name;
    ct_value_id value;
    const ct_component *component;
    ct_const_fn fill;
} ct_const;

/* What a component sees while it emits. Values are on global shapes; no component knows how many ranks there are. */
struct ct_build {
    ct_graph *graph;
    ct_build_mode mode;
    ct_dtype param_dtype; /* training.dtype */
    int64_t batch, seq_len; /* rows and tokens a row of one micro-batch (global); PREFILL/DECODE: 1 row */
    int64_t cache_len;      /* PREFILL/DECODE: tokens a KV cache holds */
    /* inputs, all i32: */
    ct_value_id tokens;     /* [B, S] */
    ct_value_id labels;     /* [B, S]; TRAIN, EVAL */
    ct_value_id positions;  /* [B, S], within the document */
    ct_value_id segments;   /* [B*S, 4] in tokens of the flattened micro-batch */
    ct_value_id n_segments; /* [1] */
    ct_value_id cache_start; /* [1]; PREFILL, DECODE: first row of the KV caches that this call writes */
    ct_value_id inv_tokens; /* f32 [1]: 1 / valid tokens of the whole step */
    /* filled while building: */
    ct_param *params; /* owned by the build's arena (the graph's) */
    int32_t n_params, cap_params;
    ct_const *consts;
    int32_t n_consts, cap_consts;
};

/* Calls child->cls->build within the scope child->name. */
CT_MUST_CHECK ct_status ct_build_child(ct_build *build, const ct_component *parent, const char *child,
                                       const ct_value_id *in, int32_t n_in, ct_value_id *out, int32_t n_out, ct_err *err);
/* Declares the parameter "<scope>.<name>"; a second declaration of the same name and dims gives the first's value (tied
 * weights name it whole with a leading '/'). */
CT_MUST_CHECK ct_status ct_build_param(ct_build *build, const char *name, const int64_t *dims, int32_t ndim,
                                       const ct_init *init, ct_value_id *out_value, ct_err *err);
/* One value "<scope>.<name>" of n (2 to 255) parameters of equal dims, one below the other along dim 0. They were declared directly after
 * each other, and no op reads them; from here on none may. To everything that is not an op they stay what they were: names, first values,
 * checkpoints, optimizers and their states are theirs alone, and tensor parallelism cuts the rows of each for itself.
 * ERR_STATE where they were not declared so, are read, or are joined already; ERR_SHAPE where their dims differ. */
CT_MUST_CHECK ct_status ct_build_join(ct_build *build, const char *name, const ct_value_id *params, int32_t n, ct_value_id *out_value,
                                      ct_err *err);
/* Declares the f32 constant `name` (whole name, shared by all who declare it with the same dims). */
CT_MUST_CHECK ct_status ct_build_const(ct_build *build, const char *name, const int64_t *dims, int32_t ndim,
                                       const ct_component *self, ct_const_fn fill, ct_value_id *out_value, ct_err *err);
/* Declares the state "<scope>.<name>" (KV caches). */
CT_MUST_CHECK ct_status ct_build_state(ct_build *build, const char *name, ct_dtype dtype, const int64_t *dims, int32_t ndim,
                                       ct_value_id *out_value, ct_err *err);

/* ---- registry: what names on the command line mean ------------------------------------------------------------- */

typedef struct ct_registry ct_registry;

/* Makes the whole tree of a run ("llama3", "llama3_debugmodel"): root of class Trainer with its sections. */
typedef ct_status (*ct_config_fn)(ct_tree *tree, ct_component **out_root, ct_err *err);

/* args_json: the JSON object given on the command line, "{}" where none. Usual: ct_component_derive, then ct_component_set_json, which
 * refuses unknown keys. The replacement of a section (optimizer, loss, dataloader, metrics …) is read by the trainer, so its class must be the
 * section's or have it as `base`, with the same fields in the same places; so must any class that names a base. *out may be `matched` itself (counted and logged all the same). */
typedef ct_status (*ct_override_fn)(ct_tree *tree, ct_component *matched, const char *args_json, ct_component **out,
                                    ct_err *err);
typedef struct ct_override {
    const char *name;           /* "npu_compat.npu_attention" */
    const ct_class *target;
    const char *const *fqns;    /* shell globs over full paths; NULL: every node of the class */
    int32_t n_fqns;
    bool is_exact;
    const char *description;
    ct_override_fn factory;
} ct_override;

CT_MUST_CHECK ct_status ct_registry_create(const ct_alloc *alloc, ct_registry **out_registry, ct_err *err);
void ct_registry_destroy(ct_registry **registry);
/* refusal: not NULL where the name exists upstream but not here yet; using it then fails with this reason. */
CT_MUST_CHECK ct_status ct_registry_add_config(ct_registry *registry, const char *module, const char *config,
                                               ct_config_fn make, const char *refusal, ct_err *err);
/* A registry function that is another one with changes. `change` sets fields (ct_component_set with CT_SOURCE_REGISTRY) or replaces parts of
 * the tree that the base made; where it changes the sizes of the model (fields of model_spec), the model's parts are built anew after it. */
typedef ct_status (*ct_change_fn)(ct_tree *tree, ct_component *root, ct_err *err);
CT_MUST_CHECK ct_status ct_registry_add_variant(ct_registry *registry, const char *module, const char *config, const char *base_module,
                                                const char *base_config, ct_change_fn change, ct_err *err);
CT_MUST_CHECK ct_status ct_registry_add_override(ct_registry *registry, const ct_override *override_row, ct_err *err);
/* ERR_RANGE naming the class and what is wrong with its table of fields, or that its name is taken. Not copied. */
CT_MUST_CHECK ct_status ct_registry_add_class(ct_registry *registry, const ct_class *cls, ct_err *err);
const ct_class *ct_registry_class(const ct_registry *registry, const char *name);

#ifdef __cplusplus
}
#endif
#endif
