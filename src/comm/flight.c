/* SPDX-License-Identifier: Apache-2.0 */
/* Who hangs: the table of ranks, and what those that wait have called and others have not. */
#include "comm/flight.h"

#include <inttypes.h>

static const cti_recorder_group *group_of(const cti_flight_rank *r, uint64_t id)
{
    for (int i = 0; r->is_known && i < r->head.n_groups; i++) {
        if (r->head.groups[i].id == id && id != 0) {
            return &r->head.groups[i];
        }
    }
    return NULL;
}

/* A call that began and is not complete. */
static bool is_pending(const cti_flight_rank *r)
{
    return r->is_known && r->has_op && r->op.state != CTI_RECORD_COMPLETED;
}

void cti_flight_describe(const cti_flight_rank *r, const cti_record *op, cti_str *out)
{
    const cti_recorder_group *g = &r->head.groups[op->group];
    cti_str_printf(out, "%s %" PRIu64 " of '%s'", ct_comm_op_name((ct_comm_op)op->op), op->number, g->name);
    if (op->op != CT_COMM_BARRIER) {
        cti_str_printf(out, " (%" PRId64 " byte%s, %s)", op->bytes, op->bytes == 1 ? "" : "s", ct_dtype_name((ct_dtype)op->dtype));
    }
}

static double seconds(int64_t from_ns, int64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) * 1e-9 : 0.0;
}

/* What the rank did last and since when: in a call, or between calls. */
static void add_last(const cti_flight_rank *r, cti_str *out)
{
    if (!r->has_op) {
        cti_str_printf(out, "no call yet, %s for %.1f s", r->head.what, seconds(r->head.since_ns, r->now_ns));
        return;
    }
    cti_flight_describe(r, &r->op, out);
    const cti_record *e = &r->op;
    if (e->state == CTI_RECORD_COMPLETED) {
        cti_str_printf(out, ", done %.1f s ago", seconds(e->ended_ns, r->now_ns));
    } else if (e->state == CTI_RECORD_FAILED) {
        cti_str_printf(out, ", failed after %.1f s", seconds(e->scheduled_ns, e->ended_ns));
    } else {
        cti_str_printf(out, ", %s for %.1f s", e->state == CTI_RECORD_STARTED ? "in it" : "in line", seconds(e->scheduled_ns, r->now_ns));
    }
}

void cti_flight_table(const cti_flight_rank *ranks, int n, cti_str *out)
{
    int host = 4, state = 5;
    for (int i = 0; i < n; i++) {
        const int h = (int)strlen(ranks[i].head.host), s = (int)strlen(ranks[i].state);
        host = h > host ? h : host;
        state = s > state ? s : state;
    }
    cti_str_printf(out, "  rank  %-*s  %-*s  step  doing     last call\n", host, "host", state, "state");
    for (int i = 0; i < n; i++) {
        const cti_flight_rank *r = &ranks[i];
        cti_str_printf(out, "  %4d  %-*s  %-*s  ", r->rank, host, r->head.host, state, r->state);
        if (r->is_known) {
            cti_str_printf(out, "%4" PRId64 "  %-8s  ", r->head.step, r->head.what);
            add_last(r, out);
        } else {
            cti_str_add(out, "   -  starting  none yet");
        }
        cti_str_add_char(out, '\n');
    }
}

/* "rank 1", "ranks 0, 2": those marked. */
static void add_ranks(const cti_flight_rank *ranks, int n, const unsigned char *marks, unsigned char mark, cti_str *out)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        count += marks[i] == mark;
    }
    cti_str_add(out, count == 1 ? "rank " : "ranks ");
    for (int i = 0, k = 0; i < n; i++) {
        if (marks[i] == mark) {
            cti_str_printf(out, "%s%d", k++ > 0 ? ", " : "", ranks[i].rank);
        }
    }
}

