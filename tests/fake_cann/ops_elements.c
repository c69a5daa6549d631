/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: fake/cann */
/* Elementwise operators of libopapi's double against their formulas in double precision: dtypes, promotion,
 * broadcasting, aliases. */
#include "fake/cann/testing/ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double f_add(double x, double y)
{
    return x + 2 * y;
}
static double f_sub(double x, double y)
{
    return x - 2 * y;
}
static double f_mul(double x, double y)
{
    return x * y;
}
static double f_div(double x, double y)
{
    return x / y;
}
static double f_min(double x, double y)
{
    return x < y ? x : y;
}
static double f_max(double x, double y)
{
    return x > y ? x : y;
}
static double f_and(double x, double y)
{
    return x != 0 && y != 0;
}
static double f_silu_backward(double g, double x)
{
    double s = sigmoid(x);
    return g * s * (1 + x * (1 - s));
}

/* Of two tensors; the other operand is broadcast along rows where it is shorter. */
static void test_binary(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *a, *b, *out;
        double (*f)(double, double);
    } cases[] = {
        {"Add", "self:f32:3,4 other:f32:3,4 alpha$f32:2 out:f32:3,4", "self", "other", "out", f_add},
        {"Add", "self:f32:3,4 other:bf16:4 alpha$f32:2 out:f32:3,4", "self", "other", "out", f_add},
        {"Add", "self:i64:3,4 other:i32:3,4 alpha$i64:2 out:i64:3,4", "self", "other", "out", f_add},
        {"Add", "self:bf16:3,4/1,3 other:bf16:3,4 alpha$f32:2 out:bf16:3,4", "self", "other", "out", f_add},
        {"Sub", "self:f16:3,4 other:f16:3,4 alpha$f32:2 out:f16:3,4", "self", "other", "out", f_sub},
        {"InplaceAdd", "self:f32:3,4 other:bf16:3,4 alpha$f32:2", "self", "other", "self", f_add},
        {"InplaceSub", "self:f32:3,4 other:f32:3,4 alpha$f32:2", "self", "other", "self", f_sub},
        {"Mul", "self:f32:3,4 other:f32:4 out:f32:3,4", "self", "other", "out", f_mul},
        {"Mul", "self:f64:3,4 other:f32:3,4 out:f64:3,4", "self", "other", "out", f_mul},
        {"InplaceMul", "self:bf16:3,4 other:bf16:3,4", "self", "other", "self", f_mul},
        {"Div", "self:f32:3,4 other:f32:3,4 out:f32:3,4", "self", "other", "out", f_div},
        {"InplaceDiv", "self:f32:3,4 other:f32:4", "self", "other", "self", f_div},
        {"Minimum", "self:f32:3,4 other:f32:3,4 out:f32:3,4", "self", "other", "out", f_min},
        {"Maximum", "self:i32:3,4 other:i32:3,4 out:i32:3,4", "self", "other", "out", f_max},
        {"LogicalAnd", "self:bool:3,4 other:bool:3,4 out:bool:3,4", "self", "other", "out", f_and},
        {"SiluBackward", "grad:f32:3,4 self:f32:3,4 out:f32:3,4", "grad", "self", "out", f_silu_backward},
        {"SiluBackward", "grad:bf16:3,4 self:bf16:3,4 out:bf16:3,4", "grad", "self", "out", f_silu_backward},
    };
    for (size_t t = 0; t < sizeof cases / sizeof cases[0]; t++) {
        op *o = op_new(cases[t].name, cases[t].text);
        double *a = op_get(o, cases[t].a), *b = op_get(o, cases[t].b), want[12];
        int64_t nb = fake_view_count(&op_find(o, cases[t].b)->view);
        for (int i = 0; i < 12; i++) {
            want[i] = cases[t].f(a[i], b[i % nb]);
        }
        assert_int_equal(op_run(o), 0);
        double *c = op_get(o, cases[t].out);
        assert_true(ops_close(cases[t].text, c, want, 12, ops_unit(op_find(o, cases[t].out)->view.dtype),
                              cases[t].f == f_silu_backward ? ops_sum_bound(8, 2) : 0));
        free(a);
        free(b);
        free(c);
        op_free(o);
    }
}

static double f_adds(double x, double s)
{
    return x + 2 * s;
}
static double f_eq(double x, double s)
{
    return x == s;
}
static double f_ne(double x, double s)
{
    return x != s;
}
static double f_lt(double x, double s)
{
    return x < s;
}
static double f_ge(double x, double s)
{
    return x >= s;
}

static void test_scalar(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *out;
        double scalar;
        double (*f)(double, double);
    } cases[] = {
        {"Adds", "self:f32:3,4 other$f32:0.25 alpha$f32:2 out:f32:3,4", "out", 0.25, f_adds},
        {"Adds", "self:i32:3,4 other$i32:5 alpha$i32:2 out:i32:3,4", "out", 5, f_adds},
        {"Muls", "self:bf16:3,4 other$f32:0.25 out:bf16:3,4", "out", 0.25, f_mul},
        {"Muls", "self:i64:3,4 other$f32:0.5 out:f32:3,4", "out", 0.5, f_mul},
        {"InplaceMuls", "self:f32:3,4 other$f32:3", "self", 3, f_mul},
        {"Divs", "self:f32:3,4 other$f32:3 out:f32:3,4", "out", 3, f_div},
        {"EqScalar", "self:i64:3,4 other$i64:1 out:bool:3,4", "out", 1, f_eq},
        {"NeScalar", "self:i32:3,4 other$i64:1 out:bool:3,4", "out", 1, f_ne},
        {"LtScalar", "self:f32:3,4 other$f32:0.1 out:bool:3,4", "out", (double)0.1f, f_lt},
        {"GeScalar", "self:f32:3,4 other$f32:0.1 out:f32:3,4", "out", (double)0.1f, f_ge},
    };
    for (size_t t = 0; t < sizeof cases / sizeof cases[0]; t++) {
        op *o = op_new(cases[t].name, cases[t].text);
        double *a = op_get(o, "self"), want[12];
        for (int i = 0; i < 12; i++) {
            want[i] = cases[t].f(a[i], cases[t].scalar);
        }
        assert_int_equal(op_run(o), 0);
        double *c = op_get(o, cases[t].out);
        assert_true(ops_close(cases[t].text, c, want, 12, ops_unit(op_find(o, cases[t].out)->view.dtype), 0));
        free(a);
        free(c);
        op_free(o);
    }
}

