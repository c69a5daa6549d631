/* SPDX-License-Identifier: Apache-2.0 */
/* The algebra of placements: one table. */
#include "mesh/placement.h"

#include <stdio.h>

#include "base/num.h"

static const struct {
    ct_placement_kind from, to;
    ct_move forward, backward;
} table[] = {
    {CT_PLACE_REPLICATE, CT_PLACE_OWING, CT_MOVE_NONE, CT_MOVE_ALL_REDUCE},
    {CT_PLACE_SHARD, CT_PLACE_OWING, CT_MOVE_ALL_GATHER, CT_MOVE_REDUCE_SCATTER},
    {CT_PLACE_SHARD, CT_PLACE_REPLICATE, CT_MOVE_ALL_GATHER, CT_MOVE_SLICE},
    {CT_PLACE_PARTIAL, CT_PLACE_SHARD, CT_MOVE_REDUCE_SCATTER, CT_MOVE_ALL_GATHER},
    {CT_PLACE_PARTIAL, CT_PLACE_REPLICATE, CT_MOVE_ALL_REDUCE, CT_MOVE_NONE},
    {CT_PLACE_PARTIAL, CT_PLACE_OWING, CT_MOVE_ALL_REDUCE, CT_MOVE_ALL_REDUCE},
    {CT_PLACE_REPLICATE, CT_PLACE_SHARD, CT_MOVE_SLICE, CT_MOVE_ALL_GATHER},
    {CT_PLACE_OWING, CT_PLACE_SHARD, CT_MOVE_SLICE, CT_MOVE_PAD},
};

int ct_placement_parts(ct_placement p)
{
    return p.parts > 1 ? p.parts : 1;
}

bool ct_placement_equal(ct_placement a, ct_placement b)
{
    return a.kind == b.kind && (a.kind != CT_PLACE_SHARD || (a.dim == b.dim && ct_placement_parts(a) == ct_placement_parts(b)));
}

ct_transition ct_placement_transition(ct_placement from, ct_placement to)
{
    if (ct_placement_equal(from, to)) {
        return (ct_transition){CT_MOVE_NONE, CT_MOVE_NONE};
    }
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].from == from.kind && table[i].to == to.kind) {
            return (ct_transition){table[i].forward, table[i].backward};
        }
    }
    return (ct_transition){CT_MOVE_IMPOSSIBLE, CT_MOVE_IMPOSSIBLE};
}

char *ct_placement_text(ct_placement placement, char buf[16])
{
    static const char *const names[] = {[CT_PLACE_REPLICATE] = "I", [CT_PLACE_OWING] = "R", [CT_PLACE_SHARD] = "S", [CT_PLACE_PARTIAL] = "P",
                                        [CT_PLACE_FLAT] = "Flat"};
    if (placement.kind == CT_PLACE_SHARD && ct_placement_parts(placement) > 1) {
        (void)snprintf(buf, 16, "S(%d/%d)", placement.dim, ct_placement_parts(placement));
    } else if (placement.kind == CT_PLACE_SHARD) {
        (void)snprintf(buf, 16, "S(%d)", placement.dim);
    } else {
        (void)snprintf(buf, 16, "%s", placement.kind < sizeof names / sizeof names[0] ? names[placement.kind] : "?");
    }
    return buf;
}

void ct_shard_range(int64_t n, int64_t degree, int64_t coord, int64_t *out_begin, int64_t *out_end)
{
    const int64_t part = cti_ceil_div(n, degree);
    *out_begin = cti_min_i64(n, part * coord);
    *out_end = cti_min_i64(n, *out_begin + part);
}