/* Whether the rank has to call what g's members call. Of a rank that is not known only: where g is the world. */
static bool is_member(const cti_flight_rank *r, const cti_recorder_group *g, int world_size)
{
    if (r->is_known) {
        return group_of(r, g->id) != NULL;
    }
    if (g->size == world_size) {
        return true;
    }
    const int32_t at = g->stride != 0 ? (r->rank - g->first) / g->stride : -1;
    return g->stride != 0 && at >= 0 && at < g->size && g->first + at * g->stride == r->rank;
}

enum { MARK_NONE, MARK_WAITS, MARK_LACKS, MARK_OTHER };

/* One line for the call of ranks[k], which is the first rank that waits in it. */
static void judge_call(const cti_flight_rank *ranks, int n, int k, unsigned char *marks, cti_str *out)
{
    const cti_record *op = &ranks[k].op;
    const cti_recorder_group *g = &ranks[k].head.groups[op->group];
    int n_lack = 0, other = -1;
    for (int i = 0; i < n; i++) {
        const cti_recorder_group *mine = group_of(&ranks[i], g->id);
        const cti_record *e = &ranks[i].op;
        marks[i] = MARK_NONE;
        if (!is_member(&ranks[i], g, ranks[k].head.world_size)) {
            continue;
        }
        if (mine == NULL || mine->last_number < op->number) {
            marks[i] = MARK_LACKS;
            n_lack++;
        } else if (is_pending(&ranks[i]) && &ranks[i].head.groups[e->group] == mine && e->number == op->number) {
            const bool same = e->op == op->op && e->bytes == op->bytes && e->dtype == op->dtype && e->peer == op->peer;
            marks[i] = same ? MARK_WAITS : MARK_OTHER;
            other = same || other >= 0 ? other : i;
        }
    }
    cti_str_add(out, "  ");
    cti_flight_describe(&ranks[k], op, out);
    cti_str_add(out, ": ");
    add_ranks(ranks, n, marks, MARK_WAITS, out);
    cti_str_add(out, " called it");
    if (other >= 0) {
        cti_str_add(out, "; ");
        add_ranks(ranks, n, marks, MARK_OTHER, out);
        cti_str_add(out, " called another instead, ");
        cti_flight_describe(&ranks[other], &ranks[other].op, out);
    }
    if (n_lack > 0) {
        cti_str_add(out, "; ");
        add_ranks(ranks, n, marks, MARK_LACKS, out);
        cti_str_add(out, " did not");
    }
    int n_dead = 0;
    for (int i = 0; i < n; i++) {
        const bool is_dead = strncmp(ranks[i].state, "killed", 6) == 0 || strcmp(ranks[i].state, "stopped") == 0;
        if (is_dead && marks[i] == MARK_WAITS) {
            cti_str_printf(out, "; rank %d %s %s in it", ranks[i].rank, ranks[i].state[0] == 's' ? "is" : "was", ranks[i].state);
            n_dead++;
        }
    }
    if (n_lack == 0 && other < 0 && n_dead == 0) {
        cti_str_add(out, ", as did all others of that group that are known: look at the network between them");
    }
    cti_str_add_char(out, '\n');
}

void cti_flight_verdict(const cti_flight_rank *ranks, int n, cti_str *out)
{
    unsigned char *marks = ct_alloc_zeroed(out->alloc, (size_t)n + 1, 1, NULL);
    for (int k = 0; k < n && marks != NULL; k++) {
        if (!is_pending(&ranks[k]) || ranks[k].op.op == CT_COMM_EXCHANGE) {
            continue;
        }
        const uint64_t id = ranks[k].head.groups[ranks[k].op.group].id;
        bool is_first = id != 0;
        for (int i = 0; i < k; i++) { /* one line for each call, whatever the ranks think that it is */
            is_first = is_first && !(is_pending(&ranks[i]) && ranks[i].head.groups[ranks[i].op.group].id == id &&
                                     ranks[i].op.number == ranks[k].op.number);
        }
        if (is_first) {
            judge_call(ranks, n, k, marks, out);
        }
    }
    ct_alloc_free(out->alloc, marks);
}
