/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing engines: one for host memory by name, one for devices by the backend. For the rooms above comm and its engines (train, cli) and for tests. */
#ifndef CT_COMM_ENGINES_H
#define CT_COMM_ENGINES_H

#include "base/str.h"
#include "comm/local/local_engine.h" /* layers: for the rooms above; comm itself does not include this */
#include "comm/module.h"
#include "comm/hccl/hccl_engine.h"   /* layers: likewise */
#ifdef CT_HAVE_GLOO
#include "comm/gloo/gloo_engine.h" /* layers: for the rooms above; comm itself does not include this */
#endif

/* name: "auto" (or NULL) takes local for one process and gloo for more. "mpi" is local for one process. Both are modules
 * (comm/module.h), but for tests that link the room comm/gloo.
 * Fails: CT_ERR_USAGE for an unknown name, CT_ERR_UNSUPPORTED for what this build lacks. */
CT_MUST_CHECK static inline ct_status cti_comm_engine_pick(const char *name, int world_size,
                                                           const ct_comm_engine **out_engine, ct_err *err)
{
    bool is_auto = name == NULL || cti_str_eq(name, "auto"), is_mpi = !is_auto && cti_str_eq(name, "mpi");
    if ((!is_auto && cti_str_eq(name, "local")) || ((is_auto || is_mpi) && world_size == 1)) {
        *out_engine = ct_comm_local_engine();
        return CT_OK;
    }
    if (is_mpi) {
        return cti_comm_module_load("mpi", "install libopenmpi-dev or libmpich-dev and build again, or take the engine gloo", out_engine, err);
    }
    if (!is_auto && !cti_str_eq(name, "gloo")) {
        return CT_FAIL(err, CT_ERR_USAGE, "unknown comm engine '%s'; there are: auto, local, gloo, mpi", name);
    }
#ifdef CT_HAVE_GLOO
    *out_engine = ct_comm_gloo_engine();
    return CT_OK;
#else
    return cti_comm_module_load("gloo", "install libgloo-dev and build again, or take the engine mpi", out_engine, err);
#endif
}

/* Collectives in the memory of a backend's devices; NULL where it has none. */
static inline const ct_comm_engine *cti_comm_engine_of_device(const char *backend)
{
    return cti_str_eq(backend, "npu") ? ct_comm_hccl_engine() : NULL;
}

#endif
