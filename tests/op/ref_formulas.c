/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: backend/ref backend ops ir mesh base */
/* labels: fast */
/* The reference kernels against plain formulas and values worked out by hand, in f64: what the other backends are compared with must itself be right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/ref/ref.h"
#include "base/base.h"

#define EPS 0x1p-53

static ct_tensor t(void *data, ct_dtype dtype, int ndim, int64_t d0, int64_t d1, int64_t d2)
{
    return (ct_tensor){.data = data, .dtype = dtype, .ndim = ndim, .dims = {d0, d1, d2}};
}

static void run(ct_op_id op, const ct_tensor *in, int n_in, const ct_tensor *out, int n_out, const void *attrs)
{
    static double workspace[1 << 16];
    const ct_kernel *k = &ct_backend_ref()->kernels[op];
    ct_launch l = {.in = in, .n_in = n_in, .out = out, .n_out = n_out, .attrs = attrs};
    ct_err err = {0};
    if (k->workspace_bytes != NULL) {
        l.workspace_bytes = k->workspace_bytes(&l);
        l.workspace = workspace;
        assert_true(l.workspace_bytes <= sizeof workspace);
    }
    if (k->run(&l, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
}

static double value(uint64_t seed, int64_t i)
{
    return cti_rng_normal(cti_rng_key_make(seed, "formula"), (uint64_t)i);
}

static void near(const char *what, double found, double wanted, double bound)
{
    if (!(fabs(found - wanted) <= bound)) {
        fail_msg("%s: found %.17g, wanted %.17g, bound %.3g", what, found, wanted, bound);
    }
}

/* Two updates worked out with exact decimals: lr 0.1, weight decay 0.1, betas 0.9 and 0.999, eps 1e-8. */
static void test_adamw(void **state)
{
    (void)state;
    double p = 1.0, g = 0.5, m = 0.0, v = 0.0, lr = 0.1;
    double b1 = 0.9, b2 = 0.999, eps = 1e-8, wd = 0.1;
    int64_t step = 1, segment[3] = {0, 1, 0};
    float coef = 1.0F;
    int32_t go = 1;
    const ct_attrs_adamw a = {{3, segment}, {1, &b1}, {1, &b2}, {1, &eps}, {1, &wd}, {0, NULL}};
    const ct_tensor in[8] = {t(&p, CT_DTYPE_F64, 1, 1, 0, 0),     t(&g, CT_DTYPE_F64, 1, 1, 0, 0), t(&m, CT_DTYPE_F64, 1, 1, 0, 0),
                             t(&v, CT_DTYPE_F64, 1, 1, 0, 0),     t(&lr, CT_DTYPE_F64, 1, 1, 0, 0), t(&step, CT_DTYPE_I64, 1, 1, 0, 0),
                             t(&coef, CT_DTYPE_F32, 1, 1, 0, 0), t(&go, CT_DTYPE_I32, 1, 1, 0, 0)};
    const ct_tensor out[3] = {in[0], in[2], in[3]};
    run(CT_OP_adamw, in, 8, out, 3, &a);
    near("p after 1", p, 0.89000000199999996, 16 * EPS);
    near("m after 1", m, 0.05, 4 * EPS);
    near("v after 1", v, 0.00025, 4 * EPS);
    g = -0.25;
    step = 2;
    run(CT_OP_adamw, in, 8, out, 3, &a);
    near("p after 2", p, 0.85446629868784616, 16 * EPS);
    near("m after 2", m, 0.02, 4 * EPS);
    near("v after 2", v, 0.00031225, 4 * EPS);
    go = 0; /* nothing is written */
    run(CT_OP_adamw, in, 8, out, 3, &a);
    near("p, not to be updated", p, 0.85446629868784616, 16 * EPS);
}

