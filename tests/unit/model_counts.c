/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: model component config passes autodiff ops ir mesh base */
/* labels: fast */
/* All flavours of llama3, counted from their graphs without a weight in memory; the rotary frequencies of both families of sizes; sizes set
 * one by one; what the registry functions ask for that cannot be trained yet. */
#include <math.h>

#include "base/base.h"
#include "component/component.h"
#include "model/model.h"
#include "unit/base_test.h"

static size_t held, most; /* bytes at once */
static void *counting_resize(void *ctx, void *ptr, size_t size_bytes)
{
    /* Sizes stand before the blocks. */
    size_t *block = ptr != NULL ? (size_t *)ptr - 2 : NULL;
    const size_t before = block != NULL ? block[0] : 0;
    (void)ctx;
    held += size_bytes - before;
    most = held > most ? held : most;
    if (size_bytes == 0) {
        free(block);
        return NULL;
    }
    block = realloc(block, size_bytes + 2 * sizeof *block);
    assert_non_null(block);
    block[0] = size_bytes;
    return block + 2;
}
static const ct_alloc counting = {counting_resize, NULL};

typedef struct world {
    ct_registry *registry;
    cti_problems problems;
    cti_run_config run;
    ct_status st;
} world;

static void open_run(world *w, const char *config, bool plan_only, int argc, const char *const *argv)
{
    ct_err err = {0};
    const char *all[26] = {"--module", "llama3", "--config", config, "--dataloader.dataset-path", "/nowhere", plan_only ? "--parallelism.tensor-parallel-degree=1" : "--debug.no-print-config"};
    for (int i = 0; i < argc; i++) {
        all[7 + i] = argv[i];
    }
    *w = (world){.problems = {.text = {.alloc = ct_alloc_system()}}};
    assert_int_equal(ct_registry_create(ct_alloc_system(), &w->registry, &err), CT_OK);
    assert_int_equal(cti_register_llama3(w->registry, &err), CT_OK);
    const cti_resolve_options o = {.argc = 7 + argc, .argv = all, .plan_only = plan_only};
    w->st = cti_run_config_resolve(ct_alloc_system(), w->registry, NULL, &o, &w->problems, &w->run, &err);
}

static void close_run(world *w)
{
    cti_run_config_deinit(&w->run);
    cti_problems_deinit(&w->problems);
    ct_registry_destroy(&w->registry);
}

static void test_counts(void **state)
{
    (void)state;
    /* Parameters and FLOPs a token as TorchTitan 0.3.0 counts them (its formula; 1B and 3B: parameters of the published models). */
    static const struct {
        const char *config;
        int64_t n_params, flops;
    } rows[] = {{"llama3_debugmodel", 6163712, 71585280},
                {"llama3_debugmodel_varlen_attn", 6163712, 71585280},
                {"llama3_debugmodel_dist_gemm", 6163712, 71585280},
                {"llama3_debugmodel_float8", 6163712, 71585280},
                {"llama3_debugmodel_nvfp4", 6163712, 71585280},
                {"llama3_debugmodel_first_85_pct_layers_nvfp4", 6163712, 71585280},
                {"llama3_debugmodel_ce_loss", 6163712, 71585280},
                {"llama3_1b", 1235814400, 0},
                {"llama3_3b", 3212749824, 0},
                {"llama3_8b", 8030261248, 57914449920},
                {"llama3_8b_mxfp8", 8030261248, 57914449920},
                {"llama3_8b_first_85_pct_layers_nvfp4", 8030261248, 57914449920},
                {"llama3_70b", 70553706496, 481442709504},
                {"llama3_405b", 405853388800, 2625449459712}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        world w;
        cti_model_counts counts;
        ct_err err = {0};
        open_run(&w, rows[i].config, true, 0, NULL);
        if (w.st != CT_OK) {
            fail_msg("%s: %s", rows[i].config, cti_str_text(&w.problems.text));
        }
        held = most = 0;
        const int64_t seq_len = CTI_SECTION(w.run.root, "training", training)->seq_len;
        assert_int_equal(cti_model_count(&counting, ct_component_find(w.run.root, "model_spec"), seq_len, &counts, &err), CT_OK);
        assert_int_equal(counts.n_params, rows[i].n_params);
        assert_true(rows[i].flops == 0 || counts.flops_per_token == (double)rows[i].flops);
        assert_int_equal(held, 0);
        assert_true(most < 16 << 20); /* the graph alone, of 126 layers too */
        close_run(&w);
    }
}

/* The pairs of a head whose wavelengths are short stay, long ones are stretched, and some lie between. */
static void test_rope(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        int64_t head_dim, first_blended, first_stretched;
        double factor, blended, last;
    } rows[] = {{"llama3_8b", 128, 29, 35, 8, 2.166570764e-3, 3.068925989e-7}, {"llama3_1b", 64, 15, 18, 32, 1.290547928e-3, 9.418306725e-8}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        world w;
        double f[64];
        open_run(&w, rows[i].config, true, 0, NULL);
        const cti_rope_config *c = ct_component_values(ct_component_find(w.run.root, "model_spec.model.layers.0.attention.rope"));
        assert_int_equal(c->head_dim, rows[i].head_dim);
        assert_true(c->scaling_factor == rows[i].factor);
        cti_rope_frequencies(c, f);
        for (int64_t j = 0; j < c->head_dim / 2; j++) {
            const double plain = pow(500000.0, -2.0 * (double)j / (double)c->head_dim);
            const double ratio = f[j] / plain, slack = 8 * 1.2e-7; /* a few roundings of floats */
            if (j < rows[i].first_blended) {
                assert_true(fabs(ratio - 1) < slack);
            } else if (j >= rows[i].first_stretched) {
                assert_true(fabs(ratio * rows[i].factor - 1) < slack);
            } else {
                assert_true(ratio < 1 - slack && ratio * rows[i].factor > 1 + slack);
            }
        }
        assert_true(fabs(f[rows[i].first_blended] / rows[i].blended - 1) < 1e-6);
        assert_true(fabs(f[c->head_dim / 2 - 1] / rows[i].last - 1) < 1e-6);
        close_run(&w);
    }
}

