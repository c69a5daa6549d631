/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of strings, dicts and lists. */
#include "jinja/jinja_internal.h"

#define METHOD(name) \
    static ct_status name(cti_jn_ctx *x, cti_jn_val self, const cti_jn_args *args, cti_jn_val *out)

static ct_status plain_args(cti_jn_ctx *x, const char *what, const cti_jn_args *args, size_t least,
                            size_t most)
{
    if (args->n_keys > 0) {
        return JN_FAIL(x, CT_ERR_DATA, "%s: there is no argument '%.*s'", what, JN_P(args->keys[0]));
    }
    return args->n < least || args->n > most
               ? JN_FAIL(x, CT_ERR_DATA, "%s takes %zu to %zu arguments, but is given %zu", what, least, most,
                         args->n)
               : CT_OK;
}

static bool is_given(const cti_jn_args *args, size_t i)
{
    return i < args->n && args->v[i].kind != JN_NONE;
}

/* --- strings: case
 * ----------------------------------------------------------------------------------------------- */

static ct_status cased(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args, int how,
                       cti_jn_val *out)
{
    const cti_jn_str *s = self.as.s;
    CT_TRY(plain_args(x, what, args, 0, 0));
    CT_TRY(cti_jn_step(x, (int64_t)(s->n / 8)));
    cti_str text = {.alloc = x->template->alloc};
    if (how == JN_LOWER || how == JN_UPPER) {
        cti_jn_add_cased(&text, s->p, s->n, (cti_jn_case)how);
    } else if (how == JN_TITLE) {
        cti_jn_add_titled(&text, s->p, s->n);
    } else {
        cti_jn_add_capitalized(&text, s->p, s->n);
    }
    return cti_jn_str_of(x, &text, out);
}

METHOD(str_lower)
{
    return cased(x, "lower", self, args, JN_LOWER, out);
}

METHOD(str_upper)
{
    return cased(x, "upper", self, args, JN_UPPER, out);
}

METHOD(str_title)
{
    return cased(x, "title", self, args, JN_TITLE, out);
}

METHOD(str_capitalize)
{
    return cased(x, "capitalize", self, args, JN_TITLE + 1, out);
}

/* --- strings: what they are made of
 * ------------------------------------------------------------------------------ */

typedef bool (*letter_fn)(uint32_t cp);

static bool is_letter_or_number(uint32_t cp)
{
    return cti_jn_is_letter(cp) || cti_jn_is_numeric(cp);
}

static ct_status all_are(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args,
                         letter_fn is, cti_jn_val *out)
{
    const cti_jn_str *s = self.as.s;
    CT_TRY(plain_args(x, what, args, 0, 0));
    bool all = s->n > 0;
    for (size_t i = 0; i < s->n && all;) {
        uint32_t cp = 0;
        i +=
            (size_t)cti_utf8_decode((const unsigned char *)s->p + i, (const unsigned char *)s->p + s->n, &cp);
        all = is(cp);
    }
    *out = cti_jn_bool(all);
    return CT_OK;
}

METHOD(str_isalpha)
{
    return all_are(x, "isalpha", self, args, cti_jn_is_letter, out);
}

METHOD(str_isalnum)
{
    return all_are(x, "isalnum", self, args, is_letter_or_number, out);
}

METHOD(str_isdigit)
{
    return all_are(x, "isdigit", self, args, cti_jn_is_digit, out);
}

METHOD(str_isnumeric)
{
    return all_are(x, "isnumeric", self, args, cti_jn_is_numeric, out);
}

METHOD(str_isspace)
{
    return all_are(x, "isspace", self, args, cti_jn_is_space, out);
}

METHOD(str_islower)
{
    CT_TRY(plain_args(x, "islower", args, 0, 0));
    *out = cti_jn_bool(cti_jn_is_cased_all(self.as.s->p, self.as.s->n, JN_LOWER));
    return CT_OK;
}

METHOD(str_isupper)
{
    CT_TRY(plain_args(x, "isupper", args, 0, 0));
    *out = cti_jn_bool(cti_jn_is_cased_all(self.as.s->p, self.as.s->n, JN_UPPER));
    return CT_OK;
}

/* --- strings: ends
 * ----------------------------------------------------------------------------------------------- */

