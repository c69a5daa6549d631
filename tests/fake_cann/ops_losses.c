/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: fake/cann */
/* Softmax, losses and reductions of libopapi's double against their formulas in double precision. */
#include "fake/cann/testing/ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 4, K = 6 };

static void expect(op *o, const char *name, const double *want, double absolute)
{
    operand *a = op_find(o, name);
    double *got = op_get(o, name);
    assert_true(ops_close(o->name, got, want, fake_view_count(&a->view), ops_unit(a->view.dtype), absolute));
    free(got);
}

/* Log-probabilities of one line. */
static void log_softmax(const double *x, int n, int step, double *y)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += exp(x[i * step]);
    }
    for (int i = 0; i < n; i++) {
        y[i * step] = x[i * step] - log(sum);
    }
}

static void test_softmax(void **state)
{
    (void)state;
    static const char *const types[] = {"f32", "bf16", "f16"};
    for (int t = 0; t < 12; t++) {
        char text[96];
        bool is_log = t & 1, first = t & 2;
        const char *type = types[t / 4];
        snprintf(text, sizeof text, "self:%s:4,6 dim=%d out:%s:4,6", type, first ? 0 : -1, type);
        op *o = op_new(is_log ? "LogSoftmax" : "Softmax", text);
        double *x = op_get(o, "self"), y[N * K];
        for (int r = 0; r < (first ? K : N); r++) {
            log_softmax(x + (first ? r : r * K), first ? N : K, first ? K : 1, y + (first ? r : r * K));
        }
        for (int i = 0; i < N * K && !is_log; i++) {
            y[i] = exp(y[i]);
        }
        assert_int_equal(op_run(o), 0);
        expect(o, "out", y, ops_sum_bound(K, 4));
        free(x);
        op_free(o);
    }
}

static void test_log_softmax_backward(void **state)
{
    (void)state;
    op *o = op_new("LogSoftmaxBackward", "grad:f32:4,6 output:f32:4,6 dim=1 out:f32:4,6");
    double *g = op_get(o, "grad"), *y = op_get(o, "output"), dx[N * K];
    for (int r = 0; r < N; r++) {
        double sum = 0;
        for (int i = 0; i < K; i++) {
            sum += g[r * K + i];
        }
        for (int i = 0; i < K; i++) {
            dx[r * K + i] = g[r * K + i] - exp(y[r * K + i]) * sum;
        }
    }
    assert_int_equal(op_run(o), 0);
    expect(o, "out", dx, ops_sum_bound(K, 20));
    free(g);
    free(y);
    op_free(o);
}

/* Targets with one ignored row. */
static const double target[N] = {2, -100, 5, 0};

static void test_nll(void **state)
{
    (void)state;
    for (int reduction = 0; reduction < 3; reduction++) {
        char text[160];
        snprintf(text, sizeof text,
                 "self:f32:4,6 target:i64:4 weight:f32:6 reduction=%d ignore=-100 out:f32:%d total:f32:1",
                 reduction, reduction == 0 ? N : 1);
        op *o = op_new("NLLLoss", text);
        op_set(o, "target", target);
        double *x = op_get(o, "self"), *w = op_get(o, "weight"), loss[N] = {0}, sum = 0, total = 0,
               dx[N * K] = {0};
        for (int r = 0; r < N; r++) {
            if (target[r] >= 0) {
                int t = (int)target[r];
                loss[r] = -w[t] * x[r * K + t];
                sum += loss[r];
                total += w[t];
            }
        }
        assert_int_equal(op_run(o), 0);
        double one = reduction == 1 ? sum / total : sum,
               slack = ops_sum_bound(N, 4 * (1 + fabs(one)) / fmin(1, fabs(total)));
        expect(o, "out", reduction == 0 ? loss : &one, slack);
        expect(o, "total", &total, slack);

        snprintf(text, sizeof text,
                 "grad:f32:%d self:f32:4,6 target:i64:4 weight:f32:6 reduction=%d ignore=-100 total:f32:1 "
                 "out:f32:4,6",
                 reduction == 0 ? N : 1, reduction);
        op *b = op_new("NLLLossBackward", text);
        op_set(b, "target", target);
        op_set(b, "weight", w);
        op_set(b, "total", &total);
        double *g = op_get(b, "grad");
        for (int r = 0; r < N; r++) {
            if (target[r] >= 0) {
                int t = (int)target[r];
                dx[r * K + t] = -w[t] * g[reduction == 0 ? r : 0] / (reduction == 1 ? total : 1);
            }
        }
        assert_int_equal(op_run(b), 0);
        expect(b, "out", dx, 4 * 0x1p-24 * fmax(1, 1 / fabs(total)));
        free(x);
        free(w);
        free(g);
        op_free(o);
        op_free(b);
    }
}

