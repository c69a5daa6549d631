/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors: tensors, scalars, arrays and lists. What is destroyed stays recognisable for a while, so that
 * its use is told by name. */
#include "nnop.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- objects ---- */

enum { BUCKETS = 1 << 14, QUARANTINE = 1 << 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_object *buckets[BUCKETS];
static struct fake_object *quarantine[QUARANTINE];
static unsigned made, ended;

static struct fake_object **bucket_of(const void *object)
{
    uintptr_t x = (uintptr_t)object >> 4;
    return &buckets[(x ^ x >> 14) % BUCKETS];
}

/* Under the lock: whether the pointer is an object, living or destroyed. */
static struct fake_object *find(const void *object)
{
    struct fake_object *o = *bucket_of(object);
    while (o && o != object) {
        o = o->next;
    }
    return o;
}

void *fake_object_new(enum fake_kind kind, size_t size)
{
    struct fake_object *o = calloc(1, size);
    if (!o) {
        return NULL;
    }
    o->kind = kind;
    pthread_mutex_lock(&lock);
    o->number = ++made;
    struct fake_object **b = bucket_of(o);
    o->next = *b;
    *b = o;
    pthread_mutex_unlock(&lock);
    fake_live(kind, 1);
    return o;
}

void fake_object_end(void *object)
{
    struct fake_object *o = object, *old = NULL;
    pthread_mutex_lock(&lock);
    o->dead = true;
    unsigned at = ended++ % QUARANTINE;
    old = quarantine[at];
    quarantine[at] = o;
    if (old) {
        struct fake_object **b = bucket_of(old);
        while (*b != old) {
            b = &(*b)->next;
        }
        *b = old->next;
    }
    enum fake_kind kind = o->kind;
    pthread_mutex_unlock(&lock);
    free(old);
    fake_live(kind, -1);
}

static const char *kind_name(enum fake_kind kind)
{
    static const char *const names[FAKE_KIND_COUNT] = {
        [FAKE_TENSOR] = "aclTensor",          [FAKE_SCALAR] = "aclScalar",
        [FAKE_INT_ARRAY] = "aclIntArray",     [FAKE_FLOAT_ARRAY] = "aclFloatArray",
        [FAKE_BOOL_ARRAY] = "aclBoolArray",   [FAKE_TENSOR_LIST] = "aclTensorList",
        [FAKE_SCALAR_LIST] = "aclScalarList", [FAKE_EXECUTOR] = "aclOpExecutor",
        [FAKE_REPEATABLE] = "aclOpExecutor",
    };
    return names[kind] ? names[kind] : "handle";
}

void *fake_object_use(const void *object, enum fake_kind kind, const char *where, const char *what)
{
    pthread_mutex_lock(&lock);
    struct fake_object *o = find(object);
    bool known = o && (o->kind == kind || (kind == FAKE_EXECUTOR && o->kind == FAKE_REPEATABLE));
    bool dead = known && o->dead;
    unsigned number = o ? o->number : 0;
    pthread_mutex_unlock(&lock);
    if (!known) {
        fake_trap(FAKE_R_DESC_NOT_A_HANDLE, "%s: '%s' is %p, which is no %s", where, what,
                  (const void *)object, kind_name(kind));
        return NULL;
    }
    if (dead) {
        fake_trap(kind == FAKE_EXECUTOR ? FAKE_R_EXEC_TWICE : FAKE_R_DESC_USE_AFTER_DESTROY,
                  "%s: '%s' is %s %u, which was %s", where, what, kind_name(kind), number,
                  kind == FAKE_EXECUTOR ? "used up by phase 2 or destroyed" : "destroyed");
        return NULL;
    }
    return o;
}

bool fake_object_hold(const void *object, unsigned number, int planned, int repeated)
{
    pthread_mutex_lock(&lock);
    struct fake_object *o = find(object);
    bool lives = o && !o->dead && o->number == number;
    if (lives) {
        o->planned += planned;
        o->repeated += repeated;
    }
    pthread_mutex_unlock(&lock);
    return lives;
}

/* For a destroyer: the object where it may end now. */
static void *ending(const void *object, enum fake_kind kind, const char *where)
{
    pthread_mutex_lock(&lock);
    struct fake_object *o = find(object);
    bool twice = o && o->dead && o->kind == kind;
    unsigned number = o ? o->number : 0;
    pthread_mutex_unlock(&lock);
    if (twice) {
        fake_trap(FAKE_R_DESC_DESTROY_TWICE, "%s: %s %u was destroyed already, alone or with its list", where,
                  kind_name(kind), number);
        return NULL;
    }
    o = fake_object_use(object, kind, where, "object");
    if (!o) {
        return NULL;
    }
    if (o->in_list) {
        fake_trap(FAKE_R_DESC_DESTROY_MEMBER, "%s: %s %u belongs to a list, which destroys it", where,
                  kind_name(kind), number);
        return NULL;
    }
    if (o->repeated > 0) {
        fake_trap(FAKE_R_DESC_DESTROYED_BETWEEN, "%s: a repeatable executor still uses %s %u", where,
                  kind_name(kind), number);
        return NULL;
    }
    return o;
}

static aclnnStatus destroy(const void *object, enum fake_kind kind, const char *where)
{
    void *o = object ? ending(object, kind, where) : NULL;
    if (o && kind != FAKE_TENSOR && kind != FAKE_SCALAR) {
        free(((struct fake_array *)o)->of.ints);
    }
    if (o) {
        fake_object_end(o);
    }
    return ACLNN_OK;
}

/* ---- tensors ---- */

static int64_t product(const int64_t *dim, uint64_t n)
{
    int64_t r = 1;
    for (uint64_t d = 0; d < n; d++) {
        r = dim[d] < 0 ? r : r * dim[d];
    }
    return r;
}

static void describe(struct aclTensor *t, const int64_t *dims, uint64_t ndims, aclDataType dtype,
                     const int64_t *stride, int64_t offset, aclFormat format, const int64_t *storage,
                     uint64_t nstorage, void *data)
{
    fake_view *v = &t->view;
    *v = (fake_view){.dtype = dtype, .offset = offset, .addr = data, .storage = product(storage, nstorage)};
    t->format = format;
    t->bad_dims = false;
    t->true_ndim = ndims > 1000 ? 1000 : (int)ndims;
    v->ndim = ndims > FAKE_RANK_MAX ? 0 : (int)ndims;
    int64_t dense = 1;
    for (int d = (int)v->ndim - 1; d >= 0; d--) {
        v->dim[d] = dims[d];
        v->stride[d] = stride ? stride[d] : dense;
        dense *= dims[d];
        t->bad_dims = t->bad_dims || dims[d] < 0;
    }
    t->storage_ndim = nstorage > FAKE_RANK_MAX ? FAKE_RANK_MAX : (int)nstorage;
    for (int d = 0; d < t->storage_ndim; d++) {
        t->storage_dim[d] = storage[d];
        t->bad_dims = t->bad_dims || storage[d] < 0;
    }
}

FAKE_API aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType,
                                    const int64_t *stride, int64_t offset, aclFormat format,
                                    const int64_t *storageDims, uint64_t storageDimsNum, void *tensorData)
{
    fake_count("aclCreateTensor");
    if ((!viewDims && viewDimsNum > 0) || (!storageDims && storageDimsNum > 0)) {
        return NULL;
    }
    struct aclTensor *t = fake_object_new(FAKE_TENSOR, sizeof *t);
    if (t) {
        describe(t, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims, storageDimsNum,
                 tensorData);
    }
    return t;
}

