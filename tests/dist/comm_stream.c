/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: comm/gloo comm/local comm base */
/* labels: fast */
/* Collectives beside the computation: started in order, waited for by number, on a group of their own while another group of the same ranks
 * is used in line; a member that is gone fails the call that misses it and all behind it, and every wait says so. */
#include "dist/comm_fork.h"

#include "comm/stream.h"

enum { N_CALLS = 24, N = 5000 };

typedef struct work { /* calls of all kinds with their data */
    ct_comm *beside;
    ct_comm_stream *stream;
    ct_comm_call calls[N_CALLS];
    double *in[N_CALLS], *out[N_CALLS];
} work;

static double value(int call, int rank, int i)
{
    return call * 3.0 + rank * 7.0 + i % 11;
}

static void prepare(work *w, ct_comm *world)
{
    ct_err err = {0};
    const int n = ct_comm_size(world), me = ct_comm_rank(world);
    int ranks[8];
    for (int r = 0; r < n; r++) {
        ranks[r] = r;
    }
    TRY(ct_comm_split(world, "beside", ranks, n, &w->beside, &err));
    TRY(ct_comm_stream_create(ct_alloc_system(), N_CALLS, &w->stream, &err));
    for (int c = 0; c < N_CALLS; c++) {
        static const ct_comm_op kinds[] = {CT_COMM_ALL_GATHER, CT_COMM_REDUCE_SCATTER, CT_COMM_ALL_REDUCE};
        w->in[c] = malloc((size_t)n * N * sizeof(double)); /* NOLINT */
        w->out[c] = malloc((size_t)n * N * sizeof(double)); /* NOLINT */
        for (int i = 0; i < n * N; i++) {
            w->in[c][i] = value(c, me, i);
            w->out[c][i] = -1.0;
        }
        w->calls[c] = (ct_comm_call){.comm = w->beside, .kind = kinds[c % 3], .in = w->in[c], .out = w->out[c], .count = N,
                                     .dtype = CT_DTYPE_F64, .reduce = CT_REDUCE_SUM, .what = "flat.layers.0"};
    }
}

static void check(const work *w, int c, int n, int me)
{
    for (int i = 0; i < N; i++) {
        double sum = 0.0;
        for (int r = 0; r < n; r++) {
            sum += value(c, r, c % 3 == 1 ? me * N + i : i);
        }
        for (int r = 0; r < n; r++) {
            CHECK(c % 3 == 0 ? w->out[c][r * N + i] == value(c, r, i) : w->out[c][i] == sum);
        }
    }
}

static void finish(work *w)
{
    ct_comm_stream_destroy(&w->stream);
    ct_comm_destroy(&w->beside);
    for (int c = 0; c < N_CALLS; c++) {
        free(w->in[c]);
        free(w->out[c]);
    }
}

static void beside(ct_comm *world)
{
    ct_err err = {0};
    work w = {0};
    const int n = ct_comm_size(world), me = ct_comm_rank(world);
    prepare(&w, world);
    for (int round = 0; round < 3; round++) {
        int64_t first = 0, before = 0;
        for (int c = 0; c < N_CALLS; c++) {
            const int64_t number = ct_comm_stream_start(w.stream, &w.calls[c]);
            first = c == 0 ? number : first;
            CHECK(number == first + c && number == (int64_t)round * N_CALLS + c + 1);
            double sum = me + 1.0; /* in line, on another group of the same ranks */
            TRY(ct_comm_all_reduce(world, &sum, &sum, 1, CT_DTYPE_F64, CT_REDUCE_SUM, NULL, &err));
            CHECK(sum == n * (n + 1) / 2.0);
            if (c % 5 == 4) {
                TRY(ct_comm_stream_wait(w.stream, first + c - 2, &err)); /* and so all before it */
                for (int k = 0; k <= c - 2; k++) {
                    check(&w, k, n, me);
                }
            }
        }
        TRY(ct_comm_stream_wait(w.stream, first + N_CALLS - 1, &err));
        for (int c = 0; c < N_CALLS; c++) {
            int64_t begin, end;
            ct_comm_stream_times(w.stream, first + c, &begin, &end);
            CHECK(begin >= before && end >= begin); /* one after another */
            before = end;
            check(&w, c, n, me);
            memset(w.out[c], 0, (size_t)N * sizeof(double));
        }
    }
    TRY(ct_comm_barrier(world, NULL, &err));
    finish(&w);
}

/* Rank 1 goes away before its third call. */
static void one_goes(ct_comm *world)
{
    ct_err err = {0};
    work w = {0};
    prepare(&w, world);
    const bool stays = ct_comm_rank(world) != 1;
    for (int c = 0; c < (stays ? N_CALLS : 2); c++) {
        (void)ct_comm_stream_start(w.stream, &w.calls[c]);
    }
    if (!stays) {
        TRY(ct_comm_stream_wait(w.stream, 2, &err));
        _exit(0);
    }
    for (int again = 0; again < 2; again++) {
        err = (ct_err){0};
        const ct_status st = ct_comm_stream_wait(w.stream, N_CALLS, &err);
        CHECK(st == CT_ERR_PEER || st == CT_ERR_TIMEOUT);
        CHECK(strstr(err.message, "node 'flat.layers.0': ") != NULL && strstr(err.message, "in group 'beside'") != NULL);
    }
    check(&w, 0, ct_comm_size(world), ct_comm_rank(world)); /* what was done before is there */
    check(&w, 1, ct_comm_size(world), ct_comm_rank(world));
    CHECK(w.out[N_CALLS - 1][0] == -1.0); /* what is behind was not begun */
    _exit(0); /* the others' connections are gone */
}

/* Ended with calls in flight: the one that runs is waited for, the others are left. */
static void left_in_flight(ct_comm *world)
{
    work w = {0};
    prepare(&w, world);
    for (int c = 0; c < N_CALLS; c++) {
        (void)ct_comm_stream_start(w.stream, &w.calls[c]);
    }
    finish(&w);
}

static void test_beside(void **state)
{
    (void)state;
    expect_ranks(1, beside);
    expect_ranks(2, beside);
    expect_ranks(3, beside);
}

static void test_one_goes(void **state)
{
    (void)state;
    expect_ranks(2, one_goes);
}

static void test_left_in_flight(void **state)
{
    (void)state;
    expect_ranks(1, left_in_flight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_beside), cmocka_unit_test(test_one_goes),
                                       cmocka_unit_test(test_left_in_flight)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
