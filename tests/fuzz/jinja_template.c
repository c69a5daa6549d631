/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: jinja base */
/* Mutated chat templates: none crashes, hangs or takes more than its limits; each failure has one message
 * that names its place. */
#include "fuzz/fuzz.h"

#include "base/json.h"
#include "jinja/jinja.h"

static const char *const samples[] = {
    "{% for m in messages %}{{ '<|' + m['role'] + '|>\\n' + m.content | trim }}{% if loop.last and add %}{{- "
    "eos }}{% endif %}\n{% endfor %}",
    "{%- set ns = namespace(a=1, b=[]) -%}{% for k, v in d|dictsort if v is not none %}{% set ns.a = ns.a + "
    "loop.index %}{{ k ~ v|tojson(indent=2) }}"
    "{% else %}none{% endfor %}{{ ns.a }}{# c #}",
    "{% macro f(x, y=2) %}{% if x > 0 %}{{ x }}{{ f(x - 1, y=y) }}{{ caller is defined }}{% endif %}{% "
    "endmacro %}{{ f(3) }}{% call f(1) %}b{% endcall %}",
    "{% set s %}  {{ messages[::-1][0].content.split(' ')[1:]|join('-') }} {% endset %}{{ s|upper }}{% raw "
    "%}{{ x }}{% endraw %}{{ s.replace('a', 'bb') }}",
    "{% for i in range(30) %}{% if i is odd %}{% continue %}{% elif i > 9 %}{% break %}{% endif %}{{ i // 3 "
    "** 2 % 5 - -1.5 }}{{ loop.previtem }}{% endfor %}",
    "{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|list }}{{ (1, [2, {'a': "
    "none}])|string * 3 }}{{ strftime_now('%d %b %Y') }}",
    "{% filter title %}{{ d.items()|list|sort(reverse=true) }}{% endfilter %}{% with a = 'x' if t else 'y' "
    "%}{{ a[-1:] in 'xyz' }}{% endwith %}"
    "{% generation %}{{ '\\u00e9\\n' }}{% endgeneration %}",
};
static const char *const pieces[] = {"{%",
                                     "%}",
                                     "{{",
                                     "}}",
                                     "{#",
                                     "#}",
                                     "-%}",
                                     "{%-",
                                     " if ",
                                     " else ",
                                     "|",
                                     "(",
                                     ")",
                                     "[",
                                     "]",
                                     "::",
                                     "*",
                                     "**",
                                     "~",
                                     "'",
                                     "\"",
                                     "\\",
                                     ".",
                                     "loop",
                                     "range(99999)",
                                     "namespace()",
                                     "messages",
                                     "d",
                                     "not ",
                                     " in ",
                                     " is ",
                                     "endfor",
                                     "for x in ",
                                     "set x = ",
                                     "macro m()",
                                     "x",
                                     "m()",
                                     "|list",
                                     "|tojson",
                                     "|map('upper')",
                                     "|join",
                                     "|indent(99)",
                                     "[x, x]",
                                     "9223372036854775807",
                                     "1e308",
                                     "\xc3\xa9",
                                     "\xf0\x9f\x98\x80",
                                     "\xff",
                                     "%}\n",
                                     "* 99999"};
