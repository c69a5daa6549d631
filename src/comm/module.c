/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/module.h"

#include <dlfcn.h>
#include <string.h>

#include "base/base.h"

static ct_status load(const char *path, const char *name, const char *hint, const ct_comm_engine **out_engine, ct_err *err)
{
    /* An MPI library finds its own parts among the global symbols, and leaves handlers that run at exit. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (handle == NULL) {
        const char *why = dlerror(); /* NOLINT(concurrency-mt-unsafe): glibc keeps one a thread */
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "the comm engine '%s' cannot be loaded: %s (%s)", name, why != NULL ? why : path, hint);
    }
    char symbol[64];
    (void)snprintf(symbol, sizeof symbol, "ct_comm_%.32s_engine", name); /* fits */
    const ct_comm_engine *(*get)(void) = NULL;
    void *found = dlsym(handle, symbol);
    memcpy(&get, &found, sizeof found); /* ISO C has no cast from object to function */
    const ct_comm_engine *engine = get != NULL ? get() : NULL;
    if (engine == NULL || engine->abi != CT_COMM_ABI || engine->size_bytes != sizeof *engine || !cti_str_eq(engine->name, name)) {
        return CT_FAIL(err, CT_ERR_PLUGIN, "'%s' is no comm engine '%s' of this program's version", path, name);
    }
    *out_engine = engine;
    return CT_OK;
}

ct_status cti_comm_module_load(const char *name, const char *hint, const ct_comm_engine **out_engine, ct_err *err)
{
    const ct_alloc *alloc = ct_alloc_system();
    char *self = NULL, *path = NULL;
    char relative[80];
    (void)snprintf(relative, sizeof relative, "../lib/ctitan/engines/%.32s.so", name); /* fits */
    ct_status st;
    CT_TRY_GOTO(st, cti_self_dir(alloc, &self, err), out);
    path = cti_path_join(alloc, self, relative, err);
    st = path == NULL ? CT_ERR_MEMORY : load(path, name, hint, out_engine, err);
out:
    ct_alloc_free(alloc, self);
    ct_alloc_free(alloc, path);
    return st;
}
