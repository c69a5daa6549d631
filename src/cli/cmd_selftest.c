/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan selftest`: the ranks of any launcher, their groups, the test of comm/selftest.h, and what rank 0 prints of it. */
#include "cli/cmd_selftest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "comm/engines.h"
#include "comm/selftest.h"
#include "mesh/mesh.h"

/* clang-format off */
#define OPTIONS(X) \
    X(engine, CHOICE, "auto", "", "", "auto|gloo|mpi", "", 0, NULL, "what carries messages, as --comm.engine of train") \
    X(data_parallel_replicate_degree, I64, "1", "1", "65536", "", "ranks", 0, NULL, "a mesh: replicas") \
    X(data_parallel_shard_degree, I64, "-1", "-1", "65536", "", "ranks", 0, NULL, "a mesh: shards; -1: the ranks that the others leave") \
    X(tensor_parallel_degree, I64, "1", "1", "65536", "", "ranks", 0, NULL, "a mesh: tensor parallelism") \
    X(sizes, STR_LIST, "1024,65536,1048576,16777216", "", "", "", "bytes", 0, NULL, "of collectives, separated by commas") \
    X(link_size, I64, "1048576", "8", "1073741824", "", "bytes", 0, NULL, "of the messages that measure a link") \
    X(timeout_seconds, I64, "60", "1", "86400", "", "seconds", 0, NULL, "a connection or collective may take this long") \
    X(json, BOOL, "false", "", "", "", "", 0, NULL, "JSON, on one line, rather than tables") \
    X(output, OPT_STR, "None", "1", "", "", "", 0, NULL, "write it to this file rather than to standard output")
/* clang-format on */
CTI_OPTIONS(OPTIONS);
enum { MAX_GROUPS = 1 + CT_AXIS_COUNT };

static const cti_command_help help = {
    .usage = "ctitan run --nproc_per_node N selftest [options]",
    .summary = "Tests the connections of the ranks that `run`, mpirun or srun started: whether every link and collective carries the right bytes and sums,\n"
               "bit for bit, and what latency and bandwidth they have; names the slowest rank. With a mesh each of its axes is tested, too.\n"
               "Exit code 1 where a byte or a sum is wrong.",
};

typedef struct session {
    const ct_alloc *alloc;
    const options *o;
    ct_bootstrap *boot;
    ct_mesh mesh;
    cti_selftest_group groups[MAX_GROUPS];
    int n_groups;
} session;

static ct_status read_sizes(const options *o, cti_selftest_options *out, ct_err *err)
{
    enum { MOST = 1 << 30 };
    *out = (cti_selftest_options){.link_bytes = o->link_size};
    if (o->sizes.n < 1 || o->sizes.n > CTI_SELFTEST_MAX_SIZES) {
        return CT_FAIL(err, CT_ERR_USAGE, "--sizes: 1 to %d numbers are wanted, found %" PRId64, CTI_SELFTEST_MAX_SIZES, o->sizes.n);
    }
    for (int64_t i = 0; i < o->sizes.n; i++) {
        int64_t *size = &out->sizes_bytes[out->n_sizes++];
        if (!cti_parse_i64(o->sizes.items[i], size) || *size < 1 || *size > MOST) {
            return CT_FAIL(err, CT_ERR_USAGE, "--sizes: numbers of bytes from 1 to %d are wanted, found '%.60s'", MOST, o->sizes.items[i]);
        }
    }
    return CT_OK;
}

/* ---- ranks and groups ---------------------------------------------------------------------------------------------- */

static ct_status make_mesh(session *s, ct_err *err)
{
    const ct_place *place = ct_bootstrap_place(s->boot);
    const options *o = s->o;
    const int64_t others = o->data_parallel_replicate_degree * o->tensor_parallel_degree;
    const int64_t shard = o->data_parallel_shard_degree == -1 ? cti_max_i64(1, place->world_size / others) : o->data_parallel_shard_degree;
    const int64_t degree[CT_AXIS_COUNT] = {[CT_AXIS_PP] = 1, [CT_AXIS_DP_REPLICATE] = o->data_parallel_replicate_degree,
                                           [CT_AXIS_DP_SHARD] = shard, [CT_AXIS_CP] = 1, [CT_AXIS_TP] = o->tensor_parallel_degree, [CT_AXIS_EP] = 1};
    if (others * shard != place->world_size) {
        return CT_FAIL(err, CT_ERR_USAGE, "the degrees %" PRId64 " (replicas) x %" PRId64 " (shards) x %" PRId64 " (tensor) are not the %d ranks",
                       o->data_parallel_replicate_degree, shard, o->tensor_parallel_degree, place->world_size);
    }
    return ct_mesh_init(&s->mesh, degree, place->world_size, place->rank, err);
}

static ct_status open_axis(session *s, ct_axis axis, ct_err *err)
{
    const int64_t n = s->mesh.degree[axis];
    int64_t *ranks = CT_NEW_ARRAY(s->alloc, int64_t, n, err);
    int *ints = CT_NEW_ARRAY(s->alloc, int, n, err);
    ct_status st = ranks == NULL || ints == NULL ? CT_ERR_MEMORY : CT_OK;
    if (st == CT_OK) {
        ct_mesh_group(&s->mesh, axis, ranks);
        for (int64_t i = 0; i < n; i++) {
            ints[i] = (int)ranks[i];
        }
        cti_selftest_group *g = &s->groups[s->n_groups];
        g->name = ct_axis_name(axis);
        st = ct_comm_split(s->groups[0].comm, g->name, ints, (int)n, &g->comm, err);
        s->n_groups += st == CT_OK;
    }
    ct_alloc_free(s->alloc, ranks);
    ct_alloc_free(s->alloc, ints);
    return st;
}

static ct_status open_groups(session *s, ct_err *err)
{
    const ct_place *place = ct_bootstrap_place(s->boot);
    const struct ct_comm_engine *engine;
    CT_TRY(make_mesh(s, err));
    CT_TRY(cti_comm_engine_pick(s->o->engine, place->world_size, &engine, err));
    const ct_comm_options comm_options = {.timeout_ms = s->o->timeout_seconds * 1000};
    s->groups[0].name = "world";
    CT_TRY(ct_comm_world_create(s->alloc, engine, s->boot, &comm_options, &s->groups[0].comm, err));
    s->n_groups = 1;
    for (int a = 0; a < CT_AXIS_COUNT; a++) {
        if (s->mesh.degree[a] > 1 && s->mesh.degree[a] < s->mesh.world_size) {
            CT_TRY(open_axis(s, (ct_axis)a, err));
        }
    }
    return CT_OK;
}

static ct_status check_same_options(session *s, ct_err *err)
{
    ct_arena *arena = NULL;
    cti_str text = {.alloc = s->alloc};
    ct_status st = ct_arena_create(s->alloc, 0, &arena, err);
    for (int i = 0; i < N_FIELDS && st == CT_OK; i++) {
        const char *value = ct_field_text(&fields[i], s->o, arena, err);
        st = value == NULL ? CT_ERR_MEMORY : CT_OK;
        cti_str_printf(&text, "%s=%s\n", fields[i].name, value != NULL ? value : "");
    }
    if (st == CT_OK) {
        st = ct_comm_check_same(s->groups[0].comm, cti_str_text(&text), text.len, "the options of selftest", err);
    }
    cti_str_deinit(&text);
    ct_arena_destroy(&arena);
    return st;
}

/* ---- what is printed ----------------------------------------------------------------------------------------------- */

static const char *rate_text(double bytes_per_s, char buf[32])
{
    const bool is_fast = bytes_per_s >= 1e9;
    (void)snprintf(buf, 32, "%.2f %s", bytes_per_s / (is_fast ? 1e9 : 1e6), is_fast ? "GB/s" : "MB/s"); /* fits */
    return buf;
}

static void print_ranks(const session *s, const cti_selftest_report *r, cti_str *out)
{
    char link[32], sum[32], median[32];
    cti_str_printf(out, "%d rank%s over %s\n\n%6s  %-24s %14s %14s %14s\n", r->world_size, r->world_size == 1 ? "" : "s", ct_comm_engine_name(s->groups[0].comm), "rank", "host",
                   "links, mean", "latency", "sums in memory");
    for (int k = 0; k < r->world_size; k++) {
        const cti_selftest_rank *rank = &r->ranks[k];
        cti_str_printf(out, "%6d  %-24s %14s %11.1f us %14s\n", k, rank->host, rate_text(rank->link_bytes_per_s, link), rank->link_latency_s * 1e6,
                       rate_text(rank->sum_bytes_per_s, sum));
    }
    if (r->slowest_link_rank >= 0) {
        const cti_selftest_rank *slow = &r->ranks[r->slowest_link_rank];
        cti_str_printf(out, "slowest links: rank %d (%s), %s, the median is %s\n", r->slowest_link_rank, slow->host,
                       rate_text(slow->link_bytes_per_s, link), rate_text(r->median_link_bytes_per_s, median));
    }
    cti_str_printf(out, "slowest rank in itself: rank %d (%s), %s, the median is %s\n", r->slowest_sum_rank, r->ranks[r->slowest_sum_rank].host,
                   rate_text(r->ranks[r->slowest_sum_rank].sum_bytes_per_s, sum), rate_text(r->median_sum_bytes_per_s, median));
}

/* All links of a few ranks; of more those that are slower than half the median rank's mean. */
static void print_links(const cti_selftest_report *r, cti_str *out)
{
    enum { ALL_UP_TO = 8 };
    char rate[32];
    if (r->n_links == 0) {
        return;
    }
    cti_str_printf(out, "\n%6s %6s %14s %14s%s\n", "from", "to", "bandwidth", "latency",
                   r->world_size > ALL_UP_TO ? "   (links below half the median)" : "");
    for (int i = 0; i < r->n_links; i++) {
        const cti_selftest_link *l = &r->links[i];
        if (r->world_size <= ALL_UP_TO || l->bytes_per_s < 0.5 * r->median_link_bytes_per_s) {
            cti_str_printf(out, "%6d %6d %14s %11.1f us\n", l->from, l->to, rate_text(l->bytes_per_s, rate), l->latency_s * 1e6);
        }
    }
}

static void print_rows(const session *s, const cti_selftest_report *r, cti_str *out)
{
    char bytes[32], rate[32];
    for (int i = 0; i < r->n_rows; i++) {
        const cti_selftest_row *row = &r->rows[i];
        if (i == 0 || row->group != r->rows[i - 1].group) {
            cti_str_printf(out, "\ngroup '%s', %d ranks\n  %-16s %12s %12s %14s\n", s->groups[row->group].name,
                           ct_comm_size(s->groups[row->group].comm), "collective", "bytes", "time", "on the wire");
        }
        cti_str_printf(out, "  %-16s %12s %9.1f us %14s\n", ct_comm_op_name(row->op), row->size_bytes > 0 ? cti_format_bytes(row->size_bytes, bytes) : "",
                       row->seconds * 1e6, row->wire_bytes_per_s > 0.0 ? rate_text(row->wire_bytes_per_s, rate) : "");
    }
}

static void print_text(const session *s, const cti_selftest_report *r, cti_str *out)
{
    print_ranks(s, r, out);
    print_links(r, out);
    print_rows(s, r, out);
    cti_str_printf(out, "\nevery link, collective and ordered sum: %s\n", r->n_failures == 0 ? "right" : "WRONG, see the failures");
}

static ct_status print_json(const session *s, const cti_selftest_report *r, cti_str *out, ct_err *err)
{
    json_t *ranks = json_array(), *links = json_array(), *rows = json_array(), *failures = json_array();
    for (int k = 0; k < r->world_size; k++) {
        const cti_selftest_rank *rank = &r->ranks[k];
        json_array_append_new(ranks, json_pack("{s:i, s:s, s:f, s:f, s:f}", "rank", k, "host", rank->host, "link_bytes_per_second", rank->link_bytes_per_s,
                                               "link_latency_seconds", rank->link_latency_s, "sum_bytes_per_second", rank->sum_bytes_per_s));
    }
    for (int i = 0; i < r->n_links; i++) {
        const cti_selftest_link *l = &r->links[i];
        json_array_append_new(links, json_pack("{s:i, s:i, s:f, s:f}", "from", l->from, "to", l->to, "bytes_per_second", l->bytes_per_s,
                                               "latency_seconds", l->latency_s));
    }
    for (int i = 0; i < r->n_rows; i++) {
        const cti_selftest_row *row = &r->rows[i];
        json_array_append_new(rows, json_pack("{s:s, s:i, s:s, s:I, s:f, s:f}", "group", s->groups[row->group].name, "ranks",
                                              ct_comm_size(s->groups[row->group].comm), "op", ct_comm_op_name(row->op), "bytes",
                                              (json_int_t)row->size_bytes, "seconds", row->seconds, "wire_bytes_per_second", row->wire_bytes_per_s));
    }
    for (int i = 0; i < r->n_failures; i++) {
        const cti_selftest_failure *f = &r->failures[i];
        char text[512];
        cti_selftest_describe(r, s->groups, f, text, sizeof text);
        json_array_append_new(failures, json_pack("{s:i, s:i, s:s, s:s, s:s, s:I, s:I, s:s}", "rank", (int)f->rank, "from", (int)f->from, "op",
                                                  ct_comm_op_name((ct_comm_op)f->op), "group", s->groups[f->group].name, "dtype",
                                                  ct_dtype_name((ct_dtype)f->dtype), "bytes", (json_int_t)f->size_bytes, "n_wrong",
                                                  (json_int_t)f->n_wrong, "text", text));
    }
    json_t *json = json_pack("{s:s, s:i, s:b, s:i, s:i, s:o, s:o, s:o, s:o}", "engine", ct_comm_engine_name(s->groups[0].comm), "world_size",
                             r->world_size, "ok", r->n_failures == 0, "slowest_link_rank", r->slowest_link_rank, "slowest_rank",
                             r->slowest_sum_rank, "ranks", ranks, "links", links, "collectives", rows, "failures", failures);
    if (json == NULL) {
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory for the result as JSON");
    }
    char *text = NULL;
    const ct_status st = cti_json_dump(s->alloc, json, 0, &text, err);
    json_decref(json);
    if (st == CT_OK) {
        cti_str_printf(out, "%s\n", text);
    }
    ct_alloc_free(s->alloc, text);
    return st;
}

static ct_status print(const session *s, const cti_selftest_report *r, ct_err *err)
{
    cti_str text = {.alloc = s->alloc};
    ct_status st = CT_OK;
    if (s->o->json) {
        st = print_json(s, r, &text, err);
    } else {
        print_text(s, r, &text);
    }
    if (st == CT_OK) {
        st = cti_str_check(&text, err);
    }
    if (st == CT_OK && s->o->output != NULL) {
        st = cti_file_write_atomic(s->o->output, cti_str_text(&text), text.len, err);
    } else if (st == CT_OK && (fputs(cti_str_text(&text), stdout) < 0 || fflush(stdout) != 0)) {
        st = CT_FAIL(err, CT_ERR_IO, "standard output cannot be written");
    }
    cti_str_deinit(&text);
    return st;
}

/* Rank 0 names all failures, the others their own, which may not have reached it. */
static ct_status judge(const session *s, const cti_selftest_report *r, ct_err *err)
{
    const int me = ct_comm_rank(s->groups[0].comm);
    for (int i = 0; i < r->n_failures; i++) {
        char text[512];
        if (me == 0 || r->failures[i].rank == me) {
            cti_selftest_describe(r, s->groups, &r->failures[i], text, sizeof text);
            (void)fprintf(stderr, CTI_PROGRAM " selftest: %s\n", text);
        }
    }
    return r->n_failures == 0 ? CT_OK : CT_FAIL(err, CT_ERR_NUMERIC, "%d checks failed", r->n_failures);
}

static ct_status run(session *s, ct_err *err)
{
    cti_selftest_options how;
    cti_selftest_report *report = NULL;
    CT_TRY(read_sizes(s->o, &how, err));
    CT_TRY(open_groups(s, err));
    CT_TRY(check_same_options(s, err));
    CT_TRY(cti_selftest_run(s->alloc, s->groups, s->n_groups, &how, &report, err));
    ct_status st = ct_comm_rank(s->groups[0].comm) == 0 ? print(s, report, err) : CT_OK;
    if (st == CT_OK) {
        st = judge(s, report, err);
    }
    cti_selftest_destroy(&report);
    ct_err ignored = {0};
    return st != CT_OK ? st : ct_comm_barrier(s->groups[0].comm, NULL, &ignored); /* nobody leaves while another one is at it */
}

int cti_cmd_selftest(int argc, char **argv)
{
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    ct_arena *arena = NULL;
    options o;
    session s = {.alloc = alloc, .o = &o};
    ct_place place;
    bool done = false;
    ct_status st;
    CT_TRY_GOTO(st, ct_arena_create(alloc, 0, &arena, &err), out);
    CT_TRY_GOTO(st, cti_options_parse(argc, argv, fields, N_FIELDS, &o, &help, arena, &done, &err), out);
    if (done) {
        goto out;
    }
    CT_TRY_GOTO(st, ct_place_from_env(NULL, NULL, &place, &err), out);
    CT_TRY_GOTO(st, ct_bootstrap_create(alloc, &place, o.timeout_seconds * 1000, &s.boot, &err), out);
    st = run(&s, &err);
out:;
    const int code = st == CT_OK ? 0 : cti_report("selftest", st, &err);
    for (int g = MAX_GROUPS - 1; g >= 0; g--) {
        ct_comm_destroy(&s.groups[g].comm);
    }
    ct_bootstrap_destroy(&s.boot);
    ct_arena_destroy(&arena);
    return code;
}
