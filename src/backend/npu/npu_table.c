/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the npu backend. */
#include <assert.h>

#include "backend/npu/npu_table.h"

ct_status cti_npu_check_ids(const ct_launch *launch, const char *op, const char *what, int32_t in, int64_t limit, bool may_be_elsewhere, bool may_be_ignored,
                            ct_err *err)
{
    enum { IGNORED = -100 };
    const ct_tensor *t = &launch->in[in];
    const int64_t n = cti_npu_count(t);
    const void *known = t->host;
    if (known == NULL && launch->device != NULL) {
        CT_TRY(cti_npu_find_published(launch->device, t->data, (size_t)n * sizeof(int32_t), &known, err));
    }
    for (int64_t i = 0; known != NULL && i < n; i++) {
        const int32_t id = ((const int32_t *)known)[i];
        if ((id < 0 || id >= limit) && !(may_be_elsewhere && id == CT_ID_ELSEWHERE) && !(may_be_ignored && id == IGNORED)) {
            return CT_FAIL(err, CT_ERR_RANGE, "%s: %s[%lld] is %d, outside [0, %lld)", op, what, (long long)i, (int)id, (long long)limit);
        }
    }
    return CT_OK;
}

/* What comes before a launch of the ops that look something up. */
static ct_status check(int32_t op, const ct_launch *l, ct_err *err)
{
    switch (op) {
    case CT_OP_embedding:
        return cti_npu_check_ids(l, "embedding", "ids", 1, l->in[0].dims[0], true, false, err);
    case CT_OP_embedding_grad:
        return cti_npu_check_ids(l, "embedding_grad", "ids", 1, l->out[0].dims[0], true, false, err);
    case CT_OP_rope:
        return cti_npu_check_ids(l, "rope", "pos", 1, l->in[2].dims[0], false, false, err);
    case CT_OP_rope_rows:
        return cti_npu_check_ids(l, "rope_rows", "pos", 0, l->in[1].dims[0], false, false, err);
    case CT_OP_qkv_rope:
        return cti_npu_check_ids(l, "qkv_rope", "pos", 1, l->in[2].dims[0], false, false, err);
    case CT_OP_qkv_rope_grad:
        return cti_npu_check_ids(l, "qkv_rope_grad", "pos", 3, l->in[4].dims[0], false, false, err);
    case CT_OP_linear_cross_entropy:
        return cti_npu_check_ids(l, "linear_cross_entropy", "labels", 2, l->in[1].dims[0], l->n_in == 5, true, err);
    case CT_OP_linear_cross_entropy_eval:
        return cti_npu_check_ids(l, "linear_cross_entropy_eval", "labels", 2, l->in[1].dims[0], l->n_in == 5, true, err);
    default:
        return CT_OK;
    }
}

/* clip_coef's coef and go are what optimizers ask for: their way to the host begins here. */
static ct_status follow(int32_t op, const ct_launch *l, ct_err *err)
{
    if (op == CT_OP_clip_coef && l->device != NULL) {
        const aclrtStream stream = cti_npu_stream(l->device, l->stream);
        CT_TRY(cti_npu_publish(l->device, l->out[0].data, NULL, sizeof(float), stream, err));
        CT_TRY(cti_npu_publish(l->device, l->out[2].data, NULL, sizeof(int32_t), stream, err));
    }
    return CT_OK;
}

#define RUN(op)                                                                    \
    static ct_status run_##op(const ct_launch *launch, ct_err *err)                \
    {                                                                              \
        CT_TRY(check(CT_OP_##op, launch, err));                                    \
        CT_TRY(cti_npu_run(launch, #op, cti_npu_op_##op, err));                       \
        return follow(CT_OP_##op, launch, err);                                    \
    }                                                                              \
    static size_t size_##op(const ct_launch *launch)                               \
    {                                                                              \
        return cti_npu_size(launch, #op, cti_npu_op_##op);                            \
    }
#define KEPT_FUNCTIONS(op, types)                                                  \
    RUN(op)                                                                        \
    static ct_status prepare_##op(const ct_launch *launch, void **out, ct_err *err) \
    {                                                                              \
        return cti_npu_prepare(launch, #op, cti_npu_op_##op, out, err);               \
    }
#define EACH_FUNCTIONS(op, types) RUN(op)
#define NO_FUNCTIONS(op, reason)
CTI_NPU_SUPPORT(KEPT_FUNCTIONS, EACH_FUNCTIONS, NO_FUNCTIONS)

#define KEPT(op, types)                             \
    [CT_OP_##op] = {.run = run_##op,                \
                    .dtypes = (types),              \
                    .workspace_bytes = size_##op,   \
                    .prepare = prepare_##op,        \
                    .release = cti_npu_release},
#define EACH(op, types) [CT_OP_##op] = {.run = run_##op, .dtypes = (types), .workspace_bytes = size_##op},
#define NONE(op, reason) [CT_OP_##op] = {.why_not = (reason)},
const ct_kernel cti_npu_kernels[] = {CTI_NPU_SUPPORT(KEPT, EACH, NONE)};
#define ONE(op, x) +1
static_assert(0 CTI_NPU_SUPPORT(ONE, ONE, ONE) == CT_OP_COUNT, "npu: one row per op");
