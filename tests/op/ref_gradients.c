/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: backend/ref */
/* Gradient kernels of the reference backend by central differences of its forward kernels, in f64. The tolerance is what the
 * difference of two step sizes shows of the truncation, plus the rounding of the objective over the step, plus the bound of the gradient
 * kernel, which reads statistics saved in f32 (rstd, lse) and so gets f32's. */
#include "op/harness.h"

#include "backend/ref/ref.h"

enum { SEED = 77, MAX_ELEMENTS = 300 };

/* sum(dy * y) of output 0; the loss itself where dy is NULL. */
static double objective(const op_case *forward, const ct_tensor *dy, double *out_magnitude)
{
    op_result r;
    op_execute_once(ct_backend_ref(), forward, OP_NO_ALIAS, &r);
    assert_int_equal(r.status, CT_OK);
    double sum = 0.0;
    *out_magnitude = 0.0;
    for (int64_t i = 0, n = op_numel(&r.out[0]); i < n; i++) {
        const double term = (dy == NULL ? 1.0 : op_get(dy, i)) * op_get(&r.out[0], i);
        sum += term;
        *out_magnitude += fabs(term);
    }
    return sum;
}

/* grad: d objective / d forward->in[k]; bound: of the gradient kernel, per element. */
static void check_gradient(op_case *forward, const ct_tensor *dy, int32_t k, const ct_tensor *grad, const double *bound)
{
    const ct_tensor *x = &forward->in[k];
    const double steps[2] = {1e-4, 2e-4}, u = ct_dtype_unit_roundoff(CT_DTYPE_F64);
    assert_int_equal(op_numel(x), op_numel(grad));
    for (int64_t i = 0, n = op_numel(x); i < n; i++) {
        const double at = op_get(x, i);
        double slope[2], magnitude = 0.0;
        for (int s = 0; s < 2; s++) {
            double m[2];
            op_set(x, i, at + steps[s]);
            const double up = objective(forward, dy, &m[0]);
            op_set(x, i, at - steps[s]);
            const double down = objective(forward, dy, &m[1]);
            slope[s] = (up - down) / (2.0 * steps[s]);
            magnitude = fmax(magnitude, fmax(m[0], m[1]));
        }
        op_set(x, i, at);
        const double tolerance = fabs(slope[0] - slope[1]) + 64.0 * u * magnitude / steps[0] + bound[i];
        const double got = op_get(grad, i);
        if (!(fabs(got - slope[0]) <= tolerance)) {
            op_print_case(forward);
            fail_msg("%s: gradient of input %d [%lld] is %.12g, by differences %.12g (tolerance %.3g)",
                     ct_op_row(forward->op)->name, (int)k, (long long)i, got, slope[0], tolerance);
        }
    }
}

/* The gradient op's own run and f32 bounds. False where the case is a faulty or too large one. */
static bool run_gradient(const op_case *c, op_result *r, double *bounds[OP_MAX_OUT])
{
    for (int32_t k = 0; k < c->n_in; k++) {
        if (op_numel(&c->in[k]) > MAX_ELEMENTS) {
            return false;
        }
    }
    op_execute_once(ct_backend_ref(), c, OP_NO_ALIAS, r);
    op_case narrow = *c;
    narrow.f = CT_DTYPE_F32;
    for (int32_t k = 0; k < r->n_out && r->status == CT_OK; k++) {
        bounds[k] = op_bound(&narrow, c, r, k, CT_DTYPE_F32);
    }
    return r->status == CT_OK;
}

static op_result run_on(const ct_backend *b, const op_case *c)
{
    op_result r;
    op_execute_once(b, c, OP_NO_ALIAS, &r);
    assert_int_equal(r.status, CT_OK);
    return r;
}

/* forward's input k is the gradient op's input from[k]; its output k is the gradient of forward input of[k]. */
typedef struct gradient_row {
    int32_t forward, gradient, n_in, from[6], n_grad, of[3];
} gradient_row;

static const gradient_row ROWS[] = {
    {CT_OP_rmsnorm, CT_OP_rmsnorm_grad, 2, {1, 2}, 2, {0, 1}},
    {CT_OP_silu_mul, CT_OP_silu_mul_grad, 2, {1, 2}, 2, {0, 1}},
    {CT_OP_swiglu, CT_OP_swiglu_grad, 1, {1}, 1, {0}},
    {CT_OP_sdpa, CT_OP_sdpa_grad, 5, {1, 2, 3, 6, 7}, 3, {0, 1, 2}},
    {CT_OP_sdpa_tnd, CT_OP_sdpa_tnd_grad, 6, {1, 2, 3, 6, 7, 8}, 3, {0, 1, 2}},
};

