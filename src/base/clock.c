/* SPDX-License-Identifier: Apache-2.0 */
/* Time. */
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

int64_t cti_now_ns(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t cti_wall_ms(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

double cti_seconds_since(int64_t start_ns)
{
    return (double)(cti_now_ns() - start_ns) * 1e-9;
}

void cti_format_wall(int64_t wall_ms, char buf[32])
{
    const int ms = (int)(((wall_ms % 1000) + 1000) % 1000);
    const time_t seconds = (time_t)((wall_ms - ms) / 1000);
    struct tm parts;
    size_t n = 0;
    if (localtime_r(&seconds, &parts) != NULL) {
        n = strftime(buf, 32 - 5, "%Y-%m-%d %H:%M:%S", &parts);
    }
    if (n == 0) { /* a year beyond what fits */
        memcpy(buf, "0000-00-00 00:00:00", 20);
        n = 19;
    }
    (void)snprintf(buf + n, 32 - n, ",%03d", ms);
}
