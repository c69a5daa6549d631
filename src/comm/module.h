/* SPDX-License-Identifier: Apache-2.0 */
/* Engines that are shared objects of their own, so that the program does not link what only some sites have.
 *
 * <prefix>/lib/ctitan/engines/NAME.so, where <prefix>/bin holds the program or <prefix>/lib the library, defines
 * `const ct_comm_engine *ct_comm_NAME_engine(void)`; it takes their functions (ct_err_set, ct_alloc_...), as plug-ins do. It is loaded when
 * asked for, and stays until the process ends.
 */
#ifndef CT_COMM_MODULE_H
#define CT_COMM_MODULE_H

#include "comm/engine.h"

/* Fails: CT_ERR_UNSUPPORTED where the module is not there or cannot be loaded, with `hint` (what to install) and the loader's words;
 *        CT_ERR_PLUGIN where it is no engine of that name. Threads: any. */
CT_MUST_CHECK ct_status cti_comm_module_load(const char *name, const char *hint, const ct_comm_engine **out_engine, ct_err *err);

#endif
