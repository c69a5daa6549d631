/* SPDX-License-Identifier: Apache-2.0 */
/* Which settings have an effect, which are taken without one, which are refused, and where the part that is missing finds its place:
 * docs/flags.md is made from it. */
#ifndef CTI_CONFIG_FLAGS_H
#define CTI_CONFIG_FLAGS_H

#include "config/config.h"

typedef enum cti_flag_state {
    CTI_FLAG_WORKS,
    CTI_FLAG_NO_EFFECT, /* accepted, listed in one log line */
    CTI_FLAG_REFUSED,   /* any value but the default */
    CTI_FLAG_WAITS      /* belongs to a part whose own setting is refused */
} cti_flag_state;
typedef struct cti_flag_report {
    cti_flag_state state;
    const char *reason; /* REFUSED: the sentence; WAITS: the path of the setting that it waits for; else "" */
    const char *place;  /* REFUSED: where the part will live, or what to use instead; NULL: nobody has said; else "" */
} cti_flag_report;
cti_flag_report cti_flag_report_of(const cti_settings *settings, const cti_setting *setting);

#endif
