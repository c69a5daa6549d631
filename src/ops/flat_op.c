/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of Flat groups: flat_split, flat_concat; and of fill. */
#include <inttypes.h>

#include "base/num.h"
#include "ops/op_check.h"

ct_status cti_shape_flat_split(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                               const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_flat_split *a = attrs;
    const cti_check c = CTI_CHECK("flat_split");
    CT_TRY(cti_want_ndim(&c, 0, 1));
    CT_TRY(cti_want(&c, a->offsets.n == a->ndims.n, "'offsets' has %" PRId64 " entries, 'ndims' %" PRId64,
                    a->offsets.n, a->ndims.n));
    int64_t at = 0; /* in dims */
    for (int64_t i = 0; i < a->offsets.n; i++) {
        const int64_t ndim = a->ndims.items[i];
        CT_TRY(cti_want(&c, ndim >= 0 && ndim <= CT_MAX_NDIM && ndim <= a->dims.n - at,
                        "view %" PRId64 ": 'ndims' is %" PRId64, i, ndim));
        const int64_t *dims = &a->dims.items[at];
        const int64_t numel = cti_dims_product(dims, (int)ndim);
        const int64_t offset = a->offsets.items[i];
        CT_TRY(cti_want(
            &c, numel >= 0 && offset >= 0 && offset <= in[0]->dims[0] && numel <= in[0]->dims[0] - offset,
            "view %" PRId64 " of %" PRId64 " elements at %" PRId64 " leaves the flat tensor", i, numel,
            offset));
        out_specs[i] = (ct_value_spec){.dtype = in[0]->dtype, .ndim = (int32_t)ndim, .kind = CT_VALUE_ACT};
        for (int64_t d = 0; d < ndim; d++) {
            out_specs[i].dims[d] = dims[d];
        }
        at += ndim;
    }
    return cti_want(&c, at == a->dims.n, "'dims' has %" PRId64 " entries, 'ndims' asks for %" PRId64,
                    a->dims.n, at);
}

ct_status cti_shape_flat_concat(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                                const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_flat_concat *a = attrs;
    const cti_check c = CTI_CHECK("flat_concat");
    CT_TRY(cti_want(&c, a->offsets.n == n_in, "'offsets' has %" PRId64 " entries for %d inputs", a->offsets.n,
                    (int)n_in));
    CT_TRY(cti_want(&c, a->total >= 0, "'total' is %" PRId64, a->total));
    int64_t end = 0;
    for (int32_t i = 0; i < n_in; i++) {
        CT_TRY(cti_want_same_dtype(&c, i, 0));
        const int64_t offset = a->offsets.items[i], numel = ct_value_numel(in[i]);
        CT_TRY(cti_want(&c, offset >= end,
                        "input %d at %" PRId64 " begins before the end of the one before it, %" PRId64,
                        (int)i, offset, end));
        CT_TRY(cti_want(&c, offset <= a->total && numel <= a->total - offset,
                        "input %d at %" PRId64 " leaves 'total' %" PRId64, (int)i, offset, a->total));
        end = offset + numel;
    }
    out_specs[0] = cti_spec(in[0]->dtype, 1, &a->total);
    return CT_OK;
}

ct_status cti_shape_fill(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                         ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_fill *a = attrs;
    const cti_check c = CTI_CHECK("fill");
    CT_TRY(cti_want(&c, a->dtype >= 0 && a->dtype < CT_DTYPE_COUNT, "'dtype' %" PRId64 " is no dtype",
                    a->dtype));
    CT_TRY(cti_want(&c, a->dims.n <= CT_MAX_NDIM, "'dims' has %" PRId64 " entries; the most is %d", a->dims.n,
                    CT_MAX_NDIM));
    out_specs[0] =
        (ct_value_spec){.dtype = (ct_dtype)a->dtype, .ndim = (int32_t)a->dims.n, .kind = CT_VALUE_ACT};
    for (int64_t i = 0; i < a->dims.n; i++) {
        out_specs[0].dims[i] = a->dims.items[i];
        CT_TRY(cti_want(&c, a->dims.items[i] >= 0, "dim %" PRId64 " of 'dims' is %" PRId64, i,
                        a->dims.items[i]));
    }
    return CT_OK;
}
