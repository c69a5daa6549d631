/* SPDX-License-Identifier: Apache-2.0 */
/* Operators called as text. */
#include "callers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *ops_stream;
static uint64_t random_state = 1;

#define MUST(x)                                                                                            \
    do {                                                                                                   \
        int must_ = (x);                                                                                   \
        if (must_ != 0) {                                                                                  \
            const char *text_ = aclGetRecentErrMsg();                                                      \
            fprintf(stderr, "%s:%d: %s gave %d: %s\n", __FILE__, __LINE__, #x, must_, text_ ? text_ : ""); \
            abort();                                                                                       \
        }                                                                                                  \
    } while (0)

void ops_begin(void)
{
    setenv("ASCEND_OPP_PATH", "/opp", 1);
    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(0));
    MUST(aclrtCreateStream(&ops_stream));
}

void ops_seed(uint64_t seed)
{
    random_state = seed * 2654435761u + 1;
}

static double uniform(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (double)(random_state >> 11) / (double)(1ull << 53);
}

/* ---- reading the text ---- */

static const struct {
    const char *name;
    aclDataType dtype;
} dtypes[] = {{"f32", ACL_FLOAT}, {"f16", ACL_FLOAT16}, {"bf16", ACL_BF16},  {"f64", ACL_DOUBLE},
              {"i8", ACL_INT8},   {"i16", ACL_INT16},   {"i32", ACL_INT32},  {"i64", ACL_INT64},
              {"u8", ACL_UINT8},  {"bool", ACL_BOOL},   {"u64", ACL_UINT64}, {"c64", ACL_COMPLEX64}};

static const char *read_dtype(const char *text, aclDataType *out)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        size_t n = strlen(dtypes[i].name);
        if (strncmp(text, dtypes[i].name, n) == 0 && !(text[n] >= '0' && text[n] <= '9')) {
            *out = dtypes[i].dtype;
            return text + n;
        }
    }
    fprintf(stderr, "no dtype: %s\n", text);
    abort();
}

static const char *read_ints(const char *text, int64_t *out, int *n)
{
    *n = 0;
    char *end = (char *)(uintptr_t)text;
    while ((*end >= '0' && *end <= '9') || *end == '-') {
        int64_t v = strtoll(end, &end, 10);
        if (*n < 64) {
            out[*n] = v;
        }
        ++*n;
        if (*end != ',') {
            break;
        }
        end++;
    }
    return end;
}

/* dtype:dims[/strides][@offset] */
static const char *read_view(const char *text, fake_view *v)
{
    aclDataType dtype;
    int64_t dim[64], stride[64];
    int ndim = 0, nstride;
    text = read_dtype(text, &dtype) + 1;
    if (text[0] == '-' && (text[1] == '\0' || text[1] == '/' || text[1] == ';' || text[1] == '@')) {
        text++;
    } else {
        text = read_ints(text, dim, &ndim);
    }
    *v = fake_view_dense(dtype, ndim > FAKE_RANK_MAX ? FAKE_RANK_MAX : ndim, dim, NULL);
    v->ndim = ndim;
    if (*text == '/') {
        text = read_ints(text + 1, stride, &nstride);
        memcpy(v->stride, stride, (size_t)nstride * sizeof *stride);
    }
    if (*text == '@') {
        v->offset = strtoll(text + 1, (char **)(uintptr_t)&text, 10);
    }
    int64_t lo, hi;
    fake_view known = *v;
    known.ndim = ndim > FAKE_RANK_MAX ? FAKE_RANK_MAX : ndim;
    fake_view_span(&known, &lo, &hi);
    v->storage = hi;
    return text;
}

/* ---- tensors ---- */

/* The whole storage, gaps too. */
static void fill(const fake_view *v)
{
    fake_view all = fake_view_dense(v->dtype, 1, &v->storage, v->addr);
    double *x = malloc((size_t)(v->storage + 1) * sizeof *x);
    for (int64_t i = 0; i < v->storage; i++) {
        double u = uniform();
        x[i] = v->dtype == ACL_BOOL ? u < 0.5 : fake_dtype_is_float(v->dtype) ? 2 * u - 1 : floor(u * 3);
    }
    fake_store_f64(&all, x);
    free(x);
}