static double f_neg(double x)
{
    return -x;
}
static double f_rsqrt(double x)
{
    return 1 / sqrt(x);
}
static double f_reciprocal(double x)
{
    return 1 / x;
}
static double f_silu(double x)
{
    return x * sigmoid(x);
}
static double f_finite(double x)
{
    return isfinite(x);
}

static void test_unary(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double (*f)(double);
    } cases[] = {{"Neg", f_neg},       {"Exp", exp},       {"Log", log},
                 {"Sqrt", sqrt},       {"Rsqrt", f_rsqrt}, {"Reciprocal", f_reciprocal},
                 {"Sigmoid", sigmoid}, {"Silu", f_silu},   {"IsFinite", f_finite}};
    static const char *const types[] = {"f32", "f16", "bf16"};
    double in[6] = {0.125, 1, 2, 0.75, 30, 7};
    for (size_t t = 0; t < 3 * sizeof cases / sizeof cases[0]; t++) {
        char text[80];
        double (*f)(double) = cases[t / 3].f, want[6];
        snprintf(text, sizeof text, "self:%s:2,3 out:%s:2,3/1,2", types[t % 3],
                 f == f_finite ? "bool" : types[t % 3]);
        op *o = op_new(cases[t / 3].name, text);
        op_set(o, "self", in);
        double *a = op_get(o, "self");
        for (int i = 0; i < 6; i++) {
            want[i] = f(a[i]);
            want[i] = t % 3 == 1 && fabs(want[i]) >= 65520 ? copysign((double)INFINITY, want[i]) : want[i];
        }
        assert_int_equal(op_run(o), 0);
        double *c = op_get(o, "out");
        assert_true(
            ops_close(cases[t / 3].name, c, want, 6, ops_unit(op_find(o, "self")->view.dtype), 0x1p-25));
        free(a);
        free(c);
        op_free(o);
    }
}

static void test_where(void **state)
{
    (void)state;
    op *o = op_new("SWhere", "condition:bool:3,1 self:f32:3,4 other:f32:- out:f32:3,4");
    double *w = op_get(o, "condition"), *a = op_get(o, "self"), *b = op_get(o, "other"), want[12];
    for (int i = 0; i < 12; i++) {
        want[i] = w[i / 4] != 0 ? a[i] : b[0];
    }
    assert_int_equal(op_run(o), 0);
    double *c = op_get(o, "out");
    assert_true(ops_close("SWhere", c, want, 12, 0, 0));
    free(w);
    free(a);
    free(b);
    free(c);
    op_free(o);
}

/* The result has the promoted dtype before it is cast to the output's: a sum of BFLOAT16 in a FLOAT output
 * has eight bits. */
static void test_rounding_before_cast(void **state)
{
    (void)state;
    op *o = op_new("Add", "self:bf16:1 other:bf16:1 alpha$f32:1 out:f32:1");
    op_set(o, "self", (double[]){256});
    op_set(o, "other", (double[]){1});
    assert_int_equal(op_run(o), 0);
    double *c = op_get(o, "out");
    assert_true(c[0] == 256);
    free(c);
    op_free(o);
    /* a float scalar beside BFLOAT16 is a BFLOAT16, too */
    o = op_new("Muls", "self:bf16:1 other$f32:1.00390625 out:f32:1");
    op_set(o, "self", (double[]){1});
    assert_int_equal(op_run(o), 0);
    c = op_get(o, "out");
    assert_true(c[0] == 1);
    free(c);
    op_free(o);
}

/* Integers wrap in their own width. */
static void test_integers(void **state)
{
    (void)state;
    op *o = op_new("Mul", "self:i32:1 other:i32:1 out:i32:1");
    op_set(o, "self", (double[]){65537});
    op_set(o, "other", (double[]){65537});
    assert_int_equal(op_run(o), 0);
    double *c = op_get(o, "out");
    assert_true(c[0] == 131073);
    free(c);
    op_free(o);
}

/* NaN goes through minimum and maximum, as in PyTorch. */
static void test_nan(void **state)
{
    (void)state;
    op *o = op_new("Maximum", "self:f32:2 other:f32:2 out:f32:2");
    op_set(o, "self", (double[]){(double)NAN, 1});
    op_set(o, "other", (double[]){1, (double)NAN});
    assert_int_equal(op_run(o), 0);
    double *c = op_get(o, "out");
    assert_true(isnan(c[0]) && isnan(c[1]));
    free(c);
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
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_scalar),
        cmocka_unit_test(test_unary),
        cmocka_unit_test(test_where),
        cmocka_unit_test(test_rounding_before_cast),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
