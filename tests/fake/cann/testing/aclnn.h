/* SPDX-License-Identifier: Apache-2.0 */
/* Prototypes of CANN's functions for the tests of the doubles, written apart from the doubles, so that a slip
 * on one side shows. */
#ifndef TESTS_FAKE_CANN_ACLNN_H
#define TESTS_FAKE_CANN_ACLNN_H

#include "../acl_types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int aclInit(const char *config);
int aclFinalize(void);
int aclrtSetDevice(int32_t device);
int aclrtMalloc(void **out, size_t size, int policy);
int aclrtFree(void *block);
int aclrtMemcpy(void *to, size_t max, const void *from, size_t count, int kind);
int aclrtCreateStream(void **out);
int aclrtSynchronizeStream(void *stream);
int aclrtSetSysParamOpt(int option, int64_t value);
const char *aclGetRecentErrMsg(void);

aclTensor *aclCreateTensor(const int64_t *dims, uint64_t ndims, aclDataType dtype, const int64_t *stride,
                           int64_t offset, aclFormat format, const int64_t *storage, uint64_t nstorage,
                           void *data);
aclnnStatus aclInitTensor(aclTensor *tensor, const int64_t *dims, uint64_t ndims, aclDataType dtype,
                          const int64_t *stride, int64_t offset, aclFormat format, const int64_t *storage,
                          uint64_t nstorage, void *data);
aclScalar *aclCreateScalar(void *value, aclDataType dtype);
aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t n);
aclFloatArray *aclCreateFloatArray(const float *value, uint64_t n);
aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t n);
aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t n);
aclScalarList *aclCreateScalarList(const aclScalar *const *value, uint64_t n);
aclnnStatus aclDestroyTensor(const aclTensor *tensor);
aclnnStatus aclDestroyScalar(const aclScalar *scalar);
aclnnStatus aclDestroyIntArray(const aclIntArray *array);
aclnnStatus aclDestroyFloatArray(const aclFloatArray *array);
aclnnStatus aclDestroyBoolArray(const aclBoolArray *array);
aclnnStatus aclDestroyTensorList(const aclTensorList *list);
aclnnStatus aclDestroyScalarList(const aclScalarList *list);
aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **dims, uint64_t *ndims);
aclnnStatus aclGetStorageShape(const aclTensor *tensor, int64_t **dims, uint64_t *ndims);
aclnnStatus aclGetViewStrides(const aclTensor *tensor, int64_t **strides, uint64_t *n);
aclnnStatus aclGetViewOffset(const aclTensor *tensor, int64_t *offset);
aclnnStatus aclGetFormat(const aclTensor *tensor, aclFormat *format);
aclnnStatus aclGetDataType(const aclTensor *tensor, aclDataType *dtype);
aclnnStatus aclGetIntArraySize(const aclIntArray *array, uint64_t *n);
aclnnStatus aclGetTensorListSize(const aclTensorList *list, uint64_t *n);
aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor);
aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor);
aclnnStatus aclSetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr);
aclnnStatus aclSetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                                   void *addr);
aclnnStatus aclSetTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr);
aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor *executor, size_t index, const size_t member,
                                         aclTensorList *tensors, void *addr);
aclnnStatus aclSetRawTensorAddr(aclTensor *tensor, void *addr);
aclnnStatus aclGetRawTensorAddr(const aclTensor *tensor, void **addr);

/* Both phases of an operator. */
#define ACLNN(Name, ...)                                                                  \
    aclnnStatus aclnn##Name##GetWorkspaceSize(__VA_ARGS__, uint64_t *, aclOpExecutor **); \
    aclnnStatus aclnn##Name(void *, uint64_t, aclOpExecutor *, void *);
#define TENSOR const aclTensor *
#define SCALAR const aclScalar *
#define INTS const aclIntArray *

#define ACLNN_PRODUCT(Name) ACLNN(Name, TENSOR, TENSOR, aclTensor *, int8_t)
ACLNN_PRODUCT(Mm)
ACLNN_PRODUCT(Matmul)
ACLNN_PRODUCT(BatchMatMul)
ACLNN(Addmm, TENSOR, TENSOR, TENSOR, SCALAR, SCALAR, aclTensor *, int8_t)
ACLNN(InplaceAddmm, TENSOR, TENSOR, TENSOR, SCALAR, SCALAR, int8_t)

