/* SPDX-License-Identifier: Apache-2.0 */
/* The filters on sequences. */
#include "jinja/jinja_internal.h"

#undef JN_FILTER
#define FILTER(name) ct_status name(cti_jn_ctx *x, cti_jn_val v, const cti_jn_args *args, cti_jn_val *out)

static ct_status no_args(cti_jn_ctx *x, const char *what, const cti_jn_args *args)
{
    return args->n + args->n_keys > 0 ? JN_FAIL(x, CT_ERR_DATA, "the filter '%s' takes no arguments", what)
                                      : CT_OK;
}

/* A generator that fn will fill when it is gone over. */
static ct_status postpone(cti_jn_ctx *x, cti_jn_filter_fn fn, cti_jn_val v, const cti_jn_args *args,
                          cti_jn_val *out)
{
    cti_jn_lazy *lazy = cti_jn_alloc(x, 1, sizeof *lazy);
    if (lazy == NULL) {
        return x->memory > x->max_memory ? CT_ERR_RANGE : CT_ERR_MEMORY;
    }
    *lazy = (cti_jn_lazy){.fn = fn, .v = v, .args = *args};
    CT_TRY(cti_jn_seq_new(x, JN_GENERATOR, 0, out));
    out->as.seq->lazy = lazy;
    return CT_OK;
}

FILTER(cti_jn_filter_length)
{
    CT_TRY(no_args(x, "length", args));
    int64_t n = 0;
    if (v.kind == JN_STR) {
        n = v.as.s->chars;
    } else if (v.kind == JN_DICT) {
        n = (int64_t)v.as.dict->n;
    } else if (v.kind == JN_LIST || v.kind == JN_TUPLE || v.kind == JN_RANGE || v.kind == JN_VIEW) {
        n = (int64_t)v.as.seq->n;
    } else if (v.kind == JN_LOOP) {
        CT_TRY(cti_jn_loop_length(x, v.as.loop, &n));
    } else if (v.kind != JN_UNDEFINED) {
        return JN_FAIL(x, CT_ERR_DATA, "a value of type %s has no length", cti_jn_type_name(v));
    }
    *out = cti_jn_int(n);
    return CT_OK;
}

FILTER(cti_jn_filter_list)
{
    cti_jn_seq *seq = NULL;
    CT_TRY(no_args(x, "list", args));
    CT_TRY(cti_jn_iterate(x, v, &seq));
    *out = JN_VALUE(JN_LIST, seq, seq);
    return CT_OK;
}

FILTER(cti_jn_filter_first)
{
    cti_jn_seq *seq = NULL;
    CT_TRY(no_args(x, "first", args));
    CT_TRY(cti_jn_iterate(x, v, &seq));
    if (seq->n == 0) {
        return cti_jn_undefined(x, out, "there is no first item of nothing");
    }
    *out = seq->v[0];
    return CT_OK;
}

FILTER(cti_jn_filter_last)
{
    cti_jn_seq *seq = NULL;
    CT_TRY(no_args(x, "last", args));
    if (v.kind == JN_GENERATOR) {
        return JN_FAIL(
            x, CT_ERR_DATA,
            "the filter 'last' is not for what map, select and their kin give; make a list of it first");
    }
    CT_TRY(cti_jn_iterate(x, v, &seq));
    if (seq->n == 0) {
        return cti_jn_undefined(x, out, "there is no last item of nothing");
    }
    *out = seq->v[seq->n - 1];
    return CT_OK;
}

FILTER(cti_jn_filter_reverse)
{
    cti_jn_seq *seq = NULL;
    CT_TRY(no_args(x, "reverse", args));
    if (v.kind == JN_STR) {
        const cti_jn_val parts[3] = {cti_jn_none(), cti_jn_none(), cti_jn_int(-1)};
        return cti_jn_slice(x, v, parts, out);
    }
    const bool was_generator = v.kind == JN_GENERATOR;
    CT_TRY(cti_jn_iterate(x, v, &seq));
    CT_TRY(cti_jn_seq_new(x, was_generator ? JN_LIST : JN_GENERATOR, seq->n, out));
    for (size_t i = 0; i < seq->n; i++) {
        out->as.seq->v[i] = seq->v[seq->n - 1 - i];
    }
    return CT_OK;
}