static void check_row(const gradient_row *row)
{
    int n_run = 0;
    for (int i = 0;; i++) {
        ct_arena *arena = NULL;
        op_case c;
        op_result r;
        double *bounds[OP_MAX_OUT];
        assert_int_equal(ct_arena_create(ct_alloc_system(), 0, &arena, NULL), CT_OK);
        const bool is_there = op_standard_case(arena, SEED + (uint64_t)i, row->gradient, CT_DTYPE_F64, i, &c);
        if (is_there && run_gradient(&c, &r, bounds)) {
            const ct_attrs_rmsnorm norm = {.eps = i % 2 == 0 ? 1e-5 : 1e-2}; /* as op_case_rmsnorm */
            op_case forward = op_case_begin(arena, c.seed, row->forward, CT_DTYPE_F64,
                                            row->forward == CT_OP_rmsnorm ? (const void *)&norm : c.attrs);
            for (int32_t k = 0; k < row->n_in; k++) {
                forward.in[forward.n_in++] = c.in[row->from[k]];
            }
            for (int64_t e = 0; row->gradient == CT_OP_rmsnorm_grad && c.n_in == 5 && e < op_numel(&c.in[4]); e++) {
                op_set(&r.out[0], e, op_get(&r.out[0], e) - op_get(&c.in[4], e)); /* the addend is no part of the gradient */
            }
            for (int32_t k = 0; k < row->n_grad; k++) {
                check_gradient(&forward, &c.in[0], row->of[k], &r.out[k], bounds[k]);
            }
            n_run++;
        }
        ct_arena_destroy(&arena);
        if (!is_there) {
            break;
        }
    }
    assert_true(n_run >= 4);
}

static void test_rmsnorm(void **state)
{
    (void)state;
    check_row(&ROWS[0]);
}
/* Weights of 0 and next to 0, and a row of zeros: nothing is divided by a weight, and eps holds the row. */
static void test_rmsnorm_zeros(void **state)
{
    (void)state;
    enum { T = 3, D = 4 };
    ct_arena *arena = NULL;
    assert_int_equal(ct_arena_create(ct_alloc_system(), 0, &arena, NULL), CT_OK);
    const ct_attrs_rmsnorm attrs = {.eps = 1e-2};
    op_case forward = op_case_begin(arena, 5, CT_OP_rmsnorm, CT_DTYPE_F64, &attrs);
    const ct_tensor *x = op_add_f(&forward, 1.0, OP_DIMS(T, D)), *w = op_add_f(&forward, 1.0, OP_DIMS(D));
    op_set(w, 0, 0.0);
    op_set(w, 1, 1e-30);
    for (int i = 0; i < D; i++) {
        op_set(x, D + i, 0.0);
    }
    const op_result y = run_on(ct_backend_ref(), &forward);
    op_case back = op_case_begin(arena, 6, CT_OP_rmsnorm_grad, CT_DTYPE_F64, NULL);
    const ct_tensor *dy = op_add_f(&back, 1.0, OP_DIMS(T, D));
    (void)op_add_data(&back, CT_DTYPE_F64, true, x->data, OP_DIMS(T, D));
    (void)op_add_data(&back, CT_DTYPE_F64, true, w->data, OP_DIMS(D));
    (void)op_add_data(&back, CT_DTYPE_F32, false, y.out[1].data, OP_DIMS(T));
    op_result r;
    double *bounds[OP_MAX_OUT];
    assert_true(run_gradient(&back, &r, bounds));
    for (int32_t k = 0; k < 2; k++) {
        for (int64_t i = 0; i < op_numel(&r.out[k]); i++) {
            assert_true(isfinite(op_get(&r.out[k], i)));
        }
        check_gradient(&forward, dy, k, &r.out[k], bounds[k]);
    }
    ct_arena_destroy(&arena);
}

static void test_silu_mul(void **state)
{
    (void)state;
    check_row(&ROWS[1]);
}
static void test_swiglu(void **state)
{
    (void)state;
    check_row(&ROWS[2]);
}
static void test_sdpa(void **state)
{
    (void)state;
    check_row(&ROWS[3]);
}
static void test_sdpa_tnd(void **state)
{
    (void)state;
    check_row(&ROWS[4]);
}

