/* SPDX-License-Identifier: Apache-2.0 */
/* labels: slow aarch64 */
/* llama3_debugmodel against transformers and torch (tests/parity/llama/record.py): losses and gradient norms of 10 steps (of
 * CT_PARITY_STEPS where it is set: emulators are slow), gradient norms of every parameter at step 1, from the same weights in Hugging
 * Face's layout and the same documents. And the same with tied embeddings; and, at the best level alone, with torch's SGD and Muon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "base/base.h"
#include "ckpt/safetensors.h"
#include "model/model.h"
#include "train/trainer.h"

static const ct_alloc *alloc;
static ct_err err;

static void ok(ct_status st)
{
    if (st != CT_OK) {
        fail_msg("%s: %s", ct_status_name(st), err.message);
    }
}

/* ---- the weights, as record.py makes them ------------------------------------------------------------------------ */

static uint64_t splitmix(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static uint64_t fnv(const char *name)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (; *name != '\0'; name++) {
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
    }
    return h;
}

/* `tied` of record.py: the head is the embedding, 4 key and value heads, RoPE's factor 32. */
static bool is_tied;

typedef enum optim_case { ADAMW, SGD, MUON } optim_case;
static optim_case optim;

static float weight(const char *name, uint64_t seed, int64_t i)
{
    const double v = (double)((int64_t)(splitmix(seed + (uint64_t)i) >> 40) - (1 << 23)) / (1 << 23);
    return (float)(strstr(name, "norm") != NULL      ? 1.0 + v / 8
                   : strstr(name, "embed") != NULL   ? (is_tied ? v / 8 : v * 2)
                   : strstr(name, "lm_head") != NULL ? v / 8
                                                     : v / 32);
}

enum { LAYERS = 6, D = 256, F = 768, V = 2048, N_TENSORS = 3 + 9 * LAYERS, TIED_KV = 64 };

static int32_t hf_specs(ct_st_spec *specs, char (*names)[96])
{
    static const struct {
        const char *name;
        int64_t rows, cols;
    } parts[] = {{"self_attn.q_proj", D, D}, {"self_attn.k_proj", D, D}, {"self_attn.v_proj", D, D},
                 {"self_attn.o_proj", D, D}, {"mlp.gate_proj", F, D},    {"mlp.up_proj", F, D},
                 {"mlp.down_proj", D, F},    {"input_layernorm", D, 0},  {"post_attention_layernorm", D, 0}};
    int32_t n = 0;
    snprintf(names[n], 96, "model.embed_tokens.weight");
    specs[n] = (ct_st_spec){names[n], CT_DTYPE_F32, 2, {V, D}};
    n++;
    for (int l = 0; l < LAYERS; l++) {
        for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
            snprintf(names[n], 96, "model.layers.%d.%s.weight", l, parts[p].name);
            const bool is_kv = strstr(names[n], "k_proj") != NULL || strstr(names[n], "v_proj") != NULL;
            specs[n] = (ct_st_spec){names[n], CT_DTYPE_F32, parts[p].cols > 0 ? 2 : 1, {is_kv && is_tied ? TIED_KV : parts[p].rows, parts[p].cols}};
            n++;
        }
    }
    snprintf(names[n], 96, "model.norm.weight");
    specs[n] = (ct_st_spec){names[n], CT_DTYPE_F32, 1, {D}};
    n++;
    if (is_tied) {
        return n;
    }
    snprintf(names[n], 96, "lm_head.weight");
    specs[n] = (ct_st_spec){names[n], CT_DTYPE_F32, 2, {V, D}};
    return n + 1;
}

