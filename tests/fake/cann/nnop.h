/* SPDX-License-Identifier: Apache-2.0 */
/* What libnnopbase's double offers to libopapi's: descriptors as objects, the table form of operators, both
 * phases.
 *
 * An operator is a row: its arguments in the order of its prototype with what they may be, a function that
 * checks what a table can't say, and a function that computes. fake_plan() is every phase 1, fake_run() every
 * phase 2. */
#ifndef FAKE_CANN_NNOP_H
#define FAKE_CANN_NNOP_H

#include "fake.h"
#include "nnop_view.h"

/* ---- descriptors ---- */

/* The head of every descriptor and executor. */
struct fake_object {
    enum fake_kind kind;
    unsigned number; /* the n-th object of the process, for messages */
    bool dead;
    bool in_list; /* a list owns it */
    int planned;  /* executors between their phases, and repeatable ones, that hold it */
    int repeated; /* of those the repeatable ones */
    struct fake_object *next;
};

struct aclTensor {
    struct fake_object object;
    fake_view view;
    aclFormat format;
    int storage_ndim;
    int64_t storage_dim[FAKE_RANK_MAX];
    int true_ndim; /* as given: above FAKE_RANK_MAX the view holds none of it */
    bool bad_dims; /* a negative dim */
};
struct aclScalar {
    struct fake_object object;
    aclDataType dtype;
    double d;  /* the value */
    int64_t i; /* exact, where the dtype is an integer */
};
/* IntArray, FloatArray, BoolArray, TensorList, ScalarList. */
struct fake_array {
    struct fake_object object;
    uint64_t n;
    union {
        int64_t *ints;
        float *floats;
        bool *bools;
        void **members;
    } of;
};

/* The object, or NULL after a trap: never one of this kind, or destroyed. `where` and `what` name call and
 * operand. */
FAKE_API void *fake_object_use(const void *object, enum fake_kind kind, const char *where, const char *what);
void *fake_object_new(enum fake_kind kind, size_t size);
void fake_object_end(void *object);
/* Whether the object with this number still lives; adds to its `planned` and `repeated`. */
bool fake_object_hold(const void *object, unsigned number, int planned, int repeated);

/* ---- operators ---- */

enum fake_arg_kind {
    FAKE_ARG_TENSOR = 1,
    FAKE_ARG_TENSORS,
    FAKE_ARG_SCALAR,
    FAKE_ARG_INTS,
    FAKE_ARG_I64,
    FAKE_ARG_F64,
    FAKE_ARG_DTYPE,
    FAKE_ARG_TEXT,
};

/* Sets of dtypes. */
#define FAKE_SET(dtype) (1u << (dtype))
#define FAKE_F32 FAKE_SET(ACL_FLOAT)
#define FAKE_FLOAT3 (FAKE_F32 | FAKE_SET(ACL_FLOAT16) | FAKE_SET(ACL_BF16))
#define FAKE_FLOAT4 (FAKE_FLOAT3 | FAKE_SET(ACL_DOUBLE))
#define FAKE_INT2 (FAKE_SET(ACL_INT32) | FAKE_SET(ACL_INT64))
#define FAKE_FLAGS (FAKE_SET(ACL_BOOL) | FAKE_SET(ACL_UINT8))
#define FAKE_NUMBERS \
    (FAKE_FLOAT4 | FAKE_INT2 | FAKE_SET(ACL_INT8) | FAKE_SET(ACL_INT16) | FAKE_SET(ACL_UINT8))
#define FAKE_ANY \
    (FAKE_NUMBERS | FAKE_SET(ACL_BOOL) | FAKE_SET(ACL_UINT16) | FAKE_SET(ACL_UINT32) | FAKE_SET(ACL_UINT64))

enum {
    FAKE_OPTIONAL = 1, /* may be NULL */
    FAKE_DENSE = 2,    /* strided views are refused */
};

typedef struct fake_operand {
    const char *name;
    uint8_t kind;    /* enum fake_arg_kind */
    uint8_t use;     /* FAKE_READ, FAKE_WRITE or both */
    uint8_t flags;   /* FAKE_OPTIONAL, FAKE_DENSE */
    uint8_t like;    /* has the dtype of argument number like - 1; 0: of none */
    uint32_t dtypes; /* a set */
} fake_operand;

