/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a run, one field table per section. From a table come the section's struct, defaults, flags, help, checks
 * of type and range, printed forms and docs/settings.md. Names and defaults are those that TorchTitan's users know; a part
 * that is not there yet has a refusal in its row: any value but the default is then refused with that sentence. Whoever adds
 * the part puts NULL in its place.
 *
 * Read a section:  const cti_training_config *t = ct_component_values(ct_component_find(root, "training"));
 *
 * Checks across fields are in checks.c.
 */
#ifndef CTI_CONFIG_SECTIONS_H
#define CTI_CONFIG_SECTIONS_H

#include "ctitan/component.h"

/* Accepted because scripts carry it, but nothing here depends on it: cti_config_no_effect() lists those that were set. Only for
 * settings that change no result. */
enum { CTI_SET_NO_EFFECT = 256 };

/* One row each: X(name, KIND, default, low, high, choices, unit, flags, refusal, help) */
/* clang-format off */

#define CTI_TRAINER_FIELDS(X) \
    X(hf_assets_path, STR, "", "", "", "", "", 0, NULL, \
      "folder with tokenizer.json and, for weights, *.safetensors; empty: the tokenizer that comes with ctitan") \
    X(dump_folder, STR, "./outputs", "1", "", "", "", 0, NULL, "folder under which everything is written") \
    X(device, CHOICE, "auto", "", "", "auto|npu|cpu|ref", "", CT_SET_PLAN, NULL, \
      "what computes: auto takes NPUs where they are, else cpu; npu Ascend devices, cpu the fast kernels, ref the plain loops that define each op")

#define CTI_PROFILER_FIELDS(X) \
    X(enable_profiling, BOOL, "false", "", "", "", "", 0, NULL, "write a trace of some steps") \
    X(save_traces_folder, STR, "profiling/traces", "1", "", "", "", 0, NULL, "where traces go, under dump_folder") \
    X(profile_freq, I64, "10", "1", "", "", "steps", 0, NULL, "length of one cycle of the profiler") \
    X(profiler_repeat, OPT_I64, "None", "0", "", "", "cycles", 0, NULL, "cycles to trace; 0 or None: all") \
    X(profiler_skip_first, OPT_I64, "None", "0", "", "", "steps", 0, NULL, "steps before the first cycle") \
    X(profiler_skip_first_wait, OPT_I64, "None", "0", "", "", "", 0, NULL, \
      "1: the first cycle starts without its idle part") \
    X(profiler_active, I64, "1", "1", "", "", "steps", 0, NULL, "traced steps at the end of a cycle") \
    X(profiler_warmup, I64, "3", "0", "", "", "steps", 0, NULL, "steps before the traced ones whose trace is dropped") \
    X(enable_memory_snapshot, BOOL, "false", "", "", "", "", 0, "memory is planned: `ctitan plan` prints it", \
      "write what is allocated") \
    X(memory_snapshot_freq, OPT_I64, "None", "1", "", "", "steps", 0, NULL, "steps between snapshots; None: profile_freq") \
    X(save_memory_snapshot_folder, STR, "profiling/memory_snapshot", "1", "", "", "", 0, NULL, \
      "where snapshots go, under dump_folder") \
    X(memory_snapshot_max_entries, I64, "1000000", "1", "", "", "entries", 0, NULL, "events that a snapshot keeps")

#define CTI_METRICS_FIELDS(X) \
    X(log_freq, I64, "10", "1", "", "", "steps", 0, NULL, "a line at step 1 and at each multiple of this") \
    X(enable_tensorboard, BOOL, "false", "", "", "", "", 0, NULL, "write TensorBoard's event files") \
    X(disable_color_printing, BOOL, "false", "", "", "", "", 0, NULL, "no colour in the step lines") \
    X(save_tb_folder, STR, "tb", "1", "", "", "", 0, NULL, "where event files go, under dump_folder") \
    X(save_for_all_ranks, BOOL, "false", "", "", "", "", 0, NULL, "event files and CSV of every rank, not of one") \
    X(enable_csv, BOOL, "true", "", "", "", "", 0, NULL, \
      "keep the numbers of the logged steps in metrics.csv and the run's facts in run.json, under dump_folder") \
    X(enable_progress, BOOL, "true", "", "", "", "", 0, NULL, "a line below the log that shows progress, where it is a terminal") \
    X(enable_wandb, BOOL, "false", "", "", "", "", 0, "Weights & Biases has no C library", "send metrics to W&B")

