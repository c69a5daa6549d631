/* SPDX-License-Identifier: Apache-2.0 */
/* labels: fast */
/* The compiled step on synthetic tokens: losses fall, checkpointing modes and accumulation change no result beyond rounding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "backend/ref/ref.h"
#include "base/base.h"
#include "model/model.h"
#include "train/engine.h"
#include "train/step.h"

enum { B = 2, S = 6, N_STEPS = 3 };

/* Counts what goes through an allocator. */
static int64_t n_allocations;
static void *counting_resize(void *ctx, void *ptr, size_t size_bytes)
{
    const ct_alloc *inner = ctx;
    n_allocations += size_bytes > 0;
    return inner->resize(inner->ctx, ptr, size_bytes);
}

typedef struct run_options {
    const ct_backend *backend;
    ct_recompute_mode mode;
    ct_dtype compute;
    int accumulation;
    bool keeps_gradients; /* though there is one micro-batch */
    int n_valid[2];       /* labels that count in each row; 0 in both: all of them */
    double budget;        /* of CT_RECOMPUTE_BUDGET */
    int packed;           /* 1: the first row is two documents of 3 tokens, and only labels of the second count; 2: the first is another; 3: it is not there */
} run_options;

static void small_spec(ct_tree *tree, ct_component **out)
{
    ct_err err = {0};
    assert_int_equal(cti_llama3_spec(tree, "debugmodel", out, &err), CT_OK);
    ct_component *layers = ct_component_find(*out, "model.layers");
    layers->n_children = 2; /* two blocks are enough */
}

static void put(cti_engine *e, const cti_step *s, ct_value_id v, const void *data)
{
    ct_err err = {0};
    const ct_status st =
        ct_runtime_write(e->runtime, 0, v, data, ct_value_size_bytes(ct_graph_value_c(s->graph, v)), &err);
    if (st != CT_OK) {
        fail_msg("%s", err.message);
    }
}

