/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer's state, shared by tokenizer_train.c (the algorithm) and tokenizer_train_files.c (what goes in and out). */
#ifndef CTI_TOKENIZER_TRAIN_INTERNAL_H
#define CTI_TOKENIZER_TRAIN_INTERNAL_H

#include "tokenizer/tokenizer_internal.h"

typedef struct cti_train_pair {
    int32_t left, right;
    int64_t count; /* occurrences in all words */
    int32_t *words; /* owns: words that hold it, or once did */
    uint32_t n_words, cap_words;
    bool is_dirty;   /* in `dirty` */
    bool was_merged; /* it has its line among the merges */
} cti_train_pair;
typedef struct cti_train_entry {
    int64_t count; /* when it was pushed */
    uint32_t pair;
} cti_train_entry;
typedef struct cti_train_merge {
    int32_t left, right;
} cti_train_merge;

struct ct_tokenizer_trainer {
    const ct_alloc *alloc; /* borrows */
    char **specials;       /* owns */
    size_t n_specials;
    const char *roles[3]; /* BOS, EOS, PAD: among specials, NULL: none */
    char *pattern;        /* owns */
    int32_t vocab_size;
    int64_t min_frequency;
    cti_step split;
    cti_scratch scratch;
    cti_vocab words; /* distinct words, as bytes */
    int64_t *counts; /* owns: by word */
    size_t cap_counts;
    ct_tokenizer_train_counts seen;
    bool trained;

    int32_t *symbols;   /* owns: all words end to end */
    size_t *word_at;    /* owns: where a word begins in symbols */
    int32_t *word_size; /* owns: symbols left in a word */
    cti_train_pair *pairs; /* owns */
    size_t n_pairs, cap_pairs;
    uint32_t *pair_slots; /* owns: hash table of index + 1 */
    size_t n_pair_slots;
    cti_train_entry *heap; /* owns */
    size_t n_heap, cap_heap;
    uint32_t *dirty; /* owns: pairs that grew and are not in the heap with their count */
    size_t n_dirty, cap_dirty;

    cti_vocab vocab; /* the result */
    cti_train_merge *merges; /* owns */
    size_t n_merges, cap_merges;
};

#endif
