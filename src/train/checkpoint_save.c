/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint holds of a run: its pieces, what else is kept, saving. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "model/model.h"
#include "train/checkpoint_glue.h"

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

typedef struct piece_place {
    int32_t group, member, state;
} piece_place;

typedef struct piece_list {
    ct_ckpt_piece *pieces;
    piece_place *places;
    int32_t n;
    cti_trainer *t;
    ct_dtype export_dtype;
    bool is_converted; /* weights alone, in export_dtype */
    void *scratch;     /* 1 Mi elements, for conversion */
} piece_list;

static const char *piece_name(ct_arena *arena, const char *param, int32_t state, ct_err *err)
{
    return state == 0 ? ct_arena_strdup(arena, param, err)
                      : ct_arena_printf(arena, err, "optimizer.%s.%s", cti_saved_states[state], param);
}

/* What this rank saves of a member: its shard, where no other rank has the same; elements are counted within the part that tensor parallelism
 * left here, which is some rows or some columns. */
static void set_range(const cti_trainer *t, const ct_flat_group *group, int32_t m, ct_ckpt_piece *p)
{
    const ct_flat_member *member = &group->members[m];
    const bool is_copy = t->mesh.coord[CT_AXIS_DP_REPLICATE] > 0 || (!group->is_cut && t->mesh.coord[CT_AXIS_TP] > 0);
    ct_flat_local_range(group, m, t->step->layout->degree, t->mesh.coord[CT_AXIS_DP_SHARD], &p->begin, &p->end);
    if (is_copy) {
        p->end = p->begin;
    }
    if (member->cut.is_cut && member->cut.dim == member->ndim - 1) {
        p->column = member->cut.begin;
        p->n_columns = member->dims[member->ndim - 1];
    } else if (member->cut.is_cut) {
        const int64_t before = member->cut.begin * (member->numel / member->dims[0]); /* rows: dim 0 */
        p->begin += before;
        p->end += before;
    }
}

/* Element of the member's part at the piece's element. */
static int64_t local_of(const ct_flat_member *member, int64_t element)
{
    const bool has_rows = member->cut.is_cut && member->cut.dim < member->ndim - 1;
    return has_rows ? element - member->cut.begin * (member->numel / member->dims[0]) : element;
}

static ct_status list_pieces(cti_trainer *t, int32_t n_states, ct_arena *arena, piece_list *list, ct_err *err)
{
    const ct_flat_layout *l = t->step->layout;
    const int32_t max = t->step->build.n_params * n_states;
    list->t = t;
    list->pieces = ct_arena_alloc(arena, (size_t)max * sizeof *list->pieces, err);
    list->places = ct_arena_alloc(arena, (size_t)max * sizeof *list->places, err);
    if (list->pieces == NULL || list->places == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t s = 0; s < n_states; s++) {
        for (int32_t g = 0; g < l->n_groups; g++) {
            if (!cti_engine_has_flat(t->engine, cti_saved_states[s], l->groups[g].name)) {
                continue;
            }
            for (int32_t m = 0; m < l->groups[g].n_members; m++) {
                const ct_flat_member *member = &l->groups[g].members[m];
                ct_ckpt_piece *p = &list->pieces[list->n];
                list->places[list->n++] = (piece_place){g, m, s};
                *p = (ct_ckpt_piece){.name = piece_name(arena, member->name, s, err), .ndim = member->ndim};
                if (p->name == NULL) {
                    return CT_ERR_MEMORY;
                }
                memcpy(p->dims, member->whole, sizeof p->dims);
                set_range(t, &l->groups[g], m, p);
                CT_TRY(cti_engine_flat_dtype(t->engine, cti_saved_states[s], l->groups[g].name, &p->dtype, err));
                p->dtype = list->is_converted ? list->export_dtype : p->dtype;
            }
        }
    }
    return CT_OK;
}

static void convert(const void *from, ct_dtype from_dtype, void *to, ct_dtype to_dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float f = from_dtype == CT_DTYPE_BF16 ? cti_bf16_to_f32(((const uint16_t *)from)[i]) : ((const float *)from)[i];
        if (to_dtype == CT_DTYPE_F32) {
            ((float *)to)[i] = f;
        } else {
            ((uint16_t *)to)[i] = to_dtype == CT_DTYPE_BF16 ? cti_f32_to_bf16(f) : cti_f32_to_f16(f);
        }
    }
}

