/* SPDX-License-Identifier: Apache-2.0 */
/* The standard cases of each op: odd and zero sizes, every attribute, optional inputs, faulty data. op_standard_case() builds the i-th of
 * an op for dtype f, or says that there is none. Faulty cases are those the kernel must refuse with ERR_RANGE. Included by
 * op/harness.h; attention's cases are in op/cases_attention.h. */
#ifndef CT_TESTS_OP_CASES_H
#define CT_TESTS_OP_CASES_H

#define OP_COUNT_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define OP_ATTRS(arena, type, ...) ((type *)op_keep((arena), &(type){__VA_ARGS__}, sizeof(type)))
#define OP_LIST(arena, n, ...) \
    { (n), (int64_t *)op_keep((arena), (const int64_t[]){__VA_ARGS__}, (size_t)(n) * sizeof(int64_t)) }

static inline void *op_keep(ct_arena *arena, const void *data, size_t bytes)
{
    return memcpy(op_must(ct_arena_alloc(arena, bytes + 1, NULL)), data, bytes);
}

typedef struct op_shape {
    int32_t ndim;
    int64_t dims[CT_MAX_NDIM];
} op_shape;

static inline bool op_case_embedding(op_case *c, int i)
{
    static const struct {
        int64_t vocab, d, tokens[2];
        int32_t bad;
    } rows[] = {{7, 5, {1, 3}, -2},  {1, 1, {1, 1}, -2},  {11, 33, {2, 4}, -2},             {4, 8, {1, 0}, -2},
                {5, 6, {2, 2}, 5},   {5, 6, {2, 2}, -1},  {5, 6, {2, 2}, CT_ID_ELSEWHERE}, {3, 24, {1, 7}, CT_ID_ELSEWHERE}};
    if (i >= OP_COUNT_OF(rows)) {
        return false;
    }
    if (c->op == CT_OP_embedding) {
        op_add_f(c, 1.0, 2, (const int64_t[]){rows[i].vocab, rows[i].d});
    } else {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_embedding_grad, rows[i].vocab);
        op_add_f(c, 1.0, 3, (const int64_t[]){rows[i].tokens[0], rows[i].tokens[1], rows[i].d});
    }
    const ct_tensor *ids = op_add_ids(c, (uint64_t)rows[i].vocab, 2, rows[i].tokens);
    if (rows[i].bad != -2) {
        op_set(ids, op_numel(ids) - 1, (double)rows[i].bad);
    }
    return true;
}

static inline bool op_case_matmul(op_case *c, int i)
{
    static const int64_t sizes[][3] = {{1, 1, 1},   {3, 5, 7},    {17, 33, 9}, {64, 64, 64}, {31, 130, 65},
                                       {2, 300, 18}, {33, 7, 100}, {0, 4, 3},   {3, 0, 4},    {3, 4, 0}};
    const int size = i / 8;
    const bool ta = (i & 1) != 0, tb = (i & 2) != 0, has_c = (i & 4) != 0;
    if (size >= OP_COUNT_OF(sizes)) {
        return false;
    }
    const int64_t m = sizes[size][0], p = sizes[size][1], q = sizes[size][2];
    c->attrs = OP_ATTRS(c->arena, ct_attrs_matmul, ta, tb);
    if (ta) {
        op_add_f(c, 1.0, 2, (const int64_t[]){p, m});
    } else {
        op_add_f(c, 1.0, 3, (const int64_t[]){1, m, p});
    }
    op_add_f(c, 1.0, 2, tb ? (const int64_t[]){q, p} : (const int64_t[]){p, q});
    if (has_c) {
        op_add_f(c, 1.0, ta ? 2 : 3, ta ? (const int64_t[]){m, q} : (const int64_t[]){1, m, q});
    }
    return true;
}

/* y = swiglu of a product [m, p] [p, 2f], and of tiles' borders. */
static inline bool op_case_matmul_swiglu(op_case *c, int i)
{
    static const int64_t sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {17, 33, 9}, {64, 64, 32}, {31, 130, 65}, {2, 300, 18}, {150, 70, 100}, {5, 300, 300},
                                       {0, 4, 3}, {3, 0, 4}, {3, 4, 0}};
    const bool ta = (i & 1) != 0, tb = (i & 2) != 0;
    if (i / 4 >= OP_COUNT_OF(sizes)) {
        return false;
    }
    const int64_t m = sizes[i / 4][0], p = sizes[i / 4][1], q = 2 * sizes[i / 4][2];
    c->attrs = OP_ATTRS(c->arena, ct_attrs_matmul, ta, tb);
    op_add_f(c, 0.3, 2, ta ? (const int64_t[]){p, m} : (const int64_t[]){m, p});
    op_add_f(c, 0.3, 2, tb ? (const int64_t[]){q, p} : (const int64_t[]){p, q});
    return true;
}

