/* SPDX-License-Identifier: Apache-2.0 */
/* matmul: the op's shapes and flags as strides of the shared product. Sums in f32, by blocks of CTI_KC in order. c may be y. */
#include <inttypes.h>

#include "backend/cpu/isa/cpu_gemm.h"
#include "backend/cpu/isa/cpu_kernel.h"
#include "base/pool.h"

size_t CTI_CPU_WORKSPACE(matmul)(const ct_launch *shapes)
{
    (void)shapes;
    return CTI_CPU_FN(gemm_scratch_bytes)(cti_pool_threads());
}

ct_status CTI_CPU_FN(matmul)(const ct_launch *launch, ct_err *err)
{
    const ct_attrs_matmul *attrs = launch->attrs;
    CT_TRY(check_floats("matmul", "input", launch->in, launch->n_in, err));
    CT_TRY(check_floats("matmul", "output", launch->out, 1, err));
    CT_TRY(check_scratch("matmul", launch, CTI_CPU_FN(gemm_scratch_bytes)(1), err));
    const ct_tensor *a = &launch->in[0], *b = &launch->in[1], *y = &launch->out[0];
    const bool has_c = launch->n_in > 2 && !t_absent(&launch->in[2]);
    if (has_c && launch->in[2].dtype != y->dtype) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "cpu: matmul's c is %s, its output %s", ct_dtype_name(launch->in[2].dtype),
                       ct_dtype_name(y->dtype));
    }
    const int64_t a_rows = t_rows(a), a_cols = t_last(a), b_rows = t_rows(b), b_cols = t_last(b);
    const cti_cpu_gemm g = {
        .m = attrs->ta ? a_cols : a_rows,
        .k = attrs->ta ? a_rows : a_cols,
        .n = attrs->tb ? b_rows : b_cols,
        .a = {a->data, a->dtype, attrs->ta ? 1 : a_cols, attrs->ta ? a_cols : 1},
        .b = {b->data, b->dtype, attrs->tb ? 1 : b_cols, attrs->tb ? b_cols : 1},
        .c0 = has_c ? launch->in[2].data : NULL,
        .y = y->data,
        .y_dtype = y->dtype,
        .ldy = attrs->tb ? b_rows : b_cols,
    };
    if ((attrs->tb ? b_cols : b_rows) != g.k) {
        return CT_FAIL(err, CT_ERR_SHAPE, "cpu: matmul sums over %" PRId64 " elements of a and %" PRId64 " of b", g.k,
                       attrs->tb ? b_cols : b_rows);
    }
    CTI_CPU_FN(gemm)(&g, launch->workspace, launch->workspace_bytes);
    return CT_OK;
}
