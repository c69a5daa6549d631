/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels, one function each, and what some do around their sequence. */
#ifndef CTI_BACKEND_NPU_NPU_TABLE_H
#define CTI_BACKEND_NPU_NPU_TABLE_H

#include "backend/npu/npu_seq.h"
#include "backend/npu/support.h"

extern const ct_kernel cti_npu_kernels[];

#define CTI_NPU_BUILD(op, types) void cti_npu_op_##op(cti_npu_seq *s, const ct_launch *launch);
#define CTI_NPU_NO_BUILD(op, reason)
CTI_NPU_SUPPORT(CTI_NPU_BUILD, CTI_NPU_BUILD, CTI_NPU_NO_BUILD)
#undef CTI_NPU_BUILD
#undef CTI_NPU_NO_BUILD

/* Before a prepared launch: what the host knows of its indices must be in range, since the device does not look. ERR_RANGE naming op and element. */
CT_MUST_CHECK ct_status cti_npu_check_ids(const ct_launch *launch, const char *op, const char *what, int32_t in, int64_t limit, bool may_be_elsewhere,
                                          bool may_be_ignored, ct_err *err);

#endif