static inline bool op_case_elementwise(op_case *c, int i)
{
    static const op_shape shapes[] = {{1, {1}}, {1, {7}}, {3, {3, 5, 11}}, {1, {64}}, {1, {1025}}, {2, {0, 3}}, {0, {0}}};
    if (i >= OP_COUNT_OF(shapes)) {
        return false;
    }
    const int32_t n = ct_op_row(c->op)->n_in_min;
    if (c->op == CT_OP_scale) {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_scale, i % 2 == 0 ? 0.1 : -3.0);
    }
    for (int32_t k = 0; k < n; k++) {
        op_add_f(c, 2.0, shapes[i].ndim, shapes[i].dims);
    }
    return true;
}

static inline bool op_case_cast(op_case *c, int i)
{
    static const ct_dtype to[] = {CT_DTYPE_F32, CT_DTYPE_BF16, CT_DTYPE_F64};
    static const int64_t sizes[] = {1, 37, 1030, 0};
    if (i >= OP_COUNT_OF(to) * OP_COUNT_OF(sizes)) {
        return false;
    }
    c->attrs = OP_ATTRS(c->arena, ct_attrs_cast, (int64_t)to[i % OP_COUNT_OF(to)]);
    const ct_tensor *a = op_add_f(c, 3.0, 1, &sizes[i / OP_COUNT_OF(to)]);
    static const double special[] = {1.00390625, 1.01171875, (double)INFINITY, -(double)INFINITY, (double)NAN, -0.0, 1e-40, 3.4e38};
    for (int k = 0; ct_dtype_is_float(a->dtype) && k < OP_COUNT_OF(special) && op_numel(a) > 8; k++) {
        op_set(a, k, special[k]);
    }
    return true;
}

static inline bool op_case_transpose(op_case *c, int i)
{
    static const struct {
        op_shape shape;
        int64_t perm[CT_MAX_NDIM];
    } rows[] = {{{2, {3, 5}}, {1, 0}}, {{4, {2, 3, 4, 5}}, {0, 2, 1, 3}}, {{3, {3, 4, 5}}, {2, 0, 1}},
                {{2, {0, 3}}, {1, 0}}, {{1, {9}}, {0}},                   {{3, {65, 2, 70}}, {2, 1, 0}}};
    if (i >= OP_COUNT_OF(rows)) {
        return false;
    }
    const int32_t n = rows[i].shape.ndim;
    c->attrs = OP_ATTRS(c->arena, ct_attrs_transpose, {n, op_keep(c->arena, rows[i].perm, (size_t)n * sizeof(int64_t))});
    op_add_f(c, 1.0, n, rows[i].shape.dims);
    return true;
}

static inline bool op_case_slice(op_case *c, int i)
{
    static const struct {
        op_shape full;
        int64_t dim, start, len;
    } rows[] = {{{2, {5, 7}}, 0, 1, 3},    {{3, {2, 6, 3}}, 1, 2, 4}, {{2, {4, 9}}, 1, 8, 1},
                {{3, {2, 3, 5}}, 2, 0, 5}, {{2, {4, 3}}, 0, 2, 0},    {{2, {0, 3}}, 1, 1, 2}};
    if (i >= OP_COUNT_OF(rows)) {
        return false;
    }
    op_shape shape = rows[i].full;
    if (c->op == CT_OP_slice) {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_slice, rows[i].dim, rows[i].start, rows[i].len);
    } else {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_slice_grad, rows[i].dim, rows[i].start, shape.dims[rows[i].dim]);
        shape.dims[rows[i].dim] = rows[i].len;
    }
    op_add_f(c, 1.0, shape.ndim, shape.dims);
    return true;
}

