/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan data inspect`: what a dataset holds. */
#include "cli/cmd_data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "data/data.h"

/* clang-format off */
#define OPTIONS(X) \
    X(dataset, STR, "c4_test", "1", "", "", "", 0, NULL, "name of a data set") \
    X(dataset_path, OPT_STR, "None", "1", "", "", "", 0, NULL, "file, folder or pattern that holds the documents") \
    X(hf_assets_path, STR, "", "", "", "", "", 0, NULL, "tokenizer folder; empty: the one that comes with ctitan")
/* clang-format on */
typedef struct options {
    OPTIONS(CT_FIELD_MEMBER)
} options;
#define ROW(...) CT_FIELD_ROW_IN(options, __VA_ARGS__)
static const ct_field fields[] = {OPTIONS(ROW)};
#undef ROW
enum { N_FIELDS = sizeof fields / sizeof fields[0] };

static ct_status print_corpus(const ct_alloc *alloc, const ct_corpus *corpus, const ct_tokenizer *tokenizer, ct_err *err)
{
    char bytes[32], documents[32], tokens[32];
    const ct_text_processor text = {.tokenizer = tokenizer, .flags = CT_ENCODE_DOCUMENT};
    const ct_processor processor = ct_processor_of_text(&text);
    double nats = 0.0;
    int64_t n_tokens = 0;
    CT_TRY(ct_dataset_unigram_entropy(alloc, corpus, &processor, 0, &nats, &n_tokens, err));
    printf("  documents: %s in %" PRId64 " file(s), %s\n", cti_format_thousands(ct_corpus_n_documents(corpus), documents),
           ct_corpus_n_files(corpus), cti_format_bytes(ct_corpus_size_bytes(corpus), bytes));
    printf("  tokens to predict: %s\n", cti_format_thousands(n_tokens, tokens));
    printf("  entropy of the unigrams: %.4f nats a token\n", nats);
    return CT_OK;
}

static ct_status inspect(const ct_alloc *alloc, const options *o, ct_err *err)
{
    cti_env env = {0};
    char *path = NULL, *folder = NULL;
    ct_corpus *corpus = NULL;
    ct_tokenizer *tokenizer = NULL;
    ct_status st;
    CT_TRY_GOTO(st, cti_env_create(alloc, &env, err), out);
    folder = o->hf_assets_path[0] != '\0' ? ct_alloc_strdup(alloc, o->hf_assets_path, err)
                                          : cti_path_join(alloc, env.share_dir, "tokenizer", err);
    CT_TRY_GOTO(st, folder == NULL ? CT_ERR_MEMORY : CT_OK, out);
    CT_TRY_GOTO(st, ct_dataset_resolve(alloc, o->dataset, o->dataset_path, env.share_dir, &path, err), out);
    CT_TRY_GOTO(st, ct_corpus_open(alloc, path, NULL, &corpus, err), out);
    CT_TRY_GOTO(st, ct_tokenizer_open(alloc, folder, NULL, &tokenizer, err), out);
    printf("%s\n", path);
    st = print_corpus(alloc, corpus, tokenizer, err);
out:
    ct_tokenizer_destroy(&tokenizer);
    ct_corpus_destroy(&corpus);
    ct_alloc_free(alloc, path);
    ct_alloc_free(alloc, folder);
    cti_env_deinit(alloc, &env);
    return st;
}

int cti_cmd_data(int argc, char **argv)
{
    static const cti_command_help help = {"ctitan data inspect [options]",
                                          "Prints what a dataset holds: documents, tokens, and the entropy of the unigrams, which is the\n"
                                          "loss of a model that knows the frequencies of tokens and nothing else."};
    const ct_alloc *alloc = ct_alloc_system();
    if (argc >= 2 && strcmp(argv[1], "preview") == 0) {
        return cti_cmd_data_preview(argc - 1, argv + 1);
    }
    const bool is_inspect = argc >= 2 && strcmp(argv[1], "inspect") == 0;
    if (!is_inspect && !(argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))) {
        fprintf(stderr, CTI_PROGRAM " data: 'inspect' or 'preview' is wanted; " CTI_PROGRAM " data --help\n");
        return 2;
    }
    ct_err err = {0};
    ct_arena *arena = NULL;
    options o;
    bool done = false;
    ct_status st = ct_arena_create(alloc, 0, &arena, &err);
    if (st == CT_OK) {
        st = cti_options_parse(argc - is_inspect, argv + is_inspect, fields, N_FIELDS, &o, &help, arena, &done, &err);
    }
    if (st == CT_OK && !done) {
        st = inspect(alloc, &o, &err);
    }
    ct_arena_destroy(&arena);
    return st == CT_OK ? 0 : cti_report("data", st, &err);
}
