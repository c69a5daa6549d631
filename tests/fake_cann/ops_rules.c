/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: fake/cann */
/* labels: fast */
/* Each rule of the doubles of libnnopbase and libopapi is broken in a process of its own, and caught. */
#include "fake_cann.h"

#include "fake/cann/testing/ops.h"

#include <pthread.h>

static const char *const exp_f32 = "self:f32:4,3 out:f32:4,3";
static const char *const varlen =
    "q:bf16:9,4,8 k:bf16:9,2,8 v:bf16:9,2,8 pse:null drop:null pad:null mask:null prefix:null lq[4,9 lk[4,9 "
    "scale~1 keep~1 pre=9 next=9 "
    "heads=4 layout\"TND precise=0 sparse=0 max:f32:9,4,8 sum:f32:9,4,8 soft:null out:bf16:9,4,8";

/* Phase 1 of an operator must give this status. */
static void phase1(int status, const char *name, const char *operands)
{
    ops_begin();
    op *o = op_new(name, operands);
    GIVES(status, op_phase1(o));
}

/* Phase 1 is good; phase 2, or the synchronisation behind it, meets the trap. */
static void phase2(const char *name, const char *operands)
{
    ops_begin();
    op *o = op_new(name, operands);
    GIVES(0, op_phase1(o));
    HOLDS(op_phase2(o) != 0 || aclrtSynchronizeStream(ops_stream) >= 0);
}

/* ---- Phase 1 ---- */

static void *phase1_elsewhere(void *arg)
{
    GIVES(361001, op_phase1(arg));
    return NULL;
}

static void *phase2_elsewhere(void *arg)
{
    GIVES(361001, op_phase2(arg));
    return NULL;
}

static void in_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    HOLDS(pthread_create(&thread, NULL, run, arg) == 0 && pthread_join(thread, NULL) == 0);
}

static void no_context_1(void)
{
    ops_begin();
    in_thread(phase1_elsewhere, op_new("Exp", exp_f32));
}

static void no_context_2(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    in_thread(phase2_elsewhere, o);
}

static void no_opp_path(void)
{
    ops_begin();
    (void)unsetenv("ASCEND_OPP_PATH");
    op *o = op_new("Exp", exp_f32);
    GIVES(561107, op_phase1(o));
    TEXT_HAS("ASCEND_OPP_PATH");
}

static void null_result(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    uint64_t size;
    GIVES(161001, aclnnExpGetWorkspaceSize(o->at[0].tensor, (aclTensor *)o->at[1].tensor, &size, NULL));
    GIVES(161001,
          aclnnExpGetWorkspaceSize(o->at[0].tensor, (aclTensor *)o->at[1].tensor, NULL, &o->executor));
}

static void null_operand(void)
{
    phase1(161001, "Exp", "self:null out:f32:4");
}

static void dtype(void)
{
    phase1(161002, "Exp", "self:i32:4 out:f32:4");
}

static void dtype_differs(void)
{
    phase1(161002, "RmsNorm", "x:bf16:4,6 gamma:bf16:6 eps~1e-5 y:f32:4,6 rstd:f32:4,1");
}

static void bf16_910a(void)
{
    phase1(161002, "Exp", "self:bf16:4 out:bf16:4");
}

static void not_on_soc(void)
{
    phase1(161002, "RmsNorm", "x:f32:4,6 gamma:f32:6 eps~1e-5 y:f32:4,6 rstd:f32:4,1");
}

static aclTensor *tensor(int64_t dim, int64_t stride, int64_t offset, aclFormat format, int64_t storage,
                         void *data)
{
    return aclCreateTensor(&dim, 1, ACL_FLOAT, &stride, offset, format, &storage, 1, data);
}

static char *memory(size_t size)
{
    void *made = NULL;
    GIVES(0, aclrtMalloc(&made, size, 0));
    return made;
}

static int exp_of(aclTensor *self, aclTensor *out)
{
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    int r = aclnnExpGetWorkspaceSize(self, out, &size, &executor);
    void *workspace = r == 0 && size > 0 ? memory(size) : NULL;
    r = r == 0 ? aclnnExp(workspace, size, executor, ops_stream) : r;
    return r == 0 ? aclrtSynchronizeStream(ops_stream) : r;
}

