/* SPDX-License-Identifier: Apache-2.0 */
/* The table of statuses and the record of the first failure. */
#include "ctitan/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

typedef struct status_row {
    const char *name, *sentence;
    int retryable, exit_code;
} status_row;

static const status_row STATUS_ROWS[] = {
#define STATUS_ROW(name, retry, code, sentence) [CT_##name] = {#name, sentence, retry, code},
    CT_STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
};

static const status_row *row_of(ct_status status)
{
    static const status_row unknown = {"unknown status", "a status that is none of ours", 0, 1};
    const int index = (int)status;
    return index >= 0 && index < (int)CT_STATUS_COUNT ? &STATUS_ROWS[index] : &unknown;
}

const char *ct_status_name(ct_status status)
{
    return row_of(status)->name;
}

const char *ct_status_sentence(ct_status status)
{
    return row_of(status)->sentence;
}

int ct_status_exit_code(ct_status status)
{
    return row_of(status)->exit_code;
}

int ct_status_is_retryable(ct_status status)
{
    return row_of(status)->retryable;
}

/* After a cut at `len` bytes: drops the begun character at the end, if there is one. */
static void drop_partial_character(char *text, size_t len)
{
    size_t start = len;
    while (start > 0 && len - start < 3 && ((unsigned char)text[start - 1] & 0xc0u) == 0x80u) {
        start--;
    }
    if (start == 0 || ((unsigned char)text[start - 1] & 0xc0u) != 0xc0u) {
        return; /* ASCII, or bytes that are no UTF-8 anyway */
    }
    start--;
    const unsigned char *p = (const unsigned char *)text;
    if (cti_utf8_len(p + start, p + len) == 0) {
        text[start] = '\0';
    }
}

ct_status ct_err_set(ct_err *err, ct_status status, const char *file, int line, const char *fmt, ...)
{
    if (err == NULL || err->status != CT_OK) {
        return status;
    }
    err->status = status;
    err->file = file;
    err->line = line;
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    if (n < 0) {
        err->message[0] = '\0';
    } else if ((size_t)n >= sizeof err->message) {
        drop_partial_character(err->message, sizeof err->message - 1);
    }
    return status;
}

void ct_err_prefix(ct_err *err, const char *fmt, ...)
{
    if (err == NULL || err->status == CT_OK) {
        return;
    }
    char prefix[CT_ERR_MESSAGE_BYTES / 2];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(prefix, sizeof prefix, fmt, args);
    va_end(args);
    if (n < 0) {
        return;
    }
    if ((size_t)n >= sizeof prefix) {
        drop_partial_character(prefix, sizeof prefix - 1);
    }
    const size_t head = strlen(prefix);
    const size_t shift = head + 2;
    size_t body = strlen(err->message);
    const bool cut = shift + body > sizeof err->message - 1;
    if (cut) {
        body = sizeof err->message - 1 - shift;
    }
    memmove(err->message + shift, err->message, body);
    memcpy(err->message, prefix, head);
    memcpy(err->message + head, ": ", 2);
    err->message[shift + body] = '\0';
    if (cut) {
        drop_partial_character(err->message, shift + body);
    }
}

void ct_assert_failed(const char *expr, const char *file, int line)
{
    (void)fprintf(stderr, "ctitan: internal error: '%s' does not hold at %s:%d\n", expr, file, line);
    abort();
}