static inline bool op_case_concat(op_case *c, int i)
{
    static const struct {
        op_shape shape;
        int64_t dim, sizes[3];
        int n;
    } rows[] = {{{2, {0, 5}}, 0, {1, 2, 3}, 3}, {{3, {2, 0, 3}}, 1, {4, 0, 1}, 3}, {{2, {3, 0}}, 1, {7, 1, 0}, 2}, {{1, {0}}, 0, {5, 0, 0}, 1}};
    if (i >= OP_COUNT_OF(rows)) {
        return false;
    }
    c->attrs = OP_ATTRS(c->arena, ct_attrs_concat, rows[i].dim);
    for (int k = 0; k < rows[i].n; k++) {
        op_shape shape = rows[i].shape;
        shape.dims[rows[i].dim] = rows[i].sizes[k];
        op_add_f(c, 1.0, shape.ndim, shape.dims);
    }
    return true;
}

static inline bool op_case_rmsnorm(op_case *c, int i)
{
    static const op_shape shapes[] = {{2, {3, 5}}, {3, {2, 3, 64}}, {2, {5, 257}}, {2, {1, 1}}, {2, {0, 8}}, {1, {16}}, {2, {70, 128}}};
    const int n = OP_COUNT_OF(shapes);
    if (i >= (c->op == CT_OP_rmsnorm ? n : 2 * n)) {
        return false;
    }
    const op_shape *s = &shapes[i % n];
    const int64_t d = s->dims[s->ndim - 1];
    const double eps = i % 2 == 0 ? 1e-5 : 1e-2;
    const bool has_addend = i >= n;
    if (c->op == CT_OP_rmsnorm) {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_rmsnorm, eps);
        op_add_f(c, 1.5, s->ndim, s->dims);
        op_add_f(c, 1.0, 1, &d);
        return true;
    }
    op_add_f(c, 1.0, s->ndim, s->dims);
    const ct_tensor *x = op_add_f(c, 1.5, s->ndim, s->dims);
    op_add_f(c, 1.0, 1, &d);
    const ct_tensor *rstd = op_add(c, CT_DTYPE_F32, false, s->ndim - 1, s->dims);
    for (int64_t t = 0, rows = op_numel(rstd); t < rows; t++) {
        double sum = 0.0;
        for (int64_t j = 0; j < d; j++) {
            sum += op_get(x, t * d + j) * op_get(x, t * d + j);
        }
        op_set(rstd, t, 1.0 / sqrt(sum / (double)d + eps));
    }
    if (has_addend) {
        op_add_f(c, 1.0, s->ndim, s->dims);
    }
    return true;
}

static inline void op_add_rope_table(op_case *c, int64_t length, int64_t half)
{
    const ct_tensor *table = op_add(c, CT_DTYPE_F32, false, OP_DIMS(length, half, 2));
    for (int64_t i = 0; i < length * half; i++) {
        const double angle = (double)(i / half) / pow(10000.0, (double)(i % half) / (double)half);
        op_set(table, 2 * i, cos(angle));
        op_set(table, 2 * i + 1, sin(angle));
    }
}

static inline bool op_case_rope(op_case *c, int i)
{
    static const struct {
        int64_t x[4], length;
        bool inverse;
        int32_t bad;
    } rows[] = {{{2, 5, 3, 8}, 9, false, -2}, {{2, 5, 3, 8}, 9, true, -2},  {{1, 1, 1, 2}, 1, false, -2}, {{1, 33, 2, 64}, 40, false, -2},
                {{2, 7, 5, 6}, 8, true, -2},  {{2, 0, 3, 8}, 9, false, -2}, {{1, 3, 1, 4}, 5, false, 5},  {{1, 3, 1, 4}, 5, false, -1}};
    if (i >= OP_COUNT_OF(rows) || (c->op == CT_OP_rope_rows && c->f != CT_DTYPE_F32) || (c->op == CT_OP_rotary_mul && rows[i].bad != -2)) {
        return false;
    }
    const int64_t *d = rows[i].x;
    if (c->op != CT_OP_rope_rows) {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_rope, rows[i].inverse);
        op_add_f(c, 1.0, 4, d);
    }
    if (c->op == CT_OP_rotary_mul) {
        op_add_named(c, CT_DTYPE_F32, 0.7, OP_DIMS(d[0], d[1], d[3]));
        op_add_named(c, CT_DTYPE_F32, 0.7, OP_DIMS(d[0], d[1], d[3]));
        return true;
    }
    const ct_tensor *pos = op_add_ids(c, (uint64_t)rows[i].length, 2, d);
    if (rows[i].bad != -2) {
        op_set(pos, 2, (double)rows[i].bad);
    }
    op_add_rope_table(c, rows[i].length, d[3] / 2);
    return true;
}

