/* SPDX-License-Identifier: Apache-2.0 */
/* Between ckpt_save.c, ckpt_folder.c, ckpt_open.c and hf_*.c. */
#ifndef CTI_CKPT_CKPT_INTERNAL_H
#define CTI_CKPT_CKPT_INTERNAL_H

#include "ckpt/ckpt.h"

#define CTI_CKPT_FORMAT "ctitan-checkpoint"
#define CTI_CKPT_RANK_FORMAT "ctitan-checkpoint-rank"
#define CTI_CKPT_VERSION 2 /* what is read; version 1, without columns, is written where no piece has any */
#define CTI_CKPT_MANIFEST "manifest.json"
#define CTI_CKPT_CHUNK ((int64_t)1 << 20) /* elements that a source is asked for at once, at most */

/* What a name in a checkpoint folder is. */
typedef enum cti_ckpt_entry {
    CTI_CKPT_FOREIGN, /* not ours: never touched */
    CTI_CKPT_STEP,    /* step-<N> */
    CTI_CKPT_TEMP,    /* .tmp-step-<N>-<token>: a save that is going on, or that died; half-deleted */
    CTI_CKPT_OLD      /* .old-step-<N>-<token>: step-<N> while another takes its place */
} cti_ckpt_entry;
cti_ckpt_entry cti_ckpt_entry_of(const char *name, int64_t *out_step);

bool cti_ckpt_token_ok(const char *token); /* letters and digits, at least one */
/* "<folder>/.tmp-step-<N>-<token>", "<folder>/step-<N>". NULL and err where memory ran out. */
char *cti_ckpt_temp_path(const ct_alloc *alloc, const char *folder, int64_t step, const char *token, ct_err *err);
char *cti_ckpt_step_path(const ct_alloc *alloc, const char *folder, int64_t step, ct_err *err);

/* Makes the folder `temp` (whole and fsynced) to `target`, whose old content moves out of the way first and is removed afterwards:
 * at every instant one of the two is there whole, under `target` or under an .old- name. */
CT_MUST_CHECK ct_status cti_ckpt_put_in_place(const char *folder, const char *temp, const char *target, const char *old,
                                              ct_err *err);
/* Removes what dead saves left: temporary folders, and .old- ones whose step-<N> is there. What cannot be removed stays: the next
 * commit tries again. */
void cti_ckpt_remove_stale(const ct_alloc *alloc, const char *folder);

/* Opens the checkpoint in `path` itself. What is looked at: manifest and sizes of files; headers of files and pieces of tensors, too;
 * checksums, too. */
typedef enum cti_ckpt_depth { CTI_CKPT_SIZES, CTI_CKPT_PIECES, CTI_CKPT_ALL } cti_ckpt_depth;
CT_MUST_CHECK ct_status cti_ckpt_open_path(const ct_alloc *alloc, const char *path, cti_ckpt_depth depth, ct_ckpt **out_ckpt, ct_err *err);

/* Elements of the columns that a piece is of; -1 where dims or columns make no sense. Columns 0, 0 become all of them. */
int64_t cti_ckpt_block(ct_ckpt_piece *piece);

/* n floats from src (any alignment) to dst (any alignment); equal dtypes: the bytes, of any dtype. Otherwise both must be floats. */
void cti_ckpt_convert(const void *src, ct_dtype from, void *dst, ct_dtype to, int64_t n);

#endif