static FILTER(run_items)
{
    (void)args;
    if (v.kind != JN_DICT && v.kind != JN_UNDEFINED) {
        return JN_FAIL(x, CT_ERR_DATA, "the filter 'items' wants a mapping, but is given a value of type %s",
                       cti_jn_type_name(v));
    }
    const size_t n = v.kind == JN_DICT ? v.as.dict->n : 0;
    CT_TRY(cti_jn_seq_new(x, JN_GENERATOR, n, out));
    for (size_t i = 0; i < n; i++) {
        cti_jn_val pair;
        CT_TRY(cti_jn_seq_new(x, JN_TUPLE, 2, &pair));
        pair.as.seq->v[0] = v.as.dict->pairs[i].key;
        pair.as.seq->v[1] = v.as.dict->pairs[i].value;
        out->as.seq->v[i] = pair;
    }
    return CT_OK;
}

FILTER(cti_jn_filter_items)
{
    CT_TRY(no_args(x, "items", args));
    return postpone(x, run_items, v, args, out);
}

/* --- attributes of items
 * ----------------------------------------------------------------------------------------- */

/* `a.b.0` of an item; attribute absent or none: the item itself. */
static ct_status dig(cti_jn_ctx *x, cti_jn_val item, cti_jn_val attribute, cti_jn_val fallback,
                     cti_jn_val *out)
{
    *out = item;
    if (attribute.kind == JN_ABSENT || attribute.kind == JN_NONE) {
        return CT_OK;
    }
    if (attribute.kind != JN_STR) {
        CT_TRY(cti_jn_item(x, item, attribute, out));
        if (out->kind == JN_UNDEFINED && fallback.kind != JN_ABSENT && fallback.kind != JN_NONE) {
            *out = fallback;
        }
        return CT_OK;
    }
    const cti_jn_str *s = attribute.as.s;
    for (size_t at = 0; at <= s->n;) {
        const char *dot = memchr(s->p + at, '.', s->n - at);
        const size_t n = dot == NULL ? s->n - at : (size_t)(dot - s->p) - at;
        cti_jn_val key;
        CT_TRY(cti_jn_str_borrow(x, s->p + at, n, &key));
        int64_t index = 0;
        bool is_index = n > 0 && n < 10;
        for (size_t i = 0; i < n && is_index; i++) {
            is_index = s->p[at + i] >= '0' && s->p[at + i] <= '9';
            index = index * 10 + (s->p[at + i] - '0');
        }
        CT_TRY(cti_jn_item(x, *out, is_index ? cti_jn_int(index) : key, out));
        if (out->kind == JN_UNDEFINED && fallback.kind != JN_ABSENT && fallback.kind != JN_NONE) {
            *out = fallback;
        }
        at += n + 1;
    }
    return CT_OK;
}

/* What sorts, counts as one or is compared: lower case unless case_sensitive. */
static ct_status key_of(cti_jn_ctx *x, cti_jn_val item, cti_jn_val attribute, bool case_sensitive,
                        cti_jn_val *out)
{
    CT_TRY(dig(x, item, attribute, (cti_jn_val){.kind = JN_ABSENT}, out));
    if (out->kind == JN_STR && !case_sensitive) {
        const cti_jn_args none = {0};
        return cti_jn_filter_find("lower", 5)->fn(x, *out, &none, out);
    }
    return CT_OK;
}

static const cti_jn_val *keyword(const cti_jn_args *args, const char *name)
{
    for (size_t i = 0; i < args->n_keys; i++) {
        if (cti_jn_is_text(cti_jn_text(args->keys[i]), name)) {
            return &args->key_values[i];
        }
    }
    return NULL;
}

