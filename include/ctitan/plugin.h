/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins: shared objects `<name>.so` in a folder of CTITAN_PLUGIN_PATH, or in the installed plug-in folder, with one symbol. A plug-in is
 * opened when something is asked for by "<name>.…": an override, a data set, an optimizer, or a module "<name>". What it adds, it adds in
 * setup(): docs/extending.md shows it from an empty folder on.
 *
 *     static ct_status setup(ct_registry *registry, ct_err *err)
 *     {
 *         CT_TRY(ct_registry_add_op(registry, &my_op, &my_op_id, err));
 *         return ct_registry_add_override(registry, &my_override, err);
 *     }
 *     const ct_plugin_info *ct_plugin_entry(void)
 *     {
 *         static const ct_plugin_info info = {CT_PLUGIN_ABI, sizeof(ct_plugin_info), "mine", "1.0", setup};
 *         return &info;
 *     }
 *
 * What it may call is what include/ctitan declares, taken from the program, or from libctitan.so, that opens it; it links nothing. Structs,
 * texts and functions that it hands over must stay as they are while it is open, which is until the process ends or the run is closed. */
#ifndef CTITAN_PLUGIN_H
#define CTITAN_PLUGIN_H

#include "ctitan/backend.h"
#include "ctitan/component.h"
#include "ctitan/gradient.h"
#include "ctitan/ops.h"
#include "ctitan/parallel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The one number of this interface, for all headers of include/ctitan but run.h. It grows by one in the version that changes the layout or
 * the meaning of a struct, an enum's numbers, or what a function takes; new functions, and new values behind the last of an enum, do not
 * change it. A plug-in of another number is refused by name: build it again. While the number is the same, what was built for an older
 * version works in a newer one; in an older one, a function that is not there yet is named when the plug-in is opened.
 * 1: overrides, classes, registry functions. 2: ops, data sets, optimizers. */
#define CT_PLUGIN_ABI 2

/* The one symbol of a plug-in. Everything that it registers is named "<name>.…" (a module: "<name>" too). Where setup fails, or registers
 * something that is refused, the registry is as before and the plug-in is closed. */
typedef struct ct_plugin_info {
    uint32_t abi;        /* CT_PLUGIN_ABI */
    uint32_t size_bytes; /* sizeof(ct_plugin_info) */
    const char *name;    /* as its file */
    const char *version; /* its own, for `ctitan plugins` */
    ct_status (*setup)(ct_registry *registry, ct_err *err);
} ct_plugin_info;
#define CT_PLUGIN_ENTRY "ct_plugin_entry"
typedef const ct_plugin_info *(*ct_plugin_entry_fn)(void);

/* ---- ops -------------------------------------------------------------------------------------------------------- */

/* Adds an op: a row as the built-in ones have (ctitan/ops.h), with its gradient rule or the reason why there is none, and a kernel for each
 * backend that it runs on. out_id: what ct_op_emit takes. The row is copied; what it points to is not. Its id belongs to this process.
 *   inputs    0 to 16, of which the last may be absent where n_in_max is n_in_min + 1; outputs 1 to 8
 *   flags     no VIEW, JOIN or COLLECTIVE
 *   shard     ELEMENT, ROWS, HEADS, HALVES, PRODUCT (always x w^T), LOOKUP or REPLICATED
 *   kernels   at least one; where the backend of a run has none, the run is refused before it begins
 * ERR_RANGE naming the op and what is wrong with its row, or that its name is taken; ERR_UNSUPPORTED for one too many (256). */
CT_MUST_CHECK ct_status ct_registry_add_op(ct_registry *registry, const ct_op *row, int32_t *out_id, ct_err *err);

/* ---- data sets -------------------------------------------------------------------------------------------------- */

/* Takes the bytes of one document. */
typedef struct ct_text_sink ct_text_sink;
/* Appends; as often as wanted. */
CT_MUST_CHECK ct_status ct_text_add(ct_text_sink *sink, const char *bytes, size_t size, ct_err *err);

