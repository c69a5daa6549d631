/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: arguments by name, macros, the global functions, what `loop` knows. */
#include <time.h>

#include "base/clock.h"
#include "jinja/jinja_internal.h"

typedef enum function { FN_RANGE, FN_NAMESPACE, FN_DICT, FN_RAISE, FN_NOW } function;
static const char *const function_names[] = {"range", "namespace", "dict", "raise_exception", "strftime_now"};

bool cti_jn_function_find(const cti_jn_str *name, cti_jn_val *out)
{
    for (size_t i = 0; i < sizeof function_names / sizeof *function_names; i++) {
        if (cti_jn_is_text(cti_jn_text(name), function_names[i])) {
            *out = JN_VALUE(JN_FUNCTION, i, (int64_t)i);
            return true;
        }
    }
    return false;
}

/* The index of a name among "a b c", -1 where it is none of them; *out_n is how many there are. */
static int64_t index_of(const char *names, const cti_jn_str *name, size_t *out_n)
{
    int64_t found = -1;
    size_t n = 0;
    for (const char *p = names; *p != '\0'; n++) {
        const size_t len = strcspn(p, " ");
        if (name != NULL && name->n == len && memcmp(name->p, p, len) == 0) {
            found = (int64_t)n;
        }
        p += len;
        p += *p == ' ';
    }
    *out_n = n;
    return found;
}

ct_status cti_jn_bind(cti_jn_ctx *x, const char *what, const cti_jn_args *args, const char *names,
                      size_t n_required, cti_jn_val *slots)
{
    size_t n_slots;
    (void)index_of(names, NULL, &n_slots);
    for (size_t i = 0; i < n_slots; i++) {
        slots[i] = (cti_jn_val){.kind = JN_ABSENT};
    }
    if (args->n > n_slots) {
        return JN_FAIL(x, CT_ERR_DATA, "%s takes at most %zu arguments, but is given %zu", what, n_slots,
                       args->n);
    }
    for (size_t i = 0; i < args->n; i++) {
        slots[i] = args->v[i];
    }
    for (size_t i = 0; i < args->n_keys; i++) {
        const int64_t at = index_of(names, args->keys[i], &n_slots);
        if (at < 0) {
            return JN_FAIL(x, CT_ERR_DATA, "%s has no argument '%.*s'", what, JN_P(args->keys[i]));
        }
        if (slots[at].kind != JN_ABSENT) {
            return JN_FAIL(x, CT_ERR_DATA, "%s: the argument '%.*s' is given twice", what,
                           JN_P(args->keys[i]));
        }
        slots[at] = args->key_values[i];
    }
    for (size_t i = 0; i < n_required; i++) {
        if (slots[i].kind == JN_ABSENT) {
            return JN_FAIL(x, CT_ERR_DATA, "%s wants %zu arguments at least", what, n_required);
        }
    }
    return CT_OK;
}

ct_status cti_jn_want_int(cti_jn_ctx *x, const char *what, cti_jn_val v, int64_t *out)
{
    if (v.kind != JN_INT && v.kind != JN_BOOL) {
        return v.kind == JN_UNDEFINED ? JN_FAIL(x, CT_ERR_DATA, "%s: %.*s", what, JN_P(v.as.s))
                                      : JN_FAIL(x, CT_ERR_DATA, "%s should be an integer, but is of type %s",
                                                what, cti_jn_type_name(v));
    }
    *out = v.kind == JN_BOOL ? v.as.b : v.as.i;
    return CT_OK;
}

ct_status cti_jn_want_str(cti_jn_ctx *x, const char *what, cti_jn_val v, const cti_jn_str **out)
{
    if (v.kind != JN_STR) {
        return v.kind == JN_UNDEFINED ? JN_FAIL(x, CT_ERR_DATA, "%s: %.*s", what, JN_P(v.as.s))
                                      : JN_FAIL(x, CT_ERR_DATA, "%s should be a text, but is of type %s",
                                                what, cti_jn_type_name(v));
    }
    *out = v.as.s;
    return CT_OK;
}

