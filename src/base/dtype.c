/* SPDX-License-Identifier: Apache-2.0 */
/* The table of element types. */
#include "ctitan/dtype.h"

#include <string.h>

#include "ctitan/status.h"

typedef struct dtype_row {
    const char *name, *torch_name, *safetensors_name;
    size_t size_bytes;
    int mantissa_bits;
} dtype_row;

static const dtype_row DTYPE_ROWS[] = {
#define DTYPE_ROW(NAME, name, size, mant, torch, st) [CT_DTYPE_##NAME] = {#name, torch, st, size, mant},
    CT_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
};

static const dtype_row *row_of(ct_dtype dtype)
{
    CT_ASSERT((int)dtype >= 0 && dtype < CT_DTYPE_COUNT);
    return &DTYPE_ROWS[dtype];
}

const char *ct_dtype_name(ct_dtype dtype)
{
    return row_of(dtype)->name;
}

const char *ct_dtype_torch_name(ct_dtype dtype)
{
    return row_of(dtype)->torch_name;
}

size_t ct_dtype_size_bytes(ct_dtype dtype)
{
    return row_of(dtype)->size_bytes;
}

int ct_dtype_is_float(ct_dtype dtype)
{
    return row_of(dtype)->mantissa_bits > 0;
}

double ct_dtype_unit_roundoff(ct_dtype dtype)
{
    const int bits = row_of(dtype)->mantissa_bits;
    return bits == 0 ? 0.0 : 1.0 / (double)((uint64_t)1 << bits);
}

int ct_dtype_parse(const char *name, ct_dtype *out_dtype)
{
    if (name == NULL) {
        return 0;
    }
    for (int i = 0; i < (int)CT_DTYPE_COUNT; i++) {
        const dtype_row *row = &DTYPE_ROWS[i];
        if (strcmp(name, row->name) == 0 || strcmp(name, row->torch_name) == 0 ||
            strcmp(name, row->safetensors_name) == 0) {
            *out_dtype = (ct_dtype)i;
            return 1;
        }
    }
    return 0;
}
