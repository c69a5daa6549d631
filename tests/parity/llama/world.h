/* SPDX-License-Identifier: Apache-2.0 */
/* What tests against record.py share: its weights in Hugging Face's layout, and a trainer on them and on text.jsonl. */
#ifndef CT_TESTS_PARITY_LLAMA_WORLD_H
#define CT_TESTS_PARITY_LLAMA_WORLD_H

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
static int n_layers = LAYERS;

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
    for (int l = 0; l < n_layers; l++) {
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
    assert_int_equal(n, 3 + 9 * n_layers - is_tied);
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

/* more: further arguments, NULL-terminated. */
static void open_run(world *w, const ct_backend *backend, const char *dtype, const char *const *more)
{
    static const ct_backend *backends[2];
    backends[0] = backend;
    const char *argv[40] = {"--module", "llama3", "--config", optim == ADAMW ? "llama3_debugmodel" : write_config(w), "--training.steps", "10",
                          "--training.local-batch-size", "2", "--training.seq-len", "256",
                          "--training.mixed-precision-param", dtype, "--dump-folder", w->folder,
                          "--checkpoint.initial-load-path", w->folder, "--checkpoint.initial-load-in-hf",
                          "--dataloader.dataset-path", CT_SOURCE_DIR "/tests/parity/llama/text.jsonl", "--device", backend->name};
    static const char *const tied[] = {"--model-spec.n-kv-heads", "4", "--model-spec.rope-scaling-factor", "32", "--model-spec.tied-embeddings"};
    int argc = 0;
    while (argv[argc] != NULL) {
        argc++;
    }
    for (size_t i = 0; is_tied && i < sizeof tied / sizeof tied[0]; i++) {
        argv[argc++] = tied[i];
    }
    for (; *more != NULL; more++) {
        argv[argc++] = *more;
    }
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
    snprintf(out, size, "%.90s", strcmp(hf, "model.embed_tokens.weight") == 0 ? "tok_embeddings.weight"
                              : strcmp(hf, "model.norm.weight") == 0       ? "norm.weight"
                                                                           : hf);
}

static void close_to(const char *what, double found, double wanted, double relative)
{
    if (!(fabs(found - wanted) <= relative * fabs(wanted))) {
        fail_msg("%s: wanted %.10g, found %.10g (relative %.2e, allowed %.0e)", what, wanted, found,
                 fabs(found - wanted) / fabs(wanted), relative);
    }
}

/* What the engine holds of a parameter: "flat", "exp_avg". The caller frees. */
static float *read_param(cti_trainer *t, const char *prefix, const char *param, int64_t *out_numel)
{
    int32_t m;
    const int32_t g = ct_flat_find(t->step->layout, param, &m);
    assert_true(g >= 0);
    const ct_flat_member *member = &t->step->layout->groups[g].members[m];
    float *host = CT_NEW_ARRAY(alloc, float, member->numel, &err);
    ok(cti_engine_read_flat(t->engine, prefix, t->step->layout->groups[g].name, member->offset, member->numel, host, &err));
    *out_numel = member->numel;
    return host;
}

#endif
