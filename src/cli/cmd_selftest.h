/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan selftest`: whether the ranks' connections carry what they should, and how fast. */
#ifndef CTI_CLI_CMD_SELFTEST_H
#define CTI_CLI_CMD_SELFTEST_H

int cti_cmd_selftest(int argc, char **argv);

#endif
