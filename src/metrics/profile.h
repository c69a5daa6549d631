/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of chosen steps in the format of Chrome and Perfetto: one span per op, inside the span of its program, inside the step's;
 * and how much memory was in use. Nothing is measured in other steps.
 *
 *     cti_profile *p;
 *     CT_TRY(cti_profile_create(alloc, &schedule, loaded_step, &p, err));
 *     if (cti_profile_records(p, step)) { ... cti_profile_add(p, &span) for each op ... }
 *     if (cti_profile_ends(p, step)) { CT_TRY(cti_profile_write(p, path, rank, err)); }
 *     cti_profile_destroy(&p);
 *
 * Steps are chosen as by torch.profiler.schedule: after skip_first steps cycles of wait + warmup + active, of which the last `active`
 * steps are recorded; a cycle's phase is that of the step's number, so that a resumed run records the same steps. */
#ifndef CTI_METRICS_PROFILE_H
#define CTI_METRICS_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "ctitan/alloc.h"

typedef struct cti_profile_schedule {
    int64_t freq;            /* length of a cycle in steps, >= warmup + active */
    int64_t warmup, active;
    int64_t repeat;          /* cycles; 0: no end */
    int64_t skip_first;      /* steps */
    bool skips_first_wait;   /* the first cycle begins with its warm-up */
} cti_profile_schedule;

typedef enum cti_step_phase { CTI_PHASE_NONE, CTI_PHASE_WARMUP, CTI_PHASE_RECORD, CTI_PHASE_RECORD_LAST } cti_step_phase;

/* What to do in step `step` (the first is 1). */
cti_step_phase cti_profile_phase(const cti_profile_schedule *schedule, int64_t step);

/* Texts are borrowed until cti_profile_write. */
typedef struct cti_span {
    const char *name;      /* "matmul", "forward", "step" */
    const char *category;  /* "op", "collective", "start" and "wait" (of collectives beside the computation), "program", "step", "host" */
    const char *scope;     /* "layers.0.attention"; NULL: none */
    const char *program;   /* NULL: none */
    const char *shapes;    /* NULL: none */
    int64_t begin_ns, end_ns; /* cti_now_ns */
    int64_t step;
    int32_t micro_batch;   /* -1: none */
    int32_t stream;        /* 0 compute, 1 communication; thread id in the picture */
    int64_t live_bytes;    /* activations in use meanwhile; -1: no sample of the memory counter */
    int32_t number;        /* of a collective on stream 1, its start, or the last that a wait is for; 0: none */
} cti_span;

typedef struct cti_profile cti_profile;

/* persistent_bytes: parameters, states and other memory that is in use all the time, for the memory counter. */
CT_MUST_CHECK ct_status cti_profile_create(const ct_alloc *alloc, const cti_profile_schedule *schedule, int64_t persistent_bytes,
                                           cti_profile **out_profile, ct_err *err);
void cti_profile_destroy(cti_profile **profile);
/* NULL profile: false. */
bool cti_profile_records(const cti_profile *profile, int64_t step);
bool cti_profile_ends(const cti_profile *profile, int64_t step);
/* Keeps a copy of the span; where memory runs out the span is dropped, and the write fails. */
void cti_profile_add(cti_profile *profile, const cti_span *span);
/* Writes and forgets the spans: JSON, compressed with gzip where path ends in ".gz"; folders are made. Times count from the first span. */
CT_MUST_CHECK ct_status cti_profile_write(cti_profile *profile, const char *path, int64_t rank, ct_err *err);

#endif