static void run(const run_options *o, double *losses, double *norms)
{
    ct_err err = {0};
    const ct_alloc counting = {counting_resize, (void *)(uintptr_t)ct_alloc_system()}, *alloc = &counting;
    ct_tree *tree;
    ct_component *spec;
    assert_int_equal(ct_tree_create(alloc, &tree, &err), CT_OK);
    small_spec(tree, &spec);
    ct_mesh mesh;
    const int64_t degree[CT_AXIS_COUNT] = {1, 1, 1, 1, 1, 1};
    assert_int_equal(ct_mesh_init(&mesh, degree, 1, 0, &err), CT_OK);
    const ct_optim_group group = {.pattern = ".*", .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
    const cti_step_options so = {.mesh = &mesh,
                                 .param_dtype = CT_DTYPE_F32,
                                 .compute_dtype = o->compute,
                                 .reduce_dtype = CT_DTYPE_F32,
                                 .batch = B / o->accumulation,
                                 .seq_len = S,
                                 .loss_chunks = 2,
                                 .recompute = {.mode = o->mode, .budget = o->budget},
                                 .optim = {.groups = &group,
                                           .n_groups = 1,
                                           .max_norm = 1.0,
                                           .has_one_micro_batch = o->accumulation == 1 && !o->keeps_gradients}};
    cti_step *s = NULL;
    if (cti_step_create(alloc, spec, &so, &s, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    const ct_value_id keep[3] = {s->optim.loss, s->optim.norm, s->optim.go};
    const ct_plan_item item = {s->graph, keep, 3};
    ct_comm *comms[CT_MAX_AXES] = {0};
    cti_engine *e = NULL;
    if (cti_engine_create(alloc, o->backend, &item, 1, comms, &e, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(cti_engine_init_weights(e, s->layout, &s->build, 0, 42, &err), CT_OK);
    assert_int_equal(cti_engine_init_consts(e, &s->build, &err), CT_OK);
    const int64_t before = n_allocations;
    for (int64_t step = 1; step <= N_STEPS; step++) {
        const int rows = B / o->accumulation;
        for (int m = 0; m < o->accumulation; m++) {
            int32_t tokens[B * S], labels[B * S], positions[B * S], segments[B * S * 4] = {0};
            for (int i = 0; i < rows * S; i++) {
                const int at = m * rows * S + i;
                tokens[i] = (at * 7 + at / 5) % 100;
                const int row = at / S, n_valid = o->n_valid[row];
                labels[i] = o->n_valid[0] == 0 || at % S < n_valid ? ((at + 1) * 7 + (at + 1) / 5) % 100 : -100;
                positions[i] = i % S;
            }
            for (int r = 0; r < rows; r++) {
                const int32_t row[4] = {r * S, S, r * S, S};
                memcpy(segments + 4 * r, row, sizeof row);
            }
            for (int i = 0; i < S && o->packed > 0; i++) {
                const int in_second = o->packed == 3 ? i : i - S / 2; /* its token */
                const bool is_second = in_second >= 0 && in_second < S / 2;
                tokens[i] = is_second ? 7 + 11 * in_second : 40 + i + (o->packed == 2);
                labels[i] = is_second ? 50 + in_second : -100;
                positions[i] = i % (S / 2);
                labels[S + i] = -100;
            }
            const int32_t cut[12] = {0, S / 2, 0, S / 2, S / 2, S / 2, S / 2, S / 2, S, S, S, S};
            if (o->packed > 0) {
                memcpy(segments, cut, sizeof cut);
            }
            const int32_t n_segments = rows + (o->packed > 0), first = m == 0;
            const int n_labels = o->packed > 0 ? S / 2 : o->n_valid[0] == 0 ? B * S : o->n_valid[0] + o->n_valid[1];
            const float inv = 1.0F / (float)n_labels;
            put(e, s, s->build.tokens, tokens);
            put(e, s, s->build.labels, labels);
            put(e, s, s->build.positions, positions);
            put(e, s, s->build.segments, segments);
            put(e, s, s->build.n_segments, &n_segments);
            put(e, s, s->build.inv_tokens, &inv);
            if (s->optim.first != CT_NO_VALUE) {
                put(e, s, s->optim.first, &first);
            }
            if (ct_runtime_run(e->runtime, 0, CT_PROGRAM_FORWARD, &err) != CT_OK ||
                ct_runtime_run(e->runtime, 0, CT_PROGRAM_BACKWARD, &err) != CT_OK) {
                fail_msg("%s", err.message);
            }
        }
        const double lr = 1e-3;
        put(e, s, s->optim.lr, &lr);
        put(e, s, s->optim.step, &step);
        if (ct_runtime_run(e->runtime, 0, CT_PROGRAM_OPTIMIZER, &err) != CT_OK) {
            fail_msg("%s", err.message);
        }
        assert_int_equal(ct_runtime_read(e->runtime, 0, s->optim.loss, &losses[step - 1], 8, &err), CT_OK);
        assert_int_equal(ct_runtime_read(e->runtime, 0, s->optim.norm, &norms[step - 1], 8, &err), CT_OK);
    }
    assert_int_equal(n_allocations, before); /* a step allocates nothing */
    cti_engine_destroy(&e);
    cti_step_destroy(&s);
    ct_tree_destroy(&tree);
}

static void test_losses_fall(void **state)
{
    (void)state;
    double loss[N_STEPS], norm[N_STEPS];
    run(&(run_options){ct_backend_ref(), CT_RECOMPUTE_NONE, CT_DTYPE_F32, 1, false, {0}, 0.0, 0}, loss, norm);
    printf("loss %.6f .. %.6f, norm %.6f\n", loss[0], loss[N_STEPS - 1], norm[0]);
    assert_true(loss[0] > 6.5 && loss[0] < 9.0); /* near ln(2048) = 7.6 */
    assert_true(loss[N_STEPS - 1] < loss[0] - 0.1);
}

/* Recomputing gives the same bits as keeping: the same kernels on the same inputs. */
static void test_recompute_is_bitwise(void **state)
{
    (void)state;
    double loss[N_STEPS], norm[N_STEPS], loss2[N_STEPS], norm2[N_STEPS];
    for (int dtype = 0; dtype < 2; dtype++) {
        const ct_dtype compute = dtype == 0 ? CT_DTYPE_F32 : CT_DTYPE_BF16;
        run(&(run_options){ct_backend_cpu(), CT_RECOMPUTE_NONE, compute, 1, false, {0}, 0.0, 0}, loss, norm);
        for (int mode = CT_RECOMPUTE_SELECTIVE; mode <= CT_RECOMPUTE_FULL; mode++) {
            run(&(run_options){ct_backend_cpu(), (ct_recompute_mode)mode, compute, 1, false, {0}, 0.0, 0}, loss2, norm2);
            assert_memory_equal(loss, loss2, sizeof loss);
            assert_memory_equal(norm, norm2, sizeof norm);
        }
        for (int quarter = 1; quarter <= 3; quarter++) {
            run(&(run_options){.backend = ct_backend_cpu(), .mode = CT_RECOMPUTE_BUDGET, .compute = compute, .accumulation = 1, .budget = quarter / 4.0},
                loss2, norm2);
            assert_memory_equal(loss, loss2, sizeof loss);
            assert_memory_equal(norm, norm2, sizeof norm);
        }
    }
}

/* Two micro-batches of one row are the batch of two rows, to the rounding of sums of about B*S*256 terms in f32. */
static void test_accumulation(void **state)
{
    (void)state;
    double loss[N_STEPS], norm[N_STEPS], loss2[N_STEPS], norm2[N_STEPS];
    run(&(run_options){ct_backend_cpu(), CT_RECOMPUTE_NONE, CT_DTYPE_F32, 1, false, {0}, 0.0, 0}, loss, norm);
    run(&(run_options){ct_backend_cpu(), CT_RECOMPUTE_NONE, CT_DTYPE_F32, 2, false, {0}, 0.0, 0}, loss2, norm2);
    const double bound = (double)(B * S) * ct_dtype_unit_roundoff(CT_DTYPE_F32) * 4.0;
    assert_true(fabs(loss[0] - loss2[0]) <= bound * loss[0]);
    assert_true(fabs(norm[0] - norm2[0]) <= bound * norm[0]);
}

/* A micro-batch with few labels that count, or none, weighs as much as its labels: loss and gradients are those of one batch. */
static void test_labels_weigh_the_same(void **state)
{
    (void)state;
    double loss[N_STEPS], norm[N_STEPS], loss2[N_STEPS], norm2[N_STEPS], alone[N_STEPS];
    for (int n = 0; n <= 1; n++) {
        run(&(run_options){ct_backend_cpu(), CT_RECOMPUTE_NONE, CT_DTYPE_F32, 1, false, {S, n}, 0.0, 0}, loss, norm);
        run(&(run_options){ct_backend_cpu(), CT_RECOMPUTE_NONE, CT_DTYPE_F32, 2, false, {S, n}, 0.0, 0}, loss2, norm2);
        const double bound = (double)(B * S) * ct_dtype_unit_roundoff(CT_DTYPE_F32) * 4.0;
        assert_true(isfinite(loss2[N_STEPS - 1]) && isfinite(norm2[N_STEPS - 1]));
        assert_true(fabs(loss[0] - loss2[0]) <= bound * loss[0]);
        assert_true(fabs(norm[0] - norm2[0]) <= bound * norm[0]);
        /* and the one batch is the sum over its labels, over their number: 7 labels are 6 of one row and 1 of the other */
        if (n == 0) {
            memcpy(alone, loss, sizeof alone);
        } else {
            double first[N_STEPS];
            run(&(run_options){ct_backend_cpu(), CT_RECOMPUTE_NONE, CT_DTYPE_F32, 1, false, {1, 1}, 0.0, 0}, first, norm);
            double one[N_STEPS];
            run(&(run_options){ct_backend_cpu(), CT_RECOMPUTE_NONE, CT_DTYPE_F32, 1, false, {1, 0}, 0.0, 0}, one, norm);
            const double last_label = 2.0 * first[0] - one[0]; /* the loss of the second row's label */
            assert_true(fabs(loss[0] - (S * alone[0] + last_label) / (S + 1)) <= 4.0 * bound * loss[0]);
        }
    }
}

/* A document does not see the one before it in its row, nor is it moved by it: with another one there nothing changes in its loss and gradients,
 * and alone at the row's beginning it has the same. */
static void test_documents_of_a_row(void **state)
{
    (void)state;
    double loss[3][N_STEPS], norm[3][N_STEPS];
    for (int dtype = 0; dtype < 2; dtype++) {
        for (int packed = 1; packed <= 3; packed++) {
            run(&(run_options){ct_backend_cpu(), CT_RECOMPUTE_NONE, dtype == 0 ? CT_DTYPE_F32 : CT_DTYPE_BF16, 1, false, {0}, 0.0, packed},
                loss[packed - 1], norm[packed - 1]);
        }
        assert_true(loss[0][0] > 1.0 && loss[0][0] == loss[1][0] && norm[0][0] == norm[1][0]);
        const double bound = (double)S * ct_dtype_unit_roundoff(CT_DTYPE_F32) * 4.0; /* its sums are made in another place, of the same terms */
        assert_true(fabs(loss[0][0] - loss[2][0]) <= bound * loss[0][0]);
        assert_true(dtype == 1 || fabs(norm[0][0] - norm[2][0]) <= bound * norm[0][0]);
    }
}

/* Reading the gradient where it was made is what accumulating one micro-batch comes to, and needs no buffer for it. */
static void test_one_micro_batch(void **state)
{
    (void)state;
    double loss[N_STEPS], norm[N_STEPS], loss2[N_STEPS], norm2[N_STEPS];
    for (int dtype = 0; dtype < 2; dtype++) {
        const ct_dtype compute = dtype == 0 ? CT_DTYPE_F32 : CT_DTYPE_BF16;
        run(&(run_options){ct_backend_cpu(), CT_RECOMPUTE_NONE, compute, 1, false, {0}, 0.0, 0}, loss, norm);
        run(&(run_options){ct_backend_cpu(), CT_RECOMPUTE_NONE, compute, 1, true, {0}, 0.0, 0}, loss2, norm2);
        assert_memory_equal(loss, loss2, sizeof loss);
        assert_memory_equal(norm, norm2, sizeof norm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses_fall),
        cmocka_unit_test(test_recompute_is_bitwise),
        cmocka_unit_test(test_accumulation),
        cmocka_unit_test(test_labels_weigh_the_same),
        cmocka_unit_test(test_documents_of_a_row),
        cmocka_unit_test(test_one_micro_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
