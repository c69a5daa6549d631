/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the double of libascendcl share. One lock guards all state below; tasks of streams run
 * outside of it. */
#ifndef CT_TESTS_FAKE_CANN_ACL_INTERNAL_H
#define CT_TESTS_FAKE_CANN_ACL_INTERNAL_H

#include "fake.h"

#include <pthread.h>

/* Address space for device memory in GiB, and events of a process. Emulators of user programs keep books of
 * every page of it. */
#ifdef FAKE_EMULATED
enum { SPACE_GIB = 2, MAX_EVENTS = 1 << 14 };
#else
enum { SPACE_GIB = 1024, MAX_EVENTS = 4 << 20 };
#endif

#define ACL FAKE_API /* a symbol of the real library */

/* The double's own copy of the error numbers. */
enum {
    E_INVALID_PARAM = 100000,
    E_REPEAT_INITIALIZE = 100002,
    E_REPEAT_FINALIZE = 100037,
    E_RT_PARAM = 107000,
    E_RT_DEVICE = 107001,
    E_RT_CONTEXT_NULL = 107002,
    E_RT_STREAM_CONTEXT = 107003,
    E_RT_TIMESTAMP = 107006,
    E_RT_HANDLE = 107017,
    E_RT_UNSET = 107021,
    E_STREAM_ABORT = 107023,
    E_FEATURE = 207000,
    E_OOM = 207001,
    E_NO_DEVICE = 207004,
    E_NO_STREAM = 207008,
    E_INTERNAL = 507000,
    E_RESET = 507007,
    E_HEARTBEAT = 507010,
    E_KERNEL = 507015,
    E_SETUP = 507033,
    E_VECTOR = 507035,
    E_STREAM_TIMEOUT = 507046,
    E_EVENT_TIMEOUT = 507047,
    E_ECC = 507054,
};

enum { MAX_DEVICES = 16, MAX_SLOTS = 128, MAX_RANGES = 1024 };

/* Slot 0 is the host (all its threads as one), the others are streams: at[s] is the last step of s that is
 * known to be over. */
struct clock {
    uint64_t at[MAX_SLOTS];
};

struct context {
    int device;
    bool is_default, dead;
    bool stop; /* a failed task stops what follows */
    int fault; /* of the first task that failed: every synchronisation returns it from then on */
    char fault_text[1024];
    struct stream *default_stream;
    int64_t params[8];
    bool params_set[8];
};

struct stream {
    struct context *context;
    int device, slot, id;
    bool dead, is_default, quit, mode_set;
    struct task *head, *tail;
    uint64_t issued, done;    /* steps of its slot */
    uint64_t released;        /* steps that need not wait for the late start any longer */
    struct event *blocked_on; /* an event that nobody has recorded yet */
    struct clock clock;
    pthread_t thread;
};

/* One recording of an event; waits hold on to it. */
struct record {
    int refs;
    bool done;
    struct stream *stream;
    struct clock clock;
    double ms;
};

enum event_kind { EVENT_PLAIN, EVENT_FLAG, EVENT_EX };
enum {
    FLAG_SYNC = 0x1,
    FLAG_PROGRESS = 0x2,
    FLAG_TIME = 0x8,
    FLAG_DEVICE = 0x10,
    FLAG_EXTERNAL = 0x20,
    FLAG_IPC = 0x40
};

struct event {
    struct context *context;
    enum event_kind kind;
    unsigned flags;
    bool dead;
    struct record *record;   /* the latest; NULL: never recorded, or reset */
    bool armed;              /* EVENT_FLAG: recorded and not reset since, as far as the calls say */
    bool set;                /* EVENT_FLAG: the flag on the device */
    struct clock *set_clock; /* what was known when it was set */
};

struct access {
    uintptr_t from, to;
    uint64_t step;
    const char *name;
    int slot;
    bool write;
};

/* The accesses to a part of a block that later ones must be ordered after. */
struct bucket {
    struct access *accesses;
    size_t n, room, compact_at;
};

/* A block of device memory, or of pinned host memory. */
struct block {
    uintptr_t start;
    size_t size, charged; /* as asked for; bytes counted */
    size_t span;          /* of whole pages */
    int device;           /* -1: of the host */
    unsigned number;
    bool freed, own, registered;
    int pending; /* ranges of queued tasks */
    const char *pending_name;
    struct bucket *buckets; /* of `bucket_bytes` each, from the start on; NULL: never accessed */
    size_t nbuckets, bucket_bytes;
};

struct task_range {
    struct fake_range range;
    struct block *block;
};

enum task_kind { TASK_KERNEL, TASK_RECORD, TASK_WAIT, TASK_WAIT_FLAG, TASK_RESET };