/* Heads of 8, 2, 64, 6 and 36 elements: whole vectors, parts of one, both. */
static inline bool op_case_qkv_rope(op_case *c, int i)
{
    static const struct {
        int64_t tokens[2], heads, kv_heads, h, length;
        int32_t bad;
    } rows[] = {{{2, 5}, 3, 1, 8, 9, -2}, {{1, 1}, 1, 1, 2, 1, -2},  {{1, 33}, 4, 2, 64, 40, -2}, {{2, 7}, 2, 2, 6, 8, -2},
                {{3, 4}, 5, 5, 36, 7, -2}, {{2, 0}, 3, 1, 8, 9, -2}, {{1, 3}, 1, 1, 4, 5, 5},     {{1, 3}, 1, 1, 4, 5, -1}};
    if (i >= OP_COUNT_OF(rows)) {
        return false;
    }
    const int64_t *t = rows[i].tokens, heads = rows[i].heads, kv_heads = rows[i].kv_heads, h = rows[i].h;
    if (c->op == CT_OP_qkv_rope) {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_qkv_rope, heads, kv_heads);
        op_add_f(c, 1.0, OP_DIMS(t[0], t[1], (heads + 2 * kv_heads) * h));
    } else {
        for (int k = 0; k < 3; k++) {
            op_add_f(c, 1.0, OP_DIMS(t[0], t[1], k == 0 ? heads : kv_heads, h));
        }
    }
    const ct_tensor *pos = op_add_ids(c, (uint64_t)rows[i].length, 2, t);
    if (rows[i].bad != -2) {
        op_set(pos, 2, (double)rows[i].bad);
    }
    op_add_rope_table(c, rows[i].length, h / 2);
    return true;
}

static inline bool op_case_swiglu(op_case *c, int i)
{
    static const op_shape shapes[] = {{1, {2}}, {2, {3, 14}}, {3, {2, 3, 34}}, {2, {5, 128}}, {2, {0, 6}}, {2, {3, 0}}, {2, {2, 2070}}};
    if (i >= OP_COUNT_OF(shapes)) {
        return false;
    }
    op_shape y = shapes[i];
    y.dims[y.ndim - 1] /= 2;
    if (c->op == CT_OP_swiglu_grad) {
        op_add_f(c, 2.0, y.ndim, y.dims);
    }
    op_add_f(c, 2.0, shapes[i].ndim, shapes[i].dims);
    return true;
}

static inline bool op_case_loss(op_case *c, int i)
{
    static const struct {
        int64_t x[3], vocab, chunks;
        double std;
        int32_t label; /* -2: random, some ignored; -3: and some elsewhere, with the whole's lse; -100: all ignored; else the last label */
    } rows[] = {{{1, 1, 1}, 1, 1, 1.0, -2},  {{2, 3, 5}, 7, 1, 1.0, -2},   {{2, 3, 5}, 7, 4, 1.0, -2},   {{1, 33, 64}, 130, 2, 0.3, -2},
                {{1, 4, 8}, 9, 2, 1.0, -100}, {{1, 0, 8}, 9, 1, 1.0, -2},  {{1, 5, 16}, 50, 3, 3.0, -2}, {{1, 3, 4}, 5, 1, 1.0, 5},
                {{1, 3, 4}, 5, 1, 1.0, -1},   {{3, 21, 17}, 65, 5, 1.0, -2}, {{1, 9, 16}, 50, 3, 1.0, -3},
                {{2, 17, 40}, 33, 2, 1.0, -3}, {{1, 1, 3}, 1, 1, 1.0, -3}, {{1, 3, 4}, 5, 1, 1.0, CT_ID_ELSEWHERE}};
    if (i >= OP_COUNT_OF(rows)) {
        return false;
    }
    c->attrs = OP_ATTRS(c->arena, ct_attrs_loss, rows[i].chunks);
    op_add_f(c, rows[i].std, 3, rows[i].x);
    op_add_f(c, 1.0, 2, (const int64_t[]){rows[i].vocab, rows[i].x[2]});
    const ct_tensor *labels = op_add_ids(c, (uint64_t)rows[i].vocab, 2, rows[i].x);
    const int64_t n = op_numel(labels);
    for (int64_t t = 0; t < n; t++) {
        if (rows[i].label == -100 || ((rows[i].label == -2 || rows[i].label == -3) && t % 5 == 1)) {
            op_set(labels, t, -100.0);
        } else if (rows[i].label == -3 && t % 3 == 0) {
            op_set(labels, t, (double)CT_ID_ELSEWHERE);
        }
    }
    if (rows[i].label != -100 && rows[i].label != -2 && rows[i].label != -3) {
        op_set(labels, n - 1, (double)rows[i].label);
    }
    op_set(op_add_named(c, CT_DTYPE_F32, 1.0, OP_DIMS(1)), 0, n > 0 ? 1.0 / (double)n : 1.0);
    if (rows[i].label == -3) { /* of a vocabulary some rows larger: above each token's own */
        const ct_tensor *lse = op_add_named(c, CT_DTYPE_F32, 0.3, 2, rows[i].x);
        for (int64_t t = 0; t < n; t++) {
            double sum = 0.0;
            for (int64_t v = 0; v < rows[i].vocab; v++) {
                double dot = 0.0;
                for (int64_t j = 0; j < rows[i].x[2]; j++) {
                    dot += op_get(&c->in[0], t * rows[i].x[2] + j) * op_get(&c->in[1], v * rows[i].x[2] + j);
                }
                sum += exp(dot);
            }
            op_set(lse, t, (double)(float)(log(sum) + 0.1 + fabs(op_get(lse, t))));
        }
    }
    return true;
}

