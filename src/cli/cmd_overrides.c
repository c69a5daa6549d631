/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan overrides list|show PLUGIN` and `ctitan check-overrides TARGET...`. */
#include "cli/cmd_overrides.h"

#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/ref/ref.h"
#include "base/base.h"
#include "cli/cli.h"
#include "train/override_check.h"
#include "train/override_proof.h"

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

/* What each takes the place of, and what it says of itself. */
static ct_status show(cti_env *env, const char *plugin, ct_err *err)
{
    CT_TRY(cti_plugins_load(env->plugins, plugin, err));
    const size_t len = strlen(plugin);
    const ct_override *row;
    for (size_t i = 0; (row = cti_registry_override_at(env->registry, i)) != NULL; i++) {
        if (strncmp(row->name, plugin, len) != 0 || row->name[len] != '.') {
            continue;
        }
        printf("%s: %s\n  in the place of %s%s", row->name, row->description[0] != '\0' ? row->description : "(no description)", row->target->name,
               row->is_exact ? ", exactly" : " and what is derived from it");
        for (int32_t k = 0; row->fqns != NULL && k < row->n_fqns; k++) {
            printf("%s%s", k == 0 ? ", at " : ", ", row->fqns[k]);
        }
        printf("\n");
    }
    return CT_OK;
}

static int usage(FILE *to, const char *text, int code)
{
    fprintf(to, "%s\n", text);
    return code;
}

int cti_cmd_overrides(int argc, char **argv)
{
    static const char *const text = "usage: ctitan overrides list PLUGIN\n"
                               "       ctitan overrides show PLUGIN\n\n"
                               "  list   the overrides that a plug-in has, as a list of names\n"
                               "  show   what each of them takes the place of, and what it says of itself";
    if (argc >= 2 && (cti_str_eq(argv[argc - 1], "--help") || cti_str_eq(argv[argc - 1], "-h"))) {
        return usage(stdout, text, 0);
    }
    const bool is_show = argc == 3 && cti_str_eq(argv[1], "show");
    if (argc != 3 || (!is_show && !cti_str_eq(argv[1], "list"))) {
        return usage(stderr, text, 2);
    }
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    cti_env env = {0};
    ct_status st = cti_env_create(alloc, &env, &err);
    if (st == CT_OK) {
        st = is_show ? show(&env, argv[2], &err) : list(&env, argv[2], &err);
    }
    const int code = st == CT_OK ? 0 : cti_report("overrides", st, &err);
    cti_env_deinit(alloc, &env);
    return code;
}

/* ---- check-overrides ----------------------------------------------------------------------------------------------- */

typedef struct check_args {
    const ct_backend *backend;
    const char *targets[64];
    int n_targets;
} check_args;

/* "npu" of "npu_compat.npu_attention". */
static int family_len(const char *target)
{
    return (int)strcspn(target, "_.");
}

static void print_line(const cti_proof_line *l)
{
    printf("    %-52s %-5s %10.2e %10.2e  %s%s\n", l->what, ct_dtype_name(l->dtype), l->difference, l->allowed, l->difference <= l->allowed ? "" : "DIFFERS at ",
           l->shape);
}

/* All quantities of parts; of the whole model the loss and logits, and of its gradients the one nearest to its bound or farthest above. */
static void print_unit(const cti_proof *p, const char *unit)
{
    const bool is_model = cti_str_eq(unit, "whole model");
    const cti_proof_line *worst[3] = {NULL, NULL, NULL};
    int n[3] = {0}, n_differ[3] = {0};
    printf("  %-54s %-5s %10s %10s\n", unit, "", "difference", "allowed");
    for (int32_t i = 0; i < p->n_lines; i++) {
        const cti_proof_line *l = &p->lines[i];
        const int d = l->dtype == CT_DTYPE_F32 ? 0 : l->dtype == CT_DTYPE_BF16 ? 1 : 2;
        if (!cti_str_eq(l->unit, unit)) {
            continue;
        }
        if (!is_model || !cti_starts_with(l->what, "gradient")) {
            print_line(l);
            continue;
        }
        n[d]++;
        n_differ[d] += !(l->difference <= l->allowed);
        worst[d] = worst[d] == NULL || l->difference / l->allowed > worst[d]->difference / worst[d]->allowed ? l : worst[d];
    }
    for (int d = 0; d < 3; d++) {
        if (worst[d] != NULL) {
            print_line(worst[d]);
            printf("      the worst of %d gradients, of which %d differ\n", n[d], n_differ[d]);
        }
    }
}

static void print_proof(const char *target, const cti_proof *p, const check_args *a)
{
    printf("%s: %lld node%s of llama3's debugmodel%s\n  %s\n", target, (long long)p->n_nodes, p->n_nodes == 1 ? "" : "s", p->n_nodes == 1 ? "" : "; the first:", p->first_node);
    if (!p->has_ops) {
        printf("  settings alone are replaced: there is nothing to compare\n");
        return;
    }
    printf("  on '%s', beside the stock part in double on 'ref', same inputs and weights, at 3 sizes\n", a->backend->name);
    for (int32_t i = 0; i < p->n_lines; i++) {
        bool is_new = true;
        for (int32_t k = 0; k < i; k++) {
            is_new = is_new && !cti_str_eq(p->lines[k].unit, p->lines[i].unit);
        }
        if (is_new) {
            print_unit(p, p->lines[i].unit);
        }
    }
    for (const char *at = p->skipped; *at != '\0';) {
        const size_t n = strcspn(at, "\n");
        printf("  %.*s\n", (int)n, at);
        at += n + (at[n] == '\n');
    }
    if (p->mismatch != NULL) {
        printf("  %s: checkpoints cannot be exchanged\n", p->mismatch);
    }
}

static ct_status check(const ct_alloc *alloc, const cti_env *env, const check_args *a, const char *target, bool *out_ok, ct_err *err)
{
    cti_proof *proof = NULL;
    cti_override_proof attention = {0};
    CT_TRY(cti_proof_create(alloc, env->registry, env->plugins, a->backend, ct_backend_ref(), target, &proof, err));
    print_proof(target, proof, a);
    *out_ok = proof->is_forward_equal && proof->are_gradients_equal && proof->mismatch == NULL;
    if (proof->has_ops) {
        printf("%.*s override equivalence: forward %s, gradients %s, parameters %s\n", family_len(target), target, proof->is_forward_equal ? "OK" : "DIFFERS",
               proof->are_gradients_equal ? "OK" : "DIFFER", proof->mismatch == NULL ? "OK" : "DIFFER");
    }
    const bool has_attention = proof->replaces_attention;
    cti_proof_destroy(&proof);
    if (!has_attention) {
        return CT_OK;
    }
    const ct_status st = cti_override_check(alloc, env->registry, env->plugins, a->backend, target, &attention, err);
    if (st == CT_ERR_UNSUPPORTED) { /* attention that is made of other ops: what was compared above is all there is */
        printf("  %s\n", err->message);
        *err = (ct_err){0};
        return CT_OK;
    }
    CT_TRY(st);
    printf("  %s\n  %s\n", attention.rope, attention.mask);
    printf("%.*s override equivalence: rope %s, mask %s\n", family_len(target), target, attention.is_rope_equal ? "OK" : "DIFFERS",
           attention.is_mask_equal ? "OK" : "DIFFERS");
    *out_ok = *out_ok && attention.is_rope_equal && attention.is_mask_equal;
    return CT_OK;
}

/* A name without a dot is a plug-in: all that it has. */
static ct_status check_all(const ct_alloc *alloc, cti_env *env, const check_args *a, const char *target, bool *out_ok, ct_err *err)
{
    if (strchr(target, '.') != NULL) {
        return check(alloc, env, a, target, out_ok, err);
    }
    const size_t len = strlen(target);
    const ct_override *row;
    int n = 0;
    CT_TRY(cti_plugins_load(env->plugins, target, err));
    *out_ok = true;
    for (size_t i = 0; (row = cti_registry_override_at(env->registry, i)) != NULL; i++) {
        if (strncmp(row->name, target, len) == 0 && row->name[len] == '.') {
            bool ok = false;
            printf("%s", n++ > 0 ? "\n" : "");
            CT_TRY(check(alloc, env, a, row->name, &ok, err));
            *out_ok = *out_ok && ok;
        }
    }
    return n > 0 ? CT_OK : CT_FAIL(err, CT_ERR_USAGE, "the plug-in '%s' has no overrides", target);
}

static ct_status parse_check(int argc, char **argv, check_args *a, ct_err *err)
{
    *a = (check_args){.backend = cti_backends()[0]};
    for (int i = 1; i < argc; i++) {
        if (cti_str_eq(argv[i], "--device") || cti_starts_with(argv[i], "--device=")) {
            const char *value = argv[i][8] == '=' ? argv[i] + 9 : i + 1 < argc ? argv[++i] : NULL;
            if (value == NULL) {
                return CT_FAIL(err, CT_ERR_USAGE, "--device: wanted a backend's name after it");
            }
            CT_TRY(ct_backend_find(cti_backends(), value, &a->backend, err));
        } else if (argv[i][0] == '-') {
            return CT_FAIL(err, CT_ERR_USAGE, "'%.100s' is no option: --device is", argv[i]);
        } else if (a->n_targets == (int)(sizeof a->targets / sizeof a->targets[0])) {
            return CT_FAIL(err, CT_ERR_USAGE, "more than %d targets", a->n_targets);
        } else {
            a->targets[a->n_targets++] = argv[i];
        }
    }
    return a->n_targets > 0 ? CT_OK : CT_FAIL(err, CT_ERR_USAGE, "wanted an override (plugin.name) or a plug-in; --help tells more");
}

int cti_cmd_check_overrides(int argc, char **argv)
{
    static const char *const text =
        "usage: ctitan check-overrides [--device DEVICE] TARGET...\n\n"
        "Proves overrides equal to what they replace. A target is an override (plugin.name, or 'plugin.name={\"key\": value}'), or a plug-in: all of\n"
        "its overrides. What is replaced runs forward and backward beside the stock part on the same inputs and weights, alone and in the whole model,\n"
        "at several sizes, in float32 and bfloat16 on the device (cpu; --device names another) and in double on the reference backend; each output\n"
        "and each parameter's gradient must lie as near to the stock part in double as rounding allows. Attention is also held to its rotary\n"
        "positions bit for bit, and to plain causal attention in each document.\n"
        "Parts of the model are held to the same logits of a prompt and of the tokens after it, too.\n\n"
        "Ends with 0 where all are equal, 1 where one differs (the place and the amount are told), 2 for a wrong name.";
    if (argc >= 2 && (cti_str_eq(argv[1], "--help") || cti_str_eq(argv[1], "-h"))) {
        return usage(stdout, text, 0);
    }
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    cti_env env = {0};
    check_args a;
    int code = 0;
    ct_status st = parse_check(argc, argv, &a, &err);
    if (st == CT_OK) {
        st = cti_env_create(alloc, &env, &err);
    }
    for (int i = 0; i < a.n_targets && st == CT_OK; i++) {
        bool ok = false;
        printf("%s", i > 0 ? "\n" : "");
        st = check_all(alloc, &env, &a, a.targets[i], &ok, &err);
        code = ok ? code : 1;
    }
    if (st == CT_OK && fflush(stdout) != 0) {
        st = CT_FAIL(&err, CT_ERR_IO, "standard output cannot be written");
    }
    if (st != CT_OK) {
        code = cti_report("check-overrides", st, &err);
    }
    cti_env_deinit(alloc, &env);
    return code;
}
