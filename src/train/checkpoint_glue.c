/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint holds of a run, and where a run begins. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/hf.h"
#include "model/model.h"
#include "train/checkpoint_glue.h"
#include "train/trainer.h"

static const char *const state_prefixes[] = {"flat", "exp_avg", "exp_avg_sq"};
enum { N_STATES = 3 };

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
                      : ct_arena_printf(arena, err, "optimizer.%s.%s", state_prefixes[state], param);
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
                CT_TRY(cti_engine_flat_dtype(t->engine, state_prefixes[s], l->groups[g].name, &p->dtype, err));
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
    CT_TRY(cti_engine_flat_dtype(list->t->engine, state_prefixes[at->state], group->name, &stored, err));
    if (stored == list->pieces[piece].dtype) {
        return cti_engine_read_flat(list->t->engine, state_prefixes[at->state], group->name, first, end - begin, dst, err);
    }
    CT_TRY(cti_engine_read_flat(list->t->engine, state_prefixes[at->state], group->name, first, end - begin, list->scratch,
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

/* All ranks learn whether any of them failed, so that none waits for one that gave up. */
static ct_status all_or_none(cti_trainer *t, ct_status mine, ct_err *err)
{
    int32_t failed = mine != CT_OK;
    ct_err ignored = {0};
    CT_TRY(ct_comm_all_reduce(t->world, &failed, &failed, 1, CT_DTYPE_I32, CT_REDUCE_MAX, NULL,
                              mine == CT_OK ? err : &ignored));
    if (mine != CT_OK) {
        return mine;
    }
    return failed ? CT_FAIL(err, CT_ERR_PEER, "another rank could not save its part of the checkpoint") : CT_OK;
}

static ct_status write_native(cti_trainer *t, const char *folder, int64_t step, piece_list *list, const json_t *extra,
                              ct_err *err)
{
    char token[17];
    CT_TRY(agree_token(t, token, err));
    ct_status st = ct_ckpt_write_rank(t->alloc, folder, step, token, (int)t->mesh.rank, (int)t->mesh.world_size,
                                      list->pieces, list->n, read_piece, list, err);
    CT_TRY(all_or_none(t, st, err));
    st = t->mesh.rank == 0 ? ct_ckpt_commit(t->alloc, folder, step, token, (int)t->mesh.world_size, extra, err) : CT_OK;
    return all_or_none(t, st, err);
}

static ct_status hf_shape_of(cti_trainer *t, ct_hf_shape *out, ct_err *err)
{
    return cti_hf_shape(ct_component_find(t->root, "model_spec"), t->seq_len, out, err);
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
    CT_TRY_GOTO(st, write_native(t, cti_str_text(&staging), step, list, extra, err), out);
    if (t->mesh.rank == 0) {
        st = hf_shape_of(t, &shape, err);
        if (st == CT_OK) {
            st = ct_ckpt_open(t->alloc, cti_str_text(&staging), step, &ckpt, NULL, err);
        }
        if (st == CT_OK) {
            shape.bos_id = ct_tokenizer_bos_id(t->tokenizer);
            shape.eos_id = ct_tokenizer_eos_id(t->tokenizer);
            st = ct_hf_write(t->alloc, cti_str_text(&target), &shape, list->export_dtype, 0, hf_from_ckpt, ckpt, err);
        }
        ct_ckpt_close(&ckpt);
        if (st == CT_OK) {
            st = cti_remove_tree(cti_str_text(&staging), err);
        }
    }
    st = all_or_none(t, st, err);
out:
    cti_str_deinit(&staging);
    cti_str_deinit(&target);
    return st;
}

static char *checkpoint_folder(cti_trainer *t, ct_err *err)
{
    const cti_trainer_config *root = ct_component_values(t->root);
    return cti_path_join(t->alloc, root->dump_folder, CTI_SECTION(t->root, "checkpoint", checkpoint)->folder, err);
}

static ct_status save(cti_trainer *t, int64_t step, bool is_weights_only, ct_err *err)
{
    const cti_checkpoint_config *c = CTI_SECTION(t->root, "checkpoint", checkpoint);
    ct_arena *arena = NULL;
    json_t *data = NULL, *extra = NULL;
    piece_list list = {.is_converted = is_weights_only};
    (void)ct_dtype_parse(c->export_dtype, &list.export_dtype); /* one of the field's choices */
    char *folder = checkpoint_folder(t, err);
    list.scratch = ct_alloc_zeroed(t->alloc, 1 << 20, sizeof(float), err);
    ct_status st = folder == NULL || list.scratch == NULL ? CT_ERR_MEMORY : CT_OK;
    CT_TRY_GOTO(st, st, out);
    CT_TRY_GOTO(st, ct_arena_create(t->alloc, 0, &arena, err), out);
    CT_TRY_GOTO(st, list_pieces(t, is_weights_only ? 1 : N_STATES, arena, &list, err), out);
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
    char *folder = checkpoint_folder(t, err);
    ct_status st = folder != NULL ? ct_ckpt_retain(t->alloc, folder, c->keep_latest_k, &deleted, err) : CT_ERR_MEMORY;
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
    return CT_OK;
}

/* ---- load -------------------------------------------------------------------------------------------------------- */

typedef ct_status (*param_source)(void *ctx, const char *param, int32_t state, int64_t begin, int64_t end, ct_dtype dtype,
                                  void *dst, ct_err *err);

/* Elements [begin, end) of a member's part, which in the whole parameter may lie row by row. */
static ct_status read_runs(const ct_flat_member *member, int32_t state, int64_t begin, int64_t end, ct_dtype dtype, param_source source,
                           void *ctx, void *host, ct_err *err)
{
    const size_t size = ct_dtype_size_bytes(dtype);
    for (int64_t at = begin, n; at < end; at += n) {
        const int64_t from = ct_flat_whole_run(member, at, end - at, &n);
        CT_TRY(source(ctx, member->name, state, from, from + n, dtype, (char *)host + (size_t)(at - begin) * size, err));
    }
    return CT_OK;
}

static ct_status load_params(cti_trainer *t, int32_t n_states, param_source source, void *ctx, ct_err *err)
{
    enum { CHUNK = 1 << 20 };
    const ct_flat_layout *l = t->step->layout;
    void *host = ct_alloc_zeroed(t->alloc, CHUNK, sizeof(double), err);
    ct_status st = host == NULL ? CT_ERR_MEMORY : CT_OK;
    for (int32_t s = 0; s < n_states && st == CT_OK; s++) {
        for (int32_t g = 0; g < l->n_groups && st == CT_OK; g++) {
            const ct_flat_group *group = &l->groups[g];
            int64_t shard_begin, shard_end;
            ct_dtype dtype = CT_DTYPE_F32;
            ct_flat_range(group->total, l->degree, t->mesh.coord[CT_AXIS_DP_SHARD], &shard_begin, &shard_end);
            st = cti_engine_flat_dtype(t->engine, state_prefixes[s], group->name, &dtype, err);
            for (int32_t m = 0; m < group->n_members && st == CT_OK; m++) {
                int64_t begin, end;
                ct_flat_local_range(group, m, l->degree, t->mesh.coord[CT_AXIS_DP_SHARD], &begin, &end);
                for (int64_t at = begin; at < end && st == CT_OK; at += CHUNK) {
                    const int64_t to = cti_min_i64(at + CHUNK, end);
                    st = read_runs(&group->members[m], s, at, to, dtype, source, ctx, host, err);
                    if (st == CT_OK) {
                        st = cti_engine_write_flat(t->engine, state_prefixes[s], group->name,
                                                   group->members[m].offset + at - shard_begin, to - at, host, err);
                    }
                }
            }
        }
    }
    ct_alloc_free(t->alloc, host);
    return st;
}

static ct_status from_ckpt(void *ctx, const char *param, int32_t state, int64_t begin, int64_t end, ct_dtype dtype, void *dst,
                           ct_err *err)
{
    char name[512];
    if (state == 0) {
        return ct_ckpt_read(ctx, param, begin, end, dtype, dst, err);
    }
    if (snprintf(name, sizeof name, "optimizer.%s.%s", state_prefixes[state], param) >= (int)sizeof name) {
        return CT_FAIL(err, CT_ERR_RANGE, "parameter name '%s' is too long", param);
    }
    return ct_ckpt_read(ctx, name, begin, end, dtype, dst, err);
}

static ct_status from_hf(void *ctx, const char *param, int32_t state, int64_t begin, int64_t end, ct_dtype dtype, void *dst,
                         ct_err *err)
{
    CT_ASSERT(state == 0);
    return ct_hf_read(ctx, param, begin, end, dtype, dst, err);
}

/* Every parameter must be there with the right dims. */
static ct_status check_dims(const cti_trainer *t, const ct_ckpt *ckpt, ct_err *err)
{
    const ct_flat_layout *l = t->step->layout;
    for (int32_t g = 0; g < l->n_groups; g++) {
        for (int32_t m = 0; m < l->groups[g].n_members; m++) {
            const ct_flat_member *member = &l->groups[g].members[m];
            const ct_ckpt_piece *p = ct_ckpt_find(ckpt, member->name);
            if (p == NULL) {
                return CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' has no tensor '%s'", ct_ckpt_path(ckpt), member->name);
            }
            bool same = p->ndim == member->ndim;
            for (int32_t d = 0; d < member->ndim && same; d++) {
                same = p->dims[d] == member->whole[d];
            }
            if (!same) {
                return CT_FAIL(err, CT_ERR_SHAPE, "'%s': tensor '%s' has %" PRId64 " elements in %d dims, the model wants %" PRId64
                               " in %d", ct_ckpt_path(ckpt), member->name, p->end, p->ndim, member->numel, member->ndim);
            }
        }
    }
    return CT_OK;
}

static bool is_excluded(const cti_checkpoint_config *c, const char *what)
{
    for (int64_t i = 0; i < c->exclude_from_loading.n; i++) {
        if (strcmp(c->exclude_from_loading.items[i], what) == 0) {
            return true;
        }
    }
    return false;
}

/* Loader at the saved place. */
static ct_status load_data(cti_trainer *t, const ct_ckpt *ckpt, ct_err *err)
{
    const json_t *data = json_object_get(ct_ckpt_extra(ckpt), "data");
    const cti_dataloader_config *c = CTI_SECTION(t->root, "dataloader", dataloader);
    if (data == NULL) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' does not say where the data stood (--checkpoint.exclude-from-loading dataloader "
                       "begins it anew)", ct_ckpt_path(ckpt));
    }
    char *text = NULL;
    int64_t *states = NULL;
    int64_t n = 0;
    ct_status st;
    CT_TRY(cti_json_dump(t->alloc, data, 0, &text, err));
    st = ct_data_state_read(t->alloc, text, strlen(text), t->sources.items, t->sources.n, &t->loader_options, &states, &n, err);
    if (st == CT_ERR_DATA) {
        ct_err_prefix(err, "'%s' (as it was, or --checkpoint.exclude-from-loading dataloader to begin the data anew)",
                      ct_ckpt_path(ckpt));
    }
    CT_TRY_GOTO(st, st, out);
    if (c->streams.is_set && c->streams.value != n) {
        CT_WARN(t->log, "--dataloader.streams %" PRId64 ": the run began with %" PRId64 " streams and keeps them",
                c->streams.value, n);
    }
    st = cti_trainer_open_loader(t, n, err);
    if (st != CT_OK) {
        ct_err_prefix(err, "the saved run began with %" PRId64 " data streams and keeps them", n);
        goto out;
    }
    const int64_t width = ct_stream_state_width(t->sources.n);
    const int64_t *mine = states + t->loader_options.first_stream * width;
    st = ct_loader_seek(t->loader, mine, err);
    t->has_read_all = true;
    for (int64_t i = 0; i < t->loader_options.n_local_streams; i++) {
        t->has_read_all = t->has_read_all && ct_stream_state_epoch(mine + i * width, t->sources.n) > 0;
    }
out:
    ct_alloc_free(t->alloc, text);
    ct_alloc_free(t->alloc, states);
    return st;
}

