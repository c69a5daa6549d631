/* SPDX-License-Identifier: Apache-2.0 */
/* The processor of conversations. */
#include "data/chat.h"

#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "jinja/jinja.h"

typedef struct special {
    const char *text; /* the tokenizer's */
    size_t size;
} special;

struct ct_chat {
    const ct_alloc *alloc;
    const ct_tokenizer *tokenizer;
    ct_jinja *template;
    char *question_field, *answer_field;
    int64_t max_tokens;
    bool match_special;
    struct tm now;
    uint64_t hash;
    special *specials; /* owns */
    size_t n_specials;
    bool begins_special[256]; /* by first byte */
};

/* --- the template ------------------------------------------------------------------------------------------------ */

/* A list of {"name", "template"}: the one called default. */
static ct_status pick_template(const json_t *value, const char *path, const char **out, ct_err *err)
{
    if (json_is_string(value)) {
        *out = json_string_value(value);
        return CT_OK;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *row = json_array_get(value, i), *name = json_object_get(row, "name"), *text = json_object_get(row, "template");
        if (json_is_string(name) && json_is_string(text) && strcmp(json_string_value(name), "default") == 0) {
            *out = json_string_value(text);
            return CT_OK;
        }
    }
    return CT_FAIL(err, CT_ERR_FORMAT, "'%s': 'chat_template' should be a string or a list with a template named 'default'", path);
}

static ct_status compile(ct_chat *chat, const char *text, size_t size, const char *name, ct_err *err)
{
    chat->hash = cti_hash64(text, size, 1);
    return ct_jinja_compile(chat->alloc, text, size, name, &chat->template, err);
}

static ct_status compile_file(ct_chat *chat, const char *path, ct_err *err)
{
    char *text;
    size_t size;
    CT_TRY(cti_file_read(chat->alloc, path, 0, &text, &size, err));
    const ct_status st = compile(chat, text, size, path, err);
    ct_alloc_free(chat->alloc, text);
    return st;
}

static ct_status compile_config(ct_chat *chat, const char *path, const char *folder, ct_err *err)
{
    json_t *config = NULL;
    const char *text = NULL;
    if (cti_path_is_file(path)) {
        CT_TRY(cti_json_read_file(chat->alloc, path, &config, err));
    }
    const json_t *value = json_object_get(config, "chat_template");
    ct_status st = value != NULL && !json_is_null(value)
                       ? pick_template(value, path, &text, err)
                       : CT_FAIL(err, CT_ERR_NOT_FOUND,
                                 "'%s' has no chat template: chat_template.jinja, or 'chat_template' in tokenizer_config.json, is "
                                 "wanted; --dataloader.chat-template names another file",
                                 folder);
    if (st == CT_OK) {
        st = compile(chat, text, strlen(text), path, err);
    }
    json_decref(config);
    return st;
}