#define CTI_TOKENIZER_FIELDS(X) \
    X(special_text, CHOICE, "text", "", "", "text|match", "", 0, NULL, \
      "special tokens spelt out in documents: text leaves them plain text, match turns them into their ids")

#define CTI_DATALOADER_ROWS(X, dataset_default, infinite_default) \
    X(dataset, STR, dataset_default, "1", "", "", "", 0, NULL, "name of a data set, or of the layout of dataset_path; PLUGIN.NAME: one of a plug-in, which is told dataset_path") \
    X(dataset_path, OPT_STR, "None", "1", "", "", "", 0, NULL, "file or folder that holds the documents") \
    X(sources, TOKENS, "", "", "", "", "", 0, NULL, \
      "several data sets mixed by share of tokens, PATH:WEIGHT each, as web/*.jsonl.gz:0.7 code.jsonl:0.3") \
    X(text_field, STR, "text", "1", "", "", "", 0, NULL, "member of each JSON line that holds the text") \
    X(format, CHOICE, "text", "", "", "text|chat", "", 0, NULL, \
      "what documents are: text, or conversations of which the loss counts what the assistant says") \
    X(question_field, STR, "question", "1", "", "", "", 0, NULL, "chat: member that holds the question where there are no messages") \
    X(answer_field, STR, "answer", "1", "", "", "", 0, NULL, "chat: member that holds the answer") \
    X(chat_template, OPT_STR, "None", "1", "", "", "", 0, NULL, "chat: file of the template; None: the tokenizer's") \
    X(chat_date, STR, "2024-07-26", "1", "", "", "", 0, NULL, "chat: the day that a template's strftime_now shows") \
    X(invalid_utf8, CHOICE, "repair", "", "", "repair|bad", "", 0, NULL, \
      "bytes of a text that are no UTF-8: repair makes them U+FFFD, bad makes the document one of bad_records") \
    X(max_document_bytes, I64, "268435456", "1", "", "", "bytes", 0, NULL, "a longer document is one of bad_records") \
    X(begin_id, I64, "0", "0", "2147483647", "", "", 0, NULL, \
      "llm.c's files of tokens: the id that begins a document; 0: 50256 (GPT-2) or 128000 (Llama 3), by the file") \
    X(num_workers, I64, "0", "0", "256", "", "threads", 0, NULL, \
      "threads that tokenize ahead at a lower priority; 0: the thread that makes the batches does it") \
    X(persistent_workers, BOOL, "false", "", "", "", "", CTI_SET_NO_EFFECT, NULL, "keep loader processes") \
    X(pin_memory, BOOL, "false", "", "", "", "", CTI_SET_NO_EFFECT, NULL, "page-locked batches; a backend decides itself") \
    X(prefetch_factor, OPT_I64, "None", "1", "1024", "", "batches", 0, NULL, "micro-batches made ahead; None: 2") \
    X(infinite, BOOL, infinite_default, "", "", "", "", 0, NULL, "begin again when all documents were read") \
    X(streams, OPT_I64, "None", "1", "", "", "streams", 0, NULL, \
      "document streams that feed the global batch; None: the data-parallel degree of the first start") \
    X(seed, I64, "42", "0", "", "", "", 0, NULL, "seed of the order of documents where shuffle is on") \
    X(shuffle, BOOL, "false", "", "", "", "", 0, NULL, "read documents in a permuted order, another one each epoch") \
    X(packing, CHOICE, "concat-then-split", "", "", "concat-then-split|first-fit", "", 0, NULL, \
      "rows of documents end to end, cut where a row is full; or of whole documents, longer ones dropped") \
    X(num_packing_bins, I64, "8", "1", "1048576", "", "rows", 0, NULL, "rows that first-fit keeps open") \
    X(bad_records, CHOICE, "fail", "", "", "fail|skip", "", 0, NULL, "what a document that cannot be used does to the run") \
    X(max_bad_share, F64, "0.01", "0", "1", "", "", 0, NULL, \
      "with bad_records skip: more than this share of a rank's documents ends the run")