static inline bool op_case_local_ids(op_case *c, int i)
{
    static const int64_t rows[][2] = {{0, 9}, {9, 9}, {18, 2}, {5, 1}};
    if (i >= OP_COUNT_OF(rows)) {
        return false;
    }
    c->attrs = OP_ATTRS(c->arena, ct_attrs_local_ids, rows[i][0], rows[i][1]);
    const ct_tensor *ids = op_add_ids(c, 20, OP_DIMS(3, 7));
    op_set(ids, 4, -100.0);
    op_set(ids, 5, (double)CT_ID_ELSEWHERE);
    return true;
}

static inline bool op_case_lse(op_case *c, int i)
{
    static const int64_t sizes[][4] = {{1, 1, 1, 1}, {2, 3, 5, 7}, {1, 33, 64, 130}, {1, 5, 16, 50}, {1, 0, 8, 9}, {3, 21, 17, 65}};
    if (i >= OP_COUNT_OF(sizes) || (c->op == CT_OP_lse_merge && c->f != CT_DTYPE_F32)) {
        return false;
    }
    if (c->op == CT_OP_lse_merge) {
        op_add_named(c, CT_DTYPE_F32, 4.0, OP_DIMS(sizes[i][3], sizes[i][0], sizes[i][1]));
        return true;
    }
    c->attrs = OP_ATTRS(c->arena, ct_attrs_loss, 1 + i);
    op_add_f(c, 1.0, 3, sizes[i]);
    op_add_f(c, 1.0, OP_DIMS(sizes[i][3], sizes[i][2]));
    return true;
}

static inline bool op_case_scalars(op_case *c, int i)
{
    static const int64_t lengths[] = {1, 7, 4095, 4097, 10000, 0};
    static const double clips[][3] = {{4.0, 1.0, 1.0},      {100.0, 2.5, 1.0}, {0.01, 2.5, 1.0},      {NAN, 1.0, 1.0},
                                      {INFINITY, 1.0, 1.0}, {4.0, NAN, 1.0},   {4.0, -INFINITY, 1.0}, {0.0, 1.0, 0.5}};
    if (c->op == CT_OP_sumsq) {
        static const int64_t leaves[][2] = {{64, 64 * 33}, {4, 4 * 4097}, {6, 12}};
        const int32_t leaf = i - OP_COUNT_OF(lengths);
        if (leaf >= OP_COUNT_OF(leaves)) {
            return false;
        }
        c->attrs = OP_ATTRS(c->arena, ct_attrs_sumsq, leaf < 0 ? 1 : leaves[leaf][0]);
        op_add_f(c, 1.0, 1, leaf < 0 ? &lengths[i] : &leaves[leaf][1]);
        return true;
    }
    if (c->f != CT_DTYPE_F64 || i >= (c->op == CT_OP_add_n ? 9 : OP_COUNT_OF(clips))) {
        return false;
    }
    if (c->op == CT_OP_add_n) {
        for (int k = 0; k <= i; k++) {
            op_add_f(c, pow(10.0, (double)k), OP_DIMS(i == 8 ? 1 + k : 1));
        }
        return true;
    }
    c->attrs = OP_ATTRS(c->arena, ct_attrs_clip, clips[i][2]);
    op_add_data(c, CT_DTYPE_F64, true, &clips[i][0], OP_DIMS(1));
    op_add_data(c, CT_DTYPE_F64, true, &clips[i][1], OP_DIMS(1));
    return true;
}

