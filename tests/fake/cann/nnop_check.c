/* SPDX-License-Identifier: Apache-2.0 */
/* Phase 1: what holds for every operator, the refusals that operators make themselves, and the workspace. */
#include "nnop_exec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

__attribute__((format(printf, 4, 5))) static size_t put(char *text, size_t size, size_t at,
                                                        const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = at < size ? vsnprintf(text + at, size - at, format, list) : 0;
    va_end(list);
    return at + (size_t)(n > 0 ? n : 0);
}

static size_t put_view(char *text, size_t size, size_t at, const char *name, const fake_view *v)
{
    at = put(text, size, at, " %s %s (", name, fake_dtype_name(v->dtype));
    for (int d = 0; d < v->ndim; d++) {
        at = put(text, size, at, d ? ",%lld" : "%lld", (long long)v->dim[d]);
    }
    return put(text, size, at, ")");
}

__attribute__((format(printf, 4, 0))) static int refuse(fake_call *c, enum fake_rule rule, int code,
                                                        const char *format, va_list list)
{
    char reason[512], operands[1024] = "";
    vsnprintf(reason, sizeof reason, format, list);
    size_t at = 0;
    for (int i = 0; i < c->op->nargs; i++) {
        if (c->op->args[i].kind == FAKE_ARG_TENSOR && c->arg[i].given) {
            at = put_view(operands, sizeof operands, at, c->op->args[i].name, &c->arg[i].view);
        }
    }
    return fake_code(rule, code, "%s: %s: %s;%s", code == ACLNN_TILING ? "EZ9999" : "EZ1001", c->op->phase1,
                     reason, operands);
}

int fake_refuse(fake_call *c, enum fake_rule rule, int code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int r = refuse(c, rule, code, format, list);
    va_end(list);
    return r;
}

static int late_code(const fake_call *c)
{
    return c->op->flags & FAKE_OP_GENERATED ? ACLNN_TILING : ACLNN_INVALID;
}

int fake_refuse_shape(fake_call *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int r = refuse(c, FAKE_R_ACLNN_SHAPE, late_code(c), format, list);
    va_end(list);
    return r;
}

int fake_refuse_value(fake_call *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int r = refuse(c, FAKE_R_ACLNN_VALUE, late_code(c), format, list);
    va_end(list);
    return r;
}

int fake_want_dims(fake_call *c, int i, int ndim, const int64_t *dim)
{
    const fake_view *v = &c->arg[i].view;
    bool same = v->ndim == ndim;
    char want[160];
    size_t at = put(want, sizeof want, 0, "(");
    for (int d = 0; d < ndim; d++) {
        same = same && v->dim[d] == dim[d];
        at = put(want, sizeof want, at, d ? ",%lld" : "%lld", (long long)dim[d]);
    }
    return same ? 0 : fake_refuse_shape(c, "'%s' should be %s)", c->op->args[i].name, want);
}

int fake_want_dims_of(fake_call *c, int i, int j)
{
    return fake_want_dims(c, i, c->arg[j].view.ndim, c->arg[j].view.dim);
}

int fake_want_dim(fake_call *c, int i, int ndim)
{
    int64_t n = ndim > 0 ? ndim : 1, *dim = &c->arg[i].i;
    if (*dim < -n || *dim >= n) {
        return fake_refuse(c, FAKE_R_ACLNN_VALUE, ACLNN_INVALID, "'%s' is %lld, outside [%lld, %lld)",
                           c->op->args[i].name, (long long)*dim, (long long)-n, (long long)n);
    }
    *dim += *dim < 0 ? n : 0;
    return 0;
}

/* ---- arguments ---- */

static void hold(fake_arg *a, const void *object)
{
    a->object = object;
    a->number = ((const struct fake_object *)object)->number;
}

