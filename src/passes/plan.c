/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan. Offsets by size, largest first, into the lowest gap that is free over the value's whole life. */
#include "passes/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

typedef struct life {
    ct_value_id value;  /* root */
    int32_t def, last;  /* positions in the order */
    int64_t size, offset;
} life;

static int64_t align_up(int64_t bytes)
{
    return cti_round_up(bytes, CT_PLAN_ALIGN);
}

void ct_launch_shapes(const ct_graph *g, const ct_node *node, ct_tensor *in, ct_tensor *out)
{
    for (int32_t i = 0; i < node->n_in + node->n_out; i++) {
        const bool is_in = i < node->n_in;
        const ct_value_id id = is_in ? node->in[i] : node->out[i - node->n_in];
        ct_tensor *t = is_in ? &in[i] : &out[i - node->n_in];
        *t = (ct_tensor){.ndim = -1};
        if (id != CT_NO_VALUE) {
            const ct_value *v = ct_graph_value_c(g, id);
            t->dtype = v->dtype;
            t->ndim = v->ndim;
            memcpy(t->dims, v->dims, sizeof t->dims);
        }
    }
}

static ct_status add_buffer(ct_plan *p, const ct_value *v, ct_err *err)
{
    for (int32_t i = 0; i < p->n_buffers; i++) {
        const ct_buffer *b = &p->buffers[i];
        if (strcmp(b->name, v->name) != 0) {
            continue;
        }
        if (b->kind != v->kind || b->dtype != v->dtype || b->size_bytes != (int64_t)ct_value_size_bytes(v)) {
            return CT_FAIL(err, CT_ERR_SHAPE, "plan: '%s' has %" PRId64 " bytes of %s in one graph, %zu of %s in another",
                           v->name, b->size_bytes, ct_dtype_name(b->dtype), ct_value_size_bytes(v),
                           ct_dtype_name(v->dtype));
        }
        return CT_OK;
    }
    if (p->n_buffers == p->cap_buffers) {
        const int32_t cap = p->cap_buffers * 2 + 64;
        ct_buffer *more = ct_alloc_resize(p->alloc, p->buffers, (size_t)cap, sizeof *more, err);
        if (more == NULL) {
            return CT_ERR_MEMORY;
        }
        p->buffers = more;
        p->cap_buffers = cap;
    }
    ct_buffer *b = &p->buffers[p->n_buffers];
    *b = (ct_buffer){.kind = v->kind, .dtype = v->dtype, .ndim = v->ndim};
    b->size_bytes = (int64_t)ct_value_size_bytes(v);
    memcpy(b->dims, v->dims, sizeof b->dims);
    b->name = ct_arena_strdup(p->arena, v->name, err);
    p->n_buffers++;
    return b->name != NULL ? CT_OK : CT_ERR_MEMORY;
}

static bool is_persistent(ct_value_kind kind)
{
    return kind == CT_VALUE_PARAM || kind == CT_VALUE_STATE || kind == CT_VALUE_GRAD || kind == CT_VALUE_CONST;
}

/* Which values are used at all, and the lives of activations. merged[] joins values to the one whose memory they take a part of. */
typedef struct scan {
    ct_graph *g;
    ct_value_id *merged; /* CT_NO_VALUE: own memory, or its alias_of */
    int64_t *shift;      /* bytes from the start of merged[v] */
    int32_t *first, *last; /* per value: positions that read or write it, itself or through a part; -1: unused */
    ct_value_id *updates; /* outputs of nodes that overwrite memory */
    int32_t n_updates;
    life *lives;
    int32_t n_lives;
} scan;

/* The value whose memory this one is or lies in; *at: bytes from its start. */
static ct_value_id root_of(const scan *s, ct_value_id id, int64_t *at)
{
    for (*at = 0;;) {
        const ct_value *v = ct_graph_value_c(s->g, id);
        if (s->merged[id] != CT_NO_VALUE) {
            *at += s->shift[id];
            id = s->merged[id];
        } else if (v->alias_of != CT_NO_VALUE) {
            *at += v->alias_offset * (int64_t)ct_dtype_size_bytes(v->dtype);
            id = v->alias_of;
        } else {
            return id;
        }
    }
}

static void touch(scan *s, ct_value_id id, int32_t from, int32_t to)
{
    while (id != CT_NO_VALUE) {
        s->first[id] = s->first[id] < 0 || from < s->first[id] ? from : s->first[id];
        s->last[id] = to > s->last[id] ? to : s->last[id];
        id = s->merged[id] != CT_NO_VALUE ? s->merged[id] : ct_graph_value_c(s->g, id)->alias_of;
    }
}