static FILTER(run_map)
{
    cti_jn_seq *seq = NULL;
    bool is_true = false;
    CT_TRY(cti_jn_truth(x, v, &is_true));
    if (!is_true) {
        return cti_jn_seq_new(x, JN_GENERATOR, 0, out);
    }
    const cti_jn_val *attribute = keyword(args, "attribute"), *fallback = keyword(args, "default");
    const bool digs = args->n == 0 && attribute != NULL;
    const cti_jn_filter_row *row = NULL;
    if (digs && args->n_keys > (fallback != NULL ? 2u : 1u)) {
        return JN_FAIL(x, CT_ERR_DATA, "map(attribute=...) takes 'default' and nothing else");
    }
    if (!digs) {
        if (args->n == 0 || args->v[0].kind != JN_STR) {
            return JN_FAIL(x, CT_ERR_DATA, "map wants the name of a filter, or attribute=");
        }
        row = cti_jn_filter_find(args->v[0].as.s->p, args->v[0].as.s->n);
        if (row == NULL || row->fn == NULL) {
            return JN_FAIL(x, row == NULL ? CT_ERR_DATA : CT_ERR_UNSUPPORTED,
                           "map: there is no filter '%.*s' in templates here", JN_P(args->v[0].as.s));
        }
    }
    CT_TRY(cti_jn_iterate(x, v, &seq));
    CT_TRY(cti_jn_seq_new(x, JN_GENERATOR, seq->n, out));
    const cti_jn_args rest = {.v = args->n > 0 ? args->v + 1 : NULL,
                              .n = args->n > 0 ? args->n - 1 : 0,
                              .keys = args->keys,
                              .key_values = args->key_values,
                              .n_keys = args->n_keys};
    for (size_t i = 0; i < seq->n; i++) {
        CT_TRY(digs ? dig(x, seq->v[i], *attribute, fallback == NULL ? cti_jn_none() : *fallback,
                          &out->as.seq->v[i])
                    : row->fn(x, seq->v[i], &rest, &out->as.seq->v[i]));
    }
    return CT_OK;
}

FILTER(cti_jn_filter_map)
{
    return postpone(x, run_map, v, args, out);
}

static ct_status choose(cti_jn_ctx *x, const char *what, cti_jn_val v, const cti_jn_args *args, bool wants,
                        bool digs, cti_jn_val *out)
{
    cti_jn_seq *seq = NULL;
    bool is = false;
    const size_t at = digs;
    CT_TRY(cti_jn_truth(x, v, &is));
    if (!is) {
        return cti_jn_seq_new(x, JN_GENERATOR, 0, out);
    }
    if (digs && args->n == 0) {
        return JN_FAIL(x, CT_ERR_DATA, "%s wants the name of an attribute", what);
    }
    const cti_jn_test_row *row = NULL;
    if (args->n > at) {
        const cti_jn_val name = args->v[at];
        row = name.kind == JN_STR ? cti_jn_test_find(name.as.s->p, name.as.s->n) : NULL;
        if (row == NULL || row->fn == NULL) {
            return JN_FAIL(x, row == NULL ? CT_ERR_DATA : CT_ERR_UNSUPPORTED,
                           "%s: there is no such test in templates here", what);
        }
    }
    const cti_jn_args rest = {.v = row == NULL ? NULL : args->v + at + 1,
                              .n = row == NULL ? 0 : args->n - at - 1,
                              .keys = args->keys,
                              .key_values = args->key_values,
                              .n_keys = args->n_keys};
    CT_TRY(cti_jn_iterate(x, v, &seq));
    CT_TRY(cti_jn_seq_new(x, JN_GENERATOR, seq->n, out));
    size_t n = 0;
    for (size_t i = 0; i < seq->n; i++) {
        cti_jn_val item;
        CT_TRY(dig(x, seq->v[i], digs ? args->v[0] : cti_jn_none(), cti_jn_none(), &item));
        CT_TRY(row == NULL ? cti_jn_truth(x, item, &is) : cti_jn_test_run(x, row, item, &rest, &is));
        if (is == wants) {
            out->as.seq->v[n++] = seq->v[i];
        }
    }
    out->as.seq->n = n;
    return CT_OK;
}

