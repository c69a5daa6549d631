/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan data tokenize`: a data set to files of tokens. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cmd_data.h"

typedef struct progress {
    int64_t began_ns, told_ns;
    int64_t n_all;
    bool is_shown;
} progress;

/* One line that is written over, on a terminal only. */
static void show(void *ctx, int64_t n_documents, int64_t n_tokens)
{
    progress *p = ctx;
    char tokens[32];
    const int64_t now = cti_now_ns();
    if (!p->is_shown || now - p->told_ns < 200000000) {
        return;
    }
    p->told_ns = now;
    const double share = (double)n_documents / (double)p->n_all, seconds = (double)(now - p->began_ns) * 1e-9;
    fprintf(stderr, "\r%5.1f%%  %s tokens  %.0f s to go \033[K", 100.0 * share, cti_format_thousands(n_tokens, tokens),
            seconds * (1.0 / share - 1.0));
    fflush(stderr);
}

ct_status cti_data_tokenize(cti_data_call *call, ct_err *err)
{
    const cti_data_options *o = call->o;
    char tokens[32], documents[32], bad[32];
    uint64_t hash;
    ct_tokenize_result r;
    if (o->output[0] == '\0') {
        return CT_FAIL(err, CT_ERR_USAGE, "--output is wanted: a file X.ctok, or a folder for several");
    }
    if (strcmp(o->format, "chat") == 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "--format chat: a file of tokens holds no labels, so a model would learn what users say, too; "
                       "train from the JSON lines (--dataloader.format chat)");
    }
    CT_TRY(cti_data_call_open_corpus(call, err));
    CT_TRY(cti_data_call_open_tokenizer(call, err));
    CT_TRY(ct_text_processor_hash(call->alloc, &call->text, &hash, err));
    CT_TRY(ct_corpus_check_tokens(call->corpus, hash, ct_tokenizer_vocab_size(call->tokenizer), err));
    const ct_processor processor = ct_processor_of_text(&call->text);
    progress p = {.began_ns = cti_now_ns(), .n_all = ct_corpus_n_documents(call->corpus), .is_shown = isatty(STDERR_FILENO) == 1};
    const ct_tokenize_options options = {.output = o->output,
                                         .shard_tokens = o->shard_tokens,
                                         .vocab_size = ct_tokenizer_vocab_size(call->tokenizer),
                                         .tokenizer_hash = hash,
                                         .bad_policy = strcmp(o->bad_records, "skip") == 0 ? CT_BAD_SKIP : CT_BAD_FAIL,
                                         .replace = o->replace,
                                         .progress = show,
                                         .ctx = &p};
    const ct_status st = ct_corpus_tokenize(call->alloc, call->corpus, &processor, &options, &r, err);
    if (p.is_shown) {
        fputs("\r\033[K", stderr);
    }
    CT_TRY(st);
    const double seconds = cti_seconds_since(p.began_ns);
    printf("%s: %s tokens of %s documents in %" PRId64 " file%s", o->output, cti_format_thousands(r.n_tokens, tokens),
           cti_format_thousands(r.n_documents, documents), r.n_files, r.n_files == 1 ? "" : "s");
    if (r.n_files_kept > 0) {
        printf(" (%" PRId64 " of them were there)", r.n_files_kept);
    }
    printf(", %.1f s\n", seconds);
    if (r.n_bad_total > 0) {
        printf("  bad documents, now empty: %s\n", cti_format_thousands(r.n_bad_total, bad));
        for (int32_t i = 0; i < r.n_examples; i++) {
            printf("    %s\n", r.examples[i]);
        }
    }
    return CT_OK;
}
