/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of what runs once a step: sumsq, add_n, clip_coef, the parts of optimizers, accumulate. */
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

/* (begin, end, group) triples inside n elements. */
static ct_status want_segments(const cti_check *c, const ct_i64_list *segments, int64_t groups, int64_t n)
{
    CT_TRY(cti_want(c, segments->n % 3 == 0, "'segments' has %" PRId64 " numbers; they come in threes", segments->n));
    for (int64_t i = 0; i < segments->n; i += 3) {
        const int64_t *s = &segments->items[i];
        CT_TRY(cti_want(c, s[0] >= 0 && s[0] <= s[1] && s[1] <= n,
                        "segment %" PRId64 " is [%" PRId64 ", %" PRId64 "), outside the parameter", i / 3,
                        s[0], s[1]));
        CT_TRY(cti_want(c, s[2] >= 0 && s[2] < groups,
                        "segment %" PRId64 " names group %" PRId64 " of %" PRId64, i / 3, s[2], groups));
    }
    return CT_OK;
}

ct_status cti_check_segments(const char *op, const ct_i64_list *segments, int64_t n_elements, int64_t n_groups, ct_err *err)
{
    for (int64_t i = 0; i + 2 < segments->n; i += 3) {
        const int64_t *s = segments->items + i;
        if (s[0] < 0 || s[1] < s[0] || s[1] > n_elements || s[2] < 0 || s[2] >= n_groups) {
            return CT_FAIL(err, CT_ERR_RANGE, "%s: segment %" PRId64 " is [%" PRId64 ", %" PRId64 ") of group %" PRId64 ", there are %" PRId64
                           " elements and %" PRId64 " groups", op, i / 3, s[0], s[1], s[2], n_elements, n_groups);
        }
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
    const ct_attrs_adamw *a = attrs;
    const int64_t groups = a->beta1.n;
    CT_TRY(cti_want(&c, a->beta2.n == groups && a->eps.n == groups && a->weight_decay.n == groups && (a->l2.n == groups || a->l2.n == 0),
                    "'beta1', 'beta2', 'eps', 'weight_decay' and, where it is there, 'l2' must have one entry per group"));
    CT_TRY(cti_want_vector(&c, 4, CT_DTYPE_F64, groups));
    CT_TRY(want_segments(&c, &a->segments, groups, ct_value_numel(in[0])));
    out_specs[0] = cti_spec_like(in[0]);
    out_specs[1] = cti_spec_like(in[2]);
    out_specs[2] = cti_spec_like(in[3]);
    return CT_OK;
}

ct_status cti_shape_momentum(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs, ct_value_spec *out_specs,
                             ct_err *err)
{
    (void)graph;
    const ct_attrs_momentum *a = attrs;
    const cti_check c = CTI_CHECK("momentum");
    const int64_t groups = a->momentum.n;
    for (int32_t i = 0; i < 3; i++) {
        CT_TRY(cti_want_float(&c, i));
        CT_TRY(cti_want_same_dims(&c, i, 0));
    }
    CT_TRY(cti_want_vector(&c, 3, CT_DTYPE_F32, 1));
    CT_TRY(cti_want_vector(&c, 4, CT_DTYPE_I32, 1));
    CT_TRY(cti_want(&c, a->share.n == groups && a->weight_decay.n == groups && a->nesterov.n == groups,
                    "'momentum', 'share', 'weight_decay' and 'nesterov' must have one entry per group"));
    CT_TRY(want_segments(&c, &a->segments, groups, ct_value_numel(in[0])));
    out_specs[0] = cti_spec_like(in[0]);
    out_specs[1] = cti_spec(in[0]->dtype == CT_DTYPE_F64 ? CT_DTYPE_F64 : CT_DTYPE_F32, in[0]->ndim, in[0]->dims);
    return CT_OK;
}

ct_status cti_shape_newton_schulz(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs, ct_value_spec *out_specs,
                                  ct_err *err)
{
    (void)graph;
    const ct_attrs_newton_schulz *a = attrs;
    const cti_check c = CTI_CHECK("newton_schulz");
    const int64_t groups = a->steps.n, n = ct_value_numel(in[0]);
    CT_TRY(cti_want_float(&c, 0));
    CT_TRY(cti_want(&c, a->matrices.n % 4 == 0 && a->scale.n == a->matrices.n / 4,
                    "'matrices' has %" PRId64 " numbers, 'scale' %" PRId64 "; a matrix has four and one", a->matrices.n, a->scale.n));
    CT_TRY(cti_want(&c, a->eps.n == groups && a->coefficients.n == 3 * groups,
                    "'steps' and 'eps' must have one entry per group, 'coefficients' three"));
    for (int64_t i = 0; i < groups; i++) {
        CT_TRY(cti_want(&c, a->steps.items[i] >= 0, "'steps' must be 0 or more"));
    }
    for (int64_t i = 0; i < a->matrices.n; i += 4) {
        const int64_t *m = &a->matrices.items[i];
        CT_TRY(cti_want(&c, m[0] >= 0 && m[0] <= n && m[1] > 0 && m[2] > 0 && m[1] <= (n - m[0]) / m[2],
                        "matrix %" PRId64 " [%" PRId64 ", %" PRId64 "] at %" PRId64 " is outside the vector", i / 4, m[1], m[2], m[0]));
        CT_TRY(cti_want(&c, m[3] >= 0 && m[3] < groups, "matrix %" PRId64 " names group %" PRId64 " of %" PRId64, i / 4, m[3], groups));
    }
    out_specs[0] = cti_spec_like(in[0]);
    return CT_OK;
}

double cti_flops_newton_schulz(const ct_value *const *in, int32_t n_in, const void *attrs)
{
    const ct_attrs_newton_schulz *a = attrs;
    double flops = 0.0;
    (void)in;
    (void)n_in;
    for (int64_t i = 0; i < a->matrices.n; i += 4) {
        const int64_t *m = &a->matrices.items[i];
        const double r = (double)(m[1] < m[2] ? m[1] : m[2]), n = (double)(m[1] < m[2] ? m[2] : m[1]);
        flops += (double)a->steps.items[m[3]] * (4.0 * r * r * n + 2.0 * r * r * r);
    }
    return flops;
}

ct_status cti_shape_descend(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs, ct_value_spec *out_specs,
                            ct_err *err)
{
    (void)graph;
    const ct_attrs_descend *a = attrs;
    const cti_check c = CTI_CHECK("descend");
    const int64_t groups = a->weight_decay.n;
    CT_TRY(cti_want_float(&c, 0));
    CT_TRY(cti_want_float(&c, 1));
    CT_TRY(cti_want_same_dims(&c, 1, 0));
    CT_TRY(cti_want_vector(&c, 2, CT_DTYPE_F64, groups));
    CT_TRY(cti_want_vector(&c, 3, CT_DTYPE_I32, 1));
    if (n_in > 4 && in[4] != NULL) {
        CT_TRY(cti_want_vector(&c, 4, CT_DTYPE_F32, 1));
    }
    CT_TRY(cti_want(&c, a->l2.n == groups, "'weight_decay' and 'l2' must have one entry per group"));
    CT_TRY(want_segments(&c, &a->segments, groups, ct_value_numel(in[0])));
    out_specs[0] = cti_spec_like(in[0]);
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
