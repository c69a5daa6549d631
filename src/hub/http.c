/* SPDX-License-Identifier: Apache-2.0 */
/* What stands around one GET: further tries, bodies in memory, encoded URLs, notes. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "hub/hub_internal.h"

enum { MAX_WAIT_S = 60, MAX_RETRY_AFTER_S = 600 };

void cti_hub_note(const ct_hub_request *request, const char *path, const char *fmt, ...)
{
    if (request->report == NULL) {
        return;
    }
    char text[1024], shown[CTI_HUB_SHOWN_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args); /* cut: a note */
    va_end(args);
    const ct_hub_event event = {.kind = CT_HUB_NOTE, .path = cti_hub_shown(path, strlen(path), shown), .text = text};
    request->report(request->report_ctx, &event);
}

void cti_http_add_encoded(cti_str *to, const char *text, bool keep_slash)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    for (const char *c = text; *c != '\0'; c++) {
        if (strchr(plain, *c) != NULL || (keep_slash && *c == '/')) {
            cti_str_add_char(to, *c);
        } else {
            cti_str_printf(to, "%%%02X", (unsigned)(unsigned char)*c);
        }
    }
}

bool cti_http_status_is_retryable(long status)
{
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

ct_status cti_http_stopped(ct_err *err)
{
    return CT_FAIL(err, CT_ERR_STOPPED, "stopped; the same command goes on where this one ended");
}

ct_status cti_http_status_trouble(const cti_http *http, const cti_http_answer *answer, ct_err *err)
{
    return CT_FAIL(err, CT_ERR_PEER, "'%s' answers %ld%s%s%s", cti_http_endpoint(http), answer->status,
                   answer->status == 429 ? " (too many requests)" : "", answer->error_text[0] != '\0' ? ": " : "", answer->error_text);
}

static bool is_stopped(const ct_hub_request *r)
{
    return r->stop != NULL && *r->stop != 0;
}

/* Slices, for a handler may run between the look at `stop` and the sleep. */
static void sleep_s(const ct_hub_request *r, double seconds)
{
    const int64_t start = cti_now_ns();
    for (double left = seconds; left > 0.0 && !is_stopped(r); left = seconds - cti_seconds_since(start)) {
        const double slice = fmin(left, 0.2);
        (void)nanosleep(&(struct timespec){.tv_nsec = (long)(slice * 1e9)}, NULL);
    }
}

ct_status cti_http_wait(cti_http *http, cti_http_tries *tries, const cti_http_answer *answer, const char *path, const ct_err *why,
                        ct_err *err)
{
    const ct_hub_request *r = cti_http_request(http);
    if (is_stopped(r) && why->status != CT_ERR_STOPPED) {
        return cti_http_stopped(err);
    }
    const bool is_last = tries->n_failed >= r->retries;
    if (!answer->is_retryable || is_last || answer->retry_after_s > MAX_RETRY_AFTER_S) {
        (void)CT_FAIL(err, why->status, "%s", why->message);
        if (answer->is_retryable && err != NULL && err->status == why->status) {
            char more[96] = "";
            if (answer->retry_after_s > MAX_RETRY_AFTER_S) {
                (void)snprintf(more, sizeof more, "; it asks to wait %.0f seconds", answer->retry_after_s);
            } else if (tries->n_failed > 0) {
                (void)snprintf(more, sizeof more, "; %d tries", tries->n_failed + 1);
            }
            const size_t n = strlen(err->message);
            (void)snprintf(err->message + n, sizeof err->message - n, "%s", more);
        }
        return why->status;
    }
    const double doubled = r->retry_wait_s * (double)(INT64_C(1) << (tries->n_failed < 20 ? tries->n_failed : 20));
    const double wait = fmax(fmin(doubled, MAX_WAIT_S), answer->retry_after_s);
    tries->n_failed++;
    cti_hub_note(r, path, "%s; trying again in %.3g s (%d of %d)", why->message, wait, tries->n_failed, r->retries);
    sleep_s(r, wait);
    return is_stopped(r) ? cti_http_stopped(err) : CT_OK;
}

typedef struct memory_body {
    cti_str *to;
    int64_t max_bytes;
} memory_body;

static ct_status memory_begin(void *ctx, const cti_http_answer *answer, int64_t *out_max_bytes, ct_err *err)
{
    (void)answer;
    (void)err;
    memory_body *m = ctx;
    cti_str_reset(m->to);
    *out_max_bytes = m->max_bytes;
    return CT_OK;
}

static ct_status memory_add(void *ctx, const void *data, size_t size, ct_err *err)
{
    memory_body *m = ctx;
    cti_str_add_n(m->to, data, size);
    return cti_str_check(m->to, err);
}

ct_status cti_http_fetch(cti_http *http, const char *url, int64_t max_bytes, cti_str *body, cti_http_answer *out_answer, ct_err *err)
{
    memory_body m = {.to = body, .max_bytes = max_bytes};
    const cti_http_get get = {.url = url, .begin = memory_begin, .body = memory_add, .ctx = &m};
    cti_http_tries tries = {0};
    for (;;) {
        ct_err why = {0};
        const ct_status st = cti_http_try(http, &get, out_answer, &why);
        if (st == CT_OK && !cti_http_status_is_retryable(out_answer->status)) {
            return CT_OK;
        }
        if (st == CT_OK) {
            out_answer->is_retryable = true;
            (void)cti_http_status_trouble(http, out_answer, &why);
        }
        CT_TRY(cti_http_wait(http, &tries, out_answer, "", &why, err));
    }
}
