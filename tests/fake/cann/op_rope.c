/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryPositionEmbedding and its gradient: y = x * cos + rot(x) * sin. The layout is read off the ones in
 * the dims of cos. */
#include "nnop.h"

enum { HALF = 0, INTERLEAVE = 1 };

/* Whether cos has the form `form` of a 4-dim x: '1' a one, 'x' the dim of x. */
static bool is_form(const fake_view *x, const fake_view *cs, const char *form)
{
    for (int d = 0; d < 4; d++) {
        if (cs->dim[d] != (form[d] == '1' ? 1 : x->dim[d])) {
            return false;
        }
    }
    return true;
}

/* x, cos, sin as given; the forms of half mode include all of interleave's. */
static int check_rotation(fake_call *c, int xi, int ci, int si, int64_t mode, bool grad, bool with_x)
{
    static const char *const forms[] = {"11xx", "1x1x", "x11x", "x1xx", "xx1x", "xxxx"};
    const fake_view *x = fake_arg_view(c, xi), *cs = fake_arg_view(c, ci);
    if (mode != HALF && mode != INTERLEAVE) {
        return fake_refuse_value(c, "mode %lld does not exist on this product", (long long)mode);
    }
    if (x->ndim != 4 || cs->ndim != 4) {
        return fake_refuse_shape(c, "the operands should have 4 dims");
    }
    int64_t d = x->dim[3];
    if (d % 2 != 0 || d >= 896 || d == 0) {
        return fake_refuse_shape(c, "the last dim is %lld: it should be even and below 896", (long long)d);
    }
    TRY(fake_want_dims_of(c, si, ci));
    int form = -1;
    for (int f = 0; f < (mode == INTERLEAVE ? 3 : 6) && form < 0; f++) {
        form = is_form(x, cs, forms[f]) ? f : -1;
    }
    if (form < 0) {
        return fake_refuse_shape(c, "cos of this shape is not among those that mode %lld knows",
                                 (long long)mode);
    }
    /* B and N: the leading dims without the sequence, which is dim 2 of BNSD, 1 of BSND, 0 of SBND. Where the
     * form is that of x itself, the layout is not known: all pairs but the largest dim. */
    int seq = form == 0 || form == 3 ? 2 : form == 1 || form == 4 ? 1 : form == 2 ? 0 : -1;
    if (seq < 0) {
        seq = 0;
        for (int k = 1; k < 3; k++) {
            seq = x->dim[k] > x->dim[seq] ? k : seq;
        }
    }
    int64_t b = x->dim[seq == 0 ? 1 : 0], n = x->dim[seq == 2 ? 1 : 2];
    if (mode == HALF ? b >= 1000 || n >= 1000 : b * n >= 1000) {
        return fake_refuse_shape(c, "batch %lld and heads %lld are too many for mode %lld", (long long)b,
                                 (long long)n, (long long)mode);
    }
    if (grad && mode == HALF && with_x && b * n > 1024) {
        return fake_refuse_shape(c, "batch %lld times heads %lld is above 1024", (long long)b, (long long)n);
    }
    if (grad && mode == HALF && (form == 3 || form == 4) && b >= x->dim[seq]) {
        return fake_refuse_shape(c, "cos with a batch needs a batch shorter than the sequence");
    }
    return 0;
}

/* rot(x): half (-second, first), interleave (-odd, even); with sign -1 its transpose. */
static float rotated(const float *x, int64_t i, int64_t d, int64_t mode, float sign)
{
    if (mode == HALF) {
        return i < d / 2 ? -sign * x[i + d / 2] : sign * x[i - d / 2];
    }
    return i % 2 == 0 ? -sign * x[i + 1] : sign * x[i - 1];
}

static float *wide(fake_call *c, int i, const fake_view *like)
{
    fake_view v;
    float *r = fake_new_f32(c, fake_view_count(like));
    fake_view_broadcast(fake_arg_view(c, i), like->ndim, like->dim, &v);
    fake_load_f32(&v, r);
    return r;
}

/* x, cos, sin, mode, out */
static int check_rope(fake_call *c)
{
    TRY(check_rotation(c, 0, 1, 2, c->arg[3].i, false, false));
    return fake_want_dims_of(c, 4, 0);
}

static void run_rope(fake_call *c)
{
    const fake_view *v = fake_arg_view(c, 0);
    int64_t d = v->dim[3], n = fake_view_count(v), mode = c->arg[3].i;
    float *x = fake_arg_f32(c, 0), *cs = wide(c, 1, v), *sn = wide(c, 2, v), *y = fake_new_f32(c, n);
    for (int64_t r = 0; r < n; r += d) {
        for (int64_t i = 0; i < d; i++) {
            y[r + i] = x[r + i] * cs[r + i] + rotated(x + r, i, d, mode, 1) * sn[r + i];
        }
    }
    fake_store_f32(fake_arg_view(c, 4), y);
}

