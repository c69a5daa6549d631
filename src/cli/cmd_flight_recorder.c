/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan flight-recorder`: the files that ranks left when a run broke, as one table, and which rank lacks which call. */
#include "cli/cmd_flight_recorder.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "comm/flight.h"

static const char usage[] =
    "usage: " CTI_PROGRAM " flight-recorder FOLDER|FILE...\n\n"
    "Reads what the ranks of a run wrote when it broke, of the folder comm_traces in the run's dump folder, or of the files that are named,\n"
    "from all hosts: one table of the ranks, and below it which rank lacks which collective that others wait in. The calls themselves are\n"
    "lines of JSON in the files.\n";

typedef struct flights {
    cti_flight_rank *ranks; /* owns */
    char (*causes)[256];    /* owns */
    int n, cap;
} flights;

static ct_status add_file(const ct_alloc *alloc, const char *path, flights *f, ct_err *err)
{
    if (f->n == f->cap) {
        const int cap = f->cap * 2 + 16;
        void *ranks = ct_alloc_resize(alloc, f->ranks, (size_t)cap, sizeof *f->ranks, err);
        if (ranks == NULL) {
            return CT_ERR_MEMORY;
        }
        f->ranks = ranks;
        void *causes = ct_alloc_resize(alloc, f->causes, (size_t)cap, sizeof *f->causes, err);
        if (causes == NULL) {
            return CT_ERR_MEMORY;
        }
        f->causes = causes;
        f->cap = cap;
    }
    CT_TRY(cti_flight_read_file(alloc, path, &f->ranks[f->n], f->causes[f->n], sizeof f->causes[f->n], err));
    f->n++;
    return CT_OK;
}

/* Every file of a folder that says it is one of ours; others may lie beside them. */
static ct_status add_folder(const ct_alloc *alloc, const char *folder, flights *f, ct_err *err)
{
    cti_names names;
    CT_TRY(cti_list_dir(alloc, folder, &names, err));
    ct_status st = CT_OK;
    for (size_t i = 0; i < names.n && st == CT_OK; i++) {
        char *path = cti_path_join(alloc, folder, names.names[i], err);
        st = path == NULL ? CT_ERR_MEMORY : cti_path_is_file(path) ? add_file(alloc, path, f, err) : CT_OK;
        ct_alloc_free(alloc, path);
    }
    cti_names_free(alloc, &names);
    return st;
}

static int by_time(const void *a, const void *b)
{
    const cti_flight_rank *x = a, *y = b;
    return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : 0;
}

/* Files of an earlier run or start may lie beside those of the last one: they are not laid side by side. */
static void keep_last_run(flights *f)
{
    int newest = 0, n = 0;
    for (int i = 1; i < f->n; i++) {
        newest = f->ranks[i].now_ns > f->ranks[newest].now_ns ? i : newest;
    }
    const cti_recorder_head last = f->ranks[newest].head;
    for (int i = 0; i < f->n; i++) {
        const cti_recorder_head *h = &f->ranks[i].head;
        if (strcmp(h->run_id, last.run_id) != 0 || h->restart != last.restart || h->world_size != last.world_size) {
            printf("rank %d: its file is of another run or start ('%s', start %d), left out\n", h->rank, h->run_id, (int)h->restart);
            continue;
        }
        f->ranks[n] = f->ranks[i];
        memmove(f->causes[n++], f->causes[i], sizeof f->causes[i]);
    }
    f->n = n;
}

static void print_all(const ct_alloc *alloc, flights *f)
{
    keep_last_run(f);
    const int world_size = f->ranks[0].head.world_size;
    printf("run '%s', start %d, %d of %d ranks left a file\n", f->ranks[0].head.run_id, (int)f->ranks[0].head.restart, f->n, world_size);
    for (int i = 0; i < f->n; i++) { /* the first to break knows the cause */
        bool is_new = f->causes[i][0] != '\0';
        for (int k = 0; k < i; k++) {
            is_new = is_new && strcmp(f->causes[k], f->causes[i]) != 0;
        }
        if (is_new) {
            printf("rank %d: %s\n", f->ranks[i].rank, f->causes[i]);
        }
    }
    qsort(f->ranks, (size_t)f->n, sizeof *f->ranks, by_time);
    cti_str text = {.alloc = alloc};
    cti_flight_table(f->ranks, f->n, &text);
    cti_flight_verdict(f->ranks, f->n, &text);
    printf("%s", cti_str_text(&text));
    cti_str_deinit(&text);
    for (int r = 0, i = 0; r < world_size && f->n < world_size; r++) {
        while (i < f->n && f->ranks[i].rank < r) {
            i++;
        }
        if (i == f->n || f->ranks[i].rank != r) {
            printf("  rank %d left no file\n", r);
        }
    }
}

int cti_cmd_flight_recorder(int argc, char **argv)
{
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    flights f = {0};
    ct_status st = CT_OK;
    for (int i = 1; i < argc; i++) {
        if (cti_str_eq(argv[i], "--help") || cti_str_eq(argv[i], "-h")) {
            printf("%s", usage);
            return 0;
        }
    }
    for (int i = 1; i < argc && st == CT_OK; i++) {
        if (argv[i][0] == '-') {
            st = CT_FAIL(&err, CT_ERR_USAGE, "%s: there is no such option; --help says more", argv[i]);
        } else {
            st = cti_path_is_dir(argv[i]) ? add_folder(alloc, argv[i], &f, &err) : add_file(alloc, argv[i], &f, &err);
        }
    }
    if (st == CT_OK && argc < 2) {
        st = CT_FAIL(&err, CT_ERR_USAGE, "the folder comm_traces of a run is wanted; --help says more");
    } else if (st == CT_OK && f.n == 0) {
        st = CT_FAIL(&err, CT_ERR_NOT_FOUND, "'%s' holds no files of a flight recorder: ranks write them when a collective fails", argv[1]);
    }
    if (st == CT_OK) {
        print_all(alloc, &f);
    }
    ct_alloc_free(alloc, f.ranks);
    ct_alloc_free(alloc, f.causes);
    return st == CT_OK ? 0 : cti_report("flight-recorder", st, &err);
}
