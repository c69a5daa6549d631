/* SPDX-License-Identifier: Apache-2.0 */
/* The op list: one row per op, its attributes, and what it means. Everything that knows ops is made from this list: names,
 * ids, shape rules, gradient rules, sharding rules, costs, kernels per backend, printer, parser, docs/ops.md.
 *
 * Shapes: B rows, S sequence, T = B*S tokens, D width, V vocabulary, H query heads, K kv heads, h head dim, N flat elements.
 * "[..., D]" may have any leading dims; T then is their product. All tensors are contiguous, row-major.
 * Float tensors of one op have one dtype `f` (f32, bf16 or f64) unless a dtype is named. Sums are kept in f32 or wider
 * (ref: f64). F64 [1] scalars are always f64.
 */
#ifndef CTITAN_OP_LIST_H
#define CTITAN_OP_LIST_H

#include "ctitan/field.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Properties that passes ask for. */
enum {
    CT_OP_ELEMENTWISE = 1 << 0, /* output element i reads only input elements i; outputs may be written over inputs */
    CT_OP_VIEW = 1 << 1,        /* no kernel: output 0.. alias input 0 */
    CT_OP_UPDATE = 1 << 2,      /* outputs alias inputs as the row's `alias` says and overwrite them */
    CT_OP_COLLECTIVE = 1 << 3,  /* run by a comm engine over attrs.axis */
    CT_OP_UNORDERED = 1 << 4,   /* two runs may differ in bits */
    CT_OP_EXPENSIVE = 1 << 5,   /* selective checkpointing keeps its outputs (matmuls: every other one) */
    CT_OP_MATMUL = 1 << 6,      /* counted among the matmuls of selective checkpointing */
    CT_OP_ATTENTION = 1 << 7,   /* inputs 0, 1, 2 are q, k, v, output 0 what they attend to */
    CT_OP_JOIN = 1 << 8,        /* input i is output 0 from element attrs.offsets[i] on, and may lie there already (ct_attrs_flat_concat) */
    CT_OP_IN_PLACE = 1 << 9,    /* output 0 may be written over any input of its dtype and size, as an elementwise op's may */
    CT_OP_ADDEND = 1 << 10,     /* an input past the row's n_in_min is added to output 0 before that is rounded */
    CT_OP_HELPER = 1 << 11      /* what reads its output makes the gradients of its inputs: none goes through it */
};

/* An id whose row another rank holds (local_ids). */
#define CT_ID_ELSEWHERE (-101)

/* How an op's placements follow on one mesh axis; the shard pass asks this, never the op's id. X(NAME, name, how) */
/* clang-format off */
#define CT_SHARD_LIST(X) \
    X(ELEMENT,    element,    "all inputs of equal placement; outputs the same") \
    X(ROWS,       rows,       "dim 0 of every input that is no parameter may be sharded, parameters replicated; outputs follow dim 0") \
    X(RESHAPE,    reshape,    "as rows; a sharded dim goes to the output's dim with as many elements before it") \
    X(HEADS,      heads,      "as rows; or the heads of inputs that have them (dim -2 of those with 3 dims or more) are sharded, and those of " \
                              "outputs follow: dim -2, the last of outputs with fewer dims") \
    X(PRODUCT,    product,    "a product with the parameter at input 1 (x w^T): as rows; w sharded on dim 0: the output's last dim is; w on " \
                              "dim 1 and the input's last dim: the output is partial") \
    X(LOOKUP,     lookup,     "input 0 a parameter, input 1 ids: as rows; the parameter sharded on dim 0: the output is partial") \
    X(LOSS,       loss,       "as rows; output 0 (the loss) is partial, output 1 follows rows, output 2 is partial; input 1, a parameter, may be " \
                              "sharded on dim 0") \
    X(REPLICATED, replicated, "every input replicated (scalars, states, optimizer)") \
    X(COLLECTIVE, collective, "made by the shard pass itself") \
    X(HALVES,     halves,     "as rows; or each half of the last dim of the only input is sharded, and with them the output's last dim")
/* clang-format on */
typedef enum ct_shard_class {
#define CT_SHARD_ENUM(NAME, name, how) CT_SHARD_##NAME,
    CT_SHARD_LIST(CT_SHARD_ENUM)
#undef CT_SHARD_ENUM
        CT_SHARD_COUNT
} ct_shard_class;

