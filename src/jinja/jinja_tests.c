/* SPDX-License-Identifier: Apache-2.0 */
/* The tests after `is`. */
#include "jinja/jinja_internal.h"

#define TEST(name) static ct_status name(cti_jn_ctx *x, cti_jn_val v, cti_jn_val arg, bool *out)

TEST(is_defined)
{
    (void)x, (void)arg;
    *out = v.kind != JN_UNDEFINED;
    return CT_OK;
}

TEST(is_undefined)
{
    (void)x, (void)arg;
    *out = v.kind == JN_UNDEFINED;
    return CT_OK;
}

TEST(is_none)
{
    (void)x, (void)arg;
    *out = v.kind == JN_NONE;
    return CT_OK;
}

TEST(is_boolean)
{
    (void)x, (void)arg;
    *out = v.kind == JN_BOOL;
    return CT_OK;
}

TEST(is_true)
{
    (void)x, (void)arg;
    *out = v.kind == JN_BOOL && v.as.b;
    return CT_OK;
}

TEST(is_false)
{
    (void)x, (void)arg;
    *out = v.kind == JN_BOOL && !v.as.b;
    return CT_OK;
}

TEST(is_integer)
{
    (void)x, (void)arg;
    *out = v.kind == JN_INT;
    return CT_OK;
}

TEST(is_float)
{
    (void)x, (void)arg;
    *out = v.kind == JN_FLOAT;
    return CT_OK;
}

TEST(is_number)
{
    (void)x, (void)arg;
    *out = cti_jn_is_number(v);
    return CT_OK;
}

TEST(is_string)
{
    (void)x, (void)arg;
    *out = v.kind == JN_STR;
    return CT_OK;
}

TEST(is_mapping)
{
    (void)x, (void)arg;
    *out = v.kind == JN_DICT;
    return CT_OK;
}

TEST(is_sequence)
{
    (void)x, (void)arg;
    *out = v.kind == JN_STR || v.kind == JN_LIST || v.kind == JN_TUPLE || v.kind == JN_RANGE ||
           v.kind == JN_DICT || v.kind == JN_UNDEFINED;
    return CT_OK;
}

TEST(is_iterable)
{
    CT_TRY(is_sequence(x, v, arg, out));
    *out = *out || v.kind == JN_VIEW || v.kind == JN_GENERATOR || v.kind == JN_LOOP;
    return CT_OK;
}

TEST(is_callable)
{
    (void)x, (void)arg;
    *out = v.kind == JN_MACRO || v.kind == JN_FUNCTION || v.kind == JN_METHOD || v.kind == JN_LOOP ||
           v.kind == JN_UNDEFINED;
    return CT_OK;
}

static ct_status cased(cti_jn_ctx *x, cti_jn_val v, cti_jn_case c, bool *out)
{
    cti_jn_val text;
    CT_TRY(cti_jn_to_str(x, v, &text));
    *out = cti_jn_is_cased_all(text.as.s->p, text.as.s->n, c);
    return CT_OK;
}

TEST(is_lower)
{
    (void)arg;
    return cased(x, v, JN_LOWER, out);
}

TEST(is_upper)
{
    (void)arg;
    return cased(x, v, JN_UPPER, out);
}

static ct_status divides(cti_jn_ctx *x, cti_jn_val v, cti_jn_val by, int64_t rest, bool *out)
{
    cti_jn_val r;
    CT_TRY(cti_jn_binary(x, JN_MOD, v, by, &r));
    return cti_jn_equal(x, r, cti_jn_int(rest), 0, out);
}

TEST(is_odd)
{
    (void)arg;
    return divides(x, v, cti_jn_int(2), 1, out);
}

TEST(is_even)
{
    (void)arg;
    return divides(x, v, cti_jn_int(2), 0, out);
}

TEST(is_divisible_by)
{
    return divides(x, v, arg, 0, out);
}

TEST(is_equal)
{
    return cti_jn_equal(x, v, arg, 0, out);
}

TEST(is_not_equal)
{
    CT_TRY(cti_jn_equal(x, v, arg, 0, out));
    *out = !*out;
    return CT_OK;
}

TEST(is_less)
{
    return cti_jn_compare(x, JN_LT, v, arg, 0, out);
}

TEST(is_less_equal)
{
    return cti_jn_compare(x, JN_LE, v, arg, 0, out);
}

TEST(is_greater)
{
    return cti_jn_compare(x, JN_GT, v, arg, 0, out);
}

TEST(is_greater_equal)
{
    return cti_jn_compare(x, JN_GE, v, arg, 0, out);
}

TEST(is_in)
{
    return cti_jn_contains(x, v, arg, out);
}

/* Python's `is`, which means the same everywhere for these kinds only. */
TEST(is_same)
{
    if (v.kind == JN_NONE || v.kind == JN_BOOL || arg.kind == JN_NONE || arg.kind == JN_BOOL) {
        *out = v.kind == arg.kind && (v.kind != JN_BOOL || v.as.b == arg.as.b);
        return CT_OK;
    }
    return JN_FAIL(
        x, CT_ERR_UNSUPPORTED,
        "the test 'sameas' of other values than none, true and false is not supported in templates here");
}

const cti_jn_test_row *cti_jn_test_find(const char *p, size_t n)
{
    static const cti_jn_test_row rows[] = {{"defined", 0, is_defined},
                                           {"undefined", 0, is_undefined},
                                           {"none", 0, is_none},
                                           {"boolean", 0, is_boolean},
                                           {"true", 0, is_true},
                                           {"false", 0, is_false},
                                           {"integer", 0, is_integer},
                                           {"float", 0, is_float},
                                           {"number", 0, is_number},
                                           {"string", 0, is_string},
                                           {"mapping", 0, is_mapping},
                                           {"sequence", 0, is_sequence},
                                           {"iterable", 0, is_iterable},
                                           {"callable", 0, is_callable},
                                           {"lower", 0, is_lower},
                                           {"upper", 0, is_upper},
                                           {"odd", 0, is_odd},
                                           {"even", 0, is_even},
                                           {"divisibleby", 1, is_divisible_by},
                                           {"eq", 1, is_equal},
                                           {"equalto", 1, is_equal},
                                           {"==", 1, is_equal},
                                           {"ne", 1, is_not_equal},
                                           {"!=", 1, is_not_equal},
                                           {"lt", 1, is_less},
                                           {"lessthan", 1, is_less},
                                           {"<", 1, is_less},
                                           {"le", 1, is_less_equal},
                                           {"<=", 1, is_less_equal},
                                           {"gt", 1, is_greater},
                                           {"greaterthan", 1, is_greater},
                                           {">", 1, is_greater},
                                           {"ge", 1, is_greater_equal},
                                           {">=", 1, is_greater_equal},
                                           {"in", 1, is_in},
                                           {"sameas", 1, is_same},
                                           {"escaped", 0, NULL},
                                           {"filter", 0, NULL},
                                           {"test", 0, NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, p, n) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

ct_status cti_jn_test_run(cti_jn_ctx *x, const cti_jn_test_row *row, cti_jn_val v, const cti_jn_args *args,
                          bool *out)
{
    if (args->n != (size_t)row->n_args || args->n_keys > 0) {
        return JN_FAIL(x, CT_ERR_DATA, "the test '%s' takes %d arguments, but is given %zu", row->name,
                       row->n_args, args->n + args->n_keys);
    }
    return row->fn(x, v, args->n > 0 ? args->v[0] : cti_jn_none(), out);
}
