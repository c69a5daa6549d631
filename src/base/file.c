/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, mapping and writing whole files. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_internal.h"
#include "base/str.h"

ct_status cti_file_fail(int code, const char *what, const char *path, ct_err *err)
{
    char buf[128];
    const ct_status status = code == ENOENT ? CT_ERR_NOT_FOUND : CT_ERR_IO;
    return CT_FAIL(err, status, "'%s' cannot be %s: %s", path, what, strerror_r(code, buf, sizeof buf));
}

static int open_retry(const char *path, int flags, mode_t mode)
{
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/* Opens for reading; refuses folders. Caller closes. */
static ct_status open_for_reading(const char *path, int *out_fd, struct stat *out_info, ct_err *err)
{
    const int fd = open_retry(path, O_RDONLY, 0);
    if (fd < 0) {
        return cti_file_fail(errno, "opened", path, err);
    }
    int code = 0;
    if (fstat(fd, out_info) != 0) {
        code = errno;
    } else if (S_ISDIR(out_info->st_mode)) {
        code = EISDIR;
    }
    if (code != 0) {
        (void)close(fd);
        return cti_file_fail(code, "read", path, err);
    }
    *out_fd = fd;
    return CT_OK;
}

static ct_status too_large(const char *path, size_t max_bytes, ct_err *err)
{
    return CT_FAIL(err, CT_ERR_RANGE, "'%s' is larger than the %zu bytes allowed", path, max_bytes);
}

/* Appends everything from fd to out, whatever stat said its size was (/proc and pipes say 0). */
static ct_status read_all(int fd, const char *path, size_t max_bytes, cti_str *out, ct_err *err)
{
    for (;;) {
        if (!cti_str_reserve(out, out->cap - out->len > 1 ? 1 : 4096)) {
            return CT_FAIL(err, CT_ERR_MEMORY, "no memory to read '%s' after %zu bytes", path, out->len);
        }
        size_t room = out->cap - out->len;
        room = room > (1u << 30) ? 1u << 30 : room;
        const ssize_t n = read(fd, out->data + out->len, room);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return cti_file_fail(errno, "read", path, err);
        }
        if (n == 0) {
            out->data[out->len] = '\0';
            return CT_OK;
        }
        out->len += (size_t)n;
        if (max_bytes != 0 && out->len > max_bytes) {
            return too_large(path, max_bytes, err);
        }
    }
}

ct_status cti_file_read(const ct_alloc *alloc, const char *path, size_t max_bytes, char **out_data,
                        size_t *out_size, ct_err *err)
{
    int fd;
    struct stat info;
    CT_TRY(open_for_reading(path, &fd, &info, err));
    cti_str text = {.alloc = alloc};
    ct_status st = CT_OK;
    if (S_ISREG(info.st_mode) && max_bytes != 0 && (uint64_t)info.st_size > max_bytes) {
        st = too_large(path, max_bytes, err);
    } else if (S_ISREG(info.st_mode) && !cti_str_reserve(&text, (size_t)info.st_size + 1)) {
        st = CT_FAIL(err, CT_ERR_MEMORY, "no memory for the %lld bytes of '%s'", (long long)info.st_size,
                     path);
    } else {
        st = read_all(fd, path, max_bytes, &text, err);
    }
    (void)close(fd); /* nothing was written */
    if (st != CT_OK) {
        cti_str_deinit(&text);
        return st;
    }
    *out_data = text.data;
    *out_size = text.len;
    return CT_OK;
}

ct_status cti_file_map_open(const char *path, cti_file_map *out_map, ct_err *err)
{
    int fd;
    struct stat info;
    CT_TRY(open_for_reading(path, &fd, &info, err));
    ct_status st = CT_OK;
    if (!S_ISREG(info.st_mode)) {
        st = CT_FAIL(err, CT_ERR_IO, "'%s' cannot be mapped: not a regular file", path);
    } else if (info.st_size == 0) {
        *out_map = (cti_file_map){.data = (const unsigned char *)"", .size = 0};
    } else if ((uint64_t)info.st_size > SIZE_MAX) {
        st = cti_file_fail(EFBIG, "mapped", path, err);
    } else {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (data == MAP_FAILED) {
            st = cti_file_fail(errno, "mapped", path, err);
        } else {
            *out_map = (cti_file_map){.data = data, .size = (size_t)info.st_size};
        }
    }
    (void)close(fd); /* the map stays */
    return st;
}

