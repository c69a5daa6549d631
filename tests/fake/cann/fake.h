/* SPDX-License-Identifier: Apache-2.0 */
/* What the doubles of CANN's libraries share: libascendcl.so holds the state and exports these functions to
 * libnnopbase.so, libopapi.so and libhccl.so. Switches are environment variables FAKE_CANN_*, described in
 * README.md beside this file.
 *
 * A call of an API function typically reads:
 *
 *     if (fake_device() < 0) {
 *         return fake_code(FAKE_R_ACLNN_NO_CONTEXT, 361001, "aclnnMm: no current context in this thread");
 *     }
 *     struct fake_range uses[] = {{a, a_bytes, FAKE_READ, "self"}, {out, out_bytes, FAKE_WRITE, "out"},
 *                                 {workspace, workspace_size, FAKE_WORKSPACE, "workspace"}};
 *     return fake_launch("aclnnMm", stream, uses, 3, run_mm, &args, sizeof args, NULL);
 *
 * and run_mm(), later and on the stream's thread, computes on fake_at(args->a). All functions may be called
 * from any thread unless they say otherwise; none of them waits for a stream unless it says so. */
#ifndef CT_TESTS_FAKE_CANN_FAKE_H
#define CT_TESTS_FAKE_CANN_FAKE_H

#include "rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The functions of the doubled libraries have no header here: prototypes of the program must not come in by
 * one. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define FAKE_API __attribute__((visibility("default")))

/* ---- Rules ------------------------------------------------------------------------------------------- */

enum fake_rule {
#define FAKE_RULE_ID(id, severity, text) FAKE_R_##id,
    FAKE_RULES(FAKE_RULE_ID)
#undef FAKE_RULE_ID
        FAKE_RULE_COUNT
};

