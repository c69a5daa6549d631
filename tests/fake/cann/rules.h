/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of the rules that the doubles enforce: X(id, severity, text). CODE: the call returns an error
 * code with text. TRAP: where CANN might do anything, the double aborts. LINT: legal and almost surely a
 * mistake. Each has a test in tests/fake_cann that breaks it; tests hold the list and the tests to each other. */
#ifndef CT_TESTS_FAKE_CANN_RULES_H
#define CT_TESTS_FAKE_CANN_RULES_H

#include "rules_ops.h"

/* clang-format off */
#define FAKE_RULES_ACL(X) \
    /* call order, device, context */ \
    X(INIT_AGAIN, CODE, "aclInit a second time: 100002, one more reference") \
    X(INIT_OTHER_CONFIG, CODE, "aclInit again with another configuration: 100000") \
    X(FINALIZE_AGAIN, CODE, "aclFinalize twice, or aclFinalizeReference at none: 100037") \
    X(NOT_INITIALISED, LINT, "a call before aclInit or after aclFinalize") \
    X(NO_CONTEXT, CODE, "a call that needs a current context in this thread: 107002") \
    X(DEVICE_ID, CODE, "a device id below 0 or beyond the visible ones: 107001") \
    X(VISIBLE_LIST, CODE, "ASCEND_RT_VISIBLE_DEVICES not ascending, with duplicates, or empty: 207004") \
    X(RESET_TOO_OFTEN, CODE, "more aclrtResetDevice than aclrtSetDevice: 507007") \
    X(LIVE_AT_RESET, LINT, "aclrtResetDevice while streams, events, blocks or communicators live") \
    X(LIVE_AT_FINALIZE, LINT, "aclFinalize while streams, events, blocks or communicators live") \
    X(OTHER_CONTEXT, CODE, "a stream or an event of another context: 107003") \
    X(OTHER_DEVICE, TRAP, "memory of another device than the stream's") \
    X(SYS_PARAM, CODE, "an option or a value that aclrtSetSysParamOpt does not know: 107000") \
    X(SYS_PARAM_UNSET, CODE, "aclrtCtxGetSysParamOpt of an option that was never set: 107021") \
    X(NULL_OUT, CODE, "a NULL where the result is to go: 100000") \
    X(PEER_ARGUMENTS, CODE, "aclrtDeviceEnablePeerAccess of the own device, or with flags") \
    X(PEER_NOT_ENABLED, TRAP, "a copy between devices without peer access from the current side") \
    /* handles */ \
    X(BAD_HANDLE, TRAP, "a stream, event or context that is destroyed or none") \
    X(NULL_HANDLE, CODE, "aclrtDestroyStream(NULL), aclrtDestroyEvent(NULL), aclrtDestroyContext(NULL): 100000") \
    X(DESTROY_BUSY_STREAM, LINT, "aclrtDestroyStream with work that the host has not synchronised with") \
    X(STREAM_LIMIT, CODE, "more streams than there are: 207008") \
    X(STREAM_ARGUMENTS, CODE, "flags of a stream that do not exist: 107000") \
    X(FAILURE_MODE, CODE, "aclrtSetStreamFailureMode twice, or with a mode that does not exist: 107000") \
    /* memory */ \
    X(ALLOC_ARGUMENTS, CODE, "an allocation of size 0, or to NULL: 100000") \
    X(ALLOC_POLICY, CODE, "an allocation policy that does not exist: 107000") \
    X(FREE_NULL, CODE, "aclrtFree(NULL), aclrtFreeHost(NULL): 100000") \
    X(FREE_TWICE, TRAP, "memory freed twice") \
    X(FREE_UNKNOWN, TRAP, "aclrtFree, aclrtFreeHost or aclrtHostUnregister of what is not the start of such memory") \
    X(FREE_IN_USE, TRAP, "memory freed before the host synchronised with the tasks that use it") \
    X(OUT_OF_MEMORY, CODE, "more device memory than there is: 207001") \
    X(HOST_TOUCHES_DEVICE, TRAP, "the program read or wrote device memory itself") \
    X(GUARD, TRAP, "bytes behind or before a block were written") \
    X(RANGE_UNKNOWN, TRAP, "a task uses an address that is no device memory") \
    X(RANGE_OUTSIDE, TRAP, "a task reaches beyond its block") \
    X(USE_AFTER_FREE, TRAP, "a task or a copy uses freed memory") \
    X(WORKSPACE_ALIGN, TRAP, "a workspace that is not aligned to 32 bytes") \
    X(WORKSPACE_OVERLAP, TRAP, "a workspace that overlaps an operand of the same task") \
    X(REGISTER_ARGUMENTS, CODE, "aclrtHostRegister of nothing, or of what is registered: 100000") \
    /* copies */ \
    X(COPY_NULL, CODE, "a copy or memset with a NULL address: 100000") \
    X(COPY_MAX, CODE, "a copy or memset of more bytes than the destination's maximum: 107000") \
    X(COPY_KIND, CODE, "a kind of copy that is not 0 to 5: 100000") \
    X(COPY_DIRECTION, CODE, "an asynchronous copy whose kind contradicts its addresses, a host address unregistered: 107000") \
    X(COPY_HOST_TO_HOST, CODE, "an asynchronous copy from host to host: 207000") \
    X(COPY_PITCH, CODE, "a two-dimensional copy wider than a pitch: 107000") \
    X(COPY_OVERLAP, TRAP, "a copy whose source and destination overlap") \
    X(COPY_PAGEABLE, LINT, "an asynchronous copy with host memory that is not pinned: it waits for the stream") \
    X(MEMSET_HOST, CODE, "a memset of host memory that is not pinned: 107000") \
    X(PINNED_CHANGED, TRAP, "the source of an asynchronous copy changed before the stream had passed") \
    X(PINNED_TOUCHED, TRAP, "the host touched the target of an asynchronous copy before it synchronised") \
    /* streams, events, time */ \
    X(UNORDERED, TRAP, "two streams use the same bytes and nothing orders them") \
    X(UNORDERED_HOST, TRAP, "a synchronous copy and a stream use the same bytes and nothing orders them") \
    X(TIMEOUT_ZERO, CODE, "a ...WithTimeout of 0: 107000") \
    X(SYNC_TIMEOUT, CODE, "a stream or device that is not done in time: 507046") \
    X(EVENT_TIMEOUT, CODE, "an event that does not come in time: 507047") \
    X(DEADLOCK, TRAP, "the host waits for a stream that waits for an event that nobody records") \
    X(EVENT_FLAGS, CODE, "flags of an event that are 0 or do not exist: 107000") \
    X(WAIT_WITHOUT_SYNC, CODE, "a stream waits for an event without ACL_EVENT_SYNC: 207000") \
    X(WAIT_UNRECORDED, CODE, "a stream waits for a plain event that was never recorded: 107000") \
    X(WAIT_UNRECORDED_EX, LINT, "a stream waits for an Ex event that was never recorded: it does not wait") \
    X(RECORD_WITHOUT_RESET, TRAP, "an event of aclrtCreateEventWithFlag recorded again without aclrtResetEvent") \
    X(RESET_UNSUPPORTED, CODE, "aclrtResetEvent of an Ex event, or of one without ACL_EVENT_SYNC: 207000") \
    X(ELAPSED_UNRECORDED, CODE, "the time between events that were not recorded: 507000") \
    X(ELAPSED_NO_TIME, CODE, "the time between events without a time stamp: 107006") \
    X(AFTER_FAULT, LINT, "work is queued in a context in which a task has failed")

