/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of the npu backend is a sequence of CANN's operators, written once and walked in three ways:
 *
 *   - to size its workspace at plan time: the first phase of each operator runs on shapes alone, nothing is enqueued;
 *   - to prepare a launch whose addresses are known: first phases run once, their executors are kept (repeatable) and only enqueued in each step;
 *   - to run it there and then: first phase, second phase, one operator after another. For kernels that take values from the host, and where CANN
 *     refuses to make an executor repeatable.
 *
 *     static void silu(cti_npu_seq *s, const ct_launch *l)
 *     {
 *         const cti_npu_view x = cti_npu_of(&l->in[0]), tmp = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(cti_npu_count(&x)));
 *         NPU_CALL(s, Cast, NPU_T(s, x), ACL_FLOAT, NPU_T(s, tmp));
 *         ...
 *     }
 *
 * The first failure stops the sequence: later calls do nothing, so that kernels need not check. */
#ifndef CTI_BACKEND_NPU_NPU_SEQ_H
#define CTI_BACKEND_NPU_NPU_SEQ_H

#include "backend/npu/npu_internal.h"
#include "base/num.h"

enum { CTI_NPU_MAX_NDIM = 8, CTI_NPU_MAX_TENSORS = 24, CTI_NPU_MAX_SCALARS = 4, CTI_NPU_MAX_ARRAYS = 4, CTI_NPU_MAX_HOST = 8 };

/* Device memory seen as a tensor: `data` and `offset` elements from it. */
typedef struct cti_npu_view {
    void *data;
    aclDataType dtype;
    int32_t ndim;
    int64_t dims[CTI_NPU_MAX_NDIM], strides[CTI_NPU_MAX_NDIM], offset; /* elements */
} cti_npu_view;

typedef enum cti_npu_mode { CTI_NPU_SIZE, CTI_NPU_PREPARE, CTI_NPU_RUN } cti_npu_mode;
typedef struct cti_npu_record cti_npu_record;

typedef struct cti_npu_seq {
    cti_npu_device *dev;
    const cti_cann *cann;
    const ct_launch *launch;
    const char *op; /* ours: "rmsnorm" */
    cti_npu_mode mode;
    aclrtStream stream;
    ct_status st; /* the first failure */
    ct_err *err;
    bool is_refused; /* preparing: an operator cannot be kept */
    bool is_blind;   /* sizing without CANN: operators are passed over */
    size_t at, most; /* bytes of temporaries in use, and the most there were */
    size_t tail;     /* bytes: the largest workspace that an operator asked for */
    cti_npu_record *record;
    /* of the call that is being made */
    const aclTensor *tensors[CTI_NPU_MAX_TENSORS];
    cti_npu_view views[CTI_NPU_MAX_TENSORS];
    const aclScalar *scalars[CTI_NPU_MAX_SCALARS];
    const aclIntArray *arrays[CTI_NPU_MAX_ARRAYS];
    int32_t n_tensors, n_scalars, n_arrays;
    void *host[CTI_NPU_MAX_HOST]; /* what was read back */
    int32_t n_host;
} cti_npu_seq;

typedef void (*cti_npu_build)(cti_npu_seq *s, const ct_launch *launch);

/* The three walks. The first without a device of this thread (`ctitan plan`) counts temporaries alone. */
size_t cti_npu_size(const ct_launch *launch, const char *op, cti_npu_build build);
CT_MUST_CHECK ct_status cti_npu_run(const ct_launch *launch, const char *op, cti_npu_build build, ct_err *err);
CT_MUST_CHECK ct_status cti_npu_prepare(const ct_launch *launch, const char *op, cti_npu_build build, void **out_state, ct_err *err);
void cti_npu_release(void *device, void *state);

