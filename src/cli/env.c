/* SPDX-License-Identifier: Apache-2.0 */
/* What every command that trains needs. */
#include <stdlib.h>

#include "backend/cpu/cpu.h"
#include "backend/ref/ref.h"
#include "base/base.h"
#include "cli/cli.h"
#include "model/model.h"

const ct_backend *const *cti_backends(void)
{
    static const ct_backend *list[3];
    list[0] = ct_backend_cpu();
    list[1] = ct_backend_ref();
    return list;
}

const char *cti_version_text(void)
{
    return CT_VERSION;
}

int cti_report(const char *command, ct_status status, const ct_err *err)
{
    const char *what = err->status != CT_OK ? err->message : ct_status_sentence(status);
    fprintf(stderr, CTI_PROGRAM " %s: %s\n", command, what);
    return ct_status_exit_code(status);
}

/* The installed layout and the build folder's are alike: <prefix>/bin/ctitan, <prefix>/share/ctitan, <prefix>/lib/ctitan/plugins. */
static ct_status find_folders(const ct_alloc *alloc, cti_env *env, ct_err *err)
{
    char *exe = NULL;
    CT_TRY(cti_exe_dir(alloc, &exe, err));
    env->share_dir = cti_path_join(alloc, exe, "../share/ctitan", err);
    env->plugin_dir = cti_path_join(alloc, exe, "../lib/ctitan/plugins", err);
    ct_alloc_free(alloc, exe);
    if (env->share_dir == NULL || env->plugin_dir == NULL) {
        return CT_ERR_MEMORY;
    }
    char *real = realpath(env->share_dir, NULL);
    if (real != NULL) { /* without "..": it is shown in log lines */
        char *copy = ct_alloc_strdup(alloc, real, err);
        free(real);
        if (copy == NULL) {
            return CT_ERR_MEMORY;
        }
        ct_alloc_free(alloc, env->share_dir);
        env->share_dir = copy;
    }
    return CT_OK;
}

ct_status cti_env_create(const ct_alloc *alloc, cti_env *out_env, ct_err *err)
{
    cti_env env = {0};
    ct_status st;
    CT_TRY_GOTO(st, find_folders(alloc, &env, err), fail);
    CT_TRY_GOTO(st, ct_registry_create(alloc, &env.registry, err), fail);
    CT_TRY_GOTO(st, cti_register_llama3(env.registry, err), fail);
    CT_TRY_GOTO(st, cti_plugins_create(alloc, env.registry, getenv("CTITAN_PLUGIN_PATH"), env.plugin_dir, &env.plugins,
                                       err), fail);
    *out_env = env;
    return CT_OK;
fail:
    cti_env_deinit(alloc, &env);
    return st;
}

void cti_env_deinit(const ct_alloc *alloc, cti_env *env)
{
    cti_plugins_destroy(&env->plugins);
    ct_registry_destroy(&env->registry);
    ct_alloc_free(alloc, env->share_dir);
    ct_alloc_free(alloc, env->plugin_dir);
    *env = (cti_env){0};
}