static ct_status read_piece(void *ctx, int32_t piece, int64_t begin, int64_t end, void *dst, ct_err *err)
{
    const piece_list *list = ctx;
    const piece_place *at = &list->places[piece];
    const ct_flat_layout *l = list->t->step->layout;
    const ct_flat_group *group = &l->groups[at->group];
    int64_t shard_begin, shard_end;
    ct_flat_range(group->total, l->degree, list->t->mesh.coord[CT_AXIS_DP_SHARD], &shard_begin, &shard_end);
    const ct_flat_member *member = &group->members[at->member];
    const int64_t first = member->offset + local_of(member, begin) - shard_begin;
    ct_dtype stored;
    CT_TRY(cti_engine_flat_dtype(list->t->engine, cti_saved_states[at->state], group->name, &stored, err));
    if (stored == list->pieces[piece].dtype) {
        return cti_engine_read_flat(list->t->engine, cti_saved_states[at->state], group->name, first, end - begin, dst, err);
    }
    CT_TRY(cti_engine_read_flat(list->t->engine, cti_saved_states[at->state], group->name, first, end - begin, list->scratch,
                                err));
    convert(list->scratch, stored, dst, list->pieces[piece].dtype, end - begin);
    return CT_OK;
}

/* ---- what else is kept ------------------------------------------------------------------------------------------- */

/* States of all streams, in their order: ranks hold consecutive ones. Caller frees. */
static ct_status gather_streams(cti_trainer *t, int64_t **out, ct_err *err)
{
    const int64_t width = ct_stream_state_width(t->sources.n), n_mine = width * t->loader_options.n_local_streams;
    int64_t *mine = CT_NEW_ARRAY(t->alloc, int64_t, n_mine, err);
    int64_t *all = CT_NEW_ARRAY(t->alloc, int64_t, width * t->loader_options.streams, err);
    ct_status st = CT_ERR_MEMORY;
    if (mine != NULL && all != NULL) {
        ct_loader_state(t->loader, mine);
        st = cti_data_gather(t, mine, all, n_mine, err);
    }
    ct_alloc_free(t->alloc, mine);
    if (st != CT_OK) {
        ct_alloc_free(t->alloc, all);
        return st;
    }
    *out = all;
    return CT_OK;
}

static ct_status data_json(cti_trainer *t, json_t **out, ct_err *err)
{
    int64_t *states = NULL;
    char *text = NULL;
    ct_status st;
    CT_TRY(gather_streams(t, &states, err));
    CT_TRY_GOTO(st, ct_data_state_write(t->alloc, t->sources.items, t->sources.n, &t->loader_options, states,
                                        t->loader_options.streams, &text, err), out);
    st = cti_json_parse(text, strlen(text), "data state", out, err);
out:
    ct_alloc_free(t->alloc, text);
    ct_alloc_free(t->alloc, states);
    return st;
}

/* {"train_state": …, "data": …, "model": …, "config": …}. data may be NULL. Caller: json_decref. */
static ct_status make_extra(cti_trainer *t, int64_t step, json_t *data, json_t **out, ct_err *err)
{
    const cti_model_spec_config *spec = ct_component_values(ct_component_find(t->root, "model_spec"));
    const cti_trainer_config *root = ct_component_values(t->root);
    char hash[33];
    json_t *config = NULL;
    CT_TRY(cti_config_plan_hash(t->o.run->tree, t->root, hash, err));
    CT_TRY(cti_config_json(t->o.run->tree, t->root, &config, err));
    char *given = root->hf_assets_path[0] != '\0' ? ct_alloc_strdup(t->alloc, root->hf_assets_path, err)
                                                  : cti_path_join(t->alloc, t->o.share_dir, "tokenizer", err);
    char *real = given != NULL ? realpath(given, NULL) : NULL;
    *out = json_pack("{s:s, s:{s:I, s:I, s:I}, s:o*, s:{s:s, s:s}, s:s, s:s, s:o}", "version", t->o.version, "train_state",
                     "step", (json_int_t)step, "tokens_seen", (json_int_t)t->tokens_seen, "seed", (json_int_t)t->seed,
                     "data", data != NULL ? json_incref(data) : NULL, "model", "name", spec->name, "flavor", spec->flavor,
                     "tokenizer", real != NULL ? real : (given != NULL ? given : ""), "plan_hash", hash, "config", config);
    free(real);
    ct_alloc_free(t->alloc, given);
    return *out != NULL ? CT_OK : CT_FAIL(err, CT_ERR_MEMORY, "out of memory while describing the checkpoint");
}

