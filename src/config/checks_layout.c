/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of parallelism, batches and lengths. */
#include <inttypes.h>
#include <string.h>

#include "config/checks.h"

/* ---- degrees --------------------------------------------------------------------------------------------------- */

static int64_t other_degrees(const cti_degrees *d)
{
    return cti_degree_product(cti_degree_product(d->pp, d->dp_replicate), cti_degree_product(d->cp, d->tp));
}

void cti_degrees_of(const ct_component *root, int64_t world_size, cti_degrees *out_degrees)
{
    const cti_parallelism_config *p = CTI_SECTION(root, "parallelism", parallelism);
    cti_degrees d = {.pp = p->pipeline_parallel_degree,
                     .dp_replicate = p->data_parallel_replicate_degree,
                     .dp_shard = p->data_parallel_shard_degree,
                     .cp = p->context_parallel_degree,
                     .tp = p->tensor_parallel_degree,
                     .ep = p->expert_parallel_degree};
    if (d.dp_shard < 0) {
        d.dp_shard = world_size / other_degrees(&d); /* all >= 1 by their bounds */
    }
    *out_degrees = d;
}

static bool shard_not_zero(cti_check_run *r)
{
    return r->parallelism->data_parallel_shard_degree != 0;
}

static bool degrees_fit(cti_check_run *r)
{
    const cti_degrees *d = &r->degrees;
    const int64_t shard = r->parallelism->data_parallel_shard_degree;
    if (r->world <= 0 || shard == 0) {
        return true;
    }
    const int64_t others = other_degrees(d);
    const bool fits = shard < 0 ? others <= r->world && r->world % others == 0 : cti_degree_product(others, shard) == r->world;
    if (!fits) {
        char shard_text[40] = "";
        (void)snprintf(shard_text, sizeof shard_text, " x dp_shard %" PRId64, shard); /* fits */
        cti_str_printf(r->detail,
                       "pp %" PRId64 " x dp_replicate %" PRId64 "%s x cp %" PRId64 " x tp %" PRId64 " = %" PRId64
                       ", WORLD_SIZE is %" PRId64 "%s",
                       d->pp, d->dp_replicate, shard < 0 ? "" : shard_text, d->cp, d->tp,
                       shard < 0 ? others : cti_degree_product(others, shard), r->world,
                       r->world == 1 ? ": `ctitan run --nproc_per_node N` starts N, `ctitan plan --ranks N` plans them" : "");
    }
    return fits;
}

/* ---- batches and lengths --------------------------------------------------------------------------------------- */

int64_t cti_rows_at_once(const cti_check_run *r)
{
    const int64_t dp = cti_degree_product(r->degrees.dp_replicate, cti_max_i64(r->degrees.dp_shard, 1));
    return cti_degree_product(r->training->local_batch_size, dp);
}

static bool global_batch_fits(cti_check_run *r)
{
    const int64_t global = r->training->global_batch_size;
    const int64_t at_once = cti_rows_at_once(r);
    if (global < 0 || (global > 0 && global % at_once == 0)) {
        return true;
    }
    cti_str_printf(r->detail, "wanted -1 or a multiple of %" PRId64, at_once);
    if (global > 0 && at_once < INT64_MAX - global) {
        const int64_t below = global / at_once * at_once;
        if (below > 0) {
            cti_str_printf(r->detail, "; the nearest are %" PRId64 " and %" PRId64, below, below + at_once);
        } else {
            cti_str_printf(r->detail, "; the nearest is %" PRId64, at_once);
        }
    }
    return false;
}

static bool step_counts_fit(cti_check_run *r)
{
    const int64_t rows = r->training->global_batch_size > 0 ? r->training->global_batch_size : cti_rows_at_once(r);
    int64_t tokens;
    return cti_mul_i64(rows, r->training->seq_len, &tokens) && tokens <= INT32_MAX;
}

static bool seq_len_divides(cti_check_run *r)
{
    int64_t by = r->parallelism->enable_sequence_parallel ? r->degrees.tp : 1;
    by = cti_degree_product(by, r->degrees.cp > 1 ? cti_degree_product(2, r->degrees.cp) : 1);
    if (r->training->seq_len % by == 0) {
        return true;
    }
    cti_str_printf(r->detail, "wanted a multiple of %" PRId64, by);
    return false;
}

/* A whole number of a component by path and name: the model's own tables are not known here. False where there is none. */
static bool number_at(const cti_check_run *r, const char *path, const char *name, int64_t *out)
{
    const ct_component *c = ct_component_find(r->root, path);
    const ct_field *field = c != NULL ? ct_field_find(c->cls->fields, (size_t)c->cls->n_fields, name) : NULL;
    if (field == NULL || field->kind != CT_FIELD_I64) {
        return false;
    }
    memcpy(out, (const char *)c->values + field->offset, sizeof *out);
    return true;
}

static bool model_number(const cti_check_run *r, const char *name, int64_t *out)
{
    return number_at(r, "model_spec.model", name, out);
}

/* What tensor parallelism shares out whole: each must divide by the degree. The vocabulary may be cut unevenly. */
static const struct {
    const char *path, *name, *what;
} shared[] = {
    {"model_spec.model.layers.0.attention", "n_heads", "query heads"},
    {"model_spec.model.layers.0.attention", "n_kv_heads", "key and value heads"},
    {"model_spec.model.layers.0.feed_forward", "hidden_dim", "hidden units"},
};
enum { N_SHARED = sizeof shared / sizeof shared[0] };