static void test_matmul(void **state)
{
    (void)state;
    enum { M = 5, P = 7, Q = 3 };
    for (int mode = 0; mode < 8; mode++) {
        const bool ta = mode & 1, tb = mode & 2, has_c = mode & 4;
        double a[M * P], b[P * Q], c[M * Q], y[M * Q];
        for (int i = 0; i < M * P; i++) {
            a[i] = value(1, i);
        }
        for (int i = 0; i < P * Q; i++) {
            b[i] = value(2, i);
        }
        for (int i = 0; i < M * Q; i++) {
            c[i] = value(3, i);
        }
        const ct_attrs_matmul attrs = {ta, tb};
        const ct_tensor in[3] = {ta ? t(a, CT_DTYPE_F64, 2, P, M, 0) : t(a, CT_DTYPE_F64, 2, M, P, 0),
                                 tb ? t(b, CT_DTYPE_F64, 2, Q, P, 0) : t(b, CT_DTYPE_F64, 2, P, Q, 0), t(c, CT_DTYPE_F64, 2, M, Q, 0)};
        const ct_tensor out = t(y, CT_DTYPE_F64, 2, M, Q, 0);
        run(CT_OP_matmul, in, has_c ? 3 : 2, &out, 1, &attrs);
        for (int i = 0; i < M; i++) {
            for (int j = 0; j < Q; j++) {
                double sum = has_c ? c[i * Q + j] : 0.0, size = fabs(sum);
                for (int k = 0; k < P; k++) {
                    const double x = (ta ? a[k * M + i] : a[i * P + k]) * (tb ? b[j * P + k] : b[k * Q + j]);
                    sum += x;
                    size += fabs(x);
                }
                near("matmul", y[i * Q + j], sum, 2.0 * (P + 1) * EPS * size);
            }
        }
    }
}

static void test_rmsnorm(void **state)
{
    (void)state;
    enum { T = 3, D = 11 };
    double x[T * D], w[D], y[T * D];
    float rstd[T];
    for (int i = 0; i < T * D; i++) {
        x[i] = value(4, i);
    }
    for (int i = 0; i < D; i++) {
        w[i] = value(5, i);
    }
    const ct_attrs_rmsnorm attrs = {1e-5};
    const ct_tensor in[2] = {t(x, CT_DTYPE_F64, 2, T, D, 0), t(w, CT_DTYPE_F64, 1, D, 0, 0)};
    const ct_tensor out[2] = {t(y, CT_DTYPE_F64, 2, T, D, 0), t(rstd, CT_DTYPE_F32, 1, T, 0, 0)};
    run(CT_OP_rmsnorm, in, 2, out, 2, &attrs);
    for (int r = 0; r < T; r++) {
        double mean = 0.0;
        for (int i = 0; i < D; i++) {
            mean += x[r * D + i] * x[r * D + i] / D;
        }
        const double s = 1.0 / sqrt(mean + 1e-5);
        near("rstd", (double)rstd[r], s, 2.0 * 0x1p-24 * s);
        for (int i = 0; i < D; i++) { /* y may go through the f32 rstd */
            const double want = x[r * D + i] * s * w[i];
            near("rmsnorm", y[r * D + i], want, 2.0 * 0x1p-24 * fabs(want));
        }
    }
}

