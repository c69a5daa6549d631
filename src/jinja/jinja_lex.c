/* SPDX-License-Identifier: Apache-2.0 */
/* A template's text to tokens: data between tags, with the rules on blanks round tags, and what stands inside
 * tags. */
#include <stdlib.h>

#include "jinja/jinja_internal.h"

enum { MAX_TEMPLATE_BYTES = 4 << 20 };

ct_status cti_jn_syntax_error(cti_jn_compiler *c, int32_t line, int32_t col, ct_status status,
                              const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return CT_FAIL(c->err, status, "'%s', line %d, column %d: %s", c->template->name, line, col, text);
}

void *cti_jn_compile_alloc(cti_jn_compiler *c, size_t count, size_t size_bytes)
{
    return ct_arena_alloc(c->template->arena, count * size_bytes + 1, c->err);
}

/* Line and column of src[at]; places only ever go forward. */
static void count_to(cti_jn_compiler *c, size_t at)
{
    for (const char *end = c->src + at; c->counted < end; c->counted++) {
        if (*c->counted == '\n') {
            c->line++;
            c->col = 1;
        } else if (((unsigned char)*c->counted & 0xc0) != 0x80) {
            c->col++;
        }
    }
}

static ct_status fail_at(cti_jn_compiler *c, size_t at, const char *message)
{
    count_to(c, at);
    return cti_jn_syntax_error(c, c->line, c->col, CT_ERR_FORMAT, "%s", message);
}

static ct_status push(cti_jn_compiler *c, cti_jn_token_kind kind, size_t at, const char *p, size_t n,
                      cti_jn_token **out)
{
    if (c->n_tokens == c->cap_tokens) {
        const size_t cap = c->cap_tokens == 0 ? 256 : 2 * c->cap_tokens;
        cti_jn_token *grown = ct_alloc_resize(c->template->alloc, c->tokens, cap, sizeof *grown, c->err);
        if (grown == NULL) {
            return CT_ERR_MEMORY;
        }
        c->tokens = grown;
        c->cap_tokens = cap;
    }
    count_to(c, at);
    cti_jn_token *t = &c->tokens[c->n_tokens++];
    *t = (cti_jn_token){.kind = kind, .line = c->line, .col = c->col, .p = p, .n = n};
    if (out != NULL) {
        *out = t;
    }
    return CT_OK;
}

static bool looking_at(const cti_jn_compiler *c, size_t at, const char *text)
{
    const size_t n = strlen(text);
    return c->n - at >= n && memcmp(c->src + at, text, n) == 0;
}

static size_t skip_blanks(const cti_jn_compiler *c, size_t at)
{
    return at + cti_jn_blank_front(c->src + at, c->n - at);
}

static bool is_sign(char ch)
{
    return ch == '-' || ch == '+';
}

/* The end of what closes a block or comment at `at`: [+-]CLOSE, blanks after '-', a newline after a bare one
 * where `trims`. 0 where it is none. */
static size_t closing(const cti_jn_compiler *c, size_t at, const char *close, bool takes_plus, bool trims)
{
    if (at < c->n && (c->src[at] == '-' || (takes_plus && c->src[at] == '+')) &&
        looking_at(c, at + 1, close)) {
        const size_t end = at + 1 + strlen(close);
        return c->src[at] == '-' ? skip_blanks(c, end) : end;
    }
    if (looking_at(c, at, close)) {
        const size_t end = at + strlen(close);
        return trims && end < c->n && c->src[end] == '\n' ? end + 1 : end;
    }
    return 0;
}

/* `{%- raw %}` at `at`: its end, 0 where it is none. word is raw or endraw. */
static size_t raw_tag(const cti_jn_compiler *c, size_t at, const char *word, bool is_end)
{
    size_t i = at + 2;
    if (i < c->n && is_sign(c->src[i])) {
        i++;
    }
    i = skip_blanks(c, i);
    if (!looking_at(c, i, word)) {
        return 0;
    }
    i = skip_blanks(c, i + strlen(word));
    return closing(c, i, "%}", is_end, is_end);
}

/* Data [from, to) before a tag with the given sign ('-', '+' or anything else): blanks cut as the rules say.
 */
