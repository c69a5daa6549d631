/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTI_CLI_CMD_CHECKPOINT_H
#define CTI_CLI_CMD_CHECKPOINT_H

int cti_cmd_checkpoint(int argc, char **argv);

#endif