/* --- macros
 * ------------------------------------------------------------------------------------------------------ */

static bool key_is(const cti_jn_str *key, const char *name)
{
    return cti_jn_is_text(cti_jn_text(key), name);
}

/* The value of the i-th parameter in args, JN_ABSENT where it is not given. */
static cti_jn_val given(const cti_jn_node *m, const cti_jn_args *args, int32_t i)
{
    if ((size_t)i < args->n) {
        return args->v[i];
    }
    for (size_t k = 0; k < args->n_keys; k++) {
        if (args->keys[k] == m->keys[i]) {
            return args->key_values[k];
        }
    }
    return (cti_jn_val){.kind = JN_ABSENT};
}

static bool is_parameter(const cti_jn_node *m, const cti_jn_args *args, const cti_jn_str *key)
{
    for (int32_t i = (int32_t)args->n; i < m->n_keys; i++) {
        if (m->keys[i] == key) {
            return true;
        }
    }
    return false;
}

/* Sets `name` in the macro's scope by its text; it is interned, since the body reads it. */
static ct_status set_special(cti_jn_ctx *x, const char *name, cti_jn_val value)
{
    for (size_t i = 0; i < x->template->n_names; i++) {
        if (key_is(x->template->names[i], name)) {
            return cti_jn_scope_set(x, x->scope, x->template->names[i], value);
        }
    }
    return CT_OK;
}

/* What is given beyond the parameters: kwargs, varargs and caller where the body reads them, refused else. */
static ct_status bind_rest(cti_jn_ctx *x, const cti_jn_node *m, const cti_jn_args *args)
{
    const char *name = m->s->p;
    const int name_n = (int)m->s->n;
    cti_jn_val kwargs, varargs, caller;
    CT_TRY(cti_jn_dict_new(x, JN_DICT, args->n_keys, &kwargs));
    CT_TRY(cti_jn_undefined(x, &caller, "no caller is given"));
    for (size_t i = 0; i < args->n_keys; i++) {
        if (is_parameter(m, args, args->keys[i])) {
            continue;
        }
        if (key_is(args->keys[i], "caller") && (m->uses & JN_USES_CALLER) != 0) {
            caller = args->key_values[i];
        } else if ((m->uses & JN_USES_KWARGS) != 0) {
            CT_TRY(cti_jn_dict_put(x, kwargs.as.dict, cti_jn_text(args->keys[i]), args->key_values[i]));
        } else {
            return JN_FAIL(x, CT_ERR_DATA, "the macro '%.*s' has no parameter '%.*s'", name_n, name,
                           JN_P(args->keys[i]));
        }
    }
    const size_t n_extra = args->n > (size_t)m->n_keys ? args->n - (size_t)m->n_keys : 0;
    if (n_extra > 0 && (m->uses & JN_USES_VARARGS) == 0) {
        return JN_FAIL(x, CT_ERR_DATA, "the macro '%.*s' takes at most %d arguments, but is given %zu",
                       name_n, name, m->n_keys, args->n);
    }
    CT_TRY(cti_jn_seq_new(x, JN_TUPLE, n_extra, &varargs));
    for (size_t i = 0; i < n_extra; i++) {
        varargs.as.seq->v[i] = args->v[(size_t)m->n_keys + i];
    }
    if ((m->uses & JN_USES_CALLER) != 0) {
        if (caller.kind == JN_NONE) {
            CT_TRY(cti_jn_undefined(x, &caller, "no caller is given"));
        }
        CT_TRY(set_special(x, "caller", caller));
    }
    if ((m->uses & JN_USES_KWARGS) != 0) {
        CT_TRY(set_special(x, "kwargs", kwargs));
    }
    return (m->uses & JN_USES_VARARGS) != 0 ? set_special(x, "varargs", varargs) : CT_OK;
}

