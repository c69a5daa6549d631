/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the double of libhccl share: its own copy of the types, communicators, and the shared
 * memory where processes meet. */
#ifndef CT_TESTS_FAKE_CANN_HCCL_INTERNAL_H
#define CT_TESTS_FAKE_CANN_HCCL_INTERNAL_H

#include "fake.h"

#include <pthread.h>
#include <stdatomic.h>

#define HCCL FAKE_API

enum {
    H_SUCCESS = 0,
    H_PARA = 1,
    H_PTR = 2,
    H_MEMORY = 3,
    H_INTERNAL = 4,
    H_NOT_SUPPORT = 5,
    H_UNAVAIL = 7,
    H_SYSCALL = 8,
    H_TIMEOUT = 9,
    H_TCP_CONNECT = 11,
    H_RUNTIME = 15,
    H_AGAIN = 20,
};
enum { TASK_TIMEOUT = 107020 };
enum {
    T_INT8,
    T_INT16,
    T_INT32,
    T_FP16,
    T_FP32,
    T_INT64,
    T_UINT64,
    T_UINT8,
    T_UINT16,
    T_UINT32,
    T_FP64,
    T_BFP16,
    T_INT128,
    T_TYPES
};
enum { R_SUM, R_PROD, R_MAX, R_MIN, R_OPS };
enum { ROOT_INFO_BYTES = 4108, MAX_RANKS = 32, RING = 64, PAIR_RING = 16, NAME_BYTES = 128 };

struct root_info {
    char internal[ROOT_INFO_BYTES];
};

enum operation {
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    BROADCAST,
    REDUCE,
    SCATTER,
    ALL_TO_ALL,
    ALL_TO_ALL_V,
    BARRIER,
    SEND,
    RECV,
    BATCH,
};

/* What a rank says of its n-th call; others read its data from `file` of process `pid`. */
struct call {
    _Atomic uint64_t ready,
        read; /* the call's number, once it stands here, and once this rank has read what it wanted */
    int operation, type, reduce, root, file;
    int pid;
    uint64_t count, offset;
    uint64_t counts[MAX_RANKS], displs[MAX_RANKS]; /* of ALL_TO_ALL_V, in elements */
};

struct pair_call {
    _Atomic uint64_t ready, read;
    int type, file, pid;
    uint64_t count, offset;
};

struct meeting {
    _Atomic uint32_t nranks, joined, left;
    _Atomic uint32_t here[MAX_RANKS];
    _Atomic int device[MAX_RANKS]; /* physical, + 1 */
    struct call calls[MAX_RANKS][RING];
    struct pair_call pairs[MAX_RANKS][MAX_RANKS][PAIR_RING]; /* [from][to] */
};

struct comm {
    char name[NAME_BYTES], given_name[NAME_BYTES];
    uint32_t nranks, rank;
    int device, deterministic; /* -1: as the process */
    size_t buffer_bytes;
    void *buffer;
    struct meeting *meeting;
    uint64_t calls, sent[MAX_RANKS], received[MAX_RANKS];
    bool dead;
    _Atomic int inside, pending, failed;
    pthread_mutex_t lock;
    int files[MAX_RANKS], files_pid[MAX_RANKS];
};

enum { MAX_COMMS = 1024 };
/* One a process, whatever the library is called. */
struct hccl {
    struct comm *comms[MAX_COMMS];
    int ncomms, roots, creating, deterministic;
    bool deterministic_set;
    char creating_name[NAME_BYTES];
    int creating_device;
    char made[256][NAME_BYTES]; /* meetings of this process's root infos that may still have a name */
    int nmade;
};
struct hccl *hccl_state(void);

/* ---- hccl_comm.c ---- */
/* A call begins: 0, or the error. Marks the communicator as being inside a call. */
int comm_enter(const char *name, void *handle, struct comm **out);
void comm_leave(struct comm *comm);
bool comm_deterministic(const struct comm *comm);
double exec_timeout_s(void); /* < 0: never */
size_t type_size(int type);
const char *type_name(int type);
double hccl_now_s(void);
void hccl_pause(int *turns);

/* ---- hccl_meet.c ---- */
struct meeting *meet_create(const char *name); /* its name goes at the end of this process at the latest */
struct meeting *meet_open(const char *name, bool create);
void meet_close(struct meeting *meeting);
void meet_unlink(const char *name);

/* ---- hccl_reduce.c ---- */
/* into[i] = into[i] op from[i], rounded to the type each time. */
void reduce_into(void *into, const void *from, uint64_t count, int type, int op);

#endif
