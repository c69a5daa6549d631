/* SPDX-License-Identifier: Apache-2.0 */
/* labels: fast */
/* Generation against transformers (tests/parity/generate/record.py): greedy ids and logits of small models read from Hugging Face folders by
 * their config.json, and what temperature, top-k, top-p, min-p and the repetition penalty leave of recorded logits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "base/base.h"
#include "base/json.h"
#include "ckpt/hf.h"
#include "ckpt/safetensors.h"
#include "model/model.h"
#include "train/checkpoint_glue.h"
#include "train/generate.h"

static const ct_alloc *alloc;
static ct_err err;
static json_t *recorded;

static void ok(ct_status st)
{
    if (st != CT_OK) {
        fail_msg("%s: %s", ct_status_name(st), err.message);
    }
}

/* ---- the integers that both sides make --------------------------------------------------------------------------- */

static int64_t integer(const char *name, int64_t i)
{
    uint64_t x = UINT64_C(0xCBF29CE484222325);
    for (; *name != '\0'; name++) {
        x = (x ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
    }
    x += (uint64_t)i + UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    x ^= x >> 31;
    return (int64_t)(x >> 40) - (1 << 23);
}

/* Weights by Hugging Face's names, so that the permutation of q and k is part of what is tested. */
static void write_folder(const char *folder, const json_t *config)
{
    enum { MAX = 32 };
    static ct_st_spec specs[MAX];
    static char names[MAX][96];
    const int64_t d = json_integer_value(json_object_get(config, "hidden_size")), f = json_integer_value(json_object_get(config, "intermediate_size")),
                  h = json_integer_value(json_object_get(config, "head_dim")), v = json_integer_value(json_object_get(config, "vocab_size")),
                  q = h * json_integer_value(json_object_get(config, "num_attention_heads")),
                  k = h * json_integer_value(json_object_get(config, "num_key_value_heads"));
    const struct {
        const char *name;
        int64_t rows, cols;
    } parts[] = {{"self_attn.q_proj", q, d}, {"self_attn.k_proj", k, d}, {"self_attn.v_proj", k, d}, {"self_attn.o_proj", d, q},
                 {"mlp.gate_proj", f, d},    {"mlp.up_proj", f, d},      {"mlp.down_proj", d, f},    {"input_layernorm", d, 0},
                 {"post_attention_layernorm", d, 0}};
    int32_t n = 0;
    for (int l = 0; l < 2; l++) {
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++, n++) {
            (void)snprintf(names[n], sizeof names[n], "model.layers.%d.%s.weight", l, parts[p].name);
            specs[n] = (ct_st_spec){names[n], CT_DTYPE_F32, parts[p].cols > 0 ? 2 : 1, {parts[p].rows, parts[p].cols}};
        }
    }
    specs[n++] = (ct_st_spec){"model.norm.weight", CT_DTYPE_F32, 1, {d}};
    specs[n++] = (ct_st_spec){"model.embed_tokens.weight", CT_DTYPE_F32, 2, {v, d}};
    if (!json_is_true(json_object_get(config, "tie_word_embeddings"))) {
        specs[n++] = (ct_st_spec){"lm_head.weight", CT_DTYPE_F32, 2, {v, d}};
    }
    char path[512], hex[33];
    int64_t size;
    ct_st_writer *w = NULL;
    (void)snprintf(path, sizeof path, "%s/model.safetensors", folder);
    ok(ct_st_writer_open(alloc, path, specs, n, &w, &err));
    for (int32_t t = 0; t < n; t++) {
        const int64_t numel = cti_dims_product(specs[t].dims, specs[t].ndim);
        float *host = CT_NEW_ARRAY(alloc, float, numel, &err);
        for (int64_t i = 0; i < numel; i++) {
            const double x = (double)integer(specs[t].name, i) / (1 << 23);
            host[i] = (float)(strstr(specs[t].name, "norm") != NULL ? 1.0 + x / 8 : strstr(specs[t].name, "embed") != NULL ? x / 2 : x / 4);
        }
        ok(ct_st_writer_add(w, host, (size_t)numel * sizeof *host, &err));
        ct_alloc_free(alloc, host);
    }
    ok(ct_st_writer_finish(&w, &size, hex, &err));
}

static ct_status from_hf(const void *ctx, const char *name, int64_t begin, int64_t end, ct_dtype dtype, void *dst, ct_err *e)
{
    return ct_hf_read(ctx, name, begin, end, dtype, dst, e);
}

