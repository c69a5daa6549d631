/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a server sends: how they are shown, and which are refused. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "hub/hub_internal.h"

/* Marks that turn the direction of what follows, so that a name would look like another (Unicode 15, 23.2). */
static bool is_direction(uint32_t cp)
{
    return cp == 0x200e || cp == 0x200f || cp == 0x061c || (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
}

static bool is_control(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029;
}

const char *cti_hub_shown(const char *text, size_t size, char buf[CTI_HUB_SHOWN_BYTES])
{
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    size_t n = 0;
    while (p < end) {
        if (n + 24 > CTI_HUB_SHOWN_BYTES) { /* room for four \xNN, "..." and NUL */
            memcpy(buf + n, "...", 3);
            n += 3;
            break;
        }
        uint32_t cp;
        const int len = cti_utf8_decode(p, end, &cp);
        if (len > 0 && !is_control(cp) && !is_direction(cp)) {
            memcpy(buf + n, p, (size_t)len);
            n += (size_t)len;
        } else {
            for (int i = 0; i < (len > 0 ? len : 1); i++) {
                n += (size_t)snprintf(buf + n, CTI_HUB_SHOWN_BYTES - n, "\\x%02x", p[i]);
            }
        }
        p += len > 0 ? len : 1;
    }
    buf[n] = '\0';
    return buf;
}

/* What is wrong with one part of a path between slashes, NULL where nothing is. */
static const char *wrong_part(const char *part, size_t n)
{
    if (n == 0) {
        return "it has an empty part";
    }
    if ((n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.')) {
        return "'.' and '..' are no names";
    }
    if (n > 255) {
        return "a part of it is longer than 255 bytes";
    }
    return n == 4 && strncasecmp(part, ".git", 4) == 0 ? "'.git' would be a Git repository's own folder" : NULL;
}

static const char *wrong_name(const char *path)
{
    const size_t size = strlen(path);
    if (size == 0) {
        return "it is empty";
    }
    if (size > CTI_HUB_NAME_BYTES) {
        return "it is longer than 1000 bytes";
    }
    if (path[0] == '/') {
        return "it begins at the root";
    }
    const unsigned char *p = (const unsigned char *)path, *end = p + size;
    while (p < end) {
        uint32_t cp;
        const int len = cti_utf8_decode(p, end, &cp);
        if (len == 0) {
            return "it is not UTF-8";
        }
        if (cp == '\\' || is_control(cp) || is_direction(cp)) {
            return cp == '\\' ? "it has a backslash" : "it has control characters";
        }
        p += len;
    }
    for (const char *part = path; part != NULL;) {
        const char *slash = strchr(part, '/');
        const char *why = wrong_part(part, slash != NULL ? (size_t)(slash - part) : strlen(part));
        if (why != NULL) {
            return why;
        }
        part = slash != NULL ? slash + 1 : NULL;
    }
    return cti_ends_with(path, ".part") ? "names in '.part' are kept for what is being fetched" : NULL;
}

static ct_status refuse(const char *path, const char *why, ct_err *err)
{
    char shown[CTI_HUB_SHOWN_BYTES];
    return CT_FAIL(err, CT_ERR_FORMAT, "the file name '%s' that the server lists is refused: %s", cti_hub_shown(path, strlen(path), shown),
                   why);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* `names` sorted bytewise. Refuses one that is there twice, or that is another's folder. is_folded: in lower case. */
static ct_status check_pairs(const char **names, size_t n, bool is_folded, ct_err *err)
{
    char prefix[CTI_HUB_NAME_BYTES + 1];
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && strcmp(names[i - 1], names[i]) == 0) {
            return refuse(names[i], is_folded ? "it is there twice but for the case of letters, which some file systems do not tell apart"
                                              : "it is there twice", err);
        }
        (void)snprintf(prefix, sizeof prefix, "%s", names[i]); /* fits: wrong_name() */
        for (char *slash = strrchr(prefix, '/'); slash != NULL; slash = strrchr(prefix, '/')) {
            *slash = '\0';
            const char *key = prefix;
            if (bsearch(&key, names, n, sizeof *names, by_text) != NULL) {
                return refuse(names[i], is_folded ? "another file's name is that of its folder, but for the case of letters"
                                                  : "another file's name is that of its folder", err);
            }
        }
    }
    return CT_OK;
}

ct_status cti_hub_check_names(const ct_alloc *alloc, const cti_hub_file *files, size_t n, ct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const char *why = wrong_name(files[i].path);
        if (why != NULL) {
            return refuse(files[i].path, why, err);
        }
    }
    ct_arena *arena = NULL;
    CT_TRY(ct_arena_create(alloc, 0, &arena, err));
    const char **names = ct_arena_alloc(arena, n * sizeof *names, err);
    ct_status st = names == NULL ? CT_ERR_MEMORY : CT_OK;
    for (size_t i = 0; i < n && st == CT_OK; i++) {
        names[i] = files[i].path;
    }
    if (st == CT_OK) {
        st = check_pairs(names, n, false, err);
    }
    for (size_t i = 0; i < n && st == CT_OK; i++) {
        char *low = ct_arena_strdup(arena, names[i], err);
        st = low == NULL ? CT_ERR_MEMORY : CT_OK;
        for (char *c = low; c != NULL && *c != '\0'; c++) {
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c);
        }
        names[i] = low;
    }
    if (st == CT_OK) {
        qsort(names, n, sizeof *names, by_text);
        st = check_pairs(names, n, true, err);
    }
    ct_arena_destroy(&arena);
    return st;
}

/* One half of a repository's id: letters, digits, '-', '_', '.', and not only dots. */
static bool is_id_part(const char *text, size_t n)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    return n > 0 && n <= 96 && strspn(text, allowed) >= n && strspn(text, ".") < n;
}

ct_status cti_hub_check_repo_id(ct_hub_source source, const char *repo_id, const char **out_name, ct_err *err)
{
    const char *slash = strchr(repo_id, '/');
    const char *name = slash != NULL ? slash + 1 : repo_id;
    const bool is_good = is_id_part(name, strlen(name)) &&
                         (slash != NULL ? is_id_part(repo_id, (size_t)(slash - repo_id)) : source == CT_HUB_HUGGINGFACE);
    if (!is_good) {
        char shown[CTI_HUB_SHOWN_BYTES];
        return CT_FAIL(err, CT_ERR_USAGE, "'%s' is no repository: wanted is owner/name, as in meta-llama/Llama-3.1-8B",
                       cti_hub_shown(repo_id, strlen(repo_id), shown));
    }
    *out_name = name;
    return CT_OK;
}
