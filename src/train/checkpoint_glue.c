/* SPDX-License-Identifier: Apache-2.0 */
/* Where a run begins, and what saving and loading share. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "model/model.h"
#include "train/checkpoint_glue.h"

const char *const cti_saved_states[CTI_N_SAVED_STATES] = {"flat", "exp_avg", "exp_avg_sq", "momentum_buffer"};

ct_status cti_all_or_none(cti_trainer *t, ct_status mine, ct_err *err)
{
    int32_t failed = mine != CT_OK;
    ct_err ignored = {0};
    CT_TRY(ct_comm_all_reduce(t->world, &failed, &failed, 1, CT_DTYPE_I32, CT_REDUCE_MAX, NULL,
                              mine == CT_OK ? err : &ignored));
    if (mine != CT_OK) {
        return mine;
    }
    return failed ? CT_FAIL(err, CT_ERR_PEER, "another rank failed at its part of the checkpoint") : CT_OK;
}

char *cti_checkpoint_folder(cti_trainer *t, ct_err *err)
{
    const cti_trainer_config *root = ct_component_values(t->root);
    return cti_path_join(t->alloc, root->dump_folder, CTI_SECTION(t->root, "checkpoint", checkpoint)->folder, err);
}

/* The step to resume from, agreed by all ranks: `wanted`, the newest where that is -1; -1 none. out_ckpt: it, where this rank looked for the
 * newest. */
