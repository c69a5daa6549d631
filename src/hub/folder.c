/* SPDX-License-Identifier: Apache-2.0 */
/* What a downloaded folder holds: which of the usual files are there, what their absence means, and whether the tokenizer opens. */
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "hub/hub_internal.h"
#include "tokenizer/tokenizer.h"

/* X(name, whether its absence matters, what it is for, what its absence means) */
#define FOLDER_FILES(X)                                                                                                                  \
    X("config.json", false, "shapes of the model; compared with the run's when its weights are read",                                   \
      "without it the shapes of its weights are not compared with the run's")                                                          \
    X("configuration.json", false, "ModelScope's own; not read here", "ModelScope's own; not read here")                                \
    X("generation_config.json", false, "defaults for writing text; not read here", "defaults for writing text; not read here")          \
    X("original", false, "the model in its maker's own form; not needed beside the rest",                                               \
      "the model in its maker's own form; not needed where tokenizer.json is there")                                                    \
    X("special_tokens_map.json", false, "BOS and EOS stand in tokenizer_config.json too",                                               \
      "not needed: BOS and EOS stand in tokenizer_config.json")                                                                         \
    X("tokenizer.json", true, "the tokenizer", "the tokenizer; without it vocab.json with merges.txt, or a .model file, has to do")     \
    X("tokenizer_config.json", true, "says BOS and EOS", "without it BOS and EOS may be unknown, and documents are not set apart")

static const struct {
    const char *name;
    bool matters;
    const char *there, *missing;
} files[] = {
#define FOLDER_ROW(name, matters, there, missing) {name, matters, there, missing},
    FOLDER_FILES(FOLDER_ROW)
#undef FOLDER_ROW
};
_Static_assert(sizeof files / sizeof files[0] == CT_HUB_FOLDER_ROWS, "one row a file");

static const char *const wrong_kind = "has this name and is not what is wanted there";

static ct_status check_row(const ct_alloc *alloc, const char *folder, size_t i, ct_hub_folder_report *report, ct_err *err)
{
    ct_hub_folder_row *row = &report->rows[i];
    char *path = cti_path_join(alloc, folder, files[i].name, err);
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    const bool is_json = cti_ends_with(path, ".json");
    *row = (ct_hub_folder_row){.name = files[i].name, .is_there = cti_path_exists(path)};
    row->text = row->is_there ? files[i].there : files[i].missing;
    row->matters = !row->is_there && files[i].matters;
    ct_status st = CT_OK;
    if (row->is_there && (is_json ? !cti_path_is_file(path) : !cti_path_is_dir(path))) {
        row->text = wrong_kind;
        row->matters = files[i].matters;
    } else if (row->is_there && is_json) {
        ct_err why = {0};
        json_t *json = NULL;
        if (cti_json_read_file(alloc, path, &json, &why) != CT_OK) {
            char shown[CTI_HUB_SHOWN_BYTES];
            row->text = ct_arena_printf(report->arena, err, "damaged: %s", cti_hub_shown(why.message, strlen(why.message), shown));
            row->matters = true;
            st = row->text == NULL ? CT_ERR_MEMORY : CT_OK;
        }
        json_decref(json);
    }
    ct_alloc_free(alloc, path);
    return st;
}

static ct_status check_tokenizer(const ct_alloc *alloc, const char *folder, ct_hub_folder_report *report, ct_err *err)
{
    ct_tokenizer *tokenizer = NULL;
    ct_err why = {0};
    report->vocab_size = -1;
    if (ct_tokenizer_open(alloc, folder, NULL, &tokenizer, &why) != CT_OK) {
        char shown[CTI_HUB_SHOWN_BYTES];
        report->tokenizer = ct_arena_printf(report->arena, err, "cannot be opened: %s", cti_hub_shown(why.message, strlen(why.message), shown));
        return report->tokenizer == NULL ? CT_ERR_MEMORY : CT_OK;
    }
    char number[32];
    report->vocab_size = ct_tokenizer_vocab_size(tokenizer);
    report->tokenizer = ct_arena_printf(report->arena, err, "opens: %s ids%s%s", cti_format_thousands(report->vocab_size, number),
                                        ct_tokenizer_bos_id(tokenizer) < 0 ? ", no BOS" : "", ct_tokenizer_eos_id(tokenizer) < 0 ? ", no EOS" : "");
    ct_tokenizer_destroy(&tokenizer);
    return report->tokenizer == NULL ? CT_ERR_MEMORY : CT_OK;
}

