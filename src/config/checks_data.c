/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of data, validation and checkpoints. */
#include <inttypes.h>
#include <string.h>

#include "config/checks.h"

/* ---- data ------------------------------------------------------------------------------------------------------ */

static bool is_hub_dataset(const cti_dataloader_config *d)
{
    static const char *const names[] = {"c4", "c4_validation", "c4_test_varlen"};
    for (size_t i = 0; d->dataset_path == NULL && d->sources.n == 0 && i < sizeof names / sizeof names[0]; i++) {
        if (cti_str_eq(d->dataset, names[i])) {
            return true;
        }
    }
    return false;
}

bool cti_source_spec(const char *text, size_t *out_path_len, double *out_weight)
{
    const char *colon = strrchr(text, ':');
    const bool has_weight = colon != NULL && cti_parse_f64(colon + 1, out_weight);
    if (!has_weight) {
        *out_weight = 1.0;
    }
    *out_path_len = has_weight ? (size_t)(colon - text) : strlen(text);
    return *out_path_len > 0 && *out_weight > 0.0 && *out_weight < 1e300;
}

/* All that are wrong are named. */
static bool specs_are_good(const cti_dataloader_config *d, cti_str *detail)
{
    bool are_good = true;
    for (int64_t i = 0; i < d->sources.n; i++) {
        size_t n;
        double weight;
        if (!cti_source_spec(d->sources.items[i], &n, &weight)) {
            cti_str_printf(detail, "%s'%s'", are_good ? "" : ", ", d->sources.items[i]);
            are_good = false;
        }
    }
    return are_good;
}

static bool sources_are_good(cti_check_run *r)
{
    return specs_are_good(r->dataloader, r->detail);
}

static bool validator_sources_are_good(cti_check_run *r)
{
    return specs_are_good(r->validator_data, r->detail);
}

static bool sources_are_few(cti_check_run *r)
{
    return r->dataloader->sources.n <= 64;
}

static bool validator_sources_are_few(cti_check_run *r)
{
    return r->validator_data->sources.n <= 64;
}

/* One way to say where the documents are. */
static bool sources_or_path(cti_check_run *r)
{
    return r->dataloader->sources.n == 0 || r->dataloader->dataset_path == NULL;
}

static bool validator_sources_or_path(cti_check_run *r)
{
    return r->validator_data->sources.n == 0 || r->validator_data->dataset_path == NULL;
}

static bool dataset_is_local(cti_check_run *r)
{
    return !is_hub_dataset(r->dataloader);
}

static bool validation_is_local(cti_check_run *r)
{
    return !r->validator->enable || !is_hub_dataset(r->validator_data);
}

static bool streams_divide(cti_check_run *r)
{
    const ct_opt_i64 streams = r->dataloader->streams;
    const int64_t rows = cti_rows_at_once(r);
    if (!streams.is_set || rows % streams.value == 0) {
        return true;
    }
    cti_str_printf(r->detail, "%" PRId64 " rows at once", rows);
    return false;
}

static bool validator_steps_fit(cti_check_run *r)
{
    return !r->validator->enable || r->validator->steps != 0;
}

static bool validation_ends(cti_check_run *r)
{
    return !r->validator->enable || r->validator->steps > 0 || !r->validator_data->infinite;
}

static bool whole_pass_on_one(cti_check_run *r)
{
    return !r->validator->enable || r->validator->steps > 0 ||
           cti_degree_product(r->degrees.dp_replicate, r->degrees.dp_shard) <= 1;
}

/* ---- checkpoints ----------------------------------------------------------------------------------------------- */

static bool folder_not_blank(cti_check_run *r)
{
    return r->checkpoint->folder[strspn(r->checkpoint->folder, " \t")] != '\0';
}

static bool folder_is_local(cti_check_run *r)
{
    return strstr(r->checkpoint->folder, "://") == NULL;
}

static bool keeps_two(cti_check_run *r)
{
    return r->checkpoint->keep_latest_k != 1;
}

static bool initial_path_is_absolute(cti_check_run *r)
{
    const char *path = r->checkpoint->initial_load_path;
    return path == NULL || path[0] == '/' || strstr(path, "://") != NULL;
}

static bool initial_path_is_local(cti_check_run *r)
{
    const char *path = r->checkpoint->initial_load_path;
    return path == NULL || strstr(path, "://") == NULL;
}

static bool hf_load_is_weights(cti_check_run *r)
{
    return !r->checkpoint->initial_load_in_hf || r->checkpoint->initial_load_model_only;
}

static bool hf_save_is_weights(cti_check_run *r)
{
    return !r->checkpoint->last_save_in_hf || r->checkpoint->last_save_model_only;
}

static bool excludes(const cti_check_run *r, const char *name)
{
    const ct_str_list *list = &r->checkpoint->exclude_from_loading;
    for (int64_t i = 0; i < list->n; i++) {
        if (cti_str_eq(list->items[i], name)) {
            return true;
        }
    }
    return false;
}

