/* SPDX-License-Identifier: Apache-2.0 */
/* Training of a byte-level BPE vocabulary (Sennrich, Haddow and Birch 2016, arXiv 1508.07909, over bytes as in GPT-2).
 *
 * Distinct words are counted first. Then, again and again, the most frequent pair of neighbouring symbols becomes a
 * token. Each pair knows its count and the words that may hold it, and a heap orders pairs by count; an entry of the
 * heap whose count is stale is put back with the right one when it comes to the top. */
#include "tokenizer/tokenizer_internal.h"
#include "tokenizer/tokenizer_train_internal.h"

static const char *const default_specials[] = {"<|begin_of_text|>", "<|end_of_text|>", "<|pad|>"};

static ct_status copy_specials(ct_tokenizer_trainer *t, const ct_tokenizer_train_config *config, ct_err *err)
{
    const char *const *names = config->special_tokens;
    size_t n = config->n_special_tokens;
    if (names == NULL) {
        names = default_specials;
        n = sizeof default_specials / sizeof *default_specials;
    }
    t->specials = CT_NEW_ARRAY(t->alloc, char *, n, err);
    if (t->specials == NULL) {
        return CT_ERR_MEMORY;
    }
    const char *const wanted[3] = {config->bos_token, config->eos_token, config->pad_token};
    static const char *const keys[3] = {"bos_token", "eos_token", "pad_token"};
    for (size_t i = 0; i < n; i++) {
        if (names[i][0] == '\0' || !cti_utf8_is_valid(names[i], strlen(names[i]))) {
            return CT_FAIL(err, CT_ERR_USAGE, "special token %zu is empty or not UTF-8", i);
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(names[i], names[j]) == 0) {
                return CT_FAIL(err, CT_ERR_USAGE, "special token '%s' is given twice", names[i]);
            }
        }
        t->specials[i] = ct_alloc_strdup(t->alloc, names[i], err);
        if (t->specials[i] == NULL) {
            return CT_ERR_MEMORY;
        }
        t->n_specials = i + 1;
    }
    for (size_t k = 0; k < 3; k++) {
        t->roles[k] = wanted[k] == NULL && k < n ? t->specials[k] : NULL;
        for (size_t i = 0; wanted[k] != NULL && i < n; i++) {
            t->roles[k] = strcmp(wanted[k], t->specials[i]) == 0 ? t->specials[i] : t->roles[k];
        }
        if (wanted[k] != NULL && t->roles[k] == NULL) {
            return CT_FAIL(err, CT_ERR_USAGE, "%s '%s' is not among the special tokens", keys[k], wanted[k]);
        }
    }
    return CT_OK;
}

static ct_status trainer_init(ct_tokenizer_trainer *t, const ct_tokenizer_train_config *config, ct_err *err)
{
    cti_vocab_init(&t->words, t->alloc);
    cti_vocab_init(&t->vocab, t->alloc);
    CT_TRY(copy_specials(t, config, err));
    const int64_t least = (int64_t)t->n_specials + 256;
    if (config->vocab_size < least || config->vocab_size > CTI_MAX_IDS) {
        return CT_FAIL(err, CT_ERR_USAGE, "vocab size %d is outside %lld..%d (%zu special tokens and 256 bytes at least)",
                       (int)config->vocab_size, (long long)least, CTI_MAX_IDS, t->n_specials);
    }
    if (config->min_frequency < 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "min frequency %lld is below 1", (long long)config->min_frequency);
    }
    t->vocab_size = config->vocab_size;
    t->min_frequency = cti_max_i64(1, config->min_frequency);
    const char *pattern = config->pattern ? config->pattern : CT_TOKENIZER_DEFAULT_PATTERN;
    t->pattern = ct_alloc_strdup(t->alloc, pattern, err);
    if (t->pattern == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(cti_scratch_init(&t->scratch, t->alloc, false, err));
    t->split = (cti_step){.kind = CTI_STEP_SPLIT, .behaviour = CTI_BEHAVIOUR_ISOLATED};
    return cti_regex_create(t->alloc, pattern, strlen(pattern), "split pattern", &t->split.pattern.regex, err);
}

ct_status ct_tokenizer_trainer_create(const ct_alloc *alloc, const ct_tokenizer_train_config *config,
                                      ct_tokenizer_trainer **out_trainer, ct_err *err)
{
    ct_tokenizer_trainer *t = CT_NEW(alloc, ct_tokenizer_trainer, err);
    if (t == NULL) {
        return CT_ERR_MEMORY;
    }
    t->alloc = alloc;
    const ct_status st = trainer_init(t, config, err);
    if (st != CT_OK) {
        ct_tokenizer_trainer_destroy(&t);
        return st;
    }
    *out_trainer = t;
    return CT_OK;
}

