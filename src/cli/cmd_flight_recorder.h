/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan flight-recorder FOLDER`. */
#ifndef CTI_CLI_CMD_FLIGHT_RECORDER_H
#define CTI_CLI_CMD_FLIGHT_RECORDER_H

int cti_cmd_flight_recorder(int argc, char **argv);

#endif
