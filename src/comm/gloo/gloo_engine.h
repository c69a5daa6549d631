/* SPDX-License-Identifier: Apache-2.0 */
/* The engine for several processes in host memory: Gloo's TCP transport, a full mesh connected through our store.
 * The interface is the one by which the store was reached, or GLOO_SOCKET_IFNAME. */
#ifndef CT_COMM_GLOO_ENGINE_H
#define CT_COMM_GLOO_ENGINE_H

#include "comm/engine.h"

const ct_comm_engine *ct_comm_gloo_engine(void); /* static storage */

#endif