/* Tolerance class of a backend's kernel against ref. X(NAME, name, what) */
#define CT_TOLERANCE_LIST(X) X(EXACT, exact, "bits") X(REORDERED, reordered, "sums") X(APPROXIMATE, approximate, "functions (exp, rsqrt)")
typedef enum ct_tolerance {
#define CT_TOL_ENUM(NAME, name, what) CT_TOL_##NAME,
    CT_TOLERANCE_LIST(CT_TOL_ENUM)
#undef CT_TOL_ENUM
        CT_TOL_COUNT
} ct_tolerance;

/* X(name, n_in_min, n_in_max, n_out, flags, shard class, tolerance, attrs list macro)     n_out -1: as many as attrs say
 *
 * embedding(w [V, D], ids i32 [...]) -> y [..., D]            y[t] = w[ids[t]], zeros where the id is CT_ID_ELSEWHERE; another id outside
 *     [0, V) is ERR_RANGE
 * embedding_grad(dy [..., D], ids) {vocab} -> dw [vocab, D]   dw[v] = sum over t with ids[t] == v, in order of t
 * local_ids(ids i32) {start, count} -> i32                    id - start where that is in [0, count), -100 where it is -100, else
 *     CT_ID_ELSEWHERE: ids of a vocabulary of which this rank holds rows [start, start + count)
 * matmul(a, b, c?) {ta, tb} -> y                              operands as matrices: all dims but the last are rows.
 *     y = op(a) op(b) (+ c); op(a) [M, P], op(b) [P, Q]. y dims: a's leading dims + [Q] where !ta, else [M, Q]. c like y.
 * matmul_swiglu(a, b) {ta, tb} -> gu [..., 2F], y [..., F]   gu as matmul makes it, y = swiglu(gu) of what is stored there. Made by the
 *     fuse pass, behind autodiff
 * add(a, b) -> y; mul(a, b) -> y; scale(a) {alpha} -> y       same shapes
 * cast(a) {dtype} -> y                                        round to nearest even
 * reshape(a) {dims} -> view                                   same count; one dim may be -1
 * transpose(a) {perm} -> y                                    y.dims[i] = a.dims[perm[i]]; a copy
 * slice(a) {dim, start, len} -> y                             a copy
 * slice_grad(dy) {dim, start, full} -> y                      zeros outside; dims[dim] = full
 * concat(a...) {dim} -> y
 * rmsnorm(x [..., D], w [D]) {eps} -> y [..., D], rstd f32 [...]    rstd = 1/sqrt(mean(x^2) + eps); y = x rstd w (Zhang,
 *     Sennrich 2019), in f32, rounded once
 * rmsnorm_grad(dy, x, w, rstd, c?) -> dx (+ c), dw [D]        dw summed over tokens in order; c like x, added before dx is rounded
 * rope(x [B, S, H, h], pos i32 [B, S], table f32 [L, h/2, 2]) {inverse} -> y    adjacent pairs (x[2j], x[2j+1]) times the
 *     complex number table[pos, j] = (cos, sin) (its conjugate where inverse), in f32 (Su et al. 2021); pos outside [0, L) is ERR_RANGE
 * qkv_rope(qkv [B, S, (H+2K) h], pos i32 [B, S], table f32 [L, h/2, 2]) {heads, kv_heads} -> q [B, S, H, h], k [B, S, K, h], v
 *     a row holds the heads of q, then of k, then of v; q and k are turned as rope does
 * qkv_rope_grad(dq, dk, dv, pos, table) -> dqkv               dq and dk turned back
 * rope_rows(pos i32 [B, S], table f32 [L, h/2, 2]) -> cos f32 [B, S, h], sin f32 [B, S, h]   each entry twice, side by side
 * rotary_mul(x [B, S, H, h], cos, sin) {inverse} -> y         y = x cos + r(x) sin, r(x)[2j] = -x[2j+1], r(x)[2j+1] = x[2j];
 *     inverse: sin is negated. In f32.
 * sdpa(q [..., H, h], k [..., K, h], v [..., K, h], segments i32 [C, 4], n_segments i32 [1]) {scale, causal, window}
 *     -> o [..., H, h], lse f32 [Tq, H]
 *     attention over the rows of the segment table: (q_start, q_len, k_start, k_len) in tokens of the flattened q and k. Query i of a
 *     segment sees its key j where !causal or j <= i + k_len - q_len (anchored bottom-right), and, with window W > 0, j > i +
 *     k_len - q_len - W. Tokens in no segment get o = 0, lse = -inf. head h uses kv head h / (H/K). Scores times scale;
 *     softmax in f32; lse = log(sum(exp(score))).
 * sdpa_grad(do, q, k, v, o, lse, segments, n_segments) {same} -> dq, dk, dv    (Dao 2023: D = rowsum(do * o))
 * segment_ends(segments i32 [C, 4], n_segments) -> ends_q i32 [C], ends_k i32 [C]    cumulative ends of back-to-back segments; entries
 *     past n repeat the last; ERR_RANGE where segments are not back to back from 0
 * sdpa_tnd(q [T, H, h], k [Tk, K, h], v, ends_q i32 [C], ends_k i32 [C], n_segments) {scale, causal} -> o, lse    as sdpa, over
 *     segments given by their ends
 * sdpa_tnd_grad(do, q, k, v, o, lse, ends_q, ends_k, n_segments) {same} -> dq, dk, dv
 * silu_mul(g, u) -> y = g sigmoid(g) u                        silu_mul_grad(dy, g, u) -> dg, du
 * swiglu(gu [..., 2F]) -> y [..., F]                          silu_mul of the halves of each row; swiglu_grad(dy, gu) -> dgu
 * linear_cross_entropy(x [..., D], w [V, D], labels i32 [...], inv_tokens f32 [1], lse? f32 [...]) {chunks}
 *     -> loss f64 [1], dx like x, dw [V, D]                   loss = inv_tokens * sum over t with label != -100 of (lse(x w^T)[t] -
 *     logit[t, label]); dx, dw are its gradients; logits live one chunk at a time (ceil(T/chunks) tokens; a backend may take more
 *     while they are small); label outside [0, V) is ERR_RANGE. With lse, w is some rows of a larger vocabulary whose lse it is: tokens
 *     with the label CT_ID_ELSEWHERE count in the gradients and not in the loss.
 * linear_cross_entropy_eval(x, w, labels, inv_tokens, lse?) {chunks} -> loss f64 [1]
 * linear_lse(x [..., D], w [V, D]) {chunks} -> lse f32 [...]  log(sum(exp(x w^T)))
 * lse_merge(l f32 [n, ...]) -> f32 [...]                      log(sum over dim 0 of exp(l))
 * sumsq(x [N]) {leaves} -> f64 [1]                            x in `leaves` equal parts: of each, blocks of 4096 elements in f64 added in
 *     order; the parts added by halves, so that ranks that hold halves of x add up to the same bits
 * add_n(a...) -> f64 [1]                                      all elements of f64 vectors, in order
 * clip_coef(sumsq f64 [1], loss f64 [1]) {max_norm} -> coef f32 [1], norm f64 [1], go i32 [1]
 *     norm = sqrt(sumsq); coef = min(1, max_norm / (norm + 1e-6)); go = 1 where norm and loss are finite, else 0
 * adamw(p [N], g [N], m [N], v [N], lr f64 [G], step i64 [1], coef f32 [1], go i32 [1])
 *     {segments (begin, end, group)*, beta1, beta2, eps, weight_decay, l2 per group} -> p', m', v'  in place (Loshchilov, Hutter 2019); g is
 *     multiplied by coef, and l2 p is added to it (Adam of Kingma, Ba 2015 with an L2 penalty; an empty list: 0); step counts from 1; nothing is
 *     written where go is 0. m, v, g have p's dtype or bf16/f32.
 * momentum(m [N], g [N], p [N], coef f32 [1], go i32 [1]) {segments, momentum, share, weight_decay, nesterov per group} -> m' in place, d [N]
 *     x = share (g coef + weight_decay p); m' = momentum m + x; d = x + momentum m' where nesterov is not 0, else m'. d is f32 (f64 where m is),
 *     0 in no segment and where go is 0; m is left as it is there. share 1: SGD (Sutskever et al. 2013 as PyTorch has it); share
 *     1 - momentum: Muon
 * newton_schulz(u [N]) {matrices (offset, rows, cols, group)*, scale per matrix, steps, eps, coefficients (a, b, c) per group} -> o like u
 *     of each matrix x = u / max(|u|, eps) (Frobenius), then `steps` times x = a x + (b x x^T + c (x x^T)^2) x, of x^T where rows > cols; o = scale x
 *     (Jordan 2024). In f32 or wider, rounded once. 0 outside of the matrices
 * descend(p [N], d [N], lr f64 [G], go i32 [1], coef? f32 [1]) {segments, weight_decay, l2 per group} -> p' in place
 *     p' = p (1 - lr weight_decay) - lr (d coef + l2 p), coef 1 where absent; nothing is written where go is 0
 * accumulate(acc, x, first i32 [1]) -> acc'                   acc = x where first is 1, else acc + x; in place; x is cast to acc's dtype
 * flat_split(flat [N]) {offsets, ndims, dims} -> views        view i = flat[offsets[i] ...] with its dims
 * flat_concat(a...) {offsets, total} -> flat [total]          the reverse; gaps are zero. An input whose memory is its part of flat
 *     is not copied
 * fill {value, dtype, dims} -> y
 * kv_append(cache [B, L, K, h], x [B, S, K, h], start i32 [1]) -> cache'   cache[:, start + s] = x[:, s]; rows past L are dropped; in place
 * owe(x) {axis, degree, reduce_dtype} -> view                              x itself; its gradient is a partial sum on each rank: backward
 *     casts to reduce_dtype (-1: leaves it) and sums over the axis
 * all_gather(x [n, ...]) {axis, degree, reduce_dtype} -> [degree n, ...]   rank order along dim 0; backward casts to reduce_dtype (-1:
 *     leaves it) first
 * reduce_scatter(x [degree n, ...]) {axis, degree} -> [n, ...]             sum by halves
 * all_reduce(x) {axis, degree} -> y                                        sum by halves; the result is the same on every rank, and so is
 *     its gradient, which goes through as it is
 */
