/* SPDX-License-Identifier: Apache-2.0 */
/* What every command needs beside cti_env. */
#include <stdio.h>

#include "cli/cli.h"
#include "ctitan/run.h"

const char *cti_version_text(void)
{
    return ct_version();
}

int cti_report(const char *command, ct_status status, const ct_err *err)
{
    const char *what = err->status != CT_OK ? err->message : ct_status_sentence(status);
    fprintf(stderr, CTI_PROGRAM " %s: %s\n", command, what);
    return ct_status_exit_code(status);
}
