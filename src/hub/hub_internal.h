/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `hub` share. */
#ifndef CTI_HUB_HUB_INTERNAL_H
#define CTI_HUB_HUB_INTERNAL_H

#include "base/str.h"
#include "hub/hub.h"
#include "hub/sha.h"

/* --- listing.c --- */

typedef struct cti_hub_file {
    const char *path; /* as the server spells it; not yet known to be harmless */
    int64_t size;
    const char *sha256, *blob_sha1; /* lower-case digits, "" where the server gives none */
} cti_hub_file;

enum {
    CTI_HUB_MAX_FILES = 200000,          /* of a repository, over all pages */
    CTI_HUB_MAX_LISTING_BYTES = 64 << 20, /* of a page */
    CTI_HUB_CUT_AT = 3000,               /* entries after which ModelScope ends a listing without a word */
    CTI_HUB_NAME_BYTES = 1000,           /* of a path in a repository */
};

typedef struct cti_hub_listing {
    ct_arena *arena; /* owns all text */
    const ct_alloc *alloc;
    cti_hub_file *files; /* owns the array */
    size_t n, cap;
    const char **folders; /* owns the array. ModelScope's only: for a listing that was cut */
    size_t n_folders, cap_folders;
} cti_hub_listing;

CT_MUST_CHECK ct_status cti_hub_listing_init(const ct_alloc *alloc, cti_hub_listing *out_listing, ct_err *err);
void cti_hub_listing_deinit(cti_hub_listing *listing);
/* Adds the entries of one page to listing. ERR_FORMAT names what is wrong and where. *out_n_entries: folders included. */
CT_MUST_CHECK ct_status cti_hub_listing_add(cti_hub_listing *listing, ct_hub_source source, const char *json, size_t size,
                                            size_t *out_n_entries, ct_err *err);
/* Sorts by path. */
void cti_hub_listing_sort(cti_hub_listing *listing);

/* --- names.c --- */

enum { CTI_HUB_SHOWN_BYTES = 256 };
/* Text of a server fit to be shown on one line: control characters, what changes the direction of text and bytes that are not UTF-8
 * become \xNN; long text is cut. Returns buf. */
const char *cti_hub_shown(const char *text, size_t size, char buf[CTI_HUB_SHOWN_BYTES]);
/* Refuses, by name and with the reason, files (sorted) that must not or cannot lie below one folder. */
CT_MUST_CHECK ct_status cti_hub_check_names(const ct_alloc *alloc, const cti_hub_file *files, size_t n, ct_err *err);
/* "org/name" (ModelScope), also "name" (Hugging Face). *out_name: what follows the slash, in repo_id. */
CT_MUST_CHECK ct_status cti_hub_check_repo_id(ct_hub_source source, const char *repo_id, const char **out_name, ct_err *err);

/* --- select.c --- */

/* Moves what the selection takes to the front of listing->files, in order, and sets listing->n. ERR_NOT_FOUND where nothing matches,
 * with what is there. notes: a line for each kind of asset that has no file (TorchTitan warns alike). */
CT_MUST_CHECK ct_status cti_hub_select(cti_hub_listing *listing, const ct_hub_selection *selection, const char *repo_id, cti_str *notes,
                                       ct_err *err);

/* --- http_curl.c --- */

typedef struct cti_http cti_http; /* libcurl and one connection's handle */

typedef struct cti_http_answer {
    long status;
    int64_t content_bytes; /* of the body; -1 unknown */
    int64_t range_from, range_total; /* of a 206; -1 unknown */
    double retry_after_s;            /* 0: not said */
    char etag[128];                  /* "" where there is none, or only a weak one */
    char next_url[2048];             /* Link: rel="next" */
    char error_code[64], error_text[CTI_HUB_SHOWN_BYTES]; /* X-Error-Code, X-Error-Message or the JSON's; fit to be shown */
    bool is_retryable; /* of a failure: another try may do */
} cti_http_answer;

