/* rooms: base */
/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers from text and to text. What is expected is what Python 3.11's int(), float() and repr() say. */
#include "base_test.h"

#include <locale.h>
#include <math.h>

#include "base/rng.h"
#include "base/str.h"

static void integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-0", 0},
                {"+7", 7},
                {"007", 7},
                {" \t\n42\r\v\f ", 42},
                {"1_000_000", 1000000},
                {"0_0", 0},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN},
                {"0000000000000000000000000000001", 1}};
    for (size_t i = 0; i < N_OF(good); i++) {
        int64_t out = -1;
        if (!cti_parse_i64(good[i].text, &out) || out != good[i].value) {
            fail_msg("'%s'", good[i].text);
        }
    }
    static const char *const bad[] = {"",
                                      " ",
                                      "+",
                                      "-",
                                      "--1",
                                      "+-1",
                                      "1 2",
                                      "1_",
                                      "_1",
                                      "1__0",
                                      "-_1",
                                      "0x10",
                                      "1.0",
                                      "1e3",
                                      "abc",
                                      "12a",
                                      "1,000",
                                      "- 1",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999999",
                                      "True"};
    for (size_t i = 0; i < N_OF(bad); i++) {
        int64_t out = -77;
        if (cti_parse_i64(bad[i], &out) || out != -77) {
            fail_msg("'%s'", bad[i]);
        }
    }
    int64_t out;
    assert_false(cti_parse_i64(NULL, &out));
}

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

static void floats(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0.0},
                {"-0.0", -0.0},
                {"1", 1.0},
                {"3e-4", 3e-4},
                {"+1.5E+3", 1500.0},
                {".5", 0.5},
                {"5.", 5.0},
                {" 7.25\n", 7.25},
                {"1_000.5_0e1_0", 1000.50e10},
                {"inf", (double)INFINITY},
                {"-Infinity", -(double)INFINITY},
                {"+INF", (double)INFINITY},
                {"NaN", (double)NAN},
                {"1e-400", 0.0},
                {"-1e-400", -0.0},
                {"0e999999999999999999999", 0.0},
                {"4.9e-324", 4.9e-324},
                {"2.4703282292062327208e-324", 0.0},
                {"2.4703282292062328e-324", 5e-324},
                {"1.7976931348623157e308", 1.7976931348623157e308},
                {"1.7976931348623158079e308", 1.7976931348623157e308},
                {"9007199254740993", 9007199254740992.0},
                {"9007199254740993.00000000000000000000000000000000000001", 9007199254740994.0},
                {"00000000000000000000000000000000000000000000000000000001e0", 1.0}};
    for (size_t i = 0; i < N_OF(good); i++) {
        double out = 0.125;
        if (!cti_parse_f64(good[i].text, &out) || !same(out, good[i].value)) {
            fail_msg("'%s' gave %.17g", good[i].text, out);
        }
    }
    static const char *const bad[] = {
        "",     " ",    ".",     "e5",     "1e",      "1e+",     "1_",
        "_1",   "1__0", "1_.5",  "1._5",   "1e_5",    "1_e5",    "+-1",
        "0x10", "1.5f", "1..5",  "1,5",    "infx",    "nan(1)",  "in",
        "1 5",  "1e5.", "1e400", "-1e400", "1.8e308", "infinit", "1.7976931348623159e308"};
    for (size_t i = 0; i < N_OF(bad); i++) {
        double out = 0.125;
        if (cti_parse_f64(bad[i], &out) || out != 0.125) {
            fail_msg("'%s'", bad[i]);
        }
    }
    double out;
    assert_false(cti_parse_f64(NULL, &out));
}

/* Halfway between 2^53 and its upper neighbour, then thousands of zeros, then one digit that decides. */
static void long_numbers_round_right(void **state)
{
    (void)state;
    static const int zeros[] = {10, 780, 790, 800, 5000, 100000};
    for (size_t i = 0; i < N_OF(zeros); i++) {
        cti_str s = {.alloc = ct_alloc_system()};
        cti_str_add(&s, "9007199254740993.");
        for (int k = 0; k < zeros[i]; k++) {
            cti_str_add_char(&s, '0');
        }
        double out = 0.0;
        assert_true(cti_parse_f64(s.data, &out));
        assert_true(out == 9007199254740992.0);
        cti_str_add_char(&s, '1');
        assert_true(cti_parse_f64(s.data, &out));
        assert_true(out == 9007199254740994.0);
        cti_str_reset(&s);
        cti_str_add_char(&s, '7');
        for (int k = 0; k < zeros[i]; k++) {
            cti_str_add_char(&s, '0');
        }
        cti_str_printf(&s, "e-%d", zeros[i]);
        assert_true(cti_parse_f64(s.data, &out));
        assert_true(out == 7.0);
        cti_str_deinit(&s);
    }
}

