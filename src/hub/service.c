/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP APIs of the two services: addresses, listings over several answers, what a refusal means. */
#include <string.h>

#include "hub/hub_internal.h"

enum { MAX_PAGES = 1000 };

const char *cti_hub_revision(const ct_hub_request *request)
{
    return request->revision != NULL ? request->revision : request->source == CT_HUB_HUGGINGFACE ? "main" : "master";
}

static const char *token_variable(const ct_hub_request *r)
{
    return r->source == CT_HUB_HUGGINGFACE ? "HF_TOKEN" : "MODELSCOPE_API_TOKEN";
}

/* The page that people read. */
static void add_page(const cti_http *http, const ct_hub_request *r, cti_str *to)
{
    cti_str_printf(to, "%s/%s%s", cti_http_endpoint(http), r->source == CT_HUB_HUGGINGFACE ? "" : "models/", r->repo_id);
}

static void refused_access(const cti_http *http, const ct_hub_request *r, const cti_http_answer *a, cti_str *text)
{
    if (a->status == 403 || strcmp(a->error_code, "GatedRepo") == 0) {
        cti_str_printf(text, "'%s' is closed to %s (%ld): open ", r->repo_id, r->token != NULL ? "the owner of the token" : "the public",
                       a->status);
        add_page(http, r, text);
        cti_str_printf(text, " and accept its terms, then give a token of that account in %s", token_variable(r));
        if (r->token != NULL) {
            cti_str_printf(text, " (the one of %s was sent)", r->token_from);
        }
    } else if (r->token != NULL) {
        cti_str_printf(text, "'%s' does not take the token of %s, or has no '%s' (%ld)", cti_http_endpoint(http), r->token_from, r->repo_id,
                       a->status);
    } else {
        cti_str_printf(text, "'%s' has no '%s', or it is not public (%ld): check the name, or give a token in %s", cti_http_endpoint(http),
                       r->repo_id, a->status, token_variable(r));
    }
}

ct_status cti_hub_refusal(const cti_http *http, const ct_hub_request *request, const cti_http_answer *answer, const char *path, ct_err *err)
{
    const ct_hub_request *r = request;
    cti_str text = {.alloc = ct_alloc_system()};
    char shown[CTI_HUB_SHOWN_BYTES];
    ct_status st = CT_ERR_IO;
    if (answer->status == 401 || answer->status == 403) {
        refused_access(http, r, answer, &text);
    } else if (answer->status == 404 && strcmp(answer->error_code, "RevisionNotFound") == 0) {
        st = CT_ERR_NOT_FOUND;
        cti_str_printf(&text, "'%s' has no revision '%s' (404)%s", r->repo_id, cti_hub_revision(r),
                       r->revision != NULL ? r->source == CT_HUB_HUGGINGFACE ? "; most have 'main'" : "; most have 'master'" : "");
    } else if (answer->status == 404 && path != NULL) {
        st = CT_ERR_NOT_FOUND;
        cti_str_printf(&text, "'%s' has no '%s' any more (404); the same command lists it anew", r->repo_id,
                       cti_hub_shown(path, strlen(path), shown));
    } else if (answer->status == 404) {
        st = CT_ERR_NOT_FOUND;
        cti_str_printf(&text, "'%s' has no '%s', or not its revision '%s' (404)%s", cti_http_endpoint(http), r->repo_id, cti_hub_revision(r),
                       r->token == NULL ? "; what is private needs a token" : "");
    } else {
        cti_str_printf(&text, "'%s' answers %ld to the wish for %s%s", cti_http_endpoint(http), answer->status,
                       path == NULL ? "the listing of " : "", path == NULL ? r->repo_id : cti_hub_shown(path, strlen(path), shown));
    }
    if (answer->error_text[0] != '\0') {
        cti_str_printf(&text, "; it says: %s", answer->error_text);
    }
    (void)CT_FAIL(err, st, "%s", cti_str_text(&text));
    cti_str_deinit(&text);
    return st;
}

/* One answer of a listing. */
static ct_status list_page(cti_http *http, const ct_hub_request *r, const char *url, cti_hub_listing *listing, cti_http_answer *answer,
                           size_t *out_n_entries, ct_err *err)
{
    cti_str body = {.alloc = listing->alloc};
    ct_status st = cti_http_fetch(http, url, CTI_HUB_MAX_LISTING_BYTES, &body, answer, err);
    if (st == CT_OK && answer->status != 200) {
        st = cti_hub_refusal(http, r, answer, NULL, err);
    } else if (st == CT_OK) {
        st = cti_hub_listing_add(listing, r->source, cti_str_text(&body), body.len, out_n_entries, err);
        if (st != CT_OK) {
            ct_err_prefix(err, "'%s' at '%s'", r->repo_id, cti_http_endpoint(http));
        }
    }
    cti_str_deinit(&body);
    return st;
}

