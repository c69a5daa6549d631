/* SPDX-License-Identifier: Apache-2.0 */
/* RANK, WORLD_SIZE and the rest: read from the environment and held against each other. */
#include <inttypes.h>
#include <strings.h>

#include "base/hash.h"
#include "base/str.h"
#include "comm/bootstrap.h"

typedef struct env_reader {
    ct_env_lookup lookup;
    void *ctx;
} env_reader;

/* The process's environment is read here and nowhere else in the room. */
static const char *lookup_process(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name); /* NOLINT(concurrency-mt-unsafe): nobody sets the environment after the start */
}

/* An empty variable counts as unset, as in shells that export it so. */
static const char *read_text(const env_reader *env, const char *name)
{
    const char *text = env->lookup(env->ctx, name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static ct_status read_int(const env_reader *env, const char *name, int64_t low, int64_t high, bool *out_given, int *out,
                          ct_err *err)
{
    const char *text = read_text(env, name);
    *out_given = text != NULL;
    if (text == NULL) {
        return CT_OK;
    }
    int64_t value;
    if (!cti_parse_i64(text, &value) || value < low || value > high) {
        return CT_FAIL(err, CT_ERR_USAGE, "environment variable %s: expected an integer in %" PRId64 "..%" PRId64
                       ", got '%.100s'", name, low, high, text);
    }
    *out = (int)value;
    return CT_OK;
}

static ct_status copy_text(const env_reader *env, const char *name, char *buf, size_t size, ct_err *err)
{
    const char *text = read_text(env, name);
    if (text == NULL) {
        buf[0] = '\0';
        return CT_OK;
    }
    if (strlen(text) >= size) {
        return CT_FAIL(err, CT_ERR_USAGE, "environment variable %s: longer than %zu bytes", name, size - 1);
    }
    memcpy(buf, text, strlen(text) + 1);
    return CT_OK;
}

static ct_status missing(const char *name, const char *because, ct_err *err)
{
    return CT_FAIL(err, CT_ERR_USAGE, "environment variable %s is missing: %s", name, because);
}

/* What other launchers call RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE. */
typedef struct foreign_launcher {
    const char *name;
    const char *names[4]; /* as above; NULL where it has none */
    const char *job;      /* what all ranks of a run, and of no other, have alike */
} foreign_launcher;

static const foreign_launcher launchers[] = {
    {"mpirun", {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}, "PMIX_NAMESPACE"},
    {"mpirun", {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}, "PMI_KVS"},
    {"srun", {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL}, "SLURM_JOB_ID"},
};

/* The launcher that started several processes of which this is one; NULL: none. */
static const foreign_launcher *find_launcher(const env_reader *env)
{
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const char *size = read_text(env, launchers[i].names[1]);
        int64_t n;
        if (size != NULL && cti_parse_i64(size, &n) && n > 1) {
            return &launchers[i];
        }
    }
    return NULL;
}

/* srun tells the tasks of each host as "4(x2),3": host by host in the order of SLURM_NODEID. */
static bool tasks_of_node(const char *text, int64_t node, int *out)
{
    for (const char *at = text; *at != '\0';) {
        int tasks = 0, hosts = 1, used = 0, more = 0;
        if (sscanf(at, "%d%n", &tasks, &used) != 1 || tasks < 1) {
            return false;
        }
        if (sscanf(at + used, "(x%d)%n", &hosts, &more) == 1 && more > 0) {
            used += more;
        }
        if (hosts < 1 || (at[used] != '\0' && at[used] != ',')) {
            return false;
        }
        if (node < hosts) {
            *out = tasks;
            return true;
        }
        node -= hosts;
        at += used + (at[used] == ',');
    }
    return false;
}

/* A port that all ranks of a job make from what they alone have alike; below the ports that systems hand out. */
static int port_of_job(const char *job, const char *part, int port)
{
    char text[400];
    (void)snprintf(text, sizeof text, "%.160s/%.160s/%d", job, part != NULL ? part : "", port); /* fits */
    return 20000 + (int)(cti_hash64(text, strlen(text), 0) % 12000);
}

/* Ranks from mpirun or srun. On one host nothing else is wanted: rank 0 serves the store at a port made from the job. */
static ct_status read_launcher(const env_reader *env, const foreign_launcher *l, ct_place *p, ct_err *err)
{
    int *const to[4] = {&p->rank, &p->world_size, &p->local_rank, &p->local_world_size};
    for (int i = 0; i < 4; i++) {
        bool given = false;
        if (l->names[i] != NULL) {
            CT_TRY(read_int(env, l->names[i], i % 2, INT32_MAX, &given, to[i], err));
            if (!given) {
                return CT_FAIL(err, CT_ERR_USAGE, "environment variable %s is missing: %s is set, so that %s started this", l->names[i],
                               l->names[1], l->name);
            }
            continue;
        }
        const char *node = read_text(env, "SLURM_NODEID"), *tasks = read_text(env, "SLURM_STEP_TASKS_PER_NODE");
        int64_t n;
        if (node == NULL || tasks == NULL || !cti_parse_i64(node, &n) || n < 0 || !tasks_of_node(tasks, n, to[i])) {
            return CT_FAIL(err, CT_ERR_USAGE, "environment variables SLURM_NODEID and SLURM_STEP_TASKS_PER_NODE: they do not tell how many "
                           "ranks this host has, found '%.60s' and '%.60s'", node != NULL ? node : "", tasks != NULL ? tasks : "");
        }
    }
    if (p->rank >= p->world_size || p->local_world_size > p->world_size || p->local_rank >= p->local_world_size) {
        return CT_FAIL(err, CT_ERR_USAGE, "%s says rank %d of %d, on this host %d of %d: these contradict each other", l->name, p->rank,
                       p->world_size, p->local_rank, p->local_world_size);
    }
    const char *job = read_text(env, l->job);
    if (p->local_world_size == p->world_size && job != NULL && read_text(env, "MASTER_ADDR") == NULL &&
        read_text(env, "MASTER_PORT") == NULL) {
        memcpy(p->master_addr, "localhost", sizeof "localhost");
        p->master_port = port_of_job(job, l->names[3] == NULL ? read_text(env, "SLURM_STEP_ID") : NULL, 0);
    }
    return CT_OK;
}

static ct_status read_local(const env_reader *env, ct_place *p, ct_err *err)
{
    bool has_rank, has_size;
    CT_TRY(read_int(env, "LOCAL_RANK", 0, INT32_MAX, &has_rank, &p->local_rank, err));
    CT_TRY(read_int(env, "LOCAL_WORLD_SIZE", 1, INT32_MAX, &has_size, &p->local_world_size, err));
    if (!has_rank && !has_size) {
        p->local_rank = p->rank;
        p->local_world_size = p->world_size;
        return CT_OK;
    }
    if (!has_size && p->world_size == 1) {
        p->local_world_size = 1; /* LOCAL_RANK=0 alone is what scripts for one process set */
    } else if (!has_size) {
        return missing("LOCAL_WORLD_SIZE", "LOCAL_RANK is set", err);
    } else if (!has_rank) {
        return missing("LOCAL_RANK", "LOCAL_WORLD_SIZE is set", err);
    }
    if (p->local_world_size > p->world_size) {
        return CT_FAIL(err, CT_ERR_USAGE, "environment variable LOCAL_WORLD_SIZE: %d is more than WORLD_SIZE, %d",
                       p->local_world_size, p->world_size);
    }
    if (p->local_rank >= p->local_world_size) {
        return CT_FAIL(err, CT_ERR_USAGE, "environment variable LOCAL_RANK: %d must be below LOCAL_WORLD_SIZE, %d",
                       p->local_rank, p->local_world_size);
    }
    if (p->local_rank > p->rank) {
        return CT_FAIL(err, CT_ERR_USAGE, "environment variable LOCAL_RANK: %d is more than RANK, %d", p->local_rank,
                       p->rank);
    }
    return CT_OK;
}

ct_status ct_place_from_env(ct_env_lookup lookup, void *ctx, ct_place *out_place, ct_err *err)
{
    env_reader env = {lookup != NULL ? lookup : lookup_process, ctx};
    ct_place p = {.rank = 0, .world_size = 1};
    bool has_rank, has_size, has_port, has_restart;
    CT_TRY(read_int(&env, "WORLD_SIZE", 1, INT32_MAX, &has_size, &p.world_size, err));
    CT_TRY(read_int(&env, "RANK", 0, INT32_MAX, &has_rank, &p.rank, err));
    if (has_rank && !has_size) {
        return missing("WORLD_SIZE", "RANK is set", err);
    }
    if (has_size && !has_rank) {
        return missing("RANK", "WORLD_SIZE is set", err);
    }
    const foreign_launcher *launcher = has_rank ? NULL : find_launcher(&env);
    if (launcher != NULL) {
        CT_TRY(read_launcher(&env, launcher, &p, err));
    }
    if (p.rank >= p.world_size) {
        return CT_FAIL(err, CT_ERR_USAGE, "environment variable RANK: %d must be below WORLD_SIZE, %d", p.rank,
                       p.world_size);
    }
    if (launcher == NULL) {
        CT_TRY(read_local(&env, &p, err));
    }
    if (p.master_port == 0) {
        CT_TRY(copy_text(&env, "MASTER_ADDR", p.master_addr, sizeof p.master_addr, err));
        CT_TRY(read_int(&env, "MASTER_PORT", 1, 65535, &has_port, &p.master_port, err));
    }
    CT_TRY(copy_text(&env, "TORCHELASTIC_RUN_ID", p.run_id, sizeof p.run_id, err));
    CT_TRY(read_int(&env, "TORCHELASTIC_RESTART_COUNT", 0, INT32_MAX, &has_restart, &p.restart, err));
    if (p.world_size > 1 && p.master_addr[0] == '\0') {
        return missing("MASTER_ADDR", "WORLD_SIZE is above 1", err);
    }
    if (p.world_size > 1 && p.master_port == 0) {
        return missing("MASTER_PORT", "WORLD_SIZE is above 1", err);
    }
    const char *store = read_text(&env, "CTITAN_STORE");
    if (store != NULL && !cti_str_eq(store, "supervisor")) {
        return CT_FAIL(err, CT_ERR_USAGE, "environment variable CTITAN_STORE: expected 'supervisor' or nothing, got '%.100s'",
                       store);
    }
    p.store_is_supervised = store != NULL;
    CT_TRY(read_int(&env, "CTITAN_WATCH_FD", 0, INT32_MAX, &has_restart, &p.watch_fd, err));
    /* torchrun's agent may serve a store of its own at MASTER_PORT: ours is at another port of that host. */
    const char *agent = read_text(&env, "TORCHELASTIC_USE_AGENT_STORE");
    if (store == NULL && has_rank && p.master_port != 0 && agent != NULL && strcasecmp(agent, "true") == 0) {
        p.master_port = port_of_job(p.run_id, read_text(&env, "TORCHELASTIC_RESTART_COUNT"), p.master_port);
    }
    *out_place = p;
    return CT_OK;
}