static ct_status load_train_state(cti_trainer *t, const ct_ckpt *ckpt, ct_err *err)
{
    json_t *state;
    int64_t seed;
    CT_TRY(cti_json_get_obj(ct_ckpt_extra(ckpt), "train_state", ct_ckpt_path(ckpt), &state, err));
    CT_TRY(cti_json_get_i64(state, "step", "train_state", &t->current_step, err));
    CT_TRY(cti_json_get_i64(state, "tokens_seen", "train_state", &t->tokens_seen, err));
    CT_TRY(cti_json_get_i64(state, "seed", "train_state", &seed, err));
    t->seed = (uint64_t)seed;
    return CT_OK;
}

/* One line for what shapes the training and is no longer as it was. */
static ct_status log_changes(cti_trainer *t, const ct_ckpt *ckpt, ct_err *err)
{
    cti_str changes = {.alloc = t->alloc};
    const ct_status st = cti_config_changes(t->o.run->tree, t->root, json_object_get(ct_ckpt_extra(ckpt), "config"), &changes, err);
    if (st == CT_OK && changes.len > 0) {
        CT_WARN(t->log, "Settings that differ from the checkpoint's: %s", cti_str_text(&changes));
    }
    cti_str_deinit(&changes);
    return st;
}

static ct_status load_native(cti_trainer *t, const char *folder, int64_t step, bool is_model_only, ct_err *err)
{
    const cti_checkpoint_config *c = CTI_SECTION(t->root, "checkpoint", checkpoint);
    cti_str notes = {.alloc = t->alloc};
    ct_ckpt *ckpt = NULL;
    const int64_t start = cti_now_ns();
    ct_status st = ct_ckpt_open(t->alloc, folder, step, &ckpt, &notes, err);
    if (notes.len > 0) {
        CT_WARN(t->log, "%s", cti_str_text(&notes));
    }
    CT_TRY_GOTO(st, st, out);
    CT_INFO(t->log, "Loading the checkpoint from %s.", ct_ckpt_path(ckpt));
    CT_TRY_GOTO(st, check_dims(t, ckpt, err), out);
    const bool has_moments = ct_ckpt_find(ckpt, "optimizer.exp_avg.norm.weight") != NULL;
    const bool wants_moments = !is_model_only && !is_excluded(c, "optimizer");
    if (wants_moments && !has_moments) {
        st = CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' holds weights only: it cannot be resumed from (use it as "
                     "--checkpoint.initial-load-path, or another --checkpoint.folder)", ct_ckpt_path(ckpt));
        goto out;
    }
    CT_TRY_GOTO(st, load_params(t, wants_moments ? N_STATES : 1, from_ckpt, ckpt, err), out);
    if (!is_model_only) {
        CT_TRY_GOTO(st, log_changes(t, ckpt, err), out);
    }
    if (!is_model_only && !is_excluded(c, "train_state")) {
        CT_TRY_GOTO(st, load_train_state(t, ckpt, err), out);
    }
    if (!is_model_only && !is_excluded(c, "dataloader")) {
        CT_TRY_GOTO(st, load_data(t, ckpt, err), out);
    }
    CT_INFO(t->log, "Finished loading the checkpoint in %.2f seconds.", cti_seconds_since(start));