static const char variables[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \" Hello w\xc3\xb6rld \"}, {\"role\": \"assistant\", "
    "\"content\": \"Hi <b>\", \"tool_calls\": [{\"f\": [1, 2.5, null]}]}],"
    " \"d\": {\"b\": 1, \"a\": \"x\", \"c\": [true, null]}, \"t\": true, \"add\": false, \"eos\": \"</s>\"}";

static void mutate(fuzz_case *c, cti_str *text)
{
    for (size_t n = 1 + fuzz_below(c, 2); n > 0; n--) {
        const size_t at = fuzz_below(c, text->len + 1), left = text->len - at;
        if (fuzz_below(c, 3) > 0) {
            const char *piece = pieces[fuzz_below(c, N_OF(pieces))];
            const size_t cut = fuzz_below(c, 4);
            fuzz_splice(text, at, cut < left ? cut : left, piece, strlen(piece));
        } else if (fuzz_below(c, 2) > 0) { /* a span of another sample */
            const char *other = samples[fuzz_below(c, N_OF(samples))];
            const size_t from = fuzz_below(c, strlen(other)), size = fuzz_below(c, strlen(other) - from + 1);
            fuzz_splice(text, at, 0, other + from, size);
        } else {
            const size_t cut = fuzz_below(c, 12);
            fuzz_splice(text, at, cut < left ? cut : left, "", 0);
        }
    }
}

static void templates(void **state)
{
    (void)state;
    json_t *v = NULL;
    ct_err err = {0};
    assert_int_equal(cti_json_parse(variables, sizeof variables - 1, "variables", &v, &err), CT_OK);
    const ct_jinja_options options = {
        .max_output_bytes = 1 << 16, .max_memory_bytes = 1 << 20, .max_steps = 50000};
    size_t n_compiled = 0, n_rendered = 0;
    for (fuzz_case c = fuzz_begin("jinja_template", 4000); fuzz_next(&c);) {
        const char *sample = samples[fuzz_below(&c, N_OF(samples))];
        cti_str text = {.alloc = ct_alloc_system()}, out = {.alloc = ct_alloc_system()};
        cti_str_add(&text, sample);
        mutate(&c, &text);
        ct_jinja *t = NULL;
        err = (ct_err){0};
        ct_status st = ct_jinja_compile(ct_alloc_system(), cti_str_text(&text), text.len, "fuzz", &t, &err);
        if (st == CT_OK) {
            n_compiled++;
            st = ct_jinja_render(t, v, &options, &out, &err);
            n_rendered += st == CT_OK;
            assert_true(out.len <= (size_t)options.max_output_bytes);
        }
        if (st != CT_OK && (err.status != st || strncmp(err.message, "'fuzz'", 6) != 0 ||
                            strstr(err.message, "line ") == NULL || out.len > 0)) {
            fail_msg("case %llu: %s: %d, '%s'", (unsigned long long)c.seed, cti_str_text(&text), (int)st,
                     err.message);
        }
        ct_jinja_destroy(&t);
        cti_str_deinit(&text);
        cti_str_deinit(&out);
    }
    print_message("%zu compiled, %zu rendered\n", n_compiled, n_rendered);
    json_decref(v);
}

/* Each allocation that fails gives CT_ERR_MEMORY and leaves nothing behind. */
static void memory(void **state)
{
    (void)state;
    json_t *v = NULL;
    ct_err err = {0};
    assert_int_equal(cti_json_parse(variables, sizeof variables - 1, "variables", &v, &err), CT_OK);
    for (size_t i = 0; i < N_OF(samples); i++) {
        bool done = false;
        for (int64_t fail_at = 1; !done; fail_at++) {
            test_alloc a;
            test_alloc_init(&a, fail_at);
            ct_jinja *t = NULL;
            cti_str out = {.alloc = &a.alloc};
            err = (ct_err){0};
            ct_status st = ct_jinja_compile(&a.alloc, samples[i], strlen(samples[i]), "memory", &t, &err);
            if (st == CT_OK) {
                st = ct_jinja_render(t, v, NULL, &out, &err);
            }
            ct_jinja_destroy(&t);
            cti_str_deinit(&out);
            assert_int_equal(a.n_live, 0);
            done = a.n_calls < fail_at;
            if (!done) {
                assert_int_equal(st, CT_ERR_MEMORY);
            }
        }
    }
    json_decref(v);
}

/* What would run without end or bound is stopped. */
static void limits(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "{{ 'x' * 10 ** 18 }}",
        "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ "
        "ns.x }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ "
        "ns.x }}",
        "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% set "
        "ns.y = [ns.y, ns.y] %}"
        "{% endfor %}{{ ns.x == ns.y }}",
        "{% set ns = namespace(x=1) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ "
        "ns.x|tojson }}",
        "{% set ns = namespace(x=1) %}{% set ns.x = [ns] %}{{ ns }}",
        "{% for a in range(100000) %}{{ 'x' * 1000000 }}{% endfor %}",
        "{{ ('a' * 1000000).replace('', 'b' * 1000000) }}"};
    for (size_t i = 0; i < N_OF(texts); i++) {
        ct_jinja *t = NULL;
        cti_str out = {.alloc = ct_alloc_system()};
        ct_err err = {0};
        assert_int_equal(ct_jinja_compile(ct_alloc_system(), texts[i], strlen(texts[i]), "limit", &t, &err),
                         CT_OK);
        if (ct_jinja_render(t, NULL, NULL, &out, &err) != CT_ERR_RANGE) {
            fail_msg("%s: %s", texts[i], err.message);
        }
        ct_jinja_destroy(&t);
        cti_str_deinit(&out);
    }
    cti_str deep = {.alloc = ct_alloc_system()};
    const char *const openings[] = {"(", "[", "not ", "-", "{{ [", "{% if x %}", "a.b(", "x if "};
    for (size_t i = 0; i < N_OF(openings); i++) {
        ct_jinja *t = NULL;
        ct_err err = {0};
        cti_str_reset(&deep);
        cti_str_add(&deep, openings[i][0] == '{' ? "" : "{{ ");
        for (int n = 0; n < 100000; n++) {
            cti_str_add(&deep, openings[i]);
        }
        assert_int_not_equal(
            ct_jinja_compile(ct_alloc_system(), cti_str_text(&deep), deep.len, "deep", &t, &err), CT_OK);
        assert_non_null(strstr(err.message, "line 1, column "));
    }
    cti_str_deinit(&deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(templates), cmocka_unit_test(memory),
                                       cmocka_unit_test(limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
