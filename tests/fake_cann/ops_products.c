/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: fake/cann */
/* Products, copies, casts and views of libopapi's double against plain double precision. */
#include "fake/cann/testing/ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static double *product(const double *a, const double *b, int64_t m, int64_t n, int64_t k, double *out_terms)
{
    double *c = calloc((size_t)(m * n + 1), sizeof *c);
    *out_terms = 0;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double terms = 0;
            for (int64_t p = 0; p < k; p++) {
                c[i * n + j] += a[i * k + p] * b[p * n + j];
                terms += fabs(a[i * k + p] * b[p * n + j]);
            }
            *out_terms = fmax(*out_terms, terms);
        }
    }
    return c;
}

static void test_products(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        int64_t batch, m, n, k;
    } cases[] = {
        {"Mm", "self:f32:5,7 mat2:f32:7,3 out:f32:5,3 cube=0", 1, 5, 3, 7},
        {"Mm", "self:bf16:33,70 mat2:bf16:70,50 out:bf16:33,50 cube=0", 1, 33, 50, 70},
        {"Mm", "self:f16:13,64 mat2:f16:64,17 out:f16:13,17 cube=1", 1, 13, 17, 64},
        {"Mm", "self:f16:6,8 mat2:f32:8,5 out:f32:6,5 cube=0", 1, 6, 5, 8},
        /* transposes as strides, a part of a wider matrix, a product over nothing, an output with a stride */
        {"Mm", "self:f32:5,7/1,5 mat2:f32:7,3/1,7 out:f32:5,3 cube=0", 1, 5, 3, 7},
        {"Mm", "self:f32:6,4/20,1@8 mat2:f32:4,6/1,9@3 out:f32:6,6/11,1@5 cube=0", 1, 6, 6, 4},
        {"Mm", "self:f32:4,0 mat2:f32:0,3 out:f32:4,3 cube=0", 1, 4, 3, 0},
        {"Matmul", "self:f32:2,5,4 mat2:f32:2,4,3 out:f32:2,5,3 cube=0", 2, 5, 3, 4},
        {"Matmul", "self:f32:4 mat2:f32:4,3 out:f32:3 cube=0", 1, 1, 3, 4},
        {"Matmul", "self:f32:5,4 mat2:f32:4 out:f32:5 cube=0", 1, 5, 1, 4},
        {"Matmul", "self:bf16:4 mat2:bf16:4 out:bf16:- cube=0", 1, 1, 1, 4},
        {"BatchMatMul", "self:bf16:3,4,6 mat2:bf16:3,6,2 out:bf16:3,4,2 cube=0", 3, 4, 2, 6},
    };
    for (size_t t = 0; t < sizeof cases / sizeof cases[0]; t++) {
        ops_seed(t + 1);
        op *o = op_new(cases[t].name, cases[t].text);
        int64_t m = cases[t].m, n = cases[t].n, k = cases[t].k;
        double *a = op_get(o, "self"), *b = op_get(o, "mat2");
        assert_int_equal(op_run(o), 0);
        double *c = op_get(o, "out");
        for (int64_t i = 0; i < cases[t].batch; i++) {
            double terms, *want = product(a + i * m * k, b + i * k * n, m, n, k, &terms);
            assert_true(ops_close(cases[t].text, c + i * m * n, want, m * n,
                                  ops_unit(op_find(o, "out")->view.dtype), ops_sum_bound(k, terms)));
            free(want);
        }
        free(a);
        free(b);
        free(c);
        op_free(o);
    }
}

/* A batch of one meets three. */
static void test_matmul_broadcast(void **state)
{
    (void)state;
    op *o = op_new("Matmul", "self:f32:3,1,2,4 mat2:f32:2,4,5 out:f32:3,2,2,5 cube=0");
    double *a = op_get(o, "self"), *b = op_get(o, "mat2");
    assert_int_equal(op_run(o), 0);
    double *c = op_get(o, "out");
    for (int64_t i = 0; i < 3; i++) {
        for (int64_t j = 0; j < 2; j++) {
            double terms, *want = product(a + i * 8, b + j * 20, 2, 5, 4, &terms);
            assert_true(
                ops_close("broadcast", c + (i * 2 + j) * 10, want, 10, 0x1p-24, ops_sum_bound(4, terms)));
            free(want);
        }
    }
    free(a);
    free(b);
    free(c);
    op_free(o);
}

static void test_addmm(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *out;
        bool row;
    } cases[] = {
        {"Addmm", "self:f32:4 mat1:f32:3,6 mat2:f32:6,4 beta$f32:0.5 alpha$f32:2 out:f32:3,4 cube=0", "out",
         true},
        {"Addmm",
         "self:bf16:3,4 mat1:bf16:3,6 mat2:bf16:6,4/1,6 beta$f32:0.5 alpha$f32:2 out:bf16:3,4 cube=0", "out",
         false},
        {"InplaceAddmm", "self:f32:3,4 mat1:f32:3,6 mat2:f32:6,4 beta$f32:0.5 alpha$f32:2 cube=0", "self",
         false},
    };
    for (size_t t = 0; t < sizeof cases / sizeof cases[0]; t++) {
        op *o = op_new(cases[t].name, cases[t].text);
        double *s = op_get(o, "self"), *a = op_get(o, "mat1"), *b = op_get(o, "mat2"), terms;
        double *want = product(a, b, 3, 4, 6, &terms);
        assert_int_equal(op_run(o), 0);
        double *c = op_get(o, cases[t].out);
        for (int i = 0; i < 12; i++) {
            want[i] = 0.5 * s[cases[t].row ? i % 4 : i] + 2 * want[i];
        }
        assert_true(ops_close(cases[t].text, c, want, 12, ops_unit(op_find(o, cases[t].out)->view.dtype),
                              ops_sum_bound(8, 2 * terms + 1)));
        free(s);
        free(a);
        free(b);
        free(c);
        free(want);
        op_free(o);
    }
}

