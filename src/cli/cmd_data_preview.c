/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan data preview`: rows of tokens as text, as training sees them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/cmd_data.h"
#include "cli/options.h"
#include "data/data.h"

/* clang-format off */
#define OPTIONS(X) \
    X(dataset, STR, "c4_test", "1", "", "", "", 0, NULL, "name of a data set") \
    X(dataset_path, OPT_STR, "None", "1", "", "", "", 0, NULL, "file, folder or pattern that holds the documents") \
    X(sources, TOKENS, "", "", "", "", "", 0, NULL, "several of them mixed, PATH:WEIGHT each") \
    X(text_field, STR, "text", "1", "", "", "", 0, NULL, "member of each JSON line that holds the text") \
    X(hf_assets_path, STR, "", "", "", "", "", 0, NULL, "tokenizer folder; empty: the one that comes with ctitan") \
    CTI_CHAT_OPTIONS(X) \
    X(special_text, CHOICE, "text", "", "", "text|match", "", 0, NULL, "special tokens spelt out in documents: text, or their ids") \
    X(step, I64, "1", "1", "", "", "", 0, NULL, "the step to show") \
    X(rows, I64, "4", "1", "4096", "", "rows", 0, NULL, "rows of a step (global batch size)") \
    X(streams, I64, "1", "1", "4096", "", "streams", 0, NULL, "streams that share the rows of a step; must divide them") \
    X(seq_len, I64, "256", "1", "1048576", "", "tokens", 0, NULL, "length of a row") \
    X(packing, CHOICE, "concat-then-split", "", "", "concat-then-split|first-fit", "", 0, NULL, "how rows are made of documents") \
    X(num_packing_bins, I64, "8", "1", "1024", "", "rows", 0, NULL, "rows that first-fit keeps open") \
    X(shuffle, BOOL, "false", "", "", "", "", 0, NULL, "documents in a permuted order") \
    X(seed, I64, "42", "0", "", "", "", 0, NULL, "seed of that order") \
    X(bad_records, CHOICE, "fail", "", "", "fail|skip", "", 0, NULL, "what a document that cannot be used does") \
    X(chars, I64, "160", "0", "", "", "characters", 0, NULL, "text shown of a piece, from both its ends; 0: all")
/* clang-format on */
CTI_OPTIONS(OPTIONS);

typedef struct view {
    const ct_alloc *alloc;
    const options *o;
    bool color;
    cti_env env;
    ct_tokenizer *tokenizer;
    ct_text_processor processor;
    ct_chat *chat; /* NULL: documents are texts */
    ct_sources sources;
    int32_t *room; /* owns; of the batch */
    ct_batch batch;
    cti_str text, shown;
    int64_t n_tokens, n_padding, n_masked, n_pieces;
    int64_t n_long, n_bad; /* of the documents read up to here */
} view;

/* --- text ---------------------------------------------------------------------------------------------------------- */

static const char *paint(const view *v, const char *code)
{
    return v->color ? code : "";
}

/* Control characters and bytes that are no UTF-8 (a character cut by a row's end) must not reach a terminal. */
static void add_shown(cti_str *out, const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    while (p < end) {
        uint32_t c = 0;
        const int n = cti_utf8_decode(p, end, &c);
        if (n > 0 && c == '\n') {
            cti_str_add(out, "\\n");
        } else if (n > 0 && c == '\t') {
            cti_str_add(out, "\\t");
        } else if (n <= 0 || c < 0x20 || (c >= 0x7f && c < 0xa0)) {
            cti_str_printf(out, "\\x%02x", n > 0 ? c : *p);
        } else {
            cti_str_add_n(out, (const char *)p, (size_t)n);
        }
        p += n > 0 ? n : 1;
    }
}

static bool is_tail(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Characters of UTF-8 text; ill-formed bytes count as what they look like. */
static int64_t count_chars(const char *text, size_t size)
{
    int64_t n = 0;
    for (size_t i = 0; i < size; i++) {
        n += !is_tail(text[i]);
    }
    return n;
}

/* The byte at which character number `at` begins. */
static size_t byte_of(const char *text, size_t size, int64_t at)
{
    size_t i = 0;
    for (int64_t n = -1; i < size; i++) {
        n += !is_tail(text[i]);
        if (n == at) {
            break;
        }
    }
    return i;
}

/* The text of ids, cut in its middle where it is longer than `most` characters (0: never), and fit for a terminal. */
static ct_status show_ids(view *v, const int32_t *ids, int64_t n, int64_t most, ct_err *err)
{
    cti_str_reset(&v->text);
    CT_TRY(ct_tokenizer_decode(v->tokenizer, ids, n, 0, &v->text, err));
    CT_TRY(cti_str_check(&v->text, err));
    const char *text = cti_str_text(&v->text);
    const size_t size = v->text.len;
    const int64_t n_chars = count_chars(text, size);
    if (most == 0 || n_chars <= most + 30) { /* what stands for the rest takes room, too */
        add_shown(&v->shown, text, size);
        return CT_OK;
    }
    const int64_t back = most / 3, front = most - back;
    const size_t end = byte_of(text, size, front), begin = byte_of(text, size, n_chars - back);
    add_shown(&v->shown, text, end);
    cti_str_printf(&v->shown, " %s[... %" PRId64 " characters ...]%s ", paint(v, "\033[2m"), n_chars - most, paint(v, "\033[22m"));
    add_shown(&v->shown, text + begin, size - begin);
    return CT_OK;
}

/* --- rows ---------------------------------------------------------------------------------------------------------- */

/* Tokens [at, at + n) of one document: runs whose labels count and runs whose labels do not, then the last label. */
static ct_status show_piece(view *v, int64_t at, int64_t n, ct_err *err)
{
    const ct_batch *b = &v->batch;
    const int64_t most = v->o->chars;
    int64_t masked = 0;
    cti_str_reset(&v->shown);
    /* Token k of the piece is learned if the label before it counts; the first is what the others follow. */
    for (int64_t from = 0; from < n;) {
        const bool is_masked = from > 0 && b->labels[at + from - 1] == CT_LABEL_IGNORE;
        int64_t to = from + 1;
        while (to < n && (b->labels[at + to - 1] == CT_LABEL_IGNORE) == is_masked) {
            to++;
        }
        if (is_masked) {
            cti_str_add(&v->shown, v->color ? "\033[2;3m" : "((");
        }
        CT_TRY(show_ids(v, b->tokens + at + from, to - from, most, err));
        if (is_masked) {
            cti_str_add(&v->shown, v->color ? "\033[22;23m" : "))");
        }
        from = to;
    }
    for (int64_t i = 0; i < n; i++) {
        masked += b->labels[at + i] == CT_LABEL_IGNORE;
    }
    v->n_masked += masked;
    const int32_t last = b->labels[at + n - 1];
    if (last != CT_LABEL_IGNORE) {
        cti_str_printf(&v->shown, " %s->%s ", paint(v, "\033[2m"), paint(v, "\033[22m"));
        CT_TRY(show_ids(v, &last, 1, 0, err));
    }
    return cti_str_check(&v->shown, err);
}

/* One row of the batch. is_rest: it begins within a document; is_cut: so does the next row. */
static ct_status print_row(view *v, int64_t number, int64_t stream, bool is_rest, bool is_cut, ct_err *err)
{
    static const char *const colors[] = {"\033[36m", "\033[33m"};
    const ct_batch *b = &v->batch;
    const int64_t n = v->o->seq_len;
    int64_t real = n, n_documents = 0;
    while (real > 0 && b->tokens[real - 1] == 0 && b->labels[real - 1] == CT_LABEL_IGNORE && b->positions[real - 1] == 0) {
        real--;
    }
    for (int64_t i = 0; i < b->n_segments && b->segments[4 * i] < real; i++) {
        n_documents++;
    }
    printf("\n%srow %" PRId64 "%s", paint(v, "\033[1m"), number, paint(v, "\033[22m"));
    if (v->o->streams > 1) {
        printf(" (stream %" PRId64 ")", stream);
    }
    printf("  %" PRId64 " piece%s, %" PRId64 " of %" PRId64 " labels count", n_documents, n_documents == 1 ? "" : "s", b->n_valid, n);
    printf(n > real ? ", %" PRId64 " padding\n" : "\n", n - real);
    for (int64_t i = 0; i < n_documents; i++) {
        const int64_t at = b->segments[4 * i], size = b->segments[4 * i + 1];
        CT_TRY(show_piece(v, at, size, err));
        printf("  %6" PRId64 " .. %-6" PRId64 " %s%s%s%s%s\n", at, at + size - 1, paint(v, colors[(v->n_pieces++) % 2]),
               i == 0 && is_rest ? "... " : "", cti_str_text(&v->shown), i + 1 == n_documents && is_cut ? " ..." : "", paint(v, "\033[39m"));
    }
    if (n > real) {
        printf("  %6" PRId64 " .. %-6" PRId64 " %s(padding)%s\n", real, n - 1, paint(v, "\033[2m"), paint(v, "\033[22m"));
    }
    v->n_tokens += real;
    v->n_padding += n - real;
    return CT_OK;
}

/* The rows of one stream, which come one by one so that it is known where each begins. */
static ct_status print_stream(view *v, const ct_processor *processor, int64_t stream, ct_err *err)
{
    const options *o = v->o;
    const int64_t rows = o->rows / o->streams, skipped = (o->step - 1) * rows;
    const ct_loader_options loading = {.seq_len = o->seq_len,
                                       .rows = o->streams,
                                       .streams = o->streams,
                                       .first_stream = stream,
                                       .n_local_streams = 1,
                                       .bad_policy = strcmp(o->bad_records, "skip") == 0 ? CT_BAD_SKIP : CT_BAD_FAIL,
                                       .repeat = true,
                                       .shuffle = o->shuffle,
                                       .seed = o->seed,
                                       .packing = strcmp(o->packing, "first-fit") == 0 ? CT_PACK_FIRST_FIT : CT_PACK_SPLIT,
                                       .packing_bins = (int32_t)o->num_packing_bins}; /* bounds of the option */
    ct_loader *loader = NULL;
    CT_TRY(ct_loader_create(v->alloc, v->sources.items, v->sources.n, processor, &loading, &loader, err));
    int64_t *state = CT_NEW_ARRAY(v->alloc, int64_t, ct_stream_state_width(v->sources.n), err);
    ct_status st = state != NULL ? CT_OK : CT_ERR_MEMORY;
    bool is_rest = false;
    for (int64_t i = 0; st == CT_OK && i < skipped + rows; i++) {
        st = ct_loader_next(loader, &v->batch, err);
        if (st == CT_OK) {
            ct_loader_state(loader, state);
            const bool is_cut = ct_stream_state_token(state) > 0;
            if (i >= skipped) {
                st = print_row(v, stream * rows + i - skipped, stream, is_rest, is_cut, err);
            }
            is_rest = is_cut;
        }
    }
    const ct_loader_stats stats = ct_loader_get_stats(loader);
    v->n_long += stats.n_long;
    v->n_bad += stats.n_bad_total;
    ct_alloc_free(v->alloc, state);
    ct_loader_destroy(&loader);
    return st;
}

static ct_status open_chat(view *v, const char *folder, ct_err *err)
{
    const options *o = v->o;
    const ct_chat_options chat = {.template_path = o->chat_template,
                                  .question_field = o->question_field,
                                  .answer_field = o->answer_field,
                                  .max_tokens = o->seq_len,
                                  .match_special = (v->processor.flags & CT_ENCODE_MATCH_SPECIAL) != 0,
                                  .date = o->chat_date};
    return ct_chat_open(v->alloc, folder, v->tokenizer, &chat, &v->chat, err);
}

static ct_status open_all(view *v, ct_err *err)
{
    const options *o = v->o;
    CT_TRY(cti_env_create(v->alloc, &v->env, err));
    char *folder = o->hf_assets_path[0] != '\0' ? ct_alloc_strdup(v->alloc, o->hf_assets_path, err)
                                                : cti_path_join(v->alloc, v->env.share_dir, "tokenizer", err);
    if (folder == NULL) {
        return CT_ERR_MEMORY;
    }
    const bool is_chat = strcmp(o->format, "chat") == 0;
    const ct_corpus_options corpus = {.text_field = o->text_field, .records = is_chat};
    const ct_sources_options sources = {.dataset = o->dataset,
                                        .dataset_path = o->dataset_path,
                                        .share_dir = v->env.share_dir,
                                        .specs = o->sources.items,
                                        .n_specs = o->sources.n,
                                        .corpus = &corpus};
    ct_status st = ct_tokenizer_open(v->alloc, folder, NULL, &v->tokenizer, err);
    v->processor = (ct_text_processor){.flags = CT_ENCODE_DOCUMENT | (strcmp(o->special_text, "match") == 0 ? CT_ENCODE_MATCH_SPECIAL : 0u),
                                       .tokenizer = v->tokenizer};
    if (st == CT_OK && is_chat) {
        st = open_chat(v, folder, err);
    }
    ct_alloc_free(v->alloc, folder);
    CT_TRY(st);
    CT_TRY(ct_sources_open(v->alloc, &sources, &v->sources, err));
    v->room = CT_NEW_ARRAY(v->alloc, int32_t, 7 * o->seq_len, err);
    v->batch = (ct_batch){.tokens = v->room,
                          .labels = v->room + o->seq_len,
                          .positions = v->room + 2 * o->seq_len,
                          .segments = v->room + 3 * o->seq_len,
                          .segments_cap = o->seq_len};
    return v->room != NULL ? CT_OK : CT_ERR_MEMORY;
}

static ct_status preview(view *v, ct_err *err)
{
    const options *o = v->o;
    const ct_processor processor = v->chat != NULL ? ct_processor_of_chat(v->chat) : ct_processor_of_text(&v->processor);
    char number[32];
    for (int32_t i = 0; i < v->sources.n; i++) {
        printf("%s: %s documents", v->sources.paths[i], cti_format_thousands(ct_corpus_n_documents(v->sources.corpora[i]), number));
        printf(v->sources.n > 1 ? ", weight %g\n" : "\n", v->sources.items[i].weight);
    }
    printf("step %" PRId64 ": %" PRId64 " rows of %" PRId64 " tokens, %s, %s", o->step, o->rows, o->seq_len, o->packing,
           o->shuffle ? "shuffled" : "in file order");
    printf(o->shuffle ? " with seed %" PRId64 "\n" : "\n", o->seed);
    if (!v->color) {
        printf("(A line is a piece of one document. ...: the document begins or goes on in another row. ((text)): not learned. ->: the last label.)\n");
    } else {
        printf("\033[2m(A line is a piece of one document. ...: the document begins or goes on in another row. \033[3mfaint\033[23m: not learned. ->: the last label.)\033[22m\n");
    }
    for (int64_t s = 0; s < o->streams; s++) {
        CT_TRY(print_stream(v, &processor, s, err));
    }
    const double share = v->n_tokens + v->n_padding > 0 ? 100.0 * (double)v->n_padding / (double)(v->n_tokens + v->n_padding) : 0.0;
    printf("\n%s tokens", cti_format_thousands(v->n_tokens, number));
    printf(", %s of them without a label that counts", cti_format_thousands(v->n_masked, number));
    printf(", and %s of padding (%.1f%%)\n", cti_format_thousands(v->n_padding, number), share);
    if (v->n_long > 0) {
        printf("left out up to here: %s of more tokens than a row\n", cti_format_thousands(v->n_long, number));
    }
    if (v->n_bad > 0) {
        printf("left out up to here: %s that cannot be used (" CTI_PROGRAM " data inspect names them)\n", cti_format_thousands(v->n_bad, number));
    }
    return CT_OK;
}

static ct_status run(const ct_alloc *alloc, const options *o, ct_err *err)
{
    const char *term = getenv("TERM");
    view v = {.alloc = alloc, .o = o, .text = {.alloc = alloc}, .shown = {.alloc = alloc}};
    v.color = isatty(STDOUT_FILENO) == 1 && term != NULL && strcmp(term, "dumb") != 0 && getenv("NO_COLOR") == NULL;
    if (o->rows % o->streams != 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "--streams: %" PRId64 " streams do not divide %" PRId64 " rows", o->streams, o->rows);
    }
    if (o->sources.n > 0 && o->dataset_path != NULL) {
        return CT_FAIL(err, CT_ERR_USAGE, "--sources say where all the documents are: leave --dataset-path out");
    }
    if (o->step - 1 > INT64_MAX / o->rows) {
        return CT_FAIL(err, CT_ERR_USAGE, "--step: %" PRId64 " is too large", o->step);
    }
    ct_status st = open_all(&v, err);
    if (st == CT_OK) {
        st = preview(&v, err);
    }
    ct_alloc_free(alloc, v.room);
    cti_str_deinit(&v.text);
    cti_str_deinit(&v.shown);
    ct_sources_close(&v.sources);
    ct_chat_destroy(&v.chat);
    ct_tokenizer_destroy(&v.tokenizer);
    cti_env_deinit(alloc, &v.env);
    return st;
}

int cti_cmd_data_preview(int argc, char **argv)
{
    static const cti_command_help help = {CTI_PROGRAM " data preview [PATH] [options]",
                                          "Prints the rows of a step as text: which documents they hold, where each begins and ends, which\n"
                                          "tokens are not learned. The options are those of `ctitan train` under dataloader and training. PATH: --dataset-path.",
                                          NULL};
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    ct_arena *arena = NULL;
    options o;
    bool done = false;
    ct_status st = ct_arena_create(alloc, 0, &arena, &err);
    char **words = NULL;
    if (st == CT_OK) {
        words = ct_arena_alloc(arena, (size_t)(argc + 1) * sizeof *words, &err);
        st = words != NULL ? CT_OK : CT_ERR_MEMORY;
    }
    const bool has_path = argc >= 2 && argv[1][0] != '-';
    for (int i = 0; st == CT_OK && i < argc; i++) {
        words[i] = i == 1 && has_path ? ct_arena_printf(arena, &err, "--dataset-path=%s", argv[i])
                                      : cti_data_short_option(argv[i], arena, &err);
        st = words[i] != NULL ? CT_OK : CT_ERR_MEMORY;
    }
    if (st == CT_OK) {
        st = cti_options_parse(argc, words, fields, N_FIELDS, &o, &help, arena, &done, &err);
    }
    if (st == CT_OK && !done) {
        st = run(alloc, &o, &err);
    }
    ct_arena_destroy(&arena);
    return st == CT_OK ? 0 : cti_report("data preview", st, &err);
}
