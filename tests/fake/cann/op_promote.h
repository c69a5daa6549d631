/* SPDX-License-Identifier: Apache-2.0 */
/* Dtypes of elementwise results. */
#ifndef FAKE_CANN_OP_PROMOTE_H
#define FAKE_CANN_OP_PROMOTE_H

#include "nnop.h"

/* Of two tensors: two floats of different kinds meet in FLOAT (DOUBLE wins), a float wins over integers,
 * integers widen. UNDEFINED: no rule. */
aclDataType op_promote(aclDataType a, aclDataType b);
/* Of a tensor and a scalar: the tensor's, unless the scalar is of a higher category (BOOL, integers, floats).
 */
aclDataType op_promote_scalar(aclDataType tensor, aclDataType scalar);
/* Whether a result may be cast to an output: never from float to integer, never to BOOL from anything else.
 */
bool op_castable(aclDataType from, aclDataType to);
/* A refusal where `from` can't be cast to argument `out`, or is UNDEFINED. */
int op_want_castable(fake_call *c, aclDataType from, int out);
/* Dims of a and b together; false where they do not broadcast. */
bool op_broadcast_dims(const fake_view *a, const fake_view *b, int *ndim, int64_t *dim);
/* Stores a result that has the dtype `mid` before it is cast to the output's. BOOL: as it is. */
void op_store_f64(fake_call *c, double *x, int64_t n, aclDataType mid, const fake_view *out);
void op_store_f32(fake_call *c, float *x, int64_t n, aclDataType mid, const fake_view *out);
#endif