static bool tensor_degree_divides(const cti_check_run *r, int64_t degree, cti_str *detail)
{
    bool fits = true;
    for (int i = 0; i < N_SHARED; i++) {
        int64_t n;
        if (number_at(r, shared[i].path, shared[i].name, &n) && n % degree != 0) {
            if (detail != NULL) {
                cti_str_printf(detail, "%s%" PRId64 " %s", fits ? "" : ", ", n, shared[i].what);
            }
            fits = false;
        }
    }
    return fits;
}

/* All that does not divide, and the nearest degrees that do. */
static bool tensor_degree_fits(cti_check_run *r)
{
    const int64_t degree = r->degrees.tp;
    if (degree == 1 || tensor_degree_divides(r, degree, r->detail)) {
        return true;
    }
    int64_t least = INT64_MAX, below = 1, above = 0; /* a degree that divides all is at most the least of them */
    for (int i = 0; i < N_SHARED; i++) {
        int64_t n;
        least = number_at(r, shared[i].path, shared[i].name, &n) && n < least ? n : least;
    }
    for (int64_t d = 1; d <= least && above == 0; d++) {
        if (tensor_degree_divides(r, d, NULL)) {
            below = d < degree ? d : below;
            above = d > degree ? d : 0;
        }
    }
    if (above > 0) {
        cti_str_printf(r->detail, "; the nearest that divide all are %" PRId64 " and %" PRId64, below, above);
    } else {
        cti_str_printf(r->detail, "; the nearest that divides all is %" PRId64, below);
    }
    return false;
}

static bool seq_len_in_reach(cti_check_run *r)
{
    int64_t longest;
    if (!model_number(r, "max_seq_len", &longest) || r->training->seq_len <= longest) {
        return true;
    }
    cti_str_printf(r->detail, "its longest is %" PRId64, longest);
    return false;
}

static bool vocab_is_the_models(cti_check_run *r)
{
    const ct_component *fn = ct_component_find(r->root, "loss.loss_fn");
    fn = fn != NULL ? fn : ct_component_find(r->root, "loss");
    int64_t rows;
    if (fn == NULL || !ct_class_is_a(fn->cls, &cti_cross_entropy_class) || !model_number(r, "vocab_size", &rows)) {
        return true;
    }
    const ct_opt_i64 *asked = &((const cti_cross_entropy_config *)fn->values)->global_vocab_size;
    if (!asked->is_set || asked->value == rows) {
        return true;
    }
    cti_str_printf(r->detail, "the model has %" PRId64, rows);
    return false;
}

static bool balancer_known(cti_check_run *r)
{
    const char *name = r->parallelism->context_parallel_load_balancer;
    return name == NULL || cti_str_eq(name, "headtail") || cti_str_eq(name, "ptrr");
}

static bool schedule_known(cti_check_run *r)
{
    static const char *const names[] = {"1F1B",          "GPipe",     "Interleaved1F1B",        "LoopedBFS",
                                        "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV",
                                        "PipelineScheduleSingle", "PipelineScheduleMulti"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (cti_str_eq(r->parallelism->pipeline_parallel_schedule, names[i])) {
            return true;
        }
    }
    return false;
}

static bool microbatch_divides(cti_check_run *r)
{
    return r->degrees.pp <= 1 ||
           r->training->local_batch_size % r->parallelism->pipeline_parallel_microbatch_size == 0;
}

/* ---- the rows -------------------------------------------------------------------------------------------------- */

#define P "parallelism."
const cti_check cti_layout_checks[] = {
    {"tensor_degree_fits", P "tensor_parallel_degree", tensor_degree_fits, "the degree must divide what the ranks share"},
    {"shard_not_zero", P "data_parallel_shard_degree", shard_not_zero, "wanted -1 or at least 1"},
    {"degrees_fit",
     P "data_parallel_shard_degree " P "data_parallel_replicate_degree " P "tensor_parallel_degree " P
       "context_parallel_degree " P "pipeline_parallel_degree",
     degrees_fit, "the degrees must multiply to the number of ranks"},
    {"global_batch_fits", "training.global_batch_size training.local_batch_size", global_batch_fits,
     "the global batch must be a multiple of the local batch times the data-parallel degree"},
    {"step_counts_fit", "training.seq_len training.local_batch_size training.global_batch_size", step_counts_fit,
     "the tokens of one step must fit in 31 bits"},
    {"seq_len_divides", "training.seq_len", seq_len_divides,
     "the sequence must divide by the degrees of sequence and context parallelism"},
    {"seq_len_in_reach", "training.seq_len", seq_len_in_reach, "the sequence is longer than the model's positions"},
    {"vocab_is_the_models", "loss.global_vocab_size", vocab_is_the_models, "must be None or the model's vocabulary"},
    {"balancer_known", P "context_parallel_load_balancer", balancer_known, "wanted headtail, ptrr or None"},
    {"schedule_known", P "pipeline_parallel_schedule", schedule_known,
     "wanted 1F1B, GPipe, Interleaved1F1B, LoopedBFS, InterleavedZeroBubble, ZBVZeroBubble, DualPipeV, "
     "PipelineScheduleSingle or PipelineScheduleMulti"},
    {"microbatch_divides", P "pipeline_parallel_microbatch_size training.local_batch_size", microbatch_divides,
     "must divide the local batch"},
};
const size_t cti_n_layout_checks = sizeof cti_layout_checks / sizeof cti_layout_checks[0];