static void shortest_text(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0.0008, "0.0008"},
        {1e-08, "1e-08"},
        {1.0, "1.0"},
        {-1.0, "-1.0"},
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {(double)INFINITY, "inf"},
        {-(double)INFINITY, "-inf"},
        {(double)NAN, "nan"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {0.1, "0.1"},
        {1.0 / 3.0, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {100.0, "100.0"},
        {123456.789, "123456.789"},
        {0.0001, "0.0001"},
        {0.00001, "1e-05"},
        {0.00012345, "0.00012345"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e+16"},
        {9999999999999998.0, "9999999999999998.0"},
        {12345678901234567.0, "1.2345678901234568e+16"},
        {1e22, "1e+22"},
        {1e23, "1e+23"},
        {1e100, "1e+100"},
        {-2.5e-7, "-2.5e-07"},
        {9007199254740992.0, "9007199254740992.0"},
        {0x1p-44, "5.684341886080802e-14"}, /* a power of two whose nearest 16 digits do not read back */
        {3e-4, "0.0003"},
        {1e-5, "1e-05"}};
    char buf[32];
    for (size_t i = 0; i < N_OF(rows); i++) {
        assert_string_equal(cti_format_f64(rows[i].value, buf), rows[i].text);
    }
}

static void text_reads_back(void **state)
{
    (void)state;
    const cti_rng_key key = cti_rng_key_make(1, "text_reads_back");
    char buf[32], shorter[64];
    int n_shorter = 0;
    for (uint64_t i = 0; i < 20000 + 2098; i++) {
        uint32_t r[4];
        cti_rng_bits(key, i, r);
        double value;
        uint64_t bits = (uint64_t)r[0] << 32 | r[1];
        memcpy(&value, &bits, sizeof value);
        if (i >= 20000) {
            value = ldexp(1.0, (int)(i - 20000) - 1074);
        }
        double back = 0.125;
        cti_format_f64(value, buf);
        assert_true(strlen(buf) < 26);
        if (!cti_parse_f64(buf, &back) || !same(back, value)) {
            fail_msg("%a gave '%s'", value, buf);
        }
        /* One digit fewer, rounded to nearest, must not do. */
        int n_digits = 0, n_zeros = 0; /* without the zeros at either end */
        for (const char *p = buf; *p != '\0' && *p != 'e'; p++) {
            if (*p >= '1' && *p <= '9') {
                n_digits += n_zeros + 1;
                n_zeros = 0;
            } else {
                n_zeros += *p == '0' && n_digits > 0;
            }
        }
        if (n_digits == 17 && value == value) {
            (void)snprintf(shorter, sizeof shorter, "%.15e", value);
            assert_false(strtod(shorter, NULL) == value);
            n_shorter++;
        }
    }
    assert_true(n_shorter > 5000); /* about half of all doubles need 17 digits */
}

static void thousands(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        const char *text;
    } rows[] = {{0, "0"},
                {7, "7"},
                {999, "999"},
                {1000, "1,000"},
                {-1000, "-1,000"},
                {-999, "-999"},
                {1234567, "1,234,567"},
                {8030261248, "8,030,261,248"},
                {INT64_MAX, "9,223,372,036,854,775,807"},
                {INT64_MIN, "-9,223,372,036,854,775,808"}};
    char buf[32];
    for (size_t i = 0; i < N_OF(rows); i++) {
        assert_string_equal(cti_format_thousands(rows[i].value, buf), rows[i].text);
    }
}

static void byte_counts(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        const char *text;
    } rows[] = {{0, "0 B"},
                {512, "512 B"},
                {1023, "1023 B"},
                {1024, "1.00 KiB"},
                {3277, "3.20 KiB"},
                {1048575, "1.00 MiB"}, /* 1023.999 rounds up into the next unit */
                {2136746230, "1.99 GiB"},
                {(int64_t)3 << 39, "1.50 TiB"},
                {(int64_t)1 << 50, "1.00 PiB"},
                {INT64_MAX, "8.00 EiB"},
                {INT64_MIN, "-8.00 EiB"},
                {-2048, "-2.00 KiB"}};
    char buf[32];
    for (size_t i = 0; i < N_OF(rows); i++) {
        assert_string_equal(cti_format_bytes(rows[i].value, buf), rows[i].text);
    }
}

/* Where the machine has a locale that writes 1,5 the results stay. */
static void locale_changes_nothing(void **state)
{
    (void)state;
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "ru_RU.UTF-8"};
    const char *set = NULL;
    for (size_t i = 0; i < N_OF(locales) && set == NULL; i++) {
        set = setlocale(LC_NUMERIC, locales[i]);
    }
    if (set == NULL) {
        skip();
    }
    char buf[32];
    double out = 0.0;
    assert_true(cti_parse_f64("1.5", &out));
    assert_true(out == 1.5);
    assert_false(cti_parse_f64("1,5", &out));
    assert_string_equal(cti_format_f64(1.5, buf), "1.5");
    assert_string_equal(cti_format_bytes(1536, buf), "1.50 KiB");
    assert_non_null(setlocale(LC_NUMERIC, "C"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(floats),
        cmocka_unit_test(long_numbers_round_right),
        cmocka_unit_test(shortest_text),
        cmocka_unit_test(text_reads_back),
        cmocka_unit_test(thousands),
        cmocka_unit_test(byte_counts),
        cmocka_unit_test(locale_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
