/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the self-test, what it measures, and its report. */
#include "comm/selftest.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/str.h"
#include "comm/selftest_internal.h"

enum {
    ALL_PAIRS_RANKS = 64, /* above, links are those of a hypercube's distances */
    N_ROUND_TRIPS = 20,
    SMALL_BYTES = 4096, LARGE_BYTES = 262144, /* of bits of sums: one round of messages, and several (comm_built.c) */
    SUM_BYTES = 8 << 20, N_SUMS = 3
};

static const ct_comm_op collectives[] = {CT_COMM_ALL_REDUCE, CT_COMM_ALL_GATHER, CT_COMM_REDUCE_SCATTER, CT_COMM_BROADCAST, CT_COMM_ALL_TO_ALL};
enum { N_COLLECTIVES = sizeof collectives / sizeof collectives[0] };

static ct_comm *world_of(const cti_selftest_state *s)
{
    return s->groups[0].comm;
}

/* ---- ranks -------------------------------------------------------------------------------------------------------- */

/* values [n] of every rank; the largest of each goes to all. */
static ct_status share_largest(const cti_selftest_state *s, double *values, int64_t n, ct_err *err)
{
    return n == 0 ? CT_OK : ct_comm_all_reduce(world_of(s), values, values, n, CT_DTYPE_F64, CT_REDUCE_MAX, NULL, err);
}

static ct_status share_hosts(const cti_selftest_state *s, ct_err *err)
{
    const int n = s->report->world_size;
    char mine[CTI_SELFTEST_HOST_BYTES] = "";
    if (gethostname(mine, sizeof mine - 1) != 0 || mine[0] == '\0') {
        (void)snprintf(mine, sizeof mine, "unknown"); /* fits */
    }
    char *all = CT_NEW_ARRAY(s->alloc, char, (size_t)n * sizeof mine, err);
    if (all == NULL) {
        return CT_ERR_MEMORY;
    }
    const ct_status st = ct_comm_all_gather(world_of(s), mine, all, sizeof mine, CT_DTYPE_U8, NULL, err);
    for (int r = 0; r < n && st == CT_OK; r++) {
        memcpy(s->report->ranks[r].host, all + (size_t)r * sizeof mine, sizeof mine);
        s->report->ranks[r].host[sizeof mine - 1] = '\0';
    }
    ct_alloc_free(s->alloc, all);
    return st;
}

/* Adding up in memory, all ranks at once: a rank on a slow or busy host shows. */
static double sum_rate(const cti_selftest_state *s)
{
    const int64_t n = (int64_t)cti_min_i64((int64_t)s->room_bytes, SUM_BYTES) / 4;
    float *out = s->out;
    const float *in = s->in;
    memset(s->in, 0, s->room_bytes);
    memset(s->out, 0, s->room_bytes);
    const int64_t began = cti_now_ns();
    for (int k = 0; k < N_SUMS; k++) {
        for (int64_t i = 0; i < n; i++) {
            out[i] += in[i];
        }
    }
    const double seconds = cti_seconds_since(began);
    return seconds > 0.0 ? 3.0 * 4.0 * (double)n * N_SUMS / seconds : 0.0; /* two reads and a write */
}