static void test_cross_entropy(void **state)
{
    (void)state;
    static const char *const modes[] = {"none", "mean", "sum"};
    for (int t = 0; t < 12; t++) {
        int mode = t % 3;
        bool weighted = t / 3 % 2, smooth = t / 6;
        char text[320];
        double s = smooth ? 0.125 : 0;
        snprintf(text, sizeof text,
                 "input:f32:4,6 target:i64:4 weight:%s reduction\"%s ignore=-100 smoothing~%g scale~0 z=0 "
                 "loss:f32:%d logprob:f32:4,6 "
                 "zloss:f32:%d lse:f32:4",
                 weighted ? "f32:6" : "null", modes[mode], s, mode ? 1 : N, mode ? 1 : N);
        op *o = op_new("CrossEntropyLoss", text);
        op_set(o, "target", target);
        if (weighted) {
            op_set(o, "weight", (double[]){0.5, 1, 2, 0.25, 1, 3});
        }
        double *x = op_get(o, "input"), *w = weighted ? op_get(o, "weight") : NULL, y[N * K], loss[N] = {0},
               sum = 0, total = 0;
        for (int r = 0; r < N; r++) {
            log_softmax(x + r * K, K, 1, y + r * K);
            if (target[r] >= 0) {
                int c = (int)target[r];
                loss[r] = -(1 - s) * (w ? w[c] : 1) * y[r * K + c];
                for (int i = 0; i < K; i++) {
                    loss[r] -= s / K * (w ? w[i] : 1) * y[r * K + i];
                }
                sum += loss[r];
                total += w ? w[c] : 1;
            }
        }
        double one = mode == 1 ? sum / total : sum;
        assert_int_equal(op_run(o), 0);
        expect(o, "loss", mode ? &one : loss, ops_sum_bound(N * K, 8 * (1 + fabs(sum))));
        expect(o, "logprob", y, ops_sum_bound(K, 8));
        free(x);
        free(w);
        op_free(o);
    }
}

static void test_cross_entropy_grad(void **state)
{
    (void)state;
    static const char *const modes[] = {"none", "mean", "sum"};
    for (int mode = 0; mode < 3; mode++) {
        char text[320];
        snprintf(text, sizeof text,
                 "grad:f32:%s logprob:f32:4,6 target:i64:4 weight:null gz:null lse:null reduction\"%s "
                 "ignore=-100 smoothing~0 scale~0 "
                 "out:f32:4,6",
                 mode ? "-" : "4", modes[mode]);
        op *o = op_new("CrossEntropyLossGrad", text);
        op_set(o, "target", target);
        double *g = op_get(o, "grad"), *y = op_get(o, "logprob"), dx[N * K] = {0};
        for (int i = 0; i < N * K; i++) {
            int r = i / K;
            if (target[r] >= 0) {
                dx[i] = (exp(y[i]) - (i % K == (int)target[r])) * g[mode ? 0 : r] / (mode == 1 ? 3 : 1);
            }
        }
        assert_int_equal(op_run(o), 0);
        expect(o, "out", dx, 16 * 0x1p-24);
        free(g);
        free(y);
        op_free(o);
    }
}

/* All rows ignored: the mean is 0 / 0, as in PyTorch. */
static void test_nothing_counts(void **state)
{
    (void)state;
    op *o =
        op_new("CrossEntropyLoss",
               "input:f32:1,3 target:i64:1 weight:null reduction\"mean ignore=-100 smoothing~0 scale~0 z=0 "
               "loss:f32:1 logprob:f32:1,3 zloss:f32:1 lse:f32:1");
    op_set(o, "target", (double[]){-100});
    assert_int_equal(op_run(o), 0);
    double *l = op_get(o, "loss");
    assert_true(isnan(l[0]));
    free(l);
    op_free(o);
}

static double f_sum(const double *x, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) {
        s += x[i];
    }
    return s;
}
static double f_max(const double *x, int n)
{
    double s = x[0];
    for (int i = 0; i < n; i++) {
        s = x[i] > s ? x[i] : s;
    }
    return s;
}
static double f_lse(const double *x, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) {
        s += exp(x[i]);
    }
    return log(s);
}
static double f_norm(const double *x, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) {
        s += x[i] * x[i];
    }
    return sqrt(s);
}
static double f_inf(const double *x, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) {
        s = fmax(s, fabs(x[i]));
    }
    return s;
}

