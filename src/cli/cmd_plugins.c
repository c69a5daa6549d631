/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan plugins [NAME...]`: which plug-ins there are, and what they add. */
#include "cli/cmd_plugins.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "ctitan/plugin.h"

/* The files of the folders, in order of search; nothing is opened. */
static ct_status list_files(const ct_alloc *alloc, const cti_env *env, ct_err *err)
{
    const char *folder;
    for (size_t i = 0; (folder = cti_plugins_folder(env->plugins, i)) != NULL; i++) {
        cti_names names = {0};
        if (!cti_path_exists(folder)) {
            continue;
        }
        CT_TRY(cti_list_dir(alloc, folder, &names, err));
        for (size_t k = 0; k < names.n; k++) {
            const size_t n = strlen(names.names[k]);
            if (n > 3 && cti_ends_with(names.names[k], ".so")) {
                printf("%.*s  %s/%s\n", (int)(n - 3), names.names[k], folder, names.names[k]);
            }
        }
        cti_names_free(alloc, &names);
    }
    return CT_OK;
}

static void print_op(const ct_op *op)
{
    printf("  op         %s, ", op->name);
    if (op->n_in_min == op->n_in_max) {
        printf("%d in, ", (int)op->n_in_min);
    } else {
        printf("%d to %d in, ", (int)op->n_in_min, (int)op->n_in_max);
    }
    printf("%d out, %s, %s, gradient: %s; ", (int)op->n_out, ct_shard_class_name(op->shard), ct_tolerance_name(op->tolerance),
           op->gradient != NULL ? "yes" : op->no_gradient);
    for (int32_t i = 0; i < op->n_kernels; i++) {
        printf("%s%s:", i > 0 ? ", " : "", op->kernels[i].backend);
        for (int d = 0; d < (int)CT_DTYPE_COUNT; d++) {
            if ((op->kernels[i].kernel.dtypes >> d & 1) != 0) {
                printf(" %s", ct_dtype_name((ct_dtype)d));
            }
        }
    }
    printf("\n");
}

static void print_added(const ct_registry *r, const cti_plugin_facts *f)
{
    for (size_t i = f->before.n_ops; i < f->after.n_ops; i++) {
        print_op(cti_registry_op_at(r, i));
    }
    for (size_t i = f->before.n_classes; i < f->after.n_classes; i++) {
        const ct_class *c = cti_registry_class_at(r, i);
        printf("  component  %s%s%s\n", c->name, c->base != NULL ? ", a " : "", c->base != NULL ? c->base->name : "");
    }
    for (size_t i = f->before.n_overrides; i < f->after.n_overrides; i++) {
        const ct_override *o = cti_registry_override_at(r, i);
        printf("  override   %s of %s: %s\n", o->name, o->target->name, o->description);
    }
    for (size_t i = f->before.n_datasets; i < f->after.n_datasets; i++) {
        const ct_dataset *d = cti_registry_dataset_at(r, i);
        printf("  data set   %s: %s\n", d->name, d->description);
    }
    for (size_t i = f->before.n_optimizers; i < f->after.n_optimizers; i++) {
        const ct_optimizer *o = cti_registry_optimizer_at(r, i);
        printf("  optimizer  %s: %s\n", o->name, o->description);
    }
    const char *module, *config, *refusal;
    for (size_t i = f->before.n_configs; i < f->after.n_configs && cti_registry_config_at(r, i, &module, &config, &refusal); i++) {
        printf("  config     --module %s --config %s%s%s\n", module, config, refusal != NULL ? ": refused: " : "", refusal != NULL ? refusal : "");
    }
}

static ct_status describe(cti_env *env, const char *name, ct_err *err)
{
    cti_plugin_facts facts;
    CT_TRY(cti_plugins_load(env->plugins, name, err));
    if (cti_plugins_describe(env->plugins, name, &facts)) {
        printf("%s %s (%s)\n", name, facts.version, facts.path);
        print_added(env->registry, &facts);
    }
    return CT_OK;
}

int cti_cmd_plugins(int argc, char **argv)
{
    static const char *const text = "usage: ctitan plugins [NAME...]\n\n"
                                    "Without a name: the plug-ins in the folders of CTITAN_PLUGIN_PATH and in the installed one. With names: opens each and\n"
                                    "prints what it adds.";
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') {
            const bool is_help = cti_str_eq(argv[i], "--help") || cti_str_eq(argv[i], "-h");
            fprintf(is_help ? stdout : stderr, "%s\n", text);
            return is_help ? 0 : 2;
        }
    }
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    cti_env env = {0};
    ct_status st = cti_env_create(alloc, &env, &err);
    if (st == CT_OK && argc < 2) {
        st = list_files(alloc, &env, &err);
    }
    for (int i = 1; i < argc && st == CT_OK; i++) {
        st = describe(&env, argv[i], &err);
    }
    const int code = st == CT_OK ? 0 : cti_report("plugins", st, &err);
    cti_env_deinit(alloc, &env);
    return code;
}
