/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan overrides list PLUGIN` and `ctitan check-overrides TARGET...`. */
#include "cli/cmd_overrides.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "train/override_check.h"

static ct_status list(cti_env *env, const char *plugin, ct_err *err)
{
    CT_TRY(cti_plugins_load(env->plugins, plugin, err));
    const size_t len = strlen(plugin);
    const char *sep = "";
    printf("[");
    const ct_override *row;
    for (size_t i = 0; (row = cti_registry_override_at(env->registry, i)) != NULL; i++) {
        if (strncmp(row->name, plugin, len) == 0 && row->name[len] == '.') {
            printf("%s'%s'", sep, row->name);
            sep = ", ";
        }
    }
    printf("]\n");
    return CT_OK;
}

static int usage(FILE *to, const char *text, int code)
{
    fprintf(to, "%s\n", text);
    return code;
}

int cti_cmd_overrides(int argc, char **argv)
{
    static const char *const text = "usage: ctitan overrides list PLUGIN\n\nPrints the overrides that a plug-in has, as a list of names.";
    if (argc >= 2 && (cti_str_eq(argv[argc - 1], "--help") || cti_str_eq(argv[argc - 1], "-h"))) {
        return usage(stdout, text, 0);
    }
    if (argc != 3 || !cti_str_eq(argv[1], "list")) {
        return usage(stderr, text, 2);
    }
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    cti_env env = {0};
    ct_status st = cti_env_create(alloc, &env, &err);
    if (st == CT_OK) {
        st = list(&env, argv[2], &err);
    }
    const int code = st == CT_OK ? 0 : cti_report("overrides", st, &err);
    cti_env_deinit(alloc, &env);
    return code;
}

/* "npu" of "npu_compat.npu_attention". */
static int family_len(const char *target)
{
    return (int)strcspn(target, "_.");
}

static ct_status check(const ct_alloc *alloc, cti_env *env, const char *target, bool *out_ok, ct_err *err)
{
    cti_override_proof proof;
    CT_TRY(cti_override_check(alloc, env->registry, env->plugins, cti_backends()[0], target, &proof, err));
    printf("%s: %s\n%s: %s\n", target, proof.rope, target, proof.mask);
    printf("%.*s override equivalence: rope %s, mask %s\n", family_len(target), target, proof.is_rope_equal ? "OK" : "DIFFERS",
           proof.is_mask_equal ? "OK" : "DIFFERS");
    *out_ok = proof.is_rope_equal && proof.is_mask_equal;
    return CT_OK;
}

int cti_cmd_check_overrides(int argc, char **argv)
{
    static const char *const text =
        "usage: ctitan check-overrides TARGET...\n\n"
        "Proves each override (plugin.name) equal to what it replaces: rotary position bit for bit, attention within a\n"
        "computed bound of plain causal attention per document. Ends with 1 and the place where one differs.";
    if (argc >= 2 && (cti_str_eq(argv[1], "--help") || cti_str_eq(argv[1], "-h"))) {
        return usage(stdout, text, 0);
    }
    if (argc < 2) {
        return usage(stderr, text, 2);
    }
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    cti_env env = {0};
    int code = 0;
    ct_status st = cti_env_create(alloc, &env, &err);
    for (int i = 1; i < argc && st == CT_OK; i++) {
        bool ok = false;
        st = check(alloc, &env, argv[i], &ok, &err);
        code = ok ? code : 1;
    }
    if (st != CT_OK) {
        code = cti_report("check-overrides", st, &err);
    }
    cti_env_deinit(alloc, &env);
    return code;
}
