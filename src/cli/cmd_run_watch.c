/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cmd_run_watch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"

#define SECOND_NS ((int64_t)1000000000)
enum { WARN_AFTER_MS = 10000 /* at the soonest; else a quarter of the limit */, STOPPED_MARGIN_MS = 5000 };

void cti_run_watch_open(cti_run_watch *w, const ct_alloc *alloc, int n, int first_rank, int world_size)
{
    *w = (cti_run_watch){.alloc = alloc, .first_rank = first_rank, .world_size = world_size};
    if (world_size < 2) {
        return;
    }
    w->ranks = CT_NEW_ARRAY(alloc, cti_run_watched, n, NULL);
    w->rows = CT_NEW_ARRAY(alloc, cti_flight_rank, world_size, NULL);
    if (w->ranks == NULL || w->rows == NULL) {
        cti_run_watch_close(w);
        return;
    }
    w->n = n;
    for (int r = 0; r < n; r++) {
        w->ranks[r].fd = memfd_create("ctitan-rank", MFD_CLOEXEC | MFD_ALLOW_SEALING); /* -1: this one is not watched */
    }
    for (int r = 0; r < world_size; r++) {
        w->rows[r].rank = r;
    }
}

void cti_run_watch_close(cti_run_watch *w)
{
    for (int r = 0; r < w->n; r++) {
        if (w->ranks[r].fd >= 0) {
            (void)close(w->ranks[r].fd);
        }
    }
    ct_alloc_free(w->alloc, w->ranks);
    ct_alloc_free(w->alloc, w->rows);
    w->ranks = NULL;
    w->rows = NULL;
    w->n = 0;
}

int cti_run_watch_fd(const cti_run_watch *w, int rank)
{
    return rank < w->n && w->ranks[rank].fd > 0 ? w->ranks[rank].fd : 0;
}

void cti_run_watch_share(const cti_run_watch *w, int rank)
{
    if (cti_run_watch_fd(w, rank) > 0) {
        (void)fcntl(w->ranks[rank].fd, F_SETFD, 0); /* a descriptor of ours */
    }
}

void cti_run_watch_started(cti_run_watch *w, int rank, pid_t pid)
{
    if (rank < w->n) {
        w->ranks[rank].pid = pid;
    }
}

void cti_run_watch_stopped(cti_run_watch *w, int rank, bool is_stopped)
{
    if (rank < w->n) {
        w->ranks[rank].stopped_ns = is_stopped ? cti_now_ns() : 0;
    }
}

/* What the system says that a process does. */
static const char *state_of(pid_t pid)
{
    char path[40], text[256];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid); /* fits */
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')'); /* of the program's name */
    switch (end != NULL && end[1] == ' ' ? end[2] : 'Z') {
    case 'T':
    case 't':
        return "stopped";
    case 'D':
        return "in the kernel"; /* a disk, mostly */
    case 'Z':
    case 'X':
        return "ended";
    default:
        return "running";
    }
}

/* ---- while all is well ---- */

int cti_run_watch_tick(cti_run_watch *w)
{
    cti_flight_rank *now = w->n > 0 ? CT_NEW_ARRAY(w->alloc, cti_flight_rank, w->n, NULL) : NULL;
    int64_t longest_ns = 0, limit_ms = 0;
    bool is_new = false;
    int too_long = -1;
    for (int r = 0; r < w->n && now != NULL; r++) {
        cti_run_watched *k = &w->ranks[r];
        now[r].rank = w->first_rank + r;
        if (k->pid == 0 || !cti_flight_read_memory(k->fd, &now[r])) {
            continue;
        }
        (void)snprintf(now[r].state, sizeof now[r].state, "%s", k->stopped_ns != 0 ? "stopped" : "running"); /* fits */
        const int64_t limit = now[r].head.limit_ms;
        if (k->stopped_ns != 0 && now[r].now_ns - k->stopped_ns > (limit + STOPPED_MARGIN_MS) * (SECOND_NS / 1000)) {
            too_long = r;
        }
        const cti_record *e = &now[r].op;
        const int64_t since_ns = now[r].now_ns - e->scheduled_ns;
        if (now[r].has_op && (e->state == CTI_RECORD_SCHEDULED || e->state == CTI_RECORD_STARTED) && k->stopped_ns == 0 &&
            since_ns > cti_max_i64(WARN_AFTER_MS, limit / 4) * (SECOND_NS / 1000)) {
            is_new = is_new || e->id != k->warned_id;
            k->warned_id = e->id;
            longest_ns = cti_max_i64(longest_ns, since_ns);
            limit_ms = limit;
        }
    }
    if (is_new) {
        cti_str text = {.alloc = w->alloc};
        cti_flight_verdict(now, w->n, &text);
        fprintf(stderr, "ctitan run: ranks have waited for %.0f s, the limit is %.0f s\n%s", (double)longest_ns * 1e-9, (double)limit_ms * 1e-3,
                cti_str_text(&text));
        cti_str_deinit(&text);
    }
    ct_alloc_free(w->alloc, now);
    return too_long;
}