static void pairs_free(ct_tokenizer_trainer *t)
{
    for (size_t i = 0; i < t->n_pairs; i++) {
        ct_alloc_free(t->alloc, t->pairs[i].words);
    }
    ct_alloc_free(t->alloc, t->pairs);
    ct_alloc_free(t->alloc, t->pair_slots);
    ct_alloc_free(t->alloc, t->heap);
    ct_alloc_free(t->alloc, t->dirty);
    ct_alloc_free(t->alloc, t->symbols);
    ct_alloc_free(t->alloc, t->word_at);
    ct_alloc_free(t->alloc, t->word_size);
    t->pairs = NULL;
    t->pair_slots = NULL;
    t->heap = NULL;
    t->dirty = NULL;
    t->symbols = NULL;
    t->word_at = NULL;
    t->word_size = NULL;
    t->n_pairs = t->cap_pairs = t->n_pair_slots = t->n_heap = t->cap_heap = t->n_dirty = t->cap_dirty = 0;
}

void ct_tokenizer_trainer_destroy(ct_tokenizer_trainer **trainer)
{
    ct_tokenizer_trainer *t = *trainer;
    if (t == NULL) {
        return;
    }
    pairs_free(t);
    for (size_t i = 0; i < t->n_specials; i++) {
        ct_alloc_free(t->alloc, t->specials[i]);
    }
    ct_alloc_free(t->alloc, t->specials);
    ct_alloc_free(t->alloc, t->pattern);
    ct_alloc_free(t->alloc, t->counts);
    ct_alloc_free(t->alloc, t->merges);
    cti_vocab_deinit(&t->words);
    cti_vocab_deinit(&t->vocab);
    cti_step_deinit(&t->split, t->alloc);
    cti_scratch_deinit(&t->scratch);
    ct_alloc_free(t->alloc, t);
    *trainer = NULL;
}

static ct_status count_word(ct_tokenizer_trainer *t, const char *word, size_t size, ct_err *err)
{
    int32_t at = cti_vocab_find(&t->words, word, size);
    if (at < 0) {
        at = t->words.n_ids;
        if (at == CTI_MAX_IDS) {
            return CT_FAIL(err, CT_ERR_DATA, "the documents hold more than %d distinct words", CTI_MAX_IDS);
        }
        if ((size_t)at == t->cap_counts) {
            const size_t cap = t->cap_counts ? t->cap_counts * 2 : 1024;
            int64_t *counts = ct_alloc_resize(t->alloc, t->counts, cap, sizeof *counts, err);
            if (counts == NULL) {
                return CT_ERR_MEMORY;
            }
            t->counts = counts;
            t->cap_counts = cap;
        }
        CT_TRY(cti_vocab_add(&t->words, at, word, size, err));
        t->counts[at] = 0;
    }
    t->counts[at]++;
    return CT_OK;
}

ct_status ct_tokenizer_trainer_add(ct_tokenizer_trainer *t, const void *text, size_t size, ct_err *err)
{
    if (t->trained) {
        return CT_FAIL(err, CT_ERR_STATE, "the vocabulary is trained already; documents come before");
    }
    t->seen.n_documents++;
    t->seen.n_bytes += (int64_t)size;
    const char *p = text;
    if (!cti_utf8_is_valid(p, size)) {
        cti_str_reset(&t->scratch.repaired);
        cti_utf8_repair(p, size, &t->scratch.repaired);
        CT_TRY(cti_str_check(&t->scratch.repaired, err));
        p = t->scratch.repaired.data;
        size = t->scratch.repaired.len;
    }
    cti_piece piece = {.text = p, .size = size, .first_size = size > 0};
    CT_TRY(cti_pieces_start(&t->scratch, &t->split, 1, &piece, err));
    for (;;) {
        CT_TRY(cti_pieces_next(&t->scratch, &piece, err));
        if (piece.size == 0) {
            break;
        }
        CT_TRY(count_word(t, piece.text, piece.size, err));
    }
    t->seen.n_words = t->words.n_ids;
    return CT_OK;
}

ct_tokenizer_train_counts ct_tokenizer_trainer_counts(const ct_tokenizer_trainer *t)
{
    return t->seen;
}

