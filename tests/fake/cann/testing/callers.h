/* SPDX-License-Identifier: Apache-2.0 */
/* Phase 1 of each operator from an array of operands, in the order of its prototype. */
#ifndef TESTS_FAKE_CANN_CALLERS_H
#define TESTS_FAKE_CANN_CALLERS_H

#include "ops.h"

typedef int op_phase1_fn(operand *a, uint64_t *workspace, aclOpExecutor **executor);
typedef aclnnStatus op_phase2_fn(void *, uint64_t, aclOpExecutor *, void *);

#define T(k) a[k].tensor
#define S(k) a[k].scalar
#define A(k) a[k].ints
#define N(k) a[k].i
#define D(k) a[k].d
#define C(k) (a[k].text[0] ? a[k].text : NULL)

#define MODES(k) D(k), D(k + 1), N(k + 2), N(k + 3), N(k + 4), C(k + 5), N(k + 6), N(k + 7)
#define OPS(X)                                                                                              \
    X(Mm, T(0), T(1), T(2), (int8_t)N(3))                                                                   \
    X(Matmul, T(0), T(1), T(2), (int8_t)N(3))                                                               \
    X(BatchMatMul, T(0), T(1), T(2), (int8_t)N(3))                                                          \
    X(Addmm, T(0), T(1), T(2), S(3), S(4), T(5), (int8_t)N(6))                                              \
    X(InplaceAddmm, T(0), T(1), T(2), S(3), S(4), (int8_t)N(5))                                             \
    X(Add, T(0), T(1), S(2), T(3))                                                                          \
    X(Sub, T(0), T(1), S(2), T(3))                                                                          \
    X(InplaceAdd, T(0), T(1), S(2))                                                                         \
    X(InplaceSub, T(0), T(1), S(2))                                                                         \
    X(Mul, T(0), T(1), T(2))                                                                                \
    X(Div, T(0), T(1), T(2))                                                                                \
    X(Minimum, T(0), T(1), T(2))                                                                            \
    X(Maximum, T(0), T(1), T(2))                                                                            \
    X(LogicalAnd, T(0), T(1), T(2))                                                                         \
    X(InplaceMul, T(0), T(1))                                                                               \
    X(InplaceDiv, T(0), T(1))                                                                               \
    X(Adds, T(0), S(1), S(2), T(3))                                                                         \
    X(Muls, T(0), S(1), T(2))                                                                               \
    X(Divs, T(0), S(1), T(2))                                                                               \
    X(InplaceMuls, T(0), S(1))                                                                              \
    X(EqScalar, T(0), S(1), T(2))                                                                           \
    X(NeScalar, T(0), S(1), T(2))                                                                           \
    X(LtScalar, T(0), S(1), T(2))                                                                           \
    X(GeScalar, T(0), S(1), T(2))                                                                           \
    X(Neg, T(0), T(1))                                                                                      \
    X(Exp, T(0), T(1))                                                                                      \
    X(Log, T(0), T(1))                                                                                      \
    X(Sqrt, T(0), T(1))                                                                                     \
    X(Rsqrt, T(0), T(1))                                                                                    \
    X(Reciprocal, T(0), T(1))                                                                               \
    X(Sigmoid, T(0), T(1))                                                                                  \
    X(Silu, T(0), T(1))                                                                                     \
    X(IsFinite, T(0), T(1))                                                                                 \
    X(SiluBackward, T(0), T(1), T(2))                                                                       \
    X(SWhere, T(0), T(1), T(2), T(3))                                                                       \
    X(Cast, T(0), a[1].dtype, T(2))                                                                         \
    X(InplaceCopy, T(0), T(1))                                                                              \
    X(InplaceZero, T(0))                                                                                    \
    X(InplaceFillScalar, T(0), S(1))                                                                        \
    X(Cat, a[0].list, N(1), T(2))                                                                           \
    X(Arange, S(0), S(1), S(2), T(3))                                                                       \
    X(RmsNorm, T(0), T(1), D(2), T(3), T(4))                                                                \
    X(RmsNormGrad, T(0), T(1), T(2), T(3), T(4), T(5))                                                      \
    X(RotaryPositionEmbedding, T(0), T(1), T(2), N(3), T(4))                                                \
    X(RotaryPositionEmbeddingGrad, T(0), T(1), T(2), T(3), N(4), T(5), T(6), T(7))                          \
    X(SwiGlu, T(0), N(1), T(2))                                                                             \
    X(SwiGluGrad, T(0), T(1), N(2), T(3))                                                                   \
    X(ApplyAdamWV2, T(0), T(1), T(2), T(3), T(4), T(5), (float)D(6), (float)D(7), (float)D(8), (float)D(9), \
      (float)D(10), N(11) != 0, N(12) != 0)                                                                 \
    X(Embedding, T(0), T(1), T(2))                                                                          \
    X(EmbeddingDenseBackward, T(0), T(1), (uint64_t)N(2), (uint64_t)N(3), N(4) != 0, T(5))                  \
    X(IndexSelect, T(0), N(1), T(2), T(3))                                                                  \
    X(Gather, T(0), N(1), T(2), T(3))                                                                       \
    X(Softmax, T(0), N(1), T(2))                                                                            \
    X(LogSoftmax, T(0), N(1), T(2))                                                                         \
    X(LogSoftmaxBackward, T(0), T(1), N(2), T(3))                                                           \
    X(NLLLoss, T(0), T(1), T(2), N(3), N(4), T(5), T(6))                                                    \
    X(NLLLossBackward, T(0), T(1), T(2), T(3), N(4), N(5), T(6), T(7))                                      \
    X(CrossEntropyLoss, T(0), T(1), T(2), C(3), N(4), D(5), D(6), N(7) != 0, T(8), T(9), T(10), T(11))      \
    X(CrossEntropyLossGrad, T(0), T(1), T(2), T(3), T(4), T(5), C(6), N(7), D(8), D(9), T(10))              \
    X(ReduceSum, T(0), A(1), N(2) != 0, a[3].dtype, T(4))                                                   \
    X(Amax, T(0), A(1), N(2) != 0, T(3))                                                                    \
    X(LogSumExp, T(0), A(1), N(2) != 0, T(3))                                                               \
    X(LinalgVectorNorm, T(0), S(1), A(2), N(3) != 0, a[4].dtype, T(5))                                      \
    X(FlashAttentionScore, T(0), T(1), T(2), T(3), T(4), T(5), T(6), A(7), MODES(8), T(16), T(17), T(18),   \
      T(19))                                                                                                \
    X(FlashAttentionVarLenScore, T(0), T(1), T(2), T(3), T(4), T(5), T(6), A(7), A(8), A(9), MODES(10),     \
      T(18), T(19), T(20), T(21))                                                                           \
    X(FlashAttentionScoreGrad, T(0), T(1), T(2), T(3), T(4), T(5), T(6), T(7), T(8), T(9), T(10), T(11),    \
      A(12), MODES(13), T(21), T(22), T(23), T(24))                                                         \
    X(FlashAttentionUnpaddingScoreGrad, T(0), T(1), T(2), T(3), T(4), T(5), T(6), T(7), T(8), T(9), T(10),  \
      T(11), A(12), A(13), A(14), MODES(15), T(23), T(24), T(25), T(26))

#define CALLER(Name, ...)                                                             \
    static int call_##Name(operand *a, uint64_t *workspace, aclOpExecutor **executor) \
    {                                                                                 \
        return aclnn##Name##GetWorkspaceSize(__VA_ARGS__, workspace, executor);       \
    }
OPS(CALLER)
#undef CALLER

static const struct op_caller {
    const char *name;
    op_phase1_fn *phase1;
    op_phase2_fn *phase2;
} op_callers[] = {
#define ROW(Name, ...) {#Name, call_##Name, aclnn##Name},
    OPS(ROW)
#undef ROW
};
#undef T
#undef S
#undef A
#undef N
#undef D
#undef C
#endif
