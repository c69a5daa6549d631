/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTI_CLI_CMD_PLAN_H
#define CTI_CLI_CMD_PLAN_H

int cti_cmd_plan(int argc, char **argv);

#endif
