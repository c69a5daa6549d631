/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing an engine. For the rooms above comm and its engines (train, cli) and for tests. */
#ifndef CT_COMM_ENGINES_H
#define CT_COMM_ENGINES_H

#include "base/str.h"
#include "comm/local/local_engine.h" /* layers: for the rooms above; comm itself does not include this */
#ifdef CT_HAVE_GLOO
#include "comm/gloo/gloo_engine.h" /* layers: for the rooms above; comm itself does not include this */
#endif

/* name: "auto" (or NULL) takes local for one process and gloo for more. Fails: CT_ERR_USAGE for an unknown name,
 * CT_ERR_UNSUPPORTED for what this build lacks. */
CT_MUST_CHECK static inline ct_status cti_comm_engine_pick(const char *name, int world_size,
                                                           const ct_comm_engine **out_engine, ct_err *err)
{
    bool is_auto = name == NULL || cti_str_eq(name, "auto");
    if (cti_str_eq(name, "local") || (is_auto && world_size == 1)) {
        *out_engine = ct_comm_local_engine();
        return CT_OK;
    }
    if (!is_auto && !cti_str_eq(name, "gloo")) {
        return CT_FAIL(err, CT_ERR_USAGE, "unknown comm engine '%s'; there are: auto, local, gloo", name);
    }
#ifdef CT_HAVE_GLOO
    *out_engine = ct_comm_gloo_engine();
    return CT_OK;
#else
    return CT_FAIL(err, CT_ERR_UNSUPPORTED,
                   "%d ranks need the comm engine 'gloo', which this build lacks (install libgloo-dev, build again)",
                   world_size);
#endif
}

#endif