#define ACLNN_TWO(Name) ACLNN(Name, TENSOR, TENSOR, aclTensor *)
#define ACLNN_TWO_ALPHA(Name) ACLNN(Name, TENSOR, TENSOR, SCALAR, aclTensor *)
#define ACLNN_BY(Name) ACLNN(Name, TENSOR, SCALAR, aclTensor *)
#define ACLNN_ONE(Name) ACLNN(Name, TENSOR, aclTensor *)
ACLNN_TWO_ALPHA(Add)
ACLNN_TWO_ALPHA(Sub)
ACLNN(InplaceAdd, TENSOR, TENSOR, SCALAR)
ACLNN(InplaceSub, aclTensor *, TENSOR, SCALAR)
ACLNN_TWO(Mul)
ACLNN_TWO(Div)
ACLNN_TWO(Minimum)
ACLNN_TWO(Maximum)
ACLNN_TWO(LogicalAnd)
ACLNN(InplaceMul, aclTensor *, TENSOR)
ACLNN(InplaceDiv, aclTensor *, TENSOR)
ACLNN(Adds, TENSOR, SCALAR, SCALAR, aclTensor *)
ACLNN_BY(Muls)
ACLNN_BY(Divs)
ACLNN(InplaceMuls, aclTensor *, SCALAR)
ACLNN_BY(EqScalar)
ACLNN_BY(NeScalar)
ACLNN_BY(LtScalar)
ACLNN_BY(GeScalar)
ACLNN_ONE(Neg)
ACLNN_ONE(Exp)
ACLNN_ONE(Log)
ACLNN_ONE(Sqrt)
ACLNN_ONE(Rsqrt)
ACLNN_ONE(Reciprocal)
ACLNN_ONE(Sigmoid)
ACLNN_ONE(Silu)
ACLNN_ONE(IsFinite)
ACLNN_TWO(SiluBackward)
ACLNN(SWhere, TENSOR, TENSOR, TENSOR, aclTensor *)

ACLNN(Cast, TENSOR, const aclDataType, aclTensor *)
ACLNN(InplaceCopy, aclTensor *, TENSOR)
ACLNN(InplaceZero, aclTensor *)
ACLNN(InplaceFillScalar, aclTensor *, SCALAR)
ACLNN(Cat, const aclTensorList *, int64_t, aclTensor *)
ACLNN(Arange, SCALAR, SCALAR, SCALAR, aclTensor *)

ACLNN(RmsNorm, TENSOR, TENSOR, double, TENSOR, TENSOR)
ACLNN(RmsNormGrad, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR)
ACLNN(RotaryPositionEmbedding, TENSOR, TENSOR, TENSOR, int64_t, aclTensor *)
ACLNN(RotaryPositionEmbeddingGrad, TENSOR, TENSOR, TENSOR, TENSOR, int64_t, TENSOR, TENSOR, TENSOR)
ACLNN(SwiGlu, TENSOR, int64_t, TENSOR)
ACLNN(SwiGluGrad, TENSOR, TENSOR, int64_t, TENSOR)
ACLNN(ApplyAdamWV2, aclTensor *, aclTensor *, aclTensor *, aclTensor *, TENSOR, TENSOR, float, float, float,
      float, float, bool, bool)

ACLNN(Embedding, TENSOR, TENSOR, TENSOR)
ACLNN(EmbeddingDenseBackward, TENSOR, TENSOR, uint64_t, uint64_t, bool, TENSOR)
ACLNN(IndexSelect, TENSOR, int64_t, TENSOR, aclTensor *)
ACLNN(Gather, TENSOR, const int64_t, TENSOR, aclTensor *)

ACLNN(Softmax, TENSOR, int64_t, aclTensor *)
ACLNN(LogSoftmax, TENSOR, int64_t, aclTensor *)
ACLNN(LogSoftmaxBackward, TENSOR, TENSOR, int64_t, aclTensor *)
ACLNN(NLLLoss, TENSOR, TENSOR, TENSOR, int64_t, int64_t, aclTensor *, aclTensor *)
ACLNN(NLLLossBackward, TENSOR, TENSOR, TENSOR, TENSOR, int64_t, int64_t, TENSOR, aclTensor *)
ACLNN(CrossEntropyLoss, TENSOR, TENSOR, TENSOR, char *, int64_t, double, double, bool, TENSOR, TENSOR, TENSOR,
      TENSOR)
ACLNN(CrossEntropyLossGrad, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, char *, int64_t, double, double,
      TENSOR)

ACLNN(ReduceSum, TENSOR, INTS, bool, aclDataType, aclTensor *)
ACLNN(Amax, TENSOR, INTS, bool, aclTensor *)
ACLNN(LogSumExp, TENSOR, INTS, bool, aclTensor *)
ACLNN(LinalgVectorNorm, TENSOR, SCALAR, INTS, bool, const aclDataType, aclTensor *)

#define ACLNN_MODES double, double, int64_t, int64_t, int64_t, char *, int64_t, int64_t
ACLNN(FlashAttentionScore, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, INTS, ACLNN_MODES, TENSOR,
      TENSOR, TENSOR, TENSOR)
ACLNN(FlashAttentionVarLenScore, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, INTS, INTS, INTS,
      ACLNN_MODES, TENSOR, TENSOR, TENSOR, TENSOR)
ACLNN(FlashAttentionScoreGrad, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR,
      TENSOR, TENSOR, INTS, ACLNN_MODES, TENSOR, TENSOR, TENSOR, TENSOR)
ACLNN(FlashAttentionUnpaddingScoreGrad, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR, TENSOR,
      TENSOR, TENSOR, TENSOR, TENSOR, INTS, INTS, INTS, ACLNN_MODES, TENSOR, TENSOR, TENSOR, TENSOR)
#undef TENSOR
#undef SCALAR
#undef INTS
#endif
