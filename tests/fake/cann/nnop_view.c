/* SPDX-License-Identifier: Apache-2.0 */
/* Strided views: their dims, whether they meet, and their elements in dense arrays. */
#include "nnop_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t fake_dtype_size(aclDataType dtype)
{
    switch (dtype) {
    case ACL_DOUBLE:
    case ACL_INT64:
    case ACL_UINT64:
        return 8;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
        return 4;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
        return 2;
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
        return 1;
    case ACL_DT_UNDEFINED:
    case ACL_COMPLEX64:
    case ACL_COMPLEX128:
        break;
    }
    return 0;
}

const char *fake_dtype_name(aclDataType dtype)
{
    switch (dtype) {
    case ACL_DOUBLE:
        return "DOUBLE";
    case ACL_INT64:
        return "INT64";
    case ACL_UINT64:
        return "UINT64";
    case ACL_FLOAT:
        return "FLOAT";
    case ACL_INT32:
        return "INT32";
    case ACL_UINT32:
        return "UINT32";
    case ACL_FLOAT16:
        return "FLOAT16";
    case ACL_BF16:
        return "BFLOAT16";
    case ACL_INT16:
        return "INT16";
    case ACL_UINT16:
        return "UINT16";
    case ACL_INT8:
        return "INT8";
    case ACL_UINT8:
        return "UINT8";
    case ACL_BOOL:
        return "BOOL";
    case ACL_COMPLEX64:
        return "COMPLEX64";
    case ACL_COMPLEX128:
        return "COMPLEX128";
    case ACL_DT_UNDEFINED:
        break;
    }
    return "an unknown dtype";
}

bool fake_dtype_is_float(aclDataType dtype)
{
    return dtype == ACL_FLOAT || dtype == ACL_FLOAT16 || dtype == ACL_BF16 || dtype == ACL_DOUBLE;
}

int64_t fake_view_count(const fake_view *v)
{
    int64_t n = 1;
    for (int d = 0; d < v->ndim; d++) {
        n *= v->dim[d];
    }
    return n;
}

bool fake_view_is_contiguous(const fake_view *v)
{
    int64_t want = 1;
    for (int d = v->ndim - 1; d >= 0; d--) {
        if (v->dim[d] == 0) {
            return true;
        }
        if (v->dim[d] > 1 && v->stride[d] != want) {
            return false;
        }
        want *= v->dim[d];
    }
    return true;
}

void fake_view_span(const fake_view *v, int64_t *lo, int64_t *hi)
{
    *lo = *hi = v->offset;
    for (int d = 0; d < v->ndim; d++) {
        if (v->dim[d] == 0) {
            *hi = *lo = v->offset;
            return;
        }
        int64_t far = (v->dim[d] - 1) * v->stride[d];
        if (far < 0) {
            *lo += far;
        } else {
            *hi += far;
        }
    }
    *hi += 1;
}

bool fake_view_same_dims(const fake_view *a, const fake_view *b)
{
    return a->ndim == b->ndim &&
           (a->ndim == 0 || memcmp(a->dim, b->dim, (size_t)a->ndim * sizeof a->dim[0]) == 0);
}

bool fake_view_equal(const fake_view *a, const fake_view *b)
{
    size_t size = fake_dtype_size(a->dtype);
    if (size != fake_dtype_size(b->dtype) || !fake_view_same_dims(a, b) ||
        (char *)a->addr + a->offset * (int64_t)size != (char *)b->addr + b->offset * (int64_t)size) {
        return false;
    }
    for (int d = 0; d < a->ndim; d++) {
        if (a->dim[d] > 1 && a->stride[d] != b->stride[d]) {
            return false;
        }
    }
    return true;
}

bool fake_view_broadcast(const fake_view *v, int ndim, const int64_t *dim, fake_view *out)
{
    if (v->ndim > ndim) {
        return false;
    }
    fake_view r = *v;
    r.ndim = ndim;
    for (int d = 0; d < ndim; d++) {
        int from = d - (ndim - v->ndim);
        r.dim[d] = dim[d];
        if (from < 0 || (v->dim[from] == 1 && dim[d] != 1)) {
            r.stride[d] = 0;
        } else if (v->dim[from] == dim[d]) {
            r.stride[d] = v->stride[from];
        } else {
            return false;
        }
    }
    *out = r;
    return true;
}