/* ---- greedy ------------------------------------------------------------------------------------------------------- */

static void compare_logits(const cti_generator *gen, const json_t *wanted)
{
    /* Sums of at most 128 terms, some 12 of them one after another: the root of what their roundings can add up to, four times over. */
    const double bound = 4.0 * 12.0 * sqrt(128.0) * ct_dtype_unit_roundoff(CT_DTYPE_F32);
    double top = 0.0;
    assert_int_equal(json_array_size(wanted), gen->vocab_size);
    for (int64_t i = 0; i < gen->vocab_size; i++) {
        top = fmax(top, fabs(json_number_value(json_array_get(wanted, (size_t)i))));
    }
    for (int64_t i = 0; i < gen->vocab_size; i++) {
        const double want = json_number_value(json_array_get(wanted, (size_t)i));
        if (!(fabs((double)gen->logit_values[i] - want) <= bound * top)) {
            fail_msg("logit %d: %.9g, wanted %.9g", (int)i, (double)gen->logit_values[i], want);
        }
    }
}

static void check_prompt(cti_generator *gen, const json_t *prompt)
{
    const json_t *ids = json_object_get(prompt, "ids"), *new_ids = json_object_get(prompt, "new");
    const size_t n = json_array_size(ids), n_new = json_array_size(new_ids);
    int32_t given[128], id;
    assert_true(n > 0 && n <= 128 && n_new > 0);
    for (size_t i = 0; i < n; i++) {
        given[i] = (int32_t)json_integer_value(json_array_get(ids, i));
    }
    cti_generator_reset(gen);
    ok(cti_generator_feed(gen, given, (int64_t)n, &err));
    compare_logits(gen, json_object_get(prompt, "first_logits"));
    for (size_t i = 0; i < n_new; i++) {
        ok(cti_generator_sample(gen, &(cti_sampling){.temperature = 0.0}, cti_rng_key_make(0, "greedy"), &id, &err));
        assert_int_equal(id, json_integer_value(json_array_get(new_ids, i)));
        if (i + 1 == n_new) {
            compare_logits(gen, json_object_get(prompt, "last_logits"));
        } else {
            ok(cti_generator_feed(gen, &id, 1, &err));
        }
    }
}

static void test_greedy(void **state)
{
    (void)state;
    const json_t *models = json_object_get(recorded, "models");
    assert_int_equal(json_array_size(models), 3);
    for (size_t m = 0; m < json_array_size(models); m++) {
        const json_t *model = json_array_get(models, m), *config = json_object_get(model, "config");
        char folder[] = "/tmp/ct_parity_generate_XXXXXX";
        ct_tree *tree;
        ct_component *spec;
        ct_hf_shape shape;
        ct_hf *hf = NULL;
        cti_generator *gen = NULL;
        assert_non_null(mkdtemp(folder));
        write_folder(folder, config);
        ok(ct_tree_create(alloc, &tree, &err));
        ok(cti_llama3_spec_hf(tree, config, "config.json", &spec, &err));
        ok(cti_hf_shape(spec, 128, &shape, &err));
        ok(ct_hf_open(alloc, folder, &shape, &hf, &err));
        const cti_generator_options o = {.cache_len = 128, .dtype = CT_DTYPE_F32};
        ok(cti_generator_create(alloc, ct_backend_cpu(), spec, &o, &gen, &err));
        ok(cti_generator_load(gen, from_hf, hf, &err));
        for (size_t i = 0; i < json_array_size(json_object_get(model, "prompts")); i++) {
            check_prompt(gen, json_array_get(json_object_get(model, "prompts"), i));
        }
        cti_generator_destroy(&gen);
        ct_hf_close(&hf);
        ct_tree_destroy(&tree);
        ok(cti_remove_tree(folder, &err));
    }
}

/* ---- processors --------------------------------------------------------------------------------------------------- */

