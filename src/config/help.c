/* SPDX-License-Identifier: Apache-2.0 */
/* --help: every flag of the tree, by section, wrapped to the terminal's width. */
#include <string.h>

#include "config/config_internal.h"

enum { MIN_WIDTH = 40, TEXT_INDENT = 6 };

/* Words of `text`, wrapped, each line indented. */
static void add_wrapped(cti_str *out, const char *text, int width)
{
    int column = 0;
    while (*text != '\0') {
        const size_t blanks = strspn(text, " ");
        text += blanks;
        const size_t n = strcspn(text, " ");
        if (n == 0) {
            break;
        }
        if (column == 0 || column + 1 + (int)n > width) {
            cti_str_printf(out, "%s%*s", column == 0 ? "" : "\n", TEXT_INDENT, "");
            column = TEXT_INDENT;
        } else {
            cti_str_add_char(out, ' ');
            column++;
        }
        cti_str_add_n(out, text, n);
        column += (int)n;
        text += n;
    }
    cti_str_add_char(out, '\n');
}

/* "--a.b, --a.no-b" or "--a.b INT". */
static ct_status add_flag(ct_arena *arena, const cti_setting *s, cti_str *out, ct_err *err)
{
    const char *flag = cti_flag_name(arena, s->path, err);
    const char *metavar = cti_setting_metavar(s, arena, err);
    if (flag == NULL || metavar == NULL) {
        return CT_ERR_MEMORY;
    }
    if (s->field->kind != CT_FIELD_BOOL) {
        cti_str_printf(out, "  %s %s\n", flag, metavar);
        return CT_OK;
    }
    const char *dot = strrchr(flag, '.');
    const int head = dot != NULL ? (int)(dot + 1 - flag) : 2;
    cti_str_printf(out, "  %s, %.*sno-%s\n", flag, head, flag, flag + head);
    return CT_OK;
}

static ct_status add_setting(ct_arena *arena, const cti_setting *s, int width, cti_str *out, ct_err *err)
{
    const ct_field *f = s->field;
    const char *value = ct_field_text(f, s->component->values, arena, err);
    if (value == NULL) {
        return CT_ERR_MEMORY;
    }
    const char *gap = f->unit[0] != '\0' && strcmp(value, "None") != 0 ? " " : "";
    const char *unit = gap[0] != '\0' ? f->unit : "";
    const char *text =
        ct_arena_printf(arena, err, "%s%s%s (default: %s%s%s)", f->help, f->refusal != NULL ? "; " : "",
                        f->refusal != NULL ? f->refusal : "", value[0] != '\0' ? value : "empty", gap, unit);
    if (text == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(add_flag(arena, s, out, err));
    add_wrapped(out, text, width);
    return CT_OK;
}

ct_status cti_help(ct_tree *tree, ct_component *root, const char *program, int width, cti_str *out, ct_err *err)
{
    ct_arena *arena = ct_tree_arena(tree);
    cti_settings settings;
    CT_TRY(cti_settings_list(tree, root, &settings, err));
    width = width < MIN_WIDTH ? MIN_WIDTH : width;
    cti_str_printf(out,
                   "usage: %s [-h] --module MODULE --config CONFIG [FLAGS] [activation-checkpoint:KIND]\n"
                   "       %s [-h] --config FILE.yaml [FLAGS] [activation-checkpoint:KIND]\n\n",
                   program, program);
    cti_str_add(out, "  --module MODULE --config CONFIG\n");
    add_wrapped(out, "the run's registry function, such as llama3 and llama3_debugmodel; it sets the defaults below", width);
    cti_str_add(out, "  --config FILE.yaml\n");
    add_wrapped(out, "a file of settings (.yaml, .yml, .json, or a path with a '/'), whose `base:` names the registry function or another file",
                width);
    cti_str_add(out, "  activation-checkpoint:{selective,full,memory-budget,none}\n");
    add_wrapped(out, "what is recomputed in backward instead of kept; its flags are those of activation-checkpoint below (of another kind: name "
                "it before --help)", width);
    const ct_component *section = NULL;
    for (size_t i = 0; i < settings.n; i++) {
        const cti_setting *s = &settings.items[i];
        if (!s->is_flag || !s->is_listed) {
            continue;
        }
        if (s->component != section) {
            section = s->component;
            const char *fqn = ct_component_fqn(tree, section, err);
            const char *flag = fqn != NULL ? cti_flag_name(arena, fqn, err) : NULL;
            if (flag == NULL) {
                return CT_ERR_MEMORY;
            }
            cti_str_printf(out, "\n%s%soptions:\n", flag + 2, flag[2] != '\0' ? " " : "");
        }
        CT_TRY(add_setting(arena, s, width, out, err));
    }
    return cti_str_check(out, err);
}
