/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan tokenizer train|encode|decode|info`. */
#include "cli/cmd_tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "data/corpus.h"
#include "tokenizer/tokenizer.h"

/* clang-format off */
#define OPTIONS(X) \
    X(vocab_size, I64, "2048", "1", "1073741824", "", "tokens", 0, NULL, "train: all tokens, special ones and the 256 bytes included") \
    X(output, STR, "", "", "", "", "", 0, NULL, "train: folder to write tokenizer.json and tokenizer_config.json into") \
    X(text_field, STR, "text", "1", "", "", "", 0, NULL, "train: member of each JSON line that holds the text") \
    X(min_frequency, I64, "1", "1", "", "", "", 0, NULL, "train: a pair seen less often is not merged") \
    X(bos, BOOL, "false", "", "", "", "", 0, NULL, "encode: BOS in front") \
    X(eos, BOOL, "false", "", "", "", "", 0, NULL, "encode: EOS at the end") \
    X(special_text, CHOICE, "text", "", "", "text|match", "", 0, NULL, "encode: special tokens spelt out stay text or become ids") \
    X(template, BOOL, "false", "", "", "", "", 0, NULL, "encode: what the file's post-processor puts round a text") \
    X(on_unknown, CHOICE, "refuse", "", "", "refuse|drop", "", 0, NULL, "encode: a character that no token expresses is an error, or is left out") \
    X(json_lines, BOOL, "false", "", "", "", "", 0, NULL, "encode, decode: for each line of standard input, a JSON string or a list of ids, one line of the other; an empty line for an empty one") \
    X(skip_special, BOOL, "false", "", "", "", "", 0, NULL, "decode: leave special tokens out")
/* clang-format on */
CTI_OPTIONS(OPTIONS);

typedef struct call {
    const ct_alloc *alloc;
    const options *o;
    const char *const *args; /* what is no option */
    size_t n_args;
} call;

/* Every document of the files, read as training reads them. */
static ct_status add_documents(const call *c, ct_tokenizer_trainer *trainer, ct_err *err)
{
    const ct_corpus_options how = {.text_field = c->o->text_field, .cache_dir = ""};
    ct_corpus *corpus = NULL;
    ct_reader *reader = NULL;
    ct_document document;
    ct_document_init(&document, c->alloc);
    ct_status st = ct_corpus_open_list(c->alloc, c->args, (int64_t)c->n_args, &how, &corpus, err);
    st = st == CT_OK ? ct_reader_create(c->alloc, corpus, &reader, err) : st;
    const int64_t n = st == CT_OK ? ct_corpus_n_documents(corpus) : 0;
    for (int64_t i = 0; i < n && st == CT_OK; i++) {
        st = ct_reader_read(reader, i, &document, NULL, NULL, err);
        if (st == CT_OK && document.kind == CT_DOCUMENT_IDS) {
            char place[512];
            ct_corpus_place(corpus, i, place, sizeof place);
            st = CT_FAIL(err, CT_ERR_USAGE, "%s is made of tokens; a vocabulary is trained on text", place);
        }
        st = st == CT_OK ? ct_tokenizer_trainer_add(trainer, cti_str_text(&document.text), document.text.len, err) : st;
    }
    ct_reader_destroy(&reader);
    ct_corpus_destroy(&corpus);
    ct_document_deinit(&document);
    return st;
}

static ct_status cmd_train(const call *c, ct_err *err)
{
    if (c->n_args == 0 || c->o->output[0] == '\0') {
        return CT_FAIL(err, CT_ERR_USAGE, "wanted: ctitan tokenizer train FILE_OR_FOLDER... --vocab-size N --output DIR");
    }
    const ct_tokenizer_train_config config = {.vocab_size = (int32_t)c->o->vocab_size, .min_frequency = c->o->min_frequency};
    ct_tokenizer_trainer *trainer = NULL;
    CT_TRY(ct_tokenizer_trainer_create(c->alloc, &config, &trainer, err));
    ct_status st = add_documents(c, trainer, err);
    st = st == CT_OK ? ct_tokenizer_trainer_train(trainer, err) : st;
    st = st == CT_OK ? ct_tokenizer_trainer_write(trainer, c->o->output, err) : st;
    if (st == CT_OK) {
        const ct_tokenizer_train_counts counts = ct_tokenizer_trainer_counts(trainer);
        char bytes[32];
        printf("%s: %" PRId64 " tokens from %" PRId64 " documents (%s, %" PRId64 " distinct words)\n", c->o->output,
               c->o->vocab_size, counts.n_documents, cti_format_bytes(counts.n_bytes, bytes), counts.n_words);
    }
    ct_tokenizer_trainer_destroy(&trainer);
    return st;
}

static ct_status read_stdin(cti_str *text, ct_err *err)
{
    char buf[65536];
    size_t n;
    while ((n = fread(buf, 1, sizeof buf, stdin)) > 0) {
        cti_str_add_n(text, buf, n);
    }
    return ferror(stdin) ? CT_FAIL(err, CT_ERR_IO, "standard input cannot be read") : cti_str_check(text, err);
}

static ct_tokenizer_options tokenizer_options(const options *o)
{
    return (ct_tokenizer_options){.on_unknown = strcmp(o->on_unknown, "drop") == 0 ? CT_ON_UNKNOWN_DROP : CT_ON_UNKNOWN_REFUSE};
}

static unsigned encode_flags(const options *o)
{
    return (o->bos ? CT_ENCODE_BOS : 0u) | (o->eos ? CT_ENCODE_EOS : 0u) | (o->template ? CT_ENCODE_TEMPLATE : 0u) |
           (strcmp(o->special_text, "match") == 0 ? CT_ENCODE_MATCH_SPECIAL : 0u);
}

/* --- one line of JSON in, one out --- */

typedef struct line_call {
    const ct_alloc *alloc;
    const ct_tokenizer *tok;
    ct_encoder *encoder;
    unsigned encode_flags, decode_flags;
    ct_tokens ids;
    cti_str text;
} line_call;

static ct_status encode_line(line_call *c, const json_t *in, json_t **out, ct_err *err)
{
    if (!json_is_string(in)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "a JSON string is wanted");
    }
    c->ids.n = 0;
    CT_TRY(ct_encoder_encode(c->encoder, json_string_value(in), json_string_length(in), c->encode_flags, &c->ids, err));
    *out = json_array();
    for (int64_t i = 0; i < c->ids.n; i++) {
        if (json_array_append_new(*out, json_integer(c->ids.ids[i])) != 0) {
            return CT_FAIL(err, CT_ERR_MEMORY, "out of memory for a list of ids");
        }
    }
    return CT_OK;
}

/* Bytes that are no text become U+FFFD, as a reader of the line would make them. */
static ct_status decode_line(line_call *c, const json_t *in, json_t **out, ct_err *err)
{
    if (!json_is_array(in)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "a JSON list of ids is wanted");
    }
    ct_decode_stream stream = {0};
    cti_str_reset(&c->text);
    for (size_t i = 0; i < json_array_size(in); i++) {
        const json_t *id = json_array_get(in, i);
        const json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
        if (value < 0 || value > INT32_MAX) {
            return CT_FAIL(err, CT_ERR_FORMAT, "element %zu is no token id", i);
        }
        CT_TRY(ct_decode_stream_push(&stream, c->tok, (int32_t)value, c->decode_flags, &c->text, err));
    }
    ct_decode_stream_finish(&stream, &c->text);
    *out = json_stringn(cti_str_text(&c->text), c->text.len);
    return *out ? cti_str_check(&c->text, err) : CT_FAIL(err, CT_ERR_MEMORY, "out of memory for a text");
}

static ct_status run_line(line_call *c, const char *line, size_t size, int64_t number, bool encodes, ct_err *err)
{
    char name[48], *text = NULL;
    json_t *in = NULL, *out = NULL;
    snprintf(name, sizeof name, "standard input, line %lld", (long long)number);
    ct_status st = cti_json_parse(line, size, name, &in, err);
    if (st == CT_OK) {
        st = encodes ? encode_line(c, in, &out, err) : decode_line(c, in, &out, err);
        if (st != CT_OK) {
            ct_err_prefix(err, "%s", name);
        }
    }
    st = st == CT_OK ? cti_json_dump(c->alloc, out, 0, &text, err) : st;
    if (st == CT_OK) {
        fputs(text, stdout);
        if (strchr(text, '\n') == NULL) {
            putchar('\n');
        }
    }
    ct_alloc_free(c->alloc, text);
    json_decref(in);
    json_decref(out);
    return st;
}

static ct_status json_lines(const call *c, const ct_tokenizer *tok, bool encodes, ct_err *err)
{
    line_call lines = {.alloc = c->alloc,
                       .tok = tok,
                       .encode_flags = encode_flags(c->o),
                       .decode_flags = c->o->skip_special ? CT_DECODE_SKIP_SPECIAL : 0u,
                       .ids = {.alloc = c->alloc},
                       .text = {.alloc = c->alloc}};
    cti_str line = {.alloc = c->alloc};
    ct_status st = ct_encoder_create(c->alloc, tok, &lines.encoder, err);
    int64_t number = 0;
    for (int byte = 0; byte != EOF && st == CT_OK;) {
        cti_str_reset(&line);
        while ((byte = getchar_unlocked()) != EOF && byte != '\n') {
            cti_str_add_char(&line, (char)byte);
        }
        number++;
        st = cti_str_check(&line, err);
        if (st == CT_OK && line.len > 0) {
            st = run_line(&lines, line.data, line.len, number, encodes, err);
        } else if (st == CT_OK && byte == '\n') { /* line n of the output is that of line n of the input */
            putchar('\n');
        }
    }
    if (st == CT_OK && ferror(stdin)) {
        st = CT_FAIL(err, CT_ERR_IO, "standard input cannot be read");
    }
    ct_encoder_destroy(&lines.encoder);
    ct_tokens_deinit(&lines.ids);
    cti_str_deinit(&lines.text);
    cti_str_deinit(&line);
    return st;
}

/* --- encode and decode --- */

static ct_status encode_one(const call *c, const ct_tokenizer *tok, ct_err *err)
{
    cti_str text = {.alloc = c->alloc};
    ct_tokens ids = {.alloc = c->alloc};
    ct_status st = CT_OK;
    if (strcmp(c->args[1], "-") == 0) {
        CT_TRY_GOTO(st, read_stdin(&text, err), out);
    } else {
        cti_str_add(&text, c->args[1]);
    }
    CT_TRY_GOTO(st, ct_tokenizer_encode(tok, cti_str_text(&text), text.len, encode_flags(c->o), &ids, err), out);
    for (int64_t i = 0; i < ids.n; i++) {
        printf("%s%d", i > 0 ? " " : "", ids.ids[i]);
    }
    printf("\n");
    if (ids.n_dropped > 0) {
        fprintf(stderr, "%" PRId64 " characters without a token were left out\n", ids.n_dropped);
    }
out:
    ct_tokens_deinit(&ids);
    cti_str_deinit(&text);
    return st;
}

static ct_status cmd_encode(const call *c, ct_err *err)
{
    if (c->n_args != (c->o->json_lines ? 1u : 2u)) {
        return CT_FAIL(err, CT_ERR_USAGE, "wanted: ctitan tokenizer encode DIR TEXT (- for standard input), or encode DIR --json-lines");
    }
    const ct_tokenizer_options o = tokenizer_options(c->o);
    ct_tokenizer *tok = NULL;
    CT_TRY(ct_tokenizer_open(c->alloc, c->args[0], &o, &tok, err));
    const ct_status st = c->o->json_lines ? json_lines(c, tok, true, err) : encode_one(c, tok, err);
    ct_tokenizer_destroy(&tok);
    return st;
}

static ct_status decode_one(const call *c, const ct_tokenizer *tok, ct_err *err)
{
    cti_str text = {.alloc = c->alloc};
    int32_t *ids = CT_NEW_ARRAY(c->alloc, int32_t, c->n_args, err);
    ct_status st = ids ? CT_OK : CT_ERR_MEMORY;
    for (size_t i = 1; i < c->n_args && st == CT_OK; i++) {
        int64_t id = -1;
        if (!cti_parse_i64(c->args[i], &id) || id < 0 || id > INT32_MAX) {
            st = CT_FAIL(err, CT_ERR_USAGE, "'%s' is no token id", c->args[i]);
        }
        ids[i - 1] = (int32_t)id;
    }
    const unsigned flags = c->o->skip_special ? CT_DECODE_SKIP_SPECIAL : 0u;
    st = st == CT_OK ? ct_tokenizer_decode(tok, ids, (int64_t)c->n_args - 1, flags, &text, err) : st;
    if (st == CT_OK) {
        fwrite(cti_str_text(&text), 1, text.len, stdout);
        printf("\n");
    }
    ct_alloc_free(c->alloc, ids);
    cti_str_deinit(&text);
    return st;
}

static ct_status cmd_decode(const call *c, ct_err *err)
{
    if (c->n_args < 1 || (c->o->json_lines && c->n_args > 1)) {
        return CT_FAIL(err, CT_ERR_USAGE, "wanted: ctitan tokenizer decode DIR ID..., or decode DIR --json-lines");
    }
    ct_tokenizer *tok = NULL;
    CT_TRY(ct_tokenizer_open(c->alloc, c->args[0], NULL, &tok, err));
    const ct_status st = c->o->json_lines ? json_lines(c, tok, false, err) : decode_one(c, tok, err);
    ct_tokenizer_destroy(&tok);
    return st;
}

static void print_token(const ct_tokenizer *tok, const char *what, int32_t id)
{
    size_t size = 0;
    const char *text = id >= 0 ? ct_tokenizer_token_of(tok, id, &size) : NULL;
    if (text == NULL) {
        printf("  %s: none\n", what);
    } else {
        printf("  %s: %d %.*s\n", what, id, (int)size, text);
    }
}

/* Special tokens with their ids; a long list is cut in its middle. */
static void print_specials(const ct_tokenizer *tok)
{
    enum { SHOWN = 12 };
    int32_t n = 0, at = 0;
    for (int32_t id = 0; id < ct_tokenizer_vocab_size(tok); id++) {
        n += ct_tokenizer_is_special(tok, id);
    }
    printf("  special tokens: %d\n", n);
    for (int32_t id = 0; id < ct_tokenizer_vocab_size(tok); id++) {
        size_t size = 0;
        if (!ct_tokenizer_is_special(tok, id)) {
            continue;
        }
        const char *text = ct_tokenizer_token_of(tok, id, &size);
        if (n <= SHOWN + 2 || at < SHOWN || at == n - 1) {
            printf("    %d %.*s\n", id, (int)size, text);
        } else if (at == SHOWN) {
            printf("    ... %d more\n", n - SHOWN - 1);
        }
        at++;
    }
}

/* The files of a Hugging Face folder, and what it means where one is missing. */
static ct_status print_files(const ct_alloc *alloc, const char *folder, ct_err *err)
{
    static const struct {
        const char *name, *missing;
    } rows[] = {
        {"tokenizer.json", "another format is read, see above"},
        {"tokenizer_config.json", "BOS, EOS, PAD and the chat template are not known from it"},
        {"special_tokens_map.json", "not needed where tokenizer_config.json names the tokens"},
        {"chat_template.jinja", "not needed for pre-training, nor where tokenizer_config.json holds the template"},
        {"vocab.json", "not needed beside tokenizer.json"},
        {"vocab.txt", "not needed beside tokenizer.json"},
        {"merges.txt", "not needed beside tokenizer.json"},
        {"tokenizer.model", "not needed beside tokenizer.json"},
        {"config.json", "needed to load or export weights in Hugging Face's form, not for the tokenizer"},
        {"generation_config.json", "not needed"},
        {"configuration.json", "not needed (ModelScope's)"},
        {"model.safetensors.index.json", "needed only to load weights of several files"},
        {"original", "not needed (Meta's own files)"},
    };
    printf("  files:\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *path = cti_path_join(alloc, folder, rows[i].name, err);
        if (path == NULL) {
            return CT_ERR_MEMORY;
        }
        const bool has = cti_path_exists(path);
        ct_alloc_free(alloc, path);
        printf("    %-29s %s%s\n", rows[i].name, has ? "there" : "missing: ", has ? "" : rows[i].missing);
    }
    return CT_OK;
}

static void print_lines(const char *text)
{
    while (*text != '\0') {
        const size_t n = strcspn(text, "\n");
        printf("  %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static ct_status cmd_info(const call *c, ct_err *err)
{
    if (c->n_args != 1) {
        return CT_FAIL(err, CT_ERR_USAGE, "wanted: ctitan tokenizer info DIR");
    }
    ct_tokenizer *tok = NULL;
    CT_TRY(ct_tokenizer_open(c->alloc, c->args[0], NULL, &tok, err));
    printf("%s\n", c->args[0]);
    print_lines(ct_tokenizer_notes(tok));
    printf("  model: %s\n  ids: %d, tokens: %d, merges: %d\n", ct_tokenizer_model_kind(tok), ct_tokenizer_vocab_size(tok),
           ct_tokenizer_n_tokens(tok), ct_tokenizer_n_merges(tok));
    print_token(tok, "bos", ct_tokenizer_bos_id(tok));
    print_token(tok, "eos", ct_tokenizer_eos_id(tok));
    print_token(tok, "pad", ct_tokenizer_pad_id(tok));
    print_specials(tok);
    print_lines(ct_tokenizer_pipeline(tok));
    printf("  chat template: %s\n", ct_tokenizer_has_chat_template(tok) ? "there" : "none");
    const ct_status st = print_files(c->alloc, c->args[0], err);
    fputs(ct_tokenizer_warnings(tok), stderr);
    ct_tokenizer_destroy(&tok);
    return st;
}

/* X(name, what it takes, what it does) */
static const struct {
    const char *name, *args, *what;
    ct_status (*run)(const call *c, ct_err *err);
} commands[] = {
    {"train", "FILE_OR_FOLDER... --vocab-size N --output DIR", "trains a byte-level BPE vocabulary on the files that training reads (.jsonl, .txt; also .gz, .zst)", cmd_train},
    {"encode", "DIR TEXT | DIR --json-lines", "prints the ids of a text (- for standard input), or of each line", cmd_encode},
    {"decode", "DIR ID... | DIR --json-lines", "prints the text of ids", cmd_decode},
    {"info", "DIR", "prints what a folder holds: model, sizes, special tokens, pipeline, files", cmd_info},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *to)
{
    for (int i = 0; i < N_COMMANDS; i++) {
        fprintf(to, "%s ctitan tokenizer %-6s %s\n         %s\n", i == 0 ? "usage:" : "      ", commands[i].name, commands[i].args,
                commands[i].what);
    }
}

/* Options and what follows them go to options[], the rest to args[]. A '-' alone and negative numbers are no options; nothing is after "--". */
static int split(int argc, char **argv, char **out_options, const char **out_args, size_t *out_n_args)
{
    int n_options = 1;
    out_options[0] = argv[0];
    *out_n_args = 0;
    bool all_args = false;
    for (int i = 2; i < argc; i++) {
        if (all_args || (strncmp(argv[i], "--", 2) != 0 && strcmp(argv[i], "-h") != 0)) {
            out_args[(*out_n_args)++] = argv[i];
            continue;
        }
        all_args = strcmp(argv[i], "--") == 0;
        if (all_args) {
            continue;
        }
        out_options[n_options++] = argv[i];
        const ct_field *f = ct_field_find(fields, N_FIELDS, argv[i] + 2);
        if (f != NULL && f->kind != CT_FIELD_BOOL && strchr(argv[i], '=') == NULL && i + 1 < argc) {
            out_options[n_options++] = argv[++i];
        }
    }
    return n_options;
}

static ct_status dispatch(const ct_alloc *alloc, int argc, char **argv, ct_arena *arena, ct_err *err)
{
    char **opts = ct_arena_alloc(arena, (size_t)(argc + 1) * sizeof *opts, err);
    const char **args = ct_arena_alloc(arena, (size_t)(argc + 1) * sizeof *args, err);
    if (opts == NULL || args == NULL) {
        return CT_ERR_MEMORY;
    }
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++) {
        names[i] = commands[i].name;
        if (argc < 2 || strcmp(argv[1], commands[i].name) != 0) {
            continue;
        }
        options o;
        bool done = false;
        call c = {.alloc = alloc, .o = &o, .args = args};
        const int n_options = split(argc, argv, opts, args, &c.n_args);
        const char *usage = ct_arena_printf(arena, err, "ctitan tokenizer %s %s", commands[i].name, commands[i].args);
        const cti_command_help help = {usage != NULL ? usage : "", commands[i].what, commands[i].name};
        CT_TRY(cti_options_parse(n_options, opts, fields, N_FIELDS, &o, &help, arena, &done, err));
        return done ? CT_OK : commands[i].run(&c, err);
    }
    if (argc < 2) {
        print_usage(stderr);
        return CT_FAIL(err, CT_ERR_USAGE, "a sub-command is wanted");
    }
    const int nearest = cti_nearest(argv[1], names, N_COMMANDS);
    return CT_FAIL(err, CT_ERR_USAGE, "there is no sub-command '%s'%s%s; there are train, encode, decode and info", argv[1],
                   nearest >= 0 ? ", nearest is " : "", nearest >= 0 ? names[nearest] : "");
}

int cti_cmd_tokenizer(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_usage(stdout);
        return 0;
    }
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    ct_arena *arena = NULL;
    ct_status st = ct_arena_create(alloc, 0, &arena, &err);
    if (st == CT_OK) {
        st = dispatch(alloc, argc, argv, arena, &err);
    }
    ct_arena_destroy(&arena);
    return st == CT_OK ? 0 : cti_report("tokenizer", st, &err);
}