#define CTI_DATALOADER_FIELDS(X) CTI_DATALOADER_ROWS(X, "c4_test", "true")
#define CTI_VALIDATOR_DATALOADER_FIELDS(X) CTI_DATALOADER_ROWS(X, "c4_validation", "false")

#define CTI_OPTIMIZER_FIELDS(X) \
    X(implementation, CHOICE, "fused", "", "", "for-loop|foreach|fused|fused_opt_states_bf16", "", \
      CT_SET_PLAN, NULL, \
      "how the update is computed; for-loop, foreach and fused are one kernel here, the last keeps Adam's moments in bfloat16")
#define CTI_PARAM_GROUP_FIELDS(X) \
    X(pattern, STR, ".*", "1", "", "", "", CT_SET_PLAN, NULL, \
      "regular expression searched in parameter names; the first group that matches takes the parameter") \
    X(optimizer_name, CHOICE, "AdamW", "", "", "AdamW|Adam|SGD|Muon|DistMuon", "", CT_SET_PLAN | CT_SET_PLUGIN, NULL, \
      "the optimizer of this group; Muon is for matrices only (DistMuon: the same), give norms, embedding and head to another group before it; " \
      "PLUGIN.NAME: one of a plug-in")
#define CTI_OPTIMIZER_KWARGS_FIELDS(X) \
    X(lr, F64, "0.0008", "0", "1e30", "", "", 0, NULL, "learning rate before the schedule's factor") \
    X(betas, F64_LIST, "0.9 0.95", "0", "1", "", "", CT_SET_PLAN, NULL, "Adam and AdamW: decay of the two moments, both below 1") \
    X(eps, F64, "1e-08", "1e-30", "1e30", "", "", CT_SET_PLAN, NULL, \
      "Adam and AdamW: added to the root of the second moment; Muon: least norm that a direction is divided by") \
    X(weight_decay, F64, "0.1", "0", "1e30", "", "", CT_SET_PLAN, NULL, \
      "AdamW and Muon: the parameter shrinks by this share of the rate; Adam and SGD: times the parameter, added to the gradient") \
    X(momentum, OPT_F64, "None", "0", "1", "", "", CT_SET_PLAN, NULL, \
      "SGD and Muon: share of the direction that is kept from step to step; None: 0 for SGD, 0.95 for Muon") \
    X(nesterov, CHOICE, "default", "", "", "default|true|false", "", CT_SET_PLAN, NULL, \
      "SGD and Muon: look ahead along the direction; default: false for SGD, true for Muon") \
    X(ns_steps, I64, "5", "0", "99", "", "", CT_SET_PLAN, NULL, "Muon: turns of the Newton-Schulz iteration") \
    X(ns_coefficients, F64_LIST, "3.4445 -4.775 2.0315", "-1000", "1000", "", "", CT_SET_PLAN, NULL, "Muon: its three coefficients") \
    X(adjust_lr_fn, CHOICE, "original", "", "", "original|match_rms_adamw|spectral_unclamped", "", CT_SET_PLAN, NULL, \
      "Muon: how the rate grows with a matrix: sqrt(max(1, rows/cols)), 0.2 sqrt(max(rows, cols)) or sqrt(rows/cols)")

