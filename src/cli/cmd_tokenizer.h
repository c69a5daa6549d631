/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan tokenizer train|encode|decode|info`. */
#ifndef CTI_CLI_CMD_TOKENIZER_H
#define CTI_CLI_CMD_TOKENIZER_H

int cti_cmd_tokenizer(int argc, char **argv);

#endif
