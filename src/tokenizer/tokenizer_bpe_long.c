/* SPDX-License-Identifier: Apache-2.0 */
/* Merging a long word: its symbols are a linked list, and pairs that merge wait to be taken by rank, then by place.
 *
 * Pairs of one merge mostly come up from left to right, so each merge has a queue of them, and a small heap orders the merges whose
 * queue is not empty: a megabyte of one letter is a dozen queues and no sorting at all. A pair that comes up left of the last
 * in its queue goes to a heap of pairs instead. A word of n symbols costs O(n log n) whatever it is. */
#include "tokenizer/tokenizer_internal.h"

struct cti_link {
    int32_t prev, next; /* indices of ids, -1 at the ends */
};
struct cti_node {
    int32_t at, next; /* the pair's left symbol; the next node, -1: none */
};
struct cti_queue {
    int32_t head, tail; /* node + 1, 0: empty */
};

void cti_long_word_deinit(cti_long_word *w)
{
    ct_alloc_free(w->alloc, w->links);
    ct_alloc_free(w->alloc, w->pairs);
    ct_alloc_free(w->alloc, w->nodes);
    ct_alloc_free(w->alloc, w->queues);
    ct_alloc_free(w->alloc, w->ranks.entries);
    ct_alloc_free(w->alloc, w->strays.entries);
}

/* --- heaps: an entry is a rank above an index. Four children a node: half the levels of two, and in one line of the cache. --- */

static ct_status heap_push(cti_long_word *w, cti_heap *heap, uint64_t entry, ct_err *err)
{
    if (heap->n == heap->cap) {
        const size_t cap = heap->cap ? 2 * heap->cap : 256;
        uint64_t *entries = ct_alloc_resize(w->alloc, heap->entries, cap, sizeof *entries, err);
        if (entries == NULL) {
            return CT_ERR_MEMORY;
        }
        heap->entries = entries;
        heap->cap = cap;
    }
    size_t i = heap->n++;
    while (i > 0 && entry < heap->entries[(i - 1) / 4]) {
        heap->entries[i] = heap->entries[(i - 1) / 4];
        i = (i - 1) / 4;
    }
    heap->entries[i] = entry;
    return CT_OK;
}

static void heap_pop(cti_heap *heap)
{
    const uint64_t last = heap->entries[--heap->n];
    size_t at = 0;
    for (;;) {
        const size_t first = 4 * at + 1, end = first + 4 < heap->n ? first + 4 : heap->n;
        size_t least = first;
        for (size_t i = first + 1; i < end; i++) {
            least = heap->entries[i] < heap->entries[least] ? i : least;
        }
        if (first >= heap->n || heap->entries[least] >= last) {
            break;
        }
        heap->entries[at] = heap->entries[least];
        at = least;
    }
    heap->entries[at] = last;
}

/* --- pairs that wait --- */

/* Notes the pair that begins at `at`, and lets it wait if it is one that merges. There is a free node: see reserve(). */
static ct_status consider(const cti_merges *merges, cti_long_word *w, const int32_t *ids, int32_t at, ct_err *err)
{
    const int32_t next = w->links[at].next;
    const cti_merge *m = next >= 0 ? cti_merges_find(merges, ids[at], ids[next]) : NULL;
    w->n_lookups++;
    w->pairs[at] = m;
    if (m == NULL) {
        return CT_OK;
    }
    const uint64_t rank = (uint64_t)(uint32_t)m->rank << 32;
    struct cti_queue *q = &w->queues[m - merges->list];
    if (q->head > 0 && w->nodes[q->tail - 1].at >= at) {
        return heap_push(w, &w->strays, rank | (uint32_t)at, err);
    }
    const int32_t node = w->free_node;
    w->free_node = w->nodes[node].next;
    w->nodes[node] = (struct cti_node){.at = at, .next = -1};
    if (q->head > 0) {
        w->nodes[q->tail - 1].next = node;
        q->tail = node + 1;
        return CT_OK;
    }
    q->head = q->tail = node + 1;
    return heap_push(w, &w->ranks, rank | (uint32_t)(m - merges->list), err);
}