/* clang-format off */
#define CT_OP_LIST(X)                                                                                                  \
    X(embedding,                 2, 2, 1, 0,                                   LOOKUP,       EXACT,       CT_ATTRS_NONE) \
    X(embedding_grad,            2, 2, 1, 0,                                   ROWS,       REORDERED,   CT_ATTRS_EMBEDDING_GRAD) \
    X(local_ids,                 1, 1, 1, 0,                                   ELEMENT,    EXACT,       CT_ATTRS_LOCAL_IDS) \
    X(matmul,                    2, 3, 1, CT_OP_EXPENSIVE | CT_OP_MATMUL | CT_OP_ADDEND, PRODUCT,    REORDERED,   CT_ATTRS_MATMUL) \
    X(matmul_swiglu,             2, 2, 2, CT_OP_EXPENSIVE | CT_OP_MATMUL,      PRODUCT,    APPROXIMATE, CT_ATTRS_MATMUL) \
    X(add,                       2, 2, 1, CT_OP_ELEMENTWISE,                   ELEMENT,    EXACT,       CT_ATTRS_NONE) \
    X(mul,                       2, 2, 1, CT_OP_ELEMENTWISE,                   ELEMENT,    EXACT,       CT_ATTRS_NONE) \
    X(scale,                     1, 1, 1, CT_OP_ELEMENTWISE,                   ELEMENT,    EXACT,       CT_ATTRS_SCALE) \
    X(cast,                      1, 1, 1, 0,                                   ELEMENT,    EXACT,       CT_ATTRS_CAST) \
    X(reshape,                   1, 1, 1, CT_OP_VIEW,                          RESHAPE,    EXACT,       CT_ATTRS_RESHAPE) \
    X(transpose,                 1, 1, 1, 0,                                   ROWS,       EXACT,       CT_ATTRS_TRANSPOSE) \
    X(slice,                     1, 1, 1, 0,                                   ROWS,       EXACT,       CT_ATTRS_SLICE) \
    X(slice_grad,                1, 1, 1, 0,                                   ROWS,       EXACT,       CT_ATTRS_SLICE_GRAD) \
    X(concat,                    1, 64, 1, 0,                                  ROWS,       EXACT,       CT_ATTRS_CONCAT) \
    X(rmsnorm,                   2, 2, 2, 0,                                   ROWS,       REORDERED,   CT_ATTRS_RMSNORM) \
    X(rmsnorm_grad,              4, 5, 2, CT_OP_IN_PLACE | CT_OP_ADDEND,       ROWS,       REORDERED,   CT_ATTRS_NONE) \
    X(rope,                      3, 3, 1, 0,                                   HEADS,      EXACT,       CT_ATTRS_ROPE) \
    X(qkv_rope,                  3, 3, 3, 0,                                   ROWS,       EXACT,       CT_ATTRS_QKV_ROPE) \
    X(qkv_rope_grad,             5, 5, 1, 0,                                   ROWS,       EXACT,       CT_ATTRS_NONE) \
    X(rope_rows,                 2, 2, 2, 0,                                   ROWS,       EXACT,       CT_ATTRS_NONE) \
    X(rotary_mul,                3, 3, 1, 0,                                   HEADS,      EXACT,       CT_ATTRS_ROPE) \
    X(sdpa,                      5, 5, 2, CT_OP_EXPENSIVE | CT_OP_ATTENTION,   HEADS,      APPROXIMATE, CT_ATTRS_SDPA) \
    X(sdpa_grad,                 8, 8, 3, 0,                                   ROWS,       APPROXIMATE, CT_ATTRS_SDPA) \
    X(segment_ends,              2, 2, 2, 0,                                   ROWS,       EXACT,       CT_ATTRS_NONE) \
    X(sdpa_tnd,                  6, 6, 2, CT_OP_EXPENSIVE | CT_OP_ATTENTION,   HEADS,      APPROXIMATE, CT_ATTRS_SDPA) \
    X(sdpa_tnd_grad,             9, 9, 3, 0,                                   ROWS,       APPROXIMATE, CT_ATTRS_SDPA) \
    X(silu_mul,                  2, 2, 1, CT_OP_ELEMENTWISE,                   ELEMENT,    APPROXIMATE, CT_ATTRS_NONE) \
    X(silu_mul_grad,             3, 3, 2, CT_OP_ELEMENTWISE,                   ELEMENT,    APPROXIMATE, CT_ATTRS_NONE) \
    X(swiglu,                    1, 1, 1, 0,                                   HALVES,       APPROXIMATE, CT_ATTRS_NONE) \
    X(swiglu_grad,               2, 2, 1, CT_OP_IN_PLACE,                      ROWS,       APPROXIMATE, CT_ATTRS_NONE) \
    X(linear_cross_entropy,      4, 5, 3, CT_OP_EXPENSIVE,                     LOSS,       APPROXIMATE, CT_ATTRS_LOSS) \
    X(linear_cross_entropy_eval, 4, 5, 1, 0,                                   LOSS,       APPROXIMATE, CT_ATTRS_LOSS) \
    X(linear_lse,                2, 2, 1, CT_OP_EXPENSIVE | CT_OP_HELPER,      ROWS,       APPROXIMATE, CT_ATTRS_LOSS) \
    X(lse_merge,                 1, 1, 1, 0,                                   ROWS,       APPROXIMATE, CT_ATTRS_NONE) \
    X(sumsq,                     1, 1, 1, 0,                                   REPLICATED, REORDERED,   CT_ATTRS_SUMSQ) \
    X(add_n,                     1, 4096, 1, 0,                                REPLICATED, EXACT,       CT_ATTRS_NONE) \
    X(clip_coef,                 2, 2, 3, 0,                                   REPLICATED, EXACT,       CT_ATTRS_CLIP) \
    X(adamw,                     8, 8, 3, CT_OP_UPDATE,                        REPLICATED, APPROXIMATE, CT_ATTRS_ADAMW) \
    X(momentum,                  5, 5, 2, CT_OP_UPDATE,                        REPLICATED, APPROXIMATE, CT_ATTRS_MOMENTUM) \
    X(newton_schulz,             1, 1, 1, 0,                                   REPLICATED, APPROXIMATE, CT_ATTRS_NEWTON_SCHULZ) \
    X(descend,                   4, 5, 1, CT_OP_UPDATE,                        REPLICATED, APPROXIMATE, CT_ATTRS_DESCEND) \
    X(accumulate,                3, 3, 1, CT_OP_UPDATE,                        REPLICATED, EXACT,       CT_ATTRS_NONE) \
    X(flat_split,                1, 1, -1, CT_OP_VIEW,                         REPLICATED, EXACT,       CT_ATTRS_FLAT_SPLIT) \
    X(flat_concat,               1, 4096, 1, CT_OP_JOIN,                       REPLICATED, EXACT,       CT_ATTRS_FLAT_CONCAT) \
    X(fill,                      0, 0, 1, 0,                                   REPLICATED, EXACT,       CT_ATTRS_FILL) \
    X(kv_append,                 3, 3, 1, CT_OP_UPDATE,                        ROWS,       EXACT,       CT_ATTRS_NONE) \
    X(owe,                       1, 1, 1, CT_OP_VIEW,                          COLLECTIVE, EXACT,       CT_ATTRS_ALL_GATHER) \
    X(all_gather,                1, 1, 1, CT_OP_COLLECTIVE,                    COLLECTIVE, EXACT,       CT_ATTRS_ALL_GATHER) \
    X(reduce_scatter,            1, 1, 1, CT_OP_COLLECTIVE,                    COLLECTIVE, REORDERED,   CT_ATTRS_COLLECTIVE) \
    X(all_reduce,                1, 1, 1, CT_OP_COLLECTIVE,                    COLLECTIVE, REORDERED,   CT_ATTRS_COLLECTIVE)

