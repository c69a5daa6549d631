/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan generate`: text from a checkpoint. */
#include "cli/cmd_generate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "data/chat.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"
#include "train/generate.h"

/* clang-format off */
#define OPTIONS(X) \
    X(checkpoint, STR, "", "", "", "", "", 0, NULL, "folder of checkpoints, or one step-<N> folder of it") \
    X(step, I64, "-1", "-1", "", "", "", 0, NULL, "the step to take; -1: the newest") \
    X(prompt, STR, "", "", "", "", "", 0, NULL, "text to go on from") \
    X(chat, BOOL, "false", "", "", "", "", 0, NULL, "the prompt is a question: the chat template is put round it") \
    X(chat_template, OPT_STR, "None", "1", "", "", "", 0, NULL, "chat: file of the template; None: the run's, else the tokenizer's") \
    X(chat_date, OPT_STR, "None", "1", "", "", "", 0, NULL, "chat: YYYY-MM-DD that a template's strftime_now shows; None: the run's") \
    X(max_new_tokens, I64, "64", "1", "1048576", "", "tokens", 0, NULL, "tokens to write at most") \
    X(temperature, F64, "0.8", "0", "100", "", "", 0, NULL, "0: always the likeliest token") \
    X(top_k, I64, "50", "0", "", "", "tokens", 0, NULL, "draw from the likeliest k; 0: from all") \
    X(seed, OPT_I64, "None", "0", "", "", "", 0, NULL, "seed of the draw; None: a new one") \
    X(hf_assets_path, STR, "", "", "", "", "", 0, NULL, "tokenizer folder; empty: the one of the run") \
    X(device, CHOICE, "cpu", "", "", "cpu|ref", "", 0, NULL, "what computes")
/* clang-format on */
typedef struct options {
    OPTIONS(CT_FIELD_MEMBER)
} options;
#define ROW(...) CT_FIELD_ROW_IN(options, __VA_ARGS__)
static const ct_field fields[] = {OPTIONS(ROW)};
#undef ROW
enum { N_FIELDS = sizeof fields / sizeof fields[0] };

typedef struct session {
    const ct_alloc *alloc;
    const options *o;
    ct_ckpt *ckpt;
    ct_tokenizer *tokenizer;
    ct_tree *tree;
    cti_generator *gen;
    ct_tokens prompt;
} session;

/* Template and date as the options say, else as the run had them. */
static ct_chat_options chat_options(const session *s)
{
    const json_t *run = json_object_get(json_object_get(ct_ckpt_extra(s->ckpt), "config"), "dataloader");
    return (ct_chat_options){
        .template_path = s->o->chat_template != NULL ? s->o->chat_template : json_string_value(json_object_get(run, "chat_template")),
        .date = s->o->chat_date != NULL ? s->o->chat_date : json_string_value(json_object_get(run, "chat_date"))};
}

/* The prompt as the user's message, with the beginning of an answer. */
static ct_status encode_question(session *s, const char *folder, ct_err *err)
{
    ct_chat *chat = NULL;
    cti_str text = {.alloc = s->alloc};
    json_t *messages = json_pack("[{s:s, s:s}]", "role", "user", "content", s->o->prompt);
    if (messages == NULL) {
        return CT_FAIL(err, CT_ERR_USAGE, "--prompt: text in UTF-8 is wanted");
    }
    const ct_chat_options how = chat_options(s);
    ct_status st = ct_chat_open(s->alloc, folder, s->tokenizer, &how, &chat, err);
    if (st != CT_OK && s->o->chat_template == NULL && how.template_path != NULL) {
        ct_err_prefix(err, "the chat template of the run (--chat-template names another)");
    }
    if (st == CT_OK) {
        st = ct_chat_render(chat, messages, NULL, true, &text, err);
    }
    if (st == CT_OK) {
        const unsigned flags = ct_chat_encode_flags(chat, cti_str_text(&text), text.len);
        st = ct_tokenizer_encode(s->tokenizer, cti_str_text(&text), text.len, flags, &s->prompt, err);
    }
    json_decref(messages);
    ct_chat_destroy(&chat);
    cti_str_deinit(&text);
    return st;
}

static ct_status open_tokenizer(session *s, ct_err *err)
{
    const char *folder = s->o->hf_assets_path;
    if (folder[0] == '\0') {
        CT_TRY(cti_json_get_str(ct_ckpt_extra(s->ckpt), "tokenizer", ct_ckpt_path(s->ckpt), &folder, err));
    }
    CT_TRY(ct_tokenizer_open(s->alloc, folder, NULL, &s->tokenizer, err));
    s->prompt.alloc = s->alloc;
    if (s->o->chat) {
        return encode_question(s, folder, err);
    }
    return ct_tokenizer_encode(s->tokenizer, s->o->prompt, strlen(s->o->prompt), CT_ENCODE_BOS | CT_ENCODE_TEMPLATE,
                               &s->prompt, err);
}

static ct_status load_weights(session *s, ct_err *err)
{
    enum { CHUNK = 1 << 20 };
    const ct_flat_layout *l = s->gen->layout;
    float *host = CT_NEW_ARRAY(s->alloc, float, CHUNK, err);
    ct_status st = host == NULL ? CT_ERR_MEMORY : CT_OK;
    for (int32_t g = 0; g < l->n_groups && st == CT_OK; g++) {
        for (int32_t m = 0; m < l->groups[g].n_members && st == CT_OK; m++) {
            const ct_flat_member *member = &l->groups[g].members[m];
            for (int64_t at = 0; at < member->numel && st == CT_OK; at += CHUNK) {
                const int64_t to = cti_min_i64(at + CHUNK, member->numel);
                st = ct_ckpt_read(s->ckpt, member->name, at, to, CT_DTYPE_F32, host, err);
                if (st == CT_OK) {
                    st = cti_engine_write_flat(s->gen->engine, "flat", l->groups[g].name, member->offset + at, to - at, host,
                                               err);
                }
            }
        }
    }
    ct_alloc_free(s->alloc, host);
    return st;
}

static ct_status open_model(session *s, const ct_backend *backend, ct_err *err)
{
    json_t *model;
    const char *name, *flavor;
    ct_component *spec;
    CT_TRY(cti_json_get_obj(ct_ckpt_extra(s->ckpt), "model", ct_ckpt_path(s->ckpt), &model, err));
    CT_TRY(cti_json_get_str(model, "name", "model", &name, err));
    CT_TRY(cti_json_get_str(model, "flavor", "model", &flavor, err));
    if (strcmp(name, "llama3") != 0) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s' holds a model of family '%s'; llama3 is known", ct_ckpt_path(s->ckpt), name);
    }
    CT_TRY(ct_tree_create(s->alloc, &s->tree, err));
    CT_TRY(cti_llama3_spec_saved(s->alloc, s->tree, flavor, json_object_get(ct_ckpt_extra(s->ckpt), "config"), &spec, err));
    CT_TRY(cti_generator_create(s->alloc, backend, spec, s->prompt.n + s->o->max_new_tokens, &s->gen, err));
    if (ct_tokenizer_vocab_size(s->tokenizer) > s->gen->vocab_size) {
        return CT_FAIL(err, CT_ERR_USAGE, "the tokenizer has %d ids, the model's vocabulary %" PRId64 " rows",
                       ct_tokenizer_vocab_size(s->tokenizer), s->gen->vocab_size);
    }
    return load_weights(s, err);
}

static ct_status write_text(session *s, ct_err *err)
{
    int64_t seed = s->o->seed.value;
    if (!s->o->seed.is_set && getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        seed = cti_wall_ms();
    }
    const cti_sampling sampling = {s->o->temperature, s->o->top_k, cti_rng_key_make((uint64_t)seed, "generate")};
    ct_decode_stream stream = {0};
    cti_str text = {.alloc = s->alloc};
    ct_status st = cti_generator_feed(s->gen, s->prompt.ids, s->prompt.n, err);
    fputs(s->o->chat ? "" : s->o->prompt, stdout);
    for (int64_t i = 0; i < s->o->max_new_tokens && st == CT_OK; i++) {
        int32_t id = 0;
        CT_TRY_GOTO(st, cti_generator_sample(s->gen, &sampling, &id, err), out);
        if (id == ct_tokenizer_eos_id(s->tokenizer)) {
            break;
        }
        size_t token_size;
        cti_str_reset(&text);
        if (ct_tokenizer_token_of(s->tokenizer, id, &token_size) != NULL) { /* a row of the head that no token has: nothing */
            CT_TRY_GOTO(st, ct_decode_stream_push(&stream, s->tokenizer, id, CT_DECODE_SKIP_SPECIAL, &text, err), out);
        }
        fwrite(cti_str_text(&text), 1, text.len, stdout);
        fflush(stdout);
        if (i + 1 < s->o->max_new_tokens) {
            st = cti_generator_feed(s->gen, &id, 1, err);
        }
    }
    cti_str_reset(&text);
    ct_decode_stream_finish(&stream, &text);
    fwrite(cti_str_text(&text), 1, text.len, stdout);
    printf("\n");
out:
    cti_str_deinit(&text);
    return st;
}

static ct_status run(const ct_alloc *alloc, const options *o, ct_err *err)
{
    session s = {.alloc = alloc, .o = o};
    cti_str notes = {.alloc = alloc};
    ct_status st;
    if (o->checkpoint[0] == '\0') {
        return CT_FAIL(err, CT_ERR_USAGE, "--checkpoint DIR is wanted: a folder of checkpoints");
    }
    const ct_backend *backend = cti_backends()[strcmp(o->device, "ref") == 0];
    st = ct_ckpt_open(alloc, o->checkpoint, o->step, &s.ckpt, &notes, err);
    if (notes.len > 0) {
        fprintf(stderr, "%s\n", cti_str_text(&notes));
    }
    if (st == CT_OK) {
        st = open_tokenizer(&s, err);
    }
    if (st == CT_OK && s.prompt.n == 0) {
        st = CT_FAIL(err, CT_ERR_USAGE, "--prompt: the tokenizer has no BOS token, so an empty prompt gives nothing to go on from");
    }
    if (st == CT_OK) {
        st = open_model(&s, backend, err);
    }
    if (st == CT_OK) {
        st = write_text(&s, err);
    }
    cti_str_deinit(&notes);
    ct_tokens_deinit(&s.prompt);
    cti_generator_destroy(&s.gen);
    ct_tree_destroy(&s.tree);
    ct_tokenizer_destroy(&s.tokenizer);
    ct_ckpt_close(&s.ckpt);
    return st;
}

int cti_cmd_generate(int argc, char **argv)
{
    static const cti_command_help help = {"ctitan generate --checkpoint DIR --prompt TEXT [options]",
                                          "Lets the model of a checkpoint go on from a text, with a KV cache, in float32.",
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
