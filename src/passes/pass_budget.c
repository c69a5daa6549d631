/* SPDX-License-Identifier: Apache-2.0 */
/* Activation checkpointing by budget: of what backward reads in the blocks, which values to keep in so many bytes, so that making the rest
 * again costs least.
 *
 * What a choice costs is no sum over values: keeping one spares its producers too where nothing else needs them. So each block's choices are
 * weighed whole: all of them where few nodes are to be chosen from, else those of a greedy walk by cost spared a byte. Choices that another
 * beats in both bytes and cost are dropped; the rest is the block's frontier. The budget is then spent on the steps of the frontiers' lower
 * hulls, the steepest first and among equals the last block's (what comes late in forward is needed first in backward, so blocks that
 * recompute have room by then); the step that no longer fits whole is taken as far as it goes. A larger budget takes the same steps and more:
 * never more cost. */
#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"
#include "passes/passes_internal.h"

/* Cost in floating-point operations: what a device computes while it moves a byte to or from memory, and between ranks. Round figures of the
 * devices of train/targets.c; constants, so that all ranks choose alike. */
static const double flops_per_byte = 64.0, flops_per_sent_byte = 1024.0;

enum { NO_READER = -1, MANY_READERS = -2 };

enum { MOST_WEIGHED = 14 }; /* nodes of which all 2^n choices are weighed */

typedef struct thing { /* a value of the block with memory of its own, that may be kept or made again */
    ct_value_id value;
    int32_t maker; /* index of its piece */
    int64_t bytes;
    bool is_read;  /* by the backward program itself */
} thing;

typedef struct piece { /* a node of the block whose outputs are things */
    ct_node_id node;
    int32_t op;
    double cost;
    int32_t first_thing, n_things;
    int32_t *reads; /* things that its inputs are or lie in */
    int32_t n_reads;
    bool may_keep;
} piece;

typedef struct point { /* one choice */
    int64_t bytes; /* kept for backward */
    double cost;   /* of what is made again */
    uint8_t *kept; /* per piece */
} point;

typedef struct block {
    piece *pieces;
    int32_t n_pieces;
    thing *things;
    int32_t n_things;
    point *frontier; /* bytes rise, cost falls; perhaps that of an earlier block of the same form */
    int32_t *hull;   /* the frontier's points on its lower hull */
    int32_t n_frontier, n_hull;
    int32_t at;      /* of hull, while the budget is spent */
    int32_t chosen;  /* of frontier */
} block;

typedef struct chooser {
    ct_graph *g;
    ct_arena *arena;   /* the graph's */
    uint8_t *keep;     /* per value */
    int32_t *thing_of; /* per value: its thing in the block being read, -1 */
    uint8_t *is_read;  /* per value: by the backward program */
    ct_node_id *reader; /* per value: the one node that reads it, once */
    block *blocks;
    int32_t n_blocks;
} chooser;

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

double cti_recompute_cost(const ct_graph *g, const ct_node *node)
{
    const double bytes = cti_node_bytes(g, node);
    return (ct_op_row(node->op)->flags & CT_OP_COLLECTIVE) != 0 ? flops_per_sent_byte * bytes : cti_node_flops(g, node) + flops_per_byte * bytes;
}

/* A product that a sum is to swallow (pass_fuse) has no value of its own to keep: keeping it would round it. */
static bool is_swallowed(const chooser *c, const ct_node *node)
{
    const ct_node_id reader = (ct_op_row(node->op)->flags & CT_OP_ADDEND) != 0 ? c->reader[node->out[0]] : NO_READER;
    return reader >= 0 && ct_graph_node_c(c->g, reader)->op == CT_OP_add;
}

/* A node of which an output is kept in any case makes the others then too. */
static bool is_piece(chooser *c, const ct_node *node)
{
    bool is_kept = (ct_op_row(node->op)->flags & CT_OP_VIEW) != 0 || node->n_out == 0;
    for (int32_t o = 0; o < node->n_out; o++) {
        is_kept |= c->keep[cti_root_value(c->g, node->out[o])] != 0;
    }
    for (int32_t o = 0; o < node->n_out && is_kept; o++) {
        c->keep[node->out[o]] |= (ct_op_row(node->op)->flags & CT_OP_VIEW) == 0;
    }
    return !is_kept;
}

