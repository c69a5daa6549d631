/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan devices`. */
#ifndef CTI_CLI_CMD_DEVICES_H
#define CTI_CLI_CMD_DEVICES_H

int cti_cmd_devices(int argc, char **argv);

#endif
