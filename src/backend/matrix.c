/* SPDX-License-Identifier: Apache-2.0 */
/* The support matrix: as text. */
#include "backend/backend.h"
#include "ops/ops.h"

enum { NAME_COLUMNS = 27, BACKEND_COLUMNS = 30 };

static void cell(const ct_kernel *kernel, cti_str *out)
{
    const size_t begin = out->len;
    if (kernel == NULL || kernel->run == NULL) {
        cti_str_add_char(out, '-');
    }
    for (int d = 0; kernel != NULL && kernel->run != NULL && d < (int)CT_DTYPE_COUNT; d++) {
        if ((kernel->dtypes & (1u << d)) != 0) {
            cti_str_printf(out, "%s%s", out->len > begin ? " " : "", ct_dtype_name((ct_dtype)d));
        }
    }
    while (!out->failed && out->len < begin + BACKEND_COLUMNS) {
        cti_str_add_char(out, ' ');
    }
}

static void end_line(cti_str *out)
{
    while (!out->failed && out->len > 0 && out->data[out->len - 1] == ' ') {
        out->data[--out->len] = '\0';
    }
    cti_str_add_char(out, '\n');
}

void ct_backend_matrix(const ct_backend *const *list, int32_t n, cti_str *out)
{
    cti_str_printf(out, "%-*s", NAME_COLUMNS, "op");
    for (int32_t i = 0; i < n; i++) {
        cti_str_printf(out, "%-*s", BACKEND_COLUMNS, list[i]->name);
    }
    end_line(out);
    const int32_t n_ids = CT_OP_COUNT + CTI_MAX_REGISTERED_OPS;
    for (int32_t op = 0; op < n_ids; op++) {
        if (ct_op_row(op) == NULL) {
            continue;
        }
        cti_str_printf(out, "%-*s ", NAME_COLUMNS - 1, cti_backend_op_name(op));
        for (int32_t i = 0; i < n; i++) {
            cell(cti_backend_kernel(list[i], op), out);
        }
        end_line(out);
    }
    for (int32_t i = 0; i < n; i++) {
        for (int32_t op = 0; op < n_ids; op++) {
            const ct_kernel *kernel = cti_backend_kernel(list[i], op);
            if (ct_op_row(op) != NULL && (kernel == NULL || kernel->why_not != NULL)) {
                cti_str_printf(out, "%s: %s: %s\n", list[i]->name, cti_backend_op_name(op),
                               kernel != NULL ? kernel->why_not : "its plug-in brings no kernel for this backend");
            }
        }
    }
}
