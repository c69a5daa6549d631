/* SPDX-License-Identifier: Apache-2.0 */
/* Flat groups: the parameters of one block laid end to end and cut into equal shards, one per rank of the sharding axis. A group
 * needs one gather before use and one reduction after, without copies. Members start at multiples of CT_FLAT_ALIGN elements (but for joined ones); the
 * total is padded so that it has CT_FLAT_LEAVES equal leaves of a multiple of CT_FLAT_ALIGN elements, whatever the degree; a shard of one
 * that divides CT_FLAT_LEAVES is some whole leaves, over which norms are summed as a tree: the same bits at any such degree. A shard's
 * cut may fall anywhere inside a parameter.
 *
 * With tensor parallelism a member is this rank's part of a parameter; those that are whole on every rank of tp make groups of their own
 * ("layers.3.whole"), since they are reduced and counted differently. Parameters of another family of optimizers do so too.
 *
 *     ct_flat_layout *layout;
 *     CT_TRY(ct_flat_layout_create(alloc, params, n, degree, &layout, err));
 *     ct_flat_local_range(&layout->groups[g], m, degree, coord, &begin, &end);   // of member m, in its own elements
 *     ct_flat_layout_destroy(&layout);
 */
#ifndef CTI_MESH_FLAT_H
#define CTI_MESH_FLAT_H

#include "ctitan/graph.h"

#define CT_FLAT_ALIGN 32 /* elements: 64 bytes of bf16 */
#define CT_FLAT_LEAVES 64

/* A rank's part of a parameter: [begin, begin + dims[dim]) along `dim` of `whole` elements. Zero: all of it. */
typedef struct ct_flat_cut {
    bool is_cut;
    int32_t dim;
    int64_t whole, begin;
} ct_flat_cut;

typedef struct ct_flat_param {
    const char *name; /* borrowed while the layout is made */
    int32_t ndim;
    int64_t dims[CT_MAX_NDIM]; /* of this rank's part */
    ct_flat_cut cut;
    bool is_owing; /* whole on every rank of tp, each with a part of its gradient */
    const char *family; /* NULL or "": the usual one; others make groups of their own, "layers.3.muon": their states differ */
    bool is_joined; /* must lie directly behind the one before, without a gap: a value of the graph is both */
} ct_flat_param;

typedef struct ct_flat_member {
    const char *name; /* the layout's */
    int32_t ndim;
    int64_t dims[CT_MAX_NDIM];  /* of this rank's part */
    int64_t whole[CT_MAX_NDIM]; /* of the parameter */
    ct_flat_cut cut;
    int64_t numel;       /* of this rank's part */
    int64_t offset;      /* elements from the group's start */
    int32_t param_index; /* in the order given to ct_flat_layout_create */
} ct_flat_member;

typedef struct ct_flat_group {
    const char *name; /* "tok_embeddings", "layers.3", "head" */
    ct_flat_member *members;
    int32_t n_members;
    int64_t total; /* elements with padding; a multiple of degree * CT_FLAT_ALIGN */
    bool is_cut;   /* its members are parts of parameters that the ranks of tp share */
    bool is_owing; /* its gradient is a sum over the ranks of tp */
} ct_flat_group;

typedef struct ct_flat_layout {
    const ct_alloc *alloc;
    ct_arena *arena;
    ct_flat_group *groups;
    int32_t n_groups;
    int64_t degree;
} ct_flat_layout;

/* Groups by block: "layers.<i>." together, "tok_embeddings." alone, all the rest in "head"; where any parameter is cut or owing, those that
 * are not cut in "<block>.whole". Order of first appearance. */
/* ERR_UNSUPPORTED where a joined parameter belongs to another group than the one before. */
CT_MUST_CHECK ct_status ct_flat_layout_create(const ct_alloc *alloc, const ct_flat_param *params, int32_t n_params,
                                              int64_t degree, ct_flat_layout **out_layout, ct_err *err);
void ct_flat_layout_destroy(ct_flat_layout **layout);
/* Leaves of one shard; 1 where the degree does not divide CT_FLAT_LEAVES. */
int64_t ct_flat_leaves(int64_t degree);
/* Where elements of a member lie in the whole parameter: from local element `first` on, *out_n elements (at most n) lie end to end from
 * the returned element of the whole on. */
int64_t ct_flat_whole_run(const ct_flat_member *member, int64_t first, int64_t n, int64_t *out_n);
/* The part of a member that rank `coord` holds, in the member's own elements: [begin, end), begin == end where none. */
void ct_flat_local_range(const ct_flat_group *group, int32_t member, int64_t degree, int64_t coord, int64_t *out_begin,
                         int64_t *out_end);
/* Group index of a parameter by name and its member index; -1 where there is none. */
int32_t ct_flat_find(const ct_flat_layout *layout, const char *param, int32_t *out_member);

#endif
