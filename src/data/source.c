/* SPDX-License-Identifier: Apache-2.0 */
/* A data file: opening it, and whether it is still what it was. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "data/source.h"

enum { PRINT_BYTES = 4096 };

static ct_status fail_errno(const char *path, int code, ct_err *err)
{
    char buf[128];
    return CT_FAIL(err, code == ENOENT || code == ENOTDIR ? CT_ERR_NOT_FOUND : CT_ERR_IO, "'%s' cannot be read: %s", path,
                   code == ELOOP ? "its symbolic links go in a circle" : strerror_r(code, buf, sizeof buf));
}

static const char *kind_name(mode_t mode)
{
    return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

ct_status cti_data_open(const char *path, int *out_fd, ct_err *err)
{
    struct stat info;
    int fd;
    if (stat(path, &info) != 0) {
        return fail_errno(path, errno, err);
    }
    if (!S_ISREG(info.st_mode)) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s' is %s; a data file must allow reading at any place", path, kind_name(info.st_mode));
    }
    do { /* without blocking, should it have become a pipe meanwhile */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return fail_errno(path, errno, err);
    }
    *out_fd = fd;
    return CT_OK;
}

/* 0 with *out_n bytes (fewer at the end of the file), or errno. */
static int read_at(int fd, int64_t offset, void *out, size_t size, size_t *out_n)
{
    size_t n = 0;
    while (n < size) {
        const size_t want = size - n > ((size_t)1 << 30) ? (size_t)1 << 30 : size - n;
        const ssize_t got = pread(fd, (char *)out + n, want, (off_t)(offset + (int64_t)n));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return errno;
        }
        if (got == 0) {
            break;
        }
        n += (size_t)got;
    }
    *out_n = n;
    return 0;
}

/* What the file is now, without its fingerprint. */
static ct_status look(const char *path, int fd, cti_stamp *out_stamp, ct_err *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return fail_errno(path, errno, err);
    }
    *out_stamp = (cti_stamp){.size_bytes = info.st_size, .mtime_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec};
    return CT_OK;
}

static ct_status take_print(const char *path, int fd, cti_stamp *stamp, ct_err *err)
{
    unsigned char block[PRINT_BYTES];
    const size_t n = stamp->size_bytes < PRINT_BYTES ? (size_t)stamp->size_bytes : PRINT_BYTES;
    uint64_t print = (uint64_t)stamp->size_bytes;
    for (int i = 0; i < 2; i++) {
        size_t got = 0;
        const int code = read_at(fd, i == 0 ? 0 : stamp->size_bytes - (int64_t)n, block, n, &got);
        if (code != 0) {
            return fail_errno(path, code, err);
        }
        print = cti_hash64(block, got, print);
    }
    stamp->fingerprint = print;
    return CT_OK;
}

ct_status cti_stamp_take(const char *path, int fd, cti_stamp *out_stamp, ct_err *err)
{
    CT_TRY(look(path, fd, out_stamp, err));
    return take_print(path, fd, out_stamp, err);
}

ct_status cti_source_check(const cti_source *source, int fd, ct_err *err)
{
    const cti_stamp *was = &source->stamp;
    cti_stamp now;
    CT_TRY(look(source->path, fd, &now, err));
    if (now.size_bytes != was->size_bytes) {
        return CT_FAIL(err, CT_ERR_DATA, "'%s' has changed while it is in use: it had %lld bytes when it was indexed, it has %lld now",
                       source->path, (long long)was->size_bytes, (long long)now.size_bytes);
    }
    if (now.mtime_ns == was->mtime_ns) {
        return CT_OK;
    }
    CT_TRY(take_print(source->path, fd, &now, err));
    if (now.fingerprint != was->fingerprint) {
        return CT_FAIL(err, CT_ERR_DATA, "'%s' has changed while it is in use: its %lld bytes are others than when it was indexed",
                       source->path, (long long)was->size_bytes);
    }
    return CT_OK;
}

ct_status cti_source_open(const cti_source *source, int *out_fd, ct_err *err)
{
    int fd;
    CT_TRY(cti_data_open(source->path, &fd, err));
    const ct_status st = cti_source_check(source, fd, err);
    if (st != CT_OK) {
        (void)close(fd);
        return st;
    }
    *out_fd = fd;
    return CT_OK;
}

ct_status cti_source_read(const cti_source *source, int fd, int64_t offset, void *out, size_t size, ct_err *err)
{
    size_t n = 0;
    const int code = read_at(fd, offset, out, size, &n);
    if (code != 0) {
        return fail_errno(source->path, code, err);
    }
    if (n < size) {
        CT_TRY(cti_source_check(source, fd, err));
        return CT_FAIL(err, CT_ERR_DATA, "'%s' ends at byte %lld, %zu bytes at %lld are wanted", source->path,
                       (long long)(offset + (int64_t)n), size, (long long)offset);
    }
    return CT_OK;
}

const cti_point *cti_source_point(const cti_source *source, int64_t offset)
{
    int64_t low = 0;
    int64_t high = source->n_points;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (source->points[middle].out <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? &source->points[low - 1] : NULL;
}