static inline bool op_case_adamw(op_case *c, int i)
{
    static const struct {
        ct_dtype g, state; /* COUNT: f */
        int64_t step, n;
        float coef;
        int32_t go;
    } rows[] = {{CT_DTYPE_COUNT, CT_DTYPE_COUNT, 1, 37, 1.0f, 1}, {CT_DTYPE_COUNT, CT_DTYPE_COUNT, 1000, 37, 0.25f, 1},
                {CT_DTYPE_F32, CT_DTYPE_F32, 3, 130, 0.5f, 1},    {CT_DTYPE_F32, CT_DTYPE_BF16, 7, 64, 1.0f, 1},
                {CT_DTYPE_COUNT, CT_DTYPE_COUNT, 5, 37, 1.0f, 0}, {CT_DTYPE_COUNT, CT_DTYPE_COUNT, 0, 37, 1.0f, 1},
                {CT_DTYPE_COUNT, CT_DTYPE_COUNT, 2, 0, 1.0f, 1},  {CT_DTYPE_COUNT, CT_DTYPE_COUNT, 2, 4133, 1.0f, 1},
                {CT_DTYPE_BF16, CT_DTYPE_COUNT, 4, 1100, 0.5f, 1}};
    if (i >= OP_COUNT_OF(rows)) {
        return false;
    }
    const int64_t n = rows[i].n, cut = n / 3, end = n - n / 10;
    const ct_dtype g = rows[i].g == CT_DTYPE_COUNT ? c->f : rows[i].g, state = rows[i].state == CT_DTYPE_COUNT ? c->f : rows[i].state;
    double *hyper = op_keep(c->arena, (const double[]){0.9, 0.8, 0.95, 0.999, 1e-8, 1e-6, 0.1, 0.0, 0.3, 0.0}, 10 * sizeof(double));
    c->attrs = OP_ATTRS(c->arena, ct_attrs_adamw, OP_LIST(c->arena, 6, 0, cut, 1, cut, end, 0), {2, hyper}, {2, hyper + 2},
                        {2, hyper + 4}, {2, hyper + 6}, {i % 2 == 1 ? 2 : 0, hyper + 8});
    op_add_f(c, 1.0, 1, &n);
    const ct_tensor *grad = op_add(c, g, true, 1, &n);
    op_fill_normal(c, grad, 0.1);
    op_fill_normal(c, op_add(c, state, true, 1, &n), 0.1);
    const ct_tensor *v = op_add(c, state, true, 1, &n);
    op_fill_normal(c, v, 0.1);
    for (int64_t k = 0; k < n; k++) {
        op_set(v, k, op_get(v, k) * op_get(v, k));
    }
    if (rows[i].go == 0) {
        op_set(grad, 2, NAN);
    }
    op_add_data(c, CT_DTYPE_F64, false, (const double[]){8e-4, 1e-2}, OP_DIMS(2));
    op_add_data(c, CT_DTYPE_I64, false, &rows[i].step, OP_DIMS(1));
    op_add_data(c, CT_DTYPE_F32, false, &rows[i].coef, OP_DIMS(1));
    op_add_i32(c, rows[i].go);
    return true;
}

