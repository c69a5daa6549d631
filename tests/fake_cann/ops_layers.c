/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: fake/cann */
/* Norms, rotary embedding, SwiGLU, AdamW, embedding, indices of libopapi's double against their formulas in
 * double precision. */
#include "fake/cann/testing/ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Compares an output and frees. */
static void expect(op *o, const char *name, const double *want, double absolute)
{
    operand *a = op_find(o, name);
    double *got = op_get(o, name);
    assert_true(ops_close(o->name, got, want, fake_view_count(&a->view), ops_unit(a->view.dtype), absolute));
    free(got);
}

enum { R = 6, W = 8 };

static void test_rms_norm(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "x:f32:2,3,8 gamma:f32:8 eps~1e-5 y:f32:2,3,8 rstd:f32:2,3,1",
        "x:bf16:2,3,8 gamma:bf16:8 eps~1e-5 y:bf16:2,3,8 rstd:f32:2,3,1",
        "x:bf16:6,8 gamma:f32:8 eps~1e-5 y:bf16:6,8 rstd:f32:6,1",
    };
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        op *o = op_new("RmsNorm", texts[t]);
        double *x = op_get(o, "x"), *g = op_get(o, "gamma"), y[R * W], rstd[R];
        for (int r = 0; r < R; r++) {
            double sum = 0;
            for (int i = 0; i < W; i++) {
                sum += x[r * W + i] * x[r * W + i];
            }
            rstd[r] = 1 / sqrt(sum / W + 1e-5);
            for (int i = 0; i < W; i++) {
                y[r * W + i] = x[r * W + i] * rstd[r] * g[i];
            }
        }
        assert_int_equal(op_run(o), 0);
        expect(o, "rstd", rstd, ops_sum_bound(W, 4));
        expect(o, "y", y, ops_sum_bound(W, 4));
        free(x);
        free(g);
        op_free(o);
    }
}

/* The gradient of sum(dy * y) by central differences of the formula above. */
static double norm_dot(const double *x, const double *g, const double *dy)
{
    double dot = 0;
    for (int r = 0; r < R; r++) {
        double sum = 0;
        for (int i = 0; i < W; i++) {
            sum += x[r * W + i] * x[r * W + i];
        }
        double rstd = 1 / sqrt(sum / W + 1e-5);
        for (int i = 0; i < W; i++) {
            dot += dy[r * W + i] * x[r * W + i] * rstd * g[i];
        }
    }
    return dot;
}

static void test_rms_norm_grad(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "dy:f32:2,3,8 x:f32:2,3,8 rstd:f32:2,3,1 gamma:f32:8 dx:f32:2,3,8 dgamma:f32:8",
        "dy:bf16:6,8 x:bf16:6,8 rstd:f32:6 gamma:bf16:8 dx:bf16:6,8 dgamma:f32:8",
    };
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        op *o = op_new("RmsNormGrad", texts[t]);
        double *x = op_get(o, "x"), *g = op_get(o, "gamma"), *dy = op_get(o, "dy"), rstd[R], dx[R * W],
               dgamma[W], h = 1e-5;
        for (int r = 0; r < R; r++) {
            double sum = 0;
            for (int i = 0; i < W; i++) {
                sum += x[r * W + i] * x[r * W + i];
            }
            rstd[r] = 1 / sqrt(sum / W + 1e-5);
        }
        op_set(o, "rstd", rstd);
        for (int i = 0; i < R * W + W; i++) {
            double *p = i < R * W ? &x[i] : &g[i - R * W], old = *p;
            *p = old + h;
            double up = norm_dot(x, g, dy);
            *p = old - h;
            *(i < R * W ? &dx[i] : &dgamma[i - R * W]) = (up - norm_dot(x, g, dy)) / (2 * h);
            *p = old;
        }
        assert_int_equal(op_run(o), 0);
        /* 1e-8: what the differences themselves lose */
        expect(o, "dx", dx, ops_sum_bound(W, 8) + 1e-8);
        expect(o, "dgamma", dgamma, ops_sum_bound(R, 8) + 1e-8);
        free(x);
        free(g);
        free(dy);
        op_free(o);
    }
}

/* rot(x)[i] and where it comes from. */
static int partner(int i, int d, int mode, double *sign)
{
    if (mode == 0) {
        *sign = i < d / 2 ? -1 : 1;
        return i < d / 2 ? i + d / 2 : i - d / 2;
    }
    *sign = i % 2 == 0 ? -1 : 1;
    return i % 2 == 0 ? i + 1 : i - 1;
}

