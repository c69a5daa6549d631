/* SPDX-License-Identifier: Apache-2.0 */
/* Split patterns. Hugging Face files hold them in the Ruby syntax of Oniguruma; PCRE2 matches them. The two read most of a
 * pattern alike; the translation below rewrites what they read differently and refuses what has no counterpart.
 *
 * Rewritten: \s \S \w \d \b \h (Oniguruma's sets are spelt out, since PCRE2's \s holds U+180E and its \w lacks marks), \v,
 * \uHHHH, {,n}, (?m), script names (PCRE2 10.40 and later match script extensions unless told otherwise).
 * Refused: class intersections and nested or POSIX classes, \W in a class, {n}? and {n,m}+, PCRE2's verbs and other escapes. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "tokenizer/tokenizer_internal.h"

const char *const CTI_GPT2_PATTERN =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char *const CT_TOKENIZER_DEFAULT_PATTERN =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
    "\\s+(?!\\S)|\\s+";

/* The complement of CTI_SPACE_SET. */
#define NOT_SPACE_SET                                                                                                  \
    "\\x00-\\x08\\x0e-\\x1f\\x21-\\x84\\x86-\\x9f\\xa1-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}"    \
    "\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{d7ff}\\x{e000}-\\x{10ffff}"
/* Alphabetic (letters, letter numbers and the circled letters among the symbols), marks, decimal digits, connectors, and
 * the digits and fractions of Latin-1, which Oniguruma has among them. What Unicode 15 and 16 added: see word_set(). */
#define WORD_SET                                                                                                       \
    "\\xb2\\xb3\\xb9\\xbc-\\xbe"                                                                                       \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"

struct cti_regex {
    const ct_alloc *alloc; /* borrows */
    pcre2_general_context *general; /* owns */
    pcre2_code *code;               /* owns */
    char *pattern;                  /* owns: as the file has it, for errors */
    cti_known known;
    const cti_classes *classes; /* NULL where known is none */
};

struct cti_matcher {
    const ct_alloc *alloc; /* borrows */
    pcre2_general_context *general; /* own */
    pcre2_match_context *context;
    pcre2_match_data *data;
    pcre2_jit_stack *stack;
};

static void *pcre_alloc(size_t size, void *ctx)
{
    const ct_alloc *alloc = ctx;
    return alloc->resize(alloc->ctx, NULL, size ? size : 1);
}

static void pcre_free(void *ptr, void *ctx)
{
    ct_alloc_free(ctx, ptr);
}

static pcre2_general_context *general_create(const ct_alloc *alloc)
{
    return pcre2_general_context_create(pcre_alloc, pcre_free, (void *)(uintptr_t)alloc);
}

/* --- translation --- */

typedef struct translation {
    const char *p, *end; /* what is left of the pattern */
    cti_str *out;
    bool in_class;
    const char *problem; /* NULL: none */
} translation;

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static void emit_set(translation *t, const char *set, bool negated)
{
    if (t->in_class) {
        cti_str_add(t->out, set);
    } else {
        cti_str_printf(t->out, negated ? "[^%s]" : "[%s]", set);
    }
}

static void add_word_set(translation *t)
{
    static const char *const newer[] = {"L", "M", "Nd", "Nl", "Pc"};
    cti_str_add(t->out, WORD_SET);
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++) {
        cti_unicode_newer_ranges(newer[i], t->out);
    }
}

/* Pieces of a pattern with the word set between them. */
static void emit_word(translation *t, const char *const *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        cti_str_add(t->out, parts[i]);
        if (i + 1 < n) {
            add_word_set(t);
        }
    }
}

/* PCRE2 10.40 and later take a script's name for its extensions unless told otherwise. */
static void put_property(translation *t, bool negated, const char *name, size_t size)
{
    const bool script = size > 2 && !(size == 3 && memcmp(name, "Any", 3) == 0);
#if PCRE2_MAJOR > 10 || (PCRE2_MAJOR == 10 && PCRE2_MINOR >= 40)
    cti_str_add(t->out, negated ? "\\P{" : "\\p{");
    cti_str_add(t->out, script ? "sc:" : "");
#else
    (void)script;
    cti_str_add(t->out, negated ? "\\P{" : "\\p{");
#endif
    cti_str_add_n(t->out, name, size);
    cti_str_add_char(t->out, '}');
}

