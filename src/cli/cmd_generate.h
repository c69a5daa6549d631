/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan generate --checkpoint DIR --prompt TEXT`. */
#ifndef CTI_CLI_CMD_GENERATE_H
#define CTI_CLI_CMD_GENERATE_H

int cti_cmd_generate(int argc, char **argv);

#endif
