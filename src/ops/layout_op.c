/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of ops that only move elements: reshape, transpose, slice, slice_grad, concat. Any dtype. */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "ops/op_check.h"

ct_status cti_shape_reshape(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                            ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_reshape *a = attrs;
    const cti_check c = CTI_CHECK("reshape");
    CT_TRY(cti_want(&c, a->dims.n <= CT_MAX_NDIM, "'dims' has %" PRId64 " entries; the most is %d", a->dims.n,
                    CT_MAX_NDIM));
    ct_value_spec y = {.dtype = in[0]->dtype, .ndim = (int32_t)a->dims.n, .kind = CT_VALUE_ACT};
    int32_t open = -1;
    int64_t known = 1;
    for (int32_t i = 0; i < y.ndim; i++) {
        y.dims[i] = a->dims.items[i];
        if (y.dims[i] == -1) {
            CT_TRY(cti_want(&c, open < 0, "'dims' may hold one -1"));
            open = i;
            continue;
        }
        CT_TRY(cti_want(&c, y.dims[i] >= 0, "dim %d of 'dims' is %" PRId64, (int)i, y.dims[i]));
        CT_TRY(cti_want(&c, cti_mul_i64(known, y.dims[i], &known), "the product of 'dims' is too large"));
    }
    const int64_t numel = ct_value_numel(in[0]);
    if (open >= 0) {
        CT_TRY(cti_want(&c, known > 0 && numel % known == 0,
                        "the -1 of 'dims' has no answer: %" PRId64 " elements over %" PRId64, numel, known));
        y.dims[open] = numel / known;
        known = numel;
    }
    CT_TRY(
        cti_want(&c, known == numel, "'dims' holds %" PRId64 " elements, the input %" PRId64, known, numel));
    out_specs[0] = y;
    return CT_OK;
}

ct_status cti_shape_transpose(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                              const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_transpose *a = attrs;
    const cti_check c = CTI_CHECK("transpose");
    CT_TRY(cti_want(&c, a->perm.n == in[0]->ndim, "'perm' has %" PRId64 " entries, the input %d dims",
                    a->perm.n, (int)in[0]->ndim));
    ct_value_spec y = {.dtype = in[0]->dtype, .ndim = in[0]->ndim, .kind = CT_VALUE_ACT};
    bool is_seen[CT_MAX_NDIM] = {false};
    for (int32_t i = 0; i < y.ndim; i++) {
        const int64_t p = a->perm.items[i];
        CT_TRY(cti_want(&c, p >= 0 && p < y.ndim && !is_seen[p], "'perm' must hold each dim once"));
        is_seen[p] = true;
        y.dims[i] = in[0]->dims[p];
    }
    out_specs[0] = y;
    return CT_OK;
}

/* A dim of the input that an attribute names. */
static ct_status want_dim(const cti_check *c, int64_t dim)
{
    return cti_want(c, dim >= 0 && dim < c->in[0]->ndim,
                    "'dim' %" PRId64 " is not one of the input's %d dims", dim, (int)c->in[0]->ndim);
}

ct_status cti_shape_slice(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                          ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_slice *a = attrs;
    const cti_check c = CTI_CHECK("slice");
    CT_TRY(want_dim(&c, a->dim));
    const int64_t size = in[0]->dims[a->dim];
    CT_TRY(cti_want(&c, a->start >= 0 && a->len >= 0 && a->start <= size && a->len <= size - a->start,
                    "'start' %" PRId64 " and 'len' %" PRId64 " leave dim %" PRId64, a->start, a->len,
                    a->dim));
    out_specs[0] = cti_spec_like(in[0]);
    out_specs[0].dims[a->dim] = a->len;
    return CT_OK;
}

ct_status cti_shape_slice_grad(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                               const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_slice_grad *a = attrs;
    const cti_check c = CTI_CHECK("slice_grad");
    CT_TRY(want_dim(&c, a->dim));
    const int64_t len = in[0]->dims[a->dim];
    CT_TRY(cti_want(&c, a->start >= 0 && a->full >= len && a->start <= a->full - len,
                    "'start' %" PRId64 " and the input leave 'full' %" PRId64, a->start, a->full));
    out_specs[0] = cti_spec_like(in[0]);
    out_specs[0].dims[a->dim] = a->full;
    return CT_OK;
}

ct_status cti_shape_concat(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                           ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_concat *a = attrs;
    const cti_check c = CTI_CHECK("concat");
    CT_TRY(want_dim(&c, a->dim));
    ct_value_spec y = cti_spec_like(in[0]);
    for (int32_t i = 1; i < n_in; i++) {
        CT_TRY(cti_want_same_dtype(&c, i, 0));
        CT_TRY(cti_want_ndim(&c, i, y.ndim));
        for (int32_t d = 0; d < y.ndim; d++) {
            CT_TRY(cti_want(&c, d == a->dim || in[i]->dims[d] == y.dims[d],
                            "input %d differs from input 0 in dim %d", (int)i, (int)d));
        }
        CT_TRY(cti_want(&c, cti_add_i64(y.dims[a->dim], in[i]->dims[a->dim], &y.dims[a->dim]),
                        "dim %" PRId64 " is too large", a->dim));
    }
    out_specs[0] = y;
    return CT_OK;
}