static void *upload(const void *host, size_t bytes)
{
    void *device = NULL;
    if (bytes > 0) {
        MUST(aclrtMalloc(&device, bytes, 0));
        MUST(aclrtMemcpy(device, bytes, host, bytes, 1));
    }
    return device;
}

static aclTensor *describe(const fake_view *v, void *device)
{
    int64_t dim[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    bool wide = v->ndim > FAKE_RANK_MAX;
    memcpy(dim, v->dim, sizeof v->dim);
    return aclCreateTensor(v->ndim ? dim : NULL, (uint64_t)v->ndim, v->dtype,
                           wide || v->ndim == 0 ? NULL : v->stride, v->offset, ACL_FORMAT_ND, &v->storage, 1,
                           device);
}

static void make_tensor(operand *a, const char *text)
{
    read_view(text, &a->view);
    size_t size = fake_dtype_size(a->view.dtype);
    a->bytes = (size_t)a->view.storage * (size ? size : 8);
    a->host = calloc(1, a->bytes + 8);
    a->view.addr = a->host;
    if (size > 0) {
        fill(&a->view);
    }
    a->device = upload(a->host, a->bytes);
    a->tensor = describe(&a->view, a->device);
}

static void make_list(operand *a, const char *text)
{
    const aclTensor *tensors[OP_LIST];
    char *host[OP_LIST];
    size_t total = 0;
    do {
        fake_view *v = &a->members[a->nmembers];
        text = read_view(text, v);
        size_t bytes = (size_t)v->storage * fake_dtype_size(v->dtype);
        host[a->nmembers] = calloc(1, bytes + 8);
        v->addr = host[a->nmembers];
        fill(v);
        tensors[a->nmembers] = describe(v, upload(v->addr, bytes));
        total += bytes;
        a->nmembers++;
    } while (*text++ == ';');
    a->bytes = total;
    a->list = aclCreateTensorList(tensors, (uint64_t)a->nmembers);
}

static void make_operand(operand *a, const char *word)
{
    size_t n = strcspn(word, ":=~$[%\"{");
    snprintf(a->name, sizeof a->name, "%.*s", (int)n, word);
    const char *rest = word + n + 1;
    switch (word[n]) {
    case ':':
        if (strcmp(rest, "null") != 0) {
            make_tensor(a, rest);
        }
        break;
    case '=':
        a->i = strtoll(rest, NULL, 10);
        break;
    case '~':
        a->d = strtod(rest, NULL);
        break;
    case '$': {
        char element[8] = {0};
        fake_view v = {.addr = element};
        a->d = strtod(read_dtype(rest, &v.dtype) + 1, NULL);
        fake_store_f64(&v, &a->d);
        a->scalar = aclCreateScalar(element, v.dtype);
        break;
    }
    case '[': {
        int64_t ints[64];
        int count;
        read_ints(rest, ints, &count);
        a->ints = aclCreateIntArray(ints, (uint64_t)count);
        break;
    }
    case '%':
        read_dtype(rest, &a->dtype);
        break;
    case '"':
        snprintf(a->text, sizeof a->text, "%s", rest);
        break;
    case '{':
        make_list(a, rest);
        break;
    }
}

op *op_new_with(const char *name, const char *operands, const char *changes)
{
    char words[4096], other[1024], *save = NULL;
    op *o = calloc(1, sizeof *o);
    o->name = name;
    snprintf(words, sizeof words, "%s", operands);
    for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        size_t n = strcspn(w, ":=~$[%\"{");
        char *inner = NULL, *use = w;
        snprintf(other, sizeof other, "%s", changes);
        for (char *x = strtok_r(other, " ", &inner); x; x = strtok_r(NULL, " ", &inner)) {
            use = strncmp(x, w, n) == 0 && strcspn(x, ":=~$[%\"{") == n ? x : use;
        }
        make_operand(&o->at[o->n++], use);
    }
    return o;
}

op *op_new(const char *name, const char *operands)
{
    return op_new_with(name, operands, "");
}

