/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan report`: what runs left behind, as a page and as text. */
#include "cli/cmd_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "report/report.h"

static const char usage[] =
    "usage: " CTI_PROGRAM " report DIR [DIR...] [--out FILE] [--text] [--tolerance X]\n\n"
    "Draws what runs left in their dump folders: loss, learning rate, gradient norm, throughput and memory against step and tokens, the\n"
    "settings, the machine, the checkpoints; several runs in one picture, with the steps at which they part. The page is one file that\n"
    "needs nothing else. A summary goes to standard output.\n\n"
    "  DIR            the --dump-folder of a run, or a file in the form of its metrics.csv\n"
    "  --out FILE     where the page goes (default: report.html in the first DIR)\n"
    "  --text         the summary only\n"
    "  --tolerance X  relative difference from which on runs are said to part (default: 0.0001)\n";

typedef struct report_args {
    const char *folders[CTI_REPORT_MAX_RUNS];
    size_t n_folders;
    const char *out;
    double tolerance;
    bool is_text_only, wants_help;
} report_args;

/* As cti_option_value; an empty value is refused. */
static ct_status value_of(const char *name, int argc, char **argv, int *i, const char **out, ct_err *err)
{
    *out = cti_option_value(name, argc, argv, i);
    return *out == NULL || (*out)[0] != '\0' ? CT_OK : CT_FAIL(err, CT_ERR_USAGE, "%s: a value is wanted", name);
}

static ct_status parse(int argc, char **argv, report_args *a, ct_err *err)
{
    *a = (report_args){.tolerance = 1e-4};
    for (int i = 1; i < argc; i++) {
        const char *out, *tolerance = NULL;
        CT_TRY(value_of("--out", argc, argv, &i, &out, err));
        if (out == NULL) {
            CT_TRY(value_of("--tolerance", argc, argv, &i, &tolerance, err));
        }
        if (out != NULL) {
            a->out = out;
        } else if (tolerance != NULL) {
            if (!cti_parse_f64(tolerance, &a->tolerance) || !(a->tolerance >= 0.0)) {
                return CT_FAIL(err, CT_ERR_USAGE, "--tolerance: '%s' is given, a number from 0 on is wanted", tolerance);
            }
        } else if (cti_str_eq(argv[i], "--text")) {
            a->is_text_only = true;
        } else if (cti_str_eq(argv[i], "--help") || cti_str_eq(argv[i], "-h")) {
            a->wants_help = true;
        } else if (argv[i][0] == '-' && argv[i][1] != '\0') {
            return CT_FAIL(err, CT_ERR_USAGE, "%s: there is no such option; --help lists them", argv[i]);
        } else if (a->n_folders == CTI_REPORT_MAX_RUNS) {
            return CT_FAIL(err, CT_ERR_USAGE, "at most %d runs fit into one report", (int)CTI_REPORT_MAX_RUNS);
        } else {
            a->folders[a->n_folders++] = argv[i];
        }
    }
    return a->n_folders > 0 || a->wants_help ? CT_OK : CT_FAIL(err, CT_ERR_USAGE, "the folder of a run is wanted; --help says more");
}

static ct_status write_page(const ct_alloc *alloc, const cti_run_record *runs, const report_args *a, const cti_report_options *options,
                            ct_err *err)
{
    cti_str html = {.alloc = alloc};
    ct_status st;
    char *path = a->out != NULL                    ? ct_alloc_strdup(alloc, a->out, err)
                 : cti_path_is_dir(a->folders[0]) ? cti_path_join(alloc, a->folders[0], "report.html", err)
                                                   : ct_alloc_strdup(alloc, "report.html", err);
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY_GOTO(st, cti_report_page(runs, a->n_folders, options, &html, err), out);
    CT_TRY_GOTO(st, cti_file_write_atomic(path, html.data, html.len, err), out);
    printf("page: %s\n", path);
out:
    cti_str_deinit(&html);
    ct_alloc_free(alloc, path);
    return st;
}

static ct_status report(const ct_alloc *alloc, const report_args *a, ct_err *err)
{
    cti_run_record runs[CTI_REPORT_MAX_RUNS] = {0};
    cti_str text = {.alloc = alloc};
    const cti_report_options options = {.tolerance = a->tolerance, .version = cti_version_text()};
    ct_status st = CT_OK;
    for (size_t i = 0; i < a->n_folders && st == CT_OK; i++) {
        st = cti_run_read(alloc, a->folders[i], &runs[i], err);
    }
    if (st == CT_OK) {
        st = cti_report_text(runs, a->n_folders, &options, &text, err);
    }
    if (st == CT_OK) {
        printf("%s", cti_str_text(&text));
        st = a->is_text_only ? CT_OK : write_page(alloc, runs, a, &options, err);
    }
    for (size_t i = 0; i < a->n_folders; i++) {
        cti_run_record_deinit(&runs[i]);
    }
    cti_str_deinit(&text);
    return st;
}

int cti_cmd_report(int argc, char **argv)
{
    ct_err err = {0};
    report_args a;
    ct_status st = parse(argc, argv, &a, &err);
    if (st == CT_OK && a.wants_help) {
        printf("%s", usage);
        return 0;
    }
    if (st == CT_OK) {
        st = report(ct_alloc_system(), &a, &err);
    }
    if (st == CT_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        st = CT_FAIL(&err, CT_ERR_IO, "standard output cannot be written");
    }
    return st == CT_OK ? 0 : cti_report("report", st, &err);
}
