/* SPDX-License-Identifier: Apache-2.0 */
/* One file: "<path>.part" grows, over as many tries as it takes, is held to size and checksum, synced and renamed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "hub/hub_internal.h"

enum { FRESH_BYTES = 1 << 20 }; /* a try that brings so much starts the count of tries again */

typedef struct transfer {
    const ct_alloc *alloc;
    const ct_hub_request *request;
    const cti_hub_file *file;
    const cti_hub_progress *progress;
    char *path, *part;
    int fd;
    int64_t have;      /* bytes in the part, all of them in the sum */
    bool is_continued; /* some of them came from an earlier call */
    cti_sha sha;
    char etag[128]; /* of the answer that the bytes of this call came from; "" none */
    int64_t reported;
} transfer;

static bool has_sum(const cti_hub_file *file)
{
    return file->sha256[0] != '\0' || file->blob_sha1[0] != '\0';
}

/* SHA-256 of the bytes; else Git's name of a blob, the SHA-1 of "blob <size>\0" and the bytes. */
static void sum_begin(cti_sha *sha, const cti_hub_file *file)
{
    if (file->sha256[0] != '\0' || file->blob_sha1[0] == '\0') {
        cti_sha256_init(sha);
        return;
    }
    char head[32];
    const int n = snprintf(head, sizeof head, "blob %" PRId64, file->size);
    cti_sha1_init(sha);
    cti_sha_update(sha, head, (size_t)n + 1);
}

static const char *wanted_sum(const cti_hub_file *file)
{
    return file->sha256[0] != '\0' ? file->sha256 : file->blob_sha1;
}

static const char *sum_name(const cti_hub_file *file)
{
    return file->sha256[0] != '\0' ? "sha256" : file->blob_sha1[0] != '\0' ? "git blob" : "size only";
}

static bool is_stopped(const ct_hub_request *r)
{
    return r != NULL && r->stop != NULL && *r->stop != 0;
}

/* Adds all bytes of fd from its start to the sum. */
static ct_status sum_file(const ct_alloc *alloc, const ct_hub_request *r, int fd, const char *path, cti_sha *sha, int64_t *out_size, ct_err *err)
{
    enum { CHUNK = 1 << 18 };
    char *buf = CT_NEW_ARRAY(alloc, char, CHUNK, err);
    ct_status st = buf == NULL ? CT_ERR_MEMORY : CT_OK;
    *out_size = 0;
    while (st == CT_OK) {
        const ssize_t n = pread(fd, buf, CHUNK, *out_size);
        if (n < 0 && errno != EINTR) {
            st = CT_FAIL(err, CT_ERR_IO, "'%s' cannot be read: %s", path, strerror(errno));
        } else if (is_stopped(r)) {
            st = cti_http_stopped(err);
        } else if (n == 0) {
            break;
        } else if (n > 0) {
            cti_sha_update(sha, buf, (size_t)n);
            *out_size += n;
        }
    }
    ct_alloc_free(alloc, buf);
    return st;
}

ct_status cti_hub_is_there(const ct_alloc *alloc, const char *path, const cti_hub_file *file, bool *out_is_there, ct_err *err)
{
    struct stat s;
    *out_is_there = false;
    if (stat(path, &s) != 0) {
        return errno == ENOENT ? CT_OK : CT_FAIL(err, CT_ERR_IO, "'%s' cannot be looked at: %s", path, strerror(errno));
    }
    if (!S_ISREG(s.st_mode)) {
        return CT_FAIL(err, CT_ERR_IO, "'%s' is in the way: it is no file", path);
    }
    if (s.st_size != file->size) {
        return CT_OK;
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return CT_FAIL(err, CT_ERR_IO, "'%s' cannot be read: %s", path, strerror(errno));
    }
    cti_sha sha;
    char hex[65];
    int64_t size;
    sum_begin(&sha, file);
    const ct_status st = has_sum(file) ? sum_file(alloc, NULL, fd, path, &sha, &size, err) : CT_OK;
    (void)close(fd);
    if (st == CT_OK) {
        cti_sha_hex(&sha, hex);
        *out_is_there = !has_sum(file) || strcmp(hex, wanted_sum(file)) == 0;
    }
    return st;
}

static void report(transfer *t, ct_hub_event_kind kind, const char *text)
{
    char shown[CTI_HUB_SHOWN_BYTES];
    if (t->request->report == NULL) {
        return;
    }
    const ct_hub_event event = {.kind = kind, .path = cti_hub_shown(t->file->path, strlen(t->file->path), shown), .done_bytes = t->have,
                                .file_bytes = t->file->size, .all_done_bytes = t->progress->done_before + t->have,
                                .all_bytes = t->progress->all_bytes, .i_file = t->progress->i_file, .n_files = t->progress->n_files,
                                .text = text};
    t->request->report(t->request->report_ctx, &event);
    t->reported = t->have;
}

