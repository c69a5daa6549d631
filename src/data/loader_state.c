/* SPDX-License-Identifier: Apache-2.0 */
/* Streams' states and the identity of their data as JSON (docs/formats/data-state.md). */
#include <inttypes.h>

#include "base/hash.h"
#include "base/json.h"
#include "data/stream.h"

enum { STATE_VERSION = 3, MAX_FILES_BY_NAME = 64 };

static const char *const packing_names[CT_PACKING_COUNT] = {"concat-then-split", "first-fit"};

static void hex64(uint64_t value, char out[17])
{
    (void)snprintf(out, 17, "%016" PRIx64, value);
}

/* Of all files: names without their folders, sizes, fingerprints. A corpus that was moved stays the same. */
static uint64_t hash_of_files(const ct_corpus *corpus)
{
    uint64_t hash = 0;
    for (int64_t i = 0; i < ct_corpus_n_files(corpus); i++) {
        const ct_corpus_file file = ct_corpus_file_at(corpus, i);
        const char *name = cti_path_base(file.path);
        const uint64_t numbers[2] = {(uint64_t)file.size_bytes, file.fingerprint};
        hash = cti_hash64(name, strlen(name), hash);
        hash = cti_hash64(numbers, sizeof numbers, hash);
    }
    return hash;
}

/* A file's name as JSON can hold it. */
static json_t *name_json(const ct_alloc *alloc, const char *path)
{
    const char *base = cti_path_base(path);
    cti_str name = {.alloc = alloc};
    (void)cti_text_add_repaired(&name, (const unsigned char *)base, strlen(base)); /* how many does not matter */
    json_t *json = name.failed ? NULL : json_string(cti_str_text(&name));
    cti_str_deinit(&name);
    return json;
}

static json_t *files_json(const ct_alloc *alloc, const ct_corpus *corpus)
{
    char hash[17];
    json_t *first = json_array();
    for (int64_t i = 0; first != NULL && i < ct_corpus_n_files(corpus) && i < MAX_FILES_BY_NAME; i++) {
        const ct_corpus_file file = ct_corpus_file_at(corpus, i);
        hex64(file.fingerprint, hash);
        json_t *row = json_pack("{s:o, s:I, s:s}", "name", name_json(alloc, file.path), "size_bytes",
                                (json_int_t)file.size_bytes, "fingerprint", hash);
        if (row == NULL || json_array_append_new(first, row) != 0) {
            json_decref(first);
            return NULL;
        }
    }
    hex64(hash_of_files(corpus), hash);
    return json_pack("{s:I, s:s, s:o}", "count", (json_int_t)ct_corpus_n_files(corpus), "hash", hash, "first", first);
}

