/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `cli`: main() and the sub-commands. Each command is `int cti_cmd_<name>(int argc, char **argv)`, argv[0] its own
 * name, and returns the program's exit code: 0 done, 1 failed, 2 bad command line or settings, 75 worth retrying.
 *
 *   main.c   the list of commands            cmd_train.c   train                cmd_run.c   run (the launcher)
 *   cmd_config.c  cmd_data.c  cmd_tokenizer.c  cmd_generate.c (generate.h)  cmd_overrides.c  cmd_plan.c  cmd_plugins.c  cmd_report.c
 *   cmd_download_assets.c  cmd_completion.c  cmd_flight_recorder.c  cmd_devices.c (probe.h)  cmd_doctor.c (doctor.h, doctor_*.c)
 *   env.c    the version, and how a failure is told; library/library.h: registry, plug-ins, folders
 */
#ifndef CTI_CLI_CLI_H
#define CTI_CLI_CLI_H

#include "library/library.h"

#define CTI_PROGRAM "ctitan"

/* Prints "ctitan <command>: <message>" on stderr and gives the exit code of the status. */
int cti_report(const char *command, ct_status status, const ct_err *err);
const char *cti_version_text(void);
/* The commands, in order; false at the end. */
bool cti_command_at(size_t i, const char **out_name, const char **out_what);

#endif