/* dx and dw of the fused loss against differences of the evaluation form. */
static void test_loss(void **state)
{
    (void)state;
    int n_run = 0;
    for (int i = 0;; i++) {
        ct_arena *arena = NULL;
        op_case c;
        op_result r;
        double *bounds[OP_MAX_OUT];
        assert_int_equal(ct_arena_create(ct_alloc_system(), 0, &arena, NULL), CT_OK);
        const bool is_there = op_standard_case(arena, SEED + (uint64_t)i, CT_OP_linear_cross_entropy, CT_DTYPE_F64, i, &c);
        if (is_there && c.n_in == 4 && run_gradient(&c, &r, bounds)) { /* a given lse is a constant to differences: see shared_vocabulary */
            op_case forward = c;
            forward.op = CT_OP_linear_cross_entropy_eval;
            check_gradient(&forward, NULL, 0, &r.out[1], bounds[1]);
            check_gradient(&forward, NULL, 1, &r.out[2], bounds[2]);
            n_run++;
        }
        ct_arena_destroy(&arena);
        if (!is_there) {
            break;
        }
    }
    assert_true(n_run >= 4);
}

static void assert_near(double found, double wanted, double scale)
{
    /* the whole's log-sum-exp is stored in f32; what follows is linear in exp of it */
    const double tolerance = 8.0 * ct_dtype_unit_roundoff(CT_DTYPE_F32) * scale;
    if (!(fabs(found - wanted) <= tolerance)) {
        fail_msg("%.12g, wanted %.12g (tolerance %.3g)", found, wanted, tolerance);
    }
}

/* A vocabulary cut into three parts: their losses and dx add up to those of the whole, and each part's dw is its rows of the whole's. */
static void shared_vocabulary(void **state)
{
    (void)state;
    enum { T = 9, D = 6, V = 20, PARTS = 3 };
    static const int64_t begin[PARTS + 1] = {0, 7, 14, V};
    ct_arena *arena = NULL;
    assert_int_equal(ct_arena_create(ct_alloc_system(), 0, &arena, NULL), CT_OK);
    op_case whole = op_case_begin(arena, 7, CT_OP_linear_cross_entropy, CT_DTYPE_F64, NULL);
    whole.attrs = OP_ATTRS(arena, ct_attrs_loss, 2);
    const ct_tensor *x = op_add_f(&whole, 1.0, OP_DIMS(T, D)), *w = op_add_f(&whole, 1.0, OP_DIMS(V, D));
    const ct_tensor *labels = op_add_ids(&whole, V, OP_DIMS(T));
    op_set(labels, 3, -100.0);
    const float inv = 0.125F;
    (void)op_add_data(&whole, CT_DTYPE_F32, false, &inv, OP_DIMS(1));
    const op_result want = run_on(ct_backend_ref(), &whole);
    float parts[PARTS * T];
    for (int p = 0; p < PARTS; p++) {
        op_case c = op_case_begin(arena, 0, CT_OP_linear_lse, CT_DTYPE_F64, whole.attrs);
        (void)op_add_data(&c, CT_DTYPE_F64, true, x->data, OP_DIMS(T, D));
        (void)op_add_data(&c, CT_DTYPE_F64, true, (double *)w->data + begin[p] * D, OP_DIMS(begin[p + 1] - begin[p], D));
        const op_result r = run_on(ct_backend_ref(), &c);
        memcpy(parts + p * T, r.out[0].data, T * sizeof *parts);
    }
    op_case merge = op_case_begin(arena, 0, CT_OP_lse_merge, CT_DTYPE_F32, NULL);
    (void)op_add_data(&merge, CT_DTYPE_F32, false, parts, OP_DIMS(PARTS, T));
    const op_result lse = run_on(ct_backend_ref(), &merge);
    double loss = 0.0, dx[T * D] = {0.0};
    for (int p = 0; p < PARTS; p++) {
        const int64_t n = begin[p + 1] - begin[p];
        op_case ids = op_case_begin(arena, 0, CT_OP_local_ids, CT_DTYPE_F32, NULL);
        ids.attrs = OP_ATTRS(arena, ct_attrs_local_ids, begin[p], n);
        (void)op_add_data(&ids, CT_DTYPE_I32, false, labels->data, OP_DIMS(T));
        const op_result local = run_on(ct_backend_ref(), &ids);
        op_case c = op_case_begin(arena, 0, CT_OP_linear_cross_entropy, CT_DTYPE_F64, whole.attrs);
        (void)op_add_data(&c, CT_DTYPE_F64, true, x->data, OP_DIMS(T, D));
        (void)op_add_data(&c, CT_DTYPE_F64, true, (double *)w->data + begin[p] * D, OP_DIMS(n, D));
        (void)op_add_data(&c, CT_DTYPE_I32, false, local.out[0].data, OP_DIMS(T));
        (void)op_add_data(&c, CT_DTYPE_F32, false, &inv, OP_DIMS(1));
        (void)op_add_data(&c, CT_DTYPE_F32, false, lse.out[0].data, OP_DIMS(T));
        const op_result r = run_on(ct_backend_ref(), &c);
        loss += op_get(&r.out[0], 0);
        for (int64_t i = 0; i < T * D; i++) {
            dx[i] += op_get(&r.out[1], i);
        }
        for (int64_t i = 0; i < n * D; i++) {
            assert_near(op_get(&r.out[2], i), op_get(&want.out[2], begin[p] * D + i), 10.0);
        }
    }
    assert_near(loss, op_get(&want.out[0], 0), 10.0);
    for (int64_t i = 0; i < T * D; i++) {
        assert_near(dx[i], op_get(&want.out[1], i), 10.0);
    }
    ct_arena_destroy(&arena);
}

