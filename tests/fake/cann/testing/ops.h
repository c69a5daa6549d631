/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of operators for tests, written as text: an operand a word, in the order of the prototype.
 *
 *     self:f32:2,3          a tensor of these dims, dense, filled with random numbers in [-1, 1) (integers:
 * small, not negative; flags: 0, 1) self:f32:3,2/1,3@4    with strides and an offset; :- has no dims
 *     mask:null             nothing
 *     dim=1  eps~1e-5       an integer, a number
 *     alpha$f32:2           a scalar
 *     dims[0,1]             an array of integers
 *     dtype%f32  mode"mean  a dtype, a text
 *     xs{f32:2,3;f32:2,1}   a list of tensors
 *
 * op_new() makes all of it on the device; what is random there is known as doubles here. */
#ifndef TESTS_FAKE_CANN_OPS_H
#define TESTS_FAKE_CANN_OPS_H

#include "aclnn.h"

#include "../nnop_view.h"

enum { OPERANDS = 30, OP_LIST = 8 };

typedef struct operand {
    char name[40];
    fake_view view; /* of `host` */
    void *host;     /* the storage, as it was before the call, then as it is after it */
    void *device;
    size_t bytes;
    aclTensor *tensor;
    aclScalar *scalar;
    aclIntArray *ints;
    aclTensorList *list;
    fake_view members[OP_LIST]; /* of a list, one storage each */
    int nmembers;
    int64_t i;
    double d;
    char text[16];
    aclDataType dtype;
} operand;

typedef struct op {
    const char *name;
    operand at[OPERANDS];
    int n;
    uint64_t workspace_size;
    void *workspace;
    aclOpExecutor *executor;
} op;

/* aclInit, device 0, a stream; ASCEND_OPP_PATH is set. Once a process. */
void ops_begin(void);
extern void *ops_stream;
void ops_seed(uint64_t seed);

op *op_new(const char *name, const char *operands);
/* The same with some operands replaced, by name. */
op *op_new_with(const char *name, const char *operands, const char *changes);
operand *op_find(op *o, const char *name);
/* Elements in row-major order of the view; to be freed. */
double *op_get(op *o, const char *name);
double *operand_get(const operand *a);
/* Replaces the elements. */
void op_set(op *o, const char *name, const double *values);
/* The phases. op_phase1() makes a workspace of the size asked for; op_phase2() does not wait; op_run() is
 * both, then waits and fetches. It returns the first status that is not 0. */
int op_phase1(op *o);
int op_phase2(op *o);
int op_run(op *o);
void op_fetch(op *o);
/* Descriptors, memory, workspace; an executor that is left over too. */
void op_free(op *o);
/* Where tensors and scalars go; kept apart for tests of lifetimes. */
void op_free_descriptors(op *o);

/* The relative error of one rounding, and the bound of a sum of n terms in float whose absolute values add up
 * to `terms`, rounded once. */
double ops_unit(aclDataType dtype);
double ops_sum_bound(int64_t n, double terms);
/* Whether |got - want| <= bound for all, and says where not; bound = relative * |want| + absolute. */
bool ops_close(const char *what, const double *got, const double *want, int64_t n, double relative,
               double absolute);
#endif
