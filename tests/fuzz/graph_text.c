/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: ops ir base */
/* Mutated graph texts never crash the parser, the verifier, reinference or the printer, and whatever parses
 * prints to a text that parses to itself. */
#include "fuzz/fuzz.h"
#include "unit/ops_cases.h"

typedef struct fuzz {
    fuzz_case c;
    cti_str text;
} fuzz;

static size_t below(fuzz *f, size_t n)
{
    return fuzz_below(&f->c, n);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void splice(fuzz *f, size_t at, size_t n, const char *bytes, size_t n_bytes)
{
    fuzz_splice(&f->text, at, n, bytes, n_bytes);
}

/* Start and length, with its newline, of a random line. */
static size_t random_line(fuzz *f, size_t *out_n)
{
    size_t at = below(f, f->text.len);
    while (at > 0 && f->text.data[at - 1] != '\n') {
        at--;
    }
    const char *end = memchr(f->text.data + at, '\n', f->text.len - at);
    *out_n = end == NULL ? f->text.len - at : (size_t)(end - f->text.data) + 1 - at;
    return at;
}

static void mutate(fuzz *f)
{
    static const char *const tokens[] = {"%",
                                         "#",
                                         "_",
                                         "-1",
                                         "0",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "99999999999999999999",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         "\"",
                                         "\\",
                                         "\\x",
                                         "=",
                                         ",",
                                         "dead ",
                                         "nan",
                                         "inf",
                                         "bf16",
                                         "i32",
                                         "true",
                                         "\n",
                                         "\0",
                                         "1 ",
                                         "matmul",
                                         "flat_split",
                                         "adamw",
                                         "alias %0 0",
                                         "param",
                                         "act",
                                         "place [",
                                         "(",
                                         ")",
                                         "1e400"};
    const size_t at = below(f, f->text.len + 1), left = f->text.len - at;
    char c;
    size_t n;
    switch (below(f, 8)) {
    case 0: /* a byte */
        c = (char)below(f, 256);
        splice(f, at, left > 0, &c, 1);
        break;
    case 1: /* a token put in or over */
    case 2: {
        const char *token = tokens[below(f, N_OF(tokens))];
        splice(f, at, min_size(left, below(f, 3)), token, token[0] == '\0' ? 1 : strlen(token));
        break;
    }
    case 3: /* a span cut out */
        splice(f, at, min_size(left, below(f, 12)), "", 0);
        break;
    case 4: { /* a line twice, or gone */
        const size_t line = random_line(f, &n);
        char copy[4096];
        assert_true(n < sizeof copy);
        memcpy(copy, f->text.data + line, n);
        splice(f, line, n * below(f, 2), copy, n * below(f, 2));
        break;
    }
    case 5: /* a digit for a digit: stays well formed most of the time */
    case 6:
        for (size_t i = at; i < f->text.len; i++) {
            if (f->text.data[i] >= '0' && f->text.data[i] <= '9') {
                f->text.data[i] = (char)('0' + below(f, 10));
                break;
            }
        }
        break;
    default: /* cut off, seldom */
        if (below(f, 8) == 0) {
            splice(f, at, left, "", 0);
        }
    }
}

/* True where the text parsed. */
static bool try_text(const fuzz *f)
{
    ct_graph *g = NULL;
    ct_err err = {0};
    const ct_status st =
        ct_graph_parse(ct_alloc_system(), cti_str_text(&f->text), f->text.len, "fuzz", &g, &err);
    if (st != CT_OK) {
        assert_null(g);
        assert_int_equal(err.status, st);
        assert_true(err.message[0] != '\0');
        return false;
    }
    ct_err ignored = {0};
    const bool is_sound = ct_graph_verify(g, &ignored) == CT_OK;
    char *text, *again;
    ct_graph *back = NULL;
    assert_int_equal(ct_graph_print(g, ct_alloc_system(), &text, &err), CT_OK);
    if (ct_graph_parse(ct_alloc_system(), text, strlen(text), "fuzz", &back, &err) != CT_OK) {
        fail_msg("printed but not read back: %s", err.message);
    }
    assert_int_equal(ct_graph_print(back, ct_alloc_system(), &again, &err), CT_OK);
    assert_string_equal(text, again);
    if (is_sound) {
        assert_true(ct_graph_flops(g, CT_PROGRAM_FORWARD) >= 0.0);
    }
    const ct_status inferred = ct_graph_reinfer(back, NULL);
    assert_true(!is_sound || inferred == CT_OK);
    ct_alloc_free(ct_alloc_system(), text);
    ct_alloc_free(ct_alloc_system(), again);
    ct_graph_destroy(&back);
    ct_graph_destroy(&g);
    return true;
}

static void mutations(void **state)
{
    (void)state;
    fuzz f = {.c = fuzz_begin("graph_text", 4000)};
    const long runs = (long)(f.c.end - f.c.seed);
    ct_graph *g = case_graph_of_all();
    char *whole;
    ct_err err = {0};
    assert_int_equal(ct_graph_print(g, ct_alloc_system(), &whole, &err), CT_OK);
    long n_parsed = 0;
    while (fuzz_next(&f.c)) {
        f.text = (cti_str){.alloc = ct_alloc_system()};
        cti_str_add(&f.text, whole);
        for (size_t n = 1 + below(&f, 4); n > 0; n--) {
            mutate(&f);
        }
        n_parsed += try_text(&f);
        cti_str_deinit(&f.text);
    }
    print_message("%ld of %ld mutated texts parsed\n", n_parsed, runs);
    assert_true(runs < 1000 || (n_parsed > runs / 50 && n_parsed < runs)); /* or it tests one half only */
    ct_alloc_free(ct_alloc_system(), whole);
    ct_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mutations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
