/* SPDX-License-Identifier: Apache-2.0 */
/* Strided views of device memory, as aclTensor describes them, and their elements as dense arrays of doubles,
 * floats or int64. */
#ifndef FAKE_CANN_VIEW_H
#define FAKE_CANN_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acl_types.h"
#include "fake.h"

enum { FAKE_RANK_MAX = 8 };

typedef struct fake_view {
    aclDataType dtype;
    int ndim;
    int64_t dim[FAKE_RANK_MAX];
    int64_t stride[FAKE_RANK_MAX]; /* elements */
    int64_t offset;                /* elements from addr to the element with all indices 0 */
    int64_t storage;               /* elements that the storage has, from addr on */
    void *addr; /* a device address; the functions below that touch elements want it as the host sees it */
} fake_view;

/* Bytes of one element; 0 for what the double does not compute with. */
FAKE_API size_t fake_dtype_size(aclDataType dtype);
FAKE_API const char *fake_dtype_name(aclDataType dtype);
FAKE_API bool fake_dtype_is_float(aclDataType dtype);

FAKE_API int64_t fake_view_count(const fake_view *v);
FAKE_API bool fake_view_is_contiguous(const fake_view *v);
/* Whether two indices of the view are one element (a dim of stride 0, for one). */
FAKE_API bool fake_view_overlaps_itself(const fake_view *v);
/* Whether some byte belongs to both views, element by element; both addresses as seen by one side. */
FAKE_API bool fake_view_meet(const fake_view *a, const fake_view *b);
/* The same elements in the same order: equal dims where counts are above one, strides, dtype size and first
 * byte. */
FAKE_API bool fake_view_equal(const fake_view *a, const fake_view *b);
/* Elements that the view touches: [lo, hi) from addr; lo == hi where it is empty. */
FAKE_API void fake_view_span(const fake_view *v, int64_t *lo, int64_t *hi);
FAKE_API bool fake_view_same_dims(const fake_view *a, const fake_view *b);
/* v seen with more or wider dims, as in numpy; false where that is not possible. */
FAKE_API bool fake_view_broadcast(const fake_view *v, int ndim, const int64_t *dim, fake_view *out);
/* A contiguous view of dense elements. */
FAKE_API fake_view fake_view_dense(aclDataType dtype, int ndim, const int64_t *dim, void *addr);

/* Elements in row-major order of the view's dims. */
FAKE_API void fake_load_f64(const fake_view *v, double *out);
FAKE_API void fake_load_f32(const fake_view *v, float *out);
FAKE_API void fake_load_i64(const fake_view *v, int64_t *out);
/* Rounds once, to the nearest, ties to even; to integers towards zero, NaN becomes 0, out of range the
 * nearest limit; BOOL: not equal 0. */
FAKE_API void fake_store_f64(const fake_view *v, const double *in);
FAKE_API void fake_store_f32(const fake_view *v, const float *in);
FAKE_API void fake_store_i64(const fake_view *v, const int64_t *in);

/* What storing in `dtype` and loading again would give. */
FAKE_API double fake_round(double x, aclDataType dtype);
#endif
