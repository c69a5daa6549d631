/* SPDX-License-Identifier: Apache-2.0 */
/* A run's state from a checkpoint, its weights from a Hugging Face folder. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "train/checkpoint_glue.h"

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
            if (!cti_engine_has_flat(t->engine, cti_saved_states[s], group->name)) {
                continue;
            }
            ct_flat_range(group->total, l->degree, t->mesh.coord[CT_AXIS_DP_SHARD], &shard_begin, &shard_end);
            st = cti_engine_flat_dtype(t->engine, cti_saved_states[s], group->name, &dtype, err);
            for (int32_t m = 0; m < group->n_members && st == CT_OK; m++) {
                int64_t begin, end;
                ct_flat_local_range(group, m, l->degree, t->mesh.coord[CT_AXIS_DP_SHARD], &begin, &end);
                for (int64_t at = begin; at < end && st == CT_OK; at += CHUNK) {
                    const int64_t to = cti_min_i64(at + CHUNK, end);
                    st = read_runs(&group->members[m], s, at, to, dtype, source, ctx, host, err);
                    if (st == CT_OK) {
                        st = cti_engine_write_flat(t->engine, cti_saved_states[s], group->name,
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
    if (snprintf(name, sizeof name, "optimizer.%s.%s", cti_saved_states[state], param) >= (int)sizeof name) {
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

/* Every state that the run's optimizers keep must be there. */
static ct_status check_states(const cti_trainer *t, const ct_ckpt *ckpt, ct_err *err)
{
    const ct_flat_layout *l = t->step->layout;
    bool has_any = false;
    const ct_ckpt_piece *p;
    for (size_t i = 0; (p = ct_ckpt_tensor_at(ckpt, i)) != NULL && !has_any; i++) {
        has_any = cti_starts_with(p->name, "optimizer.");
    }
    for (int32_t s = 1; s < CTI_N_SAVED_STATES; s++) {
        for (int32_t g = 0; g < l->n_groups; g++) {
            if (!cti_engine_has_flat(t->engine, cti_saved_states[s], l->groups[g].name)) {
                continue;
            }
            for (int32_t m = 0; m < l->groups[g].n_members; m++) {
                char name[512];
                if (snprintf(name, sizeof name, "optimizer.%s.%s", cti_saved_states[s], l->groups[g].members[m].name) < (int)sizeof name &&
                    ct_ckpt_find(ckpt, name) == NULL) {
                    return has_any ? CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' has no '%s': it was saved with another optimizer of this parameter "
                                             "(--checkpoint.exclude-from-loading optimizer,lr_scheduler begins its states anew)", ct_ckpt_path(ckpt), name)
                                   : CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' holds weights only, and no state of an optimizer (or SGD without "
                                             "momentum saved it): it cannot be resumed from with this one (use it as --checkpoint.initial-load-path, or "
                                             "another --checkpoint.folder)", ct_ckpt_path(ckpt));
                }
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
        ct_err_prefix(err, "the saved run began with %" PRId64 " data streams and keeps them (other ranks or rows, or "
                      "--checkpoint.exclude-from-loading dataloader to begin the data anew)", n);
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

ct_status cti_load_native(cti_trainer *t, const char *folder, int64_t step, bool is_model_only, ct_ckpt *opened, ct_err *err)
{
    const cti_checkpoint_config *c = CTI_SECTION(t->root, "checkpoint", checkpoint);
    cti_str notes = {.alloc = t->alloc};
    ct_ckpt *ckpt = opened;
    const int64_t start = cti_now_ns();
    ct_status st = CT_OK;
    if (opened == NULL) {
        st = step >= 0 && t->mesh.rank > 0 ? ct_ckpt_open_verified(t->alloc, folder, step, &ckpt, err)
                                           : ct_ckpt_open(t->alloc, folder, step, &ckpt, &notes, err);
    }
    if (notes.len > 0) {
        CT_WARN(t->log, "%s", cti_str_text(&notes));
    }
    CT_TRY_GOTO(st, st, out);
    CT_INFO(t->log, "Loading the checkpoint from %s.", ct_ckpt_path(ckpt));
    CT_TRY_GOTO(st, check_dims(t, ckpt, err), out);
    const bool wants_moments = !is_model_only && !is_excluded(c, "optimizer");
    if (wants_moments) {
        CT_TRY_GOTO(st, check_states(t, ckpt, err), out);
    }
    CT_TRY_GOTO(st, load_params(t, wants_moments ? CTI_N_SAVED_STATES : 1, from_ckpt, ckpt, err), out);
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

ct_status cti_load_back(cti_trainer *t, const char *folder, int64_t step, ct_ckpt *opened, ct_err *err)
{
    ct_ckpt *ckpt = opened;
    ct_status st;
    CT_TRY(ckpt != NULL ? CT_OK : ct_ckpt_open_verified(t->alloc, folder, step, &ckpt, err));
    CT_TRY_GOTO(st, check_dims(t, ckpt, err), out);
    CT_TRY_GOTO(st, check_states(t, ckpt, err), out);
    CT_TRY_GOTO(st, load_params(t, CTI_N_SAVED_STATES, from_ckpt, ckpt, err), out);
    st = load_train_state(t, ckpt, err);
out:
    ct_ckpt_close(&ckpt);
    return st;
}

ct_status cti_load_hf(cti_trainer *t, const char *folder, ct_err *err)
{
    ct_hf_shape shape;
    ct_hf *hf = NULL;
    const int64_t start = cti_now_ns();
    CT_INFO(t->log, "Loading from HF safetensors: %s", folder);
    CT_TRY(cti_hf_shape(ct_component_find(t->root, "model_spec"), t->seq_len, &shape, err));
    CT_TRY(ct_hf_open(t->alloc, folder, &shape, &hf, err));
    const ct_status st = load_params(t, 1, from_hf, hf, err);
    ct_hf_close(&hf);
    CT_TRY(st);
    CT_INFO(t->log, "Finished loading the checkpoint in %.2f seconds.", cti_seconds_since(start));
    return CT_OK;
}
