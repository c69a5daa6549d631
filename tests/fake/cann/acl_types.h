/* SPDX-License-Identifier: Apache-2.0 */
/* Types of CANN's C API for descriptors and operators, written for the doubles alone: what is tested has its
 * own copy. */
#ifndef FAKE_CANN_ACL_TYPES_H
#define FAKE_CANN_ACL_TYPES_H

#include <stdint.h>

typedef int32_t aclnnStatus;
typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalarList aclScalarList;
typedef struct aclOpExecutor aclOpExecutor;

typedef enum aclDataType {
    ACL_DT_UNDEFINED = -1,
    ACL_FLOAT = 0,
    ACL_FLOAT16 = 1,
    ACL_INT8 = 2,
    ACL_INT32 = 3,
    ACL_UINT8 = 4,
    ACL_INT16 = 6,
    ACL_UINT16 = 7,
    ACL_UINT32 = 8,
    ACL_INT64 = 9,
    ACL_UINT64 = 10,
    ACL_DOUBLE = 11,
    ACL_BOOL = 12,
    ACL_COMPLEX64 = 16,
    ACL_COMPLEX128 = 17,
    ACL_BF16 = 27,
} aclDataType;

typedef enum aclFormat {
    ACL_FORMAT_UNDEFINED = -1,
    ACL_FORMAT_NCHW = 0,
    ACL_FORMAT_NHWC = 1,
    ACL_FORMAT_ND = 2,
    ACL_FORMAT_NC1HWC0 = 3,
    ACL_FORMAT_FRACTAL_Z = 4,
    ACL_FORMAT_FRACTAL_NZ = 29,
} aclFormat;

/* Results of both phases. */
enum {
    ACLNN_OK = 0,
    ACLNN_NULLPTR = 161001,
    ACLNN_INVALID = 161002,
    ACLNN_RUNTIME = 361001,
    ACLNN_INNER = 561000,
    ACLNN_INFERSHAPE = 561001,
    ACLNN_TILING = 561002,
    ACLNN_INNER_NULLPTR = 561103,
    ACLNN_NO_OPP_PATH = 561107,
};
#endif
