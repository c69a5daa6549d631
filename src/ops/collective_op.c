/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of the collectives: all_gather, reduce_scatter, all_reduce, owe over one mesh axis. */
#include <inttypes.h>

#include "base/num.h"
#include "ops/op_check.h"

static ct_status want_axis(const cti_check *c, int64_t axis, int64_t degree)
{
    CT_TRY(cti_want(c, axis >= 0 && axis < CT_MAX_AXES, "'axis' %" PRId64 " is no mesh axis", axis));
    return cti_want(c, degree >= 1, "'degree' %" PRId64 " is less than 1", degree);
}

static ct_status want_reduce_dtype(const cti_check *c, int64_t dtype)
{
    return cti_want(c, dtype == -1 || (dtype >= 0 && dtype < CT_DTYPE_COUNT && ct_dtype_is_float((ct_dtype)dtype)),
                    "'reduce_dtype' %" PRId64 " is neither -1 nor a float dtype", dtype);
}

ct_status cti_shape_owe(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                        ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_all_gather *a = attrs;
    const cti_check c = CTI_CHECK("owe");
    CT_TRY(want_axis(&c, a->axis, a->degree));
    CT_TRY(want_reduce_dtype(&c, a->reduce_dtype));
    out_specs[0] = cti_spec_like(in[0]);
    return CT_OK;
}

ct_status cti_shape_all_gather(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                               const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_all_gather *a = attrs;
    const cti_check c = CTI_CHECK("all_gather");
    CT_TRY(want_axis(&c, a->axis, a->degree));
    CT_TRY(want_reduce_dtype(&c, a->reduce_dtype));
    CT_TRY(cti_want_ndim_min(&c, 0, 1));
    out_specs[0] = cti_spec_like(in[0]);
    return cti_want(&c, cti_mul_i64(in[0]->dims[0], a->degree, &out_specs[0].dims[0]),
                    "dim 0 times 'degree' is too large");
}

ct_status cti_shape_reduce_scatter(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                                   const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_collective *a = attrs;
    const cti_check c = CTI_CHECK("reduce_scatter");
    CT_TRY(want_axis(&c, a->axis, a->degree));
    CT_TRY(cti_want_ndim_min(&c, 0, 1));
    CT_TRY(cti_want(&c, in[0]->dims[0] % a->degree == 0, "'degree' %" PRId64 " does not divide dim 0",
                    a->degree));
    out_specs[0] = cti_spec_like(in[0]);
    out_specs[0].dims[0] /= a->degree;
    return CT_OK;
}

ct_status cti_shape_all_reduce(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                               const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_collective *a = attrs;
    const cti_check c = CTI_CHECK("all_reduce");
    CT_TRY(want_axis(&c, a->axis, a->degree));
    out_specs[0] = cti_spec_like(in[0]);
    return CT_OK;
}