/* Documents by number, in place of files: `--dataloader.dataset mine.pages`, or an entry of `--dataloader.sources`. Everything that is done
 * with files is done with it: slices for ranks, shuffling, mixing, packing, resuming; which asks that document n is always the same text. */
typedef struct ct_dataset {
    const char *name; /* "<plug-in>.<name>" */
    const char *description;
    /* path: dataloader.dataset_path, "" where none is given. out_n: how many documents, at least 1. out_identity: a number of these
     * documents, the same every time on every rank and another one for others; a run that goes on from a checkpoint compares it. */
    ct_status (*open)(const ct_alloc *alloc, const char *path, void **out_state, int64_t *out_n, uint64_t *out_identity, ct_err *err);
    void (*close)(void *state);
    /* Document 0 <= number < n: UTF-8 text (ill-formed parts become U+FFFD); where dataloader.format is chat, one JSON object. Several threads
     * read at once. ERR_DATA: this document is bad (dataloader.bad_records decides); any other failure ends the run. */
    ct_status (*read)(void *state, int64_t number, ct_text_sink *sink, ct_err *err);
} ct_dataset;
/* ERR_RANGE naming the data set and what it lacks, or that its name is taken. */
CT_MUST_CHECK ct_status ct_registry_add_dataset(ct_registry *registry, const ct_dataset *dataset, ct_err *err);

/* ---- optimizers ------------------------------------------------------------------------------------------------- */

/* States that an optimizer keeps for each parameter, zero at first, in the parameters' dtype. Checkpoints know these three. */
enum { CT_STATE_EXP_AVG = 1 << 0, CT_STATE_EXP_AVG_SQ = 1 << 1, CT_STATE_MOMENTUM_BUFFER = 1 << 2, CT_N_STATES = 3 };

/* What the settings give a group beside its rate, which is an input (optimizer.param_groups.N.optimizer_kwargs). */
typedef struct ct_optimizer_group {
    double weight_decay, beta1, beta2, eps, momentum;
    bool is_nesterov;
} ct_optimizer_group;

/* The update of one Flat group: N elements of several parameters end to end, any range of each, the same for all ranks that hold copies. So
 * an update goes element by element; what looks at whole matrices (Muon) is built in. */
typedef struct ct_optimizer_call {
    ct_graph *graph;
    ct_value_id param;               /* [N], overwritten */
    ct_value_id grad;                /* [N], the sum over ranks and micro-batches */
    ct_value_id states[CT_N_STATES]; /* [N], overwritten; CT_NO_VALUE: not asked for */
    ct_value_id lr;                  /* f64 [G]: this step's rate of each group */
    ct_value_id step;                /* i64 [1], from 1 */
    ct_value_id coef;                /* f32 [1]: to be multiplied with the gradient (clipping) */
    ct_value_id go;                  /* i32 [1]: where it is 0 nothing may be written */
    ct_i64_list segments;            /* (begin, end, group)*: which elements are of which group; the rest is padding, and stays 0 */
    const ct_optimizer_group *groups; /* G */
    int32_t n_groups;
} ct_optimizer_call;

/* `--optimizer.name mine.Lion`, or the optimizer_name of a param group. */
typedef struct ct_optimizer {
    const char *name; /* "<plug-in>.<name>" */
    const char *description;
    uint32_t states; /* CT_STATE_* */
    /* Emits the update: ops whose outputs overwrite param and every state (UPDATE ops; their shard class does not matter here). */
    ct_status (*emit)(const ct_optimizer_call *call, ct_err *err);
} ct_optimizer;
/* ERR_RANGE naming the optimizer and what it lacks, or that its name is taken. */
CT_MUST_CHECK ct_status ct_registry_add_optimizer(ct_registry *registry, const ct_optimizer *optimizer, ct_err *err);

#ifdef __cplusplus
}
#endif
#endif
