/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses and errors: what every function that can fail returns, and where its one sentence goes. */
#ifndef CTITAN_STATUS_H
#define CTITAN_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, retryable, exit_code, sentence)
 * The one list of statuses. exit_code is what the program ends with when this status reaches main():
 * 0 done, 1 failed, 2 bad command line or settings, 75 worth retrying. */
/* clang-format off */
#define CT_STATUS_LIST(X)                                                                      \
    X(OK,            0, 0,  "done")                                                            \
    X(ERR_USAGE,     0, 2,  "the command line or a setting is wrong")                          \
    X(ERR_NOT_FOUND, 0, 1,  "a named thing does not exist")                                    \
    X(ERR_IO,        0, 1,  "a file or directory could not be read or written")                \
    X(ERR_FORMAT,    0, 1,  "bytes are not in the format they should be in")                   \
    X(ERR_SHAPE,     0, 1,  "shapes or dtypes do not fit together")                            \
    X(ERR_RANGE,     0, 1,  "a number is out of its range")                                    \
    X(ERR_UNSUPPORTED, 0, 1, "this is not supported here")                                     \
    X(ERR_MEMORY,    0, 1,  "memory ran out or a plan does not fit")                           \
    X(ERR_DATA,      0, 1,  "the training data cannot be used")                                \
    X(ERR_NUMERIC,   0, 1,  "a value is not finite or not equal where it must be")             \
    X(ERR_BACKEND,   0, 1,  "a device or its library failed")                                  \
    X(ERR_PLUGIN,    0, 1,  "a plug-in cannot be loaded or broke its contract")                \
    X(ERR_PEER,      1, 75, "another rank failed or is gone")                                  \
    X(ERR_TIMEOUT,   1, 75, "a wait took longer than allowed")                                 \
    X(ERR_STOPPED,   1, 75, "stopped on request before the work was done")                     \
    X(ERR_STATE,     0, 1,  "called in a state that does not allow it")                        \
    X(END_OF_DATA,   0, 0,  "there is no more data")
/* clang-format on */

typedef enum ct_status {
#define CT_STATUS_ENUM(name, retry, code, sentence) CT_##name,
    CT_STATUS_LIST(CT_STATUS_ENUM)
#undef CT_STATUS_ENUM
        CT_STATUS_COUNT
} ct_status;

#define CT_ERR_MESSAGE_BYTES 2048

/* The first failure on a path. Zero-initialise: `ct_err err = {0};`. May be NULL wherever it is passed. */
typedef struct ct_err {
    ct_status status; /* CT_OK while nothing failed */
    const char *file; /* static string */
    int line;
    char message[CT_ERR_MESSAGE_BYTES]; /* UTF-8, cut at a whole character where too long */
} ct_err;

#if defined(__GNUC__)
#define CT_MUST_CHECK __attribute__((warn_unused_result))
#define CT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define CT_MUST_CHECK
#define CT_PRINTF(fmt, args)
#endif

/* Records the failure in `err` unless err is NULL or already holds one; returns `status` always. */
ct_status ct_err_set(ct_err *err, ct_status status, const char *file, int line, const char *fmt, ...)
    CT_PRINTF(5, 6);

/* Puts "prefix: " before the recorded message (for context such as a file name). No effect on an empty err. */
void ct_err_prefix(ct_err *err, const char *fmt, ...) CT_PRINTF(2, 3);

const char *ct_status_name(ct_status status);     /* "ERR_IO" */
const char *ct_status_sentence(ct_status status); /* "a file or directory …" */
int ct_status_exit_code(ct_status status);
int ct_status_is_retryable(ct_status status);

/* The comma lets a compiler see that what is returned is the status given. */
#define CT_FAIL(err, status, ...) ((void)ct_err_set((err), (status), __FILE__, __LINE__, __VA_ARGS__), (status))

/* Returns from the calling function with the failing status. Nothing to undo. */
#define CT_TRY(expr)                                                                               \
    do {                                                                                           \
        ct_status ct_try_status_ = (expr);                                                         \
        if (ct_try_status_ != CT_OK) {                                                             \
            return ct_try_status_;                                                                 \
        }                                                                                          \
    } while (0)

/* Stores the status in `st` and jumps forward to `label` where it is not CT_OK. */
#define CT_TRY_GOTO(st, expr, label)                                                               \
    do {                                                                                           \
        (st) = (expr);                                                                             \
        if ((st) != CT_OK) {                                                                       \
            goto label;                                                                            \
        }                                                                                          \
    } while (0)

/* For our own mistakes only. Prints the expression and place, then aborts; stays on in release. */
void ct_assert_failed(const char *expr, const char *file, int line);
#define CT_ASSERT(expr) ((expr) ? (void)0 : ct_assert_failed(#expr, __FILE__, __LINE__))

#ifdef __cplusplus
}
#endif
#endif
