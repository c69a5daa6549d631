/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `backend`: what every backend offers, and what callers ask of one. Built-in backends are below this room and
 * not known to it; who starts the program (train, cli) hands them in as a list:
 *
 *     const ct_backend *const built_in[] = {ct_backend_cpu(), ct_backend_ref()};
 *     const ct_backend *backend;
 *     CT_TRY(ct_backend_find(built_in, "cpu", &backend, err));           // checked; ERR_USAGE names those there are
 *     const ct_kernel *kernel;
 *     CT_TRY(ct_kernel_find(backend, node->op, cti_node_dtype(graph, node), &kernel, err));
 *
 *   ctitan/backend.h      ct_backend, ct_kernel, ct_launch, ct_tensor (public)
 *   backend/find.c        ct_backend_check, ct_backend_find, ct_kernel_find, cti_node_dtype, cti_launch_dtype
 *   backend/matrix.c      the support matrix as text
 *   backend/host_memory.h device memory of host backends
 *   backend/ref/          the oracle       backend/cpu/  the fast one       backend/null/  computes nothing       backend/npu/  Ascend
 */
#ifndef CTI_BACKEND_BACKEND_H
#define CTI_BACKEND_BACKEND_H

#include "backend/host_memory.h"
#include "base/str.h"
#include "ctitan/backend.h"
#include "ctitan/graph.h"

/* The backend keeps its contract: ABI number and size, a name, every function, and for each op a kernel with dtypes or a reason, not
 * both. ERR_PLUGIN naming the backend and what is wrong. */
CT_MUST_CHECK ct_status ct_backend_check(const ct_backend *backend, ct_err *err);

/* The backend of that name in a list that ends with NULL, checked. ERR_USAGE naming those there are. */
CT_MUST_CHECK ct_status ct_backend_find(const ct_backend *const *list, const char *name, const ct_backend **out_backend, ct_err *err);

/* The kernel of an op for its dtype `f`. ERR_UNSUPPORTED naming backend, op and dtype, with the table's reason. */
CT_MUST_CHECK ct_status ct_kernel_find(const ct_backend *backend, int32_t op, ct_dtype f, const ct_kernel **out_kernel,
                                       ct_err *err);

/* The op's dtype `f`: that of its first float input; without one, of its first float output; else of its first input, or of its first
 * output. For a node of a graph, and for a launch. */
ct_dtype cti_node_dtype(const ct_graph *graph, const ct_node *node);
ct_dtype cti_launch_dtype(const ct_launch *launch);

/* The row of an op, built in or registered, whose `run` may be NULL; NULL: an op that is not there, or has none for this backend. */
const ct_kernel *cti_backend_kernel(const ct_backend *backend, int32_t op);
/* Name of an op; NULL for one that is not there. */
const char *cti_backend_op_name(int32_t op);

/* One line per op, registered ones too, one column per backend: its dtypes, or "-" with the reason below the table. */
void ct_backend_matrix(const ct_backend *const *list, int32_t n, cti_str *out);

#endif
