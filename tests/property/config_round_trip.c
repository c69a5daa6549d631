/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: model component config passes autodiff ops ir mesh base */
/* labels: fast */
/* Random settings saved as YAML and as JSON and loaded again: every value has the same bits, and what was asked for by name still counts
 * as asked for. Texts hold what YAML and JSON take for something else: words for null, true and numbers, quotes, control characters,
 * separators, byte order marks. */
#include <math.h>
#include <unistd.h>

#include "base/base.h"
#include "base/rng.h"
#include "component/component.h"
#include "model/model.h"
#include "unit/base_test.h"

enum { N_CASES = 60 };

static const char *const pieces[] = {"no", "null", "~", "None", "true", "010", "1e3", "0x1f", "1:30", ".inf", "=", "<<", "- ", "# x", ": ", " ", "\n",
                                     "\r\n", "\t", "\"", "'", "\\", "\x01", "\x1b", "\x7f", "\xc2\x80", "\xc2\x85", "\xc2\xa0", "\xe2\x80\xa8", "\xe2\x80\xa9",
                                     "\xef\xbb\xbf", "\xef\xbf\xbe", "\xef\xbf\xbd", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf", "\xc3\xa9", "a,b", ",", "[", "]", "{", "}", "&a",
                                     "*a", "!t", "%", "@", "`", "|", ">", "?", "/", "--x", "yaml", "y", "0", "-", "."};

typedef struct draw {
    cti_rng_key key;
    uint64_t at;
    ct_arena *arena;
} draw;

static uint64_t below(draw *d, uint64_t n)
{
    return cti_rng_below(d->key, d->at++, n);
}

static const char *any_text(draw *d, size_t at_least, bool commas)
{
    ct_err err = {0};
    const char *text = "";
    const size_t n = at_least + below(d, 4);
    for (size_t i = 0; i < n;) {
        const char *piece = pieces[below(d, N_OF(pieces))];
        if (commas || strchr(piece, ',') == NULL) {
            text = ct_arena_printf(d->arena, &err, "%s%s", text, piece);
            i++;
        }
    }
    return text;
}

static double any_real(draw *d, double low, double high)
{
    static const double odd[] = {0.0, 1e-8, 0.1, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, 123456789.123456789, 1.0, 0.95, 2.5e-310};
    double v = odd[below(d, N_OF(odd))];
    switch (below(d, 4)) {
    case 0:
        v = (double)below(d, UINT64_C(1) << 53) / (double)(UINT64_C(1) << 53);
        break;
    case 1:
        v = isinf(high) ? HUGE_VAL : high;
        break;
    default:
        break;
    }
    return v < low ? low : v > high ? high : v;
}

static double bound(const char *text, double without)
{
    double v;
    return cti_parse_f64(text, &v) ? v : without;
}

static int64_t any_whole(draw *d, const ct_field *f)
{
    int64_t low = INT64_MIN, high = INT64_MAX;
    (void)cti_parse_i64(f->low, &low);
    (void)cti_parse_i64(f->high, &high);
    switch (below(d, 3)) {
    case 0:
        return low;
    case 1:
        return high;
    default:
        return low + (int64_t)below(d, (uint64_t)(high - cti_max_i64(low, 0) < 1000 ? high - cti_max_i64(low, 0) + 1 : 1000));
    }
}

static const char *any_choice(draw *d, const ct_field *f)
{
    ct_err err = {0};
    char *copy = ct_arena_strdup(d->arena, f->choices, &err);
    const char *list[32];
    size_t n = 0;
    for (char *word = strtok(copy, "|"); word != NULL; word = strtok(NULL, "|")) {
        list[n++] = word;
    }
    return list[below(d, n)];
}

static ct_str_list any_list(draw *d, size_t max)
{
    ct_err err = {0};
    ct_str_list list = {(int64_t)below(d, max + 1), NULL};
    list.items = ct_arena_alloc(d->arena, ((size_t)list.n + 1) * sizeof(char *), &err);
    for (int64_t i = 0; i < list.n; i++) {
        list.items[i] = any_text(d, 0, true);
    }
    return list;
}