static ct_status push_data(cti_jn_compiler *c, size_t from, size_t to, char sign, bool lstrips)
{
    size_t end = to;
    if (sign == '-') {
        end -= cti_jn_blank_back(c->src + from, to - from);
    } else if (sign != '+' && lstrips) {
        size_t line = to;
        while (line > from && c->src[line - 1] != '\n') {
            line--;
        }
        if ((line > from || c->is_line_start) && cti_jn_blank_front(c->src + line, to - line) == to - line) {
            end = line;
        }
    }
    return end > from ? push(c, JN_T_DATA, from, c->src + from, end - from, NULL) : CT_OK;
}

/* --- inside tags
 * ------------------------------------------------------------------------------------------------- */

static bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

static bool is_word(char ch)
{
    return is_digit(ch) || ch == '_' || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

/* Digits with single underscores between them; `at` stands at a digit. */
static size_t digits(const cti_jn_compiler *c, size_t at)
{
    while (at < c->n &&
           (is_digit(c->src[at]) || (c->src[at] == '_' && at + 1 < c->n && is_digit(c->src[at + 1])))) {
        at++;
    }
    return at;
}

static ct_status lex_number(cti_jn_compiler *c)
{
    const size_t from = c->at;
    size_t end = digits(c, from);
    bool is_float = false;
    if (from == 0 || c->src[from - 1] != '.') {
        if (end + 1 < c->n && c->src[end] == '.' && is_digit(c->src[end + 1])) {
            end = digits(c, end + 1);
            is_float = true;
        }
        size_t e = end;
        if (e < c->n && (c->src[e] == 'e' || c->src[e] == 'E')) {
            e++;
            e += e < c->n && is_sign(c->src[e]);
            if (e < c->n && is_digit(c->src[e])) {
                end = digits(c, e);
                is_float = true;
            }
        }
    }
    if (!is_float && c->src[from] == '0') {
        if (from + 1 < c->n && strchr("xXbBoO", c->src[from + 1]) != NULL && from + 2 < c->n &&
            is_word(c->src[from + 2])) {
            count_to(c, from);
            return cti_jn_syntax_error(
                c, c->line, c->col, CT_ERR_UNSUPPORTED,
                "numbers to another base than ten are not supported in templates here");
        }
        for (size_t i = from; i < end; i++) {
            if (c->src[i] != '0' && c->src[i] != '_') {
                return fail_at(c, from, "a number other than 0 starts with 0");
            }
        }
    }
    char text[512];
    if (end - from >= sizeof text) {
        return fail_at(c, from, "a number is too long");
    }
    memcpy(text, c->src + from, end - from);
    text[end - from] = '\0';
    cti_jn_token *t = NULL;
    CT_TRY(push(c, is_float ? JN_T_FLOAT : JN_T_INT, from, c->src + from, end - from, &t));
    if (is_float ? !cti_parse_f64(text, &t->f) : !cti_parse_i64(text, &t->i)) {
        return cti_jn_syntax_error(c, t->line, t->col, CT_ERR_UNSUPPORTED,
                                   "the number %.100s does not fit; integers have 64 bits here", text);
    }
    c->at = end;
    return CT_OK;
}

/* A number of `n` digits to a base at p; false where they are not there. */
static bool code_of(const char *p, const char *end, int n, uint32_t base, uint32_t *out)
{
    uint32_t v = 0;
    for (int i = 0; i < n; i++, p++) {
        uint32_t d;
        if (p < end && is_digit(*p)) {
            d = (uint32_t)(*p - '0');
        } else if (p < end && ((*p | 32) >= 'a' && (*p | 32) <= 'f')) {
            d = (uint32_t)((*p | 32) - 'a') + 10;
        } else {
            return false;
        }
        if (d >= base) {
            return false;
        }
        v = v * base + d;
    }
    *out = v;
    return true;
}

/* One escape after the backslash at p; adds to out, returns the bytes taken, 0 where it is wrong. */
static size_t unescape(const char *p, const char *end, char *out, size_t *n_out)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char *simple = strchr(from, *p);
    if (simple != NULL && *p != '\0') {
        out[(*n_out)++] = to[simple - from];
        return 1;
    }
    uint32_t cp = 0;
    int n_digits = *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;
    size_t taken = 1 + (size_t)n_digits;
    if (*p == '\n') {
        return 1;
    }
    if (*p == 'N') {
        return 0;
    }
    if (n_digits > 0) {
        if (!code_of(p + 1, end, n_digits, 16, &cp)) {
            return 0;
        }
    } else if (*p >= '0' && *p <= '7') {
        int n = 1;
        while (n < 3 && p + n < end && p[n] >= '0' && p[n] <= '7') {
            n++;
        }
        (void)code_of(p, end, n, 8, &cp);
        taken = (size_t)n;
    } else if (((unsigned char)*p & 0x80) !=
               0) { /* jinja2 has made the letter an escape of its own by then */
        const int n = cti_utf8_decode((const unsigned char *)p, (const unsigned char *)end, &cp);
        char text[16];
        const int k = snprintf(text, sizeof text,
                               cp < 0x100     ? "\\x%02x"
                               : cp < 0x10000 ? "\\u%04x"
                                              : "\\U%08x",
                               (unsigned)cp);
        memcpy(out + *n_out, text, (size_t)k);
        *n_out += (size_t)k;
        return (size_t)n;
    } else {
        out[(*n_out)++] = '\\';
        out[(*n_out)++] = *p;
        return 1;
    }
    const int n = cti_utf8_encode(cp, out + *n_out);
    *n_out += (size_t)n;
    return n == 0 ? 0 : taken;
}

