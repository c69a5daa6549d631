/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of oneDNN; see peer_onednn.h. The bf16 part needs the C interface of oneDNN 2. */
#include "peer_onednn.h"

#include <stdio.h>
#include <stdlib.h>

#if !defined(BENCH_HAVE_ONEDNN)
const char *peer_onednn_version(void)
{
    return NULL;
}
peer_product *peer_onednn_create(bool is_bf16, bool ta, bool tb, int64_t m, int64_t n, int64_t k, void *a, void *b, void *c)
{
    (void)is_bf16, (void)ta, (void)tb, (void)m, (void)n, (void)k, (void)a, (void)b, (void)c;
    return NULL;
}
void peer_onednn_run(void *product)
{
    (void)product;
}
void peer_onednn_destroy(peer_product *product)
{
    (void)product;
}
#else
#include <oneapi/dnnl/dnnl.h>

struct peer_product {
    bool ta, tb;
    dnnl_dim_t m, n, k;
    float *a, *b, *c;
#if DNNL_VERSION_MAJOR == 2
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive; /* NULL: dnnl_sgemm */
    dnnl_exec_arg_t args[3];
#endif
};

static void must(dnnl_status_t status)
{
    if (status != dnnl_success) {
        (void)fprintf(stderr, "bench: oneDNN failed with status %d\n", (int)status);
        exit(1);
    }
}

const char *peer_onednn_version(void)
{
    static char text[64];
    const dnnl_version_t *v = dnnl_version();
    (void)snprintf(text, sizeof text, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

#if DNNL_VERSION_MAJOR == 2
/* A row-major matrix of bf16, or the transpose of one. */
static dnnl_memory_desc_t matrix(bool is_transposed, int64_t rows, int64_t columns)
{
    dnnl_memory_desc_t d;
    const dnnl_dims_t dims = {rows, columns}, strides = {is_transposed ? 1 : columns, is_transposed ? rows : 1};
    must(dnnl_memory_desc_init_by_strides(&d, 2, dims, dnnl_bf16, strides));
    return d;
}

/* False where this CPU has no bf16 matmul. */
static bool make_bf16(peer_product *p)
{
    const dnnl_memory_desc_t d[3] = {matrix(p->ta, p->m, p->k), matrix(p->tb, p->k, p->n), matrix(false, p->m, p->n)};
    static const int ARGS[3] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    void *const data[3] = {p->a, p->b, p->c};
    dnnl_matmul_desc_t product;
    must(dnnl_engine_create(&p->engine, dnnl_cpu, 0));
    must(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags));
    must(dnnl_matmul_desc_init(&product, &d[0], &d[1], NULL, &d[2]));
    if (dnnl_primitive_desc_create(&p->description, &product, NULL, p->engine, NULL) != dnnl_success) {
        return false;
    }
    must(dnnl_primitive_create(&p->primitive, p->description));
    for (int i = 0; i < 3; i++) {
        p->args[i].arg = ARGS[i];
        must(dnnl_memory_create(&p->args[i].memory, &d[i], p->engine, data[i]));
    }
    return true;
}
#endif

peer_product *peer_onednn_create(bool is_bf16, bool ta, bool tb, int64_t m, int64_t n, int64_t k, void *a, void *b, void *c)
{
    peer_product *p = calloc(1, sizeof *p);
    if (!p) {
        return NULL;
    }
    *p = (peer_product){.ta = ta, .tb = tb, .m = m, .n = n, .k = k, .a = a, .b = b, .c = c};
#if DNNL_VERSION_MAJOR == 2
    if (is_bf16 && !make_bf16(p)) {
        peer_onednn_destroy(p);
        return NULL;
    }
#else
    if (is_bf16) {
        peer_onednn_destroy(p);
        return NULL;
    }
#endif
    return p;
}

void peer_onednn_run(void *product)
{
    peer_product *p = product;
#if DNNL_VERSION_MAJOR == 2
    if (p->primitive) {
        must(dnnl_primitive_execute(p->primitive, p->stream, 3, p->args));
        must(dnnl_stream_wait(p->stream));
        return;
    }
#endif
    must(dnnl_sgemm(p->ta ? 'T' : 'N', p->tb ? 'T' : 'N', p->m, p->n, p->k, 1.0F, p->a, p->ta ? p->m : p->k, p->b,
                    p->tb ? p->k : p->n, 0.0F, p->c, p->n));
}

void peer_onednn_destroy(peer_product *p)
{
    if (!p) {
        return;
    }
#if DNNL_VERSION_MAJOR == 2
    for (int i = 0; i < 3; i++) {
        if (p->args[i].memory) {
            must(dnnl_memory_destroy(p->args[i].memory));
        }
    }
    if (p->primitive) {
        must(dnnl_primitive_destroy(p->primitive));
    }
    if (p->description) {
        must(dnnl_primitive_desc_destroy(p->description));
    }
    if (p->stream) {
        must(dnnl_stream_destroy(p->stream));
    }
    if (p->engine) {
        must(dnnl_engine_destroy(p->engine));
    }
#endif
    free(p);
}
#endif
