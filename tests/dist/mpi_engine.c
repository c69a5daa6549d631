/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: comm/gloo comm/local comm base */
/* labels: slow */
/* The MPI engine under the real mpirun: every collective gives the bits of the ordered sums; messages of more than one piece; and how a run
 * ends where a rank leaves, hangs, dies, or calls another collective. This program starts mpirun with itself as the ranks. */
#include "dist/comm_bodies.h"

#include <signal.h>

#include "base/file.h"

enum { OTHER_MS = 120000, SHORT_MS = 1000 };

/* ---- a rank ---- */

/* More than two pieces of 64 MiB; with "huge" more than an int counts. */
static void try_large(ct_comm *world, size_t size)
{
    ct_err err = {0};
    unsigned char *data = CT_NEW_ARRAY(ct_alloc_system(), unsigned char, size, NULL);
    CHECK(data != NULL);
    for (size_t i = 0; i < size && ct_comm_rank(world) == 0; i++) {
        data[i] = (unsigned char)((i * 2654435761u) >> 13);
    }
    TRY(ct_comm_broadcast(world, data, (int64_t)size, CT_DTYPE_U8, 0, NULL, &err));
    for (size_t i = 0; i < size; i++) {
        CHECK(data[i] == (unsigned char)((i * 2654435761u) >> 13));
    }
    ct_alloc_free(ct_alloc_system(), data);
}

static void all(ct_comm *world)
{
    statistics(world);
    collectives(world);
    try_large(world, ((size_t)130 << 20) + 3);
}

static void huge(ct_comm *world)
{
    try_large(world, ((size_t)1 << 31) + 5);
}

/* What the others see of `culprit`; ends with the code that a program would. */
static void expect_failure(ct_comm *world, ct_status wanted, int culprit)
{
    ct_err err = {0};
    float x = 1.0f;
    ct_status st = ct_comm_all_reduce(world, &x, &x, 1, CT_DTYPE_F32, CT_REDUCE_SUM, NULL, &err);
    char name[32];
    (void)snprintf(name, sizeof name, "rank %d ", culprit);
    if (st != wanted || strstr(err.message, name) == NULL) {
        (void)fprintf(stderr, "wanted status %d and '%s', found %d: %s\n", (int)wanted, name, (int)st, err.message);
        exit(9);
    }
    (void)fprintf(stderr, "as wanted: %s\n", err.message);
    ct_comm_destroy(&world);
    exit(ct_status_exit_code(st));
}

static void leave(ct_comm *world)
{
    if (ct_comm_rank(world) == 2) {
        ct_comm_destroy(&world);
        exit(3);
    }
    expect_failure(world, CT_ERR_PEER, 2);
}

static void hang(ct_comm *world)
{
    ct_comm_set_timeout(world, SHORT_MS);
    while (ct_comm_rank(world) == 1) {
        (void)pause();
    }
    expect_failure(world, CT_ERR_TIMEOUT, 1);
}

static void die(ct_comm *world)
{
    if (ct_comm_rank(world) == 1) {
        (void)raise(SIGKILL);
    }
    expect_failure(world, CT_ERR_PEER, 1); /* mpirun ends this rank while it waits */
}

static void differ(ct_comm *world)
{
    ct_err err = {0};
    int64_t x[2] = {1, 1};
    ct_comm_set_timeout(world, SHORT_MS);
    ct_status st = ct_comm_all_reduce(world, x, x, ct_comm_rank(world) == 0 ? 1 : 2, CT_DTYPE_I64, CT_REDUCE_SUM, NULL, &err);
    CHECK(st == CT_ERR_TIMEOUT || st == CT_ERR_PEER);
    ct_comm_destroy(&world);
    exit(ct_status_exit_code(st));
}

static const struct {
    const char *name;
    void (*body)(ct_comm *world);
} modes[] = {{"all", all}, {"huge", huge}, {"leave", leave}, {"hang", hang}, {"die", die}, {"differ", differ}};

static int rank(const char *mode)
{
    ct_err err = {0};
    ct_place place;
    ct_bootstrap *boot;
    ct_comm *world;
    const ct_comm_engine *engine;
    const ct_comm_options options = {.timeout_ms = OTHER_MS};
    TRY(ct_place_from_env(NULL, NULL, &place, &err));
    TRY(ct_bootstrap_create(ct_alloc_system(), &place, OTHER_MS, &boot, &err));
    TRY(cti_comm_engine_pick("mpi", place.world_size, &engine, &err));
    TRY(ct_comm_world_create(ct_alloc_system(), engine, boot, &options, &world, &err));
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(modes[i].name, mode) == 0) {
            modes[i].body(world);
        }
    }
    ct_comm_destroy(&world);
    ct_bootstrap_destroy(&boot);
    return 0;
}

