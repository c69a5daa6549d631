/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: optim base */
/* labels: fast */
/* Learning-rate factors against upstream's published examples and its rules at the borders; the mesh's degrees and names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "mesh/flat.h"
#include "mesh/mesh.h"
#include "optim/optim.h"

static void check(ct_lr_schedule s, const double *wanted, int n)
{
    for (int i = 0; i < n; i++) {
        const double f = ct_lr_factor(&s, i);
        if (fabs(f - wanted[i]) > 4.0 * 0x1p-53) {
            fail_msg("update %d: factor %.17g, wanted %.17g", i + 1, f, wanted[i]);
        }
    }
}

static void test_examples(void **state)
{
    (void)state;
    const double linear[] = {.5, 1, 1, .875, .75, .625, .5, .375, .25, .125}, half[] = {.5, 1, 1, 1, 1, 1, .8, .6, .4, .2};
    check(ct_lr_schedule_make(10, 2, -1.0, CT_LR_LINEAR, 0.0), linear, 10);
    check(ct_lr_schedule_make(10, 2, 0.8, CT_LR_LINEAR, 0.0), linear, 10);
    check(ct_lr_schedule_make(10, 2, 0.5, CT_LR_LINEAR, 0.0), half, 10);
    const double root[] = {.5, 1, 1, 1 - sqrt(.125), 1 - sqrt(.25)}, cosine[] = {.5, 1, 1, .5 * (1 + cos(M_PI * .125))};
    check(ct_lr_schedule_make(10, 2, -1.0, CT_LR_SQRT, 0.0), root, 5);
    check(ct_lr_schedule_make(10, 2, -1.0, CT_LR_COSINE, 0.0), cosine, 4);
    const double floor_[] = {.5, 1, 1, .1 + .9 * .875};
    check(ct_lr_schedule_make(10, 2, -1.0, CT_LR_LINEAR, 0.1), floor_, 4);
}

/* Five steps up from a fifth, the peak at the fifth, five down; the last step that is taken is above the floor of 0. */
static void test_peak_is_reached(void **state)
{
    (void)state;
    const double wanted[] = {.2, .4, .6, .8, 1, 1, .8, .6, .4, .2};
    check(ct_lr_schedule_make(10, 5, -1.0, CT_LR_LINEAR, 0.0), wanted, 10);
}

/* No warm-up, no decay, all warm-up, more warm-up or decay than steps, one step: finite, not negative, at most the peak. */
static void test_borders(void **state)
{
    (void)state;
    static const int64_t totals[] = {1, 2, 3, 10}, warmups[] = {0, 1, 2, 10, 200};
    static const double ratios[] = {-1.0, 0.0, 0.3, 0.8, 1.0}, floors[] = {0.0, 0.1, 1.0};
    for (size_t i = 0; i < 4 * 5 * 5 * 3 * 3; i++) {
        const int64_t total = totals[i % 4], warmup = warmups[i / 4 % 5];
        const double ratio = ratios[i / 20 % 5], least = floors[i / 100 % 3];
        const ct_lr_schedule s = ct_lr_schedule_make(total, warmup, ratio, (ct_lr_decay)(i / 300), least);
        double most = 0.0;
        for (int64_t step = 0; step <= total + 1; step++) { /* and beyond the end, as after a resume with fewer steps */
            const double f = ct_lr_factor(&s, step);
            assert_true(isfinite(f) && f >= 0.0 && f <= 1.0);
            assert_true(step >= total || f > 0.0);
            most = f > most ? f : most;
        }
        assert_true(most == 1.0);
    }
}

static void test_clamps(void **state)
{
    (void)state;
    ct_lr_schedule s = ct_lr_schedule_make(2, 2, 0.8, CT_LR_LINEAR, 0.0);
    assert_true(s.is_decay_cut && !s.is_warmup_cut && s.decay_steps == 0);
    s = ct_lr_schedule_make(3, 200, -1.0, CT_LR_LINEAR, 0.0);
    assert_true(s.is_warmup_cut && s.warmup_steps == 3);
    s = ct_lr_schedule_make(10, 0, -1.0, CT_LR_LINEAR, 0.25);
    assert_true(ct_lr_factor(&s, 1000000) == 0.25); /* never below the floor */
    assert_int_equal(ct_lr_schedule_make(5, 0, 0.5, CT_LR_LINEAR, 0.0).decay_steps, 2); /* 2.5: half to even */
    assert_int_equal(ct_lr_schedule_make(7, 0, 0.5, CT_LR_LINEAR, 0.0).decay_steps, 4); /* 3.5 */
}

