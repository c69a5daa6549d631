/* SPDX-License-Identifier: Apache-2.0 */
/* Folders. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_internal.h"
#include "base/str.h"

static ct_status make_dir(const char *path, ct_err *err)
{
    if (mkdir(path, 0777) == 0) {
        return CT_OK;
    }
    const int code = errno;
    if (cti_path_is_dir(
            path)) { /* there already, or a neighbour was faster; some systems say EROFS, not EEXIST */
        return CT_OK;
    }
    return cti_file_fail(code == EEXIST ? ENOTDIR : code, "made a folder", path, err);
}

ct_status cti_make_dirs(const char *path, ct_err *err)
{
    cti_str part = {.alloc = ct_alloc_system()};
    cti_str_add(&part, path);
    ct_status st = cti_str_check(&part, err);
    for (char *p = part.data; st == CT_OK && *p != '\0'; p++) {
        if (*p == '/' && p > part.data && p[-1] != '/') {
            *p = '\0';
            st = make_dir(part.data, err);
            *p = '/';
        }
    }
    if (st == CT_OK) {
        st = make_dir(path, err);
    }
    cti_str_deinit(&part);
    return st;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static ct_status add_name(const ct_alloc *alloc, cti_names *names, size_t *cap, const char *name, ct_err *err)
{
    if (names->n == *cap) {
        const size_t wanted = *cap == 0 ? 16 : 2 * *cap;
        char **grown = ct_alloc_resize(alloc, names->names, wanted, sizeof *grown, err);
        if (grown == NULL) {
            return CT_ERR_MEMORY;
        }
        names->names = grown;
        *cap = wanted;
    }
    char *copy = ct_alloc_strdup(alloc, name, err);
    if (copy == NULL) {
        return CT_ERR_MEMORY;
    }
    names->names[names->n++] = copy;
    return CT_OK;
}

ct_status cti_list_dir(const ct_alloc *alloc, const char *path, cti_names *out_names, ct_err *err)
{
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return cti_file_fail(errno, "listed", path, err);
    }
    cti_names names = {.names = NULL, .n = 0};
    size_t cap = 0;
    ct_status st = CT_OK;
    while (st == CT_OK) {
        errno = 0;
        const struct dirent *entry = readdir(dir); // NOLINT(concurrency-mt-unsafe): the stream is ours alone
        if (entry == NULL) {
            st = errno == 0 ? CT_OK : cti_file_fail(errno, "listed", path, err);
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            st = add_name(alloc, &names, &cap, entry->d_name, err);
        }
    }
    (void)closedir(dir); /* nothing was written */
    if (st != CT_OK) {
        cti_names_free(alloc, &names);
        return st;
    }
    if (names.n > 1) {
        qsort(names.names, names.n, sizeof *names.names, compare_names);
    }
    *out_names = names;
    return CT_OK;
}

void cti_names_free(const ct_alloc *alloc, cti_names *names)
{
    if (names == NULL) {
        return;
    }
    for (size_t i = 0; i < names->n; i++) {
        ct_alloc_free(alloc, names->names[i]);
    }
    ct_alloc_free(alloc, names->names);
    *names = (cti_names){.names = NULL, .n = 0};
}

/* Holds no folder open while it goes down, so that depth is bounded by the length of a path, not by
 * descriptors. */
static ct_status remove_below(cti_str *path, ct_err *err)
{
    struct stat info;
    if (lstat(path->data, &info) != 0) {
        return errno == ENOENT ? CT_OK : cti_file_fail(errno, "removed", path->data, err);
    }
    if (!S_ISDIR(info.st_mode)) {
        return unlink(path->data) == 0 || errno == ENOENT ? CT_OK
                                                          : cti_file_fail(errno, "removed", path->data, err);
    }
    cti_names names;
    CT_TRY(cti_list_dir(path->alloc, path->data, &names, err));
    const size_t len = path->len;
    ct_status st = CT_OK;
    for (size_t i = 0; i < names.n && st == CT_OK; i++) {
        cti_str_add_char(path, '/');
        cti_str_add(path, names.names[i]);
        st = cti_str_check(path, err);
        if (st == CT_OK) {
            st = remove_below(path, err);
        }
        path->len = len;
        path->data[len] = '\0';
    }
    cti_names_free(path->alloc, &names);
    if (st == CT_OK && rmdir(path->data) != 0 && errno != ENOENT) {
        st = cti_file_fail(errno, "removed", path->data, err);
    }
    return st;
}

ct_status cti_remove_tree(const char *path, ct_err *err)
{
    struct stat info;
    if (lstat(path, &info) != 0) {
        return cti_file_fail(errno, "removed", path, err);
    }
    cti_str walk = {.alloc = ct_alloc_system()};
    cti_str_add(&walk, path);
    ct_status st = cti_str_check(&walk, err);
    if (st == CT_OK) {
        st = remove_below(&walk, err);
    }
    cti_str_deinit(&walk);
    return st;
}

ct_status cti_lock_folder(const char *path, int *out_fd, int *out_errno, ct_err *err)
{
    *out_errno = 0;
    *out_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*out_fd < 0) {
        return cti_file_fail(errno, "opened", path, err);
    }
    if (flock(*out_fd, LOCK_EX | LOCK_NB) == 0) {
        return CT_OK;
    }
    *out_errno = errno;
    (void)close(*out_fd);
    *out_fd = -1;
    return CT_OK;
}

bool cti_is_same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

ct_status cti_disk_free_bytes(const char *path, int64_t *out_bytes, ct_err *err)
{
    cti_str at = {.alloc = ct_alloc_system()};
    cti_str_add(&at, path[0] == '\0' ? "." : path);
    ct_status st = cti_str_check(&at, err);
    while (st == CT_OK) {
        struct statvfs info;
        if (statvfs(at.data, &info) == 0) {
            int64_t bytes;
            const uint64_t blocks = info.f_bavail, block = info.f_frsize;
            *out_bytes = __builtin_mul_overflow(blocks, block, &bytes) ? INT64_MAX : bytes;
            break;
        }
        const int code = errno;
        if (code == EINTR) {
            continue;
        }
        if ((code != ENOENT && code != ENOTDIR) || strcmp(at.data, ".") == 0 || strcmp(at.data, "/") == 0) {
            st = cti_file_fail(code, "measured", path, err);
            break;
        }
        /* One component up. */
        size_t n = at.len;
        while (n > 0 && at.data[n - 1] == '/') {
            n--;
        }
        while (n > 0 && at.data[n - 1] != '/') {
            n--;
        }
        while (n > 1 && at.data[n - 1] == '/') {
            n--;
        }
        at.len = n;
        if (n == 0) {
            cti_str_reset(&at);
            cti_str_add_char(&at, '.');
        }
        at.data[at.len] = '\0';
    }
    cti_str_deinit(&at);
    return st;
}
