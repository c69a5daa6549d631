/* SPDX-License-Identifier: Apache-2.0 */
/* The backend that computes nothing: its kernels do nothing, its memory is numbers that nobody may read or write. What a plan costs can
 * be counted on any machine with it. Host reads of its memory give zeros. */
#ifndef CTI_BACKEND_NULL_NULL_H
#define CTI_BACKEND_NULL_NULL_H

#include "ctitan/backend.h"

const ct_backend *ct_backend_null(void);

#endif
