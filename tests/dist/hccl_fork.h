/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of HCCL's engine: ranks as forks, each with a device of the doubles of CANN and a world on it. */
#ifndef TESTS_DIST_HCCL_FORK_H
#define TESTS_DIST_HCCL_FORK_H

#include "backend/npu/npu.h"
#include "base/file.h"
#include "comm/hccl/hccl_engine.h"
#include "dist/comm_fork.h"

/* One rank as it is started; the environment is set in its process alone. */
typedef struct hccl_rank {
    ct_comm *world;
    const ct_backend *npu;
    void *device, *stream;
    ct_bootstrap *boot;
} hccl_rank;

typedef struct hccl_case {
    int n;
    void (*body)(hccl_rank *rank);
    const char *env[8];       /* "NAME=value" of every rank; NULL ends */
    int faulty;               /* the rank that has fault, -1: none */
    const char *fault;        /* of FAKE_CANN_FAULT */
    bool is_deterministic;
    bool shares_device;       /* all ranks on device 0 */
    int64_t timeout_ms;       /* 0: a minute */
} hccl_case;

static inline void hccl_put_env(const char *text)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
    CHECK(setenv(name, text + strlen(name) + 1, 1) == 0);
}

/* CT_NPU_HARDWARE=1: with the CANN that is installed, and its devices. */
static inline bool hccl_is_on_hardware(void)
{
    const char *value = getenv("CT_NPU_HARDWARE");
    return value != NULL && strcmp(value, "1") == 0;
}

static inline void hccl_rank_main(const hccl_case *c, int r, int port)
{
    ct_err err = {0};
    hccl_rank rank = {.npu = ct_backend_npu()};
    const int64_t timeout_ms = c->timeout_ms > 0 ? c->timeout_ms : 60000;
    const ct_place place = fork_place(r, c->n, port);
    const ct_comm_options options = {.timeout_ms = timeout_ms, .is_deterministic = c->is_deterministic};
    if (!hccl_is_on_hardware()) {
        hccl_put_env("ASCEND_HOME_PATH=" CT_BINARY_DIR "/fake_cann");
        hccl_put_env("FAKE_CANN_DEVICES=4");
        hccl_put_env("FAKE_CANN_LEAKS=fail");
    }
    for (int i = 0; c->env[i] != NULL; i++) {
        hccl_put_env(c->env[i]);
    }
    if (r == c->faulty) {
        CHECK(setenv("FAKE_CANN_FAULT", c->fault, 1) == 0);
    }
    TRY(ct_bootstrap_create(ct_alloc_system(), &place, timeout_ms, &rank.boot, &err));
    TRY(rank.npu->device_open(ct_alloc_system(), c->shares_device ? 0 : r, &rank.device, &err));
    rank.stream = rank.npu->stream(rank.device, 1);
    TRY(ct_comm_world_create(ct_alloc_system(), ct_comm_hccl_engine(), rank.boot, &options, &rank.world, &err));
    c->body(&rank);
    ct_comm_destroy(&rank.world);
    rank.npu->device_close(&rank.device);
    ct_bootstrap_destroy(&rank.boot);
}

/* How each rank ended, as wait tells it. */
static inline void hccl_run(const hccl_case *c, int *status)
{
    ct_err err = {0};
    pid_t pids[16];
    int fd, port;
    cti_store_server *server = NULL;
    assert_int_equal(cti_store_listen("127.0.0.1", 0, &fd, &port, &err), CT_OK);
    for (int r = 0; r < c->n; r++) {
        pids[r] = fork();
        assert_true(pids[r] >= 0);
        if (pids[r] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void)close(fd);
            hccl_rank_main(c, r, port);
            exit(0); /* not _exit: the doubles and leak checkers look at what is left */
        }
    }
    assert_int_equal(cti_store_server_start(ct_alloc_system(), fd, c->n, "", &server, &err), CT_OK);
    for (int r = 0; r < c->n; r++) {
        assert_int_equal(waitpid(pids[r], &status[r], 0), pids[r]);
    }
    cti_store_server_stop(&server);
}

static inline void hccl_expect(const hccl_case *c)
{
    int status[16];
    hccl_run(c, status);
    for (int r = 0; r < c->n; r++) {
        assert_int_equal(status[r], 0);
    }
}

/* ---- memory of the device ---- */

static inline void *hccl_put(hccl_rank *r, const void *host, size_t bytes)
{
    ct_err err = {0};
    void *p = NULL;
    TRY(r->npu->memory_alloc(r->device, bytes + 64, &p, &err));
    if (host != NULL && bytes > 0) {
        TRY(r->npu->copy_to_device(r->device, p, host, bytes, r->stream, &err));
    }
    return p;
}

static inline void hccl_get(hccl_rank *r, void *host, const void *device, size_t bytes)
{
    ct_err err = {0};
    if (bytes > 0) {
        TRY(r->npu->copy_to_host(r->device, host, device, bytes, r->stream, &err));
    }
}

static inline void hccl_drop(hccl_rank *r, void *device, size_t bytes)
{
    r->npu->memory_free(r->device, device, bytes + 64);
}

#endif