/* \p{...}; t->p is behind the 'p'. What Unicode 15 and 16 added is spelt out, so that all versions of PCRE2 match alike
 * (not inside a class where the property is negated: a class cannot subtract). */
static void translate_property(translation *t, char letter)
{
    const char *close = t->p < t->end && *t->p == '{' ? memchr(t->p, '}', (size_t)(t->end - t->p)) : NULL;
    if (close == NULL) {
        t->problem = "a property without braces";
        return;
    }
    const char *name = t->p + 1;
    const bool negated = name < close && *name == '^';
    name += negated;
    const size_t size = (size_t)(close - name);
    t->p = close + 1;
    char property[4] = "";
    if (size <= 2 || (size == 3 && memcmp(name, "Han", 3) == 0)) {
        memcpy(property, name, size);
    }
    cti_str newer = {.alloc = t->out->alloc};
    cti_unicode_newer_ranges(property, &newer);
    const bool is_negated = negated != (letter == 'P');
    if (property[0] != '\0' && newer.len > 0 && !(is_negated && t->in_class)) {
        cti_str_add(t->out, t->in_class ? "" : is_negated ? "[^" : "[");
        put_property(t, false, name, size);
        cti_str_add(t->out, newer.data);
        cti_str_add(t->out, t->in_class ? "" : "]");
    } else {
        put_property(t, is_negated, name, size);
    }
    t->out->failed |= newer.failed;
    cti_str_deinit(&newer);
}

static void translate_escape(translation *t)
{
    t->p++;
    if (t->p == t->end) {
        t->problem = "a backslash at its end";
        return;
    }
    const char c = *t->p++;
    switch (c) {
    case 's':
        emit_set(t, CTI_SPACE_SET, false);
        return;
    case 'S':
        emit_set(t, NOT_SPACE_SET, false);
        return;
    case 'w':
        emit_word(t, t->in_class ? (const char *const[]){"", ""} : (const char *const[]){"[", "]"}, 2);
        return;
    case 'W':
        if (t->in_class) {
            t->problem = "\\W inside a class";
        }
        emit_word(t, (const char *const[]){"[^", "]"}, 2);
        return;
    case 'd':
    case 'D': {
        const translation rest = *t;
        t->p = "{Nd}";
        t->end = t->p + 4;
        translate_property(t, c == 'd' ? 'p' : 'P');
        t->p = rest.p;
        t->end = rest.end;
        return;
    }
    case 'h':
        emit_set(t, "0-9A-Fa-f", false);
        return;
    case 'v':
        cti_str_add(t->out, "\\x0b");
        return;
    case 'b':
        if (t->in_class) {
            cti_str_add(t->out, "\\x08");
        } else {
            emit_word(t, (const char *const[]){"(?:(?<=[", "])(?![", "])|(?<![", "])(?=[", "]))"}, 5);
        }
        return;
    case 'p':
    case 'P':
        translate_property(t, c);
        return;
    case 'u':
        if (t->end - t->p < 4 || !is_hex(t->p[0]) || !is_hex(t->p[1]) || !is_hex(t->p[2]) || !is_hex(t->p[3])) {
            t->problem = "\\u without four hexadecimal digits";
            return;
        }
        cti_str_printf(t->out, "\\x{%.4s}", t->p);
        t->p += 4;
        return;
    default:
        break;
    }
    const bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (alnum && strchr(t->in_class ? "tnrfaex01234567" : "tnrfaexAzZ0123456789", c) == NULL) {
        t->problem = "an escape that is not implemented here";
        return;
    }
    cti_str_add_char(t->out, '\\');
    cti_str_add_char(t->out, c);
}

