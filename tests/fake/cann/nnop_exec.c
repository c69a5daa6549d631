/* SPDX-License-Identifier: Apache-2.0 */
/* Phase 2 and what belongs to executors: used once or repeatable, addresses, aliasing, the task on the
 * stream. */
#include "nnop_exec.h"

#include <stdlib.h>
#include <string.h>

/* The executor of this thread's last phase 1, until its phase 2. */
static _Thread_local unsigned last_planned;

/* ---- calls ---- */

void fake_call_clear(fake_call *c)
{
    for (int i = 0; i < c->op->nargs; i++) {
        free(c->arg[i].ints);
        free(c->arg[i].views);
        c->arg[i].ints = NULL;
        c->arg[i].views = NULL;
    }
}

static fake_call *call_clone(const fake_call *from)
{
    fake_call *c = malloc(sizeof *c);
    *c = *from;
    for (int i = 0; i < c->op->nargs; i++) {
        fake_arg *a = &c->arg[i];
        if (a->ints) {
            a->ints = malloc(((size_t)a->n + 1) * sizeof *a->ints);
            memcpy(a->ints, from->arg[i].ints, (size_t)a->n * sizeof *a->ints);
        }
        if (a->views) {
            a->views = malloc(((size_t)a->n + 1) * sizeof *a->views);
            memcpy(a->views, from->arg[i].views, (size_t)a->n * sizeof *a->views);
        }
    }
    return c;
}

/* All tensors of a call in order of declaration: views, their operands. */
typedef struct walk {
    fake_call *c;
    int arg;
    int64_t member;
} walk;

static fake_view *walk_next(walk *w, const fake_operand **out)
{
    for (; w->arg < w->c->op->nargs; w->arg++, w->member = 0) {
        fake_arg *a = &w->c->arg[w->arg];
        *out = &w->c->op->args[w->arg];
        if (!a->given) {
            continue;
        }
        if ((*out)->kind == FAKE_ARG_TENSOR && w->member == 0) {
            w->member = 1;
            return &a->view;
        }
        if ((*out)->kind == FAKE_ARG_TENSORS && w->member < a->n) {
            return &a->views[w->member++];
        }
    }
    return NULL;
}

static bool call_hold(const fake_call *c, int planned, int repeated, const char **out_lost)
{
    bool all = true;
    for (int i = 0; i < c->op->nargs; i++) {
        const fake_arg *a = &c->arg[i];
        if (a->object && !fake_object_hold(a->object, a->number, planned, repeated)) {
            all = false;
            *out_lost = c->op->args[i].name;
        }
    }
    return all;
}

/* ---- executors ---- */

struct aclOpExecutor *fake_executor_new(const fake_call *c)
{
    struct aclOpExecutor *e = fake_object_new(FAKE_EXECUTOR, sizeof *e);
    if (!e) {
        return NULL;
    }
    e->call = malloc(sizeof *e->call);
    *e->call = *c;
    e->device = fake_device();
    last_planned = e->object.number;
    const char *lost;
    call_hold(c, 1, 0, &lost);
    walk w = {.c = e->call};
    const fake_operand *o;
    for (fake_view *v; (v = walk_next(&w, &o));) {
        e->writes = e->writes || ((o->use & FAKE_WRITE) && fake_view_count(v) > 0);
    }
    return e;
}

static void executor_end(struct aclOpExecutor *e)
{
    const char *lost;
    call_hold(e->call, -1, e->repeatable ? -1 : 0, &lost);
    fake_call_clear(e->call);
    free(e->call);
    fake_object_end(e);
}

/* An inner copy that writes back through a view is one more reason against repeating. */
static bool writes_through_view(struct aclOpExecutor *e)
{
    walk w = {.c = e->call};
    const fake_operand *o;
    for (fake_view *v; (v = walk_next(&w, &o));) {
        if ((o->use & FAKE_WRITE) && !fake_view_is_contiguous(v)) {
            return true;
        }
    }
    return false;
}

