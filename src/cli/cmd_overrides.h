/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan overrides list PLUGIN` and `ctitan check-overrides TARGET...`. */
#ifndef CTI_CLI_CMD_OVERRIDES_H
#define CTI_CLI_CMD_OVERRIDES_H

int cti_cmd_overrides(int argc, char **argv);
int cti_cmd_check_overrides(int argc, char **argv);

#endif