static void test_mesh(void **state)
{
    (void)state;
    ct_mesh m;
    ct_err err = {0};
    char names[160];
    const int64_t d[CT_AXIS_COUNT] = {1, 2, -1, 1, 2, 1};
    assert_int_equal(ct_mesh_init(&m, d, 8, 5, &err), CT_OK);
    assert_int_equal(m.degree[CT_AXIS_DP_SHARD], 2);
    assert_int_equal(m.coord[CT_AXIS_TP], 1); /* 5 = 1 0 1 over (2, 2, 2), the last fastest */
    assert_int_equal(m.coord[CT_AXIS_DP_SHARD], 0);
    assert_int_equal(m.coord[CT_AXIS_DP_REPLICATE], 1);
    int64_t group[2];
    ct_mesh_group(&m, CT_AXIS_DP_SHARD, group);
    assert_true(group[0] == 5 && group[1] == 7);
    ct_mesh_active_names(&m, names, sizeof names);
    assert_string_equal(names, "['batch', 'loss', 'dp_replicate', 'tp', 'dp', 'dp_shard']");
    const int64_t wrong[CT_AXIS_COUNT] = {1, 1, 1, 1, 3, 1};
    assert_int_equal(ct_mesh_init(&m, wrong, 1, 0, &err), CT_ERR_USAGE);
    assert_non_null(strstr(err.message, "tp=3"));
}

/* Over any degree the shards of a group meet end to end and make every member whole. */
static void test_flat(void **state)
{
    (void)state;
    const ct_flat_param params[] = {{.name = "tok_embeddings.weight", .ndim = 2, .dims = {7, 5}},
                                    {.name = "layers.0.a.weight", .ndim = 2, .dims = {3, 11}},
                                    {.name = "layers.0.b.weight", .ndim = 1, .dims = {1}},
                                    {.name = "layers.1.a.weight", .ndim = 2, .dims = {64, 64}},
                                    {.name = "norm.weight", .ndim = 1, .dims = {5}},
                                    {.name = "lm_head.weight", .ndim = 2, .dims = {7, 5}}};
    for (int64_t degree = 1; degree <= 8; degree++) {
        ct_flat_layout *l = NULL;
        ct_err err = {0};
        assert_int_equal(ct_flat_layout_create(ct_alloc_system(), params, 6, degree, &l, &err), CT_OK);
        assert_int_equal(l->n_groups, 4);
        assert_string_equal(l->groups[3].name, "head");
        for (int32_t g = 0; g < l->n_groups; g++) {
            assert_int_equal(l->groups[g].total % (degree * CT_FLAT_ALIGN), 0);
            for (int32_t m = 0; m < l->groups[g].n_members; m++) {
                int64_t at = 0;
                for (int64_t r = 0; r < degree; r++) {
                    int64_t begin, end;
                    ct_flat_local_range(&l->groups[g], m, degree, r, &begin, &end);
                    assert_true(begin == at || begin == end);
                    at = end > at ? end : at;
                }
                assert_int_equal(at, l->groups[g].members[m].numel);
            }
        }
        ct_flat_layout_destroy(&l);
    }
}

/* Parts of parameters: cut ones and whole ones make groups of their own, and every element of a part is found in the whole. */
static void test_cut(void **state)
{
    (void)state;
    for (int64_t part = 0; part < 3; part++) {
        const ct_flat_param params[] = {
            {.name = "layers.0.wq", .ndim = 2, .dims = {4, 5}, .cut = {true, 0, 12, 4 * part}},
            {.name = "layers.0.norm", .ndim = 1, .dims = {5}, .is_owing = true},
            {.name = "layers.0.wo", .ndim = 2, .dims = {5, 4}, .cut = {true, 1, 12, 4 * part}},
        };
        ct_flat_layout *l = NULL;
        ct_err err = {0};
        assert_int_equal(ct_flat_layout_create(ct_alloc_system(), params, 3, 2, &l, &err), CT_OK);
        assert_int_equal(l->n_groups, 2);
        assert_string_equal(l->groups[0].name, "layers.0");
        assert_string_equal(l->groups[1].name, "layers.0.whole");
        assert_true(l->groups[0].is_cut && !l->groups[0].is_owing && !l->groups[1].is_cut && l->groups[1].is_owing);
        const ct_flat_member *wq = &l->groups[0].members[0], *wo = &l->groups[0].members[1];
        assert_true(wq->whole[0] == 12 && wq->whole[1] == 5 && wo->whole[0] == 5 && wo->whole[1] == 12 && wo->numel == 20);
        for (int64_t i = 0; i < 20; i++) {
            int64_t n;
            assert_int_equal(ct_flat_whole_run(wq, i, 20 - i, &n), 20 * part + i);
            assert_int_equal(n, 20 - i);
            assert_int_equal(ct_flat_whole_run(wo, i, 20 - i, &n), i / 4 * 12 + 4 * part + i % 4);
            assert_int_equal(n, 4 - i % 4);
        }
        ct_flat_layout_destroy(&l);
    }
    assert_int_equal(ct_flat_leaves(1), CT_FLAT_LEAVES);
    assert_int_equal(ct_flat_leaves(8), CT_FLAT_LEAVES / 8);
    assert_int_equal(ct_flat_leaves(3), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples), cmocka_unit_test(test_peak_is_reached), cmocka_unit_test(test_borders),
                                       cmocka_unit_test(test_clamps),
                                       cmocka_unit_test(test_mesh), cmocka_unit_test(test_flat), cmocka_unit_test(test_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
