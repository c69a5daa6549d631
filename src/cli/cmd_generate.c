/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan generate`: text from a checkpoint or a Hugging Face folder. */
#include "cli/cmd_generate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "backend/backend.h"
#include "base/base.h"
#include "cli/generate.h"
#include "cli/options.h"
#include "data/chat.h"

/* clang-format off */
#define OPTIONS(X) \
    X(checkpoint, STR, "", "", "", "", "", 0, NULL, "folder of checkpoints, one step-<N> folder of it, or a Hugging Face folder (config.json, *.safetensors)") \
    X(step, I64, "-1", "-1", "", "", "", 0, NULL, "the step to take; -1: the newest") \
    X(prompt, TOKENS, "", "", "", "", "", CT_SET_REPEATED, NULL, "text to go on from; may be given several times") \
    X(prompts, OPT_STR, "None", "", "", "", "", 0, NULL, "file of prompts, one a line (-: standard input); .jsonl: strings, or objects with prompt or messages") \
    X(chat, BOOL, "false", "", "", "", "", 0, NULL, "prompts are questions: the chat template is put round each") \
    X(messages, OPT_STR, "None", "", "", "", "", 0, NULL, "file of a conversation to answer: a JSON list of objects with role and content (-: standard input)") \
    X(chat_template, OPT_STR, "None", "1", "", "", "", 0, NULL, "chat: file of the template; None: the run's, else the tokenizer's") \
    X(chat_date, OPT_STR, "None", "1", "", "", "", 0, NULL, "chat: YYYY-MM-DD that a template's strftime_now shows; None: the run's") \
    X(special_text, CHOICE, "text", "", "", "text|match", "", 0, NULL, "special tokens spelt out in a prompt stay text or become ids") \
    X(max_new_tokens, I64, "64", "1", "1048576", "", "tokens", 0, NULL, "tokens to write at most") \
    X(temperature, F64, "0.8", "0", "100", "", "", 0, NULL, "0: always the likeliest token") \
    X(top_k, I64, "50", "0", "", "", "tokens", 0, NULL, "draw from the likeliest k; 0: from all") \
    X(top_p, F64, "1", "0", "1", "", "", 0, NULL, "draw from the likeliest that together have this probability; 1: from all") \
    X(min_p, F64, "0", "0", "1", "", "", 0, NULL, "draw from those of at least this share of the likeliest one's probability; 0: from all") \
    X(repetition_penalty, F64, "1", "0.01", "100", "", "", 0, NULL, "above 1: tokens of the prompt and the text become less likely; 1: off") \
    X(seed, OPT_I64, "None", "0", "", "", "", 0, NULL, "seed of the draw; None: a new one, which is told") \
    X(stop, TOKENS, "", "", "", "", "", CT_SET_REPEATED, NULL, "text that ends the answer, and is not printed; may be given several times") \
    X(stop_token, TOKENS, "", "", "", "", "", CT_SET_REPEATED, NULL, "token (or its id) that ends the answer, beside EOS; may be given several times") \
    X(ignore_eos, BOOL, "false", "", "", "", "", 0, NULL, "go on where the model ends its text") \
    X(echo, BOOL, "true", "", "", "", "", 0, NULL, "print a prompt before what follows it (never with --chat); --no-echo: not") \
    X(json_lines, BOOL, "false", "", "", "", "", 0, NULL, "one JSON object a prompt: prompt, text, ids, counts and what ended it") \
    X(dtype, CHOICE, "float32", "", "", "float32|bfloat16", "", 0, NULL, "of weights and arithmetic") \
    X(run_overrides, BOOL, "true", "", "", "", "", 0, NULL, "with the overrides of the run; --no-run-overrides: without") \
    X(hf_assets_path, STR, "", "", "", "", "", 0, NULL, "tokenizer folder; empty: the one of the run, or beside the weights") \
    X(device, CHOICE, "cpu", "", "", "cpu|npu|ref", "", 0, NULL, "what computes; npu: the first one that is visible")
/* clang-format on */
CTI_OPTIONS(OPTIONS);

typedef struct session {
    const ct_alloc *alloc;
    const options *o;
    cti_gen_model model;
    cti_prompts prompts;
    cti_gen_stops stops;
    ct_chat *chat; /* opened at the first conversation */
    int64_t seed;
} session;

/* ---- prompts to ids ---------------------------------------------------------------------------------------------- */

/* A template or date that nothing would ask for. */
static ct_status check_chat_options(const session *s, ct_err *err)
{
    bool has_chat = s->o->chat;
    for (size_t i = 0; i < s->prompts.n && !has_chat; i++) {
        has_chat = s->prompts.items[i].messages != NULL;
    }
    if (!has_chat && (s->o->chat_template != NULL || s->o->chat_date != NULL)) {
        return CT_FAIL(err, CT_ERR_USAGE, "%s: no prompt is a conversation; --chat or messages are wanted",
                       s->o->chat_template != NULL ? "--chat-template" : "--chat-date");
    }
    return CT_OK;
}

static ct_status collect(session *s, ct_err *err)
{
    const options *o = s->o;
    if (o->prompts != NULL && o->messages != NULL && cti_str_eq(o->prompts, "-") && cti_str_eq(o->messages, "-")) {
        return CT_FAIL(err, CT_ERR_USAGE, "--prompts and --messages cannot both be standard input");
    }
    for (int64_t i = 0; i < o->prompt.n; i++) {
        CT_TRY(cti_prompts_add_text(&s->prompts, "--prompt", o->prompt.items[i], strlen(o->prompt.items[i]), err));
    }
    if (o->prompts != NULL) {
        CT_TRY(cti_prompts_add_lines(&s->prompts, o->prompts, err));
    }
    if (o->messages != NULL) {
        CT_TRY(cti_prompts_add_messages(&s->prompts, o->messages, err));
    }
    CT_TRY(check_chat_options(s, err));
    if (s->prompts.n > 0) {
        return CT_OK;
    }
    return o->chat ? CT_FAIL(err, CT_ERR_USAGE, "--chat: a question is wanted (--prompt, --prompts or --messages)")
                   : cti_prompts_add_text(&s->prompts, "--prompt", "", 0, err); /* as the model begins by itself */
}

/* Template and date as the options say, else as the run had them. */
static ct_status open_chat(session *s, ct_err *err)
{
    if (s->chat != NULL) {
        return CT_OK;
    }
    const json_t *extra = s->model.ckpt != NULL ? ct_ckpt_extra(s->model.ckpt) : NULL;
    const json_t *run = json_object_get(json_object_get(extra, "config"), "dataloader");
    const ct_chat_options how = {
        .template_path = s->o->chat_template != NULL ? s->o->chat_template : json_string_value(json_object_get(run, "chat_template")),
        .date = s->o->chat_date != NULL ? s->o->chat_date : json_string_value(json_object_get(run, "chat_date"))};
    const ct_status st = ct_chat_open(s->alloc, s->model.assets, s->model.tokenizer, &how, &s->chat, err);
    if (st != CT_OK && s->o->chat_template == NULL && how.template_path != NULL) {
        ct_err_prefix(err, "the chat template of the run (--chat-template names another)");
    }
    return st;
}

/* Messages with the beginning of an answer. */
static ct_status encode_chat(session *s, cti_prompt *p, ct_err *err)
{
    cti_str text = {.alloc = s->alloc};
    if (p->messages == NULL) {
        p->messages = json_pack("[{s:s, s:s%}]", "role", "user", "content", p->text, p->text_size);
        if (p->messages == NULL) {
            return CT_FAIL(err, CT_ERR_USAGE, "text in UTF-8 is wanted");
        }
    }
    CT_TRY(open_chat(s, err));
    ct_status st = ct_chat_render(s->chat, p->messages, p->tools, true, &text, err);
    if (st == CT_OK) {
        const unsigned flags = ct_chat_encode_flags(s->chat, cti_str_text(&text), text.len);
        st = ct_tokenizer_encode(s->model.tokenizer, cti_str_text(&text), text.len, flags, &p->ids, err);
    }
    cti_str_deinit(&text);
    return st;
}

static ct_status encode(session *s, cti_prompt *p, ct_err *err)
{
    const unsigned match = cti_str_eq(s->o->special_text, "match") ? CT_ENCODE_MATCH_SPECIAL : 0;
    if (s->o->chat || p->messages != NULL) {
        CT_TRY(encode_chat(s, p, err));
    } else {
        CT_TRY(ct_tokenizer_encode(s->model.tokenizer, p->text, p->text_size, CT_ENCODE_BOS | CT_ENCODE_TEMPLATE | match, &p->ids, err));
    }
    if (p->ids.n == 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "an empty prompt gives nothing to go on from: the tokenizer has no BOS token");
    }
    if (p->ids.n >= s->model.context) {
        return CT_FAIL(err, CT_ERR_USAGE, "the prompt has %" PRId64 " tokens, the model is made for %" PRId64 " with what it writes", p->ids.n,
                       s->model.context);
    }
    return CT_OK;
}

/* All prompts before any weight is read; *out_longest is what the cache must hold. */
static ct_status encode_all(session *s, int64_t *out_longest, ct_err *err)
{
    *out_longest = 0;
    for (size_t i = 0; i < s->prompts.n; i++) {
        cti_prompt *p = &s->prompts.items[i];
        const ct_status st = encode(s, p, err);
        if (st != CT_OK) {
            ct_err_prefix(err, "%s", p->place);
            return st;
        }
        *out_longest = cti_max_i64(*out_longest, cti_min_i64(p->ids.n + s->o->max_new_tokens, s->model.context));
    }
    return CT_OK;
}

/* ---- ids to text ------------------------------------------------------------------------------------------------- */

/* One answer on its way. */
typedef struct answer {
    ct_tokens ids;
    cti_str text;  /* all of it */
    size_t shown;  /* bytes of it that are printed */
    const char *end; /* NULL: goes on */
    double read_seconds, write_seconds;
} answer;

static void show(const session *s, answer *a, size_t upto)
{
    if (!s->o->json_lines && upto > a->shown) {
        fwrite(cti_str_text(&a->text) + a->shown, 1, upto - a->shown, stdout);
        fflush(stdout);
    }
    a->shown = upto;
}

/* Prints what cannot be part of a stop text; a stop text ends the answer and is cut off. */
static void look_for_stop(session *s, answer *a)
{
    bool is_end;
    const char *rest = cti_str_text(&a->text) + a->shown;
    const size_t n = cti_gen_stops_shown(&s->stops, rest, a->text.len - a->shown, &is_end);
    show(s, a, a->shown + n);
    if (is_end) {
        a->text.len = a->shown;
        a->text.data[a->text.len] = '\0';
        a->end = "stop";
    }
}

/* What the draw gave: an end, or a piece of text. */
static ct_status take(session *s, answer *a, ct_decode_stream *stream, int32_t id, ct_err *err)
{
    size_t token_size;
    if (cti_gen_stops_has(&s->stops, id)) {
        a->end = "eos";
        return CT_OK;
    }
    CT_TRY(ct_tokens_push(&a->ids, id, err));
    if (ct_tokenizer_token_of(s->model.tokenizer, id, &token_size) != NULL) { /* a row of the head that no token has: nothing */
        CT_TRY(ct_decode_stream_push(stream, s->model.tokenizer, id, CT_DECODE_SKIP_SPECIAL, &a->text, err));
    }
    CT_TRY(cti_str_check(&a->text, err));
    look_for_stop(s, a);
    return CT_OK;
}

static ct_status write_answer(session *s, size_t index, answer *a, ct_err *err)
{
    const options *o = s->o;
    const cti_prompt *p = &s->prompts.items[index];
    const cti_sampling sampling = {o->temperature, o->top_k, o->top_p, o->min_p, o->repetition_penalty};
    char name[48];
    (void)snprintf(name, sizeof name, index == 0 ? "generate" : "generate %zu", index);
    const cti_rng_key key = cti_rng_key_make((uint64_t)s->seed, name);
    ct_decode_stream stream = {0};
    const int64_t start = cti_now_ns(), room = cti_min_i64(o->max_new_tokens, s->model.context - p->ids.n);
    cti_generator_reset(s->model.gen);
    CT_TRY(cti_generator_feed(s->model.gen, p->ids.ids, p->ids.n, err));
    a->read_seconds = cti_seconds_since(start);
    const int64_t written_from = cti_now_ns();
    while (a->end == NULL) {
        int32_t id;
        CT_TRY(cti_generator_sample(s->model.gen, &sampling, key, &id, err));
        CT_TRY(take(s, a, &stream, id, err));
        if (a->end == NULL && a->ids.n == room) {
            a->end = room < o->max_new_tokens ? "context" : "length";
        } else if (a->end == NULL) {
            CT_TRY(cti_generator_feed(s->model.gen, &id, 1, err));
        }
    }
    a->write_seconds = cti_seconds_since(written_from);
    if (!cti_str_eq(a->end, "stop")) {
        ct_decode_stream_finish(&stream, &a->text);
        CT_TRY(cti_str_check(&a->text, err));
        look_for_stop(s, a);
        show(s, a, a->text.len);
    }
    return CT_OK;
}

/* {"prompt": …, "text": …, …} */
static ct_status print_json(const session *s, const cti_prompt *p, const answer *a, ct_err *err)
{
    char *line = NULL;
    json_t *ids = json_array();
    for (int64_t i = 0; i < a->ids.n; i++) {
        (void)json_array_append_new(ids, json_integer(a->ids.ids[i])); /* memory: seen below */
    }
    const bool has_all = ids != NULL && (int64_t)json_array_size(ids) == a->ids.n;
    json_t *prompt = p->text != NULL ? json_stringn(p->text, p->text_size) : json_incref(p->messages);
    json_t *json = json_pack("{s:o?, s:s%, s:o, s:I, s:I, s:s}", p->text != NULL ? "prompt" : "messages", prompt, "text", cti_str_text(&a->text),
                             a->text.len, "ids", ids, "prompt_tokens", (json_int_t)p->ids.n, "tokens", (json_int_t)a->ids.n, "end", a->end);
    ct_status st = json != NULL && has_all ? cti_json_dump(s->alloc, json, 0, &line, err) : CT_FAIL(err, CT_ERR_MEMORY, "out of memory for an answer");
    if (st == CT_OK) {
        fputs(line, stdout);
        fputs(strchr(line, '\n') == NULL ? "\n" : "", stdout);
        fflush(stdout);
    }
    json_decref(json);
    ct_alloc_free(s->alloc, line);
    return st;
}

static double rate(int64_t n, double seconds)
{
    return seconds > 0.0 ? (double)n / seconds : 0.0;
}

static ct_status one_prompt(session *s, size_t index, ct_err *err)
{
    const cti_prompt *p = &s->prompts.items[index];
    answer a = {.ids = {.alloc = s->alloc}, .text = {.alloc = s->alloc}};
    const bool is_text = !s->o->json_lines;
    if (is_text && s->prompts.n > 1) {
        printf("%s--- %zu of %zu ---\n", index > 0 ? "\n" : "", index + 1, s->prompts.n);
    }
    if (is_text && s->o->echo && p->messages == NULL) {
        fwrite(p->text, 1, p->text_size, stdout);
        fflush(stdout);
    }
    ct_status st = write_answer(s, index, &a, err);
    if (is_text) {
        printf("\n");
        fflush(stdout);
    } else if (st == CT_OK) {
        st = print_json(s, p, &a, err);
    }
    if (st == CT_OK && ferror(stdout) != 0) {
        st = CT_FAIL(err, CT_ERR_IO, "standard output cannot be written");
    }
    if (st == CT_OK) {
        fprintf(stderr, "read %" PRId64 " tokens (%.0f tokens/s), wrote %" PRId64 " (%.1f tokens/s), ended by %s\n", p->ids.n,
                rate(p->ids.n, a.read_seconds), a.ids.n, rate(a.ids.n, a.write_seconds), a.end);
    } else {
        ct_err_prefix(err, "%s", p->place);
    }
    ct_tokens_deinit(&a.ids);
    cti_str_deinit(&a.text);
    return st;
}

/* ---- the command --------------------------------------------------------------------------------------------------- */

static ct_status collect_stops(session *s, ct_err *err)
{
    s->stops.texts = s->o->stop;
    for (int64_t i = 0; i < s->o->stop.n; i++) {
        const char *text = s->o->stop.items[i];
        if (text[0] == '\0') {
            return CT_FAIL(err, CT_ERR_USAGE, "--stop: an empty text would end every answer at once");
        }
        CT_TRY(cti_gen_check_utf8("--stop", text, strlen(text), err));
    }
    for (int64_t i = 0; i < s->o->stop_token.n; i++) {
        CT_TRY(cti_gen_stops_add_token(&s->stops, s->model.tokenizer, s->o->stop_token.items[i], err));
    }
    return s->o->ignore_eos ? CT_OK : cti_gen_stops_add_eos(&s->stops, &s->model, err);
}

static ct_status generate(session *s, cti_str *notes, ct_err *err)
{
    const options *o = s->o;
    cti_generator_options how = {.dtype = cti_str_eq(o->dtype, "bfloat16") ? CT_DTYPE_BF16 : CT_DTYPE_F32};
    if (o->checkpoint[0] == '\0') {
        return CT_FAIL(err, CT_ERR_USAGE, "--checkpoint DIR is wanted: a folder of checkpoints, or a Hugging Face folder");
    }
    CT_TRY(collect(s, err));
    CT_TRY(cti_gen_model_open(s->alloc, o->checkpoint, o->step, o->hf_assets_path, &s->model, notes, err));
    CT_TRY(collect_stops(s, err));
    CT_TRY(cti_gen_model_plan(&s->model, o->run_overrides, notes, err));
    CT_TRY(encode_all(s, &how.cache_len, err));
    const ct_backend *backend;
    CT_TRY(ct_backend_find(cti_backends(), o->device, &backend, err));
    CT_TRY(cti_gen_model_load(&s->model, backend, &how, err));
    s->seed = o->seed.value;
    if (!o->seed.is_set) {
        uint32_t bits = 0;
        s->seed = getrandom(&bits, sizeof bits, 0) == (ssize_t)sizeof bits ? (int64_t)bits : cti_wall_ms();
        if (o->temperature > 0.0) {
            cti_str_printf(notes, "--seed %" PRId64 "\n", s->seed);
        }
    }
    fputs(cti_str_text(notes), stderr);
    cti_str_reset(notes);
    for (size_t i = 0; i < s->prompts.n; i++) {
        CT_TRY(one_prompt(s, i, err));
    }
    return CT_OK;
}

static ct_status run(const ct_alloc *alloc, const options *o, ct_err *err)
{
    session s = {.alloc = alloc, .o = o, .prompts = {.alloc = alloc}, .stops = {.ids = {.alloc = alloc}}};
    cti_str notes = {.alloc = alloc};
    const ct_status st = generate(&s, &notes, err);
    fputs(cti_str_text(&notes), stderr);
    cti_str_deinit(&notes);
    ct_chat_destroy(&s.chat);
    ct_tokens_deinit(&s.stops.ids);
    cti_prompts_deinit(&s.prompts);
    cti_gen_model_close(&s.model);
    return st;
}

int cti_cmd_generate(int argc, char **argv)
{
    static const cti_command_help help = {"ctitan generate --checkpoint DIR --prompt TEXT [options]",
                                          "Lets the model of a checkpoint or of a Hugging Face folder go on from texts, or answer (--chat), with a KV cache.",
                                          NULL};
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    ct_arena *arena = NULL;
    options o;
    bool done = false;
    ct_status st = ct_arena_create(alloc, 0, &arena, &err);
    if (st == CT_OK) {
        st = cti_options_parse(argc, argv, fields, N_FIELDS, &o, &help, arena, &done, &err);
    }
    if (st == CT_OK && !done) {
        st = run(alloc, &o, &err);
    }
    ct_arena_destroy(&arena);
    return st == CT_OK ? 0 : cti_report("generate", st, &err);
}
