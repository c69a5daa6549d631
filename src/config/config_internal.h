/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of config. */
#ifndef CTI_CONFIG_INTERNAL_H
#define CTI_CONFIG_INTERNAL_H

#include "config/config.h"

const ct_alloc *cti_tree_alloc(const ct_tree *tree);

/* What users of older or other releases write, and what it is called now; NULL where we know nothing of it. */
const char *cti_moved_flag(const char *path);
/* Adds "<given>: unknown flag …" with the nearest name, spelt as `form` has it. */
typedef enum cti_name_form { CTI_AS_FLAG, CTI_AS_ENVIRON, CTI_AS_KEY } cti_name_form;
CT_MUST_CHECK ct_status cti_unknown_setting(ct_tree *tree, const cti_settings *settings, const char *given,
                                            const char *path, cti_name_form form, cti_problems *problems, ct_err *err);
/* "optimizer.lr" -> the long path that it stands for; NULL where it is no short name. */
const char *cti_alias_path(const char *path);
/* Short names of the optimizer's settings stand for those of every param group: the long path of group i; false where `whole` is none of a
 * group or has no room in buf. */
bool cti_alias_group_path(const char *whole, int32_t i, char *buf, size_t size);
/* Whether groups have different values of `field`; then a problem was added: one value for all would undo what was set on purpose. */
typedef struct cti_alias_group {
    ct_component *component; /* that has the field */
} cti_alias_group;
bool cti_alias_groups_differ(const cti_alias_group *groups, int32_t n, const ct_field *field, const char *given, cti_problems *problems);
/* As cti_setting_set; path: the name that was asked for, which may be a short one of all groups. */
CT_MUST_CHECK ct_status cti_setting_set_named(ct_tree *tree, const cti_settings *settings, const char *path, const cti_setting *setting,
                                              const char *given, const char *const *tokens, size_t n_tokens, ct_source source,
                                              cti_problems *problems, ct_err *err);
/* Notes that a value of `field` was refused: the checks leave it alone. */
void cti_problem_refused(cti_problems *problems, const ct_field *field);
/* "CTITAN_TRAINING__STEPS". Arena's memory. */
const char *cti_environ_name(ct_arena *arena, const char *path, ct_err *err);
/* The kind of activation checkpointing of this name ('_' counts as '-'); NULL where there is none, then a problem was added. */
const cti_ac_kind *cti_ac_kind_find(const char *name, const char *given, cti_problems *problems);
/* Sets one setting; a refused value becomes the problem "<given>: <why>". Only ERR_MEMORY comes back. */
CT_MUST_CHECK ct_status cti_setting_set(ct_tree *tree, const cti_setting *setting, const char *given,
                                        const char *const *tokens, size_t n_tokens, ct_source source,
                                        cti_problems *problems, ct_err *err);

#endif
