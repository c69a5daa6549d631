/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance with swaps of neighbours (the restricted form: no part is edited twice). */
#include "base/nearest.h"

#include <string.h>

/* Longer words are compared by equality only: nobody misspells so long a name by a few letters on purpose. */
enum { NEAREST_MAX_BYTES = 255 };

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

static int edit_distance(const char *a, int n_a, const char *b, int n_b)
{
    int rows[3][NEAREST_MAX_BYTES + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (int j = 0; j <= n_b; j++) {
        above[j] = j;
    }
    for (int i = 1; i <= n_a; i++) {
        row[0] = i;
        for (int j = 1; j <= n_b; j++) {
            int best = min_int(above[j], row[j - 1]) + 1;
            best = min_int(best, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                best = min_int(best, before[j - 2] + 1);
            }
            row[j] = best;
        }
        int *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[n_b];
}

int cti_nearest(const char *word, const char *const *names, size_t n_names)
{
    const size_t length = strlen(word);
    int best_index = -1;
    int best = (length / 3 > 2 && length <= NEAREST_MAX_BYTES ? (int)(length / 3) : 2) + 1;
    for (size_t i = 0; i < n_names && best > 0; i++) {
        const size_t n = strlen(names[i]);
        int distance = best;
        if (n == length && memcmp(word, names[i], n) == 0) {
            distance = 0;
        } else if (n <= NEAREST_MAX_BYTES && length <= NEAREST_MAX_BYTES) {
            distance = edit_distance(word, (int)length, names[i], (int)n);
        }
        if (distance < best) {
            best = distance;
            best_index = (int)i;
        }
    }
    return best_index;
}
