/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan download-assets`: files of a model repository into a folder, and what is in that. The flags of TorchTitan's
 * download_hf_assets.py, and some more. Progress goes to stderr, the check and the folder's path to stdout. */
#include "cli/cmd_download_assets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "hub/hub.h"

/* clang-format off */
#define OPTIONS(X) \
    X(repo_id, STR, "", "", "", "", "", 0, NULL, "the repository, owner/name") \
    X(source, CHOICE, "huggingface", "", "", "huggingface|modelscope", "", 0, NULL, "the service: huggingface or modelscope") \
    X(assets, STR_LISTS, "None", "", "", "", "", 0, NULL, "kinds of files: tokenizer, config, safetensors, index") \
    X(additional_patterns, TOKENS, "", "", "", "", "", 0, NULL, "also files whose base name matches, as '*.txt'") \
    X(allow_patterns, TOKENS, "", "", "", "", "", 0, NULL, "also files whose whole path matches; * crosses slashes") \
    X(all, BOOL, "false", "", "", "", "", 0, NULL, "every file") \
    X(local_dir, STR, "assets/hf/", "", "", "", "", 0, NULL, "where the folder with the model's name is made") \
    X(revision, OPT_STR, "None", "1", "", "", "", 0, NULL, "branch, tag or commit; None: main, on ModelScope master") \
    X(hf_token, OPT_STR, "None", "1", "", "", "", 0, NULL, "token of Hugging Face; better in HF_TOKEN, where nobody else sees it") \
    X(allow_http_token, BOOL, "false", "", "", "", "", 0, NULL, "let a token go to another host unencrypted") \
    X(retries, I64, "5", "0", "1000", "", "", 0, NULL, "further tries after a cut or a busy server") \
    X(retry_wait, F64, "1", "0", "60", "", "seconds", 0, NULL, "seconds before the first of them; doubles each time") \
    X(timeout, F64, "60", "1", "86400", "", "seconds", 0, NULL, "seconds without a byte that are taken for a cut")
/* clang-format on */
CTI_OPTIONS(OPTIONS);

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* --- what is shown --- */

typedef struct view {
    bool is_terminal; /* stderr: one line that is written over */
    bool has_line;    /* it stands there */
    int64_t began_ns, began_bytes, drawn_ns;
} view;

static void clear_line(view *v)
{
    if (v->has_line) {
        fputs("\r\033[K", stderr);
        v->has_line = false;
    }
}

/* [#########...........]  45%  1.20 GiB of 2.30 GiB  35.10 MiB/s  tokenizer.json */
static void draw_bar(view *v, const ct_hub_event *e)
{
    enum { WIDTH = 24 };
    char bar[WIDTH + 1], done[32], all[32], rate[32];
    const int64_t now = cti_now_ns();
    if (!v->is_terminal || (v->has_line && now - v->drawn_ns < 100000000)) {
        return;
    }
    const double share = e->all_bytes > 0 ? (double)e->all_done_bytes / (double)e->all_bytes : 1.0;
    for (int i = 0; i < WIDTH; i++) {
        bar[i] = i < (int)(share * WIDTH) ? '#' : '.';
    }
    bar[WIDTH] = '\0';
    const double seconds = (double)(now - v->began_ns) * 1e-9;
    const double per_second = seconds > 0.0 ? (double)(e->all_done_bytes - v->began_bytes) / seconds : 0.0;
    fprintf(stderr, "\r[%s] %3d%%  %s of %s  %s/s  %.40s\033[K", bar, (int)(share * 100.0), cti_format_bytes(e->all_done_bytes, done),
            cti_format_bytes(e->all_bytes, all), cti_format_bytes((int64_t)per_second, rate), e->path);
    v->has_line = true;
    v->drawn_ns = now;
}

static void show(void *ctx, const ct_hub_event *e)
{
    view *v = ctx;
    char bytes[32], at[32];
    switch (e->kind) {
    case CT_HUB_LISTED:
        fprintf(stderr, "%" PRId64 " file%s, %s\n", e->n_files, e->n_files == 1 ? "" : "s", cti_format_bytes(e->all_bytes, bytes));
        break;
    case CT_HUB_KEPT:
        clear_line(v);
        fprintf(stderr, "  %s  %s  is there (%s)\n", e->path, cti_format_bytes(e->file_bytes, bytes), e->text);
        break;
    case CT_HUB_BEGIN:
        v->began_ns = cti_now_ns();
        v->began_bytes = e->all_done_bytes;
        if (e->done_bytes > 0) {
            clear_line(v);
            fprintf(stderr, "  %s  goes on at %s of %s\n", e->path, cti_format_bytes(e->done_bytes, at), cti_format_bytes(e->file_bytes, bytes));
        }
        draw_bar(v, e);
        break;
    case CT_HUB_PROGRESS:
        draw_bar(v, e);
        break;
    case CT_HUB_DONE:
        clear_line(v);
        fprintf(stderr, "  %s  %s  fetched (%s)\n", e->path, cti_format_bytes(e->file_bytes, bytes), e->text);
        break;
    case CT_HUB_NOTE:
        clear_line(v);
        fprintf(stderr, CTI_PROGRAM " download-assets: %s%s%s\n", e->path, e->path[0] != '\0' ? ": " : "", e->text);
        break;
    case CT_HUB_EVENT_COUNT:
        break;
    }
}

static ct_status print_check(const ct_alloc *alloc, const char *folder, ct_err *err)
{
    ct_hub_folder_report report;
    CT_TRY(ct_hub_check_folder(alloc, folder, &report, err));
    for (size_t i = 0; i < CT_HUB_FOLDER_ROWS; i++) {
        const ct_hub_folder_row *row = &report.rows[i];
        printf("  %-24s %-8s %s%s\n", row->name, row->is_there ? "there" : "missing", row->matters ? "matters: " : "", row->text);
    }
    printf("  %-24s %s\n  %-24s %s\n", "tokenizer", report.tokenizer, "weights", report.weights);
    ct_hub_folder_report_deinit(&report);
    return CT_OK;
}

/* --- what is asked for --- */

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* The file where huggingface_hub's login keeps the token: HF_TOKEN_PATH, or "token" in HF_HOME, $XDG_CACHE_HOME/huggingface or
 * ~/.cache/huggingface. Not there: no token. */
static ct_status read_token_file(ct_arena *arena, ct_hub_request *r, ct_err *err)
{
    const char *path = from_environment("HF_TOKEN_PATH"), *home = from_environment("HF_HOME");
    const char *cache = from_environment("XDG_CACHE_HOME"), *user = from_environment("HOME");
    if (path == NULL && home != NULL) {
        path = ct_arena_printf(arena, err, "%s/token", home);
    } else if (path == NULL && cache != NULL) {
        path = ct_arena_printf(arena, err, "%s/huggingface/token", cache);
    } else if (path == NULL && user != NULL) {
        path = ct_arena_printf(arena, err, "%s/.cache/huggingface/token", user);
    }
    char *text = NULL;
    size_t size = 0;
    if (path == NULL || !cti_path_is_file(path)) {
        return CT_OK;
    }
    CT_TRY(cti_file_read(ct_alloc_system(), path, 4096, &text, &size, err));
    const char *begin = text + strspn(text, " \t\r\n");
    r->token = ct_arena_printf(arena, err, "%.*s", (int)strcspn(begin, " \t\r\n"), begin);
    r->token_from = ct_arena_printf(arena, err, "the file %s", path);
    memset(text, 0, size);
    ct_alloc_free(ct_alloc_system(), text);
    if (r->token == NULL || r->token_from == NULL) {
        return CT_ERR_MEMORY;
    }
    r->token = r->token[0] != '\0' ? r->token : NULL;
    return CT_OK;
}

static ct_status set_huggingface(const options *o, ct_arena *arena, ct_hub_request *r, ct_err *err)
{
    static const char *const names[] = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"};
    const char *endpoint = from_environment("HF_ENDPOINT");
    r->endpoint = endpoint != NULL ? endpoint : "https://huggingface.co";
    r->token = o->hf_token;
    r->token_from = "--hf-token";
    for (size_t i = 0; i < 2 && r->token == NULL; i++) {
        r->token = from_environment(names[i]);
        r->token_from = names[i];
    }
    return r->token != NULL ? CT_OK : read_token_file(arena, r, err);
}

static ct_status set_modelscope(const options *o, ct_hub_request *r, ct_err *err)
{
    if (o->hf_token != NULL) {
        return CT_FAIL(err, CT_ERR_USAGE, "--hf-token is for --source huggingface; ModelScope's is taken from MODELSCOPE_API_TOKEN");
    }
    const char *endpoint = from_environment("MODELSCOPE_ENDPOINT");
    endpoint = endpoint != NULL ? endpoint : from_environment("MODELSCOPE_DOMAIN"); /* its older name */
    r->endpoint = endpoint != NULL ? endpoint : "https://modelscope.cn";
    r->token = from_environment("MODELSCOPE_API_TOKEN");
    r->token_from = "MODELSCOPE_API_TOKEN";
    return CT_OK;
}

static ct_status set_request(const options *o, ct_arena *arena, ct_hub_request *r, ct_err *err)
{
    if (o->repo_id[0] == '\0') {
        return CT_FAIL(err, CT_ERR_USAGE, "--repo-id owner/name is wanted");
    }
    *r = (ct_hub_request){
        .source = strcmp(o->source, "modelscope") == 0 ? CT_HUB_MODELSCOPE : CT_HUB_HUGGINGFACE,
        .repo_id = o->repo_id, .revision = o->revision, .local_dir = o->local_dir, .allow_http_token = o->allow_http_token,
        .retries = (int)o->retries, .retry_wait_s = o->retry_wait, .timeout_s = o->timeout, .stop = &stopped,
        .selection = {.all = o->all, .name_patterns = o->additional_patterns.items, .n_name_patterns = (size_t)o->additional_patterns.n,
                      .path_patterns = o->allow_patterns.items, .n_path_patterns = (size_t)o->allow_patterns.n}};
    for (int64_t i = 0; o->assets.is_set && i < o->assets.n; i++) {
        for (int64_t k = 0; k < o->assets.items[i].n; k++) {
            unsigned flag = 0;
            CT_TRY(ct_hub_asset_from(o->assets.items[i].items[k], &flag, err));
            r->selection.assets |= flag;
        }
    }
    r->ca_file = from_environment("CURL_CA_BUNDLE"); /* the names that curl's own program knows, and libcurl does not */
    r->ca_file = r->ca_file != NULL ? r->ca_file : from_environment("SSL_CERT_FILE");
    return r->source == CT_HUB_MODELSCOPE ? set_modelscope(o, r, err) : set_huggingface(o, arena, r, err);
}

static ct_status download(const ct_alloc *alloc, const options *o, ct_arena *arena, ct_err *err)
{
    ct_hub_request request;
    view v = {.is_terminal = isatty(STDERR_FILENO) == 1};
    char *folder = NULL;
    CT_TRY(set_request(o, arena, &request, err));
    request.report = show;
    request.report_ctx = &v;
    /* The first SIGINT or SIGTERM ends the work in good order, the second at once. A write beyond a limit, or to a connection that is gone,
     * is an error of that write. */
    const struct sigaction stop = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGINT, &stop, NULL);
    (void)sigaction(SIGTERM, &stop, NULL);
    (void)sigaction(SIGXFSZ, &ignore, NULL);
    (void)sigaction(SIGPIPE, &ignore, NULL);
    ct_status st = ct_hub_download(alloc, &request, &folder, err);
    clear_line(&v);
    if (st == CT_OK) {
        st = print_check(alloc, folder, err);
    }
    if (st == CT_OK) {
        printf("%s\n", folder);
        st = fflush(stdout) == 0 ? CT_OK : CT_FAIL(err, CT_ERR_IO, "standard output cannot be written");
    }
    ct_alloc_free(alloc, folder);
    return st;
}

int cti_cmd_download_assets(int argc, char **argv)
{
    static const cti_command_help help = {
        "ctitan download-assets --repo-id OWNER/NAME [--source huggingface|modelscope] [--assets KIND...] [options]",
        "Fetches files of a model repository into LOCAL_DIR/NAME, checks them, and prints that folder's path as its last line. What was\n"
        "cut is gone on with by the same command. Tokens: HF_TOKEN, HUGGING_FACE_HUB_TOKEN or huggingface_hub's token file;\n"
        "MODELSCOPE_API_TOKEN. Other hosts: HF_ENDPOINT, MODELSCOPE_ENDPOINT. Proxies: https_proxy and its kin, as curl has them.",
        NULL};
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    ct_arena *arena = NULL;
    options o;
    bool done = false;
    ct_status st = ct_arena_create(alloc, 0, &arena, &err);
    if (st == CT_OK) {
        st = cti_options_parse(argc, argv, fields, N_FIELDS, &o, &help, arena, &done, &err);
    }
    if (st == CT_OK && !done) {
        st = download(alloc, &o, arena, &err);
    }
    ct_arena_destroy(&arena);
    return st == CT_OK ? 0 : cti_report("download-assets", st, &err);
}
