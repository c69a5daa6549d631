/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: comm/gloo comm/local comm base */
/* labels: slow */
/* A rank that makes the same call of another size: nobody gets wrong bytes, all end at the limit, and the files of the flight recorder say
 * which rank called what. */
#include "dist/comm_fork.h"

#include "base/file.h"
#include "comm/flight.h"

enum { N = 3, ODD = 2, LIMIT_MS = 2000 };

static char dir[] = "/tmp/ctitan-flight-XXXXXX";

static void rank_main(int rank, int port)
{
    ct_err err = {0};
    ct_place place = fork_place(rank, N, port);
    char path[64];
    (void)snprintf(path, sizeof path, "%s/rank_%d", dir, rank);
    const ct_comm_options options = {.timeout_ms = 60000, .n_records = 8, .record_path = path, .version = "1"};
    ct_bootstrap *boot;
    ct_comm *world;
    const ct_comm_engine *engine;
    TRY(ct_bootstrap_create(ct_alloc_system(), &place, 60000, &boot, &err));
    TRY(cti_comm_engine_pick("gloo", N, &engine, &err));
    TRY(ct_comm_world_create(ct_alloc_system(), engine, boot, &options, &world, &err));
    int64_t values[4] = {rank, rank, rank, rank};
    TRY(ct_comm_all_reduce(world, values, values, 2, CT_DTYPE_I64, CT_REDUCE_SUM, NULL, &err));
    CHECK(values[0] == 0 + 1 + 2);
    ct_comm_set_timeout(world, LIMIT_MS);
    ct_comm_note(world, 5, "step");
    const ct_status st =
        ct_comm_all_reduce(world, values, values, rank == ODD ? 4 : 2, CT_DTYPE_I64, CT_REDUCE_SUM, NULL, &err);
    CHECK(st == CT_ERR_TIMEOUT || st == CT_ERR_PEER); /* the first to give up closes its connections */
    ct_comm_destroy(&world);
    ct_bootstrap_destroy(&boot);
}

static void test_mismatch(void **state)
{
    (void)state;
    ct_err err = {0};
    int fd, port, status;
    pid_t pids[N];
    cti_store_server *server = NULL;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(cti_store_listen("127.0.0.1", 0, &fd, &port, &err), CT_OK);
    for (int r = 0; r < N; r++) {
        pids[r] = fork();
        assert_true(pids[r] >= 0);
        if (pids[r] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void)close(fd);
            rank_main(r, port);
            exit(0);
        }
    }
    assert_int_equal(cti_store_server_start(ct_alloc_system(), fd, N, "", &server, &err), CT_OK);
    for (int r = 0; r < N; r++) {
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        assert_int_equal(status, 0);
    }
    cti_store_server_stop(&server);
    cti_flight_rank ranks[N];
    for (int r = 0; r < N; r++) {
        char path[64], cause[256];
        (void)snprintf(path, sizeof path, "%s/rank_%d", dir, r);
        assert_int_equal(cti_flight_read_file(ct_alloc_system(), path, &ranks[r], cause, sizeof cause, &err), CT_OK);
        assert_int_equal(ranks[r].head.step, 5);
        assert_true(cause[0] != '\0');
    }
    cti_str text = {.alloc = ct_alloc_system()};
    cti_flight_verdict(ranks, N, &text);
    assert_string_equal(text.data, "  all_reduce 2 of 'world' (16 bytes, i64): ranks 0, 1 called it; rank 2 called another instead, all_reduce 2 of "
                                   "'world' (32 bytes, i64)\n");
    cti_str_deinit(&text);
    assert_int_equal(cti_remove_tree(dir, &err), CT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mismatch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
