/* SPDX-License-Identifier: Apache-2.0 */
/* What `ctitan generate` goes on from. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/generate.h"

enum { MAX_FILE_BYTES = 1 << 30 };

void cti_prompts_deinit(cti_prompts *p)
{
    for (size_t i = 0; i < p->n; i++) {
        ct_alloc_free(p->alloc, p->items[i].place);
        ct_alloc_free(p->alloc, p->items[i].text);
        json_decref(p->items[i].messages);
        json_decref(p->items[i].tools);
        ct_tokens_deinit(&p->items[i].ids);
    }
    ct_alloc_free(p->alloc, p->items);
    *p = (cti_prompts){.alloc = p->alloc};
}

static ct_status add(cti_prompts *p, const char *place, cti_prompt **out, ct_err *err)
{
    if (p->n == p->cap) {
        const size_t cap = p->cap == 0 ? 8 : 2 * p->cap;
        cti_prompt *grown = CT_NEW_ARRAY(p->alloc, cti_prompt, cap, err);
        if (grown == NULL) {
            return CT_ERR_MEMORY;
        }
        if (p->n > 0) {
            memcpy(grown, p->items, p->n * sizeof *grown);
        }
        ct_alloc_free(p->alloc, p->items);
        p->items = grown;
        p->cap = cap;
    }
    char *copy = ct_alloc_strdup(p->alloc, place, err);
    if (copy == NULL) {
        return CT_ERR_MEMORY;
    }
    p->items[p->n] = (cti_prompt){.place = copy, .ids = {.alloc = p->alloc}};
    *out = &p->items[p->n++];
    return CT_OK;
}

ct_status cti_gen_check_utf8(const char *place, const char *text, size_t size, ct_err *err)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    while (p < end) {
        const int n = cti_utf8_len(p, end);
        if (n == 0) {
            return CT_FAIL(err, CT_ERR_USAGE, "%s: text in UTF-8 is wanted, byte %td is 0x%02x", place, p - (const unsigned char *)text + 1, *p);
        }
        p += n;
    }
    return CT_OK;
}

ct_status cti_prompts_add_text(cti_prompts *p, const char *place, const char *text, size_t size, ct_err *err)
{
    cti_prompt *item;
    CT_TRY(cti_gen_check_utf8(place, text, size, err));
    CT_TRY(add(p, place, &item, err));
    item->text = ct_alloc_zeroed(p->alloc, size + 1, 1, err);
    if (item->text == NULL) {
        return CT_ERR_MEMORY;
    }
    memcpy(item->text, text, size);
    item->text_size = size;
    return CT_OK;
}

/* A list of messages, or an object that holds them. */
static ct_status add_conversation(cti_prompts *p, const char *place, json_t *json, ct_err *err)
{
    json_t *messages = json_is_object(json) ? json_object_get(json, "messages") : json;
    cti_prompt *item;
    if (!json_is_array(messages) || json_array_size(messages) == 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: a list of messages, or an object with 'messages', is wanted", place);
    }
    CT_TRY(add(p, place, &item, err));
    item->messages = json_incref(messages);
    item->tools = json_is_object(json) ? json_incref(json_object_get(json, "tools")) : NULL;
    return CT_OK;
}

static ct_status add_json_line(cti_prompts *p, const char *place, const char *line, size_t size, ct_err *err)
{
    json_t *json = NULL;
    CT_TRY(cti_json_parse(line, size, place, &json, err));
    const json_t *text = json_is_object(json) ? json_object_get(json, "prompt") : json;
    ct_status st;
    if (json_is_object(json) && text != NULL && json_object_get(json, "messages") != NULL) {
        st = CT_FAIL(err, CT_ERR_FORMAT, "%s: 'prompt' and 'messages' are both there, one of them is wanted", place);
    } else if (json_is_string(text)) {
        st = cti_prompts_add_text(p, place, json_string_value(text), json_string_length(text), err);
    } else if (json_is_object(json) && json_object_get(json, "messages") != NULL) {
        st = add_conversation(p, place, json, err);
    } else {
        st = CT_FAIL(err, CT_ERR_FORMAT, "%s: a JSON string, or an object with 'prompt' or 'messages', is wanted", place);
    }
    json_decref(json);
    return st;
}

static ct_status read_all(const ct_alloc *alloc, const char *path, cti_str *out, ct_err *err)
{
    if (strcmp(path, "-") != 0) {
        char *data = NULL;
        size_t size;
        CT_TRY(cti_file_read(alloc, path, MAX_FILE_BYTES, &data, &size, err));
        cti_str_add_n(out, data, size);
        ct_alloc_free(alloc, data);
        return cti_str_check(out, err);
    }
    char buf[65536];
    size_t n;
    while (out->len <= MAX_FILE_BYTES && (n = fread(buf, 1, sizeof buf, stdin)) > 0) {
        cti_str_add_n(out, buf, n);
    }
    if (ferror(stdin) != 0 || out->len > MAX_FILE_BYTES) {
        return CT_FAIL(err, CT_ERR_IO, "standard input cannot be read, or is above 1 GiB");
    }
    return cti_str_check(out, err);
}

ct_status cti_prompts_add_lines(cti_prompts *p, const char *path, ct_err *err)
{
    const bool is_json = cti_ends_with(path, ".jsonl") || cti_ends_with(path, ".ndjson") || cti_ends_with(path, ".json");
    cti_str text = {.alloc = p->alloc}, place = {.alloc = p->alloc};
    ct_status st = read_all(p->alloc, path, &text, err);
    const char *at = cti_str_text(&text), *end = at + text.len;
    at += strncmp(at, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* a byte order mark */
    const size_t before = p->n;
    for (int64_t number = 1; st == CT_OK && at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((newline != NULL ? newline : end) - at);
        cti_str_reset(&place);
        cti_str_printf(&place, "%s:%" PRId64, strcmp(path, "-") == 0 ? "standard input" : path, number);
        st = cti_str_check(&place, err);
        if (st == CT_OK) {
            size -= size > 0 && at[size - 1] == '\r';
            st = is_json ? add_json_line(p, place.data, at, size, err) : cti_prompts_add_text(p, place.data, at, size, err);
        }
        at = newline != NULL ? newline + 1 : end;
    }
    if (st == CT_OK && p->n == before) {
        st = CT_FAIL(err, CT_ERR_USAGE, "--prompts: '%s' is empty", path);
    }
    cti_str_deinit(&text);
    cti_str_deinit(&place);
    return st;
}

ct_status cti_prompts_add_messages(cti_prompts *p, const char *path, ct_err *err)
{
    json_t *json = NULL;
    cti_str text = {.alloc = p->alloc};
    ct_status st = read_all(p->alloc, path, &text, err);
    st = st == CT_OK ? cti_json_parse(cti_str_text(&text), text.len, path, &json, err) : st;
    st = st == CT_OK ? add_conversation(p, path, json, err) : st;
    cti_str_deinit(&text);
    json_decref(json);
    return st;
}