static ct_status call_macro(cti_jn_ctx *x, const cti_jn_macro *macro, const cti_jn_args *args,
                            cti_jn_val *out)
{
    const cti_jn_node *m = macro->node;
    cti_jn_scope *const outer = x->scope;
    const cti_jn_val block_text = x->block_text;
    int flow = 0;
    CT_TRY(cti_jn_scope_push(x, macro->scope));
    CT_TRY(bind_rest(x, m, args));
    const int32_t first_default = m->n_keys - m->n_items;
    for (int32_t i = 0; i < m->n_keys; i++) {
        cti_jn_val v = given(m, args, i);
        if (v.kind == JN_ABSENT && i >= first_default) {
            CT_TRY(cti_jn_eval(x, m->items[i - first_default], &v));
        } else if (v.kind == JN_ABSENT) {
            CT_TRY(cti_jn_undefined(x, &v, "the parameter '%.*s' was not given", JN_P(m->keys[i])));
        }
        CT_TRY(cti_jn_scope_set(x, x->scope, m->keys[i], v));
    }
    CT_TRY(cti_jn_capture(x, m->a, &flow, out));
    x->scope = outer;
    x->block_text = block_text;
    return CT_OK;
}

/* --- functions
 * --------------------------------------------------------------------------------------------------- */

static ct_status call_range(cti_jn_ctx *x, const cti_jn_args *args, cti_jn_val *out)
{
    enum { MAX_RANGE = 100000 }; /* the sandbox's */
    cti_jn_val slots[3];
    int64_t v[3] = {0, 0, 1};
    CT_TRY(cti_jn_bind(x, "range", args, "start stop step", 1, slots));
    if (args->n_keys > 0) {
        return JN_FAIL(x, CT_ERR_DATA, "range takes no named arguments");
    }
    for (size_t i = 0; i < args->n; i++) {
        CT_TRY(cti_jn_want_int(x, "range: an argument", slots[i], &v[i]));
    }
    if (args->n == 1) {
        v[1] = v[0];
        v[0] = 0;
    }
    if (v[2] == 0) {
        return JN_FAIL(x, CT_ERR_DATA, "range: the step is 0");
    }
    /* unsigned: differences of int64 fit there, and a step of INT64_MIN has a size */
    const bool up = v[2] > 0;
    const uint64_t span = up ? (uint64_t)v[1] - (uint64_t)v[0] : (uint64_t)v[0] - (uint64_t)v[1];
    const uint64_t step = up ? (uint64_t)v[2] : 0 - (uint64_t)v[2];
    const uint64_t n = (up ? v[0] >= v[1] : v[0] <= v[1]) ? 0 : (span - 1) / step + 1;
    if (n > MAX_RANGE) {
        return JN_FAIL(x, CT_ERR_RANGE, "range: %llu items, at most %d are allowed", (unsigned long long)n,
                       (int)MAX_RANGE);
    }
    CT_TRY(cti_jn_seq_new(x, JN_RANGE, (size_t)n, out));
    for (uint64_t i = 0; i < n; i++) {
        out->as.seq->v[i] = cti_jn_int((int64_t)((uint64_t)v[0] + i * (uint64_t)v[2]));
    }
    return CT_OK;
}