/* --- pairs --- */

static size_t pair_slot(const ct_tokenizer_trainer *t, int32_t left, int32_t right)
{
    const size_t mask = t->n_pair_slots - 1;
    size_t at = (size_t)cti_mix_pair(left, right) & mask;
    while (t->pair_slots[at] != 0) {
        const cti_train_pair *pair = &t->pairs[t->pair_slots[at] - 1];
        if (pair->left == left && pair->right == right) {
            break;
        }
        at = (at + 1) & mask;
    }
    return at;
}

static ct_status pair_table_grow(ct_tokenizer_trainer *t, ct_err *err)
{
    const size_t n = t->n_pair_slots ? t->n_pair_slots * 2 : 4096;
    uint32_t *slots = CT_NEW_ARRAY(t->alloc, uint32_t, n, err);
    if (slots == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_alloc_free(t->alloc, t->pair_slots);
    t->pair_slots = slots;
    t->n_pair_slots = n;
    for (size_t i = 0; i < t->n_pairs; i++) {
        slots[pair_slot(t, t->pairs[i].left, t->pairs[i].right)] = (uint32_t)i + 1;
    }
    return CT_OK;
}

/* The pair's index; made where it is new. */
static ct_status pair_get(ct_tokenizer_trainer *t, int32_t left, int32_t right, size_t *out_index, ct_err *err)
{
    if (t->n_pairs * 2 >= t->n_pair_slots) {
        CT_TRY(pair_table_grow(t, err));
    }
    const size_t slot = pair_slot(t, left, right);
    if (t->pair_slots[slot] == 0) {
        if (t->n_pairs == t->cap_pairs) {
            const size_t cap = t->cap_pairs ? t->cap_pairs * 2 : 2048;
            cti_train_pair *pairs = ct_alloc_resize(t->alloc, t->pairs, cap, sizeof *pairs, err);
            if (pairs == NULL) {
                return CT_ERR_MEMORY;
            }
            t->pairs = pairs;
            t->cap_pairs = cap;
        }
        t->pairs[t->n_pairs] = (cti_train_pair){.left = left, .right = right};
        t->pair_slots[slot] = (uint32_t)++t->n_pairs;
    }
    *out_index = t->pair_slots[slot] - 1;
    return CT_OK;
}

/* Adds `count` occurrences in `word`; a pair that grows is noted for the heap. */
static ct_status pair_change(ct_tokenizer_trainer *t, int32_t left, int32_t right, int64_t count, int32_t word, ct_err *err)
{
    size_t index = 0;
    CT_TRY(pair_get(t, left, right, &index, err));
    cti_train_pair *pair = &t->pairs[index];
    pair->count += count;
    if (count < 0) {
        return CT_OK;
    }
    if (pair->n_words == 0 || pair->words[pair->n_words - 1] != word) {
        if (pair->n_words == pair->cap_words) {
            const uint32_t cap = pair->cap_words ? pair->cap_words * 2 : 4;
            int32_t *words = ct_alloc_resize(t->alloc, pair->words, cap, sizeof *words, err);
            if (words == NULL) {
                return CT_ERR_MEMORY;
            }
            pair->words = words;
            pair->cap_words = cap;
        }
        pair->words[pair->n_words++] = word;
    }
    if (!pair->is_dirty) {
        if (t->n_dirty == t->cap_dirty) {
            const size_t cap = t->cap_dirty ? t->cap_dirty * 2 : 1024;
            uint32_t *dirty = ct_alloc_resize(t->alloc, t->dirty, cap, sizeof *dirty, err);
            if (dirty == NULL) {
                return CT_ERR_MEMORY;
            }
            t->dirty = dirty;
            t->cap_dirty = cap;
        }
        pair->is_dirty = true;
        t->dirty[t->n_dirty++] = (uint32_t)index;
    }
    return CT_OK;
}

/* --- the heap: highest count first, then the lowest pair of ids --- */

static bool before(const ct_tokenizer_trainer *t, cti_train_entry a, cti_train_entry b)
{
    if (a.count != b.count) {
        return a.count > b.count;
    }
    const cti_train_pair *p = &t->pairs[a.pair], *q = &t->pairs[b.pair];
    return p->left != q->left ? p->left < q->left : p->right < q->right;
}

static ct_status heap_push(ct_tokenizer_trainer *t, cti_train_entry entry, ct_err *err)
{
    if (t->n_heap == t->cap_heap) {
        const size_t cap = t->cap_heap ? t->cap_heap * 2 : 4096;
        cti_train_entry *heap = ct_alloc_resize(t->alloc, t->heap, cap, sizeof *heap, err);
        if (heap == NULL) {
            return CT_ERR_MEMORY;
        }
        t->heap = heap;
        t->cap_heap = cap;
    }
    size_t at = t->n_heap++;
    while (at > 0 && before(t, entry, t->heap[(at - 1) / 2])) {
        t->heap[at] = t->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    t->heap[at] = entry;
    return CT_OK;
}

static cti_train_entry heap_pop(ct_tokenizer_trainer *t)
{
    const cti_train_entry top = t->heap[0], last = t->heap[--t->n_heap];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= t->n_heap) {
            break;
        }
        child += child + 1 < t->n_heap && before(t, t->heap[child + 1], t->heap[child]);
        if (!before(t, t->heap[child], last)) {
            break;
        }
        t->heap[at] = t->heap[child];
        at = child;
    }
    t->heap[at] = last;
    return top;
}