static ct_status lex_string(cti_jn_compiler *c)
{
    const size_t from = c->at;
    const char quote = c->src[from];
    size_t end = from + 1;
    while (end < c->n && c->src[end] != quote) {
        end += c->src[end] == '\\' ? 2 : 1;
    }
    if (end >= c->n) {
        return fail_at(c, from, "a string is not closed");
    }
    char *text = cti_jn_compile_alloc(c, 3 * (end - from), 1); /* an odd escape grows, see unescape() */
    if (text == NULL) {
        return CT_ERR_MEMORY;
    }
    size_t n = 0;
    const char *p = c->src + from + 1, *stop = c->src + end;
    while (p < stop) {
        if (*p != '\\') {
            text[n++] = *p++;
            continue;
        }
        const size_t taken = unescape(p + 1, stop, text, &n);
        if (taken == 0) {
            return fail_at(
                c, (size_t)(p - c->src),
                "an escape in a string is cut off, names a character by \\N{...} or none that text can hold");
        }
        p += 1 + taken;
    }
    c->at = end + 1;
    return push(c, JN_T_STRING, from, text, n, NULL);
}

static ct_status lex_operator(cti_jn_compiler *c)
{
    static const char *const operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                            "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                            ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    const char *op = NULL;
    for (size_t i = 0; i < sizeof operators / sizeof *operators && op == NULL; i++) {
        op = looking_at(c, c->at, operators[i]) ? operators[i] : NULL;
    }
    if (op == NULL) {
        uint32_t cp = 0;
        const int n =
            cti_utf8_decode((const unsigned char *)c->src + c->at, (const unsigned char *)c->src + c->n, &cp);
        char message[96];
        (void)snprintf(message, sizeof message, "'%.*s' (U+%04X) has no meaning here", cp < 32 ? 0 : n,
                       c->src + c->at, (unsigned)cp);
        return fail_at(c, c->at, message);
    }
    static const char opening[] = "([{", closings[] = ")]}";
    const char *opens = strchr(opening, op[0]), *closes = strchr(closings, op[0]);
    if (opens != NULL) {
        if (c->n_brackets >= JN_MAX_NODE_DEPTH) {
            return fail_at(c, c->at, "brackets are nested too deeply");
        }
        c->brackets[c->n_brackets++] = closings[opens - opening];
    } else if (closes != NULL && (c->n_brackets == 0 || c->brackets[--c->n_brackets] != op[0])) {
        char message[64];
        (void)snprintf(message, sizeof message, "'%c' closes nothing that is open", op[0]);
        return fail_at(c, c->at, message);
    }
    CT_TRY(push(c, JN_T_OP, c->at, op, strlen(op), NULL));
    c->at += strlen(op);
    return CT_OK;
}