static ct_status measure_sums(const cti_selftest_state *s, ct_err *err)
{
    const int n = s->report->world_size;
    double *rates = CT_NEW_ARRAY(s->alloc, double, n, err);
    if (rates == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st = ct_comm_barrier(world_of(s), NULL, err);
    if (st == CT_OK) {
        rates[ct_comm_rank(world_of(s))] = sum_rate(s);
        st = share_largest(s, rates, n, err);
    }
    for (int r = 0; r < n && st == CT_OK; r++) {
        s->report->ranks[r].sum_bytes_per_s = rates[r];
    }
    ct_alloc_free(s->alloc, rates);
    return st;
}

/* ---- links -------------------------------------------------------------------------------------------------------- */

static bool is_measured(int n, int distance)
{
    return n <= ALL_PAIRS_RANKS || (distance & (distance - 1)) == 0;
}

static int count_links(int n)
{
    int links = 0;
    for (int distance = 1; distance < n; distance++) {
        links += is_measured(n, distance) ? 2 * (n - distance) : 0;
    }
    return links;
}

/* Messages one way, then a word that all have come; the sender's clock. */
static ct_status stream_one_way(cti_selftest_state *s, bool is_sender, int peer, int n_messages, double *out_rate, ct_err *err)
{
    ct_comm *world = world_of(s);
    const int64_t size = s->options->link_bytes, began = cti_now_ns();
    uint64_t word = 0;
    for (int k = 0; k < n_messages; k++) {
        CT_TRY(is_sender ? ct_comm_send(world, s->in, size, CT_DTYPE_U8, peer, NULL, err)
                         : ct_comm_recv(world, s->out, size, CT_DTYPE_U8, peer, NULL, err));
    }
    CT_TRY(is_sender ? ct_comm_recv(world, &word, 1, CT_DTYPE_I64, peer, NULL, err) : ct_comm_send(world, &word, 1, CT_DTYPE_I64, peer, NULL, err));
    const double seconds = cti_seconds_since(began);
    *out_rate = is_sender && seconds > 0.0 ? (double)(size * n_messages) / seconds : 0.0;
    return CT_OK;
}

/* One direction of a link between this rank and peer: the pattern, then time. */
static ct_status try_direction(cti_selftest_state *s, int from, int to, cti_selftest_link *link, ct_err *err)
{
    ct_comm *world = world_of(s);
    const int me = ct_comm_rank(world), peer = me == from ? to : from;
    const int64_t size = s->options->link_bytes;
    uint64_t word = 0;
    cti_selftest_fill_link(s->in, size, from, to);
    memset(s->out, 0, (size_t)size);
    double ignored;
    CT_TRY(stream_one_way(s, me == from, peer, 1, &ignored, err));
    if (me == to) {
        cti_selftest_check_link(s, s->out, size, from, to);
    }
    const int64_t began = cti_now_ns();
    for (int k = 0; k < N_ROUND_TRIPS; k++) {
        for (int back = 0; back < 2; back++) {
            const bool sends = (me == from) == (back == 0);
            CT_TRY(sends ? ct_comm_send(world, &word, 1, CT_DTYPE_I64, peer, NULL, err) : ct_comm_recv(world, &word, 1, CT_DTYPE_I64, peer, NULL, err));
        }
    }
    link->latency_s = me == from ? cti_seconds_since(began) / (2.0 * N_ROUND_TRIPS) : 0.0;
    const int n_messages = (int)cti_max_i64(2, cti_min_i64(64, (16 << 20) / size));
    return stream_one_way(s, me == from, peer, n_messages, &link->bytes_per_s, err);
}

static ct_status measure_links(cti_selftest_state *s, ct_err *err)
{
    cti_selftest_report *r = s->report;
    const int n = r->world_size, me = ct_comm_rank(world_of(s));
    double *figures = CT_NEW_ARRAY(s->alloc, double, cti_max_i64(1, 2 * (int64_t)r->n_links), err);
    if (figures == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st = CT_OK;
    int k = 0;
    for (int distance = 1; distance < n; distance++) {
        for (int a = 0; a + distance < n && is_measured(n, distance); a++) {
            for (int way = 0; way < 2; way++, k++) {
                cti_selftest_link *link = &r->links[k];
                link->from = way == 0 ? a : a + distance;
                link->to = way == 0 ? a + distance : a;
                CT_TRY_GOTO(st, ct_comm_barrier(world_of(s), NULL, err), out); /* each alone */
                if (me == link->from || me == link->to) {
                    CT_TRY_GOTO(st, try_direction(s, link->from, link->to, link, err), out);
                }
                figures[2 * k] = link->latency_s;
                figures[2 * k + 1] = link->bytes_per_s;
            }
        }
    }
    CT_TRY_GOTO(st, share_largest(s, figures, 2 * (int64_t)k, err), out);
    for (int i = 0; i < k; i++) {
        r->links[i].latency_s = figures[2 * i];
        r->links[i].bytes_per_s = figures[2 * i + 1];
    }
out:
    ct_alloc_free(s->alloc, figures);
    return st;
}

/* ---- collectives --------------------------------------------------------------------------------------------------- */

/* Bytes that a member at least sends. */
static double wire_bytes(ct_comm_op op, int n, double size_bytes)
{
    const double share = (double)(n - 1) / (double)n;
    return op == CT_COMM_ALL_REDUCE ? 2.0 * share * size_bytes : op == CT_COMM_BROADCAST && n > 1 ? size_bytes : share * size_bytes;
}

static ct_status time_row(cti_selftest_state *s, cti_selftest_row *row, ct_err *err)
{
    const int n = ct_comm_size(s->groups[row->group].comm);
    const int64_t count = cti_selftest_count(row->op, n, row->size_bytes, CT_DTYPE_F32);
    const int n_calls = (int)cti_max_i64(3, cti_min_i64(20, (32 << 20) / cti_max_i64(1, row->size_bytes)));
    CT_TRY(ct_comm_barrier(world_of(s), NULL, err));
    const int64_t began = cti_now_ns();
    for (int k = 0; k < n_calls; k++) {
        CT_TRY(cti_selftest_call(s, row->group, row->op, count, CT_DTYPE_F32, k % n, err));
    }
    row->seconds = cti_seconds_since(began) / n_calls;
    return CT_OK;
}

static ct_status try_group(cti_selftest_state *s, int group, ct_err *err)
{
    static const ct_dtype dtypes[] = {CT_DTYPE_F32, CT_DTYPE_BF16, CT_DTYPE_F64, CT_DTYPE_I64};
    cti_selftest_report *r = s->report;
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        for (int large = 0; large < 2; large++) {
            const int64_t size = large ? LARGE_BYTES : SMALL_BYTES;
            CT_TRY(cti_selftest_check_bits(s, group, CT_COMM_ALL_REDUCE, size, dtypes[d], err));
            CT_TRY(cti_selftest_check_bits(s, group, CT_COMM_REDUCE_SCATTER, size, dtypes[d], err));
        }
    }
    cti_selftest_row *barrier = &r->rows[r->n_rows++];
    *barrier = (cti_selftest_row){.group = group, .op = CT_COMM_BARRIER};
    CT_TRY(time_row(s, barrier, err));
    for (int c = 0; c < N_COLLECTIVES; c++) {
        for (int i = 0; i < s->options->n_sizes; i++) {
            cti_selftest_row *row = &r->rows[r->n_rows++];
            *row = (cti_selftest_row){.group = group, .op = collectives[c], .size_bytes = s->options->sizes_bytes[i]};
            CT_TRY(cti_selftest_check(s, group, row->op, row->size_bytes, err));
            CT_TRY(time_row(s, row, err));
        }
    }
    return CT_OK;
}

static ct_status share_rows(cti_selftest_state *s, ct_err *err)
{
    cti_selftest_report *r = s->report;
    double *seconds = CT_NEW_ARRAY(s->alloc, double, r->n_rows, err);
    if (seconds == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int i = 0; i < r->n_rows; i++) {
        seconds[i] = r->rows[i].seconds;
    }
    const ct_status st = share_largest(s, seconds, r->n_rows, err);
    for (int i = 0; i < r->n_rows && st == CT_OK; i++) {
        cti_selftest_row *row = &r->rows[i];
        row->seconds = seconds[i];
        row->wire_bytes_per_s = seconds[i] > 0.0 ? wire_bytes(row->op, ct_comm_size(s->groups[row->group].comm), (double)row->size_bytes) / seconds[i] : 0.0;
    }
    ct_alloc_free(s->alloc, seconds);
    return st;
}

/* ---- the report ---------------------------------------------------------------------------------------------------- */

/* A rank's own failures are taken from itself: its link to the others may be what is wrong. */
static ct_status share_failures(cti_selftest_state *s, ct_err *err)
{
    const int n = s->report->world_size, me = ct_comm_rank(world_of(s));
    cti_selftest_failure *all = CT_NEW_ARRAY(s->alloc, cti_selftest_failure, (int64_t)n * CTI_SELFTEST_MAX_FAILURES, err);
    if (all == NULL) {
        return CT_ERR_MEMORY;
    }
    const ct_status st = ct_comm_all_gather(world_of(s), s->mine, all, sizeof s->mine, CT_DTYPE_U8, NULL, err);
    memcpy(all + (size_t)me * CTI_SELFTEST_MAX_FAILURES, s->mine, sizeof s->mine);
    int n_all = 0;
    for (int i = 0; i < n * CTI_SELFTEST_MAX_FAILURES && st == CT_OK; i++) {
        if (all[i].n_wrong > 0 && all[i].rank == i / CTI_SELFTEST_MAX_FAILURES && all[i].from >= -1 && all[i].from < n && all[i].op >= 0 &&
            all[i].op < CT_COMM_OP_COUNT && all[i].group >= 0 && all[i].group < s->n_groups && all[i].dtype >= 0 && all[i].dtype < CT_DTYPE_COUNT) {
            all[n_all++] = all[i];
        }
    }
    s->report->failures = all;
    s->report->n_failures = n_all;
    return st;
}

static double median(const cti_selftest_rank *ranks, int n, bool of_links)
{
    double at_median = 0.0;
    for (int r = 0; r < n; r++) { /* the value that as many lie above as below */
        const double v = of_links ? ranks[r].link_bytes_per_s : ranks[r].sum_bytes_per_s;
        int below = 0, equal = 0;
        for (int q = 0; q < n; q++) {
            const double w = of_links ? ranks[q].link_bytes_per_s : ranks[q].sum_bytes_per_s;
            below += w < v;
            equal += w == v;
        }
        at_median = below <= n / 2 && n / 2 < below + equal ? v : at_median;
    }
    return at_median;
}

static void find_slowest(cti_selftest_report *r)
{
    r->slowest_link_rank = r->n_links > 0 ? 0 : -1;
    for (int k = 0; k < r->world_size; k++) {
        cti_selftest_rank *rank = &r->ranks[k];
        int n = 0;
        for (int i = 0; i < r->n_links; i++) {
            if (r->links[i].from == k || r->links[i].to == k) {
                rank->link_bytes_per_s += r->links[i].bytes_per_s;
                rank->link_latency_s += r->links[i].latency_s;
                n++;
            }
        }
        rank->link_bytes_per_s /= n > 0 ? n : 1;
        rank->link_latency_s /= n > 0 ? n : 1;
        if (r->n_links > 0 && rank->link_bytes_per_s < r->ranks[r->slowest_link_rank].link_bytes_per_s) {
            r->slowest_link_rank = k;
        }
        r->slowest_sum_rank = rank->sum_bytes_per_s < r->ranks[r->slowest_sum_rank].sum_bytes_per_s ? k : r->slowest_sum_rank;
    }
    r->median_link_bytes_per_s = median(r->ranks, r->world_size, true);
    r->median_sum_bytes_per_s = median(r->ranks, r->world_size, false);
}

static ct_status make_report(cti_selftest_state *s, cti_selftest_report **out, ct_err *err)
{
    cti_selftest_report *r = CT_NEW(s->alloc, cti_selftest_report, err);
    if (r == NULL) {
        return CT_ERR_MEMORY;
    }
    *out = r;
    s->report = r;
    r->alloc = s->alloc;
    r->world_size = ct_comm_size(world_of(s));
    r->n_links = count_links(r->world_size);
    r->ranks = CT_NEW_ARRAY(s->alloc, cti_selftest_rank, r->world_size, err);
    r->links = CT_NEW_ARRAY(s->alloc, cti_selftest_link, cti_max_i64(1, r->n_links), err);
    r->rows = CT_NEW_ARRAY(s->alloc, cti_selftest_row, (int64_t)s->n_groups * (1 + N_COLLECTIVES * s->options->n_sizes), err);
    s->room_bytes = (size_t)cti_max_i64(cti_max_i64(LARGE_BYTES, s->options->link_bytes), 8 * (int64_t)r->world_size);
    for (int i = 0; i < s->options->n_sizes; i++) {
        s->room_bytes = (size_t)cti_max_i64((int64_t)s->room_bytes, s->options->sizes_bytes[i]);
    }
    s->in = ct_alloc_zeroed(s->alloc, s->room_bytes, 1, err);
    s->out = ct_alloc_zeroed(s->alloc, s->room_bytes, 1, err);
    return r->ranks == NULL || r->links == NULL || r->rows == NULL || s->in == NULL || s->out == NULL ? CT_ERR_MEMORY : CT_OK;
}

ct_status cti_selftest_run(const ct_alloc *alloc, const cti_selftest_group *groups, int n_groups, const cti_selftest_options *options,
                           cti_selftest_report **out_report, ct_err *err)
{
    cti_selftest_state s = {.alloc = alloc, .groups = groups, .n_groups = n_groups, .options = options};
    cti_selftest_report *report = NULL;
    ct_status st;
    CT_TRY_GOTO(st, make_report(&s, &report, err), out);
    CT_TRY_GOTO(st, share_hosts(&s, err), out);
    CT_TRY_GOTO(st, measure_sums(&s, err), out);
    CT_TRY_GOTO(st, measure_links(&s, err), out);
    for (int g = 0; g < n_groups; g++) {
        CT_TRY_GOTO(st, try_group(&s, g, err), out);
    }
    CT_TRY_GOTO(st, share_rows(&s, err), out);
    CT_TRY_GOTO(st, share_failures(&s, err), out);
    find_slowest(report);
out:
    ct_alloc_free(alloc, s.in);
    ct_alloc_free(alloc, s.out);
    if (st != CT_OK) {
        cti_selftest_destroy(&report);
        return st;
    }
    *out_report = report;
    return CT_OK;
}

void cti_selftest_destroy(cti_selftest_report **report)
{
    cti_selftest_report *r = *report;
    if (r != NULL) {
        ct_alloc_free(r->alloc, r->ranks);
        ct_alloc_free(r->alloc, r->links);
        ct_alloc_free(r->alloc, r->rows);
        ct_alloc_free(r->alloc, r->failures);
        ct_alloc_free(r->alloc, r);
        *report = NULL;
    }
}

void cti_selftest_describe(const cti_selftest_report *r, const cti_selftest_group *groups, const cti_selftest_failure *f, char *text, size_t size)
{
    char bytes[32], from[128] = "";
    cti_format_bytes(f->size_bytes, bytes);
    if (f->op == CT_COMM_EXCHANGE) {
        (void)snprintf(text, size, "link from rank %d (%s) to rank %d (%s): %" PRId64 " of %" PRId64 " bytes are wrong, the first is number %" PRId64,
                       f->from, r->ranks[f->from].host, f->rank, r->ranks[f->rank].host, f->n_wrong, f->n_elements, f->first);
        return;
    }
    if (f->from >= 0) {
        (void)snprintf(from, sizeof from, " from rank %d (%s)", f->from, r->ranks[f->from].host);
    }
    (void)snprintf(text, size, "rank %d (%s): %s of %s%s %s in group '%s'%s: %" PRId64 " of %" PRId64 " elements are wrong, the first is number %" PRId64,
                   f->rank, r->ranks[f->rank].host, ct_comm_op_name((ct_comm_op)f->op), bytes, f->is_bits ? ", bits of the ordered sum," : "",
                   ct_dtype_name((ct_dtype)f->dtype), groups[f->group].name, from, f->n_wrong, f->n_elements, f->first);
}
