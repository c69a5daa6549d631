/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the npu backend run over the doubles of CANN's libraries (tests/fake/cann); with CT_NPU_HARDWARE=1 over the machine's own CANN. */
#ifndef CT_TESTS_NPU_H
#define CT_TESTS_NPU_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Before anything of CANN is asked for. false: this build has no doubles; the test is skipped (77). */
static inline bool npu_use_doubles(void)
{
    const char *hardware = getenv("CT_NPU_HARDWARE");
    if (hardware != NULL && hardware[0] == '1') {
        return true;
    }
    if (access(CT_BINARY_DIR "/fake_cann/lib64/libopapi.so", R_OK) != 0) {
        (void)printf("skipped: this build has no doubles of CANN's libraries\n");
        return false;
    }
    return setenv("ASCEND_HOME_PATH", CT_BINARY_DIR "/fake_cann", 1) == 0 && setenv("ASCEND_OPP_PATH", CT_BINARY_DIR "/fake_cann/opp", 1) == 0;
}

#endif
