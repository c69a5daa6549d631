/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of CANN that we call, one row each; struct members, loading and messages are made from these lists.
 *
 * X(NEED, result, name, (parameters))    NEED: MUST, the library is of no use without it; MAY, NULL where it is missing
 * O(name, parameters...)                 an operator: aclnn<name>GetWorkspaceSize(parameters, uint64_t *, aclOpExecutor **), then
 *                                        aclnn<name>(workspace, bytes, executor, stream). All may be missing. */
#ifndef CTI_CANN_CANN_LISTS_H
#define CTI_CANN_CANN_LISTS_H

#include "cann/cann_types.h"

/* clang-format off */
/* libascendcl.so, libacl_rt.so */
#define CTI_ACL_LIST(X) \
    X(MUST, aclError, aclInit, (const char *configPath)) \
    X(MAY, const char *, aclGetRecentErrMsg, (void)) \
    X(MAY, const char *, aclrtGetSocName, (void)) \
    X(MUST, aclError, aclrtGetDeviceCount, (uint32_t *count)) \
    X(MUST, aclError, aclrtSetDevice, (int32_t device)) \
    X(MUST, aclError, aclrtResetDevice, (int32_t device)) \
    X(MAY, aclError, aclrtQueryDeviceStatus, (int32_t device, int *status)) \
    X(MUST, aclError, aclrtSynchronizeDevice, (void)) \
    X(MUST, aclError, aclrtCreateStreamWithConfig, (aclrtStream *stream, uint32_t priority, uint32_t flag)) \
    X(MUST, aclError, aclrtDestroyStream, (aclrtStream stream)) \
    X(MUST, aclError, aclrtSynchronizeStream, (aclrtStream stream)) \
    X(MAY, aclError, aclrtSynchronizeStreamWithTimeout, (aclrtStream stream, int32_t timeout_ms)) \
    X(MUST, aclError, aclrtStreamWaitEvent, (aclrtStream stream, aclrtEvent event)) \
    X(MUST, aclError, aclrtCreateEvent, (aclrtEvent *event)) \
    X(MAY, aclError, aclrtCreateEventExWithFlag, (aclrtEvent *event, uint32_t flag)) \
    X(MUST, aclError, aclrtDestroyEvent, (aclrtEvent event)) \
    X(MUST, aclError, aclrtRecordEvent, (aclrtEvent event, aclrtStream stream)) \
    X(MUST, aclError, aclrtSynchronizeEvent, (aclrtEvent event)) \
    X(MUST, aclError, aclrtMalloc, (void **ptr, size_t size, int policy)) \
    X(MAY, aclError, aclrtMallocAlign32, (void **ptr, size_t size, int policy)) \
    X(MUST, aclError, aclrtFree, (void *ptr)) \
    X(MUST, aclError, aclrtMallocHost, (void **ptr, size_t size)) \
    X(MUST, aclError, aclrtFreeHost, (void *ptr)) \
    X(MUST, aclError, aclrtMemcpy, (void *dst, size_t dst_max, const void *src, size_t count, int kind)) \
    X(MUST, aclError, aclrtMemcpyAsync, (void *dst, size_t dst_max, const void *src, size_t count, int kind, aclrtStream stream)) \
    X(MUST, aclError, aclrtMemset, (void *ptr, size_t max, int32_t value, size_t count)) \
    X(MUST, aclError, aclrtMemsetAsync, (void *ptr, size_t max, int32_t value, size_t count, aclrtStream stream)) \
    X(MUST, aclError, aclrtGetMemInfo, (int attribute, size_t *free, size_t *total)) \
    X(MAY, aclError, aclrtSetSysParamOpt, (int option, int64_t value)) \
    X(MAY, aclError, aclrtCtxSetSysParamOpt, (int option, int64_t value)) \
    X(MAY, aclError, aclrtGetVersion, (int32_t *major, int32_t *minor, int32_t *patch)) \
    X(MAY, aclError, aclsysGetCANNVersion, (int package, void *version)) \
    X(MAY, aclError, aclsysGetVersionStr, (char *package, char *version))

