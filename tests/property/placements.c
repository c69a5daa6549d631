/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: mesh base */
/* labels: fast */
/* The algebra of placements, on ranks played in memory: each transition keeps the value, and its backward move is the adjoint of its
 * forward move, so that gradients are those of the whole. */
#include "mesh/placement.h"
#include "base/num.h"
#include "base/rng.h"
#include "unit/base_test.h"

enum { MAX_RANKS = 5, N = 12 * 5 /* divides by 2 to 5 */ };

/* A value on all ranks: row r is what rank r holds, n elements. */
typedef struct held {
    int64_t n;
    double of[MAX_RANKS][N];
} held;

static held apply(ct_move move, const held *x, int ranks, int64_t whole)
{
    held y = {0};
    const int64_t part = whole / ranks;
    switch (move) {
    case CT_MOVE_NONE:
        return *x;
    case CT_MOVE_ALL_REDUCE:
        y.n = x->n;
        for (int64_t i = 0; i < x->n; i++) {
            for (int r = 0; r < ranks; r++) {
                for (int q = 0; q < ranks; q++) {
                    y.of[r][i] += x->of[q][i];
                }
            }
        }
        return y;
    case CT_MOVE_ALL_GATHER:
        y.n = whole;
        for (int r = 0; r < ranks; r++) {
            for (int64_t i = 0; i < whole; i++) {
                y.of[r][i] = x->of[i / part][i % part];
            }
        }
        return y;
    case CT_MOVE_REDUCE_SCATTER:
        y.n = part;
        for (int r = 0; r < ranks; r++) {
            for (int64_t i = 0; i < part; i++) {
                for (int q = 0; q < ranks; q++) {
                    y.of[r][i] += x->of[q][r * part + i];
                }
            }
        }
        return y;
    case CT_MOVE_SLICE:
        y.n = part;
        for (int r = 0; r < ranks; r++) {
            for (int64_t i = 0; i < part; i++) {
                y.of[r][i] = x->of[r][r * part + i];
            }
        }
        return y;
    case CT_MOVE_PAD:
        y.n = whole;
        for (int r = 0; r < ranks; r++) {
            for (int64_t i = 0; i < part; i++) {
                y.of[r][r * part + i] = x->of[r][i];
            }
        }
        return y;
    case CT_MOVE_IMPOSSIBLE:
        break;
    }
    fail_msg("no such move");
    return y;
}

/* A random value of a placement, small whole numbers: sums are exact. */
static held random_of(ct_placement p, int ranks, cti_rng_key key, uint64_t *draw)
{
    held x = {.n = p.kind == CT_PLACE_SHARD ? N / ranks : N};
    for (int r = 0; r < ranks; r++) {
        for (int64_t i = 0; i < x.n; i++) {
            const bool is_copy = (p.kind == CT_PLACE_REPLICATE || p.kind == CT_PLACE_OWING) && r > 0;
            x.of[r][i] = is_copy ? x.of[0][i] : (double)cti_rng_below(key, (*draw)++, 19) - 9.0;
        }
    }
    return x;
}

/* What the placement of a value makes of its gradient's. */
static ct_placement gradient_of(ct_placement p)
{
    static const ct_placement_kind kinds[] = {[CT_PLACE_REPLICATE] = CT_PLACE_REPLICATE, [CT_PLACE_OWING] = CT_PLACE_PARTIAL,
                                              [CT_PLACE_SHARD] = CT_PLACE_SHARD, [CT_PLACE_PARTIAL] = CT_PLACE_REPLICATE};
    return (ct_placement){.kind = (uint8_t)kinds[p.kind], .dim = p.dim};
}

/* The element that all ranks together mean. */
static double meaning(const held *x, ct_placement p, int ranks, int64_t i)
{
    const int64_t part = N / ranks;
    double sum = 0.0;
    switch ((ct_placement_kind)p.kind) {
    case CT_PLACE_REPLICATE:
    case CT_PLACE_OWING:
        return x->of[0][i];
    case CT_PLACE_SHARD:
        return x->of[i / part][i % part];
    case CT_PLACE_PARTIAL:
        for (int r = 0; r < ranks; r++) {
            sum += x->of[r][i];
        }
        return sum;
    case CT_PLACE_FLAT:
        break;
    }
    return 0.0;
}

static const ct_placement all[] = {{.kind = CT_PLACE_REPLICATE}, {.kind = CT_PLACE_OWING}, {.kind = CT_PLACE_SHARD}, {.kind = CT_PLACE_PARTIAL}};

/* value(to) == value(from), and <gradient, value> of the whole is the same before and after: loss = sum over elements of g y. */
static void transitions(void **state)
{
    (void)state;
    int n_possible = 0;
    for (int ranks = 2; ranks <= MAX_RANKS; ranks++) {
        for (size_t a = 0; a < N_OF(all); a++) {
            for (size_t b = 0; b < N_OF(all); b++) {
                const ct_transition t = ct_placement_transition(all[a], all[b]);
                assert_int_equal(t.forward == CT_MOVE_IMPOSSIBLE, t.backward == CT_MOVE_IMPOSSIBLE);
                if (t.forward == CT_MOVE_IMPOSSIBLE) {
                    continue;
                }
                n_possible++;
                const cti_rng_key key = cti_rng_key_make(a * 8 + b, "placements");
                uint64_t draw = 0;
                const held x = random_of(all[a], ranks, key, &draw);
                const held y = apply(t.forward, &x, ranks, N);
                const held gy = random_of(gradient_of(all[b]), ranks, key, &draw);
                const held gx = apply(t.backward, &gy, ranks, N);
                double before = 0.0, after = 0.0;
                for (int64_t i = 0; i < N; i++) {
                    assert_true(meaning(&x, all[a], ranks, i) == meaning(&y, all[b], ranks, i));
                    assert_true(meaning(&gx, gradient_of(all[a]), ranks, i) == meaning(&gy, gradient_of(all[b]), ranks, i));
                    before += meaning(&x, all[a], ranks, i) * meaning(&gx, gradient_of(all[a]), ranks, i);
                    after += meaning(&y, all[b], ranks, i) * meaning(&gy, gradient_of(all[b]), ranks, i);
                }
                assert_true(before == after);
                /* What is said to be the same on every rank is. */
                const ct_placement g = gradient_of(all[a]);
                for (int r = 1; r < ranks && g.kind == CT_PLACE_REPLICATE; r++) {
                    assert_memory_equal(gx.of[0], gx.of[r], sizeof gx.of[0]);
                }
            }
        }
    }
    assert_int_equal(n_possible, (MAX_RANKS - 1) * (4 + 8));
}

static void ranges(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 40; n++) {
        for (int64_t degree = 1; degree < 9; degree++) {
            int64_t at = 0;
            for (int64_t c = 0; c < degree; c++) {
                int64_t begin, end;
                ct_shard_range(n, degree, c, &begin, &end);
                assert_int_equal(begin, at);
                assert_true(end - begin <= (n + degree - 1) / degree && end >= begin);
                at = end;
            }
            assert_int_equal(at, n);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(transitions), cmocka_unit_test(ranges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