#define CTI_LR_SCHEDULER_FIELDS(X) \
    X(warmup_steps, I64, "200", "0", "", "", "steps", 0, NULL, "the rate grows in a straight line over these steps") \
    X(total_steps, OPT_I64, "None", "1", "", "", "steps", 0, NULL, "length of the schedule; None: training.steps") \
    X(decay_ratio, OPT_F64, "None", "0", "1", "", "", 0, NULL, \
      "share of the schedule in which the rate falls; None: from the end of the warm-up") \
    X(decay_type, CHOICE, "linear", "", "", "linear|sqrt|cosine", "", 0, NULL, "curve of the fall") \
    X(min_lr_factor, F64, "0.0", "0", "1", "", "", 0, NULL, "the rate falls to this share of its peak")

#define CTI_TRAINING_FIELDS(X) \
    X(local_batch_size, I64, "8", "1", "", "", "rows", CT_SET_PLAN, NULL, "rows of one micro-batch of one data-parallel rank") \
    X(global_batch_size, I64, "-1", "-1", "", "", "rows", CT_SET_PLAN, NULL, \
      "rows of one step over all ranks; -1: one micro-batch a rank") \
    X(seq_len, I64, "2048", "1", "", "", "tokens", CT_SET_PLAN, NULL, "length of a row") \
    X(max_norm, F64, "1.0", "0", "", "", "", CT_SET_PLAN | CT_SET_EXCLUSIVE_LOW, NULL, \
      "gradients are scaled down to this global norm; inf: never") \
    X(steps, I64, "10000", "1", "", "", "steps", 0, NULL, "number of the last step") \
    X(tokens, OPT_I64, "None", "1", "4611686018427387904", "", "tokens", 0, NULL, \
      "end after the step that makes so many tokens (all that rows hold, padding too); None: after training.steps") \
    X(epochs, OPT_F64, "None", "0", "", "", "epochs", CT_SET_EXCLUSIVE_LOW, NULL, \
      "the same, as passes over the data, whose tokens are counted before the first step; None: after training.steps") \
    X(time_limit_minutes, F64, "0.0", "0", "", "", "minutes", 0, NULL, \
      "end after the last step that, with its checkpoint, fits in this time from the start of the program; exit code 75; 0: no limit") \
    X(max_nonfinite_steps, I64, "0", "0", "", "", "steps", 0, NULL, \
      "steps in a row whose loss or gradient norm may not be finite: they change nothing and are told; one more ends the run, or takes it back (max_rollbacks)") \
    X(max_rollbacks, I64, "0", "0", "", "", "", 0, NULL, \
      "how often a run whose loss or gradient norm is not finite goes back to its newest checkpoint; the batches since then are not read again") \
    X(enable_cpu_offload, BOOL, "false", "", "", "", "", 0, "moving parameters to host memory is not there yet", \
      "keep parameters and optimizer states in host memory") \
    X(disable_cuda_graphs, BOOL, "false", "", "", "", "", CTI_SET_NO_EFFECT, NULL, "launch kernels one by one on CUDA") \
    X(dtype, CHOICE, "float32", "", "", "bfloat16|float32", "", CT_SET_PLAN, NULL, \
      "type of parameters, gradients and optimizer states") \
    X(mixed_precision_param, CHOICE, "bfloat16", "", "", "bfloat16|float32", "", CT_SET_PLAN, NULL, "type computed in") \
    X(mixed_precision_reduce, CHOICE, "float32", "", "", "float32", "", CT_SET_PLAN, NULL, \
      "type in which gradients are summed over ranks") \
    X(gc_freq, I64, "50", "1", "", "", "steps", CTI_SET_NO_EFFECT, NULL, "Python's garbage collection; there is none here") \
    X(gc_debug, BOOL, "false", "", "", "", "", CTI_SET_NO_EFFECT, NULL, "the same, with warnings")

