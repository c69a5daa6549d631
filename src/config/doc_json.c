/* SPDX-License-Identifier: Apache-2.0 */
/* JSON into nodes with places. jansson has read the text before: what comes here is well formed, only lines and columns are missing. */
#include <string.h>

#include "base/json.h"
#include "config/doc.h"

typedef struct scanner {
    cti_doc_reader *r;
    const char *p, *line_start;
    int32_t line;
    int depth;
    bool is_bad;
} scanner;

static void skip_blanks(scanner *s)
{
    for (; *s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'; s->p++) {
        if (*s->p == '\n') {
            s->line++;
            s->line_start = s->p + 1;
        }
    }
}

static cti_doc *new_here(scanner *s, cti_doc_kind kind)
{
    return cti_doc_new(s->r, kind, s->line, (int32_t)(s->p - s->line_start) + 1);
}

static uint32_t hex4(const char *p)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        v = v * 16 + (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return v;
}

/* One escape after the backslash at *p; returns the bytes written. */
static int unescape(const char **p, char *out)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char c = *(*p)++;
    const char *at = strchr(from, c);
    if (c != 'u') {
        *out = at != NULL ? to[at - from] : c;
        return 1;
    }
    uint32_t cp = hex4(*p);
    *p += 4;
    if (cp >= 0xd800 && cp < 0xdc00) { /* jansson made sure that the other half follows */
        cp = 0x10000 + ((cp - 0xd800) << 10) + (hex4(*p + 2) - 0xdc00);
        *p += 6;
    }
    return cti_utf8_encode(cp, out);
}

static ct_status scan_string(scanner *s, cti_doc **out)
{
    cti_doc *doc = new_here(s, CTI_DOC_SCALAR);
    const char *end = ++s->p;
    while (*end != '"') {
        end += *end == '\\' ? 2 : 1;
    }
    char *text = ct_arena_alloc(s->r->arena, (size_t)(end - s->p) + 1, s->r->err);
    if (doc == NULL || text == NULL) {
        return CT_ERR_MEMORY;
    }
    char *to = text;
    while (s->p < end) {
        if (*s->p == '\\') {
            s->p++;
            to += unescape(&s->p, to);
        } else {
            *to++ = *s->p++;
        }
    }
    s->p = end + 1;
    if (memchr(text, '\0', (size_t)(to - text)) != NULL) {
        cti_problem_add(s->r->problems, "%s:%d:%d: a text with a NUL character is not taken", s->r->name, doc->line, doc->column);
        s->is_bad = true;
    }
    doc->text = text;
    doc->is_quoted = true;
    doc->weight += (size_t)(to - text);
    *out = doc;
    return CT_OK;
}

static ct_status scan_value(scanner *s, cti_doc **out);

static ct_status scan_children(scanner *s, cti_doc *doc)
{
    const bool is_map = doc->kind == CTI_DOC_MAP;
    const char close = is_map ? '}' : ']';
    s->p++;
    for (skip_blanks(s); *s->p != close && !s->is_bad; skip_blanks(s)) {
        cti_doc *key = NULL, *value = NULL;
        if (*s->p == ',') {
            s->p++;
            continue;
        }
        if (is_map) {
            CT_TRY(scan_string(s, &key));
            skip_blanks(s);
            s->p++; /* ':' */
            skip_blanks(s);
        }
        CT_TRY(scan_value(s, &value));
        if (!s->is_bad) {
            CT_TRY(cti_doc_add(s->r, doc, key, value));
        }
    }
    s->p++;
    if (is_map && !s->is_bad && !cti_doc_check_keys(s->r, doc)) {
        s->is_bad = true;
    }
    return CT_OK;
}

static ct_status scan_value(scanner *s, cti_doc **out)
{
    if (*s->p == '"') {
        return scan_string(s, out);
    }
    if (*s->p == '{' || *s->p == '[') {
        cti_doc *doc = new_here(s, *s->p == '{' ? CTI_DOC_MAP : CTI_DOC_LIST);
        if (doc == NULL) {
            return CT_ERR_MEMORY;
        }
        if (++s->depth > CTI_DOC_MAX_DEPTH) {
            cti_problem_add(s->r->problems, "%s:%d:%d: nested more than 64 deep", s->r->name, doc->line, doc->column);
            s->is_bad = true;
            return CT_OK;
        }
        CT_TRY(scan_children(s, doc));
        s->depth--;
        *out = doc;
        return CT_OK;
    }
    cti_doc *doc = new_here(s, CTI_DOC_SCALAR);
    const size_t n = strcspn(s->p, ",]} \t\r\n");
    char *text = ct_arena_alloc(s->r->arena, n + 1, s->r->err);
    if (doc == NULL || text == NULL) {
        return CT_ERR_MEMORY;
    }
    memcpy(text, s->p, n);
    s->p += n;
    doc->text = text;
    doc->weight += n;
    *out = doc;
    return CT_OK;
}

ct_status cti_doc_read_json(cti_doc_reader *r, const char *text, size_t size, cti_doc **out_doc)
{
    json_t *json = NULL;
    ct_err why = {0};
    const ct_status st = cti_json_parse(text, size, r->name, &json, &why);
    json_decref(json);
    if (st == CT_ERR_MEMORY) {
        return CT_FAIL(r->err, st, "%s", why.message);
    }
    if (st != CT_OK) {
        cti_problem_add(r->problems, "%s", why.message);
        return CT_OK;
    }
    scanner s = {.r = r, .p = text, .line_start = text, .line = 1};
    cti_doc *doc = NULL;
    skip_blanks(&s);
    CT_TRY(scan_value(&s, &doc));
    *out_doc = s.is_bad ? NULL : doc;
    return CT_OK;
}
