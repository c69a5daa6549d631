/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of the sections, and the tree of a run with every default. */
#include "config/config.h"

#include <string.h>

/* A table does not pass its struct's name on to its rows: one row macro per section; a missing one does not compile. */
/* clang-format off */
#define ROW_trainer(...) CT_FIELD_ROW_IN(cti_trainer_config, __VA_ARGS__)
#define ROW_profiler(...) CT_FIELD_ROW_IN(cti_profiler_config, __VA_ARGS__)
#define ROW_metrics(...) CT_FIELD_ROW_IN(cti_metrics_config, __VA_ARGS__)
#define ROW_tokenizer(...) CT_FIELD_ROW_IN(cti_tokenizer_config, __VA_ARGS__)
#define ROW_dataloader(...) CT_FIELD_ROW_IN(cti_dataloader_config, __VA_ARGS__)
#define ROW_optimizer(...) CT_FIELD_ROW_IN(cti_optimizer_config, __VA_ARGS__)
#define ROW_param_group(...) CT_FIELD_ROW_IN(cti_param_group_config, __VA_ARGS__)
#define ROW_optimizer_kwargs(...) CT_FIELD_ROW_IN(cti_optimizer_kwargs_config, __VA_ARGS__)
#define ROW_lr_scheduler(...) CT_FIELD_ROW_IN(cti_lr_scheduler_config, __VA_ARGS__)
#define ROW_training(...) CT_FIELD_ROW_IN(cti_training_config, __VA_ARGS__)
#define ROW_parallelism(...) CT_FIELD_ROW_IN(cti_parallelism_config, __VA_ARGS__)
#define ROW_checkpoint(...) CT_FIELD_ROW_IN(cti_checkpoint_config, __VA_ARGS__)
#define ROW_ac_selective(...) CT_FIELD_ROW_IN(cti_ac_selective_config, __VA_ARGS__)
#define ROW_ac_full(...) CT_FIELD_ROW_IN(cti_ac_full_config, __VA_ARGS__)
#define ROW_ac_memory_budget(...) CT_FIELD_ROW_IN(cti_ac_memory_budget_config, __VA_ARGS__)
#define ROW_compile(...) CT_FIELD_ROW_IN(cti_compile_config, __VA_ARGS__)
#define ROW_comm(...) CT_FIELD_ROW_IN(cti_comm_config, __VA_ARGS__)
#define ROW_validator(...) CT_FIELD_ROW_IN(cti_validator_config, __VA_ARGS__)
#define ROW_debug(...) CT_FIELD_ROW_IN(cti_debug_config, __VA_ARGS__)
#define ROW_override(...) CT_FIELD_ROW_IN(cti_override_config, __VA_ARGS__)
#define ROW_chunked_loss(...) CT_FIELD_ROW_IN(cti_chunked_loss_config, __VA_ARGS__)
#define ROW_cross_entropy(...) CT_FIELD_ROW_IN(cti_cross_entropy_config, __VA_ARGS__)
#define ROW_validator_dataloader(...) CT_FIELD_ROW_IN(cti_validator_dataloader_config, __VA_ARGS__)
/* clang-format on */

#define N_ROWS(id) ((int32_t)(sizeof id##_fields / sizeof id##_fields[0]))
#define SECTION_CLASS(id, name_, FIELDS)                                                                             \
    static const ct_field id##_fields[] = {FIELDS(ROW_##id)};                                                        \
    const ct_class cti_##id##_class = {                                                                              \
        .name = name_, .fields = id##_fields, .n_fields = N_ROWS(id), .values_bytes = sizeof(cti_##id##_config)};
CTI_SECTION_LIST(SECTION_CLASS)

static const ct_field validator_dataloader_fields[] = {CTI_VALIDATOR_DATALOADER_FIELDS(ROW_validator_dataloader)};
const ct_class cti_validator_dataloader_class = {.name = "ValidationDataLoader",
                                                 .base = &cti_dataloader_class,
                                                 .fields = validator_dataloader_fields,
                                                 .n_fields = N_ROWS(validator_dataloader),
                                                 .values_bytes = sizeof(cti_validator_dataloader_config)};
const ct_class cti_ac_none_class = {.name = "NoAC"};

const cti_ac_kind cti_ac_kinds[] = {{"selective", &cti_ac_selective_class},
                                    {"full", &cti_ac_full_class},
                                    {"memory-budget", &cti_ac_memory_budget_class},
                                    {"none", &cti_ac_none_class}};
const int cti_n_ac_kinds = (int)(sizeof cti_ac_kinds / sizeof cti_ac_kinds[0]);

static const ct_class *const section_classes[] = {
#define SECTION_ADDRESS(id, name, FIELDS) &cti_##id##_class,
    CTI_SECTION_LIST(SECTION_ADDRESS)
#undef SECTION_ADDRESS
    &cti_ac_none_class, &cti_validator_dataloader_class};

const ct_class *cti_section_class_at(size_t i)
{
    return i < sizeof section_classes / sizeof section_classes[0] ? section_classes[i] : NULL;
}