/* A node of stream 1 uses its memory from where it is started to where it is known to have ended: the first node behind it that waits for
 * it, or the end of its program. What is there may be written over by that node at the earliest. */
static void touch_in_flight(scan *s)
{
    const int32_t n = ct_graph_order_len(s->g);
    int32_t number = 0;
    for (int32_t i = 0; i < n; i++) {
        const ct_node *node = ct_graph_node_c(s->g, ct_graph_order(s->g)[i]);
        const bool is_first = i == 0 || ct_graph_node_c(s->g, ct_graph_order(s->g)[i - 1])->program != node->program;
        number = is_first ? 0 : number;
        if (node->stream == 0) {
            continue;
        }
        number++;
        int32_t end = i + 1;
        for (; end < n; end++) {
            const ct_node *later = ct_graph_node_c(s->g, ct_graph_order(s->g)[end]);
            if (later->program != node->program || later->wait >= number) {
                break;
            }
        }
        for (int32_t k = 0; k < node->n_in + node->n_out; k++) {
            touch(s, k < node->n_in ? node->in[k] : node->out[k - node->n_in], i, end);
        }
    }
}

static void touch_all(scan *s, const ct_value_id *keep, int32_t n_keep)
{
    const int32_t n = ct_graph_order_len(s->g);
    for (int32_t v = 0; v < ct_graph_n_values(s->g); v++) {
        s->merged[v] = CT_NO_VALUE;
        s->first[v] = s->last[v] = -1;
    }
    for (int32_t i = 0; i < n; i++) {
        const ct_node *node = ct_graph_node_c(s->g, ct_graph_order(s->g)[i]);
        for (int32_t k = 0; k < node->n_in; k++) {
            touch(s, node->in[k], i, i);
        }
        for (int32_t k = 0; k < node->n_out; k++) {
            touch(s, node->out[k], i, i);
            if (ct_op_row(node->op)->flags & CT_OP_UPDATE) {
                s->updates[s->n_updates++] = node->out[k];
            }
        }
    }
    for (int32_t k = 0; k < n_keep; k++) {
        touch(s, keep[k], n, n);
    }
    touch_in_flight(s);
}

/* `part` becomes bytes [at, ...) of `whole`, whose life then covers the part's. */
static void merge(scan *s, ct_value_id part, ct_value_id whole, int64_t at)
{
    s->merged[part] = whole;
    s->shift[part] = at;
    touch(s, whole, s->first[part], s->last[part]);
}

/* Whether some node overwrites the memory of this root. */
static bool is_updated(const scan *s, ct_value_id root)
{
    for (int32_t i = 0; i < s->n_updates; i++) {
        int64_t at;
        if (root_of(s, s->updates[i], &at) == root) {
            return true;
        }
    }
    return false;
}

/* What a join lays end to end is made at its place in the whole where it is an activation of its own that nothing updates: an update
 * of the one would change the other. */
static void merge_joins(scan *s)
{
    for (int32_t i = 0; i < ct_graph_order_len(s->g); i++) {
        const ct_node *node = ct_graph_node_c(s->g, ct_graph_order(s->g)[i]);
        if (!(ct_op_row(node->op)->flags & CT_OP_JOIN) || is_updated(s, node->out[0])) {
            continue;
        }
        const ct_attrs_flat_concat *attrs = node->attrs;
        for (int32_t k = 0; k < node->n_in; k++) {
            int64_t start;
            const ct_value_id root = root_of(s, node->in[k], &start);
            const ct_value *part = ct_graph_value_c(s->g, root), *in = ct_graph_value_c(s->g, node->in[k]);
            const int64_t at = attrs->offsets.items[k] * (int64_t)ct_dtype_size_bytes(in->dtype);
            if (part->kind == CT_VALUE_ACT && ct_value_size_bytes(part) == ct_value_size_bytes(in) && root != node->out[0] &&
                at % CT_PLAN_ALIGN == 0 && !is_updated(s, root)) {
                merge(s, root, node->out[0], at);
            }
        }
    }
}