/* x (2, 3, 4, 6) with cos of (1, 3, 1, 6): BSND. */
static void test_rope(void **state)
{
    (void)state;
    enum { D = 6, ROWS = 24 };
    for (int mode = 0; mode < 2; mode++) {
        char text[160];
        snprintf(text, sizeof text, "x:f32:2,3,4,6 cos:f32:1,3,1,6 sin:f32:1,3,1,6 mode=%d out:f32:2,3,4,6",
                 mode);
        op *o = op_new("RotaryPositionEmbedding", text);
        double *x = op_get(o, "x"), *c = op_get(o, "cos"), *s = op_get(o, "sin"), y[ROWS * D];
        for (int k = 0; k < ROWS * D; k++) {
            int i = k % D, at = k / D / 4 % 3 * D + i;
            double sign;
            int from = partner(i, D, mode, &sign);
            y[k] = x[k] * c[at] + sign * x[k - i + from] * s[at];
        }
        assert_int_equal(op_run(o), 0);
        expect(o, "out", y, ops_sum_bound(2, 2));
        op_free(o);

        snprintf(text, sizeof text,
                 "dy:f32:2,3,4,6 cos:f32:1,3,1,6 sin:f32:1,3,1,6 x:f32:2,3,4,6 mode=%d dx:f32:2,3,4,6 "
                 "dcos:f32:1,3,1,6 dsin:f32:1,3,1,6",
                 mode);
        o = op_new("RotaryPositionEmbeddingGrad", text);
        double *dy = op_get(o, "dy"), dx[ROWS * D] = {0}, dc[3 * D] = {0}, ds[3 * D] = {0};
        op_set(o, "cos", c);
        op_set(o, "sin", s);
        op_set(o, "x", x);
        for (int k = 0; k < ROWS * D; k++) {
            int i = k % D, at = k / D / 4 % 3 * D + i;
            double sign;
            int from = partner(i, D, mode, &sign);
            dx[k] += dy[k] * c[at];
            dx[k - i + from] += dy[k] * sign * s[at];
            dc[at] += dy[k] * x[k];
            ds[at] += dy[k] * sign * x[k - i + from];
        }
        assert_int_equal(op_run(o), 0);
        expect(o, "dx", dx, ops_sum_bound(2, 2));
        expect(o, "dcos", dc, ops_sum_bound(8, 8));
        expect(o, "dsin", ds, ops_sum_bound(8, 8));
        free(x);
        free(c);
        free(s);
        free(dy);
        op_free(o);
    }
}

static void test_swiglu(void **state)
{
    (void)state;
    static const struct {
        const char *forward, *backward;
        int inner; /* elements of a half along the dim and behind it */
    } cases[] = {
        {"x:f32:3,8 dim=-1 out:f32:3,4", "dy:f32:3,4 x:f32:3,8 dim=-1 out:f32:3,8", 4},
        {"x:bf16:4,6 dim=0 out:bf16:2,6", "dy:bf16:2,6 x:bf16:4,6 dim=0 out:bf16:4,6", 12},
    };
    for (size_t t = 0; t < sizeof cases / sizeof cases[0]; t++) {
        op *f = op_new("SwiGlu", cases[t].forward), *b = op_new("SwiGluGrad", cases[t].backward);
        double *x = op_get(f, "x"), *dy = op_get(b, "dy"), y[12], dx[24];
        op_set(b, "x", x);
        for (int k = 0; k < 12; k++) {
            int n = cases[t].inner, a = k / n * 2 * n + k % n, c = a + n;
            double s = 1 / (1 + exp(-x[a]));
            y[k] = x[a] * s * x[c];
            dx[a] = dy[k] * x[c] * s * (1 + x[a] * (1 - s));
            dx[c] = dy[k] * x[a] * s;
        }
        assert_int_equal(op_run(f), 0);
        assert_int_equal(op_run(b), 0);
        expect(f, "out", y, ops_sum_bound(8, 1));
        expect(b, "out", dx, ops_sum_bound(8, 2));
        free(x);
        free(dy);
        op_free(f);
        op_free(b);
    }
}

/* AdamW as PyTorch documents it, for update t; the operator is given t - 1. Three updates, so that moments
 * matter. */
