/* SPDX-License-Identifier: Apache-2.0 */
/* Time. */
#ifndef CTI_BASE_CLOCK_H
#define CTI_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t cti_now_ns(void);      /* monotonic */
int64_t cti_wall_ms(void);     /* since 1970, UTC */
double cti_seconds_since(int64_t start_ns);
/* "YYYY-MM-DD HH:MM:SS,mmm" in local time; buf holds at least 32 bytes. */
void cti_format_wall(int64_t wall_ms, char buf[32]);

#endif