static void format(void)
{
    ops_begin();
    GIVES(161002, exp_of(tensor(4, 1, 0, ACL_FORMAT_FRACTAL_NZ, 4, memory(64)),
                         tensor(4, 1, 0, ACL_FORMAT_ND, 4, memory(64))));
}

static void rank(void)
{
    phase1(161002, "Exp", "self:f32:1,1,1,1,1,1,1,1,2 out:f32:2");
}

static void negative_dim(void)
{
    ops_begin();
    GIVES(161002, exp_of(tensor(-4, 1, 0, ACL_FORMAT_ND, 4, memory(64)),
                         tensor(4, 1, 0, ACL_FORMAT_ND, 4, memory(64))));
}

static void shape(void)
{
    phase1(161002, "Exp", "self:f32:4 out:f32:5");
}

static void shape_tiling(void)
{
    phase1(561002, "RmsNorm", "x:bf16:4,6 gamma:bf16:4 eps~1e-5 y:bf16:4,6 rstd:f32:4,1");
}

static void value(void)
{
    phase1(161002, "Softmax", "self:f32:4 dim=1 out:f32:4");
}

static void strided(void)
{
    phase1(561103, "SwiGlu", "x:bf16:4,6/1,4 dim=-1 out:bf16:4,3");
}

static void empty(void)
{
    phase1(161002, "SwiGluGrad", "dy:bf16:0,3 x:bf16:0,6 dim=-1 out:bf16:0,6");
}

static void promotion(void)
{
    phase1(161002, "Mul", "self:i64:4 other:f32:4 out:i64:4");
}

/* ---- Attention ---- */

static void attention(int status, const char *change)
{
    ops_begin();
    op *o = op_new_with("FlashAttentionVarLenScore", varlen, change);
    GIVES(status, op_phase1(o));
}

static void mask_shape(void)
{
    attention(561002, "sparse=2 mask:bool:5,5");
}

static void lengths(void)
{
    attention(561002, "lq[4,8");
}

static void mode(void)
{
    attention(561002, "sparse=9");
}

static void heads(void)
{
    attention(561002, "heads=8");
}

static void no_mask(void)
{
    attention(0, "sparse=2");
}

static void not_offered(void)
{
    attention(561002, "drop:u8:4 keep~0.5");
}

static void mask_content(void)
{
    ops_begin();
    op *o = op_new_with("FlashAttentionVarLenScore", varlen,
                        "sparse=2 mask:bool:2048,2048"); /* random, not a triangle */
    HOLDS(op_run(o) >= 0);
}

/* ---- Descriptors ---- */

static void not_a_tensor(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    o->at[0].tensor = (aclTensor *)(void *)o;
    HOLDS(op_phase1(o) != 0);
}

static void other_kind(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    int64_t one = 1;
    o->at[0].tensor = (aclTensor *)aclCreateIntArray(&one, 1);
    HOLDS(op_phase1(o) != 0);
}

static void use_after_destroy(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    (void)aclDestroyTensor(o->at[0].tensor);
    HOLDS(op_phase1(o) != 0);
}

static void scalar_after_destroy(void)
{
    ops_begin();
    op *o = op_new("Muls", "self:f32:4 other$f32:2 out:f32:4");
    (void)aclDestroyScalar(o->at[1].scalar);
    HOLDS(op_phase1(o) != 0);
}

static void destroy_twice(void)
{
    ops_begin();
    aclTensor *t = tensor(4, 1, 0, ACL_FORMAT_ND, 4, NULL);
    GIVES(0, aclDestroyTensor(t));
    GIVES(0, aclDestroyTensor(t));
}

static void destroy_after_list(void)
{
    ops_begin();
    const aclTensor *t = tensor(4, 1, 0, ACL_FORMAT_ND, 4, NULL);
    GIVES(0, aclDestroyTensorList(aclCreateTensorList(&t, 1)));
    GIVES(0, aclDestroyTensor(t));
}

static void destroy_member(void)
{
    ops_begin();
    const aclTensor *t = tensor(4, 1, 0, ACL_FORMAT_ND, 4, NULL);
    (void)aclCreateTensorList(&t, 1);
    GIVES(0, aclDestroyTensor(t));
}

static void twice_in_list(void)
{
    ops_begin();
    const aclTensor *t[2] = {tensor(4, 1, 0, ACL_FORMAT_ND, 4, NULL)};
    t[1] = t[0];
    GIVES(0, aclDestroyTensorList(aclCreateTensorList(t, 2)));
}

