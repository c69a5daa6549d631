/* SPDX-License-Identifier: Apache-2.0 */
/* The registry functions of llama3, by the names TorchTitan gives them, and the names that are known there and not yet here.
 * 1b and 3b are ours. What these functions set is listed beside the defaults by `ctitan config`, with the source "registry". */
#include <stddef.h>

#include "component/component.h"
#include "model/model.h"

/* One row per flavour: what it sets of a run. */
typedef struct recipe {
    const char *flavor;
    int64_t vocab_size;
    const char *hf_assets_path; /* "": the tokenizer that comes with ctitan */
    double lr;
    int64_t warmup_steps;
    ct_opt_f64 decay_ratio;
    int64_t local_batch_size, seq_len, steps;
    const char *dataset;
    int64_t tensor_parallel_degree;
    const ct_class *ac;
    int64_t log_freq, checkpoint_interval;
    int64_t validator_freq, validator_steps;
    int64_t profile_freq;
} recipe;

#define NO_RATIO {false, 0.0}
static const recipe debugmodel = {"debugmodel", 2048, "", 8e-4, 2, {true, 0.8}, 8, 2048, 10, "c4_test", 1,
                                  &cti_ac_selective_class, 1, 10, 5, 10, 10};
static const recipe llama3_1b = {"1B", 128256, "./assets/hf/Llama-3.2-1B", 3e-4, 200, NO_RATIO, 1, 8192, 1000, "c4", 1,
                                 &cti_ac_selective_class, 10, 500, 500, 1200, 100};
static const recipe llama3_3b = {"3B", 128256, "./assets/hf/Llama-3.2-3B", 3e-4, 200, NO_RATIO, 1, 8192, 1000, "c4", 1,
                                 &cti_ac_selective_class, 10, 500, 500, 1200, 100};
static const recipe llama3_8b = {"8B", 128256, "./assets/hf/Llama-3.1-8B", 3e-4, 200, NO_RATIO, 1, 8192, 1000, "c4", 1,
                                 &cti_ac_selective_class, 10, 500, 500, 1200, 100};
static const recipe llama3_70b = {"70B", 128256, "./assets/hf/Llama-3.1-70B", 1.5e-4, 200, NO_RATIO, 8, 8192, 1000, "c4", 8,
                                  &cti_ac_full_class, 10, 500, 500, 1200, 100};
static const recipe llama3_405b = {"405B", 128256, "./assets/hf/Llama-3.1-405B", 8e-5, 600, NO_RATIO, 2, 8192, 3000, "c4", 8,
                                   &cti_ac_full_class, 10, 500, 500, 1200, 100};

/* The section at `path`, to be written. The tree was made by cti_trainer_create, so it is there. */
static void *section(ct_component *root, const char *path)
{
    ct_component *c = ct_component_find(root, path);
    CT_ASSERT(c != NULL);
    return c->values;
}

/* Texts below are string literals: they outlive every tree. */
static void set_values(ct_component *root, const recipe *r)
{
    ((cti_trainer_config *)section(root, ""))->hf_assets_path = r->hf_assets_path;
    ((cti_metrics_config *)section(root, "metrics"))->log_freq = r->log_freq;
    ((cti_profiler_config *)section(root, "profiler"))->profile_freq = r->profile_freq;
    ((cti_dataloader_config *)section(root, "dataloader"))->dataset = r->dataset;
    ((cti_optimizer_kwargs_config *)section(root, "optimizer.param_groups.0.optimizer_kwargs"))->lr = r->lr;
    cti_lr_scheduler_config *lr = section(root, "lr_scheduler");
    lr->warmup_steps = r->warmup_steps;
    lr->decay_ratio = r->decay_ratio;
    cti_training_config *training = section(root, "training");
    training->local_batch_size = r->local_batch_size;
    training->seq_len = r->seq_len;
    training->steps = r->steps;
    ((cti_parallelism_config *)section(root, "parallelism"))->tensor_parallel_degree = r->tensor_parallel_degree;
    ((cti_checkpoint_config *)section(root, "checkpoint"))->interval = r->checkpoint_interval;
    cti_validator_config *validator = section(root, "validator");
    validator->freq = r->validator_freq;
    validator->steps = r->validator_steps;
}

