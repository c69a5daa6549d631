/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `cli`: main() and the sub-commands. Each command is `int cti_cmd_<name>(int argc, char **argv)`, argv[0] its own
 * name, and returns the program's exit code: 0 done, 1 failed, 2 bad command line or settings, 75 worth retrying.
 *
 *   main.c   the list of commands            cmd_train.c   train                cmd_run.c   run (the launcher)
 *   cmd_config.c  cmd_data.c  cmd_tokenizer.c  cmd_generate.c  cmd_overrides.c  cmd_plan.c  cmd_report.c
 *   cmd_download_assets.c  cmd_completion.c
 *   env.c    what every command that trains needs: registry, plug-ins, folders
 */
#ifndef CTI_CLI_CLI_H
#define CTI_CLI_CLI_H

#include "component/component.h"
#include "ctitan/backend.h"

#define CTI_PROGRAM "ctitan"

/* Registry, plug-ins and installed folders of a process. */
typedef struct cti_env {
    ct_registry *registry;
    cti_plugins *plugins;
    char *share_dir;  /* "<prefix>/share/ctitan" beside the executable */
    char *plugin_dir; /* "<prefix>/lib/ctitan/plugins" */
} cti_env;
CT_MUST_CHECK ct_status cti_env_create(const ct_alloc *alloc, cti_env *out_env, ct_err *err);
void cti_env_deinit(const ct_alloc *alloc, cti_env *env);

/* The backends of this build, NULL-terminated. */
const ct_backend *const *cti_backends(void);
/* Prints "ctitan <command>: <message>" on stderr and gives the exit code of the status. */
int cti_report(const char *command, ct_status status, const ct_err *err);
const char *cti_version_text(void);
/* The commands, in order; false at the end. */
bool cti_command_at(size_t i, const char **out_name, const char **out_what);

#endif