/* self (2, 3, 4): over all, over the middle, over first and last. */
static void test_reductions(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        int which; /* 0: all, 1: the middle, 2: first and last */
        double (*f)(const double *, int);
    } cases[] = {
        {"ReduceSum", "self:f32:2,3,4 dims[ keep=0 dtype%f32 out:f32:-", 0, f_sum},
        {"ReduceSum", "self:bf16:2,3,4 dims[1 keep=1 dtype%f32 out:f32:2,1,4", 1, f_sum},
        {"ReduceSum", "self:bf16:2,3,4 dims[0,-1 keep=0 dtype%bf16 out:bf16:3", 2, f_sum},
        {"ReduceSum", "self:i32:2,3,4 dims[1 keep=0 dtype%i64 out:i64:2,4", 1, f_sum},
        {"ReduceSum", "self:f64:2,3,4 dims[1 keep=0 dtype%f64 out:f64:2,4", 1, f_sum},
        {"ReduceSum", "self:f32:2,3,4/1,8,2 dims[1 keep=0 dtype%f32 out:f32:2,4", 1, f_sum},
        {"Amax", "self:f32:2,3,4 dims[2,0 keep=0 out:f32:3", 2, f_max},
        {"Amax", "self:i64:2,3,4 dims[1 keep=0 out:i64:2,4", 1, f_max},
        {"LogSumExp", "self:f32:2,3,4 dims[1 keep=0 out:f32:2,4", 1, f_lse},
        {"LinalgVectorNorm", "self:f32:2,3,4 ord$f32:2 dims[ keep=0 dtype%f32 out:f32:-", 0, f_norm},
        {"LinalgVectorNorm", "self:bf16:2,3,4 ord$f32:2 dims[ keep=1 dtype%f32 out:f32:1,1,1", 0, f_norm},
        {"LinalgVectorNorm", "self:f32:2,3,4 ord$f32:inf dims[1 keep=0 dtype%f32 out:f32:2,4", 1, f_inf},
    };
    for (size_t t = 0; t < sizeof cases / sizeof cases[0]; t++) {
        op *o = op_new(cases[t].name, cases[t].text);
        double *x = op_get(o, "self"), want[8], line[24];
        int outs = cases[t].which == 0 ? 1 : cases[t].which == 1 ? 8 : 3;
        for (int r = 0; r < outs; r++) {
            int n = 0;
            for (int i = 0; i < 24; i++) {
                int a = i / 12, b = i / 4 % 3, c = i % 4;
                if (cases[t].which == 0 || (cases[t].which == 1 ? a * 4 + c == r : b == r)) {
                    line[n++] = x[i];
                }
            }
            want[r] = cases[t].f(line, n);
        }
        assert_int_equal(op_run(o), 0);
        expect(o, "out", want, op_find(o, "out")->view.dtype == ACL_DOUBLE ? 0 : ops_sum_bound(24, 24));
        free(x);
        op_free(o);
    }
}

/* A norm's sum comes in any order: its last bits differ from run to run, unless determinism was on in
 * phase 1. */
static void test_determinism(void **state)
{
    (void)state;
    int distinct[2] = {0, 0};
    for (int on = 0; on < 2; on++) {
        aclrtSetSysParamOpt(0, on);
        op *o = op_new("LinalgVectorNorm", "self:f32:100000 ord$f32:2 dims[ keep=0 dtype%f32 out:f32:-");
        double seen[20];
        for (int k = 0; k < 20; k++) {
            if (o->workspace) {
                aclrtFree(o->workspace);
                o->workspace = NULL;
            }
            assert_int_equal(op_phase1(o), 0);
            aclrtSetSysParamOpt(0, !on); /* too late */
            assert_int_equal(op_phase2(o), 0);
            assert_int_equal(aclrtSynchronizeStream(ops_stream), 0);
            aclrtSetSysParamOpt(0, on);
            op_fetch(o);
            double *x = op_get(o, "out");
            seen[k] = x[0];
            free(x);
            bool fresh = true;
            for (int j = 0; j < k; j++) {
                fresh = fresh && seen[j] != seen[k];
            }
            distinct[on] += fresh;
        }
        op_free(o);
    }
    aclrtSetSysParamOpt(0, 0);
    assert_true(distinct[0] > 1);
    assert_int_equal(distinct[1], 1);
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
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_log_softmax_backward),
        cmocka_unit_test(test_nll),
        cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_cross_entropy_grad),
        cmocka_unit_test(test_nothing_counts),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_determinism),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
