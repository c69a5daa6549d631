/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of rmsnorm and rmsnorm_grad. */
#include "ops/op_check.h"

ct_status cti_shape_rmsnorm(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                            ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_rmsnorm *a = attrs;
    const cti_check c = CTI_CHECK("rmsnorm");
    CT_TRY(cti_want_float(&c, 0));
    CT_TRY(cti_want_ndim_min(&c, 0, 1));
    CT_TRY(cti_want_vector(&c, 1, in[0]->dtype, in[0]->dims[in[0]->ndim - 1]));
    CT_TRY(cti_want(&c, a->eps >= 0.0, "'eps' must be 0 or more")); /* refuses NaN too */
    out_specs[0] = cti_spec_like(in[0]);
    out_specs[1] = cti_spec(CT_DTYPE_F32, in[0]->ndim - 1, in[0]->dims);
    return CT_OK;
}

ct_status cti_shape_rmsnorm_grad(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                                 const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("rmsnorm_grad");
    CT_TRY(cti_want_float(&c, 0));
    CT_TRY(cti_want_ndim_min(&c, 0, 1));
    CT_TRY(cti_want_same(&c, 1, 0));
    CT_TRY(cti_want_vector(&c, 2, in[0]->dtype, in[0]->dims[in[0]->ndim - 1]));
    CT_TRY(cti_want_dtype(&c, 3, CT_DTYPE_F32));
    CT_TRY(cti_want_dims(&c, 3, in[0]->dims, in[0]->ndim - 1));
    if (n_in == 5) {
        CT_TRY(cti_want_same(&c, 4, 0));
    }
    out_specs[0] = cti_spec_like(in[1]);
    out_specs[1] = cti_spec_like(in[2]);
    return CT_OK;
}