/* Attribute rows: A(name, KIND, default). Short form of ctitan/field.h's rows. */
#define CT_ATTRS_NONE(A)
#define CT_ATTRS_EMBEDDING_GRAD(A) A(vocab, I64, "0")
#define CT_ATTRS_MATMUL(A) A(ta, BOOL, "false") A(tb, BOOL, "false")
#define CT_ATTRS_SCALE(A) A(alpha, F64, "1")
#define CT_ATTRS_CAST(A) A(dtype, I64, "0")              /* ct_dtype */
#define CT_ATTRS_RESHAPE(A) A(dims, I64_LIST, "")
#define CT_ATTRS_TRANSPOSE(A) A(perm, I64_LIST, "")
#define CT_ATTRS_SLICE(A) A(dim, I64, "0") A(start, I64, "0") A(len, I64, "0")
#define CT_ATTRS_SLICE_GRAD(A) A(dim, I64, "0") A(start, I64, "0") A(full, I64, "0")
#define CT_ATTRS_CONCAT(A) A(dim, I64, "0")
#define CT_ATTRS_RMSNORM(A) A(eps, F64, "1e-5")
#define CT_ATTRS_ROPE(A) A(inverse, BOOL, "false")
#define CT_ATTRS_QKV_ROPE(A) A(heads, I64, "1") A(kv_heads, I64, "1")
#define CT_ATTRS_SDPA(A) A(scale, F64, "1") A(causal, BOOL, "true") A(window, I64, "0")
#define CT_ATTRS_LOCAL_IDS(A) A(start, I64, "0") A(count, I64, "1")
#define CT_ATTRS_LOSS(A) A(chunks, I64, "1")
#define CT_ATTRS_SUMSQ(A) A(leaves, I64, "1")
#define CT_ATTRS_CLIP(A) A(max_norm, F64, "1")
#define CT_ATTRS_ADAMW(A) A(segments, I64_LIST, "") A(beta1, F64_LIST, "") A(beta2, F64_LIST, "") A(eps, F64_LIST, "") \
    A(weight_decay, F64_LIST, "") A(l2, F64_LIST, "")
