/* SPDX-License-Identifier: Apache-2.0 */
/* One GET through libcurl, which is opened here. Redirects are followed by hand: which host gets the token is our decision, and not that
 * of the library's version (before 7.83 a redirect to another port kept it). */
#include "hub/hub_internal.h"

#ifndef CTI_HUB_HAS_CURL

ct_status cti_http_create(const ct_alloc *alloc, const ct_hub_request *request, cti_http **out_http, ct_err *err)
{
    (void)alloc;
    (void)request;
    *out_http = NULL;
    return CT_FAIL(err, CT_ERR_UNSUPPORTED,
                   "this ctitan was built without libcurl's headers; install libcurl4-openssl-dev, configure and build it again");
}
void cti_http_destroy(cti_http **http)
{
    *http = NULL;
}
const char *cti_http_endpoint(const cti_http *http)
{
    (void)http;
    return "";
}
const ct_hub_request *cti_http_request(const cti_http *http)
{
    (void)http;
    return NULL;
}
ct_status cti_http_try(cti_http *http, const cti_http_get *get, cti_http_answer *out_answer, ct_err *err)
{
    (void)http;
    (void)get;
    (void)out_answer;
    return CT_FAIL(err, CT_ERR_UNSUPPORTED, "no libcurl");
}

#else

#include <curl/curl.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define CURL_FUNCTIONS(X)                                                                                                          \
    X(global_init) X(global_cleanup) X(easy_init) X(easy_setopt) X(easy_perform) X(easy_getinfo) X(easy_reset) X(easy_cleanup)     \
    X(easy_strerror) X(slist_append) X(slist_free_all) X(url) X(url_set) X(url_get) X(url_cleanup) X(free)

enum { MAX_REDIRECTS = 10, ERROR_BODY_BYTES = 4096 };

/* Whom a URL speaks to. */
typedef struct origin {
    char scheme[8], host[256], port[8];
} origin;

struct cti_http {
    const ct_alloc *alloc;
    const ct_hub_request *request; /* borrowed */
    void *library;
    struct {
#define CURL_MEMBER(name) __typeof__(curl_##name) *name;
        CURL_FUNCTIONS(CURL_MEMBER)
#undef CURL_MEMBER
    } curl;
    bool is_global; /* global_init() was called */
    CURL *easy;
    cti_str endpoint;
    origin home;
    char error[CURL_ERROR_SIZE];
};

/* One request under way. */
typedef struct exchange {
    cti_http *http;
    const cti_http_get *get;
    cti_http_answer *answer;
    bool has_begun;
    int64_t n_bytes, max_bytes;
    char said[ERROR_BODY_BYTES]; /* the body of a refusal */
    size_t n_said;
    ct_status status; /* of a callback */
    ct_err *err;
} exchange;

static ct_status open_library(cti_http *h, ct_err *err)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && h->library == NULL; i++) {
        h->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (h->library == NULL) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "libcurl.so.4 cannot be opened; install the package libcurl4 (apt-get install libcurl4)");
    }
    void *symbol;
#define CURL_SYMBOL(name)                                                                                                     \
    symbol = dlsym(h->library, "curl_" #name);                                                                                \
    if (symbol == NULL) {                                                                                                     \
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "libcurl.so.4 has no curl_" #name ": it is older than 7.66");                 \
    }                                                                                                                         \
    memcpy(&h->curl.name, &symbol, sizeof h->curl.name); /* POSIX: a data pointer that holds a function */
    CURL_FUNCTIONS(CURL_SYMBOL)
#undef CURL_SYMBOL
    h->is_global = h->curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    h->easy = h->is_global ? h->curl.easy_init() : NULL;
    return h->easy != NULL ? CT_OK : CT_FAIL(err, CT_ERR_UNSUPPORTED, "libcurl does not start");
}

