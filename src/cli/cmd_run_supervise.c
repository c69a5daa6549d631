/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan run`: starts the ranks and watches over them.
 *
 * Every rank is a child in a process group of its own, so that the terminal's Ctrl-C reaches the supervisor alone, which passes it on
 * once; PR_SET_PDEATHSIG ends a rank whose supervisor is gone, however it went. The supervisor serves the store.
 *
 * On several hosts each supervisor tells the meeting (meet.h) how its ranks end, and takes from there how the run does: the verdict. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cmd_run.h"
#include "cli/cmd_run_watch.h"
#include "comm/store.h"

extern char **environ;

enum {
    ROWS_WAIT_MS = 2000,      /* for what other hosts say of their ranks */
    FAILURE_GRACE_MS = 5000,  /* between SIGTERM and SIGKILL for the ranks that outlive a failed one */
    VERDICT_WAIT_MS = 30000   /* for the verdict on a failure that was told */
};

typedef struct rank_state {
    pid_t pid; /* 0: ended */
    bool stopped; /* by a signal */
    int exit_code;
    cti_run_stream streams[2];
} rank_state;

typedef struct supervisor {
    const ct_alloc *alloc;
    const cti_run_options *o;
    rank_state *ranks;
    int n_running;
    int port, restart;
    int signal_fd;
    sigset_t old_mask;
    int n_signals;         /* requests to stop so far, own and others' */
    int n_own_signals;
    int failed_rank;       /* -1: none */
    int64_t kill_at_ns;    /* 0: not decided */
    struct pollfd *polls;
    struct sigaction old_pipe; /* SIGPIPE, for the ranks */
    char host[256];
    int first_rank, world_size; /* rank of our local rank 0 */
    cti_run_nodes *nodes;       /* NULL: one host */
    bool told;                  /* the meeting knows how this start ended here */
    bool has_verdict, again;    /* how it ended everywhere; all start again */
    int verdict_code;
    int64_t verdict_by_ns; /* 0: no limit */
    bool is_alone;         /* the node that serves the meeting is gone */
    cti_run_watch watch;
    int64_t tick_at_ns;
    char cause[512]; /* of the end, for the files of the flight recorder */
} supervisor;

/* ---- start ------------------------------------------------------------------------------------------------------- */

static bool is_ours(const char *entry, const char *const *names)
{
    for (int i = 0; names[i] != NULL; i++) {
        const size_t n = strlen(names[i]);
        if (strncmp(entry, names[i], n) == 0 && entry[n] == '=') {
            return true;
        }
    }
    return false;
}

/* The environment of a rank: ours on top of what we were given. Arena's memory. */
static ct_status make_environ(const supervisor *s, int rank, ct_arena *arena, char ***out, ct_err *err)
{
    static const char *const names[] = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK",
                                        "ROLE_NAME", "ROLE_WORLD_SIZE", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                                        "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS",
                                        "CTITAN_STORE", "CTITAN_WATCH_FD", "NODE_RANK", NULL};
    const int n = s->o->n_ranks, node = s->nodes != NULL ? s->nodes->node_rank : 0;
    size_t n_old = 0;
    while (environ[n_old] != NULL) {
        n_old++;
    }
    char **env = ct_arena_alloc(arena, (n_old + 24) * sizeof *env, err);
    if (env == NULL) {
        return CT_ERR_MEMORY;
    }
    size_t at = 0;
    for (size_t i = 0; i < n_old; i++) {
        if (!is_ours(environ[i], names)) {
            env[at++] = environ[i];
        }
    }
    const size_t first = at;
    env[at++] = ct_arena_printf(arena, err, "RANK=%d", s->first_rank + rank);
    env[at++] = ct_arena_printf(arena, err, "LOCAL_RANK=%d", rank);
    env[at++] = ct_arena_printf(arena, err, "WORLD_SIZE=%d", s->world_size);
    env[at++] = ct_arena_printf(arena, err, "LOCAL_WORLD_SIZE=%d", n);
    env[at++] = ct_arena_printf(arena, err, "GROUP_RANK=%d", node);
    env[at++] = ct_arena_printf(arena, err, "NODE_RANK=%d", node);
    env[at++] = ct_arena_printf(arena, err, "GROUP_WORLD_SIZE=%d", s->o->n_nodes);
    env[at++] = ct_arena_printf(arena, err, "ROLE_RANK=%d", s->first_rank + rank);
    env[at++] = ct_arena_printf(arena, err, "ROLE_NAME=%s", s->o->role);
    env[at++] = ct_arena_printf(arena, err, "ROLE_WORLD_SIZE=%d", s->world_size);
    if (s->port > 0) { /* one rank alone has no store */
        env[at++] = ct_arena_printf(arena, err, "MASTER_ADDR=%s", s->nodes != NULL ? s->nodes->address : s->o->master_addr);
        env[at++] = ct_arena_printf(arena, err, "MASTER_PORT=%d", s->port);
    }
    env[at++] = ct_arena_printf(arena, err, "TORCHELASTIC_RUN_ID=%s", s->o->run_id);
    env[at++] = ct_arena_printf(arena, err, "TORCHELASTIC_RESTART_COUNT=%d", s->restart);
    env[at++] = ct_arena_printf(arena, err, "TORCHELASTIC_MAX_RESTARTS=%d", s->o->max_restarts);
    env[at++] = ct_arena_printf(arena, err, "CTITAN_STORE=supervisor");
    if (cti_run_watch_fd(&s->watch, rank) > 0) {
        env[at++] = ct_arena_printf(arena, err, "CTITAN_WATCH_FD=%d", cti_run_watch_fd(&s->watch, rank));
    }
    if (getenv("OMP_NUM_THREADS") == NULL) {
        const int threads = cti_usable_cores() / n;
        env[at++] = ct_arena_printf(arena, err, "OMP_NUM_THREADS=%d", threads > 1 ? threads : 1);
    }
    for (size_t i = first; i < at; i++) {
        if (env[i] == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    *out = env;
    return CT_OK;
}

static ct_status open_log(const supervisor *s, int rank, int which, int *out_fd, ct_err *err)
{
    cti_str path = {.alloc = s->alloc};
    cti_str_printf(&path, "%s/%d", s->o->log_dir, rank);
    ct_status st = cti_str_check(&path, err);
    if (st == CT_OK) {
        st = cti_make_dirs(cti_str_text(&path), err);
    }
    cti_str_printf(&path, "/%s.log", which == 0 ? "stdout" : "stderr");
    if (st == CT_OK) {
        *out_fd = open(cti_str_text(&path), O_WRONLY | O_CREAT | (s->restart > 0 ? O_APPEND : O_TRUNC) | O_CLOEXEC, 0666);
        if (*out_fd < 0) {
            st = CT_FAIL(err, CT_ERR_IO, "'%s' cannot be made: %s", cti_str_text(&path), strerror(errno));
        }
    }
    cti_str_deinit(&path);
    return st;
}

/* One rank with its lines untouched keeps our own streams. */
static bool is_direct(const supervisor *s, int rank, int which)
{
    const unsigned bit = which == 0 ? CTI_RUN_STDOUT : CTI_RUN_STDERR;
    return s->o->n_ranks == 1 && !(s->o->tee[rank] & bit) && !(s->o->redirect[rank] & bit) && s->o->shown[rank] &&
           s->o->log_dir == NULL;
}

static ct_status open_stream(supervisor *s, int rank, int which, int *out_write_fd, ct_err *err)
{
    cti_run_stream *stream = &s->ranks[rank].streams[which];
    const unsigned bit = which == 0 ? CTI_RUN_STDOUT : CTI_RUN_STDERR;
    *out_write_fd = -1;
    if (is_direct(s, rank, which)) {
        return CT_OK;
    }
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return CT_FAIL(err, CT_ERR_IO, "a pipe to rank %d cannot be made: %s", rank, strerror(errno));
    }
    stream->pipe_fd = fds[0];
    *out_write_fd = fds[1];
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK); /* a pipe of ours */
    if (s->o->shown[rank] && !(s->o->redirect[rank] & bit & ~s->o->tee[rank])) {
        stream->console_fd = which == 0 ? STDOUT_FILENO : STDERR_FILENO;
    }
    stream->keep_tail = stream->console_fd < 0 && which == 1;
    (void)snprintf(stream->prefix, sizeof stream->prefix, "[%s%d]:", s->o->role, rank); /* the role has at most 63 bytes */
    if (s->o->n_ranks == 1 && !(s->o->tee[rank] & bit)) {
        stream->prefix[0] = '\0';
    }
    return s->o->log_dir != NULL ? open_log(s, rank, which, &stream->file_fd, err) : CT_OK;
}

/* In the child: only calls that are safe between fork and exec. */
static void run_child(const supervisor *s, int rank, const int write_fds[2], char **env, pid_t parent)
{
    cti_run_watch_share(&s->watch, rank);
    (void)setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        _exit(1);
    }
    for (int which = 0; which < 2; which++) {
        if (write_fds[which] >= 0 && dup2(write_fds[which], which == 0 ? STDOUT_FILENO : STDERR_FILENO) < 0) {
            _exit(1);
        }
    }
    /* In a group of its own a rank that reads the terminal would be stopped. */
    const int nothing = isatty(STDIN_FILENO) ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    if (nothing >= 0) {
        (void)dup2(nothing, STDIN_FILENO);
    }
    (void)sigaction(SIGPIPE, &s->old_pipe, NULL);
    (void)sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
    if (s->o->search_path) {
        (void)execvpe(s->o->child_path, s->o->child_argv, env);
    } else {
        (void)execve(s->o->child_path, s->o->child_argv, env);
    }
    const char *const parts[] = {"ctitan run: '", s->o->child_path, "' cannot be started: ",
                                 errno == ENOENT   ? "there is no such program\n"
                                 : errno == EACCES ? "it is no program, or not ours to run\n"
                                                   : "the system refused\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        (void)!write(STDERR_FILENO, parts[i], strlen(parts[i]));
    }
    _exit(127);
}

static ct_status start_rank(supervisor *s, int rank, ct_err *err)
{
    int write_fds[2] = {-1, -1};
    ct_arena *arena = NULL;
    char **env = NULL;
    ct_status st = ct_arena_create(s->alloc, 0, &arena, err);
    for (int which = 0; which < 2 && st == CT_OK; which++) {
        st = open_stream(s, rank, which, &write_fds[which], err);
    }
    if (st == CT_OK) {
        st = make_environ(s, rank, arena, &env, err);
    }
    if (st == CT_OK) {
        const pid_t parent = getpid(), pid = fork();
        if (pid == 0) {
            run_child(s, rank, write_fds, env, parent);
        } else if (pid < 0) {
            st = CT_FAIL(err, CT_ERR_IO, "rank %d cannot be started: %s", rank, strerror(errno));
        } else {
            (void)setpgid(pid, pid); /* as the child does: whoever is first */
            s->ranks[rank].pid = pid;
            s->ranks[rank].stopped = false;
            cti_run_watch_started(&s->watch, rank, pid);
            s->n_running++;
        }
    }
    for (int which = 0; which < 2; which++) {
        if (write_fds[which] >= 0) {
            (void)close(write_fds[which]);
        }
    }
    ct_arena_destroy(&arena);
    return st;
}

/* ---- watch ------------------------------------------------------------------------------------------------------- */

/* To the ranks and what they started. */
static void signal_all(const supervisor *s, int number)
{
    for (int r = 0; r < s->o->n_ranks; r++) {
        if (s->ranks[r].pid > 0) {
            (void)kill(-s->ranks[r].pid, number); /* gone already: nothing to do */
        }
    }
}

static const char *signal_name(int number, char buf[32])
{
    static const struct {
        int number;
        const char *name;
    } names[] = {{SIGKILL, "SIGKILL"}, {SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"}, {SIGTERM, "SIGTERM"},
                 {SIGINT, "SIGINT"},   {SIGFPE, "SIGFPE"},   {SIGILL, "SIGILL"},   {SIGSTOP, "SIGSTOP"}, {SIGTSTP, "SIGTSTP"},   {SIGPIPE, "SIGPIPE"}, {SIGHUP, "SIGHUP"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].number == number) {
            return names[i].name;
        }
    }
    (void)snprintf(buf, 32, "signal %d", number); /* fits */
    return buf;
}

/* The ranks that outlive a failed one: asked, and soon no longer asked. One that is stopped cannot answer. */
static void end_ranks(supervisor *s)
{
    const int64_t soon = cti_now_ns() + (int64_t)FAILURE_GRACE_MS * 1000000;
    signal_all(s, SIGTERM);
    for (int r = 0; r < s->o->n_ranks; r++) {
        if (s->ranks[r].pid > 0 && s->ranks[r].stopped) {
            (void)kill(-s->ranks[r].pid, SIGKILL); /* gone already: nothing to do */
        }
    }
    s->kill_at_ns = s->kill_at_ns == 0 || soon < s->kill_at_ns ? soon : s->kill_at_ns;
}

/* What is known of the ranks of this host, to the one that prints the table. */
static void send_rows(supervisor *s)
{
    for (int r = 0; r < s->watch.n && s->nodes->server == NULL; r++) {
        cti_str line = {.alloc = s->alloc};
        if (cti_flight_pack(s->alloc, &s->watch.rows[s->first_rank + r], &line, NULL) == CT_OK) {
            (void)cti_meet_send_line(s->alloc, s->nodes->client.fd, "ROW\t%s", line.data); /* gone: then nobody prints */
        }
        cti_str_deinit(&line);
    }
}

/* The end of this start for all nodes, as the meeting says it. */
static void on_verdict(supervisor *s, int code, bool again, const char *text)
{
    s->has_verdict = true;
    if (code != 0) {
        cti_run_watch_take(&s->watch);
        send_rows(s);
    }
    if (text[0] != '\0') {
        (void)snprintf(s->cause, sizeof s->cause, "%s", text); /* cut where too long */
    }
    s->verdict_code = code;
    s->again = again;
    if (text[0] != '\0') {
        fprintf(stderr, "ctitan run: %s%s\n", text, s->n_running > 0 ? "; ending the ranks of this node" : "");
    }
    if (s->n_running > 0) {
        end_ranks(s);
    }
}

static void on_server_gone(supervisor *s)
{
    s->is_alone = true;
    on_verdict(s, ct_status_exit_code(CT_ERR_PEER), false, "the node that serves the meeting is gone");
}

static void tell_nodes(supervisor *s, const char *kind, int code, const char *more)
{
    s->told = true;
    if (!cti_meet_send_line(s->alloc, s->nodes->client.fd, "%s\t%d\t%d%s", kind, s->restart, code, more)) {
        on_server_gone(s);
    }
}

static void tell_failure(supervisor *s, int rank, int status, pid_t pid)
{
    char cause[64], name[32], rest[48] = "", text[512] = "\t";
    if (WIFSIGNALED(status)) {
        (void)snprintf(cause, sizeof cause, "was killed by %s", signal_name(WTERMSIG(status), name));
    } else {
        (void)snprintf(cause, sizeof cause, "ended with exit code %d", WEXITSTATUS(status));
    }
    if (s->n_running == 1) {
        (void)snprintf(rest, sizeof rest, "; ending the other rank"); /* fits */
    } else if (s->n_running > 1) {
        (void)snprintf(rest, sizeof rest, "; ending the other %d ranks", s->n_running); /* fits */
    }
    (void)snprintf(text + 1, sizeof text - 1, "rank %d (local rank %d, pid %d) on %s %s", s->first_rank + rank, rank, (int)pid, s->host,
                   cause); /* fits */
    (void)snprintf(s->cause, sizeof s->cause, "%s", text + 1);
    /* A wrong command line is told by the rank itself; with one rank there is nothing to add. */
    if (s->world_size > 1 || WIFSIGNALED(status)) {
        fprintf(stderr, "ctitan run: %s%s\n", text + 1, rest);
    }
    if (s->nodes != NULL) {
        s->verdict_by_ns = cti_now_ns() + (int64_t)VERDICT_WAIT_MS * 1000000;
        tell_nodes(s, "FAILED", s->ranks[rank].exit_code, text);
    }
}

static void on_exit_of(supervisor *s, int rank, int status)
{
    rank_state *r = &s->ranks[rank];
    const pid_t pid = r->pid;
    char state[48], name[32];
    if (WIFSIGNALED(status)) {
        (void)snprintf(state, sizeof state, "killed by %s", signal_name(WTERMSIG(status), name)); /* fits */
    } else {
        (void)snprintf(state, sizeof state, "exit code %d", WEXITSTATUS(status)); /* fits */
    }
    cti_run_watch_ended(&s->watch, rank, WIFSIGNALED(status), state);
    r->pid = 0;
    s->n_running--;
    r->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    for (int which = 0; which < 2; which++) {
        cti_run_stream_finish(&r->streams[which]);
    }
    if (r->exit_code == 0 || s->failed_rank >= 0) {
        return;
    }
    s->failed_rank = rank;
    if (s->has_verdict) { /* an effect */
        return;
    }
    if (s->n_signals > 0) { /* asked to stop: codes are as the ranks chose; one that broke off keeps no other waiting */
        const int64_t soon = cti_now_ns() + (int64_t)FAILURE_GRACE_MS * 1000000;
        s->kill_at_ns = WIFSIGNALED(status) && soon < s->kill_at_ns ? soon : s->kill_at_ns;
        return;
    }
    cti_run_watch_take(&s->watch);
    cti_run_stream_show_tail(&r->streams[1]);
    tell_failure(s, rank, status, pid);
    end_ranks(s);
}

/* Ranks that a signal killed first: where several ended since the last look, they are the cause, and the others lost a peer. What a
 * rank started ends with it (its group cannot have a new owner before the rank is reaped). */
static void reap(supervisor *s)
{
    for (int r = 0; r < s->o->n_ranks; r++) {
        siginfo_t info = {.si_pid = 0};
        const pid_t pid = s->ranks[r].pid;
        char name[32];
        if (pid != 0 && waitid(P_PID, (id_t)pid, &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 && info.si_pid == pid) {
            const bool stopped = info.si_code == CLD_STOPPED;
            s->ranks[r].stopped = stopped;
            cti_run_watch_stopped(&s->watch, r, stopped);
            fprintf(stderr, "ctitan run: rank %d (local rank %d, pid %d) on %s %s%s\n", s->first_rank + r, r, (int)pid, s->host,
                    stopped ? "was stopped by " : "goes on", stopped ? signal_name(info.si_status, name) : "");
        }
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int r = 0; r < s->o->n_ranks; r++) {
            siginfo_t info = {.si_pid = 0};
            int status;
            const pid_t pid = s->ranks[r].pid;
            if (pid == 0 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != pid ||
                (pass == 0 && info.si_code == CLD_EXITED)) {
                continue;
            }
            (void)kill(-pid, SIGKILL);
            if (waitpid(pid, &status, 0) == pid) {
                on_exit_of(s, r, status);
            }
        }
    }
}

/* A request to stop, from a signal or from another node; is_second: somebody asked again, it is to be at once. A scheduler asks all nodes at
 * the same time, so that the requests of others are none of these. */
static void stop_ranks(supervisor *s, const char *from, bool is_second)
{
    if (s->n_signals++ > 0 && !is_second) {
        return;
    }
    if (is_second) {
        signal_all(s, SIGKILL);
        if (s->n_running == 0 && s->nodes != NULL && !s->has_verdict) {
            on_verdict(s, ct_status_exit_code(CT_ERR_STOPPED), false, "stopped on request before the other nodes ended");
        }
        return;
    }
    fprintf(stderr, "ctitan run: %s: asking %d rank%s to stop (again: at once)\n", from, s->n_running, s->n_running == 1 ? "" : "s");
    signal_all(s, SIGTERM);
    if (s->kill_at_ns == 0) {
        s->kill_at_ns = cti_now_ns() + s->o->grace_ms * 1000000;
    }
}

static void on_signals(supervisor *s)
{
    struct signalfd_siginfo info;
    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD) {
            continue;
        }
        const bool is_second = s->n_own_signals++ > 0;
        if (s->nodes != NULL && !s->has_verdict) {
            (void)cti_meet_send_line(s->alloc, s->nodes->client.fd, is_second ? "HALT" : "STOP"); /* gone: seen by take_messages */
        }
        stop_ranks(s, info.ssi_signo == SIGINT ? "SIGINT" : info.ssi_signo == SIGHUP ? "SIGHUP" : "SIGTERM", is_second);
    }
}

/* What the meeting says. */
static void take_messages(supervisor *s)
{
    cti_meet_message m;
    int rc = 0;
    while (!s->has_verdict && (rc = cti_meet_take(&s->nodes->client, &m)) > 0) {
        if (m.kind == CTI_MEET_STOP || m.kind == CTI_MEET_HALT) {
            stop_ranks(s, "another node", m.kind == CTI_MEET_HALT);
        } else if (m.kind == CTI_MEET_ROW) {
            cti_run_watch_add_row(&s->watch, m.text);
        } else if (m.kind == CTI_MEET_END && m.restart == s->restart) {
            on_verdict(s, m.exit_code, m.again, m.own ? "" : m.text);
        }
    }
    if (rc < 0 || (s->verdict_by_ns != 0 && cti_now_ns() >= s->verdict_by_ns && !s->has_verdict)) {
        on_server_gone(s);
    }
}

/* Rows of other hosts that have come. False: no more will. */
static bool take_rows(supervisor *s)
{
    cti_meet_message m;
    int rc;
    while ((rc = cti_meet_take(&s->nodes->client, &m)) > 0) {
        if (m.kind == CTI_MEET_ROW) {
            cti_run_watch_add_row(&s->watch, m.text);
        }
    }
    return rc == 0;
}

static int poll_timeout_ms(const supervisor *s)
{
    const bool kills = s->kill_at_ns != 0 && s->n_running > 0;
    const bool ticks = s->watch.n > 0 && s->n_running > 0 && s->failed_rank < 0;
    if (!kills && s->verdict_by_ns == 0) {
        return ticks ? CTI_RUN_WATCH_TICK_MS : -1;
    }
    const int64_t left = ((kills ? s->kill_at_ns : s->verdict_by_ns) - cti_now_ns()) / 1000000 + 1;
    return left <= 0 ? 0 : left > 1000 ? 1000 : (int)left;
}

/* Warnings; a rank that stays stopped is ended, which ends the others. */
static void tick(supervisor *s)
{
    if (s->watch.n == 0 || s->failed_rank >= 0 || cti_now_ns() < s->tick_at_ns) {
        return;
    }
    s->tick_at_ns = cti_now_ns() + (int64_t)CTI_RUN_WATCH_TICK_MS * 1000000;
    const int r = cti_run_watch_tick(&s->watch);
    if (r >= 0 && s->ranks[r].pid > 0) {
        fprintf(stderr, "ctitan run: rank %d has been stopped for longer than a collective may take: it is killed\n", s->first_rank + r);
        (void)kill(-s->ranks[r].pid, SIGKILL); /* reaped as any other */
    }
}

/* The other hosts' rows come, or time passes; then the table, on the host that serves (where that one is gone, on each for its own). */
static void report(supervisor *s)
{
    const bool serves = s->nodes == NULL || s->nodes->server != NULL;
    const int64_t until_ns = cti_now_ns() + (int64_t)ROWS_WAIT_MS * 1000000;
    while (s->nodes != NULL && serves && s->watch.is_taken && take_rows(s) && cti_run_watch_wants_rows(&s->watch) && cti_now_ns() < until_ns) {
        struct pollfd p = {.fd = s->nodes->client.fd, .events = POLLIN};
        if (poll(&p, 1, (int)((until_ns - cti_now_ns()) / 1000000) + 1) < 0) {
            break;
        }
    }
    if (s->watch.is_taken && s->n_signals == 0) {
        cti_run_watch_report(&s->watch, serves ? CTI_RUN_WATCH_ALL : s->is_alone ? CTI_RUN_WATCH_OWN : CTI_RUN_WATCH_FILES, s->cause);
    }
}

/* Until all ranks have ended and, with several nodes, the verdict is there. */
static ct_status watch(supervisor *s, ct_err *err)
{
    bool rows_over = false;
    while (s->n_running > 0 || (s->nodes != NULL && !s->has_verdict)) {
        nfds_t n = 0;
        s->polls[n++] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
        for (int i = 0; i < 2 * s->o->n_ranks; i++) {
            s->polls[n++] = (struct pollfd){.fd = s->ranks[i / 2].streams[i % 2].pipe_fd, .events = POLLIN};
        }
        const bool hears = s->nodes != NULL && (!s->has_verdict || (s->nodes->server != NULL && !rows_over));
        s->polls[n++] = (struct pollfd){.fd = hears ? s->nodes->client.fd : -1, .events = POLLIN};
        if (poll(s->polls, n, poll_timeout_ms(s)) < 0 && errno != EINTR) {
            return CT_FAIL(err, CT_ERR_IO, "waiting for the ranks failed: %s", strerror(errno));
        }
        for (int i = 0; i < 2 * s->o->n_ranks; i++) {
            cti_run_stream *stream = &s->ranks[i / 2].streams[i % 2];
            if (s->polls[i + 1].revents != 0 && stream->pipe_fd >= 0 && !cti_run_stream_read(stream)) {
                cti_run_stream_finish(stream); /* the rank closed it; an unfinished line goes out now */
            }
        }
        on_signals(s);
        reap(s);
        tick(s);
        if (s->nodes != NULL && s->n_running == 0 && !s->told && !s->has_verdict) {
            tell_nodes(s, "DONE", s->failed_rank >= 0 ? s->ranks[s->failed_rank].exit_code : 0, "");
        }
        if (s->nodes != NULL && !s->has_verdict) {
            take_messages(s);
        } else if (hears) {
            rows_over = !take_rows(s);
        }
        if (s->kill_at_ns != 0 && s->n_running > 0 && cti_now_ns() >= s->kill_at_ns) {
            signal_all(s, SIGKILL);
            s->kill_at_ns = cti_now_ns() + (int64_t)1000000000;
        }
    }
    return CT_OK;
}

/* One start of all ranks. */
static ct_status attempt(supervisor *s, ct_err *err)
{
    cti_store_server *server = NULL;
    int listen_fd = -1;
    s->failed_rank = -1;
    s->kill_at_ns = s->verdict_by_ns = 0;
    s->told = s->has_verdict = false;
    for (int i = 0; i < 2 * s->o->n_ranks; i++) {
        s->ranks[i / 2].streams[i % 2] = (cti_run_stream){
            .pipe_fd = -1, .console_fd = -1, .file_fd = -1, .line.alloc = s->alloc, .tail.alloc = s->alloc};
    }
    s->port = s->o->master_port;
    s->world_size = s->o->n_ranks;
    const bool serves = s->nodes != NULL ? s->nodes->server != NULL : s->o->n_ranks > 1;
    ct_status st = serves ? cti_store_listen(s->o->master_addr, s->o->master_port, &listen_fd, &s->port, err) : CT_OK;
    if (st == CT_OK && s->nodes != NULL) {
        st = cti_run_nodes_start(s->nodes, s->restart, serves ? s->port : 0, s->signal_fd, err);
        s->first_rank = s->nodes->first_rank;
        s->world_size = s->nodes->world_size;
        s->port = s->nodes->port;
    }
    cti_run_watch_open(&s->watch, s->alloc, s->o->n_ranks, s->first_rank, s->world_size);
    s->tick_at_ns = 0;
    /* Ranks first, so that nothing but this thread exists while they are forked; their connections wait in the socket. */
    for (int r = 0; r < s->o->n_ranks && st == CT_OK; r++) {
        st = start_rank(s, r, err);
    }
    if (st == CT_OK && listen_fd >= 0) {
        st = cti_store_server_start(s->alloc, listen_fd, s->world_size, s->o->run_id, &server, err);
        listen_fd = -1;
    }
    if (st == CT_OK) {
        st = watch(s, err);
    }
    if (st != CT_OK) {
        s->failed_rank = 0; /* err tells the cause; how the ranks end does not */
        s->has_verdict = true;
        signal_all(s, SIGKILL);
        while (s->n_running > 0 && watch(s, NULL) == CT_OK) {
        }
    }
    if (st == CT_OK) {
        report(s);
    }
    cti_run_watch_close(&s->watch);
    if (listen_fd >= 0) {
        (void)close(listen_fd);
    }
    cti_store_server_stop(&server);
    for (int r = 0; r < s->o->n_ranks; r++) {
        cti_run_stream_deinit(&s->ranks[r].streams[0]);
        cti_run_stream_deinit(&s->ranks[r].streams[1]);
    }
    return st;
}

/* Descriptors 0 to 2 that are closed would become pipes of ours. */
static void open_standard_fds(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY); /* the lowest free number is fd */
        }
    }
}

/* Signals as we need them, whatever we were started with. SIGHUP stays ignored under nohup. */
static ct_status take_signals(supervisor *s, ct_err *err)
{
    struct sigaction action, hup;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    (void)sigaction(SIGCHLD, &action, NULL); /* ignored, the ends of the ranks could not be read */
    action.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &action, &s->old_pipe); /* a console that is gone does not end the run */
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGCHLD);
    if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN) {
        sigaddset(&mask, SIGHUP);
    }
    if (sigprocmask(SIG_BLOCK, &mask, &s->old_mask) != 0 ||
        (s->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK)) < 0) {
        return CT_FAIL(err, CT_ERR_IO, "signals cannot be watched: %s", strerror(errno));
    }
    return CT_OK;
}

/* Starts of all ranks, until one of them is not to be followed by another. */
static ct_status attempts(supervisor *s, int *out_exit_code, ct_err *err)
{
    for (;;) {
        CT_TRY(attempt(s, err));
        const int code = s->failed_rank >= 0 ? s->ranks[s->failed_rank].exit_code : 0;
        *out_exit_code = s->nodes != NULL ? s->verdict_code : code;
        if (s->nodes != NULL ? !s->again : code == 0 || s->n_signals > 0 || s->restart >= s->o->max_restarts || code == 2) {
            return CT_OK;
        }
        s->restart++;
        fprintf(stderr, "ctitan run: starting all ranks again (%d of %d)\n", s->restart, s->o->max_restarts);
    }
}

ct_status cti_run_supervise(const ct_alloc *alloc, const cti_run_options *o, int *out_exit_code, ct_err *err)
{
    supervisor s = {.alloc = alloc, .o = o, .failed_rank = -1};
    cti_run_nodes nodes = {.client.fd = -1};
    open_standard_fds();
    CT_TRY(take_signals(&s, err));
    if (gethostname(s.host, sizeof s.host - 1) != 0) {
        memcpy(s.host, "this host", sizeof "this host");
    }
    s.ranks = CT_NEW_ARRAY(alloc, rank_state, o->n_ranks, err);
    s.polls = CT_NEW_ARRAY(alloc, struct pollfd, 2 + 2 * o->n_ranks, err);
    ct_status st = s.ranks != NULL && s.polls != NULL ? CT_OK : CT_ERR_MEMORY;
    if (st == CT_OK && o->n_nodes > 1) {
        s.nodes = &nodes;
        st = cti_run_nodes_join(&nodes, alloc, o, s.host, s.signal_fd, err);
    }
    if (st == CT_OK) {
        st = attempts(&s, out_exit_code, err);
    }
    cti_run_nodes_leave(&nodes);
    (void)close(s.signal_fd);
    (void)sigprocmask(SIG_SETMASK, &s.old_mask, NULL);
    (void)sigaction(SIGPIPE, &s.old_pipe, NULL);
    ct_alloc_free(alloc, s.ranks);
    ct_alloc_free(alloc, s.polls);
    return st;
}