static void set_any(draw *d, const ct_field *f, void *values)
{
    ct_err err = {0};
    void *at = (char *)values + f->offset;
    const double least = bound(f->low, -HUGE_VAL), high = bound(f->high, HUGE_VAL);
    const double low = (f->flags & CT_SET_EXCLUSIVE_LOW) != 0 ? nextafter(least, HUGE_VAL) : least;
    const bool is_none = below(d, 3) == 0;
    switch (f->kind) {
    case CT_FIELD_BOOL:
        *(bool *)at = below(d, 2) == 0;
        break;
    case CT_FIELD_I64:
        *(int64_t *)at = any_whole(d, f);
        break;
    case CT_FIELD_OPT_I64:
        *(ct_opt_i64 *)at = is_none ? (ct_opt_i64){0} : (ct_opt_i64){true, any_whole(d, f)};
        break;
    case CT_FIELD_F64:
        *(double *)at = any_real(d, low, high);
        break;
    case CT_FIELD_OPT_F64:
        *(ct_opt_f64 *)at = is_none ? (ct_opt_f64){0} : (ct_opt_f64){true, any_real(d, low, high)};
        break;
    case CT_FIELD_STR:
        *(const char **)at = any_text(d, f->low[0] != '\0', true);
        break;
    case CT_FIELD_OPT_STR:
        *(const char **)at = is_none ? NULL : any_text(d, f->low[0] != '\0', true);
        break;
    case CT_FIELD_CHOICE:
        *(const char **)at = any_choice(d, f);
        break;
    case CT_FIELD_STR_LIST:
    case CT_FIELD_TOKENS:
        *(ct_str_list *)at = any_list(d, 3);
        break;
    case CT_FIELD_STR_LISTS: {
        ct_str_lists lists = {!is_none, is_none ? 0 : (int64_t)below(d, 3), ct_arena_alloc(d->arena, 3 * sizeof(ct_str_list), &err)};
        for (int64_t i = 0; i < lists.n; i++) {
            lists.items[i] = any_list(d, 2);
        }
        *(ct_str_lists *)at = lists;
        break;
    }
    case CT_FIELD_F64_LIST: {
        ct_f64_list list = {(int64_t)below(d, 4), ct_arena_alloc(d->arena, 4 * sizeof(double), &err)};
        for (int64_t i = 0; i < list.n; i++) {
            list.items[i] = any_real(d, low, high);
        }
        *(ct_f64_list *)at = list;
        break;
    }
    case CT_FIELD_I64_LIST:
    case CT_FIELD_KIND_COUNT:
        break;
    }
}

static void resolve(const ct_registry *registry, int argc, const char *const *argv, cti_problems *problems, cti_run_config *run)
{
    ct_err why = {0};
    const cti_resolve_options o = {.argc = argc, .argv = argv};
    const ct_status st = cti_run_config_resolve(ct_alloc_system(), registry, NULL, &o, problems, run, &why);
    assert_true(st == CT_OK || st == CT_ERR_USAGE); /* checks across fields may fail: the values stand all the same */
    assert_non_null(run->module);
}

/* Sets about half of the settings; the sizes of the model were set before. */
static void randomize(draw *d, cti_run_config *run)
{
    ct_err err = {0};
    cti_settings settings;
    assert_int_equal(cti_settings_list(run->tree, run->root, &settings, &err), CT_OK);
    for (size_t i = 0; i < settings.n; i++) {
        const cti_setting *s = &settings.items[i];
        const bool is_size = cti_starts_with(s->path, "model_spec.") && !cti_starts_with(s->path, "model_spec.model.");
        if (!s->is_flag || s->field->refusal != NULL || is_size || below(d, s->is_listed ? 2 : 20) != 0) {
            continue;
        }
        set_any(d, s->field, s->component->values);
        s->component->sources[s->field - s->component->cls->fields] = CT_SOURCE_FLAG;
    }
}

static void compare(uint64_t seed, const char *name, const cti_run_config *a, const cti_run_config *b, const cti_problems *problems)
{
    ct_err err = {0};
    cti_settings x, y;
    for (const char *line = cti_str_text(&problems->text); *line != '\0'; line = strchr(line, '\n') + 1) {
        if (cti_starts_with(line, name)) {
            fail_msg("case %llu: %s", (unsigned long long)seed, line);
        }
    }
    assert_int_equal(cti_settings_list(a->tree, a->root, &x, &err), CT_OK);
    assert_int_equal(cti_settings_list(b->tree, b->root, &y, &err), CT_OK);
    assert_int_equal(x.n, y.n);
    for (size_t i = 0; i < x.n; i++) {
        const cti_setting *p = &x.items[i], *q = &y.items[i];
        const uint8_t from = p->component->sources[p->field - p->component->cls->fields], to = q->component->sources[q->field - q->component->cls->fields];
        assert_string_equal(p->path, q->path);
        if (!ct_field_equal(p->field, p->component->values, q->component->values) || (from > CT_SOURCE_REGISTRY) != (to > CT_SOURCE_REGISTRY)) {
            fail_msg("case %llu, %s: %s: '%s' (%s) came back as '%s' (%s)", (unsigned long long)seed, name, p->path,
                     ct_field_text(p->field, p->component->values, ct_tree_arena(a->tree), &err), cti_source_name((ct_source)from),
                     ct_field_text(q->field, q->component->values, ct_tree_arena(b->tree), &err), cti_source_name((ct_source)to));
        }
    }
}