#define FAKE_RULES_HCCL(X) \
    X(HCCL_NULL, CODE, "a NULL stream, communicator, buffer, config or root info: E_PTR and EI0003") \
    X(HCCL_MAGIC, CODE, "a configuration without its magic number: E_PARA and EI0003") \
    X(HCCL_RANKS, CODE, "no ranks, or a rank, root or peer beyond them: E_PARA") \
    X(HCCL_COUNT, CODE, "a count above 0x7FFFFFFFF: E_PARA") \
    X(HCCL_TYPE, CODE, "a data type or reduction that does not exist: E_PARA") \
    X(HCCL_REDUCE, CODE, "a reduction of a data type that has none: E_NOT_SUPPORT") \
    X(HCCL_NO_DEVICE, CODE, "a call in a thread without a device: E_RUNTIME") \
    X(HCCL_OTHER_DEVICE, CODE, "a call in a thread of another device than the communicator's: E_PARA") \
    X(HCCL_SAME_BUFFER, CODE, "AlltoAll with one buffer for both sides: E_PARA") \
    X(HCCL_UNEQUAL, CODE, "AlltoAll with unequal counts or types: E_PARA") \
    X(HCCL_MISMATCH, CODE, "ranks disagree in operation, count, type, root or order: 107020 and EI0005 at the synchronisation") \
    X(HCCL_ABSENT_INIT, CODE, "a rank never comes to the creation: E_TIMEOUT and EI0015") \
    X(HCCL_ABSENT, CODE, "a rank never comes to a collective: 107020 and EI0002") \
    X(HCCL_PORT_NPU, CODE, "two ranks on one card without HCCL_NPU_SOCKET_PORT_RANGE: E_UNAVAIL and EI0020") \
    X(HCCL_ENVIRONMENT, CODE, "a variable HCCL_* with a bad value: E_PARA and EI0001") \
    X(HCCL_ROOT_INFO, CODE, "root info that HcclGetRootInfo did not make: E_PARA") \
    X(HCCL_ROOT_REUSED, TRAP, "root info used for a second communicator") \
    X(HCCL_CONCURRENT_INIT, TRAP, "two communicators created at the same time in one process") \
    X(HCCL_THREADS, LINT, "two threads are in calls of one communicator") \
    X(HCCL_BUSY_DESTROY, CODE, "HcclCommDestroy while another thread is inside a call: E_AGAIN") \
    X(HCCL_DEAD, CODE, "a communicator that is destroyed or none: E_PARA") \
    X(HCCL_DESTROY_PENDING, TRAP, "HcclCommDestroy while work of the communicator is queued") \
    X(HCCL_ALIGN, TRAP, "a buffer that is not aligned to its elements") \
    X(HCCL_OUT_OF_MEMORY, CODE, "no device memory for a communicator's buffers: E_MEMORY and EI0011") \
    X(HCCL_CONFIG, CODE, "HcclSetConfig with a value that does not exist: E_PARA") \
    X(HCCL_SUB, CODE, "a sub-communicator of ranks that do not exist or repeat, or without this rank: E_PARA")
/* clang-format on */

#define FAKE_RULES(X) FAKE_RULES_ACL(X) FAKE_RULES_HCCL(X) FAKE_RULES_OPS(X)

#endif
