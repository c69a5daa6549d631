/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `library`: what `ctitan train` and other programs share.
 *
 *   env.c   registry, plug-ins and installed folders of a process      run.c   the public ct_run_ functions (ctitan/run.h)
 */
#ifndef CTI_LIBRARY_LIBRARY_H
#define CTI_LIBRARY_LIBRARY_H

#include "component/component.h"
#include "ctitan/backend.h"

/* Registry, plug-ins and installed folders of a process. */
typedef struct cti_env {
    ct_registry *registry;
    cti_plugins *plugins;
    char *share_dir;  /* "<prefix>/share/ctitan" */
    char *plugin_dir; /* "<prefix>/lib/ctitan/plugins" */
} cti_env;
/* Plug-ins are also sought where CTITAN_PLUGIN_PATH says. */
CT_MUST_CHECK ct_status cti_env_create(const ct_alloc *alloc, cti_env *out_env, ct_err *err);
/* prefix: NULL: the folder above that of the program or of libctitan.so. plugin_path: folders joined by ':'; NULL: none but the prefix's. */
CT_MUST_CHECK ct_status cti_env_create_at(const ct_alloc *alloc, const char *prefix, const char *plugin_path, cti_env *out_env, ct_err *err);
void cti_env_deinit(const ct_alloc *alloc, cti_env *env);

/* The backends of this build, NULL-terminated. */
const ct_backend *const *cti_backends(void);
/* The same, told what the run's settings ask of devices that are opened from now on (--debug.deterministic). */
const ct_backend *const *cti_backends_for(ct_component *root);

#endif