static void test_adamw(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "p:f32:5 m:f32:5 v:f32:5 max:null g:f32:5 step:i64:1 lr~0.01 b1~0.9 b2~0.95 wd~0.1 eps~1e-8 "
        "amsgrad=0 maximize=0",
        "p:f32:5 m:f32:5 v:f32:5 max:f32:5 g:bf16:5 step:f32:1 lr~0.01 b1~0.9 b2~0.95 wd~0.1 eps~1e-8 "
        "amsgrad=1 maximize=1",
    };
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
        op *o = op_new("ApplyAdamWV2", texts[k]);
        double *p = op_get(o, "p"), *g = op_get(o, "g"), m[5] = {0}, v[5] = {0}, top[5] = {0};
        double lr = (double)0.01f, b1 = (double)0.9f, b2 = (double)0.95f, wd = (double)0.1f,
               eps = (double)1e-8f;
        op_set(o, "m", m);
        op_set(o, "v", v);
        if (k) {
            op_set(o, "max", top);
        }
        for (int t = 1; t <= 3; t++) {
            op_set(o, "step", (double[]){t - 1});
            for (int i = 0; i < 5; i++) {
                double e = k ? -g[i] : g[i];
                p[i] *= 1 - lr * wd;
                m[i] = b1 * m[i] + (1 - b1) * e;
                v[i] = b2 * v[i] + (1 - b2) * e * e;
                top[i] = v[i] > top[i] ? v[i] : top[i];
                p[i] -= lr * (m[i] / (1 - pow(b1, t))) / (sqrt((k ? top[i] : v[i]) / (1 - pow(b2, t))) + eps);
            }
            assert_int_equal(op_run(o), 0);
            expect(o, "m", m, ops_sum_bound(4, 1));
            expect(o, "v", v, ops_sum_bound(4, 1));
            expect(o, "p", p, ops_sum_bound(16, 1));
        }
        free(p);
        free(g);
        op_free(o);
    }
}

static void test_embedding(void **state)
{
    (void)state;
    const double index[] = {4, 0, 4, 2, 4, 1};
    op *o = op_new("Embedding", "weight:bf16:5,3 indices:i64:2,3 out:bf16:2,3,3");
    op_set(o, "indices", index);
    double *w = op_get(o, "weight"), want[18];
    for (int i = 0; i < 18; i++) {
        want[i] = w[(int)index[i / 3] * 3 + i % 3];
    }
    assert_int_equal(op_run(o), 0);
    expect(o, "out", want, 0);
    free(w);
    op_free(o);

    static const struct {
        const char *text;
        int padding;
        bool by_count;
    } cases[] = {
        {"grad:f32:2,3,3 indices:i32:2,3 rows=5 padding=-1 scale=0 out:f32:5,3", -1, false},
        {"grad:f32:2,3,3 indices:i32:2,3 rows=5 padding=2 scale=1 out:f32:5,3", 2, true},
    };
    for (size_t t = 0; t < 2; t++) {
        op *b = op_new("EmbeddingDenseBackward", cases[t].text);
        op_set(b, "indices", index);
        double *g = op_get(b, "grad"), sum[15] = {0}, count[5] = {0};
        for (int i = 0; i < 18; i++) {
            int to = (int)index[i / 3];
            sum[to * 3 + i % 3] += to == cases[t].padding ? 0 : g[i];
            count[to] += i % 3 == 0;
        }
        for (int i = 0; i < 15 && cases[t].by_count; i++) {
            sum[i] /= count[i / 3] > 0 ? count[i / 3] : 1;
        }
        assert_int_equal(op_run(b), 0);
        expect(b, "out", sum, ops_sum_bound(3, 3));
        free(g);
        op_free(b);
    }
}

/* In half precision every addition is rounded: 256 + 1 is 256. */
static void test_embedding_half(void **state)
{
    (void)state;
    op *b = op_new("EmbeddingDenseBackward",
                   "grad:bf16:3,1 indices:i64:3 rows=1 padding=-1 scale=0 out:bf16:1,1");
    aclrtSetSysParamOpt(0, 1);
    op_set(b, "grad", (double[]){256, 1, 1});
    op_set(b, "indices", (double[]){0, 0, 0});
    assert_int_equal(op_run(b), 0);
    expect(b, "out", (double[]){256}, 0);
    aclrtSetSysParamOpt(0, 0);
    op_free(b);
}

static void test_gather(void **state)
{
    (void)state;
    op *o = op_new("IndexSelect", "self:f32:2,4,3 dim=1 index:i64:2 out:f32:2,2,3");
    op_set(o, "index", (double[]){3, 1});
    double *x = op_get(o, "self"), want[12], six[6];
    for (int i = 0; i < 12; i++) {
        want[i] = x[i / 6 * 12 + (i / 3 % 2 ? 1 : 3) * 3 + i % 3];
    }
    assert_int_equal(op_run(o), 0);
    expect(o, "out", want, 0);
    free(x);
    op_free(o);
    o = op_new("Gather", "self:i64:3,4 dim=-1 index:i32:3,2 out:i64:3,2");
    const double index[] = {0, 3, 1, 1, 2, 0};
    op_set(o, "index", index);
    x = op_get(o, "self");
    for (int i = 0; i < 6; i++) {
        six[i] = x[i / 2 * 4 + (int)index[i]];
    }
    assert_int_equal(op_run(o), 0);
    expect(o, "out", six, 0);
    free(x);
    op_free(o);
}

static int begin(void **state)
{
    (void)state;
    ops_begin();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rms_norm),       cmocka_unit_test(test_rms_norm_grad),
        cmocka_unit_test(test_rope),           cmocka_unit_test(test_swiglu),
        cmocka_unit_test(test_adamw),          cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_embedding_half), cmocka_unit_test(test_gather),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