/* libnnopbase.so, or in the libraries above or the operators' */
#define CTI_ACL_META_LIST(X) \
    X(MUST, aclTensor *, aclCreateTensor, (const int64_t *dims, uint64_t ndim, aclDataType dtype, const int64_t *strides, int64_t offset, \
                                           aclFormat format, const int64_t *storage_dims, uint64_t storage_ndim, void *data)) \
    X(MUST, aclScalar *, aclCreateScalar, (void *value, aclDataType dtype)) \
    X(MUST, aclIntArray *, aclCreateIntArray, (const int64_t *value, uint64_t size)) \
    X(MUST, aclnnStatus, aclDestroyTensor, (const aclTensor *tensor)) \
    X(MUST, aclnnStatus, aclDestroyScalar, (const aclScalar *scalar)) \
    X(MUST, aclnnStatus, aclDestroyIntArray, (const aclIntArray *array)) \
    X(MUST, aclnnStatus, aclDestroyAclOpExecutor, (aclOpExecutor *executor)) \
    X(MAY, aclnnStatus, aclSetAclOpExecutorRepeatable, (aclOpExecutor *executor))

/* libhccl.so, libhcomm.so */
#define CTI_HCCL_LIST(X) \
    X(MUST, HcclResult, HcclGetRootInfo, (HcclRootInfo *root_info)) \
    X(MUST, HcclResult, HcclCommInitRootInfo, (uint32_t n_ranks, const HcclRootInfo *root_info, uint32_t rank, HcclComm *comm)) \
    X(MAY, HcclResult, HcclCommInitRootInfoConfig, (uint32_t n_ranks, const HcclRootInfo *root_info, uint32_t rank, \
                                                    const HcclCommConfig *config, HcclComm *comm)) \
    X(MAY, HcclResult, HcclCreateSubCommConfig, (HcclComm *comm, uint32_t n_ranks, uint32_t *rank_ids, uint64_t id, uint32_t rank, \
                                                 HcclCommConfig *config, HcclComm *sub_comm)) \
    X(MUST, HcclResult, HcclCommDestroy, (HcclComm comm)) \
    X(MAY, HcclResult, HcclGetRankSize, (HcclComm comm, uint32_t *size)) \
    X(MAY, HcclResult, HcclGetRankId, (HcclComm comm, uint32_t *rank)) \
    X(MAY, HcclResult, HcclGetCommName, (HcclComm comm, char *name)) \
    X(MAY, HcclResult, HcclGetCommAsyncError, (HcclComm comm, HcclResult *error)) \
    X(MAY, const char *, HcclGetErrorString, (HcclResult code)) \
    X(MAY, uint32_t, HcclGetCommConfigCapability, (void)) \
    X(MAY, HcclResult, HcclSetConfig, (HcclConfig config, HcclConfigValue value)) \
    X(MUST, HcclResult, HcclAllReduce, (void *in, void *out, uint64_t count, HcclDataType dtype, HcclReduceOp op, HcclComm comm, \
                                        aclrtStream stream)) \
    X(MUST, HcclResult, HcclBroadcast, (void *data, uint64_t count, HcclDataType dtype, uint32_t root, HcclComm comm, aclrtStream stream)) \
    X(MUST, HcclResult, HcclReduceScatter, (void *in, void *out, uint64_t out_count, HcclDataType dtype, HcclReduceOp op, HcclComm comm, \
                                            aclrtStream stream)) \
    X(MUST, HcclResult, HcclAllGather, (void *in, void *out, uint64_t in_count, HcclDataType dtype, HcclComm comm, aclrtStream stream)) \
    X(MAY, HcclResult, HcclBarrier, (HcclComm comm, aclrtStream stream)) \
    X(MUST, HcclResult, HcclSend, (void *data, uint64_t count, HcclDataType dtype, uint32_t to, HcclComm comm, aclrtStream stream)) \
    X(MUST, HcclResult, HcclRecv, (void *data, uint64_t count, HcclDataType dtype, uint32_t from, HcclComm comm, aclrtStream stream)) \
    X(MAY, HcclResult, HcclBatchSendRecv, (HcclSendRecvItem *items, uint32_t n, HcclComm comm, aclrtStream stream)) \
    X(MAY, HcclResult, HcclAlltoAllV, (const void *in, const void *in_counts, const void *in_offsets, HcclDataType in_dtype, \
                                       const void *out, const void *out_counts, const void *out_offsets, HcclDataType out_dtype, \
                                       HcclComm comm, aclrtStream stream))