typedef struct fake_arg {
    bool given;
    const void *object; /* the descriptor and its number; not for `run` */
    unsigned number;
    fake_view view;    /* a tensor; in `run` with an address that the double may touch */
    aclDataType dtype; /* of a scalar; the value of a dtype argument */
    double d;
    int64_t i;
    int64_t n; /* of ints or views */
    int64_t *ints;
    fake_view *views;
    char text[24];
} fake_arg;

enum { FAKE_ARGS_MAX = 28 };

typedef struct fake_call fake_call;

enum {
    FAKE_OP_GENERATED = 1,   /* faults of shape and value are found in tiling: 561002 */
    FAKE_OP_ELEMENTWISE = 2, /* an output may be an input, exactly */
    FAKE_OP_HOST_DATA = 4,   /* phase 2 copies host data: no repeatable executor */
    FAKE_OP_NOT_910A = 8,    /* no kernel for Ascend910A */
    FAKE_OP_NOT_EMPTY = 16,  /* empty tensors are refused */
};

typedef struct fake_op {
    const char *name, *phase1;
    int nargs;
    const fake_operand *args;
    int code;                   /* for families with one `check` and `run` */
    int (*check)(fake_call *c); /* 0 or what fake_refuse() gave; may be NULL */
    void (*run)(fake_call *c);
    unsigned flags;
} fake_op;

struct fake_call {
    const fake_op *op;
    bool deterministic; /* as it was in phase 1 */
    uint64_t seed;      /* for the order of sums that are not deterministic */
    fake_arg arg[FAKE_ARGS_MAX];
    struct fake_scrap *scraps; /* memory of `run` */
    int fault;                 /* what `run` found: the error of the next synchronisation */
};

/* What a phase 1 was given, in the order of the table. */
typedef struct fake_given {
    uint8_t kind;
    const void *p;
    int64_t i;
    double d;
} fake_given;
#define T(x)                              \
    {                                     \
        .kind = FAKE_ARG_TENSOR, .p = (x) \
    }
#define TS(x)                              \
    {                                      \
        .kind = FAKE_ARG_TENSORS, .p = (x) \
    }
#define S(x)                              \
    {                                     \
        .kind = FAKE_ARG_SCALAR, .p = (x) \
    }
#define A(x)                            \
    {                                   \
        .kind = FAKE_ARG_INTS, .p = (x) \
    }
#define I(x)                                    \
    {                                           \
        .kind = FAKE_ARG_I64, .i = (int64_t)(x) \
    }
#define D(x)                                   \
    {                                          \
        .kind = FAKE_ARG_F64, .d = (double)(x) \
    }
#define DT(x)                                     \
    {                                             \
        .kind = FAKE_ARG_DTYPE, .i = (int64_t)(x) \
    }
#define C(x)                            \
    {                                   \
        .kind = FAKE_ARG_TEXT, .p = (x) \
    }

FAKE_API aclnnStatus fake_plan(const fake_op *op, const fake_given *given, int ngiven,
                               uint64_t *workspace_size, aclOpExecutor **executor);
FAKE_API aclnnStatus fake_run(const fake_op *op, void *workspace, uint64_t workspace_size,
                              aclOpExecutor *executor, void *stream);

/* Rows of an operator's arguments. */
#define IN(n, ...)                                                                  \
    {                                                                               \
        .name = n, .kind = FAKE_ARG_TENSOR, .use = FAKE_READ, .dtypes = __VA_ARGS__ \
    }
#define OUT(n, ...)                                                                  \
    {                                                                                \
        .name = n, .kind = FAKE_ARG_TENSOR, .use = FAKE_WRITE, .dtypes = __VA_ARGS__ \
    }
#define REF(n, ...)                                                                              \
    {                                                                                            \
        .name = n, .kind = FAKE_ARG_TENSOR, .use = FAKE_READ | FAKE_WRITE, .dtypes = __VA_ARGS__ \
    }
#define INS(n, ...)                                                                  \
    {                                                                                \
        .name = n, .kind = FAKE_ARG_TENSORS, .use = FAKE_READ, .dtypes = __VA_ARGS__ \
    }