/* The files that the index names and that are not there: *out_first is the first, in the arena. */
static ct_status count_missing(const ct_alloc *alloc, const char *folder, const json_t *map, ct_arena *arena, int64_t *out_n,
                               const char **out_first, ct_err *err)
{
    const char *key;
    json_t *value;
    const char *last = ""; /* neighbours in the map are mostly in one file */
    bool last_is_there = true;
    json_object_foreach((json_t *)map, key, value) {
        const char *name = json_is_string(value) ? json_string_value(value) : "";
        if (strcmp(name, last) == 0) {
            continue;
        }
        last = name;
        char *path = cti_path_join(alloc, folder, name, err);
        if (path == NULL) {
            return CT_ERR_MEMORY;
        }
        last_is_there = cti_path_is_file(path);
        ct_alloc_free(alloc, path);
        if (!last_is_there && *out_n == 0) {
            char shown[CTI_HUB_SHOWN_BYTES];
            *out_first = ct_arena_strdup(arena, cti_hub_shown(name, strlen(name), shown), err);
            if (*out_first == NULL) {
                return CT_ERR_MEMORY;
            }
        }
        *out_n += !last_is_there;
    }
    return CT_OK;
}

static ct_status check_weights(const ct_alloc *alloc, const char *folder, ct_hub_folder_report *report, ct_err *err)
{
    cti_names names = {0};
    int64_t n = 0, n_missing = 0;
    const char *first = "";
    json_t *index = NULL;
    CT_TRY(cti_list_dir(alloc, folder, &names, err));
    for (size_t i = 0; i < names.n; i++) {
        n += cti_ends_with(names.names[i], ".safetensors");
    }
    cti_names_free(alloc, &names);
    char *path = cti_path_join(alloc, folder, "model.safetensors.index.json", err);
    ct_status st = path == NULL ? CT_ERR_MEMORY : CT_OK;
    if (st == CT_OK && cti_path_is_file(path) && cti_json_read_file(alloc, path, &index, NULL) == CT_OK) {
        st = count_missing(alloc, folder, json_object_get(index, "weight_map"), report->arena, &n_missing, &first, err);
    }
    if (st == CT_OK) {
        report->weights = n == 0 ? "none: the model starts from its own initial weights"
                          : n_missing > 0
                              ? ct_arena_printf(report->arena, err, "%" PRId64 " files; not there, of those that the index names: '%s'%s", n, first,
                                                n_missing > 1 ? " and others" : "")
                              : ct_arena_printf(report->arena, err, "%" PRId64 " safetensors file%s", n, n > 1 ? "s" : "");
        st = report->weights == NULL ? CT_ERR_MEMORY : CT_OK;
    }
    json_decref(index);
    ct_alloc_free(alloc, path);
    return st;
}

ct_status ct_hub_check_folder(const ct_alloc *alloc, const char *folder, ct_hub_folder_report *out_report, ct_err *err)
{
    ct_status st;
    *out_report = (ct_hub_folder_report){.vocab_size = -1};
    CT_TRY(ct_arena_create(alloc, 0, &out_report->arena, err));
    for (size_t i = 0; i < CT_HUB_FOLDER_ROWS; i++) {
        CT_TRY_GOTO(st, check_row(alloc, folder, i, out_report, err), fail);
    }
    CT_TRY_GOTO(st, check_tokenizer(alloc, folder, out_report, err), fail);
    CT_TRY_GOTO(st, check_weights(alloc, folder, out_report, err), fail);
    return CT_OK;
fail:
    ct_hub_folder_report_deinit(out_report);
    return st;
}

void ct_hub_folder_report_deinit(ct_hub_folder_report *report)
{
    ct_arena_destroy(&report->arena);
    *report = (ct_hub_folder_report){.vocab_size = -1};
}
