/* SPDX-License-Identifier: Apache-2.0 */
/* A training run that the caller steps: what `ctitan train` does, as a library (docs/library.md).
 *
 *     static const char *const settings[] = {"--module", "llama3", "--config", "llama3_debugmodel", "--training.steps", "3"};
 *     const ct_run_options options = {.size_bytes = sizeof options, .settings = settings, .n_settings = 6};
 *     ct_run *run = NULL;
 *     ct_err err = {0};
 *     ct_status st = ct_run_open(&options, &run, &err);
 *     ct_step_metrics m = {.size_bytes = sizeof m};
 *     while (st == CT_OK && (st = ct_run_step(run, &m, &err)) == CT_OK) {
 *         printf("%lld %.5f\n", (long long)m.step, m.loss);
 *     }
 *     ct_run_close(&run);
 *     if (st != CT_END_OF_DATA) { fprintf(stderr, "%s\n", err.message); }
 *
 * Rules.
 * - Nothing here prints, exits, takes a signal or changes the environment, the working directory or the locale. What the program
 *   would log goes to on_log. Files are written where the settings ask for them (checkpoints, metrics, traces).
 * - One run at a time in a process, any number one after the other: the threads that compute are the process's (they sleep between
 *   steps, take no signals and never keep the process from ending). A process that forked after a run was opened leaves it alone.
 * - Calls for a run come from one thread at a time, any thread; ct_run_request_stop from anywhere, signal handlers included.
 * - Several ranks are several processes, each with its run, started by `ctitan run --no-python`, torchrun, mpirun or srun
 *   (reads_environment). All make the same calls in the same order.
 * - Whatever the options say, these variables are read, as by the program: OMP_NUM_THREADS and its kin, LOCAL_RANK and
 *   LOCAL_WORLD_SIZE for the number of threads, CTITAN_CPU_ISA, GLOO_SOCKET_IFNAME.
 * - Structs begin with their size as the caller was compiled: fields are only ever added at the end, and what an older caller does
 *   not have is left alone. */
#ifndef CTITAN_RUN_H
#define CTITAN_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "ctitan/log.h"
#include "ctitan/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ct_run ct_run;

/* All zero but size_bytes: a run without settings, which is refused, since it has no module. Read during ct_run_open only. */
typedef struct ct_run_options {
    size_t size_bytes;           /* sizeof(ct_run_options) */
    const char *const *settings; /* [n_settings] what follows `ctitan train` on a command line; `--help` is refused */
    size_t n_settings;
    int32_t reads_environment;   /* 0: rank 0 of 1. 1: CTITAN_... settings, CTITAN_PLUGIN_PATH, and rank and world size as the program
                                  * finds them */
    int32_t reserved;            /* 0 */
    const char *prefix;          /* holds share/ctitan and lib/ctitan; NULL: the folder above the one that libctitan.so lies in */
    const char *plugin_path;     /* folders joined by ':', before CTITAN_PLUGIN_PATH; NULL: none */
    /* Each line of the log, without time and newline, in the thread that calls or in one of the library's, in two at once even. NULL: lines
     * are dropped. Must not call anything of this header but ct_run_request_stop. */
    void (*on_log)(void *ctx, ct_log_level level, const char *text);
    void *log_ctx;
} ct_run_options;

/* What does not change while a run is open. */
typedef struct ct_run_facts {
    size_t size_bytes;          /* in: sizeof(ct_run_facts) */
    int64_t n_parameters;       /* of the model, over all ranks */
    int64_t planned_bytes;      /* the block of memory that holds all tensors of this rank */
    int64_t first_step;         /* the number of the first step: 1, or one more than the checkpoint's that the run goes on from */
    int64_t last_step;          /* training.steps */
    int64_t global_batch;       /* rows of a step, over all ranks */
    int64_t seq_len;            /* tokens of a row */
    int64_t rank, world_size;
} ct_run_facts;

/* What a step came to. */
typedef struct ct_step_metrics {
    size_t size_bytes;          /* in: sizeof(ct_step_metrics) */
    int64_t step;               /* its number, from 1; where the run went back, the checkpoint's */
    double loss;                /* mean over the step's labels that count, of all ranks; nats per token */
    double max_loss;            /* the largest mean of one rank */
    double grad_norm;           /* over all parameters, before clipping */
    double learning_rate;       /* of the first group of parameters */
    double seconds;             /* of the step with waiting for data, without saving and validation */
    double tokens_per_second;   /* of this rank; in what a line of the log calls tps, time between lines counts too */
    int64_t tokens_seen;        /* by the run so far, over all ranks; padding counts */
    int64_t peak_memory_bytes;  /* of this process */
    int32_t was_updated;        /* 0: loss or norm was not finite: nothing changed (training.max-nonfinite-steps), or the run went back to its
                                 * newest checkpoint (training.max-rollbacks) */
    int32_t is_last;            /* 1: the next ct_run_step finds nothing to do */
} ct_step_metrics;

/**
 * Opens a run: settings, ranks, plan, memory, data, weights or the checkpoint to go on from. Takes what `ctitan train` takes to
 * reach "Training starts".
 *
 * Fails: ERR_USAGE for wrong settings (all of them in the message, one a line), a size_bytes of another version or a folder without
 *        the installed data; ERR_STATE where a run is open in this process; and as `ctitan train` does. *out_run is NULL then.
 */
CT_MUST_CHECK ct_status ct_run_open(const ct_run_options *options, ct_run **out_run, ct_err *err);

/**
 * One step, with the records, checkpoints and validation that the settings ask for after it.
 *
 * out_metrics   NULL: not wanted. Filled where CT_OK is returned.
 *
 * CT_END_OF_DATA, which is no failure: no step was left (all are done, or the documents are at their end), and nothing changed; all
 * ranks have come here.
 * Fails: ERR_STOPPED after ct_run_request_stop or the time limit, once the step asked for it is done, saved and reported;
 *        ERR_NUMERIC where loss or norm is not finite, and nothing was updated; ERR_PEER, ERR_TIMEOUT where another rank is gone; and
 *        as `ctitan train` does. After a failure the run can only be closed: further calls fail with ERR_STATE.
 */
CT_MUST_CHECK ct_status ct_run_step(ct_run *run, ct_step_metrics *out_metrics, ct_err *err);

/* Saves a checkpoint of the last finished step now, whatever the interval; all ranks call it. ERR_STATE where checkpoint.enable is off
 * or the run is load-only, or before the first step. A failure of the disk leaves the run as it is. */
CT_MUST_CHECK ct_status ct_run_save(ct_run *run, ct_err *err);

CT_MUST_CHECK ct_status ct_run_facts_get(const ct_run *run, ct_run_facts *out_facts, ct_err *err);

/* The step that is on, or the next one, is finished and saved; then all ranks end. */
void ct_run_request_stop(ct_run *run);

/* Frees everything; what is not saved is lost. NULL and a NULL inside are fine. With several ranks after the last ct_run_step, or
 * the others fail with ERR_PEER. */
void ct_run_close(ct_run **run);

const char *ct_version(void); /* "0.1.0" */

#ifdef __cplusplus
}
#endif
#endif
