/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: fake/cann */
/* Flash attention of libopapi's double, forward and backward, against plain attention in double precision:
 * layouts, groups of heads, sparse modes, documents in packed rows, blank rows. */
#include "fake/cann/testing/ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { B = 2, H = 4, HK = 2, S = 5, D = 6, SK_MAX = 7 };

typedef struct problem {
    const char *layout, *type;
    int skv, sparse, pre, next, precise;
    bool mask;
} problem;

/* Where element (b, h, s, d) of a tensor with n heads and length len lies in the layout. */
static int at(const char *layout, int n, int len, int b, int h, int s, int d)
{
    if (strcmp(layout, "BNSD") == 0) {
        return ((b * n + h) * len + s) * D + d;
    }
    if (layout[0] == 'S') {
        return ((s * B + b) * n + h) * D + d;
    }
    return ((b * len + s) * n + h) * D + d; /* BSND, BSH; TND with B rows end to end */
}

static void dims(const char *layout, int n, int len, char *out)
{
    if (strcmp(layout, "BNSD") == 0) {
        sprintf(out, "%d,%d,%d,%d", B, n, len, D);
    } else if (strcmp(layout, "BSND") == 0) {
        sprintf(out, "%d,%d,%d,%d", B, len, n, D);
    } else if (strcmp(layout, "BSH") == 0) {
        sprintf(out, "%d,%d,%d", B, len, n * D);
    } else if (strcmp(layout, "SBH") == 0) {
        sprintf(out, "%d,%d,%d", len, B, n * D);
    } else {
        sprintf(out, "%d,%d,%d", B * len, n, D);
    }
}

/* Whether query i does not see key j; `custom`: a mask of its own. */
static bool hidden(const problem *p, const double *custom, int i, int j)
{
    int shift = p->skv - S;
    if (!p->mask) {
        return false;
    }
    switch (p->sparse) {
    case 0:
        return custom[i * p->skv + j] != 0 || j - i > p->next || i - j > p->pre;
    case 1:
        return custom[i * p->skv + j] != 0;
    case 2:
        return j > i;
    case 3:
        return j > i + shift;
    }
    return j - i - shift > p->next || i + shift - j > p->pre;
}

typedef struct answer {
    double *out, *max, *sum, *dq, *dk, *dv;
} answer;

/* One head of one batch: weights, output, gradients for dy. Masked scores are so low that a blank row is an
 * average. */
static void plain(const problem *p, const double *custom, const double *q, const double *k, const double *v,
                  const double *dy, int b, int h, answer *a)
{
    double w[S][SK_MAX], scale = 0.5;
    int kv = h / (H / HK);
#define Q(x, i, d) x[at(p->layout, H, S, b, h, i, d)]
#define KV(x, j, d) x[at(p->layout, HK, p->skv, b, kv, j, d)]
    for (int i = 0; i < S; i++) {
        double top = -(double)INFINITY, sum = 0, dot = 0;
        bool blank = true;
        for (int j = 0; j < p->skv; j++) {
            w[i][j] = 0;
            for (int d = 0; d < D; d++) {
                w[i][j] += scale * Q(q, i, d) * KV(k, j, d);
            }
            bool out = hidden(p, custom, i, j);
            blank = blank && out;
            w[i][j] = out ? -3e38 : w[i][j];
            top = fmax(top, w[i][j]);
        }
        blank = blank && (p->precise == 2 || (p->sparse == 3 && S > p->skv));
        for (int j = 0; j < p->skv; j++) {
            w[i][j] = blank ? 0 : exp(w[i][j] - top);
            sum += w[i][j];
        }
        a->max[(b * H + h) * S + i] = top;
        a->sum[(b * H + h) * S + i] = sum;
        for (int j = 0; j < p->skv; j++) {
            w[i][j] = blank ? 0 : w[i][j] / sum;
            for (int d = 0; d < D; d++) {
                Q(a->out, i, d) += w[i][j] * KV(v, j, d);
            }
        }
        for (int d = 0; d < D; d++) {
            dot += Q(dy, i, d) * Q(a->out, i, d);
        }
        for (int j = 0; j < p->skv; j++) {
            double dw = 0;
            for (int d = 0; d < D; d++) {
                dw += Q(dy, i, d) * KV(v, j, d);
                KV(a->dv, j, d) += w[i][j] * Q(dy, i, d);
            }
            double ds = w[i][j] * (dw - dot) * scale;
            for (int d = 0; d < D; d++) {
                Q(a->dq, i, d) += ds * KV(k, j, d);
                KV(a->dk, j, d) += ds * Q(q, i, d);
            }
        }
    }
#undef Q
#undef KV
}

/* The compressed mask, once on the device, in the place of the operand's own. */
static void set_triangle(op *o)
{
    static void *device;
    const int64_t dim[2] = {2048, 2048};
    if (device == NULL) {
        unsigned char *m = malloc(2048 * 2048);
        for (int i = 0; i < 2048 * 2048; i++) {
            m[i] = i % 2048 > i / 2048;
        }
        assert_int_equal(aclrtMalloc(&device, 2048 * 2048, 0), 0);
        assert_int_equal(aclrtMemcpy(device, 2048 * 2048, m, 2048 * 2048, 1), 0);
        free(m);
    }
    operand *mask = op_find(o, "mask");
    aclDestroyTensor(mask->tensor);
    mask->tensor = aclCreateTensor(dim, 2, ACL_BOOL, NULL, 0, ACL_FORMAT_ND, dim, 2, device);
}