static ct_status push_dirty(ct_tokenizer_trainer *t, ct_err *err)
{
    for (size_t i = 0; i < t->n_dirty; i++) {
        cti_train_pair *pair = &t->pairs[t->dirty[i]];
        pair->is_dirty = false;
        if (pair->count > 0) {
            CT_TRY(heap_push(t, (cti_train_entry){.count = pair->count, .pair = t->dirty[i]}, err));
        }
    }
    t->n_dirty = 0;
    return CT_OK;
}

/* --- training --- */

/* Special tokens, then the byte alphabet in the order of its code points. */
static ct_status add_base_tokens(ct_tokenizer_trainer *t, ct_err *err)
{
    for (size_t i = 0; i < t->n_specials; i++) {
        CT_TRY(cti_vocab_add(&t->vocab, (int32_t)i, t->specials[i], strlen(t->specials[i]), err));
    }
    for (uint32_t cp = 0; cp <= 0x143; cp++) {
        if (cti_char_to_byte(cp) >= 0) {
            char text[4];
            const size_t n = (size_t)cti_utf8_encode(cp, text);
            if (cti_vocab_find(&t->vocab, text, n) >= 0) {
                return CT_FAIL(err, CT_ERR_USAGE, "special token '%.*s' is a character of the byte alphabet", (int)n, text);
            }
            CT_TRY(cti_vocab_add(&t->vocab, t->vocab.n_ids, text, n, err));
        }
    }
    return CT_OK;
}

/* Writes every distinct word as base symbols and counts the pairs. */
static ct_status lay_out_words(ct_tokenizer_trainer *t, ct_err *err)
{
    const size_t n_words = (size_t)t->words.n_ids;
    t->word_at = CT_NEW_ARRAY(t->alloc, size_t, n_words, err);
    t->word_size = CT_NEW_ARRAY(t->alloc, int32_t, n_words, err);
    t->symbols = CT_NEW_ARRAY(t->alloc, int32_t, t->words.bytes.len, err);
    if (t->word_at == NULL || t->word_size == NULL || t->symbols == NULL) {
        return CT_ERR_MEMORY;
    }
    int32_t ids[256];
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[4];
        const int n = cti_utf8_encode(cti_byte_to_char((unsigned char)byte), text);
        ids[byte] = cti_vocab_find(&t->vocab, text, (size_t)n);
    }
    size_t n_symbols = 0;
    for (int32_t w = 0; w < t->words.n_ids; w++) {
        const unsigned char *p = (const unsigned char *)cti_vocab_text(&t->words, w);
        const unsigned char *end = p + t->words.tokens[w].size;
        t->word_at[w] = n_symbols;
        while (p < end) {
            t->symbols[n_symbols++] = ids[*p++];
        }
        t->word_size[w] = (int32_t)(n_symbols - t->word_at[w]);
        const int32_t *symbols = t->symbols + t->word_at[w];
        for (int32_t i = 0; i + 1 < t->word_size[w]; i++) {
            CT_TRY(pair_change(t, symbols[i], symbols[i + 1], t->counts[w], w, err));
        }
    }
    return push_dirty(t, err);
}

