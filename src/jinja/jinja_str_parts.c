/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of strings: finding and cutting. */
#include "jinja/jinja_methods.h"

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
    CT_TRY(cti_jn_plain_args(x, what, args, 1, 3));
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

JN_METHOD(cti_jn_str_find)
{
    return find_part(x, "find", self, args, false, false, out);
}

JN_METHOD(cti_jn_str_rfind)
{
    return find_part(x, "rfind", self, args, true, false, out);
}

JN_METHOD(cti_jn_str_index)
{
    return find_part(x, "index", self, args, false, true, out);
}

JN_METHOD(cti_jn_str_rindex)
{
    return find_part(x, "rindex", self, args, true, true, out);
}

JN_METHOD(cti_jn_str_count)
{
    const cti_jn_str *s = self.as.s, *part = NULL;
    CT_TRY(cti_jn_plain_args(x, "count", args, 1, 1));
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
JN_METHOD(cti_jn_str_replace)
{
    const cti_jn_str *s = self.as.s, *old = NULL, *fresh = NULL;
    int64_t left = -1;
    cti_jn_val slots[3];
    CT_TRY(cti_jn_plain_args(x, "replace", args, 2, 3));
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

JN_METHOD(cti_jn_str_split)
{
    return split(x, "split", self, args, false, out);
}

JN_METHOD(cti_jn_str_rsplit)
{
    return split(x, "rsplit", self, args, true, out);
}

static ct_status partition(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args,
                           bool last, cti_jn_val *out)
{
    const cti_jn_str *s = self.as.s, *by = NULL;
    CT_TRY(cti_jn_plain_args(x, what, args, 1, 1));
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

JN_METHOD(cti_jn_str_partition)
{
    return partition(x, "partition", self, args, false, out);
}

JN_METHOD(cti_jn_str_rpartition)
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

JN_METHOD(cti_jn_str_splitlines)
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

JN_METHOD(cti_jn_str_join)
{
    cti_jn_seq *seq = NULL;
    const cti_jn_str *item = NULL;
    CT_TRY(cti_jn_plain_args(x, "join", args, 1, 1));
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