static void destroyed_between(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    (void)aclDestroyTensor(o->at[1].tensor);
    HOLDS(op_phase2(o) != 0);
}

static void destroyed_under_repeatable(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    GIVES(0, aclSetAclOpExecutorRepeatable(o->executor));
    GIVES(0, op_phase2(o));
    (void)aclDestroyTensor(o->at[1].tensor);
}

static void address_between(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    (void)aclSetRawTensorAddr(o->at[0].tensor, o->at[0].device);
}

static void init_between(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    int64_t n = 4;
    (void)aclInitTensor(o->at[0].tensor, &n, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &n, 1, o->at[0].device);
}

/* ---- Executors ---- */

static void null_executor(void)
{
    ops_begin();
    GIVES(161001, aclnnExp(NULL, 0, NULL, ops_stream));
}

/* The executor is gone all the same. */
static void null_workspace(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    o->workspace = NULL;
    GIVES(161001, op_phase2(o));
    GIVES(0, acl.fake_live_count(FAKE_EXECUTOR));
}

static void workspace_small(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    GIVES(4096, o->workspace_size);
    o->workspace_size = 4095;
    HOLDS(op_phase2(o) != 0);
}

static void executor_twice(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    GIVES(0, op_phase2(o));
    HOLDS(op_phase2(o) != 0);
}

static void executor_destroyed_after(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    GIVES(0, op_phase2(o));
    (void)aclDestroyAclOpExecutor(o->executor);
}

static void executor_after_failure(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    void *kept = o->workspace;
    o->workspace = NULL;
    GIVES(161001, op_phase2(o));
    o->workspace = kept;
    HOLDS(op_phase2(o) != 0);
}

static void other_op(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    HOLDS(aclnnLog(o->workspace, o->workspace_size, o->executor, ops_stream) != 0);
}

static void other_device(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    GIVES(0, aclrtSetDevice(1));
    HOLDS(op_phase2(o) != 0);
}

static void repeat_null(void)
{
    ops_begin();
    GIVES(561103, aclSetAclOpExecutorRepeatable(NULL));
}

static void refused(const char *name, const char *operands)
{
    ops_begin();
    op *o = op_new(name, operands);
    GIVES(0, op_phase1(o));
    GIVES(561000, aclSetAclOpExecutorRepeatable(o->executor));
    GIVES(0, op_phase2(o)); /* once it works all the same */
}

static void repeat_host_data(void)
{
    refused("FlashAttentionVarLenScore", varlen);
}

static void repeat_view(void)
{
    refused("Exp", "self:f32:4,3 out:f32:4,3/1,4");
}

static void repeat_late_phase1(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32), *p = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    GIVES(0, op_phase1(p));
    HOLDS(aclSetAclOpExecutorRepeatable(o->executor) != 0);
}

static void *repeat_elsewhere(void *arg)
{
    HOLDS(aclSetAclOpExecutorRepeatable(arg) != 0);
    return NULL;
}

static void repeat_late_thread(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    in_thread(repeat_elsewhere, o->executor);
}

static void repeat_late_phase2(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    GIVES(0, aclSetAclOpExecutorRepeatable(o->executor));
    GIVES(0, op_phase2(o));
    HOLDS(aclSetAclOpExecutorRepeatable(o->executor) != 0);
}

static void executor_destroy_null(void)
{
    ops_begin();
    GIVES(561103, aclDestroyAclOpExecutor(NULL));
}

static void address_null(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(561103, aclSetInputTensorAddr(NULL, 0, o->at[0].tensor, o->at[0].device));
    GIVES(0, op_phase1(o));
    GIVES(561103, aclSetOutputTensorAddr(o->executor, 0, NULL, o->at[0].device));
}

static void address_index(void)
{
    ops_begin();
    op *o = op_new("RmsNorm", "x:f32:4,6 gamma:f32:6 eps~1e-5 y:f32:4,6 rstd:f32:4,1");
    GIVES(0, op_phase1(o));
    GIVES(161002, aclSetInputTensorAddr(o->executor, 1, o->at[0].tensor, o->at[0].device));
    GIVES(161002, aclSetTensorAddr(o->executor, 0, o->at[3].tensor, o->at[3].device));
    GIVES(0, aclSetTensorAddr(o->executor, 2, o->at[3].tensor, o->at[3].device));
}