static ct_status merge_in_word(ct_tokenizer_trainer *t, int32_t word, int32_t left, int32_t right, int32_t id, ct_err *err)
{
    int32_t *symbols = t->symbols + t->word_at[word];
    const int32_t n = t->word_size[word];
    const int64_t count = t->counts[word];
    int32_t out = 0;
    for (int32_t i = 0; i < n; i++) {
        if (symbols[i] != left || i + 1 == n || symbols[i + 1] != right) {
            symbols[out++] = symbols[i];
            continue;
        }
        if (out > 0) {
            CT_TRY(pair_change(t, symbols[out - 1], left, -count, word, err));
            CT_TRY(pair_change(t, symbols[out - 1], id, count, word, err));
        }
        if (i + 2 < n) {
            CT_TRY(pair_change(t, right, symbols[i + 2], -count, word, err));
            CT_TRY(pair_change(t, id, symbols[i + 2], count, word, err));
        }
        symbols[out++] = id;
        i++;
    }
    t->word_size[word] = out;
    return CT_OK;
}

/* Makes the pair a token (or finds the token that has this text already) and notes the merge. */
static ct_status name_merge(ct_tokenizer_trainer *t, int32_t left, int32_t right, bool is_again, int32_t *out_id, ct_err *err)
{
    cti_str text = {.alloc = t->alloc};
    cti_str_add_n(&text, cti_vocab_text(&t->vocab, left), (size_t)t->vocab.tokens[left].size);
    cti_str_add_n(&text, cti_vocab_text(&t->vocab, right), (size_t)t->vocab.tokens[right].size);
    ct_status st = cti_str_check(&text, err);
    if (st == CT_OK) {
        *out_id = cti_vocab_find(&t->vocab, text.data, text.len);
        if (*out_id < 0) {
            *out_id = t->vocab.n_ids;
            st = cti_vocab_add(&t->vocab, *out_id, text.data, text.len, err);
        }
    }
    cti_str_deinit(&text);
    CT_TRY(st);
    if (is_again) {
        return CT_OK;
    }
    if (t->n_merges == t->cap_merges) {
        const size_t cap = t->cap_merges ? t->cap_merges * 2 : 1024;
        cti_train_merge *merges = ct_alloc_resize(t->alloc, t->merges, cap, sizeof *merges, err);
        if (merges == NULL) {
            return CT_ERR_MEMORY;
        }
        t->merges = merges;
        t->cap_merges = cap;
    }
    t->merges[t->n_merges++] = (cti_train_merge){.left = left, .right = right};
    return CT_OK;
}

static ct_status merge_pair(ct_tokenizer_trainer *t, uint32_t index, ct_err *err)
{
    cti_train_pair pair = t->pairs[index];
    /* The list is taken out: changes below may move the array of pairs. */
    t->pairs[index].words = NULL;
    t->pairs[index].n_words = t->pairs[index].cap_words = 0;
    t->pairs[index].was_merged = true;
    int32_t id = 0;
    ct_status st = name_merge(t, pair.left, pair.right, pair.was_merged, &id, err);
    for (uint32_t i = 0; i < pair.n_words && st == CT_OK; i++) {
        st = merge_in_word(t, pair.words[i], pair.left, pair.right, id, err);
    }
    ct_alloc_free(t->alloc, pair.words);
    CT_TRY(st);
    t->pairs[index].count = 0;
    return push_dirty(t, err);
}

ct_status ct_tokenizer_trainer_train(ct_tokenizer_trainer *t, ct_err *err)
{
    if (t->trained) {
        return CT_FAIL(err, CT_ERR_STATE, "the vocabulary is trained already");
    }
    t->trained = true;
    CT_TRY(add_base_tokens(t, err));
    CT_TRY(lay_out_words(t, err));
    while (t->vocab.n_ids < t->vocab_size && t->n_heap > 0) {
        const cti_train_entry top = heap_pop(t);
        const int64_t count = t->pairs[top.pair].count;
        if (count != top.count) {
            if (count > 0) {
                CT_TRY(heap_push(t, (cti_train_entry){.count = count, .pair = top.pair}, err));
            }
            continue;
        }
        if (count < t->min_frequency) {
            break;
        }
        CT_TRY(merge_pair(t, top.pair, err));
    }
    pairs_free(t);
    if (t->vocab.n_ids < t->vocab_size) {
        return CT_FAIL(err, CT_ERR_DATA,
                       "vocab size %d is more than the documents fill: %lld documents of %lld bytes give %d tokens; ask for at most these, "
                       "or give more text",
                       (int)t->vocab_size, (long long)t->seen.n_documents, (long long)t->seen.n_bytes, (int)t->vocab.n_ids);
    }
    return CT_OK;
}
