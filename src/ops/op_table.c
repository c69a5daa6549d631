/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the op list, and the tables of their attributes. */
#include <assert.h>
#include <string.h>

#include "ops/ops.h"

/* One field table per attribute list: a short row (name, KIND, default) becomes a ctitan/field.h row. */
#define ROW(type, name_, KIND, def)   \
    {.name = #name_,                  \
     .kind = CT_FIELD_##KIND,         \
     .offset = offsetof(type, name_), \
     .default_text = def,             \
     .low = "",                       \
     .high = "",                      \
     .choices = "",                   \
     .unit = "",                      \
     .help = ""},
#define TABLE(list, type, row)                           \
    static const ct_field fields_##list[] = {list(row)}; \
    enum { bytes_##list = sizeof(type), count_##list = sizeof fields_##list / sizeof fields_##list[0] };

static const ct_field fields_CT_ATTRS_NONE[] = {{0}};
enum { bytes_CT_ATTRS_NONE = 0, count_CT_ATTRS_NONE = 0 };

/* clang-format off */
#define ROW_EMBEDDING_GRAD(n, K, d) ROW(ct_attrs_embedding_grad, n, K, d)
#define ROW_MATMUL(n, K, d)         ROW(ct_attrs_matmul, n, K, d)
#define ROW_SCALE(n, K, d)          ROW(ct_attrs_scale, n, K, d)
#define ROW_CAST(n, K, d)           ROW(ct_attrs_cast, n, K, d)
#define ROW_RESHAPE(n, K, d)        ROW(ct_attrs_reshape, n, K, d)
#define ROW_TRANSPOSE(n, K, d)      ROW(ct_attrs_transpose, n, K, d)
#define ROW_SLICE(n, K, d)          ROW(ct_attrs_slice, n, K, d)
#define ROW_SLICE_GRAD(n, K, d)     ROW(ct_attrs_slice_grad, n, K, d)
#define ROW_CONCAT(n, K, d)         ROW(ct_attrs_concat, n, K, d)
#define ROW_RMSNORM(n, K, d)        ROW(ct_attrs_rmsnorm, n, K, d)
#define ROW_ROPE(n, K, d)           ROW(ct_attrs_rope, n, K, d)
#define ROW_QKV_ROPE(n, K, d)       ROW(ct_attrs_qkv_rope, n, K, d)
#define ROW_SDPA(n, K, d)           ROW(ct_attrs_sdpa, n, K, d)
#define ROW_LOCAL_IDS(n, K, d)      ROW(ct_attrs_local_ids, n, K, d)
#define ROW_LOSS(n, K, d)           ROW(ct_attrs_loss, n, K, d)
#define ROW_SUMSQ(n, K, d)          ROW(ct_attrs_sumsq, n, K, d)
#define ROW_CLIP(n, K, d)           ROW(ct_attrs_clip, n, K, d)
#define ROW_ADAMW(n, K, d)          ROW(ct_attrs_adamw, n, K, d)
#define ROW_MOMENTUM(n, K, d)       ROW(ct_attrs_momentum, n, K, d)
#define ROW_NEWTON_SCHULZ(n, K, d)  ROW(ct_attrs_newton_schulz, n, K, d)
#define ROW_DESCEND(n, K, d)        ROW(ct_attrs_descend, n, K, d)
#define ROW_FLAT_SPLIT(n, K, d)     ROW(ct_attrs_flat_split, n, K, d)
#define ROW_FLAT_CONCAT(n, K, d)    ROW(ct_attrs_flat_concat, n, K, d)
#define ROW_FILL(n, K, d)           ROW(ct_attrs_fill, n, K, d)
#define ROW_ALL_GATHER(n, K, d)     ROW(ct_attrs_all_gather, n, K, d)
#define ROW_COLLECTIVE(n, K, d)     ROW(ct_attrs_collective, n, K, d)
TABLE(CT_ATTRS_EMBEDDING_GRAD, ct_attrs_embedding_grad, ROW_EMBEDDING_GRAD)
TABLE(CT_ATTRS_MATMUL, ct_attrs_matmul, ROW_MATMUL)
TABLE(CT_ATTRS_SCALE, ct_attrs_scale, ROW_SCALE)
TABLE(CT_ATTRS_CAST, ct_attrs_cast, ROW_CAST)
TABLE(CT_ATTRS_RESHAPE, ct_attrs_reshape, ROW_RESHAPE)
TABLE(CT_ATTRS_TRANSPOSE, ct_attrs_transpose, ROW_TRANSPOSE)
TABLE(CT_ATTRS_SLICE, ct_attrs_slice, ROW_SLICE)
TABLE(CT_ATTRS_SLICE_GRAD, ct_attrs_slice_grad, ROW_SLICE_GRAD)
TABLE(CT_ATTRS_CONCAT, ct_attrs_concat, ROW_CONCAT)
TABLE(CT_ATTRS_RMSNORM, ct_attrs_rmsnorm, ROW_RMSNORM)
TABLE(CT_ATTRS_ROPE, ct_attrs_rope, ROW_ROPE)
TABLE(CT_ATTRS_QKV_ROPE, ct_attrs_qkv_rope, ROW_QKV_ROPE)
TABLE(CT_ATTRS_SDPA, ct_attrs_sdpa, ROW_SDPA)
TABLE(CT_ATTRS_LOCAL_IDS, ct_attrs_local_ids, ROW_LOCAL_IDS)
TABLE(CT_ATTRS_LOSS, ct_attrs_loss, ROW_LOSS)
TABLE(CT_ATTRS_SUMSQ, ct_attrs_sumsq, ROW_SUMSQ)
TABLE(CT_ATTRS_CLIP, ct_attrs_clip, ROW_CLIP)
TABLE(CT_ATTRS_ADAMW, ct_attrs_adamw, ROW_ADAMW)
TABLE(CT_ATTRS_MOMENTUM, ct_attrs_momentum, ROW_MOMENTUM)
TABLE(CT_ATTRS_NEWTON_SCHULZ, ct_attrs_newton_schulz, ROW_NEWTON_SCHULZ)
TABLE(CT_ATTRS_DESCEND, ct_attrs_descend, ROW_DESCEND)
TABLE(CT_ATTRS_FLAT_SPLIT, ct_attrs_flat_split, ROW_FLAT_SPLIT)
TABLE(CT_ATTRS_FLAT_CONCAT, ct_attrs_flat_concat, ROW_FLAT_CONCAT)
TABLE(CT_ATTRS_FILL, ct_attrs_fill, ROW_FILL)
TABLE(CT_ATTRS_ALL_GATHER, ct_attrs_all_gather, ROW_ALL_GATHER)
TABLE(CT_ATTRS_COLLECTIVE, ct_attrs_collective, ROW_COLLECTIVE)
/* clang-format on */

#define OP(op, n_min, n_max, outs, flag_bits, shard_class, tol, list) \
    [CT_OP_##op] = {.name = #op,                                      \
                    .id = CT_OP_##op,                                 \
                    .n_in_min = n_min,                                \
                    .n_in_max = n_max,                                \
                    .n_out = outs,                                    \
                    .flags = flag_bits,                               \
                    .shard = CT_SHARD_##shard_class,                  \
                    .tolerance = CT_TOL_##tol,                        \
                    .attr_fields = fields_##list,                     \
                    .n_attr_fields = count_##list,                    \
                    .attrs_bytes = bytes_##list,                      \
                    .shape = cti_shape_##op},
#define FLOPS(op) [CT_OP_##op].flops = cti_flops_##op,
static const int32_t adamw_alias[] = {0, 2, 3};     /* p, m, v */
static const int32_t momentum_alias[] = {0, -1};    /* m; d is a value of its own */
#define ALIAS(op, list) [CT_OP_##op].alias = list,
static const ct_op rows[CT_OP_COUNT] = {CT_OP_LIST(OP) CTI_FLOPS_LIST(FLOPS) ALIAS(adamw, adamw_alias) ALIAS(momentum, momentum_alias)};

#define ARITY(op, n_min, n_max, ...) \
    static_assert((n_min) <= (n_max) && (n_max) <= CTI_OP_MAX_IN, #op ": arity");
CT_OP_LIST(ARITY)

const ct_op *ct_op_row(int32_t id)
{
    return id >= 0 && id < CT_OP_COUNT ? &rows[id] : cti_op_registered(id);
}

const ct_op *ct_op_find(const char *name)
{
    for (int32_t i = 0; i < CT_OP_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    for (int32_t id = CT_OP_COUNT; id < CT_OP_COUNT + CTI_MAX_REGISTERED_OPS; id++) {
        const ct_op *op = cti_op_registered(id);
        if (op != NULL && strcmp(op->name, name) == 0) {
            return op;
        }
    }
    return NULL;
}

const char *ct_shard_class_name(ct_shard_class shard)
{
    static const char *const names[] = {
#define NAME(NAME_, name, how) #name,
        CT_SHARD_LIST(NAME)};
    return (unsigned)shard < CT_SHARD_COUNT ? names[shard] : "?";
}

const char *ct_tolerance_name(ct_tolerance tolerance)
{
    static const char *const names[] = {CT_TOLERANCE_LIST(NAME)};
    return (unsigned)tolerance < CT_TOL_COUNT ? names[tolerance] : "?";
}

int32_t ct_op_n_out(const ct_op *op, const void *attrs)
{
    if (op->n_out >= 0) {
        return op->n_out;
    }
    CT_ASSERT(op->id == CT_OP_flat_split); /* the only row with -1 */
    const int64_t n = ((const ct_attrs_flat_split *)attrs)->offsets.n;
    return n > INT32_MAX ? INT32_MAX : (int32_t)n;
}

int32_t ct_op_alias(const ct_op *op, const void *attrs, int32_t out, int64_t *out_offset)
{
    *out_offset = 0;
    if ((op->flags & (CT_OP_VIEW | CT_OP_UPDATE)) == 0) {
        return -1;
    }
    if (op->id == CT_OP_flat_split) {
        *out_offset = ((const ct_attrs_flat_split *)attrs)->offsets.items[out];
    }
    return op->alias != NULL ? op->alias[out] : 0;
}
