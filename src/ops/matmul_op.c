/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules and FLOPs of matmul: y = op(a) op(b) (+ c), and of matmul_swiglu. */
#include <inttypes.h>

#include "ops/op_check.h"

/* The operands as matrices: op(a) is [m, p], op(b) is [p_b, q]. */
typedef struct matmul_sizes {
    int64_t m, p, p_b, q;
} matmul_sizes;

static matmul_sizes sizes_of(const ct_value *a, const ct_value *b, const ct_attrs_matmul *attrs)
{
    const int64_t a_rows = cti_rows(a, 1), a_cols = a->dims[a->ndim - 1];
    const int64_t b_rows = cti_rows(b, 1), b_cols = b->dims[b->ndim - 1];
    return (matmul_sizes){
        .m = attrs->ta ? a_cols : a_rows,
        .p = attrs->ta ? a_rows : a_cols,
        .p_b = attrs->tb ? b_cols : b_rows,
        .q = attrs->tb ? b_rows : b_cols,
    };
}

static ct_status product_shape(const char *name, const ct_value *const *in, int32_t n_in, const ct_attrs_matmul *a, ct_value_spec *out_spec,
                               ct_err *err)
{
    const cti_check c = CTI_CHECK(name);
    CT_TRY(cti_want_float(&c, 0));
    CT_TRY(cti_want_same_dtype(&c, 1, 0));
    CT_TRY(cti_want_ndim_min(&c, 0, 1));
    CT_TRY(cti_want_ndim_min(&c, 1, 1));
    const matmul_sizes s = sizes_of(in[0], in[1], a);
    CT_TRY(cti_want(&c, s.p == s.p_b,
                    "with ta=%s, tb=%s the columns of op(a) must be the rows of op(b): %" PRId64
                    " and %" PRId64,
                    a->ta ? "true" : "false", a->tb ? "true" : "false", s.p, s.p_b));
    ct_value_spec y = a->ta ? cti_spec(in[0]->dtype, 2, (int64_t[]){s.m, s.q}) : cti_spec_like(in[0]);
    y.dims[y.ndim - 1] = s.q;
    if (n_in == 3 && in[2] != NULL) {
        CT_TRY(cti_want_same_dtype(&c, 2, 0));
        CT_TRY(cti_want_dims(&c, 2, y.dims, y.ndim));
    }
    *out_spec = y;
    return CT_OK;
}

ct_status cti_shape_matmul(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                           ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    return product_shape("matmul", in, n_in, attrs, &out_specs[0], err);
}

double cti_flops_matmul(const ct_value *const *in, int32_t n_in, const void *attrs)
{
    const matmul_sizes s = sizes_of(in[0], in[1], attrs);
    const double added = n_in == 3 && in[2] != NULL ? (double)s.m * (double)s.q : 0.0;
    return 2.0 * (double)s.m * (double)s.p * (double)s.q + added;
}

ct_status cti_shape_matmul_swiglu(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                                  ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const cti_check c = CTI_CHECK("matmul_swiglu");
    CT_TRY(product_shape("matmul_swiglu", in, n_in, attrs, &out_specs[0], err));
    out_specs[1] = out_specs[0];
    int64_t *last = &out_specs[1].dims[out_specs[1].ndim - 1];
    CT_TRY(cti_want(&c, *last % 2 == 0, "the columns of the product must be even, they are %" PRId64, *last));
    *last /= 2;
    return CT_OK;
}

double cti_flops_matmul_swiglu(const ct_value *const *in, int32_t n_in, const void *attrs)
{
    return cti_flops_matmul(in, n_in, attrs);
}