static ct_status open_template(ct_chat *chat, const char *folder, const char *given, ct_err *err)
{
    if (given != NULL && given[0] != '\0') {
        return compile_file(chat, given, err);
    }
    char *file = cti_path_join(chat->alloc, folder, "chat_template.jinja", err);
    char *config = cti_path_join(chat->alloc, folder, "tokenizer_config.json", err);
    ct_status st = CT_ERR_MEMORY;
    if (file != NULL && config != NULL) {
        st = cti_path_is_file(file) ? compile_file(chat, file, err) : compile_config(chat, config, folder, err);
    }
    ct_alloc_free(chat->alloc, file);
    ct_alloc_free(chat->alloc, config);
    return st;
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

static ct_status find_specials(ct_chat *chat, ct_err *err)
{
    const int32_t n = ct_tokenizer_vocab_size(chat->tokenizer);
    for (int round = 0; round < 2; round++) {
        size_t k = 0;
        for (int32_t id = 0; id < n; id++) {
            size_t size = 0;
            const char *text = ct_tokenizer_is_special(chat->tokenizer, id) ? ct_tokenizer_token_of(chat->tokenizer, id, &size) : NULL;
            if (text == NULL || size == 0) {
                continue;
            }
            if (round == 1) {
                chat->specials[k] = (special){.text = text, .size = size};
                chat->begins_special[(unsigned char)text[0]] = true;
            }
            k++;
        }
        if (round == 0) {
            chat->specials = CT_NEW_ARRAY(chat->alloc, special, k, err);
            if (chat->specials == NULL) {
                return CT_ERR_MEMORY;
            }
        }
        chat->n_specials = k;
    }
    return CT_OK;
}

static ct_status set_date(ct_chat *chat, const char *date, ct_err *err)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    static const int shifts[] = {0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4}; /* of a month's first weekday (T. Sakamoto) */
    int y = 0, m = 0, d = 0, end = 0;
    if (sscanf(date, "%4d-%2d-%2d%n", &y, &m, &d, &end) != 3 || end != 10 || date[end] != '\0' || y < 1 || m < 1 || m > 12 || d < 1 ||
        d > 31) {
        return CT_FAIL(err, CT_ERR_USAGE, "the date of chat templates should be YYYY-MM-DD, but is '%s'", date);
    }
    const bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    const int days = m == 2 ? 28 + leap : m == 4 || m == 6 || m == 9 || m == 11 ? 30 : 31;
    if (d > days) {
        return CT_FAIL(err, CT_ERR_USAGE, "the date of chat templates '%s' is none", date);
    }
    const int k = m < 3 ? y - 1 : y;
    chat->now = (struct tm){.tm_year = y - 1900,
                            .tm_mon = m - 1,
                            .tm_mday = d,
                            .tm_hour = 12,
                            .tm_wday = (k + k / 4 - k / 100 + k / 400 + shifts[m - 1] + d) % 7,
                            .tm_yday = before[m - 1] + d - 1 + (leap && m > 2)};
    return CT_OK;
}

static ct_status open_chat(ct_chat *chat, const char *folder, const ct_chat_options *o, ct_err *err)
{
    if (ct_tokenizer_eos_id(chat->tokenizer) < 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%s': chat data wants a tokenizer with an EOS token ('eos_token' of tokenizer_config.json)",
                       folder);
    }
    const char *question = o->question_field == NULL ? "question" : o->question_field;
    const char *answer = o->answer_field == NULL ? "answer" : o->answer_field;
    chat->question_field = ct_alloc_strdup(chat->alloc, question, err);
    chat->answer_field = ct_alloc_strdup(chat->alloc, answer, err);
    if (chat->question_field == NULL || chat->answer_field == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(set_date(chat, o->date == NULL || o->date[0] == '\0' ? "2024-07-26" : o->date, err));
    CT_TRY(find_specials(chat, err));
    CT_TRY(open_template(chat, folder, o->template_path, err));
    const int64_t facts[] = {o->max_tokens, o->match_special, chat->now.tm_year, chat->now.tm_yday};
    chat->hash = cti_hash64(facts, sizeof facts, chat->hash);
    chat->hash = cti_hash64(question, strlen(question), chat->hash);
    chat->hash = cti_hash64(answer, strlen(answer), chat->hash);
    return CT_OK;
}

ct_status ct_chat_open(const ct_alloc *alloc, const char *folder, const ct_tokenizer *tokenizer, const ct_chat_options *options,
                       ct_chat **out_chat, ct_err *err)
{
    const ct_chat_options defaults = {0};
    const ct_chat_options *o = options == NULL ? &defaults : options;
    ct_chat *chat = CT_NEW(alloc, ct_chat, err);
    if (chat == NULL) {
        return CT_ERR_MEMORY;
    }
    chat->alloc = alloc;
    chat->tokenizer = tokenizer;
    chat->max_tokens = o->max_tokens;
    chat->match_special = o->match_special;
    const ct_status st = open_chat(chat, folder, o, err);
    if (st != CT_OK) {
        ct_chat_destroy(&chat);
        return st;
    }
    *out_chat = chat;
    return CT_OK;
}