#define SCALAR(n)                                              \
    {                                                          \
        .name = n, .kind = FAKE_ARG_SCALAR, .dtypes = FAKE_ANY \
    }
#define INTS(...)                                  \
    {                                              \
        .kind = FAKE_ARG_INTS, .name = __VA_ARGS__ \
    }
#define INT(n)                          \
    {                                   \
        .name = n, .kind = FAKE_ARG_I64 \
    }
#define NUMBER(n)                       \
    {                                   \
        .name = n, .kind = FAKE_ARG_F64 \
    }
#define DTYPE(n)                          \
    {                                     \
        .name = n, .kind = FAKE_ARG_DTYPE \
    }
#define TEXT(...)                                  \
    {                                              \
        .kind = FAKE_ARG_TEXT, .name = __VA_ARGS__ \
    }
#define ARGS(list) .nargs = (int)(sizeof(list) / sizeof(list)[0]), .args = (list)

/* A row, and the function that phase 2 is; phase 1 is written out, since no two lists of parameters are to be
 * taken for one another. */
#define OP(Name, ...)                  \
    static const fake_op op_##Name = { \
        .name = "aclnn" #Name, .phase1 = "aclnn" #Name "GetWorkspaceSize", __VA_ARGS__}
#define PHASE2(Name)                                                                                   \
    FAKE_API aclnnStatus aclnn##Name(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, \
                                     void *stream)                                                     \
    {                                                                                                  \
        return fake_run(&op_##Name, workspace, workspaceSize, executor, stream);                       \
    }
#define PHASE1(Name, ...)                                                                    \
    FAKE_API aclnnStatus aclnn##Name##GetWorkspaceSize(__VA_ARGS__, uint64_t *workspaceSize, \
                                                       aclOpExecutor **executor)
#define PLAN(Name, ...)                       \
    const fake_given given[] = {__VA_ARGS__}; \
    return fake_plan(&op_##Name, given, (int)(sizeof given / sizeof given[0]), workspaceSize, executor)

/* ---- for `check` ---- */

/* A refusal: counts the rule, makes the text (with the op's name and all operands) and gives the code back.
 */
FAKE_API int fake_refuse(fake_call *c, enum fake_rule rule, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Of shapes and values, with the code that belongs to the op: 161002 or 561002. */
FAKE_API int fake_refuse_shape(fake_call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
FAKE_API int fake_refuse_value(fake_call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* 0, or a refusal: argument i has not exactly these dims. */
FAKE_API int fake_want_dims(fake_call *c, int i, int ndim, const int64_t *dim);
FAKE_API int fake_want_dims_of(fake_call *c, int i, int j);
/* Makes a dim argument count from the front; a refusal where it is outside [-ndim, ndim). */
FAKE_API int fake_want_dim(fake_call *c, int i, int ndim);
#define TRY(x)           \
    do {                 \
        int try_ = (x);  \
        if (try_ != 0) { \
            return try_; \
        }                \
    } while (0)

/* ---- for `run` ---- */

static inline fake_view *fake_arg_view(fake_call *c, int i)
{
    return &c->arg[i].view;
}
/* Memory that is freed when the task is over: as it comes, and zeroed. */
FAKE_API void *fake_scrap_raw(fake_call *c, int64_t n, size_t size);
FAKE_API void *fake_scrap_new(fake_call *c, int64_t n, size_t size);
FAKE_API float *fake_new_f32(fake_call *c, int64_t n);
FAKE_API double *fake_new_f64(fake_call *c, int64_t n);
/* All elements of argument i. */
FAKE_API float *fake_arg_f32(fake_call *c, int i);
FAKE_API double *fake_arg_f64(fake_call *c, int i);
FAKE_API int64_t *fake_arg_i64(fake_call *c, int i);
/* An index that real hardware does not check: traps where it is outside [0, n); then false. */
FAKE_API bool fake_index_ok(fake_call *c, int64_t index, int64_t n, const char *what);
/* order[0..n): 0 to n - 1, shuffled unless the call is deterministic. */
FAKE_API int64_t *fake_sum_order(fake_call *c, int64_t n);

#endif