/* Output 0 of an op that works in place takes that of an input that is an activation of the same size and dies at this node. */
static void merge_in_place(scan *s)
{
    for (int32_t i = 0; i < ct_graph_order_len(s->g); i++) {
        const ct_node *node = ct_graph_node_c(s->g, ct_graph_order(s->g)[i]);
        const ct_op *op = ct_op_row(node->op);
        for (int32_t k = 0; k < node->n_in && (op->flags & (CT_OP_ELEMENTWISE | CT_OP_IN_PLACE)); k++) {
            int64_t at;
            const ct_value_id root = root_of(s, node->in[k], &at);
            const ct_value *in = ct_graph_value_c(s->g, root), *out = ct_graph_value_c(s->g, node->out[0]);
            if (in->kind == CT_VALUE_ACT && s->last[root] == i && in->dtype == out->dtype &&
                ct_value_size_bytes(in) == ct_value_size_bytes(out) &&
                ct_value_size_bytes(ct_graph_value_c(s->g, node->in[k])) == ct_value_size_bytes(in) &&
                s->merged[node->out[0]] == CT_NO_VALUE && s->last[node->out[0]] >= i) {
                merge(s, node->out[0], node->in[k], 0);
                break;
            }
        }
    }
}

static void collect_lives(scan *s)
{
    s->n_lives = 0;
    for (int32_t i = 0; i < ct_graph_order_len(s->g); i++) {
        const ct_node *node = ct_graph_node_c(s->g, ct_graph_order(s->g)[i]);
        for (int32_t k = 0; k < node->n_out; k++) {
            const ct_value *v = ct_graph_value_c(s->g, node->out[k]);
            if (v->kind == CT_VALUE_ACT && v->alias_of == CT_NO_VALUE && s->merged[node->out[k]] == CT_NO_VALUE) {
                s->lives[s->n_lives++] =
                    (life){node->out[k], s->first[node->out[k]], s->last[node->out[k]],
                           align_up((int64_t)ct_value_size_bytes(v)), -1};
            }
        }
    }
}

static int by_size(const void *pa, const void *pb)
{
    const life *a = pa, *b = pb;
    if (a->size != b->size) {
        return a->size > b->size ? -1 : 1;
    }
    return a->value < b->value ? -1 : a->value > b->value;
}

static int by_offset(const void *pa, const void *pb)
{
    const life *a = *(life *const *)pa, *b = *(life *const *)pb;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int64_t place_lives(life *lives, int32_t n, life **busy)
{
    int64_t top = 0;
    qsort(lives, (size_t)n, sizeof *lives, by_size);
    for (int32_t i = 0; i < n; i++) {
        life *l = &lives[i];
        int32_t n_busy = 0;
        for (int32_t j = 0; j < i; j++) {
            if (lives[j].def <= l->last && l->def <= lives[j].last) {
                busy[n_busy++] = &lives[j];
            }
        }
        qsort(busy, (size_t)n_busy, sizeof *busy, by_offset);
        int64_t at = 0;
        for (int32_t j = 0; j < n_busy && at + l->size > busy[j]->offset; j++) {
            at = cti_max_i64(at, busy[j]->offset + busy[j]->size);
        }
        l->offset = at;
        top = cti_max_i64(top, at + l->size);
    }
    return top;
}

static void find_peak(ct_graph_plan *gp, const life *lives, int32_t n)
{
    for (int32_t at = 0; at < ct_graph_order_len(gp->graph); at++) {
        int64_t sum = 0;
        for (int32_t i = 0; i < n; i++) {
            sum += lives[i].def <= at && at <= lives[i].last ? lives[i].size : 0;
        }
        gp->live_bytes[at] = sum;
        if (sum > gp->largest_live_bytes) {
            gp->largest_live_bytes = sum;
            gp->largest_live_at = at;
        }
    }
}

static ct_status workspace_of(ct_graph_plan *gp, ct_workspace_fn workspace, void *ctx, const ct_alloc *alloc, ct_err *err)
{
    const ct_graph *g = gp->graph;
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        ct_tensor *t = CT_NEW_ARRAY(alloc, ct_tensor, node->n_in + node->n_out, err);
        if (t == NULL) {
            return CT_ERR_MEMORY;
        }
        ct_launch_shapes(g, node, t, t + node->n_in);
        const ct_launch launch = {
            .in = t, .n_in = node->n_in, .out = t + node->n_in, .n_out = node->n_out, .attrs = node->attrs};
        const size_t bytes = workspace != NULL ? workspace(ctx, node, &launch) : 0;
        ct_alloc_free(alloc, t);
        gp->workspace_bytes = cti_max_i64(gp->workspace_bytes, align_up((int64_t)bytes));
    }
    return CT_OK;
}