/* ---- the test ---- */

static char self[2000], mpirun[500];
static bool is_open_mpi;

/* The mpirun of the MPI that the engine was built with. */
static bool find_mpirun(void)
{
    FILE *pipe = popen("sed -n 's/^MPIEXEC_EXECUTABLE:FILEPATH=//p' '" CT_BINARY_DIR "/CMakeCache.txt'", "r");
    bool found = pipe != NULL && fgets(mpirun, sizeof mpirun, pipe) != NULL;
    mpirun[strcspn(mpirun, "\n")] = '\0';
    if (pipe == NULL || pclose(pipe) != 0 || !found || access(mpirun, X_OK) != 0) {
        return false;
    }
    char command[600];
    (void)snprintf(command, sizeof command, "'%s' --version 2>/dev/null | grep -q 'Open MPI\\|OpenRTE'", mpirun);
    is_open_mpi = system(command) == 0;
    return true;
}

/* How `timeout mpirun -n N self MODE` ended; what it printed goes to out. */
static int launch(int n, const char *mode, char *out, size_t size)
{
    char command[6000];
    (void)snprintf(command, sizeof command,
                   "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 5 200 '%s' %s -n %d '%s' %s 2>&1", mpirun,
                   is_open_mpi ? "--oversubscribe" : "", n, self, mode);
    /* MPICH says nothing from which a port could be made; Open MPI does. */
    ct_err err = {0};
    int fd, port;
    char digits[16];
    if (!is_open_mpi) {
        assert_int_equal(cti_store_listen("127.0.0.1", 0, &fd, &port, &err), CT_OK);
        (void)close(fd);
        (void)snprintf(digits, sizeof digits, "%d", port);
        (void)setenv("MASTER_ADDR", "127.0.0.1", 1);
        (void)setenv("MASTER_PORT", digits, 1);
    }
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t used = fread(out, 1, size - 1, pipe);
    out[used] = '\0';
    int status = pclose(pipe);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    print_message("%s, %d ranks: code %d\n", mode, n, code);
    return code;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what)) {
        n++;
    }
    return n;
}

/* or_code: what another mpirun says of the same. */
static void expect_either(int n, const char *mode, int code, int or_code, const char *says, int times)
{
    static char out[65536];
    int found = launch(n, mode, out, sizeof out);
    found = found == or_code ? code : found;
    if (found != code || (says != NULL && count(out, says) != times)) {
        print_message("%s\n", out);
    }
    assert_int_equal(found, code);
    if (says != NULL) {
        assert_int_equal(count(out, says), times);
    }
}

static void expect(int n, const char *mode, int code, const char *says, int times)
{
    expect_either(n, mode, code, code, says, times);
}

static void bits_of_ordered_sums(void **state)
{
    (void)state;
    for (int n = 2; n <= 4; n++) {
        expect(n, "all", 0, NULL, 0);
    }
}

static void a_rank_that_leaves_is_named_and_its_code_is_the_runs(void **state)
{
    (void)state;
    expect(4, "leave", 3, "as wanted: all_reduce in group 'world' of 4 ranks: rank 2 is gone", 3);
}

static void a_rank_that_hangs_is_named_and_ended(void **state)
{
    (void)state;
    expect(3, "hang", 75, "rank 1 did not answer within 1000 ms", 2);
}

static void a_rank_that_is_killed_ends_all(void **state)
{
    (void)state;
    expect_either(3, "die", 137, SIGKILL, NULL, 0); /* Open MPI: 128 + the signal; MPICH: the signal */
}

static void ranks_that_differ_time_out(void **state)
{
    (void)state;
    expect(3, "differ", 75, NULL, 0);
}

static void messages_longer_than_an_int_counts(void **state)
{
    (void)state;
    if (getenv("CTITAN_TEST_LONG") == NULL) {
        skip(); /* 4.3 GB of memory: tools/long asks for it */
    }
    expect(2, "huge", 0, NULL, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        return rank(argv[1]);
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (!cti_path_exists(CT_BINARY_DIR "/lib/ctitan/engines/mpi.so")) {
        print_message("skipped: this build has no engine 'mpi'\n");
        return 77;
    }
    if (n < 0 || !find_mpirun()) {
        print_message("skipped: no program mpirun here\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_of_ordered_sums),        cmocka_unit_test(a_rank_that_leaves_is_named_and_its_code_is_the_runs),
        cmocka_unit_test(a_rank_that_hangs_is_named_and_ended), cmocka_unit_test(a_rank_that_is_killed_ends_all),
        cmocka_unit_test(ranks_that_differ_time_out),  cmocka_unit_test(messages_longer_than_an_int_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