static bool excludes_known(cti_check_run *r)
{
    static const char *const legal[] = {"optimizer", "lr_scheduler", "dataloader", "train_state", "model"};
    const ct_str_list *list = &r->checkpoint->exclude_from_loading;
    for (int64_t i = 0; i < list->n; i++) {
        bool known = false;
        for (size_t j = 0; j < sizeof legal / sizeof legal[0]; j++) {
            known = known || cti_str_eq(list->items[i], legal[j]);
        }
        if (!known) {
            cti_str_printf(r->detail, "found '%s'", list->items[i]);
            return false;
        }
    }
    return true;
}

static bool model_is_loaded(cti_check_run *r)
{
    return !excludes(r, "model");
}

static bool scheduler_goes_with_optimizer(cti_check_run *r)
{
    return !excludes(r, "optimizer") || excludes(r, "lr_scheduler");
}

static bool seed_save_is_on(cti_check_run *r)
{
    return !r->checkpoint->create_seed_checkpoint || r->checkpoint->enable;
}

static bool seed_on_one_rank(cti_check_run *r)
{
    return !r->checkpoint->create_seed_checkpoint || r->world <= 1;
}

static bool seed_can_be_saved(cti_check_run *r)
{
    return !r->checkpoint->create_seed_checkpoint || !r->checkpoint->load_only;
}

/* ---- the rows -------------------------------------------------------------------------------------------------- */

#define C "checkpoint."
const cti_check cti_data_checks[] = {
    {"dataset_is_local", "dataloader.dataset dataloader.dataset_path", dataset_is_local,
     "this data set would be downloaded, which is not there yet: give --dataloader.dataset-path, or take c4_test"},
    {"validation_is_local", "validator.dataloader.dataset validator.dataloader.dataset_path", validation_is_local,
     "this data set would be downloaded, which is not there yet: give --validator.dataloader.dataset-path, or take c4_test"},
#define GOOD "wanted PATH or PATH:WEIGHT with a weight above 0 and below 1e300"
#define ONE_WAY "sources say where all the documents are: leave dataset-path out"
    {"sources_are_good", "dataloader.sources", sources_are_good, GOOD},
    {"validator_sources_are_good", "validator.dataloader.sources", validator_sources_are_good, GOOD},
    {"sources_are_few", "dataloader.sources", sources_are_few, "wanted at most 64"},
    {"validator_sources_are_few", "validator.dataloader.sources", validator_sources_are_few, "wanted at most 64"},
    {"sources_or_path", "dataloader.sources dataloader.dataset_path", sources_or_path, ONE_WAY},
    {"validator_sources_or_path", "validator.dataloader.sources validator.dataloader.dataset_path", validator_sources_or_path, ONE_WAY},
#undef GOOD
#undef ONE_WAY
    {"streams_divide", "dataloader.streams", streams_divide, "must divide the rows of one micro-batch of all ranks"},
    {"validator_steps_fit", "validator.steps", validator_steps_fit, "wanted -1 or at least 1"},
    {"validation_ends", "validator.steps validator.dataloader.infinite", validation_ends,
     "one pass over data that never ends: set --validator.dataloader.no-infinite or a number of steps"},
    {"whole_pass_on_one", "validator.steps", whole_pass_on_one,
     "one pass over all the data needs a data-parallel degree of 1: set a number of steps"},
    {"folder_not_blank", C "folder", folder_not_blank, "must not be blank"},
    {"folder_is_local", C "folder", folder_is_local, "remote storage is not there yet: wanted a folder"},
    {"keeps_two", C "keep_latest_k", keeps_two,
     "wanted 0 (all) or at least 2, so that one is whole while the next is written"},
    {"initial_path_is_absolute", C "initial_load_path", initial_path_is_absolute, "wanted an absolute path"},
    {"initial_path_is_local", C "initial_load_path", initial_path_is_local,
     "remote storage is not there yet: wanted a folder"},
    {"hf_load_is_weights", C "initial_load_in_hf " C "initial_load_model_only", hf_load_is_weights,
     "Hugging Face's layout holds weights only: set --checkpoint.initial-load-model-only"},
    {"hf_save_is_weights", C "last_save_in_hf " C "last_save_model_only", hf_save_is_weights,
     "Hugging Face's layout holds weights only: set --checkpoint.last-save-model-only"},
    {"excludes_known", C "exclude_from_loading", excludes_known,
     "wanted names among optimizer, lr_scheduler, dataloader, train_state"},
    {"model_is_loaded", C "exclude_from_loading", model_is_loaded, "'model' cannot be left out"},
    {"scheduler_goes_with_optimizer", C "exclude_from_loading", scheduler_goes_with_optimizer,
     "'optimizer' cannot be left out without 'lr_scheduler'"},
    {"seed_save_is_on", C "create_seed_checkpoint " C "enable", seed_save_is_on,
     "a seed checkpoint needs --checkpoint.enable"},
    {"seed_on_one_rank", C "create_seed_checkpoint", seed_on_one_rank, "a seed checkpoint is made by one rank alone"},
    {"seed_can_be_saved", C "create_seed_checkpoint " C "load_only", seed_can_be_saved,
     "a seed checkpoint cannot be saved under load-only"},
};
const size_t cti_n_data_checks = sizeof cti_data_checks / sizeof cti_data_checks[0];
