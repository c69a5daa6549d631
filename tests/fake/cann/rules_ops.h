/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that the doubles of libnnopbase and libopapi enforce; the form is that of rules.h. */
#ifndef CT_TESTS_FAKE_CANN_RULES_OPS_H
#define CT_TESTS_FAKE_CANN_RULES_OPS_H

#define FAKE_RULES_OPS(X)                                                                                              \
    X(ACLNN_NO_CONTEXT, CODE, "an aclnn call in a thread without a current context")                                   \
    X(ACLNN_NO_OPP_PATH, CODE, "ASCEND_OPP_PATH is not set: no kernel package")                                        \
    X(ACLNN_NULL_RESULT, CODE, "phase 1 without a place for workspace size or executor")                               \
    X(ACLNN_NULL_OPERAND, CODE, "a required operand is NULL")                                                          \
    X(ACLNN_DTYPE, CODE, "a dtype that the operator does not take")                                                    \
    X(ACLNN_DTYPE_DIFFERS, CODE, "operands whose dtypes must be one differ")                                           \
    X(ACLNN_BF16_910A, CODE, "BFLOAT16 on Ascend910A")                                                                 \
    X(ACLNN_NOT_ON_SOC, CODE, "the operator has no kernel for this SoC")                                               \
    X(ACLNN_FORMAT, CODE, "a private format")                                                                          \
    X(ACLNN_RANK, CODE, "more than eight dims")                                                                        \
    X(ACLNN_NEGATIVE_DIM, CODE, "a negative dim")                                                                      \
    X(ACLNN_SHAPE, CODE, "a shape that the operator does not take")                                                    \
    X(ACLNN_VALUE, CODE, "a value that the operator does not take")                                                    \
    X(ACLNN_STRIDED, CODE, "a strided view where the operator wants a contiguous one")                                 \
    X(ACLNN_EMPTY, CODE, "an empty tensor where the operator wants none")                                              \
    X(ACLNN_PROMOTION, CODE, "dtypes that do not promote, or a result that can't be cast to the output")               \
    X(ACLNN_NULL_EXECUTOR, CODE, "phase 2 without an executor")                                                        \
    X(ACLNN_NULL_WORKSPACE, CODE, "phase 2 with a workspace size and no workspace")                                    \
    X(EXEC_REPEAT_NULL, CODE, "aclSetAclOpExecutorRepeatable of NULL")                                                 \
    X(EXEC_REPEAT_REFUSED, CODE, "a repeatable executor of an operator that copies host data or writes through a view") \
    X(EXEC_DESTROY_NULL, CODE, "aclDestroyAclOpExecutor of NULL")                                                      \
    X(EXEC_ADDRESS_NULL, CODE, "aclSet...TensorAddr without executor or tensor")                                       \
    X(EXEC_ADDRESS_INDEX, CODE, "aclSet...TensorAddr with the index of another tensor")                                \
    X(ATTENTION_MASK, CODE, "a mask of a shape that flash attention does not know")                                    \
    X(ATTENTION_LENGTHS, CODE, "cumulative lengths that descend or do not end at the number of tokens")                \
    X(ATTENTION_MODE, CODE, "a sparse mode outside the list, or one that the double does not offer")                   \
    X(ATTENTION_HEADS, CODE, "head numbers that do not fit")                                                           \
    X(ATTENTION_NO_MASK, LINT, "a sparse mode other than 0 and 1 without a mask: attention is full")                     \
    X(ATTENTION_NOT_OFFERED, CODE, "a part of flash attention that the double does not have: bias, dropout, prefixes")  \
    X(DESC_NOT_A_HANDLE, TRAP, "a pointer that is no descriptor, or one of another kind")                              \
    X(DESC_USE_AFTER_DESTROY, TRAP, "a descriptor is used after it was destroyed")                                     \
    X(DESC_DESTROY_TWICE, TRAP, "a descriptor is destroyed twice")                                                     \
    X(DESC_DESTROY_MEMBER, TRAP, "a descriptor is destroyed that a list owns, or that stands in two lists")            \
    X(DESC_DESTROYED_BETWEEN, TRAP, "a descriptor is destroyed between the phases, or while a repeatable executor lives") \
    X(DESC_ADDRESS_BETWEEN, TRAP, "aclSetRawTensorAddr or aclInitTensor between the phases")                           \
    X(EXEC_TWICE, TRAP, "an executor is used after phase 2 or after it was destroyed")                                 \
    X(EXEC_OTHER_OP, TRAP, "phase 2 with the executor of another operator")                                            \
    X(EXEC_OTHER_DEVICE, TRAP, "the phases of one call on different devices")                                          \
    X(EXEC_REPEAT_LATE, TRAP, "aclSetAclOpExecutorRepeatable after phase 2, in another thread or after another phase 1") \
    X(EXEC_ADDRESS_TENSOR, TRAP, "aclSet...TensorAddr with a tensor that phase 1 was not given on that side")          \
    X(WORKSPACE_TOO_SMALL, TRAP, "a workspace smaller than phase 1 asked for")                                         \
    X(VIEW_OUTSIDE_STORAGE, TRAP, "a view reaches outside its storage")                                                \
    X(STORAGE_OUTSIDE_BLOCK, TRAP, "a tensor's storage reaches outside its block")                                     \
    X(DATA_UNALIGNED, TRAP, "a tensor's data pointer is not 32-byte aligned")                                          \
    X(ALIAS_PARTIAL, TRAP, "an output overlaps an input partly")                                                       \
    X(ALIAS_NOT_ALLOWED, TRAP, "an output is an input of an operator that does not promise to allow it")               \
    X(ALIAS_OUTPUTS, TRAP, "two outputs overlap, or one overlaps itself")                                              \
    X(INDEX_OUT_OF_RANGE, TRAP, "an index that hardware does not check is out of range")                               \
    X(ATTENTION_MASK_CONTENT, TRAP, "the compressed mask is not the strict upper triangle")

#endif