operand *op_find(op *o, const char *name)
{
    for (int i = 0; i < o->n; i++) {
        if (strcmp(o->at[i].name, name) == 0) {
            return &o->at[i];
        }
    }
    fprintf(stderr, "%s has no operand '%s'\n", o->name, name);
    abort();
}

double *operand_get(const operand *a)
{
    double *x = malloc((size_t)(fake_view_count(&a->view) + 1) * sizeof *x);
    fake_load_f64(&a->view, x);
    return x;
}

double *op_get(op *o, const char *name)
{
    return operand_get(op_find(o, name));
}

void op_set(op *o, const char *name, const double *values)
{
    operand *a = op_find(o, name);
    fake_store_f64(&a->view, values);
    MUST(aclrtMemcpy(a->device, a->bytes, a->host, a->bytes, 1));
}

/* ---- calls ---- */

static const struct op_caller *caller_of(const op *o)
{
    for (size_t i = 0; i < sizeof op_callers / sizeof op_callers[0]; i++) {
        if (strcmp(op_callers[i].name, o->name) == 0) {
            return &op_callers[i];
        }
    }
    fprintf(stderr, "no caller for %s\n", o->name);
    abort();
}

int op_phase1(op *o)
{
    int r = caller_of(o)->phase1(o->at, &o->workspace_size, &o->executor);
    if (r == 0 && o->workspace_size > 0) {
        MUST(aclrtMalloc(&o->workspace, o->workspace_size, 0));
    }
    return r;
}

int op_phase2(op *o)
{
    int r = caller_of(o)->phase2(o->workspace, o->workspace_size, o->executor, ops_stream);
    return r;
}

void op_fetch(op *o)
{
    for (int i = 0; i < o->n; i++) {
        operand *a = &o->at[i];
        if (a->device) {
            MUST(aclrtMemcpy(a->host, a->bytes, a->device, a->bytes, 2));
        }
    }
}

int op_run(op *o)
{
    int r = op_phase1(o);
    if (r == 0) {
        r = op_phase2(o);
        o->executor = NULL;
    }
    if (r == 0) {
        r = aclrtSynchronizeStream(ops_stream);
    }
    if (r == 0) {
        op_fetch(o);
    }
    return r;
}

void op_free_descriptors(op *o)
{
    for (int i = 0; i < o->n; i++) {
        operand *a = &o->at[i];
        aclDestroyTensor(a->tensor);
        aclDestroyScalar(a->scalar);
        aclDestroyIntArray(a->ints);
        aclDestroyTensorList(a->list);
        a->tensor = NULL;
        a->scalar = NULL;
        a->ints = NULL;
        a->list = NULL;
    }
}

void op_free(op *o)
{
    op_free_descriptors(o);
    for (int i = 0; i < o->n; i++) {
        free(o->at[i].host);
        for (int k = 0; k < o->at[i].nmembers; k++) {
            free(o->at[i].members[k].addr);
        }
        if (o->at[i].device) {
            MUST(aclrtFree(o->at[i].device));
        }
    }
    if (o->workspace) {
        MUST(aclrtFree(o->workspace));
    }
    free(o);
}

double ops_unit(aclDataType dtype)
{
    return dtype == ACL_BF16      ? 0x1p-8
           : dtype == ACL_FLOAT16 ? 0x1p-11
           : dtype == ACL_DOUBLE  ? 0x1p-53
                                  : 0x1p-24;
}

double ops_sum_bound(int64_t n, double terms)
{
    return (double)(n + 2) * 0x1p-24 * terms;
}

bool ops_close(const char *what, const double *got, const double *want, int64_t n, double relative,
               double absolute)
{
    for (int64_t i = 0; i < n; i++) {
        double bound = relative * fabs(want[i]) + absolute;
        if (!(fabs(got[i] - want[i]) <= bound) && !(isnan(got[i]) && isnan(want[i])) &&
            !(isinf(want[i]) && got[i] == want[i])) {
            fprintf(stderr, "%s: element %lld is %.9g, wanted %.9g within %.3g\n", what, (long long)i, got[i],
                    want[i], bound);
            return false;
        }
    }
    return true;
}
