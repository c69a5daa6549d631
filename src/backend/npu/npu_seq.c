/* SPDX-License-Identifier: Apache-2.0 */
/* The three walks over a sequence of operators. */
#include "backend/npu/npu_seq.h"

#include <stdio.h>
#include <string.h>

enum { ALIGN = 512, BASE_ALIGN = 64 }; /* of temporaries and workspaces, as torch_npu has them; of what the plan gives */

/* One enqueued thing of a prepared launch. */
typedef struct kept_step {
    const char *name;    /* of the operator; NULL: a copy or, where src is NULL, zeros */
    cti_aclnn_run run;
    aclOpExecutor *executor;
    void *workspace, *dst;
    const void *src;
    uint64_t bytes;
} kept_step;

struct cti_npu_record {
    const ct_alloc *alloc;
    kept_step *steps;
    const aclTensor **tensors; /* executors need them as long as they live */
    const aclScalar **scalars;
    const aclIntArray **arrays;
    int32_t n_steps, n_tensors, n_scalars, n_arrays, cap_steps, cap_tensors, cap_scalars, cap_arrays;
};

void cti_npu_stop(cti_npu_seq *s, ct_status st)
{
    s->st = s->st == CT_OK ? st : s->st;
}

static size_t up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

cti_npu_view cti_npu_temp(cti_npu_seq *s, aclDataType dtype, int32_t ndim, const int64_t *dims)
{
    cti_npu_view v = {.dtype = dtype};
    v = cti_npu_as(v, ndim, dims);
    const size_t bytes = up((size_t)cti_npu_numel(&v) * cti_npu_dtype_bytes(dtype));
    if (s->st != CT_OK) {
        return v;
    }
    if (s->mode != CTI_NPU_SIZE) {
        char *base = s->launch->workspace;
        const size_t first = (ALIGN - (uintptr_t)base % ALIGN) % ALIGN;
        if (base == NULL || first + s->at + bytes > s->launch->workspace_bytes) {
            NPU_FAIL(s, CT_ERR_STATE, "%s: the launch has %zu bytes of workspace, temporaries need %zu", s->op, s->launch->workspace_bytes, first + s->at + bytes);
            return v;
        }
        v.data = base + first + s->at;
    }
    s->at += bytes;
    s->most = s->at > s->most ? s->at : s->most;
    return v;
}