FAKE_API aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor)
{
    const char *name = "aclSetAclOpExecutorRepeatable";
    if (!executor) {
        return fake_code(FAKE_R_EXEC_REPEAT_NULL, ACLNN_INNER_NULLPTR, "EZ9903: %s: executor is NULL", name);
    }
    struct aclOpExecutor *e = fake_object_use(executor, FAKE_EXECUTOR, name, "executor");
    if (!e) {
        return ACLNN_INNER;
    }
    if (e->ran || e->object.number != last_planned) {
        fake_trap(FAKE_R_EXEC_REPEAT_LATE,
                  "%s: this is not the executor of the phase 1 that this thread has just made (%s)", name,
                  e->call->op->name);
        return ACLNN_INNER;
    }
    if ((e->call->op->flags & FAKE_OP_HOST_DATA) || writes_through_view(e)) {
        return fake_code(FAKE_R_EXEC_REPEAT_REFUSED, ACLNN_INNER,
                         "EZ9903: %s: %s copies host data in phase 2 or writes back through a view", name,
                         e->call->op->name);
    }
    if (!e->repeatable) {
        const char *lost;
        e->repeatable = true;
        call_hold(e->call, 0, 1, &lost);
        fake_live(FAKE_EXECUTOR, -1);
        fake_live(FAKE_REPEATABLE, 1);
        e->object.kind = FAKE_REPEATABLE;
    }
    return ACLNN_OK;
}

FAKE_API aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor)
{
    if (!executor) {
        return fake_code(FAKE_R_EXEC_DESTROY_NULL, ACLNN_INNER_NULLPTR,
                         "EZ9903: aclDestroyAclOpExecutor: executor is NULL");
    }
    struct aclOpExecutor *e = fake_object_use(executor, FAKE_EXECUTOR, "aclDestroyAclOpExecutor", "executor");
    if (e) {
        executor_end(e);
    }
    return ACLNN_OK;
}

/* The `index`-th tensor (or list) of those with one of `use`; `member` of a list. */
static aclnnStatus set_address(aclOpExecutor *executor, size_t index, int use, const void *object,
                               size_t member, void *addr, const char *name)
{
    if (!executor || !object) {
        return fake_code(FAKE_R_EXEC_ADDRESS_NULL, ACLNN_INNER_NULLPTR,
                         "EZ9903: %s: executor or tensor is NULL", name);
    }
    struct aclOpExecutor *e = fake_object_use(executor, FAKE_EXECUTOR, name, "executor");
    if (!e) {
        return ACLNN_INNER;
    }
    size_t side = 0;
    bool elsewhere = false;
    for (int i = 0; i < e->call->op->nargs; i++) {
        const fake_operand *o = &e->call->op->args[i];
        fake_arg *a = &e->call->arg[i];
        if (!(o->use & use)) {
            continue;
        }
        if (a->given && a->object == object) {
            elsewhere = true;
            if (side == index && (o->kind == FAKE_ARG_TENSOR || (int64_t)member < a->n)) {
                *(o->kind == FAKE_ARG_TENSOR ? &a->view.addr : &a->views[member].addr) = addr;
                return ACLNN_OK;
            }
        }
        side++;
    }
    if (elsewhere && (e->call->op->flags & FAKE_OP_GENERATED)) {
        return fake_code(FAKE_R_EXEC_ADDRESS_INDEX, ACLNN_INVALID,
                         "EZ1001: %s: tensor %zu of %s is another one", name, index, e->call->op->name);
    }
    fake_trap(FAKE_R_EXEC_ADDRESS_TENSOR, "%s: the tensor is not number %zu of that side of %s", name, index,
              e->call->op->name);
    return ACLNN_INNER;
}