static void program_ranges(ct_graph_plan *gp)
{
    const int32_t n = ct_graph_order_len(gp->graph);
    for (int p = 0; p < CT_PROGRAM_COUNT; p++) {
        int32_t i = 0;
        while (i < n && ct_graph_node_c(gp->graph, ct_graph_order(gp->graph)[i])->program < p) {
            i++;
        }
        gp->begin[p] = i;
        while (i < n && ct_graph_node_c(gp->graph, ct_graph_order(gp->graph)[i])->program == p) {
            i++;
        }
        gp->end[p] = i;
    }
}

/* Offsets within the graph: activations from the arena's start, inputs from the graph's input area; resolved later. */
static ct_status plan_graph(ct_plan *p, ct_graph_plan *gp, const ct_plan_item *item, ct_err *err)
{
    ct_graph *g = item->graph;
    const int32_t n_values = ct_graph_n_values(g);
    int32_t n_out = 0;
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        n_out += ct_graph_node_c(g, ct_graph_order(g)[i])->n_out;
    }
    scan s = {.g = g};
    life **busy = CT_NEW_ARRAY(p->alloc, life *, n_out + 1, err);
    s.merged = CT_NEW_ARRAY(p->alloc, ct_value_id, n_values + 1, err);
    s.shift = CT_NEW_ARRAY(p->alloc, int64_t, n_values + 1, err);
    s.first = CT_NEW_ARRAY(p->alloc, int32_t, n_values + 1, err);
    s.last = CT_NEW_ARRAY(p->alloc, int32_t, n_values + 1, err);
    s.updates = CT_NEW_ARRAY(p->alloc, ct_value_id, n_out + 1, err);
    s.lives = CT_NEW_ARRAY(p->alloc, life, n_out + 1, err);
    gp->graph = g;
    gp->n_values = n_values;
    gp->offset = ct_arena_alloc(p->arena, (size_t)(n_values + 1) * sizeof *gp->offset, err);
    gp->part_of = ct_arena_alloc(p->arena, (size_t)(n_values + 1) * sizeof *gp->part_of, err);
    gp->live_bytes = ct_arena_alloc(p->arena, (size_t)(ct_graph_order_len(g) + 1) * sizeof *gp->live_bytes, err);
    ct_status st = CT_ERR_MEMORY;
    if (busy != NULL && s.merged != NULL && s.shift != NULL && s.first != NULL && s.last != NULL && s.updates != NULL && s.lives != NULL &&
        gp->offset != NULL && gp->part_of != NULL && gp->live_bytes != NULL) {
        touch_all(&s, item->keep, item->n_keep);
        merge_joins(&s);
        merge_in_place(&s);
        collect_lives(&s);
        gp->arena_bytes = place_lives(s.lives, s.n_lives, busy);
        find_peak(gp, s.lives, s.n_lives);
        program_ranges(gp);
        for (int32_t v = 0; v < n_values; v++) {
            gp->offset[v] = -1;
        }
        for (int32_t i = 0; i < s.n_lives; i++) {
            gp->offset[s.lives[i].value] = s.lives[i].offset;
        }
        st = CT_OK;
        for (int32_t v = 0; v < n_values && st == CT_OK; v++) {
            const ct_value *value = ct_graph_value_c(g, v);
            if (value->producer >= 0 || value->alias_of != CT_NO_VALUE) {
                continue;
            }
            if (value->kind == CT_VALUE_INPUT) {
                gp->offset[v] = gp->input_bytes;
                gp->input_bytes += align_up((int64_t)ct_value_size_bytes(value));
            } else if (is_persistent(value->kind) && s.last[v] >= 0) {
                st = add_buffer(p, value, err);
            }
        }
        for (int32_t v = 0; v < n_values; v++) {
            int64_t at;
            gp->part_of[v] = root_of(&s, v, &at);
            gp->offset[v] = gp->part_of[v] == v ? gp->offset[v] : at;
        }
    }
    ct_alloc_free(p->alloc, busy);
    ct_alloc_free(p->alloc, s.merged);
    ct_alloc_free(p->alloc, s.shift);
    ct_alloc_free(p->alloc, s.first);
    ct_alloc_free(p->alloc, s.last);
    ct_alloc_free(p->alloc, s.updates);
    ct_alloc_free(p->alloc, s.lives);
    return st;
}