fake_view fake_view_dense(aclDataType dtype, int ndim, const int64_t *dim, void *addr)
{
    fake_view v = {.dtype = dtype, .ndim = ndim, .addr = addr};
    int64_t stride = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        v.dim[d] = dim[d];
        v.stride[d] = stride;
        stride *= dim[d];
    }
    v.storage = stride;
    return v;
}

/* Calls `row` for runs of elements along the last dim: the offset of the first, elements, stride, and the
 * number of the first in row-major order. */
typedef void row_fn(void *context, int64_t offset, int64_t n, int64_t stride, int64_t number);

/* A transposed matrix in strips of 32 columns, so that what was fetched for one row serves the next. */
static void each_strip(const fake_view *v, row_fn *row, void *context)
{
    enum { STRIP = 32 };
    for (int64_t j = 0; j < v->dim[1]; j += STRIP) {
        int64_t n = v->dim[1] - j < STRIP ? v->dim[1] - j : STRIP;
        for (int64_t i = 0; i < v->dim[0]; i++) {
            row(context, v->offset + i * v->stride[0] + j * v->stride[1], n, v->stride[1], i * v->dim[1] + j);
        }
    }
}

static void each_row(const fake_view *v, row_fn *row, void *context)
{
    if (fake_view_count(v) == 0) {
        return;
    }
    if (v->ndim == 2 && v->stride[0] == 1 && v->stride[1] != 1) {
        each_strip(v, row, context);
        return;
    }
    int outer = v->ndim > 0 ? v->ndim - 1 : 0;
    int64_t n = v->ndim > 0 ? v->dim[outer] : 1, stride = v->ndim > 0 ? v->stride[outer] : 1;
    int64_t at[FAKE_RANK_MAX] = {0}, offset = v->offset, number = 0;
    for (;;) {
        row(context, offset, n, stride, number);
        number += n;
        int d = outer - 1;
        for (; d >= 0; d--) {
            offset += v->stride[d];
            if (++at[d] < v->dim[d]) {
                break;
            }
            offset -= v->stride[d] * v->dim[d];
            at[d] = 0;
        }
        if (d < 0) {
            return;
        }
    }
}

/* ---- sets of bytes ---- */

typedef struct marks {
    unsigned char *seen; /* one flag a byte of [base, base + n) */
    char *first;         /* address of the view's element 0 */
    char *base;
    int64_t n, size;
    bool met, set;
} marks;

static void mark_row(void *context, int64_t offset, int64_t n, int64_t stride, int64_t number)
{
    (void)number;
    marks *m = context;
    for (int64_t i = 0; i < n && !(m->met && !m->set); i++) {
        int64_t at = m->first + (offset + i * stride) * m->size - m->base;
        for (int64_t b = 0; b < m->size; b++, at++) {
            if (at < 0 || at >= m->n) {
                continue;
            }
            m->met = m->met || m->seen[at];
            if (m->set) {
                m->seen[at] = 1;
            }
        }
    }
}

bool fake_view_overlaps_itself(const fake_view *v)
{
    int64_t lo, hi;
    fake_view_span(v, &lo, &hi);
    if (fake_view_is_contiguous(v) || lo == hi) {
        return false;
    }
    marks m = {.seen = calloc(1, (size_t)(hi - lo)), .n = hi - lo, .size = 1, .set = true};
    m.first = v->addr;
    m.base = m.first + lo;
    each_row(v, mark_row, &m);
    free(m.seen);
    return m.met;
}

static void bytes_of(const fake_view *v, char **lo, char **hi)
{
    int64_t a, b, size = (int64_t)fake_dtype_size(v->dtype);
    fake_view_span(v, &a, &b);
    *lo = (char *)v->addr + a * size;
    *hi = (char *)v->addr + b * size;
}

bool fake_view_meet(const fake_view *a, const fake_view *b)
{
    char *alo, *ahi, *blo, *bhi;
    bytes_of(a, &alo, &ahi);
    bytes_of(b, &blo, &bhi);
    char *lo = alo > blo ? alo : blo, *hi = ahi < bhi ? ahi : bhi;
    if (lo >= hi) {
        return false;
    }
    if (fake_view_is_contiguous(a) && fake_view_is_contiguous(b)) {
        return true;
    }
    marks m = {.seen = calloc(1, (size_t)(hi - lo)), .base = lo, .n = hi - lo, .set = true};
    m.first = a->addr;
    m.size = (int64_t)fake_dtype_size(a->dtype);
    each_row(a, mark_row, &m);
    m.met = m.set = false;
    m.first = b->addr;
    m.size = (int64_t)fake_dtype_size(b->dtype);
    each_row(b, mark_row, &m);
    free(m.seen);
    return m.met;
}

