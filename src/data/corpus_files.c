/* SPDX-License-Identifier: Apache-2.0 */
/* From a path to the files of a corpus, and what each of them is. */
#include <errno.h>
#include <glob.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/nearest.h"
#include "base/num.h"
#include "data/data_internal.h"

/* What a file's name says. */
typedef enum name_kind { KIND_LINES, KIND_JSON, KIND_TEXT, KIND_COMPRESSED, KIND_COLUMNS, KIND_OTHER, KIND_COUNT } name_kind;

static const struct {
    const char *suffix;
    name_kind kind;
    const char *way_out; /* for what is refused */
} suffixes[] = {
    {".jsonl", KIND_LINES, NULL},
    {".ndjson", KIND_LINES, NULL},
    {".json", KIND_JSON, NULL},
    {".txt", KIND_TEXT, NULL},
    {".text", KIND_TEXT, NULL},
    {".gz", KIND_COMPRESSED, "decompress it first (gzip -d)"},
    {".tgz", KIND_COMPRESSED, "unpack it first (tar -xf)"},
    {".zst", KIND_COMPRESSED, "decompress it first (zstd -d)"},
    {".xz", KIND_COMPRESSED, "decompress it first (xz -d)"},
    {".bz2", KIND_COMPRESSED, "decompress it first (bzip2 -d)"},
    {".lz4", KIND_COMPRESSED, "decompress it first (lz4 -d)"},
    {".zip", KIND_COMPRESSED, "unpack it first (unzip)"},
    {".tar", KIND_COMPRESSED, "unpack it first (tar -xf)"},
    {".parquet", KIND_COLUMNS, "convert it to JSON lines first"},
    {".arrow", KIND_COLUMNS, "convert it to JSON lines first"},
};

static name_kind kind_of(const char *name, const char **out_way_out)
{
    const size_t size = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        const size_t n = strlen(suffixes[i].suffix);
        if (size > n && strcasecmp(name + size - n, suffixes[i].suffix) == 0) {
            *out_way_out = suffixes[i].way_out;
            return suffixes[i].kind;
        }
    }
    *out_way_out = NULL;
    return KIND_OTHER;
}

static ct_status refuse(const char *path, name_kind kind, const char *way_out, ct_err *err)
{
    return CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s' is %s, which is not read yet: %s", path,
                   kind == KIND_COMPRESSED ? "compressed" : "a column file", way_out);
}

size_t cti_bom_bytes(const unsigned char *data, size_t size)
{
    return size >= 3 && data[0] == 0xef && data[1] == 0xbb && data[2] == 0xbf ? 3 : 0;
}

static bool begins(const cti_file_map *map, const char *bytes, size_t n)
{
    return map->size >= n && memcmp(map->data, bytes, n) == 0;
}

/* What the first bytes give away, whatever the name says. */
static ct_status refuse_by_bytes(const char *path, const cti_file_map *map, ct_err *err)
{
    if (begins(map, "\x1f\x8b", 2)) {
        return refuse(path, KIND_COMPRESSED, "decompress it first (gzip -d)", err);
    }
    if (begins(map, "\x28\xb5\x2f\xfd", 4)) {
        return refuse(path, KIND_COMPRESSED, "decompress it first (zstd -d)", err);
    }
    if (begins(map, "PAR1", 4)) {
        return refuse(path, KIND_COLUMNS, "convert it to JSON lines first", err);
    }
    if (begins(map, "\xff\xfe", 2) || begins(map, "\xfe\xff", 2)) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s' is UTF-16 by its byte order mark: convert it to UTF-8 first (iconv)",
                       path);
    }
    return CT_OK;
}

ct_status cti_corpus_format(const char *path, const cti_file_map *map, ct_file_format *out_format, ct_err *err)
{
    const char *way_out;
    const name_kind kind = kind_of(path, &way_out);
    if (way_out != NULL) {
        return refuse(path, kind, way_out, err);
    }
    CT_TRY(refuse_by_bytes(path, map, err));
    if (kind == KIND_TEXT) {
        *out_format = CT_FILE_TEXT;
        return CT_OK;
    }
    size_t i = cti_bom_bytes(map->data, map->size);
    while (i < map->size && (map->data[i] == ' ' || map->data[i] == '\t' || map->data[i] == '\r' || map->data[i] == '\n')) {
        i++;
    }
    if (kind == KIND_JSON && i < map->size && map->data[i] == '[') {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED,
                       "'%s' holds one JSON array; one object a line is wanted (jq -c '.[]' makes it so)", path);
    }
    if (kind == KIND_OTHER && (i == map->size || map->data[i] != '{')) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED,
                       "'%s' is of no kind that is known: names end in .jsonl, .ndjson, .json or .txt, or the first byte is '{'",
                       path);
    }
    *out_format = CT_FILE_JSONL;
    return CT_OK;
}