static void address_tensor(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    HOLDS(aclSetInputTensorAddr(o->executor, 0, o->at[1].tensor, o->at[1].device) != 0);
}

/* ---- Storage and aliases ---- */

static void view_outside(void)
{
    ops_begin();
    HOLDS(exp_of(tensor(4, 2, 0, ACL_FORMAT_ND, 6, memory(64)),
                 tensor(4, 1, 0, ACL_FORMAT_ND, 4, memory(64))) != 0);
}

static void view_before(void)
{
    ops_begin();
    HOLDS(exp_of(tensor(4, -1, 2, ACL_FORMAT_ND, 6, memory(64)),
                 tensor(4, 1, 0, ACL_FORMAT_ND, 4, memory(64))) != 0);
}

/* The view is inside, what is said of the storage is not. */
static void storage_outside(void)
{
    ops_begin();
    HOLDS(exp_of(tensor(4, 1, 0, ACL_FORMAT_ND, 17, memory(64)),
                 tensor(4, 1, 0, ACL_FORMAT_ND, 4, memory(64))) != 0);
}

/* Statistics of a norm in a buffer for half as many bytes. */
static void small_block(void)
{
    ops_begin();
    op *o = op_new("RmsNorm", "x:bf16:64,6 gamma:bf16:6 eps~1e-5 y:bf16:64,6 rstd:f32:64,1");
    (void)aclSetRawTensorAddr(o->at[4].tensor, memory(128));
    GIVES(0, op_phase1(o));
    HOLDS(op_phase2(o) != 0);
}

static void unaligned(void)
{
    ops_begin();
    HOLDS(exp_of(tensor(4, 1, 0, ACL_FORMAT_ND, 4, memory(64) + 16),
                 tensor(4, 1, 0, ACL_FORMAT_ND, 4, memory(64))) != 0);
}

static void alias_partial(void)
{
    ops_begin();
    char *data = memory(256);
    HOLDS(exp_of(tensor(12, 1, 0, ACL_FORMAT_ND, 64, data), tensor(12, 1, 4, ACL_FORMAT_ND, 64, data)) != 0);
}

static void alias_strided(void)
{
    ops_begin();
    char *data = memory(256);
    HOLDS(exp_of(tensor(12, 2, 0, ACL_FORMAT_ND, 64, data), tensor(12, 3, 0, ACL_FORMAT_ND, 64, data)) != 0);
}

static void alias_not_allowed(void)
{
    ops_begin();
    op *o = op_new("Softmax", "self:f32:4,3 dim=1 out:f32:4,3");
    (void)aclSetRawTensorAddr(o->at[2].tensor, o->at[0].device);
    GIVES(0, op_phase1(o));
    HOLDS(op_phase2(o) != 0);
}

static void alias_outputs(void)
{
    ops_begin();
    op *o = op_new("RmsNorm", "x:f32:4,1 gamma:f32:1 eps~1e-5 y:f32:4,1 rstd:f32:4,1");
    (void)aclSetRawTensorAddr(o->at[4].tensor, o->at[3].device);
    GIVES(0, op_phase1(o));
    HOLDS(op_phase2(o) != 0);
}

static void alias_itself(void)
{
    phase2("Exp", "self:f32:4,3 out:f32:4,3/0,1");
}

/* ---- What libascendcl's double finds in the ranges of an operator ---- */

static void workspace_of(char *workspace, uint64_t size)
{
    op *o = op_new("Exp", "self:f32:8,8 out:f32:8,8");
    GIVES(0, op_phase1(o));
    GIVES(64, o->workspace_size);
    o->workspace = workspace != NULL ? workspace : (char *)o->at[0].device;
    o->workspace_size = size;
    HOLDS(op_phase2(o) != 0);
}

static void workspace_unaligned(void)
{
    ops_begin();
    workspace_of(memory(128) + 8, 64);
}

static void workspace_over_operand(void)
{
    ops_begin();
    workspace_of(NULL, 64);
}

static void workspace_on_host(void)
{
    static _Alignas(64) char host[128];
    ops_begin();
    workspace_of(host, 64);
}

static void workspace_beyond(void)
{
    ops_begin();
    workspace_of(memory(64), 128);
}

