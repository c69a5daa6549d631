/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a file piece by piece under another name until it is whole. */
#include "data/output.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"

enum { BUFFER_BYTES = 1 << 20 };

static ct_status fail_errno(const cti_output *o, const char *what, int code, ct_err *err)
{
    char buf[128];
    return CT_FAIL(err, CT_ERR_IO, "'%s' cannot be %s after %lld bytes: %s", o->path, what, (long long)o->size,
                   strerror_r(code, buf, sizeof buf));
}

ct_status cti_output_open(cti_output *o, const ct_alloc *alloc, const char *path, ct_err *err)
{
    *o = (cti_output){.alloc = alloc, .fd = -1};
    cti_str temp = {.alloc = alloc};
    cti_str_printf(&temp, "%s.tmp.%ld", path, (long)getpid());
    o->path = ct_alloc_strdup(alloc, path, err);
    o->buffer = ct_alloc_resize(alloc, NULL, BUFFER_BYTES, 1, err);
    o->temp = temp.data;
    if (temp.failed || o->path == NULL || o->buffer == NULL) {
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory to write '%s'", path);
    }
    do {
        o->fd = open(o->temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    } while (o->fd < 0 && errno == EINTR);
    if (o->fd < 0) {
        return fail_errno(o, "created", errno, err);
    }
    o->is_open = true;
    return CT_OK;
}

static ct_status write_at(cti_output *o, int64_t offset, const unsigned char *p, size_t size, ct_err *err)
{
    while (size > 0) {
        const ssize_t n = pwrite(o->fd, p, size, (off_t)offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return fail_errno(o, "written", n < 0 ? errno : ENOSPC, err);
        }
        p += n;
        offset += n;
        size -= (size_t)n;
    }
    return CT_OK;
}

static ct_status flush(cti_output *o, ct_err *err)
{
    CT_TRY(write_at(o, o->size - (int64_t)o->n_buffer, o->buffer, o->n_buffer, err));
    o->n_buffer = 0;
    return CT_OK;
}

ct_status cti_output_add(cti_output *o, const void *data, size_t size, ct_err *err)
{
    const unsigned char *p = data;
    while (size > 0) {
        const size_t room = BUFFER_BYTES - o->n_buffer;
        const size_t n = size < room ? size : room;
        memcpy(o->buffer + o->n_buffer, p, n);
        o->n_buffer += n;
        o->size += (int64_t)n;
        p += n;
        size -= n;
        if (o->n_buffer == BUFFER_BYTES) {
            CT_TRY(flush(o, err));
        }
    }
    return CT_OK;
}

ct_status cti_output_put(cti_output *o, int64_t offset, const void *data, size_t size, ct_err *err)
{
    CT_TRY(flush(o, err));
    return write_at(o, offset, data, size, err);
}

static ct_status sync_folder(const cti_output *o, ct_err *err)
{
    const size_t n = (size_t)(cti_path_base(o->path) - o->path);
    cti_str folder = {.alloc = o->alloc};
    cti_str_add_n(&folder, n > 0 ? o->path : ".", n > 0 ? n : 1);
    ct_status st = cti_str_check(&folder, err);
    if (st == CT_OK) {
        st = cti_fsync_path(folder.data, err);
    }
    cti_str_deinit(&folder);
    return st;
}

ct_status cti_output_finish(cti_output *o, ct_err *err)
{
    CT_TRY(flush(o, err));
    if (fsync(o->fd) != 0 && errno != EINVAL) {
        return fail_errno(o, "written", errno, err);
    }
    const int fd = o->fd;
    o->fd = -1;
    if (close(fd) != 0 && errno != EINTR) {
        return fail_errno(o, "written", errno, err);
    }
    CT_TRY(cti_rename(o->temp, o->path, err));
    o->is_open = false;
    return sync_folder(o, err);
}

void cti_output_deinit(cti_output *o)
{
    if (o->fd >= 0 && o->alloc != NULL) {
        (void)close(o->fd); /* given up */
    }
    if (o->is_open) {
        (void)unlink(o->temp);
    }
    if (o->alloc != NULL) {
        ct_alloc_free(o->alloc, o->path);
        ct_alloc_free(o->alloc, o->temp);
        ct_alloc_free(o->alloc, o->buffer);
    }
    *o = (cti_output){.fd = -1};
}
