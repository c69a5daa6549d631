/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test of the ranks' connections: is what arrives right, and how fast is it.
 *
 *     cti_selftest_group groups[] = {{"world", world}, {"tp", tp}};
 *     cti_selftest_report *report;
 *     CT_TRY(cti_selftest_run(alloc, groups, 2, &options, &report, err));     // all ranks, with the same options
 *     ... print on rank 0; report->n_failures is the same on all
 *     cti_selftest_destroy(&report);
 *
 * What is checked. Of each directed link: a pattern that depends on sender, receiver and place. Of each collective and size: patterns, and
 * sums of whole numbers that are exact in f32 in any order. Of reductions moreover the bits of ordered sums (comm.h) in f32, bf16, f64
 * and i64, of values whose sums depend on the order. A wrong element is a failure, told with where it was seen and who had sent it; the
 * test goes on. A rank that is gone or hangs ends it as it ends any collective.
 *
 * What is measured. Seconds of a call are of the slowest member (of all lines of an axis at once, as in training). Bytes of a collective:
 * all_reduce, broadcast: of the vector; all_gather, reduce_scatter, all_to_all: of the pieces of one member's, n of them. On the wire: what
 * each member at least sends, (n - 1) / n of the bytes, twice that for all_reduce (Patarasuk, Yuan 2009), all of them for broadcast; over
 * the time it is the rate that may be compared with the link's. Links are measured one after the other, each alone.
 */
#ifndef CT_COMM_SELFTEST_H
#define CT_COMM_SELFTEST_H

#include "comm/comm.h"

enum { CTI_SELFTEST_MAX_SIZES = 16, CTI_SELFTEST_MAX_FAILURES = 16, CTI_SELFTEST_HOST_BYTES = 64 };

typedef struct cti_selftest_group {
    const char *name; /* "world", or that of an axis; borrowed */
    ct_comm *comm;    /* borrowed. [0] is the world; of an axis: the line of this rank */
} cti_selftest_group;

typedef struct cti_selftest_options {
    int64_t sizes_bytes[CTI_SELFTEST_MAX_SIZES]; /* > 0; of collectives */
    int n_sizes;
    int64_t link_bytes; /* of the message by which a link's bandwidth is measured; > 0 */
} cti_selftest_options;

typedef struct cti_selftest_link { /* a directed pair */
    int from, to;
    double latency_s;     /* half of a round trip of 8 bytes */
    double bytes_per_s;   /* of messages of link_bytes, one after the other */
} cti_selftest_link;

typedef struct cti_selftest_row { /* one collective at one size in one group */
    int group;
    ct_comm_op op;
    int64_t size_bytes; /* 0: barrier */
    double seconds;     /* of a call */
    double wire_bytes_per_s; /* 0: barrier, or a group of one */
} cti_selftest_row;

typedef struct cti_selftest_failure {
    int32_t rank;    /* of the world: where it was seen */
    int32_t from;    /* of the world: who had sent it; -1: several (a reduction) */
    int32_t op;      /* ct_comm_op; EXCHANGE: a link */
    int32_t group;
    int32_t dtype;   /* ct_dtype */
    int32_t is_bits; /* the bits of an ordered sum */
    int64_t size_bytes;
    int64_t n_wrong, n_elements, first; /* first: index of the first wrong element */
} cti_selftest_failure;

typedef struct cti_selftest_rank {
    char host[CTI_SELFTEST_HOST_BYTES];
    double link_bytes_per_s; /* mean of its links in both directions; 0: one rank */
    double link_latency_s;   /* mean */
    double sum_bytes_per_s;  /* adding up two vectors in memory, all ranks at once: how fast the rank itself is */
} cti_selftest_rank;

typedef struct cti_selftest_report {
    const ct_alloc *alloc;
    int world_size;
    cti_selftest_rank *ranks; /* owns; [world_size] */
    cti_selftest_link *links; /* owns; [n_links]; above 64 ranks only those between ranks 1, 2, 4, 8, ... apart */
    int n_links;
    cti_selftest_row *rows; /* owns */
    int n_rows;
    cti_selftest_failure *failures; /* owns; of all ranks, each at most CTI_SELFTEST_MAX_FAILURES */
    int n_failures;
    int slowest_link_rank; /* the rank with the least mean bandwidth; -1: one rank */
    int slowest_sum_rank;  /* the rank with the least sum_bytes_per_s */
    double median_link_bytes_per_s, median_sum_bytes_per_s;
} cti_selftest_report;

/* n_groups >= 1. Fails: as collectives do (comm.h); CT_ERR_MEMORY. Wrong data is no failure of the call. */
CT_MUST_CHECK ct_status cti_selftest_run(const ct_alloc *alloc, const cti_selftest_group *groups, int n_groups,
                                         const cti_selftest_options *options, cti_selftest_report **out_report, ct_err *err);
void cti_selftest_destroy(cti_selftest_report **report);

/* "rank 2 (host-b): all_reduce of 64 KiB f32 in group 'world': 3 of 16384 elements are wrong, the first is number 17". text [size]. */
void cti_selftest_describe(const cti_selftest_report *report, const cti_selftest_group *groups, const cti_selftest_failure *failure, char *text,
                           size_t size);

#endif
