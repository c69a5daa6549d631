/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of oneDNN, where the build found it: dnnl_sgemm for f32, its matmul primitive for bf16. */
#ifndef CTI_BENCH_PEER_ONEDNN_H
#define CTI_BENCH_PEER_ONEDNN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct peer_product peer_product;

/* "oneDNN 2.6.3", or NULL where this build has none. */
const char *peer_onednn_version(void);

/* c [m, n] = op(a) op(b), row-major, op the transpose where ta or tb; all of one type, f32 or bf16. NULL: this oneDNN or this CPU
 * cannot. The memory is the caller's and stays where it is. */
peer_product *peer_onednn_create(bool is_bf16, bool ta, bool tb, int64_t m, int64_t n, int64_t k, void *a, void *b, void *c);
void peer_onednn_run(void *product);
void peer_onednn_destroy(peer_product *product);

#endif
