/* SPDX-License-Identifier: Apache-2.0 */
/* The algebra of placements on one mesh axis: what takes a value from one to another, and what that does to its gradient.
 *
 * REPLICATE (I)  the same on every rank, and so is its gradient: nothing is owed
 * OWING (R)      the same on every rank; each has a part of its gradient, whose sum is owed
 * SHARD(d) (S)   cut along dim d, or each of `parts` equal parts of it is; so is its gradient
 * PARTIAL (P)    the value is the sum over the ranks; its gradient is the same on every rank
 *
 *   from -> to   forward          backward             (adjoint over the values of all ranks: tests/property/placements.c)
 *   I -> R       as it is         all_reduce
 *   S -> R       all_gather       reduce_scatter
 *   S -> I       all_gather       slice
 *   P -> S       reduce_scatter   all_gather
 *   P -> I       all_reduce       as it is
 *   P -> R       all_reduce       all_reduce
 *   I -> S       slice            all_gather
 *   R -> S       slice            its place among zeros: S's gradient is a part of R's
 *
 * Nothing else has a meaning: what is owed cannot be forgotten (R -> I), a part cannot be made of a whole (I -> P), and another cut
 * (S(a) -> S(b)) is two steps. */
#ifndef CTI_MESH_PLACEMENT_H
#define CTI_MESH_PLACEMENT_H

#include "ctitan/graph.h"

typedef enum ct_move {
    CT_MOVE_NONE,       /* as it is */
    CT_MOVE_ALL_GATHER,
    CT_MOVE_REDUCE_SCATTER,
    CT_MOVE_ALL_REDUCE,
    CT_MOVE_SLICE,      /* this rank's part of a whole */
    CT_MOVE_PAD,        /* this rank's part among zeros */
    CT_MOVE_IMPOSSIBLE
} ct_move;

typedef struct ct_transition {
    ct_move forward, backward;
} ct_transition;

/* Both IMPOSSIBLE where there is no way. Equal placements: NONE and NONE. */
ct_transition ct_placement_transition(ct_placement from, ct_placement to);
bool ct_placement_equal(ct_placement a, ct_placement b);
/* How many equal parts of the dim are cut each for itself: 1 but for rows that were joined. */
int ct_placement_parts(ct_placement placement);
/* "I", "R", "S(1)", "S(0/2)" (of 2 parts), "P", "Flat". buf holds 16 bytes. */
char *ct_placement_text(ct_placement placement, char buf[16]);

/* Rank coord's part of n things cut into `degree` parts of ceil(n / degree), the last ones smaller: [*out_begin, *out_end), which may be
 * empty. An uneven vocabulary is cut so. */
void ct_shard_range(int64_t n, int64_t degree, int64_t coord, int64_t *out_begin, int64_t *out_end);

#endif
