/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend must have, and how a caller finds one and its kernels. */
#include <string.h>

#include "backend/backend.h"
#include "ops/ops.h"

const char *cti_backend_op_name(int32_t op)
{
    const ct_op *row = ct_op_row(op);
    return row != NULL ? row->name : NULL;
}

const ct_kernel *cti_backend_kernel(const ct_backend *backend, int32_t op)
{
    if (op >= 0 && op < CT_OP_COUNT) {
        return &backend->kernels[op];
    }
    const ct_op *row = ct_op_row(op);
    for (int32_t i = 0; row != NULL && i < row->n_kernels; i++) {
        if (strcmp(row->kernels[i].backend, backend->name) == 0) {
            return &row->kernels[i].kernel;
        }
    }
    return row != NULL ? backend->any : NULL;
}

static ct_status check_functions(const ct_backend *b, ct_err *err)
{
    const struct {
        const char *name;
        bool is_there;
    } functions[] = {
        {"device_open", b->device_open != NULL},       {"device_close", b->device_close != NULL},
        {"device_facts", b->device_facts != NULL},     {"memory_alloc", b->memory_alloc != NULL},
        {"memory_free", b->memory_free != NULL},       {"copy_to_device", b->copy_to_device != NULL},
        {"copy_to_host", b->copy_to_host != NULL},     {"synchronize", b->synchronize != NULL},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (!functions[i].is_there) {
            return CT_FAIL(err, CT_ERR_PLUGIN, "backend '%s' has no %s()", b->name, functions[i].name);
        }
    }
    return CT_OK;
}

ct_status ct_backend_check(const ct_backend *b, ct_err *err)
{
    if (b == NULL) {
        return CT_FAIL(err, CT_ERR_PLUGIN, "there is no backend where one was promised");
    }
    if (b->abi != CT_BACKEND_ABI || b->size_bytes != sizeof(ct_backend)) {
        return CT_FAIL(err, CT_ERR_PLUGIN, "a backend was built for interface %u of %u bytes, this program has %u of %zu", b->abi,
                       b->size_bytes, (unsigned)CT_BACKEND_ABI, sizeof(ct_backend));
    }
    if (b->name == NULL || b->name[0] == '\0' || b->kernels == NULL) {
        return CT_FAIL(err, CT_ERR_PLUGIN, "a backend has no %s", b->kernels == NULL ? "kernel table" : "name");
    }
    CT_TRY(check_functions(b, err));
    const int n_of_device = (b->device_count != NULL) + (b->stream != NULL) + (b->event_record != NULL) + (b->stream_wait != NULL);
    if (n_of_device != 0 && n_of_device != 4) {
        return CT_FAIL(err, CT_ERR_PLUGIN, "backend '%s' has %d of device_count(), stream(), event_record() and stream_wait(): all or none are wanted",
                       b->name, n_of_device);
    }
    if (b->any != NULL && (b->any->run == NULL || b->any->dtypes == 0)) {
        return CT_FAIL(err, CT_ERR_PLUGIN, "backend '%s': its kernel of registered ops has no %s", b->name, b->any->run == NULL ? "function" : "dtype");
    }
    for (int32_t op = 0; op < CT_OP_COUNT; op++) {
        const ct_kernel *k = &b->kernels[op];
        if ((k->run != NULL) == (k->why_not != NULL)) {
            return CT_FAIL(err, CT_ERR_PLUGIN, "backend '%s': op %s has %s", b->name, cti_backend_op_name(op),
                           k->run != NULL ? "both a kernel and a reason for having none" : "neither a kernel nor a reason");
        }
        if (k->run != NULL && k->dtypes == 0) {
            return CT_FAIL(err, CT_ERR_PLUGIN, "backend '%s': the kernel of op %s takes no dtype", b->name,
                           cti_backend_op_name(op));
        }
    }
    return CT_OK;
}