/* Linear ops: rotations undone by their inverse, embedding, slice. */
static void test_linear(void **state)
{
    (void)state;
    static const int32_t pairs[][2] = {{CT_OP_rope, CT_OP_rope}, {CT_OP_rotary_mul, CT_OP_rotary_mul}, {CT_OP_embedding, CT_OP_embedding_grad},
                                       {CT_OP_slice, CT_OP_slice_grad}};
    for (int p = 0; p < OP_COUNT_OF(pairs); p++) {
        for (int i = 0; i < 3; i++) {
            ct_arena *arena = NULL;
            op_case forward, back;
            op_result r;
            assert_int_equal(ct_arena_create(ct_alloc_system(), 0, &arena, NULL), CT_OK);
            assert_true(op_standard_case(arena, SEED + (uint64_t)i, pairs[p][0], CT_DTYPE_F64, i, &forward));
            for (int32_t k = 1; p == 1 && k < 3; k++) { /* the inverse is the gradient where entries stand twice, as rope_rows makes them */
                for (int64_t e = 0; e < op_numel(&forward.in[k]); e += 2) {
                    op_set(&forward.in[k], e + 1, op_get(&forward.in[k], e));
                }
            }
            op_execute_once(ct_backend_ref(), &forward, OP_NO_ALIAS, &r);
            assert_int_equal(r.status, CT_OK);
            const ct_attrs_rope *turn = forward.attrs;
            const ct_attrs_slice *cut = forward.attrs;
            const ct_attrs_rope inverse = {.inverse = p < 2 && !turn->inverse};
            const ct_attrs_embedding_grad vocab = {.vocab = forward.in[0].dims[0]};
            const ct_attrs_slice_grad full = {p == 3 ? cut->dim : 0, p == 3 ? cut->start : 0,
                                              forward.in[0].dims[p == 3 ? cut->dim : 0]};
            back = op_case_begin(arena, SEED, pairs[p][1], CT_DTYPE_F64,
                                 p < 2 ? (const void *)&inverse : p == 2 ? (const void *)&vocab : (const void *)&full);
            const ct_tensor dy = *op_add_f(&back, 1.0, r.out[0].ndim, r.out[0].dims);
            for (int32_t k = 1; k < forward.n_in; k++) {
                back.in[back.n_in++] = forward.in[k];
            }
            op_result grad;
            op_execute_once(ct_backend_ref(), &back, OP_NO_ALIAS, &grad);
            assert_int_equal(grad.status, CT_OK);
            if (op_numel(&grad.out[0]) <= MAX_ELEMENTS) {
                check_gradient(&forward, &dy, 0, &grad.out[0], op_bound(&back, &back, &grad, 0, CT_DTYPE_F64));
            }
            ct_arena_destroy(&arena);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rmsnorm), cmocka_unit_test(test_rmsnorm_zeros), cmocka_unit_test(test_silu_mul), cmocka_unit_test(test_swiglu), cmocka_unit_test(test_sdpa),
        cmocka_unit_test(test_sdpa_tnd), cmocka_unit_test(test_loss), cmocka_unit_test(shared_vocabulary),    cmocka_unit_test(test_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
