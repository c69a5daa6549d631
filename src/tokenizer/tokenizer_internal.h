/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the room share: tables, the regular expressions, the pipeline's steps, a call's scratch memory. */
#ifndef CTI_TOKENIZER_INTERNAL_H
#define CTI_TOKENIZER_INTERNAL_H

#include "base/base.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_fast.h"

/* --- tables (tokenizer_vocab.c) --- */

typedef struct cti_token {
    size_t offset; /* into cti_vocab.bytes */
    int32_t size;  /* -1: no token has this id */
} cti_token;

/* Token text <-> id. Zero-initialise with the allocator. */
typedef struct cti_vocab {
    const ct_alloc *alloc; /* borrows */
    cti_str bytes;         /* owns: all texts end to end */
    cti_token *tokens;     /* owns: by id */
    int32_t n_ids, cap_ids, n_tokens;
    int32_t *slots; /* owns: hash table of id + 1, 0 is free */
    size_t n_slots; /* a power of two, or 0 */
} cti_vocab;

#define CTI_MAX_IDS (1 << 24) /* ids of one vocabulary; above it is a damaged file */

void cti_vocab_init(cti_vocab *vocab, const ct_alloc *alloc);
void cti_vocab_deinit(cti_vocab *vocab);
int32_t cti_vocab_find(const cti_vocab *vocab, const char *text, size_t size); /* -1: not there */
/* Refuses (ERR_FORMAT) an id or a text that is taken and an id outside [0, CTI_MAX_IDS). */
CT_MUST_CHECK ct_status cti_vocab_add(cti_vocab *vocab, int32_t id, const char *text, size_t size, ct_err *err);
static inline bool cti_vocab_has(const cti_vocab *vocab, int32_t id)
{
    return id >= 0 && id < vocab->n_ids && vocab->tokens[id].size >= 0;
}
static inline const char *cti_vocab_text(const cti_vocab *vocab, int32_t id)
{
    return vocab->bytes.data + vocab->tokens[id].offset;
}

/* (left id, right id) -> (rank, merged id). Most questions are answered no, so the hash table is small: a slot has 8 bits of the
 * pair's hash above its index + 1 in the list; 0 is free. */
typedef struct cti_merge {
    int32_t left, right;
    int32_t rank, id;
} cti_merge;
typedef struct cti_merges {
    const ct_alloc *alloc; /* borrows */
    cti_merge *list;       /* owns */
    uint32_t *slots;       /* owns */
    size_t mask;           /* slots - 1 */
    int32_t n, cap;
} cti_merges;

CT_MUST_CHECK ct_status cti_merges_init(cti_merges *merges, const ct_alloc *alloc, ct_err *err);
void cti_merges_deinit(cti_merges *merges);
/* The rank of the first merge with these parts stands; a later one takes its place (the order of the file's own map). */
CT_MUST_CHECK ct_status cti_merges_put(cti_merges *merges, cti_merge merge, ct_err *err);

