/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for shape rules. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "ops/op_check.h"

/* snprintf at *len, which never passes size - 1. */
static CT_PRINTF(4, 5) void append(char *buf, size_t size, size_t *len, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(buf + *len, size - *len, fmt, args);
    va_end(args);
    *len = n < 0 ? *len : *len + (size_t)n < size ? *len + (size_t)n : size - 1;
}

static void append_value(char *buf, size_t size, size_t *len, const ct_value *v)
{
    if (v == NULL) {
        append(buf, size, len, "_");
        return;
    }
    append(buf, size, len, "%s [", ct_dtype_name(v->dtype));
    for (int32_t i = 0; i < v->ndim; i++) {
        append(buf, size, len, "%s%" PRId64, i == 0 ? "" : ", ", v->dims[i]);
    }
    append(buf, size, len, "]");
}

void cti_value_text(const ct_value *v, char *buf, size_t size)
{
    size_t len = 0;
    buf[0] = '\0';
    append_value(buf, size, &len, v);
}

ct_status cti_want(const cti_check *c, bool ok, const char *fmt, ...)
{
    if (ok) {
        return CT_OK;
    }
    enum { MANY = 10 };
    char shapes[512] = "", sentence[256] = "";
    size_t len = 0;
    for (int32_t i = 0; i < c->n_in && i < MANY; i++) {
        append(shapes, sizeof shapes, &len, "%s", i == 0 ? "" : ", ");
        append_value(shapes, sizeof shapes, &len, c->in[i]);
    }
    if (c->n_in > MANY) {
        append(shapes, sizeof shapes, &len, ", … %d inputs", (int)c->n_in);
    }
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    return CT_FAIL(c->err, CT_ERR_SHAPE, "%s(%s): %s", c->op, shapes, sentence);
}

ct_status cti_want_float(const cti_check *c, int32_t i)
{
    const ct_dtype d = c->in[i]->dtype;
    return cti_want(c, d == CT_DTYPE_F32 || d == CT_DTYPE_BF16 || d == CT_DTYPE_F64,
                    "input %d must be f32, bf16 or f64", (int)i);
}

ct_status cti_want_dtype(const cti_check *c, int32_t i, ct_dtype dtype)
{
    return cti_want(c, c->in[i]->dtype == dtype, "input %d must be %s", (int)i, ct_dtype_name(dtype));
}

ct_status cti_want_same_dtype(const cti_check *c, int32_t i, int32_t j)
{
    return cti_want(c, c->in[i]->dtype == c->in[j]->dtype, "input %d must have the dtype of input %d", (int)i,
                    (int)j);
}

ct_status cti_want_ndim(const cti_check *c, int32_t i, int32_t ndim)
{
    return cti_want(c, c->in[i]->ndim == ndim, "input %d must have %d dims", (int)i, (int)ndim);
}

ct_status cti_want_ndim_min(const cti_check *c, int32_t i, int32_t ndim)
{
    return cti_want(c, c->in[i]->ndim >= ndim, "input %d must have %d dims or more", (int)i, (int)ndim);
}

ct_status cti_want_same_dims(const cti_check *c, int32_t i, int32_t j)
{
    return cti_want(c, cti_same_dims(c->in[i], c->in[j]), "input %d must have the dims of input %d", (int)i,
                    (int)j);
}

ct_status cti_want_same(const cti_check *c, int32_t i, int32_t j)
{
    CT_TRY(cti_want_same_dtype(c, i, j));
    return cti_want_same_dims(c, i, j);
}

ct_status cti_want_dims(const cti_check *c, int32_t i, const int64_t *dims, int32_t ndim)
{
    ct_value wanted = {.ndim = ndim, .dtype = c->in[i]->dtype};
    memcpy(wanted.dims, dims, (size_t)ndim * sizeof dims[0]);
    char text[160];
    cti_value_text(&wanted, text, sizeof text);
    return cti_want(c, cti_same_dims(&wanted, c->in[i]), "input %d must be %s", (int)i, text);
}

ct_status cti_want_vector(const cti_check *c, int32_t i, ct_dtype dtype, int64_t n)
{
    const ct_value *v = c->in[i];
    CT_TRY(cti_want_dtype(c, i, dtype));
    CT_TRY(cti_want_ndim(c, i, 1));
    return cti_want(c, n < 0 || v->dims[0] == n, "input %d must have %" PRId64 " elements", (int)i, n);
}

int64_t cti_rows(const ct_value *v, int32_t last)
{
    CT_ASSERT(v->ndim >= last);
    return cti_dims_product(v->dims, v->ndim - last);
}

ct_value_spec cti_spec(ct_dtype dtype, int32_t ndim, const int64_t *dims)
{
    ct_value_spec spec = {.dtype = dtype, .ndim = ndim, .kind = CT_VALUE_ACT};
    memcpy(spec.dims, dims, (size_t)ndim * sizeof dims[0]);
    return spec;
}

ct_value_spec cti_spec_like(const ct_value *v)
{
    return cti_spec(v->dtype, v->ndim, v->dims);
}
