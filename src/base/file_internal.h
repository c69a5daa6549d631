/* SPDX-License-Identifier: Apache-2.0 */
/* Between file.c and file_dir.c. */
#ifndef CTI_BASE_FILE_INTERNAL_H
#define CTI_BASE_FILE_INTERNAL_H

#include "ctitan/status.h"

/* "'path' cannot be <what>: <the system's reason>"; ERR_NOT_FOUND for ENOENT, else ERR_IO. */
ct_status cti_file_fail(int code, const char *what, const char *path, ct_err *err);

#endif