out:
    ct_ckpt_close(&ckpt);
    cti_str_deinit(&notes);
    return st;
}

static ct_status load_hf(cti_trainer *t, const char *folder, ct_err *err)
{
    ct_hf_shape shape;
    ct_hf *hf = NULL;
    const int64_t start = cti_now_ns();
    CT_INFO(t->log, "Loading from HF safetensors: %s", folder);
    CT_TRY(hf_shape_of(t, &shape, err));
    CT_TRY(ct_hf_open(t->alloc, folder, &shape, &hf, err));
    const ct_status st = load_params(t, 1, from_hf, hf, err);
    ct_hf_close(&hf);
    CT_TRY(st);
    CT_INFO(t->log, "Finished loading the checkpoint in %.2f seconds.", cti_seconds_since(start));
    return CT_OK;
}

/* The step to resume from, agreed by all ranks: -1 none. */
static ct_status find_resume(cti_trainer *t, const char *folder, int64_t *out_step, ct_err *err)
{
    const cti_checkpoint_config *c = CTI_SECTION(t->root, "checkpoint", checkpoint);
    cti_str notes = {.alloc = t->alloc};
    int64_t step = c->load_step;
    ct_status st = CT_OK;
    if (step < 0 && t->mesh.rank == 0) {
        st = ct_ckpt_newest(t->alloc, folder, &step, &notes, err);
        if (st == CT_OK && step < 0 && notes.len > 0) { /* beginning anew here would write over what may be mended */
            st = CT_FAIL(err, CT_ERR_FORMAT, "no checkpoint in '%s' can be resumed from (reasons above); to begin anew, move it away or "
                         "choose another --checkpoint.folder", folder);
        }
    }
    if (notes.len > 0) {
        CT_WARN(t->log, "%s", cti_str_text(&notes));
    }
    cti_str_deinit(&notes);
    CT_TRY(all_or_none(t, st, err));
    CT_TRY(ct_comm_broadcast(t->world, &step, 1, CT_DTYPE_I64, 0, NULL, err));
    *out_step = step;
    return CT_OK;
}

