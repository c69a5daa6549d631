/* SPDX-License-Identifier: Apache-2.0 */
/* One safetensors file: u64 little-endian header length, a JSON header, then the tensors' bytes (docs/formats/safetensors.md).
 *
 *     CT_TRY(ct_st_open(alloc, path, &st, err));                  // mapped; everything about the header is checked
 *     const ct_st_tensor *t = ct_st_find(st, "norm.weight");      // t->data, t->dims
 *     ct_st_close(&st);
 *
 *     CT_TRY(ct_st_writer_open(alloc, path, specs, n, &w, err));  // header first
 *     CT_TRY(ct_st_writer_add(w, bytes, size, err));              // tensors in the order of specs, in pieces of any size
 *     CT_TRY(ct_st_writer_finish(&w, &size, hex, err));           // fsyncs; ERR_STATE where bytes are missing
 */
#ifndef CTI_CKPT_SAFETENSORS_H
#define CTI_CKPT_SAFETENSORS_H

#include "ctitan/alloc.h"
#include "ctitan/dtype.h"

#define CT_ST_MAX_NDIM 8

typedef struct ct_st_tensor {
    const char *name; /* the file's */
    const char *dtype_name; /* the file's */
    ct_dtype dtype; /* CT_DTYPE_COUNT where dtype_name is none of ours */
    int32_t ndim;
    int64_t dims[CT_ST_MAX_NDIM];
    int64_t numel;
    const unsigned char *data; /* mapped; any alignment */
    size_t size_bytes;
} ct_st_tensor;

typedef struct ct_st ct_st;

/* Refused, naming file and tensor: a header that is longer than the file or 100 MB, does not begin with '{', is no JSON object, or names a tensor
 * twice; dims that are negative or overflow; offsets out of order, overlapping, leaving holes, past the end, or not of the size that dtype and
 * dims make; bytes after the last tensor. A dtype that is none of ours is no fault of the file: who needs the tensor refuses it. */
CT_MUST_CHECK ct_status ct_st_open(const ct_alloc *alloc, const char *path, ct_st **out_st, ct_err *err);
void ct_st_close(ct_st **st);
int32_t ct_st_n_tensors(const ct_st *st);
const ct_st_tensor *ct_st_at(const ct_st *st, int32_t i);
const ct_st_tensor *ct_st_find(const ct_st *st, const char *name); /* NULL where there is none */
/* XXH3-128 of the whole file and its size. */
void ct_st_hash(const ct_st *st, char out_hex[33], int64_t *out_size);

typedef struct ct_st_spec {
    const char *name;
    ct_dtype dtype;
    int32_t ndim;
    int64_t dims[CT_ST_MAX_NDIM];
} ct_st_spec;

typedef struct ct_st_writer ct_st_writer;
CT_MUST_CHECK ct_status ct_st_writer_open(const ct_alloc *alloc, const char *path, const ct_st_spec *specs, int32_t n_specs,
                                          ct_st_writer **out_writer, ct_err *err);
CT_MUST_CHECK ct_status ct_st_writer_add(ct_st_writer *writer, const void *bytes, size_t size_bytes, ct_err *err);
/* Closes in every case. */
CT_MUST_CHECK ct_status ct_st_writer_finish(ct_st_writer **writer, int64_t *out_size, char out_hex[33], ct_err *err);
void ct_st_writer_abort(ct_st_writer **writer); /* closes; the file stays, not whole */

#endif
