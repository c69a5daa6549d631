/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan config --module llama3 --config llama3_debugmodel [flags] [--json]`: every setting with where it comes from. */
#ifndef CTI_CLI_CMD_CONFIG_H
#define CTI_CLI_CMD_CONFIG_H

int cti_cmd_config(int argc, char **argv);

#endif