static json_t *streams_json(const int64_t *states, int64_t n, int64_t width)
{
    json_t *array = json_array();
    for (int64_t i = 0; array != NULL && i < n; i++) {
        json_t *row = json_array();
        bool ok = row != NULL && json_array_append_new(array, row) == 0;
        for (int64_t k = 0; ok && k < width; k++) {
            ok = json_array_append_new(row, json_integer((json_int_t)states[i * width + k])) == 0;
        }
        if (!ok) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *sources_json(const ct_alloc *alloc, const ct_data_source *sources, int32_t n)
{
    json_t *array = json_array();
    for (int32_t i = 0; array != NULL && i < n; i++) {
        const ct_corpus *corpus = sources[i].corpus;
        json_t *row = json_pack("{s:f, s:s, s:I, s:o}", "weight", sources[i].weight, "text_field", ct_corpus_text_field(corpus),
                                "documents", (json_int_t)ct_corpus_n_documents(corpus), "files", files_json(alloc, corpus));
        if (row == NULL || json_array_append_new(array, row) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

/* What the order hangs on beside the sources; what it does not hang on is left out, so that it may change. */
static json_t *order_json(const ct_loader_options *o)
{
    json_t *order = json_pack("{s:b, s:s}", "shuffle", o->shuffle, "packing", packing_names[o->packing]);
    bool ok = order != NULL;
    if (ok && o->shuffle) {
        ok = json_object_set_new(order, "seed", json_integer((json_int_t)o->seed)) == 0;
    }
    if (ok && o->packing == CT_PACK_FIRST_FIT) {
        ok = json_object_set_new(order, "num_packing_bins", json_integer(o->packing_bins)) == 0 &&
             json_object_set_new(order, "seq_len", json_integer((json_int_t)o->seq_len)) == 0;
    }
    if (!ok) {
        json_decref(order);
        return NULL;
    }
    return order;
}

ct_status ct_data_state_write(const ct_alloc *alloc, const ct_data_source *sources, int32_t n_sources,
                              const ct_loader_options *options, const int64_t *states, int64_t n_streams, char **out_text,
                              ct_err *err)
{
    char hash[17];
    hex64(options->encode_hash, hash);
    json_t *json = json_pack("{s:i, s:o, s:o, s:o, s:s}", "version", STATE_VERSION, "streams",
                             streams_json(states, n_streams, ct_stream_state_width(n_sources)), "sources",
                             sources_json(alloc, sources, n_sources), "order", order_json(options), "tokenizer_hash", hash);
    if (json == NULL) {
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory for the data's state, or a text field that is not UTF-8");
    }
    const ct_status st = cti_json_dump(alloc, json, 0, out_text, err);
    json_decref(json);
    return st;
}

static const char where[] = "data state";

static ct_status get_hash(const json_t *obj, const char *key, uint64_t *out, ct_err *err)
{
    const char *text;
    CT_TRY(cti_json_get_str(obj, key, where, &text, err));
    char *end;
    *out = strtoull(text, &end, 16);
    return strlen(text) == 16 && *end == '\0' ? CT_OK
                                              : CT_FAIL(err, CT_ERR_FORMAT, "%s: '%s' is '%.40s', 16 hexadecimal digits are wanted",
                                                        where, key, text);
}

static ct_status changed(ct_err *err, const char *fmt, ...) CT_PRINTF(2, 3);

static ct_status changed(ct_err *err, const char *fmt, ...)
{
    char what[1024];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return CT_FAIL(err, CT_ERR_DATA, "the data has changed since the state was saved: %s", what);
}

/* Names the first of the listed files that is another one now. */
static ct_status compare_file(const ct_alloc *alloc, const json_t *row, const ct_corpus_file *now, ct_err *err)
{
    const char *name;
    int64_t size_bytes;
    uint64_t fingerprint;
    CT_TRY(cti_json_get_str(row, "name", where, &name, err));
    CT_TRY(cti_json_get_i64(row, "size_bytes", where, &size_bytes, err));
    CT_TRY(get_hash(row, "fingerprint", &fingerprint, err));
    json_t *now_name = name_json(alloc, now->path);
    if (now_name == NULL) {
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory to compare the data's files");
    }
    ct_status st = CT_OK;
    if (!cti_str_eq(name, json_string_value(now_name))) {
        st = changed(err, "file '%.300s' stands where '%.300s' stood", json_string_value(now_name), name);
    } else if (size_bytes != now->size_bytes) {
        st = changed(err, "file '%.300s' has %" PRId64 " bytes, had %" PRId64, name, now->size_bytes, size_bytes);
    } else if (fingerprint != now->fingerprint) {
        st = changed(err, "the contents of file '%.300s' are others", name);
    }
    json_decref(now_name);
    return st;
}

static ct_status compare_files(const ct_alloc *alloc, const json_t *json, const ct_corpus *corpus, ct_err *err)
{
    json_t *files;
    json_t *first;
    int64_t count;
    uint64_t hash;
    CT_TRY(cti_json_get_obj(json, "files", where, &files, err));
    CT_TRY(cti_json_get_i64(files, "count", where, &count, err));
    CT_TRY(get_hash(files, "hash", &hash, err));
    CT_TRY(cti_json_get_arr(files, "first", where, &first, err));
    const int64_t now = ct_corpus_n_files(corpus);
    if (count != now) {
        return changed(err, "there are %" PRId64 " files, there were %" PRId64, now, count);
    }
    for (size_t i = 0; i < json_array_size(first) && (int64_t)i < now; i++) {
        const ct_corpus_file file = ct_corpus_file_at(corpus, (int64_t)i);
        CT_TRY(compare_file(alloc, json_array_get(first, i), &file, err));
    }
    if (hash != hash_of_files(corpus)) {
        return changed(err, "a file after the first %zu has another name, size or contents", json_array_size(first));
    }
    return CT_OK;
}

/* One source as it was saved. */
static ct_status compare_source(const ct_alloc *alloc, const json_t *json, const ct_corpus *corpus, ct_err *err)
{
    const char *field;
    int64_t n_documents;
    CT_TRY(cti_json_get_str(json, "text_field", where, &field, err));
    CT_TRY(cti_json_get_i64(json, "documents", where, &n_documents, err));
    CT_TRY(compare_files(alloc, json, corpus, err));
    if (!cti_str_eq(field, ct_corpus_text_field(corpus))) {
        return changed(err, "the text field is '%.64s', was '%.64s'", ct_corpus_text_field(corpus), field);
    }
    if (n_documents != ct_corpus_n_documents(corpus)) {
        return changed(err, "there are %" PRId64 " documents, there were %" PRId64, ct_corpus_n_documents(corpus), n_documents);
    }
    return CT_OK;
}

static ct_status compare_sources(const ct_alloc *alloc, const json_t *json, const ct_data_source *sources, int32_t n_sources,
                                 ct_err *err)
{
    json_t *rows;
    CT_TRY(cti_json_get_arr(json, "sources", where, &rows, err));
    if (json_array_size(rows) != (size_t)n_sources) {
        return changed(err, "there are %d sources, there were %zu", n_sources, json_array_size(rows));
    }
    for (int32_t i = 0; i < n_sources; i++) {
        const json_t *row = json_array_get(rows, (size_t)i);
        const json_t *weight = json_object_get(row, "weight");
        const ct_status st = compare_source(alloc, row, sources[i].corpus, err);
        if (st != CT_OK) {
            if (n_sources > 1) {
                ct_err_prefix(err, "source %d", i + 1);
            }
            return st;
        }
        if (!json_is_number(weight)) {
            return CT_FAIL(err, CT_ERR_FORMAT, "%s: source %d has no weight", where, i + 1);
        }
        if (n_sources > 1 && (json_number_value(weight) < sources[i].weight || json_number_value(weight) > sources[i].weight)) {
            return changed(err, "the weight of source %d is %g, was %g", i + 1, sources[i].weight, json_number_value(weight));
        }
    }
    return CT_OK;
}

/* A number that the order hangs on. */
static ct_status compare_number(const json_t *order, const char *key, int64_t now, ct_err *err)
{
    int64_t then;
    CT_TRY(cti_json_get_i64(order, key, where, &then, err));
    return then == now ? CT_OK : changed(err, "%s is %" PRId64 ", was %" PRId64, key, now, then);
}

static ct_status compare_order(const json_t *json, const ct_loader_options *o, ct_err *err)
{
    const json_t *order = json_object_get(json, "order");
    const json_t *shuffle = json_object_get(order, "shuffle");
    const char *packing;
    if (!json_is_object(order) || !json_is_boolean(shuffle)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'order' with 'shuffle' in it is wanted", where);
    }
    CT_TRY(cti_json_get_str(order, "packing", where, &packing, err));
    if (json_is_true(shuffle) != o->shuffle) {
        return changed(err, "shuffle is %s, was %s", o->shuffle ? "on" : "off", o->shuffle ? "off" : "on");
    }
    if (o->shuffle) {
        CT_TRY(compare_number(order, "seed", o->seed, err));
    }
    if (!cti_str_eq(packing, packing_names[o->packing])) {
        return changed(err, "packing is %s, was %.40s", packing_names[o->packing], packing);
    }
    if (o->packing == CT_PACK_FIRST_FIT) {
        CT_TRY(compare_number(order, "num_packing_bins", o->packing_bins, err));
        CT_TRY(compare_number(order, "seq_len", o->seq_len, err));
    }
    return CT_OK;
}

/* Version 1 knew one source, file order and concat-then-split alone. */
static ct_status compare_1(const ct_alloc *alloc, const json_t *json, const ct_data_source *sources, int32_t n_sources,
                           const ct_loader_options *o, ct_err *err)
{
    if (n_sources != 1) {
        return changed(err, "there are %d sources, there was 1", n_sources);
    }
    if (o->shuffle || o->packing != CT_PACK_SPLIT) {
        return changed(err, o->shuffle ? "shuffle is on, was off" : "packing is first-fit, was concat-then-split");
    }
    return compare_source(alloc, json, sources[0].corpus, err);
}

/* Up to version 2 it was of a file, and is not compared. */
static ct_status compare_tokenizer(const json_t *json, int64_t version, uint64_t encode_hash, ct_err *err)
{
    uint64_t saved = 0;
    if (version > 2) {
        CT_TRY(get_hash(json, "tokenizer_hash", &saved, err));
    }
    if (saved != 0 && encode_hash != 0 && saved != encode_hash) {
        return changed(err, "the tokenizer is another one (%016" PRIx64 ", was %016" PRIx64 ")", encode_hash, saved);
    }
    return CT_OK;
}

static ct_status read_stream(const json_t *row, size_t i, int64_t n, int64_t *out, ct_err *err)
{
    bool ok = json_is_array(row) && json_array_size(row) == (size_t)n;
    for (size_t k = 0; ok && k < (size_t)n; k++) {
        const json_t *number = json_array_get(row, k);
        ok = json_is_integer(number) && json_integer_value(number) >= 0;
        out[k] = ok ? json_integer_value(number) : 0;
    }
    return ok ? CT_OK
              : CT_FAIL(err, CT_ERR_FORMAT, "%s: stream %zu must be %" PRId64 " integers from 0 on", where, i, n);
}

/* Version 1's epoch, document, token as a state of one source. */
static void widen(int64_t *s)
{
    const int64_t epoch = s[0], place = s[1], token = s[2];
    memset(s, 0, (CTI_STATE_HEAD + CTI_STATE_A_SOURCE) * sizeof *s);
    s[CTI_STATE_TOKEN] = token;
    s[CTI_STATE_HEAD] = epoch;
    s[CTI_STATE_HEAD + 1] = place;
}

static ct_status read_streams(const ct_alloc *alloc, const json_t *json, int64_t version, int32_t n_sources,
                              int64_t **out_states, int64_t *out_n, ct_err *err)
{
    const int64_t width = ct_stream_state_width(n_sources);
    json_t *rows;
    CT_TRY(cti_json_get_arr(json, "streams", where, &rows, err));
    const size_t n = json_array_size(rows);
    if (n == 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: no stream", where);
    }
    int64_t *states = ct_alloc_zeroed(alloc, n, (size_t)width * sizeof *states, err);
    ct_status st = states != NULL ? CT_OK : CT_ERR_MEMORY;
    for (size_t i = 0; st == CT_OK && i < n; i++) {
        int64_t *state = states + (int64_t)i * width;
        st = read_stream(json_array_get(rows, i), i, version == 1 ? 3 : width, state, err);
        if (version == 1) {
            widen(state);
        }
    }
    if (st != CT_OK) {
        ct_alloc_free(alloc, states);
        return st;
    }
    *out_states = states;
    *out_n = (int64_t)n;
    return CT_OK;
}

static ct_status compare(const ct_alloc *alloc, const json_t *json, int64_t version, const ct_data_source *sources,
                         int32_t n_sources, const ct_loader_options *options, ct_err *err)
{
    if (version == 1) {
        CT_TRY(compare_1(alloc, json, sources, n_sources, options, err));
    } else {
        CT_TRY(compare_sources(alloc, json, sources, n_sources, err));
        CT_TRY(compare_order(json, options, err));
    }
    return compare_tokenizer(json, version, options->encode_hash, err);
}

ct_status ct_data_state_read(const ct_alloc *alloc, const char *text, size_t size, const ct_data_source *sources,
                             int32_t n_sources, const ct_loader_options *options, int64_t **out_states,
                             int64_t *out_n_streams, ct_err *err)
{
    json_t *json;
    int64_t version;
    CT_TRY(cti_json_parse(text, size, where, &json, err));
    ct_status st = json_is_object(json) ? cti_json_get_i64(json, "version", where, &version, err)
                                        : CT_FAIL(err, CT_ERR_FORMAT, "%s: not an object", where);
    if (st == CT_OK && (version < 1 || version > STATE_VERSION)) {
        st = CT_FAIL(err, CT_ERR_FORMAT, "%s: version %" PRId64 ", this program reads 1 to %d", where, version, STATE_VERSION);
    }
    if (st == CT_OK) {
        st = compare(alloc, json, version, sources, n_sources, options, err);
    }
    if (st == CT_OK) {
        st = read_streams(alloc, json, version, n_sources, out_states, out_n_streams, err);
    }
    json_decref(json);
    return st;
}