/* dict(mapping or pairs, key=value …) and namespace(the same). */
static ct_status call_dict(cti_jn_ctx *x, cti_jn_kind kind, const cti_jn_args *args, cti_jn_val *out)
{
    if (args->n > 1) {
        return JN_FAIL(x, CT_ERR_DATA, "%s takes one argument without a name at most",
                       kind == JN_DICT ? "dict" : "namespace");
    }
    if (args->n == 1 && args->v[0].kind == JN_UNDEFINED) {
        return JN_FAIL(x, CT_ERR_DATA, "%.*s", JN_P(args->v[0].as.s));
    }
    CT_TRY(cti_jn_dict_new(x, kind, args->n_keys, out));
    cti_jn_dict *d = out->as.dict;
    if (args->n == 1 && args->v[0].kind == JN_DICT) {
        for (size_t i = 0; i < args->v[0].as.dict->n; i++) {
            CT_TRY(
                cti_jn_dict_put(x, d, args->v[0].as.dict->pairs[i].key, args->v[0].as.dict->pairs[i].value));
        }
    } else if (args->n == 1) {
        cti_jn_seq *pairs = NULL, *pair = NULL;
        CT_TRY(cti_jn_iterate(x, args->v[0], &pairs));
        for (size_t i = 0; i < pairs->n; i++) {
            CT_TRY(cti_jn_iterate(x, pairs->v[i], &pair));
            if (pair->n != 2) {
                return JN_FAIL(x, CT_ERR_DATA, "dict wants pairs, but is given %zu values", pair->n);
            }
            CT_TRY(cti_jn_dict_put(x, d, pair->v[0], pair->v[1]));
        }
    }
    for (size_t i = 0; i < args->n_keys; i++) {
        CT_TRY(cti_jn_dict_put(x, d, cti_jn_text(args->keys[i]), args->key_values[i]));
    }
    for (size_t i = 0; kind == JN_NAMESPACE && i < d->n; i++) {
        if (d->pairs[i].key.kind == JN_STR && d->pairs[i].key.as.s->n > 0 &&
            d->pairs[i].key.as.s->p[0] == '_') {
            return JN_FAIL(x, CT_ERR_DATA, "a namespace takes no attribute that starts with '_'");
        }
    }
    return CT_OK;
}

static ct_status call_now(cti_jn_ctx *x, const cti_jn_args *args, cti_jn_val *out)
{
    const cti_jn_str *format = NULL;
    const char *bad = NULL;
    cti_jn_val slot;
    CT_TRY(cti_jn_bind(x, "strftime_now", args, "format", 1, &slot));
    CT_TRY(cti_jn_want_str(x, "strftime_now: the format", slot, &format));
    if (!cti_jn_time_check(format->p, format->n, &bad)) {
        return JN_FAIL(x, CT_ERR_UNSUPPORTED, "strftime_now: '%.2s' is not supported in templates here", bad);
    }
    if (!x->has_now) {
        const time_t seconds = (time_t)(cti_wall_ms() / 1000);
        if (localtime_r(&seconds, &x->now) == NULL) {
            return JN_FAIL(x, CT_ERR_RANGE, "strftime_now: the clock shows no time");
        }
        x->has_now = true;
    }
    cti_str text = {.alloc = x->template->alloc};
    cti_jn_time_format(&text, format->p, format->n, &x->now);
    return cti_jn_str_of(x, &text, out);
}

static ct_status call_raise(cti_jn_ctx *x, const cti_jn_args *args)
{
    cti_jn_val slot, text;
    CT_TRY(cti_jn_bind(x, "raise_exception", args, "message", 1, &slot));
    CT_TRY(cti_jn_to_str(x, slot, &text));
    return JN_FAIL(x, CT_ERR_DATA, "the template refuses its input: %.*s",
                   (int)(text.as.s->n > 1000 ? 1000 : text.as.s->n), text.as.s->p);
}

