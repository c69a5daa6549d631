/* SPDX-License-Identifier: Apache-2.0 */
/* Folders without tokenizer.json: tiktoken's files of ranks, and vocabularies of one word a line.
 *
 * A tiktoken file holds lines of a token's bytes in base64 and its rank, which is its id. Two neighbours merge where their
 * bytes together are a token, lowest rank first; that is BPE with a merge for each way of cutting a token into two. The file
 * says neither its split pattern nor its special tokens: they are Llama 3's, unless tokenizer_config.json lists others. */
#include "tokenizer/tokenizer_internal.h"

enum { MAX_TOKEN_BYTES = 4096, N_SPECIAL = 256 };

static bool is_base64_line(const char *p, const char *end)
{
    const char *blank = memchr(p, ' ', (size_t)(end - p));
    size_t n = 0;
    for (const char *q = p; blank != NULL && q < blank; q++) {
        n += (*q >= 'A' && *q <= 'Z') || (*q >= 'a' && *q <= 'z') || (*q >= '0' && *q <= '9') || *q == '+' || *q == '/' || *q == '=';
    }
    return blank != NULL && n == (size_t)(blank - p) && n > 0 && n % 4 == 0 && end > blank + 1 && blank[1] >= '0' && blank[1] <= '9';
}

/* One line, without its newline. bytes, text: scratch. */
static ct_status add_line(ct_tokenizer *tok, const char *p, size_t size, cti_str *bytes, cti_str *text, const char *where,
                          ct_err *err)
{
    const char *blank = memchr(p, ' ', size);
    char digits[24] = "";
    int64_t rank = -1;
    cti_str_reset(bytes);
    cti_str_reset(text);
    const size_t n_digits = blank ? (size_t)(p + size - blank - 1) : 0;
    if (n_digits > 0 && n_digits < sizeof digits) {
        memcpy(digits, blank + 1, n_digits);
    }
    if (n_digits == 0 || !cti_parse_i64(digits, &rank) || rank < 0 || rank >= CTI_MAX_IDS ||
        !cti_base64_decode(p, (size_t)(blank - p), bytes) || bytes->len == 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: not a token in base64, a blank and a rank below %d", where, CTI_MAX_IDS);
    }
    if (bytes->len > MAX_TOKEN_BYTES) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: a token of %zu bytes is above the limit of %d", where, bytes->len, MAX_TOKEN_BYTES);
    }
    cti_bytes_to_alphabet(bytes->data, bytes->len, text);
    CT_TRY(cti_str_check(bytes, err));
    CT_TRY(cti_str_check(text, err));
    const ct_status st = cti_vocab_add(&tok->vocab, (int32_t)rank, text->data, text->len, err);
    if (st != CT_OK) {
        ct_err_prefix(err, "%s", where);
    }
    return st;
}

static ct_status add_lines(ct_tokenizer *tok, const char *data, size_t size, const char *path, ct_err *err)
{
    cti_str bytes = {.alloc = tok->alloc}, text = {.alloc = tok->alloc};
    ct_status st = CT_OK;
    int64_t number = 0;
    for (const char *p = data, *end = data + size; p < end && st == CT_OK;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p)), *stop = newline ? newline : end;
        size_t n = (size_t)(stop - p);
        n -= n > 0 && p[n - 1] == '\r';
        number++;
        if (n > 0) {
            char where[512];
            (void)snprintf(where, sizeof where, "'%.400s' line %lld", path, (long long)number);
            st = add_line(tok, p, n, &bytes, &text, where, err);
        }
        p = stop + (newline != NULL);
    }
    cti_str_deinit(&bytes);
    cti_str_deinit(&text);
    return st;
}

/* A merge for each cut of each token into two tokens. */
static ct_status derive_merges(ct_tokenizer *tok, ct_err *err)
{
    for (int32_t id = 0; id < tok->n_is_model; id++) {
        const int32_t size = cti_vocab_has(&tok->vocab, id) ? tok->vocab.tokens[id].size : 0;
        const char *text = size > 0 ? cti_vocab_text(&tok->vocab, id) : "";
        for (int32_t cut = 1; cut < size; cut++) {
            if (((unsigned char)text[cut] & 0xc0) == 0x80) {
                continue; /* inside a character of the alphabet */
            }
            const int32_t left = cti_vocab_find(&tok->vocab, text, (size_t)cut);
            const int32_t right = left < 0 ? -1 : cti_vocab_find(&tok->vocab, text + cut, (size_t)(size - cut));
            if (right >= 0) {
                CT_TRY(cti_merges_put(&tok->merges, (cti_merge){.left = left, .right = right, .rank = id, .id = id}, err));
                tok->n_merges++;
            }
        }
    }
    return CT_OK;
}