void cti_file_map_close(cti_file_map *map)
{
    if (map != NULL && map->size > 0) {
        (void)munmap((void *)(uintptr_t)map->data, map->size);
    }
    if (map != NULL) {
        *map = (cti_file_map){.data = NULL, .size = 0};
    }
}

static int sync_retry(int fd)
{
    int rc;
    do {
        rc = fsync(fd);
    } while (rc != 0 && errno == EINTR);
    /* EINVAL: a file system that has nothing to sync for this kind of file. */
    return rc != 0 && errno == EINVAL ? 0 : rc;
}

ct_status cti_fsync_path(const char *path, ct_err *err)
{
    const int fd = open_retry(path, O_RDONLY, 0);
    if (fd < 0) {
        return cti_file_fail(errno, "opened", path, err);
    }
    const int code = sync_retry(fd) == 0 ? 0 : errno;
    (void)close(fd);
    return code == 0 ? CT_OK : cti_file_fail(code, "synced", path, err);
}

/* 0, or the errno of the step that failed. */
static int write_and_sync(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(fd, bytes, size > (1u << 30) ? 1u << 30 : size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno;
        }
        bytes += n;
        size -= (size_t)n;
    }
    return sync_retry(fd) == 0 ? 0 : errno;
}

static ct_status write_and_rename(const char *path, const char *temp, const void *data, size_t size,
                                  ct_err *err)
{
    const int fd = open_retry(temp, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0) {
        return cti_file_fail(errno, "created", temp, err);
    }
    int code = write_and_sync(fd, data, size);
    if (close(fd) != 0 && code == 0 && errno != EINTR) {
        code = errno;
    }
    ct_status st = CT_OK;
    if (code != 0) {
        st = cti_file_fail(code, "written", temp, err);
    } else if (rename(temp, path) != 0) {
        st = cti_file_fail(errno, "written", path, err);
    }
    if (st != CT_OK) {
        (void)unlink(temp); /* the first failure is the one to report */
    }
    return st;
}

ct_status cti_file_write_atomic(const char *path, const void *data, size_t size, ct_err *err)
{
    cti_str temp = {.alloc = ct_alloc_system()}, dir = {.alloc = ct_alloc_system()};
    cti_str_printf(&temp, "%s.tmp.%ld", path, (long)getpid());
    const size_t dir_len = (size_t)(cti_path_base(path) - path);
    if (dir_len == 0) {
        cti_str_add_char(&dir, '.');
    } else {
        cti_str_add_n(&dir, path, dir_len);
    }
    ct_status st = cti_str_check(&temp, err);
    CT_TRY_GOTO(st, cti_str_check(&dir, err), out);
    CT_TRY_GOTO(st, write_and_rename(path, temp.data, data, size, err), out);
    st = cti_fsync_path(dir.data, err);
out:
    cti_str_deinit(&temp);
    cti_str_deinit(&dir);
    return st;
}

bool cti_path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool cti_path_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool cti_path_is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

ct_status cti_file_size(const char *path, int64_t *out_size, ct_err *err)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return cti_file_fail(errno, "examined", path, err);
    }
    if (S_ISDIR(info.st_mode)) {
        return cti_file_fail(EISDIR, "measured", path, err);
    }
    *out_size = info.st_size;
    return CT_OK;
}

ct_status cti_rename(const char *from, const char *to, ct_err *err)
{
    if (rename(from, to) != 0) {
        const int code = errno;
        const ct_status st = cti_file_fail(code, "renamed", from, err);
        ct_err_prefix(err, "rename to '%s'", to);
        return st;
    }
    return CT_OK;
}

char *cti_path_join(const ct_alloc *alloc, const char *a, const char *b, ct_err *err)
{
    if (a[0] == '\0' || b[0] == '/') {
        return ct_alloc_strdup(alloc, b, err);
    }
    const size_t n_a = strlen(a), n_b = strlen(b);
    const size_t slash = a[n_a - 1] == '/' ? 0 : 1;
    char *joined = ct_alloc_resize(alloc, NULL, n_a + slash + n_b + 1, 1, err);
    if (joined != NULL) {
        memcpy(joined, a, n_a);
        memset(joined + n_a, '/', slash);
        memcpy(joined + n_a + slash, b, n_b + 1);
    }
    return joined;
}

const char *cti_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}