void ct_chat_destroy(ct_chat **chat)
{
    if (chat == NULL || *chat == NULL) {
        return;
    }
    const ct_alloc *alloc = (*chat)->alloc;
    ct_jinja_destroy(&(*chat)->template);
    ct_alloc_free(alloc, (*chat)->question_field);
    ct_alloc_free(alloc, (*chat)->answer_field);
    ct_alloc_free(alloc, (*chat)->specials);
    ct_alloc_free(alloc, *chat);
    *chat = NULL;
}

uint64_t ct_chat_hash(const ct_chat *chat)
{
    return chat->hash;
}

/* --- records to messages ----------------------------------------------------------------------------------------- */

static const char *role_of(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    return role == NULL ? "" : role;
}

static ct_status no_memory(json_t *messages, ct_err *err)
{
    json_decref(messages);
    return CT_FAIL(err, CT_ERR_MEMORY, "no memory for the messages of a record");
}

/* {"from": "human", "value": ...}: the names of roles that data sets of that form use. */
static ct_status from_conversations(const json_t *list, json_t **out, ct_err *err)
{
    static const char *const roles[][2] = {{"human", "user"}, {"gpt", "assistant"}};
    json_t *messages = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i), *value = json_object_get(row, "value");
        const char *from = json_string_value(json_object_get(row, "from"));
        if (from == NULL || !json_is_string(value)) {
            json_decref(messages);
            return CT_FAIL(err, CT_ERR_DATA, "'conversations', entry %zu: 'from' and 'value' should be strings", i + 1);
        }
        for (size_t k = 0; k < sizeof roles / sizeof roles[0]; k++) {
            from = strcmp(from, roles[k][0]) == 0 ? roles[k][1] : from;
        }
        if (json_array_append_new(messages, json_pack("{s:s, s:O}", "role", from, "content", value)) != 0) {
            return no_memory(messages, err);
        }
    }
    *out = messages;
    return CT_OK;
}

static ct_status from_question(const ct_chat *chat, const json_t *record, json_t **out, ct_err *err)
{
    const json_t *question = json_object_get(record, chat->question_field), *answer = json_object_get(record, chat->answer_field);
    if (!json_is_string(question) || !json_is_string(answer)) {
        return CT_FAIL(err, CT_ERR_DATA, "'messages' (a list), 'conversations' (a list), or '%s' and '%s' (strings) are wanted; '%s' is %s",
                       chat->question_field, chat->answer_field, json_is_string(question) ? chat->answer_field : chat->question_field,
                       (json_is_string(question) ? answer : question) == NULL ? "missing" : "no string");
    }
    *out = json_pack("[{s:s, s:O}, {s:s, s:O}]", "role", "user", "content", question, "role", "assistant", "content", answer);
    return *out == NULL ? no_memory(NULL, err) : CT_OK;
}

/* True, and which, where a special token is spelt out in the value. JSON is not nested deeply: its parser bounds it. */
static const special *find_special(const ct_chat *chat, const json_t *value, int depth)
{
    const special *found = NULL;
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        const size_t size = json_string_length(value);
        for (size_t at = 0; at < size; at++) {
            for (size_t k = 0; chat->begins_special[(unsigned char)text[at]] && k < chat->n_specials; k++) {
                const special *s = &chat->specials[k];
                if (s->size <= size - at && memcmp(text + at, s->text, s->size) == 0) {
                    return s;
                }
            }
        }
    } else if (json_is_array(value) && depth < 100) {
        for (size_t i = 0; i < json_array_size(value) && found == NULL; i++) {
            found = find_special(chat, json_array_get(value, i), depth + 1);
        }
    } else if (json_is_object(value) && depth < 100) {
        json_t *object = (json_t *)(uintptr_t)value; /* jansson's iterator takes no const; nothing is changed */
        for (void *it = json_object_iter(object); it != NULL && found == NULL; it = json_object_iter_next(object, it)) {
            found = find_special(chat, json_object_iter_value(it), depth + 1);
        }
    }
    return found;
}