static const fake_operand rope[] = {IN("x", FAKE_FLOAT3), IN("cos", FAKE_FLOAT3, .like = 1),
                                    IN("sin", FAKE_FLOAT3, .like = 1), INT("mode"),
                                    OUT("out", FAKE_FLOAT3, .like = 1, .flags = FAKE_DENSE)};
OP(RotaryPositionEmbedding, ARGS(rope), .check = check_rope, .run = run_rope,
   .flags = FAKE_OP_GENERATED | FAKE_OP_NOT_910A);
PHASE1(RotaryPositionEmbedding, const aclTensor *x, const aclTensor *cos, const aclTensor *sin, int64_t mode,
       aclTensor *out)
{
    PLAN(RotaryPositionEmbedding, T(x), T(cos), T(sin), I(mode), T(out));
}
PHASE2(RotaryPositionEmbedding)

/* dy, cos, sin, x (may be NULL), mode, dxOut, dcosOut, dsinOut */
static int check_grad(fake_call *c)
{
    TRY(check_rotation(c, 0, 1, 2, c->arg[4].i, true, c->arg[3].given));
    if (c->arg[3].given) {
        TRY(fake_want_dims_of(c, 3, 0));
    }
    TRY(fake_want_dims_of(c, 5, 0));
    if (!c->arg[3].given) {
        return 0;
    }
    TRY(fake_want_dims_of(c, 6, 1));
    return fake_want_dims_of(c, 7, 1);
}

/* Adds a tensor of dy's dims up to the dims of argument `to`. */
static void store_summed(fake_call *c, const float *x, const fake_view *like, int to)
{
    const fake_view *out = fake_arg_view(c, to);
    float *sum = fake_new_f32(c, fake_view_count(out));
    fake_view dense = fake_view_dense(ACL_FLOAT, out->ndim, out->dim, sum), spread;
    fake_view_broadcast(&dense, like->ndim, like->dim, &spread);
    int64_t k = 0;
    for (int64_t a = 0; a < like->dim[0]; a++) {
        for (int64_t b = 0; b < like->dim[1]; b++) {
            for (int64_t s = 0; s < like->dim[2]; s++) {
                for (int64_t i = 0; i < like->dim[3]; i++, k++) {
                    sum[a * spread.stride[0] + b * spread.stride[1] + s * spread.stride[2] +
                        i * spread.stride[3]] += x[k];
                }
            }
        }
    }
    fake_store_f32(out, sum);
}

static void run_grad(fake_call *c)
{
    const fake_view *v = fake_arg_view(c, 0);
    int64_t d = v->dim[3], n = fake_view_count(v), mode = c->arg[4].i;
    float *dy = fake_arg_f32(c, 0), *cs = wide(c, 1, v), *sn = wide(c, 2, v), *dx = fake_new_f32(c, n),
          *t = fake_new_f32(c, n);
    for (int64_t i = 0; i < n; i++) {
        t[i] = sn[i] * dy[i];
    }
    for (int64_t r = 0; r < n; r += d) {
        for (int64_t i = 0; i < d; i++) {
            dx[r + i] = cs[r + i] * dy[r + i] + rotated(t + r, i, d, mode, -1);
        }
    }
    fake_store_f32(fake_arg_view(c, 5), dx);
    if (!c->arg[3].given) {
        return;
    }
    float *x = fake_arg_f32(c, 3);
    for (int64_t i = 0; i < n; i++) {
        t[i] = dy[i] * x[i];
    }
    store_summed(c, t, v, 6);
    for (int64_t r = 0; r < n; r += d) {
        for (int64_t i = 0; i < d; i++) {
            t[r + i] = dy[r + i] * rotated(x + r, i, d, mode, 1);
        }
    }
    store_summed(c, t, v, 7);
}

static const fake_operand grad[] = {IN("dy", FAKE_FLOAT3),
                                    IN("cos", FAKE_FLOAT3, .like = 1),
                                    IN("sin", FAKE_FLOAT3, .like = 1),
                                    IN("xOptional", FAKE_FLOAT3, .like = 1, .flags = FAKE_OPTIONAL),
                                    INT("mode"),
                                    OUT("dxOut", FAKE_FLOAT3, .like = 1, .flags = FAKE_DENSE),
                                    OUT("dcosOut", FAKE_FLOAT3, .like = 1, .flags = FAKE_DENSE),
                                    OUT("dsinOut", FAKE_FLOAT3, .like = 1, .flags = FAKE_DENSE)};
OP(RotaryPositionEmbeddingGrad, ARGS(grad), .check = check_grad, .run = run_grad,
   .flags = FAKE_OP_GENERATED | FAKE_OP_NOT_910A);
PHASE1(RotaryPositionEmbeddingGrad, const aclTensor *dy, const aclTensor *cos, const aclTensor *sin,
       const aclTensor *xOptional, int64_t mode, const aclTensor *dxOut, const aclTensor *dcosOut,
       const aclTensor *dsinOut)
{
    PLAN(RotaryPositionEmbeddingGrad, T(dy), T(cos), T(sin), T(xOptional), I(mode), T(dxOut), T(dcosOut),
         T(dsinOut));
}
PHASE2(RotaryPositionEmbeddingGrad)