/* momentum and descend: SGD with and without nesterov, Muon's share, elements in no segment, a step that is no step. */
static inline bool op_case_descent(op_case *c, int i)
{
    static const struct {
        ct_dtype g, p; /* COUNT: f */
        int64_t n;
        int32_t go;
    } rows[] = {{CT_DTYPE_COUNT, CT_DTYPE_COUNT, 37, 1}, {CT_DTYPE_F32, CT_DTYPE_BF16, 130, 1}, {CT_DTYPE_BF16, CT_DTYPE_F32, 1100, 1},
                {CT_DTYPE_COUNT, CT_DTYPE_COUNT, 37, 0}, {CT_DTYPE_COUNT, CT_DTYPE_COUNT, 0, 1}, {CT_DTYPE_COUNT, CT_DTYPE_COUNT, 4133, 1}};
    if (i >= OP_COUNT_OF(rows)) {
        return false;
    }
    const int64_t n = rows[i].n, cut = n / 3, end = n - n / 10;
    const float coef = 0.25F;
    const ct_dtype g = rows[i].g == CT_DTYPE_COUNT ? c->f : rows[i].g, p = rows[i].p == CT_DTYPE_COUNT ? c->f : rows[i].p;
    double *h = op_keep(c->arena, (const double[]){0.9, 0.95, 1.0, 0.05, 0.1, 0.0}, 6 * sizeof(double));
    op_add_f(c, 1.0, 1, &n);
    op_add_named(c, g, 0.5, 1, &n);
    if (c->op == CT_OP_momentum) {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_momentum, OP_LIST(c->arena, 6, 0, cut, 1, cut, end, 0), {2, h}, {2, h + 2}, {2, h + 4},
                            OP_LIST(c->arena, 2, i % 2, 1));
        op_add_named(c, p, 1.0, 1, &n);
        op_add_data(c, CT_DTYPE_F32, false, &coef, OP_DIMS(1));
        op_add_i32(c, rows[i].go);
        return true;
    }
    c->attrs = OP_ATTRS(c->arena, ct_attrs_descend, OP_LIST(c->arena, 6, 0, cut, 1, cut, end, 0), {2, h + 4}, {2, h});
    op_add_data(c, CT_DTYPE_F64, false, (const double[]){8e-4, 1e-2}, OP_DIMS(2));
    op_add_i32(c, rows[i].go);
    if (i % 2 == 0) {
        op_add_data(c, CT_DTYPE_F32, false, &coef, OP_DIMS(1));
    }
    return true;
}

/* Wide, tall, square, one row, one element; a matrix of zeros; gaps between; no matrix at all; no turn at all. */
static inline bool op_case_newton_schulz(op_case *c, int i)
{
    static const struct {
        int64_t n, n_matrices, matrices[12], steps;
    } rows[] = {{40, 2, {2, 3, 5, 0, 20, 4, 2, 1}, 1}, {40, 2, {2, 3, 5, 0, 20, 4, 2, 1}, 5}, {30, 3, {0, 1, 7, 0, 8, 1, 1, 1, 10, 4, 4, 0}, 2},
                {16, 0, {0}, 5}, {12, 1, {0, 3, 4, 0}, 0}, {0, 0, {0}, 5}};
    if (i >= OP_COUNT_OF(rows)) {
        return false;
    }
    const int64_t k = rows[i].n_matrices;
    double *scale = op_keep(c->arena, (const double[]){1.0, 0.5, 2.0}, 3 * sizeof(double));
    double *abc = op_keep(c->arena, (const double[]){3.4445, -4.775, 2.0315, 3.4445, -4.775, 2.0315, 1e-7, 1e-3}, 8 * sizeof(double));
    c->attrs = OP_ATTRS(c->arena, ct_attrs_newton_schulz, {4 * k, op_keep(c->arena, rows[i].matrices, (size_t)(4 * k) * sizeof(int64_t))}, {k, scale},
                        OP_LIST(c->arena, 2, rows[i].steps, rows[i].steps), {2, abc + 6}, {6, abc});
    const ct_tensor *u = op_add_f(c, 0.1, 1, &rows[i].n);
    for (int64_t z = 0; i == 1 && z < 8; z++) {
        op_set(u, 20 + z, 0.0); /* its second matrix */
    }
    return true;
}

static inline bool op_case_update(op_case *c, int i)
{
    static const ct_dtype x_types[] = {CT_DTYPE_F32, CT_DTYPE_BF16, CT_DTYPE_F64};
    static const struct {
        int64_t cache[4], rows;
        int32_t start;
    } appends[] = {{{2, 6, 2, 3}, 2, 1}, {{2, 6, 2, 3}, 4, 4}, {{1, 6, 2, 3}, 2, 6}, {{1, 6, 1, 8}, 0, 2}, {{1, 6, 1, 8}, 1, -1}, {{2, 6, 2, 3}, 6, 0}};
    if (c->op == CT_OP_accumulate) {
        const int64_t n = i % 2 == 0 ? 37 : 0;
        if (i >= 4 * OP_COUNT_OF(x_types)) {
            return false;
        }
        op_add_f(c, 1.0, 1, &n);
        op_add_named(c, x_types[i / 4], 1.0, 1, &n);
        op_add_i32(c, i / 2 % 2);
        return true;
    }
    if (!ct_dtype_is_float(c->f) || c->f == CT_DTYPE_F16 || i >= OP_COUNT_OF(appends)) {
        return false;
    }
    const int64_t *d = appends[i].cache;
    op_add_f(c, 1.0, 4, d);
    op_add_f(c, 1.0, OP_DIMS(d[0], appends[i].rows, d[2], d[3]));
    op_add_i32(c, appends[i].start);
    return true;
}

