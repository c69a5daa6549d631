/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `ckpt`: checkpoints on disk, and weights in Hugging Face's layout.
 *
 *   safetensors.h   one file: read (mapped, checked) and write (streamed)
 *   ckpt.h          a checkpoint: a folder `step-<N>` of safetensors files and a manifest (this file)
 *   hf.h            weights of Llama-class models in Hugging Face folders, by native names
 *
 * A checkpoint holds logical tensors, cut at element ranges: whoever reads asks for any range of any tensor, whatever layout
 * wrote it. Saving, on every rank:
 *
 *     CT_TRY(ct_ckpt_write_rank(alloc, folder, step, token, rank, world_size, pieces, n, source, ctx, err));
 *     ... barrier ...
 *     if (rank == 0) CT_TRY(ct_ckpt_commit(alloc, folder, step, token, world_size, extra, err));
 *     ... barrier ...
 *     if (rank == 0) CT_TRY(ct_ckpt_retain(alloc, folder, keep_latest_k, err));
 *
 * Everything goes to "<folder>/.tmp-step-<N>-<token>" first, is fsynced, and is renamed to "<folder>/step-<N>" by the commit: a
 * kill at any instant leaves the old checkpoints and, from the rename on, the new one whole. Loading:
 *
 *     CT_TRY(ct_ckpt_open(alloc, folder, -1, &ckpt, &notes, err));     // newest that is whole
 *     CT_TRY(ct_ckpt_read(ckpt, "norm.weight", 0, 256, CT_DTYPE_F32, dst, err));
 *     ct_ckpt_close(&ckpt);
 *
 * The room knows no ranks: barriers and the agreed token are the caller's.
 */
#ifndef CTI_CKPT_CKPT_H
#define CTI_CKPT_CKPT_H

#include "base/json.h"
#include "base/str.h"
#include "ctitan/alloc.h"
#include "ctitan/dtype.h"

#define CT_CKPT_MAX_NDIM 6

/* Elements [begin, end) of a logical tensor, row-major; or, with n_columns, of those columns of it alone: [column, column + n_columns) of the
 * last dim, as if they were a tensor. begin == end: nothing, but the tensor is known. */
typedef struct ct_ckpt_piece {
    const char *name; /* "layers.0.attention.wo.weight", "optimizer.exp_avg.norm.weight" */
    ct_dtype dtype;
    int32_t ndim;
    int64_t dims[CT_CKPT_MAX_NDIM]; /* of the whole tensor */
    int64_t begin, end;
    int64_t column, n_columns; /* 0, 0: all columns */
} ct_ckpt_piece;

/* Gives elements [begin, end) of piece `piece` (in the tensor's own elements, within the piece) in the piece's dtype. Called in order,
 * in chunks of at most 1 Mi elements. */
typedef ct_status (*ct_ckpt_source)(void *ctx, int32_t piece, int64_t begin, int64_t end, void *dst, ct_err *err);

/* token: the same text on all ranks, letters and digits, new for each save. Checks free space first (ERR_IO with the numbers). */
CT_MUST_CHECK ct_status ct_ckpt_write_rank(const ct_alloc *alloc, const char *folder, int64_t step, const char *token,
                                           int rank, int world_size, const ct_ckpt_piece *pieces, int32_t n_pieces,
                                           ct_ckpt_source source, void *ctx, ct_err *err);
/* extra: an object of the caller's, stored in the manifest under "extra" (borrowed). ERR_FORMAT where the ranks' pieces do not make
 * whole tensors. An existing step-<N> is replaced. Also removes temporary folders that dead saves left behind. */
CT_MUST_CHECK ct_status ct_ckpt_commit(const ct_alloc *alloc, const char *folder, int64_t step, const char *token,
                                       int world_size, const json_t *extra, ct_err *err);
/* Removes what this save left, after a rank failed at its part; for one rank. */
void ct_ckpt_abandon(const ct_alloc *alloc, const char *folder, int64_t step, const char *token);
/* Removes what dead saves left, before the first one of a run that has the folder to itself: room that the next save needs. */
void ct_ckpt_clean(const ct_alloc *alloc, const char *folder);

/* Steps whose checkpoints were found damaged. */
typedef struct ct_ckpt_steps {
    int64_t steps[16];
    int n;
} ct_ckpt_steps;
/* Deletes all but the newest keep_latest_k whole checkpoints (0: keeps all). Folders that are not ours or not whole stay, and do not count;
 * whole is what has its files at their sizes and is not among `damaged` (NULL: none is known): checksums would be a reading of them all.
 * out_deleted: lines naming what was deleted, may be NULL. */
CT_MUST_CHECK ct_status ct_ckpt_retain(const ct_alloc *alloc, const char *folder, int64_t keep_latest_k, const ct_ckpt_steps *damaged,
                                       cti_str *out_deleted, ct_err *err);

typedef struct ct_ckpt ct_ckpt;

/* The newest whole checkpoint of a folder, NULL where there is none (a missing folder has none); those passed over are noted, and their
 * steps go to out_damaged. */
CT_MUST_CHECK ct_status ct_ckpt_newest(const ct_alloc *alloc, const char *folder, ct_ckpt **out_ckpt, ct_ckpt_steps *out_damaged, cti_str *notes,
                                       ct_err *err);
/* The checkpoint of a step whose checksums another rank verifies: all but the bytes of its tensors is checked. */
CT_MUST_CHECK ct_status ct_ckpt_open_verified(const ct_alloc *alloc, const char *folder, int64_t step, ct_ckpt **out_ckpt, ct_err *err);
/* step -1: the newest whole one. Sizes and checksums are verified; with step -1 a damaged one is passed over, and notes says why.
 * ERR_NOT_FOUND where there is none. path may be `folder` or a "step-<N>" folder itself (then step is -1). */
CT_MUST_CHECK ct_status ct_ckpt_open(const ct_alloc *alloc, const char *folder, int64_t step, ct_ckpt **out_ckpt,
                                     cti_str *notes, ct_err *err);
void ct_ckpt_close(ct_ckpt **ckpt);
int64_t ct_ckpt_step(const ct_ckpt *ckpt);
const char *ct_ckpt_path(const ct_ckpt *ckpt);
const json_t *ct_ckpt_extra(const ct_ckpt *ckpt); /* borrowed */
/* The i-th tensor by name, NULL past the last; as ct_ckpt_find gives it. Borrowed. */
const ct_ckpt_piece *ct_ckpt_tensor_at(const ct_ckpt *ckpt, size_t i);
/* NULL where there is none; else its dims and dtype (begin 0, end numel). Borrowed. */
const ct_ckpt_piece *ct_ckpt_find(const ct_ckpt *ckpt, const char *name);
/* Elements [begin, end) of a tensor, converted to `dtype` (floats only; equal dtypes: the bytes). ERR_NOT_FOUND, ERR_RANGE. */
CT_MUST_CHECK ct_status ct_ckpt_read(const ct_ckpt *ckpt, const char *name, int64_t begin, int64_t end, ct_dtype dtype,
                                     void *dst, ct_err *err);

#endif
