/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan doctor`. */
#ifndef CTI_CLI_CMD_DOCTOR_H
#define CTI_CLI_CMD_DOCTOR_H

int cti_cmd_doctor(int argc, char **argv);

#endif
