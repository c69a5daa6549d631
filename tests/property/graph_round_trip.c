/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: ops ir base */
/* Random graphs: they verify, print∘parse is the identity, and reinference changes nothing. CT_SEED chooses
 * the first seed. */
#include "unit/ops_cases.h"

#include "base/num.h"
#include "base/rng.h"

typedef struct maker {
    ct_graph *g;
    cti_rng_key key;
    uint64_t at; /* counter of the generator */
    ct_value_id pool[256];
    int32_t n_pool; /* float values to choose from */
} maker;

static int64_t below(maker *m, int64_t n)
{
    return (int64_t)cti_rng_below(m->key, m->at++, (uint64_t)n);
}

static void keep(maker *m, ct_value_id id)
{
    if (m->n_pool < (int32_t)N_OF(m->pool)) {
        m->pool[m->n_pool++] = id;
    }
}

/* A name of any bytes but NUL, made unique by the id. */
static void random_name(maker *m, char *buf, size_t size)
{
    size_t n = (size_t)below(m, 8);
    for (size_t i = 0; i < n; i++) {
        buf[i] = (char)(1 + below(m, 255));
    }
    (void)snprintf(buf + n, size - n, ".%d", (int)ct_graph_n_values(m->g));
}

static ct_value_id new_value(maker *m, ct_dtype dtype, int32_t ndim, const int64_t *dims)
{
    char name[40];
    random_name(m, name, sizeof name);
    ct_value_spec spec = {name, dtype, ndim, {0}, (ct_value_kind)(CT_VALUE_INPUT + below(m, 2))};
    memcpy(spec.dims, dims, (size_t)ndim * sizeof *dims);
    ct_value_id id;
    ct_err err = {0};
    assert_int_equal(ct_graph_add_value(m->g, &spec, &id, &err), CT_OK);
    return id;
}

static ct_value_id random_value(maker *m)
{
    int64_t dims[CT_MAX_NDIM];
    const int32_t ndim = (int32_t)below(m, 5);
    for (int32_t i = 0; i < ndim; i++) {
        dims[i] = below(m, 5);
    }
    static const ct_dtype floats[] = {CT_DTYPE_F32, CT_DTYPE_BF16, CT_DTYPE_F64};
    return new_value(m, floats[below(m, 3)], ndim, dims);
}

