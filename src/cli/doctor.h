/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of `ctitan doctor`: a list of findings, and the checks that add to it. */
#ifndef CTI_CLI_DOCTOR_H
#define CTI_CLI_DOCTOR_H

#include "base/base.h"

typedef enum cti_verdict { CTI_VERDICT_OK, CTI_VERDICT_WARN, CTI_VERDICT_FAIL } cti_verdict;

typedef struct cti_doctor {
    const ct_alloc *alloc;
    json_t *findings;  /* owns: {"verdict", "what", "found", "do"} */
    int n_warnings, n_failures;
    int64_t timeout_ms; /* of asking one library */
    bool wants_npu;    /* NPUs must be there: asked for by name */
    bool has_ascend;   /* anything of Ascend is: a driver, CANN, a device file */
    const char *root;  /* the folder before /proc, /dev and /usr/local/Ascend; "" but in tests (CTITAN_DOCTOR_ROOT) */
} cti_doctor;

/* One line. what: static, "driver"; todo: NULL where nothing is to be done. */
void cti_doctor_add(cti_doctor *d, cti_verdict verdict, const char *what, const char *todo, const char *found, ...) CT_PRINTF(5, 6);
/* The text of a file of at most 64 KiB below d->root; NULL where it cannot be read. Free with ct_alloc_free. */
char *cti_doctor_read(const cti_doctor *d, const char *path);
/* d->root before path. */
const char *cti_doctor_path(const cti_doctor *d, const char *path, char *buf, size_t size);

/* doctor_npu.c: driver, device files, CANN, its kernel package, stubs, HCCL's variables and ports. */
void cti_doctor_check_npu(cti_doctor *d);
/* doctor_host.c: CPU, huge pages, shared memory, engines, limits. */
void cti_doctor_check_host(cti_doctor *d);
/* Whether `text` is what HCCL takes for a list of ports: "auto", or "60000", "60000-60050,61000". *out_n: how many ports, 0 for auto. */
bool cti_doctor_parse_ports(const char *text, int *out_n);

#endif
