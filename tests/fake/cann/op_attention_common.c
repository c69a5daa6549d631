/* SPDX-License-Identifier: Apache-2.0 */
/* Flash attention: what is accepted, where heads lie, which keys a query sees. */
#include "op_attention.h"

#include <string.h>

enum { COMPRESSED = 2048 };

/* Dim numbers of batch, length, head and width in a layout; head -1: heads lie side by side in the width. */
typedef struct layout {
    const char *name;
    int ndim, b, s, n, d;
} layout;

static const layout layouts[] = {
    {"BSH", 3, 0, 1, -1, 2}, {"SBH", 3, 1, 0, -1, 2}, {"BSND", 4, 0, 1, 2, 3},
    {"BNSD", 4, 0, 2, 1, 3}, {"TND", 3, -1, 0, 1, 2},
};

static const layout *layout_of(const fake_call *c, const op_slots *s)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (strcmp(layouts[i].name, c->arg[s->layout].text) == 0) {
            return &layouts[i];
        }
    }
    return NULL;
}

op_attention op_attention_of(fake_call *c, const op_slots *s)
{
    const layout *l = layout_of(c, s);
    const fake_view *q = fake_arg_view(c, 0), *k = fake_arg_view(c, s->key), *v = fake_arg_view(c, s->value);
    op_attention a = {.packed = l->b < 0,
                      .heads = c->arg[s->heads].i,
                      .scale = (float)c->arg[s->scale].d,
                      .sparse = c->arg[s->sparse].i};
    a.batch = a.packed ? c->arg[s->lengths_q].n : q->dim[l->b];
    if (l->n < 0) {
        a.d = q->dim[2] / a.heads;
        a.heads_kv = a.d > 0 ? k->dim[2] / a.d : 0;
        a.dv = a.heads_kv > 0 ? v->dim[2] / a.heads_kv : 0;
    } else {
        a.d = q->dim[l->d];
        a.heads_kv = k->dim[l->n];
        a.dv = v->dim[l->d];
    }
    a.tokens_q = a.sq = q->dim[l->s];
    a.tokens_kv = a.skv = k->dim[l->s];
    if (a.packed) {
        a.sq = a.skv = 0;
        for (int64_t b = 0; b < a.batch && b < c->arg[s->lengths_kv].n; b++) {
            op_piece p = op_attention_piece(c, s, &a, b);
            a.sq = p.sq > a.sq ? p.sq : a.sq;
            a.skv = p.skv > a.skv ? p.skv : a.skv;
        }
    }
    a.blank_rows = c->arg[s->precise].i == 2 || (a.sparse == 3 && a.sq > a.skv);
    return a;
}

op_piece op_attention_piece(fake_call *c, const op_slots *s, const op_attention *a, int64_t b)
{
    if (!a->packed) {
        return (op_piece){a->sq, a->skv, 0, 0};
    }
    const int64_t *q = c->arg[s->lengths_q].ints, *k = c->arg[s->lengths_kv].ints;
    op_piece p = {.from_q = b > 0 ? q[b - 1] : 0, .from_kv = b > 0 ? k[b - 1] : 0};
    p.sq = q[b] - p.from_q;
    p.skv = k[b] - p.from_kv;
    return p;
}

/* ---- what is accepted ---- */

static int check_layout(fake_call *c, const op_slots *s)
{
    const layout *l = layout_of(c, s);
    const int operands[] = {0, s->key, s->value, s->dy, s->out};
    if (!l || (l->b < 0) != (s->lengths_q != 0)) {
        return fake_refuse_value(c, "inputLayout '%s' is not one of this operator", c->arg[s->layout].text);
    }
    if (c->arg[s->heads].i <= 0) {
        return fake_refuse_value(c, "headNum is %lld", (long long)c->arg[s->heads].i);
    }
    for (size_t i = 0; i < sizeof operands / sizeof operands[0]; i++) {
        if ((i == 0 || operands[i] != 0) && c->arg[operands[i]].view.ndim != l->ndim) {
            return fake_refuse_shape(c, "'%s' should have the %d dims of %s", c->op->args[operands[i]].name,
                                     l->ndim, l->name);
        }
    }
    return 0;
}

