/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at devices without being held up by them: a vendor's library is asked in a process of its own, which is ended when it takes too long. For
 * `ctitan devices` and `ctitan doctor`. */
#ifndef CTI_CLI_PROBE_H
#define CTI_CLI_PROBE_H

#include "base/json.h"

/* What is asked; runs in a child of one thread. Its answer (a new reference) is handed over as text; NULL: none. */
typedef json_t *(*cti_probe_fn)(const ct_alloc *alloc);

/* *out_answer: a new reference, for the caller to drop. ERR_TIMEOUT where it did not end in timeout_ms, ERR_BACKEND where it died; both say so. */
CT_MUST_CHECK ct_status cti_probe(const ct_alloc *alloc, const char *what, cti_probe_fn fn, int64_t timeout_ms, json_t **out_answer, ct_err *err);

/* {"devices": [{"kind", "index", "name", "health", "memory_used_bytes", "memory_total_bytes", "bus_id", "processes": [{"pid", "memory_bytes"}]}],
 *  "why_not": text}; what is not known is null. */
json_t *cti_probe_npus(const ct_alloc *alloc);
json_t *cti_probe_nvidia(const ct_alloc *alloc);
/* {"root", "version", "libraries", "error", "hccl_error", "n_devices", "soc"}: CANN and HCCL as they load. */
json_t *cti_probe_cann(const ct_alloc *alloc);
/* {"gloo": null or why it does not load, "mpi": the same} */
json_t *cti_probe_engines(const ct_alloc *alloc);

enum { CTI_PROBE_TIMEOUT_MS = 30000 };
/* Whether argv[*i] is --timeout-seconds; its value goes to *out_ms, or an error to *out_st and err. */
bool cti_probe_timeout_option(int argc, char **argv, int *i, int64_t *out_ms, ct_status *out_st, ct_err *err);

#endif
