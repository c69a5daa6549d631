/* SPDX-License-Identifier: Apache-2.0 */
/* From a path to the files of a corpus. */
#include <errno.h>
#include <glob.h>
#include <sys/stat.h>

#include "base/nearest.h"
#include "data/data_internal.h"

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
static ct_status check_folder(const char *path, const size_t counts[CTI_NAME_COUNT], size_t n_folders, ct_err *err)
{
    const size_t n_tokens = counts[CTI_NAME_TOKENS] + counts[CTI_NAME_BIN];
    const int n_kinds = (counts[CTI_NAME_LINES] > 0) + (counts[CTI_NAME_JSON] > 0) + (counts[CTI_NAME_TEXT] > 0) + (n_tokens > 0);
    if (n_kinds > 1) {
        return CT_FAIL(err, CT_ERR_DATA,
                       "folder '%s' holds more than one kind of file (%zu .jsonl, %zu .json, %zu .txt, %zu of tokens): say which, such as '%s/*.jsonl'",
                       path, counts[CTI_NAME_LINES], counts[CTI_NAME_JSON], counts[CTI_NAME_TEXT], n_tokens, path);
    }
    if (n_kinds == 0) {
        return CT_FAIL(err, CT_ERR_DATA,
                       "folder '%s' holds no .jsonl, .ndjson, .json or .txt file, plain, .gz or .zst, and no .ctok or .bin (found %zu other files and %zu folders, which are not entered)",
                       path, counts[CTI_NAME_OTHER] + counts[CTI_NAME_IDX], n_folders);
    }
    return CT_OK;
}

/* The folder's files by kind, and its sub-folders; refuses what would be left out without a word. */
static ct_status count_folder(const ct_alloc *alloc, const char *path, const cti_names *all, size_t counts[CTI_NAME_COUNT],
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
        ct_codec codec;
        size_t stem;
        const cti_name_kind kind = cti_name_kind_of(all->names[i], &codec, &stem);
        ct_status st = CT_OK;
        if (cti_path_is_dir(file)) {
            n_folders++;
        } else if (kind == CTI_NAME_REFUSED) {
            st = cti_name_refuse(file, err);
        } else {
            counts[kind]++;
            st = kind != CTI_NAME_OTHER && kind != CTI_NAME_IDX ? add_name(alloc, out, file, err) : CT_OK;
        }
        ct_alloc_free(alloc, file);
        CT_TRY(st);
    }
    return check_folder(path, counts, n_folders, err);
}

