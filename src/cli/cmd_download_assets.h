/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan download-assets`: files of a model repository. */
#ifndef CTI_CLI_CMD_DOWNLOAD_ASSETS_H
#define CTI_CLI_CMD_DOWNLOAD_ASSETS_H

int cti_cmd_download_assets(int argc, char **argv);

#endif
