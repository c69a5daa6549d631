/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan train --module llama3 --config llama3_debugmodel [flags]`. */
#ifndef CTI_CLI_CMD_TRAIN_H
#define CTI_CLI_CMD_TRAIN_H

int cti_cmd_train(int argc, char **argv);

#endif
