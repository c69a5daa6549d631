/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in, built from the installed headers alone: an override that gives every RMSNorm a larger epsilon.
 *
 *     cc -std=c17 -shared -fPIC $(pkg-config --cflags ctitan) example_norm.c -o plugins/example_norm.so
 *     export CTITAN_PLUGIN_PATH=$PWD/plugins
 *     ctitan overrides list example_norm
 *     ctitan train --module llama3 --config llama3_debugmodel --override.imports example_norm.wide_eps
 *
 * The functions it calls are found in the program, or in libctitan.so, when it is loaded: it links nothing.
 */
#include <string.h>

#include <ctitan/plugin.h>

/* Copies the node with its fields and sets one of them. The copy is of the same class, so that it builds the same ops. */
static ct_status wide_eps(ct_tree *tree, ct_component *matched, const char *args_json, ct_component **out, ct_err *err)
{
    static const char *const value[] = {"0.01"};
    if (strcmp(args_json, "{}") != 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "example_norm.wide_eps takes no arguments, found %s", args_json);
    }
    CT_TRY(ct_component_derive(tree, matched, matched->cls, out, err));
    return ct_component_set(tree, *out, "eps", value, 1, CT_SOURCE_OVERRIDE, err);
}

/* All that a plug-in adds is added here. Where this fails, the registry is as before. */
static ct_status setup(ct_registry *registry, ct_err *err)
{
    const ct_class *norm = ct_registry_class(registry, "RMSNorm");
    if (norm == NULL) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "this ctitan has no component 'RMSNorm'");
    }
    const ct_override row = {.name = "example_norm.wide_eps",
                             .target = norm,
                             .description = "an epsilon of 0.01 in every RMSNorm",
                             .factory = wide_eps};
    return ct_registry_add_override(registry, &row, err);
}

const ct_plugin_info *ct_plugin_entry(void);
const ct_plugin_info *ct_plugin_entry(void)
{
    static const ct_plugin_info info = {CT_PLUGIN_ABI, sizeof(ct_plugin_info), "example_norm", "1.0", setup};
    return &info;
}
