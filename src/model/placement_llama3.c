/* SPDX-License-Identifier: Apache-2.0 */
/* Which parameters tensor parallelism cuts, and along which dim: projections that make heads or hidden units by rows, those that take them by
 * columns, embedding and head over the vocabulary (Shoeybi et al. 2019; the plan of torchtitan 0.3.0). All others are whole on every rank. */
#include <inttypes.h>

#include "base/base.h"
#include "mesh/mesh.h"
#include "mesh/placement.h"
#include "model/model.h"

static const struct {
    const char *pattern; /* shell glob over the whole name */
    int dim;
} cuts[] = {
    {"tok_embeddings.weight", 0},
    {"layers.*.attention.qkv_linear.w?.weight", 0},
    {"layers.*.attention.wo.weight", 1},
    {"layers.*.feed_forward.w1.weight", 0},
    {"layers.*.feed_forward.w3.weight", 0},
    {"layers.*.feed_forward.w2.weight", 1},
    {"lm_head.weight", 0},
};

/* The parts of joined rows are cut each for itself. */
static ct_status place(const ct_build *build, const ct_param *p, int dim, ct_err *err)
{
    ct_placement *placement = &ct_graph_value(build->graph, p->value)->placement[CT_AXIS_TP];
    ct_placement cut = ct_shard(dim);
    cut.parts = p->n_parts > 1 && dim == 0 ? (uint8_t)p->n_parts : 0;
    if (p->part > 0 && !ct_placement_equal(*placement, cut)) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s' is part %d of a weight whose other parts tensor parallelism cuts otherwise", p->name, p->part);
    }
    *placement = cut;
    return CT_OK;
}

ct_status cti_model_place(const ct_build *build, const ct_mesh *mesh, ct_err *err)
{
    const int64_t degree = mesh->degree[CT_AXIS_TP];
    for (int32_t i = 0; i < build->n_params && degree > 1; i++) {
        const ct_param *p = &build->params[i];
        for (size_t k = 0; k < sizeof cuts / sizeof cuts[0]; k++) {
            if (!cti_glob_match(cuts[k].pattern, p->name)) {
                continue;
            }
            const int64_t n = p->dims[cuts[k].dim];
            const bool is_vocabulary = strncmp(p->name, "layers.", 7) != 0; /* may be cut unevenly */
            if (!is_vocabulary && n % degree != 0) {
                return CT_FAIL(err, CT_ERR_USAGE, "--parallelism.tensor-parallel-degree %" PRId64 " does not divide dim %d of '%s', which has %"
                               PRId64, degree, cuts[k].dim, p->name, n);
            }
            CT_TRY(place(build, p, cuts[k].dim, err));
            break;
        }
    }
    return CT_OK;
}