/* Is the character of n bytes at p one of chars? */
static bool is_one_of(const cti_jn_str *chars, const char *p, size_t n)
{
    for (size_t i = 0; i < chars->n;) {
        const int k =
            cti_utf8_len((const unsigned char *)chars->p + i, (const unsigned char *)chars->p + chars->n);
        if ((size_t)k == n && memcmp(chars->p + i, p, n) == 0) {
            return true;
        }
        i += k == 0 ? 1 : (size_t)k;
    }
    return false;
}

static ct_status strip(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args, bool left,
                       bool right, cti_jn_val *out)
{
    const cti_jn_str *s = self.as.s, *chars = NULL;
    CT_TRY(plain_args(x, what, args, 0, 1));
    if (is_given(args, 0)) {
        CT_TRY(cti_jn_want_str(x, what, args->v[0], &chars));
    }
    size_t from = 0, to = s->n;
    if (chars == NULL) {
        from = left ? cti_jn_blank_front(s->p, s->n) : 0;
        to -= right ? cti_jn_blank_back(s->p + from, s->n - from) : 0;
        return cti_jn_str_borrow(x, s->p + from, to - from, out);
    }
    while (left && from < to) {
        const int k = cti_utf8_len((const unsigned char *)s->p + from, (const unsigned char *)s->p + to);
        CT_TRY(cti_jn_step(x, (int64_t)(1 + chars->n / 16)));
        if (!is_one_of(chars, s->p + from, (size_t)k)) {
            break;
        }
        from += (size_t)k;
    }
    while (right && to > from) {
        size_t at = to - 1;
        while (at > from && ((unsigned char)s->p[at] & 0xc0) == 0x80) {
            at--;
        }
        CT_TRY(cti_jn_step(x, (int64_t)(1 + chars->n / 16)));
        if (!is_one_of(chars, s->p + at, to - at)) {
            break;
        }
        to = at;
    }
    return cti_jn_str_borrow(x, s->p + from, to - from, out);
}

METHOD(str_strip)
{
    return strip(x, "strip", self, args, true, true, out);
}

METHOD(str_lstrip)
{
    return strip(x, "lstrip", self, args, true, false, out);
}

METHOD(str_rstrip)
{
    return strip(x, "rstrip", self, args, false, true, out);
}

static bool has_end(const cti_jn_str *s, const cti_jn_str *part, bool at_front)
{
    return part->n <= s->n && memcmp(at_front ? s->p : s->p + s->n - part->n, part->p, part->n) == 0;
}

/* A prefix or suffix, or a tuple of some. */
static ct_status has_ends(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args,
                          bool at_front, cti_jn_val *out)
{
    const cti_jn_str *part = NULL;
    CT_TRY(plain_args(x, what, args, 1, 1));
    bool has = false;
    if (args->v[0].kind == JN_TUPLE) {
        const cti_jn_seq *seq = args->v[0].as.seq;
        for (size_t i = 0; i < seq->n && !has; i++) {
            CT_TRY(cti_jn_want_str(x, what, seq->v[i], &part));
            has = has_end(self.as.s, part, at_front);
        }
    } else {
        CT_TRY(cti_jn_want_str(x, what, args->v[0], &part));
        has = has_end(self.as.s, part, at_front);
    }
    *out = cti_jn_bool(has);
    return CT_OK;
}

METHOD(str_startswith)
{
    return has_ends(x, "startswith", self, args, true, out);
}

METHOD(str_endswith)
{
    return has_ends(x, "endswith", self, args, false, out);
}

static ct_status remove_end(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args,
                            bool at_front, cti_jn_val *out)
{
    const cti_jn_str *s = self.as.s, *part = NULL;
    CT_TRY(plain_args(x, what, args, 1, 1));
    CT_TRY(cti_jn_want_str(x, what, args->v[0], &part));
    const size_t cut = has_end(s, part, at_front) ? part->n : 0;
    return cti_jn_str_borrow(x, s->p + (at_front ? cut : 0), s->n - cut, out);
}

METHOD(str_removeprefix)
{
    return remove_end(x, "removeprefix", self, args, true, out);
}

METHOD(str_removesuffix)
{
    return remove_end(x, "removesuffix", self, args, false, out);
}

/* --- strings: finding and cutting
 * -------------------------------------------------------------------------------- */

