/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of ops that work element by element: add, mul, scale, cast, silu_mul; and swiglu, which is silu_mul
 * of the halves of a row. */
#include <inttypes.h>

#include "ops/op_check.h"

/* n floats of the same dims and dtype. */
static ct_status same_floats(const cti_check *c)
{
    CT_TRY(cti_want_float(c, 0));
    for (int32_t i = 1; i < c->n_in; i++) {
        CT_TRY(cti_want_same(c, i, 0));
    }
    return CT_OK;
}

ct_status cti_shape_add(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                        ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("add");
    CT_TRY(same_floats(&c));
    out_specs[0] = cti_spec_like(in[0]);
    return CT_OK;
}

ct_status cti_shape_mul(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                        ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("mul");
    CT_TRY(same_floats(&c));
    out_specs[0] = cti_spec_like(in[0]);
    return CT_OK;
}

ct_status cti_shape_scale(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                          ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("scale");
    CT_TRY(same_floats(&c));
    out_specs[0] = cti_spec_like(in[0]);
    return CT_OK;
}

ct_status cti_shape_cast(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                         ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_cast *a = attrs;
    const cti_check c = CTI_CHECK("cast");
    CT_TRY(cti_want(&c, a->dtype >= 0 && a->dtype < CT_DTYPE_COUNT, "'dtype' %" PRId64 " is no dtype",
                    a->dtype));
    out_specs[0] = cti_spec((ct_dtype)a->dtype, in[0]->ndim, in[0]->dims);
    return CT_OK;
}

ct_status cti_shape_silu_mul(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                             const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("silu_mul");
    CT_TRY(same_floats(&c));
    out_specs[0] = cti_spec_like(in[0]);
    return CT_OK;
}

ct_status cti_shape_silu_mul_grad(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                                  const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("silu_mul_grad");
    CT_TRY(same_floats(&c));
    out_specs[0] = cti_spec_like(in[1]);
    out_specs[1] = cti_spec_like(in[2]);
    return CT_OK;
}

ct_status cti_shape_swiglu(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                           ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("swiglu");
    CT_TRY(cti_want_float(&c, 0));
    CT_TRY(cti_want_ndim_min(&c, 0, 1));
    out_specs[0] = cti_spec_like(in[0]);
    int64_t *last = &out_specs[0].dims[in[0]->ndim - 1];
    CT_TRY(cti_want(&c, *last % 2 == 0, "the last dim of input 0 must be even"));
    *last /= 2;
    return CT_OK;
}

ct_status cti_shape_swiglu_grad(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                                ct_value_spec *out_specs, ct_err *err)
{
    const cti_check c = CTI_CHECK("swiglu_grad");
    ct_value_spec y;
    CT_TRY(cti_shape_swiglu(graph, in + 1, 1, attrs, &y, err));
    CT_TRY(cti_want_same_dtype(&c, 0, 1));
    CT_TRY(cti_want_dims(&c, 0, y.dims, y.ndim));
    out_specs[0] = cti_spec_like(in[1]);
    return CT_OK;
}