static ct_status load_initial(cti_trainer *t, ct_err *err)
{
    const cti_checkpoint_config *c = CTI_SECTION(t->root, "checkpoint", checkpoint);
    const cti_trainer_config *root = ct_component_values(t->root);
    if (c->initial_load_in_hf) {
        const char *path = c->initial_load_path != NULL ? c->initial_load_path : root->hf_assets_path;
        if (path[0] == '\0') {
            return CT_FAIL(err, CT_ERR_USAGE, "--checkpoint.initial-load-in-hf: --checkpoint.initial-load-path or "
                                              "--hf-assets-path must name the folder");
        }
        return load_hf(t, path, err);
    }
    if (c->initial_load_path != NULL) {
        if (!cti_path_is_dir(c->initial_load_path)) {
            return CT_FAIL(err, CT_ERR_NOT_FOUND, "--checkpoint.initial-load-path: '%s' is no folder", c->initial_load_path);
        }
        return load_native(t, c->initial_load_path, -1, c->initial_load_model_only, err);
    }
    if (c->enable) {
        CT_INFO(t->log, "No checkpoint was provided, this is a fresh start.");
    }
    return CT_OK;
}

/* A folder that cannot be written is found before the first step, not at the first save. */
static ct_status check_writable(const char *folder, ct_err *err)
{
    CT_TRY(cti_make_dirs(folder, err));
    return access(folder, W_OK | X_OK) == 0
               ? CT_OK
               : CT_FAIL(err, CT_ERR_IO, "checkpoints cannot be saved: folder '%s' cannot be written: %s", folder, strerror(errno));
}

