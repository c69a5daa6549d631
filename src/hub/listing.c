/* SPDX-License-Identifier: Apache-2.0 */
/* The listings of both services: JSON to files. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "hub/hub_internal.h"

ct_status cti_hub_listing_init(const ct_alloc *alloc, cti_hub_listing *out_listing, ct_err *err)
{
    *out_listing = (cti_hub_listing){.alloc = alloc};
    return ct_arena_create(alloc, 0, &out_listing->arena, err);
}

void cti_hub_listing_deinit(cti_hub_listing *listing)
{
    ct_arena_destroy(&listing->arena);
    if (listing->alloc != NULL) {
        ct_alloc_free(listing->alloc, listing->files);
        ct_alloc_free(listing->alloc, listing->folders);
    }
    *listing = (cti_hub_listing){0};
}

/* A text member of an entry without NUL in it; where it is missing or null: "" if optional. */
static ct_status get_text(const json_t *entry, const char *key, bool optional, const char *where, const char **out, ct_err *err)
{
    const json_t *value = json_object_get(entry, key);
    *out = "";
    if (optional && (value == NULL || json_is_null(value))) {
        return CT_OK;
    }
    if (!json_is_string(value)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: '%s' is %s, text is wanted", where, key, value == NULL ? "missing" : "something else");
    }
    *out = json_string_value(value);
    if (strlen(*out) != json_string_length(value)) {
        char shown[CTI_HUB_SHOWN_BYTES];
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: '%s' has a NUL in it: '%s'", where, key,
                       cti_hub_shown(*out, json_string_length(value), shown));
    }
    return CT_OK;
}

/* Hexadecimal digits, n of them, or "". */
static ct_status get_hex(cti_hub_listing *l, const json_t *entry, const char *key, size_t n, const char *where, const char **out, ct_err *err)
{
    const char *text;
    CT_TRY(get_text(entry, key, true, where, &text, err));
    if (*text != '\0' && (strlen(text) != n || strspn(text, "0123456789abcdefABCDEF") != n)) {
        char shown[CTI_HUB_SHOWN_BYTES];
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: '%s' is '%s', %zu hexadecimal digits are wanted", where, key,
                       cti_hub_shown(text, strlen(text), shown), n);
    }
    char *copy = ct_arena_strdup(l->arena, text, err);
    if (copy == NULL) {
        return CT_ERR_MEMORY;
    }
    for (char *c = copy; *c != '\0'; c++) {
        *c = (char)(*c >= 'A' && *c <= 'F' ? *c + ('a' - 'A') : *c);
    }
    *out = copy;
    return CT_OK;
}

static ct_status get_size(const json_t *entry, const char *key, const char *where, int64_t *out, ct_err *err)
{
    CT_TRY(cti_json_get_i64(entry, key, where, out, err));
    return *out >= 0 ? CT_OK : CT_FAIL(err, CT_ERR_FORMAT, "%s: '%s' is negative", where, key);
}

static ct_status grow(cti_hub_listing *l, size_t n, size_t *cap, void **array, size_t item_bytes, ct_err *err)
{
    if (n >= CTI_HUB_MAX_FILES) {
        return CT_FAIL(err, CT_ERR_FORMAT, "the listing has more than %d entries", CTI_HUB_MAX_FILES);
    }
    if (n < *cap) {
        return CT_OK;
    }
    const size_t want = *cap == 0 ? 64 : *cap * 2;
    void *p = ct_alloc_resize(l->alloc, *array, want, item_bytes, err);
    if (p == NULL) {
        return CT_ERR_MEMORY;
    }
    *array = p;
    *cap = want;
    return CT_OK;
}

static ct_status add_folder(cti_hub_listing *l, const char *path, ct_err *err)
{
    void *array = l->folders;
    CT_TRY(grow(l, l->n_folders, &l->cap_folders, &array, sizeof *l->folders, err));
    l->folders = array;
    l->folders[l->n_folders] = ct_arena_strdup(l->arena, path, err);
    return l->folders[l->n_folders++] == NULL ? CT_ERR_MEMORY : CT_OK;
}

/* Where a value stands, for messages: "the listing's entry 3 ('a.json')". */
static const char *place(char buf[CTI_HUB_SHOWN_BYTES + 64], size_t i, const char *path)
{
    char shown[CTI_HUB_SHOWN_BYTES];
    (void)snprintf(buf, CTI_HUB_SHOWN_BYTES + 64, "the listing's entry %zu ('%s')", i, cti_hub_shown(path, strlen(path), shown));
    return buf;
}

static ct_status add_file(cti_hub_listing *l, const cti_hub_file *file, ct_err *err)
{
    void *array = l->files;
    CT_TRY(grow(l, l->n, &l->cap, &array, sizeof *l->files, err));
    l->files = array;
    l->files[l->n] = *file;
    l->files[l->n].path = ct_arena_strdup(l->arena, file->path, err);
    return l->files[l->n++].path == NULL ? CT_ERR_MEMORY : CT_OK;
}

