/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan plugins [NAME...]`. */
#ifndef CTI_CLI_CMD_PLUGINS_H
#define CTI_CLI_CMD_PLUGINS_H

int cti_cmd_plugins(int argc, char **argv);

#endif
