/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: autodiff ops ir base */
/* docs/ops.md is made from the tables; this test fails where it has drifted. CT_UPDATE_DOCS=1 writes it anew.
 */
#include "unit/base_test.h"

#include "autodiff/autodiff.h"
#include "base/file.h"
#include "base/str.h"
#include "ops/ops.h"

static const char intro[] =
    "<!-- Made from CT_OP_LIST and the gradient list by tests/unit/autodiff_docs.c (CT_UPDATE_DOCS=1); do "
    "not edit. -->\n"
    "# Ops\n"
    "\n"
    "Every node of a graph is one of these. What each computes, with shapes and sources, is in "
    "`include/ctitan/op_list.h`.\n"
    "\n"
    "- **inputs**: how many; **outputs**: how many, or *attrs* where the attributes say.\n"
    "- **attributes**: name, kind and default.\n"
    "- **properties**: *elementwise* outputs may be written over inputs, and output 0 of what works *in place*;\n"
    "  the optional last input of an op with an *addend* is added to output 0; a *view* has no kernel; an *update* "
    "overwrites inputs; a *collective* is run by a\n"
    "  communication engine; *expensive* outputs are kept by selective checkpointing; a *matmul* is counted "
    "among its matmuls; *attention* reads q, k, v;\n"
    "  two runs of an *unordered* op may differ in bits; inputs of a *join* may lie in its output already.\n"
    "- **sharding**: how placements follow on one mesh axis:\n"
#define HOW(NAME, name, how) "  - *" #name "*: " how ";\n"
    CT_SHARD_LIST(HOW)
    "- **class**: how a backend's kernel may differ from the reference: *exact* bits, *reordered* sums, "
    "*approximate* functions.\n"
    "- **gradient**: *yes*, or why not.\n"
    "\n"
    "| op | inputs | outputs | attributes | properties | sharding | class | gradient |\n"
    "|---|---|---|---|---|---|---|---|\n";

static void add_flags(cti_str *s, uint32_t flags)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {{CT_OP_ELEMENTWISE, "elementwise"}, {CT_OP_VIEW, "view"},
                 {CT_OP_UPDATE, "update"},           {CT_OP_COLLECTIVE, "collective"},
                 {CT_OP_UNORDERED, "unordered"},     {CT_OP_EXPENSIVE, "expensive"},
                 {CT_OP_MATMUL, "matmul"},           {CT_OP_ATTENTION, "attention"},
                 {CT_OP_JOIN, "join"},
                 {CT_OP_IN_PLACE, "in place"},       {CT_OP_ADDEND, "addend"},
                 {CT_OP_HELPER, "helper"}};
    const char *sep = "";
    for (size_t i = 0; i < N_OF(names); i++) {
        if ((flags & names[i].bit) != 0) {
            cti_str_printf(s, "%s%s", sep, names[i].name);
            sep = ", ";
        }
        flags &= ~names[i].bit;
    }
    assert_int_equal(flags, 0); /* a new flag needs a name here and a line above */
}

static void add_attrs(cti_str *s, const ct_op *op)
{
    static const char *const kinds[] = {
#define KIND(NAME, type, metavar) #NAME,
        CT_FIELD_KIND_LIST(KIND)
#undef KIND
    };
    for (int32_t i = 0; i < op->n_attr_fields; i++) {
        const ct_field *f = &op->attr_fields[i];
        cti_str_printf(s, "%s`%s` %s", i == 0 ? "" : ", ", f->name, kinds[f->kind]);
        if (f->default_text[0] != '\0') {
            cti_str_printf(s, " = %s", f->default_text);
        }
    }
}

static void add_row(cti_str *s, const ct_op *op)
{
    cti_str_printf(s, "| `%s` | ", op->name);
    if (op->n_in_min == op->n_in_max) {
        cti_str_printf(s, "%d | ", (int)op->n_in_min);
    } else {
        cti_str_printf(s, "%d to %d | ", (int)op->n_in_min, (int)op->n_in_max);
    }
    if (op->n_out < 0) {
        cti_str_add(s, "attrs | ");
    } else {
        cti_str_printf(s, "%d | ", (int)op->n_out);
    }
    add_attrs(s, op);
    cti_str_add(s, " | ");
    add_flags(s, op->flags);
    const char *why_not = cti_grad_why_not(op->id);
    cti_str_printf(s, " | %s | %s | %s |\n", ct_shard_class_name(op->shard), ct_tolerance_name(op->tolerance),
                   why_not == NULL ? "yes" : why_not);
}

static void docs(void **state)
{
    (void)state;
    ct_err err = {0};
    cti_str want = {.alloc = ct_alloc_system()};
    cti_str_add(&want, intro);
    for (int32_t i = 0; i < CT_OP_COUNT; i++) {
        add_row(&want, ct_op_row(i));
    }
    assert_int_equal(cti_str_check(&want, &err), CT_OK);
    const char *path = CT_SOURCE_DIR "/docs/ops.md";
    if (getenv("CT_UPDATE_DOCS") != NULL) {
        assert_int_equal(cti_file_write_atomic(path, want.data, want.len, &err), CT_OK);
    }
    char *have = NULL;
    size_t size = 0;
    if (cti_file_read(ct_alloc_system(), path, 0, &have, &size, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    if (size != want.len || memcmp(have, want.data, size) != 0) {
        fail_msg(
            "docs/ops.md has drifted from the op list; run this test with CT_UPDATE_DOCS=1 and commit it");
    }
    ct_alloc_free(ct_alloc_system(), have);
    cti_str_deinit(&want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(docs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
