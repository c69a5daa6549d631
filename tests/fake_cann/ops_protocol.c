/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: fake/cann */
/* The two phases as they are meant: repeatable executors and their addresses, what may be destroyed when,
 * aliases that are allowed, faults, counts of handles. */
#include "fake/cann/testing/ops.h"

#include "fake/cann/fake.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void nothing_left(void)
{
    for (int kind = FAKE_TENSOR; kind <= FAKE_REPEATABLE; kind++) {
        assert_int_equal(fake_live_count(kind), 0);
    }
}

static void expect_exp(op *o, const double *x)
{
    double *y = op_get(o, "out"), want[12];
    for (int i = 0; i < 12; i++) {
        want[i] = exp(x[i]);
    }
    assert_true(ops_close("Exp", y, want, 12, 0x1p-24, 0));
    free(y);
}

static void test_once(void **state)
{
    (void)state;
    op *o = op_new("Exp", "self:f32:4,3 out:f32:4,3");
    double *x = op_get(o, "self");
    assert_int_equal(op_phase1(o), 0);
    assert_int_equal(fake_live_count(FAKE_EXECUTOR), 1);
    assert_int_equal(op_phase2(o), 0);
    op_free_descriptors(o); /* the task may not have run yet */
    assert_int_equal(aclrtSynchronizeStream(ops_stream), 0);
    op_fetch(o);
    expect_exp(o, x);
    free(x);
    op_free(o);
    nothing_left();
}

/* One executor, several runs, other buffers. */
static void test_repeatable(void **state)
{
    (void)state;
    op *o = op_new("Exp", "self:f32:4,3 out:f32:4,3"), *p = op_new("Exp", "self:f32:4,3 out:f32:4,3");
    double *x = op_get(o, "self"), *y = op_get(p, "self");
    assert_int_equal(op_phase1(o), 0);
    assert_int_equal(aclSetAclOpExecutorRepeatable(o->executor), 0);
    assert_int_equal(fake_live_count(FAKE_REPEATABLE), 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(op_phase2(o), 0);
    }
    assert_int_equal(aclrtSynchronizeStream(ops_stream), 0);
    op_fetch(o);
    expect_exp(o, x);
    assert_int_equal(aclSetInputTensorAddr(o->executor, 0, o->at[0].tensor, p->at[0].device), 0);
    assert_int_equal(aclSetOutputTensorAddr(o->executor, 0, o->at[1].tensor, p->at[1].device), 0);
    assert_int_equal(op_phase2(o), 0);
    assert_int_equal(aclrtSynchronizeStream(ops_stream), 0);
    op_fetch(p);
    op_fetch(o);
    expect_exp(p, y);
    expect_exp(o, x);
    assert_int_equal(aclDestroyAclOpExecutor(o->executor), 0);
    free(x);
    free(y);
    op_free(o);
    op_free(p);
    nothing_left();
}

/* An executor that never runs is destroyed by hand, or is left over. */
static void test_abandoned(void **state)
{
    (void)state;
    op *o = op_new("Exp", "self:f32:4,3 out:f32:4,3");
    assert_int_equal(op_phase1(o), 0);
    op_free_descriptors(o);
    assert_int_equal(fake_live_count(FAKE_EXECUTOR), 1);
    assert_int_equal(aclDestroyAclOpExecutor(o->executor), 0);
    op_free(o);
    nothing_left();
}

static void test_in_place(void **state)
{
    (void)state;
    op *o = op_new("Exp", "self:f32:4,3 out:f32:4,3");
    double *x = op_get(o, "self");
    void *old = o->at[1].device;
    o->at[1].device = o->at[0].device;
    assert_int_equal(aclSetRawTensorAddr(o->at[1].tensor, o->at[0].device), 0);
    assert_int_equal(op_run(o), 0);
    expect_exp(o, x);
    o->at[1].device = old;
    free(x);
    op_free(o);
}

/* Columns of one buffer that lie between each other do not overlap. */
static void test_columns(void **state)
{
    (void)state;
    op *o = op_new("Exp", "self:f32:4,3/8,1 out:f32:4,3/8,1@3");
    double *x = op_get(o, "self");
    void *old = o->at[0].device;
    assert_int_equal(aclrtMemcpy(o->at[1].device, o->at[1].bytes, o->at[0].host, o->at[0].bytes, 1), 0);
    o->at[0].device = o->at[1].device;
    assert_int_equal(aclSetRawTensorAddr(o->at[0].tensor, o->at[1].device), 0);
    assert_int_equal(op_run(o), 0);
    expect_exp(o, x);
    o->at[0].device = old;
    free(x);
    op_free(o);
}