/* Takes the pair of the lowest rank, the leftmost of several; false: none is left. */
static bool take(cti_long_word *w, uint32_t *out_rank, int32_t *out_at)
{
    uint64_t queued = UINT64_MAX;
    struct cti_queue *q = NULL;
    if (w->ranks.n > 0) {
        q = &w->queues[(uint32_t)w->ranks.entries[0]];
        queued = (w->ranks.entries[0] & ~(uint64_t)UINT32_MAX) | (uint32_t)w->nodes[q->head - 1].at;
    }
    if (w->strays.n > 0 && w->strays.entries[0] < queued) {
        queued = w->strays.entries[0];
        heap_pop(&w->strays);
    } else if (q != NULL) {
        const int32_t node = q->head - 1;
        q->head = w->nodes[node].next + 1;
        w->nodes[node].next = w->free_node;
        w->free_node = node;
        if (q->head == 0) {
            heap_pop(&w->ranks);
        }
    } else {
        return false;
    }
    *out_rank = (uint32_t)(queued >> 32);
    *out_at = (int32_t)(uint32_t)queued;
    return true;
}

/* --- the word --- */

static ct_status reserve(const cti_merges *merges, cti_long_word *w, size_t n, ct_err *err)
{
    if (w->queues == NULL) {
        w->queues = CT_NEW_ARRAY(w->alloc, struct cti_queue, merges->n, err);
        if (w->queues == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    if (n > w->cap) {
        const size_t cap = n + n / 4;
        struct cti_link *links = ct_alloc_resize(w->alloc, w->links, cap, sizeof *links, err);
        w->links = links ? links : w->links;
        const cti_merge **pairs = links ? ct_alloc_resize(w->alloc, w->pairs, cap, sizeof *pairs, err) : NULL;
        w->pairs = pairs ? pairs : w->pairs;
        /* n - 1 pairs to begin with; each of at most n - 1 merges takes one out and adds two. */
        struct cti_node *nodes = pairs ? ct_alloc_resize(w->alloc, w->nodes, 2 * cap, sizeof *nodes, err) : NULL;
        w->nodes = nodes ? nodes : w->nodes;
        w->cap = nodes ? cap : 0;
        if (nodes == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    for (size_t i = 0; i < 2 * n; i++) {
        w->nodes[i].next = (int32_t)i + 1;
    }
    w->free_node = 0;
    return CT_OK;
}

static ct_status merge_all(const cti_merges *merges, cti_long_word *w, int32_t *ids, int32_t count, ct_err *err)
{
    for (int32_t i = 0; i < count; i++) {
        w->links[i] = (struct cti_link){.prev = i - 1, .next = i + 1 < count ? i + 1 : -1};
    }
    for (int32_t i = 0; i < count; i++) {
        CT_TRY(consider(merges, w, ids, i, err));
    }
    uint32_t rank = 0;
    int32_t at = 0;
    while (take(w, &rank, &at)) {
        const cti_merge *m = w->pairs[at];
        if (m == NULL || (uint32_t)m->rank != rank) {
            continue; /* merged meanwhile: no other pair has this rank */
        }
        const int32_t right = w->links[at].next, next = w->links[right].next, prev = w->links[at].prev;
        ids[at] = m->id;
        ids[right] = -1;
        w->pairs[right] = NULL;
        w->links[at].next = next;
        if (next >= 0) {
            w->links[next].prev = at;
        }
        CT_TRY(consider(merges, w, ids, at, err));
        if (prev >= 0) {
            CT_TRY(consider(merges, w, ids, prev, err));
        }
    }
    return CT_OK;
}

ct_status cti_merge_long(const cti_merges *merges, cti_long_word *w, int32_t *ids, size_t *n, ct_err *err)
{
    if (merges->n == 0) {
        return CT_OK;
    }
    CT_TRY(reserve(merges, w, *n, err));
    const ct_status st = merge_all(merges, w, ids, (int32_t)*n, err);
    if (st != CT_OK) { /* queues are left empty by a word that ends well */
        ct_alloc_free(w->alloc, w->queues);
        w->queues = NULL;
        w->ranks.n = w->strays.n = 0;
        return st;
    }
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        if (ids[i] >= 0) {
            ids[kept++] = ids[i];
        }
    }
    *n = kept;
    return CT_OK;
}