static int tiling(fake_call *c, enum fake_rule rule, const char *text)
{
    return fake_refuse(c, rule, ACLNN_TILING, "%s", text);
}

static int check_heads(fake_call *c, const op_slots *s, const op_attention *a)
{
    const layout *l = layout_of(c, s);
    const fake_view *q = fake_arg_view(c, 0), *k = fake_arg_view(c, s->key), *v = fake_arg_view(c, s->value);
    if (l->n >= 0 && k->dim[l->d] != a->d) {
        return fake_refuse_shape(c, "the head dims of query and key differ");
    }
    int64_t widest = fake_version() >= 901 ? 768 : 512;
    if (a->d > widest || a->dv > a->d) {
        return fake_refuse_shape(c, "the head dim is %lld (values: %lld): at most %lld, values no wider",
                                 (long long)a->d, (long long)a->dv, (long long)widest);
    }
    if (l->n >= 0 ? q->dim[l->n] != a->heads
                  : q->dim[2] != a->heads * a->d || k->dim[2] != a->heads_kv * a->d) {
        return tiling(c, FAKE_R_ATTENTION_HEADS, "headNum is not the number of query heads");
    }
    if (a->heads_kv == 0 || a->heads % a->heads_kv != 0 || a->heads > 256 ||
        (l->n >= 0 && v->dim[l->n] != a->heads_kv)) {
        return tiling(c, FAKE_R_ATTENTION_HEADS,
                      "query heads should be at most 256 and a multiple of key heads, which are as many as "
                      "value heads");
    }
    if (v->dim[l->s] != k->dim[l->s] ||
        (l->b >= 0 && (k->dim[l->b] != q->dim[l->b] || v->dim[l->b] != q->dim[l->b]))) {
        return fake_refuse(c, FAKE_R_ACLNN_SHAPE, ACLNN_TILING, "query, key and value do not fit");
    }
    return 0;
}

static int check_lengths(fake_call *c, const op_slots *s)
{
    const fake_arg *q = &c->arg[s->lengths_q], *k = &c->arg[s->lengths_kv];
    if (!q->given || !k->given || q->n != k->n || q->n == 0) {
        return tiling(c, FAKE_R_ATTENTION_LENGTHS,
                      "actualSeqQLen and actualSeqKvLen should be given, with one entry a document");
    }
    if (q->n > (fake_version() >= 901 ? 20000 : 2048)) {
        return tiling(c, FAKE_R_ATTENTION_LENGTHS, "too many documents");
    }
    for (int64_t b = 0; b < q->n; b++) {
        if (q->ints[b] < (b ? q->ints[b - 1] : 0) || k->ints[b] < (b ? k->ints[b - 1] : 0)) {
            return tiling(c, FAKE_R_ATTENTION_LENGTHS, "cumulative lengths should not descend");
        }
    }
    if (q->ints[q->n - 1] != c->arg[0].view.dim[0] || k->ints[k->n - 1] != c->arg[s->key].view.dim[0]) {
        return tiling(c, FAKE_R_ATTENTION_LENGTHS,
                      "the last cumulative length should be the number of tokens");
    }
    return 0;
}

