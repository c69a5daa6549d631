/* SPDX-License-Identifier: Apache-2.0 */
/* What everything that trains needs. */
#include <stdlib.h>

#include "backend/cpu/cpu.h"
#include "backend/npu/npu.h"
#include "backend/ref/ref.h"
#include "base/base.h"
#include "config/config.h"
#include "library/library.h"
#include "model/model.h"

const ct_backend *const *cti_backends(void)
{
    static const ct_backend *list[4];
    list[0] = ct_backend_cpu();
    list[1] = ct_backend_ref();
    list[2] = ct_backend_npu();
    return list;
}

const ct_backend *const *cti_backends_for(ct_component *root)
{
    ct_backend_npu_set_deterministic(CTI_SECTION(root, "debug", debug)->deterministic);
    return cti_backends();
}

/* The installed layout and the build folder's are alike: bin/ctitan, lib/libctitan.so, share/ctitan, lib/ctitan/plugins. */
static ct_status find_folders(const ct_alloc *alloc, const char *prefix, cti_env *env, ct_err *err)
{
    char *self = NULL, *above = NULL;
    if (prefix == NULL) {
        CT_TRY(cti_self_dir(alloc, &self, err));
        prefix = above = cti_path_join(alloc, self, "..", err);
    }
    env->share_dir = prefix != NULL ? cti_path_join(alloc, prefix, "share/ctitan", err) : NULL;
    env->plugin_dir = prefix != NULL ? cti_path_join(alloc, prefix, "lib/ctitan/plugins", err) : NULL;
    ct_alloc_free(alloc, self);
    ct_alloc_free(alloc, above);
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

ct_status cti_env_create_at(const ct_alloc *alloc, const char *prefix, const char *plugin_path, cti_env *out_env, ct_err *err)
{
    cti_env env = {0};
    ct_status st;
    CT_TRY_GOTO(st, find_folders(alloc, prefix, &env, err), fail);
    CT_TRY_GOTO(st, ct_registry_create(alloc, &env.registry, err), fail);
    CT_TRY_GOTO(st, cti_register_sections(env.registry, err), fail);
    CT_TRY_GOTO(st, cti_register_llama3(env.registry, err), fail);
    CT_TRY_GOTO(st, cti_plugins_create(alloc, env.registry, plugin_path, env.plugin_dir, &env.plugins, err), fail);
    *out_env = env;
    return CT_OK;
fail:
    cti_env_deinit(alloc, &env);
    return st;
}

ct_status cti_env_create(const ct_alloc *alloc, cti_env *out_env, ct_err *err)
{
    return cti_env_create_at(alloc, NULL, getenv("CTITAN_PLUGIN_PATH"), out_env, err);
}

void cti_env_deinit(const ct_alloc *alloc, cti_env *env)
{
    cti_plugins_destroy(&env->plugins);
    ct_registry_destroy(&env->registry);
    ct_alloc_free(alloc, env->share_dir);
    ct_alloc_free(alloc, env->plugin_dir);
    *env = (cti_env){0};
}