static inline bool op_case_flat(op_case *c, int i)
{
    if (c->op == CT_OP_fill) {
        static const op_shape shapes[] = {{1, {1}}, {3, {3, 5, 7}}, {1, {0}}, {0, {0}}};
        if (i >= OP_COUNT_OF(shapes)) {
            return false;
        }
        c->attrs = OP_ATTRS(c->arena, ct_attrs_fill, i == 1 ? 3.0 : 0.0, (int64_t)c->f,
                            {shapes[i].ndim, op_keep(c->arena, shapes[i].dims, sizeof shapes[i].dims)});
        return true;
    }
    if (i >= 2) {
        return false;
    }
    if (i == 0) {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_flat_concat, OP_LIST(c->arena, 3, 0, 9, 12), 20);
        op_add_f(c, 1.0, OP_DIMS(2, 4));
        op_add_f(c, 1.0, OP_DIMS(3));
        op_add_f(c, 1.0, OP_DIMS(1, 5, 1));
    } else {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_flat_concat, OP_LIST(c->arena, 1, 2), 5);
        op_add_f(c, 1.0, OP_DIMS(0));
    }
    return true;
}

#include "op/cases_attention.h"

static inline bool op_standard_case(ct_arena *arena, uint64_t seed, int32_t op, ct_dtype f, int i, op_case *out)
{
    *out = op_case_begin(arena, seed, op, f, NULL);
    switch (op) {
    case CT_OP_embedding:
    case CT_OP_embedding_grad:
        return op_case_embedding(out, i);
    case CT_OP_local_ids:
        return op_case_local_ids(out, i);
    case CT_OP_linear_lse:
    case CT_OP_lse_merge:
        return op_case_lse(out, i);
    case CT_OP_matmul:
        return op_case_matmul(out, i);
    case CT_OP_matmul_swiglu:
        return op_case_matmul_swiglu(out, i);
    case CT_OP_add:
    case CT_OP_mul:
    case CT_OP_scale:
    case CT_OP_silu_mul:
    case CT_OP_silu_mul_grad:
        return op_case_elementwise(out, i);
    case CT_OP_cast:
        return op_case_cast(out, i);
    case CT_OP_transpose:
        return op_case_transpose(out, i);
    case CT_OP_slice:
    case CT_OP_slice_grad:
        return op_case_slice(out, i);
    case CT_OP_concat:
        return op_case_concat(out, i);
    case CT_OP_rmsnorm:
    case CT_OP_rmsnorm_grad:
        return op_case_rmsnorm(out, i);
    case CT_OP_rope:
    case CT_OP_rope_rows:
    case CT_OP_rotary_mul:
        return op_case_rope(out, i);
    case CT_OP_qkv_rope:
    case CT_OP_qkv_rope_grad:
        return op_case_qkv_rope(out, i);
    case CT_OP_swiglu:
    case CT_OP_swiglu_grad:
        return op_case_swiglu(out, i);
    case CT_OP_sdpa:
    case CT_OP_sdpa_grad:
    case CT_OP_sdpa_tnd:
    case CT_OP_sdpa_tnd_grad:
        return op_case_attention(out, i);
    case CT_OP_segment_ends:
        return op_case_segment_ends(out, i);
    case CT_OP_linear_cross_entropy:
    case CT_OP_linear_cross_entropy_eval:
        return op_case_loss(out, i);
    case CT_OP_sumsq:
    case CT_OP_add_n:
    case CT_OP_clip_coef:
        return op_case_scalars(out, i);
    case CT_OP_adamw:
        return op_case_adamw(out, i);
    case CT_OP_momentum:
    case CT_OP_descend:
        return op_case_descent(out, i);
    case CT_OP_newton_schulz:
        return op_case_newton_schulz(out, i);
    case CT_OP_accumulate:
    case CT_OP_kv_append:
        return op_case_update(out, i);
    case CT_OP_flat_concat:
    case CT_OP_fill:
        return op_case_flat(out, i);
    default:
        fail_msg("op %d has no standard cases: add them to op/cases.h", (int)op);
        return false;
    }
}

#endif