/* The names in Llama 3's released code: ten of their own places, the others reserved and counted. */
static ct_status add_llama3_specials(ct_tokenizer *tok, const char *path, ct_err *err)
{
    static const char *const named[N_SPECIAL] = {[0] = "<|begin_of_text|>", [1] = "<|end_of_text|>",   [6] = "<|start_header_id|>",
                                                 [7] = "<|end_header_id|>", [9] = "<|eot_id|>"};
    const int32_t first = tok->vocab.n_ids;
    int n_reserved = 0;
    for (int i = 0; i < N_SPECIAL; i++) {
        char text[48];
        if (named[i] != NULL) {
            (void)snprintf(text, sizeof text, "%s", named[i]);
        } else {
            (void)snprintf(text, sizeof text, "<|reserved_special_token_%d|>", n_reserved++);
        }
        const cti_added token = {.id = first + i, .special = true, .content = text, .size = strlen(text)};
        CT_TRY(cti_added_put(tok, token, path, err));
    }
    tok->bos_id = first;
    tok->eos_id = first + 1;
    return CT_OK;
}

static ct_status check_bytes(const ct_tokenizer *tok, const char *path, ct_err *err)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        if (tok->char_ids[cti_byte_to_char((unsigned char)byte)] < 0) {
            return CT_FAIL(err, CT_ERR_FORMAT, "'%s': the byte 0x%02X has no token; a tiktoken file holds all 256", path, byte);
        }
    }
    return CT_OK;
}

ct_status cti_tiktoken_parse(ct_tokenizer *tok, const char *data, size_t size, bool llama3_specials, const char *path,
                             ct_err *err)
{
    const char *newline = memchr(data, '\n', size);
    const char *end = newline ? newline : data + size;
    end -= end > data && end[-1] == '\r';
    if (!is_base64_line(data, end)) {
        const bool is_protobuf = size > 2 && data[0] == '\n'; /* field 1, a message: SentencePiece's list of pieces */
        return CT_FAIL(err, CT_ERR_UNSUPPORTED,
                       "'%s' is %s; make a tokenizer.json of it once, in Python: transformers.AutoTokenizer.from_pretrained(DIR)"
                       ".save_pretrained(DIR)",
                       path,
                       is_protobuf ? "a SentencePiece model (protobuf), which is not implemented"
                                   : "neither a tiktoken file (lines of base64 and a rank) nor anything else that is known");
    }
    CT_TRY(add_lines(tok, data, size, path, err));
    CT_TRY(cti_vocab_finish(tok, err));
    CT_TRY(check_bytes(tok, path, err));
    CT_TRY(derive_merges(tok, err));
    CT_TRY(cti_model_finish(tok, err));
    tok->ignore_merges = true;
    CT_TRY(cti_add_split_pattern(tok, CT_TOKENIZER_DEFAULT_PATTERN, err));
    CT_TRY(cti_add_byte_level(tok, false, false, err));
    CT_TRY(cti_add_decoder_byte_level(tok, err));
    return llama3_specials ? add_llama3_specials(tok, path, err) : CT_OK;
}

/* --- vocab.txt --- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

ct_status cti_vocab_txt_parse(ct_tokenizer *tok, const char *data, size_t size, const char *path, ct_err *err)
{
    int64_t number = 0;
    for (const char *p = data, *end = data + size; p < end; number++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p)), *stop = newline ? newline : end, *last = stop;
        while (p < last && is_blank(*p)) {
            p++;
        }
        while (last > p && is_blank(last[-1])) {
            last--;
        }
        if (!cti_utf8_is_valid(p, (size_t)(last - p)) || number >= CTI_MAX_IDS) {
            return CT_FAIL(err, CT_ERR_FORMAT, "'%s' line %lld: %s", path, (long long)number + 1,
                           number >= CTI_MAX_IDS ? "there are too many lines" : "not UTF-8");
        }
        if (last > p) {
            const ct_status st = cti_vocab_add(&tok->vocab, (int32_t)number, p, (size_t)(last - p), err);
            if (st != CT_OK) {
                ct_err_prefix(err, "'%s' line %lld", path, (long long)number + 1);
                return st;
            }
        }
        p = stop + (newline != NULL);
    }
    return cti_vocab_finish(tok, err);
}