/* Takes over what a descriptor says; 0, or a negative value after a trap. */
static int take(fake_call *c, int i, const fake_given *g)
{
    const char *where = c->op->phase1, *what = c->op->args[i].name;
    fake_arg *a = &c->arg[i];
    switch ((enum fake_arg_kind)g->kind) {
    case FAKE_ARG_TENSOR: {
        struct aclTensor *t = fake_object_use(g->p, FAKE_TENSOR, where, what);
        if (!t) {
            return -1;
        }
        a->view = t->view;
        hold(a, t);
        break;
    }
    case FAKE_ARG_TENSORS: {
        struct fake_array *l = fake_object_use(g->p, FAKE_TENSOR_LIST, where, what);
        if (!l) {
            return -1;
        }
        a->n = (int64_t)l->n;
        a->views = calloc(l->n + 1, sizeof *a->views);
        for (uint64_t k = 0; k < l->n; k++) {
            struct aclTensor *t = fake_object_use(l->of.members[k], FAKE_TENSOR, where, what);
            if (!t) {
                return -1;
            }
            a->views[k] = t->view;
        }
        hold(a, l);
        break;
    }
    case FAKE_ARG_SCALAR: {
        struct aclScalar *s = fake_object_use(g->p, FAKE_SCALAR, where, what);
        if (!s) {
            return -1;
        }
        a->dtype = s->dtype;
        a->d = s->d;
        a->i = s->i;
        hold(a, s);
        break;
    }
    case FAKE_ARG_INTS: {
        struct fake_array *l = fake_object_use(g->p, FAKE_INT_ARRAY, where, what);
        if (!l) {
            return -1;
        }
        a->n = (int64_t)l->n;
        a->ints = calloc(l->n + 1, sizeof *a->ints);
        memcpy(a->ints, l->of.ints, l->n * sizeof *a->ints);
        hold(a, l);
        break;
    }
    case FAKE_ARG_TEXT:
        snprintf(a->text, sizeof a->text, "%s", (const char *)g->p);
        break;
    case FAKE_ARG_DTYPE:
        a->dtype = (aclDataType)g->i;
        break;
    case FAKE_ARG_I64:
        a->i = g->i;
        break;
    case FAKE_ARG_F64:
        a->d = g->d;
        break;
    }
    a->given = true;
    return 0;
}

static bool is_pointer(uint8_t kind)
{
    return kind != FAKE_ARG_I64 && kind != FAKE_ARG_F64 && kind != FAKE_ARG_DTYPE;
}

static bool in_set(aclDataType dtype, uint32_t set)
{
    return dtype >= 0 && dtype < 32 && (set & FAKE_SET(dtype)) != 0;
}

static int check_tensor(fake_call *c, int i, const struct aclTensor *t)
{
    const fake_operand *o = &c->op->args[i];
    const fake_view *v = &t->view;
    if (t->true_ndim > FAKE_RANK_MAX) {
        return fake_refuse(c, FAKE_R_ACLNN_RANK, ACLNN_INVALID, "'%s' has %d dims, at most %d are possible",
                           o->name, t->true_ndim, FAKE_RANK_MAX);
    }
    if (t->bad_dims) {
        return fake_refuse(c, FAKE_R_ACLNN_NEGATIVE_DIM, ACLNN_INVALID, "'%s' has a negative dim", o->name);
    }
    if (t->format != ACL_FORMAT_ND && t->format != ACL_FORMAT_NCHW) {
        return fake_refuse(c, FAKE_R_ACLNN_FORMAT, ACLNN_INVALID, "'%s' has format %d, wanted ND (2)",
                           o->name, (int)t->format);
    }
    if (!in_set(v->dtype, o->dtypes)) {
        return fake_refuse(c, FAKE_R_ACLNN_DTYPE, ACLNN_INVALID, "'%s' can't be %s", o->name,
                           fake_dtype_name(v->dtype));
    }
    if (v->dtype == ACL_BF16 && fake_soc_is("Ascend910A")) {
        return fake_refuse(c, FAKE_R_ACLNN_BF16_910A, ACLNN_INVALID,
                           "'%s' is BFLOAT16, which %s does not have", o->name, fake_soc());
    }
    if (o->like && c->arg[o->like - 1].given && c->arg[o->like - 1].view.dtype != v->dtype) {
        return fake_refuse(c, FAKE_R_ACLNN_DTYPE_DIFFERS, ACLNN_INVALID,
                           "'%s' is %s, '%s' is %s: they should be equal", o->name, fake_dtype_name(v->dtype),
                           c->op->args[o->like - 1].name, fake_dtype_name(c->arg[o->like - 1].view.dtype));
    }
    int64_t lo, hi;
    fake_view_span(v, &lo, &hi);
    if (lo != hi && (lo < 0 || hi > v->storage)) {
        fake_trap(FAKE_R_VIEW_OUTSIDE_STORAGE, "%s: '%s' reaches elements %lld to %lld of a storage of %lld",
                  c->op->phase1, o->name, (long long)lo, (long long)(hi - 1), (long long)v->storage);
        return ACLNN_INNER;
    }
    if ((o->flags & FAKE_DENSE) && !fake_view_is_contiguous(v)) {
        return fake_refuse(c, FAKE_R_ACLNN_STRIDED, ACLNN_INNER_NULLPTR, "'%s' should be contiguous",
                           o->name);
    }
    if ((c->op->flags & FAKE_OP_NOT_EMPTY) && fake_view_count(v) == 0 && !(o->flags & FAKE_OPTIONAL)) {
        return fake_refuse(c, FAKE_R_ACLNN_EMPTY, ACLNN_INVALID, "'%s' is empty", o->name);
    }
    return 0;
}