/* A tag's inside, up to and with what closes it. */
static ct_status lex_tag(cti_jn_compiler *c, bool is_block, size_t tag)
{
    c->n_brackets = 0;
    for (;;) {
        c->at = skip_blanks(c, c->at);
        if (c->at >= c->n) {
            return fail_at(c, tag, is_block ? "'{%' is not closed" : "'{{' is not closed");
        }
        const size_t end =
            c->n_brackets > 0 ? 0 : closing(c, c->at, is_block ? "%}" : "}}", is_block, is_block);
        if (end > 0) {
            CT_TRY(push(c, is_block ? JN_T_BLOCK_END : JN_T_VAR_END, c->at, c->src + c->at, 2, NULL));
            c->at = end;
            return CT_OK;
        }
        const char ch = c->src[c->at];
        if (is_digit(ch)) {
            CT_TRY(lex_number(c));
        } else if (is_word(ch)) {
            size_t i = c->at;
            while (i < c->n && is_word(c->src[i])) {
                i++;
            }
            CT_TRY(push(c, JN_T_NAME, c->at, c->src + c->at, i - c->at, NULL));
            c->at = i;
        } else if (ch == '\'' || ch == '"') {
            CT_TRY(lex_string(c));
        } else {
            CT_TRY(lex_operator(c));
        }
    }
}

static ct_status lex_comment(cti_jn_compiler *c, size_t tag)
{
    for (; c->at < c->n; c->at++) {
        const size_t end = closing(c, c->at, "#}", true, true);
        if (end > 0) {
            c->at = end;
            return CT_OK;
        }
    }
    return fail_at(c, tag, "'{#' is not closed");
}

static ct_status lex_raw(cti_jn_compiler *c, size_t tag)
{
    const size_t from = c->at;
    c->is_line_start = from > 0 && c->src[from - 1] == '\n';
    for (size_t i = from; i + 1 < c->n; i++) {
        const size_t end = looking_at(c, i, "{%") ? raw_tag(c, i, "endraw", true) : 0;
        if (end > 0) {
            CT_TRY(push_data(c, from, i, c->src[i + 2], true));
            c->at = end;
            return CT_OK;
        }
    }
    return fail_at(c, tag, "'raw' is not closed by 'endraw'");
}

/* Newlines of all kinds become '\n', and one at the end goes. */
static ct_status take_source(cti_jn_compiler *c, const char *text, size_t size)
{
    if (size > MAX_TEMPLATE_BYTES) {
        return CT_FAIL(c->err, CT_ERR_RANGE, "'%s': a template of %zu bytes; at most %d are taken",
                       c->template->name, size, (int)MAX_TEMPLATE_BYTES);
    }
    char *src = cti_jn_compile_alloc(c, size, 1);
    if (src == NULL) {
        return CT_ERR_MEMORY;
    }
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\r') {
            i += i + 1 < size && text[i + 1] == '\n';
            src[n++] = '\n';
        } else {
            src[n++] = text[i];
        }
    }
    c->src = c->counted = src;
    c->n = n;
    c->line = c->col = 1;
    for (size_t i = 0; i < n;) {
        const int len = cti_utf8_len((const unsigned char *)src + i, (const unsigned char *)src + n);
        if (len == 0) {
            return fail_at(c, i, "a byte that is not UTF-8");
        }
        i += (size_t)len;
    }
    c->n -= n > 0 && src[n - 1] == '\n';
    return CT_OK;
}

ct_status cti_jn_lex(cti_jn_compiler *c)
{
    CT_TRY(take_source(c, c->src, c->n));
    c->is_line_start = true;
    while (c->at < c->n) {
        size_t tag = c->at;
        while (tag + 1 < c->n &&
               !(c->src[tag] == '{' && strchr("{%#", c->src[tag + 1]) != NULL && c->src[tag + 1] != '\0')) {
            tag++;
        }
        if (tag + 1 >= c->n) {
            CT_TRY(push(c, JN_T_DATA, c->at, c->src + c->at, c->n - c->at, NULL));
            break;
        }
        const char kind = c->src[tag + 1];
        const char sign = tag + 2 < c->n ? c->src[tag + 2] : '\0';
        CT_TRY(push_data(c, c->at, tag, sign, kind != '{'));
        const size_t raw = kind == '%' ? raw_tag(c, tag, "raw", false) : 0;
        c->at = tag + 2 + (tag + 2 < c->n && is_sign(sign));
        if (raw > 0) {
            c->at = raw;
            CT_TRY(lex_raw(c, tag));
        } else if (kind == '#') {
            CT_TRY(lex_comment(c, tag));
        } else {
            CT_TRY(push(c, kind == '%' ? JN_T_BLOCK_BEGIN : JN_T_VAR_BEGIN, tag, c->src + tag, 2, NULL));
            CT_TRY(lex_tag(c, kind == '%', tag));
        }
        c->is_line_start = c->at > 0 && c->src[c->at - 1] == '\n';
    }
    return push(c, JN_T_END, c->n, "", 0, NULL);
}