static ct_status read_piece(chooser *c, block *b, ct_node_id id, ct_err *err)
{
    const ct_node *node = ct_graph_node_c(c->g, id);
    piece *p = &b->pieces[b->n_pieces];
    *p = (piece){.node = id, .op = node->op, .cost = cti_recompute_cost(c->g, node), .first_thing = b->n_things, .n_things = node->n_out,
                 .may_keep = !is_swallowed(c, node)};
    p->reads = ct_arena_alloc(c->arena, (size_t)(node->n_in + 1) * sizeof *p->reads, err);
    if (p->reads == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t k = 0; k < node->n_in; k++) {
        const ct_value_id root = node->in[k] >= 0 ? cti_root_value(c->g, node->in[k]) : CT_NO_VALUE;
        if (root >= 0 && c->thing_of[root] >= 0) {
            p->reads[p->n_reads++] = c->thing_of[root];
        }
    }
    for (int32_t o = 0; o < node->n_out; o++) {
        c->thing_of[node->out[o]] = b->n_things;
        b->things[b->n_things++] = (thing){node->out[o], b->n_pieces, (int64_t)ct_value_size_bytes(ct_graph_value_c(c->g, node->out[o])),
                                           c->is_read[node->out[o]] != 0};
    }
    b->n_pieces++;
    return CT_OK;
}

/* The nodes at positions [from, to) of the order are the block's. */
static ct_status read_block(chooser *c, int32_t from, int32_t to, ct_err *err)
{
    block *b = &c->blocks[c->n_blocks];
    int32_t n_things = 0;
    for (int32_t i = from; i < to; i++) {
        n_things += ct_graph_node_c(c->g, ct_graph_order(c->g)[i])->n_out;
    }
    b->pieces = ct_arena_alloc(c->arena, (size_t)(to - from + 1) * sizeof *b->pieces, err);
    b->things = ct_arena_alloc(c->arena, (size_t)(n_things + 1) * sizeof *b->things, err);
    if (b->pieces == NULL || b->things == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = from; i < to; i++) {
        const ct_node_id id = ct_graph_order(c->g)[i];
        if (cti_block_len(ct_graph_node_c(c->g, id)->scope) > 0 && is_piece(c, ct_graph_node_c(c->g, id))) {
            CT_TRY(read_piece(c, b, id, err));
        }
    }
    for (int32_t t = 0; t < b->n_things; t++) {
        c->thing_of[b->things[t].value] = -1;
    }
    c->n_blocks += b->n_pieces > 0;
    return CT_OK;
}

/* Whether what holds for one block's choices holds for the other's. */
static bool same_form(const block *a, const block *b)
{
    bool same = a->n_pieces == b->n_pieces && a->n_things == b->n_things;
    for (int32_t i = 0; same && i < a->n_pieces; i++) {
        const piece *p = &a->pieces[i], *q = &b->pieces[i];
        same = p->op == q->op && p->cost <= q->cost && p->cost >= q->cost && p->n_reads == q->n_reads && p->may_keep == q->may_keep &&
               memcmp(p->reads, q->reads, (size_t)p->n_reads * sizeof *p->reads) == 0;
    }
    for (int32_t t = 0; same && t < a->n_things; t++) {
        const thing *x = &a->things[t], *y = &b->things[t];
        same = x->maker == y->maker && x->bytes == y->bytes && x->is_read == y->is_read;
    }
    return same;
}

/* ---- choices of one block ---------------------------------------------------------------------------------------- */

/* p->kept -> p->bytes, p->cost. needed: per thing, scratch. False where something is kept that nobody needs. */
static bool weigh(const block *b, uint8_t *needed, point *p)
{
    bool is_lean = true;
    p->bytes = 0;
    p->cost = 0.0;
    for (int32_t t = 0; t < b->n_things; t++) {
        needed[t] = b->things[t].is_read;
    }
    for (int32_t i = b->n_pieces - 1; i >= 0; i--) {
        const piece *it = &b->pieces[i];
        int64_t bytes = 0;
        bool is_needed = false;
        for (int32_t t = it->first_thing; t < it->first_thing + it->n_things; t++) {
            is_needed |= needed[t] != 0;
            bytes += needed[t] != 0 ? b->things[t].bytes : 0;
        }
        is_lean &= is_needed || !p->kept[i];
        if (is_needed && p->kept[i]) {
            p->bytes += bytes;
        } else if (is_needed) {
            p->cost += it->cost;
            for (int32_t k = 0; k < it->n_reads; k++) {
                needed[it->reads[k]] = 1;
            }
        }
    }
    return is_lean;
}

static int by_bytes(const void *pa, const void *pb)
{
    const point *a = pa, *b = pb;
    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? -1 : 1;
    }
    return a->cost < b->cost ? -1 : a->cost > b->cost;
}

/* Drops choices that another beats; returns how many are left. */
static int32_t only_best(point *points, int32_t n)
{
    int32_t left = 0;
    qsort(points, (size_t)n, sizeof *points, by_bytes);
    for (int32_t i = 0; i < n; i++) {
        if (left == 0 || points[i].cost < points[left - 1].cost) {
            points[left++] = points[i];
        }
    }
    return left;
}

