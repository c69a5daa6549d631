/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of optim. */
#ifndef CTI_OPTIM_INTERNAL_H
#define CTI_OPTIM_INTERNAL_H

#include "optim/optim.h"

typedef struct cti_optim_emit {
    ct_graph *g;
    const ct_flat_layout *layout;
    const ct_mesh *mesh;
    const ct_optim_spec *spec;
    const ct_value_id *flats, *grads;
    int32_t *group_of; /* per parameter, by its param_index: its optimizer group */
    ct_value_id *acc;  /* per Flat group: the step's gradient */
} cti_optim_emit;

/* A value of one dim, "<prefix>.<name>" or, where name is empty, "<prefix>". */
CT_MUST_CHECK ct_status cti_optim_named(cti_optim_emit *e, ct_value_kind kind, const char *prefix, const char *name, ct_dtype dtype, int64_t n,
                                        ct_value_id *out, ct_err *err);
/* (begin, end, group) triples of one Flat group's local shard; neighbours of one optimizer group are joined. */
CT_MUST_CHECK ct_status cti_optim_segments(cti_optim_emit *e, const ct_flat_group *group, ct_i64_list *out, ct_err *err);
/* The same by a plug-in's optimizer. */
CT_MUST_CHECK ct_status cti_optim_plugin(cti_optim_emit *e, int32_t i, const ct_optim_values *v, ct_value_id coef, ct_err *err);
/* The update of Flat group i, whose members' groups are of one family. coef: clip_coef's. */
CT_MUST_CHECK ct_status cti_optim_update(cti_optim_emit *e, int32_t i, const ct_optim_values *v, ct_value_id coef, ct_err *err);

#endif
