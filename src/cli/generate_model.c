/* SPDX-License-Identifier: Apache-2.0 */
/* The model that `ctitan generate` asks: of a checkpoint, or of a Hugging Face folder. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/generate.h"
#include "component/component.h"
#include "config/config.h"
#include "model/model.h"
#include "train/checkpoint_glue.h"

/* Hugging Face's folders have a config.json; checkpoints never do. */
static ct_status read_hf_config(cti_gen_model *m, ct_err *err)
{
    char *path = cti_path_join(m->alloc, m->path, "config.json", err);
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    const ct_status st = cti_path_is_file(path) ? cti_json_read_file(m->alloc, path, &m->hf_config, err) : CT_OK;
    ct_alloc_free(m->alloc, path);
    return st;
}

static ct_status open_tokenizer(cti_gen_model *m, const char *assets, ct_err *err)
{
    const char *folder = assets;
    if (folder[0] == '\0' && m->hf_config != NULL) {
        folder = m->path;
    } else if (folder[0] == '\0') {
        CT_TRY(cti_json_get_str(ct_ckpt_extra(m->ckpt), "tokenizer", ct_ckpt_path(m->ckpt), &folder, err));
    }
    m->assets = ct_alloc_strdup(m->alloc, folder, err);
    if (m->assets == NULL) {
        return CT_ERR_MEMORY;
    }
    const ct_status st = ct_tokenizer_open(m->alloc, folder, NULL, &m->tokenizer, err);
    if (st == CT_ERR_NOT_FOUND && assets[0] == '\0') {
        ct_err_prefix(err, "the tokenizer %s (--hf-assets-path names another folder)", m->hf_config != NULL ? "beside the weights" : "of the run");
    }
    return st;
}

ct_status cti_gen_model_open(const ct_alloc *alloc, const char *path, int64_t step, const char *assets, cti_gen_model *m, cti_str *notes,
                             ct_err *err)
{
    *m = (cti_gen_model){.alloc = alloc, .path = path};
    CT_TRY(read_hf_config(m, err));
    if (m->hf_config == NULL) {
        const ct_status st = ct_ckpt_open(alloc, path, step, &m->ckpt, notes, err);
        if (notes->len > 0) {
            cti_str_add_char(notes, '\n');
        }
        CT_TRY(st);
    } else if (step >= 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "--step: '%s' is a Hugging Face folder, which has no steps", path);
    }
    return open_tokenizer(m, assets, err);
}

void cti_gen_model_close(cti_gen_model *m)
{
    cti_generator_destroy(&m->gen);
    ct_tree_destroy(&m->tree);
    if (m->has_env) {
        cti_env_deinit(m->alloc, &m->env);
    }
    ct_tokenizer_destroy(&m->tokenizer);
    ct_ckpt_close(&m->ckpt);
    json_decref(m->hf_config);
    ct_alloc_free(m->alloc, m->assets);
    *m = (cti_gen_model){0};
}

/* ---- plan ------------------------------------------------------------------------------------------------------ */

static ct_status saved_spec(cti_gen_model *m, ct_component **out_spec, ct_err *err)
{
    json_t *model;
    const char *name, *flavor, *where = ct_ckpt_path(m->ckpt);
    CT_TRY(cti_json_get_obj(ct_ckpt_extra(m->ckpt), "model", where, &model, err));
    CT_TRY(cti_json_get_str(model, "name", "model", &name, err));
    CT_TRY(cti_json_get_str(model, "flavor", "model", &flavor, err));
    if (strcmp(name, "llama3") != 0) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s' holds a model of family '%s'; llama3 is known", where, name);
    }
    return cti_llama3_spec_saved(m->alloc, m->tree, flavor, json_object_get(ct_ckpt_extra(m->ckpt), "config"), out_spec, err);
}