static ct_status make(ct_tree *tree, const recipe *r, ct_component **out_root, ct_err *err)
{
    ct_component *root, *spec;
    CT_TRY(cti_trainer_create(tree, &root, err));
    CT_TRY(cti_set_ac(tree, root, r->ac, err));
    set_values(root, r);
    ct_component *loss_fn = ct_component_find(root, "loss.loss_fn");
    CT_ASSERT(loss_fn != NULL);
    ((cti_cross_entropy_config *)loss_fn->values)->global_vocab_size = (ct_opt_i64){true, r->vocab_size};
    CT_TRY(cti_llama3_spec(tree, r->flavor, &spec, err));
    CT_TRY(ct_component_add(tree, root, "model_spec", spec, err));
    *out_root = root;
    return CT_OK;
}

static ct_status make_debugmodel(ct_tree *tree, ct_component **out_root, ct_err *err)
{
    CT_TRY(make(tree, &debugmodel, out_root, err));
    ((cti_parallelism_config *)section(*out_root, "parallelism"))->pipeline_parallel_schedule = "Interleaved1F1B";
    ((cti_checkpoint_config *)section(*out_root, "checkpoint"))->last_save_model_only = false;
    return CT_OK;
}

/* Fine-tuning of the debug model on the questions and answers that come with ctitan. */
static ct_status make_sft_debugmodel(ct_tree *tree, ct_component **out_root, ct_err *err)
{
    CT_TRY(make(tree, &debugmodel, out_root, err));
    ((cti_checkpoint_config *)section(*out_root, "checkpoint"))->last_save_model_only = false;
    cti_dataloader_config *data = section(*out_root, "dataloader");
    data->dataset = "sft_test";
    data->format = "chat";
    data->packing = "first-fit";
    data->shuffle = true;
    return CT_OK;
}

/* The debug model with a loss that is not cut into chunks: loss.global-vocab-size, no loss.num-chunks. */
static ct_status make_debugmodel_ce_loss(ct_tree *tree, ct_component **out_root, ct_err *err)
{
    CT_TRY(make_debugmodel(tree, out_root, err));
    ct_component *whole;
    CT_TRY(ct_component_create(tree, &cti_cross_entropy_class, &whole, err));
    ((cti_cross_entropy_config *)whole->values)->global_vocab_size = (ct_opt_i64){true, debugmodel.vocab_size};
    return ct_component_replace(ct_component_child(*out_root, "loss"), whole, err);
}

#define MAKE(id)                                                                                                     \
    static ct_status make_##id(ct_tree *tree, ct_component **out_root, ct_err *err)                                  \
    {                                                                                                                \
        return make(tree, &id, out_root, err);                                                                       \
    }
MAKE(llama3_1b)
MAKE(llama3_3b)
MAKE(llama3_8b)
MAKE(llama3_70b)
MAKE(llama3_405b)

