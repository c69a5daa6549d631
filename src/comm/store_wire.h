/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of docs/formats/store.md. All integers are little-endian. */
#ifndef CTI_COMM_STORE_WIRE_H
#define CTI_COMM_STORE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "comm/bootstrap.h"

#define CTI_WIRE_MAGIC "ctstore1" /* 8 bytes, no NUL */
#define CTI_WIRE_HELLO_BYTES 32u
#define CTI_WIRE_MAX_KEY (CT_STORE_MAX_KEY_BYTES + 16u)                       /* with the restart's prefix */
#define CTI_WIRE_MAX_REQUEST (1u + 2u + CTI_WIRE_MAX_KEY + CT_STORE_MAX_VALUE_BYTES) /* after the size field */
#define CTI_WIRE_MAX_REPLY (1u + CT_STORE_MAX_VALUE_BYTES)

enum { CTI_WIRE_SET = 1, CTI_WIRE_GET = 2, CTI_WIRE_ADD = 3, CTI_WIRE_BYE = 4 };

enum {
    CTI_WIRE_OK = 0,
    CTI_WIRE_TIMEOUT = 1,
    CTI_WIRE_REFUSED = 2, /* the greeting; a text follows */
    CTI_WIRE_STATE = 3,   /* the key holds a value, not a counter */
    CTI_WIRE_FULL = 4
};

static inline void cti_wire_put(unsigned char *p, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++) {
        p[i] = (unsigned char)(value >> (8 * i));
    }
}

static inline uint64_t cti_wire_get(const unsigned char *p, int n_bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < n_bytes; i++) {
        value |= (uint64_t)p[i] << (8 * i);
    }
    return value;
}

#endif
