/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan data`: the list of its sub-commands, and what they share. */
#include "cli/cmd_data.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"

#define ROW(...) CT_FIELD_ROW_IN(cti_data_options, __VA_ARGS__)
static const ct_field fields[] = {CTI_DATA_OPTIONS(ROW)};
#undef ROW
enum { N_FIELDS = sizeof fields / sizeof fields[0] };

static const struct {
    const char *name, *args, *what;
    ct_status (*run)(cti_data_call *call, ct_err *err);
} commands[] = {
    {"inspect", "[PATH...] [options]",
     "Prints what a data set holds: documents, bad ones by kind with file and line, the longest, tokens, and the entropy of the\n"
     "unigrams, which is the loss of a model that knows the frequencies of tokens and nothing else.",
     cti_data_inspect},
    {"index", "[PATH...] [options]",
     "Finds where the documents of large and of compressed files begin and keeps it in $CTITAN_CACHE_DIR (else\n"
     "$XDG_CACHE_HOME/ctitan, else ~/.cache/ctitan), as a run does when it starts; prints what was found.",
     cti_data_index},
    {"tokenize", "[PATH...] --output X.ctok|DIR [options]",
     "Writes the tokens of a data set to files that training reads in its place; rows stay the same. OMP_NUM_THREADS says how many\n"
     "threads encode; the bytes do not depend on it. A folder that an interrupted call has left is gone on with.",
     cti_data_tokenize},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *to)
{
    for (int i = 0; i < N_COMMANDS; i++) {
        fprintf(to, "%s " CTI_PROGRAM " data %-8s %s\n", i == 0 ? "usage:" : "      ", commands[i].name, commands[i].args);
    }
    fprintf(to, "       " CTI_PROGRAM " data preview  [PATH] [options]\n");
    fprintf(to, "\nPATH: a file, a folder, or a pattern in quotes. Options may be spelt as those of train: --dataloader.dataset-path.\n"
                CTI_PROGRAM " data COMMAND --help lists them.\n");
}

ct_status cti_data_call_open_corpus(cti_data_call *call, ct_err *err)
{
    const cti_data_options *o = call->o;
    const ct_corpus_options options = {.text_field = o->text_field,
                                       .records = strcmp(o->format, "chat") == 0,
                                       .utf8 = strcmp(o->invalid_utf8, "bad") == 0 ? CT_UTF8_BAD : CT_UTF8_REPAIR,
                                       .max_document_bytes = o->max_document_bytes,
                                       .begin_id = (int32_t)o->begin_id};
    ct_status st;
    if (call->n_paths > 0) {
        st = ct_corpus_open_list(call->alloc, call->paths, call->n_paths, &options, &call->corpus, err);
    } else {
        cti_env env = {0};
        char *path = NULL;
        st = cti_env_create(call->alloc, &env, err);
        if (st == CT_OK) {
            st = ct_dataset_resolve(call->alloc, o->dataset, o->dataset_path, env.share_dir, &path, err);
        }
        if (st == CT_OK) {
            st = ct_corpus_open(call->alloc, path, &options, &call->corpus, err);
        }
        ct_alloc_free(call->alloc, path);
        cti_env_deinit(call->alloc, &env);
    }
    if (st == CT_OK) {
        fputs(ct_corpus_notes(call->corpus), stderr);
    }
    return st;
}

ct_status cti_data_call_open_tokenizer(cti_data_call *call, ct_err *err)
{
    cti_env env = {0};
    char *folder = NULL;
    ct_status st = cti_env_create(call->alloc, &env, err);
    if (st == CT_OK) {
        folder = call->o->hf_assets_path[0] != '\0' ? ct_alloc_strdup(call->alloc, call->o->hf_assets_path, err)
                                                    : cti_path_join(call->alloc, env.share_dir, "tokenizer", err);
        st = folder != NULL ? ct_tokenizer_open(call->alloc, folder, NULL, &call->tokenizer, err) : CT_ERR_MEMORY;
    }
    call->text = (ct_text_processor){
        .tokenizer = call->tokenizer,
        .flags = CT_ENCODE_DOCUMENT | (strcmp(call->o->special_text, "match") == 0 ? CT_ENCODE_MATCH_SPECIAL : 0u)};
    if (st == CT_OK && strcmp(call->o->format, "chat") == 0) {
        const ct_chat_options options = {.template_path = call->o->chat_template,
                                         .question_field = call->o->question_field,
                                         .answer_field = call->o->answer_field,
                                         .max_tokens = call->o->seq_len,
                                         .match_special = (call->text.flags & CT_ENCODE_MATCH_SPECIAL) != 0,
                                         .date = call->o->chat_date};
        st = ct_chat_open(call->alloc, folder, call->tokenizer, &options, &call->chat, err);
    }
    ct_alloc_free(call->alloc, folder);
    cti_env_deinit(call->alloc, &env);
    return st;
}

ct_processor cti_data_call_processor(const cti_data_call *call)
{
    return call->chat != NULL ? ct_processor_of_chat(call->chat) : ct_processor_of_text(&call->text);
}

char *cti_data_short_option(const char *arg, ct_arena *arena, ct_err *err)
{
    static const char *const sections[] = {"--dataloader.", "--tokenizer.", "--training."};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (cti_starts_with(arg, sections[i])) {
            return ct_arena_printf(arena, err, "--%s", arg + strlen(sections[i]));
        }
    }
    return ct_arena_strdup(arena, arg, err);
}

/* Options and what follows them go to options[], the rest to paths[]. After "--" all are paths. */
static ct_status split(int argc, char **argv, ct_arena *arena, char **options, int *out_n, const char **paths, int64_t *out_n_paths,
                       ct_err *err)
{
    bool all_paths = false;
    int n = 1;
    options[0] = argv[1];
    *out_n_paths = 0;
    for (int i = 2; i < argc; i++) {
        if (all_paths || (strncmp(argv[i], "--", 2) != 0 && strcmp(argv[i], "-h") != 0)) {
            paths[(*out_n_paths)++] = argv[i];
            continue;
        }
        all_paths = strcmp(argv[i], "--") == 0;
        if (all_paths) {
            continue;
        }
        char *option = cti_data_short_option(argv[i], arena, err);
        if (option == NULL) {
            return CT_ERR_MEMORY;
        }
        options[n++] = option;
        const ct_field *f = ct_field_find(fields, N_FIELDS, option + 2);
        if (f != NULL && f->kind != CT_FIELD_BOOL && strchr(option, '=') == NULL && i + 1 < argc) {
            options[n++] = argv[++i];
        }
    }
    *out_n = n;
    return CT_OK;
}

static ct_status run(const ct_alloc *alloc, int which, int argc, char **argv, ct_arena *arena, ct_err *err)
{
    char **opts = ct_arena_alloc(arena, (size_t)(argc + 1) * sizeof *opts, err);
    const char **paths = ct_arena_alloc(arena, (size_t)(argc + 1) * sizeof *paths, err);
    const char *usage = ct_arena_printf(arena, err, CTI_PROGRAM " data %s %s", commands[which].name, commands[which].args);
    if (opts == NULL || paths == NULL || usage == NULL) {
        return CT_ERR_MEMORY;
    }
    int n_options;
    cti_data_options o;
    bool done = false;
    const cti_command_help help = {usage, commands[which].what, commands[which].name};
    cti_data_call call = {.alloc = alloc, .o = &o, .paths = paths};
    CT_TRY(split(argc, argv, arena, opts, &n_options, paths, &call.n_paths, err));
    CT_TRY(cti_options_parse(n_options, opts, fields, N_FIELDS, &o, &help, arena, &done, err));
    if (done) {
        return CT_OK;
    }
    const ct_status st = commands[which].run(&call, err);
    ct_chat_destroy(&call.chat);
    ct_tokenizer_destroy(&call.tokenizer);
    ct_corpus_destroy(&call.corpus);
    return st;
}

static ct_status dispatch(const ct_alloc *alloc, int argc, char **argv, ct_arena *arena, ct_err *err)
{
    const char *names[N_COMMANDS + 1] = {[N_COMMANDS] = "preview"}; /* which has options of its own */
    for (int i = 0; i < N_COMMANDS; i++) {
        names[i] = commands[i].name;
        if (argc >= 2 && strcmp(argv[1], names[i]) == 0) {
            return run(alloc, i, argc, argv, arena, err);
        }
    }
    if (argc < 2) {
        print_usage(stderr);
        return CT_FAIL(err, CT_ERR_USAGE, "a sub-command is wanted");
    }
    const int nearest = cti_nearest(argv[1], names, N_COMMANDS + 1);
    return CT_FAIL(err, CT_ERR_USAGE, "there is no sub-command '%s'%s%s; " CTI_PROGRAM " data --help lists them", argv[1],
                   nearest >= 0 ? ", nearest is " : "", nearest >= 0 ? names[nearest] : "");
}

int cti_cmd_data(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_usage(stdout);
        return 0;
    }
    if (argc >= 2 && strcmp(argv[1], "preview") == 0) {
        return cti_cmd_data_preview(argc - 1, argv + 1);
    }
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    ct_arena *arena = NULL;
    ct_status st = ct_arena_create(alloc, 0, &arena, &err);
    if (st == CT_OK) {
        st = dispatch(alloc, argc, argv, arena, &err);
    }
    ct_arena_destroy(&arena);
    return st == CT_OK ? 0 : cti_report("data", st, &err);
}
