/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `ctitan generate` (cmd_generate.c).
 *
 *   generate_prompts.c   what to go on from: words of the command line, files of lines, conversations
 *   generate_model.c     checkpoint or Hugging Face folder -> tokenizer, model, weights
 *   generate_stop.c      tokens and texts that end an answer
 */
#ifndef CTI_CLI_GENERATE_H
#define CTI_CLI_GENERATE_H

#include "base/json.h"
#include "base/str.h"
#include "ckpt/ckpt.h"
#include "ckpt/hf.h"
#include "cli/cli.h"
#include "tokenizer/tokenizer.h"
#include "train/generate.h"

/* ---- prompts --------------------------------------------------------------------------------------------------- */

typedef struct cti_prompt {
    char *place;      /* owns; "--prompt", "prompts.txt:3" */
    char *text;       /* owns; NULL: messages */
    size_t text_size;
    json_t *messages, *tools; /* own; tools may be NULL */
    ct_tokens ids;    /* filled by the caller */
} cti_prompt;
typedef struct cti_prompts {
    const ct_alloc *alloc;
    cti_prompt *items; /* owns */
    size_t n, cap;
} cti_prompts;
void cti_prompts_deinit(cti_prompts *prompts);
/* ERR_USAGE where text is not UTF-8: it could be neither printed as JSON nor found in what a model writes. */
CT_MUST_CHECK ct_status cti_gen_check_utf8(const char *place, const char *text, size_t size, ct_err *err);
CT_MUST_CHECK ct_status cti_prompts_add_text(cti_prompts *prompts, const char *place, const char *text, size_t size, ct_err *err);
/* Each line one prompt, an empty line too ("-": standard input). Names that end in .jsonl, .ndjson or .json: each line a JSON string, or an object
 * with `prompt`, or with `messages` and perhaps `tools`; a line without anything is an error. */
CT_MUST_CHECK ct_status cti_prompts_add_lines(cti_prompts *prompts, const char *path, ct_err *err);
/* A conversation: a JSON list of messages, or an object with `messages` and perhaps `tools`. */
CT_MUST_CHECK ct_status cti_prompts_add_messages(cti_prompts *prompts, const char *path, ct_err *err);

/* ---- model ----------------------------------------------------------------------------------------------------- */

typedef struct cti_gen_model {
    const ct_alloc *alloc;
    ct_ckpt *ckpt;       /* owns; or */
    json_t *hf_config;   /* owns; config.json of the Hugging Face folder `path` */
    const char *path;    /* borrowed */
    char *assets;        /* owns; the tokenizer's folder */
    ct_tokenizer *tokenizer;
    ct_tree *tree;
    const ct_component *spec; /* the tree's */
    cti_env env;         /* where overrides were applied */
    bool has_env;
    int64_t context;     /* tokens that the model is made for */
    cti_generator *gen;
} cti_gen_model;
/* Finds out what `path` is and opens the tokenizer (assets "": the run's, or the one beside the weights). notes: lines for the user. */
CT_MUST_CHECK ct_status cti_gen_model_open(const ct_alloc *alloc, const char *path, int64_t step, const char *assets, cti_gen_model *out_model,
                                           cti_str *notes, ct_err *err);
void cti_gen_model_close(cti_gen_model *model);
/* The graph's tree, with the overrides of the run where asked for; before weights are read. */
CT_MUST_CHECK ct_status cti_gen_model_plan(cti_gen_model *model, bool with_overrides, cti_str *notes, ct_err *err);
/* Memory and weights. */
CT_MUST_CHECK ct_status cti_gen_model_load(cti_gen_model *model, const ct_backend *backend, const cti_generator_options *options, ct_err *err);

/* ---- ends ------------------------------------------------------------------------------------------------------ */

typedef struct cti_gen_stops {
    ct_tokens ids;      /* zero-initialise with the allocator */
    ct_str_list texts;  /* borrowed; none is empty */
} cti_gen_stops;
/* EOS of the tokenizer, of generation_config.json in its folder and in `path`, or else of config.json there. */
CT_MUST_CHECK ct_status cti_gen_stops_add_eos(cti_gen_stops *stops, const cti_gen_model *model, ct_err *err);
/* A token by its text or its id. ERR_USAGE where the tokenizer has none such. */
CT_MUST_CHECK ct_status cti_gen_stops_add_token(cti_gen_stops *stops, const ct_tokenizer *tokenizer, const char *word, ct_err *err);
bool cti_gen_stops_has(const cti_gen_stops *stops, int32_t id);
/* How many bytes of text can be shown: all before the first stop text (*out_is_end), or all that cannot be the beginning of one. */
size_t cti_gen_stops_shown(const cti_gen_stops *stops, const char *text, size_t size, bool *out_is_end);

#endif