/* The capitalised twins are exported too. */
#define SETTER(Name, use)                                                                          \
    FAKE_API aclnnStatus acl##Name(aclOpExecutor *executor, const size_t index, aclTensor *tensor, \
                                   void *addr)                                                     \
    {                                                                                              \
        return set_address(executor, index, use, tensor, 0, addr, "acl" #Name);                    \
    }                                                                                              \
    FAKE_API aclnnStatus Acl##Name(aclOpExecutor *executor, const size_t index, aclTensor *tensor, \
                                   void *addr)                                                     \
    {                                                                                              \
        return set_address(executor, index, use, tensor, 0, addr, "acl" #Name);                    \
    }
#define LIST_SETTER(Name, use)                                                                          \
    FAKE_API aclnnStatus acl##Name(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, \
                                   aclTensorList *tensors, void *addr)                                  \
    {                                                                                                   \
        return set_address(executor, irIndex, use, tensors, relativeIndex, addr, "acl" #Name);          \
    }                                                                                                   \
    FAKE_API aclnnStatus Acl##Name(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, \
                                   aclTensorList *tensors, void *addr)                                  \
    {                                                                                                   \
        return set_address(executor, irIndex, use, tensors, relativeIndex, addr, "acl" #Name);          \
    }
SETTER(SetInputTensorAddr, FAKE_READ)
SETTER(SetOutputTensorAddr, FAKE_WRITE)
SETTER(SetTensorAddr, FAKE_READ | FAKE_WRITE)
LIST_SETTER(SetDynamicInputTensorAddr, FAKE_READ)
LIST_SETTER(SetDynamicOutputTensorAddr, FAKE_WRITE)
LIST_SETTER(SetDynamicTensorAddr, FAKE_READ | FAKE_WRITE)

FAKE_API aclnnStatus aclnnInit(const char *configPath)
{
    (void)configPath;
    return ACLNN_OK;
}

FAKE_API aclnnStatus aclnnFinalize(void)
{
    return ACLNN_OK;
}

/* ---- phase 2 ---- */

static bool check_storage(const fake_call *c, const fake_operand *o, const fake_view *v)
{
    if (fake_view_count(v) == 0) {
        return true;
    }
    if ((uintptr_t)v->addr % 32 != 0) {
        fake_trap(FAKE_R_DATA_UNALIGNED,
                  "%s: the data of '%s' (%p) is not 32-byte aligned: use the offset of a view", c->op->name,
                  o->name, v->addr);
        return false;
    }
    struct fake_block b;
    size_t bytes = (size_t)v->storage * fake_dtype_size(v->dtype);
    /* That the block is known, lives and is of this device is for fake_launch() to say. */
    if (fake_block_of(v->addr, &b) && !b.freed && (uintptr_t)v->addr + bytes > b.start + b.size) {
        fake_trap(FAKE_R_STORAGE_OUTSIDE_BLOCK,
                  "%s: the storage of '%s' has %zu bytes, its block %u ends after %zu", c->op->name, o->name,
                  bytes, b.number, (size_t)(b.start + b.size - (uintptr_t)v->addr));
        return false;
    }
    return true;
}

static bool check_alias(const fake_call *c, const fake_operand *out, const fake_view *v,
                        const fake_operand *in, const fake_view *u)
{
    if (!fake_view_meet(v, u)) {
        return true;
    }
    if (in->use & FAKE_WRITE) {
        fake_trap(FAKE_R_ALIAS_OUTPUTS, "%s: '%s' and '%s' are both written and overlap", c->op->name,
                  out->name, in->name);
        return false;
    }
    bool equal = fake_view_equal(v, u);
    if (equal && (c->op->flags & FAKE_OP_ELEMENTWISE)) {
        return true;
    }
    fake_trap(equal ? FAKE_R_ALIAS_NOT_ALLOWED : FAKE_R_ALIAS_PARTIAL, "%s: '%s', which is written, %s '%s'",
              c->op->name, out->name, equal ? "is" : "overlaps", in->name);
    return false;
}

static bool check_views(fake_call *c)
{
    walk w = {.c = c};
    const fake_operand *o, *p;
    for (fake_view *v; (v = walk_next(&w, &o));) {
        if (!check_storage(c, o, v)) {
            return false;
        }
        if (!(o->use & FAKE_WRITE)) {
            continue;
        }
        if (fake_view_overlaps_itself(v)) {
            fake_trap(FAKE_R_ALIAS_OUTPUTS, "%s: '%s' is written and has elements twice", c->op->name,
                      o->name);
            return false;
        }
        walk x = {.c = c};
        for (fake_view *u; (u = walk_next(&x, &p));) {
            if (u != v && !check_alias(c, o, v, p, u)) {
                return false;
            }
        }
    }
    return true;
}

static int task(void *arg)
{
    fake_call *c;
    memcpy(&c, arg, sizeof c);
    walk w = {.c = c};
    const fake_operand *o;
    for (fake_view *v; (v = walk_next(&w, &o));) {
        int64_t lo, hi, size = (int64_t)fake_dtype_size(v->dtype);
        fake_view_span(v, &lo, &hi);
        if (lo != hi) {
            v->addr = (char *)fake_at((char *)v->addr + lo * size) - lo * size;
        }
    }
    c->op->run(c);
    return c->fault;
}

static void task_done(void *arg)
{
    fake_call *c;
    memcpy(&c, arg, sizeof c);
    fake_call_clear(c);
    fake_scraps_free(c);
    free(c);
}

static aclnnStatus launch(struct aclOpExecutor *e, void *workspace, uint64_t workspace_size, void *stream)
{
    fake_call *c = call_clone(e->call);
    c->seed = fake_random();
    size_t n = 0, room = 1;
    walk w = {.c = c};
    const fake_operand *o;
    while (walk_next(&w, &o)) {
        room++;
    }
    struct fake_range *ranges = calloc(room, sizeof *ranges);
    w = (walk){.c = c};
    for (fake_view *v; (v = walk_next(&w, &o));) {
        int64_t lo, hi, size = (int64_t)fake_dtype_size(v->dtype);
        fake_view_span(v, &lo, &hi);
        if (lo != hi) {
            ranges[n++] =
                (struct fake_range){(char *)v->addr + lo * size, (size_t)((hi - lo) * size), o->use, o->name};
        }
    }
    if (workspace_size > 0) {
        ranges[n++] = (struct fake_range){workspace, workspace_size, FAKE_WORKSPACE, "workspace"};
    }
    int r = fake_launch(c->op->name, stream, ranges, n, task, &c, sizeof c, task_done);
    free(ranges);
    return r == 0 ? ACLNN_OK : ACLNN_RUNTIME; /* the call is freed in any case, by task_done() */
}

static aclnnStatus run_checked(const fake_op *op, void *workspace, uint64_t workspace_size,
                               struct aclOpExecutor *e, void *stream)
{
    const char *lost = "";
    if (strcmp(op->name, e->call->op->name) != 0) {
        fake_trap(FAKE_R_EXEC_OTHER_OP, "%s: this executor is of %s", op->name, e->call->op->name);
        return ACLNN_INNER;
    }
    if (fake_device() < 0) {
        return fake_code(FAKE_R_ACLNN_NO_CONTEXT, ACLNN_RUNTIME,
                         "EZ9903: %s: no current context in this thread", op->name);
    }
    if (fake_device() != e->device) {
        fake_trap(FAKE_R_EXEC_OTHER_DEVICE, "%s: phase 1 ran on device %d, phase 2 on device %d", op->name,
                  e->device, fake_device());
        return ACLNN_INNER;
    }
    if (!call_hold(e->call, 0, 0, &lost)) {
        fake_trap(FAKE_R_DESC_DESTROYED_BETWEEN, "%s: '%s' was destroyed between the phases", op->name, lost);
        return ACLNN_INNER;
    }
    if (workspace_size > 0 && !workspace) {
        return fake_code(FAKE_R_ACLNN_NULL_WORKSPACE, ACLNN_NULLPTR,
                         "EZ1001: %s: %llu bytes of workspace at NULL", op->name,
                         (unsigned long long)workspace_size);
    }
    if (workspace_size < e->workspace) {
        fake_trap(FAKE_R_WORKSPACE_TOO_SMALL,
                  "%s: phase 1 asked for %llu bytes of workspace, phase 2 has %llu", op->name,
                  (unsigned long long)e->workspace, (unsigned long long)workspace_size);
        return ACLNN_INNER;
    }
    if (fake_fault("phase2")) {
        fake_error_text("EZ9999: %s: inner error (a fault on demand)", op->name);
        return ACLNN_INNER;
    }
    if (!e->writes) {
        return ACLNN_OK;
    }
    if (!check_views(e->call)) {
        return ACLNN_INNER;
    }
    return launch(e, workspace, workspace_size, stream);
}

aclnnStatus fake_run(const fake_op *op, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
                     void *stream)
{
    if (!executor) {
        return fake_code(FAKE_R_ACLNN_NULL_EXECUTOR, ACLNN_NULLPTR, "EZ1001: %s: executor is NULL", op->name);
    }
    struct aclOpExecutor *e = fake_object_use(executor, FAKE_EXECUTOR, op->name, "executor");
    if (!e) {
        return ACLNN_INNER;
    }
    aclnnStatus r = run_checked(op, workspace, workspace_size, e, stream);
    e->ran = true;
    if (!e->repeatable) {
        executor_end(e);
    }
    return r;
}
