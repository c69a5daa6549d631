/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions that compute lean on: memory of one task, operands as arrays, indices, the order of
 * sums. */
#include "nnop_exec.h"

#include <stdlib.h>
#include <string.h>

struct fake_scrap {
    struct fake_scrap *next;
    _Alignas(64) char bytes[];
};

void *fake_scrap_raw(fake_call *c, int64_t n, size_t size)
{
    size_t bytes = (size_t)(n > 0 ? n : 1) * size;
    struct fake_scrap *s = aligned_alloc(64, (sizeof *s + bytes + 63) / 64 * 64);
    if (!s) {
        abort();
    }
    s->next = c->scraps;
    c->scraps = s;
    return s->bytes;
}

void *fake_scrap_new(fake_call *c, int64_t n, size_t size)
{
    return memset(fake_scrap_raw(c, n, size), 0, (size_t)(n > 0 ? n : 1) * size);
}

void fake_scraps_free(fake_call *c)
{
    while (c->scraps) {
        struct fake_scrap *s = c->scraps;
        c->scraps = s->next;
        free(s);
    }
}

float *fake_new_f32(fake_call *c, int64_t n)
{
    return fake_scrap_new(c, n, sizeof(float));
}

double *fake_new_f64(fake_call *c, int64_t n)
{
    return fake_scrap_new(c, n, sizeof(double));
}

float *fake_arg_f32(fake_call *c, int i)
{
    float *x = fake_scrap_raw(c, fake_view_count(&c->arg[i].view), sizeof *x);
    fake_load_f32(&c->arg[i].view, x);
    return x;
}

double *fake_arg_f64(fake_call *c, int i)
{
    double *x = fake_scrap_raw(c, fake_view_count(&c->arg[i].view), sizeof *x);
    fake_load_f64(&c->arg[i].view, x);
    return x;
}

int64_t *fake_arg_i64(fake_call *c, int i)
{
    int64_t *x = fake_scrap_raw(c, fake_view_count(&c->arg[i].view), sizeof *x);
    fake_load_i64(&c->arg[i].view, x);
    return x;
}

bool fake_index_ok(fake_call *c, int64_t index, int64_t n, const char *what)
{
    if (index >= 0 && index < n) {
        return true;
    }
    fake_trap(FAKE_R_INDEX_OUT_OF_RANGE, "%s: %s %lld is outside [0, %lld)", c->op->name, what,
              (long long)index, (long long)n);
    return false;
}

int64_t *fake_sum_order(fake_call *c, int64_t n)
{
    int64_t *order = fake_scrap_new(c, n, sizeof *order);
    uint64_t x = c->seed | 1;
    for (int64_t i = 0; i < n; i++) {
        order[i] = i;
    }
    for (int64_t i = n - 1; i > 0 && !c->deterministic; i--) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        int64_t j = (int64_t)(x % (uint64_t)(i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    return order;
}
