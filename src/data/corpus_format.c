/* SPDX-License-Identifier: Apache-2.0 */
/* What a data file is, by its name and its first bytes; and the way out for what is not read. */
#include <strings.h>

#include "base/num.h"
#include "data/data_internal.h"

enum { SNIFF_BYTES = 4096 };

static const struct {
    const char *suffix;
    cti_name_kind kind;
} suffixes[] = {
    {".jsonl", CTI_NAME_LINES}, {".ndjson", CTI_NAME_LINES}, {".json", CTI_NAME_JSON}, {".txt", CTI_NAME_TEXT},
    {".text", CTI_NAME_TEXT},   {".ctok", CTI_NAME_TOKENS},  {".bin", CTI_NAME_BIN},   {".idx", CTI_NAME_IDX},
};

#define CONVERT "convert it to JSON lines first, such as with "
#define BY_DUCKDB "duckdb -c \"copy (select * from '%s') to 'out.jsonl' (format json)\""
#define BY_PANDAS " or python3 -c \"import pandas; pandas.read_%s('%s').to_json('out.jsonl', orient='records', lines=True)\""

/* What is refused: by the name's ending, or by bytes at a place whatever the name is. */
typedef struct refused {
    const char *suffix;
    const char *bytes; /* NULL: none that tell */
    size_t n_bytes, at;
    const char *what, *way_out; /* '%s' in way_out is the path */
} refused;
static const refused refusals[] = {
    {".parquet", "PAR1", 4, 0, "a Parquet file", NULL},
    {".arrow", "ARROW1", 6, 0, "an Arrow file", NULL},
    {".feather", NULL, 0, 0, "an Arrow file", NULL},
    {".bz2", "BZh", 3, 0, "compressed with bzip2", "bzip2 -dc '%s' | gzip > out.jsonl.gz"},
    {".xz", "\xfd" "7zXZ", 6, 0, "compressed with xz", "xz -dc '%s' | gzip > out.jsonl.gz"},
    {".lz4", "\x04\x22\x4d\x18", 4, 0, "compressed with lz4", "lz4 -dc '%s' | gzip > out.jsonl.gz"},
    {".zip", "PK\x03\x04", 4, 0, "a zip archive", "unzip '%s'"},
    {".7z", "7z\xbc\xaf\x27\x1c", 6, 0, "a 7z archive", "7z x '%s'"},
    {".tar", "ustar", 5, 257, "a tar archive", "tar -xf '%s'"},
    {".tgz", NULL, 0, 0, "a tar archive", "tar -xf '%s'"},
    {".tar.gz", NULL, 0, 0, "a tar archive", "tar -xf '%s'"},
    {".tar.zst", NULL, 0, 0, "a tar archive", "tar -xf '%s'"},
    {".npy", "\x93NUMPY", 6, 0, "a NumPy array", "tokens are read from .ctok, Megatron's .bin with .idx, and llm.c's .bin"},
    {NULL, "\xff\xfe", 2, 0, "UTF-16 by its byte order mark", "iconv -f UTF-16 -t UTF-8 '%s' > out.jsonl"},
    {NULL, "\xfe\xff", 2, 0, "UTF-16 by its byte order mark", "iconv -f UTF-16 -t UTF-8 '%s' > out.jsonl"},
};
enum { N_REFUSALS = sizeof refusals / sizeof refusals[0] };

static bool ends_in(const char *name, size_t size, const char *suffix)
{
    const size_t n = strlen(suffix);
    return size > n && strncasecmp(name + size - n, suffix, n) == 0;
}

static const refused *refusal_of_name(const char *name, size_t size)
{
    for (size_t i = 0; i < N_REFUSALS; i++) {
        if (refusals[i].suffix != NULL && ends_in(name, size, refusals[i].suffix)) {
            return &refusals[i];
        }
    }
    return NULL;
}

