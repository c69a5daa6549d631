/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `ir`: the graph as a container. It holds values, nodes, their order, scopes and names,
 * and knows nothing of what an op means; shape rules, the verifier, the printer and the parser need the op
 * list and live in `ops`.
 *
 *   ctitan/graph.h   the public noun
 *   ir/graph.c       values, nodes, order, scopes, names
 *
 * Values and nodes are cut one by one from the graph's arena, so their addresses last as long as the graph
 * (the public header promises less, to keep the choice open). The arrays of pointers grow by doubling in the
 * allocator's memory. */
#ifndef CTI_IR_IR_H
#define CTI_IR_IR_H

#include "ctitan/graph.h"

/* The program that new nodes get. */
ct_program_id cti_graph_program(const ct_graph *graph);
const char *cti_value_kind_name(ct_value_kind kind); /* "param" */
bool cti_same_dims(const ct_value *a, const ct_value *b);

#endif