static struct aclTensor *between(aclTensor *tensor, const char *where)
{
    struct aclTensor *t = fake_object_use(tensor, FAKE_TENSOR, where, "tensor");
    if (t && t->object.planned > 0) {
        fake_trap(FAKE_R_DESC_ADDRESS_BETWEEN, "%s: an executor between its phases uses aclTensor %u", where,
                  t->object.number);
        return NULL;
    }
    return t;
}

FAKE_API aclnnStatus aclInitTensor(aclTensor *tensor, const int64_t *viewDims, uint64_t viewDimsNum,
                                   aclDataType dataType, const int64_t *stride, int64_t offset,
                                   aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum,
                                   void *tensorDataAddr)
{
    if (!tensor || (!viewDims && viewDimsNum > 0) || (!storageDims && storageDimsNum > 0)) {
        return fake_code(FAKE_R_ACLNN_NULL_OPERAND, ACLNN_NULLPTR, "aclInitTensor: tensor or dims are NULL");
    }
    struct aclTensor *t = between(tensor, "aclInitTensor");
    if (t) {
        describe(t, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims, storageDimsNum,
                 tensorDataAddr);
    }
    return ACLNN_OK;
}

FAKE_API aclnnStatus aclDestroyTensor(const aclTensor *tensor)
{
    return destroy(tensor, FAKE_TENSOR, "aclDestroyTensor");
}