static int check_mode(fake_call *c, const op_slots *s, const op_attention *a)
{
    double keep = c->arg[s->keep].d;
    if (!(keep > 0 && keep <= 1)) {
        return tiling(c, FAKE_R_ACLNN_VALUE, "keepProb should be above 0 and at most 1");
    }
    if (c->arg[s->precise].i < 0 || c->arg[s->precise].i > 2) {
        return tiling(c, FAKE_R_ACLNN_VALUE, "innerPrecise should be 0, 1 or 2");
    }
    if (a->sparse < 0 || a->sparse > 8 || (!a->packed && a->sparse > 6)) {
        return tiling(c, FAKE_R_ATTENTION_MODE, "this sparseMode does not exist here");
    }
    bool bias = c->arg[s->bias].given && fake_view_count(fake_arg_view(c, s->bias)) > 0;
    if (a->sparse > 4 || bias || c->arg[s->drop].given || keep < 1 || c->arg[s->prefix].given) {
        return tiling(c, FAKE_R_ATTENTION_NOT_OFFERED,
                      "the double has no sparse modes above 4, no bias, no dropout, no prefixes");
    }
    if (a->packed && a->sparse == 3) {
        for (int64_t b = 0; b < a->batch; b++) {
            op_piece p = op_attention_piece(c, s, a, b);
            if (p.sq > p.skv) {
                return tiling(c, FAKE_R_ATTENTION_LENGTHS,
                              "sparseMode 3 with more queries than keys in a document");
            }
        }
    }
    return 0;
}

static bool is_mask(const fake_view *m, int64_t b, int64_t n, int64_t sq, int64_t skv)
{
    return m->ndim == 4 && m->dim[0] == b && m->dim[1] == n && m->dim[2] == sq && m->dim[3] == skv;
}

static int check_mask(fake_call *c, const op_slots *s, const op_attention *a)
{
    const fake_view *m = fake_arg_view(c, s->mask);
    if (!c->arg[s->mask].given) {
        if (a->sparse > 1) {
            fake_lint(FAKE_R_ATTENTION_NO_MASK,
                      "%s: sparseMode %lld without attenMask computes full attention", c->op->phase1,
                      (long long)a->sparse);
        }
        return 0;
    }
    bool ok;
    if (a->sparse > 1) {
        ok = m->ndim == 2 && m->dim[0] == COMPRESSED && m->dim[1] == COMPRESSED;
    } else {
        ok = m->ndim == 2 && m->dim[0] == a->sq && m->dim[1] == a->skv;
        ok =
            ok || (!a->packed && (is_mask(m, a->batch, a->heads, a->sq, a->skv) ||
                                  is_mask(m, a->batch, 1, a->sq, a->skv) || is_mask(m, 1, 1, a->sq, a->skv)));
    }
    return ok ? 0
              : tiling(c, FAKE_R_ATTENTION_MASK,
                       a->sparse > 1 ? "attenMask should be (2048,2048) for this sparseMode"
                                     : "attenMask should have the dims of the scores");
}

int op_attention_check(fake_call *c, const op_slots *s)
{
    TRY(check_layout(c, s));
    if (s->lengths_q) {
        TRY(check_lengths(c, s));
    }
    op_attention a = op_attention_of(c, s);
    TRY(check_heads(c, s, &a));
    TRY(check_mode(c, s, &a));
    TRY(check_mask(c, s, &a));
    const int64_t fixed[4] = {a.batch, a.heads, a.sq, 8}, packed[3] = {a.tokens_q, a.heads, 8};
    for (int i = 0; i < 2; i++) {
        const fake_view *stat = fake_arg_view(c, i ? s->sum : s->max);
        bool ok = a.packed ? stat->ndim == 3 && memcmp(stat->dim, packed, sizeof packed) == 0
                           : stat->ndim == 4 && memcmp(stat->dim, fixed, sizeof fixed) == 0;
        if (!ok || !fake_view_is_contiguous(stat)) {
            return tiling(c, FAKE_R_ACLNN_SHAPE,
                          "softmaxMax and softmaxSum should be dense (B,N,Sq,8), or (T,N,8) of packed rows");
        }
    }
    return 0;
}

/* ---- where heads lie ---- */

