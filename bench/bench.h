/* SPDX-License-Identifier: Apache-2.0 */
/* What the timing programs share: the command line, the machine's limits measured in the run, operands, samples, and rows.
 *
 *     bench b;
 *     bench_open(&b, argc, argv);      measures the limits, prints the head
 *     job j = {.name = ..., ...};      job_add(&j, ...) an operand at a time
 *     bench_run(&b, &j);               one row
 *     bench_close(&b);
 *
 * A row is for a reader, or with --tsv for bench/cpu: row, name, dtype, seconds (median, first and third quartile), seconds that
 * the limit allows, what binds. Failures end the program. */
#ifndef CTI_BENCH_BENCH_H
#define CTI_BENCH_BENCH_H

#include "ctitan/backend.h"

enum { BENCH_MAX_SAMPLES = 60, BENCH_MAX_TENSORS = 16 };
enum { BENCH_MAX_LDA = 1024, BENCH_TILE = 1 << 15 }; /* floats: of a row of A, of what the micro-kernel needs for one tile */

/* All a second, on all threads.
 *   fma   FLOPs of f32 multiply-adds in registers, two each
 *   dot   FLOPs of bf16 dot products with f32 sums; 0 where the level has none
 *   copy  bytes read and written by a copy between two blocks of 256 MiB, the better of memcpy and streaming stores
 *   read  bytes of such a block that are only read: what binds a kernel that writes next to nothing
 *   rows  as copy, of rows of a KiB that are read in random order, each asked for two rows ahead: what binds a kernel that looks rows up
 *   exp   exponentials, added up, of a row that lies in the first cache: what a softmax cannot do without */
typedef struct bench_limits {
    double fma, dot, copy, read, rows, exp;
    double sustained; /* fma over a third of a second, all of it counted: what the host lets a program of nothing else have */
} bench_limits;

typedef struct bench {
    const ct_backend *backend;
    void *device;
    bench_limits limit;
    int level;
    ct_dtype f;         /* dtype of the operands */
    const char *filter; /* part of a name, or NULL */
    bool is_tsv, is_quick;
    double seconds;     /* of sampling a row, about */
} bench;

/* One kernel's operands. */
typedef struct job {
    const char *name;
    int32_t op;
    const void *attrs;
    int n_in, n_out;
    ct_tensor t[BENCH_MAX_TENSORS]; /* inputs, then outputs */
    const int32_t *segments;        /* rows of a segment table for the i32 operands of two dims, or NULL */
    int32_t n_segments;
    int64_t n_ids; /* other i32 operands are random numbers below this one, or 256 where it is 0 */
    double flops, exps; /* of one call; both 0: bound by memory */
    bool is_reader;     /* writes next to nothing */
    bool is_gather;     /* reads rows in random order */
    double bytes;       /* read and written by one call: each operand once, as job_add() counts */
    bool is_borrowed;   /* the operands have memory already, the caller's */
} job;

typedef struct sample_set {
    double value[BENCH_MAX_SAMPLES]; /* seconds of one call, or a share; sorted when complete */
    int n, calls;
} sample_set;

/* [f32|bf16] [--tsv] [--quick] [part of a name] */
void bench_open(bench *b, int argc, char **argv);
void bench_close(bench *b);
/* The best of a few rounds each. */
void bench_measure_limits(bench *b);
void bench_print_limits(const bench *b);
/* FLOPs a second on all threads of limit.fma's loop, for a millisecond or so many seconds, all of them counted. */
double bench_fma_rate(const bench *b, double seconds);
/* The same of about a millisecond of the level's micro-kernel alone, which makes one tile again and again. tiles: BENCH_TILE floats
 * a thread. A lies in rows `lda` floats apart (at most BENCH_MAX_LDA), or in a packed panel where lda is 0. */
double bench_ukr_rate(const bench *b, float *tiles, int64_t lda);
void bench_must(ct_status st, const ct_err *err);

/* A further input or output; a dims list ends at 0. Returns the operand. */
ct_tensor *job_add(job *j, bool is_out, ct_dtype dtype, int64_t d0, int64_t d1, int64_t d2, int64_t d3);
void job_alloc(const bench *b, job *j);
void job_free(const bench *b, job *j);
size_t tensor_bytes(const ct_tensor *t);

/* One more sample of at least 4 ms of calls of fn; the first call of a set is not counted. A sample in which other processes took
 * our cores (more than once per 0.1 s) is taken again, up to 20 times: it would measure them. */
void sample_add(sample_set *s, void (*fn)(void *ctx), void *ctx);
void sample_sort(sample_set *s);
/* Such an fn: runs a kernel_call, and ends the program where the kernel fails. */
typedef struct kernel_call {
    const ct_kernel *kernel;
    const ct_launch *launch;
} kernel_call;
void bench_call(void *ctx);
/* The median (0.5) or another quantile of a sorted set. */
double sample_at(const sample_set *s, double quantile);

/* Allocates, samples, prints the row, frees. */
void bench_run(const bench *b, job *j);
bool bench_wants(const bench *b, const char *name);
void bench_row(const bench *b, const char *name, const sample_set *s, double limit_s, const char *bound);

#endif