static ct_status check_messages(const ct_chat *chat, const json_t *messages, ct_err *err)
{
    bool has_answer = false;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i);
        const char *role = role_of(message);
        if (role[0] == '\0') {
            return CT_FAIL(err, CT_ERR_DATA, "message %zu: an object with a 'role' (a string) is wanted", i + 1);
        }
        const bool is_assistant = strcmp(role, "assistant") == 0;
        if (is_assistant && i == 0) {
            return CT_FAIL(err, CT_ERR_DATA, "message 1 is of role 'assistant': there is nothing that it answers");
        }
        if (json_object_get(message, "content") == NULL && !is_assistant) {
            return CT_FAIL(err, CT_ERR_DATA, "message %zu of role '%s' has no 'content'", i + 1, role);
        }
        const special *s = chat->match_special || is_assistant ? NULL : find_special(chat, message, 0);
        if (s != NULL) {
            return CT_FAIL(err, CT_ERR_DATA,
                           "message %zu of role '%s' spells out the special token '%.*s', which would become its id "
                           "(--tokenizer.special-text match lets it)",
                           i + 1, role, (int)s->size, s->text);
        }
        has_answer = has_answer || is_assistant;
    }
    return has_answer ? CT_OK : CT_FAIL(err, CT_ERR_DATA, "no message is of role 'assistant': there is nothing to learn");
}

/* The messages of a record. Caller: json_decref. */
static ct_status messages_of(const ct_chat *chat, const json_t *record, json_t **out, ct_err *err)
{
    json_t *messages = json_object_get(record, "messages");
    const json_t *conversations = json_object_get(record, "conversations");
    json_t *made = NULL;
    if (json_is_array(messages)) {
        made = json_incref(messages);
    } else if (messages == NULL && json_is_array(conversations)) {
        CT_TRY(from_conversations(conversations, &made, err));
    } else if (messages == NULL && conversations == NULL) {
        CT_TRY(from_question(chat, record, &made, err));
    } else {
        return CT_FAIL(err, CT_ERR_DATA, "'%s' should be a list of messages", messages != NULL ? "messages" : "conversations");
    }
    const ct_status st = check_messages(chat, made, err);
    if (st != CT_OK) {
        json_decref(made);
        return st;
    }
    *out = made;
    return CT_OK;
}

static ct_status parse_record(const ct_document *document, json_t **out, ct_err *err)
{
    if (document->kind != CT_DOCUMENT_RECORD) {
        return CT_FAIL(err, CT_ERR_DATA, "chat data is JSON lines: an object with 'messages', or a question and an answer, is wanted");
    }
    ct_err why = {0};
    const ct_status st = cti_json_parse(cti_str_text(&document->text), document->text.len, "record", out, &why);
    return st == CT_OK || st == CT_ERR_MEMORY ? st : CT_FAIL(err, CT_ERR_DATA, "%s", why.message);
}

/* --- text and ids ------------------------------------------------------------------------------------------------ */

static json_t *token_text(const ct_tokenizer *tokenizer, int32_t id)
{
    size_t size = 0;
    const char *text = id < 0 ? NULL : ct_tokenizer_token_of(tokenizer, id, &size);
    return text == NULL ? json_string("") : json_stringn(text, size);
}

ct_status ct_chat_render(const ct_chat *chat, const json_t *messages, const json_t *tools, bool add_generation_prompt, cti_str *out,
                         ct_err *err)
{
    const ct_jinja_options options = {.now = &chat->now};
    json_t *v = json_pack("{s:O, s:b, s:o, s:o}", "messages", messages, "add_generation_prompt", (int)add_generation_prompt, "bos_token",
                          token_text(chat->tokenizer, ct_tokenizer_bos_id(chat->tokenizer)), "eos_token",
                          token_text(chat->tokenizer, ct_tokenizer_eos_id(chat->tokenizer)));
    if (v == NULL) {
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory for the variables of a chat template");
    }
    if (tools != NULL) {
        (void)json_object_set(v, "tools", (json_t *)(uintptr_t)tools);
    }
    const ct_status st = ct_jinja_render(chat->template, v, &options, out, err);
    json_decref(v);
    return st;
}