cti_name_kind cti_name_kind_of(const char *name, ct_codec *out_codec, size_t *out_stem)
{
    size_t size = strlen(name);
    *out_codec = CT_CODEC_NONE;
    *out_stem = size;
    if (refusal_of_name(name, size) != NULL) {
        return CTI_NAME_REFUSED;
    }
    if (ends_in(name, size, ".gz") || ends_in(name, size, ".zst")) {
        *out_codec = ends_in(name, size, ".gz") ? CT_CODEC_GZIP : CT_CODEC_ZSTD;
        size -= *out_codec == CT_CODEC_GZIP ? 3 : 4;
        *out_stem = size;
    }
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        if (ends_in(name, size, suffixes[i].suffix)) {
            return suffixes[i].kind;
        }
    }
    return CTI_NAME_OTHER;
}

/* way_out with the path in it. */
static void add_way_out(cti_str *text, const char *way_out, const char *path)
{
    const char *at = strstr(way_out, "%s");
    cti_str_add_n(text, way_out, at != NULL ? (size_t)(at - way_out) : strlen(way_out));
    if (at != NULL) {
        cti_str_add(text, path);
        cti_str_add(text, at + 2);
    }
}

static ct_status refuse(const char *path, const refused *r, ct_err *err)
{
    cti_str text = {.alloc = ct_alloc_system()};
    if (r->way_out != NULL) {
        add_way_out(&text, r->way_out, path);
    } else {
        const char *reader = r->bytes != NULL && r->bytes[0] == 'P' ? "parquet" : "feather";
        cti_str_printf(&text, CONVERT BY_DUCKDB BY_PANDAS, path, reader, path);
    }
    const ct_status st = CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s' is %s, which is not read: %s", path, r->what, cti_str_text(&text));
    cti_str_deinit(&text);
    return st;
}

ct_status cti_name_refuse(const char *path, ct_err *err)
{
    const refused *r = refusal_of_name(path, strlen(path));
    return r != NULL ? refuse(path, r, err) : CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s' is not read", path);
}

static ct_status refuse_by_bytes(const char *path, const unsigned char *data, size_t size, ct_err *err)
{
    for (size_t i = 0; i < N_REFUSALS; i++) {
        const refused *r = &refusals[i];
        if (r->bytes != NULL && size >= r->at + r->n_bytes && memcmp(data + r->at, r->bytes, r->n_bytes) == 0) {
            return refuse(path, r, err);
        }
    }
    return CT_OK;
}

size_t cti_bom_bytes(const unsigned char *data, size_t size)
{
    return size >= 3 && data[0] == 0xef && data[1] == 0xbb && data[2] == 0xbf ? 3 : 0;
}

/* The compression, which the first bytes decide; a name that says otherwise is told. */
static ct_status codec_of(const char *path, ct_codec by_name, const unsigned char *data, size_t size, ct_codec *out_codec, ct_err *err)
{
    *out_codec = CT_CODEC_NONE;
    if (size >= 2 && data[0] == 0x1f && data[1] == 0x8b) {
        *out_codec = CT_CODEC_GZIP;
    } else if (size >= 4 && data[1] == 0xb5 && data[2] == 0x2f && data[3] == 0xfd && data[0] == 0x28) {
        *out_codec = CT_CODEC_ZSTD;
    } else if (size >= 4 && (data[0] & 0xf0u) == 0x50 && data[1] == 0x2a && data[2] == 0x4d && data[3] == 0x18) {
        *out_codec = CT_CODEC_ZSTD; /* a skippable frame first */
    } else if (by_name != CT_CODEC_NONE && size < 4) {
        *out_codec = by_name; /* cut off: the decoder says where */
    } else if (by_name != CT_CODEC_NONE) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' is named as %s data is, but begins with the bytes %02x %02x %02x %02x", path,
                       ct_codec_words(by_name), data[0], data[1], data[2], data[3]);
    }
    return CT_OK;
}

