/* SPDX-License-Identifier: Apache-2.0 */
/* Ops as lines of text: op, attributes, inputs, and the outputs its rule has to make or the words its error
 * has to hold. Shared by the tests of shape rules, printer, parser and autodiff. Every op has a line that
 * works and, where something can be wrong with it, one that fails (ops_shape.c checks that). */
#ifndef CT_TESTS_OPS_CASES_H
#define CT_TESTS_OPS_CASES_H

#include <inttypes.h>

#include "unit/base_test.h"

#include "base/fields.h"
#include "base/str.h"
#include "ops/ops.h"

typedef struct op_case {
    const char *op;
    const char *attrs;  /* "ta=true;tb=false"; the rest have their defaults */
    const char *inputs; /* "f32[2,3] i32[4] _" */
    const char *wanted; /* the same for outputs, or "!words of the error" */
} op_case;

/* clang-format off */
static const op_case op_cases[] = {
    {"embedding", "", "bf16[10,4] i32[2,3]", "bf16[2,3,4]"},
    {"embedding", "", "f32[10,4] i32[]", "f32[4]"},
    {"embedding", "", "f32[10,4,2] i32[2]", "!input 0 must have 2 dims"},
    {"embedding", "", "f32[10,4] i64[2]", "!input 1 must be i32"},
    {"embedding", "", "f16[10,4] i32[2]", "!input 0 must be f32, bf16 or f64"},
    {"embedding", "", "f32[10,4] i32[1,1,1,1,1,1]", "!fewer than 6 dims"},
    {"embedding", "", "f32[10,4]", "!embedding takes 2 inputs, not 1"},
    {"embedding_grad", "vocab=10", "f32[2,3,4] i32[2,3]", "f32[10,4]"},
    {"embedding_grad", "vocab=0", "f32[2,3,4] i32[2,3]", "!'vocab' must be greater than 0"},
    {"embedding_grad", "vocab=10", "f32[2,3,4] i32[3,2]", "!input 1 must be"},
    {"local_ids", "start=7;count=5", "i32[2,3]", "i32[2,3]"},
    {"local_ids", "start=-1;count=5", "i32[2,3]", "!rows [-1, +5) are no part of a vocabulary"},
    {"local_ids", "start=0;count=0", "i32[2,3]", "!rows [0, +0)"},
    {"local_ids", "", "f32[2,3]", "!input 0 must be i32"},
    {"matmul", "", "f32[2,3] f32[3,5]", "f32[2,5]"},
    {"matmul", "tb=true", "bf16[2,3,4] bf16[5,4]", "bf16[2,3,5]"},
    {"matmul", "ta=true", "f64[2,3,4] f64[2,3,5]", "f64[4,5]"},
    {"matmul", "ta=true;tb=true", "f32[3,2] f32[5,3]", "f32[2,5]"},
    {"matmul", "", "f32[2,3] f32[3,5] f32[2,5]", "f32[2,5]"},
    {"matmul", "", "f32[2,3] f32[3,5] _", "f32[2,5]"},
    {"matmul", "", "f32[3] f32[3,5]", "f32[5]"},
    {"matmul", "", "f32[2,0] f32[0,5]", "f32[2,5]"},
    {"matmul", "", "f32[2,3] f32[4,5]", "!matmul(f32 [2, 3], f32 [4, 5]): with ta=false, tb=false the columns of op(a) must be the rows of op(b): 3 and 4"},
    {"matmul", "", "f32[2,3] bf16[3,5]", "!input 1 must have the dtype of input 0"},
    {"matmul", "", "f32[2,3] f32[3,5] f32[5,2]", "!input 2 must be f32 [2, 5]"},
    {"matmul", "", "f32[2,3] _ f32[2,5]", "!input 1 is missing"},
    {"matmul", "", "f32[] f32[3]", "!input 0 must have 1 dims or more"},
    {"matmul_swiglu", "tb=true", "bf16[2,3,4] bf16[10,4]", "bf16[2,3,10] bf16[2,3,5]"},
    {"matmul_swiglu", "tb=true", "f32[3,4] f32[5,4]", "!the columns of the product must be even, they are 5"},
    {"matmul_swiglu", "", "f32[3,4] f32[5,4]", "!matmul_swiglu(f32 [3, 4], f32 [5, 4]): with ta=false, tb=false the columns of op(a) must be the rows of op(b): 4 and 5"},
    {"add", "", "f32[2,3] f32[2,3]", "f32[2,3]"},
    {"add", "", "f32[2,3] f32[3,2]", "!input 1 must have the dims of input 0"},
    {"add", "", "i32[2] i32[2]", "!input 0 must be f32, bf16 or f64"},
    {"mul", "", "bf16[2,0] bf16[2,0]", "bf16[2,0]"},
    {"mul", "", "bf16[2] f32[2]", "!input 1 must have the dtype of input 0"},
    {"scale", "alpha=0.1", "f64[7]", "f64[7]"},
    {"scale", "", "u8[7]", "!input 0 must be"},
    {"cast", "dtype=1", "f32[2,3]", "bf16[2,3]"},
    {"cast", "dtype=7", "f32[2,3]", "!'dtype' 7 is no dtype"},
    {"reshape", "dims=3 -1", "i32[2,6]", "i32[3,4]"},
    {"reshape", "dims=12", "f32[2,6]", "f32[12]"},
    {"reshape", "", "f32[1,1]", "f32[]"},
    {"reshape", "dims=5 -1", "f32[2,6]", "!12 elements over 5"},
    {"reshape", "dims=-1 -1", "f32[2,6]", "!'dims' may hold one -1"},
    {"reshape", "dims=3 5", "f32[2,6]", "!'dims' holds 15 elements, the input 12"},
    {"reshape", "dims=-2 6", "f32[2,6]", "!dim 0 of 'dims' is -2"},
    {"reshape", "dims=1 1 1 1 1 1 1", "f32[1]", "!the most is 6"},
    {"reshape", "dims=0 -1", "f32[0]", "!has no answer"},
    {"reshape", "dims=9223372036854775807 9223372036854775807", "f32[1]", "!too large"},
    {"transpose", "perm=2 0 1", "f32[2,3,4]", "f32[4,2,3]"},
    {"transpose", "perm=0 1", "f32[2,3,4]", "!'perm' has 2 entries, the input 3 dims"},
    {"transpose", "perm=0 1 1", "f32[2,3,4]", "!'perm' must hold each dim once"},
    {"transpose", "perm=0 1 3", "f32[2,3,4]", "!'perm' must hold each dim once"},
    {"slice", "dim=1;start=2;len=3", "f32[2,6]", "f32[2,3]"},
    {"slice", "dim=1;start=6", "f32[2,6]", "f32[2,0]"},
    {"slice", "dim=1;start=4;len=3", "f32[2,6]", "!leave dim 1"},
    {"slice", "dim=1;start=-1;len=1", "f32[2,6]", "!leave dim 1"},
    {"slice", "dim=2", "f32[2,6]", "!'dim' 2 is not one of the input's 2 dims"},
    {"slice_grad", "dim=0;start=1;full=5", "f32[2,6]", "f32[5,6]"},
    {"slice_grad", "dim=0;start=4;full=5", "f32[2,6]", "!leave 'full' 5"},
    {"slice_grad", "dim=-1", "f32[2,6]", "!'dim' -1"},
    {"concat", "dim=1", "f32[2,3] f32[2,0] f32[2,4]", "f32[2,7]"},
    {"concat", "", "f32[2,3]", "f32[2,3]"},
    {"concat", "dim=1", "f32[2,3] f32[3,3]", "!input 1 differs from input 0 in dim 0"},
    {"concat", "dim=1", "f32[2,3] f32[2]", "!input 1 must have 2 dims"},
    {"concat", "dim=1", "f32[2,3] f64[2,3]", "!input 1 must have the dtype"},
    {"concat", "dim=1", "f32[2,3] _", "!input 1 is missing"},
    {"rmsnorm", "eps=1e-6", "bf16[2,3,4] bf16[4]", "bf16[2,3,4] f32[2,3]"},
    {"rmsnorm", "", "f32[4] f32[4]", "f32[4] f32[]"},
    {"rmsnorm", "", "f32[2,4] f32[2]", "!input 1 must have 4 elements"},
    {"rmsnorm", "", "bf16[2,4] f32[4]", "!input 1 must be bf16"},
    {"rmsnorm", "eps=nan", "f32[2,4] f32[4]", "!'eps' must be 0 or more"},
    {"rmsnorm_grad", "", "f32[2,3,4] f32[2,3,4] f32[4] f32[2,3]", "f32[2,3,4] f32[4]"},
    {"rmsnorm_grad", "", "f32[2,3,4] f32[2,3,4] f32[4] f32[3,2]", "!input 3 must be"},
    {"rmsnorm_grad", "", "bf16[2,4] bf16[2,4] bf16[4] f32[2] bf16[2,4]", "bf16[2,4] bf16[4]"},
    {"rmsnorm_grad", "", "f32[2,4] f32[2,4] f32[4] f32[2] f32[4,2]", "!input 4 must have the dims of input 0"},
    {"qkv_rope", "heads=4;kv_heads=2", "bf16[2,3,64] i32[2,3] f32[16,4,2]", "bf16[2,3,4,8] bf16[2,3,2,8] bf16[2,3,2,8]"},
    {"qkv_rope", "heads=4;kv_heads=1", "f32[2,3,64] i32[2,3] f32[16,4,2]", "!must be 6 heads of an even size"},
    {"qkv_rope", "heads=2;kv_heads=1", "f32[2,3,12] i32[2,3] f32[16,4,2]", "!must be 4 heads of an even size"},
    {"qkv_rope", "heads=4;kv_heads=0", "f32[2,3,64] i32[2,3] f32[16,4,2]", "!must be at least 1"},
    {"qkv_rope", "heads=4;kv_heads=2", "f32[2,3,64] i32[3,2] f32[16,4,2]", "!input 1 must be i32 [2, 3]"},
    {"qkv_rope", "heads=4;kv_heads=2", "f32[2,3,64] i32[2,3] f32[16,8,2]", "!half of x's last dim"},
    {"qkv_rope", "heads=4;kv_heads=2", "f32[6,64] i32[6] f32[16,4,2]", "!input 0 must have 3 dims"},
    {"qkv_rope_grad", "", "f32[2,3,4,8] f32[2,3,2,8] f32[2,3,2,8] i32[2,3] f32[16,4,2]", "f32[2,3,64]"},
    {"qkv_rope_grad", "", "f32[2,3,4,8] f32[2,3,2,8] f32[2,3,1,8] i32[2,3] f32[16,4,2]", "!input 2 must have the dims of input 1"},
    {"qkv_rope_grad", "", "f32[2,3,4,8] f32[2,2,2,8] f32[2,2,2,8] i32[2,3] f32[16,4,2]", "!input 1 must be f32 [2, 3, 2, 8]"},
    {"qkv_rope_grad", "", "f32[2,3,4,8] bf16[2,3,2,8] bf16[2,3,2,8] i32[2,3] f32[16,4,2]", "!input 1 must have the dtype of input 0"},
    {"rope", "", "bf16[2,3,4,8] i32[2,3] f32[16,4,2]", "bf16[2,3,4,8]"},
    {"rope", "inverse=true", "f32[2,3,4,8] i32[2,3] f32[16,4,2]", "f32[2,3,4,8]"},
    {"rope", "", "f32[2,3,4,8] i32[2,3] f32[16,8,2]", "!half of x's last dim"},
    {"rope", "", "f32[2,3,4,7] i32[2,3] f32[16,3,2]", "!must be even"},
    {"rope", "", "f32[2,3,4,8] i32[3,2] f32[16,4,2]", "!input 1 must be i32 [2, 3]"},
    {"rope", "", "f32[2,3,4,8] i32[2,3] f32[16,4,3]", "!(cos, sin)"},
    {"rope", "", "f32[2,3,4,8] i32[2,3] f64[16,4,2]", "!input 2 must be f32"},
    {"rope_rows", "", "i32[2,3] f32[16,4,2]", "f32[2,3,8] f32[2,3,8]"},
    {"rope_rows", "", "i32[6] f32[16,4,2]", "!input 0 must have 2 dims"},
    {"rotary_mul", "inverse=true", "bf16[2,3,4,8] f32[2,3,8] f32[2,3,8]", "bf16[2,3,4,8]"},
    {"rotary_mul", "", "f32[2,3,4,8] f32[2,3,8] f32[2,3,4]", "!input 2 must be f32 [2, 3, 8]"},
    {"sdpa", "scale=0.5;window=2", "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,8] i32[6,4] i32[1]", "bf16[2,3,4,8] f32[6,4]"},
    {"sdpa", "causal=false", "f32[6,4,8] f32[6,4,8] f32[6,4,8] i32[6,4] i32[1]", "f32[6,4,8] f32[6,4]"},
    {"sdpa", "", "f32[2,3,4,8] f32[2,3,3,8] f32[2,3,3,8] i32[6,4] i32[1]", "!3 kv heads do not divide 4 heads"},
    {"sdpa", "", "f32[2,3,4,8] f32[2,3,4,6] f32[2,3,4,6] i32[6,4] i32[1]", "!the same head dim"},
    {"sdpa", "", "f32[2,3,4,8] f32[2,3,4,8] f32[2,4,4,8] i32[6,4] i32[1]", "!input 2 must have the dims of input 1"},
    {"sdpa", "", "f32[2,3,4,8] f32[2,3,4,8] f32[2,3,4,8] i32[6,3] i32[1]", "!q_start"},
    {"sdpa", "", "f32[2,3,4,8] f32[2,3,4,8] f32[2,3,4,8] i32[6,4] i32[2]", "!input 4 must have 1 elements"},
    {"sdpa", "window=-1", "f32[2,3,4,8] f32[2,3,4,8] f32[2,3,4,8] i32[6,4] i32[1]", "!'window' -1"},
    {"sdpa", "", "f32[4,8] f32[4,8] f32[4,8] i32[6,4] i32[1]", "!input 0 must have 3 dims or more"},
    {"sdpa_grad", "", "f32[6,4,8] f32[6,4,8] f32[5,2,8] f32[5,2,8] f32[6,4,8] f32[6,4] i32[6,4] i32[1]", "f32[6,4,8] f32[5,2,8] f32[5,2,8]"},
    {"sdpa_grad", "", "f32[6,4,8] f32[6,4,8] f32[5,2,8] f32[5,2,8] f32[6,4,8] f32[4,6] i32[6,4] i32[1]", "!input 5 must be"},
    {"segment_ends", "", "i32[6,4] i32[1]", "i32[6] i32[6]"},
    {"segment_ends", "", "i32[6] i32[1]", "!input 0 must have 2 dims"},
    {"sdpa_tnd", "scale=0.25", "f32[6,4,8] f32[5,2,8] f32[5,2,8] i32[3] i32[3] i32[1]", "f32[6,4,8] f32[6,4]"},
    {"sdpa_tnd", "", "f32[6,4,8] f32[5,2,8] f32[5,2,8] i32[3] i32[4] i32[1]", "!input 4 must have 3 elements"},
    {"sdpa_tnd", "window=1", "f32[6,4,8] f32[5,2,8] f32[5,2,8] i32[3] i32[3] i32[1]", "!has no 'window'"},
    {"sdpa_tnd", "", "f32[1,6,4,8] f32[5,2,8] f32[5,2,8] i32[3] i32[3] i32[1]", "!input 0 must have 3 dims"},
    {"sdpa_tnd_grad", "", "f32[6,4,8] f32[6,4,8] f32[5,2,8] f32[5,2,8] f32[6,4,8] f32[6,4] i32[3] i32[3] i32[1]", "f32[6,4,8] f32[5,2,8] f32[5,2,8]"},
    {"sdpa_tnd_grad", "", "f32[6,4,8] f32[6,4,8] f32[5,2,8] f32[5,2,8] f32[6,4,8] f32[6,4] i32[3] i32[3] i64[1]", "!input 8 must be i32"},
    {"silu_mul", "", "f32[2,3] f32[2,3]", "f32[2,3]"},
    {"silu_mul", "", "f32[2,3] f32[6]", "!input 1 must have the dims"},
    {"silu_mul_grad", "", "f32[2,3] f32[2,3] f32[2,3]", "f32[2,3] f32[2,3]"},
    {"silu_mul_grad", "", "f32[2,3] f32[2,3] f32[2,4]", "!input 2 must have the dims"},
    {"swiglu", "", "bf16[2,3,8]", "bf16[2,3,4]"},
    {"swiglu", "", "f32[0]", "f32[0]"},
    {"swiglu", "", "f32[2,3]", "!must be even"},
    {"swiglu", "", "f32[]", "!input 0 must have 1 dims or more"},
    {"swiglu_grad", "", "f32[2,3,4] f32[2,3,8]", "f32[2,3,8]"},
    {"swiglu_grad", "", "f32[2,3,8] f32[2,3,8]", "!input 0 must be f32 [2, 3, 4]"},
    {"swiglu_grad", "", "bf16[2,3,4] f32[2,3,8]", "!input 0 must have the dtype of input 1"},
    {"linear_cross_entropy", "chunks=4", "bf16[2,3,8] bf16[10,8] i32[2,3] f32[1]", "f64[1] bf16[2,3,8] bf16[10,8]"},
    {"linear_cross_entropy", "", "f32[2,3,8] f32[10,8] i32[2,3] f32[1] f32[2,3]", "f64[1] f32[2,3,8] f32[10,8]"},
    {"linear_cross_entropy", "", "f32[2,3,8] f32[10,8] i32[2,3] f32[1] f32[6]", "!input 4 must be"},
    {"linear_lse", "chunks=2", "bf16[2,3,8] bf16[10,8]", "f32[2,3]"},
    {"linear_lse", "", "f32[2,3,8] f32[10,7]", "!the last dims of x and w must be equal"},
    {"linear_lse", "chunks=0", "f32[2,3,8] f32[10,8]", "!'chunks' 0 is less than 1"},
    {"lse_merge", "", "f32[4,2,3]", "f32[2,3]"},
    {"lse_merge", "", "f32[4]", "!input 0 must have 2 dims or more"},
    {"linear_cross_entropy", "", "f32[2,3,8] f32[10,7] i32[2,3] f32[1]", "!the last dims of x and w must be equal"},
    {"linear_cross_entropy", "", "f32[2,3,8] f32[10,8] i32[6] f32[1]", "!input 2 must be i32 [2, 3]"},
    {"linear_cross_entropy", "", "f32[2,3,8] f32[10,8] i32[2,3] f64[1]", "!input 3 must be f32"},
    {"linear_cross_entropy", "chunks=0", "f32[2,3,8] f32[10,8] i32[2,3] f32[1]", "!'chunks' 0 is less than 1"},
    {"linear_cross_entropy_eval", "", "f32[2,3,8] f32[10,8] i32[2,3] f32[1]", "f64[1]"},
    {"linear_cross_entropy_eval", "", "f32[2,3,8] f32[8] i32[2,3] f32[1]", "!input 1 must have 2 dims"},
    {"sumsq", "", "f32[100]", "f64[1]"},
    {"sumsq", "leaves=4", "f32[100]", "f64[1]"},
    {"sumsq", "leaves=3", "f32[100]", "!'leaves' 3 does not divide the elements"},
    {"sumsq", "", "i32[100]", "!input 0 must be"},
    {"add_n", "", "f64[1] f64[1] f64[1]", "f64[1]"},
    {"add_n", "", "f64[3] f64[1]", "f64[1]"},
    {"add_n", "", "f64[1] f32[1]", "!input 1 must be f64"},
    {"add_n", "", "", "!add_n takes 1 to 4096 inputs, not 0"},
    {"clip_coef", "max_norm=1.5", "f64[1] f64[1]", "f32[1] f64[1] i32[1]"},
    {"clip_coef", "", "f64[1] f64[2]", "!input 1 must have 1 elements"},
    {"clip_coef", "max_norm=-1", "f64[1] f64[1]", "!'max_norm' must be 0 or more"},
    {"adamw", "segments=0 3 0 3 6 1;beta1=0.9 0.9;beta2=0.95 0.95;eps=1e-8 1e-8;weight_decay=0.1 0", "f32[6] f32[6] bf16[6] f32[6] f64[2] i64[1] f32[1] i32[1]", "f32[6] bf16[6] f32[6]"},
    {"adamw", "segments=0 3", "f32[6] f32[6] f32[6] f32[6] f64[0] i64[1] f32[1] i32[1]", "!they come in threes"},
    {"adamw", "segments=0 7 0;beta1=0.9;beta2=0.9;eps=0;weight_decay=0", "f32[6] f32[6] f32[6] f32[6] f64[1] i64[1] f32[1] i32[1]", "!outside the parameter"},
    {"adamw", "segments=0 6 1;beta1=0.9;beta2=0.9;eps=0;weight_decay=0", "f32[6] f32[6] f32[6] f32[6] f64[1] i64[1] f32[1] i32[1]", "!names group 1 of 1"},
    {"adamw", "beta1=0.9;beta2=0.9;eps=0", "f32[6] f32[6] f32[6] f32[6] f64[1] i64[1] f32[1] i32[1]", "!one entry per group"},
    {"adamw", "", "f32[6] bf16[6] f32[6] f32[6] f64[0] i64[1] f32[1] i32[1]", "f32[6] f32[6] f32[6]"},
    {"adamw", "", "f32[6] f64[6] f32[6] f32[6] f64[0] i64[1] f32[1] i32[1]", "!input 1 must be f32, bf16 or of the parameter's dtype"},
    {"adamw", "", "f32[6] f32[6] f32[6] f64[6] f64[0] i64[1] f32[1] i32[1]", "!input 3 must be f32, bf16 or of the parameter's dtype"},
    {"adamw", "", "f32[6] f32[6] f32[6] f32[6] f64[0] i32[1] f32[1] i32[1]", "!input 5 must be i64"},
    {"adamw", "beta1=0.9;beta2=0.9;eps=0;weight_decay=0;l2=0 0", "f32[6] f32[6] f32[6] f32[6] f64[1] i64[1] f32[1] i32[1]", "!one entry per group"},
    {"momentum", "segments=0 6 0;momentum=0.9;share=1;weight_decay=0;nesterov=0", "bf16[6] f32[6] f32[6] f32[1] i32[1]", "bf16[6] f32[6]"},
    {"momentum", "segments=0 6 1;momentum=0.9;share=1;weight_decay=0;nesterov=0", "f32[6] f32[6] f32[6] f32[1] i32[1]", "!names group 1 of 1"},
    {"momentum", "segments=0 6 0;momentum=0.9;share=1;weight_decay=0", "f32[6] f32[6] f32[6] f32[1] i32[1]", "!one entry per group"},
    {"momentum", "", "f32[6] f32[5] f32[6] f32[1] i32[1]", "!input 1 must have the dims of input 0"},
    {"newton_schulz", "matrices=2 2 3 0;scale=1;steps=5;eps=0;coefficients=3 -4 2", "f32[8]", "f32[8]"},
    {"newton_schulz", "matrices=3 2 3 0;scale=1;steps=5;eps=0;coefficients=3 -4 2", "f32[8]", "!outside the vector"},
    {"newton_schulz", "matrices=0 2 3 1;scale=1;steps=5;eps=0;coefficients=3 -4 2", "f32[8]", "!names group 1 of 1"},
    {"newton_schulz", "matrices=0 2 3 0;scale=1 1;steps=5;eps=0;coefficients=3 -4 2", "f32[8]", "!a matrix has four and one"},
    {"newton_schulz", "matrices=0 2 3 0;scale=1;steps=5;eps=0;coefficients=3 -4", "f32[8]", "!'coefficients' three"},
    {"newton_schulz", "matrices=0 2 3 0;scale=1;steps=-1;eps=0;coefficients=3 -4 2", "f32[8]", "!'steps' must be 0 or more"},
    {"descend", "segments=0 6 0;weight_decay=0;l2=0.1", "f32[6] f32[6] f64[1] i32[1] f32[1]", "f32[6]"},
    {"descend", "segments=0 6 0;weight_decay=0;l2=0.1", "bf16[6] f32[6] f64[1] i32[1]", "bf16[6]"},
    {"descend", "segments=0 6 0;weight_decay=0", "f32[6] f32[6] f64[1] i32[1]", "!one entry per group"},
    {"descend", "segments=0 6 0;weight_decay=0;l2=0", "f32[6] f32[6] f64[2] i32[1]", "!input 2 must have 1 elements"},
    {"accumulate", "", "f32[6] bf16[6] i32[1]", "f32[6]"},
    {"accumulate", "", "f32[6] bf16[5] i32[1]", "!input 1 must have the dims of input 0"},
    {"flat_split", "offsets=0 6;ndims=2 1;dims=2 3 4", "f32[12]", "f32[2,3] f32[4]"},
    {"flat_split", "offsets=0 9;ndims=2 1;dims=2 3 4", "f32[12]", "!view 1 of 4 elements at 9 leaves"},
    {"flat_split", "offsets=0 6;ndims=2 2;dims=2 3 4", "f32[12]", "!view 1: 'ndims' is 2"},
    {"flat_split", "offsets=0 6;ndims=2;dims=2 3", "f32[12]", "!'offsets' has 2 entries, 'ndims' 1"},
    {"flat_split", "offsets=0;ndims=1;dims=2 3", "f32[12]", "!'dims' has 2 entries, 'ndims' asks for 1"},
    {"flat_split", "offsets=0;ndims=1;dims=-2", "f32[12]", "!leaves the flat tensor"},
    {"flat_concat", "offsets=1 8;total=12", "f32[2,3] f32[4]", "f32[12]"},
    {"flat_concat", "offsets=1 6;total=12", "f32[2,3] f32[4]", "!begins before the end of the one before it, 7"},
    {"flat_concat", "offsets=1 9;total=12", "f32[2,3] f32[4]", "!leaves 'total' 12"},
    {"flat_concat", "offsets=1;total=12", "f32[2,3] f32[4]", "!'offsets' has 1 entries for 2 inputs"},
    {"fill", "value=-0.5;dtype=3;dims=2 3", "", "f64[2,3]"},
    {"fill", "dtype=-1;dims=2", "", "!'dtype' -1 is no dtype"},
    {"fill", "dims=2 -1", "", "!dim 1 of 'dims' is -1"},
    {"kv_append", "", "bf16[2,16,4,8] bf16[2,3,4,8] i32[1]", "bf16[2,16,4,8]"},
    {"kv_append", "", "bf16[2,16,4,8] bf16[1,3,4,8] i32[1]", "!differ in dim 0"},
    {"all_gather", "axis=1;degree=4;reduce_dtype=0", "bf16[3,5]", "bf16[12,5]"},
    {"all_gather", "axis=6;degree=4", "bf16[3,5]", "!'axis' 6 is no mesh axis"},
    {"all_gather", "degree=0", "bf16[3,5]", "!'degree' 0"},
    {"all_gather", "reduce_dtype=4", "bf16[3,5]", "!'reduce_dtype' 4 is neither -1 nor a float dtype"},
    {"all_gather", "degree=9223372036854775807", "bf16[3,5]", "!too large"},
    {"reduce_scatter", "axis=1;degree=4", "f32[12,5]", "f32[3,5]"},
    {"reduce_scatter", "axis=1;degree=5", "f32[12,5]", "!'degree' 5 does not divide dim 0"},
    {"reduce_scatter", "", "f32[]", "!input 0 must have 1 dims or more"},
    {"owe", "axis=4;degree=2;reduce_dtype=-1", "bf16[3,5]", "bf16[3,5]"},
    {"owe", "axis=4;degree=2;reduce_dtype=9", "bf16[3,5]", "!'reduce_dtype' 9 is neither"},
    {"all_reduce", "axis=2;degree=2", "f32[12,5]", "f32[12,5]"},
    {"all_reduce", "axis=-1", "f32[12,5]", "!'axis' -1"},
};
/* clang-format on */