static ct_status restart(transfer *t, ct_err *err)
{
    t->have = 0;
    t->is_continued = false;
    t->etag[0] = '\0';
    sum_begin(&t->sha, t->file);
    return ftruncate(t->fd, 0) == 0 && lseek(t->fd, 0, SEEK_SET) == 0
               ? CT_OK
               : CT_FAIL(err, CT_ERR_IO, "'%s' cannot be cut: %s", t->part, strerror(errno));
}

/* Opens the part and takes up what is in it. Without a checksum nothing would tell bytes of another version: it starts anew. */
static ct_status open_part(transfer *t, ct_err *err)
{
    struct stat s;
    t->fd = open(t->part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (t->fd < 0) {
        return CT_FAIL(err, CT_ERR_IO, "'%s' cannot be made: %s", t->part, strerror(errno));
    }
    if (fstat(t->fd, &s) != 0 || !S_ISREG(s.st_mode)) {
        return CT_FAIL(err, CT_ERR_IO, "'%s' is in the way: it is no file", t->part);
    }
    if (s.st_size == 0 || s.st_size > t->file->size || !has_sum(t->file)) {
        return restart(t, err);
    }
    sum_begin(&t->sha, t->file);
    t->is_continued = true;
    CT_TRY(sum_file(t->alloc, t->request, t->fd, t->part, &t->sha, &t->have, err));
    return lseek(t->fd, t->have, SEEK_SET) >= 0 ? CT_OK : CT_FAIL(err, CT_ERR_IO, "'%s': %s", t->part, strerror(errno));
}

static ct_status on_begin(void *ctx, const cti_http_answer *answer, int64_t *out_max_bytes, ct_err *err)
{
    transfer *t = ctx;
    if (answer->status == 200 && t->have > 0) {
        cti_hub_note(t->request, t->file->path, "the server begins at the start again, not at byte %" PRId64, t->have);
        CT_TRY(restart(t, err));
    }
    if (answer->status == 206 && (answer->range_from != t->have || (answer->range_total >= 0 && answer->range_total != t->file->size))) {
        return CT_FAIL(err, CT_ERR_FORMAT, "the server sends bytes from %" PRId64 " of %" PRId64 ", wanted were those from %" PRId64 " of %" PRId64,
                       answer->range_from, answer->range_total, t->have, t->file->size);
    }
    *out_max_bytes = t->file->size - t->have;
    if (answer->content_bytes >= 0 && answer->content_bytes != *out_max_bytes) {
        return CT_FAIL(err, CT_ERR_FORMAT, "the server sends %" PRId64 " bytes, by its listing it should be %" PRId64, answer->content_bytes,
                       *out_max_bytes);
    }
    (void)snprintf(t->etag, sizeof t->etag, "%s", answer->etag);
    return CT_OK;
}

static ct_status on_bytes(void *ctx, const void *data, size_t size, ct_err *err)
{
    transfer *t = ctx;
    for (size_t at = 0; at < size;) {
        const ssize_t n = write(t->fd, (const char *)data + at, size - at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            const int why = n < 0 ? errno : ENOSPC;
            return CT_FAIL(err, CT_ERR_IO, "'%s' cannot be written after %" PRId64 " of %" PRId64 " bytes: %s; once there is room the same command goes on",
                           t->part, t->have, t->file->size, strerror(why));
        }
        cti_sha_update(&t->sha, (const char *)data + at, (size_t)n);
        t->have += n;
        at += (size_t)n;
    }
    if (t->have - t->reported >= 1 << 16) {
        report(t, CT_HUB_PROGRESS, "");
    }
    return CT_OK;
}

/* All bytes, over several tries. */
static ct_status receive(transfer *t, cti_http *http, const char *url, ct_err *err)
{
    cti_http_tries tries = {0};
    while (t->have < t->file->size) {
        ct_err why = {0};
        cti_http_answer answer;
        const int64_t before = t->have;
        char etag[sizeof t->etag]; /* a copy: on_begin() writes the next one while the request is under way */
        memcpy(etag, t->etag, sizeof etag);
        const cti_http_get get = {.url = url, .from = t->have, .if_range = etag[0] != '\0' ? etag : NULL, .begin = on_begin, .body = on_bytes,
                                  .ctx = t};
        ct_status st = cti_http_try(http, &get, &answer, &why);
        if (st == CT_OK && (answer.status == 200 || answer.status == 206)) {
            if (t->have == t->file->size) {
                return CT_OK;
            }
            answer.is_retryable = true;
            st = CT_FAIL(&why, CT_ERR_PEER, "the server ends after %" PRId64 " of %" PRId64 " bytes", t->have, t->file->size);
        } else if (st == CT_OK && answer.status == 416 && t->have > 0) { /* it has no such place: what is here is of another version */
            answer.is_retryable = true;
            st = CT_FAIL(&why, CT_ERR_PEER, "the server has nothing at byte %" PRId64, t->have);
            CT_TRY(restart(t, err));
        } else if (st == CT_OK && cti_http_status_is_retryable(answer.status)) {
            answer.is_retryable = true;
            st = cti_http_status_trouble(http, &answer, &why);
        } else if (st == CT_OK) {
            return cti_hub_refusal(http, t->request, &answer, t->file->path, err);
        }
        tries.n_failed = t->have - before >= FRESH_BYTES ? 0 : tries.n_failed;
        CT_TRY(cti_http_wait(http, &tries, &answer, t->file->path, &why, err));
    }
    return CT_OK;
}

/* *out_is_right: or all is thrown away, and the next try starts from nothing. */
static ct_status check_sum(transfer *t, bool *out_is_right, ct_err *err)
{
    char hex[65];
    cti_sha_hex(&t->sha, hex);
    *out_is_right = !has_sum(t->file) || strcmp(hex, wanted_sum(t->file)) == 0;
    if (*out_is_right) {
        return CT_OK;
    }
    if (t->is_continued) {
        cti_hub_note(t->request, t->file->path, "what was here before is not of this version; it is fetched from the start");
        return restart(t, err);
    }
    (void)unlink(t->part);
    return CT_FAIL(err, CT_ERR_FORMAT, "the checksum (%s) is %s, by the server's listing it should be %s; what came is removed", sum_name(t->file),
                   hex, wanted_sum(t->file));
}

static ct_status finish(transfer *t, const char *parent, ct_err *err)
{
    if (fsync(t->fd) != 0) {
        return CT_FAIL(err, CT_ERR_IO, "'%s' cannot be written to the disk: %s", t->part, strerror(errno));
    }
    CT_TRY(cti_rename(t->part, t->path, err));
    return cti_fsync_path(parent, err);
}

static ct_status run(transfer *t, cti_http *http, const char *parent, ct_err *err)
{
    cti_str url = {.alloc = t->alloc};
    bool is_right = false;
    ct_status st;
    CT_TRY_GOTO(st, cti_make_dirs(parent, err), out);
    CT_TRY_GOTO(st, open_part(t, err), out);
    report(t, CT_HUB_BEGIN, "");
    cti_hub_add_file_url(http, t->request, t->file->path, &url);
    CT_TRY_GOTO(st, cti_str_check(&url, err), out);
    while (!is_right) { /* twice at most: a restart is not continued */
        CT_TRY_GOTO(st, receive(t, http, url.data, err), out);
        CT_TRY_GOTO(st, check_sum(t, &is_right, err), out);
    }
    CT_TRY_GOTO(st, finish(t, parent, err), out);
    report(t, CT_HUB_DONE, sum_name(t->file));
out:
    cti_str_deinit(&url);
    return st;
}

ct_status cti_hub_transfer(const ct_alloc *alloc, cti_http *http, const ct_hub_request *request, const char *folder, const cti_hub_file *file,
                           const cti_hub_progress *progress, ct_err *err)
{
    transfer t = {.alloc = alloc, .request = request, .file = file, .progress = progress, .fd = -1};
    cti_str part = {.alloc = alloc}, parent = {.alloc = alloc};
    ct_status st = CT_ERR_MEMORY;
    t.path = cti_path_join(alloc, folder, file->path, err);
    if (t.path != NULL) {
        cti_str_printf(&part, "%s.part", t.path);
        cti_str_add_n(&parent, t.path, (size_t)(strrchr(t.path, '/') - t.path));
        st = cti_str_check(&part, err) != CT_OK || cti_str_check(&parent, err) != CT_OK ? CT_ERR_MEMORY : CT_OK;
    }
    if (st == CT_OK) {
        t.part = part.data;
        st = run(&t, http, parent.data, err);
        if (st != CT_OK) {
            char shown[CTI_HUB_SHOWN_BYTES];
            ct_err_prefix(err, "%s", cti_hub_shown(file->path, strlen(file->path), shown));
        }
        if (t.fd >= 0) {
            (void)close(t.fd);
        }
    }
    ct_alloc_free(alloc, t.path);
    cti_str_deinit(&part);
    cti_str_deinit(&parent);
    return st;
}