/* The first bytes of the contents. */
static ct_status peek(const ct_alloc *alloc, const char *path, int fd, const cti_stamp *stamp, ct_codec codec, unsigned char *out,
                      size_t *out_n, ct_err *err)
{
    const cti_source source = {.path = path, .codec = codec, .stamp = *stamp};
    cti_decoder d;
    size_t n = 0, got = 1;
    ct_status st = cti_decoder_init(&d, alloc, &source, fd, NULL, err);
    if (st == CT_OK) {
        st = cti_decoder_seek(&d, NULL, err);
    }
    while (st == CT_OK && n < SNIFF_BYTES && got > 0) {
        st = cti_decoder_next(&d, out + n, SNIFF_BYTES - n, &got, err);
        n += st == CT_OK ? got : 0;
    }
    cti_decoder_deinit(&d);
    *out_n = n;
    return st;
}

/* .bin: llm.c's by its header, Megatron's by the .idx beside it. */
static ct_status format_of_bin(const ct_alloc *alloc, const char *path, const unsigned char *data, size_t size, ct_file_format *out_format,
                               ct_err *err)
{
    char *idx;
    if (cti_tokens_is_llmc(data, size)) {
        *out_format = CT_FILE_LLMC;
        return CT_OK;
    }
    CT_TRY(cti_tokens_idx_path(alloc, path, &idx, err));
    const bool has_idx = cti_path_exists(idx);
    ct_alloc_free(alloc, idx);
    *out_format = CT_FILE_MEGATRON;
    return has_idx ? CT_OK
                   : CT_FAIL(err, CT_ERR_FORMAT,
                             "'%s' is no file of tokens that is known: it has no llm.c header (20240520 or 20240801 as its first 4 bytes), and no .idx file lies beside it",
                             path);
}

/* JSON lines or not, by the first byte that is not blank. */
static ct_status format_of_text(const char *path, cti_name_kind kind, const unsigned char *data, size_t size, ct_err *err)
{
    size_t i = cti_bom_bytes(data, size);
    while (i < size && (data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n')) {
        i++;
    }
    if (kind == CTI_NAME_JSON && i < size && data[i] == '[') {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED,
                       "'%s' holds one JSON array; one object a line is wanted (jq -c '.[]' makes it so)", path);
    }
    if (kind == CTI_NAME_OTHER && (i == size || data[i] != '{')) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED,
                       "'%s' is of no kind that is known: names end in .jsonl, .ndjson, .json or .txt (then .gz or .zst where compressed), .ctok or .bin, or the contents begin with '{'",
                       path);
    }
    return CT_OK;
}

ct_status cti_corpus_format(const ct_alloc *alloc, const char *path, int fd, const cti_stamp *stamp, ct_file_format *out_format,
                            ct_codec *out_codec, ct_err *err)
{
    unsigned char data[SNIFF_BYTES];
    ct_codec by_name;
    size_t size = 0, stem;
    const cti_name_kind kind = cti_name_kind_of(path, &by_name, &stem);
    if (kind == CTI_NAME_REFUSED) {
        return cti_name_refuse(path, err);
    }
    CT_TRY(peek(alloc, path, fd, stamp, CT_CODEC_NONE, data, &size, err));
    if (kind == CTI_NAME_TOKENS || kind == CTI_NAME_BIN || (size >= 8 && memcmp(data, cti_tokens_magic, 8) == 0)) {
        *out_codec = CT_CODEC_NONE;
        *out_format = CT_FILE_TOKENS;
        if (by_name != CT_CODEC_NONE) {
            return CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s' is a compressed file of tokens; they are read where they lie: decompress it first", path);
        }
        return kind == CTI_NAME_BIN ? format_of_bin(alloc, path, data, size, out_format, err) : CT_OK;
    }
    if (kind == CTI_NAME_IDX) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' is the index of a .bin file, which does not lie beside it", path);
    }
    CT_TRY(codec_of(path, by_name, data, size, out_codec, err));
    CT_TRY(refuse_by_bytes(path, data, size, err));
    if (*out_codec != CT_CODEC_NONE) {
        CT_TRY(peek(alloc, path, fd, stamp, *out_codec, data, &size, err));
        CT_TRY(refuse_by_bytes(path, data, size, err));
    }
    *out_format = kind == CTI_NAME_TEXT ? CT_FILE_TEXT : CT_FILE_JSONL;
    return kind == CTI_NAME_TEXT ? CT_OK : format_of_text(path, kind, data, size, err);
}
