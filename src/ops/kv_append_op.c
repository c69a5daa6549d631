/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rule of kv_append: rows of keys or values written into a cache in place. */
#include "ops/op_check.h"

ct_status cti_shape_kv_append(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                              const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("kv_append");
    CT_TRY(cti_want_float(&c, 0));
    CT_TRY(cti_want_ndim(&c, 0, 4));
    CT_TRY(cti_want_ndim(&c, 1, 4));
    CT_TRY(cti_want_same_dtype(&c, 1, 0));
    for (int32_t d = 0; d < 4; d++) {
        CT_TRY(cti_want(&c, d == 1 || in[0]->dims[d] == in[1]->dims[d], "inputs 0 and 1 differ in dim %d",
                        (int)d));
    }
    CT_TRY(cti_want_vector(&c, 2, CT_DTYPE_I32, 1));
    out_specs[0] = cti_spec_like(in[0]);
    return CT_OK;
}
