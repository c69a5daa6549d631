/* SPDX-License-Identifier: Apache-2.0 */
/* The whole of a download: list, select, lock, what is there, room on the disk, file by file. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "hub/hub_internal.h"

typedef struct work {
    const ct_alloc *alloc;
    const ct_hub_request *request;
    cti_http *http;
    cti_hub_listing listing;
    char *folder;
    int lock;          /* descriptor of the folder, -1 */
    bool *is_there;    /* [listing.n] */
    int64_t all_bytes; /* of what is selected */
} work;

static ct_status check_request(const ct_hub_request *r, const char **out_name, ct_err *err)
{
    const ct_hub_selection *s = &r->selection;
    CT_TRY(cti_hub_check_repo_id(r->source, r->repo_id, out_name, err));
    if (!s->all && s->assets == 0 && s->n_name_patterns == 0 && s->n_path_patterns == 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "nothing is asked for: --assets tokenizer config, --allow-patterns '*.json', or --all is wanted");
    }
    const char *revision = cti_hub_revision(r);
    if (revision[0] == '\0' || strstr(revision, "..") != NULL) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%s' is no revision: a branch, tag or commit is wanted", revision);
    }
    for (const char *c = revision; *c != '\0'; c++) {
        if ((unsigned char)*c <= ' ' || *c == 0x7f) {
            return CT_FAIL(err, CT_ERR_USAGE, "the revision has blanks or control characters");
        }
    }
    return r->local_dir[0] != '\0' ? CT_OK : CT_FAIL(err, CT_ERR_USAGE, "the local folder is empty");
}

static ct_status make_folder_name(work *w, const char *name, ct_err *err)
{
    cti_str path = {.alloc = w->alloc};
    size_t n = strlen(w->request->local_dir);
    while (n > 1 && w->request->local_dir[n - 1] == '/') {
        n--;
    }
    cti_str_add_n(&path, w->request->local_dir, n);
    cti_str_printf(&path, "%s%s", n == 1 && path.data != NULL && path.data[0] == '/' ? "" : "/", name);
    const ct_status st = cti_str_check(&path, err);
    if (st != CT_OK) {
        cti_str_deinit(&path);
        return st;
    }
    w->folder = path.data;
    return CT_OK;
}

/* The folder itself is what is locked: nothing is left in it, and the lock goes with the process. */
static ct_status lock_folder(work *w, ct_err *err)
{
    CT_TRY(cti_make_dirs(w->folder, err));
    int code;
    CT_TRY(cti_lock_folder(w->folder, &w->lock, &code, err));
    if (code == EWOULDBLOCK) {
        return CT_FAIL(err, CT_ERR_STATE, "another ctitan download-assets is at work in '%s'; wait for its end", w->folder);
    }
    if (w->lock < 0) {
        cti_hub_note(w->request, "", "'%s' cannot be locked (%s): start no second download into it", w->folder, strerror(code));
    }
    return CT_OK;
}

static void report(const work *w, ct_hub_event_kind kind, size_t i, int64_t done)
{
    char shown[CTI_HUB_SHOWN_BYTES] = "";
    if (w->request->report == NULL) {
        return;
    }
    ct_hub_event event = {.kind = kind, .path = "", .all_done_bytes = done, .all_bytes = w->all_bytes, .i_file = (int64_t)i,
                          .n_files = (int64_t)w->listing.n, .text = ""};
    if (kind == CT_HUB_KEPT) {
        const cti_hub_file *f = &w->listing.files[i];
        event.path = cti_hub_shown(f->path, strlen(f->path), shown);
        event.done_bytes = event.file_bytes = f->size;
        event.text = f->sha256[0] == '\0' && f->blob_sha1[0] == '\0' ? "same size" : "same checksum";
    }
    w->request->report(w->request->report_ctx, &event);
}