static void test_processors(void **state)
{
    (void)state;
    enum { V = 300 };
    float logits[V];
    uint8_t seen[V] = {0};
    for (int i = 0; i < V; i++) {
        logits[i] = (float)((double)integer("logits", i) / (1 << 21));
    }
    for (int i = 0; i < 40; i++) {
        seen[((integer("seen", i) % V) + V) % V] = 1;
    }
    const json_t *cases = json_object_get(recorded, "cases");
    cti_sampler s;
    ok(cti_sampler_init(&s, alloc, V, &err));
    for (size_t c = 0; c < json_array_size(cases); c++) {
        const json_t *one = json_array_get(cases, c), *kept = json_object_get(one, "kept"), *p = json_object_get(one, "probabilities");
        const cti_sampling how = {json_number_value(json_object_get(one, "temperature")), json_integer_value(json_object_get(one, "top_k")),
                                  json_number_value(json_object_get(one, "top_p")), json_number_value(json_object_get(one, "min_p")),
                                  json_number_value(json_object_get(one, "penalty"))};
        ok(cti_sampler_keep(&s, &how, logits, how.repetition_penalty < 1.0 || how.repetition_penalty > 1.0 ? seen : NULL, &err));
        assert_int_equal(s.n_kept, json_array_size(kept));
        double sum = 0.0, wanted[V] = {0}, up_to = 0.0;
        for (size_t i = 0; i < json_array_size(kept); i++) {
            wanted[json_integer_value(json_array_get(kept, i))] = json_number_value(json_array_get(p, i));
        }
        for (int64_t i = 0; i < s.n_kept; i++) {
            sum += s.weights[i];
        }
        for (int64_t i = 0; i < s.n_kept; i++) {
            /* exp, a sum of 300 terms and a quotient in float64 on both sides */
            assert_true(fabs(s.weights[i] / sum - wanted[s.ids[i]]) <= 2.0 * (V + 4) * ct_dtype_unit_roundoff(CT_DTYPE_F64) * wanted[s.ids[i]]);
            /* The draw gives each token the part of [0, 1) that its probability is long. */
            assert_int_equal(cti_sampler_draw(&s, up_to + wanted[s.ids[i]] / 2), s.ids[i]);
            up_to += wanted[s.ids[i]];
        }
    }
    /* Equal logits: the lowest ids. */
    memset(logits, 0, sizeof logits);
    ok(cti_sampler_keep(&s, &(cti_sampling){.temperature = 1.0, .top_k = 3, .top_p = 1.0}, logits, NULL, &err));
    assert_int_equal(s.n_kept, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(s.ids[i], i);
    }
    cti_sampler_deinit(&s);
}

/* ---- config.json that is no Llama --------------------------------------------------------------------------------- */

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *says;
    } rows[] = {{"model_type", "\"mistral\"", "model_type is 'mistral'"},
                {"hidden_act", "\"gelu\"", "hidden_act is 'gelu'"},
                {"attention_bias", "true", "attention_bias is 'true'"},
                {"quantization_config", "{\"bits\": 4}", "quantization_config"},
                {"rope_parameters", "{\"rope_type\": \"yarn\"}", "rope_type is 'yarn'"},
                {"hidden_size", "-64", "hidden_size is -64"},
                {"hidden_size", "1e3", "hidden_size"},
                {"num_attention_heads", "0", "num_attention_heads is 0"},
                {"vocab_size", "null", "vocab_size"},
                {"num_key_value_heads", "3", "n_kv_heads"},
                {"rms_norm_eps", "\"small\"", "rms_norm_eps must be a number"}};
    const json_t *config = json_object_get(json_array_get(json_object_get(recorded, "models"), 0), "config");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ct_tree *tree;
        ct_component *spec;
        json_t *changed = json_deep_copy(config), *value;
        err = (ct_err){0};
        ok(cti_json_parse(rows[i].value, strlen(rows[i].value), "value", &value, &err));
        assert_int_equal(json_object_set_new(changed, rows[i].key, value), 0);
        ok(ct_tree_create(alloc, &tree, &err));
        assert_true(cti_llama3_spec_hf(tree, changed, "x/config.json", &spec, &err) != CT_OK);
        if (strstr(err.message, rows[i].says) == NULL || strstr(err.message, "x/config.json") == NULL) {
            fail_msg("%s: %s", rows[i].key, err.message);
        }
        ct_tree_destroy(&tree);
        json_decref(changed);
    }
    err = (ct_err){0};
}

static int open_recorded(void **state)
{
    (void)state;
    alloc = ct_alloc_system();
    ok(cti_json_read_file(alloc, CT_SOURCE_DIR "/tests/parity/generate/recorded.json", &recorded, &err));
    return 0;
}

static int close_recorded(void **state)
{
    (void)state;
    json_decref(recorded);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_greedy), cmocka_unit_test(test_processors), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, open_recorded, close_recorded);
}