static void operand_freed(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, op_phase1(o));
    GIVES(0, aclrtFree(o->at[0].device));
    HOLDS(op_phase2(o) != 0);
}

static void operand_elsewhere(void)
{
    ops_begin();
    op *o = op_new("Exp", exp_f32);
    GIVES(0, aclrtSetDevice(1));
    void *stream = NULL;
    GIVES(0, aclrtCreateStream(&stream));
    GIVES(0, op_phase1(o));
    ops_stream = stream;
    HOLDS(op_phase2(o) != 0);
}

/* ---- While it runs ---- */

static void index_of(const char *name, const char *operands, const char *operand_name, const double *index)
{
    ops_begin();
    op *o = op_new(name, operands);
    op_set(o, operand_name, index);
    HOLDS(op_run(o) >= 0);
}

static void index_embedding(void)
{
    index_of("Embedding", "weight:f32:5,3 indices:i64:2 out:f32:2,3", "indices", (double[]){0, 5});
}

static void index_embedding_backward(void)
{
    index_of("EmbeddingDenseBackward", "grad:f32:2,3 indices:i64:2 rows=5 padding=-1 scale=0 out:f32:5,3",
             "indices", (double[]){0, 5});
}

static void index_select(void)
{
    index_of("IndexSelect", "self:f32:4,3 dim=0 index:i64:2 out:f32:2,3", "index", (double[]){4, 0});
}

static void index_target(void)
{
    index_of("NLLLoss",
             "self:f32:2,3 target:i64:2 weight:f32:3 reduction=1 ignore=-100 out:f32:1 total:f32:1", "target",
             (double[]){3, 0});
}