/* Counts the rule as broken, makes the text (printf) the thread's recent error message and returns `code`. */
FAKE_API int fake_code(enum fake_rule rule, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Misuse that real CANN answers with undefined behaviour: prints "fake cann: trap RULE: text" and aborts;
 * with FAKE_CANN_TRAPS=record it counts, prints and returns, and the caller goes on without touching what is
 * wrong. */
FAKE_API void fake_trap(enum fake_rule rule, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Legal, and almost surely a mistake: counted; printed at the first of its rule. FAKE_CANN_LINTS=trap makes
 * lints traps. */
FAKE_API void fake_lint(enum fake_rule rule, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the thread's recent error message without breaking a rule: errors of faults on demand and of the world
 * outside. */
FAKE_API void fake_error_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How often the rule was broken in this process; the names of rules. Tests find them by dlsym(). */
FAKE_API uint64_t fake_rule_hits(int rule);
FAKE_API const char *fake_rule_name(int rule);
/* Of libhccl: 1 while a thread is inside a call of the communicator. */
FAKE_API int fake_hccl_is_inside(const void *comm);

/* ---- Thread, device ---------------------------------------------------------------------------------- */

/* The device and the context of the calling thread: < 0 and NULL where it has none. On a stream's thread: the
 * stream's. */
FAKE_API int fake_device(void);
FAKE_API void *fake_context(void);
/* Whether aclInit was called (and aclFinalize was not). */
FAKE_API bool fake_initialised(void);
/* The physical number of a device, as ASCEND_RT_VISIBLE_DEVICES has it; < 0: none. */
FAKE_API int fake_physical(int device);
/* IEEE half floats, to nearest, ties to even. (Not aclFloatToFloat16: a test may have taken that away.) */
FAKE_API uint16_t fake_to_half(float value);
FAKE_API float fake_from_half(uint16_t value);
/* ACL_OPT_DETERMINISTIC of the process, 0 to 3. The SoC's name; whether it begins with `prefix`; 801 or 901
 * (FAKE_CANN_VERSION). */
FAKE_API int fake_deterministic(void);
FAKE_API const char *fake_soc(void);
FAKE_API bool fake_soc_is(const char *prefix);
FAKE_API int fake_version(void);

/* ---- Device memory ----------------------------------------------------------------------------------- */

/* Addresses of device memory can't be touched by the program: a task works on an alias of them. Blocks are
 * never reused, so an address of a freed block stays recognisable. */
struct fake_block {
    uintptr_t start; /* as aclrtMalloc returned it */
    size_t size;     /* as it was asked for */
    int device;
    bool freed;
    unsigned number; /* the n-th block of the process, for messages */
};
/* The block that holds the address; false where none ever did. */
FAKE_API bool fake_block_of(const void *address, struct fake_block *out_block);
/* The same bytes for the double's own eyes. Only inside a task, only within the ranges that the task named;
 * NULL for NULL. An address of host memory comes back as it is. */
FAKE_API void *fake_at(const void *address);
/* Whether [address, address + size) lies inside pinned host memory (aclrtMallocHost, aclrtHostRegister). */
FAKE_API bool fake_is_pinned(const void *address, size_t size);
/* Memory that the double takes for itself on the current device (HCCL's buffers), counted in aclrtGetMemInfo;
 * NULL: out of memory. */
FAKE_API void *fake_own_block(size_t size);
FAKE_API void fake_own_block_free(void *block);
/* Whether no queued task uses the block and the host has synchronised with all that did. */
FAKE_API bool fake_synced(const void *block);
/* The file behind device memory, for other processes (/proc/PID/fd/FILE), and where the address lies in it.
 */
FAKE_API int fake_file_of(const void *address, uint64_t *out_offset);

/* ---- Tasks ------------------------------------------------------------------------------------------- */

enum { FAKE_READ = 1, FAKE_WRITE = 2, FAKE_WORKSPACE = 4 };
struct fake_range {
    const void *address; /* device memory, or pinned host memory; NULL or size 0: the range is ignored */
    size_t size; /* bytes from the first to the last that are touched; of a strided view: its whole extent */
    int use;     /* FAKE_READ and FAKE_WRITE (or both), or FAKE_WORKSPACE alone */
    const char *what; /* a constant text for messages: "self", "out", "workspace" */
};
/* Runs on the stream's thread; `arg` is the copied block. 0, or the error that a later synchronise returns
 * (the fault of a kernel). */
typedef int (*fake_kernel)(void *arg);
/* Called once after the task ran or was dropped, on the stream's thread, to release what `arg` points to. May
 * be NULL. */
typedef void (*fake_done)(void *arg);

/* Queues a task named `name` (a constant text; launch counts go by it) on the stream (NULL: the current
 * context's default stream). `arg` (arg_size bytes) is copied, 16-byte aligned. Returns 0, or 107002, 107003,
 * 107017 with text. When called: ranges must lie in live blocks of the stream's device; a workspace must be
 * 32-byte aligned device memory apart from every other range. When it runs: the blocks must still live, every
 * conflicting access of another stream (or by a synchronous copy of the host) must be ordered by events or
 * synchronisation, and the guard bytes around the blocks must be whole afterwards; workspaces are filled with
 * rubbish before. Whatever is wrong is a trap. Whether outputs may overlap inputs is the op's own affair. */
FAKE_API int fake_launch(const char *name, void *stream, const struct fake_range *ranges, size_t nranges,
                         fake_kernel kernel, const void *arg, size_t arg_size, fake_done done);
/* The device of a stream (NULL: default stream of the current context): < 0 where the handle is none, or
 * there is no context. */
FAKE_API int fake_stream_device(void *stream);
/* Sets the text that belongs to the error a kernel returns; only inside a kernel. */
FAKE_API void fake_task_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* In a task: the name and number of it, for traps that an op finds while it runs (an index out of range). */
FAKE_API const char *fake_task_name(void);
FAKE_API uint64_t fake_task_number(void);

/* ---- Counts, handles, faults ------------------------------------------------------------------------- */

/* One call of an API function (not a launch: fake_launch() counts those). FAKE_CANN_COUNTS names the file
 * that gets the totals. */
FAKE_API void fake_count(const char *name);

enum fake_kind {
    FAKE_CONTEXT,
    FAKE_STREAM,
    FAKE_EVENT,
    FAKE_BLOCK,
    FAKE_PINNED,
    FAKE_REGISTERED,
    FAKE_PHYSICAL,
    FAKE_RESERVED,
    FAKE_COMM,
    FAKE_TENSOR,
    FAKE_SCALAR,
    FAKE_INT_ARRAY,
    FAKE_FLOAT_ARRAY,
    FAKE_BOOL_ARRAY,
    FAKE_TENSOR_LIST,
    FAKE_SCALAR_LIST,
    FAKE_EXECUTOR,
    FAKE_REPEATABLE,
    FAKE_KIND_COUNT
};
/* +1 when a handle is made, -1 when it is gone. What is left at exit is reported; FAKE_CANN_LEAKS=fail makes
 * it exit code 86. */
FAKE_API void fake_live(enum fake_kind kind, int change);
FAKE_API long fake_live_count(int kind);

/* A fault on demand: true at the use of `kind` that FAKE_CANN_FAULT (kind=N,kind=N) names, counted from 1;
 * "kind" alone is every use. */
FAKE_API bool fake_fault(const char *kind);

/* The next number of the process's generator (FAKE_CANN_SEED). The workspace that phase 1 asks for beyond
 * what the op needs, by FAKE_CANN_WORKSPACE: "random" (default: none, or up to 64 KiB), "zero", or a number
 * of bytes. */
FAKE_API uint64_t fake_random(void);
FAKE_API uint64_t fake_random_workspace(void);

/* One zeroed block of `size` bytes a process under this name: the state of a library that is loaded under
 * several names (libopapi_nn.so and its sisters are copies of libopapi.so). */
FAKE_API void *fake_shared(const char *name, size_t size);
/* The lock of such state; not held while anything else of this header is called. */
FAKE_API void fake_shared_lock(void);
FAKE_API void fake_shared_unlock(void);

#endif
