/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan data`: the sub-commands about data sets. */
#ifndef CTI_CLI_CMD_DATA_H
#define CTI_CLI_CMD_DATA_H

#include "ctitan/field.h"
#include "data/chat.h"
#include "data/data.h"

int cti_cmd_data(int argc, char **argv);
int cti_cmd_data_preview(int argc, char **argv); /* argv[0]: "preview" */

/* ---- cmd_data.c: what all of them share ---- */

/* clang-format off */
#define CTI_CHAT_OPTIONS(X) \
    X(format, CHOICE, "text", "", "", "text|chat", "", 0, NULL, "what a record is: text, or a conversation") \
    X(question_field, STR, "question", "1", "", "", "", 0, NULL, "of chats: member that holds the question where there are no messages") \
    X(answer_field, STR, "answer", "1", "", "", "", 0, NULL, "of chats: member that holds the answer") \
    X(chat_template, OPT_STR, "None", "1", "", "", "", 0, NULL, "of chats: file of the template; None: the tokenizer's") \
    X(chat_date, STR, "2024-07-26", "1", "", "", "", 0, NULL, "of chats: the day that a template's strftime_now shows")
/* clang-format on */

/* "--dataloader.x", "--tokenizer.x" and "--training.x", as train has them, become "--x". NULL and err where memory ran out. */
char *cti_data_short_option(const char *arg, ct_arena *arena, ct_err *err);

/* ---- cmd_data.c: what inspect, index and tokenize share ---- */

/* clang-format off */
#define CTI_DATA_OPTIONS(X) \
    X(dataset, STR, "c4_test", "1", "", "", "", 0, NULL, "name of a data set, where no path is given") \
    X(dataset_path, OPT_STR, "None", "1", "", "", "", 0, NULL, "file, folder or pattern that holds the documents") \
    X(text_field, STR, "text", "1", "", "", "", 0, NULL, "member of each JSON line that holds the text") \
    X(hf_assets_path, STR, "", "", "", "", "", 0, NULL, "inspect, tokenize: tokenizer folder; empty: the one that comes with ctitan") \
    X(special_text, CHOICE, "text", "", "", "text|match", "", 0, NULL, "inspect, tokenize: special tokens spelt out in documents: text, or their ids") \
    CTI_CHAT_OPTIONS(X) \
    X(seq_len, I64, "0", "0", "1048576", "", "tokens", 0, NULL, "inspect: a conversation of more ids gives nothing; 0: no bound") \
    X(bad_records, CHOICE, "fail", "", "", "fail|skip", "", 0, NULL, "tokenize: what a document that cannot be used does; skip: it is empty") \
    X(invalid_utf8, CHOICE, "repair", "", "", "repair|bad", "", 0, NULL, "bytes that are no UTF-8 become U+FFFD, or make the document bad") \
    X(max_document_bytes, I64, "268435456", "1", "", "", "bytes", 0, NULL, "a longer document is bad") \
    X(begin_id, I64, "0", "0", "2147483647", "", "", 0, NULL, "llm.c files: id that begins a document; 0: 50256 or 128000, by the file") \
    X(output, STR, "", "", "", "", "", 0, NULL, "tokenize: file X.ctok, or a folder for several") \
    X(shard_tokens, I64, "1073741824", "1", "", "", "tokens", 0, NULL, "tokenize: a file of a folder ends with the document that reaches this") \
    X(replace, BOOL, "false", "", "", "", "", 0, NULL, "tokenize: what is there already may go")
/* clang-format on */
typedef struct cti_data_options {
    CTI_DATA_OPTIONS(CT_FIELD_MEMBER)
} cti_data_options;

/* One call of a sub-command. */
typedef struct cti_data_call {
    const ct_alloc *alloc;
    const cti_data_options *o;
    const char *const *paths; /* from the command line, in order */
    int64_t n_paths;
    ct_corpus *corpus;       /* owns */
    ct_tokenizer *tokenizer; /* owns */
    ct_text_processor text;
    ct_chat *chat; /* owns; NULL: documents are texts */
} cti_data_call;

/* The corpus of the paths, else of --dataset-path, else of --dataset; its notes go to stderr. */
CT_MUST_CHECK ct_status cti_data_call_open_corpus(cti_data_call *call, ct_err *err);
/* The tokenizer, and call->text; with --format chat call->chat. */
CT_MUST_CHECK ct_status cti_data_call_open_tokenizer(cti_data_call *call, ct_err *err);
ct_processor cti_data_call_processor(const cti_data_call *call);

/* ---- cmd_data_inspect.c, cmd_data_tokenize.c ---- */

CT_MUST_CHECK ct_status cti_data_inspect(cti_data_call *call, ct_err *err);
CT_MUST_CHECK ct_status cti_data_index(cti_data_call *call, ct_err *err);
CT_MUST_CHECK ct_status cti_data_tokenize(cti_data_call *call, ct_err *err);

#endif