static FILTER(run_select)
{
    return choose(x, "select", v, args, true, false, out);
}

FILTER(cti_jn_filter_select)
{
    return postpone(x, run_select, v, args, out);
}

static FILTER(run_reject)
{
    return choose(x, "reject", v, args, false, false, out);
}

FILTER(cti_jn_filter_reject)
{
    return postpone(x, run_reject, v, args, out);
}

static FILTER(run_selectattr)
{
    return choose(x, "selectattr", v, args, true, true, out);
}

FILTER(cti_jn_filter_selectattr)
{
    return postpone(x, run_selectattr, v, args, out);
}

static FILTER(run_rejectattr)
{
    return choose(x, "rejectattr", v, args, false, true, out);
}

FILTER(cti_jn_filter_rejectattr)
{
    return postpone(x, run_rejectattr, v, args, out);
}

FILTER(cti_jn_filter_join)
{
    cti_jn_val slots[2], between, item;
    cti_jn_seq *seq = NULL;
    CT_TRY(cti_jn_bind(x, "join", args, "d attribute", 0, slots));
    CT_TRY(cti_jn_to_str(x, slots[0], &between));
    CT_TRY(cti_jn_iterate(x, v, &seq));
    cti_str text = {.alloc = x->template->alloc};
    ct_status st = CT_OK;
    for (size_t i = 0; i < seq->n && st == CT_OK; i++) {
        if (i > 0) {
            cti_str_add_n(&text, between.as.s->p, between.as.s->n);
        }
        st = dig(x, seq->v[i], slots[1], cti_jn_none(), &item);
        if (st == CT_OK) {
            st = cti_jn_add_str(x, &text, item);
        }
    }
    if (st != CT_OK) {
        cti_str_deinit(&text);
        return st;
    }
    return cti_jn_str_of(x, &text, out);
}

/* --- order
 * ------------------------------------------------------------------------------------------------------- */

typedef struct sortable {
    cti_jn_val key, item;
} sortable;

/* A stable merge sort by key; `scratch` is of the same size. */
static ct_status merge_sort(cti_jn_ctx *x, sortable *v, sortable *scratch, size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t from = 0; from < n; from += 2 * width) {
            const size_t mid = from + width < n ? from + width : n,
                         end = from + 2 * width < n ? from + 2 * width : n;
            size_t i = from, j = mid;
            for (size_t k = from; k < end; k++) {
                bool takes_right = i == mid;
                if (i < mid && j < end) {
                    CT_TRY(cti_jn_less(x, v[j].key, v[i].key, &takes_right));
                }
                scratch[k] = takes_right ? v[j++] : v[i++];
            }
        }
        memcpy(v, scratch, n * sizeof *v);
    }
    return CT_OK;
}

static ct_status sort_to_list(cti_jn_ctx *x, sortable *v, size_t n, bool reverse, cti_jn_val *out)
{
    sortable *scratch = cti_jn_alloc(x, n, sizeof *scratch);
    if (scratch == NULL) {
        return x->memory > x->max_memory ? CT_ERR_RANGE : CT_ERR_MEMORY;
    }
    if (reverse) { /* equal ones keep their order */
        for (size_t i = 0; i < n / 2; i++) {
            const sortable t = v[i];
            v[i] = v[n - 1 - i];
            v[n - 1 - i] = t;
        }
    }
    CT_TRY(merge_sort(x, v, scratch, n));
    CT_TRY(cti_jn_seq_new(x, JN_LIST, n, out));
    for (size_t i = 0; i < n; i++) {
        out->as.seq->v[i] = v[reverse ? n - 1 - i : i].item;
    }
    return CT_OK;
}