fake_view op_attention_head(fake_call *c, const op_slots *s, const op_attention *a, int i, int64_t heads,
                            op_piece p, int64_t b, int64_t h, bool transposed)
{
    const layout *l = layout_of(c, s);
    const fake_view *v = fake_arg_view(c, i);
    bool is_query = i == 0 || i == s->out || i == s->dy || i == s->dq;
    int64_t width = l->n < 0 ? v->dim[2] / heads : v->dim[l->d];
    fake_view r = *v;
    r.ndim = 2;
    r.offset += (a->packed ? 0 : b * v->stride[l->b]) +
                h * (l->n < 0 ? width * v->stride[2] : v->stride[l->n]) +
                (is_query ? p.from_q : p.from_kv) * v->stride[l->s];
    r.dim[transposed] = is_query ? p.sq : p.skv;
    r.stride[transposed] = v->stride[l->s];
    r.dim[!transposed] = width;
    r.stride[!transposed] = v->stride[l->d];
    return r;
}

int64_t op_attention_stat(const op_attention *a, op_piece p, int64_t b, int64_t h, int64_t i)
{
    /* Packed: document after document, each [N, S, 8] whatever the dims [T, N, 8] say. */
    return 8 * (a->packed ? p.from_q * a->heads + h * p.sq + i : (b * a->heads + h) * a->sq + i);
}

/* ---- which keys a query sees ---- */

/* The compressed form is the strict upper triangle; hardware does not look, and computes rubbish with
 * another. */
static void check_triangle(fake_call *c, const fake_view *m)
{
    unsigned char *row = fake_scrap_new(c, COMPRESSED, 1), *want = fake_scrap_new(c, 2 * COMPRESSED, 1);
    memset(want + COMPRESSED, 1, COMPRESSED);
    for (int64_t i = 0; i < COMPRESSED; i++) {
        const unsigned char *data = (const unsigned char *)m->addr + m->offset + i * m->stride[0];
        if (m->stride[1] != 1) {
            for (int64_t j = 0; j < COMPRESSED; j++) {
                row[j] = data[j * m->stride[1]];
            }
            data = row;
        }
        if (memcmp(data, want + COMPRESSED - 1 - i, COMPRESSED) != 0) {
            fake_trap(FAKE_R_ATTENTION_MASK_CONTENT,
                      "%s: row %lld of the compressed mask is not that of the strict upper triangle",
                      c->op->name, (long long)i);
            return;
        }
    }
}

/* Far enough for any length, and sums do not overflow. */
static int64_t clamped(int64_t x)
{
    const int64_t far = (int64_t)1 << 40;
    return x > far ? far : x < -far ? -far : x;
}

bool op_attention_masked(fake_call *c, const op_slots *s, const op_attention *a, op_piece p, int64_t b,
                         int64_t h, unsigned char *masked)
{
    const fake_view *m = fake_arg_view(c, s->mask);
    if (!c->arg[s->mask].given) {
        return false;
    }
    if (a->sparse > 1 && b == 0 && h == 0) {
        check_triangle(c, m);
    }
    int64_t pre = c->arg[s->pre].i, next = c->arg[s->next].i, shift = a->sparse > 2 ? p.skv - p.sq : 0;
    const unsigned char *data = (const unsigned char *)m->addr + m->offset;
    if (m->ndim == 4) {
        data += (m->dim[0] > 1 ? b * m->stride[0] : 0) + (m->dim[1] > 1 ? h * m->stride[1] : 0);
    }
    for (int64_t i = 0; i < p.sq; i++) {
        unsigned char *row = masked + i * p.skv;
        const unsigned char *given = a->sparse < 2 ? data + i * m->stride[m->ndim - 2] : NULL;
        int64_t step = m->stride[m->ndim - 1];
        /* the band: keys from..to; a mask of its own beside it, or alone */
        int64_t reach = a->sparse == 0 || a->sparse == 4 ? next : a->sparse == 1 ? p.skv : 0;
        int64_t back = a->sparse == 0 || a->sparse == 4 ? pre : p.skv + p.sq;
        reach = clamped(reach);
        back = clamped(back);
        int64_t from = i + shift - back, to = i + shift + reach;
        for (int64_t j = 0; j < p.skv; j++) {
            row[j] = j < from || j > to;
        }
        for (int64_t j = 0; given && j < p.skv; j++) {
            row[j] |= given[j * step] != 0;
        }
    }
    return true;
}
