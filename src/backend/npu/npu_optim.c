/* SPDX-License-Identifier: Apache-2.0 */
/* adamw, momentum, descend, chunk by chunk so that temporaries stay small. Learning rates and step numbers are the host's; coef and go are known here
 * from clip_coef's copy of them, for which the first update of a step waits: the one wait of a step. All is computed in f32. */
#include <math.h>

#include "backend/npu/npu_table.h"
#include "ops/ops.h"

enum { CHUNK = 1 << 24 }; /* elements */

/* n elements of a tensor from `at` on. */
static cti_npu_view piece(const ct_tensor *t, int64_t at, int64_t n)
{
    return cti_npu_part(cti_npu_of(t), at, NPU_DIMS(n));
}

/* The piece in f32 where it may be changed: itself, or a temporary that holds it. */
static cti_npu_view work_on(cti_npu_seq *s, cti_npu_view v)
{
    return cti_npu_f32(s, v);
}

static void work_back(cti_npu_seq *s, cti_npu_view to, cti_npu_view worked)
{
    if (to.dtype != ACL_FLOAT) {
        cti_npu_cast(s, to, worked);
    }
}

/* A temporary in f32 with the piece's values times `factor`. */
static cti_npu_view times(cti_npu_seq *s, cti_npu_view v, double factor)
{
    const cti_npu_view to = cti_npu_temp(s, ACL_FLOAT, v.ndim, v.dims);
    if (v.dtype != ACL_FLOAT) {
        cti_npu_cast(s, to, v);
        v = to;
    }
    NPU_CALL(s, Muls, NPU_T(s, v), NPU_F(s, factor), NPU_T(s, to));
    return to;
}

/* ---- adamw ------------------------------------------------------------------------------------------------------- */

typedef struct adamw_group {
    double lr, beta1, beta2, eps, decay, l2, coef;
} adamw_group;

static void adamw_chunk(cti_npu_seq *s, const ct_launch *l, const adamw_group *g, cti_npu_view step, int64_t at, int64_t n)
{
    const size_t mark = s->at;
    const cti_npu_view p = piece(&l->out[0], at, n), m = piece(&l->out[1], at, n), v = piece(&l->out[2], at, n), grad = piece(&l->in[1], at, n);
    const cti_npu_view p32 = work_on(s, p), m32 = work_on(s, m), v32 = work_on(s, v);
    const bool is_plain = s->mode != CTI_NPU_SIZE && g->coef == 1.0 && g->l2 == 0.0;
    const cti_npu_view g32 = is_plain ? cti_npu_f32(s, grad) : times(s, grad, g->coef);
    if (g->l2 != 0.0) {
        NPU_CALL(s, InplaceAdd, NPU_T(s, g32), NPU_T(s, p32), NPU_F(s, g->l2));
    }
    NPU_CALL(s, ApplyAdamWV2, NPU_T(s, p32), NPU_T(s, m32), NPU_T(s, v32), NULL, NPU_T(s, g32), NPU_T(s, step), (float)g->lr, (float)g->beta1,
             (float)g->beta2, (float)g->decay, (float)g->eps, false, false);
    work_back(s, p, p32);
    work_back(s, m, m32);
    work_back(s, v, v32);
    s->at = mark;
}

/* CANN's kernel adds 1 to the step it is given. */
void cti_npu_op_adamw(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_adamw *a = l->attrs;
    const bool is_sizing = s->mode == CTI_NPU_SIZE;
    const double *lr = cti_npu_host(s, &l->in[4]);
    const int64_t *step = cti_npu_host(s, &l->in[5]);
    const float *coef = cti_npu_host(s, &l->in[6]);
    const int32_t *go = cti_npu_host(s, &l->in[7]);
    if (s->st != CT_OK || (go != NULL && *go == 0)) {
        return;
    }
    if (step != NULL && *step < 1) {
        NPU_FAIL(s, CT_ERR_RANGE, "adamw: step is %lld; steps count from 1", (long long)*step);
        return;
    }
    int64_t groups = cti_npu_count(&l->in[4]);
    const int64_t lists[] = {a->beta1.n, a->beta2.n, a->eps.n, a->weight_decay.n, a->l2.n > 0 ? a->l2.n : groups};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        groups = cti_min_i64(groups, lists[i]);
    }
    cti_npu_stop(s, cti_check_segments("adamw", &a->segments, cti_npu_count(&l->in[0]), groups, s->err));
    const cti_npu_view before = cti_npu_temp(s, ACL_INT64, NPU_DIMS(1));
    NPU_CALL(s, Adds, NPU_T(s, cti_npu_flat(&l->in[5])), cti_npu_scalar(s, ACL_INT64, -1), cti_npu_scalar(s, ACL_INT64, 1), NPU_T(s, before));
    for (int64_t i = 0; i + 2 < a->segments.n && s->st == CT_OK; i += 3) {
        const int64_t *seg = a->segments.items + i, k = seg[2];
        const adamw_group g = {is_sizing ? 1e-3 : lr[k], a->beta1.items[k], a->beta2.items[k], a->eps.items[k], a->weight_decay.items[k],
                               a->l2.n > 0 ? a->l2.items[k] : 0.0, is_sizing ? 1.0 : (double)*coef};
        for (int64_t at = seg[0]; at < seg[1]; at += CHUNK) {
            adamw_chunk(s, l, &g, before, at, cti_min_i64(CHUNK, seg[1] - at));
        }
    }
}

