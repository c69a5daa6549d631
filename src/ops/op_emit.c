/* SPDX-License-Identifier: Apache-2.0 */
/* Emitting a node by its op's row: arity, shapes, a deep copy of the attributes, aliases. */
#include <string.h>

#include "ops/op_check.h"

/* What the shape rule of a plug-in's row gave: dims that are dims, updates of the same elements that they alias. */
static ct_status check_answer(const ct_op *op, const ct_value *const *in, int32_t n_in, const ct_value_spec *specs, ct_err *err)
{
    for (int32_t i = 0; i < op->n_out; i++) {
        const ct_value_spec *s = &specs[i];
        bool is_good = (unsigned)s->dtype < CT_DTYPE_COUNT && s->ndim >= 1 && s->ndim <= CT_MAX_NDIM;
        for (int32_t d = 0; is_good && d < s->ndim; d++) {
            is_good = s->dims[d] >= 1;
        }
        if (!is_good) {
            return CT_FAIL(err, CT_ERR_SHAPE, "%s: its shape rule gives output %d no dtype and 1 to %d dims of at least 1", op->name, (int)i, CT_MAX_NDIM);
        }
        int64_t offset;
        const int32_t from = ct_op_alias(op, NULL, i, &offset);
        const ct_value *of = from >= 0 && from < n_in ? in[from] : NULL;
        const ct_value like = {.ndim = s->ndim, .dims = {s->dims[0], s->dims[1], s->dims[2], s->dims[3], s->dims[4], s->dims[5]}};
        if (from >= 0 && (of == NULL || of->dtype != s->dtype || !cti_same_dims(of, &like))) {
            return CT_FAIL(err, CT_ERR_SHAPE, "%s: output %d overwrites input %d, its shape rule gives it another shape", op->name, (int)i, (int)from);
        }
    }
    return CT_OK;
}

ct_status cti_op_infer(const ct_graph *graph, const ct_op *op, const void *attrs, const ct_value_id *in,
                       int32_t n_in, ct_value_spec *out_specs, ct_err *err)
{
    if (n_in < op->n_in_min || n_in > op->n_in_max) {
        return op->n_in_min == op->n_in_max
                   ? CT_FAIL(err, CT_ERR_SHAPE, "%s takes %d inputs, not %d", op->name, (int)op->n_in_min,
                             (int)n_in)
                   : CT_FAIL(err, CT_ERR_SHAPE, "%s takes %d to %d inputs, not %d", op->name,
                             (int)op->n_in_min, (int)op->n_in_max, (int)n_in);
    }
    const ct_value *few[16] = {NULL};
    const ct_value **values = few;
    if (n_in > (int32_t)(sizeof few / sizeof few[0])) {
        values = CT_NEW_ARRAY(ct_graph_allocator(graph), const ct_value *, n_in, err);
        if (values == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    /* Only the one optional input of a row that has exactly one may be absent (matmul's c). */
    const bool has_optional = op->n_in_max == op->n_in_min + 1;
    ct_status st = CT_OK;
    for (int32_t i = 0; i < n_in && st == CT_OK; i++) {
        if (in[i] == CT_NO_VALUE && has_optional && i == op->n_in_min) {
            values[i] = NULL;
        } else if (in[i] < 0 || in[i] >= ct_graph_n_values(graph)) {
            st = CT_FAIL(err, CT_ERR_SHAPE, "%s: input %d is missing (value %d)", op->name, (int)i,
                         (int)in[i]);
        } else {
            values[i] = ct_graph_value_c(graph, in[i]);
        }
    }
    const bool is_registered = op->id >= CT_OP_COUNT;
    if (is_registered) {
        memset(out_specs, 0, (size_t)op->n_out * sizeof *out_specs);
    }
    if (st == CT_OK) {
        st = op->shape(graph, values, n_in, attrs, out_specs, err);
    }
    if (st == CT_OK && is_registered) {
        st = check_answer(op, values, n_in, out_specs, err);
    }
    if (values != few) {
        ct_alloc_free(ct_graph_allocator(graph), values);
    }
    return st;
}

/* Attributes whose lists and strings lie in the graph's arena. */
static ct_status copy_attrs(ct_graph *graph, const ct_op *op, const void *attrs, void **out_copy, ct_err *err)
{
    if (op->attrs_bytes == 0) {
        *out_copy = NULL;
        return CT_OK;
    }
    void *copy = ct_arena_alloc(ct_graph_arena(graph), op->attrs_bytes, err);
    if (copy == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < op->n_attr_fields; i++) {
        CT_TRY(ct_field_copy(&op->attr_fields[i], copy, attrs, ct_graph_arena(graph), err));
    }
    *out_copy = copy;
    return CT_OK;
}

static ct_status emit(ct_graph *graph, const ct_op *op, const void *attrs, const ct_value_id *in,
                      int32_t n_in, ct_value_spec *specs, int32_t n_out, ct_value_id *out_ids, ct_err *err)
{
    CT_TRY(cti_op_infer(graph, op, attrs, in, n_in, specs, err));
    void *copy;
    CT_TRY(copy_attrs(graph, op, attrs, &copy, err));
    ct_node_id id;
    CT_TRY(ct_graph_add_node(graph, op->id, copy, op->attrs_bytes, in, n_in, specs, n_out, &id, err));
    const ct_node *node = ct_graph_node_c(graph, id);
    for (int32_t i = 0; i < n_out; i++) {
        int64_t offset;
        const int32_t from = ct_op_alias(op, node->attrs, i, &offset);
        if (from >= 0) {
            ct_value *v = ct_graph_value(graph, node->out[i]);
            v->alias_of = node->in[from];
            v->alias_offset = offset;
        }
        out_ids[i] = node->out[i];
    }
    return CT_OK;
}

ct_status ct_op_emit(ct_graph *graph, int32_t op_id, const void *attrs, const ct_value_id *in, int32_t n_in,
                     ct_value_id *out_ids, ct_err *err)
{
    const ct_op *op = ct_op_row(op_id);
    if (op == NULL) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%d is no op's id", (int)op_id);
    }
    if (op->attrs_bytes > 0 && attrs == NULL) {
        return CT_FAIL(err, CT_ERR_STATE, "%s wants attributes and is given none", op->name);
    }
    const int32_t n_out = ct_op_n_out(op, attrs);
    if (n_out > CTI_OP_MAX_IN) {
        return CT_FAIL(err, CT_ERR_SHAPE, "%s: %d outputs; the most is %d", op->name, (int)n_out,
                       CTI_OP_MAX_IN);
    }
    ct_value_spec few[4];
    ct_value_spec *specs = few;
    if (n_out > (int32_t)(sizeof few / sizeof few[0])) {
        specs = CT_NEW_ARRAY(ct_graph_allocator(graph), ct_value_spec, n_out, err);
        if (specs == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    const ct_status st = emit(graph, op, attrs, in, n_in, specs, n_out, out_ids, err);
    if (st != CT_OK && ct_graph_scope(graph)[0] != '\0') {
        ct_err_prefix(err, "'%s'", ct_graph_scope(graph));
    }
    if (specs != few) {
        ct_alloc_free(ct_graph_allocator(graph), specs);
    }
    return st;
}
