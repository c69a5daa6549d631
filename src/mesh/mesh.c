/* SPDX-License-Identifier: Apache-2.0 */
/* The device mesh. */
#include "mesh/mesh.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

static const char *const axis_names[CT_AXIS_COUNT] = {
#define AXIS_NAME(NAME, name) [CT_AXIS_##NAME] = #name,
    CT_AXIS_LIST(AXIS_NAME)
#undef AXIS_NAME
};

const char *ct_axis_name(ct_axis axis)
{
    return axis < CT_AXIS_COUNT ? axis_names[axis] : "?";
}

ct_status ct_mesh_init(ct_mesh *mesh, const int64_t degree[CT_AXIS_COUNT], int64_t world_size, int64_t rank, ct_err *err)
{
    ct_mesh m = {.world_size = world_size, .rank = rank};
    int64_t product = 1;
    for (int a = 0; a < CT_AXIS_EP; a++) {
        m.degree[a] = degree[a];
        if (a != CT_AXIS_DP_SHARD && (degree[a] < 1 || !cti_mul_i64(product, degree[a], &product))) {
            return CT_FAIL(err, CT_ERR_USAGE, "the %s degree is %" PRId64 ", at least 1 is wanted", axis_names[a], degree[a]);
        }
    }
    m.degree[CT_AXIS_EP] = degree[CT_AXIS_EP];
    if (m.degree[CT_AXIS_DP_SHARD] == -1) {
        m.degree[CT_AXIS_DP_SHARD] = world_size / product > 0 ? world_size / product : 1;
    }
    if (m.degree[CT_AXIS_DP_SHARD] < 1 || !cti_mul_i64(product, m.degree[CT_AXIS_DP_SHARD], &product) ||
        product != world_size) {
        return CT_FAIL(err, CT_ERR_USAGE,
                       "pp=%" PRId64 " x dp_replicate=%" PRId64 " x dp_shard=%" PRId64 " x cp=%" PRId64 " x tp=%" PRId64
                       " is %" PRId64 ", but there are %" PRId64 " ranks",
                       m.degree[CT_AXIS_PP], m.degree[CT_AXIS_DP_REPLICATE], m.degree[CT_AXIS_DP_SHARD],
                       m.degree[CT_AXIS_CP], m.degree[CT_AXIS_TP], product, world_size);
    }
    int64_t rest = rank;
    for (int a = CT_AXIS_TP; a >= 0; a--) {
        m.coord[a] = rest % m.degree[a];
        rest /= m.degree[a];
    }
    *mesh = m;
    return CT_OK;
}

int64_t ct_mesh_dp_degree(const ct_mesh *mesh)
{
    return mesh->degree[CT_AXIS_DP_REPLICATE] * mesh->degree[CT_AXIS_DP_SHARD];
}

int64_t ct_mesh_dp_rank(const ct_mesh *mesh)
{
    return mesh->coord[CT_AXIS_DP_REPLICATE] * mesh->degree[CT_AXIS_DP_SHARD] + mesh->coord[CT_AXIS_DP_SHARD];
}

void ct_mesh_group(const ct_mesh *mesh, ct_axis axis, int64_t *out_ranks)
{
    int64_t stride = 1;
    for (int a = CT_AXIS_TP; a > (int)axis; a--) {
        stride *= mesh->degree[a];
    }
    const int64_t first = mesh->rank - mesh->coord[axis] * stride;
    for (int64_t i = 0; i < mesh->degree[axis]; i++) {
        out_ranks[i] = first + i * stride;
    }
}

void ct_mesh_active_names(const ct_mesh *mesh, char *buf, size_t size)
{
    const int64_t dp = ct_mesh_dp_degree(mesh);
    const struct {
        const char *name;
        int64_t size;
    } rows[] = {
        {"pp", mesh->degree[CT_AXIS_PP]},
        {"batch", dp},
        {"loss", dp * mesh->degree[CT_AXIS_CP]},
        {"dp_replicate", mesh->degree[CT_AXIS_DP_REPLICATE]},
        {"cp", mesh->degree[CT_AXIS_CP]},
        {"tp", mesh->degree[CT_AXIS_TP]},
        {"ep", mesh->degree[CT_AXIS_EP]},
        {"dp", dp},
        {"dp_shard", mesh->degree[CT_AXIS_DP_SHARD]},
    };
    size_t used = (size_t)snprintf(buf, size, "[");
    const char *sep = "";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && used < size; i++) {
        if (rows[i].size > 1) {
            used += (size_t)snprintf(buf + used, size - used, "%s'%s'", sep, rows[i].name);
            sep = ", ";
        }
    }
    if (used < size) {
        (void)snprintf(buf + used, size - used, "]"); /* cut names are a log line's matter only */
    }
}
