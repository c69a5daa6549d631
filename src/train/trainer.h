/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `train`: one run from resolved settings to the last step.
 *
 *   step.c            model spec -> compiled step            engine.c      device, plan, runtime, weights
 *   trainer_setup.c   settings -> model, data             trainer_loop.c   the step loop
 *   trainer_ranks.c   settings -> ranks, mesh, groups     trainer_device.c the device, and what it computes in
 *   metrics.c         step lines, rates, memory              checkpoint_save.c   what a checkpoint holds of a run
 *   validate.c        the loss on other documents            checkpoint_load.c   back from it
 *   trainer_data.c    settings -> sources and loader         checkpoint_glue.c   where a run begins
 *   generate.c        text from a checkpoint                 override_check.c   overrides proved equal before use
 *   budget.c          how long a run is
 *   run_shape.c       what the settings say of a step        planner.c     what a run would take; targets.c: devices
 *   same.c            ranks that are other programs, or have other settings, are told
 *   observe.c         records: CSV, TensorBoard, trace, profile, progress
 *
 *     cti_trainer *t;
 *     CT_TRY(cti_trainer_open(&options, &t, err));
 *     CT_TRY(cti_trainer_run(t, err));
 *     cti_trainer_close(&t);
 */
#ifndef CTI_TRAIN_TRAINER_H
#define CTI_TRAIN_TRAINER_H

#include <signal.h>

#include "base/num.h"
#include "ckpt/ckpt.h"
#include "comm/comm.h"
#include "component/component.h"
#include "data/data.h"
#include "train/budget.h"
#include "train/engine.h"
#include "train/observe.h"
#include "train/step.h"
#include "train/validate.h"

#define CTI_HOST_REST_BYTES ((int64_t)6 << 20) /* code and tables that the first step touches, the loader's and the writer's thread: as measured (cli.memory) */
#define CTI_HOST_RANKS_BYTES ((int64_t)2 << 20) /* where there are several: the engine's buffers and threads, as measured there */

typedef struct cti_trainer_options {
    const ct_alloc *alloc;
    ct_log *log;
    ct_registry *registry;
    cti_plugins *plugins;
    cti_run_config *run;      /* resolved; overrides not yet applied */
    const char *module;       /* as given: "llama3" */
    ct_bootstrap *bootstrap;
    const char *share_dir;    /* installed data: demo.jsonl, tokenizer/ */
    const char *version;
    const volatile sig_atomic_t *stop; /* set by a signal handler; NULL: none. The step is finished, then the run ends */
    volatile sig_atomic_t *met; /* becomes 1 when all ranks have met; NULL: nobody asks */
    const ct_backend *const *backends; /* NULL-terminated */
    bool is_interactive;      /* the log is a terminal: a line below it may show progress */
    bool is_plain;            /* no colours, whatever the settings say (NO_COLOR) */
} cti_trainer_options;

typedef struct cti_metrics {
    int64_t last_ns;       /* time of the last logged step */
    int64_t tokens;        /* of this rank since then */
    int64_t steps, fetches, fetch_ns; /* since then: steps; micro-batches fetched, and the time waited for them */
    double flops_per_token;
    double peak_flops;     /* dense, of compute_dtype; 0: unknown */
    int64_t memory_bytes;  /* of the device */
    int64_t device_bytes;  /* that the run takes of it, but for what its libraries take; 0: the device is the host */
    bool color;
} cti_metrics;