/* The keys of `sort`: one for each attribute of "a,b". */
static ct_status sort_key(cti_jn_ctx *x, cti_jn_val item, cti_jn_val attribute, bool case_sensitive,
                          cti_jn_val *out)
{
    size_t n = 1, at = 0;
    if (attribute.kind != JN_STR) {
        CT_TRY(cti_jn_seq_new(x, JN_LIST, 1, out));
        return key_of(x, item, attribute, case_sensitive, &out->as.seq->v[0]);
    }
    const cti_jn_str *s = attribute.as.s;
    for (size_t i = 0; i < s->n; i++) {
        n += s->p[i] == ',';
    }
    CT_TRY(cti_jn_seq_new(x, JN_LIST, n, out));
    for (size_t i = 0; i < n; i++) {
        const char *comma = memchr(s->p + at, ',', s->n - at);
        const size_t len = comma == NULL ? s->n - at : (size_t)(comma - s->p) - at;
        cti_jn_val part;
        CT_TRY(cti_jn_str_borrow(x, s->p + at, len, &part));
        CT_TRY(key_of(x, item, part, case_sensitive, &out->as.seq->v[i]));
        at += len + 1;
    }
    return CT_OK;
}

/* An integer as a flag, as Python's sorted() wants it. */
static ct_status want_flag(cti_jn_ctx *x, const char *what, cti_jn_val v, bool *out)
{
    int64_t flag = 0;
    if (v.kind != JN_ABSENT) {
        CT_TRY(cti_jn_want_int(x, what, v, &flag));
    }
    *out = flag != 0;
    return CT_OK;
}

FILTER(cti_jn_filter_sort)
{
    cti_jn_val slots[3];
    cti_jn_seq *seq = NULL;
    bool reverse = false, case_sensitive = false;
    CT_TRY(cti_jn_bind(x, "sort", args, "reverse case_sensitive attribute", 0, slots));
    CT_TRY(want_flag(x, "sort: reverse", slots[0], &reverse));
    CT_TRY(cti_jn_truth(x, slots[1], &case_sensitive));
    CT_TRY(cti_jn_iterate(x, v, &seq));
    sortable *s = cti_jn_alloc(x, seq->n, sizeof *s);
    if (s == NULL) {
        return x->memory > x->max_memory ? CT_ERR_RANGE : CT_ERR_MEMORY;
    }
    for (size_t i = 0; i < seq->n; i++) {
        s[i].item = seq->v[i];
        CT_TRY(sort_key(x, seq->v[i], slots[2], case_sensitive, &s[i].key));
    }
    return sort_to_list(x, s, seq->n, reverse, out);
}

FILTER(cti_jn_filter_dictsort)
{
    cti_jn_val slots[3], pairs;
    bool case_sensitive = false, reverse = false;
    CT_TRY(cti_jn_bind(x, "dictsort", args, "case_sensitive by reverse", 0, slots));
    CT_TRY(cti_jn_truth(x, slots[0], &case_sensitive));
    CT_TRY(want_flag(x, "dictsort: reverse", slots[2], &reverse));
    const bool by_value = cti_jn_is_text(slots[1], "value");
    if (slots[1].kind != JN_ABSENT && !by_value && !cti_jn_is_text(slots[1], "key")) {
        return JN_FAIL(x, CT_ERR_DATA, "dictsort: 'by' should be 'key' or 'value'");
    }
    if (v.kind != JN_DICT) {
        return JN_FAIL(x, CT_ERR_DATA, "dictsort wants a mapping, but is given a value of type %s",
                       cti_jn_type_name(v));
    }
    const cti_jn_args none = {0};
    CT_TRY(run_items(x, v, &none, &pairs));
    const cti_jn_seq *seq = pairs.as.seq;
    sortable *s = cti_jn_alloc(x, seq->n, sizeof *s);
    if (s == NULL) {
        return x->memory > x->max_memory ? CT_ERR_RANGE : CT_ERR_MEMORY;
    }
    for (size_t i = 0; i < seq->n; i++) {
        s[i].item = seq->v[i];
        CT_TRY(key_of(x, seq->v[i].as.seq->v[by_value], cti_jn_none(), case_sensitive, &s[i].key));
    }
    return sort_to_list(x, s, seq->n, reverse, out);
}