static inline uint64_t cti_mix_pair(int32_t left, int32_t right)
{
    uint64_t x = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

/* NULL: none. */
static inline const cti_merge *cti_merges_find(const cti_merges *merges, int32_t left, int32_t right)
{
    const uint64_t hash = cti_mix_pair(left, right);
    const uint32_t tag = (uint32_t)(hash >> 56) << 24;
    for (size_t at = (size_t)hash & merges->mask;; at = (at + 1) & merges->mask) {
        const uint32_t slot = merges->slots[at];
        if (slot == 0) {
            return NULL;
        }
        if (((slot ^ tag) & 0xff000000u) == 0) {
            const cti_merge *m = &merges->list[(slot & 0xffffffu) - 1];
            if (m->left == left && m->right == right) {
                return m;
            }
        }
    }
}

/* --- the byte alphabet (tokenizer_bytes.c): each byte as a printable character, as GPT-2 defined it --- */

uint32_t cti_byte_to_char(unsigned char byte);
int cti_char_to_byte(uint32_t cp); /* -1: not in the alphabet */
void cti_bytes_to_alphabet(const char *bytes, size_t size, cti_str *out);
/* Appends the bytes that text stands for; false (nothing appended) where a character is not of the alphabet. */
bool cti_alphabet_to_bytes(const char *text, size_t size, cti_str *out);

/* Standard alphabet, '=' at the end; appends. False where text is not base64. */
bool cti_base64_decode(const char *text, size_t size, cti_str *out);

/* UTF-8: ill-formed parts become U+FFFD, one for each maximal part. True where text is well-formed (out untouched). */
bool cti_utf8_is_valid(const char *text, size_t size);
void cti_utf8_repair(const char *text, size_t size, cti_str *out);
/* Length of the maximal ill-formed part at p (1..3); *out_open: it reaches `end` and more bytes could complete it. */
size_t cti_utf8_ill_formed(const unsigned char *p, const unsigned char *end, bool *out_open);

/* --- classes of characters as the library's components have them (tokenizer_unicode.c) --- */

int cti_category(uint32_t cp);              /* general category of Unicode 16: utf8proc's constants */
int cti_newer_category(uint32_t cp);        /* the same for what Unicode 15 and 16 added; -1 for all others */
bool cti_is_space(uint32_t cp);             /* White_Space */
bool cti_is_word(uint32_t cp);              /* \w of the library's own components; its split patterns differ, see WORD_SET */
bool cti_is_combining_mark(uint32_t cp);    /* StripAccents */
bool cti_is_nonspacing_mark(uint32_t cp);   /* BertNormalizer */
bool cti_is_punctuation(uint32_t cp);       /* Punctuation, BertPreTokenizer */
bool cti_is_numeric(uint32_t cp);           /* Digits */
bool cti_is_bert_removed(uint32_t cp);      /* BertNormalizer's clean_text */
bool cti_is_chinese(uint32_t cp);           /* BertNormalizer's handle_chinese_chars */
uint32_t cti_to_lower(uint32_t cp);         /* of one character to one: U+0130 is the caller's */
bool cti_decomposes(uint32_t cp);           /* the normal forms know the character */
int cti_combining_class(uint32_t cp);       /* as the normal forms know it */
/* Appends, for a class of a pattern, what Unicode 15 and 16 added to a property: "L", "Lu" and so on, or "Han". */
void cti_unicode_newer_ranges(const char *property, cti_str *out);

/* --- regular expressions (tokenizer_regex.c) --- */

typedef struct cti_regex cti_regex;
/* The pattern is in Oniguruma's Ruby syntax, as Hugging Face files hold it; it is translated to PCRE2. What PCRE2 would
 * read otherwise is refused. where: stands in errors. */
CT_MUST_CHECK ct_status cti_regex_create(const ct_alloc *alloc, const char *pattern, size_t size, const char *where,
                                         cti_regex **out_regex, ct_err *err);
void cti_regex_destroy(cti_regex **regex);
/* Whether it is a pattern that is matched by hand, and with what table. */
cti_known cti_regex_known(const cti_regex *regex, const cti_classes **out_classes);

typedef struct cti_matcher cti_matcher; /* what one thread needs to match */
CT_MUST_CHECK ct_status cti_matcher_create(const ct_alloc *alloc, cti_matcher **out_matcher, ct_err *err);
void cti_matcher_destroy(cti_matcher **matcher);

/* The leftmost match at or after `from` in well-formed UTF-8; *out_start = SIZE_MAX where there is none. */
CT_MUST_CHECK ct_status cti_regex_find(const cti_regex *regex, cti_matcher *matcher, const char *text, size_t size,
                                       size_t from, size_t *out_start, size_t *out_end, ct_err *err);

/* The same by PCRE2 whatever the pattern is; tests compare the two. */
CT_MUST_CHECK ct_status cti_regex_find_plain(const cti_regex *regex, cti_matcher *matcher, const char *text, size_t size,
                                             size_t from, size_t *out_start, size_t *out_end, ct_err *err);

/* White_Space of Unicode, inside a class. */
#define CTI_SPACE_SET                                                                                                  \
    "\\x09-\\x0d\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"

/* --- what a pattern of the file is: a literal, a regular expression or a class of characters --- */

typedef struct cti_pattern {
    bool (*is_in)(uint32_t cp); /* NULL: not a class of characters, which matches one at a time */
    cti_regex *regex;           /* owns; NULL: literal */
    char *literal;    /* owns */
    size_t literal_size;
} cti_pattern;
void cti_pattern_deinit(cti_pattern *pattern, const ct_alloc *alloc);
/* Appends text with each match replaced. */
CT_MUST_CHECK ct_status cti_pattern_replace(const cti_pattern *pattern, cti_matcher *matcher, const char *text,
                                            size_t size, const char *by, size_t by_size, cti_str *out, ct_err *err);
/* Walks the matches of a pattern over one text, empty ones included, each empty one once. */
typedef struct cti_walk {
    const cti_pattern *pattern;
    cti_matcher *matcher;
    const char *text;
    size_t size, from, last_end; /* last_end SIZE_MAX: no match yet */
} cti_walk;
cti_walk cti_walk_start(const cti_pattern *pattern, cti_matcher *matcher, const char *text, size_t size);
CT_MUST_CHECK ct_status cti_walk_next(cti_walk *walk, size_t *out_start, size_t *out_end, ct_err *err);

/* --- pre-tokenizer steps (tokenizer_split.c) --- */

typedef enum cti_behaviour {
    CTI_BEHAVIOUR_REMOVED,
    CTI_BEHAVIOUR_ISOLATED,
    CTI_BEHAVIOUR_MERGED_WITH_PREVIOUS,
    CTI_BEHAVIOUR_MERGED_WITH_NEXT,
    CTI_BEHAVIOUR_CONTIGUOUS,
    CTI_BEHAVIOUR_COUNT
} cti_behaviour;

typedef enum cti_scheme { CTI_SCHEME_NEVER, CTI_SCHEME_FIRST, CTI_SCHEME_ALWAYS, CTI_SCHEME_COUNT } cti_scheme;

typedef enum cti_step_kind {
    CTI_STEP_PREFIX_SPACE, /* a blank in front of each piece that has none */
    CTI_STEP_SPLIT,
    CTI_STEP_BYTES,     /* bytes to the byte alphabet */
    CTI_STEP_METASPACE, /* blanks become `mark`, and one is put in front by scheme */
    CTI_STEP_FIXED,     /* pieces of `length` characters */
    CTI_STEP_COUNT
} cti_step_kind;

typedef struct cti_step {
    cti_step_kind kind;
    cti_pattern pattern; /* owns; SPLIT */
    cti_behaviour behaviour;
    bool invert;
    char mark[5]; /* METASPACE: one character in UTF-8 */
    int64_t length; /* FIXED */
    cti_scheme scheme;
} cti_step;

/* A part of a text on its way through the steps. */
typedef struct cti_piece {
    const char *text; /* borrows */
    size_t size;
    size_t origin;     /* byte of the text that came in where it begins, or a little before once it was rewritten */
    size_t first_size; /* bytes at its beginning that stand for the whole text's first character */
    bool is_rewritten; /* its bytes are no longer bytes of what came in */
} cti_piece;
/* first_size of the part from start to end of a piece that has `first`. */
static inline size_t cti_left_of(size_t first, size_t start, size_t end)
{
    return first <= start ? 0 : (first < end ? first : end) - start;
}

typedef struct cti_part {
    size_t start, end; /* of the frame's piece */
    bool is_match;
} cti_part;
/* One step at work on one piece. */
typedef struct cti_frame {
    cti_piece piece;
    cti_walk walk;  /* SPLIT */
    cti_part match, ahead; /* found and not given out; read ahead */
    bool has_match, has_ahead, no_more;
    size_t done; /* of piece */
    cti_str own; /* owns: the piece as a rewriting step leaves it */
} cti_frame;

/* --- normalizer steps (tokenizer_normalize.c) --- */

typedef enum cti_norm_kind {
    CTI_NORM_NFC,
    CTI_NORM_NFD,
    CTI_NORM_NFKC,
    CTI_NORM_NFKD,
    CTI_NORM_LOWERCASE,
    CTI_NORM_STRIP_ACCENTS,
    CTI_NORM_NMT,
    CTI_NORM_CLEAN,      /* BertNormalizer's parts: control characters go, blanks become U+0020 */
    CTI_NORM_CHINESE,    /* a blank before and after each ideograph */
    CTI_NORM_NONSPACING, /* nonspacing marks go */
    CTI_NORM_STRIP,
    CTI_NORM_BYTE_LEVEL,
    CTI_NORM_REPLACE,
    CTI_NORM_PREPEND,
    CTI_NORM_CHARSMAP,
    CTI_NORM_COUNT
} cti_norm_kind;
typedef struct cti_charsmap cti_charsmap; /* SentencePiece's table of replacements (tokenizer_charsmap.c) */
typedef struct cti_norm {
    cti_norm_kind kind;
    cti_pattern pattern; /* owns; REPLACE */
    char *content;       /* owns; REPLACE, PREPEND */
    size_t content_size;
    bool left, right;       /* STRIP */
    cti_charsmap *charsmap; /* owns; CHARSMAP */
} cti_norm;
void cti_norm_deinit(cti_norm *norm, const ct_alloc *alloc);

/* base64: as the member `precompiled_charsmap` holds it. */
CT_MUST_CHECK ct_status cti_charsmap_create(const ct_alloc *alloc, const char *base64, size_t size, const char *where,
                                            cti_charsmap **out_map, ct_err *err);
void cti_charsmap_destroy(cti_charsmap **map);
void cti_charsmap_apply(const cti_charsmap *map, const char *text, size_t size, cti_str *out);

/* --- decoder steps (tokenizer_decode.c) --- */

typedef enum cti_dec_kind {
    CTI_DEC_BYTE_LEVEL,
    CTI_DEC_BYTE_FALLBACK,
    CTI_DEC_REPLACE,
    CTI_DEC_STRIP,     /* of each token */
    CTI_DEC_METASPACE, /* the mark becomes a blank; by_first: in the first token it goes */
    CTI_DEC_WORDPIECE, /* a token but the first loses the prefix or gets a blank in front */
    CTI_DEC_BPE,       /* the suffix becomes a blank, in the last token it goes */
    CTI_DEC_COUNT
} cti_dec_kind;
typedef struct cti_dec {
    cti_dec_kind kind;
    bool by_first, by_last; /* the first token of a text, or the last, is treated otherwise */
    cti_pattern pattern;    /* owns; REPLACE */
    char *text;             /* owns; REPLACE: what is put in; WORDPIECE: prefix; BPE: suffix */
    size_t text_size;
    char mark[5]; /* STRIP, METASPACE */
    int64_t start, stop; /* STRIP */
    bool cleanup;        /* WORDPIECE */
} cti_dec;
void cti_dec_deinit(cti_dec *dec, const ct_alloc *alloc);

/* What each token stands for: at[id] .. at[id + 1] of bytes. */
typedef struct cti_decoded {
    cti_str bytes;
    size_t *at; /* owns: vocab.n_ids + 1; NULL: there is no such table */
} cti_decoded;

/* --- added tokens (tokenizer_added.c) --- */

typedef struct cti_added {
    int32_t id;
    bool special, single_word, lstrip, rstrip, normalized;
    char *content; /* owns */
    size_t size;
} cti_added;

/* A set of strings; finds the longest that begins at a place. */
typedef struct cti_trie_node {
    int32_t child, sibling; /* -1: none */
    int32_t value;          /* index of the added token, -1: none */
    unsigned char byte;
} cti_trie_node;
typedef struct cti_trie {
    cti_trie_node *nodes; /* owns */
    int32_t n, cap;
    int32_t roots[256]; /* node of each first byte, -1: none */
} cti_trie;
/* The node that byte leads to from node (-1: from the beginning), -1: none. */
static inline int32_t cti_trie_step(const cti_trie *trie, int32_t node, unsigned char byte)
{
    if (node < 0) {
        return trie->n > 0 ? trie->roots[byte] : -1;
    }
    node = trie->nodes[node].child;
    while (node >= 0 && trie->nodes[node].byte != byte) {
        node = trie->nodes[node].sibling;
    }
    return node;
}
CT_MUST_CHECK ct_status cti_trie_add(cti_trie *trie, const ct_alloc *alloc, const char *text, size_t size,
                                     int32_t value, ct_err *err);
void cti_trie_deinit(cti_trie *trie, const ct_alloc *alloc);

/* --- a call's scratch memory --- */

typedef struct cti_heap {
    uint64_t *entries; /* owns */
    size_t n, cap;
} cti_heap;
/* What merging a long word needs (tokenizer_bpe_long.c). Zero-initialise with the allocator; for one tokenizer only. */
typedef struct cti_long_word {
    const ct_alloc *alloc;   /* borrows */
    struct cti_link *links;  /* own */
    const cti_merge **pairs; /* of each symbol and its right neighbour, NULL: they do not merge */
    struct cti_node *nodes;
    size_t cap; /* symbols; nodes: twice as many */
    int32_t free_node;
    struct cti_queue *queues; /* by merge */
    cti_heap ranks, strays;
    uint64_t n_lookups; /* pairs looked up so far, for tests */
} cti_long_word;
void cti_long_word_deinit(cti_long_word *word);
/* Merges n symbols in place. */
CT_MUST_CHECK ct_status cti_merge_long(const cti_merges *merges, cti_long_word *word, int32_t *ids, size_t *n, ct_err *err);

typedef struct cti_scratch {
    const ct_alloc *alloc; /* borrows */
    cti_matcher *matcher;  /* owns */
    cti_str repaired, norm_a, norm_b;
    cti_str spelt;   /* a word in the byte alphabet */
    int32_t *points; /* owns: code points, for normal forms */
    size_t cap_points;
    const cti_step *steps; /* borrows */
    size_t n_steps, depth; /* frames in use */
    cti_frame *frames;     /* owns */
    size_t n_frames;
    cti_piece whole; /* the only piece where there are no steps */
    int32_t *ids;    /* owns: symbols of one word */
    size_t cap_ids;
    cti_long_word long_word;
    cti_cache *cache;   /* owns; NULL: no cache */
    cti_str piece;          /* WordPiece */
    struct cti_best *best;  /* owns; Unigram: by byte of the word, one more */
    size_t cap_best;
} cti_scratch;
CT_MUST_CHECK ct_status cti_scratch_init(cti_scratch *scratch, const ct_alloc *alloc, bool cache, ct_err *err);
void cti_scratch_deinit(cti_scratch *scratch);

/* --- the tokenizer --- */

typedef enum cti_model_kind {
    CTI_MODEL_BPE,
    CTI_MODEL_WORDPIECE,
    CTI_MODEL_WORDLEVEL,
    CTI_MODEL_UNIGRAM,
    CTI_MODEL_COUNT
} cti_model_kind;

enum { CTI_PLACE_INSIDE, CTI_PLACE_FIRST, CTI_PLACE_LAST, CTI_PLACE_COUNT }; /* of a token in a text */

/* U+2581, SentencePiece's mark for a blank. */
#define CTI_MARK "\xe2\x96\x81"

struct ct_tokenizer {
    const ct_alloc *alloc; /* borrows */
    ct_tokenizer_options options;
    cti_vocab vocab; /* model and added tokens */
    cti_merges merges;
    int32_t n_merges;      /* lines of the file */
    int32_t char_ids[2048]; /* id of each one-character token below U+0800, -1: none */
    int32_t byte_ids[256];  /* byte fallback: ids of <0x00>..<0xFF>, -1: none */
    /* The last step writes bytes in the byte alphabet and the model's words are such: the model works on bytes then, and that step
     * is left out. */
    bool is_raw;
    int32_t raw_ids[256]; /* id of each byte's character, -1: none */
    uint32_t *byte_pairs; /* owns; NULL where not is_raw: index + 1 of the merge of each two bytes, 0: none */
    cti_known known;      /* the only step but for the last, where it is a known pattern that leaves no gaps */
    const cti_classes *classes;
    bool parts_at_mark;                  /* a word may be cut before CTI_MARK: see cti_bpe_word() */
    bool can_cut, can_cut_behind_blanks; /* see cti_cut() */
    int32_t longest;        /* bytes of the longest token */
    bool *is_model;         /* owns: by id; false where the token is not the model's (a hole, or added only) */
    int32_t n_is_model;
    cti_model_kind model;
    bool byte_fallback, fuse_unk, ignore_merges;
    int32_t unk_id;
    char *prefix, *suffix;    /* own; BPE, WordPiece: of a word's characters but the first, of its last; NULL: none */
    int64_t max_word_chars;   /* WordPiece: a longer word is unknown as a whole */
    int32_t max_token_bytes;  /* WordPiece: of the longest token */
    double *scores;           /* owns; Unigram: by id */
    double unk_score;         /* Unigram: of a character that no token covers */
    cti_trie pieces;          /* Unigram: the model's tokens, value = id */
    cti_norm *norms; /* owns */
    size_t n_norms;
    cti_step *steps; /* owns */
    size_t n_steps;
    bool wants_start; /* a step asks whether a piece begins the whole text */
    cti_dec *decs; /* owns */
    size_t n_decs;
    bool has_decoder;    /* false: tokens are joined with blanks */
    bool joins;          /* the decoder puts all tokens together before it is done */
    char strip_mark[5];  /* taken off the beginning of the whole text up to strip_count times */
    int32_t strip_count;
    cti_added *added; /* owns */
    size_t n_added;
    cti_trie raw[2], normed[2]; /* [match special]: added tokens matched before and after normalizing */
    int32_t *template_before, *template_after; /* own: the post-processor's ids round the text */
    size_t n_before, n_after;
    int32_t bos_id, eos_id, pad_id;
    unsigned default_flags;
    cti_decoded decoded[CTI_PLACE_COUNT]; /* FIRST and LAST only where the decoder treats them otherwise */
    bool *special;      /* owns: by id */
    cti_str notes, warnings;
    cti_str pipeline; /* lines: the components by name */
    bool has_chat_template;
};

/* --- between files --- */

/* tokenizer_split.c: cuts a text into words by the steps. start, then next until a piece of size 0; a piece stands until the
 * next call. */
CT_MUST_CHECK ct_status cti_pieces_start(cti_scratch *scratch, const cti_step *steps, size_t n_steps, const cti_piece *whole,
                                         ct_err *err);
CT_MUST_CHECK ct_status cti_pieces_next(cti_scratch *scratch, cti_piece *out_piece, ct_err *err);
void cti_step_deinit(cti_step *step, const ct_alloc *alloc);
/* tokenizer_normalize.c: *out_text is text itself or points into scratch. *out_first (may be NULL): how many bytes at its
 * beginning stand for the first character of text: that character as it became, and what was put in front of it. */
CT_MUST_CHECK ct_status cti_normalize(const cti_norm *norms, size_t n_norms, cti_scratch *scratch, const char *text,
                                      size_t size, const char **out_text, size_t *out_size, size_t *out_first, ct_err *err);
/* tokenizer_bpe.c: appends the ids of one word. origin: its place, for errors. cti_bpe_word: as the vocabulary spells it;
 * cti_bpe_bytes: its bytes, which stand for characters of the byte alphabet. */
CT_MUST_CHECK ct_status cti_bpe_word(const ct_tokenizer *tok, cti_scratch *scratch, const char *word, size_t size,
                                     size_t origin, ct_tokens *tokens, ct_err *err);
/* The same by the tokenizer's model (tokenizer_models.c). */
CT_MUST_CHECK ct_status cti_model_word(const ct_tokenizer *tok, cti_scratch *scratch, const char *word, size_t size,
                                       size_t origin, ct_tokens *tokens, ct_err *err);
/* A word as BPE's symbols where the model has a prefix or a suffix; ids has room for size of them. */
CT_MUST_CHECK ct_status cti_bpe_lay_out_affixed(const ct_tokenizer *tok, int32_t *ids, const char *word,
                                                size_t size, size_t origin, ct_tokens *tokens, size_t *out_n, ct_err *err);
/* What to do with a part of a word that has no token, where there is no unknown token either. */
CT_MUST_CHECK ct_status cti_unknown(const ct_tokenizer *tok, const char *text, size_t size, size_t origin,
                                    ct_tokens *tokens, ct_err *err);
static inline int32_t cti_model_id(const ct_tokenizer *tok, const char *text, size_t size)
{
    const int32_t id = cti_vocab_find(&tok->vocab, text, size);
    return id >= 0 && id < tok->n_is_model && tok->is_model[id] ? id : -1; /* added tokens are not the model's */
}
CT_MUST_CHECK ct_status cti_bpe_bytes(const ct_tokenizer *tok, cti_scratch *scratch, const char *word, size_t size,
                                      size_t origin, ct_tokens *tokens, ct_err *err);
/* tokenizer_hot.c: what the hot path needs of a complete tokenizer; text by a known pattern (tok->known). */
CT_MUST_CHECK ct_status cti_encode_prepare(ct_tokenizer *tok, ct_err *err);
CT_MUST_CHECK ct_status cti_encode_known(const ct_tokenizer *tok, cti_scratch *scratch, const cti_piece *text, ct_tokens *tokens,
                                         ct_err *err);
/* The first place at or behind `want` where text may be cut so that the parts, encoded one by one, give the ids of the whole; size
 * where there is none. */
size_t cti_cut(const ct_tokenizer *tok, const char *text, size_t size, size_t want);
/* tokenizer_encode.c: what the flags put before a document, its text (origin: where this part begins) and what they put behind. */
CT_MUST_CHECK ct_status cti_encode_before(const ct_tokenizer *tok, unsigned flags, ct_tokens *tokens, ct_err *err);
CT_MUST_CHECK ct_status cti_encode_text(const ct_tokenizer *tok, cti_scratch *scratch, const char *text, size_t size, size_t origin,
                                        unsigned flags, ct_tokens *tokens, ct_err *err);
CT_MUST_CHECK ct_status cti_encode_after(const ct_tokenizer *tok, unsigned flags, ct_tokens *tokens, ct_err *err);
cti_scratch *cti_encoder_scratch(ct_encoder *encoder);
/* tokenizer_added.c */
typedef struct cti_hit {
    int32_t added; /* index, -1: plain text */
    size_t start, end;
} cti_hit;
/* The next stretch of text from *place on: plain text up to a token, or a token. False at the end. Zero-initialise. */
typedef struct cti_added_walk {
    size_t place, search; /* plain text not given out begins at place; the search goes on at search */
    cti_hit token;        /* found and waiting behind plain text */
    bool waiting;
} cti_added_walk;
bool cti_added_next(const ct_tokenizer *tok, const cti_trie tries[2], bool match_special, const char *text, size_t size,
                    cti_added_walk *walk, cti_hit *out_hit);
/* Registers or completes an added token, with the checks on collisions. id -1: the token's own id in the vocabulary, or
 * the next free one. */
CT_MUST_CHECK ct_status cti_added_put(ct_tokenizer *tok, cti_added token, const char *where, ct_err *err);
CT_MUST_CHECK ct_status cti_added_finish(ct_tokenizer *tok, cti_scratch *scratch, ct_err *err);
/* tokenizer_json.c, tokenizer_pipeline.c; the getters give `fallback` for a member that is missing or null. */
CT_MUST_CHECK ct_status cti_get_bool(const json_t *obj, const char *key, bool fallback, const char *where, bool *out,
                                     ct_err *err);
/* Refuses a member of obj that is not among the names, which end with NULL. */
CT_MUST_CHECK ct_status cti_check_keys(const json_t *obj, const char *const *names, const char *where, ct_err *err);
/* tokenizer_models.c: the members of a model of a kind other than BPE; "type" says which. */
CT_MUST_CHECK ct_status cti_parse_wordpiece(ct_tokenizer *tok, const json_t *model, const char *where, ct_err *err);
CT_MUST_CHECK ct_status cti_parse_wordlevel(ct_tokenizer *tok, const json_t *model, const char *where, ct_err *err);
CT_MUST_CHECK ct_status cti_parse_unigram(ct_tokenizer *tok, const json_t *model, const char *where, ct_err *err);
CT_MUST_CHECK ct_status cti_get_affix(ct_tokenizer *tok, const json_t *model, const char *key, const char *where,
                                      char **out, ct_err *err);
/* Once the vocabulary is complete: which ids are the model's. */
CT_MUST_CHECK ct_status cti_vocab_finish(ct_tokenizer *tok, ct_err *err);
CT_MUST_CHECK ct_status cti_parse_vocab(ct_tokenizer *tok, const json_t *vocab, const char *where, ct_err *err);
/* After the merges: what the model's tables need of the vocabulary. */
CT_MUST_CHECK ct_status cti_model_finish(ct_tokenizer *tok, ct_err *err);
CT_MUST_CHECK ct_status cti_tokenizer_parse(ct_tokenizer *tok, const json_t *root, const char *name, ct_err *err);
CT_MUST_CHECK ct_status cti_parse_normalizer(ct_tokenizer *tok, const json_t *json, const char *name, ct_err *err);
CT_MUST_CHECK ct_status cti_parse_pre_tokenizer(ct_tokenizer *tok, const json_t *json, const char *name, ct_err *err);
CT_MUST_CHECK ct_status cti_parse_post_processor(ct_tokenizer *tok, const json_t *json, const char *name, ct_err *err);
CT_MUST_CHECK ct_status cti_parse_decoder(ct_tokenizer *tok, const json_t *json, const char *name, ct_err *err);
CT_MUST_CHECK ct_status cti_add_byte_level(ct_tokenizer *tok, bool prefix_space, bool use_regex, ct_err *err);
CT_MUST_CHECK ct_status cti_add_decoder_byte_level(ct_tokenizer *tok, ct_err *err);
CT_MUST_CHECK ct_status cti_merge_add(ct_tokenizer *tok, const char *left, size_t left_size, const char *right,
                                      size_t right_size, int64_t rank, const char *where, ct_err *err);
/* tokenizer_decode.c: fills `decoded` and `special`. */
CT_MUST_CHECK ct_status cti_decode_prepare(ct_tokenizer *tok, cti_scratch *scratch, ct_err *err);
CT_MUST_CHECK ct_status cti_add_split_pattern(ct_tokenizer *tok, const char *pattern, ct_err *err);
/* tokenizer_tiktoken.c: the vocabularies of files without a pipeline. data is size bytes and a NUL. */
CT_MUST_CHECK ct_status cti_tiktoken_parse(ct_tokenizer *tok, const char *data, size_t size, bool llama3_specials,
                                           const char *path, ct_err *err);
CT_MUST_CHECK ct_status cti_vocab_txt_parse(ct_tokenizer *tok, const char *data, size_t size, const char *path, ct_err *err);
/* tokenizer_config.c */
/* special_tokens_map.json: BOS, EOS and PAD where nothing else has named them. */
CT_MUST_CHECK ct_status cti_special_map_parse(ct_tokenizer *tok, const json_t *root, const char *name, ct_err *err);
CT_MUST_CHECK ct_status cti_tokenizer_config_parse(ct_tokenizer *tok, const json_t *root, const char *name, ct_err *err);

extern const char *const CTI_GPT2_PATTERN;

#endif