/* False where url is no http or https URL of one host, or has a user or a password in it. */
static bool origin_of(const cti_http *h, const char *url, origin *out)
{
    bool is_good = false;
    char *scheme = NULL, *host = NULL, *port = NULL, *user = NULL, *password = NULL;
    CURLU *u = h->curl.url();
    if (u != NULL && h->curl.url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
        h->curl.url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK && h->curl.url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        h->curl.url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
        h->curl.url_get(u, CURLUPART_USER, &user, 0) != CURLUE_OK && h->curl.url_get(u, CURLUPART_PASSWORD, &password, 0) != CURLUE_OK) {
        is_good = (strcasecmp(scheme, "http") == 0 || strcasecmp(scheme, "https") == 0) &&
                  (size_t)snprintf(out->scheme, sizeof out->scheme, "%s", scheme) < sizeof out->scheme &&
                  (size_t)snprintf(out->host, sizeof out->host, "%s", host) < sizeof out->host &&
                  (size_t)snprintf(out->port, sizeof out->port, "%s", port) < sizeof out->port;
    }
    char *const parts[] = {scheme, host, port, user, password};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        h->curl.free(parts[i]);
    }
    if (u != NULL) {
        h->curl.url_cleanup(u);
    }
    return is_good;
}

static bool is_same(const origin *a, const origin *b)
{
    return strcasecmp(a->scheme, b->scheme) == 0 && strcasecmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0;
}

/* This machine, which nobody listens in on. */
static bool is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 || strcmp(host, "::1") == 0 ||
           (strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == strlen(host));
}

static ct_status check_token(const cti_http *h, ct_err *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/="; /* RFC 6750, 2.1 */
    const ct_hub_request *r = h->request;
    if (r->token == NULL) {
        return CT_OK;
    }
    if (r->token[0] == '\0' || strspn(r->token, allowed) != strlen(r->token)) {
        return CT_FAIL(err, CT_ERR_USAGE, "the token of %s is none: it is empty or has characters that no token has", r->token_from);
    }
    if (strcasecmp(h->home.scheme, "https") != 0 && !is_loopback(h->home.host) && !r->allow_http_token) {
        return CT_FAIL(err, CT_ERR_USAGE,
                       "the token of %s would go to '%s' unencrypted; use https, or unset it, or allow that with --allow-http-token",
                       r->token_from, cti_str_text(&h->endpoint));
    }
    return CT_OK;
}

ct_status cti_http_create(const ct_alloc *alloc, const ct_hub_request *request, cti_http **out_http, ct_err *err)
{
    *out_http = NULL;
    cti_http *h = CT_NEW(alloc, cti_http, err);
    if (h == NULL) {
        return CT_ERR_MEMORY;
    }
    *h = (cti_http){.alloc = alloc, .request = request, .endpoint = {.alloc = alloc}};
    ct_status st;
    CT_TRY_GOTO(st, open_library(h, err), fail);
    cti_str_printf(&h->endpoint, "%s%s", strstr(request->endpoint, "://") == NULL ? "https://" : "", request->endpoint);
    CT_TRY_GOTO(st, cti_str_check(&h->endpoint, err), fail);
    while (h->endpoint.len > 0 && h->endpoint.data[h->endpoint.len - 1] == '/') {
        h->endpoint.data[--h->endpoint.len] = '\0';
    }
    if (!origin_of(h, h->endpoint.data, &h->home) || strpbrk(h->endpoint.data, "?#") != NULL) {
        char shown[CTI_HUB_SHOWN_BYTES];
        const bool has_user = strchr(h->endpoint.data, '@') != NULL; /* may be a password: not shown */
        st = CT_FAIL(err, CT_ERR_USAGE, "'%s' is no endpoint: https://host is wanted, without user or query",
                     has_user ? "***" : cti_hub_shown(request->endpoint, strlen(request->endpoint), shown));
        goto fail;
    }
    CT_TRY_GOTO(st, check_token(h, err), fail);
    *out_http = h;
    return CT_OK;
fail:
    cti_http_destroy(&h);
    return st;
}