struct task {
    struct task *next;
    enum task_kind kind;
    const char *name;
    struct stream *stream;
    uint64_t step, number;
    double queued_ms;
    struct clock host; /* what the host knew when it queued the task */
    struct record *record;
    struct event *event;
    fake_kernel kernel;
    fake_done done;
    size_t nranges;
    struct task_range *ranges;
    char text[512];
    _Alignas(16) char arg[];
};

struct device {
    int references;
    struct context *context; /* the default one */
    size_t used, peak;
    bool lost, abnormal;
    bool peer[MAX_DEVICES];
    int streams, events; /* alive, of programs */
};

extern struct cann {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool init;
    int references;
    char config[4096];
    struct device devices[MAX_DEVICES];
    struct clock host;
    struct stream *slots[MAX_SLOTS];
    uint64_t slot_steps[MAX_SLOTS];
    uint64_t tasks;
    int stream_ids;
    int64_t params[8];
    bool params_set[8];
} cann;

extern _Thread_local struct context *current; /* of this thread; use current_context() */
extern _Thread_local struct task *running;    /* on a stream's thread */

/* ---- acl_report.c ---- */
const char *switch_text(const char *name, const char *otherwise);
long switch_number(const char *name, long otherwise);
double switch_real(const char *name, double otherwise);
void count_launch(const char *name);
void count_sync(void);
bool live_text(int end, char *out, size_t size);

/* ---- acl_device.c ---- */
void cann_lock(void);
void cann_unlock(void);
double now_ms(void);
struct context *current_context(void); /* NULL where there is none, or it is gone */
/* Most functions begin with this: counts the call, lints one before aclInit, and finds the current context
 * (NULL: error set, 107002). */
struct context *enter(const char *name);
void enter_free(const char *name); /* those that need no context */
int visible_devices(int out_physical[MAX_DEVICES], char *why,
                    size_t why_size); /* their number; < 0: a bad list */
int lost_code(int device);            /* 0, or the error of a device that is lost */

/* ---- acl_handle.c ---- */
enum handle_kind { HANDLE_CONTEXT, HANDLE_STREAM, HANDLE_EVENT };
void *handle_new(enum handle_kind kind);
bool handle_is(enum handle_kind kind, const void *handle); /* made as such, dead or not */

/* ---- acl_memory.c; with the lock held ---- */
struct block *block_find(uintptr_t address); /* of device memory or pinned host memory */
bool is_device_address(uintptr_t address);
void *alias_of(uintptr_t address);
bool guards_whole(const struct block *block);
void pinned_protect(uintptr_t from, uintptr_t to, int slot, uint64_t step);
void pinned_release(void); /* sources and targets that the host has synchronised with */
/* Whether a copy that the host has not synchronised with touches [from, to): such bytes are neither poisoned
 * nor compared. */
bool block_busy(const struct block *block, uintptr_t from, uintptr_t to);
size_t device_memory(void); /* of every device, in bytes */
/* What lives on the device, as text; false: nothing. */
bool device_holds(int device, char *out, size_t size);
/* The block that holds the whole of [address, address + size) for a task on `device` (-1: any); otherwise a
 * trap and NULL. */
struct block *block_checked(const char *name, const char *what, uintptr_t address, size_t size, int device);

/* ---- acl_copy.c; with the lock held ---- */
void snapshots_release(void); /* those sources that the host has synchronised with */

/* ---- acl_race.c; with the lock held ---- */
void clock_join(struct clock *into, const struct clock *other);
/* Checks and records one access. */
void access_check(struct block *block, const struct access *access, const struct clock *clock);
void host_access(const char *name, struct block *block, uintptr_t from, size_t size, bool write);
/* An access to [from, to) that the host has not synchronised with, or NULL. */
const struct access *access_unsynced(const struct block *block, uintptr_t from, uintptr_t to);
void access_forget(struct block *block); /* all of them */

/* ---- acl_stream.c; with the lock held ---- */
struct stream *stream_new(struct context *context, bool is_default);
/* A stream argument: NULL is the context's default. *code != 0: the error to return, text set. */
struct stream *stream_of(const char *name, void *handle, struct context *context, bool same_context,
                         int *code);
struct task *task_new(struct stream *stream, enum task_kind kind, const char *name, size_t arg_size);
void task_queue(struct stream *stream, struct task *task);
/* Queues a kernel; ranges may lie on other devices where `peer`. */
int launch(const char *name, struct stream *stream, const struct fake_range *ranges, size_t nranges,
           fake_kernel kernel, const void *arg, size_t arg_size, fake_done done, bool peer);
/* Waits until the stream has done `step` (timeout_ms < 0: for ever), joins the host's clock; 0, a fault, or
 * E_STREAM_TIMEOUT. */
int stream_wait(const char *name, struct stream *stream, uint64_t step, int timeout_ms);
void host_joins(struct stream *stream); /* the host knows what the stream has done */
void release_all(void);                 /* late starts end: somebody waits */
int context_fault(struct context *context);

/* ---- acl_event.c; with the lock held ---- */
void record_unref(struct record *record);

#endif