#define CT_ATTRS_MOMENTUM(A) A(segments, I64_LIST, "") A(momentum, F64_LIST, "") A(share, F64_LIST, "") A(weight_decay, F64_LIST, "") \
    A(nesterov, I64_LIST, "")
#define CT_ATTRS_NEWTON_SCHULZ(A) A(matrices, I64_LIST, "") A(scale, F64_LIST, "") A(steps, I64_LIST, "") A(eps, F64_LIST, "") \
    A(coefficients, F64_LIST, "")
#define CT_ATTRS_DESCEND(A) A(segments, I64_LIST, "") A(weight_decay, F64_LIST, "") A(l2, F64_LIST, "")
#define CT_ATTRS_FLAT_SPLIT(A) A(offsets, I64_LIST, "") A(ndims, I64_LIST, "") A(dims, I64_LIST, "")
#define CT_ATTRS_FLAT_CONCAT(A) A(offsets, I64_LIST, "") A(total, I64, "0")
#define CT_ATTRS_FILL(A) A(value, F64, "0") A(dtype, I64, "0") A(dims, I64_LIST, "")
#define CT_ATTRS_ALL_GATHER(A) A(axis, I64, "0") A(degree, I64, "1") A(reduce_dtype, I64, "0")
#define CT_ATTRS_COLLECTIVE(A) A(axis, I64, "0") A(degree, I64, "1")
/* clang-format on */