/* beta 0 does not hide what selfRef holds. */
static void test_addmm_nan(void **state)
{
    (void)state;
    op *o = op_new("InplaceAddmm", "self:f32:1,1 mat1:f32:1,1 mat2:f32:1,1 beta$f32:0 alpha$f32:1 cube=0");
    op_set(o, "self", (double[]){(double)NAN});
    assert_int_equal(op_run(o), 0);
    double *c = op_get(o, "self");
    assert_true(isnan(c[0]));
    free(c);
    op_free(o);
}

static void check(const char *name, const char *text, const char *from, const double *in, const char *to,
                  const double *want, int n)
{
    op *o = op_new(name, text);
    op_set(o, from, in);
    assert_int_equal(op_run(o), 0);
    double *c = op_get(o, to);
    assert_true(ops_close(text, c, want, n, 0, 0));
    free(c);
    op_free(o);
}

/* Ties go to even, what is too large to infinity, NaN to 0 in integers, floats to integers towards zero. */
static void test_casts(void **state)
{
    (void)state;
    check("Cast", "self:f32:6 dtype%bf16 out:bf16:6", "self",
          (double[]){1.00390625, 1.01171875, 3.3e38, 3.4e38, -0.0, 0x1p-133}, "out",
          (double[]){1.0, 1.015625, 0x1.fp127, (double)INFINITY, 0, 0x1p-133}, 6);
    check("Cast", "self:f32:6 dtype%f16 out:f16:6", "self",
          (double[]){65504, 65519.99, 65520, 2049, 0x1p-25, 0x1.8p-24}, "out",
          (double[]){65504, 65504, (double)INFINITY, 2048, 0, 0x1p-23}, 6);
    check("Cast", "self:f32:6 dtype%i32 out:i32:6", "self",
          (double[]){2.9, -2.9, (double)NAN, 3e9, -3e9, 0.5}, "out",
          (double[]){2, -2, 0, 2147483647, -2147483648.0, 0}, 6);
    check("Cast", "self:f32:3 dtype%bool out:bool:3", "self", (double[]){0, 0.25, -3}, "out",
          (double[]){0, 1, 1}, 3);
    check("Cast", "self:i64:2 dtype%f32 out:f32:2", "self", (double[]){16777217, -5}, "out",
          (double[]){16777216, -5}, 2);
    check("Cast", "self:bf16:2,3/1,2 dtype%f64 out:f64:2,3", "self", (double[]){1, 2, 3, 4, 5, 6}, "out",
          (double[]){1, 2, 3, 4, 5, 6}, 6);
}

static void test_copies(void **state)
{
    (void)state;
    const double six[] = {1, 2, 3, 4, 5, 6};
    check("InplaceCopy", "self:f32:3,2 src:bf16:3,2/1,3", "src", six, "self", six, 6);
    check("InplaceCopy", "self:f32:2,3/1,2@2 src:f32:2,3", "src", six, "self", six, 6);
    check("InplaceCopy", "self:i64:2,3 src:f32:3", "src", six, "self", (double[]){1, 2, 3, 1, 2, 3}, 6);
    check("InplaceZero", "self:f32:2,3/4,1", "self", six, "self", (double[6]){0}, 6);
    check("InplaceFillScalar", "self:bf16:3 value$f32:1.00390625", "self", six, "self", (double[]){1, 1, 1},
          3);
    check("Arange", "start$i64:2 end$i64:11 step$i64:3 out:i64:3", "out", six, "out", (double[]){2, 5, 8}, 3);
    check("Arange", "start$f32:0 end$f32:1 step$f32:0.25 out:f32:4", "out", six, "out",
          (double[]){0, 0.25, 0.5, 0.75}, 4);
}

static void test_cat(void **state)
{
    (void)state;
    op *o = op_new("Cat", "tensors{f32:2,3;f32:2,2/1,2;f32:2,0} dim=-1 out:f32:2,5");
    double *a = calloc(6, sizeof *a), *b = calloc(4, sizeof *b);
    fake_load_f64(&op_find(o, "tensors")->members[0], a);
    fake_load_f64(&op_find(o, "tensors")->members[1], b);
    assert_int_equal(op_run(o), 0);
    double *c = op_get(o, "out"), want[10];
    for (int i = 0; i < 10; i++) {
        want[i] = i % 5 < 3 ? a[i / 5 * 3 + i % 5] : b[i / 5 * 2 + i % 5 - 3];
    }
    assert_true(ops_close("Cat", c, want, 10, 0, 0));
    free(a);
    free(b);
    free(c);
    op_free(o);
}

/* Elements that a strided output does not have stay as they were. */
static void test_gaps(void **state)
{
    (void)state;
    op *o = op_new("Mm", "self:f32:2,2 mat2:f32:2,2 out:f32:2,2/4,1@1 cube=0");
    operand *out = op_find(o, "out");
    float before[8] = {0};
    memcpy(before, out->host, out->bytes);
    assert_int_equal(op_run(o), 0);
    const float *after = out->host;
    assert_memory_equal(&before[0], &after[0], 4);
    assert_memory_equal(&before[3], &after[3], 8);
    assert_memory_not_equal(&before[1], &after[1], 8);
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
        cmocka_unit_test(test_products), cmocka_unit_test(test_matmul_broadcast),
        cmocka_unit_test(test_addmm),    cmocka_unit_test(test_addmm_nan),
        cmocka_unit_test(test_casts),    cmocka_unit_test(test_copies),
        cmocka_unit_test(test_cat),      cmocka_unit_test(test_gaps),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
