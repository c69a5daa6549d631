/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of plug-ins: what is asked of one, and the table of the process that holds them. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/fields.h"
#include "ctitan/backend.h"
#include "ops/ops.h"

typedef struct slot {
    ct_op op;              /* written before n_users */
    atomic_int n_users;    /* registries that hold it; 0: free */
} slot;
static slot slots[CTI_MAX_REGISTERED_OPS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of who registers and releases */

enum {
    LEGAL_FLAGS = CT_OP_ELEMENTWISE | CT_OP_UPDATE | CT_OP_UNORDERED | CT_OP_EXPENSIVE | CT_OP_MATMUL | CT_OP_ATTENTION | CT_OP_IN_PLACE |
                  CT_OP_ADDEND | CT_OP_HELPER
};

static ct_status check_name(const ct_op *row, ct_err *err)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const char *name = row->name != NULL ? row->name : "";
    const size_t n = strlen(name);
    if (n == 0 || n > 120 || strspn(name, legal) != n || strchr(name, '.') == NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%.120s': wanted a name such as 'plugin.name' of letters, digits, '_' and '-'", name);
    }
    return CT_OK;
}

static ct_status check_counts(const ct_op *row, ct_err *err)
{
    if (row->n_in_min < 0 || row->n_in_min > row->n_in_max || row->n_in_max > CTI_REGISTERED_MAX_IN) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%s' takes %d to %d inputs; at most %d are possible", row->name, (int)row->n_in_min, (int)row->n_in_max,
                       CTI_REGISTERED_MAX_IN);
    }
    if (row->n_out < 1 || row->n_out > CTI_REGISTERED_MAX_OUT) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%s' has %d outputs; 1 to %d are possible", row->name, (int)row->n_out, CTI_REGISTERED_MAX_OUT);
    }
    if (row->shape == NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%s' has no shape rule", row->name);
    }
    return CT_OK;
}

static ct_status check_properties(const ct_op *row, ct_err *err)
{
    const uint32_t flags = row->flags;
    const bool is_update = (flags & CT_OP_UPDATE) != 0;
    const char *why = (flags & ~(uint32_t)LEGAL_FLAGS) != 0 ? "views, joins and collectives are built in, other flags do not exist"
                      : (flags & CT_OP_ATTENTION) != 0 && row->n_in_min < 3 ? "attention reads q, k and v"
                      : (flags & CT_OP_ADDEND) != 0 && row->n_in_max != row->n_in_min + 1 ? "an addend is the one optional input"
                      : (flags & CT_OP_ELEMENTWISE) != 0 && row->n_in_min < 1 ? "what is elementwise has inputs"
                                                                              : NULL;
    if (why != NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%s' has flags 0x%x: %s", row->name, (unsigned)flags, why);
    }
    if (row->alias != NULL && !is_update) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%s' says which inputs it overwrites and is no update", row->name);
    }
    for (int32_t i = 0; is_update && i < row->n_out; i++) {
        const int32_t from = row->alias != NULL ? row->alias[i] : 0;
        if (from < -1 || from >= row->n_in_min) {
            return CT_FAIL(err, CT_ERR_RANGE, "the op '%s': output %d overwrites input %d of the %d that are always there", row->name, (int)i, (int)from,
                           (int)row->n_in_min);
        }
    }
    const bool is_own_class = row->shard == CT_SHARD_LOSS || row->shard == CT_SHARD_RESHAPE || row->shard == CT_SHARD_COLLECTIVE;
    if ((unsigned)row->shard >= CT_SHARD_COUNT || is_own_class) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%s' has the shard class '%s', which is not for plug-ins", row->name, ct_shard_class_name(row->shard));
    }
    if ((row->shard == CT_SHARD_PRODUCT || row->shard == CT_SHARD_LOOKUP) && row->n_in_min < 2) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%s': the shard class '%s' is about inputs 0 and 1", row->name, ct_shard_class_name(row->shard));
    }
    if ((row->shard == CT_SHARD_ELEMENT || row->shard == CT_SHARD_HEADS || row->shard == CT_SHARD_HALVES) && row->n_in_min < 1) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%s': the shard class '%s' is about its inputs", row->name, ct_shard_class_name(row->shard));
    }
    if (row->shard == CT_SHARD_HALVES && (row->n_in_max != 1 || row->n_out != 1)) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%s': the shard class 'halves' is about one input and one output, not %d and %d", row->name,
                       (int)row->n_in_max, (int)row->n_out);
    }
    if ((unsigned)row->tolerance >= CT_TOL_COUNT) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%s' has tolerance class %d, which does not exist", row->name, (int)row->tolerance);
    }
    if ((row->gradient != NULL) == (row->no_gradient != NULL)) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%s' has %s", row->name,
                       row->gradient != NULL ? "both a gradient rule and a reason for having none" : "neither a gradient rule nor a reason for having none");
    }
    return CT_OK;
}