#define CTI_PARALLELISM_FIELDS(X) \
    X(data_parallel_replicate_degree, I64, "1", "1", "", "", "ranks", CT_SET_PLAN, NULL, "copies of the sharded model (HSDP)") \
    X(data_parallel_shard_degree, I64, "-1", "-1", "", "", "ranks", CT_SET_PLAN, NULL, \
      "ranks over which parameters are sharded (FSDP); -1: all that the other degrees leave") \
    X(fsdp_reshard_after_forward, CHOICE, "default", "", "", "default|always|never", "", CT_SET_PLAN, NULL, \
      "whether gathered parameters are dropped after forward; default: yes, unless there is a pipeline") \
    X(data_parallel_overlap, CHOICE, "default", "", "", "default|always|never", "", CT_SET_PLAN, NULL, \
      "whether parameters are gathered and gradients summed while other blocks compute (takes memory: one more block of each); default: yes") \
    X(enable_fsdp_symm_mem, BOOL, "false", "", "", "", "", 0, "symmetric memory is a feature of NVIDIA GPUs and not there yet", \
      "FSDP's collectives over symmetric memory") \
    X(tensor_parallel_degree, I64, "1", "1", "", "", "ranks", CT_SET_PLAN, NULL, "ranks that share each matrix") \
    X(enable_sequence_parallel, BOOL, "true", "", "", "", "", CT_SET_PLAN, NULL, \
      "with tensor parallelism, shard norms and residuals over the sequence") \
    X(spmd_backend, CHOICE, "spmd_types", "", "", "partial_dtensor|full_dtensor|spmd_types", "", CTI_SET_NO_EFFECT, NULL, \
      "PyTorch's machinery under the sharding; ours is the placement algebra") \
    X(pipeline_parallel_degree, I64, "1", "1", "", "", "ranks", CT_SET_PLAN, NULL, "ranks that hold different layers") \
    X(module_fqns_per_model_part, STR_LISTS, "None", "", "", "", "", CT_SET_PLAN, NULL, "names of the modules of each stage") \
    X(pipeline_parallel_first_stage_less_layers, I64, "1", "0", "", "", "layers", CT_SET_PLAN, NULL, \
      "what the embedding counts for when layers are dealt to stages") \
    X(pipeline_parallel_last_stage_less_layers, I64, "1", "0", "", "", "layers", CT_SET_PLAN, NULL, \
      "what the last norm and the head count for") \
    X(pipeline_parallel_layers_per_stage, OPT_I64, "None", "1", "", "", "layers", CT_SET_PLAN, NULL, "layers of one stage") \
    X(pipeline_parallel_schedule, STR, "1F1B", "1", "", "", "", CT_SET_PLAN, NULL, "name of the schedule") \
    X(pipeline_parallel_schedule_csv, OPT_STR, "", "", "", "", "", CT_SET_PLAN, NULL, "file with a schedule of one's own") \
    X(pipeline_parallel_microbatch_size, I64, "1", "1", "", "", "rows", CT_SET_PLAN, NULL, "rows of one pass of the pipeline") \
    X(context_parallel_degree, I64, "1", "1", "", "", "ranks", CT_SET_PLAN, NULL, "ranks that share each row's tokens") \
    X(context_parallel_load_balancer, OPT_STR, "headtail", "1", "", "", "", CT_SET_PLAN, NULL, \
      "how a row is dealt to the ranks: headtail, ptrr or None") \
    X(context_parallel_ptrr_mask_key, OPT_STR, "None", "1", "", "", "", CT_SET_PLAN, NULL, "the mask that ptrr balances") \
    X(expert_parallel_degree, I64, "1", "1", "", "", "ranks", CT_SET_PLAN, NULL, "ranks that share the experts")