unsigned ct_chat_encode_flags(const ct_chat *chat, const char *text, size_t size)
{
    size_t n = 0;
    const int32_t bos = ct_tokenizer_bos_id(chat->tokenizer);
    const char *token = bos < 0 ? NULL : ct_tokenizer_token_of(chat->tokenizer, bos, &n);
    const bool has_bos = token != NULL && n <= size && memcmp(text, token, n) == 0;
    return CT_ENCODE_MATCH_SPECIAL | (has_bos ? 0u : (unsigned)CT_ENCODE_BOS);
}

static void strip_newlines(cti_str *text)
{
    while (text->len > 0 && text->data[text->len - 1] == '\n') {
        text->data[--text->len] = '\0';
    }
}

typedef struct chat_state {
    const ct_chat *chat;
    const ct_alloc *alloc;
    ct_encoder *encoder; /* owns */
    cti_str whole, part;
    ct_tokens ids; /* of a part */
} chat_state;

static void close_chat(void *state)
{
    chat_state *s = state;
    ct_encoder_destroy(&s->encoder);
    cti_str_deinit(&s->whole);
    cti_str_deinit(&s->part);
    ct_tokens_deinit(&s->ids);
    ct_alloc_free(s->alloc, s);
}

static ct_status open_state(const void *ctx, const ct_alloc *alloc, void **out_state, ct_err *err)
{
    chat_state *s = CT_NEW(alloc, chat_state, err);
    if (s == NULL) {
        return CT_ERR_MEMORY;
    }
    s->chat = ctx;
    s->alloc = s->whole.alloc = s->part.alloc = s->ids.alloc = alloc;
    const ct_status st = ct_encoder_create(alloc, s->chat->tokenizer, &s->encoder, err);
    if (st != CT_OK) {
        close_chat(s);
        return st;
    }
    *out_state = s;
    return CT_OK;
}

/* The text of the first n messages into s->part, and how many ids it is. */
static ct_status measure(chat_state *s, const json_t *messages, const json_t *tools, size_t n, bool prompts, int64_t *out_n_ids,
                         ct_err *err)
{
    json_t *some = json_array();
    for (size_t i = 0; i < n; i++) {
        if (some == NULL || json_array_append(some, json_array_get(messages, i)) != 0) {
            return no_memory(some, err);
        }
    }
    cti_str_reset(&s->part);
    const ct_status st = ct_chat_render(s->chat, some, tools, prompts, &s->part, err);
    json_decref(some);
    CT_TRY(st);
    if (!prompts) {
        strip_newlines(&s->part);
    }
    s->ids.n = 0;
    CT_TRY(ct_encoder_encode(s->encoder, cti_str_text(&s->part), s->part.len,
                             ct_chat_encode_flags(s->chat, cti_str_text(&s->part), s->part.len), &s->ids, err));
    *out_n_ids = s->ids.n;
    return CT_OK;
}

/* What was measured must begin the whole, as text and as ids; else the place where an answer begins or ends is not known. */
static ct_status check_prefix(const chat_state *s, const ct_sample *sample, size_t n, bool prompts, ct_err *err)
{
    const bool is_text = s->part.len <= s->whole.len && memcmp(cti_str_text(&s->part), cti_str_text(&s->whole), s->part.len) == 0;
    const bool is_ids = is_text && s->ids.n <= sample->ids.n &&
                        (s->ids.n == 0 || memcmp(s->ids.ids, sample->ids.ids, (size_t)s->ids.n * sizeof(int32_t)) == 0);
    return is_ids ? CT_OK
                  : CT_FAIL(err, CT_ERR_DATA,
                            "%s of the first %zu messages%s is not the beginning of that of all: the template changes earlier turns "
                            "(one question and one answer a record work with any template)",
                            is_text ? "the ids" : "the text", n, prompts ? ", with the prompt for an answer," : "");
}