static inline bool op_case_is_good(const op_case *c)
{
    return c->wanted[0] != '!';
}

/* Takes one word of `list` into buf; NULL at its end. */
static inline const char *case_next(const char *list, char sep, char *buf, size_t size)
{
    while (*list == sep) {
        list++;
    }
    size_t n = 0;
    while (list[n] != '\0' && list[n] != sep) {
        assert_true(n + 1 < size);
        buf[n] = list[n];
        n++;
    }
    buf[n] = '\0';
    return n == 0 ? NULL : list + n;
}

/* "bf16[2,3]" -> a spec. */
static inline ct_value_spec case_spec(const char *word)
{
    ct_value_spec spec = {.name = "", .kind = CT_VALUE_INPUT};
    char dtype[8];
    const char *open = strchr(word, '[');
    assert_non_null(open);
    (void)snprintf(dtype, sizeof dtype, "%.*s", (int)(open - word), word);
    assert_true(ct_dtype_parse(dtype, &spec.dtype));
    for (const char *p = open + 1; *p != ']' && *p != '\0';) {
        char *end;
        spec.dims[spec.ndim++] = strtoll(p, &end, 10);
        p = *end == ',' ? end + 1 : end;
    }
    return spec;
}

/* Attributes of an op from "a=1;b=2 3"; the graph's arena. NULL where the op has none. */
static inline void *case_attrs(ct_graph *g, const ct_op *op, const char *text)
{
    if (op->attrs_bytes == 0) {
        return NULL;
    }
    ct_err err = {0};
    ct_arena *arena = ct_graph_arena(g);
    void *attrs = ct_arena_alloc(arena, op->attrs_bytes, &err);
    assert_non_null(attrs);
    assert_int_equal(ct_fields_default(op->attr_fields, (size_t)op->n_attr_fields, attrs, arena, &err),
                     CT_OK);
    char word[512];
    for (const char *p = text; (p = case_next(p, ';', word, sizeof word)) != NULL;) {
        char *value = strchr(word, '=');
        assert_non_null(value);
        *value++ = '\0';
        const ct_field *field = ct_field_find(op->attr_fields, (size_t)op->n_attr_fields, word);
        assert_non_null(field);
        cti_tokens tokens;
        assert_int_equal(cti_field_split(field, value, arena, &tokens, &err), CT_OK);
        assert_int_equal(ct_field_set(field, attrs, tokens.items, tokens.n, arena, &err), CT_OK);
    }
    return attrs;
}

