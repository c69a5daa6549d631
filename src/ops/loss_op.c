/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules and FLOPs of the fused head and loss: linear_cross_entropy, its evaluation form, and what it needs where the vocabulary
 * is shared by ranks: linear_lse, lse_merge. */
#include <inttypes.h>

#include "ops/op_check.h"

static ct_status want_loss(const cti_check *c, const ct_attrs_loss *a)
{
    CT_TRY(cti_want_float(c, 0));
    CT_TRY(cti_want_ndim_min(c, 0, 1));
    CT_TRY(cti_want_same_dtype(c, 1, 0));
    CT_TRY(cti_want_ndim(c, 1, 2));
    const ct_value *x = c->in[0];
    CT_TRY(cti_want(c, c->in[1]->dims[1] == x->dims[x->ndim - 1], "the last dims of x and w must be equal"));
    CT_TRY(cti_want_dtype(c, 2, CT_DTYPE_I32));
    CT_TRY(cti_want_dims(c, 2, x->dims, x->ndim - 1));
    CT_TRY(cti_want_vector(c, 3, CT_DTYPE_F32, 1));
    if (c->n_in == 5) {
        CT_TRY(cti_want_dtype(c, 4, CT_DTYPE_F32));
        CT_TRY(cti_want_dims(c, 4, x->dims, x->ndim - 1));
    }
    return cti_want(c, a->chunks >= 1, "'chunks' %" PRId64 " is less than 1", a->chunks);
}

ct_status cti_shape_linear_cross_entropy(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                                         const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const cti_check c = CTI_CHECK("linear_cross_entropy");
    CT_TRY(want_loss(&c, attrs));
    out_specs[0] = cti_spec(CT_DTYPE_F64, 1, (int64_t[]){1});
    out_specs[1] = cti_spec_like(in[0]);
    out_specs[2] = cti_spec_like(in[1]);
    return CT_OK;
}

ct_status cti_shape_linear_cross_entropy_eval(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                                              const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const cti_check c = CTI_CHECK("linear_cross_entropy_eval");
    CT_TRY(want_loss(&c, attrs));
    out_specs[0] = cti_spec(CT_DTYPE_F64, 1, (int64_t[]){1});
    return CT_OK;
}

ct_status cti_shape_linear_lse(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                               ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_loss *a = attrs;
    const cti_check c = CTI_CHECK("linear_lse");
    CT_TRY(cti_want_float(&c, 0));
    CT_TRY(cti_want_ndim_min(&c, 0, 2));
    CT_TRY(cti_want_same_dtype(&c, 1, 0));
    CT_TRY(cti_want_ndim(&c, 1, 2));
    CT_TRY(cti_want(&c, in[1]->dims[1] == in[0]->dims[in[0]->ndim - 1], "the last dims of x and w must be equal"));
    CT_TRY(cti_want(&c, a->chunks >= 1, "'chunks' %" PRId64 " is less than 1", a->chunks));
    out_specs[0] = cti_spec(CT_DTYPE_F32, in[0]->ndim - 1, in[0]->dims);
    return CT_OK;
}

ct_status cti_shape_lse_merge(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                              ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("lse_merge");
    CT_TRY(cti_want_dtype(&c, 0, CT_DTYPE_F32));
    CT_TRY(cti_want_ndim_min(&c, 0, 2));
    out_specs[0] = cti_spec(CT_DTYPE_F32, in[0]->ndim - 1, in[0]->dims + 1);
    return CT_OK;
}

/* x w^T; the training form also makes dx and dw. */
double cti_flops_linear_cross_entropy(const ct_value *const *in, int32_t n_in, const void *attrs)
{
    return 3.0 * cti_flops_linear_cross_entropy_eval(in, n_in, attrs);
}

double cti_flops_linear_cross_entropy_eval(const ct_value *const *in, int32_t n_in, const void *attrs)
{
    (void)n_in;
    (void)attrs;
    return 2.0 * (double)ct_value_numel(in[0]) * (double)in[1]->dims[0];
}

double cti_flops_linear_lse(const ct_value *const *in, int32_t n_in, const void *attrs)
{
    return cti_flops_linear_cross_entropy_eval(in, n_in, attrs);
}