/* Where an operator's own workspace lies: at the end of the launch's. Where it asks for more than at plan time, beside the plan. */
static void *operator_workspace(cti_npu_seq *s, uint64_t bytes)
{
    if (bytes == 0) {
        return NULL;
    }
    const uintptr_t base = (uintptr_t)s->launch->workspace, end = base + s->launch->workspace_bytes;
    const uintptr_t first = (base + ALIGN - 1) / ALIGN * ALIGN + s->at, at = bytes < end ? (end - bytes) / ALIGN * ALIGN : 0;
    if (base != 0 && at >= first) {
        return (void *)at; /* NOLINT(performance-no-int-to-ptr): an address below one that was a pointer */
    }
    void *spare = NULL;
    if (s->mode == CTI_NPU_PREPARE) {
        s->is_refused = true; /* the spare block may move when another asks for more */
    } else {
        cti_npu_stop(s, cti_npu_spare(s->dev, s->stream, (size_t)bytes, &spare, s->err));
    }
    return spare;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void drop_operands(cti_npu_seq *s)
{
    for (int32_t i = 0; i < s->n_tensors; i++) {
        (void)s->cann->aclDestroyTensor(s->tensors[i]); /* cannot fail for one that was made */
    }
    for (int32_t i = 0; i < s->n_scalars; i++) {
        (void)s->cann->aclDestroyScalar(s->scalars[i]);
    }
    for (int32_t i = 0; i < s->n_arrays; i++) {
        (void)s->cann->aclDestroyIntArray(s->arrays[i]);
    }
    s->n_tensors = s->n_scalars = s->n_arrays = 0;
}

static const char *acl_dtype_name(aclDataType dtype)
{
    switch (dtype) {
    case ACL_FLOAT:
        return "f32";
    case ACL_BF16:
        return "bf16";
    case ACL_FLOAT16:
        return "f16";
    case ACL_DOUBLE:
        return "f64";
    case ACL_INT32:
        return "i32";
    case ACL_INT64:
        return "i64";
    case ACL_UINT8:
        return "u8";
    case ACL_INT8:
        return "i8";
    case ACL_BOOL:
        return "bool";
    case ACL_DT_UNDEFINED:
        break;
    }
    return "?";
}

/* "bf16 [4, 8], f32 [8]" of the call that failed. */
static void describe(const cti_npu_seq *s, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    for (int32_t i = 0; i < s->n_tensors && n < size; i++) {
        const cti_npu_view *v = &s->views[i];
        n += (size_t)snprintf(out + n, size - n, "%s%s [", i > 0 ? ", " : "", acl_dtype_name(v->dtype));
        for (int32_t d = 0; d < v->ndim && n < size; d++) {
            n += (size_t)snprintf(out + n, size - n, d > 0 ? ", %lld" : "%lld", (long long)v->dims[d]);
        }
        n += n < size ? (size_t)snprintf(out + n, size - n, "]") : 0;
    }
}

static void fail_call(cti_npu_seq *s, const char *name, const char *phase, aclnnStatus code)
{
    char operands[600];
    describe(s, operands, sizeof operands); /* a prepared call has none here */
    cti_npu_stop(s, cti_aclnn_fail(s->cann, code, s->err, "%s: aclnn%s%s%s%s", s->op, name, phase, operands[0] != '\0' ? " of " : "", operands));
}

bool cti_npu_begin(cti_npu_seq *s, const char *name, bool is_there)
{
    if (s->is_blind) {
        return false;
    }
    if (s->st == CT_OK && !is_there) {
        cti_npu_stop(s, cti_cann_missing(name, s->op, s->err));
    }
    CT_ASSERT(s->n_tensors + s->n_scalars + s->n_arrays == 0); /* no call among the operands of another */
    return s->st == CT_OK && !s->is_refused;
}

/* Waits for the operator where that is wanted, so that a fault has a name. */
static void wait_for_call(cti_npu_seq *s, const char *name)
{
    if (s->dev->is_synchronous && s->st == CT_OK) {
        const aclError e = s->cann->aclrtSynchronizeStream(s->stream);
        if (e != 0) {
            fail_call(s, name, " (waited for)", e);
        }
    }
}

/* Room for `more` behind the n of a list. */
static bool grow(const ct_alloc *alloc, void *list, int32_t n, int32_t more, int32_t *cap, size_t size, ct_err *err)
{
    if (n + more <= *cap) {
        return true;
    }
    void *old, *grown;
    memcpy(&old, list, sizeof old);
    grown = ct_alloc_resize(alloc, old, (size_t)(n + more) * 2, size, err);
    if (grown == NULL) {
        return false;
    }
    memcpy(list, &grown, sizeof grown);
    *cap = (n + more) * 2;
    return true;
}

static void keep_step(cti_npu_seq *s, kept_step step)
{
    cti_npu_record *r = s->record;
    if (!grow(r->alloc, &r->steps, r->n_steps, 1, &r->cap_steps, sizeof step, s->err)) {
        cti_npu_stop(s, CT_ERR_MEMORY);
        return;
    }
    r->steps[r->n_steps++] = step;
}

/* Room in the record for the call that is being made. */
static bool has_room(cti_npu_seq *s)
{
    cti_npu_record *r = s->record;
    return grow(r->alloc, &r->steps, r->n_steps, 1, &r->cap_steps, sizeof *r->steps, s->err) &&
           grow(r->alloc, &r->tensors, r->n_tensors, s->n_tensors, &r->cap_tensors, sizeof *r->tensors, s->err) &&
           grow(r->alloc, &r->scalars, r->n_scalars, s->n_scalars, &r->cap_scalars, sizeof *r->scalars, s->err) &&
           grow(r->alloc, &r->arrays, r->n_arrays, s->n_arrays, &r->cap_arrays, sizeof *r->arrays, s->err);
}

/* Operands go into the record, which has room for them and destroys them behind their executor. */
static void keep_operands(cti_npu_seq *s)
{
    cti_npu_record *r = s->record;
    for (int32_t i = 0; i < s->n_tensors; i++) {
        r->tensors[r->n_tensors++] = s->tensors[i];
    }
    for (int32_t i = 0; i < s->n_scalars; i++) {
        r->scalars[r->n_scalars++] = s->scalars[i];
    }
    for (int32_t i = 0; i < s->n_arrays; i++) {
        r->arrays[r->n_arrays++] = s->arrays[i];
    }
    s->n_tensors = s->n_scalars = s->n_arrays = 0;
}

static void prepare_call(cti_npu_seq *s, const char *name, uint64_t bytes, aclOpExecutor *executor, cti_aclnn_run run)
{
    /* First of all: CANN takes the executor of this thread's last first phase. */
    s->is_refused = s->cann->aclSetAclOpExecutorRepeatable == NULL || s->cann->aclSetAclOpExecutorRepeatable(executor) != 0;
    void *workspace = s->is_refused ? NULL : operator_workspace(s, bytes);
    if (!s->is_refused && s->st == CT_OK && !has_room(s)) {
        cti_npu_stop(s, CT_ERR_MEMORY);
    }
    if (s->is_refused || s->st != CT_OK) {
        (void)s->cann->aclDestroyAclOpExecutor(executor); /* made, never run */
        drop_operands(s);
        return;
    }
    keep_operands(s);
    keep_step(s, (kept_step){.name = name, .run = run, .executor = executor, .workspace = workspace, .bytes = bytes});
}

void cti_npu_end(cti_npu_seq *s, const char *name, aclnnStatus code, uint64_t bytes, aclOpExecutor *executor, cti_aclnn_run run)
{
    if (s->st == CT_OK && code != 0) {
        fail_call(s, name, "GetWorkspaceSize", code);
    }
    if (s->st != CT_OK || s->mode == CTI_NPU_SIZE) {
        s->tail = s->st == CT_OK && bytes > s->tail ? (size_t)bytes : s->tail;
        if (code == 0 && executor != NULL) {
            (void)s->cann->aclDestroyAclOpExecutor(executor); /* made, never run */
        }
        drop_operands(s);
        return;
    }
    if (s->mode == CTI_NPU_PREPARE) {
        prepare_call(s, name, bytes, executor, run);
        return;
    }
    void *workspace = operator_workspace(s, bytes);
    if (s->st != CT_OK) {
        (void)s->cann->aclDestroyAclOpExecutor(executor);
    } else {
        code = run(workspace, bytes, executor, s->stream); /* the executor is gone, failed or not */
        if (code != 0) {
            fail_call(s, name, "", code);
        }
        wait_for_call(s, name);
    }
    drop_operands(s);
}

/* ---- copies and zeros ------------------------------------------------------------------------------------------- */

static void move(cti_npu_seq *s, void *dst, const void *src, size_t bytes)
{
    const aclError e = src != NULL ? s->cann->aclrtMemcpyAsync(dst, bytes, src, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, s->stream)
                                   : s->cann->aclrtMemsetAsync(dst, bytes, 0, bytes, s->stream);
    if (e != 0) {
        cti_npu_stop(s, cti_acl_fail(s->cann, e, s->err, "%s: %s of %zu bytes", s->op, src != NULL ? "aclrtMemcpyAsync" : "aclrtMemsetAsync", bytes));
    }
}

static void copy_or_zero(cti_npu_seq *s, void *dst, const void *src, size_t bytes)
{
    if (s->st != CT_OK || s->mode == CTI_NPU_SIZE || bytes == 0 || dst == src || s->is_refused) {
        return;
    }
    if (s->mode == CTI_NPU_PREPARE) {
        keep_step(s, (kept_step){.dst = dst, .src = src, .bytes = bytes});
    } else {
        move(s, dst, src, bytes);
    }
}

void cti_npu_copy(cti_npu_seq *s, void *dst, const void *src, size_t bytes)
{
    copy_or_zero(s, dst, src, bytes);
}

void cti_npu_zero(cti_npu_seq *s, cti_npu_view v)
{
    const size_t size = cti_npu_dtype_bytes(v.dtype);
    if (v.data != NULL) {
        copy_or_zero(s, (char *)v.data + (size_t)v.offset * size, NULL, (size_t)cti_npu_numel(&v) * size);
    }
}

/* ---- short sequences --------------------------------------------------------------------------------------------- */

void cti_npu_cast(cti_npu_seq *s, cti_npu_view to, cti_npu_view from)
{
    if (cti_npu_numel(&to) == 0) {
        return;
    }
    if (to.dtype == from.dtype) {
        const size_t size = cti_npu_dtype_bytes(to.dtype);
        if (to.data != NULL && from.data != NULL) {
            cti_npu_copy(s, (char *)to.data + (size_t)to.offset * size, (const char *)from.data + (size_t)from.offset * size, (size_t)cti_npu_numel(&to) * size);
        }
        return;
    }
    NPU_CALL(s, Cast, NPU_T(s, from), to.dtype, NPU_T(s, to));
}

void cti_npu_spread(cti_npu_seq *s, cti_npu_view to, cti_npu_view from)
{
    if (cti_npu_numel(&to) > 0) {
        NPU_CALL(s, InplaceCopy, NPU_T(s, to), NPU_T(s, from));
    }
}

void cti_npu_fill(cti_npu_seq *s, cti_npu_view to, double value)
{
    const bool is_integer = to.dtype == ACL_INT32 || to.dtype == ACL_INT64 || to.dtype == ACL_UINT8;
    if (cti_npu_numel(&to) > 0) {
        NPU_CALL(s, InplaceFillScalar, NPU_T(s, to), cti_npu_scalar(s, is_integer ? ACL_INT64 : to.dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT, value));
    }
}

void cti_npu_mm(cti_npu_seq *s, cti_npu_view to, cti_npu_view a, cti_npu_view b, bool is_more, bool was_bf16)
{
    const int8_t cube = was_bf16 && a.dtype == ACL_FLOAT ? ACL_CUBE_USE_HF32 : ACL_CUBE_KEEP_DTYPE;
    if (cti_npu_numel(&to) == 0) {
        return;
    }
    if (a.dims[1] == 0) { /* an empty sum */
        if (!is_more) {
            cti_npu_zero(s, to);
        }
    } else if (is_more) {
        NPU_CALL(s, InplaceAddmm, NPU_T(s, to), NPU_T(s, a), NPU_T(s, b), NPU_F(s, 1.0), NPU_F(s, 1.0), cube);
    } else {
        NPU_CALL(s, Mm, NPU_T(s, a), NPU_T(s, b), NPU_T(s, to), cube);
    }
}

cti_npu_view cti_npu_f32(cti_npu_seq *s, cti_npu_view v)
{
    if (v.dtype == ACL_FLOAT) {
        return v;
    }
    const cti_npu_view to = cti_npu_temp(s, ACL_FLOAT, v.ndim, v.dims);
    cti_npu_cast(s, to, v);
    return to;
}

/* ---- walks ------------------------------------------------------------------------------------------------------- */

static void seq_deinit(cti_npu_seq *s)
{
    for (int32_t i = 0; i < s->n_host; i++) {
        ct_alloc_free(s->dev->alloc, s->host[i]);
    }
}

size_t cti_npu_size(const ct_launch *launch, const char *op, cti_npu_build build)
{
    static const cti_cann nothing;
    cti_npu_device *dev = cti_npu_current(), none = {.alloc = ct_alloc_system(), .cann = &nothing};
    const bool is_blind = dev == NULL; /* `ctitan plan` on any machine: temporaries count, what CANN's operators want for themselves is not known */
    dev = is_blind ? &none : dev;
    ct_err ignored = {0}; /* what fails here fails again when it runs, and is told there */
    cti_npu_seq s = {.dev = dev, .cann = dev->cann, .launch = launch, .op = op, .mode = CTI_NPU_SIZE, .is_blind = is_blind, .err = &ignored};
    build(&s, launch);
    return s.most + s.tail == 0 ? 0 : s.most + s.tail + 2 * ALIGN; /* borders: the launch's memory begins at a multiple of 64 */
}

static ct_status replay(cti_npu_device *dev, const ct_launch *launch, const char *op, ct_err *err)
{
    const cti_npu_record *r = launch->state;
    cti_npu_seq s = {.dev = dev, .cann = dev->cann, .launch = launch, .op = op, .mode = CTI_NPU_RUN, .stream = cti_npu_stream(dev, launch->stream), .err = err};
    for (int32_t i = 0; i < r->n_steps && s.st == CT_OK; i++) {
        const kept_step *k = &r->steps[i];
        if (k->name == NULL) {
            move(&s, k->dst, k->src, (size_t)k->bytes);
            continue;
        }
        const aclnnStatus code = k->run(k->workspace, k->bytes, k->executor, s.stream);
        if (code != 0) {
            fail_call(&s, k->name, "", code);
        }
        wait_for_call(&s, k->name);
    }
    return s.st;
}

ct_status cti_npu_run(const ct_launch *launch, const char *op, cti_npu_build build, ct_err *err)
{
    cti_npu_device *dev = launch->device != NULL ? launch->device : cti_npu_current();
    if (dev == NULL) {
        return CT_FAIL(err, CT_ERR_STATE, "%s: the launch has no device", op);
    }
    CT_TRY(cti_npu_enter(dev, err));
    for (int32_t i = 0; i < launch->n_out; i++) {
        cti_npu_forget(dev, launch->out[i].data, (size_t)cti_npu_count(&launch->out[i]) * ct_dtype_size_bytes(launch->out[i].dtype));
    }
    if (launch->state != NULL) {
        return replay(dev, launch, op, err);
    }
    cti_npu_seq s = {.dev = dev, .cann = dev->cann, .launch = launch, .op = op, .mode = CTI_NPU_RUN, .stream = cti_npu_stream(dev, launch->stream), .err = err};
    build(&s, launch);
    seq_deinit(&s);
    return s.st;
}

ct_status cti_npu_prepare(const ct_launch *launch, const char *op, cti_npu_build build, void **out_state, ct_err *err)
{
    cti_npu_device *dev = launch->device != NULL ? launch->device : cti_npu_current();
    *out_state = NULL;
    if (dev == NULL) {
        return CT_FAIL(err, CT_ERR_STATE, "%s: the launch has no device", op);
    }
    if (!dev->is_prepared) {
        return CT_OK;
    }
    CT_TRY(cti_npu_enter(dev, err));
    cti_npu_record *r = CT_NEW(dev->alloc, cti_npu_record, err);
    if (r == NULL) {
        return CT_ERR_MEMORY;
    }
    r->alloc = dev->alloc;
    cti_npu_seq s = {.dev = dev, .cann = dev->cann, .launch = launch, .op = op, .mode = CTI_NPU_PREPARE, .stream = cti_npu_stream(dev, launch->stream), .err = err,
                     .record = r};
    build(&s, launch);
    seq_deinit(&s);
    if (s.st != CT_OK || s.is_refused) {
        cti_npu_release(dev, r); /* refused: each run begins anew */
        return s.st;
    }
    *out_state = r;
    return CT_OK;
}

static void destroy_kept(const cti_npu_device *dev, const cti_npu_record *r)
{
    for (int32_t i = 0; i < r->n_steps; i++) {
        if (r->steps[i].executor != NULL) {
            (void)dev->cann->aclDestroyAclOpExecutor(r->steps[i].executor);
        }
    }
    for (int32_t i = 0; i < r->n_tensors; i++) {
        (void)dev->cann->aclDestroyTensor(r->tensors[i]);
    }
    for (int32_t i = 0; i < r->n_scalars; i++) {
        (void)dev->cann->aclDestroyScalar(r->scalars[i]);
    }
    for (int32_t i = 0; i < r->n_arrays; i++) {
        (void)dev->cann->aclDestroyIntArray(r->arrays[i]);
    }
}

void cti_npu_release(void *device, void *state)
{
    cti_npu_device *dev = device;
    cti_npu_record *r = state;
    if (r == NULL) {
        return;
    }
    if (cti_npu_enter(dev, NULL) == CT_OK) { /* else CANN keeps what is its own */
        (void)cti_npu_is_idle(dev); /* what is enqueued may use what goes now */
        destroy_kept(dev, r);
    }
    ct_alloc_free(r->alloc, r->steps);
    ct_alloc_free(r->alloc, r->tensors);
    ct_alloc_free(r->alloc, r->scalars);
    ct_alloc_free(r->alloc, r->arrays);
    ct_alloc_free(r->alloc, r);
}