/* Emits the op with inputs of its own. out_ids holds 16; *out_n of them are set. Inputs whose memory is
 * updated are STATEs by kind. */
static inline ct_status case_emit(ct_graph *g, const op_case *c, ct_value_id *out_ids, int32_t *out_n,
                                  ct_err *err)
{
    const ct_op *op = ct_op_find(c->op);
    assert_non_null(op);
    void *attrs = case_attrs(g, op, c->attrs);
    ct_value_id in[16];
    int32_t n_in = 0;
    char word[64];
    for (const char *p = c->inputs; (p = case_next(p, ' ', word, sizeof word)) != NULL; n_in++) {
        assert_true(n_in < 16);
        if (strcmp(word, "_") == 0) {
            in[n_in] = CT_NO_VALUE;
            continue;
        }
        ct_value_spec spec = case_spec(word);
        spec.kind = (op->flags & CT_OP_UPDATE) != 0 ? CT_VALUE_STATE : CT_VALUE_INPUT;
        char name[32];
        (void)snprintf(name, sizeof name, "in%d", (int)ct_graph_n_values(g));
        spec.name = name;
        ct_err none = {0};
        assert_int_equal(ct_graph_add_value(g, &spec, &in[n_in], &none), CT_OK);
    }
    const ct_status st = ct_op_emit(g, op->id, attrs, in, n_in, out_ids, err);
    *out_n = st == CT_OK ? ct_op_n_out(op, attrs) : 0;
    return st;
}