static ct_status list_folder(const ct_alloc *alloc, const char *path, cti_names *out, ct_err *err)
{
    cti_names all;
    size_t counts[CTI_NAME_COUNT] = {0};
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
        ct_codec codec;
        size_t stem;
        if (cti_path_is_dir(found.gl_pathv[i])) {
            n_folders++;
        } else if (cti_name_kind_of(found.gl_pathv[i], &codec, &stem) != CTI_NAME_IDX) { /* which belongs to its .bin */
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

/* The same name with and without the ending of a compression: two forms of the same documents. The names are sorted. */
static ct_status check_forms(const cti_names *files, ct_err *err)
{
    for (size_t i = 1; i < files->n; i++) {
        ct_codec a, b;
        size_t n_a, n_b;
        (void)cti_name_kind_of(files->names[i - 1], &a, &n_a);
        (void)cti_name_kind_of(files->names[i], &b, &n_b);
        if (a != b && n_a == n_b && memcmp(files->names[i - 1], files->names[i], n_a) == 0) {
            return CT_FAIL(err, CT_ERR_DATA, "'%s' and '%s' are two forms of one file by their names; each document may be there once",
                           files->names[i - 1], files->names[i]);
        }
    }
    return CT_OK;
}

ct_status cti_corpus_check_distinct(const ct_alloc *alloc, const cti_names *files, ct_err *err)
{
    file_id *ids = CT_NEW_ARRAY(alloc, file_id, files->n, err);
    if (ids == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st = check_forms(files, err);
    for (size_t i = 0; st == CT_OK && i < files->n; i++) {
        struct stat info;
        if (stat(files->names[i], &info) != 0) {
            char buf[128];
            st = CT_FAIL(err, errno == ENOENT ? CT_ERR_NOT_FOUND : CT_ERR_IO, "'%s' cannot be read: %s", files->names[i],
                         errno == ELOOP ? "its symbolic links go in a circle" : strerror_r(errno, buf, sizeof buf));
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
    ct_status st;
    if (nearest >= 0 && strcmp(names.names[nearest], base) == 0) {
        st = CT_FAIL(err, CT_ERR_NOT_FOUND, "dataset '%s' is a symbolic link to something that does not exist", path);
    } else if (nearest >= 0) {
        st = CT_FAIL(err, CT_ERR_NOT_FOUND, "dataset '%s' does not exist; '%s' holds '%s'", path, cti_str_text(&folder), names.names[nearest]);
    } else {
        st = CT_FAIL(err, CT_ERR_NOT_FOUND, "dataset '%s' does not exist", path);
    }
    cti_names_free(alloc, &names);
    cti_str_deinit(&folder);
    return st;
}

/* The .bin file of a .idx file, or of the common beginning of both names; NULL (and no error): there is none. */
static ct_status bin_of(const ct_alloc *alloc, const char *path, char **out_bin, ct_err *err)
{
    const size_t n = strlen(path) - (cti_ends_with(path, ".idx") ? 4 : 0);
    cti_str bin = {.alloc = alloc};
    *out_bin = NULL;
    cti_str_add_n(&bin, path, n);
    cti_str_add(&bin, ".bin");
    CT_TRY(cti_str_check(&bin, err));
    if (cti_path_is_file(bin.data)) {
        *out_bin = bin.data;
    } else {
        cti_str_deinit(&bin);
    }
    return CT_OK;
}

/* Why a path that stat does not follow to anything cannot be used. */
static ct_status missing(const ct_alloc *alloc, const char *path, int code, ct_err *err)
{
    char buf[128];
    if (strstr(path, "://") != NULL) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s' is an address; datasets are local files: download it first", path);
    }
    if (code != ENOENT && code != ENOTDIR) {
        return CT_FAIL(err, CT_ERR_IO, "'%s' cannot be read: %s", path,
                       code == ELOOP ? "its symbolic links go in a circle" : strerror_r(code, buf, sizeof buf));
    }
    return not_found(alloc, path, err);
}

static ct_status list(const ct_alloc *alloc, const char *path, cti_names *out, ct_err *err)
{
    struct stat info;
    if (path[0] == '\0') {
        return CT_FAIL(err, CT_ERR_USAGE, "the dataset's path is empty");
    }
    const int code = stat(path, &info) == 0 ? 0 : errno;
    if (code == 0 && S_ISDIR(info.st_mode)) {
        return list_folder(alloc, path, out, err);
    }
    if (code == 0 && !S_ISREG(info.st_mode)) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s' is neither a file nor a folder; a dataset must allow random access",
                       path);
    }
    if (code != 0 && strpbrk(path, "*?[{") != NULL && strstr(path, "://") == NULL) {
        return list_pattern(alloc, path, out, err);
    }
    if (code != 0 || cti_ends_with(path, ".idx")) {
        char *bin = NULL;
        CT_TRY(bin_of(alloc, path, &bin, err));
        if (bin != NULL) {
            const ct_status st = list_one(alloc, bin, out, err);
            ct_alloc_free(alloc, bin);
            return st;
        }
    }
    return code == 0 ? list_one(alloc, path, out, err) : missing(alloc, path, code, err);
}

ct_status cti_corpus_list(const ct_alloc *alloc, const char *path, cti_names *out_files, ct_err *err)
{
    cti_names files = {0};
    const ct_status st = list(alloc, path, &files, err);
    if (st != CT_OK) {
        cti_names_free(alloc, &files);
        return st;
    }
    *out_files = files;
    return CT_OK;
}