static void write_weights(const char *folder)
{
    static ct_st_spec specs[N_TENSORS];
    static char names[N_TENSORS][96];
    char path[512], hex[33];
    int64_t size;
    const int32_t n = hf_specs(specs, names);
    assert_int_equal(n, N_TENSORS - is_tied);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    ct_st_writer *w = NULL;
    ok(ct_st_writer_open(alloc, path, specs, n, &w, &err));
    for (int32_t t = 0; t < n; t++) {
        const int64_t numel = cti_dims_product(specs[t].dims, specs[t].ndim);
        const uint64_t seed = fnv(specs[t].name);
        float *host = CT_NEW_ARRAY(alloc, float, numel, &err);
        for (int64_t i = 0; i < numel; i++) {
            host[i] = weight(specs[t].name, seed, i);
        }
        ok(ct_st_writer_add(w, host, (size_t)numel * sizeof *host, &err));
        ct_alloc_free(alloc, host);
    }
    ok(ct_st_writer_finish(&w, &size, hex, &err));
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

typedef struct world {
    char folder[256];
    ct_log *log;
    FILE *sink;
    ct_registry *registry;
    ct_bootstrap *boot;
    cti_problems problems;
    cti_run_config run;
    cti_trainer *trainer;
} world;

/* The settings of record.py's optimizers(). */
static const char *write_config(world *w)
{
    static const char *const text[] = {
        [SGD] = "base: llama3_debugmodel\noptimizer:\n  param_groups:\n    - {optimizer_name: SGD, optimizer_kwargs: {lr: 0.05, momentum: 0.9, nesterov: true, "
                "weight_decay: 0.01}}\n",
        [MUON] = "base: llama3_debugmodel\noptimizer:\n  param_groups:\n    - {pattern: '^layers.*(attention|feed_forward)\\.', optimizer_name: Muon, "
                 "optimizer_kwargs: {lr: 0.02}}\n    - {pattern: '.*'}\n"};
    static char path[512];
    snprintf(path, sizeof path, "%s/config.yaml", w->folder);
    ok(cti_file_write_atomic(path, text[optim], strlen(text[optim]), &err));
    return path;
}

static void open_run(world *w, const ct_backend *cpu)
{
    static const ct_backend *backends[2];
    backends[0] = cpu;
    const char *argv[] = {"--module", "llama3", "--config", optim == ADAMW ? "llama3_debugmodel" : write_config(w), "--training.steps", "10",
                          "--training.local-batch-size", "2", "--training.seq-len", "256",
                          "--training.mixed-precision-param", "float32", "--dump-folder", w->folder,
                          "--checkpoint.initial-load-path", w->folder, "--checkpoint.initial-load-in-hf",
                          "--dataloader.dataset-path", CT_SOURCE_DIR "/tests/parity/llama/text.jsonl", "--device", "cpu", "--model-spec.n-kv-heads", "4",
                          "--model-spec.rope-scaling-factor", "32", "--model-spec.tied-embeddings"};
    const int argc = (int)(sizeof argv / sizeof argv[0]) - (is_tied ? 0 : 5);
    ct_place place;
    ok(ct_place_from_env(NULL, NULL, &place, &err));
    ok(ct_bootstrap_create(alloc, &place, 1000, &w->boot, &err));
    ok(ct_registry_create(alloc, &w->registry, &err));
    ok(cti_register_llama3(w->registry, &err));
    w->problems = (cti_problems){.text = {.alloc = alloc}};
    const cti_resolve_options ro = {argc, argv, NULL, 1, false};
    ok(cti_run_config_resolve(alloc, w->registry, NULL, &ro, &w->problems, &w->run, &err));
    w->sink = tmpfile();
    ok(ct_log_create(alloc, w->sink, CT_LOG_INFO, &w->log, &err));
    const cti_trainer_options o = {.alloc = alloc,
                                   .log = w->log,
                                   .registry = w->registry,
                                   .run = &w->run,
                                   .module = "llama3",
                                   .bootstrap = w->boot,
                                   .share_dir = CT_SOURCE_DIR "/share/ctitan",
                                   .version = "test",
                                   .backends = backends};
    ok(cti_trainer_open(&o, &w->trainer, &err));
    ok(cti_trainer_load(w->trainer, &err));
}

static void close_run(world *w)
{
    cti_trainer_close(&w->trainer);
    cti_run_config_deinit(&w->run);
    cti_problems_deinit(&w->problems);
    ct_registry_destroy(&w->registry);
    ct_bootstrap_destroy(&w->boot);
    ct_log_destroy(&w->log);
    fclose(w->sink);
}

/* "layers.3.attention.wo.weight" of "model.layers.3.self_attn.o_proj.weight". */
static void native_name(const char *hf, char *out, size_t size)
{
    static const char *const map[][2] = {{"self_attn.q_proj", "attention.qkv_linear.wq"},
                                         {"self_attn.k_proj", "attention.qkv_linear.wk"},
                                         {"self_attn.v_proj", "attention.qkv_linear.wv"},
                                         {"self_attn.o_proj", "attention.wo"},
                                         {"mlp.gate_proj", "feed_forward.w1"},
                                         {"mlp.up_proj", "feed_forward.w3"},
                                         {"mlp.down_proj", "feed_forward.w2"},
                                         {"input_layernorm", "attention_norm"},
                                         {"post_attention_layernorm", "ffn_norm"}};
    int layer;
    char part[64];
    if (sscanf(hf, "model.layers.%d.%63s", &layer, part) == 2) {
        part[strlen(part) - strlen(".weight")] = '\0';
        for (size_t i = 0; i < sizeof map / sizeof map[0]; i++) {
            if (strcmp(part, map[i][0]) == 0) {
                snprintf(out, size, "layers.%d.%s.weight", layer, map[i][1]);
                return;
            }
        }
        fail_msg("no native name for %s", hf);
    }
    snprintf(out, size, "%s", strcmp(hf, "model.embed_tokens.weight") == 0 ? "tok_embeddings.weight"
                              : strcmp(hf, "model.norm.weight") == 0       ? "norm.weight"
                                                                           : hf);
}

/* From what the first step left in exp_avg: (1 - beta1) coef g, whose coef is clip_coef's. */
static double gradient_norm(cti_trainer *t, const char *param, double norm)
{
    const cti_training_config *training = ct_component_values(ct_component_find(t->root, "training"));
    const double coef = fmin(1.0, training->max_norm / (norm + 1e-6)), weight = (1.0 - t->groups[0].beta1) * coef;
    int32_t m;
    const int32_t g = ct_flat_find(t->step->layout, param, &m);
    assert_true(g >= 0);
    const ct_flat_member *member = &t->step->layout->groups[g].members[m];
    float *host = CT_NEW_ARRAY(alloc, float, member->numel, &err);
    ok(cti_engine_read_flat(t->engine, "exp_avg", t->step->layout->groups[g].name, member->offset, member->numel, host, &err));
    double sum = 0.0;
    for (int64_t i = 0; i < member->numel; i++) {
        sum += (double)host[i] * (double)host[i];
    }
    ct_alloc_free(alloc, host);
    return sqrt(sum) / weight;
}

static void close_to(const char *what, double found, double wanted, double relative)
{
    if (!(fabs(found - wanted) <= relative * fabs(wanted))) {
        fail_msg("%s: wanted %.10g, found %.10g (relative %.2e, allowed %.0e)", what, wanted, found,
                 fabs(found - wanted) / fabs(wanted), relative);
    }
}

static void compare(const json_t *recorded, const char *level, const ct_backend *cpu, int n_steps)
{
    world w = {0};
    snprintf(w.folder, sizeof w.folder, "/tmp/ctitan-parity-%d", (int)getpid());
    ok(cti_make_dirs(w.folder, &err));
    write_weights(w.folder);
    open_run(&w, cpu);
    double worst_loss = 0.0, worst_norm = 0.0;
    for (int i = 0; i < n_steps; i++) {
        double loss, norm;
        char what[64];
        ok(cti_trainer_step(w.trainer, &loss, &norm, &err));
        const double want_loss = json_number_value(json_array_get(json_object_get(recorded, "losses"), (size_t)i));
        const double want_norm = json_number_value(json_array_get(json_object_get(recorded, "grad_norms"), (size_t)i));
        snprintf(what, sizeof what, "%s: loss of step %d", level, i + 1);
        close_to(what, loss, want_loss, 1e-5);
        snprintf(what, sizeof what, "%s: gradient norm of step %d", level, i + 1);
        close_to(what, norm, want_norm, 1e-5);
        worst_loss = fmax(worst_loss, fabs(loss - want_loss) / want_loss);
        worst_norm = fmax(worst_norm, fabs(norm - want_norm) / want_norm);
        if (i == 0 && optim == ADAMW) {
            const char *name;
            json_t *value;
            json_object_foreach(json_object_get(recorded, "first_grad_norms"), name, value)
            {
                char native[96];
                native_name(name, native, sizeof native);
                close_to(native, gradient_norm(w.trainer, native, norm), json_number_value(value), 1e-4);
            }
        }
    }
    printf("%s: %d steps; largest relative difference: loss %.1e, gradient norm %.1e\n", level, n_steps, worst_loss,
           worst_norm);
    close_run(&w);
    ok(cti_remove_tree(w.folder, &err));
}

static json_t *recorded(void)
{
    json_t *json = NULL;
    static const char *const names[] = {[ADAMW] = "", [SGD] = "_sgd", [MUON] = "_muon"};
    char path[512];
    snprintf(path, sizeof path, CT_SOURCE_DIR "/tests/parity/llama/recorded%s.json", is_tied ? "_tied" : names[optim]);
    ok(cti_json_read_file(alloc, path, &json, &err));
    assert_int_equal(json_array_size(json_object_get(json, "losses")), 10);
    assert_int_equal(json_object_size(json_object_get(json, "first_grad_norms")), N_TENSORS - is_tied);
    return json;
}

static void test_rope_frequencies(void **state)
{
    (void)state;
    json_t *json = recorded();
    const cti_rope_config c = {.head_dim = 16, .theta = 500000.0, .scaling = "llama", .scaling_factor = is_tied ? 32.0 : 8.0,
                               .low_freq_factor = 1.0, .high_freq_factor = 4.0, .original_max_position_embeddings = 8192};
    double freqs[8];
    cti_rope_frequencies(&c, freqs);
    for (size_t j = 0; j < 8; j++) { /* a few roundings of pow, division and the blend, each of 2^-24 */
        close_to("frequency", freqs[j], json_number_value(json_array_get(json_object_get(json, "inv_freq"), j)),
                 16.0 * ct_dtype_unit_roundoff(CT_DTYPE_F32));
    }
    json_decref(json);
}

static int steps_to_run(void)
{
    const char *given = getenv("CT_PARITY_STEPS");
    const long n = given != NULL ? strtol(given, NULL, 10) : 10;
    assert_true(n >= 1 && n <= 10);
    return (int)n;
}

static void test_every_level(void **state)
{
    (void)state;
    json_t *json = recorded();
    for (int i = 0; i < cti_cpu_level_count(); i++) {
        const ct_backend *cpu = cti_cpu_backend_at(i);
        if (cpu != NULL) {
            compare(json, cti_cpu_level_name(i), cpu, steps_to_run());
        } else {
            printf("%s: not run, this CPU has no such instructions\n", cti_cpu_level_name(i));
        }
    }
    json_decref(json);
}

/* One parameter, its gradient the sum of both its uses. */
static void test_tied(void **state)
{
    is_tied = true;
    test_rope_frequencies(state);
    test_every_level(state);
    is_tied = false;
}

static void test_optimizers(void **state)
{
    (void)state;
    for (optim = SGD; optim <= MUON; optim++) {
        json_t *json = recorded();
        const ct_backend *best = NULL;
        const char *name = "";
        for (int i = 0; i < cti_cpu_level_count(); i++) {
            best = cti_cpu_backend_at(i) != NULL ? cti_cpu_backend_at(i) : best;
            name = best == cti_cpu_backend_at(i) ? cti_cpu_level_name(i) : name;
        }
        compare(json, name, best, steps_to_run());
        json_decref(json);
    }
    optim = ADAMW;
}

int main(void)
{
    alloc = ct_alloc_system();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rope_frequencies), cmocka_unit_test(test_every_level), cmocka_unit_test(test_tied),
                                       cmocka_unit_test(test_optimizers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
