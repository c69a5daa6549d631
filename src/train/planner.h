/* SPDX-License-Identifier: Apache-2.0 */
/* What a run would take, without running it: memory by class, work, collectives, and a limit of its speed, for one rank of any number of
 * them on a device that need not be here.
 *
 *     cti_plan_request request = {.run = &run, .n_ranks = 64, .backend = ct_backend_null(), .target = h200};
 *     cti_run_estimate *e;
 *     CT_TRY(cti_run_estimate_create(alloc, &request, &e, err));
 *     if (!e->fits) { ... e->advice ... }
 *     cti_run_estimate_destroy(&e);
 */
#ifndef CTI_TRAIN_PLANNER_H
#define CTI_TRAIN_PLANNER_H

#include "component/component.h"
#include "ctitan/backend.h"
#include "mesh/mesh.h"
#include "passes/plan.h"
#include "train/budget.h"
#include "train/run_shape.h"
#include "train/targets.h"

typedef struct cti_plan_request {
    const cti_run_config *run; /* resolved for n_ranks; overrides applied */
    int64_t n_ranks, rank;
    const ct_backend *backend; /* whose kernels say how much workspace they want; null: none */
    const cti_target *target;  /* NULL: the machine that the backend opens, or `facts` */
    const ct_device_facts *facts; /* of the device of this machine, where it is open; NULL: it is opened for them */
    ct_dtype compute_dtype;
    bool has_budget; /* of recomputing: `budget` in place of the settings' */
    double budget;
} cti_plan_request;

enum { CTI_ESTIMATE_N_LIVE = 8, CTI_ESTIMATE_N_ADVICE = 6, CTI_ESTIMATE_N_AGAIN = 32 };

typedef struct cti_estimate_live { /* values of one kind that are alive where activations need most */
    char scope[96], op[32]; /* of the nodes that make them; layers' numbers are '*' */
    char shape[64];         /* "bf16 [8, 2048, 256]" */
    int64_t count, size_bytes; /* of all of them */
} cti_estimate_live;

typedef struct cti_estimate_again { /* nodes of one kind that backward runs again */
    char scope[96], op[32];
    int64_t count, first, last; /* of blocks: the lowest and highest number; 0 where the scope has none */
    double flops;               /* of a step */
} cti_estimate_again;

typedef struct cti_estimate_traffic { /* of one step and rank on one axis */
    int64_t n_gathers, n_scatters, n_reduces;
    double gather_bytes, scatter_bytes, reduce_bytes; /* that this rank sends: on this machine exactly what is counted, on devices by rings, (n - 1) / n of the
                                                      * whole, twice for all_reduce */
} cti_estimate_traffic;

typedef struct cti_run_estimate {
    const ct_alloc *alloc;
    ct_mesh mesh;
    cti_run_shape shape;
    char device[128];
    cti_budget budget; /* of the whole run */
    int64_t n_params;
    double flops_per_token; /* 6 N + whole attention square, what MFU counts */
    /* memory of one rank, bytes */
    int64_t class_bytes[CT_VALUE_KIND_COUNT];
    int64_t workspace_bytes, total_bytes;
    int64_t engine_bytes;  /* that the library of collectives keeps on the device beside it: HCCL, a buffer for each group */
    int64_t memory_bytes;  /* of the device, less engine_bytes; 0: not known */
    bool fits;
    int64_t largest_live_bytes;
    char largest_live_at[128]; /* "backward of layers.3.feed_forward.w2 (matmul)" */
    cti_estimate_live live[CTI_ESTIMATE_N_LIVE];
    int n_live;
    int32_t n_nodes;
    ct_recompute_report recompute; /* bytes of the blocks' values that backward reads */
    cti_estimate_again again[CTI_ESTIMATE_N_AGAIN]; /* what backward runs again first stands first; parameters gathered again are not among it */
    int n_again;
    /* work of one step of one rank */
    double forward_flops, backward_flops, recompute_flops, optimizer_flops; /* recompute is part of backward; attention: the causal half */
    double memory_traffic_bytes; /* read and written by all nodes */
    cti_estimate_traffic traffic[CT_AXIS_COUNT];
    /* seconds, 0 where the device's rate is not known; every node takes the longer of its arithmetic and its memory traffic */
    double compute_s, comm_s; /* comm_s: all collectives in line with compute */
    int n_advice;
    char advice[CTI_ESTIMATE_N_ADVICE][160]; /* changes that make a run fit, with what they need; empty where it fits */
} cti_run_estimate;

/* Fails: ERR_USAGE for settings, ERR_MEMORY where the graph cannot be built. A run that does not fit is no failure. */
CT_MUST_CHECK ct_status cti_run_estimate_create(const ct_alloc *alloc, const cti_plan_request *request,
                                                cti_run_estimate **out_estimate, ct_err *err);
/* The largest budget of recomputing, in 64ths, with which rank 0 needs limit_bytes at most. ERR_USAGE with the least it needs where none does. */
CT_MUST_CHECK ct_status cti_fit_budget(const ct_alloc *alloc, const cti_plan_request *request, int64_t limit_bytes, double *out_budget, ct_err *err);
void cti_run_estimate_destroy(cti_run_estimate **estimate);

#endif