typedef enum ct_op_id {
#define CT_OP_ENUM(name, ...) CT_OP_##name,
    CT_OP_LIST(CT_OP_ENUM)
#undef CT_OP_ENUM
        CT_OP_COUNT
} ct_op_id;

/* One struct per attribute list: ct_attrs_matmul has ta and tb. */
#define CT_ATTR_MEMBER(name, KIND, def) ct_field_type_##KIND name;
#define CT_ATTRS_STRUCT(type, list)                                                                                  \
    typedef struct type {                                                                                            \
        list(CT_ATTR_MEMBER)                                                                                         \
    } type;
CT_ATTRS_STRUCT(ct_attrs_embedding_grad, CT_ATTRS_EMBEDDING_GRAD)
CT_ATTRS_STRUCT(ct_attrs_matmul, CT_ATTRS_MATMUL)
CT_ATTRS_STRUCT(ct_attrs_scale, CT_ATTRS_SCALE)
CT_ATTRS_STRUCT(ct_attrs_cast, CT_ATTRS_CAST)
CT_ATTRS_STRUCT(ct_attrs_reshape, CT_ATTRS_RESHAPE)
CT_ATTRS_STRUCT(ct_attrs_transpose, CT_ATTRS_TRANSPOSE)
CT_ATTRS_STRUCT(ct_attrs_slice, CT_ATTRS_SLICE)
CT_ATTRS_STRUCT(ct_attrs_slice_grad, CT_ATTRS_SLICE_GRAD)
CT_ATTRS_STRUCT(ct_attrs_concat, CT_ATTRS_CONCAT)
CT_ATTRS_STRUCT(ct_attrs_rmsnorm, CT_ATTRS_RMSNORM)
CT_ATTRS_STRUCT(ct_attrs_rope, CT_ATTRS_ROPE)
CT_ATTRS_STRUCT(ct_attrs_qkv_rope, CT_ATTRS_QKV_ROPE)
CT_ATTRS_STRUCT(ct_attrs_sdpa, CT_ATTRS_SDPA)
CT_ATTRS_STRUCT(ct_attrs_local_ids, CT_ATTRS_LOCAL_IDS)
CT_ATTRS_STRUCT(ct_attrs_loss, CT_ATTRS_LOSS)
CT_ATTRS_STRUCT(ct_attrs_sumsq, CT_ATTRS_SUMSQ)
CT_ATTRS_STRUCT(ct_attrs_clip, CT_ATTRS_CLIP)
CT_ATTRS_STRUCT(ct_attrs_adamw, CT_ATTRS_ADAMW)
CT_ATTRS_STRUCT(ct_attrs_momentum, CT_ATTRS_MOMENTUM)
CT_ATTRS_STRUCT(ct_attrs_newton_schulz, CT_ATTRS_NEWTON_SCHULZ)
CT_ATTRS_STRUCT(ct_attrs_descend, CT_ATTRS_DESCEND)
CT_ATTRS_STRUCT(ct_attrs_flat_split, CT_ATTRS_FLAT_SPLIT)
CT_ATTRS_STRUCT(ct_attrs_flat_concat, CT_ATTRS_FLAT_CONCAT)
CT_ATTRS_STRUCT(ct_attrs_fill, CT_ATTRS_FILL)
CT_ATTRS_STRUCT(ct_attrs_all_gather, CT_ATTRS_ALL_GATHER)
CT_ATTRS_STRUCT(ct_attrs_collective, CT_ATTRS_COLLECTIVE)

#ifdef __cplusplus
}
#endif
#endif