static ct_status add_huggingface(cti_hub_listing *l, const json_t *entry, size_t i, ct_err *err)
{
    char where[CTI_HUB_SHOWN_BYTES + 64];
    cti_hub_file file = {.sha256 = "", .blob_sha1 = ""};
    const char *type;
    CT_TRY(get_text(entry, "path", false, place(where, i, ""), &file.path, err));
    CT_TRY(get_text(entry, "type", false, place(where, i, file.path), &type, err));
    if (strcmp(type, "file") != 0) {
        return CT_OK;
    }
    CT_TRY(get_size(entry, "size", where, &file.size, err));
    const json_t *lfs = json_object_get(entry, "lfs");
    if (json_is_object(lfs)) { /* the entry's own oid is that of the pointer then */
        CT_TRY(get_size(lfs, "size", where, &file.size, err));
        CT_TRY(get_hex(l, lfs, "oid", 64, where, &file.sha256, err));
    } else {
        CT_TRY(get_hex(l, entry, "oid", 40, where, &file.blob_sha1, err));
    }
    return add_file(l, &file, err);
}

static ct_status add_modelscope(cti_hub_listing *l, const json_t *entry, size_t i, ct_err *err)
{
    char where[CTI_HUB_SHOWN_BYTES + 64];
    cti_hub_file file = {.sha256 = "", .blob_sha1 = ""};
    const char *type;
    CT_TRY(get_text(entry, "Path", false, place(where, i, ""), &file.path, err));
    CT_TRY(get_text(entry, "Type", true, place(where, i, file.path), &type, err));
    if (strcmp(type, "tree") == 0) {
        return add_folder(l, file.path, err);
    }
    CT_TRY(get_size(entry, "Size", where, &file.size, err));
    CT_TRY(get_hex(l, entry, "Sha256", 64, where, &file.sha256, err));
    return add_file(l, &file, err);
}

/* ModelScope wraps its answer: {"Code": 200, "Data": {"Files": [...]}, "Message": ..., "Success": true}. */
static ct_status unwrap(json_t *root, json_t **out_array, ct_err *err)
{
    const json_t *success = json_object_get(root, "Success"), *message = json_object_get(root, "Message");
    if (json_is_false(success)) {
        char shown[CTI_HUB_SHOWN_BYTES];
        const char *text = json_is_string(message) ? json_string_value(message) : "no reason";
        return CT_FAIL(err, CT_ERR_IO, "the service says no: %s", cti_hub_shown(text, strlen(text), shown));
    }
    json_t *data;
    CT_TRY(cti_json_get_obj(root, "Data", "the listing", &data, err));
    if (json_is_null(json_object_get(data, "Files"))) { /* how an empty folder is told */
        *out_array = NULL;
        return CT_OK;
    }
    return cti_json_get_arr(data, "Files", "the listing's 'Data'", out_array, err);
}

ct_status cti_hub_listing_add(cti_hub_listing *listing, ct_hub_source source, const char *json, size_t size, size_t *out_n_entries, ct_err *err)
{
    json_t *root = NULL, *array = NULL;
    *out_n_entries = 0;
    ct_err why = {0};
    ct_status st = cti_json_parse(json, size, "the listing", &root, &why);
    if (st != CT_OK) { /* the parser quotes the text */
        char shown[CTI_HUB_SHOWN_BYTES];
        return CT_FAIL(err, st, "%s", cti_hub_shown(why.message, strlen(why.message), shown));
    }
    if (source == CT_HUB_MODELSCOPE) {
        CT_TRY_GOTO(st, json_is_object(root) ? CT_OK : CT_FAIL(err, CT_ERR_FORMAT, "the listing is no JSON object"), out);
        CT_TRY_GOTO(st, unwrap(root, &array, err), out);
    } else {
        array = root;
        CT_TRY_GOTO(st, json_is_array(root) ? CT_OK : CT_FAIL(err, CT_ERR_FORMAT, "the listing is no JSON array"), out);
    }
    const size_t n = json_array_size(array);
    for (size_t i = 0; i < n && st == CT_OK; i++) {
        const json_t *entry = json_array_get(array, i);
        if (!json_is_object(entry)) {
            st = CT_FAIL(err, CT_ERR_FORMAT, "the listing's entry %zu is no JSON object", i);
        } else {
            st = source == CT_HUB_MODELSCOPE ? add_modelscope(listing, entry, i, err) : add_huggingface(listing, entry, i, err);
        }
    }
    *out_n_entries = n;
out:
    json_decref(root);
    return st;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const cti_hub_file *)a)->path, ((const cti_hub_file *)b)->path);
}

void cti_hub_listing_sort(cti_hub_listing *listing)
{
    if (listing->n > 1) {
        qsort(listing->files, listing->n, sizeof *listing->files, by_path);
    }
}