/* At '('. */
static void translate_group(translation *t)
{
    const char *p = t->p + 1;
    if (p < t->end && *p == '*') {
        t->problem = "a verb '(*'";
        return;
    }
    cti_str_add_char(t->out, '(');
    t->p++;
    if (p == t->end || *p != '?') {
        return;
    }
    p++;
    if (p < t->end && strchr(":=!>#", *p) != NULL && *p != '\0') {
        cti_str_add_char(t->out, '?');
        t->p = p; /* the next character is copied as it is */
        return;
    }
    if (p < t->end && *p == '<') { /* look-behind or a name */
        cti_str_add_char(t->out, '?');
        t->p = p;
        return;
    }
    cti_str_add_char(t->out, '?');
    while (p < t->end && (*p == 'i' || *p == 'x' || *p == 'm' || *p == '-')) {
        cti_str_add_char(t->out, *p == 'm' ? 's' : *p); /* Ruby's m: the dot matches newlines */
        p++;
    }
    if (p == t->end || (*p != ':' && *p != ')')) {
        t->problem = "a group '(?' that is not implemented here";
        return;
    }
    t->p = p;
}

/* At '{' outside a class: a quantifier, or a literal brace. */
static void translate_brace(translation *t)
{
    const char *p = t->p + 1, *comma = NULL;
    while (p < t->end && ((*p >= '0' && *p <= '9') || (*p == ',' && comma == NULL))) {
        comma = *p == ',' ? p : comma;
        p++;
    }
    if (p == t->end || *p != '}' || p == t->p + 1 || (comma != NULL && p == t->p + 2)) {
        cti_str_add(t->out, "\\{");
        t->p++;
        return;
    }
    if (p + 1 < t->end && (p[1] == '+' || (p[1] == '?' && comma == NULL))) {
        t->problem = "a quantifier in braces followed by '+', or '{n}?', which engines read differently";
        return;
    }
    cti_str_add(t->out, comma == t->p + 1 ? "{0" : "{");
    cti_str_add_n(t->out, t->p + 1, (size_t)(p - t->p));
    t->p = p + 1;
}

/* One character inside a class. class_start: where its content begins. */
static void translate_in_class(translation *t, const char *class_start)
{
    const char c = *t->p;
    if (c == '[') {
        t->problem = "a class inside a class";
    } else if (c == '&' && t->p + 1 < t->end && t->p[1] == '&') {
        t->problem = "the class intersection '&&'";
    } else if (c == ']' && t->p == class_start) {
        t->problem = "an empty class";
    } else {
        t->in_class = c != ']';
        cti_str_add_char(t->out, c);
        t->p++;
    }
}

static const char *translate(const char *pattern, size_t size, cti_str *out)
{
    translation t = {.p = pattern, .end = pattern + size, .out = out};
    const char *class_start = NULL;
    while (t.p < t.end && t.problem == NULL) {
        if (*t.p == '\\') {
            translate_escape(&t);
        } else if (t.in_class) {
            translate_in_class(&t, class_start);
        } else if (*t.p == '[') {
            cti_str_add_char(out, *t.p++);
            if (t.p < t.end && *t.p == '^') {
                cti_str_add_char(out, *t.p++);
            }
            t.in_class = true;
            class_start = t.p;
        } else if (*t.p == '(') {
            translate_group(&t);
        } else if (*t.p == '{') {
            translate_brace(&t);
        } else {
            cti_str_add_char(out, *t.p++);
        }
    }
    return t.problem;
}

/* --- compiling and matching --- */

static ct_status regex_compile(cti_regex *regex, const cti_str *translated, const char *where, ct_err *err)
{
    pcre2_compile_context *context = pcre2_compile_context_create(regex->general);
    if (context == NULL) {
        return CT_FAIL(err, CT_ERR_MEMORY, "out of memory for a pattern");
    }
    (void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    (void)pcre2_set_parens_nest_limit(context, 100);
    int code = 0;
    PCRE2_SIZE at = 0;
    /* Ruby's ^ and $ are at every line. */
    regex->code = pcre2_compile((PCRE2_SPTR)cti_str_text(translated), translated->len,
                                PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &at, context);
    pcre2_compile_context_free(context);
    if (regex->code == NULL) {
        unsigned char words[256] = "";
        (void)pcre2_get_error_message(code, words, sizeof words);
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: the pattern '%s' cannot be compiled: %s", where, regex->pattern,
                       (const char *)words);
    }
    (void)pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE); /* without JIT the interpreter matches the same, slower */
    return CT_OK;
}

