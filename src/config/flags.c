/* SPDX-License-Identifier: Apache-2.0 */
/* The state of each setting: from its row, from the checks, and from the two lists below. */
#include "config/flags.h"

#include "base/str.h"

/* What belongs to a part: {begin of the path, the setting that turns the part on}. While that is refused, they wait. */
static const char *const parts[][2] = {
    {"profiler.memory_snapshot", "profiler.enable_memory_snapshot"},
    {"profiler.save_memory_snapshot", "profiler.enable_memory_snapshot"},
    {"parallelism.pipeline_parallel_", "parallelism.pipeline_parallel_degree"},
    {"parallelism.module_fqns_per_model_part", "parallelism.pipeline_parallel_degree"},
    {"parallelism.context_parallel_", "parallelism.context_parallel_degree"},
};

/* Where what is refused will live, or what there is instead. */
static const char *const places[][2] = {
    {"profiler.enable_memory_snapshot", "`ctitan plan` tells it before the run"},
    {"metrics.enable_wandb", "nowhere; event files, CSV and JSON lines can be read by others"},
    {"training.enable_cpu_offload", "`passes/plan.c`: a second place for persistent buffers"},
    {"parallelism.enable_fsdp_symm_mem", "`comm/`: an engine for NVIDIA devices"},
    {"parallelism.pipeline_parallel_degree", "`train/step.c` and a pass that splits the graph"},
    {"parallelism.context_parallel_degree", "`passes/pass_shard.c`, the segment table of `sdpa`"},
    {"parallelism.expert_parallel_degree", "`ops/`, `passes/pass_shard.c`, with mixtures of experts"},
    {"checkpoint.initial_load_in_hf_quantized", "`ckpt/hf_read.c`"},
    {"checkpoint.async_mode", "`ckpt/`, `train/checkpoint_save.c`"},
    {"activation_checkpoint.force_recompute_mm_shapes_by_fqns", "`passes/pass_recompute.c`"},
    {"activation_checkpoint.visualize_memory_budget_pareto", "`ctitan plan`"},
    {"compile.enable_async_tensor_parallel", "`passes/pass_schedule.c`: collectives beside products"},
    {"comm.mode", "`ctitan plan` is for that"},
    {"debug.moe_force_load_balance", "`model/`, with mixtures of experts"},
    {"debug.detect_anomaly", "nowhere; non-finite steps are named without it"},
    {"debug.batch_invariant", "nowhere; it is for inference"},
    {"model_spec.converters", "`ops/`, `passes/pass_precision.c`"},
};

static const char *place_of(const char *path)
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (cti_str_eq(places[i][0], path)) {
            return places[i][1];
        }
    }
    return NULL;
}

static const char *refusal_of(const cti_setting *s)
{
    return s->field->refusal != NULL ? s->field->refusal : cti_check_missing(s->path);
}

cti_flag_report cti_flag_report_of(const cti_settings *settings, const cti_setting *s)
{
    if (refusal_of(s) != NULL) {
        return (cti_flag_report){CTI_FLAG_REFUSED, refusal_of(s), place_of(s->path)};
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const cti_setting *gate = cti_starts_with(s->path, parts[i][0]) ? cti_settings_find(settings, parts[i][1]) : NULL;
        if (gate != NULL && refusal_of(gate) != NULL) {
            return (cti_flag_report){CTI_FLAG_WAITS, parts[i][1], ""};
        }
    }
    return (cti_flag_report){(s->field->flags & CTI_SET_NO_EFFECT) != 0 ? CTI_FLAG_NO_EFFECT : CTI_FLAG_WORKS, "", ""};
}