#define R(name) FAKE_R_##name
static const struct row rows[] = {
    {R(ACLNN_NO_CONTEXT), no_context_1, NULL, false},
    {R(ACLNN_NO_CONTEXT), no_context_2, NULL, false},
    {R(ACLNN_NO_OPP_PATH), no_opp_path, NULL, false},
    {R(ACLNN_NULL_RESULT), null_result, NULL, false},
    {R(ACLNN_NULL_OPERAND), null_operand, NULL, false},
    {R(ACLNN_DTYPE), dtype, NULL, false},
    {R(ACLNN_DTYPE_DIFFERS), dtype_differs, NULL, false},
    {R(ACLNN_BF16_910A), bf16_910a, "FAKE_CANN_SOC=Ascend910A", false},
    {R(ACLNN_NOT_ON_SOC), not_on_soc, "FAKE_CANN_SOC=Ascend910A", false},
    {R(ACLNN_FORMAT), format, NULL, false},
    {R(ACLNN_RANK), rank, NULL, false},
    {R(ACLNN_NEGATIVE_DIM), negative_dim, NULL, false},
    {R(ACLNN_SHAPE), shape, NULL, false},
    {R(ACLNN_SHAPE), shape_tiling, NULL, false},
    {R(ACLNN_VALUE), value, NULL, false},
    {R(ACLNN_STRIDED), strided, NULL, false},
    {R(ACLNN_EMPTY), empty, NULL, false},
    {R(ACLNN_PROMOTION), promotion, NULL, false},
    {R(ACLNN_NULL_EXECUTOR), null_executor, NULL, false},
    {R(ACLNN_NULL_WORKSPACE), null_workspace, "FAKE_CANN_WORKSPACE=4096", false},
    {R(EXEC_REPEAT_NULL), repeat_null, NULL, false},
    {R(EXEC_REPEAT_REFUSED), repeat_host_data, NULL, false},
    {R(EXEC_REPEAT_REFUSED), repeat_view, NULL, false},
    {R(EXEC_DESTROY_NULL), executor_destroy_null, NULL, false},
    {R(EXEC_ADDRESS_NULL), address_null, NULL, false},
    {R(EXEC_ADDRESS_INDEX), address_index, NULL, false},
    {R(ATTENTION_MASK), mask_shape, NULL, false},
    {R(ATTENTION_LENGTHS), lengths, NULL, false},
    {R(ATTENTION_MODE), mode, NULL, false},
    {R(ATTENTION_HEADS), heads, NULL, false},
    {R(ATTENTION_NO_MASK), no_mask, NULL, false},
    {R(ATTENTION_NOT_OFFERED), not_offered, NULL, false},
    {R(DESC_NOT_A_HANDLE), not_a_tensor, NULL, false},
    {R(DESC_NOT_A_HANDLE), other_kind, NULL, false},
    {R(DESC_USE_AFTER_DESTROY), use_after_destroy, NULL, false},
    {R(DESC_USE_AFTER_DESTROY), scalar_after_destroy, NULL, false},
    {R(DESC_DESTROY_TWICE), destroy_twice, NULL, false},
    {R(DESC_DESTROY_TWICE), destroy_after_list, NULL, false},
    {R(DESC_DESTROY_MEMBER), destroy_member, NULL, false},
    {R(DESC_DESTROY_MEMBER), twice_in_list, NULL, false},
    {R(DESC_DESTROYED_BETWEEN), destroyed_between, NULL, false},
    {R(DESC_DESTROYED_BETWEEN), destroyed_under_repeatable, NULL, false},
    {R(DESC_ADDRESS_BETWEEN), address_between, NULL, false},
    {R(DESC_ADDRESS_BETWEEN), init_between, NULL, false},
    {R(EXEC_TWICE), executor_twice, NULL, false},
    {R(EXEC_TWICE), executor_destroyed_after, NULL, false},
    {R(EXEC_TWICE), executor_after_failure, "FAKE_CANN_WORKSPACE=64", false},
    {R(EXEC_OTHER_OP), other_op, NULL, false},
    {R(EXEC_OTHER_DEVICE), other_device, "FAKE_CANN_DEVICES=2", false},
    {R(EXEC_REPEAT_LATE), repeat_late_phase1, NULL, false},
    {R(EXEC_REPEAT_LATE), repeat_late_thread, NULL, false},
    {R(EXEC_REPEAT_LATE), repeat_late_phase2, NULL, false},
    {R(EXEC_ADDRESS_TENSOR), address_tensor, NULL, false},
    {R(WORKSPACE_TOO_SMALL), workspace_small, "FAKE_CANN_WORKSPACE=4096", false},
    {R(VIEW_OUTSIDE_STORAGE), view_outside, NULL, false},
    {R(VIEW_OUTSIDE_STORAGE), view_before, NULL, false},
    {R(STORAGE_OUTSIDE_BLOCK), storage_outside, NULL, false},
    {R(STORAGE_OUTSIDE_BLOCK), small_block, NULL, false},
    {R(DATA_UNALIGNED), unaligned, NULL, false},
    {R(ALIAS_PARTIAL), alias_partial, NULL, false},
    {R(ALIAS_PARTIAL), alias_strided, NULL, false},
    {R(ALIAS_NOT_ALLOWED), alias_not_allowed, NULL, false},
    {R(ALIAS_OUTPUTS), alias_outputs, NULL, false},
    {R(ALIAS_OUTPUTS), alias_itself, NULL, false},
    {R(INDEX_OUT_OF_RANGE), index_embedding, NULL, false},
    {R(INDEX_OUT_OF_RANGE), index_embedding_backward, NULL, false},
    {R(INDEX_OUT_OF_RANGE), index_select, NULL, false},
    {R(INDEX_OUT_OF_RANGE), index_target, NULL, false},
    {R(WORKSPACE_ALIGN), workspace_unaligned, "FAKE_CANN_WORKSPACE=64", false},
    {R(WORKSPACE_OVERLAP), workspace_over_operand, "FAKE_CANN_WORKSPACE=64", false},
    {R(RANGE_UNKNOWN), workspace_on_host, "FAKE_CANN_WORKSPACE=64", false},
    {R(RANGE_OUTSIDE), workspace_beyond, "FAKE_CANN_WORKSPACE=64", false},
    {R(USE_AFTER_FREE), operand_freed, NULL, false},
    {R(OTHER_DEVICE), operand_elsewhere, "FAKE_CANN_DEVICES=2", false},
    {R(ATTENTION_MASK_CONTENT), mask_content, NULL, false},
};

int main(void)
{
    size_t n = sizeof rows / sizeof rows[0];
    int bad = run_rows(rows, n) + unbroken(rows, n, FAKE_R_ACLNN_NO_CONTEXT, FAKE_RULE_COUNT);
    (void)printf("%d rules of libnnopbase and libopapi, %zu ways to break them, %d not caught\n",
                 FAKE_RULE_COUNT - FAKE_R_ACLNN_NO_CONTEXT, n, bad);
    return bad == 0 ? 0 : 1;
}
