/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan completion bash|zsh`: a script that completes commands, flags, their values, registry functions and files. Lists come from the
 * tables; flags of the small commands from what their --help says at that moment. */
#include "cli/cmd_completion.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"

/* What both shells use. `_ctitan_value FLAG` prints the words that may follow, or one of <file>, <flag> (it takes none) and <any>. */
static const char common_tail[] =
    "_ctitan_own_flags() { # COMMAND: those that its --help begins lines with\n"
    "    command \"$1\" \"$2\" --help 2>/dev/null | sed -nE 's/^ *(--[a-z][a-z0-9._-]*).*/\\1/p' | tr '_\\n' '- '\n"
    "}\n"
    "_ctitan_words() { # PROGRAM COMMAND: what may stand where no value is wanted\n"
    "    case $2 in\n"
    "    train | config) echo \"$_ctitan_flags --all --json --yaml $_ctitan_kinds\" ;;\n"
    "    run | plan) echo \"$(_ctitan_own_flags \"$1\" \"$2\") -m torchtitan.train $_ctitan_flags $_ctitan_kinds\" ;;\n"
    "    completion) echo 'bash zsh' ;;\n"
    "    *) _ctitan_own_flags \"$1\" \"$2\" ;;\n"
    "    esac\n"
    "}\n";

static const char bash_tail[] =
    "_ctitan() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} program=${COMP_WORDS[0]} command=${COMP_WORDS[1]} flag= words=\n"
    "    COMPREPLY=()\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        COMPREPLY=($(compgen -W \"$_ctitan_commands\" -- \"$cur\"))\n"
    "        return\n"
    "    fi\n"
    "    # bash cuts words at = and :\n"
    "    if [[ $cur == [=:] ]]; then\n"
    "        flag=$before$cur cur=\n"
    "    elif [[ $before == [=:] ]]; then\n"
    "        flag=${COMP_WORDS[COMP_CWORD-2]}$before\n"
    "    elif [[ $before == --* && $cur != -* ]]; then\n"
    "        flag=$before\n"
    "    fi\n"
    "    case $flag in\n"
    "    activation?checkpoint:) words=${_ctitan_kinds//activation-checkpoint:/} ;;\n"
    "    ?*)\n"
    "        words=$(_ctitan_value \"${flag%=}\")\n"
    "        [[ $words == '<flag>' && $flag == *= ]] && words='true false'\n"
    "        ;;\n"
    "    *) words='<flag>' ;;\n"
    "    esac\n"
    "    [[ $words == '<flag>' ]] && words=$(_ctitan_words \"$program\" \"$command\")\n"
    "    if [[ \" $words \" == *' <file> '* ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        words=${words/<file>/}\n"
    "        local IFS=$'\\n'\n"
    "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "        IFS=$' \\t\\n'\n"
    "    fi\n"
    "    COMPREPLY+=($(compgen -W \"${words/<any>/}\" -- \"$cur\"))\n"
    "}\n"
    "complete -F _ctitan " CTI_PROGRAM "\n";

static const char zsh_tail[] =
    "_ctitan() {\n"
    "    local cur=${words[CURRENT]} flag= list=\n"
    "    if ((CURRENT == 2)); then\n"
    "        compadd -- ${=_ctitan_commands}\n"
    "        return\n"
    "    fi\n"
    "    if [[ $cur == --*=* ]]; then\n"
    "        flag=${cur%%=*}\n"
    "        compset -P '*='\n"
    "        list=$(_ctitan_value $flag)\n"
    "        [[ $list == '<flag>' ]] && list='true false'\n"
    "    elif [[ ${words[CURRENT-1]} == --* && $cur != -* ]]; then\n"
    "        list=$(_ctitan_value ${words[CURRENT-1]})\n"
    "    else\n"
    "        list='<flag>'\n"
    "    fi\n"
    "    [[ $list == '<flag>' ]] && list=$(_ctitan_words ${words[1]} ${words[2]})\n"
    "    [[ \" $list \" == *' <file> '* ]] && _files\n"
    "    list=${${list/<file>/}/<any>/}\n"
    "    compadd -- ${=list}\n"
    "}\n"
    "compdef _ctitan " CTI_PROGRAM "\n";

typedef struct list {
    cti_str *out;
    ct_tree *tree;
    ct_arena *arena;
    ct_err *err;
} list;

static bool is_file_name(const char *name)
{
    static const char *const ends[] = {"_path", "_folder", "_file", "_csv", "dump_graph", "sources"};
    bool is = false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        is = is || cti_ends_with(name, ends[i]);
    }
    return is;
}

/* "--a.b --a.no-b" */
static ct_status add_flags(list *l, const cti_settings *settings)
{
    for (size_t i = 0; i < settings->n; i++) {
        const cti_setting *s = &settings->items[i];
        if (!s->is_flag || !s->is_listed) {
            continue;
        }
        const char *flag = cti_flag_name(l->arena, s->path, l->err);
        if (flag == NULL) {
            return CT_ERR_MEMORY;
        }
        cti_str_printf(l->out, "%s ", flag);
        if (s->field->kind == CT_FIELD_BOOL) {
            const char *dot = strrchr(flag, '.');
            const int head = dot != NULL ? (int)(dot + 1 - flag) : 2;
            cti_str_printf(l->out, "%.*sno-%s ", head, flag, flag + head);
        }
    }
    return CT_OK;
}

/* One line of a case: "--a.b) echo 'x y' ;;"; nothing for a value that cannot be guessed. */
static ct_status add_values(list *l, const cti_settings *settings)
{
    for (size_t i = 0; i < settings->n; i++) {
        const cti_setting *s = &settings->items[i];
        const char *flag = s->is_flag && s->is_listed ? cti_flag_name(l->arena, s->path, l->err) : "";
        if (flag == NULL) {
            return CT_ERR_MEMORY;
        }
        if (flag[0] == '\0') {
            continue;
        }
        if (s->field->kind == CT_FIELD_BOOL) {
            cti_str_printf(l->out, "    %s) echo '<flag>' ;;\n", flag);
        } else if (s->field->kind == CT_FIELD_CHOICE) {
            cti_str_printf(l->out, "    %s) echo '", flag);
            for (const char *p = s->field->choices; *p != '\0'; p++) {
                cti_str_add_char(l->out, *p == '|' ? ' ' : *p);
            }
            cti_str_add(l->out, "' ;;\n");
        } else if (is_file_name(s->field->name)) {
            cti_str_printf(l->out, "    %s) echo '<file>' ;;\n", flag);
        }
    }
    return CT_OK;
}

/* Modules and registry functions that can be used, each once. */
static void add_registry(cti_str *out, const ct_registry *registry, bool modules)
{
    const char *module, *config, *refusal, *before = "";
    for (size_t i = 0; cti_registry_config_at(registry, i, &module, &config, &refusal); i++) {
        if (refusal == NULL && !(modules && cti_str_eq(module, before))) {
            cti_str_printf(out, "%s ", modules ? module : config);
            before = module;
        }
    }
}

/* The flags of every kind of activation checkpointing: the tree is of one kind at a time. */
static ct_status for_each_kind(list *l, ct_component *root, ct_status (*add)(list *l, const cti_settings *settings))
{
    for (int i = 0; i < cti_n_ac_kinds; i++) {
        cti_settings settings;
        size_t from = 0;
        CT_TRY(cti_set_ac(l->tree, root, cti_ac_kinds[i].cls, l->err));
        CT_TRY(cti_settings_list(l->tree, root, &settings, l->err));
        const cti_settings all = settings;
        if (i > 0) { /* the section alone */
            while (from < all.n && !cti_starts_with(all.items[from].path, "activation_checkpoint.")) {
                from++;
            }
            settings.items += from;
            settings.n = 0;
            while (from + settings.n < all.n && cti_starts_with(settings.items[settings.n].path, "activation_checkpoint.")) {
                settings.n++;
            }
        }
        CT_TRY(add(l, &settings));
    }
    return CT_OK;
}

static ct_status write_script(list *l, ct_component *root, const ct_registry *registry, bool is_zsh)
{
    const char *name, *what;
    cti_str *out = l->out;
    cti_str_printf(out, is_zsh ? "#compdef " CTI_PROGRAM "\n# eval \"$(" CTI_PROGRAM " completion zsh)\" after compinit, or save it as _" CTI_PROGRAM
                                 " in a folder of fpath.\n"
                               : "# eval \"$(" CTI_PROGRAM " completion bash)\", or save it where bash looks for completions.\n");
    cti_str_add(out, "_ctitan_commands='");
    for (size_t i = 0; cti_command_at(i, &name, &what); i++) {
        cti_str_printf(out, "%s ", name);
    }
    cti_str_add(out, "--help --version'\n_ctitan_kinds='");
    for (int i = 0; i < cti_n_ac_kinds; i++) {
        cti_str_printf(out, "activation-checkpoint:%s%s", cti_ac_kinds[i].name, i + 1 < cti_n_ac_kinds ? " " : "'\n");
    }
    cti_str_add(out, "_ctitan_flags='");
    CT_TRY(for_each_kind(l, root, add_flags));
    const char *whole;
    for (size_t i = 0; cti_alias_at(i, &name, &whole); i++) {
        const char *flag = cti_flag_name(l->arena, name, l->err);
        if (flag == NULL) {
            return CT_ERR_MEMORY;
        }
        cti_str_printf(out, "%s ", flag);
    }
    cti_str_add(out, "--module --config --help'\n_ctitan_value() {\n    case $(echo \"$1\" | tr _ -) in\n    --module) echo '");
    add_registry(out, registry, true);
    cti_str_add(out, "' ;;\n    --config) echo '");
    add_registry(out, registry, false);
    cti_str_add(out, "<file>' ;;\n    --help | --all | --json | --yaml | *.no-* | --no-*) echo '<flag>' ;;\n"
                     /* options of the small commands */
                     "    --chat | --ignore-eos | --echo | --json-lines | --run-overrides | --text) echo '<flag>' ;;\n"
                     "    --checkpoint | --prompts | --messages | --chat-template | --output | --out | --local-dir | --log-dir) echo '<file>' ;;\n"
                     "    --dtype) echo 'float32 bfloat16' ;;\n");
    CT_TRY(for_each_kind(l, root, add_values));
    cti_str_add(out, "    *) echo '<any>' ;;\n    esac\n}\n");
    cti_str_add(out, common_tail);
    cti_str_add(out, is_zsh ? zsh_tail : bash_tail);
    return cti_str_check(out, l->err);
}

int cti_cmd_completion(int argc, char **argv)
{
    static const char usage[] = "usage: " CTI_PROGRAM " completion bash|zsh\n\nPrints a script that completes commands, flags, values and files:\n\n"
                                "  eval \"$(" CTI_PROGRAM " completion bash)\"\n";
    const ct_alloc *alloc = ct_alloc_system();
    if (argc == 2 && (cti_str_eq(argv[1], "--help") || cti_str_eq(argv[1], "-h"))) {
        return fputs(usage, stdout) < 0;
    }
    if (argc != 2 || (!cti_str_eq(argv[1], "bash") && !cti_str_eq(argv[1], "zsh"))) {
        fputs(usage, stderr);
        fprintf(stderr, CTI_PROGRAM " completion: wanted bash or zsh, found %s%s%s\n", argc == 2 ? "'" : "", argc == 2 ? argv[1] : argc < 2 ? "nothing" : "more than one word", argc == 2 ? "'" : "");
        return 2;
    }
    ct_err err = {0};
    cti_env env = {0};
    cti_str text = {.alloc = alloc};
    cti_problems problems = {.text = {.alloc = alloc}};
    cti_run_config run = {0};
    ct_status st;
    const char *args[] = {"--module", "llama3", "--config", "llama3_debugmodel"};
    const cti_resolve_options options = {.argc = 4, .argv = args};
    CT_TRY_GOTO(st, cti_env_create(alloc, &env, &err), out);
    CT_TRY_GOTO(st, cti_run_config_resolve(alloc, env.registry, NULL, &options, &problems, &run, &err), out);
    list l = {&text, run.tree, ct_tree_arena(run.tree), &err};
    CT_TRY_GOTO(st, write_script(&l, run.root, env.registry, argv[1][0] == 'z'), out);
    if (fputs(cti_str_text(&text), stdout) < 0 || fflush(stdout) != 0) {
        st = CT_FAIL(&err, CT_ERR_IO, "standard output cannot be written");
    }
out:;
    const int code = st == CT_OK ? 0 : cti_report("completion", st, &err);
    cti_run_config_deinit(&run);
    cti_problems_deinit(&problems);
    cti_str_deinit(&text);
    cti_env_deinit(alloc, &env);
    return code;
}