FAKE_API aclnnStatus aclSetRawTensorAddr(aclTensor *tensor, void *addr)
{
    struct aclTensor *t = tensor ? between(tensor, "aclSetRawTensorAddr") : NULL;
    if (t) {
        t->view.addr = addr;
    }
    return tensor
               ? ACLNN_OK
               : fake_code(FAKE_R_ACLNN_NULL_OPERAND, ACLNN_NULLPTR, "aclSetRawTensorAddr: tensor is NULL");
}

/* The tensor of a getter, or NULL with the code in *status. */
static const struct aclTensor *asked(const aclTensor *tensor, const void *out, const char *where,
                                     aclnnStatus *status)
{
    if (!tensor || !out) {
        *status = fake_code(FAKE_R_ACLNN_NULL_OPERAND, ACLNN_NULLPTR, "%s: tensor or result is NULL", where);
        return NULL;
    }
    *status = ACLNN_OK;
    return fake_object_use(tensor, FAKE_TENSOR, where, "tensor");
}

FAKE_API aclnnStatus aclGetRawTensorAddr(const aclTensor *tensor, void **addr)
{
    aclnnStatus status;
    const struct aclTensor *t = asked(tensor, addr, "aclGetRawTensorAddr", &status);
    if (t) {
        *addr = t->view.addr;
    }
    return status;
}

/* What callers get is theirs and can't be given back from C: it stays reachable here instead. */
static int64_t *kept_copy(const int64_t *from, int n)
{
    static struct kept {
        struct kept *next;
        int64_t values[FAKE_RANK_MAX];
    } * all;
    struct kept *k = calloc(1, sizeof *k);
    if (!k) {
        return NULL;
    }
    memcpy(k->values, from, (size_t)n * sizeof *from);
    pthread_mutex_lock(&lock);
    k->next = all;
    all = k;
    pthread_mutex_unlock(&lock);
    return k->values;
}

FAKE_API aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **viewDims, uint64_t *viewDimsNum)
{
    aclnnStatus status;
    const struct aclTensor *t =
        asked(tensor, viewDims && viewDimsNum ? viewDims : NULL, "aclGetViewShape", &status);
    if (t) {
        *viewDims = kept_copy(t->view.dim, t->view.ndim);
        *viewDimsNum = (uint64_t)t->view.ndim;
    }
    return status;
}

FAKE_API aclnnStatus aclGetViewStrides(const aclTensor *tensor, int64_t **stridesValue, uint64_t *stridesNum)
{
    aclnnStatus status;
    const struct aclTensor *t =
        asked(tensor, stridesValue && stridesNum ? stridesValue : NULL, "aclGetViewStrides", &status);
    if (t) {
        *stridesValue = kept_copy(t->view.stride, t->view.ndim);
        *stridesNum = (uint64_t)t->view.ndim;
    }
    return status;
}

FAKE_API aclnnStatus aclGetStorageShape(const aclTensor *tensor, int64_t **storageDims,
                                        uint64_t *storageDimsNum)
{
    aclnnStatus status;
    const struct aclTensor *t =
        asked(tensor, storageDims && storageDimsNum ? storageDims : NULL, "aclGetStorageShape", &status);
    if (t) {
        *storageDims = kept_copy(t->storage_dim, t->storage_ndim);
        *storageDimsNum = (uint64_t)t->storage_ndim;
    }
    return status;
}