/* All choices, `n_free` pieces of which may be kept. points: room for 2^n_free; kept: as many times n_pieces. */
static int32_t weigh_all(const block *b, int32_t n_free, uint8_t *needed, point *points, uint8_t *kept)
{
    int32_t n = 0;
    for (uint32_t choice = 0; choice < 1u << n_free; choice++) {
        point p = {.kept = kept + (size_t)n * (size_t)b->n_pieces};
        uint32_t bits = choice;
        for (int32_t i = 0; i < b->n_pieces; i++) {
            p.kept[i] = b->pieces[i].may_keep && (bits & 1u) != 0;
            bits >>= b->pieces[i].may_keep;
        }
        if (weigh(b, needed, &p)) {
            points[n++] = p;
        }
    }
    return n;
}

/* From nothing kept on, always the piece that spares most cost a byte. points and kept: room for n_pieces + 1. */
static int32_t weigh_greedily(const block *b, uint8_t *needed, point *points, uint8_t *kept)
{
    int32_t n = 1;
    points[0].kept = kept;
    (void)weigh(b, needed, &points[0]);
    for (;;) {
        point best = {0}, p = {.kept = kept + (size_t)n * (size_t)b->n_pieces};
        int32_t at = -1;
        memcpy(p.kept, points[n - 1].kept, (size_t)b->n_pieces);
        for (int32_t i = 0; i < b->n_pieces; i++) {
            if (p.kept[i] || !b->pieces[i].may_keep) {
                continue;
            }
            p.kept[i] = 1;
            (void)weigh(b, needed, &p);
            p.kept[i] = 0;
            const double spared = points[n - 1].cost - p.cost, more = (double)(p.bytes - points[n - 1].bytes);
            const double best_spared = points[n - 1].cost - best.cost, best_more = (double)(best.bytes - points[n - 1].bytes);
            if (spared > 0.0 && (at < 0 || spared * (best_more > 1.0 ? best_more : 1.0) > best_spared * (more > 1.0 ? more : 1.0))) {
                best = p;
                at = i;
            }
        }
        if (at < 0) {
            return n;
        }
        p.kept[at] = 1;
        points[n++] = (point){best.bytes, best.cost, p.kept};
    }
}

/* Steps between hull points are ever flatter. */
static void find_hull(block *b)
{
    for (int32_t i = 0; i < b->n_frontier; i++) {
        const point *p = &b->frontier[i];
        while (b->n_hull >= 2) {
            const point *q = &b->frontier[b->hull[b->n_hull - 1]], *r = &b->frontier[b->hull[b->n_hull - 2]];
            if ((r->cost - q->cost) * (double)(p->bytes - r->bytes) > (r->cost - p->cost) * (double)(q->bytes - r->bytes)) {
                break;
            }
            b->n_hull--;
        }
        b->hull[b->n_hull++] = i;
    }
}

static ct_status find_frontier(chooser *c, block *b, ct_err *err)
{
    const ct_alloc *alloc = ct_graph_allocator(c->g);
    int32_t n_free = 0;
    for (int32_t i = 0; i < b->n_pieces; i++) {
        n_free += b->pieces[i].may_keep;
    }
    const bool all = n_free <= MOST_WEIGHED;
    const size_t room = all ? (size_t)1 << n_free : (size_t)b->n_pieces + 2;
    point *points = CT_NEW_ARRAY(alloc, point, room, err);
    uint8_t *needed = CT_NEW_ARRAY(alloc, uint8_t, b->n_things + 1, err);
    uint8_t *kept = CT_NEW_ARRAY(alloc, uint8_t, room * (size_t)b->n_pieces, err);
    ct_status st = CT_ERR_MEMORY;
    if (points != NULL && needed != NULL && kept != NULL) {
        const int32_t n = all ? weigh_all(b, n_free, needed, points, kept) : weigh_greedily(b, needed, points, kept);
        b->n_frontier = only_best(points, n);
        b->frontier = ct_arena_alloc(c->arena, (size_t)b->n_frontier * sizeof *b->frontier, err);
        b->hull = ct_arena_alloc(c->arena, (size_t)b->n_frontier * sizeof *b->hull, err);
        st = b->frontier != NULL && b->hull != NULL ? CT_OK : CT_ERR_MEMORY;
        for (int32_t i = 0; i < b->n_frontier && st == CT_OK; i++) {
            b->frontier[i] = points[i];
            b->frontier[i].kept = ct_arena_alloc(c->arena, (size_t)b->n_pieces, err);
            st = b->frontier[i].kept != NULL ? CT_OK : CT_ERR_MEMORY;
            if (st == CT_OK) {
                memcpy(b->frontier[i].kept, points[i].kept, (size_t)b->n_pieces);
            }
        }
        if (st == CT_OK) {
            find_hull(b);
        }
    }
    ct_alloc_free(alloc, points);
    ct_alloc_free(alloc, needed);
    ct_alloc_free(alloc, kept);
    return st;
}