static void emit(maker *m, int32_t op, const void *attrs, const ct_value_id *in, int32_t n_in)
{
    ct_value_id outs[4];
    ct_err err = {0};
    if (ct_op_emit(m->g, op, attrs, in, n_in, outs, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    for (int32_t i = 0; i < ct_op_n_out(ct_op_row(op), attrs); i++) {
        keep(m, outs[i]);
    }
}

/* Ops on one value of at least one dim. */
static void emit_layout(maker *m, ct_value_id x)
{
    const ct_value v = *ct_graph_value_c(m->g, x);
    const int64_t dim = below(m, v.ndim), size = v.dims[dim];
    int64_t perm[CT_MAX_NDIM];
    for (int32_t i = 0; i < v.ndim; i++) {
        const int64_t j = below(m, i + 1);
        perm[i] = perm[j];
        perm[j] = i;
    }
    switch (below(m, 5)) {
    case 0:
        emit(m, CT_OP_transpose, &(ct_attrs_transpose){{v.ndim, perm}}, &x, 1);
        break;
    case 1: {
        const int64_t start = below(m, size + 1);
        emit(m, CT_OP_slice, &(ct_attrs_slice){dim, start, below(m, size - start + 1)}, &x, 1);
        break;
    }
    case 2:
        emit(m, CT_OP_slice_grad, &(ct_attrs_slice_grad){dim, below(m, 3), size + 3}, &x, 1);
        break;
    case 3:
        emit(m, CT_OP_concat, &(ct_attrs_concat){dim}, (ct_value_id[]){x, x, x}, 1 + (int32_t)below(m, 3));
        break;
    default: {
        const ct_value_id w = new_value(m, v.dtype, 1, &v.dims[v.ndim - 1]);
        emit(m, CT_OP_rmsnorm, &(ct_attrs_rmsnorm){cti_rng_uniform(m->key, m->at++)}, (ct_value_id[]){x, w},
             2);
    }
    }
}

static void emit_any(maker *m)
{
    const ct_value_id x = m->pool[below(m, m->n_pool)];
    const ct_value v = *ct_graph_value_c(m->g, x);
    switch (below(m, 8)) {
    case 0:
        emit(m, CT_OP_add, NULL, (ct_value_id[]){x, x}, 2);
        break;
    case 1:
        emit(m, CT_OP_scale, &(ct_attrs_scale){cti_rng_normal(m->key, m->at++) * 1e30}, &x, 1);
        break;
    case 2:
        emit(m, CT_OP_cast, &(ct_attrs_cast){below(m, 2)}, &x, 1); /* f32 or bf16 */
        break;
    case 3:
        emit(m, CT_OP_reshape, &(ct_attrs_reshape){{1, (int64_t[]){ct_value_numel(&v)}}}, &x, 1);
        break;
    case 4: {
        const int64_t q = below(m, 4), w_dims[] = {q, v.ndim > 0 ? v.dims[v.ndim - 1] : 1};
        if (v.ndim > 0) {
            emit(m, CT_OP_matmul, &(ct_attrs_matmul){false, true},
                 (ct_value_id[]){x, new_value(m, v.dtype, 2, w_dims), CT_NO_VALUE}, 2 + (int32_t)below(m, 2));
        }
        break;
    }
    case 5:
        emit(m, CT_OP_silu_mul, NULL, (ct_value_id[]){x, x}, 2);
        break;
    default:
        if (v.ndim > 0) {
            emit_layout(m, x);
        }
    }
}

static void decorate(maker *m)
{
    for (int32_t i = 0; i < ct_graph_n_values(m->g); i++) {
        ct_value *v = ct_graph_value(m->g, i);
        for (int a = 0; a < CT_MAX_AXES && below(m, 3) == 0; a++) {
            v->placement[a].kind = (uint8_t)below(m, 5);
            v->placement[a].dim = (int8_t)(below(m, 256) - 128);
            v->placement[a].parts = (uint8_t)(below(m, 4) == 0 ? below(m, 256) : 0);
        }
    }
    for (int32_t i = 0; i < ct_graph_n_nodes(m->g); i++) {
        ct_graph_node(m->g, i)->stream = (uint8_t)below(m, 256);
        ct_graph_node(m->g, i)->is_recompute = below(m, 2) == 1;
    }
}

/* Some nodes leave, the rest in any order: what passes may leave halfway, and what the verifier would refuse.
 */
static void shuffle(maker *m)
{
    const int32_t n = ct_graph_n_nodes(m->g);
    ct_node_id order[512];
    int32_t n_order = 0;
    assert_true(n <= 512);
    for (int32_t i = 0; i < n; i++) {
        if (below(m, 4) > 0) {
            const int64_t j = below(m, n_order + 1);
            order[n_order++] = order[j];
            order[j] = i;
        }
    }
    ct_err err = {0};
    assert_int_equal(ct_graph_set_order(m->g, order, n_order, &err), CT_OK);
}

static char *print(const ct_graph *g)
{
    char *text;
    ct_err err = {0};
    assert_int_equal(ct_graph_print(g, ct_alloc_system(), &text, &err), CT_OK);
    return text;
}

static void check_round_trip(const ct_graph *g)
{
    ct_err err = {0};
    char *text = print(g);
    ct_graph *back;
    if (ct_graph_parse(ct_alloc_system(), text, strlen(text), ct_graph_name(g), &back, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    char *again = print(back);
    assert_string_equal(text, again);
    ct_err a = {0}, b = {0};
    assert_int_equal(ct_graph_verify(g, &a), ct_graph_verify(back, &b));
    assert_string_equal(a.message, b.message);
    ct_alloc_free(ct_alloc_system(), again);
    ct_alloc_free(ct_alloc_system(), text);
    ct_graph_destroy(&back);
}

static void round_trips(void **state)
{
    (void)state;
    const char *given = getenv("CT_SEED");
    const uint64_t first = given == NULL ? 1 : strtoull(given, NULL, 10);
    for (uint64_t seed = first; seed < first + 150; seed++) {
        print_message("seed %" PRIu64 "\n", seed);
        maker m = {.g = case_graph("random"), .key = cti_rng_key_make(seed, "graph_round_trip")};
        for (int i = 0; i < 4; i++) {
            keep(&m, random_value(&m));
        }
        ct_err err = {0};
        for (int p = 0; p < CT_PROGRAM_COUNT; p++) {
            ct_graph_set_program(m.g, (ct_program_id)p);
            for (int64_t n = below(&m, 10); n > 0; n--) {
                char scope[40];
                random_name(&m, scope, sizeof scope);
                assert_int_equal(ct_graph_set_scope(m.g, below(&m, 3) == 0 ? "" : scope, &err), CT_OK);
                emit_any(&m);
            }
        }
        if (ct_graph_verify(m.g, &err) != CT_OK) {
            fail_msg("seed %" PRIu64 ": %s", seed, err.message);
        }
        char *before = print(m.g);
        assert_int_equal(ct_graph_reinfer(m.g, &err), CT_OK);
        char *after = print(m.g);
        assert_string_equal(before, after);
        ct_alloc_free(ct_alloc_system(), before);
        ct_alloc_free(ct_alloc_system(), after);
        check_round_trip(m.g);
        decorate(&m);
        check_round_trip(m.g);
        shuffle(&m);
        check_round_trip(m.g);
        ct_graph_destroy(&m.g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_trips)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
