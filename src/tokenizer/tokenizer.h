/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `tokenizer`: text to token ids and back, and the training of a vocabulary.
 *
 *     ct_tokenizer *tok = NULL;
 *     CT_TRY(ct_tokenizer_open(alloc, "assets/hf/Llama-3.1-8B", NULL, &tok, err));
 *     ct_tokens tokens = {.alloc = alloc};
 *     CT_TRY(ct_tokenizer_encode(tok, text, size, CT_ENCODE_DOCUMENT, &tokens, err));   // BOS + ids + EOS, appended
 *     cti_str back = {.alloc = alloc};
 *     CT_TRY(ct_tokenizer_decode(tok, tokens.ids, tokens.n, 0, &back, err));
 *     ct_tokens_deinit(&tokens);
 *     ct_tokenizer_destroy(&tok);
 *
 * A loop over many documents keeps one ct_encoder per thread: the same call, with its buffers and a bounded cache of
 * words kept between documents.
 *
 * What is read (docs/tokenizers.md has the table): a Hugging Face folder with `tokenizer.json`, all its models and nearly all
 * its components; `vocab.json` or `vocab.txt` with `merges.txt` (GPT-2's byte-level BPE) or without (one word a text, as in
 * TorchTitan); a tiktoken `tokenizer.model` (Llama 3's). Beside it `tokenizer_config.json` and, for what that does not name,
 * `special_tokens_map.json`. A component or a value that would change ids and that is not implemented is refused by name when
 * the folder is opened; nothing is skipped. What is not read: SentencePiece's `.model` files.
 *
 * Files: tokenizer_open (folder), tokenizer_config, tokenizer_json (tokenizer.json), tokenizer_tiktoken (files without a
 * pipeline), tokenizer_pipeline and tokenizer_post (parsing components, in front of the model and behind it),
 * tokenizer_normalize, tokenizer_charsmap (Precompiled), tokenizer_split, tokenizer_regex, tokenizer_unicode (classes of
 * characters), tokenizer_added (added tokens), tokenizer_bpe, tokenizer_models (the other models), tokenizer_vocab (tables),
 * tokenizer_encode, tokenizer_decode, tokenizer_train. What makes encoding fast (tokenizer_fast.h):
 * tokenizer_known and tokenizer_words.h (published split patterns, matched by hand), tokenizer_classes (their table of
 * characters), tokenizer_cache (of words), tokenizer_hot (the loop), tokenizer_bpe_long;
 * tokenizer_batch (threads).
 */
#ifndef CTI_TOKENIZER_TOKENIZER_H
#define CTI_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "ctitan/alloc.h"
#include "ctitan/status.h"

typedef struct ct_tokenizer ct_tokenizer;

/* What to do with a character that the vocabulary cannot express (no unknown token, no byte fallback). */
typedef enum ct_on_unknown {
    CT_ON_UNKNOWN_REFUSE, /* encode fails and names the character and its place */
    CT_ON_UNKNOWN_DROP,   /* as the Hugging Face library: the character is left out, and counted in ct_tokens */
    CT_ON_UNKNOWN_COUNT
} ct_on_unknown;

typedef struct ct_tokenizer_options {
    ct_on_unknown on_unknown;
} ct_tokenizer_options;

/**
 * Opens a tokenizer folder. Looked for, in this order: `tokenizer.json`; `vocab.json`, else `vocab.txt`, with `merges.txt`
 * (byte-level BPE) or without (WordLevel); `tokenizer.model` (tiktoken). Beside any, `tokenizer_config.json` gives BOS, EOS, PAD
 * and further added tokens (one that tokenizer.json has is matched as it says there), and `special_tokens_map.json` what the
 * config does not name; the pipeline is always that of tokenizer.json, whatever class the config names.
 *
 * options  NULL: the defaults (zeros)
 *
 * Fails: CT_ERR_NOT_FOUND naming the path and what was looked for; CT_ERR_FORMAT naming file and place;
 * CT_ERR_UNSUPPORTED naming the component or value that is not implemented.
 * Threads: the result is constant; any number of threads may use it.
 */
CT_MUST_CHECK ct_status ct_tokenizer_open(const ct_alloc *alloc, const char *folder,
                                          const ct_tokenizer_options *options, ct_tokenizer **out_tokenizer,
                                          ct_err *err);
/* The same from memory. json: the text of tokenizer.json; config: that of tokenizer_config.json, or NULL. name stands
 * in errors. */
CT_MUST_CHECK ct_status ct_tokenizer_from_json(const ct_alloc *alloc, const char *json, size_t json_size,
                                               const char *config, size_t config_size, const char *name,
                                               const ct_tokenizer_options *options, ct_tokenizer **out_tokenizer,
                                               ct_err *err);
void ct_tokenizer_destroy(ct_tokenizer **tokenizer);

/* Highest id + 1, added tokens included: rows an embedding needs. Equal to the number of tokens unless ids have holes. */
int32_t ct_tokenizer_vocab_size(const ct_tokenizer *tokenizer);
int32_t ct_tokenizer_n_tokens(const ct_tokenizer *tokenizer);
/* -1 where tokenizer_config.json names none. */
int32_t ct_tokenizer_bos_id(const ct_tokenizer *tokenizer);
int32_t ct_tokenizer_eos_id(const ct_tokenizer *tokenizer);
int32_t ct_tokenizer_pad_id(const ct_tokenizer *tokenizer);
/* CT_ENCODE_BOS and CT_ENCODE_EOS as `add_bos_token` and `add_eos_token` of tokenizer_config.json say; else 0. */
unsigned ct_tokenizer_default_flags(const ct_tokenizer *tokenizer);
/* The id of a token by its text as the file spells it; -1 where there is none. */
int32_t ct_tokenizer_id_of(const ct_tokenizer *tokenizer, const char *token, size_t size);
/* The token of an id as the file spells it (may hold NUL), NULL for an id without a token. Borrowed. */
const char *ct_tokenizer_token_of(const ct_tokenizer *tokenizer, int32_t id, size_t *out_size);
bool ct_tokenizer_is_special(const ct_tokenizer *tokenizer, int32_t id);
/* The id of the i-th added token, special or not; -1 past the last. In no order that holds for all files. */
int32_t ct_tokenizer_added_id(const ct_tokenizer *tokenizer, int32_t i);
int32_t ct_tokenizer_n_merges(const ct_tokenizer *tokenizer);
/* "BPE", "WordPiece", "WordLevel" or "Unigram". */
const char *ct_tokenizer_model_kind(const ct_tokenizer *tokenizer);
/* Lines (each ended by a newline): each part of the pipeline with the names of its components. Borrowed. */
const char *ct_tokenizer_pipeline(const ct_tokenizer *tokenizer);
/* chat_template.jinja, or the member of tokenizer_config.json, is in the folder. */
bool ct_tokenizer_has_chat_template(const ct_tokenizer *tokenizer);
/* Lines (each ended by a newline) that a program logs after opening: which file was read; and what the user should know,
 * such as a missing tokenizer_config.json. "" where there are none. Borrowed. */
const char *ct_tokenizer_notes(const ct_tokenizer *tokenizer);
const char *ct_tokenizer_warnings(const ct_tokenizer *tokenizer);

/* --- encode --- */

/* A growing array of ids. Zero-initialise with the allocator; n = 0 empties it and keeps the memory. */
typedef struct ct_tokens {
    const ct_alloc *alloc; /* borrows */
    int32_t *ids;          /* owns */
    int64_t n, cap;
    int64_t n_dropped; /* characters left out so far (CT_ON_UNKNOWN_DROP only) */
} ct_tokens;
void ct_tokens_deinit(ct_tokens *tokens);
/* Room for n_more ids; appends one id. Fails: CT_ERR_MEMORY. */
CT_MUST_CHECK ct_status ct_tokens_reserve(ct_tokens *tokens, int64_t n_more, ct_err *err);
CT_MUST_CHECK ct_status ct_tokens_push(ct_tokens *tokens, int32_t id, ct_err *err);

enum {
    CT_ENCODE_BOS = 1u << 0, /* BOS in front, where the tokenizer has one */
    CT_ENCODE_EOS = 1u << 1, /* EOS at the end, where the tokenizer has one */
    /* The file's own post-processor is applied (as `add_special_tokens=True`); a BOS or EOS it puts there is not
     * put there a second time. Without this flag exactly what the two flags above ask for is added. */
    CT_ENCODE_TEMPLATE = 1u << 2,
    /* Special tokens spelt out in the text become their ids. Without this flag they are plain text, so that a document
     * cannot forge them. Added tokens that are not special are always matched. */
    CT_ENCODE_MATCH_SPECIAL = 1u << 3,
    /* What pre-training asks for. */
    CT_ENCODE_DOCUMENT = CT_ENCODE_BOS | CT_ENCODE_EOS | CT_ENCODE_TEMPLATE
};

/**
 * Appends the ids of text to tokens.
 *
 * text   size bytes, any size, NUL bytes included. Bytes that are not UTF-8 become U+FFFD first, one for each maximal
 *        ill-formed part, as Python's decode(errors="replace") does (Unicode 15, section 3.9, U+FFFD substitution).
 * flags  CT_ENCODE_*
 *
 * Cost: O(size log size) at worst, no recursion. Fails: CT_ERR_DATA naming the character and its byte offset where the
 * vocabulary cannot express it; CT_ERR_UNSUPPORTED where the split pattern exceeds the engine's limits; CT_ERR_MEMORY.
 * tokens is as before then. Threads: any, each with its own tokens.
 */
CT_MUST_CHECK ct_status ct_tokenizer_encode(const ct_tokenizer *tokenizer, const void *text, size_t size,
                                            unsigned flags, ct_tokens *tokens, ct_err *err);

/* The same with buffers and a word cache (2.5 MiB) kept between calls. One thread at a time. */
typedef struct ct_encoder ct_encoder;
CT_MUST_CHECK ct_status ct_encoder_create(const ct_alloc *alloc, const ct_tokenizer *tokenizer /* borrowed */,
                                          ct_encoder **out_encoder, ct_err *err);
void ct_encoder_destroy(ct_encoder **encoder);
CT_MUST_CHECK ct_status ct_encoder_encode(ct_encoder *encoder, const void *text, size_t size, unsigned flags,
                                          ct_tokens *tokens, ct_err *err);

/* Many documents at once on several threads (those of base/pool.h). The ids are those of one document after another, whatever the
 * number of threads; a long document is shared among threads where the tokenizer's pattern allows it to be cut.
 *
 *     ct_text texts[2] = {{"one", 3}, {"two", 3}};
 *     int64_t ends[2];
 *     CT_TRY(ct_batch_encoder_encode(batch, texts, 2, CT_ENCODE_DOCUMENT, &tokens, ends, err));
 *
 * A batch of some MB keeps the threads busy; its ids are held twice while the call lasts. Not beside a training step: the pool
 * serves one at a time, and who finds it taken computes alone. A loader thread uses a ct_encoder of its own. */
typedef struct ct_text {
    const char *data; /* borrows */
    size_t size;
} ct_text;
typedef struct ct_batch_encoder ct_batch_encoder;
/* n_threads  at most so many, each with its buffers and word cache; 0: all of the pool */
CT_MUST_CHECK ct_status ct_batch_encoder_create(const ct_alloc *alloc, const ct_tokenizer *tokenizer /* borrowed */, int n_threads,
                                                ct_batch_encoder **out_encoder, ct_err *err);
void ct_batch_encoder_destroy(ct_batch_encoder **encoder);
/* Appends the ids of n documents. ends: NULL, or n places in tokens, where each document ends. The first document that fails is
 * named in the error; tokens is as before then. One thread at a time. */
CT_MUST_CHECK ct_status ct_batch_encoder_encode(ct_batch_encoder *encoder, const ct_text *texts, int64_t n, unsigned flags,
                                                ct_tokens *tokens, int64_t *ends, ct_err *err);

/* --- decode --- */

enum { CT_DECODE_SKIP_SPECIAL = 1u << 0 };

/* Appends the bytes of ids to out, exactly: a list cut in the middle of a character gives the cut bytes.
 * Fails: CT_ERR_RANGE for an id without a token; out is as before then. */
CT_MUST_CHECK ct_status ct_tokenizer_decode(const ct_tokenizer *tokenizer, const int32_t *ids, int64_t n_ids,
                                            unsigned flags, cti_str *out, ct_err *err);

/* Decoding one id at a time, for printing: zero-initialise; each push appends whole UTF-8 characters only and holds
 * back the beginning of one; bytes that cannot become a character are U+FFFD. finish appends U+FFFD for what is held. */
typedef struct ct_decode_stream {
    unsigned char held[4];
    int n_held;
    bool started, owes_blank;
    int32_t n_stripped;
} ct_decode_stream;
CT_MUST_CHECK ct_status ct_decode_stream_push(ct_decode_stream *stream, const ct_tokenizer *tokenizer, int32_t id,
                                              unsigned flags, cti_str *out, ct_err *err);
void ct_decode_stream_finish(ct_decode_stream *stream, cti_str *out);

/* --- train --- */

/* Zero-initialise and set vocab_size; what is left zero takes its default. */
typedef struct ct_tokenizer_train_config {
    int32_t vocab_size;                 /* all tokens: specials + 256 bytes + merges */
    int64_t min_frequency;              /* a pair seen less often is not merged; default 1 */
    const char *const *special_tokens;  /* default: <|begin_of_text|>, <|end_of_text|>, <|pad|> */
    size_t n_special_tokens;
    const char *bos_token, *eos_token, *pad_token; /* default: the first, second and third special token */
    const char *pattern;                /* split pattern; default: CT_TOKENIZER_DEFAULT_PATTERN */
} ct_tokenizer_train_config;

/* Contractions; words with one leading non-letter; up to three digits; punctuation; blanks. */
extern const char *const CT_TOKENIZER_DEFAULT_PATTERN;

/**
 * Trains a byte-level BPE vocabulary: add documents, then write the folder.
 *
 *     ct_tokenizer_trainer *trainer;
 *     CT_TRY(ct_tokenizer_trainer_create(alloc, &(ct_tokenizer_train_config){.vocab_size = 2048}, &trainer, err));
 *     CT_TRY(ct_tokenizer_trainer_add(trainer, text, size, err));            // for each document
 *     CT_TRY(ct_tokenizer_trainer_train(trainer, err));
 *     CT_TRY(ct_tokenizer_trainer_write(trainer, "my-tokenizer", err));      // tokenizer.json, tokenizer_config.json
 *     ct_tokenizer_trainer_destroy(&trainer);
 *
 * Deterministic: the pair with the highest count is merged, ties to the lowest pair of ids (the order of the Hugging
 * Face trainer). Ids: special tokens, then the 256 bytes in the order of their code points, then merges. The same
 * documents in any order give the same files. Fails: CT_ERR_USAGE where vocab_size is below specials + 256 or above
 * 2^30; CT_ERR_DATA where the documents do not hold enough pairs to fill it (the message says how many there are).
 */
typedef struct ct_tokenizer_trainer ct_tokenizer_trainer;
CT_MUST_CHECK ct_status ct_tokenizer_trainer_create(const ct_alloc *alloc, const ct_tokenizer_train_config *config,
                                                    ct_tokenizer_trainer **out_trainer, ct_err *err);
void ct_tokenizer_trainer_destroy(ct_tokenizer_trainer **trainer);
CT_MUST_CHECK ct_status ct_tokenizer_trainer_add(ct_tokenizer_trainer *trainer, const void *text, size_t size,
                                                 ct_err *err);
CT_MUST_CHECK ct_status ct_tokenizer_trainer_train(ct_tokenizer_trainer *trainer, ct_err *err);
CT_MUST_CHECK ct_status ct_tokenizer_trainer_write(const ct_tokenizer_trainer *trainer, const char *folder,
                                                   ct_err *err);
/* Text of the two files; caller frees with ct_alloc_free. */
CT_MUST_CHECK ct_status ct_tokenizer_trainer_dump(const ct_tokenizer_trainer *trainer, char **out_tokenizer_json,
                                                  char **out_config_json, ct_err *err);

/* What has been seen so far: documents, distinct words, bytes. */
typedef struct ct_tokenizer_train_counts {
    int64_t n_documents, n_words, n_bytes;
} ct_tokenizer_train_counts;
ct_tokenizer_train_counts ct_tokenizer_trainer_counts(const ct_tokenizer_trainer *trainer);

/* All at once: files (`.txt`: one document a file; `.jsonl`: one a line, member `field`) and folders of them (sorted,
 * their sub-folders too) in, folder out. field NULL: "text". out_counts may be NULL. */
CT_MUST_CHECK ct_status ct_tokenizer_train(const ct_alloc *alloc, const ct_tokenizer_train_config *config,
                                           const char *const *paths, size_t n_paths, const char *field,
                                           const char *folder, ct_tokenizer_train_counts *out_counts, ct_err *err);

#endif
