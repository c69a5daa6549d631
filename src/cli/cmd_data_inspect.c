/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan data inspect` and `index`: what a data set holds. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cmd_data.h"

static void print_file(const ct_corpus_file *f)
{
    char size[32], contents[32], documents[32];
    printf("%s\n  %s", f->path, ct_file_format_words(f->format));
    if (f->codec != CT_CODEC_NONE) {
        printf(", %s, %s of %s", ct_codec_words(f->codec), cti_format_bytes(f->size_bytes, size),
               cti_format_bytes(f->contents_bytes, contents));
    } else {
        printf(", %s", cti_format_bytes(f->size_bytes, size));
    }
    printf(", %s document%s", cti_format_thousands(f->n_documents - (f->damage != NULL), documents), f->n_documents == 1 ? "" : "s");
    if (f->n_tokens >= 0) {
        printf(", %s tokens", cti_format_thousands(f->n_tokens, documents));
    }
    printf("\n");
    if (f->damage != NULL) {
        printf("  damaged: %s\n", f->damage);
    }
}

static void print_total(const ct_corpus *corpus)
{
    char bytes[32], documents[32];
    printf("%s document%s in %" PRId64 " file%s, %s\n", cti_format_thousands(ct_corpus_n_documents(corpus), documents),
           ct_corpus_n_documents(corpus) == 1 ? "" : "s", ct_corpus_n_files(corpus), ct_corpus_n_files(corpus) == 1 ? "" : "s",
           cti_format_bytes(ct_corpus_size_bytes(corpus), bytes));
}

ct_status cti_data_index(cti_data_call *call, ct_err *err)
{
    const int64_t began = cti_now_ns();
    CT_TRY(cti_data_call_open_corpus(call, err));
    const double seconds = cti_seconds_since(began);
    int64_t n_built = 0, n_kept = 0;
    for (int64_t i = 0; i < ct_corpus_n_files(call->corpus); i++) {
        const ct_corpus_file f = ct_corpus_file_at(call->corpus, i);
        print_file(&f);
        if (f.is_index_built || f.is_index_kept) {
            printf("  index: %s%s\n", f.is_index_built ? "built" : "was kept",
                   f.is_index_built ? (f.is_index_kept ? ", kept" : ", not kept: the file is small, or the note says why") : "");
        }
        n_built += f.is_index_built;
        n_kept += f.is_index_kept;
    }
    print_total(call->corpus);
    printf("indexes: %" PRId64 " built, %" PRId64 " kept, in %.1f s\n", n_built, n_kept, seconds);
    ct_err why = {0};
    if (ct_corpus_check_random_access(call->corpus, &why) != CT_OK) {
        printf("note: %s\n", why.message);
    }
    return CT_OK;
}

static void print_bad(const ct_survey *s)
{
    char n[32];
    printf("  bad documents: %s", cti_format_thousands(s->n_bad_total, n));
    const char *before = ": ";
    for (int bad = 0; bad < CT_BAD_COUNT; bad++) {
        if (s->n_bad[bad] > 0) {
            printf("%s%s %s", before, ct_bad_words((ct_bad)bad), cti_format_thousands(s->n_bad[bad], n));
            before = ", ";
        }
    }
    printf("\n");
    for (int32_t i = 0; i < s->n_examples; i++) {
        printf("    %s\n", s->examples[i]);
    }
    if (s->repairs.n_invalid_utf8 + s->repairs.n_lone_surrogates > 0) {
        printf("  repaired to U+FFFD: %" PRId64 " part(s) that are no UTF-8, %" PRId64 " escaped surrogate(s) without the other half\n",
               s->repairs.n_invalid_utf8, s->repairs.n_lone_surrogates);
    }
}

ct_status cti_data_inspect(cti_data_call *call, ct_err *err)
{
    char text[32], n[32], place[512];
    ct_survey s;
    CT_TRY(cti_data_call_open_corpus(call, err));
    CT_TRY(cti_data_call_open_tokenizer(call, err));
    CT_TRY(ct_corpus_verify(call->corpus, err));
    const ct_processor processor = cti_data_call_processor(call);
    CT_TRY(ct_corpus_survey(call->alloc, call->corpus, &processor, 0, &s, err));
    for (int64_t i = 0; i < ct_corpus_n_files(call->corpus); i++) {
        const ct_corpus_file f = ct_corpus_file_at(call->corpus, i);
        print_file(&f);
    }
    print_total(call->corpus);
    printf("  %s: %s", call->chat != NULL ? "records" : "text", cti_format_bytes(s.text_bytes, text));
    printf("; empty documents: %s", cti_format_thousands(s.n_empty, n));
    printf("; of fewer than 2 tokens, which give nothing: %s\n", cti_format_thousands(s.n_short, n));
    if (call->o->seq_len > 0) {
        printf("  conversations of more than %" PRId64 " tokens, which give nothing: %s\n", call->o->seq_len, cti_format_thousands(s.n_long, n));
    }
    if (s.longest >= 0) {
        const bool is_ids = ct_corpus_file_at(call->corpus, 0).n_tokens >= 0;
        ct_corpus_place(call->corpus, s.longest, place, sizeof place);
        printf("  longest document: %s%s, %s\n", is_ids ? cti_format_thousands(s.longest_size, n) : cti_format_bytes(s.longest_size, n),
               is_ids ? " tokens" : "", place);
    }
    print_bad(&s);
    printf("  tokens to predict%s: %s\n", call->chat != NULL ? ", what assistants say" : "", cti_format_thousands(s.n_tokens, n));
    printf("  entropy of the unigrams: %.4f nats a token\n", s.nats);
    return CT_OK;
}
