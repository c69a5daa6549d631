/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `hub`: files of a model repository (Hugging Face, ModelScope) into a folder.
 *
 *     const ct_hub_request r = {.source = CT_HUB_HUGGINGFACE, .endpoint = "https://huggingface.co", .repo_id = "org/model",
 *                               .local_dir = "assets/hf/", .selection = {.assets = CT_HUB_ASSET_TOKENIZER}, .retries = 5,
 *                               .retry_wait_s = 1.0, .timeout_s = 60.0};
 *     char *folder = NULL;
 *     CT_TRY(ct_hub_download(alloc, &r, &folder, err));       // "assets/hf/model"
 *     ct_hub_folder_report report;
 *     CT_TRY(ct_hub_check_folder(alloc, folder, &report, err));
 *
 * What is written: <local_dir>/<model name>/<path>. A file comes as "<path>.part", is held to the size and the checksum that the
 * service's listing gives, synced and renamed: under its own name a file is whole or not there. What was cut is gone on with by the
 * next call. Nothing outside of the folder is touched, whatever names the server sends.
 *
 * libcurl is opened when it is first needed (dlopen), so that no other command pays for loading it and what it needs. It reads the
 * variables of proxies (https_proxy, no_proxy, ...) and the system's certificates; nothing else here reads the environment.
 *
 * SHA-256 and SHA-1 are our own hundred lines (sha.c): libcrypto would be the only other thing to need, and it is two megabytes.
 *
 * Files: download (the whole, lock, room on the disk), transfer (one file), service (URLs, words for a service's refusals), http
 * (waiting between tries), http_curl (libcurl: one GET with redirects), http_headers, listing (JSON to files), names (names that are refused), select (which
 * files), folder (the check), sha.
 */
#ifndef CTI_HUB_HUB_H
#define CTI_HUB_HUB_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctitan/alloc.h"

typedef enum ct_hub_source { CT_HUB_HUGGINGFACE, CT_HUB_MODELSCOPE, CT_HUB_SOURCE_COUNT } ct_hub_source;

/* X(NAME, word on the command line, patterns of base names). The kinds of TorchTitan's download script. */
/* clang-format off */
#define CT_HUB_ASSET_LIST(X) \
    X(TOKENIZER,   "tokenizer",   "tokenizer.json|tokenizer_config.json|tokenizer.model|vocab.txt|vocab.json|merges.txt|special_tokens_map.json") \
    X(SAFETENSORS, "safetensors", "*.safetensors|*model.safetensors.index.json") \
    X(INDEX,       "index",       "*model.safetensors.index.json") \
    X(CONFIG,      "config",      "config.json|generation_config.json")
/* clang-format on */
typedef enum ct_hub_asset {
#define CT_HUB_ASSET_ENUM(NAME, word, patterns) CT_HUB_ASSET_##NAME##_BIT,
    CT_HUB_ASSET_LIST(CT_HUB_ASSET_ENUM)
#undef CT_HUB_ASSET_ENUM
        CT_HUB_ASSET_COUNT
} ct_hub_asset;
enum {
#define CT_HUB_ASSET_FLAG(NAME, word, patterns) CT_HUB_ASSET_##NAME = 1u << CT_HUB_ASSET_##NAME##_BIT,
    CT_HUB_ASSET_LIST(CT_HUB_ASSET_FLAG)
#undef CT_HUB_ASSET_FLAG
};

/* A file is taken where one of these takes it. All strings are borrowed. `*` crosses slashes. */
typedef struct ct_hub_selection {
    bool all;
    unsigned assets;                                         /* CT_HUB_ASSET_*: held to base names */
    const char *const *name_patterns; size_t n_name_patterns; /* held to base names (--additional-patterns) */
    const char *const *path_patterns; size_t n_path_patterns; /* held to whole paths (--allow-patterns); "x/" is "x/" and star */
} ct_hub_selection;

typedef enum ct_hub_event_kind {
    CT_HUB_LISTED,   /* n_files and all_bytes are selected */
    CT_HUB_KEPT,     /* the file is there, right in size and checksum */
    CT_HUB_BEGIN,    /* done_bytes > 0: goes on there */
    CT_HUB_PROGRESS, /* done_bytes of file_bytes */
    CT_HUB_DONE,     /* text: what it was held to, "sha256" */
    CT_HUB_NOTE,     /* text: one line that the user should see; waiting for another try is one */
    CT_HUB_EVENT_COUNT
} ct_hub_event_kind;
typedef struct ct_hub_event {
    ct_hub_event_kind kind;
    const char *path; /* fit to be shown: no control characters; "" where no file is meant */
    int64_t done_bytes, file_bytes;
    int64_t all_done_bytes, all_bytes; /* over all selected files */
    int64_t i_file, n_files;
    const char *text;
} ct_hub_event;

typedef struct ct_hub_request {
    ct_hub_source source;
    const char *endpoint; /* "https://host[:port]"; "host" alone means https */
    const char *token;    /* NULL: none. Sent to the endpoint's scheme, host and port only; never in a message */
    const char *token_from; /* for messages: "HF_TOKEN" */
    const char *ca_file;    /* PEM of the certificates that are trusted; NULL: the system's */
    bool allow_http_token;  /* else a token goes over plain http to this host only */
    const char *repo_id;    /* "org/name" */
    const char *revision;   /* NULL: main (Hugging Face), master (ModelScope) */
    const char *local_dir;
    ct_hub_selection selection;
    int retries;         /* further tries after the first, 0.. ; a try that brings 1 MiB starts the count again */
    double retry_wait_s; /* before the first further try; doubles each time, at most 60 s; the server's Retry-After where it is longer */
    double timeout_s;    /* to connect, and for a transfer that brings nothing */
    const volatile sig_atomic_t *stop; /* NULL, or: not 0 ends the work soon with ERR_STOPPED */
    void (*report)(void *ctx, const ct_hub_event *event); /* may be NULL */
    void *report_ctx;
} ct_hub_request;

/**
 * Lists the repository, fetches what is selected and not there yet. *out_folder (ct_alloc_free) is set as soon as it is known, on
 * failure too.
 *
 * Fails, each with one line: ERR_USAGE (repo id, revision, endpoint, token, selection); ERR_NOT_FOUND (repository, revision, no
 * file that matches); ERR_UNSUPPORTED (no libcurl); ERR_IO (refused by the service; the disk, which may be full); ERR_FORMAT (the
 * server's answer, size or checksum wrong, a name that is refused); ERR_STATE (another download is at work in the folder);
 * ERR_PEER (after all tries: no connection, cut, 429, 5xx); ERR_STOPPED. Threads: one at a time.
 */
CT_MUST_CHECK ct_status ct_hub_download(const ct_alloc *alloc, const ct_hub_request *request, char **out_folder, ct_err *err);

/* CT_HUB_ASSET_* of a word; ERR_USAGE with the nearest. */
CT_MUST_CHECK ct_status ct_hub_asset_from(const char *word, unsigned *out_flag, ct_err *err);

/* --- the check --- */

typedef struct ct_hub_folder_row {
    const char *name; /* "tokenizer.json" */
    bool is_there, matters; /* matters: that it is missing or damaged is felt */
    const char *text;       /* what follows from its state */
} ct_hub_folder_row;
enum { CT_HUB_FOLDER_ROWS = 7 };
typedef struct ct_hub_folder_report {
    ct_arena *arena; /* owns all text */
    ct_hub_folder_row rows[CT_HUB_FOLDER_ROWS];
    int32_t vocab_size;    /* ids of the tokenizer; -1 where it cannot be opened */
    const char *tokenizer; /* one line: its sizes, or why it cannot be opened */
    const char *weights;   /* one line: the safetensors files, and which of the index's are missing */
} ct_hub_folder_report;
/* Reads the folder; what is wrong in it is the report's, not a failure. */
CT_MUST_CHECK ct_status ct_hub_check_folder(const ct_alloc *alloc, const char *folder, ct_hub_folder_report *out_report,
                                            ct_err *err);
void ct_hub_folder_report_deinit(ct_hub_folder_report *report);

#endif