void cti_http_destroy(cti_http **http)
{
    cti_http *h = *http;
    if (h == NULL) {
        return;
    }
    if (h->easy != NULL) {
        h->curl.easy_cleanup(h->easy);
    }
    if (h->is_global) {
        h->curl.global_cleanup();
    }
    /* The library stays open: what it opened in turn does not all survive being closed. */
    cti_str_deinit(&h->endpoint);
    ct_alloc_free(h->alloc, h);
    *http = NULL;
}

const char *cti_http_endpoint(const cti_http *http)
{
    return cti_str_text(&http->endpoint);
}

const ct_hub_request *cti_http_request(const cti_http *http)
{
    return http->request;
}

/* --- what libcurl calls --- */

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
    exchange *x = ctx;
    cti_http_read_header(x->answer, data, size * n, x->http->request->token);
    return size * n;
}

static bool is_content(long status)
{
    return status == 200 || status == 206;
}

static ct_status begin(exchange *x)
{
    curl_off_t length = -1;
    if (x->has_begun) {
        return CT_OK;
    }
    x->has_begun = true;
    if (x->http->curl.easy_getinfo(x->http->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length) == CURLE_OK) {
        x->answer->content_bytes = (int64_t)length;
    }
    return x->get->begin(x->get->ctx, x->answer, &x->max_bytes, x->err);
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
    exchange *x = ctx;
    const size_t bytes = size * n;
    if (!is_content(x->answer->status)) {
        const size_t take = bytes < sizeof x->said - x->n_said ? bytes : sizeof x->said - x->n_said;
        memcpy(x->said + x->n_said, data, take);
        x->n_said += take;
        return bytes; /* the rest of a long refusal is passed over */
    }
    x->status = begin(x);
    x->n_bytes += (int64_t)bytes;
    if (x->status == CT_OK && x->n_bytes > x->max_bytes) {
        x->status = CT_FAIL(x->err, CT_ERR_FORMAT, "the server sends more than the %" PRId64 " bytes that are wanted", x->max_bytes);
    }
    if (x->status == CT_OK) {
        x->status = x->get->body(x->get->ctx, data, bytes, x->err);
    }
    return x->status == CT_OK ? bytes : 0;
}

/* Not 0 ends the transfer. */
static int on_progress(void *ctx, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    (void)total, (void)up_total, (void)up_now;
    const exchange *x = ctx;
    const ct_hub_request *r = x->http->request;
    const bool is_endless_refusal = !is_content(x->answer->status) && now > (curl_off_t)(1 << 20);
    return (r->stop != NULL && *r->stop != 0) || is_endless_refusal;
}

/* --- one request --- */