#define GETTER(Name, Type, value)                                       \
    FAKE_API aclnnStatus Name(const aclTensor *tensor, Type *out)       \
    {                                                                   \
        aclnnStatus status;                                             \
        const struct aclTensor *t = asked(tensor, out, #Name, &status); \
        if (t) {                                                        \
            *out = (value);                                             \
        }                                                               \
        return status;                                                  \
    }
GETTER(aclGetViewOffset, int64_t, t->view.offset)
GETTER(aclGetFormat, aclFormat, t->format)
GETTER(aclGetDataType, aclDataType, t->view.dtype)

/* ---- scalars, arrays, lists ---- */

FAKE_API aclScalar *aclCreateScalar(void *value, aclDataType dataType)
{
    if (!value) {
        return NULL;
    }
    struct aclScalar *s = fake_object_new(FAKE_SCALAR, sizeof *s);
    if (s) {
        char element[16] = {0};
        s->dtype = dataType;
        size_t size = fake_dtype_size(dataType);
        memcpy(element, value, size);
        if (size > 0) {
            fake_view v = {.dtype = dataType, .addr = element};
            fake_load_f64(&v, &s->d);
            if (!fake_dtype_is_float(dataType)) {
                fake_load_i64(&v, &s->i);
            }
        }
    }
    return s;
}

FAKE_API aclnnStatus aclDestroyScalar(const aclScalar *scalar)
{
    return destroy(scalar, FAKE_SCALAR, "aclDestroyScalar");
}

static struct fake_array *array_new(enum fake_kind kind, const void *value, uint64_t n, size_t size)
{
    if (!value && n > 0) {
        return NULL;
    }
    struct fake_array *a = fake_object_new(kind, sizeof *a);
    if (a) {
        a->n = n;
        a->of.ints = calloc(n + 1, size);
        if (a->of.ints && n > 0) {
            memcpy(a->of.ints, value, n * size);
        }
    }
    return a;
}

static aclnnStatus array_size(const void *array, enum fake_kind kind, uint64_t *size, const char *where)
{
    if (!array || !size) {
        return fake_code(FAKE_R_ACLNN_NULL_OPERAND, ACLNN_NULLPTR, "%s: array or result is NULL", where);
    }
    const struct fake_array *a = fake_object_use(array, kind, where, "array");
    *size = a ? a->n : 0;
    return ACLNN_OK;
}

#define ARRAY(Name, Element, KIND)                                                  \
    FAKE_API acl##Name *aclCreate##Name(const Element *value, uint64_t size)        \
    {                                                                               \
        return (acl##Name *)array_new(KIND, value, size, sizeof(Element));          \
    }                                                                               \
    FAKE_API aclnnStatus aclDestroy##Name(const acl##Name *array)                   \
    {                                                                               \
        return destroy(array, KIND, "aclDestroy" #Name);                            \
    }                                                                               \
    FAKE_API aclnnStatus aclGet##Name##Size(const acl##Name *array, uint64_t *size) \
    {                                                                               \
        return array_size(array, KIND, size, "aclGet" #Name "Size");                \
    }
ARRAY(IntArray, int64_t, FAKE_INT_ARRAY)
ARRAY(FloatArray, float, FAKE_FLOAT_ARRAY)
ARRAY(BoolArray, bool, FAKE_BOOL_ARRAY)

static struct fake_array *list_new(enum fake_kind kind, enum fake_kind member, const void *value, uint64_t n,
                                   const char *where)
{
    struct fake_array *a = array_new(kind, value, n, sizeof(void *));
    for (uint64_t i = 0; a && i < n; i++) {
        struct fake_object *o = fake_object_use(a->of.members[i], member, where, "member");
        if (o) {
            o->in_list = true;
        }
    }
    return a;
}

static aclnnStatus list_destroy(const void *list, enum fake_kind kind, enum fake_kind member,
                                const char *where)
{
    struct fake_array *a = list ? ending(list, kind, where) : NULL;
    for (uint64_t i = 0; a && i < a->n; i++) {
        pthread_mutex_lock(&lock);
        struct fake_object *o = find(a->of.members[i]);
        bool gone = !o || o->dead;
        if (!gone) {
            o->in_list = false;
        }
        pthread_mutex_unlock(&lock);
        if (gone) {
            fake_trap(FAKE_R_DESC_DESTROY_MEMBER,
                      "%s: member %llu stands twice in the list, or another list destroyed it", where,
                      (unsigned long long)i);
            continue;
        }
        destroy(o, member, where);
    }
    if (a) {
        free(a->of.members);
        fake_object_end(a);
    }
    return ACLNN_OK;
}

#define LIST(Name, Member, KIND, MEMBER)                                            \
    FAKE_API acl##Name *aclCreate##Name(const Member *const *value, uint64_t size)  \
    {                                                                               \
        return (acl##Name *)list_new(KIND, MEMBER, value, size, "aclCreate" #Name); \
    }                                                                               \
    FAKE_API aclnnStatus aclDestroy##Name(const acl##Name *list)                    \
    {                                                                               \
        return list_destroy(list, KIND, MEMBER, "aclDestroy" #Name);                \
    }                                                                               \
    FAKE_API aclnnStatus aclGet##Name##Size(const acl##Name *list, uint64_t *size)  \
    {                                                                               \
        return array_size(list, KIND, size, "aclGet" #Name "Size");                 \
    }
LIST(TensorList, aclTensor, FAKE_TENSOR_LIST, FAKE_TENSOR)
LIST(ScalarList, aclScalar, FAKE_SCALAR_LIST, FAKE_SCALAR)
