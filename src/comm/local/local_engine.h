/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of one process: no sockets, no peers; collectives of a group of one are copies (comm_calls.c makes them). */
#ifndef CT_COMM_LOCAL_ENGINE_H
#define CT_COMM_LOCAL_ENGINE_H

#include "comm/engine.h"

const ct_comm_engine *ct_comm_local_engine(void); /* static storage */

#endif