/* Labels: the ids of assistant turns; the last turn's reach to the end. */
static ct_status label(chat_state *s, const json_t *messages, const json_t *tools, ct_sample *sample, ct_err *err)
{
    const size_t n = json_array_size(messages);
    const bool is_plain = n == 2;
    for (int64_t i = 0; i < sample->ids.n; i++) {
        CT_TRY(ct_tokens_push(&sample->labels, CT_LABEL_IGNORE, err));
    }
    for (size_t k = 1; k < n; k++) {
        if (strcmp(role_of(json_array_get(messages, k)), "assistant") != 0) {
            continue;
        }
        int64_t begin = 0, end = sample->ids.n;
        CT_TRY(measure(s, messages, tools, k, true, &begin, err));
        CT_TRY(is_plain ? CT_OK : check_prefix(s, sample, k, true, err));
        if (k + 1 < n) {
            CT_TRY(measure(s, messages, tools, k + 1, false, &end, err));
            CT_TRY(check_prefix(s, sample, k + 1, false, err));
        }
        for (int64_t i = begin; i < end && i < sample->ids.n; i++) {
            sample->labels.ids[i] = sample->ids.ids[i];
        }
    }
    return CT_OK;
}

static ct_status process_messages(chat_state *s, const json_t *messages, const json_t *tools, ct_sample *sample, ct_err *err)
{
    const ct_chat *chat = s->chat;
    const int32_t eos = ct_tokenizer_eos_id(chat->tokenizer);
    cti_str_reset(&s->whole);
    CT_TRY(ct_chat_render(chat, messages, tools, false, &s->whole, err));
    strip_newlines(&s->whole);
    const char *text = cti_str_text(&s->whole);
    CT_TRY(ct_encoder_encode(s->encoder, text, s->whole.len, ct_chat_encode_flags(chat, text, s->whole.len), &sample->ids, err));
    if (sample->ids.n == 0 || sample->ids.ids[sample->ids.n - 1] != eos) {
        CT_TRY(ct_tokens_push(&sample->ids, eos, err));
    }
    if (chat->max_tokens > 0 && sample->ids.n > chat->max_tokens) {
        sample->ids.n = 0;
        sample->is_long = true;
        return CT_OK;
    }
    return label(s, messages, tools, sample, err);
}

static ct_status process_chat(void *state, const ct_document *document, ct_sample *sample, ct_err *err)
{
    chat_state *s = state;
    json_t *record = NULL, *messages = NULL;
    sample->is_long = false;
    CT_TRY(parse_record(document, &record, err));
    ct_status st = messages_of(s->chat, record, &messages, err);
    if (st == CT_OK) {
        const json_t *tools = json_object_get(record, "tools");
        st = process_messages(s, messages, tools != NULL && json_is_null(tools) ? NULL : tools, sample, err);
    }
    if (messages != NULL) {
        json_decref(messages);
    }
    json_decref(record);
    return st;
}

ct_processor ct_processor_of_chat(const ct_chat *chat)
{
    return (ct_processor){.ctx = chat, .open = open_state, .close = close_chat, .process = process_chat};
}

ct_status ct_chat_render_record(const ct_chat *chat, const ct_document *record, cti_str *out, ct_err *err)
{
    json_t *parsed = NULL, *messages = NULL;
    CT_TRY(parse_record(record, &parsed, err));
    ct_status st = messages_of(chat, parsed, &messages, err);
    if (st == CT_OK) {
        st = ct_chat_render(chat, messages, json_object_get(parsed, "tools"), false, out, err);
        strip_newlines(out);
    }
    if (messages != NULL) {
        json_decref(messages);
    }
    json_decref(parsed);
    return st;
}