static void set_options(exchange *x, const char *url, struct curl_slist *headers, const char *range)
{
    cti_http *h = x->http;
    const long timeout_s = h->request->timeout_s < 1.0 ? 1 : (long)h->request->timeout_s;
    h->curl.easy_reset(h->easy);
    h->error[0] = '\0';
    h->curl.easy_setopt(h->easy, CURLOPT_URL, url);
    h->curl.easy_setopt(h->easy, CURLOPT_NOSIGNAL, 1L);
    h->curl.easy_setopt(h->easy, CURLOPT_FOLLOWLOCATION, 0L);
    h->curl.easy_setopt(h->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    h->curl.easy_setopt(h->easy, CURLOPT_USERAGENT, "ctitan/" CT_VERSION);
    h->curl.easy_setopt(h->easy, CURLOPT_HTTPHEADER, headers);
    h->curl.easy_setopt(h->easy, CURLOPT_ERRORBUFFER, h->error);
    h->curl.easy_setopt(h->easy, CURLOPT_CONNECTTIMEOUT, timeout_s);
    h->curl.easy_setopt(h->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    h->curl.easy_setopt(h->easy, CURLOPT_LOW_SPEED_TIME, timeout_s);
    h->curl.easy_setopt(h->easy, CURLOPT_BUFFERSIZE, 256L * 1024);
    h->curl.easy_setopt(h->easy, CURLOPT_HEADERFUNCTION, on_header);
    h->curl.easy_setopt(h->easy, CURLOPT_HEADERDATA, x);
    h->curl.easy_setopt(h->easy, CURLOPT_WRITEFUNCTION, on_body);
    h->curl.easy_setopt(h->easy, CURLOPT_WRITEDATA, x);
    h->curl.easy_setopt(h->easy, CURLOPT_NOPROGRESS, 0L);
    h->curl.easy_setopt(h->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    h->curl.easy_setopt(h->easy, CURLOPT_XFERINFODATA, x);
    if (h->request->ca_file != NULL) {
        h->curl.easy_setopt(h->easy, CURLOPT_CAINFO, h->request->ca_file);
    }
    if (range != NULL) {
        h->curl.easy_setopt(h->easy, CURLOPT_RANGE, range);
    }
}

static ct_status add_header(const cti_http *h, struct curl_slist **list, ct_err *err, const char *fmt, ...) CT_PRINTF(4, 5);
static ct_status add_header(const cti_http *h, struct curl_slist **list, ct_err *err, const char *fmt, ...)
{
    cti_str line = {.alloc = h->alloc};
    va_list args;
    va_start(args, fmt);
    cti_str_vprintf(&line, fmt, args);
    va_end(args);
    ct_status st = cti_str_check(&line, err);
    struct curl_slist *longer = st == CT_OK ? h->curl.slist_append(*list, line.data) : NULL;
    if (longer != NULL) {
        *list = longer;
    } else if (st == CT_OK) {
        st = CT_FAIL(err, CT_ERR_MEMORY, "no memory for a request");
    }
    cti_str_deinit(&line);
    return st;
}

static ct_status add_headers(const exchange *x, bool is_home, struct curl_slist **list, ct_err *err)
{
    const ct_hub_request *r = x->http->request;
    if (x->get->from > 0 && x->get->if_range != NULL) {
        CT_TRY(add_header(x->http, list, err, "If-Range: %s", x->get->if_range));
    }
    if (r->token != NULL && is_home) {
        CT_TRY(add_header(x->http, list, err, "Authorization: Bearer %s", r->token));
        if (r->source == CT_HUB_MODELSCOPE) { /* its older services look there */
            CT_TRY(add_header(x->http, list, err, "Cookie: m_session_id=%s", r->token));
        }
    }
    return CT_OK;
}

/* What libcurl's code means here. */
static ct_status trouble(exchange *x, CURLcode code, const char *host)
{
    cti_http *h = x->http;
    const ct_hub_request *r = h->request;
    if (x->status != CT_OK) { /* of a callback, with its message */
        return x->status;
    }
    if (r->stop != NULL && *r->stop != 0) {
        return cti_http_stopped(x->err);
    }
    char shown[CTI_HUB_SHOWN_BYTES];
    const char *said = h->error[0] != '\0' ? h->error : h->curl.easy_strerror(code);
    cti_http_quote(said, strlen(said), r->token, shown);
    const bool is_tls = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR || code == CURLE_SSL_CERTPROBLEM ||
                        code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CIPHER || code == CURLE_SSL_ISSUER_ERROR;
    if (is_tls) {
        return CT_FAIL(x->err, CT_ERR_IO, "no secure connection to '%s': %s", host, shown);
    }
    if (code == CURLE_OUT_OF_MEMORY) {
        return CT_FAIL(x->err, CT_ERR_MEMORY, "libcurl is out of memory");
    }
    if (code == CURLE_ABORTED_BY_CALLBACK) {
        return CT_FAIL(x->err, CT_ERR_FORMAT, "'%s' answers %ld and does not end its words", host, x->answer->status);
    }
    x->answer->is_retryable = code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_RESOLVE_HOST ||
                              code == CURLE_COULDNT_CONNECT || code == CURLE_PARTIAL_FILE || code == CURLE_OPERATION_TIMEDOUT ||
                              code == CURLE_GOT_NOTHING || code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR ||
                              code == CURLE_HTTP2 || code == CURLE_HTTP2_STREAM;
    if (code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING) {
        return CT_FAIL(x->err, CT_ERR_PEER, "'%s' cut the connection (%s)", host, shown);
    }
    return CT_FAIL(x->err, x->answer->is_retryable ? CT_ERR_PEER : CT_ERR_IO, "'%s' cannot be reached: %s", host, shown);
}

static ct_status perform(exchange *x, const char *url, const origin *to)
{
    cti_http *h = x->http;
    struct curl_slist *headers = NULL;
    char range[32];
    (void)snprintf(range, sizeof range, "%" PRId64 "-", x->get->from);
    ct_status st = add_headers(x, is_same(to, &h->home), &headers, x->err);
    if (st == CT_OK) {
        set_options(x, url, headers, x->get->from > 0 ? range : NULL);
        const CURLcode code = h->curl.easy_perform(h->easy);
        curl_off_t retry_after = 0;
        if (h->curl.easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &retry_after) == CURLE_OK &&
            (double)retry_after > x->answer->retry_after_s) {
            x->answer->retry_after_s = (double)retry_after;
        }
        st = code != CURLE_OK ? trouble(x, code, to->host) : CT_OK;
        if (st == CT_OK && is_content(x->answer->status)) {
            st = begin(x); /* an empty body */
        }
        if (!is_content(x->answer->status)) {
            cti_http_read_refusal(x->answer, x->said, x->n_said, h->request->token);
        }
    }
    h->curl.slist_free_all(headers);
    return st;
}

static bool is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

ct_status cti_http_try(cti_http *http, const cti_http_get *get, cti_http_answer *out_answer, ct_err *err)
{
    cti_str url = {.alloc = http->alloc};
    ct_status st = CT_OK;
    origin to = {0};
    cti_str_add(&url, get->url);
    *out_answer = (cti_http_answer){.content_bytes = -1, .range_from = -1, .range_total = -1};
    for (int hop = 0; st == CT_OK; hop++) {
        const bool was_secure = hop > 0 && strcasecmp(to.scheme, "https") == 0;
        exchange x = {.http = http, .get = get, .answer = out_answer, .err = err};
        char shown[CTI_HUB_SHOWN_BYTES];
        CT_TRY_GOTO(st, cti_str_check(&url, err), out);
        if (!origin_of(http, url.data, &to)) {
            st = CT_FAIL(err, CT_ERR_FORMAT, "the server points to what is no http or https address: '%s'", cti_hub_shown(url.data, url.len, shown));
            break;
        }
        if (was_secure && strcasecmp(to.scheme, "https") != 0) {
            st = CT_FAIL(err, CT_ERR_IO, "the server points from https to the unencrypted 'http://%s'", to.host);
            break;
        }
        CT_TRY_GOTO(st, perform(&x, url.data, &to), out);
        if (!is_redirect(out_answer->status)) {
            break;
        }
        char *next = NULL; /* libcurl's: absolute */
        if (http->curl.easy_getinfo(http->easy, CURLINFO_REDIRECT_URL, &next) != CURLE_OK || next == NULL || hop == MAX_REDIRECTS) {
            st = CT_FAIL(err, CT_ERR_IO, next == NULL ? "'%s' points elsewhere and does not say where" : "more than 10 redirects, the last at '%s'",
                         to.host);
            break;
        }
        cti_str_reset(&url);
        cti_str_add(&url, next);
    }
out:
    cti_str_deinit(&url);
    return st;
}

#endif
