/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data jinja tokenizer base */
/* Ids and labels of conversations against transformers' apply_chat_template and tokenizers (tests/parity/chat/record_ids.py), and what
 * the processor refuses. */
#include "unit/base_test.h"

#include "base/json.h"
#include "data/data.h"

static void write_file(const char *folder, const char *name, const char *text, char *path, size_t size)
{
    ct_err err = {0};
    assert_true(snprintf(path, size, "%s/%s", folder, name) < (int)size);
    assert_int_equal(cti_file_write_atomic(path, text, strlen(text), &err), CT_OK);
}

static ct_status process(const ct_chat *chat, const char *record, ct_sample *sample, ct_err *err)
{
    const ct_processor p = ct_processor_of_chat(chat);
    void *state = NULL;
    ct_document document;
    ct_document_init(&document, ct_alloc_system());
    document.kind = CT_DOCUMENT_RECORD;
    cti_str_add(&document.text, record);
    assert_int_equal(p.open(p.ctx, ct_alloc_system(), &state, err), CT_OK);
    sample->ids.n = sample->labels.n = 0;
    const ct_status st = p.process(state, &document, sample, err);
    p.close(state);
    ct_document_deinit(&document);
    return st;
}

static void compare(size_t i, const char *what, const ct_tokens *found, const json_t *wanted)
{
    bool same = (size_t)found->n == json_array_size(wanted);
    for (int64_t k = 0; k < found->n && same; k++) {
        same = found->ids[k] == (int32_t)json_integer_value(json_array_get(wanted, (size_t)k));
    }
    if (!same) {
        char *text;
        assert_int_equal(cti_json_dump(ct_alloc_system(), wanted, 0, &text, NULL), CT_OK);
        print_message("wanted %s\nfound ", text);
        for (int64_t k = 0; k < found->n; k++) {
            print_message(" %d", found->ids[k]);
        }
        fail_msg("case %zu: other %s", i, what);
    }
}

static ct_tokenizer *open_tokenizer(const char *folder)
{
    char path[1024];
    ct_tokenizer *tokenizer = NULL;
    ct_err err = {0};
    snprintf(path, sizeof path, "%s/%s", CT_SOURCE_DIR, folder);
    if (ct_tokenizer_open(ct_alloc_system(), path, NULL, &tokenizer, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return tokenizer;
}

static void recorded(void **state)
{
    (void)state;
    char folder[512], path[600];
    json_t *all = NULL;
    ct_err err = {0};
    test_folder_make(folder, sizeof folder);
    assert_int_equal(cti_json_read_file(ct_alloc_system(), CT_SOURCE_DIR "/tests/parity/chat/ids.json", &all, &err), CT_OK);
    const json_t *cases = json_object_get(all, "cases");
    assert_true(json_array_size(cases) >= 50);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i), *want = json_object_get(c, "sample");
        ct_tokenizer *tokenizer = open_tokenizer(json_string_value(json_object_get(c, "folder")));
        write_file(folder, "t.jinja", json_string_value(json_object_get(c, "template")), path, sizeof path);
        ct_chat *chat = NULL;
        ct_sample sample;
        char *record;
        json_t *object = json_pack("{s:O}", "messages", json_object_get(c, "messages"));
        ct_sample_init(&sample, ct_alloc_system());
        err = (ct_err){0};
        assert_int_equal(cti_json_dump(ct_alloc_system(), object, 0, &record, &err), CT_OK);
        if (ct_chat_open(ct_alloc_system(), folder, tokenizer, &(ct_chat_options){.template_path = path}, &chat, &err) != CT_OK) {
            fail_msg("case %zu: %s", i, err.message);
        }
        const ct_status st = process(chat, record, &sample, &err);
        if (json_is_null(want)) {
            assert_int_equal(st, CT_ERR_DATA);
            assert_non_null(strstr(err.message, "is not the beginning"));
        } else if (st != CT_OK) {
            fail_msg("case %zu: %s", i, err.message);
        } else {
            compare(i, "ids", &sample.ids, json_object_get(want, "ids"));
            compare(i, "labels", &sample.labels, json_object_get(want, "labels"));
        }
        ct_sample_deinit(&sample);
        ct_chat_destroy(&chat);
        ct_tokenizer_destroy(&tokenizer);
        ct_alloc_free(ct_alloc_system(), record);
        json_decref(object);
    }
    json_decref(all);
    test_folder_remove(folder);
}

