/* SPDX-License-Identifier: Apache-2.0 */
/* Settings -> sources and loader; what the data was like. */
#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "model/model.h"
#include "train/trainer.h"

/* Files of tokens must be of this tokenizer. What the corpora have to say goes to the log. */
static ct_status check_tokens(cti_trainer *t, const ct_sources *sources, int64_t vocab_size, ct_err *err)
{
    for (int32_t i = 0; i < sources->n; i++) {
        for (const char *line = ct_corpus_notes(sources->corpora[i]); *line != '\0';) {
            const size_t n = strcspn(line, "\n");
            CT_INFO(t->log, "%.*s", (int)n, line);
            line += n + (line[n] == '\n');
        }
        CT_TRY(ct_corpus_check_tokens(sources->corpora[i], t->text_hash, vocab_size, err));
    }
    return CT_OK;
}

static ct_status open_chat(cti_trainer *t, const cti_dataloader_config *c, ct_chat **out_chat, ct_err *err)
{
    const cti_trainer_config *root = ct_component_values(t->root);
    const ct_chat_options options = {.template_path = c->chat_template,
                                     .question_field = c->question_field,
                                     .answer_field = c->answer_field,
                                     .max_tokens = t->seq_len,
                                     .match_special = (t->text.flags & CT_ENCODE_MATCH_SPECIAL) != 0,
                                     .date = c->chat_date};
    char *folder = root->hf_assets_path[0] != '\0' ? ct_alloc_strdup(t->alloc, root->hf_assets_path, err)
                                                   : cti_path_join(t->alloc, t->o.share_dir, "tokenizer", err);
    const ct_status st = folder == NULL ? CT_ERR_MEMORY : ct_chat_open(t->alloc, folder, t->tokenizer, &options, out_chat, err);
    ct_alloc_free(t->alloc, folder);
    return st;
}

/* The first record as it is learned; one that is bad is the loader's business. */
static ct_status log_first_sample(cti_trainer *t, ct_err *err)
{
    ct_reader *reader = NULL;
    ct_document document;
    cti_str text = {.alloc = t->alloc};
    ct_document_init(&document, t->alloc);
    const ct_status st = ct_reader_create(t->alloc, t->sources.corpora[0], &reader, err);
    if (st == CT_OK && ct_reader_read(reader, 0, &document, NULL, NULL, NULL) == CT_OK &&
        ct_chat_render_record(t->chat, &document, &text, NULL) == CT_OK) {
        CT_INFO(t->log, "[ChatProcessor] First sample full:\n%s", cti_str_text(&text));
    }
    ct_reader_destroy(&reader);
    ct_document_deinit(&document);
    cti_str_deinit(&text);
    return st;
}

ct_status cti_trainer_open_data(cti_trainer *t, const cti_dataloader_config *c, ct_sources *out_sources, ct_chat **out_chat,
                                ct_loader_options *out_options, ct_err *err)
{
    const bool is_chat = strcmp(c->format, "chat") == 0;
    CT_TRY(is_chat ? open_chat(t, c, out_chat, err) : CT_OK);
    const ct_corpus_options corpus = {.text_field = c->text_field,
                                      .records = is_chat,
                                      .utf8 = strcmp(c->invalid_utf8, "bad") == 0 ? CT_UTF8_BAD : CT_UTF8_REPAIR,
                                      .max_document_bytes = c->max_document_bytes,
                                      .begin_id = (int32_t)c->begin_id}; /* bounds of the setting */
    const ct_sources_options options = {.dataset = c->dataset,
                                        .dataset_path = c->dataset_path,
                                        .share_dir = t->o.share_dir,
                                        .specs = c->sources.items,
                                        .n_specs = c->sources.n,
                                        .corpus = &corpus,
                                        .registry = t->o.run->registry};
    CT_TRY(ct_sources_open(t->alloc, &options, out_sources, err));
    double sum = 0.0;
    for (int32_t i = 0; i < out_sources->n; i++) {
        sum += out_sources->items[i].weight;
    }
    for (int32_t i = 0; i < out_sources->n; i++) {
        if (c->sources.n == 0) {
            CT_INFO(t->log, "Preparing %s dataset from %s", c->dataset, out_sources->paths[i]);
        } else {
            CT_INFO(t->log, "Preparing dataset from %s: %.4g%% of the tokens", out_sources->paths[i],
                    100.0 * out_sources->items[i].weight / sum);
        }
    }
    const cti_decoder_config *d = ct_component_values(ct_component_find(t->root, "model_spec.model"));
    CT_TRY(check_tokens(t, out_sources, d->vocab_size, err));
    const bool may_skip = strcmp(c->bad_records, "skip") == 0 && c->max_bad_share > 0.0;
    *out_options = (ct_loader_options){.seq_len = t->seq_len,
                                            .rows = t->local_batch * ct_mesh_dp_degree(&t->mesh),
                                            .vocab_size = d->vocab_size,
                                            .encode_hash = t->encode_hash,
                                            .bad_policy = may_skip ? CT_BAD_SKIP : CT_BAD_FAIL,
                                            .max_bad_share = c->max_bad_share,
                                            .repeat = c->infinite,
                                            .shuffle = c->shuffle,
                                            .seed = c->seed,
                                            .packing = strcmp(c->packing, "first-fit") == 0 ? CT_PACK_FIRST_FIT : CT_PACK_SPLIT,
                                            .packing_bins = (int32_t)c->num_packing_bins, /* bounds of the setting */
                                            .workers = (int32_t)c->num_workers,
                                            .prefetch_batches = c->prefetch_factor.is_set ? (int32_t)c->prefetch_factor.value : 2};
    return CT_OK;
}