/* The parts that the run had in the place of the usual ones. */
static ct_status apply_overrides(cti_gen_model *m, const json_t *imports, ct_component *spec, cti_str *notes, ct_err *err)
{
    const size_t n = json_array_size(imports);
    ct_component *root, *section;
    const char **tokens = ct_arena_alloc(ct_tree_arena(m->tree), (n + 1) * sizeof *tokens, err);
    if (tokens == NULL) {
        return CT_ERR_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        tokens[i] = json_string_value(json_array_get(imports, i));
        if (tokens[i] == NULL) {
            return CT_FAIL(err, CT_ERR_FORMAT, "'%s': override.imports must be a list of texts", ct_ckpt_path(m->ckpt));
        }
    }
    CT_TRY(cti_env_create(m->alloc, &m->env, err));
    m->has_env = true;
    CT_TRY(ct_component_create(m->tree, &ct_class_list, &root, err));
    CT_TRY(ct_component_add(m->tree, root, "model_spec", spec, err));
    CT_TRY(ct_component_create(m->tree, &cti_override_class, &section, err));
    CT_TRY(ct_component_add(m->tree, root, "override", section, err));
    CT_TRY(ct_component_set(m->tree, section, "imports", tokens, n, CT_SOURCE_FILE, err));
    cti_overrides_applied applied;
    const ct_status st = cti_overrides_apply(m->env.registry, m->env.plugins, m->tree, root, &applied, err);
    if (st != CT_OK) {
        ct_err_prefix(err, "the overrides of the run (--no-run-overrides leaves them out)");
        return st;
    }
    if (applied.n_lines > 0) {
        cti_str_printf(notes, "%s of the run's\n", applied.lines[applied.n_lines - 1]);
    }
    return CT_OK;
}

ct_status cti_gen_model_plan(cti_gen_model *m, bool with_overrides, cti_str *notes, ct_err *err)
{
    ct_component *spec;
    cti_str where = {.alloc = m->alloc};
    ct_status st;
    CT_TRY(ct_tree_create(m->alloc, &m->tree, err));
    if (m->hf_config != NULL) {
        cti_str_printf(&where, "%s/config.json", m->path);
        st = cti_str_check(&where, err);
        st = st == CT_OK ? cti_llama3_spec_hf(m->tree, m->hf_config, where.data, &spec, err) : st;
        cti_str_deinit(&where);
        CT_TRY(st);
    } else {
        CT_TRY(saved_spec(m, &spec, err));
        const json_t *section = json_object_get(json_object_get(ct_ckpt_extra(m->ckpt), "config"), "override");
        const json_t *imports = json_object_get(section, "imports");
        if (json_array_size(imports) > 0 && with_overrides) {
            CT_TRY(apply_overrides(m, imports, spec, notes, err));
        } else if (json_array_size(imports) > 0) {
            cti_str_add(notes, "without the overrides of the run\n");
        }
    }
    const cti_model_spec_config *sizes = spec->values;
    m->context = sizes->max_seq_len;
    m->spec = spec;
    if (ct_tokenizer_vocab_size(m->tokenizer) > sizes->vocab_size) {
        return CT_FAIL(err, CT_ERR_USAGE, "the tokenizer in '%s' has %d ids, the model's vocabulary %" PRId64 " rows: it is another model's",
                       m->assets, ct_tokenizer_vocab_size(m->tokenizer), sizes->vocab_size);
    }
    return CT_OK;
}

/* ---- weights --------------------------------------------------------------------------------------------------- */

static ct_status from_ckpt(const void *ctx, const char *name, int64_t begin, int64_t end, ct_dtype dtype, void *dst, ct_err *err)
{
    return ct_ckpt_read(ctx, name, begin, end, dtype, dst, err);
}

static ct_status from_hf(const void *ctx, const char *name, int64_t begin, int64_t end, ct_dtype dtype, void *dst, ct_err *err)
{
    return ct_hf_read(ctx, name, begin, end, dtype, dst, err);
}

ct_status cti_gen_model_load(cti_gen_model *m, const ct_backend *backend, const cti_generator_options *options, ct_err *err)
{
    ct_hf_shape shape;
    ct_hf *hf = NULL;
    if (m->hf_config != NULL) { /* first, so that wrong files are told before memory is taken */
        CT_TRY(cti_hf_shape(m->spec, m->context, &shape, err));
        CT_TRY(ct_hf_open(m->alloc, m->path, &shape, &hf, err));
    }
    ct_status st = cti_generator_create(m->alloc, backend, m->spec, options, &m->gen, err);
    if (st == CT_OK) {
        st = hf != NULL ? cti_generator_load(m->gen, from_hf, hf, err) : cti_generator_load(m->gen, from_ckpt, m->ckpt, err);
    }
    ct_hf_close(&hf);
    return st;
}