typedef struct cti_trainer {
    cti_trainer_options o;
    const ct_alloc *alloc;
    ct_log *log;
    ct_component *root;
    ct_mesh mesh;
    /* Ranks agree, and hand each other what the host has, on groups in host memory; what the step's graph says is done on those of the axes, which
     * are the same but where the step runs on a device. */
    ct_comm *world;
    ct_comm *device_world;         /* NULL: axis is of `world` */
    ct_comm *axis[CT_MAX_AXES];    /* groups of the axes above 1, in the backend's memory */
    ct_comm *data_axis[CT_MAX_AXES]; /* those of dp_replicate and dp_shard in host memory */
    const ct_backend *backend;
    void *device;                  /* owns: the device of this rank */
    ct_device_facts facts;
    cti_step *step;
    cti_engine *engine;
    ct_dtype compute_dtype;
    int64_t local_batch, global_batch, seq_len, accumulation;
    int64_t n_params;
    const ct_optim_group *groups;  /* the tree's arena */
    int32_t n_groups;
    cti_budget budget;
    int64_t last_step;             /* of the run, as the budget has it */
    ct_lr_schedule schedule;
    uint64_t seed;
    /* data */
    ct_tokenizer *tokenizer;
    ct_text_processor text; /* of documents */
    cti_validator validator;
    ct_chat *chat;          /* of conversations; NULL: documents are texts */
    ct_sources sources;
    ct_loader_options loader_options;
    ct_loader *loader;
    uint64_t text_hash;     /* of text: ct_text_processor_hash */
    uint64_t encode_hash;   /* the same, and the chat's */
    int32_t *batch_room; /* owns what the batches point into */
    ct_batch *batches;   /* one per micro-batch of a step */
    cti_action *actions;
    uint64_t batch_hash;    /* of the last step, over all ranks */
    bool has_read_all;      /* each of this rank's streams has gone through its documents once */
    /* state */
    int64_t current_step;     /* last finished step */
    int64_t loaded_step;      /* the run began after it */
    bool is_stopping;         /* all ranks know that this step was the last: a signal, or the time limit */
    bool is_out_of_data, is_seed_only;
    int64_t tokens_seen;      /* over all ranks */
    int64_t opened_ns;        /* when the run began */
    int64_t longest_step_ns, longest_save_ns, longest_validation_ns; /* so far: what the time limit must leave room for */
    int64_t n_rollbacks;      /* so far */
    int64_t n_nonfinite;      /* steps in a row that changed nothing, up to now */
    int64_t local_valid;      /* labels of the step that count: this rank's, and of all ranks */
    int64_t global_valid;
    cti_metrics metrics;
    int64_t host_bytes;       /* in memory beside the block, before the first step */
    int folder_lock;          /* of the checkpoint folder, on rank 0 of a run that saves; -1 */
    ct_ckpt_steps damaged;    /* checkpoints that resuming passed over; -1: replaced since; rank 0's */
    cti_observer *observer;   /* owns; NULL: no records */
} cti_trainer;

CT_MUST_CHECK ct_status cti_trainer_open(const cti_trainer_options *options, cti_trainer **out_trainer, ct_err *err);
/* All of it: start, advance until done, finish. */
CT_MUST_CHECK ct_status cti_trainer_run(cti_trainer *trainer, ct_err *err);

/* What a step came to. */
typedef struct cti_step_report {
    double loss, max_loss; /* over all data ranks: the step's, and the largest of one rank's mean */
    double grad_norm;
    int64_t spent_ns;      /* with waiting for data; without saving and validation */
    bool was_updated;      /* false: loss or norm was not finite; passed over, or gone back to a checkpoint */
} cti_step_report;

/* Loads, and says from where; writes the seed checkpoint where one is asked for. Once. */
CT_MUST_CHECK ct_status cti_trainer_start(cti_trainer *trainer, ct_err *err);
/* No step is left: all are done, the data is at its end, all ranks were asked to stop, or only a seed checkpoint was wanted. */
bool cti_trainer_is_done(const cti_trainer *trainer);
/* One step with its line, records, saving and validation as the settings say. CT_END_OF_DATA: there was none left, and nothing changed. */
CT_MUST_CHECK ct_status cti_trainer_advance(cti_trainer *trainer, cti_step_report *out_report, ct_err *err);
/* The last lines, after a barrier. ERR_STOPPED where steps are left. */
CT_MUST_CHECK ct_status cti_trainer_finish(cti_trainer *trainer, ct_err *err);

/* The update alone; advance calls it. CT_END_OF_DATA where any rank has no more data. Where loss or norm is not
 * finite nothing is changed and ERR_NUMERIC names the step. */
CT_MUST_CHECK ct_status cti_trainer_step(cti_trainer *trainer, double *out_loss, double *out_norm, ct_err *err);
void cti_trainer_close(cti_trainer **trainer);

CT_MUST_CHECK ct_status cti_trainer_open_sources(cti_trainer *trainer, ct_err *err);
/* Sources, the chat template where the format is chat, and the loader's options but for streams, of one dataloader section. The caller closes
 * and destroys. */
CT_MUST_CHECK ct_status cti_trainer_open_data(cti_trainer *trainer, const cti_dataloader_config *config, ct_sources *out_sources,
                                              ct_chat **out_chat, ct_loader_options *out_options, ct_err *err);
/* Opens the loader with this number of streams (a resumed run: the saved one). ERR_USAGE where the data ranks do not divide it. */
CT_MUST_CHECK ct_status cti_trainer_open_loader(cti_trainer *trainer, int64_t n_streams, ct_err *err);

/* Of the batches of a step, those made ahead, and the rows that first-fit keeps open. */
int64_t cti_trainer_loader_bytes(const cti_trainer *trainer);
/* Logs how many documents this rank has read, what was repaired, dropped and skipped. when: "first pass". */
void cti_trainer_log_data(const cti_trainer *trainer, const char *when);

