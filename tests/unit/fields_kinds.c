/* rooms: base */
/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of field: default, parsing, bounds, text that reads back, copy, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/fields.h"

/* clang-format off */
#define FIELDS(X) \
    X(flag, BOOL, "true", "", "", "", "", 0, NULL, "") \
    X(steps, I64, "10", "1", "100", "", "steps", 0, NULL, "") \
    X(above, F64, "1.5", "0", "2", "", "", CT_SET_EXCLUSIVE_LOW, NULL, "") \
    X(any, F64, "inf", "", "", "", "", 0, NULL, "") \
    X(name, STR, "a b", "1", "8", "", "", 0, NULL, "") \
    X(dtype, CHOICE, "float32", "", "", "bfloat16|float32", "", 0, NULL, "") \
    X(maybe, OPT_I64, "None", "0", "", "", "", 0, NULL, "") \
    X(ratio, OPT_F64, "0.8", "0", "1", "", "", 0, NULL, "") \
    X(path, OPT_STR, "None", "1", "", "", "", 0, NULL, "") \
    X(parts, STR_LIST, "model,loss", "", "", "", "", 0, NULL, "") \
    X(stages, STR_LISTS, "None", "", "", "", "", 0, NULL, "") \
    X(counts, I64_LIST, "1 2", "0", "9", "", "", 0, NULL, "") \
    X(betas, F64_LIST, "0.9 0.95", "0", "1", "", "", 0, NULL, "") \
    X(imports, TOKENS, "", "", "", "", "", 0, NULL, "") \
    X(later, BOOL, "false", "", "", "", "", 0, "it is not there yet", "") \
    X(mode, CHOICE, "off", "", "", "off|on", "", 0, "only off is there", "")
/* clang-format on */
typedef struct toy {
    FIELDS(CT_FIELD_MEMBER)
} toy;
#define ROW(...) CT_FIELD_ROW_IN(toy, __VA_ARGS__)
static const ct_field fields[] = {FIELDS(ROW)};
enum { N_FIELDS = sizeof fields / sizeof fields[0], MAX_TOKENS = 4 };

static ct_arena *arena;

static int make_arena(void **state)
{
    (void)state;
    return ct_arena_create(ct_alloc_system(), 0, &arena, NULL) == CT_OK ? 0 : -1;
}

static int drop_arena(void **state)
{
    (void)state;
    ct_arena_destroy(&arena);
    return 0;
}

static void defaults_are_the_texts(void **state)
{
    (void)state;
    toy t;
    memset(&t, 0xa5, sizeof t);
    ct_err err = {0};
    assert_int_equal(ct_fields_default(fields, N_FIELDS, &t, arena, &err), CT_OK);
    assert_true(t.flag);
    assert_int_equal(t.steps, 10);
    assert_true(t.above == 1.5);
    assert_string_equal(t.name, "a b");
    assert_false(t.maybe.is_set);
    assert_true(t.ratio.is_set && t.ratio.value == 0.8);
    assert_null(t.path);
    assert_int_equal(t.parts.n, 2);
    assert_string_equal(t.parts.items[1], "loss");
    assert_false(t.stages.is_set);
    assert_true(t.counts.n == 2 && t.counts.items[1] == 2);
    assert_true(t.betas.n == 2 && t.betas.items[1] == 0.95);
    assert_int_equal(t.imports.n, 0);
    for (size_t i = 0; i < N_FIELDS; i++) {
        assert_string_equal(ct_field_text(&fields[i], &t, arena, &err), fields[i].default_text);
    }
}

