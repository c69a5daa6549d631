/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules and FLOPs of attention: sdpa over a segment table, sdpa_tnd over segment ends, their gradients,
 * segment_ends. H query heads, K kv heads (K divides H), h head dim, C segments at most. */
#include <inttypes.h>

#include "ops/op_check.h"

/* q [..., H, h], k and v [..., K, h] of one dtype, at inputs at, at + 1, at + 2. ndim -1: any from 3 on. */
static ct_status want_qkv(const cti_check *c, int32_t at, int32_t ndim, const ct_attrs_sdpa *a)
{
    CT_TRY(cti_want_float(c, at));
    for (int32_t i = at; i < at + 3; i++) {
        CT_TRY(cti_want_same_dtype(c, i, at));
        CT_TRY(ndim < 0 ? cti_want_ndim_min(c, i, 3) : cti_want_ndim(c, i, ndim));
    }
    CT_TRY(cti_want_same_dims(c, at + 2, at + 1));
    const ct_value *q = c->in[at], *k = c->in[at + 1];
    CT_TRY(cti_want(c, q->dims[q->ndim - 1] == k->dims[k->ndim - 1], "q and k must have the same head dim"));
    const int64_t heads = q->dims[q->ndim - 2], kv_heads = k->dims[k->ndim - 2];
    CT_TRY(cti_want(c, kv_heads > 0 && heads % kv_heads == 0,
                    "%" PRId64 " kv heads do not divide %" PRId64 " heads", kv_heads, heads));
    return cti_want(c, a->window >= 0, "'window' %" PRId64 " is less than 0", a->window);
}

static ct_status want_segments(const cti_check *c, int32_t at)
{
    CT_TRY(cti_want_dtype(c, at, CT_DTYPE_I32));
    CT_TRY(cti_want_ndim(c, at, 2));
    CT_TRY(cti_want(c, c->in[at]->dims[1] == 4,
                    "dim 1 of input %d must be 4 (q_start, q_len, k_start, k_len)", (int)at));
    return cti_want_vector(c, at + 1, CT_DTYPE_I32, 1);
}

static ct_status want_ends(const cti_check *c, int32_t at)
{
    CT_TRY(cti_want_vector(c, at, CT_DTYPE_I32, -1));
    CT_TRY(cti_want_vector(c, at + 1, CT_DTYPE_I32, c->in[at]->dims[0]));
    return cti_want_vector(c, at + 2, CT_DTYPE_I32, 1);
}

/* lse is f32 [tokens of q, H]. */
static ct_value_spec lse_spec(const ct_value *q)
{
    return cti_spec(CT_DTYPE_F32, 2, (int64_t[]){cti_rows(q, 2), q->dims[q->ndim - 2]});
}

static ct_status forward(const cti_check *c, int32_t ndim, const ct_attrs_sdpa *a, ct_value_spec *out_specs)
{
    CT_TRY(want_qkv(c, 0, ndim, a));
    out_specs[0] = cti_spec_like(c->in[0]);
    out_specs[1] = lse_spec(c->in[0]);
    return CT_OK;
}

/* do, q, k, v, o, lse, … -> dq, dk, dv */
static ct_status backward(const cti_check *c, int32_t ndim, const ct_attrs_sdpa *a, ct_value_spec *out_specs)
{
    CT_TRY(want_qkv(c, 1, ndim, a));
    CT_TRY(cti_want_same(c, 0, 1));
    CT_TRY(cti_want_same(c, 4, 1));
    const ct_value_spec lse = lse_spec(c->in[1]);
    CT_TRY(cti_want_dtype(c, 5, CT_DTYPE_F32));
    CT_TRY(cti_want_dims(c, 5, lse.dims, lse.ndim));
    for (int32_t i = 0; i < 3; i++) {
        out_specs[i] = cti_spec_like(c->in[1 + i]);
    }
    return CT_OK;
}

ct_status cti_shape_sdpa(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                         ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const cti_check c = CTI_CHECK("sdpa");
    CT_TRY(want_segments(&c, 3));
    return forward(&c, -1, attrs, out_specs);
}

ct_status cti_shape_sdpa_grad(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                              const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const cti_check c = CTI_CHECK("sdpa_grad");
    CT_TRY(want_segments(&c, 6));
    return backward(&c, -1, attrs, out_specs);
}

/* The TND layout has no window. */
static ct_status want_no_window(const cti_check *c, const ct_attrs_sdpa *a)
{
    return cti_want(c, a->window == 0, "has no 'window'; use sdpa");
}

ct_status cti_shape_sdpa_tnd(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                             const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const cti_check c = CTI_CHECK("sdpa_tnd");
    CT_TRY(want_ends(&c, 3));
    CT_TRY(want_no_window(&c, attrs));
    return forward(&c, 3, attrs, out_specs);
}

ct_status cti_shape_sdpa_tnd_grad(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                                  const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const cti_check c = CTI_CHECK("sdpa_tnd_grad");
    CT_TRY(want_ends(&c, 6));
    CT_TRY(want_no_window(&c, attrs));
    return backward(&c, 3, attrs, out_specs);
}

ct_status cti_shape_segment_ends(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                                 const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("segment_ends");
    CT_TRY(want_segments(&c, 0));
    out_specs[0] = cti_spec(CT_DTYPE_I32, 1, in[0]->dims);
    out_specs[1] = out_specs[0];
    return CT_OK;
}

/* FLOPs of one of the products (q k^T, or p v). How long segments are is known only at run time, so this
 * counts the whole square of each row, as model FLOPs utilisation usually does: a q of [B, S, H, h] attends
 * to the keys of its row, one of [T, H, h] to all. */
static double square(const ct_value *q, const ct_value *k)
{
    const double q_elements = (double)ct_value_numel(q);
    const double k_tokens = (double)cti_rows(k, 2);
    const double rows = k->ndim > 3 && k->dims[0] > 0 ? (double)k->dims[0] : 1.0;
    return 2.0 * q_elements * (k_tokens / rows);
}

double cti_flops_sdpa(const ct_value *const *in, int32_t n_in, const void *attrs)
{
    (void)n_in;
    (void)attrs;
    return 2.0 * square(in[0], in[1]);
}

/* The gradient makes the scores again, then dv, dp, dq and dk: five products. */
double cti_flops_sdpa_grad(const ct_value *const *in, int32_t n_in, const void *attrs)
{
    (void)n_in;
    (void)attrs;
    return 5.0 * square(in[1], in[2]);
}

double cti_flops_sdpa_tnd(const ct_value *const *in, int32_t n_in, const void *attrs)
{
    return cti_flops_sdpa(in, n_in, attrs);
}

double cti_flops_sdpa_tnd_grad(const ct_value *const *in, int32_t n_in, const void *attrs)
{
    return cti_flops_sdpa_grad(in, n_in, attrs);
}
