/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of embedding, embedding_grad and local_ids. */
#include <inttypes.h>
#include <string.h>

#include "ops/op_check.h"

ct_status cti_shape_embedding(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                              const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("embedding");
    CT_TRY(cti_want_float(&c, 0));
    CT_TRY(cti_want_ndim(&c, 0, 2));
    CT_TRY(cti_want_dtype(&c, 1, CT_DTYPE_I32));
    CT_TRY(cti_want(&c, in[1]->ndim < CT_MAX_NDIM, "input 1 must have fewer than %d dims", CT_MAX_NDIM));
    out_specs[0] = cti_spec(in[0]->dtype, in[1]->ndim, in[1]->dims);
    out_specs[0].dims[out_specs[0].ndim++] = in[0]->dims[1];
    return CT_OK;
}

ct_status cti_shape_embedding_grad(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                                   const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_embedding_grad *a = attrs;
    const cti_check c = CTI_CHECK("embedding_grad");
    CT_TRY(cti_want_float(&c, 0));
    CT_TRY(cti_want_ndim_min(&c, 0, 1));
    CT_TRY(cti_want_dtype(&c, 1, CT_DTYPE_I32));
    CT_TRY(cti_want_dims(&c, 1, in[0]->dims, in[0]->ndim - 1));
    CT_TRY(cti_want(&c, a->vocab > 0, "'vocab' must be greater than 0"));
    out_specs[0] = cti_spec(in[0]->dtype, 2, (int64_t[]){a->vocab, in[0]->dims[in[0]->ndim - 1]});
    return CT_OK;
}

ct_status cti_shape_local_ids(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                              ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_local_ids *a = attrs;
    const cti_check c = CTI_CHECK("local_ids");
    CT_TRY(cti_want_dtype(&c, 0, CT_DTYPE_I32));
    CT_TRY(cti_want(&c, a->start >= 0 && a->start <= INT32_MAX && a->count > 0 && a->count <= INT32_MAX,
                    "rows [%" PRId64 ", +%" PRId64 ") are no part of a vocabulary", a->start, a->count));
    out_specs[0] = cti_spec_like(in[0]);
    return CT_OK;
}