ct_status ct_backend_find(const ct_backend *const *list, const char *name, const ct_backend **out_backend, ct_err *err)
{
    char known[256] = "";
    size_t len = 0;
    for (int32_t i = 0; list[i] != NULL; i++) {
        CT_TRY(ct_backend_check(list[i], err));
        if (strcmp(list[i]->name, name) == 0) {
            *out_backend = list[i];
            return CT_OK;
        }
        const int added = snprintf(known + len, sizeof known - len, "%s%s", len > 0 ? ", " : "", list[i]->name);
        len = added > 0 && (size_t)added < sizeof known - len ? len + (size_t)added : len;
    }
    return CT_FAIL(err, CT_ERR_USAGE, "--device: this build has no backend '%.100s'; there are %s", name, known);
}

/* "f32, bf16" */
static void dtype_names(uint32_t dtypes, char *buf, size_t size)
{
    size_t len = 0;
    buf[0] = '\0';
    for (int d = 0; d < (int)CT_DTYPE_COUNT; d++) {
        if ((dtypes & (1u << d)) != 0) {
            const int added = snprintf(buf + len, size - len, "%s%s", len > 0 ? ", " : "", ct_dtype_name((ct_dtype)d));
            len = added > 0 && (size_t)added < size - len ? len + (size_t)added : len;
        }
    }
}

/* Of an op that is not there, or whose plug-in has kernels for other backends. */
static ct_status no_kernel(const ct_backend *backend, int32_t op, ct_err *err)
{
    const ct_op *row = ct_op_row(op);
    if (row == NULL) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "backend '%s' has no kernel for op %d, which is neither built in nor registered", backend->name, (int)op);
    }
    char have[256] = "";
    size_t len = 0;
    for (int32_t i = 0; i < row->n_kernels && len < sizeof have; i++) {
        const int added = snprintf(have + len, sizeof have - len, "%s%s", len > 0 ? ", " : "", row->kernels[i].backend);
        len += added > 0 ? (size_t)added : 0;
    }
    return CT_FAIL(err, CT_ERR_UNSUPPORTED, "backend '%s' has no kernel for op %s: its plug-in brings some for %s", backend->name, row->name, have);
}

ct_status ct_kernel_find(const ct_backend *backend, int32_t op, ct_dtype f, const ct_kernel **out_kernel, ct_err *err)
{
    const ct_kernel *k = cti_backend_kernel(backend, op);
    if (k == NULL) {
        return no_kernel(backend, op, err);
    }
    if (k->run == NULL) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "backend '%s' has no kernel for op %s: %s", backend->name,
                       cti_backend_op_name(op), k->why_not);
    }
    if ((k->dtypes & (1u << f)) == 0) {
        char have[128];
        dtype_names(k->dtypes, have, sizeof have);
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "backend '%s': op %s has no kernel for %s; it has: %s", backend->name,
                       cti_backend_op_name(op), ct_dtype_name(f), have);
    }
    *out_kernel = k;
    return CT_OK;
}

ct_dtype cti_node_dtype(const ct_graph *graph, const ct_node *node)
{
    ct_dtype any = CT_DTYPE_F32;
    bool is_any = false;
    for (int pass = 0; pass < 2; pass++) {
        const ct_value_id *ids = pass == 0 ? node->in : node->out;
        const int32_t n = pass == 0 ? node->n_in : node->n_out;
        for (int32_t i = 0; i < n; i++) {
            if (ids[i] == CT_NO_VALUE) {
                continue;
            }
            const ct_dtype dtype = ct_graph_value_c(graph, ids[i])->dtype;
            if (ct_dtype_is_float(dtype)) {
                return dtype;
            }
            any = is_any ? any : dtype;
            is_any = true;
        }
    }
    return any;
}

ct_dtype cti_launch_dtype(const ct_launch *launch)
{
    ct_dtype any = CT_DTYPE_F32;
    bool is_any = false;
    for (int pass = 0; pass < 2; pass++) {
        const ct_tensor *tensors = pass == 0 ? launch->in : launch->out;
        const int32_t n = pass == 0 ? launch->n_in : launch->n_out;
        for (int32_t i = 0; i < n; i++) {
            if (tensors[i].ndim < 0) {
                continue;
            }
            if (ct_dtype_is_float(tensors[i].dtype)) {
                return tensors[i].dtype;
            }
            any = is_any ? any : tensors[i].dtype;
            is_any = true;
        }
    }
    return any;
}