/* Statistics in the operator's order, eight times each; packed rows are documents of S tokens one after the
 * other, so that this is the order [B, N, S, 8] in both cases. */
static void expect_stats(op *o, const char *name, const double *want, bool only_live, const double *max)
{
    double *got = op_get(o, name);
    for (int i = 0; i < B * H * S * 8; i++) {
        if (!only_live || max[i / 8] > -1e38) {
            assert_true(ops_close(name, &got[i], &want[i / 8], 1, 0x1p-20, ops_sum_bound(D, 8)));
        }
    }
    free(got);
}

static void expect(op *o, const char *name, const double *want)
{
    operand *a = op_find(o, name);
    double *got = op_get(o, name);
    /* sums of at most S * D * H / HK terms below 4, weights with the error of a softmax; outputs that the
     * backward reads are rounded */
    double bound =
        ops_sum_bound(S * D * 4, 16) +
        (strcmp(name, "out") == 0 ? 0 : 16 * ops_unit(a->view.dtype) * (a->view.dtype != ACL_FLOAT));
    assert_true(ops_close(name, got, want, fake_view_count(&a->view), ops_unit(a->view.dtype), bound));
    free(got);
}

static void run_problem(const problem *p)
{
    bool packed = strcmp(p->layout, "TND") == 0;
    char q[40], k[40], text[900], common[200], stats[40], mask[40], lengths[80] = "";
    dims(p->layout, H, S, q);
    dims(p->layout, HK, p->skv, k);
    snprintf(stats, sizeof stats, packed ? "f32:%d,%d,8" : "f32:2,%d,%d,8", packed ? B * S : H,
             packed ? H : S);
    snprintf(mask, sizeof mask,
             !p->mask        ? "null"
             : p->sparse > 1 ? "bool:2048,2048/0,0"
                             : "u8:%d,%d",
             S, p->skv);
    if (packed) {
        snprintf(lengths, sizeof lengths, "lq[%d,%d lk[%d,%d ", S, 2 * S, p->skv, 2 * p->skv);
    }
    snprintf(common, sizeof common,
             "scale~0.5 keep~1 pre=%d next=%d heads=%d layout\"%s precise=%d sparse=%d", p->pre, p->next, H,
             p->layout, p->precise, p->sparse);
    snprintf(text, sizeof text,
             "q:%s:%s k:%s:%s v:%s:%s pse:null drop:null pad:null mask:%s prefix:null %s%s max:%s sum:%s "
             "soft:null out:%s:%s",
             p->type, q, p->type, k, p->type, k, mask, lengths, common, stats, stats, p->type, q);
    op *f = op_new(packed ? "FlashAttentionVarLenScore" : "FlashAttentionScore", text);
    snprintf(text, sizeof text,
             "q:%s:%s k:%s:%s v:%s:%s dy:%s:%s pse:null drop:null pad:null mask:%s max:%s sum:%s soft:null "
             "att:%s:%s prefix:null %s%s dq:%s:%s "
             "dk:%s:%s dv:%s:%s dpse:null",
             p->type, q, p->type, k, p->type, k, p->type, q, mask, stats, stats, p->type, q, lengths, common,
             p->type, q, p->type, k, p->type, k);
    op *b = op_new(packed ? "FlashAttentionUnpaddingScoreGrad" : "FlashAttentionScoreGrad", text);
    double *x[3], *dy = op_get(b, "dy"), *custom = NULL;
    static const char *const names[] = {"q", "k", "v"};
    for (int i = 0; i < 3; i++) {
        x[i] = op_get(f, names[i]);
        op_set(b, names[i], x[i]);
    }
    if (p->mask && p->sparse > 1) {
        set_triangle(f);
        set_triangle(b);
    } else if (p->mask) {
        custom = op_get(f, "mask");
        for (int i = 0; i < S; i++) {
            for (int j = 0; j < p->skv; j++) {
                custom[i * p->skv + j] = i == 1 || (i * 3 + j) % 4 == 1; /* row 1 is blank */
            }
        }
        op_set(f, "mask", custom);
        op_set(b, "mask", custom);
    }
    size_t nq = B * H * S * D, nk = (size_t)(B * HK * p->skv * D);
    answer a = {calloc(nq, 8), calloc(B * H * S, 8), calloc(B * H * S, 8),
                calloc(nq, 8), calloc(nk, 8),        calloc(nk, 8)};
    for (int i = 0; i < B * H; i++) {
        plain(p, custom, x[0], x[1], x[2], dy, i / H, i % H, &a);
    }
    assert_int_equal(op_run(f), 0);
    expect(f, "out", a.out);
    expect_stats(f, "sum", a.sum, p->precise == 2 || p->sparse == 3, a.max);
    expect_stats(f, "max", a.max, true, a.max);
    double *got[3] = {op_get(f, "max"), op_get(f, "sum"), op_get(f, "out")};
    op_set(b, "max", got[0]);
    op_set(b, "sum", got[1]);
    op_set(b, "att", got[2]);
    assert_int_equal(op_run(b), 0);
    expect(b, "dq", a.dq);
    expect(b, "dk", a.dk);
    expect(b, "dv", a.dv);
    for (int i = 0; i < 3; i++) {
        free(x[i]);
        free(got[i]);
    }
    free(dy);
    free(custom);
    free(a.out);
    free(a.max);
    free(a.sum);
    free(a.dq);
    free(a.dk);
    free(a.dv);
    op_free(f);
    op_free(b);
}