/* ---- save -------------------------------------------------------------------------------------------------------- */

static ct_status agree_token(cti_trainer *t, char out[17], ct_err *err)
{
    uint64_t bits = 0;
    if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits) {
        bits = (uint64_t)cti_wall_ms();
    }
    int64_t agreed;
    memcpy(&agreed, &bits, sizeof agreed);
    CT_TRY(ct_comm_broadcast(t->world, &agreed, 1, CT_DTYPE_I64, 0, NULL, err));
    (void)snprintf(out, 17, "%016" PRIx64, (uint64_t)agreed); /* 16 digits */
    return CT_OK;
}

static ct_status write_native(cti_trainer *t, const char *folder, int64_t step, piece_list *list, const json_t *extra,
                              ct_err *err)
{
    char token[17];
    CT_TRY(agree_token(t, token, err));
    ct_status st = ct_ckpt_write_rank(t->alloc, folder, step, token, (int)t->mesh.rank, (int)t->mesh.world_size,
                                      list->pieces, list->n, read_piece, list, err);
    st = cti_all_or_none(t, st, err);
    if (st == CT_OK) {
        st = t->mesh.rank == 0 ? ct_ckpt_commit(t->alloc, folder, step, token, (int)t->mesh.world_size, extra, err) : CT_OK;
        st = cti_all_or_none(t, st, err);
    }
    if (st != CT_OK && t->mesh.rank == 0) { /* all ranks have come here: none writes any more */
        ct_ckpt_abandon(t->alloc, folder, step, token);
    }
    for (int i = 0; st == CT_OK && i < t->damaged.n; i++) {
        t->damaged.steps[i] = t->damaged.steps[i] == step ? -1 : t->damaged.steps[i]; /* the new one took its place */
    }
    return st;
}

static ct_status hf_from_ckpt(void *ctx, const char *name, int64_t begin, int64_t end, float *dst, ct_err *err)
{
    return ct_ckpt_read(ctx, name, begin, end, CT_DTYPE_F32, dst, err);
}

/* Through a native checkpoint in a staging folder, since rank 0 does not hold all shards. */
static ct_status write_hf(cti_trainer *t, const char *folder, int64_t step, piece_list *list, const json_t *extra, ct_err *err)
{
    cti_str staging = {.alloc = t->alloc}, target = {.alloc = t->alloc};
    ct_ckpt *ckpt = NULL;
    ct_hf_shape shape;
    ct_status st;
    cti_str_printf(&staging, "%s/.hf-staging", folder);
    cti_str_printf(&target, "%s/step-%" PRId64, folder, step);
    CT_TRY_GOTO(st, cti_str_check(&target, err), out);
    st = write_native(t, cti_str_text(&staging), step, list, extra, err);
    if (st == CT_OK && t->mesh.rank == 0) {
        st = cti_hf_shape(ct_component_find(t->root, "model_spec"), t->seq_len, &shape, err);
        if (st == CT_OK) {
            st = ct_ckpt_open(t->alloc, cti_str_text(&staging), step, &ckpt, NULL, err);
        }
        if (st == CT_OK) {
            shape.bos_id = ct_tokenizer_bos_id(t->tokenizer);
            shape.eos_id = ct_tokenizer_eos_id(t->tokenizer);
            st = ct_hf_write(t->alloc, cti_str_text(&target), &shape, list->export_dtype, 0, hf_from_ckpt, ckpt, err);
        }
        ct_ckpt_close(&ckpt);
    }
    if (t->mesh.rank == 0) {
        const ct_status removed = cti_remove_tree(cti_str_text(&staging), st == CT_OK ? err : NULL);
        st = st == CT_OK ? removed : st;
    }
    st = cti_all_or_none(t, st, err);
out:
    cti_str_deinit(&staging);
    cti_str_deinit(&target);
    return st;
}

