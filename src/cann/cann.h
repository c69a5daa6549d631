/* SPDX-License-Identifier: Apache-2.0 */
/* CANN's C API, opened at run time: nothing of CANN is needed to build, and a machine without it only lacks the backend.
 *
 *     const cti_cann *cann;
 *     CT_TRY(cti_cann_load(&cann, err));                 // libraries found, aclInit() done; once a process
 *     aclError e = cann->aclrtSetDevice(0);
 *     if (e != 0) { return cti_acl_fail(cann, e, err, "aclrtSetDevice of device %d", 0); }
 *     const cti_hccl *hccl;
 *     CT_TRY(cti_hccl_load(&hccl, err));                 // libhccl.so, beside the others
 *
 *   cann/cann_types.h  types, numbers, structures     cann/cann_lists.h  the functions, one row each
 *   cann/cann_load.c   libraries and symbols           cann/cann_error.c  codes, CANN's own words, our hints
 *   cann/cann_soc.c    what is known of each chip      cann/cann_visible.c  the list of visible devices
 *
 * Where libraries are sought: below $ASCEND_HOME_PATH, then $ASCEND_TOOLKIT_HOME, then /usr/local/Ascend/cann and
 * /usr/local/Ascend/ascend-toolkit/latest, in each in lib64 and in <arch>-linux/lib64; then by their plain names, as the loader finds them. The
 * first place that has the runtime (libascendcl.so, libacl_rt.so) is asked for the others before their plain names. Libraries in a folder named
 * `devlib` or `stub` are for linking only and are refused. Handles stay open for ever: CANN leaves handlers that run at exit. Of the environment
 * this room reads those two variables, ASCEND_CUSTOM_OPP_PATH (its op_api/lib/libcust_opapi.so comes before all other operators) and, for
 * messages, ASCEND_RT_VISIBLE_DEVICES. Any thread may call anything here. */
#ifndef CTI_CANN_CANN_H
#define CTI_CANN_CANN_H

#include "cann/cann_lists.h"
#include "ctitan/status.h"

typedef aclnnStatus (*cti_aclnn_run)(void *workspace, uint64_t workspace_bytes, aclOpExecutor *executor, aclrtStream stream);

#define CTI_CANN_MEMBER(need, result, name, params) result(*name) params;
#define CTI_ACLNN_MEMBER(name, ...)                                                                     \
    aclnnStatus (*name##_size)(__VA_ARGS__, uint64_t *workspace_bytes, aclOpExecutor **executor);      \
    cti_aclnn_run name;

typedef struct cti_cann { /* members have CANN's names; operators: Mm_size() is aclnnMmGetWorkspaceSize(), Mm() is aclnnMm() */
    CTI_ACL_LIST(CTI_CANN_MEMBER)
    CTI_ACL_META_LIST(CTI_CANN_MEMBER)
    CTI_ACLNN_LIST(CTI_ACLNN_MEMBER)
} cti_cann;

typedef struct cti_hccl {
    CTI_HCCL_LIST(CTI_CANN_MEMBER)
} cti_hccl;

/* Loads at the first call; later calls give the same answer, an error too. ERR_NOT_FOUND where there is no CANN, naming where it was
 * sought; ERR_UNSUPPORTED where a library lacks a function that must be there; ERR_BACKEND where aclInit() fails. */
CT_MUST_CHECK ct_status cti_cann_load(const cti_cann **out_cann, ct_err *err);
/* The same for HCCL; loads CANN first. */
CT_MUST_CHECK ct_status cti_hccl_load(const cti_hccl **out_hccl, ct_err *err);

/* Files that were opened, one a line, for `doctor`; "" before loading. Static storage. */
const char *cti_cann_libraries(void);
/* The root that they were found below: "/usr/local/Ascend/cann"; "" where the loader found them by name. */
const char *cti_cann_root(void);
/* "CANN 8.1.RC1", as far as the libraries tell; "" where they do not. buf: at least 128 bytes. */
const char *cti_cann_version(const cti_cann *cann, char *buf, size_t size);
/* Whether such a text names a release that this room is written for, 8.0 to 9.x. false, too, for "ACL 1.14.0", which names none. */
bool cti_cann_is_known_version(const char *version);

/* How many operators the installed CANN lacks of the *out_n that the backend calls; their names into buf, ", " between. */
int cti_cann_count_missing(const cti_cann *cann, int *out_n, char *buf, size_t size);

/* ERR_UNSUPPORTED: the installed CANN has no operator `op` ("Mm"), for an op of ours ("matmul"); names both functions and the libraries tried. */
ct_status cti_cann_missing(const char *op, const char *for_what, ct_err *err);

/* An error of CANN as a ct_err: "<what>: <code> (<meaning>): <CANN's own words>; <hint>". The words are taken once from aclGetRecentErrMsg of this
 * thread. Status: ERR_MEMORY, ERR_TIMEOUT, else ERR_BACKEND. code is never 0. */
ct_status cti_acl_fail(const cti_cann *cann, aclError code, ct_err *err, const char *what, ...) CT_PRINTF(4, 5);
ct_status cti_aclnn_fail(const cti_cann *cann, aclnnStatus code, ct_err *err, const char *what, ...) CT_PRINTF(4, 5);
/* ERR_PEER for what another rank did, ERR_TIMEOUT, ERR_MEMORY, else ERR_BACKEND. */
ct_status cti_hccl_fail(const cti_hccl *hccl, HcclResult code, ct_err *err, const char *what, ...) CT_PRINTF(4, 5);

/* "device memory ran out"; NULL: not known. */
const char *cti_acl_meaning(int code);
/* What to do about a code, or about a text code such as "EI0020" in CANN's words; NULL: nothing is known. */
const char *cti_acl_hint(int code);
const char *cti_cann_text_hint(const char *words);

/* Everything "not set": what HcclCommConfigInit() does. */
void cti_hccl_config_init(HcclCommConfig *config);

/* How many devices a value of ASCEND_RT_VISIBLE_DEVICES names; -1 where it is none that CANN takes whole (ascending numbers, commas, nothing else):
 * of such a list CANN keeps a part, or sees no device. */
int cti_npu_count_visible(const char *list);

/* Peak FLOP/s of a chip by its full name (aclrtGetSocName), dense, one device; 0 where it is not known. f32 is that of the cube in float32.
 * false: the name is not known. Sources stand at the table in cann_soc.c. */
bool cti_npu_peaks(const char *soc, double *out_bf16, double *out_f32);
/* Memory of a device of that chip in bytes, for plans without one; 0: not known. */
int64_t cti_npu_memory_bytes(const char *soc);
/* false for chips that have no bfloat16 (910A and its kin, 310P). Unknown names: true. */
bool cti_npu_has_bf16(const char *soc);

#endif
