/* SPDX-License-Identifier: Apache-2.0 */
/* Types and numbers of CANN's C API (8.0 to 9.x) as far as we use it, declared by ourselves: its own headers are C++ in part, and a
 * build must not need them. Names are CANN's. */
#ifndef CTI_CANN_CANN_TYPES_H
#define CTI_CANN_CANN_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int aclError;        /* 0: done */
typedef int32_t aclnnStatus; /* 0: done */
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtContext;
typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclOpExecutor aclOpExecutor;

typedef enum aclDataType {
    ACL_DT_UNDEFINED = -1,
    ACL_FLOAT = 0,
    ACL_FLOAT16 = 1,
    ACL_INT8 = 2,
    ACL_INT32 = 3,
    ACL_UINT8 = 4,
    ACL_INT64 = 9,
    ACL_DOUBLE = 11,
    ACL_BOOL = 12,
    ACL_BF16 = 27
} aclDataType;

typedef enum aclFormat { ACL_FORMAT_ND = 2 } aclFormat;

/* Enumerations of aclrt functions; passed as int, which is what an enum is on every system that CANN runs on. */
enum {
    ACL_MEM_MALLOC_HUGE_FIRST = 0,
    ACL_MEMCPY_HOST_TO_DEVICE = 1,
    ACL_MEMCPY_DEVICE_TO_HOST = 2,
    ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
    ACL_HBM_MEM = 1,
    ACL_OPT_DETERMINISTIC = 0,
    ACL_STREAM_FAST_LAUNCH = 1,
    ACL_STREAM_FAST_SYNC = 2,
    ACL_EVENT_SYNC = 1,
    ACL_DEVICE_STATUS_NORMAL = 0,
    ACL_CUBE_KEEP_DTYPE = 0, /* cubeMathType: as the operands are */
    ACL_CUBE_USE_HF32 = 3    /* float32 operands go through the cube as HF32 */
};

/* Codes that are more than a failure to somebody. */
enum {
    ACL_ERROR_REPEAT_INITIALIZE = 100002, /* another component of the process was first: fine */
    ACL_ERROR_BAD_ALLOC = 200000,
    ACL_ERROR_RT_MEMORY_ALLOCATION = 207001,
    ACL_ERROR_RT_NO_DEVICE = 207004,
    ACL_ERROR_RT_DEVICE_OOM = 207018
};

typedef enum HcclResult {
    HCCL_SUCCESS = 0,
    HCCL_E_PARA = 1,
    HCCL_E_PTR = 2,
    HCCL_E_MEMORY = 3,
    HCCL_E_INTERNAL = 4,
    HCCL_E_NOT_SUPPORT = 5,
    HCCL_E_NOT_FOUND = 6,
    HCCL_E_UNAVAIL = 7,
    HCCL_E_SYSCALL = 8,
    HCCL_E_TIMEOUT = 9,
    HCCL_E_OPEN_FILE_FAILURE = 10,
    HCCL_E_TCP_CONNECT = 11,
    HCCL_E_ROCE_CONNECT = 12,
    HCCL_E_TCP_TRANSFER = 13,
    HCCL_E_ROCE_TRANSFER = 14,
    HCCL_E_RUNTIME = 15,
    HCCL_E_DRV = 16,
    HCCL_E_PROFILING = 17,
    HCCL_E_CCE = 18,
    HCCL_E_NETWORK = 19,
    HCCL_E_AGAIN = 20,
    HCCL_E_REMOTE = 21,
    HCCL_E_SUSPENDING = 22,
    HCCL_E_OPRETRY_FAIL = 23,
    HCCL_E_OOM = 24
} HcclResult;

typedef enum HcclDataType {
    HCCL_DATA_TYPE_INT8 = 0,
    HCCL_DATA_TYPE_INT16 = 1,
    HCCL_DATA_TYPE_INT32 = 2,
    HCCL_DATA_TYPE_FP16 = 3,
    HCCL_DATA_TYPE_FP32 = 4,
    HCCL_DATA_TYPE_INT64 = 5,
    HCCL_DATA_TYPE_UINT64 = 6,
    HCCL_DATA_TYPE_UINT8 = 7,
    HCCL_DATA_TYPE_FP64 = 10,
    HCCL_DATA_TYPE_BFP16 = 11
} HcclDataType;

typedef enum HcclReduceOp { HCCL_REDUCE_SUM = 0, HCCL_REDUCE_PROD = 1, HCCL_REDUCE_MAX = 2, HCCL_REDUCE_MIN = 3 } HcclReduceOp; /* no mean */
typedef enum HcclSendRecvType { HCCL_SEND = 0, HCCL_RECV = 1 } HcclSendRecvType;
typedef enum HcclConfig { HCCL_CONFIG_DETERMINISTIC = 0 } HcclConfig;
typedef union HcclConfigValue {
    int32_t value;
} HcclConfigValue;

typedef void *HcclComm;

#define HCCL_ROOT_INFO_BYTES 4108
typedef struct HcclRootInfo {
    char internal[HCCL_ROOT_INFO_BYTES];
} HcclRootInfo;

typedef struct HcclSendRecvItem { /* 32 bytes */
    HcclSendRecvType sendRecvType;
    void *buf;
    uint64_t count;
    HcclDataType dataType;
    uint32_t remoteRank;
} HcclSendRecvItem;

/* The layout of version 5 (CANN 8.1), 300 bytes at an alignment of 4, which later releases read as well: `size` says how much is there.
 * cti_hccl_config_init() fills it, as CANN's inline HcclCommConfigInit would. */
#define HCCL_COMM_CONFIG_MAGIC 0xf0f0f0f0u
#define HCCL_COMM_CONFIG_NOT_SET 0xffffffffu
#pragma pack(push, 4)
typedef struct HcclCommConfig {
    size_t size;
    uint32_t magic, version;
    uint64_t reserved;
    uint32_t hcclBufferSize; /* MB a direction; a communicator takes twice that */
    uint32_t hcclDeterministic;
    char hcclCommName[128], hcclUdi[128];
    uint32_t hcclOpExpansionMode, hcclRdmaTrafficClass, hcclRdmaServiceLevel;
} HcclCommConfig;
#pragma pack(pop)
_Static_assert(sizeof(HcclCommConfig) == 300, "version 5 of HcclCommConfig");
_Static_assert(sizeof(HcclSendRecvItem) == 32, "HcclSendRecvItem");

#endif