static int check_member(fake_call *c, int i, const struct fake_array *list)
{
    for (uint64_t k = 0; k < list->n; k++) {
        TRY(check_tensor(c, i, list->of.members[k]));
    }
    return 0;
}

static int check_arguments(fake_call *c, const fake_given *given)
{
    for (int i = 0; i < c->op->nargs; i++) {
        const fake_operand *o = &c->op->args[i];
        if (given[i].kind != o->kind) {
            fprintf(stderr, "fake cann: %s: the table and the prototype differ at argument %d\n",
                    c->op->phase1, i);
            abort();
        }
        if (is_pointer(o->kind) && !given[i].p) {
            if (!(o->flags & FAKE_OPTIONAL)) {
                return fake_refuse(c, FAKE_R_ACLNN_NULL_OPERAND, ACLNN_NULLPTR, "'%s' is NULL", o->name);
            }
            continue;
        }
        if (take(c, i, &given[i]) != 0) {
            return ACLNN_INNER;
        }
    }
    for (int i = 0; i < c->op->nargs; i++) {
        const fake_operand *o = &c->op->args[i];
        if (o->kind == FAKE_ARG_TENSOR && c->arg[i].given) {
            TRY(check_tensor(c, i, c->arg[i].object));
        } else if (o->kind == FAKE_ARG_TENSORS && c->arg[i].given) {
            TRY(check_member(c, i, c->arg[i].object));
        } else if (o->kind == FAKE_ARG_SCALAR && c->arg[i].given && !in_set(c->arg[i].dtype, o->dtypes)) {
            return fake_refuse(c, FAKE_R_ACLNN_DTYPE, ACLNN_INVALID, "'%s' can't be %s", o->name,
                               fake_dtype_name(c->arg[i].dtype));
        }
    }
    return 0;
}

/* ---- phase 1 ---- */

static int check(fake_call *c, const fake_given *given)
{
    const char *opp = getenv("ASCEND_OPP_PATH");
    if (!opp || !*opp) {
        return fake_code(FAKE_R_ACLNN_NO_OPP_PATH, ACLNN_NO_OPP_PATH,
                         "EZ9999: %s: ASCEND_OPP_PATH is not set", c->op->phase1);
    }
    TRY(check_arguments(c, given));
    if ((c->op->flags & FAKE_OP_NOT_910A) && fake_soc_is("Ascend910A")) {
        return fake_refuse(c, FAKE_R_ACLNN_NOT_ON_SOC, ACLNN_INVALID, "there is no kernel for %s",
                           fake_soc());
    }
    return c->op->check ? c->op->check(c) : 0;
}

aclnnStatus fake_plan(const fake_op *op, const fake_given *given, int ngiven, uint64_t *workspace_size,
                      aclOpExecutor **executor)
{
    fake_count(op->phase1);
    if (ngiven != op->nargs || ngiven > FAKE_ARGS_MAX) {
        fprintf(stderr, "fake cann: %s: %d arguments in the prototype, %d in the table\n", op->phase1, ngiven,
                op->nargs);
        abort();
    }
    if (!workspace_size || !executor) {
        return fake_code(FAKE_R_ACLNN_NULL_RESULT, ACLNN_NULLPTR,
                         "EZ1001: %s: no place for workspace size or executor", op->phase1);
    }
    if (fake_device() < 0) {
        return fake_code(FAKE_R_ACLNN_NO_CONTEXT, ACLNN_RUNTIME,
                         "EZ9903: %s: no current context in this thread", op->phase1);
    }
    fake_call call = {.op = op, .deterministic = fake_deterministic() > 0};
    int r = check(&call, given);
    if (r == 0 && fake_fault("phase1")) {
        fake_error_text("EZ9999: %s: inner error (a fault on demand)", op->phase1);
        r = ACLNN_INNER;
    }
    if (r != 0) {
        fake_call_clear(&call);
        return r;
    }
    struct aclOpExecutor *e = fake_executor_new(&call);
    if (!e) {
        fake_call_clear(&call);
        return ACLNN_INNER;
    }
    e->workspace = e->writes ? fake_random_workspace() : 0;
    *workspace_size = e->workspace;
    *executor = e;
    return ACLNN_OK;
}