static inline ct_graph *case_graph(const char *name)
{
    ct_graph *g;
    ct_err err = {0};
    assert_int_equal(ct_graph_create(ct_alloc_system(), name, &g, &err), CT_OK);
    return g;
}

/* One graph with all good cases in it, over all programs, with scopes, streams, placements. It verifies. */
static inline ct_graph *case_graph_of_all(void)
{
    ct_graph *g = case_graph("all");
    ct_err err = {0};
    int32_t n_good = 0, n = 0;
    for (size_t i = 0; i < N_OF(op_cases); i++) {
        n_good += op_case_is_good(&op_cases[i]);
    }
    for (size_t i = 0; i < N_OF(op_cases); i++) {
        if (!op_case_is_good(&op_cases[i])) {
            continue;
        }
        ct_graph_set_program(g, (ct_program_id)(n * CT_PROGRAM_COUNT / n_good));
        char scope[48];
        (void)snprintf(scope, sizeof scope, "layers.%d.\"odd\\\x01 näme\"", (int)n % 5);
        assert_int_equal(ct_graph_set_scope(g, n % 4 == 0 ? "" : scope, &err), CT_OK);
        ct_value_id outs[16];
        int32_t n_out;
        assert_int_equal(case_emit(g, &op_cases[i], outs, &n_out, &err), CT_OK);
        ct_node *node = ct_graph_node(g, ct_graph_n_nodes(g) - 1);
        node->stream = (uint8_t)(n % 3);
        node->is_recompute = n % 7 == 0;
        ct_value *v = ct_graph_value(g, outs[0]);
        for (int a = 0; a < CT_MAX_AXES && n % 2 == 0; a++) {
            v->placement[a].kind = (uint8_t)((n / 2 + a) % 5);
            v->placement[a].dim = (int8_t)(v->placement[a].kind == CT_PLACE_SHARD ? a - 1 : 0);
        }
        n++;
    }
    return g;
}

#endif