int cti_section_family(const ct_class *cls)
{
    for (size_t i = 0; i < sizeof section_classes / sizeof section_classes[0]; i++) {
        if (!ct_class_is_a(cls, section_classes[i])) {
            continue;
        }
        const ct_class *found = section_classes[i];
        for (int k = 0; k < cti_n_ac_kinds; k++) {
            if (found == cti_ac_kinds[k].cls) {
                return 1000;
            }
        }
        return found == &cti_chunked_loss_class || found == &cti_cross_entropy_class ? 1001 : (int)i;
    }
    return -1;
}

/* The sections in the order of --help. A parent stands before its children. */
static const struct {
    const char *parent, *name;
    const ct_class *cls;
} layout[] = {
    {"", "profiler", &cti_profiler_class},
    {"", "metrics", &cti_metrics_class},
    {"", "tokenizer", &cti_tokenizer_class},
    {"", "dataloader", &cti_dataloader_class},
    {"", "optimizer", &cti_optimizer_class},
    {"optimizer", "param_groups", &ct_class_list},
    {"optimizer.param_groups", "0", &cti_param_group_class},
    {"optimizer.param_groups.0", "optimizer_kwargs", &cti_optimizer_kwargs_class},
    {"", "lr_scheduler", &cti_lr_scheduler_class},
    {"", "training", &cti_training_class},
    {"", "parallelism", &cti_parallelism_class},
    {"", "checkpoint", &cti_checkpoint_class},
    {"", "activation_checkpoint", &cti_ac_none_class},
    {"", "compile", &cti_compile_class},
    {"", "comm", &cti_comm_class},
    {"", "validator", &cti_validator_class},
    {"validator", "dataloader", &cti_validator_dataloader_class},
    {"", "debug", &cti_debug_class},
    {"", "override", &cti_override_class},
    {"", "loss", &cti_chunked_loss_class},
    {"loss", "loss_fn", &cti_cross_entropy_class},
};

ct_status cti_trainer_create(ct_tree *tree, ct_component **out_root, ct_err *err)
{
    ct_component *root;
    CT_TRY(ct_component_create(tree, &cti_trainer_class, &root, err));
    for (size_t i = 0; i < sizeof layout / sizeof layout[0]; i++) {
        ct_component *parent = ct_component_find(root, layout[i].parent);
        ct_component *section;
        CT_ASSERT(parent != NULL);
        CT_TRY(ct_component_create(tree, layout[i].cls, &section, err));
        CT_TRY(ct_component_add(tree, parent, layout[i].name, section, err));
    }
    *out_root = root;
    return CT_OK;
}

ct_status cti_set_ac(ct_tree *tree, ct_component *root, const ct_class *cls, ct_err *err)
{
    ct_component *old = ct_component_child(root, "activation_checkpoint");
    ct_component *with;
    if (old != NULL && old->cls == cls) {
        return CT_OK;
    }
    CT_TRY(ct_component_create(tree, cls, &with, err));
    return old != NULL ? ct_component_replace(old, with, err)
                       : ct_component_add(tree, root, "activation_checkpoint", with, err);
}

ct_status cti_set_loss(ct_tree *tree, ct_component *root, const ct_class *cls, ct_err *err)
{
    ct_component *old = ct_component_child(root, "loss");
    if (old == NULL || old->cls == cls) {
        return CT_OK;
    }
    const ct_component *fn = ct_component_child(old, "loss_fn");
    ct_component *whole, *chunked;
    CT_TRY(ct_component_derive(tree, fn != NULL ? fn : old, &cti_cross_entropy_class, &whole, err));
    if (cls == &cti_cross_entropy_class) {
        return ct_component_replace(old, whole, err);
    }
    CT_TRY(ct_component_create(tree, cls, &chunked, err));
    CT_TRY(ct_component_add(tree, chunked, "loss_fn", whole, err));
    return ct_component_replace(old, chunked, err);
}

static ct_status mark_sources(ct_component *component, ct_arena *scratch, ct_err *err)
{
    const ct_class *cls = component->cls;
    void *usual = ct_arena_alloc(scratch, cls->values_bytes + 1, err);
    if (usual == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(ct_fields_default(cls->fields, (size_t)cls->n_fields, usual, scratch, err));
    for (int32_t i = 0; i < cls->n_fields; i++) {
        if (component->sources[i] == CT_SOURCE_DEFAULT &&
            !ct_field_equal(&cls->fields[i], component->values, usual)) {
            component->sources[i] = CT_SOURCE_REGISTRY;
        }
    }
    for (int32_t i = 0; i < component->n_children; i++) {
        CT_TRY(mark_sources(component->children[i], scratch, err));
    }
    return CT_OK;
}

ct_status cti_mark_registry_sources(ct_tree *tree, ct_component *root, ct_err *err)
{
    return mark_sources(root, ct_tree_arena(tree), err);
}

const void *cti_section_values(const ct_component *root, const char *path, const ct_class *cls)
{
    const ct_component *section = ct_component_find(root, path);
    CT_ASSERT(section != NULL && ct_class_is_a(section->cls, cls));
    return section->values;
}