ct_status cti_regex_create(const ct_alloc *alloc, const char *pattern, size_t size, const char *where,
                           cti_regex **out_regex, ct_err *err)
{
    if (memchr(pattern, '\0', size) != NULL || !cti_utf8_is_valid(pattern, size)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: a pattern holds NUL or is not UTF-8", where);
    }
    cti_regex *regex = CT_NEW(alloc, cti_regex, err);
    if (regex == NULL) {
        return CT_ERR_MEMORY;
    }
    regex->alloc = alloc;
    cti_str translated = {.alloc = alloc};
    ct_status st = CT_OK;
    regex->pattern = ct_alloc_strdup(alloc, pattern, err);
    regex->general = general_create(alloc);
    if (regex->pattern == NULL || regex->general == NULL) {
        st = CT_FAIL(err, CT_ERR_MEMORY, "out of memory for a pattern");
        goto out;
    }
    const char *problem = translate(pattern, size, &translated);
    if (problem != NULL) {
        st = CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: the pattern '%s' has %s", where, pattern, problem);
        goto out;
    }
    CT_TRY_GOTO(st, cti_str_check(&translated, err), out);
    CT_TRY_GOTO(st, regex_compile(regex, &translated, where, err), out);
    regex->known = cti_known_pattern(pattern, size);
    regex->classes = regex->known != CTI_KNOWN_NONE ? cti_classes_get(alloc) : NULL;
    regex->known = regex->classes != NULL ? regex->known : CTI_KNOWN_NONE;
    *out_regex = regex;
    regex = NULL;
out:
    cti_str_deinit(&translated);
    cti_regex_destroy(&regex);
    return st;
}

void cti_regex_destroy(cti_regex **regex)
{
    if (*regex != NULL) {
        const ct_alloc *alloc = (*regex)->alloc;
        pcre2_code_free((*regex)->code);
        pcre2_general_context_free((*regex)->general);
        ct_alloc_free(alloc, (*regex)->pattern);
        ct_alloc_free(alloc, *regex);
        *regex = NULL;
    }
}

ct_status cti_matcher_create(const ct_alloc *alloc, cti_matcher **out_matcher, ct_err *err)
{
    cti_matcher *m = CT_NEW(alloc, cti_matcher, err);
    if (m == NULL) {
        return CT_ERR_MEMORY;
    }
    m->alloc = alloc;
    m->general = general_create(alloc);
    m->context = m->general ? pcre2_match_context_create(m->general) : NULL;
    m->data = m->general ? pcre2_match_data_create(1, m->general) : NULL;
    /* Taken from the system as it grows; NULL (no JIT in this library) is fine. */
    m->stack = pcre2_jit_stack_create(32 * 1024, 8 * 1024 * 1024, m->general);
    if (m->context == NULL || m->data == NULL) {
        cti_matcher_destroy(&m);
        return CT_FAIL(err, CT_ERR_MEMORY, "out of memory for matching");
    }
    if (m->stack != NULL) {
        pcre2_jit_stack_assign(m->context, NULL, m->stack);
    }
    *out_matcher = m;
    return CT_OK;
}

void cti_matcher_destroy(cti_matcher **matcher)
{
    cti_matcher *m = *matcher;
    if (m != NULL) {
        pcre2_jit_stack_free(m->stack);
        pcre2_match_data_free(m->data);
        pcre2_match_context_free(m->context);
        pcre2_general_context_free(m->general);
        ct_alloc_free(m->alloc, m);
        *matcher = NULL;
    }
}

cti_known cti_regex_known(const cti_regex *regex, const cti_classes **out_classes)
{
    *out_classes = regex->classes;
    return regex->known;
}

ct_status cti_regex_find(const cti_regex *regex, cti_matcher *matcher, const char *text, size_t size, size_t from,
                         size_t *out_start, size_t *out_end, ct_err *err)
{
    if (regex->known == CTI_KNOWN_NONE) {
        return cti_regex_find_plain(regex, matcher, text, size, from, out_start, out_end, err);
    }
    if (!cti_known_find(regex->classes, regex->known, text, size, from, out_start, out_end)) {
        *out_start = SIZE_MAX;
    }
    return CT_OK;
}