/* names[n++] = text; the array has room. */
static ct_status add_name(const ct_alloc *alloc, cti_names *names, const char *text, ct_err *err)
{
    names->names[names->n] = ct_alloc_strdup(alloc, text, err);
    if (names->names[names->n] == NULL) {
        return CT_ERR_MEMORY;
    }
    names->n++;
    return CT_OK;
}

static ct_status init_names(const ct_alloc *alloc, cti_names *names, size_t cap, ct_err *err)
{
    names->n = 0;
    names->names = CT_NEW_ARRAY(alloc, char *, cap, err);
    return names->names != NULL ? CT_OK : CT_ERR_MEMORY;
}

static ct_status list_one(const ct_alloc *alloc, const char *path, cti_names *out, ct_err *err)
{
    CT_TRY(init_names(alloc, out, 1, err));
    return add_name(alloc, out, path, err);
}

/* Says what a folder holds where that cannot be a corpus. */
static ct_status check_folder(const char *path, const size_t counts[KIND_COUNT], size_t n_folders, ct_err *err)
{
    const int n_kinds = (counts[KIND_LINES] > 0) + (counts[KIND_JSON] > 0) + (counts[KIND_TEXT] > 0);
    if (n_kinds > 1) {
        return CT_FAIL(err, CT_ERR_DATA,
                       "folder '%s' holds more than one kind of file (%zu .jsonl, %zu .json, %zu .txt): say which, such as '%s/*.jsonl'",
                       path, counts[KIND_LINES], counts[KIND_JSON], counts[KIND_TEXT], path);
    }
    if (n_kinds == 0) {
        return CT_FAIL(err, CT_ERR_DATA,
                       "folder '%s' holds no .jsonl, .ndjson, .json or .txt file (found %zu other files and %zu folders, which are not entered)",
                       path, counts[KIND_OTHER], n_folders);
    }
    return CT_OK;
}

/* The folder's files by kind, and its sub-folders; refuses what would be left out without a word. */
static ct_status count_folder(const ct_alloc *alloc, const char *path, const cti_names *all, size_t counts[KIND_COUNT],
                              cti_names *out, ct_err *err)
{
    size_t n_folders = 0;
    for (size_t i = 0; i < all->n; i++) {
        if (all->names[i][0] == '.') {
            continue;
        }
        char *file = cti_path_join(alloc, path, all->names[i], err);
        if (file == NULL) {
            return CT_ERR_MEMORY;
        }
        const char *way_out = NULL;
        const name_kind kind = kind_of(all->names[i], &way_out);
        ct_status st = CT_OK;
        if (cti_path_is_dir(file)) {
            n_folders++;
        } else if (way_out != NULL) {
            st = refuse(file, kind, way_out, err);
        } else {
            counts[kind]++;
            st = kind != KIND_OTHER ? add_name(alloc, out, file, err) : CT_OK;
        }
        ct_alloc_free(alloc, file);
        CT_TRY(st);
    }
    return check_folder(path, counts, n_folders, err);
}

