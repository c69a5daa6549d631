/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan data inspect`. */
#ifndef CTI_CLI_CMD_DATA_H
#define CTI_CLI_CMD_DATA_H

int cti_cmd_data(int argc, char **argv);
int cti_cmd_data_preview(int argc, char **argv); /* argv[0]: "preview" */

#endif
