/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of what runs once a step: sumsq, add_n, clip_coef, adamw, accumulate. */
#include <inttypes.h>

#include "ops/op_check.h"

static ct_value_spec scalar(ct_dtype dtype)
{
    return cti_spec(dtype, 1, (int64_t[]){1});
}

ct_status cti_shape_sumsq(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                          ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_sumsq *a = attrs;
    const cti_check c = CTI_CHECK("sumsq");
    CT_TRY(cti_want_float(&c, 0));
    CT_TRY(cti_want(&c, a->leaves >= 1 && ct_value_numel(in[0]) % a->leaves == 0, "'leaves' %" PRId64 " does not divide the elements",
                    a->leaves));
    out_specs[0] = scalar(CT_DTYPE_F64);
    return CT_OK;
}

ct_status cti_shape_add_n(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                          ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("add_n");
    for (int32_t i = 0; i < n_in; i++) {
        CT_TRY(cti_want_vector(&c, i, CT_DTYPE_F64, -1));
    }
    out_specs[0] = scalar(CT_DTYPE_F64);
    return CT_OK;
}

ct_status cti_shape_clip_coef(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                              const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_clip *a = attrs;
    const cti_check c = CTI_CHECK("clip_coef");
    CT_TRY(cti_want_vector(&c, 0, CT_DTYPE_F64, 1));
    CT_TRY(cti_want_vector(&c, 1, CT_DTYPE_F64, 1));
    CT_TRY(cti_want(&c, a->max_norm >= 0.0, "'max_norm' must be 0 or more"));
    out_specs[0] = scalar(CT_DTYPE_F32);
    out_specs[1] = scalar(CT_DTYPE_F64);
    out_specs[2] = scalar(CT_DTYPE_I32);
    return CT_OK;
}

/* segments: (begin, end, group) triples inside n elements; every list of hyper-parameters has one entry per
 * group. */
static ct_status want_segments(const cti_check *c, const ct_attrs_adamw *a, int64_t n)
{
    CT_TRY(cti_want(c, a->segments.n % 3 == 0, "'segments' has %" PRId64 " numbers; they come in threes",
                    a->segments.n));
    const int64_t groups = a->beta1.n;
    CT_TRY(cti_want(c, a->beta2.n == groups && a->eps.n == groups && a->weight_decay.n == groups,
                    "'beta1', 'beta2', 'eps' and 'weight_decay' must have one entry per group"));
    CT_TRY(cti_want_vector(c, 4, CT_DTYPE_F64, groups));
    for (int64_t i = 0; i < a->segments.n; i += 3) {
        const int64_t *s = &a->segments.items[i];
        CT_TRY(cti_want(c, s[0] >= 0 && s[0] <= s[1] && s[1] <= n,
                        "segment %" PRId64 " is [%" PRId64 ", %" PRId64 "), outside the parameter", i / 3,
                        s[0], s[1]));
        CT_TRY(cti_want(c, s[2] >= 0 && s[2] < groups,
                        "segment %" PRId64 " names group %" PRId64 " of %" PRId64, i / 3, s[2], groups));
    }
    return CT_OK;
}

ct_status cti_shape_adamw(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                          ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const cti_check c = CTI_CHECK("adamw");
    CT_TRY(cti_want_float(&c, 0));
    for (int32_t i = 1; i <= 3; i++) {
        CT_TRY(cti_want_same_dims(&c, i, 0));
    }
    const ct_dtype p = in[0]->dtype;
    for (int32_t i = 1; i <= 3; i++) {
        const ct_dtype d = in[i]->dtype;
        CT_TRY(cti_want(&c, d == p || d == CT_DTYPE_F32 || d == CT_DTYPE_BF16,
                        "input %d must be f32, bf16 or of the parameter's dtype", (int)i));
    }
    CT_TRY(cti_want_vector(&c, 5, CT_DTYPE_I64, 1));
    CT_TRY(cti_want_vector(&c, 6, CT_DTYPE_F32, 1));
    CT_TRY(cti_want_vector(&c, 7, CT_DTYPE_I32, 1));
    CT_TRY(want_segments(&c, attrs, ct_value_numel(in[0])));
    out_specs[0] = cti_spec_like(in[0]);
    out_specs[1] = cti_spec_like(in[2]);
    out_specs[2] = cti_spec_like(in[3]);
    return CT_OK;
}

ct_status cti_shape_accumulate(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                               const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("accumulate");
    CT_TRY(cti_want_float(&c, 0));
    CT_TRY(cti_want_float(&c, 1));
    CT_TRY(cti_want_same_dims(&c, 1, 0));
    CT_TRY(cti_want_vector(&c, 2, CT_DTYPE_I32, 1));
    out_specs[0] = cti_spec_like(in[0]);
    return CT_OK;
}
