/* SPDX-License-Identifier: Apache-2.0 */
/* Several sources, mixed by share of tokens. */
#include <math.h>

#include "base/num.h"
#include "data/stream.h"

/* A product of two int64 and differences of such. */
__extension__ typedef __int128 i128;

void cti_mix_parts(const ct_data_source *sources, int32_t n, int64_t *out_parts)
{
    double sum = 0.0;
    for (int32_t i = 0; i < n; i++) {
        sum += sources[i].weight;
    }
    for (int32_t i = 0; i < n; i++) {
        out_parts[i] = cti_max_i64(1, (int64_t)floor(sources[i].weight / sum * CTI_MIX_UNIT + 0.5));
    }
}

int32_t cti_mix_pick(const int64_t *parts, const cti_track *tracks, int32_t n)
{
    int64_t sum_parts = 0;
    int64_t sum_given = 0;
    for (int32_t i = 0; i < n; i++) {
        sum_parts += parts[i];
        sum_given += tracks[i].at.given;
    }
    /* Behind by parts[i] / sum_parts * sum_given - given[i] tokens; both sides times sum_parts. */
    int32_t best = 0;
    i128 most = 0;
    for (int32_t i = 0; i < n; i++) {
        const i128 behind = (i128)parts[i] * sum_given - (i128)tracks[i].at.given * sum_parts;
        if (i == 0 || behind > most) {
            best = i;
            most = behind;
        }
    }
    return best;
}