static ct_status save(cti_trainer *t, int64_t step, bool is_weights_only, ct_err *err)
{
    const cti_checkpoint_config *c = CTI_SECTION(t->root, "checkpoint", checkpoint);
    ct_arena *arena = NULL;
    json_t *data = NULL, *extra = NULL;
    piece_list list = {.is_converted = is_weights_only};
    (void)ct_dtype_parse(c->export_dtype, &list.export_dtype); /* one of the field's choices */
    char *folder = cti_checkpoint_folder(t, err);
    list.scratch = ct_alloc_zeroed(t->alloc, 1 << 20, sizeof(float), err);
    ct_status st = folder == NULL || list.scratch == NULL ? CT_ERR_MEMORY : CT_OK;
    CT_TRY_GOTO(st, st, out);
    CT_TRY_GOTO(st, ct_arena_create(t->alloc, 0, &arena, err), out);
    CT_TRY_GOTO(st, list_pieces(t, is_weights_only ? 1 : CTI_N_SAVED_STATES, arena, &list, err), out);
    if (t->loader != NULL) {
        CT_TRY_GOTO(st, data_json(t, &data, err), out);
    }
    CT_TRY_GOTO(st, make_extra(t, step, data, &extra, err), out);
    st = is_weights_only && c->last_save_in_hf ? write_hf(t, folder, step, &list, extra, err)
                                               : write_native(t, folder, step, &list, extra, err);
out:
    json_decref(data);
    json_decref(extra);
    ct_arena_destroy(&arena);
    ct_alloc_free(t->alloc, list.scratch);
    ct_alloc_free(t->alloc, folder);
    return st;
}

static ct_status retain(cti_trainer *t, ct_err *err)
{
    const cti_checkpoint_config *c = CTI_SECTION(t->root, "checkpoint", checkpoint);
    if (t->mesh.rank != 0) {
        return CT_OK;
    }
    cti_str deleted = {.alloc = t->alloc};
    char *folder = cti_checkpoint_folder(t, err);
    ct_status st = folder != NULL ? ct_ckpt_retain(t->alloc, folder, c->keep_latest_k, &t->damaged, &deleted, err) : CT_ERR_MEMORY;
    if (deleted.len > 0) {
        CT_INFO(t->log, "%s", cti_str_text(&deleted));
    }
    cti_str_deinit(&deleted);
    ct_alloc_free(t->alloc, folder);
    return st;
}

ct_status cti_trainer_save(cti_trainer *t, int64_t step, bool is_last, bool is_forced, ct_err *err)
{
    const cti_checkpoint_config *c = CTI_SECTION(t->root, "checkpoint", checkpoint);
    const bool due = (step == 1 && c->enable_first_step_checkpoint) || is_last || is_forced || step % c->interval == 0;
    if (!c->enable || c->load_only || !due) {
        return CT_OK;
    }
    cti_observer_flush(t);
    cti_trace_tag(cti_observer_trace(t), CTI_TAG_CHECKPOINT_SAVE);
    const int64_t start = CTI_PHASE_BEGIN(t, "checkpoint_save");
    const bool is_weights_only = is_last && c->last_save_model_only;
    CT_INFO(t->log, "Saving the checkpoint.");
    if (is_weights_only) {
        CT_INFO(t->log, "Saving a model only checkpoint in %s at last step, step %" PRId64 ".", c->export_dtype, step);
    } else if (is_last) {
        CT_INFO(t->log, "Saving a full checkpoint at last step, step %" PRId64 ".", step);
    }
    ct_status st = save(t, step, is_weights_only, err);
    if (st == CT_OK) {
        st = retain(t, err);
    }
    CTI_PHASE_END(t, "checkpoint_save", start, st == CT_OK);
    CT_TRY(st);
    if (is_last) {
        CT_INFO(t->log, "Last step checkpoint completed in %.2fs", cti_seconds_since(start));
    } else {
        CT_INFO(t->log, "Finished saving the checkpoint in %.2f seconds.", cti_seconds_since(start));
    }
    t->metrics.last_ns += cti_now_ns() - start; /* saving is not training time */
    t->longest_save_ns = cti_max_i64(t->longest_save_ns, cti_now_ns() - start);
    return CT_OK;
}