ct_status cti_trainer_open_sources(cti_trainer *t, ct_err *err)
{
    CT_TRY(cti_trainer_open_data(t, CTI_SECTION(t->root, "dataloader", dataloader), &t->sources, &t->chat, &t->loader_options, err));
    if (t->chat != NULL) {
        t->encode_hash ^= ct_chat_hash(t->chat);
        t->loader_options.encode_hash = t->encode_hash;
        CT_TRY(log_first_sample(t, err));
    }
    return CT_OK;
}

ct_status cti_trainer_open_loader(cti_trainer *t, int64_t n_streams, ct_err *err)
{
    ct_loader_options *o = &t->loader_options;
    const int64_t dp = ct_mesh_dp_degree(&t->mesh);
    if (n_streams % dp != 0 || o->rows % n_streams != 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "--dataloader.streams: %" PRId64 " streams must be a multiple of the %" PRId64
                       " data ranks and divide the %" PRId64 " rows of a micro-batch", n_streams, dp, o->rows);
    }
    o->streams = n_streams;
    o->n_local_streams = n_streams / dp;
    o->first_stream = ct_mesh_dp_rank(&t->mesh) * o->n_local_streams;
    const ct_processor processor = t->chat != NULL ? ct_processor_of_chat(t->chat) : ct_processor_of_text(&t->text);
    return ct_loader_create(t->alloc, t->sources.items, t->sources.n, &processor, o, &t->loader, err);
}

ct_status cti_trainer_count_epoch(cti_trainer *t, int64_t *out_tokens, ct_err *err)
{
    const ct_processor processor = t->chat != NULL ? ct_processor_of_chat(t->chat) : ct_processor_of_text(&t->text);
    const int64_t day_ms = 86400000, start = cti_now_ns();
    int64_t n = 0;
    *out_tokens = 0;
    if (!CTI_SECTION(t->root, "training", training)->epochs.is_set) {
        return CT_OK;
    }
    ct_comm_set_timeout(t->world, day_ms); /* the others wait for rank 0 */
    ct_status st = CT_OK;
    if (t->mesh.rank == 0) {
        ct_survey survey = {0};
        CT_INFO(t->log, "Counting the tokens of one epoch");
        st = ct_corpus_survey(t->alloc, t->sources.corpora[0], &processor, 0, &survey, err);
        n = survey.n_tokens;
        if (st == CT_OK && n == 0) {
            st = CT_FAIL(err, CT_ERR_DATA, "--training.epochs: the data has no tokens");
        }
    }
    n = st == CT_OK ? n : -1;
    CT_TRY(ct_comm_broadcast(t->world, &n, 1, CT_DTYPE_I64, 0, NULL, err));
    ct_comm_set_timeout(t->world, cti_limit_ms(CTI_SECTION(t->root, "comm", comm)->init_timeout_seconds));
    if (n < 0) {
        return st != CT_OK ? st : CT_FAIL(err, CT_ERR_PEER, "rank 0 could not count the tokens of an epoch");
    }
    char text[32];
    CT_INFO(t->log, "An epoch has %s tokens (counted in %.1f s)", cti_format_thousands(n, text), cti_seconds_since(start));
    *out_tokens = n;
    return CT_OK;
}

int64_t cti_trainer_loader_bytes(const cti_trainer *t)
{
    const ct_loader_options *o = &t->loader_options;
    const cti_dataloader_config *c = CTI_SECTION(t->root, "dataloader", dataloader);
    const int64_t dp = ct_mesh_dp_degree(&t->mesh), n_streams = c->streams.is_set ? cti_max_i64(1, c->streams.value / dp) : 1;
    const int64_t row_bytes = 7 * t->seq_len * (int64_t)sizeof(int32_t);
    const int64_t open_rows = o->packing == CT_PACK_FIRST_FIT ? n_streams * o->packing_bins * 3 * t->seq_len * (int64_t)sizeof(int32_t) : 0;
    return t->local_batch * (t->accumulation + o->prefetch_batches) * row_bytes + open_rows;
}

void cti_trainer_log_data(const cti_trainer *t, const char *when)
{
    const ct_loader_stats s = ct_loader_get_stats(t->loader);
    const struct {
        int64_t n;
        const char *what;
    } rows[] = {{s.n_empty, "empty"},
                {s.n_short, "dropped, of fewer than 2 tokens"},
                {s.n_long, "dropped, longer than a row"},
                {s.repairs.n_invalid_utf8, "ill-formed parts of UTF-8 made U+FFFD"},
                {s.repairs.n_lone_surrogates, "lone surrogates made U+FFFD"}};
    char number[32];
    cti_str line = {.alloc = t->alloc};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].n > 0) {
            cti_str_printf(&line, ", %s %s", cti_format_thousands(rows[i].n, number), rows[i].what);
        }
    }
    if (line.len > 0 || s.n_bad_total > 0 || strcmp(when, "first pass") == 0) {
        CT_INFO(t->log, "Documents of this rank, %s: %s read%s", when, cti_format_thousands(s.n_documents, number),
                line.failed ? "" : cti_str_text(&line));
    }
    if (s.n_bad_total > 0) {
        cti_str_reset(&line);
        for (int k = 0; k < CT_BAD_COUNT; k++) {
            if (s.n_bad[k] > 0) {
                cti_str_printf(&line, "%s%s %s", line.len > 0 ? ", " : "", cti_format_thousands(s.n_bad[k], number),
                               ct_bad_words((ct_bad)k));
            }
        }
        CT_WARN(t->log, "Skipped %s bad documents (%s); the first:", cti_format_thousands(s.n_bad_total, number),
                line.failed ? "" : cti_str_text(&line));
        for (int32_t i = 0; i < s.n_examples; i++) {
            CT_WARN(t->log, "  %s", s.examples[i]);
        }
    }
    cti_str_deinit(&line);
}
