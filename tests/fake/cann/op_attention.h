/* SPDX-License-Identifier: Apache-2.0 */
/* What flash attention's forward and backward share: arguments, layouts, masks. */
#ifndef FAKE_CANN_OP_ATTENTION_H
#define FAKE_CANN_OP_ATTENTION_H

#include "nnop.h"

/* Numbers of arguments; 0 where an operator does not have it (argument 0 is always the query). */
typedef struct op_slots {
    int key, value, bias, drop, padding, mask, prefix, lengths_q, lengths_kv;
    int scale, keep, pre, next, heads, layout, precise, sparse;
    int max, sum, out;  /* `out`: attention's result, an input of the backward */
    int dy, dq, dk, dv; /* backward only */
} op_slots;

/* The problem: `batch` pieces (batches, or documents of a packed row), each with its own lengths. */
typedef struct op_attention {
    bool packed;                                    /* TND */
    int64_t batch, heads, heads_kv, sq, skv, d, dv; /* packed: sq and skv are those of the longest piece */
    int64_t tokens_q, tokens_kv;                    /* packed: of the whole row */
    int64_t sparse;
    float scale;
    bool blank_rows; /* fully masked rows give zeros instead of averages */
} op_attention;

/* Lengths and first tokens of piece b. */
typedef struct op_piece {
    int64_t sq, skv, from_q, from_kv;
} op_piece;

/* 0 or a refusal. */
int op_attention_check(fake_call *c, const op_slots *s);
op_attention op_attention_of(fake_call *c, const op_slots *s);
op_piece op_attention_piece(fake_call *c, const op_slots *s, const op_attention *a, int64_t b);
/* Head h of piece b of argument i as a matrix [length, width]; transposed: [width, length]. Width is the last
 * dim of a head. */
fake_view op_attention_head(fake_call *c, const op_slots *s, const op_attention *a, int i, int64_t heads,
                            op_piece p, int64_t b, int64_t h, bool transposed);
/* masked[sq * skv], 1 where a query does not see a key; false where no mask hides anything. */
bool op_attention_masked(fake_call *c, const op_slots *s, const op_attention *a, op_piece p, int64_t b,
                         int64_t h, unsigned char *masked);
/* The number of the first of the eight repeated statistics of query `i`, in elements of the statistics' dense
 * data. */
int64_t op_attention_stat(const op_attention *a, op_piece p, int64_t b, int64_t h, int64_t i);
/* What masked scores become before the softmax. */
#define OP_MASKED (-3.0e38f)
#endif