ct_status cti_jn_call(cti_jn_ctx *x, cti_jn_val callee, const cti_jn_args *args, cti_jn_val *out)
{
    if (callee.kind == JN_MACRO) {
        return call_macro(x, callee.as.macro, args, out);
    }
    if (callee.kind == JN_METHOD) {
        if (callee.as.method->self.kind == JN_STR && callee.as.method->self.as.s->is_safe) {
            return JN_FAIL(
                x, CT_ERR_UNSUPPORTED,
                "methods of a text marked by the filter 'safe' are not supported in templates here");
        }
        return callee.as.method->row->fn(x, callee.as.method->self, args, out);
    }
    if (callee.kind == JN_UNDEFINED) {
        return JN_FAIL(x, CT_ERR_DATA, "%.*s, so it cannot be called", JN_P(callee.as.s));
    }
    if (callee.kind != JN_FUNCTION) {
        return JN_FAIL(x, CT_ERR_DATA, "a value of type %s cannot be called", cti_jn_type_name(callee));
    }
    switch ((function)callee.as.i) {
    case FN_RANGE:
        return call_range(x, args, out);
    case FN_NAMESPACE:
        return call_dict(x, JN_NAMESPACE, args, out);
    case FN_DICT:
        return call_dict(x, JN_DICT, args, out);
    case FN_RAISE:
        return call_raise(x, args);
    case FN_NOW:
        return call_now(x, args, out);
    }
    return JN_FAIL(x, CT_ERR_DATA, "a value of type %s cannot be called", cti_jn_type_name(callee));
}

/* --- loop
 * -------------------------------------------------------------------------------------------------------- */

static ct_status cycle(cti_jn_ctx *x, cti_jn_val self, const cti_jn_args *args, cti_jn_val *out)
{
    if (args->n == 0 || args->n_keys > 0) {
        return JN_FAIL(x, CT_ERR_DATA, "loop.cycle wants values to cycle through");
    }
    *out = args->v[(size_t)self.as.loop->index0 % args->n];
    return CT_OK;
}

ct_status cti_jn_loop_attr(cti_jn_ctx *x, cti_jn_loop *loop, const cti_jn_str *name, cti_jn_val *out,
                           bool *out_found)
{
    static const cti_jn_method_row cycle_row = {"cycle", cycle};
    static const char *const names[] = {"index",    "index0",    "first",    "last",     "length",
                                        "revindex", "revindex0", "previtem", "nextitem", "depth",
                                        "depth0",   "cycle",     "changed"};
    size_t i = 0;
    const size_t n = sizeof names / sizeof *names;
    while (i < n && !cti_jn_is_text(cti_jn_text(name), names[i])) {
        i++;
    }
    *out_found = i < n;
    int64_t length = 0;
    if (i == 4 || i == 5 || i == 6) {
        CT_TRY(cti_jn_loop_length(x, loop, &length));
    } else if (i == 3 || i == 8) {
        CT_TRY(cti_jn_loop_peek(x, loop));
    }
    switch (i) {
    case 0:
    case 1:
        *out = cti_jn_int(loop->index0 + (i == 0));
        break;
    case 2:
        *out = cti_jn_bool(loop->index0 == 0);
        break;
    case 3:
        *out = cti_jn_bool(!loop->has_after);
        break;
    case 4:
        *out = cti_jn_int(length);
        break;
    case 5:
    case 6:
        *out = cti_jn_int(length - loop->index0 - (i == 6));
        break;
    case 7:
        *out = loop->before;
        return loop->index0 == 0 ? cti_jn_undefined(x, out, "there is no previous item") : CT_OK;
    case 8:
        *out = loop->after;
        return loop->has_after ? CT_OK : cti_jn_undefined(x, out, "there is no next item");
    case 9:
    case 10:
        *out = cti_jn_int(i == 9);
        break;
    case 11: {
        cti_jn_method *m = cti_jn_alloc(x, 1, sizeof *m);
        if (m == NULL) {
            return x->memory > x->max_memory ? CT_ERR_RANGE : CT_ERR_MEMORY;
        }
        *m = (cti_jn_method){.self = JN_VALUE(JN_LOOP, loop, loop), .row = &cycle_row};
        *out = JN_VALUE(JN_METHOD, method, m);
        break;
    }
    case 12:
        return JN_FAIL(x, CT_ERR_UNSUPPORTED, "loop.changed is not supported in templates here");
    default:
        break;
    }
    return CT_OK;
}
