/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest names to a misspelt one. */
#ifndef CTI_BASE_NEAREST_H
#define CTI_BASE_NEAREST_H

#include <stddef.h>

/* Index of the name with the smallest edit distance (insert, delete, replace, swap of neighbours) to `word`, or -1 where
 * none is within max(2, length/3). Ties: the first. */
int cti_nearest(const char *word, const char *const *names, size_t n_names);

#endif
