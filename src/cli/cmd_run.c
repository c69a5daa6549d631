/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan run`: the command line. */
#include "cli/cmd_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"

/* X(name, whether it takes a value, help). Spelt with '-' or '_', one dash or two, `--x V` or `--x=V`. */
/* clang-format off */
#define FLAGS(X)                                                                                            \
    X(nproc_per_node, 1, "ranks on this host: a number, or auto, cpu, gpu (one)")                           \
    X(nnodes, 1, "hosts: each starts one `ctitan run` (default: 1)")                                        \
    X(node_rank, 1, "number of this host, from 0; with c10d it need not be given")                          \
    X(rdzv_backend, 1, "static: node 0 serves the meeting (default); c10d: the host of the endpoint does")  \
    X(rdzv_endpoint, 1, "HOST:PORT where the hosts meet; on one host: of the store, 0 a free port")         \
    X(rdzv_id, 1, "name of the run, the same on all hosts")                                                 \
    X(rdzv_conf, 1, "join_timeout=SECONDS (default: 600), is_host=true|false")                              \
    X(master_addr, 1, "host of the store; without --rdzv-endpoint the hosts meet there")                    \
    X(master_port, 1, "port of the store; 0: a free one")                                                   \
    X(standalone, 0, "one host, a free port")                                                               \
    X(role, 1, "name in the prefix of lines (default: default)")                                            \
    X(local_ranks_filter, 1, "ranks whose lines go to the console, with commas")                            \
    X(tee, 1, "or -t: streams that go to the console with a prefix: 1 stdout, 2 stderr, 3 both; or RANK:N,...")    \
    X(redirects, 1, "or -r: streams that go to files of --log-dir only: as --tee")                                 \
    X(log_dir, 1, "folder for <rank>/stdout.log and stderr.log")                                            \
    X(max_restarts, 1, "how often all ranks are started again after a failure (default: 0)")                \
    X(monitor_interval, 1, "accepted; failures are seen at once")                                           \
    X(grace_seconds, 1, "time between the request to stop and SIGKILL (default: 30)")                       \
    X(no_python, 0, "what follows is a program, not a module")                                              \
    X(help, 0, "this text")
/* clang-format on */
enum flag_id {
#define FLAG_ID(name, value, help) FLAG_##name,
    FLAGS(FLAG_ID)
#undef FLAG_ID
        N_FLAGS
};
static const struct {
    const char *name;
    bool has_value;
    const char *help;
} flags[N_FLAGS] = {
#define FLAG_ROW(name, value, help) {#name, value, help},
    FLAGS(FLAG_ROW)
#undef FLAG_ROW
};

static void print_help(void)
{
    printf("usage: ctitan run [options] -m torchtitan.train [arguments of `ctitan train`]\n       ctitan run [options] selftest [arguments of `ctitan selftest`]\n\n"
           "Starts the ranks of a run on this host, passes their lines on, and ends all of them when one fails.\n\n");
    for (int i = 0; i < N_FLAGS; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "--%s%s", flags[i].name, flags[i].has_value ? " V" : ""); /* fits */
        printf("  %-24s %s\n", name, flags[i].help);
    }
}

/* The flag that an argument names; *out_value: what follows '=', or NULL. */
static int find_flag(const char *arg, const char **out_value)
{
    char name[64];
    size_t n = 0;
    arg += arg[1] == '-' ? 2 : 1;
    while (arg[n] != '\0' && arg[n] != '=' && n < sizeof name - 1) {
        name[n] = arg[n] == '-' ? '_' : arg[n];
        n++;
    }
    name[n] = '\0';
    *out_value = arg[n] == '=' ? arg + n + 1 : NULL;
    for (int i = 0; i < N_FLAGS; i++) {
        if (strcmp(flags[i].name, name) == 0) {
            return i;
        }
    }
    return strcmp(name, "h") == 0 ? FLAG_help : strcmp(name, "t") == 0 ? FLAG_tee : strcmp(name, "r") == 0 ? FLAG_redirects : -1;
}

/* Flags of torchrun's that are not there, and why. */
static const struct {
    const char *name, *reason;
} not_there[] = {
    {"event_log_handler", "there is no log of the launcher's own events"},
    {"start_method", "ranks are programs, there is no interpreter to fork"},
    {"run_path", "there are no scripts; a program that is no ctitan starts with --no-python"},
    {"logs_specs", "--tee, --redirects and --log-dir say where lines go"},
    {"log_line_prefix_template", "the prefix is [ROLE LOCAL_RANK]:, and --role names the role"},
    {"duplicate_stdout_filters", "grep finds lines in --log-dir"},
    {"duplicate_stderr_filters", "grep finds lines in --log-dir"},
    {"local_addr", "GLOO_SOCKET_IFNAME names the interface"},
    {"virtual_local_rank", "LOCAL_RANK is the rank on this host"},
    {"numa_binding", "taskset or numactl bind, and the ranks keep to what they are given"},
    {"signals_to_handle", "SIGINT, SIGTERM and SIGHUP are passed on"},
    {"shutdown_timeout", "--grace-seconds says how long ranks have to end"},
};

static ct_status unknown_flag(const char *arg, ct_err *err)
{
    const char *names[N_FLAGS];
    for (int i = 0; i < N_FLAGS; i++) {
        names[i] = flags[i].name;
    }
    for (size_t i = 0; i < sizeof not_there / sizeof not_there[0]; i++) {
        const char *name = not_there[i].name, *at = arg + (arg[1] == '-' ? 2 : 1);
        while (*name != '\0' && (*at == *name || (*at == '-' && *name == '_'))) {
            at++;
            name++;
        }
        if (*name == '\0' && (*at == '\0' || *at == '=')) {
            return CT_FAIL(err, CT_ERR_USAGE, "%s: torchrun's, and not there: %s", arg, not_there[i].reason);
        }
    }
    const int near = cti_nearest(arg + (arg[1] == '-' ? 2 : 1), names, N_FLAGS);
    return CT_FAIL(err, CT_ERR_USAGE, "%s: there is no such option%s%s; `ctitan run --help` lists them", arg,
                   near >= 0 ? ", nearest is --" : "", near >= 0 ? names[near] : "");
}

static ct_status number(const char *name, const char *text, int64_t low, int64_t high, int64_t *out, ct_err *err)
{
    if (!cti_parse_i64(text, out) || *out < low || *out > high) {
        return CT_FAIL(err, CT_ERR_USAGE, "--%s: '%s' is no number from %" PRId64 " to %" PRId64, name, text, low, high);
    }
    return CT_OK;
}

/* "3" for all ranks, or "0:1,1:2". */
static ct_status streams(const char *name, const char *text, unsigned char *out, ct_err *err)
{
    int64_t value;
    if (cti_parse_i64(text, &value)) {
        CT_TRY(number(name, text, 0, 3, &value, err));
        memset(out, (int)value, CTI_RUN_MAX_RANKS);
        return CT_OK;
    }
    for (const char *at = text; *at != '\0';) {
        int rank = -1, bits = -1, used = 0;
        if (sscanf(at, "%d:%d%n", &rank, &bits, &used) != 2 || rank < 0 || rank >= CTI_RUN_MAX_RANKS || bits < 0 || bits > 3 ||
            (at[used] != '\0' && at[used] != ',')) {
            return CT_FAIL(err, CT_ERR_USAGE, "--%s: '%s' is neither a number from 0 to 3 nor RANK:N,RANK:N", name, text);
        }
        out[rank] = (unsigned char)bits;
        at += used + (at[used] == ',');
    }
    return CT_OK;
}

static ct_status filter(const char *text, bool *shown, ct_err *err)
{
    if (text[0] == '\0') { /* as torchrun: all */
        return CT_OK;
    }
    memset(shown, 0, CTI_RUN_MAX_RANKS * sizeof *shown);
    for (const char *at = text; *at != '\0';) {
        int rank = -1, used = 0;
        if (sscanf(at, "%d%n", &rank, &used) != 1 || rank < 0 || rank >= CTI_RUN_MAX_RANKS ||
            (at[used] != '\0' && at[used] != ',')) {
            return CT_FAIL(err, CT_ERR_USAGE, "--local-ranks-filter: '%s' is no list of ranks such as 0,1", text);
        }
        shown[rank] = true;
        at += used + (at[used] == ',');
    }
    return CT_OK;
}

static ct_status endpoint(const char *text, cti_run_options *o, ct_err *err)
{
    const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL; /* [::1]:29400 */
    const char *colon = bracket != NULL ? strchr(bracket, ':') : strrchr(text, ':');
    size_t host = bracket != NULL ? (size_t)(bracket - text) : colon != NULL ? (size_t)(colon - text) : strlen(text);
    int64_t port = 29400; /* torchrun's */
    if (bracket != NULL) {
        text++;
        host--;
    }
    if (host == 0 || host >= sizeof o->endpoint_host) {
        return CT_FAIL(err, CT_ERR_USAGE, "--rdzv-endpoint: '%s' is no HOST:PORT", text);
    }
    if (colon != NULL) {
        CT_TRY(number("rdzv-endpoint", colon + 1, 0, 65535, &port, err));
    }
    memcpy(o->endpoint_host, text, host);
    o->endpoint_host[host] = '\0';
    o->endpoint_port = (int)port;
    return CT_OK;
}

/* "4", or torchrun's range of one number, "4:4". */
static ct_status nodes(const char *text, cti_run_options *o, ct_err *err)
{
    int low = 0, high = 0, used = 0;
    if (sscanf(text, "%d:%d%n", &low, &high, &used) == 2 && text[used] == '\0' && low > 0 && high > low) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "--nnodes: a run whose number of hosts changes is not there, found '%s'; a number is wanted",
                       text);
    }
    int64_t n = low;
    if (used == 0 || text[used] != '\0' || low != high) {
        CT_TRY(number("nnodes", text, 1, CTI_MEET_MAX_NODES, &n, err));
    }
    if (n < 1 || n > CTI_MEET_MAX_NODES) {
        return CT_FAIL(err, CT_ERR_USAGE, "--nnodes: '%s' is no number from 1 to %d", text, CTI_MEET_MAX_NODES);
    }
    o->n_nodes = (int)n;
    return CT_OK;
}

/* "key=value,key=value". Those of torchrun's that steer what we have not are taken and ignored. */
static ct_status rdzv_conf(const char *text, cti_run_options *o, ct_err *err)
{
    static const char *const ignored[] = {"last_call_timeout", "close_timeout", "heartbeat_timeout", "keep_alive_interval",
                                          "keep_alive_max_attempt", "read_timeout", "store_type", "use_libuv"};
    for (const char *at = text; *at != '\0';) {
        char key[40] = "", value[40] = "";
        int used = 0;
        int64_t n;
        if (sscanf(at, "%39[^=,]=%39[^,]%n", key, value, &used) != 2 || (at[used] != '\0' && at[used] != ',')) {
            return CT_FAIL(err, CT_ERR_USAGE, "--rdzv-conf: '%s' is no KEY=VALUE,KEY=VALUE", text);
        }
        bool known = false;
        for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
            known = known || strcmp(key, ignored[i]) == 0;
        }
        if (strcmp(key, "join_timeout") == 0 || strcmp(key, "timeout") == 0) {
            CT_TRY(number("rdzv-conf join_timeout", value, 1, 1000000, &n, err));
            o->join_timeout_ms = n * 1000;
        } else if (strcmp(key, "is_host") == 0) {
            if (strchr("tTyY1", value[0]) == NULL && strchr("fFnN0", value[0]) == NULL) {
                return CT_FAIL(err, CT_ERR_USAGE, "--rdzv-conf: is_host is true or false, found '%s'", value);
            }
            o->is_host = strchr("tTyY1", value[0]) != NULL;
        } else if (!known) {
            return CT_FAIL(err, CT_ERR_USAGE, "--rdzv-conf: there is no '%s'; join_timeout and is_host are", key);
        }
        at += used + (at[used] == ',');
    }
    return CT_OK;
}

static ct_status take_flag(int id, const char *value, cti_run_options *o, ct_err *err)
{
    int64_t n = 0;
    switch ((enum flag_id)id) {
    case FLAG_nproc_per_node:
        if (strcmp(value, "auto") == 0 || strcmp(value, "cpu") == 0 || strcmp(value, "gpu") == 0) {
            o->n_ranks = 1;
            return CT_OK;
        }
        CT_TRY(number("nproc-per-node", value, 1, CTI_RUN_MAX_RANKS, &n, err));
        o->n_ranks = (int)n;
        return CT_OK;
    case FLAG_nnodes:
        return nodes(value, o, err);
    case FLAG_node_rank:
        CT_TRY(number("node-rank", value, 0, CTI_MEET_MAX_NODES - 1, &n, err));
        o->node_rank = (int)n;
        return CT_OK;
    case FLAG_rdzv_backend:
        if (strcmp(value, "c10d") != 0 && strcmp(value, "static") != 0) {
            return CT_FAIL(err, CT_ERR_USAGE, "--rdzv-backend: '%s' is not there; c10d and static are", value);
        }
        o->is_c10d = value[0] == 'c';
        return CT_OK;
    case FLAG_rdzv_endpoint:
        return endpoint(value, o, err);
    case FLAG_rdzv_id:
        o->run_id = value;
        return CT_OK;
    case FLAG_master_addr:
        if (value[0] == '\0' || strlen(value) >= sizeof o->master_addr) {
            return CT_FAIL(err, CT_ERR_USAGE, "--master-addr: '%s' is no host", value);
        }
        memcpy(o->master_addr, value, strlen(value) + 1);
        return CT_OK;
    case FLAG_master_port:
        CT_TRY(number("master-port", value, 0, 65535, &n, err));
        o->master_port = (int)n;
        return CT_OK;
    case FLAG_standalone:
        o->standalone = true;
        return endpoint("localhost:0", o, err);
    case FLAG_role:
        o->role = value;
        return strlen(value) < 64 ? CT_OK : CT_FAIL(err, CT_ERR_USAGE, "--role: at most 63 bytes are possible");
    case FLAG_local_ranks_filter:
        return filter(value, o->shown, err);
    case FLAG_tee:
        return streams("tee", value, o->tee, err);
    case FLAG_redirects:
        return streams("redirects", value, o->redirect, err);
    case FLAG_log_dir:
        o->log_dir = value;
        return CT_OK;
    case FLAG_max_restarts:
        CT_TRY(number("max-restarts", value, 0, 1000, &n, err));
        o->max_restarts = (int)n;
        return CT_OK;
    case FLAG_grace_seconds:
        CT_TRY(number("grace-seconds", value, 0, 86400, &n, err));
        o->grace_ms = n * 1000;
        return CT_OK;
    case FLAG_no_python:
        o->search_path = true;
        return CT_OK;
    case FLAG_help:
        o->help = true;
        return CT_OK;
    case FLAG_rdzv_conf:
        return rdzv_conf(value, o, err);
    case FLAG_monitor_interval:
    case N_FLAGS:
        return CT_OK;
    }
    return CT_OK;
}

/* argv[at] and all that follows: a module, a sub-command or (--no-python) a program. */
static ct_status take_child(const ct_alloc *alloc, int argc, char **argv, int at, cti_run_options *o, ct_err *err)
{
    if (strcmp(argv[at], "-m") == 0 || strcmp(argv[at], "--module") == 0) {
        at++;
    }
    if (at >= argc) {
        return CT_FAIL(err, CT_ERR_USAGE, "-m: the name of a module is wanted: torchtitan.train");
    }
    const char *name = argv[at];
    if (!o->search_path && strcmp(name, "torchtitan.train") != 0 && strcmp(name, "ctitan.train") != 0 &&
        strcmp(name, "train") != 0 && strcmp(name, "selftest") != 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%s' is nothing that can be run; torchtitan.train, ctitan.train, train and selftest are", name);
    }
    o->child_path = o->search_path ? name : "/proc/self/exe";
    o->child_argv = CT_NEW_ARRAY(alloc, char *, argc - at + 2, err);
    if (o->child_argv == NULL) {
        return CT_ERR_MEMORY;
    }
    static char program[] = "ctitan", train[] = "train", selftest[] = "selftest";
    int n = 0;
    if (o->search_path) {
        o->child_argv[n++] = argv[at];
    } else {
        o->child_argv[n++] = program;
        o->child_argv[n++] = strcmp(name, selftest) == 0 ? selftest : train;
    }
    for (int i = at + 1; i < argc; i++) {
        o->child_argv[n++] = argv[i];
    }
    return CT_OK;
}

/* Where the hosts meet, and where the ranks do. */
static ct_status check_nodes(cti_run_options *o, ct_err *err)
{
    if (o->node_rank >= o->n_nodes) {
        return CT_FAIL(err, CT_ERR_USAGE, "--node-rank: %d must be below --nnodes, %d", o->node_rank, o->n_nodes);
    }
    if (o->n_nodes > 1 && o->standalone) {
        return CT_FAIL(err, CT_ERR_USAGE, "--standalone is one host, --nnodes %d are several", o->n_nodes);
    }
    if (o->n_nodes > 1 && !o->is_c10d && o->node_rank < 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "--node-rank is wanted with --rdzv-backend static, 0 to %d (c10d numbers hosts as they come)",
                       o->n_nodes - 1);
    }
    if (o->n_nodes > 1 && o->endpoint_host[0] == '\0') {
        if (o->master_addr[0] == '\0') {
            return CT_FAIL(err, CT_ERR_USAGE, "--rdzv-endpoint HOST:PORT is wanted with --nnodes %d: where the hosts meet", o->n_nodes);
        }
        memcpy(o->endpoint_host, o->master_addr, sizeof o->endpoint_host);
        o->endpoint_port = o->master_port > 0 ? o->master_port : 29500; /* torchrun's */
    }
    if (o->n_nodes > 1 && o->endpoint_port == 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "--rdzv-endpoint: several hosts need a port that all know, not 0");
    }
    if (o->n_nodes > 1) {
        memcpy(o->master_addr, o->endpoint_host, sizeof o->master_addr);
        o->master_port = o->master_port == o->endpoint_port ? 0 : o->master_port; /* the meeting holds it */
    } else if (o->endpoint_host[0] != '\0') {
        memcpy(o->master_addr, o->endpoint_host, sizeof o->master_addr);
        o->master_port = o->endpoint_port;
    } else if (o->master_addr[0] == '\0') {
        memcpy(o->master_addr, "localhost", sizeof "localhost");
    }
    return CT_OK;
}

/* What is to be seen must come from a rank that there is, and go somewhere. */
static ct_status check_ranks(const cti_run_options *o, ct_err *err)
{
    bool any_shown = false;
    for (int r = 0; r < o->n_ranks; r++) {
        any_shown = any_shown || o->shown[r];
        if (o->redirect[r] != 0 && o->log_dir == NULL) {
            return CT_FAIL(err, CT_ERR_USAGE, "--redirects: the files are made in --log-dir, which is not given");
        }
    }
    return any_shown ? CT_OK
                     : CT_FAIL(err, CT_ERR_USAGE, "--local-ranks-filter: none of the ranks is there, which are 0 to %d",
                               o->n_ranks - 1);
}

/* As torchrun: PET_NNODES=2 is --nnodes 2, where the command line does not say otherwise; PET_STANDALONE=1 is --standalone. */
static ct_status take_environment(cti_run_options *o, ct_err *err)
{
    for (int i = 0; i < N_FLAGS; i++) {
        char name[48];
        const int n = snprintf(name, sizeof name, "PET_%s", flags[i].name); /* fits */
        for (int k = 0; k < n; k++) {
            name[k] = name[k] >= 'a' && name[k] <= 'z' ? (char)(name[k] - 'a' + 'A') : name[k];
        }
        const char *value = getenv(name);
        if (i == FLAG_help || value == NULL || value[0] == '\0' || (!flags[i].has_value && strcmp(value, "1") != 0)) {
            continue;
        }
        const ct_status st = take_flag(i, value, o, err);
        if (st != CT_OK) {
            ct_err_prefix(err, "environment variable %s", name);
            return st;
        }
    }
    return CT_OK;
}

ct_status cti_run_parse(const ct_alloc *alloc, int argc, char **argv, cti_run_options *o, ct_err *err)
{
    memset(o, 0, sizeof *o);
    o->n_ranks = 1;
    o->role = "default";
    o->grace_ms = 30000;
    o->n_nodes = 1;
    o->node_rank = o->is_host = -1;
    o->join_timeout_ms = 600000; /* torchrun's */
    for (int i = 0; i < CTI_RUN_MAX_RANKS; i++) {
        o->shown[i] = true;
    }
    (void)snprintf(o->run_id_buf, sizeof o->run_id_buf, "run-%d-%" PRId64, (int)getpid(), cti_wall_ms() % 1000000); /* fits */
    CT_TRY(take_environment(o, err));
    int at = 1;
    while (at < argc && argv[at][0] == '-' && strcmp(argv[at], "-m") != 0 && strcmp(argv[at], "--module") != 0) {
        const char *value;
        const int id = find_flag(argv[at], &value);
        if (id < 0) {
            return unknown_flag(argv[at], err);
        }
        if (!flags[id].has_value && value != NULL) {
            return CT_FAIL(err, CT_ERR_USAGE, "%s: --%s takes no value", argv[at], flags[id].name);
        }
        at++;
        if (flags[id].has_value && value == NULL) {
            if (at >= argc) {
                return CT_FAIL(err, CT_ERR_USAGE, "--%s: a value is wanted", flags[id].name);
            }
            value = argv[at++];
        }
        CT_TRY(take_flag(id, value, o, err));
    }
    if (o->help) {
        return CT_OK;
    }
    if (o->run_id == NULL || o->run_id[0] == '\0') {
        o->run_id = o->n_nodes > 1 ? "none" : o->run_id_buf; /* several hosts: torchrun's, the same on all */
    }
    if (at >= argc) {
        return CT_FAIL(err, CT_ERR_USAGE, "what to run is wanted: -m torchtitan.train --module llama3 --config llama3_debugmodel");
    }
    CT_TRY(check_nodes(o, err));
    CT_TRY(check_ranks(o, err));
    return take_child(alloc, argc, argv, at, o, err);
}

void cti_run_options_deinit(const ct_alloc *alloc, cti_run_options *o)
{
    ct_alloc_free(alloc, o->child_argv);
    o->child_argv = NULL;
}

int cti_cmd_run(int argc, char **argv)
{
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    int code = 0;
    cti_run_options *o = CT_NEW(alloc, cti_run_options, &err);
    ct_status st = o != NULL ? cti_run_parse(alloc, argc, argv, o, &err) : CT_ERR_MEMORY;
    if (st == CT_OK && o->help) {
        print_help();
    } else if (st == CT_OK) {
        st = cti_run_supervise(alloc, o, &code, &err);
    }
    if (st != CT_OK) {
        code = st == CT_ERR_UNSUPPORTED ? 2 : ct_status_exit_code(st);
        (void)cti_report("run", st, &err);
    }
    if (o != NULL) {
        cti_run_options_deinit(alloc, o);
    }
    ct_alloc_free(alloc, o);
    return code;
}