/* Each bad record has one message that says what is wrong. */
static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *record, *message;
    } rows[] = {{"{\"text\": \"x\"}", "'question' is missing"},
                {"{\"question\": \"x\"}", "'answer' is missing"},
                {"{\"question\": \"x\", \"answer\": 1}", "'answer' is no string"},
                {"{\"messages\": 1}", "'messages' should be a list"},
                {"{\"messages\": []}", "nothing to learn"},
                {"{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}", "nothing to learn"},
                {"{\"messages\": [{\"role\": \"assistant\", \"content\": \"x\"}]}", "message 1 is of role 'assistant'"},
                {"{\"messages\": [{\"content\": \"x\"}]}", "message 1: an object with a 'role'"},
                {"{\"messages\": [{\"role\": \"user\"}]}", "has no 'content'"},
                {"{\"messages\": [7]}", "message 1: an object"},
                {"{\"conversations\": [{\"from\": \"human\"}]}", "'from' and 'value' should be strings"},
                {"{\"question\": \"a <|end_of_text|> b\", \"answer\": \"x\"}", "spells out the special token '<|end_of_text|>'"},
                {"[1]", "missing"}};
    ct_tokenizer *tokenizer = open_tokenizer("share/ctitan/tokenizer");
    ct_chat *chat = NULL;
    ct_err err = {0};
    ct_sample sample;
    ct_sample_init(&sample, ct_alloc_system());
    assert_int_equal(ct_chat_open(ct_alloc_system(), CT_SOURCE_DIR "/share/ctitan/tokenizer", tokenizer, NULL, &chat, &err), CT_OK);
    for (size_t i = 0; i < N_OF(rows); i++) {
        err = (ct_err){0};
        assert_int_equal(process(chat, rows[i].record, &sample, &err), CT_ERR_DATA);
        if (strstr(err.message, rows[i].message) == NULL) {
            fail_msg("%s: '%s', wanted '%s'", rows[i].record, err.message, rows[i].message);
        }
    }
    /* question and answer, messages and conversations are three spellings of one thing */
    static const char *const same[] = {"{\"question\": \"q\", \"answer\": \"a\"}",
                                       "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"assistant\", \"content\": \"a\"}]}",
                                       "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": \"gpt\", \"value\": \"a\"}]}"};
    ct_sample first;
    ct_sample_init(&first, ct_alloc_system());
    assert_int_equal(process(chat, same[0], &first, &err), CT_OK);
    for (size_t i = 1; i < N_OF(same); i++) {
        assert_int_equal(process(chat, same[i], &sample, &err), CT_OK);
        assert_int_equal(sample.ids.n, first.ids.n);
        assert_memory_equal(sample.ids.ids, first.ids.ids, (size_t)first.ids.n * sizeof(int32_t));
        assert_memory_equal(sample.labels.ids, first.labels.ids, (size_t)first.ids.n * sizeof(int32_t));
    }
    ct_chat_destroy(&chat);
    /* as many ids as are allowed, and one more; special text where it is let through */
    const ct_chat_options exact = {.max_tokens = first.ids.n, .match_special = true}, shorter = {.max_tokens = first.ids.n - 1};
    assert_int_equal(ct_chat_open(ct_alloc_system(), CT_SOURCE_DIR "/share/ctitan/tokenizer", tokenizer, &exact, &chat, &err), CT_OK);
    assert_int_equal(process(chat, same[0], &sample, &err), CT_OK);
    assert_false(sample.is_long);
    assert_int_equal(sample.ids.n, first.ids.n);
    assert_int_equal(process(chat, "{\"question\": \"<|pad|>\", \"answer\": \"\"}", &sample, &err), CT_OK);
    ct_chat_destroy(&chat);
    assert_int_equal(ct_chat_open(ct_alloc_system(), CT_SOURCE_DIR "/share/ctitan/tokenizer", tokenizer, &shorter, &chat, &err), CT_OK);
    assert_int_equal(process(chat, same[0], &sample, &err), CT_OK);
    assert_true(sample.is_long);
    assert_int_equal(sample.ids.n, 0);
    ct_chat_destroy(&chat);
    ct_sample_deinit(&first);
    ct_sample_deinit(&sample);
    ct_tokenizer_destroy(&tokenizer);
}

/* Where the template comes from, and what is wrong when there is none. */
static void templates(void **state)
{
    (void)state;
    char folder[512], path[600];
    ct_tokenizer *tokenizer = open_tokenizer("share/ctitan/tokenizer");
    ct_chat *chat = NULL;
    ct_err err = {0};
    cti_str out = {.alloc = ct_alloc_system()};
    json_t *messages = json_array();
    test_folder_make(folder, sizeof folder);
    assert_int_equal(ct_chat_open(ct_alloc_system(), folder, tokenizer, NULL, &chat, &err), CT_ERR_NOT_FOUND);
    static const struct {
        const char *name, *text, *wanted;
    } rows[] = {{"tokenizer_config.json", "{\"chat_template\": \"one\"}", "one"},
                {"tokenizer_config.json", "{\"chat_template\": [{\"name\": \"x\", \"template\": \"no\"}, {\"name\": \"default\", \"template\": \"two\"}]}", "two"},
                {"chat_template.jinja", "{{ strftime_now('%A %d %b %Y') }}", "Friday 26 Jul 2024"},
                {"chat_template.jinja", "{{ bos_token }}{{ eos_token }}{{ tools is defined }}", "<|begin_of_text|><|end_of_text|>False"}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        err = (ct_err){0};
        write_file(folder, rows[i].name, rows[i].text, path, sizeof path);
        if (ct_chat_open(ct_alloc_system(), folder, tokenizer, NULL, &chat, &err) != CT_OK) {
            fail_msg("%s", err.message);
        }
        cti_str_reset(&out);
        assert_int_equal(ct_chat_render(chat, messages, NULL, false, &out, &err), CT_OK);
        assert_string_equal(cti_str_text(&out), rows[i].wanted);
        ct_chat_destroy(&chat);
    }
    static const char *const dates[] = {"2024-02-30", "today", "2024-1-01x", ""};
    for (size_t i = 0; i < N_OF(dates); i++) {
        err = (ct_err){0};
        const ct_chat_options o = {.date = dates[i]};
        assert_int_equal(ct_chat_open(ct_alloc_system(), folder, tokenizer, &o, &chat, &err), i < 3 ? CT_ERR_USAGE : CT_OK);
        ct_chat_destroy(&chat);
    }
    json_decref(messages);
    cti_str_deinit(&out);
    ct_tokenizer_destroy(&tokenizer);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recorded), cmocka_unit_test(refusals), cmocka_unit_test(templates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