/* Against softmax written out, with an ignored label, over 1 and 3 chunks. */
static void test_loss(void **state)
{
    (void)state;
    enum { T = 5, D = 4, V = 9 };
    double x[T * D], w[V * D], loss, dx[T * D], dw[V * D];
    int32_t labels[T] = {3, 0, -100, 8, 3};
    float inv = 0.25F;
    for (int i = 0; i < T * D; i++) {
        x[i] = value(6, i);
    }
    for (int i = 0; i < V * D; i++) {
        w[i] = value(7, i);
    }
    for (int64_t chunks = 1; chunks <= 3; chunks += 2) {
        double want = 0.0, want_dx[T * D] = {0}, want_dw[V * D] = {0};
        for (int r = 0; r < T; r++) {
            double logit[V], sum = 0.0;
            for (int k = 0; k < V; k++) {
                logit[k] = 0.0;
                for (int d = 0; d < D; d++) {
                    logit[k] += x[r * D + d] * w[k * D + d];
                }
                sum += exp(logit[k]);
            }
            for (int k = 0; k < V && labels[r] >= 0; k++) {
                const double p = (exp(logit[k]) / sum - (k == labels[r])) * 0.25;
                for (int d = 0; d < D; d++) {
                    want_dx[r * D + d] += p * w[k * D + d];
                    want_dw[k * D + d] += p * x[r * D + d];
                }
            }
            want += labels[r] >= 0 ? 0.25 * (log(sum) - logit[labels[r]]) : 0.0;
        }
        const ct_attrs_loss attrs = {chunks};
        const ct_tensor in[4] = {t(x, CT_DTYPE_F64, 2, T, D, 0), t(w, CT_DTYPE_F64, 2, V, D, 0), t(labels, CT_DTYPE_I32, 1, T, 0, 0),
                                 t(&inv, CT_DTYPE_F32, 1, 1, 0, 0)};
        const ct_tensor out[3] = {t(&loss, CT_DTYPE_F64, 1, 1, 0, 0), t(dx, CT_DTYPE_F64, 2, T, D, 0), t(dw, CT_DTYPE_F64, 2, V, D, 0)};
        run(CT_OP_linear_cross_entropy, in, 4, out, 3, &attrs);
        const double bound = 64.0 * V * D * EPS; /* values are near 1, each passes a few sums of at most V or D terms and exp, log */
        near("loss", loss, want, bound * 8.0);
        for (int i = 0; i < T * D; i++) {
            near("dx", dx[i], want_dx[i], bound * 8.0);
        }
        for (int i = 0; i < V * D; i++) {
            near("dw", dw[i], want_dw[i], bound * 8.0);
        }
    }
}

/* Two documents, a key-value head shared by two query heads, a window. */
static void test_sdpa(void **state)
{
    (void)state;
    enum { T = 7, H = 4, K = 2, E = 3 };
    double q[T * H * E], k[T * K * E], v[T * K * E], o[T * H * E];
    float lse[T * H];
    int32_t segments[8] = {0, 3, 0, 3, 3, 4, 3, 4}, n = 2;
    for (int i = 0; i < T * H * E; i++) {
        q[i] = value(8, i);
    }
    for (int i = 0; i < T * K * E; i++) {
        k[i] = value(9, i);
        v[i] = value(10, i);
    }
    for (int64_t window = 0; window <= 2; window += 2) {
        const ct_attrs_sdpa attrs = {0.5, true, window};
        const ct_tensor in[5] = {t(q, CT_DTYPE_F64, 3, T, H, E), t(k, CT_DTYPE_F64, 3, T, K, E), t(v, CT_DTYPE_F64, 3, T, K, E),
                                 t(segments, CT_DTYPE_I32, 2, 2, 4, 0), t(&n, CT_DTYPE_I32, 1, 1, 0, 0)};
        const ct_tensor out[2] = {t(o, CT_DTYPE_F64, 3, T, H, E), t(lse, CT_DTYPE_F32, 2, T, H, 0)};
        run(CT_OP_sdpa, in, 5, out, 2, &attrs);
        for (int i = 0; i < T; i++) {
            for (int h = 0; h < H; h++) {
                double sum = 0.0, acc[E] = {0};
                for (int j = i < 3 ? 0 : 3; j <= i; j++) {
                    double s = 0.0;
                    for (int e = 0; e < E; e++) {
                        s += q[(i * H + h) * E + e] * k[(j * K + h / 2) * E + e];
                    }
                    if (window > 0 && j <= i - window) {
                        continue;
                    }
                    sum += exp(0.5 * s);
                    for (int e = 0; e < E; e++) {
                        acc[e] += exp(0.5 * s) * v[(j * K + h / 2) * E + e];
                    }
                }
                near("lse", (double)lse[i * H + h], log(sum), 4.0 * 0x1p-24 * (1.0 + fabs(log(sum))));
                for (int e = 0; e < E; e++) {
                    near("sdpa", o[(i * H + h) * E + e], acc[e] / sum, 256.0 * EPS * (1.0 + fabs(acc[e] / sum)));
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_adamw), cmocka_unit_test(test_matmul), cmocka_unit_test(test_rmsnorm),
                                       cmocka_unit_test(test_loss), cmocka_unit_test(test_sdpa)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