#define CTI_CHECKPOINT_FIELDS(X) \
    X(enable, BOOL, "false", "", "", "", "", 0, NULL, "save checkpoints, and go on from the newest one") \
    X(folder, STR, "checkpoint", "1", "", "", "", 0, NULL, "where they are, under dump_folder") \
    X(interval, I64, "500", "1", "", "", "steps", 0, NULL, "steps between two of them") \
    X(initial_load_path, OPT_STR, "None", "1", "", "", "", 0, NULL, \
      "absolute path of a checkpoint to begin from where folder holds none") \
    X(initial_load_model_only, BOOL, "true", "", "", "", "", 0, NULL, "of initial_load_path, take the weights only") \
    X(initial_load_in_hf, BOOL, "false", "", "", "", "", 0, NULL, \
      "the weights to begin from are in Hugging Face's layout (in initial_load_path, else hf_assets_path)") \
    X(initial_load_in_hf_quantized, BOOL, "false", "", "", "", "", 0, "quantized weights are not there yet", \
      "those weights are quantized") \
    X(last_save_model_only, BOOL, "true", "", "", "", "", 0, NULL, "the last save holds weights only") \
    X(last_save_in_hf, BOOL, "false", "", "", "", "", 0, NULL, "the last save is in Hugging Face's layout") \
    X(export_dtype, CHOICE, "float32", "", "", "float16|bfloat16|float32", "", 0, NULL, \
      "type of the weights in a last save of weights only") \
    X(keep_latest_k, I64, "10", "0", "", "", "checkpoints", 0, NULL, "how many are kept; 0: all") \
    X(load_step, I64, "-1", "-1", "", "", "", 0, NULL, "the step to go on from; -1: the newest") \
    X(exclude_from_loading, STR_LIST, "", "", "", "", "", 0, NULL, \
      "parts not to load: optimizer, lr_scheduler, dataloader, train_state") \
    X(enable_first_step_checkpoint, BOOL, "false", "", "", "", "", 0, NULL, "save after step 1 too") \
    X(create_seed_checkpoint, BOOL, "false", "", "", "", "", 0, NULL, \
      "save the initial weights as step 0 and stop; one rank only") \
    X(load_only, BOOL, "false", "", "", "", "", 0, NULL, "never save") \
    X(async_mode, CHOICE, "disabled", "", "", "disabled|async|async_with_pinned_mem", "", 0, \
      "saving in the background is not there yet", "save while training goes on")

#define CTI_AC_COMMON_FIELDS(X) \
    X(preserve_rng_state, BOOL, "true", "", "", "", "", CTI_SET_NO_EFFECT, NULL, \
      "restore the random state for recomputing; nothing recomputed here is random") \
    X(determinism_check, STR, "default", "1", "", "", "", CTI_SET_NO_EFFECT, NULL, \
      "compare shapes of recomputed tensors; the graph is checked once, before it runs") \
    X(debug, BOOL, "false", "", "", "", "", CTI_SET_NO_EFFECT, NULL, "record where recomputing differs")
#define CTI_AC_NONE_FIELDS(X)
#define CTI_AC_FULL_FIELDS(X) CTI_AC_COMMON_FIELDS(X)
#define CTI_AC_SELECTIVE_FIELDS(X) \
    CTI_AC_COMMON_FIELDS(X) \
    X(force_recompute_mm_shapes_by_fqns, STR_LIST, "moe.router.gate", "", "", "", "", CT_SET_PLAN, \
      "products chosen by name are not there yet: which are recomputed goes by their cost", \
      "products with weights shaped like those of the modules named here are always recomputed")
#define CTI_AC_MEMORY_BUDGET_FIELDS(X) \
    CTI_AC_COMMON_FIELDS(X) \
    X(memory_budget, F64, "0.5", "0", "1", "", "", CT_SET_PLAN, NULL, "share of the activations to keep") \
    X(memory_limit_gib, F64, "0", "0", "", "", "", CT_SET_PLAN, NULL, \
      "above 0: the largest share, in 64ths, with which a rank takes no more GiB than this in its block; memory_budget is not asked then") \
    X(visualize_memory_budget_pareto, BOOL, "false", "", "", "", "", 0, "the picture is not there yet", \
      "draw memory against recomputing")

#define CTI_COMPILE_FIELDS(X) \
    X(enable, BOOL, "false", "", "", "", "", CTI_SET_NO_EFFECT, NULL, \
      "PyTorch's compiler; here the whole step always is one planned graph") \
    X(enable_async_tensor_parallel, BOOL, "false", "", "", "", "", 0, NULL, \
      "overlap tensor-parallel collectives with products") \
    X(components, STR_LIST, "model,loss", "", "", "", "", CTI_SET_NO_EFFECT, NULL, "what is compiled: model, loss") \
    X(backend, STR, "inductor", "1", "", "", "", CTI_SET_NO_EFFECT, NULL, "PyTorch's compiler backend")