ct_status cti_regex_find_plain(const cti_regex *regex, cti_matcher *matcher, const char *text, size_t size, size_t from,
                               size_t *out_start, size_t *out_end, ct_err *err)
{
    *out_start = SIZE_MAX;
    int rc = pcre2_match(regex->code, (PCRE2_SPTR)text, size, from, PCRE2_NO_UTF_CHECK, matcher->data, matcher->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) { /* the interpreter keeps its stack on the heap */
        rc = pcre2_match(regex->code, (PCRE2_SPTR)text, size, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, matcher->data,
                         matcher->context);
    }
    if (rc == PCRE2_ERROR_NOMATCH) {
        return CT_OK;
    }
    if (rc < 0) {
        unsigned char words[256] = "";
        (void)pcre2_get_error_message(rc, words, sizeof words);
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "the split pattern '%s' gave up at byte %zu of a text of %zu: %s",
                       regex->pattern, from, size, (const char *)words);
    }
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(matcher->data);
    *out_start = at[0];
    *out_end = at[1] < at[0] ? at[0] : at[1];
    return CT_OK;
}

/* --- patterns --- */

void cti_pattern_deinit(cti_pattern *pattern, const ct_alloc *alloc)
{
    cti_regex_destroy(&pattern->regex);
    ct_alloc_free(alloc, pattern->literal);
    pattern->literal = NULL;
}

cti_walk cti_walk_start(const cti_pattern *pattern, cti_matcher *matcher, const char *text, size_t size)
{
    return (cti_walk){.pattern = pattern, .matcher = matcher, .text = text, .size = size, .last_end = SIZE_MAX};
}

static ct_status walk_literal(cti_walk *walk, size_t *out_start, size_t *out_end)
{
    *out_start = SIZE_MAX;
    const size_t n = walk->pattern->literal_size;
    const char *hit =
        n > 0 ? memmem(walk->text + walk->from, walk->size - walk->from, walk->pattern->literal, n) : NULL;
    if (hit != NULL) {
        *out_start = (size_t)(hit - walk->text);
        *out_end = walk->from = *out_start + n;
    }
    return CT_OK;
}

/* The next character of a class. */
static ct_status walk_class(cti_walk *walk, size_t *out_start, size_t *out_end)
{
    const unsigned char *p = (const unsigned char *)walk->text, *end = p + walk->size;
    *out_start = SIZE_MAX;
    while (walk->from < walk->size) {
        uint32_t cp = 0;
        const size_t at = walk->from;
        const int n = cti_utf8_decode(p + at, end, &cp);
        walk->from += n > 0 ? (size_t)n : 1;
        if (walk->pattern->is_in(cp)) {
            *out_start = at;
            *out_end = walk->from;
            break;
        }
    }
    return CT_OK;
}

ct_status cti_walk_next(cti_walk *walk, size_t *out_start, size_t *out_end, ct_err *err)
{
    if (walk->pattern->is_in != NULL) {
        return walk_class(walk, out_start, out_end);
    }
    if (walk->pattern->regex == NULL) {
        return walk_literal(walk, out_start, out_end);
    }
    *out_start = SIZE_MAX;
    while (walk->from <= walk->size) {
        CT_TRY(cti_regex_find(walk->pattern->regex, walk->matcher, walk->text, walk->size, walk->from, out_start,
                              out_end, err));
        if (*out_start == SIZE_MAX) {
            return CT_OK;
        }
        if (*out_start != *out_end || *out_end != walk->last_end) {
            walk->from = walk->last_end = *out_end;
            return CT_OK;
        }
        /* An empty match where the last match ended: one character on. */
        *out_start = SIZE_MAX;
        const unsigned char *p = (const unsigned char *)walk->text;
        const int n = walk->from < walk->size ? cti_utf8_len(p + walk->from, p + walk->size) : 0;
        walk->from += n > 0 ? (size_t)n : 1;
    }
    return CT_OK;
}

ct_status cti_pattern_replace(const cti_pattern *pattern, cti_matcher *matcher, const char *text, size_t size, const char *by,
                              size_t by_size, cti_str *out, ct_err *err)
{
    cti_walk walk = cti_walk_start(pattern, matcher, text, size);
    size_t done = 0, start = 0, end = 0;
    for (;;) {
        CT_TRY(cti_walk_next(&walk, &start, &end, err));
        if (start == SIZE_MAX) {
            break;
        }
        cti_str_add_n(out, text + done, start - done);
        cti_str_add_n(out, by, by_size);
        done = end;
    }
    cti_str_add_n(out, text + done, size - done);
    return CT_OK;
}