/* The same with products in another number format or fused otherwise: `converters` names it; training refuses it until it is there. */
static ct_status make_converted(ct_tree *tree, ct_config_fn base, const char *converter, ct_component **out_root, ct_err *err)
{
    CT_TRY(base(tree, out_root, err));
    const ct_field *field = ct_field_find(cti_model_spec_class.fields, (size_t)cti_model_spec_class.n_fields, "converters");
    CT_ASSERT(field != NULL);
    return ct_field_set(field, section(*out_root, "model_spec"), &converter, 1, ct_tree_arena(tree), err);
}
#define CONVERTED(name, base, converter)                                                                             \
    static ct_status make_##name(ct_tree *tree, ct_component **out_root, ct_err *err)                                \
    {                                                                                                                \
        return make_converted(tree, make_##base, converter, out_root, err);                                          \
    }
CONVERTED(debugmodel_dist_gemm, debugmodel, "dist_gemm")
CONVERTED(debugmodel_float8, debugmodel, "float8")
CONVERTED(debugmodel_nvfp4, debugmodel, "nvfp4")
CONVERTED(debugmodel_nvfp4_85, debugmodel, "nvfp4_first_85_pct")
CONVERTED(llama3_8b_mxfp8, llama3_8b, "mxfp8")
CONVERTED(llama3_8b_nvfp4_85, llama3_8b, "nvfp4_first_85_pct")

/* Attention always keeps to its documents here: the flavour differs in what has no effect. */
static ct_status make_debugmodel_varlen_attn(ct_tree *tree, ct_component **out_root, ct_err *err)
{
    CT_TRY(make_debugmodel(tree, out_root, err));
    ((cti_training_config *)section(*out_root, "training"))->disable_cuda_graphs = true;
    return CT_OK;
}

/* float8 rowwise in all products but the head's, overlapped with tensor parallelism. */
static ct_status make_llama3_405b_whole(ct_tree *tree, ct_component **out_root, ct_err *err)
{
    CT_TRY(make_converted(tree, make_llama3_405b, "float8", out_root, err));
    cti_compile_config *compile = section(*out_root, "compile");
    compile->enable = true;
    compile->enable_async_tensor_parallel = true;
    return CT_OK;
}

#define MODEL(name) "the model family " name " is not there yet, llama3 is"

static const struct {
    const char *module, *config;
    ct_config_fn make;
    const char *refusal;
} rows[] = {
    {"llama3", "llama3_debugmodel", make_debugmodel, NULL},
    {"llama3", "llama3_debugmodel_ce_loss", make_debugmodel_ce_loss, NULL},
    {"llama3", "sft_debugmodel", make_sft_debugmodel, NULL},
    {"llama3", "llama3_1b", make_llama3_1b, NULL},
    {"llama3", "llama3_3b", make_llama3_3b, NULL},
    {"llama3", "llama3_8b", make_llama3_8b, NULL},
    {"llama3", "llama3_70b", make_llama3_70b, NULL},
    {"llama3", "llama3_405b", make_llama3_405b_whole, NULL},
    {"llama3", "llama3_debugmodel_varlen_attn", make_debugmodel_varlen_attn, NULL},
    {"llama3", "llama3_debugmodel_dist_gemm", make_debugmodel_dist_gemm, NULL},
    {"llama3", "llama3_debugmodel_float8", make_debugmodel_float8, NULL},
    {"llama3", "llama3_debugmodel_nvfp4", make_debugmodel_nvfp4, NULL},
    {"llama3", "llama3_debugmodel_first_85_pct_layers_nvfp4", make_debugmodel_nvfp4_85, NULL},
    {"llama3", "llama3_debugmodel_float8_emulate_lora", NULL, "float8 and LoRA are not there yet"},
    {"llama3", "llama3_8b_first_85_pct_layers_nvfp4", make_llama3_8b_nvfp4_85, NULL},
    {"llama3", "llama3_8b_mxfp8", make_llama3_8b_mxfp8, NULL},
    {"qwen3", "qwen3_debugmodel", NULL, MODEL("qwen3")},
    {"qwen3", "qwen3_debugmodel_nvfp4", NULL, MODEL("qwen3")},
    {"qwen3", "qwen3_debugmodel_first_85_pct_layers_nvfp4", NULL, MODEL("qwen3")},
    {"qwen3", "qwen3_debugmodel_moe_param_groups", NULL, MODEL("qwen3")},
    {"qwen3", "qwen3_debugmodel_flex_flash", NULL, MODEL("qwen3")},
    {"qwen3", "qwen3_debugmodel_non_fused_qkv", NULL, MODEL("qwen3")},
    {"qwen3", "qwen3_0_6b", NULL, MODEL("qwen3")},
    {"qwen3", "qwen3_1_7b", NULL, MODEL("qwen3")},
    {"qwen3", "qwen3_14b", NULL, MODEL("qwen3")},
    {"qwen3", "qwen3_32b", NULL, MODEL("qwen3")},
    {"qwen3", "qwen3_30b_a3b", NULL, MODEL("qwen3")},
    {"qwen3", "qwen3_8b_first_85_pct_layers_nvfp4", NULL, MODEL("qwen3")},
    {"qwen3", "qwen3_moe_debug", NULL, MODEL("qwen3")},
    {"qwen3", "qwen3_moe_deepep", NULL, MODEL("qwen3")},
    {"qwen3", "sft_qwen3_8b_math", NULL, MODEL("qwen3")},
    {"qwen3_5", "qwen35_debugmodel", NULL, MODEL("qwen3_5")},
    {"qwen3_5", "qwen35_debugmodel_varlen_attn", NULL, MODEL("qwen3_5")},
    {"qwen3_5", "qwen35_debugmodel_moe", NULL, MODEL("qwen3_5")},
    {"qwen3_5", "qwen35_0_8b", NULL, MODEL("qwen3_5")},
    {"qwen3_5", "qwen35_2b", NULL, MODEL("qwen3_5")},
    {"qwen3_5", "qwen35_4b", NULL, MODEL("qwen3_5")},
    {"qwen3_5", "qwen35_9b", NULL, MODEL("qwen3_5")},
    {"qwen3_5", "qwen35_27b", NULL, MODEL("qwen3_5")},
    {"qwen3_5", "qwen35_35b_a3b", NULL, MODEL("qwen3_5")},
    {"qwen3_5", "qwen35_122b_a10b", NULL, MODEL("qwen3_5")},
    {"qwen3_5", "qwen35_397b_a17b", NULL, MODEL("qwen3_5")},
    {"deepseek_v3", "deepseek_v3_debugmodel", NULL, MODEL("deepseek_v3")},
    {"deepseek_v3", "deepseek_v3_debugmodel_mtp", NULL, MODEL("deepseek_v3")},
    {"deepseek_v3", "deepseek_v3_debugmodel_mxfp8", NULL, MODEL("deepseek_v3")},
    {"deepseek_v3", "deepseek_v3_debugmodel_hybridep", NULL, MODEL("deepseek_v3")},
    {"deepseek_v3", "deepseek_v3_debugmodel_minimal_async_ep", NULL, MODEL("deepseek_v3")},
    {"deepseek_v3", "deepseek_v3_16b", NULL, MODEL("deepseek_v3")},
    {"deepseek_v3", "deepseek_v3_16b_hybridep", NULL, MODEL("deepseek_v3")},
    {"deepseek_v3", "deepseek_v3_16b_minimal_async_ep", NULL, MODEL("deepseek_v3")},
    {"deepseek_v3", "deepseek_v3_671b", NULL, MODEL("deepseek_v3")},
    {"deepseek_v3", "deepseek_v3_671b_float8", NULL, MODEL("deepseek_v3")},
    {"gpt_oss", "gpt_oss_debugmodel", NULL, MODEL("gpt_oss")},
    {"gpt_oss", "gpt_oss_debugmodel_flex", NULL, MODEL("gpt_oss")},
    {"gpt_oss", "gpt_oss_20b", NULL, MODEL("gpt_oss")},
    {"gpt_oss", "gpt_oss_120b", NULL, MODEL("gpt_oss")},
    {"kimi_k2_7", "kimi_k2_5_debugmodel", NULL, MODEL("kimi_k2_7")},
    {"kimi_k2_7", "moonlight_16b_a3b", NULL, MODEL("kimi_k2_7")},
    {"kimi_k2_7", "kimi_vl_a3b", NULL, MODEL("kimi_k2_7")},
    {"kimi_k2_7", "kimi_k2_5", NULL, MODEL("kimi_k2_7")},
    {"muse_glimmer", "muse_glimmer_debugmodel", NULL, MODEL("muse_glimmer")},
    {"muse_glimmer", "muse_glimmer_debugmodel_mm", NULL, MODEL("muse_glimmer")},
    {"muse_glimmer", "muse_glimmer_30b", NULL, MODEL("muse_glimmer")},
    {"muse_glimmer", "muse_glimmer_30b_mm", NULL, MODEL("muse_glimmer")},
    {"flux", "flux_debugmodel", NULL, MODEL("flux")},
    {"flux", "flux_dev", NULL, MODEL("flux")},
    {"flux", "flux_schnell", NULL, MODEL("flux")},
    {"flux", "flux_dev_mxfp8", NULL, MODEL("flux")},
    {"flux", "flux_schnell_mxfp8", NULL, MODEL("flux")},
};

static const ct_class *const classes[] = {
    &cti_model_spec_class, &cti_decoder_class,   &cti_block_class, &cti_linear_class, &cti_embedding_class,
    &cti_rmsnorm_class,    &cti_feed_forward_class, &cti_attention_class, &cti_qkv_class, &cti_rope_class,
    &cti_segment_attention_class};

ct_status cti_register_llama3(ct_registry *registry, ct_err *err)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CT_TRY(ct_registry_add_config(registry, rows[i].module, rows[i].config, rows[i].make, rows[i].refusal, err));
    }
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        CT_TRY(ct_registry_add_class(registry, classes[i], err));
    }
    cti_registry_add_builder(registry, &cti_model_spec_class, cti_llama3_build);
    return CT_OK;
}
