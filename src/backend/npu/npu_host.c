/* SPDX-License-Identifier: Apache-2.0 */
/* Values that kernels take from the host: what the host wrote, what a kernel made on the host or read back once, or what must be waited for. */
#include <string.h>

#include "backend/npu/npu_seq.h"

static bool is_at(const cti_npu_published *p, const char *at, size_t bytes)
{
    return p->begin == at && p->end == at + bytes;
}

/* A free slot, or the next in turn. */
static cti_npu_published *take_slot(cti_npu_device *dev)
{
    for (int i = 0; i < CTI_NPU_PUBLISHED; i++) {
        if (dev->published[i].begin == NULL) {
            return &dev->published[i];
        }
    }
    cti_npu_published *oldest = &dev->published[dev->next_published];
    dev->next_published = (dev->next_published + 1) % CTI_NPU_PUBLISHED;
    return oldest;
}

/* Waits until nothing is on its way into the slot. */
static ct_status settle(cti_npu_device *dev, cti_npu_published *p, ct_err *err)
{
    if (p->pending != NULL) {
        CT_TRY(cti_npu_wait(dev, p->pending, err));
        p->pending = NULL;
    }
    return CT_OK;
}

ct_status cti_npu_publish(cti_npu_device *dev, const void *at, const void *host, size_t bytes, aclrtStream stream, ct_err *err)
{
    cti_npu_forget(dev, at, bytes);
    cti_npu_published *p = take_slot(dev);
    CT_TRY(settle(dev, p, err));
    p->begin = p->end = NULL;
    if (p->capacity < bytes) {
        if (p->host != NULL) {
            (void)dev->cann->aclrtFreeHost(p->host); /* ours */
        }
        p->host = NULL;
        p->capacity = 0;
        const aclError e = dev->cann->aclrtMallocHost(&p->host, bytes);
        if (e != 0) {
            return cti_acl_fail(dev->cann, e, err, "npu %d: aclrtMallocHost of %zu bytes of pinned memory of the host", (int)dev->index, bytes);
        }
        p->capacity = bytes;
    }
    if (host != NULL) {
        memcpy(p->host, host, bytes);
    } else {
        const aclError e = dev->cann->aclrtMemcpyAsync(p->host, bytes, at, bytes, ACL_MEMCPY_DEVICE_TO_HOST, stream);
        if (e != 0) {
            return cti_acl_fail(dev->cann, e, err, "npu %d: aclrtMemcpyAsync to the host", (int)dev->index);
        }
        p->pending = stream;
    }
    p->begin = at;
    p->end = (const char *)at + bytes;
    return CT_OK;
}

void cti_npu_forget(cti_npu_device *dev, const void *at, size_t bytes)
{
    const char *begin = at, *end = begin + bytes;
    for (int i = 0; i < CTI_NPU_PUBLISHED; i++) {
        cti_npu_published *p = &dev->published[i];
        if (p->begin != NULL && p->begin < end && begin < p->end) {
            p->begin = p->end = NULL; /* what is on its way to the host arrives there all the same: `pending` stays */
        }
    }
}

ct_status cti_npu_find_published(cti_npu_device *dev, const void *at, size_t bytes, const void **out, ct_err *err)
{
    *out = NULL;
    for (int i = 0; i < CTI_NPU_PUBLISHED && bytes > 0; i++) {
        if (is_at(&dev->published[i], at, bytes)) {
            CT_TRY(settle(dev, &dev->published[i], err));
            *out = dev->published[i].host;
            break;
        }
    }
    return CT_OK;
}

void cti_npu_published_deinit(cti_npu_device *dev)
{
    for (int i = 0; i < CTI_NPU_PUBLISHED; i++) {
        if (dev->published[i].host != NULL) {
            (void)dev->cann->aclrtFreeHost(dev->published[i].host); /* ours, and the streams are empty */
        }
    }
}

const void *cti_npu_host_if_known(cti_npu_seq *s, const ct_tensor *t)
{
    const void *found = NULL;
    if (s->mode == CTI_NPU_SIZE || s->st != CT_OK) {
        return NULL;
    }
    if (t->host != NULL) {
        return t->host;
    }
    cti_npu_stop(s, cti_npu_find_published(s->dev, t->data, (size_t)cti_npu_count(t) * ct_dtype_size_bytes(t->dtype), &found, s->err));
    return found;
}

const void *cti_npu_host(cti_npu_seq *s, const ct_tensor *t)
{
    const void *known = cti_npu_host_if_known(s, t);
    if (known != NULL || s->mode == CTI_NPU_SIZE || s->st != CT_OK) {
        return known;
    }
    const size_t bytes = (size_t)cti_npu_count(t) * ct_dtype_size_bytes(t->dtype);
    CT_ASSERT(s->n_host < CTI_NPU_MAX_HOST);
    void *host = ct_alloc_zeroed(s->dev->alloc, 1, bytes, s->err);
    if (host == NULL) {
        cti_npu_stop(s, CT_ERR_MEMORY);
        return NULL;
    }
    s->host[s->n_host++] = host;
    cti_npu_stop(s, cti_npu_download(s->dev, host, t->data, bytes, s->stream, s->err));
    return s->st == CT_OK ? host : NULL;
}

void cti_npu_put(cti_npu_seq *s, const ct_tensor *out, const void *host, size_t bytes)
{
    if (s->st != CT_OK || s->mode == CTI_NPU_SIZE || bytes == 0) {
        return;
    }
    CT_ASSERT(s->mode == CTI_NPU_RUN);
    cti_npu_stop(s, cti_npu_upload(s->dev, out->data, host, bytes, s->stream, s->err));
    if (s->st == CT_OK) {
        cti_npu_stop(s, cti_npu_publish(s->dev, out->data, host, bytes, s->stream, s->err));
    }
}
