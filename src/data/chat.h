/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations to samples: a template makes text of messages, the loss counts what the assistant says (docs/chat.md).
 *
 *     ct_chat *chat = NULL;
 *     CT_TRY(ct_chat_open(alloc, folder, tokenizer, &(ct_chat_options){.max_tokens = seq_len}, &chat, err));
 *     ct_processor processor = ct_processor_of_chat(chat);        // of records: ct_corpus_options.records
 */
#ifndef CTI_DATA_CHAT_H
#define CTI_DATA_CHAT_H

#include <time.h>

#include "base/json.h"
#include "data/document.h"

/* Constant once open; any number of threads. */
typedef struct ct_chat ct_chat;

/* Zero-initialise and set what is not zero. */
typedef struct ct_chat_options {
    const char *template_path;                 /* file of the template; NULL: the tokenizer folder's */
    const char *question_field, *answer_field; /* of records without messages; NULL: "question", "answer" */
    int64_t max_tokens;                        /* a conversation of more ids gives nothing (ct_sample.is_long); 0: no limit */
    bool match_special; /* special tokens spelt out in messages become their ids; else only the template and the assistant may write
                           them, and a record where someone else does is bad */
    const char *date;   /* YYYY-MM-DD that strftime_now shows, at noon; NULL: 2024-07-26, so that data is the same on any day */
} ct_chat_options;

/**
 * Finds and compiles the template: options->template_path, else `chat_template.jinja` in folder, else `chat_template` of
 * tokenizer_config.json there (a text, or a list of names and templates of which "default" is taken).
 *
 * tokenizer  borrowed
 *
 * Fails: CT_ERR_NOT_FOUND where there is no template, CT_ERR_USAGE where the tokenizer has no EOS or the date is none, and as
 * ct_jinja_compile.
 */
CT_MUST_CHECK ct_status ct_chat_open(const ct_alloc *alloc, const char *folder, const ct_tokenizer *tokenizer,
                                     const ct_chat_options *options, ct_chat **out_chat, ct_err *err);
void ct_chat_destroy(ct_chat **chat);

/* The processor. A record has `messages` (objects with `role` and `content`), or `conversations` (with `from` and `value`), or a
 * question and an answer; `tools` goes to the template where it is there. */
ct_processor ct_processor_of_chat(const ct_chat *chat);
/* Identity of template and options, for saved states. */
uint64_t ct_chat_hash(const ct_chat *chat);

/* The text of messages (a JSON array), appended. tools may be NULL. Fails: CT_ERR_DATA, and as ct_jinja_render. */
CT_MUST_CHECK ct_status ct_chat_render(const ct_chat *chat, const json_t *messages, const json_t *tools, bool add_generation_prompt,
                                       cti_str *out, ct_err *err);
/* The text of a record (ct_document of kind CT_DOCUMENT_RECORD) as it is learned. */
CT_MUST_CHECK ct_status ct_chat_render_record(const ct_chat *chat, const ct_document *record, cti_str *out, ct_err *err);
/* CT_ENCODE_* for a rendered text: special tokens are matched; BOS, unless the template has written it. */
unsigned ct_chat_encode_flags(const ct_chat *chat, const char *text, size_t size);

#endif