/* The byte of the first (or last) part within [from, to), SIZE_MAX where there is none. part is not empty. */
static size_t find_in(const cti_jn_str *s, size_t from, size_t to, const cti_jn_str *part, bool last)
{
    if (part->n > to - from) {
        return SIZE_MAX;
    }
    if (!last) {
        const char *at = memmem(s->p + from, to - from, part->p, part->n);
        return at == NULL ? SIZE_MAX : (size_t)(at - s->p);
    }
    for (size_t i = to - part->n + 1; i-- > from;) {
        if (s->p[i] == part->p[0] && memcmp(s->p + i, part->p, part->n) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

static ct_status find_part(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args,
                           bool last, bool must, cti_jn_val *out)
{
    const cti_jn_str *s = self.as.s, *part = NULL;
    CT_TRY(plain_args(x, what, args, 1, 3));
    CT_TRY(cti_jn_want_str(x, what, args->v[0], &part));
    int64_t ends[2] = {0, s->chars};
    for (size_t i = 1; i < args->n; i++) {
        if (args->v[i].kind != JN_NONE) {
            int64_t at = 0;
            CT_TRY(cti_jn_want_int(x, what, args->v[i], &at));
            at += at < 0 ? s->chars : 0;
            ends[i - 1] = at < 0 ? 0 : at;
        }
    }
    CT_TRY(cti_jn_step(x, (int64_t)(s->n / 64 + (last ? s->n / 4 : 0))));
    ends[1] = ends[1] > s->chars ? s->chars : ends[1];
    int64_t found = -1;
    if (ends[0] <= ends[1] && part->n == 0) {
        found = last ? ends[1] : ends[0];
    } else if (ends[0] <= ends[1]) {
        const size_t at =
            find_in(s, cti_jn_char_offset(s, ends[0]), cti_jn_char_offset(s, ends[1]), part, last);
        found = at == SIZE_MAX ? -1 : cti_jn_count_chars(s->p, at);
    }
    if (found < 0 && must) {
        return JN_FAIL(x, CT_ERR_DATA, "%s: '%.*s' is not in the text", what, JN_P(part));
    }
    *out = cti_jn_int(found);
    return CT_OK;
}

METHOD(str_find)
{
    return find_part(x, "find", self, args, false, false, out);
}

METHOD(str_rfind)
{
    return find_part(x, "rfind", self, args, true, false, out);
}

METHOD(str_index)
{
    return find_part(x, "index", self, args, false, true, out);
}

METHOD(str_rindex)
{
    return find_part(x, "rindex", self, args, true, true, out);
}

METHOD(str_count)
{
    const cti_jn_str *s = self.as.s, *part = NULL;
    CT_TRY(plain_args(x, "count", args, 1, 1));
    CT_TRY(cti_jn_want_str(x, "count", args->v[0], &part));
    CT_TRY(cti_jn_step(x, (int64_t)(s->n / 64)));
    int64_t n = part->n == 0 ? s->chars + 1 : 0;
    for (size_t at = 0; part->n > 0 && at < s->n; n++) {
        at = find_in(s, at, s->n, part, false);
        if (at == SIZE_MAX) {
            break;
        }
        at += part->n;
    }
    *out = cti_jn_int(n);
    return CT_OK;
}

/* With an empty `old` the new text goes before each character and to the end. */
METHOD(str_replace)
{
    const cti_jn_str *s = self.as.s, *old = NULL, *fresh = NULL;
    int64_t left = -1;
    cti_jn_val slots[3];
    CT_TRY(plain_args(x, "replace", args, 2, 3));
    CT_TRY(cti_jn_bind(x, "replace", args, "old new count", 2, slots));
    CT_TRY(cti_jn_want_str(x, "replace", slots[0], &old));
    CT_TRY(cti_jn_want_str(x, "replace", slots[1], &fresh));
    if (slots[2].kind != JN_ABSENT) {
        CT_TRY(cti_jn_want_int(x, "replace: the count", slots[2], &left));
    }
    CT_TRY(cti_jn_step(x, (int64_t)(s->n / 32)));
    cti_str text = {.alloc = x->template->alloc};
    size_t at = 0;
    ct_status st = CT_OK;
    while (left != 0 && at <= s->n && st == CT_OK) {
        const size_t hit = old->n == 0 ? at : find_in(s, at, s->n, old, false);
        if (hit == SIZE_MAX) {
            break;
        }
        cti_str_add_n(&text, s->p + at, hit - at);
        cti_str_add_n(&text, fresh->p, fresh->n);
        at = hit + old->n;
        if (old->n == 0) {
            if (at == s->n) {
                at++;
                break;
            }
            const size_t k =
                (size_t)cti_utf8_len((const unsigned char *)s->p + at, (const unsigned char *)s->p + s->n);
            cti_str_add_n(&text, s->p + at, k);
            at += k;
        }
        left -= left > 0;
        st = cti_jn_check_text(x, &text);
    }
    if (at < s->n) {
        cti_str_add_n(&text, s->p + at, s->n - at);
    }
    if (st != CT_OK) {
        cti_str_deinit(&text);
        return st;
    }
    return cti_jn_str_of(x, &text, out);
}

/* A growing list of pieces of one text. */
typedef struct pieces {
    cti_jn_val *v;
    size_t n, cap;
} pieces;

static ct_status add_piece(cti_jn_ctx *x, pieces *list, const char *p, size_t n)
{
    if (list->n == list->cap) {
        const size_t cap = list->cap == 0 ? 8 : 2 * list->cap;
        cti_jn_val *v = cti_jn_alloc(x, cap, sizeof *v);
        if (v == NULL) {
            return x->memory > x->max_memory ? CT_ERR_RANGE : CT_ERR_MEMORY;
        }
        if (list->n > 0) {
            memcpy(v, list->v, list->n * sizeof *v);
        }
        list->v = v;
        list->cap = cap;
    }
    CT_TRY(cti_jn_step(x, 1));
    return cti_jn_str_borrow(x, p, n, &list->v[list->n++]);
}

static ct_status pieces_done(cti_jn_ctx *x, pieces *list, bool reverse, cti_jn_val *out)
{
    CT_TRY(cti_jn_seq_new(x, JN_LIST, 0, out));
    for (size_t i = 0; reverse && i < list->n / 2; i++) {
        const cti_jn_val t = list->v[i];
        list->v[i] = list->v[list->n - 1 - i];
        list->v[list->n - 1 - i] = t;
    }
    out->as.seq->v = list->v;
    out->as.seq->n = list->n;
    return CT_OK;
}

/* split() without a separator: at runs of blanks, none at the ends. */
static ct_status split_blanks(cti_jn_ctx *x, const cti_jn_str *s, int64_t max, bool from_right, pieces *list)
{
    size_t from = cti_jn_blank_front(s->p, s->n), to = s->n - cti_jn_blank_back(s->p + from, s->n - from);
    for (; from < to && max != 0; max -= max > 0) {
        if (!from_right) {
            size_t end = from;
            while (end < to && cti_jn_blank_front(s->p + end, to - end) == 0) {
                end +=
                    (size_t)cti_utf8_len((const unsigned char *)s->p + end, (const unsigned char *)s->p + to);
            }
            CT_TRY(add_piece(x, list, s->p + from, end - from));
            from = end + cti_jn_blank_front(s->p + end, to - end);
        } else {
            size_t start = to;
            while (start > from && cti_jn_blank_back(s->p + from, start - from) == 0) {
                do {
                    start--;
                } while (start > from && ((unsigned char)s->p[start] & 0xc0) == 0x80);
            }
            CT_TRY(add_piece(x, list, s->p + start, to - start));
            to = start - cti_jn_blank_back(s->p + from, start - from);
        }
    }
    if (from >= to) {
        return CT_OK;
    }
    /* what is left keeps its blanks at the far end, as Python's does */
    return from_right ? add_piece(x, list, s->p, to) : add_piece(x, list, s->p + from, s->n - from);
}

static ct_status split(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args,
                       bool from_right, cti_jn_val *out)
{
    const cti_jn_str *s = self.as.s, *by = NULL;
    cti_jn_val slots[2];
    pieces list = {0};
    int64_t max = -1;
    CT_TRY(cti_jn_bind(x, what, args, "sep maxsplit", 0, slots));
    if (slots[1].kind != JN_ABSENT) {
        CT_TRY(cti_jn_want_int(x, what, slots[1], &max));
    }
    CT_TRY(cti_jn_step(x, (int64_t)(s->n / 16)));
    if (slots[0].kind == JN_ABSENT || slots[0].kind == JN_NONE) {
        CT_TRY(split_blanks(x, s, max, from_right, &list));
        return pieces_done(x, &list, from_right, out);
    }
    CT_TRY(cti_jn_want_str(x, what, slots[0], &by));
    if (by->n == 0) {
        return JN_FAIL(x, CT_ERR_DATA, "%s: the separator is empty", what);
    }
    size_t from = 0, to = s->n;
    for (; max != 0; max -= max > 0) {
        const size_t at = find_in(s, from, to, by, from_right);
        if (at == SIZE_MAX) {
            break;
        }
        if (from_right) {
            CT_TRY(add_piece(x, &list, s->p + at + by->n, to - at - by->n));
            to = at;
        } else {
            CT_TRY(add_piece(x, &list, s->p + from, at - from));
            from = at + by->n;
        }
    }
    CT_TRY(add_piece(x, &list, s->p + from, to - from));
    return pieces_done(x, &list, from_right, out);
}

METHOD(str_split)
{
    return split(x, "split", self, args, false, out);
}

METHOD(str_rsplit)
{
    return split(x, "rsplit", self, args, true, out);
}

static ct_status partition(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args,
                           bool last, cti_jn_val *out)
{
    const cti_jn_str *s = self.as.s, *by = NULL;
    CT_TRY(plain_args(x, what, args, 1, 1));
    CT_TRY(cti_jn_want_str(x, what, args->v[0], &by));
    if (by->n == 0) {
        return JN_FAIL(x, CT_ERR_DATA, "%s: the separator is empty", what);
    }
    CT_TRY(cti_jn_step(x, (int64_t)(s->n / 16)));
    const size_t at = find_in(s, 0, s->n, by, last);
    const bool has = at != SIZE_MAX;
    const size_t first = has ? at : last ? 0 : s->n, second = has ? by->n : 0;
    CT_TRY(cti_jn_seq_new(x, JN_TUPLE, 3, out));
    cti_jn_val *v = out->as.seq->v;
    CT_TRY(cti_jn_str_borrow(x, s->p, first, &v[0]));
    CT_TRY(cti_jn_str_borrow(x, s->p + first, second, &v[1]));
    return cti_jn_str_borrow(x, s->p + first + second, s->n - first - second, &v[2]);
}

METHOD(str_partition)
{
    return partition(x, "partition", self, args, false, out);
}

METHOD(str_rpartition)
{
    return partition(x, "rpartition", self, args, true, out);
}

/* The bytes of the line's end at p: Python's list of them. */
static size_t line_end(const char *p, size_t n)
{
    uint32_t cp = 0;
    const int k = cti_utf8_decode((const unsigned char *)p, (const unsigned char *)p + n, &cp);
    if (cp == '\r' && n > 1 && p[1] == '\n') {
        return 2;
    }
    return (cp >= 10 && cp <= 13) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 || cp == 0x2028 || cp == 0x2029
               ? (size_t)k
               : 0;
}

METHOD(str_splitlines)
{
    const cti_jn_str *s = self.as.s;
    cti_jn_val slot;
    bool keeps = false;
    pieces list = {0};
    CT_TRY(cti_jn_bind(x, "splitlines", args, "keepends", 0, &slot));
    if (slot.kind != JN_ABSENT) {
        int64_t flag = 0;
        CT_TRY(cti_jn_want_int(x, "splitlines: keepends", slot, &flag));
        keeps = flag != 0;
    }
    CT_TRY(cti_jn_step(x, (int64_t)(s->n / 16)));
    for (size_t from = 0; from < s->n;) {
        size_t to = from, end = 0;
        while (to < s->n && (end = line_end(s->p + to, s->n - to)) == 0) {
            to += (size_t)cti_utf8_len((const unsigned char *)s->p + to, (const unsigned char *)s->p + s->n);
        }
        end = to < s->n ? end : 0;
        CT_TRY(add_piece(x, &list, s->p + from, to - from + (keeps ? end : 0)));
        from = to + end;
    }
    return pieces_done(x, &list, false, out);
}

METHOD(str_join)
{
    cti_jn_seq *seq = NULL;
    const cti_jn_str *item = NULL;
    CT_TRY(plain_args(x, "join", args, 1, 1));
    CT_TRY(cti_jn_iterate(x, args->v[0], &seq));
    cti_str text = {.alloc = x->template->alloc};
    ct_status st = CT_OK;
    for (size_t i = 0; i < seq->n && st == CT_OK; i++) {
        st = cti_jn_want_str(x, "join: an item", seq->v[i], &item);
        if (st == CT_OK) {
            cti_str_add_n(&text, self.as.s->p, i > 0 ? self.as.s->n : 0);
            cti_str_add_n(&text, item->p, item->n);
            st = cti_jn_check_text(x, &text);
        }
    }
    if (st != CT_OK) {
        cti_str_deinit(&text);
        return st;
    }
    return cti_jn_str_of(x, &text, out);
}

/* --- dicts and lists
 * --------------------------------------------------------------------------------------------- */

static ct_status view(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args,
                      cti_jn_val *out)
{
    const cti_jn_dict *d = self.as.dict;
    CT_TRY(plain_args(x, what, args, 0, 0));
    CT_TRY(cti_jn_seq_new(x, JN_VIEW, d->n, out));
    out->as.seq->view_name = what[0] == 'i' ? "dict_items" : what[0] == 'k' ? "dict_keys" : "dict_values";
    for (size_t i = 0; i < d->n; i++) {
        cti_jn_val *v = &out->as.seq->v[i];
        if (what[0] == 'i') {
            CT_TRY(cti_jn_seq_new(x, JN_TUPLE, 2, v));
            v->as.seq->v[0] = d->pairs[i].key;
            v->as.seq->v[1] = d->pairs[i].value;
        } else {
            *v = what[0] == 'k' ? d->pairs[i].key : d->pairs[i].value;
        }
    }
    return CT_OK;
}

METHOD(dict_items)
{
    return view(x, "items", self, args, out);
}

METHOD(dict_keys)
{
    return view(x, "keys", self, args, out);
}

METHOD(dict_values)
{
    return view(x, "values", self, args, out);
}

METHOD(dict_get)
{
    cti_jn_pair *pair = NULL;
    CT_TRY(plain_args(x, "get", args, 1, 2));
    CT_TRY(cti_jn_dict_find(x, self.as.dict, args->v[0], &pair));
    *out = pair != NULL ? pair->value : args->n > 1 ? args->v[1] : cti_jn_none();
    return CT_OK;
}

static ct_status count_item(cti_jn_ctx *x, cti_jn_val self, cti_jn_val item, int64_t *out_n,
                            int64_t *out_first)
{
    *out_n = 0;
    *out_first = -1;
    for (size_t i = 0; i < self.as.seq->n; i++) {
        bool same = false;
        CT_TRY(cti_jn_equal(x, self.as.seq->v[i], item, 0, &same));
        *out_first = same && *out_n == 0 ? (int64_t)i : *out_first;
        *out_n += same;
    }
    return CT_OK;
}

METHOD(list_count)
{
    int64_t n, first;
    CT_TRY(plain_args(x, "count", args, 1, 1));
    CT_TRY(count_item(x, self, args->v[0], &n, &first));
    *out = cti_jn_int(n);
    return CT_OK;
}

METHOD(list_index)
{
    int64_t n, first;
    CT_TRY(plain_args(x, "index", args, 1, 1));
    CT_TRY(count_item(x, self, args->v[0], &n, &first));
    if (n == 0) {
        return JN_FAIL(x, CT_ERR_DATA, "index: the value is not in the list");
    }
    *out = cti_jn_int(first);
    return CT_OK;
}

/* --- tables: what Python has and we do not is there with NULL
 * ------------------------------------------------------ */

static const cti_jn_method_row str_rows[] = {{"lower", str_lower},
                                             {"upper", str_upper},
                                             {"title", str_title},
                                             {"capitalize", str_capitalize},
                                             {"isalpha", str_isalpha},
                                             {"isalnum", str_isalnum},
                                             {"isdigit", str_isdigit},
                                             {"isnumeric", str_isnumeric},
                                             {"isspace", str_isspace},
                                             {"islower", str_islower},
                                             {"isupper", str_isupper},
                                             {"strip", str_strip},
                                             {"lstrip", str_lstrip},
                                             {"rstrip", str_rstrip},
                                             {"find", str_find},
                                             {"startswith", str_startswith},
                                             {"endswith", str_endswith},
                                             {"removeprefix", str_removeprefix},
                                             {"rfind", str_rfind},
                                             {"removesuffix", str_removesuffix},
                                             {"index", str_index},
                                             {"rindex", str_rindex},
                                             {"count", str_count},
                                             {"replace", str_replace},
                                             {"split", str_split},
                                             {"rsplit", str_rsplit},
                                             {"partition", str_partition},
                                             {"rpartition", str_rpartition},
                                             {"splitlines", str_splitlines},
                                             {"join", str_join},
                                             {"casefold", NULL},
                                             {"center", NULL},
                                             {"encode", NULL},
                                             {"expandtabs", NULL},
                                             {"format", NULL},
                                             {"format_map", NULL},
                                             {"isascii", NULL},
                                             {"isdecimal", NULL},
                                             {"isidentifier", NULL},
                                             {"isprintable", NULL},
                                             {"istitle", NULL},
                                             {"ljust", NULL},
                                             {"maketrans", NULL},
                                             {"rjust", NULL},
                                             {"swapcase", NULL},
                                             {"translate", NULL},
                                             {"zfill", NULL},
                                             {NULL, NULL}};
static const cti_jn_method_row dict_rows[] = {
    {"items", dict_items}, {"keys", dict_keys},  {"values", dict_values}, {"get", dict_get},
    {"clear", NULL},       {"copy", NULL},       {"fromkeys", NULL},      {"pop", NULL},
    {"popitem", NULL},     {"setdefault", NULL}, {"update", NULL},        {NULL, NULL}};
static const cti_jn_method_row list_rows[] = {{"count", list_count}, {"index", list_index}, {"append", NULL},
                                              {"clear", NULL},       {"copy", NULL},        {"extend", NULL},
                                              {"insert", NULL},      {"pop", NULL},         {"remove", NULL},
                                              {"reverse", NULL},     {"sort", NULL},        {NULL, NULL}};
static const cti_jn_method_row tuple_rows[] = {{"count", list_count}, {"index", list_index}, {NULL, NULL}};
static const cti_jn_method_row range_rows[] = {{"count", list_count}, {"index", list_index}, {"start", NULL},
                                               {"stop", NULL},        {"step", NULL},        {NULL, NULL}};
static const cti_jn_method_row int_rows[] = {{"as_integer_ratio", NULL},
                                             {"bit_count", NULL},
                                             {"bit_length", NULL},
                                             {"conjugate", NULL},
                                             {"denominator", NULL},
                                             {"from_bytes", NULL},
                                             {"imag", NULL},
                                             {"numerator", NULL},
                                             {"real", NULL},
                                             {"to_bytes", NULL},
                                             {NULL, NULL}};
static const cti_jn_method_row float_rows[] = {
    {"as_integer_ratio", NULL}, {"conjugate", NULL}, {"fromhex", NULL}, {"hex", NULL}, {"imag", NULL},
    {"is_integer", NULL},       {"real", NULL},      {NULL, NULL}};
static const cti_jn_method_row view_rows[] = {{"isdisjoint", NULL}, {"mapping", NULL}, {NULL, NULL}};
static const cti_jn_method_row macro_rows[] = {{"arguments", NULL},
                                               {"caller", NULL},
                                               {"catch_kwargs", NULL},
                                               {"catch_varargs", NULL},
                                               {"explicit_caller", NULL},
                                               {"name", NULL},
                                               {NULL, NULL}};
static const cti_jn_method_row no_rows[] = {{NULL, NULL}};

static const cti_jn_method_row *rows_of(cti_jn_kind kind)
{
    switch (kind) {
    case JN_STR:
        return str_rows;
    case JN_DICT:
        return dict_rows;
    case JN_LIST:
        return list_rows;
    case JN_TUPLE:
        return tuple_rows;
    case JN_RANGE:
        return range_rows;
    case JN_BOOL:
    case JN_INT:
        return int_rows;
    case JN_FLOAT:
        return float_rows;
    case JN_VIEW:
        return view_rows;
    case JN_MACRO:
        return macro_rows;
    case JN_ABSENT:
    case JN_UNDEFINED:
    case JN_NONE:
    case JN_GENERATOR:
    case JN_NAMESPACE:
    case JN_FUNCTION:
    case JN_METHOD:
    case JN_LOOP:
        break;
    }
    return no_rows;
}

const cti_jn_method_row *cti_jn_method_find(cti_jn_val self, const cti_jn_str *name)
{
    for (const cti_jn_method_row *row = rows_of(self.kind); row->name != NULL; row++) {
        if (cti_jn_is_text(cti_jn_text(name), row->name)) {
            return row;
        }
    }
    return NULL;
}