/* wanted: the text after setting, or where it begins with '!' a part of the error. */
static const struct {
    const char *field;
    const char *tokens[MAX_TOKENS];
    const char *wanted;
} cases[] = {
    {"flag", {"false"}, "false"},
    {"flag", {"True"}, "true"},
    {"flag", {"0"}, "false"},
    {"flag", {"yes"}, "!'yes' is neither true nor false"},
    {"steps", {"1_0"}, "10"},
    {"steps", {"100"}, "100"},
    {"steps", {"0"}, "!'0' is too small, wanted at least 1 steps"},
    {"steps", {"101"}, "!'101' is too large, wanted at most 100 steps"},
    {"steps", {"1e1"}, "!'1e1' is no whole number"},
    {"steps", {""}, "!'' is no whole number"},
    {"steps", {"9223372036854775808"}, "!no whole number"},
    {"steps", {"1", "2"}, "!wanted one value, found 2"},
    {"steps", {NULL}, "!wanted one value, found 0"},
    {"above", {"2"}, "2.0"},
    {"above", {"0"}, "!'0' is too small, wanted more than 0"},
    {"above", {"nan"}, "!'nan' is no number (FLOAT)"},
    {"ratio", {"nan"}, "!'nan' is no number (FLOAT)"},
    {"betas", {"nan", "0"}, "!'nan' is no number (FLOAT)"},
    {"above", {"2.0001"}, "!wanted at most 2"},
    {"above", {"x"}, "!'x' is no number"},
    {"any", {"-inf"}, "-inf"},
    {"any", {"nan"}, "nan"},
    {"any", {"1e-8"}, "1e-08"},
    {"name", {"None"}, "None"},
    {"name", {""}, "!'' is too short, wanted 1 byte or more"},
    {"name", {"123456789"}, "!has 9 bytes, at most 8"},
    {"dtype", {"bfloat16"}, "bfloat16"},
    {"dtype", {"bfloat15"}, "!'bfloat15' is none of bfloat16, float32 (nearest: 'bfloat16')"},
    {"dtype", {"fp8"}, "!'fp8' is none of bfloat16, float32"},
    {"dtype", {""}, "!'' is none of"},
    {"maybe", {"7"}, "7"},
    {"maybe", {"None"}, "None"},
    {"maybe", {"none"}, "!'none' is no whole number"},
    {"maybe", {"-1"}, "!'-1' is too small"},
    {"ratio", {"None"}, "None"},
    {"ratio", {"1.5"}, "!too large"},
    {"path", {"none"}, "none"},
    {"path", {"None"}, "None"},
    {"path", {""}, "!too short"},
    {"parts", {"a,b,c"}, "a,b,c"},
    {"parts", {""}, ""},
    {"parts", {"a,,"}, "a,,"},
    {"stages", {"a,b", "c,d"}, "a,b c,d"},
    {"stages", {"None"}, "None"},
    {"counts", {"3", "4", "5"}, "3 4 5"},
    {"counts", {"3", "10"}, "!'10' is too large"},
    {"counts", {"3", "x"}, "!'x' is no whole number"},
    {"betas", {"0.8", "0.9"}, "0.8 0.9"},
    {"betas", {"0.8", "2"}, "!too large"},
    {"imports", {"a.b", "c.d={\"k\": 1}", "it's", ""}, "a.b 'c.d={\"k\": 1}' 'it''s' ''"},
    {"later", {"false"}, "false"},
    {"later", {"true"}, "!'true' is refused: it is not there yet"},
    {"mode", {"on"}, "!'on' is refused: only off is there (leave it at 'off')"},
};

static void each_case_sets_or_says_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        toy t;
        toy before;
        ct_err err = {0};
        assert_int_equal(ct_fields_default(fields, N_FIELDS, &t, arena, &err), CT_OK);
        memcpy(&before, &t, sizeof t);
        const ct_field *field = ct_field_find(fields, N_FIELDS, cases[i].field);
        assert_non_null(field);
        size_t n = 0;
        while (n < MAX_TOKENS && cases[i].tokens[n] != NULL) {
            n++;
        }
        const ct_status st = ct_field_set(field, &t, cases[i].tokens, n, arena, &err);
        if (cases[i].wanted[0] == '!') {
            assert_int_equal(st, CT_ERR_USAGE);
            if (strstr(err.message, cases[i].wanted + 1) == NULL) {
                fail_msg("case %zu: wanted '%s' in '%s'", i, cases[i].wanted + 1, err.message);
            }
            assert_memory_equal(&before, &t, sizeof t); /* unchanged */
            continue;
        }
        if (st != CT_OK) {
            fail_msg("case %zu: %s", i, err.message);
        }
        assert_string_equal(ct_field_text(field, &t, arena, &err), cases[i].wanted);
    }
}