/* The tables are right at the last position of the longest models, whatever the model computes in: they are rounded once, to f32. */
static void test_rope_far_away(void **state)
{
    (void)state;
    enum { HALF = 64, N = 131072 };
    static const int64_t positions[] = {0, 1, 4095, N - 1};
    static const char *const argv[] = {"--model-spec.rope-scaling", "none", "--training.mixed-precision-param", "bfloat16", "--training.dtype", "bfloat16"};
    world w;
    ct_err err = {0};
    float *data = malloc((size_t)N * HALF * 2 * sizeof *data);
    open_run(&w, "llama3_8b", true, N_OF(argv), argv);
    assert_non_null(data);
    assert_int_equal(cti_rope_table(ct_component_find(w.run.root, "model_spec.model.layers.0.attention.rope"), data, (int64_t)N * HALF * 2, &err), CT_OK);
    for (size_t i = 0; i < N_OF(positions); i++) {
        for (int64_t j = 0; j < HALF; j++) {
            const double angle = (double)positions[i] * exp(-(double)j / HALF * log(500000.0));
            const float *pair = data + (positions[i] * HALF + j) * 2;
            assert_true(fabs((double)pair[0] - cos(angle)) < 1e-6 && fabs((double)pair[1] - sin(angle)) < 1e-6);
        }
    }
    free(data);
    close_run(&w);
}

static void test_sizes(void **state)
{
    (void)state;
    const char *argv[] = {"--model-spec.dim", "64", "--model-spec.n-layers=2", "--model-spec.n-heads", "4", "--model-spec.n-kv-heads", "2",
                          "--model-spec.ffn-hidden", "128", "--model-spec.vocab-size", "256", "--model-spec.tied-embeddings", "--model-spec.model.layers.1.attention_norm.eps", "0.5"};
    world w;
    cti_model_counts counts;
    ct_err err = {0};
    open_run(&w, "llama3_debugmodel", false, N_OF(argv), argv);
    assert_int_equal(w.st, CT_OK);
    const ct_component *spec = ct_component_find(w.run.root, "model_spec");
    assert_int_equal(cti_model_count(ct_alloc_system(), spec, 128, &counts, &err), CT_OK);
    /* A block has 36,864 weights and two norms of 64; the tied matrix counts once, and as the head in the FLOPs. */
    assert_int_equal(counts.n_params, 256 * 64 + 2 * (36864 + 2 * 64) + 64);
    assert_true(counts.flops_per_token == 6.0 * (double)counts.n_params + 6.0 * 2 * 4 * 32 * 128);
    assert_int_equal(CTI_SECTION(w.run.root, "loss.loss_fn", cross_entropy)->global_vocab_size.value, 256);
    const cti_rmsnorm_config *norm = ct_component_values(ct_component_find(spec, "model.layers.1.attention_norm"));
    assert_true(norm->eps == 0.5 && norm->normalized_shape == 64);
    assert_null(ct_component_find(spec, "model.lm_head"));
    close_run(&w);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *config, *flag, *value, *says;
    } rows[] = {{"llama3_debugmodel", "--model-spec.n-heads", "7", "dim 256 does not divide by n_heads 7"},
                {"llama3_debugmodel", "--model-spec.n-kv-heads", "5", "n_heads 16 does not divide by n_kv_heads 5"},
                {"llama3_debugmodel", "--model-spec.head-dim", "3", "an even number"},
                {"llama3_debugmodel", "--model-spec.n-layers", "0", "'0' is too small"},
                {"llama3_debugmodel", "--model-spec.flavor", "8B", "is not set itself"},
                {"llama3_debugmodel", "--model-spec.model.n-layers", "3", "is not set itself"},
                {"llama3_debugmodel", "--model-spec.model.layers.6.attention.dim", "3", "unknown flag"},
                {"llama3_debugmodel", "--model-spec.model.layers.0.feed-forward.w1.init-std", "nan", "'nan' is no number"},
                {"llama3_debugmodel", "--model-spec.model.layers.0.attention.rope.theta", "0", "'0' is too small"},
                {"llama3_debugmodel_float8", NULL, NULL, "--model-spec.converters float8"},
                {"llama3_debugmodel_nvfp4", NULL, NULL, "--model-spec.converters nvfp4"},
                {"llama3_debugmodel_dist_gemm", NULL, NULL, "--model-spec.converters dist_gemm"},
                {"llama3_405b", NULL, NULL, "--compile.enable-async-tensor-parallel true"},
                {"llama3_405b", "--model-spec.converters", "", "--compile.enable-async-tensor-parallel true"}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        world w;
        const char *argv[] = {rows[i].flag, rows[i].value};
        open_run(&w, rows[i].config, false, rows[i].flag != NULL ? 2 : 0, argv);
        assert_int_equal(w.st, CT_ERR_USAGE);
        if (strstr(cti_str_text(&w.problems.text), rows[i].says) == NULL) {
            fail_msg("%s %s: no '%s' in: %s", rows[i].config, rows[i].flag != NULL ? rows[i].flag : "", rows[i].says, cti_str_text(&w.problems.text));
        }
        close_run(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts), cmocka_unit_test(test_rope), cmocka_unit_test(test_rope_far_away), cmocka_unit_test(test_sizes), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