static ct_status find_resume(cti_trainer *t, const char *folder, int64_t wanted, int64_t *out_step, ct_ckpt **out_ckpt, ct_err *err)
{
    cti_str notes = {.alloc = t->alloc};
    int64_t step = wanted;
    ct_status st = CT_OK;
    if (step < 0 && t->mesh.rank == 0) {
        st = ct_ckpt_newest(t->alloc, folder, out_ckpt, &t->damaged, &notes, err);
        step = *out_ckpt != NULL ? ct_ckpt_step(*out_ckpt) : -1;
        if (st == CT_OK && step < 0 && notes.len > 0) { /* beginning anew here would write over what may be mended */
            st = CT_FAIL(err, CT_ERR_FORMAT, "no checkpoint in '%s' can be resumed from (reasons above); to begin anew, move it away or "
                         "choose another --checkpoint.folder", folder);
        }
    }
    if (notes.len > 0) {
        CT_WARN(t->log, "%s", cti_str_text(&notes));
    }
    cti_str_deinit(&notes);
    CT_TRY(cti_all_or_none(t, st, err));
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
        return cti_load_hf(t, path, err);
    }
    if (c->initial_load_path != NULL) {
        if (!cti_path_is_dir(c->initial_load_path)) {
            return CT_FAIL(err, CT_ERR_NOT_FOUND, "--checkpoint.initial-load-path: '%s' is no folder", c->initial_load_path);
        }
        return cti_load_native(t, c->initial_load_path, -1, c->initial_load_model_only, NULL, err);
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

/* Two runs that save into one folder would remove each other's files. Ranks of a run that was killed may need a moment to end: it waits. */
static ct_status lock_folder(cti_trainer *t, const char *folder, ct_err *err)
{
    enum { WAIT_MS = 100, N_WAITS = 100 };
    int code;
    CT_TRY(cti_lock_folder(folder, &t->folder_lock, &code, err));
    for (int i = 0; code == EWOULDBLOCK && i < N_WAITS; i++) {
        if (i == 0) {
            CT_INFO(t->log, "Another run saves into '%s': waiting %d s for its end", folder, WAIT_MS * N_WAITS / 1000);
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
        CT_TRY(cti_lock_folder(folder, &t->folder_lock, &code, err));
    }
    if (code == EWOULDBLOCK) {
        return CT_FAIL(err, CT_ERR_STATE, "another run saves checkpoints into '%s'; wait for its end, or choose another --dump-folder or "
                       "--checkpoint.folder", folder);
    }
    if (t->folder_lock < 0) {
        CT_WARN(t->log, "'%s' cannot be locked (%s): start no second run that saves into it", folder, strerror(code));
    }
    return CT_OK;
}

/* A disk without room for one checkpoint is told before the first step; there may be room by the first save. */
static ct_status check_room(cti_trainer *t, const char *folder, ct_err *err)
{
    const ct_flat_layout *l = t->step->layout;
    int64_t wanted = 0, there;
    char want[32], have[32];
    for (int32_t s = 0; s < CTI_N_SAVED_STATES; s++) {
        for (int32_t g = 0; g < l->n_groups; g++) {
            ct_dtype dtype;
            if (!cti_engine_has_flat(t->engine, cti_saved_states[s], l->groups[g].name)) {
                continue;
            }
            CT_TRY(cti_engine_flat_dtype(t->engine, cti_saved_states[s], l->groups[g].name, &dtype, err));
            for (int32_t m = 0; m < l->groups[g].n_members; m++) {
                wanted += cti_dims_product(l->groups[g].members[m].whole, l->groups[g].members[m].ndim) * (int64_t)ct_dtype_size_bytes(dtype);
            }
        }
    }
    CT_TRY(cti_disk_free_bytes(folder, &there, err));
    if (there < wanted) {
        CT_WARN(t->log, "A checkpoint takes %s, the disk of '%s' has %s left: saving will fail", cti_format_bytes(wanted, want), folder,
                cti_format_bytes(there, have));
    }
    return CT_OK;
}

/* All ranks must see one folder: each writes its part there, and rank 0 makes one checkpoint of the parts. Found before the first step, too. */
static ct_status check_shared(cti_trainer *t, const char *folder, ct_err *err)
{
    int64_t token = cti_now_ns();
    cti_str path = {.alloc = t->alloc};
    CT_TRY(ct_comm_broadcast(t->world, &token, 1, CT_DTYPE_I64, 0, NULL, err));
    cti_str_printf(&path, "%s/.tmp-step-0-shared-%" PRIx64, folder, (uint64_t)token); /* named as what a save leaves, which the next one removes */
    ct_status st = cti_str_check(&path, err);
    if (st == CT_OK && t->mesh.rank == 0) {
        st = cti_file_write_atomic(path.data, "", 0, err);
    }
    st = cti_all_or_none(t, st, err);
    if (st == CT_OK && t->mesh.rank > 0 && !cti_path_exists(path.data)) {
        st = CT_FAIL(err, CT_ERR_IO, "checkpoints cannot be saved: the folder is not shared: what rank 0 writes into '%s' is not there for rank %" PRId64 " "
                     "(--dump-folder, --checkpoint.folder)", folder, t->mesh.rank);
    }
    const ct_status all = cti_all_or_none(t, st, err);
    if (t->mesh.rank == 0 && path.data != NULL) {
        (void)unlink(path.data); /* or the next save does it */
    }
    cti_str_deinit(&path);
    return all;
}

static ct_status claim_folder(cti_trainer *t, const char *folder, ct_err *err)
{
    CT_TRY(check_writable(folder, err));
    CT_TRY(lock_folder(t, folder, err));
    if (t->folder_lock >= 0) {
        ct_ckpt_clean(t->alloc, folder);
    }
    return check_room(t, folder, err);
}

ct_status cti_trainer_load(cti_trainer *t, ct_err *err)
{
    const cti_checkpoint_config *c = CTI_SECTION(t->root, "checkpoint", checkpoint);
    const cti_dataloader_config *data = CTI_SECTION(t->root, "dataloader", dataloader);
    int64_t step = -1;
    ct_ckpt *ckpt = NULL;
    char *folder = cti_checkpoint_folder(t, err);
    ct_status st = folder == NULL ? CT_ERR_MEMORY : CT_OK;
    if (st == CT_OK && c->enable && !c->load_only) {
        st = t->mesh.rank == 0 ? claim_folder(t, folder, err) : CT_OK;
        st = cti_all_or_none(t, st, err);
        st = st == CT_OK && t->mesh.world_size > 1 ? check_shared(t, folder, err) : st;
    }
    if (st == CT_OK && c->enable) {
        st = find_resume(t, folder, c->load_step, &step, &ckpt, err);
    }
    if (st == CT_OK) {
        st = step >= 0 ? cti_load_native(t, folder, step, step == 0, ckpt, err) : load_initial(t, err);
    } else {
        ct_ckpt_close(&ckpt);
    }
    ct_alloc_free(t->alloc, folder);
    st = cti_all_or_none(t, st, err);
    CT_TRY(st);
    if (t->loader == NULL) {
        CT_TRY(cti_trainer_open_loader(t, data->streams.is_set ? data->streams.value : ct_mesh_dp_degree(&t->mesh), err));
    }
    return CT_OK;
}

ct_status cti_trainer_go_back(cti_trainer *t, ct_err *err)
{
    int64_t step = -1;
    ct_ckpt *ckpt = NULL;
    char *folder = cti_checkpoint_folder(t, err);
    ct_status st = folder == NULL ? CT_ERR_MEMORY : find_resume(t, folder, -1, &step, &ckpt, err);
    if (st == CT_OK && step < 0) {
        st = CT_FAIL(err, CT_ERR_NOT_FOUND, "there is no checkpoint to go back to yet (--checkpoint.interval, --checkpoint.enable-first-step-checkpoint)");
    }
    if (st == CT_OK) {
        st = cti_load_back(t, folder, step, ckpt, err);
    } else {
        ct_ckpt_close(&ckpt);
    }
    ct_alloc_free(t->alloc, folder);
    return cti_all_or_none(t, st, err);
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