/* Fails with CT_ERR_USAGE on all ranks, naming the first settings that differ, where a rank is another program or has other settings than
 * rank 0 has (those that all must share). */
CT_MUST_CHECK ct_status cti_trainer_check_same(cti_trainer *trainer, ct_err *err);

/* Over the data ranks, in their order, from all ranks (those that share rows have the same): out [dp degree * n]. */
CT_MUST_CHECK ct_status cti_data_gather(cti_trainer *trainer, const int64_t *mine, int64_t *out, int64_t n, ct_err *err);

/* ---- parts (trainer_ranks.c, trainer_device.c, metrics.c, checkpoint_*.c) ---- */

/* The ranks meet: world and mesh. */
CT_MUST_CHECK ct_status cti_trainer_open_ranks(cti_trainer *trainer, ct_err *err);
void cti_trainer_log_mesh(const cti_trainer *trainer);
/* The device of this rank: the kind that --device names, the one of LOCAL_RANK among those that are visible; and the dtype that it computes in.
 * ERR_USAGE where the ranks of this host are more than its devices, or where ranks took different kinds. */
CT_MUST_CHECK ct_status cti_trainer_open_device(cti_trainer *trainer, ct_err *err);
/* A limit of collectives in milliseconds: 30 years at most, so that it fits in nanoseconds, too. */
static inline int64_t cti_limit_ms(int64_t seconds)
{
    return cti_min_i64(seconds, 1000000000) * 1000;
}
/* The groups of the mesh's axes, in the memory of the device: it is open. */
CT_MUST_CHECK ct_status cti_trainer_open_axes(cti_trainer *trainer, ct_err *err);
/* After what the step enqueued on the device was waited for, or a failure: ct_comm_settle of the device's world. */
CT_MUST_CHECK ct_status cti_trainer_settle(cti_trainer *trainer, ct_status status, ct_err *err);
/* Groups and device. */
void cti_trainer_close_ranks(cti_trainer *trainer);

/* The peak for MFU is that of the compute dtype. */
void cti_metrics_start(cti_metrics *metrics, const ct_device_facts *facts, ct_dtype compute_dtype, double flops_per_token, int64_t device_bytes, bool color);
/* The step line, then the counters start anew. out_numbers: what it said, but for max_loss. */
/* The line of a validation: tokens of this rank in ns. */
void cti_metrics_log_validation(const cti_metrics *metrics, ct_log *log, int64_t step, double loss, double tokens, int64_t spent_ns);
void cti_metrics_log(cti_metrics *metrics, ct_log *log, int64_t step, double loss, double grad_norm, cti_step_numbers *out_numbers);
/* "0:01:40", as Python prints a time span of whole seconds. buf holds 32 bytes. */
char *cti_format_timedelta(int64_t seconds, char buf[32]);
/* Logs the plan's classes of memory and their sum. */
void cti_log_plan(ct_log *log, const ct_plan *plan);
/* Logs local ranges of every parameter and moment (--debug.print-shards). */
void cti_log_shards(ct_log *log, const cti_trainer *trainer);

/* Where the run begins: a checkpoint of its folder, initial weights, or nothing. Logs which. */
CT_MUST_CHECK ct_status cti_trainer_load(cti_trainer *trainer, ct_err *err);
/* After a step that was not finite: weights, states and counters of the newest checkpoint in the run's folder. The data stays where it is, so that
 * what was read since then is skipped. All ranks together; ERR_NOT_FOUND where there is no checkpoint yet. */
CT_MUST_CHECK ct_status cti_trainer_go_back(cti_trainer *trainer, ct_err *err);
/* The budget, its last step for where the run stands, and the schedule laid over it. The first time before the data's tokens were counted (epochs):
 * epoch_tokens 0. */
CT_MUST_CHECK ct_status cti_trainer_plan_length(cti_trainer *trainer, int64_t epoch_tokens, ct_err *err);
/* Tokens of one pass over the data, where an epoch budget asks for them; else 0. All ranks together. */
CT_MUST_CHECK ct_status cti_trainer_count_epoch(cti_trainer *trainer, int64_t *out_tokens, ct_err *err);
/* Saves after step `step` where the settings ask for it. is_last: the run's last step; is_forced: a run that is asked to stop saves
 * whole whatever the interval. */
CT_MUST_CHECK ct_status cti_trainer_save(cti_trainer *trainer, int64_t step, bool is_last, bool is_forced, ct_err *err);

#endif
