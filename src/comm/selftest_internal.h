/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by selftest.c (the order of things, what is measured) and selftest_data.c (what is sent, and whether it came). */
#ifndef CTI_COMM_SELFTEST_INTERNAL_H
#define CTI_COMM_SELFTEST_INTERNAL_H

#include "comm/selftest.h"

typedef struct cti_selftest_state {
    const ct_alloc *alloc;            /* borrows */
    const cti_selftest_group *groups; /* borrows */
    int n_groups;
    const cti_selftest_options *options; /* borrows */
    cti_selftest_report *report;         /* borrows */
    void *in, *out;                      /* own; each room_bytes */
    size_t room_bytes;
    cti_selftest_failure mine[CTI_SELFTEST_MAX_FAILURES];
    int n_mine;
} cti_selftest_state;

/* Elements that each member puts in, so that a collective is of about size_bytes. At least 1. */
int64_t cti_selftest_count(ct_comm_op op, int n, int64_t size_bytes, ct_dtype dtype);

/* One call of op on state->in and out. root: of a broadcast. */
CT_MUST_CHECK ct_status cti_selftest_call(cti_selftest_state *s, int group, ct_comm_op op, int64_t count, ct_dtype dtype, int root, ct_err *err);

/* Fills, calls and checks: patterns and exact sums in f32. */
CT_MUST_CHECK ct_status cti_selftest_check(cti_selftest_state *s, int group, ct_comm_op op, int64_t size_bytes, ct_err *err);
/* The bits of ordered sums; op reduces. */
CT_MUST_CHECK ct_status cti_selftest_check_bits(cti_selftest_state *s, int group, ct_comm_op op, int64_t size_bytes, ct_dtype dtype, ct_err *err);

/* The message of a link. */
void cti_selftest_fill_link(void *data, int64_t size_bytes, int from, int to);
/* Notes a failure where data is not what cti_selftest_fill_link wrote. */
void cti_selftest_check_link(cti_selftest_state *s, const void *data, int64_t size_bytes, int from, int to);

#endif
