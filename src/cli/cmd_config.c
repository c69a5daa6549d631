/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan config`: resolves the settings as `ctitan train` would, and prints them: a line each with its source (--all: those of the
 * model's parts too), as JSON with sources, or as a YAML file that --config takes back. Settings that fail a check are printed too, with
 * the problems on stderr and exit code 2. */
#include "cli/cmd_config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "cli/cli.h"

extern char **environ;

/* A whole number of the environment; `otherwise` where it is absent or none. */
static int64_t number_from_env(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    int64_t value;
    return text != NULL && cti_parse_i64(text, &value) ? value : otherwise;
}

static ct_status put_out(const char *text, ct_err *err)
{
    if (fputs(text, stdout) < 0 || fflush(stdout) != 0) {
        return CT_FAIL(err, CT_ERR_IO, "standard output cannot be written");
    }
    return CT_OK;
}

typedef enum form { FORM_TEXT, FORM_ALL, FORM_JSON, FORM_YAML } form;

static ct_status print_yaml(const ct_alloc *alloc, cti_run_config *run, ct_err *err)
{
    cti_str text = {.alloc = alloc};
    ct_status st = cti_run_config_yaml(run, &text, err);
    if (st == CT_OK) {
        st = put_out(cti_str_text(&text), err);
    }
    cti_str_deinit(&text);
    return st;
}

static ct_status print_json(const ct_alloc *alloc, cti_run_config *run, ct_err *err)
{
    json_t *json = NULL;
    char *text = NULL;
    CT_TRY(cti_config_json_sources(run->tree, run->root, &json, err));
    ct_status st = cti_json_dump(alloc, json, 2, &text, err);
    json_decref(json);
    if (st == CT_OK) {
        st = put_out(text, err);
        st = st == CT_OK && !cti_ends_with(text, "\n") ? put_out("\n", err) : st;
    }
    ct_alloc_free(alloc, text);
    return st;
}

static ct_status print_text(const ct_alloc *alloc, cti_run_config *run, bool all, ct_err *err)
{
    static const char what[] = "Prints every setting of a run with where it comes from: default, registry (the registry function), base and file (settings\n"
                               "files), env, flag, override; checks all of them, and runs nothing.\n\n"
                               "  --all   the settings of the model's parts, too\n"
                               "  --json  as JSON, with sources\n"
                               "  --yaml  as a file that --config takes back\n\n";
    const int64_t width = number_from_env("COLUMNS", 100);
    cti_str text = {.alloc = alloc};
    cti_str_add(&text, run->wants_help ? what : "");
    ct_status st = run->wants_help ? cti_help(run->tree, run->root, CTI_PROGRAM " config [--all|--json|--yaml]",
                                              width > 0 && width <= 400 ? (int)width : 100, &text, err)
                                   : cti_config_text(run->tree, run->root, all, &text, err);
    if (st == CT_OK) {
        st = put_out(cti_str_text(&text), err);
    }
    cti_str_deinit(&text);
    return st;
}

static ct_status resolve_and_print(const ct_alloc *alloc, cti_env *env, int argc, const char *const *argv,
                                   cti_problems *problems, ct_err *err)
{
    const char **args = CT_NEW_ARRAY(alloc, const char *, argc + 1, err);
    if (args == NULL) {
        return CT_ERR_MEMORY;
    }
    int n = 0;
    form as = FORM_TEXT;
    for (int i = 1; i < argc; i++) {
        if (cti_str_eq(argv[i], "--json")) {
            as = FORM_JSON;
        } else if (cti_str_eq(argv[i], "--yaml")) {
            as = FORM_YAML;
        } else if (cti_str_eq(argv[i], "--all")) {
            as = FORM_ALL;
        } else {
            args[n++] = argv[i];
        }
    }
    cti_run_config run;
    const cti_resolve_options options = {.argc = n,
                                         .argv = args,
                                         .environ_list = (const char *const *)environ,
                                         .world_size = cti_max_i64(number_from_env("WORLD_SIZE", 0), 0)};
    ct_status st = cti_run_config_resolve(alloc, env->registry, env->plugins, &options, problems, &run, err);
    if (st == CT_OK || (st == CT_ERR_USAGE && run.module != NULL)) {
        ct_err print_err = {0};
        const ct_status printed = run.wants_help || as == FORM_TEXT || as == FORM_ALL
                                      ? print_text(alloc, &run, as == FORM_ALL, &print_err)
                                  : as == FORM_JSON ? print_json(alloc, &run, &print_err)
                                                    : print_yaml(alloc, &run, &print_err);
        if (st == CT_OK && printed != CT_OK) {
            st = CT_FAIL(err, printed, "%s", print_err.message);
        }
    }
    cti_run_config_deinit(&run);
    ct_alloc_free(alloc, (void *)(uintptr_t)args);
    return st;
}

int cti_cmd_config(int argc, char **argv)
{
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    cti_env env = {0};
    cti_problems problems = {.text = {.alloc = alloc}};
    ct_status st = cti_env_create(alloc, &env, &err);
    if (st == CT_OK) {
        st = resolve_and_print(alloc, &env, argc, (const char *const *)argv, &problems, &err);
    }
    int code = ct_status_exit_code(st);
    if (st == CT_ERR_USAGE && problems.n > 0) {
        fprintf(stderr, "%s", cti_str_text(&problems.text));
    } else if (st != CT_OK) {
        code = cti_report("config", st, &err);
    }
    cti_problems_deinit(&problems);
    cti_env_deinit(alloc, &env);
    return code;
}
