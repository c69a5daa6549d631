/* SPDX-License-Identifier: Apache-2.0 */
/* The device mesh: named axes over the ranks, outermost first, and the algebra of placements on them. No I/O, no devices.
 *
 *     ct_mesh mesh;
 *     CT_TRY(ct_mesh_init(&mesh, (ct_mesh_degrees){.dp_shard = -1}, world_size, rank, err));
 *     mesh.degree[CT_AXIS_DP_SHARD]; mesh.coord[CT_AXIS_DP_SHARD];
 *     int32_t ranks[..]; ct_mesh_group(&mesh, CT_AXIS_DP_SHARD, ranks);
 */
#ifndef CTI_MESH_MESH_H
#define CTI_MESH_MESH_H

#include <stdint.h>

#include "ctitan/graph.h"

/* X(NAME, name): rank order, outermost first; the last varies fastest. ep is carved out of dp_shard, cp and tp. */
#define CT_AXIS_LIST(X) X(PP, pp) X(DP_REPLICATE, dp_replicate) X(DP_SHARD, dp_shard) X(CP, cp) X(TP, tp) X(EP, ep)
typedef enum ct_axis {
#define CT_AXIS_ENUM(NAME, name) CT_AXIS_##NAME,
    CT_AXIS_LIST(CT_AXIS_ENUM)
#undef CT_AXIS_ENUM
        CT_AXIS_COUNT
} ct_axis;
_Static_assert(CT_AXIS_COUNT == CT_MAX_AXES, "a value has one placement per axis");

typedef struct ct_mesh {
    int64_t degree[CT_AXIS_COUNT]; /* >= 1 */
    int64_t coord[CT_AXIS_COUNT];  /* of this rank; ep: 0 */
    int64_t world_size;
    int64_t rank;
} ct_mesh;

const char *ct_axis_name(ct_axis axis);

/* degree[DP_SHARD] may be -1: what the others leave. ERR_USAGE naming the degrees and their product where it is not world_size. */
CT_MUST_CHECK ct_status ct_mesh_init(ct_mesh *mesh, const int64_t degree[CT_AXIS_COUNT], int64_t world_size, int64_t rank,
                                     ct_err *err);
/* Data-parallel degree: dp_replicate * dp_shard, and this rank's place in it. */
int64_t ct_mesh_dp_degree(const ct_mesh *mesh);
int64_t ct_mesh_dp_rank(const ct_mesh *mesh);
/* The ranks that share all coordinates but `axis` with this rank, by coordinate; out_ranks holds degree[axis] entries. */
void ct_mesh_group(const ct_mesh *mesh, ct_axis axis, int64_t *out_ranks);
/* Python-list text of the axes above 1 as upstream's log names them: "[]", "['batch', 'loss', 'dp', 'dp_shard']". */
void ct_mesh_active_names(const ct_mesh *mesh, char *buf, size_t size);

/* ---- placements -------------------------------------------------------------------------------------------------- */

static inline ct_placement ct_replicate(void)
{
    return (ct_placement){.kind = CT_PLACE_REPLICATE};
}
static inline ct_placement ct_shard(int dim)
{
    return (ct_placement){.kind = CT_PLACE_SHARD, .dim = (int8_t)dim};
}
static inline ct_placement ct_partial(void)
{
    return (ct_placement){.kind = CT_PLACE_PARTIAL};
}

/* The equal cut of a Flat group of `total` elements over `degree` ranks: [begin, end) of rank `coord`. total is a multiple of
 * degree. */
static inline void ct_flat_range(int64_t total, int64_t degree, int64_t coord, int64_t *out_begin, int64_t *out_end)
{
    *out_begin = total / degree * coord;
    *out_end = *out_begin + total / degree;
}

#endif
