/* SPDX-License-Identifier: Apache-2.0 */
/* What a run shows of itself, beside its log lines: the room `metrics` fed from a trainer. Every function does nothing where the part
 * it feeds is off, and none can fail: what cannot be written is warned of once.
 *
 *     cti_observer_open(t);                      // before the ranks are opened
 *     cti_observer_start(t);                     // the step to begin after is known
 *     cti_observer_step_begin(t, step);
 *     const int64_t start = CTI_PHASE_BEGIN(t, "optim"); ... CTI_PHASE_END(t, "optim", start, st == CT_OK);
 *     cti_observer_logged(t, step, &numbers);    // only where the step has a line
 *     cti_observer_step_end(t, step, loss);
 *     cti_observer_close(t); */
#ifndef CTI_TRAIN_OBSERVE_H
#define CTI_TRAIN_OBSERVE_H

#include "ctitan/ops.h"
#include "metrics/metrics.h"

struct cti_trainer;
typedef struct cti_observer cti_observer;

/* What a step line says and more. */
typedef struct cti_step_numbers {
    double loss, max_loss; /* over all data ranks: the step's, and the largest of one rank's mean */
    double grad_norm;
    cti_rates rates;
    double seconds_per_step;
    double data_seconds;   /* mean wait for a micro-batch */
    double data_percent;   /* share of those waits in the time */
    int64_t peak_bytes;    /* of the process's memory; of the device's where the step runs on one */
} cti_step_numbers;

void cti_observer_open(struct cti_trainer *t);
void cti_observer_start(struct cti_trainer *t);
void cti_observer_close(struct cti_trainer *t);

void cti_observer_step_begin(struct cti_trainer *t, int64_t step);
void cti_observer_step_end(struct cti_trainer *t, int64_t step, double loss, bool is_ok);
void cti_observer_logged(struct cti_trainer *t, int64_t step, const cti_step_numbers *numbers);
void cti_observer_validated(struct cti_trainer *t, int64_t step, double loss, double tokens_per_second);
/* What this rank sent over each axis since the run began: one line of the log, and scalars "sent_bytes/<axis>" of the trace. */
void cti_observer_traffic(struct cti_trainer *t);
/* The trace, for instants, scalars and tags; NULL where it is off. */
cti_trace *cti_observer_trace(const struct cti_trainer *t);

/* A part of the step: a span of the trace, and of the profile where the step is recorded. */
int64_t cti_phase_begin(struct cti_trainer *t, const cti_where *where, const char *name);
void cti_phase_end(struct cti_trainer *t, const cti_where *where, const char *name, int64_t start_ns, bool is_ok);
#define CTI_PHASE_BEGIN(t, name) cti_phase_begin((t), CTI_HERE, (name))
#define CTI_PHASE_END(t, name, start_ns, is_ok) cti_phase_end((t), CTI_HERE, (name), (start_ns), (is_ok))
/* Runs one program for a micro-batch: a span of the profile with a span for each op inside. */
CT_MUST_CHECK ct_status cti_observer_run(struct cti_trainer *t, ct_program_id program, int32_t micro_batch, ct_err *err);
/* Returns when all that was recorded is on its way to the disk: before a checkpoint, so that who resumes from it finds no gap. */
void cti_observer_flush(struct cti_trainer *t);

#endif
