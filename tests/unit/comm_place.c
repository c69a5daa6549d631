/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: comm base */
/* Which rank of how many this is, from the environment of torchrun, mpirun and srun. */
#include "comm/bootstrap.h"
#include "unit/base_test.h"

enum { MAX_VARIABLES = 10 };

typedef struct environment {
    const char *names[2 * MAX_VARIABLES]; /* name, value, name, value, ... */
} environment;

static const char *lookup(void *ctx, const char *name)
{
    const environment *env = ctx;
    for (int i = 0; i < 2 * MAX_VARIABLES && env->names[i] != NULL; i += 2) {
        if (strcmp(env->names[i], name) == 0) {
            return env->names[i + 1];
        }
    }
    return NULL;
}

#define OMPI(rank, size, local, locals)                                                                                  \
    "OMPI_COMM_WORLD_RANK", rank, "OMPI_COMM_WORLD_SIZE", size, "OMPI_COMM_WORLD_LOCAL_RANK", local, "OMPI_COMM_WORLD_LOCAL_SIZE", locals
#define SRUN(rank, size, local, node, tasks)                                                                              \
    "SLURM_PROCID", rank, "SLURM_STEP_NUM_TASKS", size, "SLURM_LOCALID", local, "SLURM_NODEID", node, "SLURM_STEP_TASKS_PER_NODE", tasks
#define MASTER "MASTER_ADDR", "h", "MASTER_PORT", "5"

static void test_places(void **state)
{
    (void)state;
    static const struct {
        environment env;
        int rank, world_size, local_rank, local_world_size;
        const char *addr;
    } rows[] = {
        {{{NULL}}, 0, 1, 0, 1, ""},
        {{{"RANK", "3", "WORLD_SIZE", "4", "LOCAL_RANK", "1", "LOCAL_WORLD_SIZE", "2", MASTER}}, 3, 4, 1, 2, "h"},
        {{{"RANK", "3", "WORLD_SIZE", "4", MASTER}}, 3, 4, 3, 4, "h"},
        {{{OMPI("3", "4", "1", "2"), MASTER}}, 3, 4, 1, 2, "h"},
        {{{OMPI("3", "4", "3", "4"), "PMIX_NAMESPACE", "job.1"}}, 3, 4, 3, 4, "localhost"},
        {{{OMPI("3", "4", "3", "4"), MASTER, "PMIX_NAMESPACE", "job.1"}}, 3, 4, 3, 4, "h"},
        {{{OMPI("0", "1", "0", "1")}}, 0, 1, 0, 1, ""},
        {{{"PMI_RANK", "1", "PMI_SIZE", "2", "MPI_LOCALRANKID", "0", "MPI_LOCALNRANKS", "1", MASTER}}, 1, 2, 0, 1, "h"},
        {{{SRUN("6", "7", "2", "1", "4,3"), MASTER}}, 6, 7, 2, 3, "h"},
        {{{SRUN("10", "11", "2", "2", "4(x2),3"), MASTER}}, 10, 11, 2, 3, "h"},
        {{{SRUN("1", "2", "1", "0", "2"), "SLURM_JOB_ID", "77"}}, 1, 2, 1, 2, "localhost"},
        /* What torchrun sets comes first. */
        {{{OMPI("3", "4", "1", "2"), "RANK", "0", "WORLD_SIZE", "1"}}, 0, 1, 0, 1, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        environment env = rows[i].env;
        ct_place p;
        ct_err err = {0};
        if (ct_place_from_env(lookup, &env, &p, &err) != CT_OK) {
            fail_msg("row %zu: %s", i, err.message);
        }
        assert_int_equal(p.rank, rows[i].rank);
        assert_int_equal(p.world_size, rows[i].world_size);
        assert_int_equal(p.local_rank, rows[i].local_rank);
        assert_int_equal(p.local_world_size, rows[i].local_world_size);
        assert_string_equal(p.master_addr, rows[i].addr);
        assert_true(p.world_size == 1 || (p.master_port >= 1 && p.master_port <= 32767));
    }
}

/* torchrun's agent listens at MASTER_PORT itself: ours is another port, the same on all ranks of this start and no other. */
static void test_agent_store(void **state)
{
    (void)state;
#define AGENT(rank, id, count, uses) \
    {{"RANK", rank, "WORLD_SIZE", "2", MASTER, "TORCHELASTIC_RUN_ID", id, "TORCHELASTIC_RESTART_COUNT", count, "TORCHELASTIC_USE_AGENT_STORE", uses}}
    static const environment envs[] = {AGENT("0", "a", "0", "True"), AGENT("1", "a", "0", "True"), AGENT("0", "b", "0", "True"),
                                       AGENT("0", "a", "1", "True"), AGENT("0", "a", "0", "False"),
                                       {{"RANK", "0", "WORLD_SIZE", "2", MASTER, "TORCHELASTIC_USE_AGENT_STORE", "True", "CTITAN_STORE", "supervisor"}}};
    int port[6];
    for (int i = 0; i < 6; i++) {
        environment env = envs[i];
        ct_place p;
        assert_int_equal(ct_place_from_env(lookup, &env, &p, NULL), CT_OK);
        port[i] = p.master_port;
    }
    assert_true(port[0] >= 20000 && port[0] < 32000);
    assert_int_equal(port[0], port[1]);
    assert_int_not_equal(port[0], port[2]);
    assert_int_not_equal(port[0], port[3]);
    assert_int_equal(port[4], 5);
    assert_int_equal(port[5], 5);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        environment env;
        const char *text;
    } rows[] = {
        {{{"RANK", "0"}}, "WORLD_SIZE is missing"},
        {{{"WORLD_SIZE", "2"}}, "RANK is missing"},
        {{{"RANK", "2", "WORLD_SIZE", "2", MASTER}}, "RANK: 2 must be below WORLD_SIZE, 2"},
        {{{"RANK", "x", "WORLD_SIZE", "2", MASTER}}, "RANK: expected an integer"},
        {{{"RANK", "0", "WORLD_SIZE", "2"}}, "MASTER_ADDR is missing"},
        {{{OMPI("3", "4", "1", "2")}}, "MASTER_ADDR is missing"},
        {{{OMPI("3", "4", "3", "4")}}, "MASTER_ADDR is missing"},
        {{{"OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_RANK", "1"}}, "OMPI_COMM_WORLD_LOCAL_RANK is missing"},
        {{{OMPI("4", "4", "1", "2"), MASTER}}, "mpirun says rank 4 of 4"},
        {{{OMPI("1", "4", "2", "2"), MASTER}}, "on this host 2 of 2"},
        {{{OMPI("-1", "4", "2", "2"), MASTER}}, "OMPI_COMM_WORLD_RANK: expected an integer"},
        {{{SRUN("1", "2", "0", "2", "1(x2)"), MASTER}}, "SLURM_STEP_TASKS_PER_NODE"},
        {{{SRUN("1", "2", "0", "0", "1(x2"), MASTER}}, "SLURM_STEP_TASKS_PER_NODE"},
        {{{SRUN("1", "2", "0", "0", "a"), MASTER}}, "SLURM_STEP_TASKS_PER_NODE"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        environment env = rows[i].env;
        ct_place p;
        ct_err err = {0};
        assert_int_equal(ct_place_from_env(lookup, &env, &p, &err), CT_ERR_USAGE);
        if (strstr(err.message, rows[i].text) == NULL) {
            fail_msg("row %zu: '%s' does not say '%s'", i, err.message, rows[i].text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_agent_store), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