static ct_status list_huggingface(cti_http *http, const ct_hub_request *r, cti_hub_listing *listing, ct_err *err)
{
    cti_str url = {.alloc = listing->alloc};
    cti_http_answer answer;
    ct_status st = CT_OK;
    cti_str_printf(&url, "%s/api/models/%s/tree/", cti_http_endpoint(http), r->repo_id);
    cti_http_add_encoded(&url, cti_hub_revision(r), false);
    cti_str_add(&url, "?recursive=true&expand=false");
    for (int page = 0; st == CT_OK; page++) {
        size_t n;
        CT_TRY_GOTO(st, cti_str_check(&url, err), out);
        CT_TRY_GOTO(st, list_page(http, r, url.data, listing, &answer, &n, err), out);
        if (answer.next_url[0] == '\0') {
            break;
        }
        if (page == MAX_PAGES || strcmp(answer.next_url, url.data) == 0) {
            st = CT_FAIL(err, CT_ERR_FORMAT, "the listing of '%s' does not end: %s", r->repo_id,
                         page == MAX_PAGES ? "1000 pages" : "a page names itself as the next");
            break;
        }
        cti_str_reset(&url);
        cti_str_add(&url, answer.next_url);
    }
out:
    cti_str_deinit(&url);
    return st;
}

static ct_status list_modelscope_folder(cti_http *http, const ct_hub_request *r, const char *root, bool recursive, cti_hub_listing *listing,
                                        size_t *out_n_entries, ct_err *err)
{
    cti_str url = {.alloc = listing->alloc};
    cti_http_answer answer;
    cti_str_printf(&url, "%s/api/v1/models/%s/repo/files?Revision=", cti_http_endpoint(http), r->repo_id);
    cti_http_add_encoded(&url, cti_hub_revision(r), false);
    cti_str_printf(&url, "&Recursive=%s", recursive ? "True" : "False");
    if (root[0] != '\0') {
        cti_str_add(&url, "&Root=");
        cti_http_add_encoded(&url, root, true);
    }
    ct_status st = cti_str_check(&url, err);
    if (st == CT_OK) {
        st = list_page(http, r, url.data, listing, &answer, out_n_entries, err);
    }
    cti_str_deinit(&url);
    return st;
}

/* An answer ends at 3000 entries without a word. A folder whose answer is that long is listed alone, and each folder in it anew. */
static ct_status list_modelscope(cti_http *http, const ct_hub_request *r, cti_hub_listing *listing, ct_err *err)
{
    const char **todo = ct_arena_alloc(listing->arena, MAX_PAGES * sizeof *todo, err);
    if (todo == NULL) {
        return CT_ERR_MEMORY;
    }
    size_t n_todo = 1;
    todo[0] = "";
    for (size_t i = 0; i < n_todo; i++) {
        const size_t n_files = listing->n;
        size_t n;
        listing->n_folders = 0;
        CT_TRY(list_modelscope_folder(http, r, todo[i], true, listing, &n, err));
        if (n < CTI_HUB_CUT_AT) {
            continue;
        }
        listing->n = n_files;
        listing->n_folders = 0;
        CT_TRY(list_modelscope_folder(http, r, todo[i], false, listing, &n, err));
        if (n >= CTI_HUB_CUT_AT) {
            cti_hub_note(r, todo[i], "a folder of '%s' has %zu entries or more: the service lists no more of them", r->repo_id, n);
        }
        if (listing->n_folders > MAX_PAGES - n_todo) {
            return CT_FAIL(err, CT_ERR_FORMAT, "the listing of '%s' does not end: more than %d folders", r->repo_id, (int)MAX_PAGES);
        }
        for (size_t k = 0; k < listing->n_folders; k++) {
            todo[n_todo++] = listing->folders[k];
        }
    }
    return CT_OK;
}

ct_status cti_hub_list(cti_http *http, const ct_hub_request *request, cti_hub_listing *listing, ct_err *err)
{
    CT_TRY(request->source == CT_HUB_HUGGINGFACE ? list_huggingface(http, request, listing, err)
                                                 : list_modelscope(http, request, listing, err));
    cti_hub_listing_sort(listing);
    return CT_OK;
}

void cti_hub_add_file_url(const cti_http *http, const ct_hub_request *request, const char *path, cti_str *url)
{
    const char *revision = cti_hub_revision(request);
    if (request->source == CT_HUB_HUGGINGFACE) {
        cti_str_printf(url, "%s/%s/resolve/", cti_http_endpoint(http), request->repo_id);
        cti_http_add_encoded(url, revision, false);
        cti_str_add_char(url, '/');
        cti_http_add_encoded(url, path, true);
    } else {
        cti_str_printf(url, "%s/api/v1/models/%s/repo?Revision=", cti_http_endpoint(http), request->repo_id);
        cti_http_add_encoded(url, revision, false);
        cti_str_add(url, "&FilePath=");
        cti_http_add_encoded(url, path, false);
    }
}