static FILTER(run_unique)
{
    cti_jn_val slots[2], seen, key;
    cti_jn_seq *seq = NULL;
    bool case_sensitive = false;
    CT_TRY(cti_jn_bind(x, "unique", args, "case_sensitive attribute", 0, slots));
    CT_TRY(cti_jn_truth(x, slots[0], &case_sensitive));
    CT_TRY(cti_jn_iterate(x, v, &seq));
    CT_TRY(cti_jn_dict_new(x, JN_DICT, 0, &seen));
    CT_TRY(cti_jn_seq_new(x, JN_GENERATOR, seq->n, out));
    size_t n = 0;
    for (size_t i = 0; i < seq->n; i++) {
        CT_TRY(key_of(x, seq->v[i], slots[1], case_sensitive, &key));
        const size_t before = seen.as.dict->n;
        CT_TRY(cti_jn_dict_put(x, seen.as.dict, key, cti_jn_none()));
        if (seen.as.dict->n > before) {
            out->as.seq->v[n++] = seq->v[i];
        }
    }
    out->as.seq->n = n;
    return CT_OK;
}

FILTER(cti_jn_filter_unique)
{
    return postpone(x, run_unique, v, args, out);
}

static ct_status extreme(cti_jn_ctx *x, const char *what, cti_jn_val v, const cti_jn_args *args, bool is_max,
                         cti_jn_val *out)
{
    cti_jn_val slots[2], best = {0}, key;
    cti_jn_seq *seq = NULL;
    bool case_sensitive = false;
    CT_TRY(cti_jn_bind(x, what, args, "case_sensitive attribute", 0, slots));
    CT_TRY(cti_jn_truth(x, slots[0], &case_sensitive));
    CT_TRY(cti_jn_iterate(x, v, &seq));
    if (seq->n == 0) {
        return cti_jn_undefined(x, out, "there is no %s of nothing", what);
    }
    for (size_t i = 0; i < seq->n; i++) {
        bool is_better = i == 0;
        CT_TRY(key_of(x, seq->v[i], slots[1], case_sensitive, &key));
        if (i > 0) {
            CT_TRY(is_max ? cti_jn_compare(x, JN_GT, key, best, 0, &is_better)
                          : cti_jn_less(x, key, best, &is_better));
        }
        if (is_better) {
            best = key;
            *out = seq->v[i];
        }
    }
    return CT_OK;
}

FILTER(cti_jn_filter_min)
{
    return extreme(x, "min", v, args, false, out);
}

FILTER(cti_jn_filter_max)
{
    return extreme(x, "max", v, args, true, out);
}

FILTER(cti_jn_filter_sum)
{
    cti_jn_val slots[2], sum, item;
    cti_jn_seq *seq = NULL;
    CT_TRY(cti_jn_bind(x, "sum", args, "attribute start", 0, slots));
    sum = slots[1].kind == JN_ABSENT ? cti_jn_int(0) : slots[1];
    if (sum.kind == JN_STR) {
        return JN_FAIL(x, CT_ERR_DATA, "sum is not for texts; join them");
    }
    CT_TRY(cti_jn_iterate(x, v, &seq));
    for (size_t i = 0; i < seq->n; i++) {
        CT_TRY(dig(x, seq->v[i], slots[0], cti_jn_none(), &item));
        CT_TRY(cti_jn_binary(x, JN_ADD, sum, item, &sum));
    }
    *out = sum;
    return CT_OK;
}