/* Phase 2 of empty tensors must be called, too; it queues nothing. */
static void test_empty(void **state)
{
    (void)state;
    op *o = op_new("Exp", "self:f32:0,3 out:f32:0,3");
    assert_int_equal(op_phase1(o), 0);
    assert_int_equal(o->workspace_size, 0);
    assert_int_equal(fake_live_count(FAKE_EXECUTOR), 1);
    assert_int_equal(op_phase2(o), 0);
    assert_int_equal(fake_live_count(FAKE_EXECUTOR), 0);
    op_free(o);
}

/* Host arrays and values are copied when descriptors are made. */
static void test_copied(void **state)
{
    (void)state;
    int64_t dims[2] = {0, 1};
    float two = 2;
    aclIntArray *a = aclCreateIntArray(dims, 2);
    aclScalar *s = aclCreateScalar(&two, ACL_FLOAT);
    dims[0] = 7;
    two = 5;
    op *o = op_new("ReduceSum", "self:f32:2,2 dims[ keep=0 dtype%f32 out:f32:-"),
       *p = op_new("Muls", "self:f32:2 other$f32:0 out:f32:2");
    aclDestroyIntArray(o->at[1].ints);
    aclDestroyScalar(p->at[1].scalar);
    o->at[1].ints = a;
    p->at[1].scalar = s;
    double *x = op_get(o, "self"), *y = op_get(p, "self");
    assert_int_equal(op_run(o), 0);
    assert_int_equal(op_run(p), 0);
    double *sum = op_get(o, "out"), *twice = op_get(p, "out"), want = x[0] + x[1] + x[2] + x[3];
    assert_true(ops_close("sum", sum, &want, 1, 0, ops_sum_bound(4, 4)));
    assert_true(twice[0] == 2 * y[0]);
    free(x);
    free(y);
    free(sum);
    free(twice);
    op_free(o);
    op_free(p);
    nothing_left();
}

static void test_getters(void **state)
{
    (void)state;
    int64_t dim[2] = {3, 2}, stride[2] = {1, 3}, storage = 20, *got, offset;
    uint64_t n;
    aclFormat format;
    aclDataType dtype;
    aclTensor *t = aclCreateTensor(dim, 2, ACL_BF16, stride, 5, ACL_FORMAT_ND, &storage, 1, NULL);
    assert_int_equal(aclGetViewShape(t, &got, &n), 0);
    assert_true(n == 2 && got[0] == 3 && got[1] == 2);
    assert_int_equal(aclGetViewStrides(t, &got, &n), 0);
    assert_true(n == 2 && got[0] == 1 && got[1] == 3);
    assert_int_equal(aclGetStorageShape(t, &got, &n), 0);
    assert_true(n == 1 && got[0] == 20);
    assert_int_equal(aclGetViewOffset(t, &offset), 0);
    assert_int_equal(aclGetFormat(t, &format), 0);
    assert_int_equal(aclGetDataType(t, &dtype), 0);
    assert_true(offset == 5 && format == ACL_FORMAT_ND && dtype == ACL_BF16);
    aclDestroyTensor(t);
    assert_int_equal(aclDestroyTensor(NULL), 0);
    assert_null(aclCreateTensor(NULL, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &storage, 1, NULL));
    assert_null(aclCreateScalar(NULL, ACL_FLOAT));
    nothing_left();
}

/* A negative index is a fault of the kernel: the call is good, the next synchronisation is not. Last, since
 * the context is lost then. */
static void test_negative_index(void **state)
{
    (void)state;
    op *o = op_new("Embedding", "weight:f32:5,3 indices:i64:2 out:f32:2,3");
    op_set(o, "indices", (double[]){0, -1});
    assert_int_equal(op_phase1(o), 0);
    assert_int_equal(op_phase2(o), 0);
    assert_int_equal(aclrtSynchronizeStream(ops_stream), 507015);
    assert_non_null(strstr(aclGetRecentErrMsg(), "aclnnEmbedding"));
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
        cmocka_unit_test(test_once),           cmocka_unit_test(test_repeatable),
        cmocka_unit_test(test_abandoned),      cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_columns),        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_copied),         cmocka_unit_test(test_getters),
        cmocka_unit_test(test_negative_index),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
