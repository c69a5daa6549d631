/* SPDX-License-Identifier: Apache-2.0 */
/* matmul and matmul_swiglu: the op's shapes and flags as strides of the shared product. Sums in f32, by blocks of CTI_KC in order. c may be y. */
#include <inttypes.h>

#include "backend/cpu/isa/cpu_gemm.h"
#include "backend/cpu/isa/cpu_kernel.h"
#include "base/pool.h"

size_t CTI_CPU_WORKSPACE(matmul)(const ct_launch *shapes)
{
    (void)shapes;
    return CTI_CPU_FN(gemm_scratch_bytes)(cti_pool_threads());
}

/* y = op(a) op(b) of the op `name`, its c left out. */
static ct_status product_of(const char *name, const ct_launch *launch, cti_cpu_gemm *out, ct_err *err)
{
    const ct_attrs_matmul *attrs = launch->attrs;
    CT_TRY(check_floats(name, "input", launch->in, launch->n_in, err));
    CT_TRY(check_floats(name, "output", launch->out, launch->n_out, err));
    CT_TRY(check_scratch(name, launch, CTI_CPU_FN(gemm_scratch_bytes)(1), err));
    const ct_tensor *a = &launch->in[0], *b = &launch->in[1], *y = &launch->out[0];
    const int64_t a_rows = t_rows(a), a_cols = t_last(a), b_rows = t_rows(b), b_cols = t_last(b);
    *out = (cti_cpu_gemm){
        .m = attrs->ta ? a_cols : a_rows,
        .k = attrs->ta ? a_rows : a_cols,
        .n = attrs->tb ? b_rows : b_cols,
        .a = {a->data, a->dtype, attrs->ta ? 1 : a_cols, attrs->ta ? a_cols : 1},
        .b = {b->data, b->dtype, attrs->tb ? 1 : b_cols, attrs->tb ? b_cols : 1},
        .y = y->data,
        .y_dtype = y->dtype,
        .ldy = attrs->tb ? b_rows : b_cols,
    };
    if ((attrs->tb ? b_cols : b_rows) != out->k) {
        return CT_FAIL(err, CT_ERR_SHAPE, "cpu: %s sums over %" PRId64 " elements of a and %" PRId64 " of b", name, out->k,
                       attrs->tb ? b_cols : b_rows);
    }
    return CT_OK;
}

ct_status CTI_CPU_FN(matmul)(const ct_launch *launch, ct_err *err)
{
    cti_cpu_gemm g;
    CT_TRY(product_of("matmul", launch, &g, err));
    const bool has_c = launch->n_in > 2 && !t_absent(&launch->in[2]);
    if (has_c && launch->in[2].dtype != launch->out[0].dtype) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "cpu: matmul's c is %s, its output %s", ct_dtype_name(launch->in[2].dtype),
                       ct_dtype_name(launch->out[0].dtype));
    }
    g.c0 = has_c ? launch->in[2].data : NULL;
    CTI_CPU_FN(gemm)(&g, launch->workspace, launch->workspace_bytes);
    return CT_OK;
}

size_t CTI_CPU_WORKSPACE(matmul_swiglu)(const ct_launch *shapes)
{
    return CTI_CPU_WORKSPACE(matmul)(shapes);
}

static void swiglu_tile(void *ctx, int64_t i0, int64_t m, int64_t j0, int64_t n)
{
    const ct_launch *launch = ctx;
    CTI_CPU_FN(swiglu_tile)(&launch->out[0], &launch->out[1], i0, m, j0, n);
}

ct_status CTI_CPU_FN(matmul_swiglu)(const ct_launch *launch, ct_err *err)
{
    cti_cpu_gemm g;
    CT_TRY(product_of("matmul_swiglu", launch, &g, err));
    g.halves_done = swiglu_tile;
    g.ctx = (void *)launch; /* only read */
    CTI_CPU_FN(gemm)(&g, launch->workspace, launch->workspace_bytes);
    return CT_OK;
}