/* ---- when it breaks ---- */

void cti_run_watch_take(cti_run_watch *w)
{
    if (w->is_taken) {
        return;
    }
    w->is_taken = true;
    for (int r = 0; r < w->n; r++) {
        cti_flight_rank *row = &w->rows[w->first_rank + r];
        w->n_rows++;
        (void)cti_flight_read_memory(w->ranks[r].fd, row); /* false: is_known says so */
        if (!row->is_known && gethostname(row->head.host, sizeof row->head.host - 1) != 0) {
            row->head.host[0] = '\0';
        }
        if (row->state[0] == '\0') {
            (void)snprintf(row->state, sizeof row->state, "%s", w->ranks[r].pid > 0 ? state_of(w->ranks[r].pid) : "ended"); /* fits */
        }
        w->is_broken = w->is_broken || (row->is_known && row->head.is_broken);
    }
}

void cti_run_watch_ended(cti_run_watch *w, int rank, bool is_killed, const char *state)
{
    if (rank >= w->n) {
        return;
    }
    w->ranks[rank].pid = 0;
    if (!w->is_taken) {
        (void)snprintf(w->rows[w->first_rank + rank].state, sizeof w->rows[0].state, "%s", state); /* cut where too long */
        w->is_broken = w->is_broken || is_killed;
    }
}

void cti_run_watch_add_row(cti_run_watch *w, const char *line)
{
    cti_flight_rank row;
    if (w->rows == NULL || !cti_flight_unpack(line, &row) || row.rank < 0 || row.rank >= w->world_size ||
        (row.rank >= w->first_rank && row.rank < w->first_rank + w->n) || w->rows[row.rank].state[0] != '\0') {
        return;
    }
    w->rows[row.rank] = row;
    w->n_rows++;
    w->is_broken = w->is_broken || strncmp(row.state, "killed", 6) == 0 || (row.is_known && row.head.is_broken);
}

bool cti_run_watch_wants_rows(const cti_run_watch *w)
{
    return w->rows != NULL && w->n_rows < w->world_size;
}

void cti_run_watch_report(cti_run_watch *w, cti_run_watch_table table, const char *cause)
{
    const bool all = table == CTI_RUN_WATCH_ALL;
    bool any_known = false;
    const int first = all ? 0 : w->first_rank, n = w->rows == NULL ? 0 : all ? w->world_size : w->n;
    for (int r = 0; r < n; r++) {
        cti_flight_rank *row = &w->rows[first + r];
        any_known = any_known || row->is_known;
        if (row->state[0] == '\0') {
            (void)snprintf(row->state, sizeof row->state, "not heard of"); /* fits */
        }
    }
    if ((!w->is_broken && table != CTI_RUN_WATCH_FILES) || !any_known) {
        return;
    }
    for (int r = 0; r < w->n; r++) {
        ct_err err = {0};
        if (cti_flight_write_memory(w->alloc, w->ranks[r].fd, w->rows[w->first_rank + r].state, cause, &err) != CT_OK) {
            fprintf(stderr, "ctitan run: the flight recorder of rank %d: %s\n", w->first_rank + r, err.message);
        }
    }
    if (table == CTI_RUN_WATCH_FILES) {
        return;
    }
    cti_str text = {.alloc = w->alloc};
    cti_flight_table(w->rows + first, n, &text);
    cti_flight_verdict(w->rows + first, n, &text);
    for (int r = 0; r < w->n; r++) {
        const cti_flight_rank *row = &w->rows[w->first_rank + r];
        if (row->is_known && row->head.path[0] != '\0') {
            const char *slash = strrchr(row->head.path, '/');
            cti_str_printf(&text, "  the calls before: %.*s (ctitan flight-recorder reads it)\n", (int)(slash - row->head.path), row->head.path);
            break;
        }
    }
    fprintf(stderr, "ctitan run: the ranks as they stood%s:\n%s", all ? "" : " on this host", cti_str_text(&text));
    cti_str_deinit(&text);
}