static void save(const cti_run_config *run, const char *path)
{
    ct_err err = {0};
    if (cti_ends_with(path, ".json")) {
        json_t *json;
        assert_int_equal(cti_run_config_json(run, &json, &err), CT_OK);
        assert_int_equal(cti_json_write_file(path, json, 2, &err), CT_OK);
        json_decref(json);
    } else {
        cti_str yaml = {.alloc = ct_alloc_system()};
        assert_int_equal(cti_run_config_yaml(run, &yaml, &err), CT_OK);
        assert_int_equal(cti_file_write_atomic(path, yaml.data, yaml.len, &err), CT_OK);
        cti_str_deinit(&yaml);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    static const char *const configs[] = {"llama3_debugmodel", "llama3_debugmodel_ce_loss", "llama3_debugmodel_float8", "llama3_debugmodel_varlen_attn"};
    static const char *const kinds[] = {"activation-checkpoint:selective", "activation-checkpoint:full", "activation-checkpoint:memory-budget", "activation-checkpoint:none"};
    static const char *const widths[] = {"32", "64", "128"};
    static const char *const layers[] = {"1", "2", "3", "6"};
    ct_registry *registry;
    ct_err err = {0};
    char dir[] = "/tmp/ct_config_XXXXXX";
    assert_non_null(mkdtemp(dir));
    assert_int_equal(ct_registry_create(ct_alloc_system(), &registry, &err), CT_OK);
    assert_int_equal(cti_register_llama3(registry, &err), CT_OK);
    for (uint64_t seed = 0; seed < N_CASES; seed++) {
        draw d = {.key = cti_rng_key_make(seed, "config round trip")};
        const char *argv[] = {"--module", "llama3", "--config", configs[below(&d, 4)], kinds[below(&d, 4)], "--model-spec.n-layers", layers[below(&d, 4)],
                              "--model-spec.dim", widths[below(&d, 3)], "--model-spec.tied-embeddings", "--model-spec.rope-theta", "10000.5"};
        cti_problems problems = {.text = {.alloc = ct_alloc_system()}};
        cti_run_config run;
        resolve(registry, below(&d, 3) == 0 ? 5 : N_OF(argv), argv, &problems, &run);
        d.arena = ct_tree_arena(run.tree);
        randomize(&d, &run);
        for (int form = 0; form < 2; form++) {
            char path[64];
            snprintf(path, sizeof path, "%s/saved.%s", dir, form == 0 ? "yaml" : "json");
            save(&run, path);
            const char *load[] = {"--config", path};
            cti_run_config back;
            cti_problems_reset(&problems);
            resolve(registry, 2, load, &problems, &back);
            compare(seed, path, &run, &back, &problems);
            cti_run_config_deinit(&back);
        }
        cti_run_config_deinit(&run);
        cti_problems_deinit(&problems);
    }
    ct_registry_destroy(&registry);
    assert_int_equal(cti_remove_tree(dir, &err), CT_OK);
}

/* What is no UTF-8 would come back as another text: it is refused, by name. */
static void test_bytes(void **state)
{
    (void)state;
    ct_registry *registry;
    ct_err err = {0};
    assert_int_equal(ct_registry_create(ct_alloc_system(), &registry, &err), CT_OK);
    assert_int_equal(cti_register_llama3(registry, &err), CT_OK);
    const char *argv[] = {"--module", "llama3", "--config", "llama3_debugmodel", "--dump-folder", "a\xff"};
    cti_problems problems = {.text = {.alloc = ct_alloc_system()}};
    cti_run_config run;
    cti_str yaml = {.alloc = ct_alloc_system()};
    resolve(registry, N_OF(argv), argv, &problems, &run);
    assert_int_equal(problems.n, 0);
    assert_int_equal(cti_run_config_yaml(&run, &yaml, &err), CT_ERR_USAGE);
    assert_non_null(strstr(err.message, "dump_folder"));
    cti_str_deinit(&yaml);
    cti_run_config_deinit(&run);
    cti_problems_deinit(&problems);
    ct_registry_destroy(&registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