/* ---- elements ---- */

static float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h >> 15) << 31, e = (h >> 10) & 31, m = h & 1023, bits;
    if (e == 31) {
        bits = sign | 0x7f800000u | m << 13;
    } else if (e == 0) {
        float f = ldexpf((float)m, -24);
        return sign ? -f : f;
    } else {
        bits = sign | (e + 112) << 23 | m << 13;
    }
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* From a double, so that nothing is rounded twice. */
static uint16_t f16_from(double x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    x = fabs(x);
    if (isnan(x)) {
        return (uint16_t)(sign | 0x7e00);
    }
    if (x >= 65520.0) {
        return (uint16_t)(sign | 0x7c00);
    }
    int e = x > 0 ? ilogb(x) : -14;
    e = e < -14 ? -14 : e;
    double units = nearbyint(ldexp(x, 10 - e)); /* ties to even: the default rounding mode */
    uint32_t bits = (uint32_t)units + ((uint32_t)(e + 14) << 10);
    return (uint16_t)(sign | bits);
}

static float bf16_to_f32(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static uint16_t bf16_from_f32(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16, nan = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/* To float by rounding to odd, after which rounding to bf16's eight bits is rounding once. */
static uint16_t bf16_from(double x)
{
    float f = (float)x;
    if (isfinite(x) && isfinite(f) && (double)f != x) {
        uint32_t bits;
        memcpy(&bits, &f, 4);
        if (fabs((double)f) > fabs(x)) {
            bits--;
        }
        bits |= 1;
        memcpy(&f, &bits, 4);
    }
    return bf16_from_f32(f);
}

static int64_t to_int(double x, int64_t lo, int64_t hi)
{
    if (isnan(x)) {
        return 0;
    }
    return x <= (double)lo ? lo : x >= (double)hi ? hi : (int64_t)x;
}

static uint16_t f16_from_f32(float x)
{
    return f16_from((double)x);
}

static uint16_t f16_from_i64(int64_t x)
{
    return f16_from((double)x);
}

static uint16_t bf16_from_i64(int64_t x)
{
    return bf16_from((double)x);
}

static int64_t f32_to_int(float x, int64_t lo, int64_t hi)
{
    return to_int((double)x, lo, hi);
}

static int64_t clip(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

double fake_round(double x, aclDataType dtype)
{
    double r = x;
    char element[8];
    fake_view v = {.dtype = dtype, .addr = element};
    fake_store_f64(&v, &x);
    fake_load_f64(&v, &r);
    return r;
}

typedef struct rows {
    const char *at; /* element 0 of the view's storage */
    char *dense;    /* elements in row-major order */
    aclDataType dtype;
} rows;

#define LOAD_CASE(constant, type, value)                            \
    case constant: {                                                \
        const type *p = (const type *)(const void *)r->at + offset; \
        for (int64_t i = 0; stride == 1 && i < n; i++) {            \
            type e = p[i];                                          \
            out[i] = (value);                                       \
        }                                                           \
        for (int64_t i = 0; stride != 1 && i < n; i++) {            \
            type e = p[i * stride];                                 \
            out[i] = (value);                                       \
        }                                                           \
        break;                                                      \
    }
#define NO_ELEMENTS        \
    case ACL_DT_UNDEFINED: \
    case ACL_COMPLEX64:    \
    case ACL_COMPLEX128:   \
        abort()

#define LOADER(name, T)                                                                              \
    static void name##_row(void *context, int64_t offset, int64_t n, int64_t stride, int64_t number) \
    {                                                                                                \
        rows *r = context;                                                                           \
        T *out = (T *)(void *)r->dense + number;                                                     \
        switch (r->dtype) {                                                                          \
            LOAD_CASE(ACL_FLOAT, float, (T)e)                                                        \
            LOAD_CASE(ACL_DOUBLE, double, (T)e)                                                      \
            LOAD_CASE(ACL_FLOAT16, uint16_t, (T)f16_to_f32(e))                                       \
            LOAD_CASE(ACL_BF16, uint16_t, (T)bf16_to_f32(e))                                         \
            LOAD_CASE(ACL_INT8, int8_t, (T)e)                                                        \
            LOAD_CASE(ACL_UINT8, uint8_t, (T)e)                                                      \
            LOAD_CASE(ACL_BOOL, uint8_t, (T)(e != 0))                                                \
            LOAD_CASE(ACL_INT16, int16_t, (T)e)                                                      \
            LOAD_CASE(ACL_UINT16, uint16_t, (T)e)                                                    \
            LOAD_CASE(ACL_INT32, int32_t, (T)e)                                                      \
            LOAD_CASE(ACL_UINT32, uint32_t, (T)e)                                                    \
            LOAD_CASE(ACL_INT64, int64_t, (T)e)                                                      \
            LOAD_CASE(ACL_UINT64, uint64_t, (T)e)                                                    \
            NO_ELEMENTS;                                                                             \
        }                                                                                            \
    }                                                                                                \
    void name(const fake_view *v, T *out)                                                            \
    {                                                                                                \
        rows r = {.at = v->addr, .dense = (char *)out, .dtype = v->dtype};                           \
        each_row(v, name##_row, &r);                                                                 \
    }
LOADER(fake_load_f64, double)
LOADER(fake_load_f32, float)
LOADER(fake_load_i64, int64_t)

#define STORE_CASE(constant, type, value)                    \
    case constant: {                                         \
        type *p = (type *)(void *)(uintptr_t)r->at + offset; \
        for (int64_t i = 0; stride == 1 && i < n; i++) {     \
            p[i] = (type)(value);                            \
        }                                                    \
        for (int64_t i = 0; stride != 1 && i < n; i++) {     \
            p[i * stride] = (type)(value);                   \
        }                                                    \
        break;                                               \
    }
#define STORER(name, T, to_f16, to_bf16, to_i)                                                       \
    static void name##_row(void *context, int64_t offset, int64_t n, int64_t stride, int64_t number) \
    {                                                                                                \
        rows *r = context;                                                                           \
        const T *in = (const T *)(const void *)r->dense + number;                                    \
        switch (r->dtype) {                                                                          \
            STORE_CASE(ACL_FLOAT, float, in[i])                                                      \
            STORE_CASE(ACL_DOUBLE, double, in[i])                                                    \
            STORE_CASE(ACL_FLOAT16, uint16_t, to_f16(in[i]))                                         \
            STORE_CASE(ACL_BF16, uint16_t, to_bf16(in[i]))                                           \
            STORE_CASE(ACL_INT8, int8_t, to_i(in[i], INT8_MIN, INT8_MAX))                            \
            STORE_CASE(ACL_UINT8, uint8_t, to_i(in[i], 0, UINT8_MAX))                                \
            STORE_CASE(ACL_BOOL, uint8_t, in[i] != 0)                                                \
            STORE_CASE(ACL_INT16, int16_t, to_i(in[i], INT16_MIN, INT16_MAX))                        \
            STORE_CASE(ACL_UINT16, uint16_t, to_i(in[i], 0, UINT16_MAX))                             \
            STORE_CASE(ACL_INT32, int32_t, to_i(in[i], INT32_MIN, INT32_MAX))                        \
            STORE_CASE(ACL_UINT32, uint32_t, to_i(in[i], 0, UINT32_MAX))                             \
            STORE_CASE(ACL_INT64, int64_t, to_i(in[i], INT64_MIN, INT64_MAX))                        \
            STORE_CASE(ACL_UINT64, uint64_t, to_i(in[i], 0, INT64_MAX))                              \
            NO_ELEMENTS;                                                                             \
        }                                                                                            \
    }                                                                                                \
    void name(const fake_view *v, const T *in)                                                       \
    {                                                                                                \
        rows r = {.at = v->addr, .dense = (char *)(uintptr_t)in, .dtype = v->dtype};                 \
        each_row(v, name##_row, &r);                                                                 \
    }
STORER(fake_store_f64, double, f16_from, bf16_from, to_int)
STORER(fake_store_f32, float, f16_from_f32, bf16_from_f32, f32_to_int)
STORER(fake_store_i64, int64_t, f16_from_i64, bf16_from_i64, clip)