ct_status cti_trainer_load(cti_trainer *t, ct_err *err)
{
    const cti_checkpoint_config *c = CTI_SECTION(t->root, "checkpoint", checkpoint);
    const cti_dataloader_config *data = CTI_SECTION(t->root, "dataloader", dataloader);
    int64_t step = -1;
    char *folder = checkpoint_folder(t, err);
    ct_status st = folder == NULL ? CT_ERR_MEMORY : CT_OK;
    if (st == CT_OK && c->enable && !c->load_only) {
        st = all_or_none(t, t->mesh.rank == 0 ? check_writable(folder, err) : CT_OK, err);
    }
    if (st == CT_OK && c->enable) {
        st = find_resume(t, folder, &step, err);
    }
    if (st == CT_OK) {
        st = step >= 0 ? load_native(t, folder, step, step == 0, err) : load_initial(t, err);
    }
    ct_alloc_free(t->alloc, folder);
    st = all_or_none(t, st, err);
    CT_TRY(st);
    if (t->loader == NULL) {
        CT_TRY(cti_trainer_open_loader(t, data->streams.is_set ? data->streams.value : ct_mesh_dp_degree(&t->mesh), err));
    }
    return CT_OK;
}

ct_status cti_hf_shape(const ct_component *spec, int64_t max_seq_len, ct_hf_shape *out, ct_err *err)
{
    const ct_component *model = ct_component_child(spec, "model");
    const ct_component *layer = model != NULL ? ct_component_find(model, "layers.0") : NULL;
    const ct_component *attention = layer != NULL ? ct_component_child(layer, "attention") : NULL;
    const ct_component *rope = attention != NULL ? ct_component_child(attention, "rope") : NULL;
    const ct_component *ffn = layer != NULL ? ct_component_child(layer, "feed_forward") : NULL;
    const ct_component *norm = model != NULL ? ct_component_child(model, "norm") : NULL;
    const ct_component *qkv = attention != NULL ? ct_component_child(attention, "qkv_linear") : NULL;
    if (rope == NULL || ffn == NULL || norm == NULL || qkv == NULL || !ct_class_is_a(ffn->cls, &cti_feed_forward_class) ||
        !ct_class_is_a(rope->cls, &cti_rope_class) || !ct_class_is_a(qkv->cls, &cti_qkv_class)) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "this model has no form in Hugging Face's layout");
    }
    const cti_decoder_config *d = ct_component_values(model);
    const cti_qkv_config *q = ct_component_values(qkv);
    const cti_rope_config *r = ct_component_values(rope);
    *out = (ct_hf_shape){.dim = d->dim,
                         .n_layers = d->n_layers,
                         .n_heads = q->n_heads,
                         .n_kv_heads = q->n_kv_heads,
                         .head_dim = q->head_dim,
                         .ffn_hidden = ((const cti_feed_forward_config *)ct_component_values(ffn))->hidden_dim,
                         .vocab_size = d->vocab_size,
                         .rope_theta = r->theta,
                         .norm_eps = ((const cti_rmsnorm_config *)ct_component_values(norm))->eps,
                         .is_tied = d->tied_embeddings,
                         .has_rope_scaling = strcmp(r->scaling, "llama") == 0,
                         .rope_factor = r->scaling_factor,
                         .rope_low_freq_factor = r->low_freq_factor,
                         .rope_high_freq_factor = r->high_freq_factor,
                         .rope_original_max = r->original_max_position_embeddings,
                         .max_seq_len = cti_max_i64(max_seq_len, d->max_seq_len),
                         .bos_id = -1,
                         .eos_id = -1};
    return CT_OK;
}