/* What ct_field_text writes, cti_field_split and ct_field_set read back to an equal value; so does a copy. */
static void text_and_copy_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cases[i].wanted[0] == '!') {
            continue;
        }
        toy a, b, c;
        ct_err err = {0};
        cti_tokens tokens;
        const ct_field *field = ct_field_find(fields, N_FIELDS, cases[i].field);
        assert_int_equal(ct_fields_default(fields, N_FIELDS, &a, arena, &err), CT_OK);
        assert_int_equal(ct_fields_default(fields, N_FIELDS, &b, arena, &err), CT_OK);
        assert_int_equal(ct_fields_default(fields, N_FIELDS, &c, arena, &err), CT_OK);
        assert_int_equal(cti_field_split(field, cases[i].wanted, arena, &tokens, &err), CT_OK);
        assert_int_equal(ct_field_set(field, &a, tokens.items, tokens.n, arena, &err), CT_OK);
        const char *text = ct_field_text(field, &a, arena, &err);
        assert_string_equal(text, cases[i].wanted);
        assert_int_equal(cti_field_split(field, text, arena, &tokens, &err), CT_OK);
        assert_int_equal(ct_field_set(field, &b, tokens.items, tokens.n, arena, &err), CT_OK);
        assert_true(ct_field_equal(field, &a, &b));
        assert_int_equal(ct_field_copy(field, &c, &a, arena, &err), CT_OK);
        assert_true(ct_field_equal(field, &a, &c));
        assert_string_equal(ct_field_text(field, &c, arena, &err), text);
    }
}

static void different_values_are_not_equal(void **state)
{
    (void)state;
    static const struct {
        const char *field, *text;
    } others[] = {{"flag", "false"}, {"steps", "11"},   {"above", "1.25"},      {"any", "0"},
                  {"name", "b"},     {"maybe", "3"},    {"dtype", "bfloat16"},  {"ratio", "0.5"},
                  {"path", "x"},     {"parts", "model"}, {"stages", "a"},       {"counts", "1 3"},
                  {"betas", "0.9"},  {"imports", "x.y"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        toy a, b;
        cti_tokens tokens;
        assert_int_equal(ct_fields_default(fields, N_FIELDS, &a, arena, NULL), CT_OK);
        assert_int_equal(ct_fields_default(fields, N_FIELDS, &b, arena, NULL), CT_OK);
        const ct_field *field = ct_field_find(fields, N_FIELDS, others[i].field);
        assert_int_equal(cti_field_split(field, others[i].text, arena, &tokens, NULL), CT_OK);
        assert_int_equal(ct_field_set(field, &b, tokens.items, tokens.n, arena, NULL), CT_OK);
        assert_false(ct_field_equal(field, &a, &b));
    }
}

static void names_are_found_in_both_cases(void **state)
{
    (void)state;
    static const ct_field rows[] = {{.name = "seq_len"}, {.name = "steps"}};
    assert_ptr_equal(ct_field_find(rows, 2, "seq-len"), &rows[0]);
    assert_ptr_equal(ct_field_find(rows, 2, "seq_len"), &rows[0]);
    assert_null(ct_field_find(rows, 2, "seq"));
    assert_null(ct_field_find(rows, 2, "seq_lens"));
    assert_true(cti_name_eq("a-b_c", "a_b-c"));
    assert_false(cti_name_eq("a-b", "a.b"));
}

static void an_open_quote_is_told(void **state)
{
    (void)state;
    ct_err err = {0};
    cti_tokens tokens;
    const ct_field *field = ct_field_find(fields, N_FIELDS, "imports");
    assert_int_equal(cti_field_split(field, "a 'b c", arena, &tokens, &err), CT_ERR_USAGE);
    assert_non_null(strstr(err.message, "a quote is not closed"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_texts),        cmocka_unit_test(each_case_sets_or_says_why),
        cmocka_unit_test(text_and_copy_round_trip),      cmocka_unit_test(different_values_are_not_equal),
        cmocka_unit_test(names_are_found_in_both_cases), cmocka_unit_test(an_open_quote_is_told),
    };
    return cmocka_run_group_tests_name("unit.fields_kinds", tests, make_arena, drop_arena);
}
