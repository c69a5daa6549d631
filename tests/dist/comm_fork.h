/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of several ranks: forks them, gives each a world, and collects how they ended. */
#ifndef TESTS_DIST_COMM_FORK_H
#define TESTS_DIST_COMM_FORK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "comm/comm.h"
#include "comm/engines.h"
#include "comm/store.h"

/* In a rank: cmocka belongs to the parent, so a failure is a line and an exit code. */
#define CHECK(expr)                                                                                                    \
    do {                                                                                                               \
        if (!(expr)) {                                                                                                 \
            (void)fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #expr);                                 \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)
#define TRY(expr)                                                                                                      \
    do {                                                                                                               \
        if ((expr) != CT_OK) {                                                                                         \
            (void)fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #expr, err.message);                          \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static inline ct_place fork_place(int rank, int n, int port)
{
    ct_place place = {.rank = rank, .world_size = n, .local_rank = rank, .local_world_size = n, .master_port = port,
                      .store_is_supervised = true};
    (void)snprintf(place.master_addr, sizeof place.master_addr, "127.0.0.1");
    return place;
}

/* What a rank does: connects, runs body, leaves. */
static inline void fork_rank(int rank, int n, int port, int64_t timeout_ms, void (*body)(ct_comm *world))
{
    ct_err err = {0};
    ct_place place = fork_place(rank, n, port);
    ct_comm_options options = {.timeout_ms = timeout_ms};
    ct_bootstrap *boot;
    ct_comm *world;
    const ct_comm_engine *engine;
    TRY(ct_bootstrap_create(ct_alloc_system(), &place, timeout_ms, &boot, &err));
    TRY(cti_comm_engine_pick(NULL, n, &engine, &err));
    TRY(ct_comm_world_create(ct_alloc_system(), engine, boot, &options, &world, &err));
    body(world);
    ct_comm_destroy(&world);
    ct_bootstrap_destroy(&boot);
}

/* Forks n ranks around a store in this process; how each ended (as wait tells it) goes to status [n]. */
static inline void run_ranks(int n, int64_t timeout_ms, void (*body)(ct_comm *world), int *status)
{
    ct_err err = {0};
    pid_t pids[16];
    int fd, port;
    cti_store_server *server = NULL;
    assert_int_equal(cti_store_listen("127.0.0.1", 0, &fd, &port, &err), CT_OK);
    for (int r = 0; r < n; r++) {
        pids[r] = fork();
        assert_true(pids[r] >= 0);
        if (pids[r] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void)close(fd);
            fork_rank(r, n, port, timeout_ms, body);
            exit(0); /* not _exit: leak checkers run here */
        }
    }
    assert_int_equal(cti_store_server_start(ct_alloc_system(), fd, n, "", &server, &err), CT_OK);
    for (int r = 0; r < n; r++) {
        assert_int_equal(waitpid(pids[r], &status[r], 0), pids[r]);
    }
    cti_store_server_stop(&server);
}

static inline void expect_ranks(int n, void (*body)(ct_comm *world))
{
    int status[16];
    run_ranks(n, 60000, body, status);
    for (int r = 0; r < n; r++) {
        assert_int_equal(status[r], 0);
    }
}

#endif