static ct_status list_folder(const ct_alloc *alloc, const char *path, cti_names *out, ct_err *err)
{
    cti_names all;
    size_t counts[KIND_COUNT] = {0};
    CT_TRY(cti_list_dir(alloc, path, &all, err));
    ct_status st = init_names(alloc, out, all.n, err);
    if (st == CT_OK) {
        st = count_folder(alloc, path, &all, counts, out, err);
    }
    cti_names_free(alloc, &all);
    return st;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static ct_status list_pattern(const ct_alloc *alloc, const char *pattern, cti_names *out, ct_err *err)
{
    int flags = GLOB_NOSORT;
#ifdef GLOB_BRACE
    flags |= GLOB_BRACE;
#endif
    glob_t found = {0};
    const int rc = glob(pattern, flags, NULL, &found);
    ct_status st = CT_OK;
    if (rc == GLOB_NOMATCH) {
        st = CT_FAIL(err, CT_ERR_NOT_FOUND, "no file matches '%s'", pattern);
    } else if (rc == GLOB_NOSPACE) {
        st = CT_FAIL(err, CT_ERR_MEMORY, "no memory for the files that match '%s'", pattern);
    } else if (rc != 0) {
        st = CT_FAIL(err, CT_ERR_IO, "a folder of '%s' cannot be read", pattern);
    }
    if (st == CT_OK) {
        st = init_names(alloc, out, found.gl_pathc, err);
    }
    size_t n_folders = 0;
    for (size_t i = 0; st == CT_OK && i < found.gl_pathc; i++) {
        if (cti_path_is_dir(found.gl_pathv[i])) {
            n_folders++;
        } else {
            st = add_name(alloc, out, found.gl_pathv[i], err);
        }
    }
    if (st == CT_OK && out->n == 0) {
        st = CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' matches %zu folders and no file", pattern, n_folders);
    }
    if (st == CT_OK) {
        qsort(out->names, out->n, sizeof out->names[0], compare_names);
    }
    globfree(&found);
    return st;
}

typedef struct file_id {
    dev_t dev;
    ino_t ino;
    size_t index;
} file_id;

static int compare_ids(const void *a, const void *b)
{
    const file_id *x = a;
    const file_id *y = b;
    if (x->dev != y->dev) {
        return x->dev < y->dev ? -1 : 1;
    }
    return x->ino != y->ino ? (x->ino < y->ino ? -1 : 1) : (x->index > y->index) - (x->index < y->index);
}

/* One file under two names would be read twice. */
static ct_status check_distinct(const ct_alloc *alloc, const cti_names *files, ct_err *err)
{
    file_id *ids = CT_NEW_ARRAY(alloc, file_id, files->n, err);
    if (ids == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st = CT_OK;
    for (size_t i = 0; st == CT_OK && i < files->n; i++) {
        struct stat info;
        if (stat(files->names[i], &info) != 0) {
            char buf[128];
            st = CT_FAIL(err, CT_ERR_IO, "'%s' cannot be read: %s", files->names[i], strerror_r(errno, buf, sizeof buf));
        } else {
            ids[i] = (file_id){.dev = info.st_dev, .ino = info.st_ino, .index = i};
        }
    }
    if (st == CT_OK) {
        qsort(ids, files->n, sizeof ids[0], compare_ids);
    }
    for (size_t i = 1; st == CT_OK && i < files->n; i++) {
        if (ids[i].dev == ids[i - 1].dev && ids[i].ino == ids[i - 1].ino) {
            st = CT_FAIL(err, CT_ERR_DATA, "'%s' and '%s' are the same file; each may be there once",
                         files->names[ids[i - 1].index], files->names[ids[i].index]);
        }
    }
    ct_alloc_free(alloc, ids);
    return st;
}

static ct_status not_found(const ct_alloc *alloc, const char *path, ct_err *err)
{
    const char *base = cti_path_base(path);
    const size_t n = (size_t)(base - path);
    cti_str folder = {.alloc = alloc};
    cti_str_add_n(&folder, n > 0 ? path : ".", n > 1 ? n - 1 : 1);
    cti_names names;
    if (folder.failed || cti_list_dir(alloc, cti_str_text(&folder), &names, NULL) != CT_OK) {
        const ct_status st = CT_FAIL(err, CT_ERR_NOT_FOUND, "dataset '%s' does not exist, nor does its folder '%s'", path,
                                     cti_str_text(&folder));
        cti_str_deinit(&folder);
        return st;
    }
    const int nearest = cti_nearest(base, (const char *const *)names.names, names.n);
    const ct_status st = nearest >= 0
                             ? CT_FAIL(err, CT_ERR_NOT_FOUND, "dataset '%s' does not exist; '%s' holds '%s'", path,
                                       cti_str_text(&folder), names.names[nearest])
                             : CT_FAIL(err, CT_ERR_NOT_FOUND, "dataset '%s' does not exist", path);
    cti_names_free(alloc, &names);
    cti_str_deinit(&folder);
    return st;
}

static ct_status list(const ct_alloc *alloc, const char *path, cti_names *out, ct_err *err)
{
    if (path[0] == '\0') {
        return CT_FAIL(err, CT_ERR_USAGE, "the dataset's path is empty");
    }
    if (cti_path_is_file(path)) {
        return list_one(alloc, path, out, err);
    }
    if (cti_path_is_dir(path)) {
        return list_folder(alloc, path, out, err);
    }
    if (cti_path_exists(path)) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s' is neither a file nor a folder; a dataset must allow random access",
                       path);
    }
    if (strstr(path, "://") != NULL) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s' is an address; datasets are local files: download it first", path);
    }
    if (strpbrk(path, "*?[{") != NULL) {
        return list_pattern(alloc, path, out, err);
    }
    return not_found(alloc, path, err);
}

ct_status cti_corpus_list(const ct_alloc *alloc, const char *path, cti_names *out_files, ct_err *err)
{
    cti_names files = {0};
    ct_status st = list(alloc, path, &files, err);
    if (st == CT_OK) {
        st = check_distinct(alloc, &files, err);
    }
    if (st != CT_OK) {
        cti_names_free(alloc, &files);
        return st;
    }
    *out_files = files;
    return CT_OK;
}
