/* SPDX-License-Identifier: Apache-2.0 */
/* A device with programs on it: backend, plan and runtime together, with access to parameters and states by logical name and range.
 *
 *     cti_engine *e;
 *     CT_TRY(cti_engine_create(alloc, backend, items, n_items, comms, &e, err));
 *     CT_TRY(cti_engine_init_weights(e, layout, &build, coord, seed, err));
 *     CT_TRY(cti_engine_write(e, "flat", layout, group, first_element, n, values, CT_DTYPE_F32, err));
 */
#ifndef CTI_TRAIN_ENGINE_H
#define CTI_TRAIN_ENGINE_H

#include "ctitan/backend.h"
#include "ctitan/component.h"
#include "mesh/flat.h"
#include "mesh/mesh.h"
#include "passes/plan.h"
#include "runtime/runtime.h"

typedef struct cti_engine {
    const ct_alloc *alloc;
    const ct_backend *backend; /* borrowed */
    void *device;              /* owns unless it is borrowed */
    bool is_device_borrowed;
    ct_device_facts facts;
    ct_plan *plan;             /* owns */
    ct_runtime *runtime;       /* owns */
} cti_engine;

/* Opens device 0, checks that it has every kernel, plans the graphs and takes the memory. ERR_MEMORY with the numbers where the
 * device has less. */
CT_MUST_CHECK ct_status cti_engine_create(const ct_alloc *alloc, const ct_backend *backend, const ct_plan_item *items,
                                          int32_t n_items, ct_comm *const comms[CT_MAX_AXES], cti_engine **out_engine,
                                          ct_err *err);
/* The same on a device of backend that is open, and stays so until the engine is destroyed (borrowed). */
CT_MUST_CHECK ct_status cti_engine_create_on(const ct_alloc *alloc, const ct_backend *backend, void *device, const ct_plan_item *items,
                                             int32_t n_items, ct_comm *const comms[CT_MAX_AXES], cti_engine **out_engine, ct_err *err);
void cti_engine_destroy(cti_engine **engine);

/* Parameters by their init rules, constants by their fill functions; this rank's shards only. The bits depend on seed, name and element
 * index, never on the layout. */
CT_MUST_CHECK ct_status cti_engine_init_weights(cti_engine *e, const ct_flat_layout *layout, const ct_build *build,
                                                int64_t coord, uint64_t seed, ct_err *err);
CT_MUST_CHECK ct_status cti_engine_init_consts(cti_engine *e, const ct_build *build, ct_err *err);

/* Elements [first, first + n) of this rank's shard of "<prefix>.<group>" (cti_saved_states), in the buffer's own dtype. */
CT_MUST_CHECK ct_status cti_engine_write_flat(cti_engine *e, const char *prefix, const char *group, int64_t first,
                                              int64_t n, const void *data, ct_err *err);
CT_MUST_CHECK ct_status cti_engine_read_flat(cti_engine *e, const char *prefix, const char *group, int64_t first,
                                             int64_t n, void *data, ct_err *err);
/* Whether there is such a buffer: states depend on the optimizer of the group. */
bool cti_engine_has_flat(const cti_engine *e, const char *prefix, const char *group);
/* The dtype of a persistent buffer; ERR_NOT_FOUND where the plan has none. */
CT_MUST_CHECK ct_status cti_engine_flat_dtype(const cti_engine *e, const char *prefix, const char *group,
                                              ct_dtype *out_dtype, ct_err *err);

#endif