/* Which files are there, and how many bytes are still to come. */
static ct_status look(work *w, int64_t *out_missing, ct_err *err)
{
    *out_missing = 0;
    w->is_there = CT_NEW_ARRAY(w->alloc, bool, w->listing.n, err);
    ct_status st = w->is_there == NULL ? CT_ERR_MEMORY : CT_OK;
    for (size_t i = 0; i < w->listing.n && st == CT_OK; i++) {
        const cti_hub_file *f = &w->listing.files[i];
        char *path = cti_path_join(w->alloc, w->folder, f->path, err);
        st = path == NULL ? CT_ERR_MEMORY : cti_hub_is_there(w->alloc, path, f, &w->is_there[i], err);
        if (st == CT_OK && !w->is_there[i]) {
            cti_str part = {.alloc = w->alloc};
            struct stat s;
            cti_str_printf(&part, "%s.part", path);
            *out_missing += f->size - (stat(cti_str_text(&part), &s) == 0 && s.st_size <= f->size ? s.st_size : 0);
            cti_str_deinit(&part);
        }
        ct_alloc_free(w->alloc, path);
        if (st == CT_OK && w->request->stop != NULL && *w->request->stop != 0) {
            st = cti_http_stopped(err);
        }
    }
    return st;
}

static ct_status check_room(const work *w, int64_t missing, ct_err *err)
{
    int64_t is_free;
    if (missing == 0 || cti_disk_free_bytes(w->folder, &is_free, NULL) != CT_OK || is_free >= missing) {
        return CT_OK; /* where nobody knows, the write will tell */
    }
    char want[32], have[32];
    return CT_FAIL(err, CT_ERR_IO, "%s are to come, and the disk of '%s' has only %s left", cti_format_bytes(missing, want), w->folder,
                   cti_format_bytes(is_free, have));
}

static ct_status sum_sizes(work *w, ct_err *err)
{
    for (size_t i = 0; i < w->listing.n; i++) {
        if (__builtin_add_overflow(w->all_bytes, w->listing.files[i].size, &w->all_bytes)) {
            return CT_FAIL(err, CT_ERR_FORMAT, "the sizes that the server lists add up to more than any disk holds");
        }
    }
    return CT_OK;
}

static ct_status list_and_select(work *w, ct_err *err)
{
    cti_str notes = {.alloc = w->alloc};
    ct_status st;
    CT_TRY(cti_hub_listing_init(w->alloc, &w->listing, err));
    CT_TRY(cti_hub_list(w->http, w->request, &w->listing, err));
    st = cti_hub_select(&w->listing, &w->request->selection, w->request->repo_id, &notes, err);
    char *line = notes.data;
    while (st == CT_OK && line != NULL && *line != '\0') {
        char *end = strchr(line, '\n');
        *end = '\0';
        cti_hub_note(w->request, "", "%s", line);
        line = end + 1;
    }
    cti_str_deinit(&notes);
    CT_TRY(st);
    CT_TRY(cti_hub_check_names(w->alloc, w->listing.files, w->listing.n, err));
    return sum_sizes(w, err);
}

static ct_status fetch_all(work *w, ct_err *err)
{
    int64_t missing, done = 0;
    CT_TRY(look(w, &missing, err));
    report(w, CT_HUB_LISTED, 0, 0);
    CT_TRY(check_room(w, missing, err));
    for (size_t i = 0; i < w->listing.n; i++) {
        const cti_hub_file *f = &w->listing.files[i];
        if (w->is_there[i]) {
            report(w, CT_HUB_KEPT, i, done + f->size);
        } else {
            const cti_hub_progress progress = {.done_before = done, .all_bytes = w->all_bytes, .i_file = (int64_t)i,
                                               .n_files = (int64_t)w->listing.n};
            CT_TRY(cti_hub_transfer(w->alloc, w->http, w->request, w->folder, f, &progress, err));
        }
        done += f->size;
    }
    return CT_OK;
}

ct_status ct_hub_download(const ct_alloc *alloc, const ct_hub_request *request, char **out_folder, ct_err *err)
{
    work w = {.alloc = alloc, .request = request, .lock = -1};
    const char *name;
    ct_status st;
    *out_folder = NULL;
    CT_TRY(check_request(request, &name, err));
    CT_TRY_GOTO(st, make_folder_name(&w, name, err), out);
    CT_TRY_GOTO(st, cti_http_create(alloc, request, &w.http, err), out);
    CT_TRY_GOTO(st, list_and_select(&w, err), out);
    CT_TRY_GOTO(st, lock_folder(&w, err), out);
    st = fetch_all(&w, err);
out:
    if (w.lock >= 0) {
        (void)close(w.lock);
    }
    *out_folder = w.folder;
    ct_alloc_free(alloc, w.is_there);
    cti_hub_listing_deinit(&w.listing);
    cti_http_destroy(&w.http);
    return st;
}