static ct_status check_attributes(const ct_op *row, ct_err *err)
{
    enum { MAX_ATTRIBUTES = 32, MAX_BYTES = 1 << 16 };
    if (row->n_attr_fields < 0 || row->n_attr_fields > MAX_ATTRIBUTES || (row->n_attr_fields > 0) != (row->attrs_bytes > 0) ||
        (row->n_attr_fields > 0 && row->attr_fields == NULL) || row->attrs_bytes > MAX_BYTES) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%s' has %d attributes in %zu bytes%s", row->name, (int)row->n_attr_fields, row->attrs_bytes,
                       row->n_attr_fields > 0 && row->attr_fields == NULL ? " and no table of them" : "");
    }
    const ct_status st = cti_fields_check(row->attr_fields, row->n_attr_fields, row->attrs_bytes, err);
    if (st != CT_OK) {
        ct_err_prefix(err, "the attributes of the op '%s'", row->name);
    }
    return st;
}

static ct_status check_kernels(const ct_op *row, ct_err *err)
{
    if (row->n_kernels < 1 || row->kernels == NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%s' has no kernel for any backend", row->name);
    }
    for (int32_t i = 0; i < row->n_kernels; i++) {
        const ct_op_kernel *k = &row->kernels[i];
        if (k->backend == NULL || k->backend[0] == '\0') {
            return CT_FAIL(err, CT_ERR_RANGE, "the op '%s': kernel %d names no backend", row->name, (int)i);
        }
        if (k->kernel.run == NULL || k->kernel.dtypes == 0 || k->kernel.dtypes >= 1u << CT_DTYPE_COUNT) {
            return CT_FAIL(err, CT_ERR_RANGE, "the op '%s': its kernel for '%s' has %s", row->name, k->backend,
                           k->kernel.run == NULL ? "no function" : k->kernel.dtypes == 0 ? "no dtype" : "bits of dtypes that do not exist");
        }
        if ((k->kernel.prepare == NULL) != (k->kernel.release == NULL)) {
            return CT_FAIL(err, CT_ERR_RANGE, "the op '%s': its kernel for '%s' has one of prepare and release: both or none are wanted", row->name,
                           k->backend);
        }
        for (int32_t j = 0; j < i; j++) {
            if (strcmp(row->kernels[j].backend, k->backend) == 0) {
                return CT_FAIL(err, CT_ERR_RANGE, "the op '%s' has two kernels for '%s'", row->name, k->backend);
            }
        }
    }
    return CT_OK;
}

ct_status cti_op_check(const ct_op *row, ct_err *err)
{
    CT_TRY(check_name(row, err));
    CT_TRY(check_counts(row, err));
    CT_TRY(check_properties(row, err));
    CT_TRY(check_attributes(row, err));
    return check_kernels(row, err);
}

const ct_op *cti_op_registered(int32_t id)
{
    if (id < CT_OP_COUNT || id >= CT_OP_COUNT + CTI_MAX_REGISTERED_OPS) {
        return NULL;
    }
    slot *s = &slots[id - CT_OP_COUNT];
    return atomic_load_explicit(&s->n_users, memory_order_acquire) > 0 ? &s->op : NULL;
}

/* Made by the same code of the same shared object. */
static bool is_same(const ct_op *a, const ct_op *b)
{
    return a->shape == b->shape && a->flops == b->flops && a->gradient == b->gradient && a->attr_fields == b->attr_fields && a->kernels == b->kernels &&
           a->n_in_max == b->n_in_max && a->n_out == b->n_out;
}

static ct_status take_slot(const ct_op *row, int32_t *out_id, ct_err *err)
{
    const ct_op *have = ct_op_find(row->name);
    if (have != NULL && !is_same(have, row)) {
        return CT_FAIL(err, CT_ERR_RANGE, "the op '%s' is registered already", row->name);
    }
    int32_t id = have != NULL ? have->id : CT_OP_COUNT;
    while (have == NULL && id < CT_OP_COUNT + CTI_MAX_REGISTERED_OPS && cti_op_registered(id) != NULL) {
        id++;
    }
    if (id == CT_OP_COUNT + CTI_MAX_REGISTERED_OPS) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "the op '%s' is one too many: plug-ins can register %d", row->name, CTI_MAX_REGISTERED_OPS);
    }
    slot *s = &slots[id - CT_OP_COUNT];
    if (have == NULL) {
        s->op = *row;
        s->op.id = id;
    }
    (void)atomic_fetch_add_explicit(&s->n_users, 1, memory_order_release);
    *out_id = id;
    return CT_OK;
}

ct_status cti_op_register(const ct_op *row, int32_t *out_id, ct_err *err)
{
    CT_TRY(cti_op_check(row, err));
    (void)pthread_mutex_lock(&lock);
    const ct_status st = take_slot(row, out_id, err);
    (void)pthread_mutex_unlock(&lock);
    return st;
}

void cti_op_release(int32_t id)
{
    CT_ASSERT(cti_op_registered(id) != NULL);
    (void)pthread_mutex_lock(&lock);
    (void)atomic_fetch_sub_explicit(&slots[id - CT_OP_COUNT].n_users, 1, memory_order_release);
    (void)pthread_mutex_unlock(&lock);
}
