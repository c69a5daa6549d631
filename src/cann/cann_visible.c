/* SPDX-License-Identifier: Apache-2.0 */
/* The list of visible devices, as CANN reads it. */
#include <stdlib.h>

#include "cann/cann.h"

int cti_npu_count_visible(const char *list)
{
    int n = 0;
    long last = -1;
    for (const char *at = list;; at++) {
        char *end;
        if (*at < '0' || *at > '9') {
            return -1;
        }
        const long id = strtol(at, &end, 10);
        if (id <= last || (*end != ',' && *end != '\0')) {
            return -1;
        }
        last = id;
        n++;
        if (*end == '\0') {
            return n;
        }
        at = end;
    }
}