typedef struct cti_http_get {
    const char *url;
    int64_t from;         /* > 0: Range */
    const char *if_range; /* ETag, or NULL */
    /* Once, before the first byte of a 200 or 206; more than max_bytes of body are an error. */
    ct_status (*begin)(void *ctx, const cti_http_answer *answer, int64_t *out_max_bytes, ct_err *err);
    ct_status (*body)(void *ctx, const void *data, size_t size, ct_err *err);
    void *ctx;
} cti_http_get;

CT_MUST_CHECK ct_status cti_http_create(const ct_alloc *alloc, const ct_hub_request *request, cti_http **out_http, ct_err *err);
void cti_http_destroy(cti_http **http);
const char *cti_http_endpoint(const cti_http *http); /* "https://host", no slash at the end */
const ct_hub_request *cti_http_request(const cti_http *http);
/* One try. OK: a status came, and the whole body of it. Redirects are followed, at most 10, with the token only where the endpoint is. */
CT_MUST_CHECK ct_status cti_http_try(cti_http *http, const cti_http_get *get, cti_http_answer *out_answer, ct_err *err);

/* --- http_headers.c --- */

/* Adds what one header says; a status line begins a new answer. token: must not be shown; may be NULL. */
void cti_http_read_header(cti_http_answer *answer, const char *line, size_t size, const char *token);
/* The reason in the body of a refusal, where no header gave one. */
void cti_http_read_refusal(cti_http_answer *answer, const char *body, size_t size, const char *token);
/* Words from outside, fit to be shown. */
void cti_http_quote(const char *text, size_t size, const char *token, char to[CTI_HUB_SHOWN_BYTES]);

/* --- http.c --- */

bool cti_http_status_is_retryable(long status);

/* Tries that are left. */
typedef struct cti_http_tries {
    int n_failed;
} cti_http_tries;
/* After a try that failed for `why`: waits and returns OK where another try is due; else fails with why. */
CT_MUST_CHECK ct_status cti_http_wait(cti_http *http, cti_http_tries *tries, const cti_http_answer *answer, const char *path,
                                      const ct_err *why, ct_err *err);
/* A whole body of at most max_bytes, with further tries. What is not 200 comes back as OK with the status. */
CT_MUST_CHECK ct_status cti_http_fetch(cti_http *http, const char *url, int64_t max_bytes, cti_str *body, cti_http_answer *out_answer,
                                       ct_err *err);
ct_status cti_http_status_trouble(const cti_http *http, const cti_http_answer *answer, ct_err *err); /* ERR_PEER, for a status worth retrying */
ct_status cti_http_stopped(ct_err *err);
/* Percent-encodes all but unreserved characters (RFC 3986, 2.3) and, where keep_slash, '/'. */
void cti_http_add_encoded(cti_str *to, const char *text, bool keep_slash);
/* A note to the request's report. */
void cti_hub_note(const ct_hub_request *request, const char *path, const char *fmt, ...) CT_PRINTF(3, 4);

/* --- service.c --- */

const char *cti_hub_revision(const ct_hub_request *request);
CT_MUST_CHECK ct_status cti_hub_list(cti_http *http, const ct_hub_request *request, cti_hub_listing *listing, ct_err *err);
void cti_hub_add_file_url(const cti_http *http, const ct_hub_request *request, const char *path, cti_str *url);
/* The failure that a status means; path NULL: of the listing. */
ct_status cti_hub_refusal(const cti_http *http, const ct_hub_request *request, const cti_http_answer *answer, const char *path, ct_err *err);

/* --- transfer.c --- */

typedef struct cti_hub_progress {
    int64_t done_before, all_bytes; /* of files that are done; of all that are selected */
    int64_t i_file, n_files;
} cti_hub_progress;
/* Whether path holds the file's bytes. A file without a checksum: the size decides. */
CT_MUST_CHECK ct_status cti_hub_is_there(const ct_alloc *alloc, const char *path, const cti_hub_file *file, bool *out_is_there, ct_err *err);
/* Fetches one file below folder. */
CT_MUST_CHECK ct_status cti_hub_transfer(const ct_alloc *alloc, cti_http *http, const ct_hub_request *request, const char *folder,
                                         const cti_hub_file *file, const cti_hub_progress *progress, ct_err *err);

#endif