#define CTI_COMM_FIELDS(X) \
    X(init_timeout_seconds, I64, "300", "1", "", "", "seconds", 0, NULL, "a collective may take this long until step 1 is done") \
    X(train_timeout_seconds, I64, "100", "1", "", "", "seconds", 0, NULL, "and this long afterwards") \
    X(trace_buf_size, I64, "20000", "0", "10000000", "", "entries", 0, NULL, \
      "last collectives that the flight recorder keeps of each rank, 64 bytes each; 0: none") \
    X(save_traces_folder, STR, "comm_traces", "1", "", "", "", 0, NULL, \
      "where they are written when a rank hangs or dies, under dump_folder") \
    X(save_traces_file_prefix, STR, "rank_", "", "", "", "", 0, NULL, "and the name of each file, before the rank") \
    X(mode, CHOICE, "default", "", "", "default|fake_backend|local_tensor|torchcomms", "", 0, \
      "to look at a layout without its ranks, use `ctitan plan`", "how ranks talk") \
    X(engine, CHOICE, "auto", "", "", "auto|gloo|mpi|hccl", "", 0, NULL, \
      "what carries messages between ranks in host memory; auto: gloo; mpi is for ranks that mpirun or srun started. NPUs have HCCL beside it: hccl " \
      "is auto, and refuses other devices")

#define CTI_VALIDATOR_FIELDS(X) \
    X(freq, I64, "10", "1", "", "", "steps", 0, NULL, "validate at step 1 and at each multiple of this") \
    X(enable, BOOL, "false", "", "", "", "", 0, NULL, "validate while training") \
    X(steps, I64, "-1", "-1", "", "", "batches", 0, NULL, "batches of one validation; -1: all the data once")

#define CTI_DEBUG_FIELDS(X) \
    X(seed, OPT_I64, "None", "0", "", "", "", 0, NULL, "seed of the initial weights; None: drawn, and logged") \
    X(spmd_typechecking, BOOL, "false", "", "", "", "", CTI_SET_NO_EFFECT, NULL, \
      "check placements; the graph's always are") \
    X(deterministic, BOOL, "false", "", "", "", "", CT_SET_PLAN, NULL, \
      "refuse kernels whose order of summation is not fixed") \
    X(deterministic_warn_only, BOOL, "false", "", "", "", "", 0, NULL, "warn of them only") \
    X(moe_force_load_balance, BOOL, "false", "", "", "", "", 0, "mixtures of experts are not there yet", \
      "deal tokens to experts in turn") \
    X(detect_anomaly, BOOL, "false", "", "", "", "", 0, "recording of call stacks is PyTorch's; non-finite steps are always named", \
      "name the op that made a gradient non-finite") \
    X(batch_invariant, BOOL, "false", "", "", "", "", 0, "batch-invariant kernels are for inference, not for pre-training", \
      "kernels whose results do not depend on the batch") \
    X(print_config, BOOL, "false", "", "", "", "", 0, NULL, "log all settings as JSON") \
    X(save_config_file, OPT_STR, "None", "1", "", "", "", 0, NULL, "write them to this file, under dump_folder") \
    X(enable_structured_logging, BOOL, "true", "", "", "", "", 0, NULL, "write events as JSON lines, under dump_folder") \
    X(dump_graph, OPT_STR, "None", "1", "", "", "", 0, NULL, "folder for the graph after each pass, as text") \
    X(print_shards, BOOL, "false", "", "", "", "", 0, NULL, "log how each parameter is sharded") \
    X(log_batch_hash, BOOL, "false", "", "", "", "", 0, NULL, "log a hash of each step's tokens, the same for any number of ranks")

#define CTI_OVERRIDE_FIELDS(X) \
    X(imports, TOKENS, "", "", "", "", "", CT_SET_PLAN, NULL, \
      "replacements of components: plugin.name, several with commas, or plugin.name={\"key\": value}")