static void test_attention(void **state)
{
    (void)state;
    static const problem problems[] = {
        {"BNSD", "f32", 5, 2, 1 << 30, 1 << 30, 0, true},
        {"BSND", "f32", 5, 2, 1 << 30, 1 << 30, 0, true},
        {"BSH", "f32", 5, 2, 1 << 30, 1 << 30, 0, true},
        {"SBH", "f32", 7, 3, 1 << 30, 1 << 30, 0, true},
        {"BNSD", "bf16", 5, 2, 1 << 30, 1 << 30, 0, true},
        {"BSND", "f16", 7, 3, 1 << 30, 1 << 30, 0, true},
        {"BNSD", "f32", 7, 4, 2, 1, 0, true},
        {"BNSD", "f32", 5, 0, 1, 0, 0, true},
        {"BNSD", "f32", 7, 1, 0, 0, 0, true},
        {"BSND", "f32", 7, 1, 0, 0, 2, true},
        {"BNSD", "f32", 3, 3, 1 << 30, 1 << 30, 0, true}, /* more queries than keys: blank rows are zeros */
        {"TND", "f32", 5, 2, 1 << 30, 1 << 30, 0, true},
        {"TND", "bf16", 7, 3, 1 << 30, 1 << 30, 0, true},
        {"TND", "f32", 7, 4, 2, 1, 0, true},
        {"TND", "f32", 5, 1, 0, 0, 0, true},
        /* without a mask everything is seen, whatever the mode says */
        {"BNSD", "f32", 5, 2, 1 << 30, 1 << 30, 0, false},
        {"TND", "f32", 7, 0, 0, 0, 0, false},
    };
    for (size_t t = 0; t < sizeof problems / sizeof problems[0]; t++) {
        ops_seed(t + 1);
        run_problem(&problems[t]);
    }
}

/* Documents of unequal lengths, one of them empty, are each causal attention of their own; their statistics
 * lie document by document, head by head. */
static void test_documents(void **state)
{
    (void)state;
    enum { T = 9, N = 2, W = 4 };
    const int ends[] = {2, 2, 7, 9};
    op *f =
        op_new("FlashAttentionVarLenScore", "q:f32:9,2,4 k:f32:9,1,4 v:f32:9,1,4 pse:null drop:null pad:null "
                                            "mask:bool:2048,2048/0,0 prefix:null lq[2,2,7,9 lk[2,2,7,9 "
                                            "scale~0.5 keep~1 pre=2147483647 next=2147483647 heads=2 "
                                            "layout\"TND precise=0 sparse=2 max:f32:9,2,8 sum:f32:9,2,8 "
                                            "soft:f32:0 out:f32:9,2,4");
    set_triangle(f);
    double *q = op_get(f, "q"), *k = op_get(f, "k"), *v = op_get(f, "v"), out[T * N * W] = {0}, sums[T * N];
    for (int e = 0, from = 0, stat = 0; e < 4; from = ends[e++]) {
        for (int h = 0; h < N; h++) {
            for (int i = from; i < ends[e]; i++) {
                double w[T], top = -(double)INFINITY, sum = 0;
                for (int j = from; j <= i; j++) {
                    w[j] = 0;
                    for (int d = 0; d < W; d++) {
                        w[j] += 0.5 * q[(i * N + h) * W + d] * k[j * W + d];
                    }
                    top = fmax(top, w[j]);
                }
                for (int j = from; j <= i; j++) {
                    sum += exp(w[j] - top);
                }
                for (int j = from; j <= i; j++) {
                    for (int d = 0; d < W; d++) {
                        out[(i * N + h) * W + d] += exp(w[j] - top) / sum * v[j * W + d];
                    }
                }
                sums[stat++] = sum;
            }
        }
    }
    assert_int_equal(op_run(f), 0);
    expect(f, "out", out);
    double *got = op_get(f, "sum");
    for (int i = 0; i < T * N; i++) {
        assert_true(ops_close("sum", &got[i * 8], &sums[i], 1, 0x1p-20, 0));
    }
    free(got);
    free(q);
    free(k);
    free(v);
    op_free(f);
}

static int begin(void **state)
{
    (void)state;
    ops_begin();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_attention), cmocka_unit_test(test_documents)};
    return cmocka_run_group_tests(tests, begin, NULL);
}