/* ---- the budget -------------------------------------------------------------------------------------------------- */

static double steepness(const block *b)
{
    const point *p = &b->frontier[b->hull[b->at]], *q = &b->frontier[b->hull[b->at + 1]];
    return (p->cost - q->cost) / (double)(q->bytes - p->bytes);
}

static void spend(block *blocks, int32_t n, int64_t left)
{
    for (;;) {
        block *best = NULL;
        for (int32_t i = 0; i < n; i++) {
            if (blocks[i].at + 1 < blocks[i].n_hull && (best == NULL || steepness(&blocks[i]) >= steepness(best))) {
                best = &blocks[i];
            }
        }
        if (best == NULL) {
            return;
        }
        const int32_t next = best->hull[best->at + 1];
        const int64_t has = best->frontier[best->chosen].bytes;
        if (best->frontier[next].bytes - has > left) {
            while (best->frontier[best->chosen + 1].bytes - has <= left) {
                best->chosen++;
            }
            return;
        }
        left -= best->frontier[next].bytes - has;
        best->chosen = next;
        best->at++;
    }
}

static ct_status choose(chooser *c, double budget, ct_err *err)
{
    ct_graph *g = c->g;
    const int32_t n = ct_graph_order_len(g);
    double all = 0.0; /* bytes where nothing is made again */
    for (int32_t i = 0; i < n; i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        for (int32_t k = 0; k < node->n_in; k++) {
            if (node->in[k] >= 0) {
                c->is_read[cti_root_value(g, node->in[k])] |= node->program == CT_PROGRAM_BACKWARD;
                c->reader[node->in[k]] = c->reader[node->in[k]] == NO_READER ? ct_graph_order(g)[i] : MANY_READERS;
            }
        }
    }
    for (int32_t from = 0, to; from < n; from = to) {
        const ct_node *head = ct_graph_node_c(g, ct_graph_order(g)[from]);
        for (to = from + 1; to < n; to++) { /* nodes of no block, such as a group's gather, may stand between a block's */
            const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[to]);
            if (node->program != head->program || (cti_block_len(node->scope) > 0 && !cti_same_block(head->scope, node->scope))) {
                break;
            }
        }
        if (head->program == CT_PROGRAM_FORWARD && cti_block_len(head->scope) > 0) {
            CT_TRY(read_block(c, from, to, err));
        }
    }
    for (int32_t i = 0; i < c->n_blocks; i++) {
        block *b = &c->blocks[i];
        int32_t j = 0;
        while (j < i && !same_form(&c->blocks[j], b)) {
            j++;
        }
        if (j < i) {
            b->frontier = c->blocks[j].frontier;
            b->n_frontier = c->blocks[j].n_frontier;
            b->hull = c->blocks[j].hull;
            b->n_hull = c->blocks[j].n_hull;
        } else {
            CT_TRY(find_frontier(c, b, err));
        }
        all += (double)b->frontier[b->n_frontier - 1].bytes;
    }
    spend(c->blocks, c->n_blocks, (int64_t)(budget * all));
    for (int32_t i = 0; i < c->n_blocks; i++) {
        const block *b = &c->blocks[i];
        for (int32_t t = 0; t < b->n_things; t++) {
            c->keep[b->things[t].value] = b->frontier[b->chosen].kept[b->things[t].maker];
        }
    }
    return CT_OK;
}

ct_status cti_budget_keep(ct_graph *g, double budget, uint8_t *keep, ct_err *err)
{
    const ct_alloc *alloc = ct_graph_allocator(g);
    const int32_t n_values = ct_graph_n_values(g);
    chooser c = {.g = g, .arena = ct_graph_arena(g), .keep = keep};
    c.thing_of = CT_NEW_ARRAY(alloc, int32_t, n_values + 1, err);
    c.is_read = CT_NEW_ARRAY(alloc, uint8_t, n_values + 1, err);
    c.reader = CT_NEW_ARRAY(alloc, ct_node_id, n_values + 1, err);
    c.blocks = CT_NEW_ARRAY(alloc, block, ct_graph_order_len(g) + 1, err);
    ct_status st = CT_ERR_MEMORY;
    if (c.thing_of != NULL && c.is_read != NULL && c.reader != NULL && c.blocks != NULL) {
        for (int32_t v = 0; v < n_values; v++) {
            c.thing_of[v] = -1;
            c.reader[v] = NO_READER;
        }
        st = choose(&c, budget, err);
    }
    ct_alloc_free(alloc, c.thing_of);
    ct_alloc_free(alloc, c.is_read);
    ct_alloc_free(alloc, c.reader);
    ct_alloc_free(alloc, c.blocks);
    return st;
}