/* The operators. TENSOR parameters that CANN calls `const` or not by version are const here: the call is the same. */
#define CTI_T const aclTensor *
#define CTI_S const aclScalar *
#define CTI_ACLNN_LIST(O) \
    O(Mm, CTI_T self, CTI_T mat2, CTI_T out, int8_t cubeMathType) \
    O(Addmm, CTI_T self, CTI_T mat1, CTI_T mat2, CTI_S beta, CTI_S alpha, CTI_T out, int8_t cubeMathType) \
    O(InplaceAddmm, CTI_T selfRef, CTI_T mat1, CTI_T mat2, CTI_S beta, CTI_S alpha, int8_t cubeMathType) \
    O(Add, CTI_T self, CTI_T other, CTI_S alpha, CTI_T out) \
    O(Sub, CTI_T self, CTI_T other, CTI_S alpha, CTI_T out) \
    O(InplaceAdd, CTI_T selfRef, CTI_T other, CTI_S alpha) \
    O(Adds, CTI_T self, CTI_S other, CTI_S alpha, CTI_T out) \
    O(Mul, CTI_T self, CTI_T other, CTI_T out) \
    O(Div, CTI_T self, CTI_T other, CTI_T out) \
    O(InplaceMul, CTI_T selfRef, CTI_T other) \
    O(Muls, CTI_T self, CTI_S other, CTI_T out) \
    O(InplaceMuls, CTI_T selfRef, CTI_S other) \
    O(Neg, CTI_T self, CTI_T out) \
    O(Exp, CTI_T self, CTI_T out) \
    O(Log, CTI_T self, CTI_T out) \
    O(Sqrt, CTI_T self, CTI_T out) \
    O(Maximum, CTI_T self, CTI_T other, CTI_T out) \
    O(IsFinite, CTI_T self, CTI_T out) \
    O(LogicalAnd, CTI_T self, CTI_T other, CTI_T out) \
    O(NeScalar, CTI_T self, CTI_S other, CTI_T out) \
    O(LtScalar, CTI_T self, CTI_S other, CTI_T out) \
    O(GeScalar, CTI_T self, CTI_S other, CTI_T out) \
    O(SWhere, CTI_T condition, CTI_T self, CTI_T other, CTI_T out) \
    O(Cast, CTI_T self, aclDataType dtype, CTI_T out) \
    O(InplaceCopy, CTI_T selfRef, CTI_T src) \
    O(InplaceFillScalar, CTI_T selfRef, CTI_S value) \
    O(RmsNorm, CTI_T x, CTI_T gamma, double epsilon, CTI_T yOut, CTI_T rstdOut) \
    O(RmsNormGrad, CTI_T dy, CTI_T x, CTI_T rstd, CTI_T gamma, CTI_T dxOut, CTI_T dgammaOut) \
    O(RotaryPositionEmbedding, CTI_T x, CTI_T cos, CTI_T sin, int64_t mode, CTI_T out) \
    O(SwiGlu, CTI_T x, int64_t dim, CTI_T out) \
    O(SwiGluGrad, CTI_T yGrad, CTI_T x, int64_t dim, CTI_T out) \
    O(Embedding, CTI_T weight, CTI_T indices, CTI_T out) \
    O(EmbeddingDenseBackward, CTI_T grad, CTI_T indices, uint64_t numWeights, uint64_t paddingIdx, bool scaleGradByFreq, CTI_T out) \
    O(IndexSelect, CTI_T self, int64_t dim, CTI_T index, CTI_T out) \
    O(Gather, CTI_T self, int64_t dim, CTI_T index, CTI_T out) \
    O(NLLLossBackward, CTI_T gradOutput, CTI_T self, CTI_T target, CTI_T weight, int64_t reduction, int64_t ignoreIndex, \
      CTI_T totalWeight, CTI_T out) \
    O(ReduceSum, CTI_T self, const aclIntArray *dims, bool keepDims, aclDataType dtype, CTI_T out) \
    O(LinalgVectorNorm, CTI_T self, CTI_S ord, const aclIntArray *dims, bool keepDims, aclDataType dtype, CTI_T out) \
    O(LogSumExp, CTI_T self, const aclIntArray *dim, bool keepDim, CTI_T out) \
    O(ApplyAdamWV2, CTI_T varRef, CTI_T mRef, CTI_T vRef, CTI_T maxGradNormOptionalRef, CTI_T grad, CTI_T step, float lr, float beta1, \
      float beta2, float weightDecay, float eps, bool amsgrad, bool maximize) \
    O(FlashAttentionScore, CTI_T query, CTI_T key, CTI_T value, CTI_T realShift, CTI_T dropMask, CTI_T paddingMask, CTI_T attenMask, \
      const aclIntArray *prefix, double scaleValue, double keepProb, int64_t preTokens, int64_t nextTokens, int64_t headNum, \
      char *inputLayout, int64_t innerPrecise, int64_t sparseMode, CTI_T softmaxMaxOut, CTI_T softmaxSumOut, CTI_T softmaxOutOut, \
      CTI_T attentionOutOut) \
    O(FlashAttentionScoreGrad, CTI_T query, CTI_T keyIn, CTI_T value, CTI_T dy, CTI_T pseShift, CTI_T dropMask, CTI_T paddingMask, \
      CTI_T attenMask, CTI_T softmaxMax, CTI_T softmaxSum, CTI_T softmaxIn, CTI_T attentionIn, const aclIntArray *prefix, \
      double scaleValue, double keepProb, int64_t preTokens, int64_t nextTokens, int64_t headNum, char *inputLayout, \
      int64_t innerPrecise, int64_t sparseMode, CTI_T dqOut, CTI_T dkOut, CTI_T dvOut, CTI_T dpseOut) \
    O(FlashAttentionVarLenScore, CTI_T query, CTI_T key, CTI_T value, CTI_T realShift, CTI_T dropMask, CTI_T paddingMask, CTI_T attenMask, \
      const aclIntArray *prefix, const aclIntArray *actualSeqQLen, const aclIntArray *actualSeqKvLen, double scaleValue, \
      double keepProb, int64_t preTokens, int64_t nextTokens, int64_t headNum, char *inputLayout, int64_t innerPrecise, \
      int64_t sparseMode, CTI_T softmaxMaxOut, CTI_T softmaxSumOut, CTI_T softmaxOutOut, CTI_T attentionOutOut) \
    O(FlashAttentionUnpaddingScoreGrad, CTI_T query, CTI_T keyIn, CTI_T value, CTI_T dy, CTI_T pseShift, CTI_T dropMask, \
      CTI_T paddingMask, CTI_T attenMask, CTI_T softmaxMax, CTI_T softmaxSum, CTI_T softmaxIn, CTI_T attentionIn, \
      const aclIntArray *prefix, const aclIntArray *actualSeqQLen, const aclIntArray *actualSeqKvLen, double scaleValue, \
      double keepProb, int64_t preTokens, int64_t nextTokens, int64_t headNum, char *inputLayout, int64_t innerPrecise, \
      int64_t sparseMode, CTI_T dqOut, CTI_T dkOut, CTI_T dvOut, CTI_T dpseOut)
/* clang-format on */

#endif