/* ---- momentum, descend ------------------------------------------------------------------------------------------- */

void cti_npu_op_momentum(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_momentum *a = l->attrs;
    const ct_tensor *m = &l->out[0], *d = &l->out[1];
    const float *coef = cti_npu_host(s, &l->in[3]);
    const int32_t *go = cti_npu_host(s, &l->in[4]);
    cti_npu_stop(s, cti_check_segments("momentum", &a->segments, cti_npu_count(m), a->momentum.n, s->err));
    cti_npu_zero(s, cti_npu_flat(d));
    if (s->st != CT_OK || (go != NULL && *go == 0)) {
        return;
    }
    for (int64_t i = 0; i + 2 < a->segments.n; i += 3) {
        const int64_t *seg = a->segments.items + i;
        const double mu = a->momentum.items[seg[2]], share = a->share.items[seg[2]], decay = a->weight_decay.items[seg[2]];
        for (int64_t at = seg[0]; at < seg[1]; at += CHUNK) {
            const int64_t n = cti_min_i64(CHUNK, seg[1] - at);
            const size_t mark = s->at;
            const cti_npu_view kept = piece(m, at, n), out = piece(d, at, n), x = times(s, piece(&l->in[1], at, n), share * (coef != NULL ? (double)*coef : 1.0));
            if (decay != 0.0) {
                const cti_npu_view p32 = cti_npu_f32(s, piece(&l->in[2], at, n));
                NPU_CALL(s, InplaceAdd, NPU_T(s, x), NPU_T(s, p32), NPU_F(s, share * decay));
            }
            const cti_npu_view m32 = work_on(s, kept);
            NPU_CALL(s, InplaceMuls, NPU_T(s, m32), NPU_F(s, mu));
            NPU_CALL(s, InplaceAdd, NPU_T(s, m32), NPU_T(s, x), NPU_F(s, 1.0));
            work_back(s, kept, m32);
            if (a->nesterov.items[seg[2]] != 0) {
                NPU_CALL(s, Add, NPU_T(s, x), NPU_T(s, m32), NPU_F(s, mu), NPU_T(s, out));
            } else {
                cti_npu_cast(s, out, m32);
            }
            s->at = mark;
        }
    }
}

void cti_npu_op_descend(cti_npu_seq *s, const ct_launch *l)
{
    const ct_attrs_descend *a = l->attrs;
    const ct_tensor *p = &l->out[0];
    const bool has_coef = l->n_in > 4 && l->in[4].ndim >= 0;
    const double *lr = cti_npu_host(s, &l->in[2]);
    const int32_t *go = cti_npu_host(s, &l->in[3]);
    const float *coef = has_coef ? cti_npu_host(s, &l->in[4]) : NULL;
    if (s->st != CT_OK || (go != NULL && *go == 0)) {
        return;
    }
    cti_npu_stop(s, cti_check_segments("descend", &a->segments, cti_npu_count(p), a->weight_decay.n, s->err));
    for (int64_t i = 0; i + 2 < a->segments.n && s->st == CT_OK; i += 3) {
        const int64_t *seg = a->segments.items + i;
        const double rate = lr != NULL ? lr[seg[2]] : 1e-3, keep = 1.0 - rate * a->weight_decay.items[seg[2]] - rate * a->l2.items[seg[2]];
        for (int64_t at = seg[0]; at < seg[1]; at += CHUNK) {
            const int64_t n = cti_min_i64(CHUNK, seg[1] - at);
            const size_t mark = s->at;
            const cti_npu_view to = piece(p, at, n), p32 = work_on(s, to), d32 = cti_npu_f32(s, piece(&l->in[1], at, n));
            NPU_CALL(s, InplaceMuls, NPU_T(s, p32), NPU_F(s, keep));
            NPU_CALL(s, InplaceAdd, NPU_T(s, p32), NPU_T(s, d32), NPU_F(s, -rate * (coef != NULL ? (double)*coef : 1.0)));
            work_back(s, to, p32);
            s->at = mark;
        }
    }
}
