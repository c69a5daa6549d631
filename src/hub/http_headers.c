/* SPDX-License-Identifier: Apache-2.0 */
/* What a server's headers and refusals say. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "hub/hub_internal.h"

void cti_http_quote(const char *text, size_t size, const char *token, char to[CTI_HUB_SHOWN_BYTES])
{
    if (token != NULL && memmem(text, size, token, strlen(token)) != NULL) {
        (void)snprintf(to, CTI_HUB_SHOWN_BYTES, "(its words hold the token and are not shown)");
        return;
    }
    (void)cti_hub_shown(text, size, to);
}

/* `<url>; rel="next"` among the comma-separated links of RFC 8288. */
static void read_link(cti_http_answer *a, const char *value, size_t size)
{
    for (const char *at = value, *end = value + size; at < end;) {
        const char *open = memchr(at, '<', (size_t)(end - at));
        const char *close = open != NULL ? memchr(open, '>', (size_t)(end - open)) : NULL;
        if (close == NULL) {
            return;
        }
        const char *next = memchr(close, '<', (size_t)(end - close));
        const size_t n_params = (size_t)((next != NULL ? next : end) - close), n_url = (size_t)(close - open - 1);
        if ((memmem(close, n_params, "rel=\"next\"", 10) != NULL || memmem(close, n_params, "rel=next", 8) != NULL) &&
            n_url < sizeof a->next_url) {
            memcpy(a->next_url, open + 1, n_url);
            a->next_url[n_url] = '\0';
            return;
        }
        at = next != NULL ? next : end;
    }
}

static void copy_value(char *to, size_t cap, const char *value, size_t size)
{
    if (size < cap) {
        memcpy(to, value, size);
        to[size] = '\0';
    }
}

/* "api";r=0;t=55: no request is left for 55 seconds (draft-ietf-httpapi-ratelimit-headers); what Hugging Face sends with 429. */
static void read_ratelimit(cti_http_answer *a, const char *value)
{
    const char *t = strstr(value, ";t=");
    unsigned seconds;
    if (t != NULL && sscanf(t + 3, "%9u", &seconds) == 1 && a->status == 429) {
        a->retry_after_s = (double)seconds;
    }
}

static void read_range(cti_http_answer *a, const char *value)
{
    int64_t from, to, total;
    const int n = sscanf(value, "bytes %18" SCNd64 "-%18" SCNd64 "/%18" SCNd64, &from, &to, &total);
    a->range_from = n >= 2 ? from : -1;
    a->range_total = n == 3 ? total : -1;
}

static void read_named(cti_http_answer *a, const char *name, size_t n_name, const char *value, size_t size, const char *token)
{
    char text[512] = "";
    copy_value(text, sizeof text, value, size);
#define IS(wanted) (n_name == sizeof(wanted) - 1 && strncasecmp(name, wanted, n_name) == 0)
    if (IS("etag") && text[0] == '"') {
        copy_value(a->etag, sizeof a->etag, value, size);
    } else if (IS("content-range")) {
        read_range(a, text);
    } else if (IS("link")) {
        read_link(a, value, size);
    } else if (IS("ratelimit")) {
        read_ratelimit(a, text);
    } else if (IS("x-error-code")) {
        copy_value(a->error_code, sizeof a->error_code, value, size);
    } else if (IS("x-error-message")) {
        cti_http_quote(value, size, token, a->error_text);
    }
#undef IS
}

void cti_http_read_header(cti_http_answer *answer, const char *line, size_t size, const char *token)
{
    const char *end = line + size;
    if (size >= 5 && memcmp(line, "HTTP/", 5) == 0) { /* another answer: what came before was 100 or the like */
        const char *blank = memchr(line, ' ', size);
        char digits[4] = "";
        *answer = (cti_http_answer){.content_bytes = -1, .range_from = -1, .range_total = -1};
        if (blank != NULL && end - blank > 3) {
            memcpy(digits, blank + 1, 3);
            (void)sscanf(digits, "%3ld", &answer->status);
        }
        return;
    }
    const char *colon = memchr(line, ':', size);
    if (colon == NULL) {
        return;
    }
    const char *value = colon + 1;
    while (value < end && (*value == ' ' || *value == '\t')) {
        value++;
    }
    while (end > value && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ')) {
        end--;
    }
    read_named(answer, line, (size_t)(colon - line), value, (size_t)(end - value), token);
}

/* Hugging Face {"error": ...}, ModelScope {"Message": ...}. */
void cti_http_read_refusal(cti_http_answer *answer, const char *body, size_t size, const char *token)
{
    json_t *root = NULL;
    if (answer->error_text[0] != '\0' || size == 0 || cti_json_parse(body, size, "", &root, NULL) != CT_OK) {
        return;
    }
    const json_t *text = json_object_get(root, "Message");
    text = json_is_string(text) ? text : json_object_get(root, "error");
    if (json_is_string(text)) {
        cti_http_quote(json_string_value(text), json_string_length(text), token, answer->error_text);
    }
    json_decref(root);
}
