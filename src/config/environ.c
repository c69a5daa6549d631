/* SPDX-License-Identifier: Apache-2.0 */
/* Settings from the environment: CTITAN_ + the path in upper case, "__" for its dots.
 *
 *   CTITAN_TRAINING__STEPS=5   CTITAN_DUMP_FOLDER=/tmp/run   CTITAN_ACTIVATION_CHECKPOINT=full
 *
 * Lists are cut at blanks. A name with "__" that is no setting is a problem; one without may be another program's word
 * (CTITAN_PLUGIN_PATH) and is left alone unless it is a field of the root. */
#include <string.h>

#include "base/fields.h"
#include "config/config_internal.h"

static const char prefix[] = "CTITAN_";

/* The name up to '=' as a path: lower case, "__" -> ".". Arena's memory. */
static char *path_of(const char *name, size_t n, ct_arena *arena, ct_err *err)
{
    char *path = ct_arena_alloc(arena, n + 1, err);
    if (path == NULL) {
        return NULL;
    }
    char *out = path;
    for (size_t i = 0; i < n; i++) {
        if (name[i] == '_' && i + 1 < n && name[i + 1] == '_' && i > 0) {
            *out++ = '.';
            i++;
        } else {
            *out++ = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
        }
    }
    *out = '\0';
    return path;
}

static ct_status apply(ct_tree *tree, const cti_settings *settings, const char *given, const char *path,
                       const char *value, cti_problems *problems, ct_err *err)
{
    const cti_setting *setting = cti_settings_find(settings, path);
    if (setting == NULL && strchr(path, '.') == NULL) {
        return CT_OK;
    }
    if (setting == NULL || !setting->is_flag) {
        return cti_unknown_setting(tree, settings, given, path, CTI_AS_ENVIRON, problems, err);
    }
    cti_tokens tokens;
    ct_err why = {0};
    const ct_status st = cti_field_split(setting->field, value, ct_tree_arena(tree), &tokens, &why);
    if (st == CT_ERR_USAGE) {
        cti_problem_add(problems, "%s: %s", given, why.message);
        return CT_OK;
    }
    CT_TRY(st);
    return cti_setting_set_named(tree, settings, path, setting, given, tokens.items, tokens.n, CT_SOURCE_ENV, problems, err);
}

ct_status cti_environ_apply(ct_tree *tree, ct_component *root, const char *const *environ_list, cti_problems *problems,
                            ct_err *err)
{
    static const char ac[] = "CTITAN_ACTIVATION_CHECKPOINT=";
    for (size_t i = 0; environ_list != NULL && environ_list[i] != NULL; i++) {
        if (cti_starts_with(environ_list[i], ac)) { /* first: it decides which settings there are */
            const cti_ac_kind *kind =
                cti_ac_kind_find(environ_list[i] + sizeof ac - 1, "CTITAN_ACTIVATION_CHECKPOINT", problems);
            if (kind != NULL) {
                CT_TRY(cti_set_ac(tree, root, kind->cls, err));
            }
        }
    }
    cti_settings settings;
    CT_TRY(cti_settings_list(tree, root, &settings, err));
    for (size_t i = 0; environ_list != NULL && environ_list[i] != NULL; i++) {
        const char *entry = environ_list[i];
        const char *equals = strchr(entry, '=');
        if (!cti_starts_with(entry, prefix) || equals == NULL) {
            continue;
        }
        ct_arena *arena = ct_tree_arena(tree);
        const char *name = entry + sizeof prefix - 1;
        char *given = ct_arena_printf(arena, err, "%.*s", (int)(equals - entry), entry);
        char *path = path_of(name, (size_t)(equals - name), arena, err);
        if (given == NULL || path == NULL) {
            return CT_ERR_MEMORY;
        }
        CT_TRY(apply(tree, &settings, given, path, equals + 1, problems, err));
    }
    return cti_str_check(&problems->text, err);
}