/* From offsets within areas to offsets within the block: first what has memory of its own, then what lies in it. */
static void resolve(ct_plan *p, ct_graph_plan *gp, int64_t input_base, int64_t arena_base)
{
    for (int32_t v = 0; v < gp->n_values; v++) {
        const ct_value *value = ct_graph_value_c(gp->graph, v);
        if (gp->part_of[v] != v) {
            continue;
        }
        if (value->kind == CT_VALUE_INPUT) {
            gp->offset[v] += input_base;
        } else if (is_persistent(value->kind)) {
            const ct_buffer *b = ct_plan_find(p, value->name);
            gp->offset[v] = b != NULL ? b->offset : -1;
        } else if (gp->offset[v] >= 0) {
            gp->offset[v] += arena_base;
        }
    }
    for (int32_t v = 0; v < gp->n_values; v++) {
        if (gp->part_of[v] != v) {
            const int64_t base = gp->offset[gp->part_of[v]];
            gp->offset[v] = base < 0 ? -1 : base + gp->offset[v];
        }
    }
}

static void lay_out(ct_plan *p)
{
    static const ct_value_kind kinds[] = {CT_VALUE_PARAM, CT_VALUE_STATE, CT_VALUE_GRAD, CT_VALUE_CONST};
    int64_t at = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (int32_t i = 0; i < p->n_buffers; i++) {
            if (p->buffers[i].kind == kinds[k]) {
                p->buffers[i].offset = at;
                at += align_up(p->buffers[i].size_bytes);
                p->class_bytes[kinds[k]] += align_up(p->buffers[i].size_bytes);
            }
        }
    }
    int64_t input_base = at;
    for (int32_t i = 0; i < p->n_graphs; i++) {
        p->class_bytes[CT_VALUE_INPUT] += p->graphs[i].input_bytes;
        p->class_bytes[CT_VALUE_ACT] = cti_max_i64(p->class_bytes[CT_VALUE_ACT], p->graphs[i].arena_bytes);
        p->workspace_bytes = cti_max_i64(p->workspace_bytes, p->graphs[i].workspace_bytes);
    }
    const int64_t arena_base = input_base + p->class_bytes[CT_VALUE_INPUT];
    for (int32_t i = 0; i < p->n_graphs; i++) {
        resolve(p, &p->graphs[i], input_base, arena_base);
        input_base += p->graphs[i].input_bytes;
    }
    p->workspace_offset = arena_base + p->class_bytes[CT_VALUE_ACT];
    p->total_bytes = p->workspace_offset + p->workspace_bytes;
}

ct_status ct_plan_create(const ct_alloc *alloc, const ct_plan_item *items, int32_t n_items, ct_workspace_fn workspace,
                         void *ctx, ct_plan **out_plan, ct_err *err)
{
    ct_plan *p = CT_NEW(alloc, ct_plan, err);
    if (p == NULL) {
        return CT_ERR_MEMORY;
    }
    p->alloc = alloc;
    p->n_graphs = n_items;
    ct_status st;
    CT_TRY_GOTO(st, ct_arena_create(alloc, 0, &p->arena, err), fail);
    p->graphs = ct_arena_alloc(p->arena, (size_t)n_items * sizeof *p->graphs, err);
    if (p->graphs == NULL) {
        st = CT_ERR_MEMORY;
        goto fail;
    }
    for (int32_t i = 0; i < n_items; i++) {
        CT_TRY_GOTO(st, plan_graph(p, &p->graphs[i], &items[i], err), fail);
        CT_TRY_GOTO(st, workspace_of(&p->graphs[i], workspace, ctx, alloc, err), fail);
    }
    lay_out(p);
    *out_plan = p;
    return CT_OK;
fail:
    ct_plan_destroy(&p);
    return st;
}

void ct_plan_destroy(ct_plan **plan)
{
    if (*plan == NULL) {
        return;
    }
    ct_arena_destroy(&(*plan)->arena);
    ct_alloc_free((*plan)->alloc, (*plan)->buffers);
    ct_alloc_free((*plan)->alloc, *plan);
    *plan = NULL;
}

const ct_buffer *ct_plan_find(const ct_plan *plan, const char *name)
{
    for (int32_t i = 0; i < plan->n_buffers; i++) {
        if (strcmp(plan->buffers[i].name, name) == 0) {
            return &plan->buffers[i];
        }
    }
    return NULL;
}