#define CTI_CHUNKED_LOSS_FIELDS(X) \
    X(num_chunks, I64, "8", "1", "", "", "chunks", CT_SET_PLAN, NULL, \
      "the head and the loss are computed in this many parts of the sequence")
#define CTI_CROSS_ENTROPY_FIELDS(X) \
    X(global_vocab_size, OPT_I64, "None", "1", "", "", "tokens", CT_SET_PLAN, NULL, "rows of the head over all ranks")

/* S(id of cti_<id>_config and cti_<id>_class, class name, table) */
#define CTI_SECTION_LIST(S) \
    S(trainer, "Trainer", CTI_TRAINER_FIELDS) \
    S(profiler, "Profiler", CTI_PROFILER_FIELDS) \
    S(metrics, "MetricsProcessor", CTI_METRICS_FIELDS) \
    S(tokenizer, "HuggingFaceTokenizer", CTI_TOKENIZER_FIELDS) \
    S(dataloader, "HuggingFaceTextDataLoader", CTI_DATALOADER_FIELDS) \
    S(optimizer, "OptimizersContainer", CTI_OPTIMIZER_FIELDS) \
    S(param_group, "ParamGroupConfig", CTI_PARAM_GROUP_FIELDS) \
    S(optimizer_kwargs, "OptimizerKwargs", CTI_OPTIMIZER_KWARGS_FIELDS) \
    S(lr_scheduler, "LRSchedulersContainer", CTI_LR_SCHEDULER_FIELDS) \
    S(training, "TrainingConfig", CTI_TRAINING_FIELDS) \
    S(parallelism, "ParallelismConfig", CTI_PARALLELISM_FIELDS) \
    S(checkpoint, "CheckpointManager", CTI_CHECKPOINT_FIELDS) \
    S(ac_selective, "SelectiveAC", CTI_AC_SELECTIVE_FIELDS) \
    S(ac_full, "FullAC", CTI_AC_FULL_FIELDS) \
    S(ac_memory_budget, "MemoryBudgetAC", CTI_AC_MEMORY_BUDGET_FIELDS) \
    S(compile, "CompileConfig", CTI_COMPILE_FIELDS) \
    S(comm, "CommConfig", CTI_COMM_FIELDS) \
    S(validator, "Validator", CTI_VALIDATOR_FIELDS) \
    S(debug, "DebugConfig", CTI_DEBUG_FIELDS) \
    S(override, "OverrideConfig", CTI_OVERRIDE_FIELDS) \
    S(chunked_loss, "ChunkedCELoss", CTI_CHUNKED_LOSS_FIELDS) \
    S(cross_entropy, "CrossEntropyLoss", CTI_CROSS_ENTROPY_FIELDS)
/* clang-format on */

#define CTI_SECTION_STRUCT(id, name, FIELDS)                                                                   \
    typedef struct cti_##id##_config {                                                                               \
        FIELDS(CT_FIELD_MEMBER)                                                                                      \
    } cti_##id##_config;
CTI_SECTION_LIST(CTI_SECTION_STRUCT)
#undef CTI_SECTION_STRUCT

#define CTI_SECTION_CLASS(id, name, FIELDS) extern const ct_class cti_##id##_class;
CTI_SECTION_LIST(CTI_SECTION_CLASS)
#undef CTI_SECTION_CLASS
extern const ct_class cti_ac_none_class; /* "NoAC", without fields */
/* The validator's loader: a loader with other defaults, the same struct. */
extern const ct_class cti_validator_dataloader_class;
typedef cti_dataloader_config cti_validator_dataloader_config;

/* The kinds of activation_checkpoint, as the command line spells them after "activation-checkpoint:". */
typedef struct cti_ac_kind {
    const char *name; /* "memory-budget" */
    const ct_class *cls;
} cti_ac_kind;
extern const cti_ac_kind cti_ac_kinds[];
extern const int cti_n_ac_kinds;

#endif