#define NPU_DIMS(...) \
    (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

/* Views. */
aclDataType cti_npu_dtype(ct_dtype dtype);
size_t cti_npu_dtype_bytes(aclDataType dtype);
cti_npu_view cti_npu_of(const ct_tensor *t);
cti_npu_view cti_npu_flat(const ct_tensor *t);                                             /* [n] */
cti_npu_view cti_npu_rows(const ct_tensor *t);                                             /* [all dims but the last, the last] */
cti_npu_view cti_npu_as(cti_npu_view v, int32_t ndim, const int64_t *dims);                /* contiguous, from v's offset on */
cti_npu_view cti_npu_part(cti_npu_view v, int64_t offset, int32_t ndim, const int64_t *dims); /* the same, `offset` elements further */
cti_npu_view cti_npu_strided(cti_npu_view v, int64_t offset, int32_t ndim, const int64_t *dims, const int64_t *strides);
cti_npu_view cti_npu_t(cti_npu_view v);                                                    /* the last two dims change places */
int64_t cti_npu_numel(const cti_npu_view *v);
int64_t cti_npu_count(const ct_tensor *t); /* elements */
int64_t cti_npu_last(const ct_tensor *t);
int64_t cti_npu_n_rows(const ct_tensor *t); /* the product of all dims but the last */

/* Device memory for this launch, 512-byte aligned, until s->at is set back (cti_npu_seq.at). Contiguous. */
cti_npu_view cti_npu_temp(cti_npu_seq *s, aclDataType dtype, int32_t ndim, const int64_t *dims);

/* Operands of the call that is being made. */
const aclTensor *cti_npu_tensor(cti_npu_seq *s, cti_npu_view v);
const aclScalar *cti_npu_scalar(cti_npu_seq *s, aclDataType dtype, double value);
const aclIntArray *cti_npu_array(cti_npu_seq *s, const int64_t *values, int64_t n);
#define NPU_T(s, view) cti_npu_tensor((s), (view))
#define NPU_F(s, value) cti_npu_scalar((s), ACL_FLOAT, (value))
#define NPU_I(s, ...) cti_npu_array((s), (const int64_t[]){__VA_ARGS__}, (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

bool cti_npu_begin(cti_npu_seq *s, const char *name, bool is_there);
void cti_npu_end(cti_npu_seq *s, const char *name, aclnnStatus code, uint64_t bytes, aclOpExecutor *executor, cti_aclnn_run run);

/* One operator of CANN: both phases, or what the walk wants of them. Operands are made inside of the call. */
#define NPU_CALL(s, Op, ...)                                                                                        \
    do {                                                                                                            \
        if (cti_npu_begin((s), #Op, (s)->cann->Op != NULL && (s)->cann->Op##_size != NULL)) {                       \
            uint64_t npu_bytes_ = 0;                                                                                \
            aclOpExecutor *npu_executor_ = NULL;                                                                    \
            const aclnnStatus npu_code_ = (s)->cann->Op##_size(__VA_ARGS__, &npu_bytes_, &npu_executor_);           \
            cti_npu_end((s), #Op, npu_code_, npu_bytes_, npu_executor_, (s)->cann->Op);                             \
        }                                                                                                           \
    } while (0)

/* Steps that are no operators. */
void cti_npu_copy(cti_npu_seq *s, void *dst, const void *src, size_t bytes); /* on the device */
void cti_npu_zero(cti_npu_seq *s, cti_npu_view contiguous);
void cti_npu_put(cti_npu_seq *s, const ct_tensor *out, const void *host, size_t bytes); /* from the host, published; not while preparing */

/* Sequences of one or two operators. */
void cti_npu_cast(cti_npu_seq *s, cti_npu_view to, cti_npu_view from);   /* same shape, contiguous; a copy where dtypes are alike */
void cti_npu_spread(cti_npu_seq *s, cti_npu_view to, cti_npu_view from); /* strides, dtypes and dims of 1 on the right */
void cti_npu_fill(cti_npu_seq *s, cti_npu_view to, double value);
/* to = a b, 2-D, operands may be transposed views; is_more: to += a b. f32 products of what was bf16 use the cube's HF32, which holds bf16 exactly. */
void cti_npu_mm(cti_npu_seq *s, cti_npu_view to, cti_npu_view a, cti_npu_view b, bool is_more, bool was_bf16);
/* The tensor in f32: itself, or a cast of it into a temporary. */
cti_npu_view cti_npu_f32(cti_npu_seq *s, cti_npu_view v);

/* What the tensor holds, on the host: what the host wrote, what a kernel published, else read back, which waits. NULL while only shapes are
 * asked about and after a failure. Valid while the kernel runs. */
const void *cti_npu_host(cti_npu_seq *s, const ct_tensor *t);
/* The same where it is known without waiting, else NULL. */
const void *cti_npu_host_if_known(cti_npu_seq *s, const ct_tensor *t);

/* A failure of the kernel itself: ends the sequence. */
void cti_npu_stop(cti_npu_seq *s, ct_status st);
#define NPU_FAIL(s, status, ...)                                         \
    do {                                                                 \
        if ((s)->st == CT_OK) {                                          \
            (s)->st = CT_FAIL((s)->err, (status), __VA_ARGS__);          \
        }                                                                \
    } while (0)

#endif
