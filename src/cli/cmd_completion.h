/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan completion`. */
#ifndef CTI_CLI_CMD_COMPLETION_H
#define CTI_CLI_CMD_COMPLETION_H

int cti_cmd_completion(int argc, char **argv);

#endif
