/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan report`: what runs left behind, as a page and as text. */
#ifndef CTI_CLI_CMD_REPORT_H
#define CTI_CLI_CMD_REPORT_H

int cti_cmd_report(int argc, char **argv);

#endif
