/* SPDX-License-Identifier: Apache-2.0 */
/* Files of settings: `--config my.yaml`.
 *
 *     base: llama3_8b            # a registry function, or another file, relative to this one
 *     training:
 *       steps: 2000
 *       local-batch-size: 4      # '-' and '_' are the same
 *     optimizer.lr: 3e-4         # dotted and short names as on the command line
 *     activation_checkpoint: full
 *
 * Keys: `base`; `module`, where the registry function of that name is not the only one; `given` (below); the sections.
 * A file that ctitan saved holds every value, and under `given` the names of those that someone had asked for: the others keep the source
 * "registry", so that what depends on it (a number format that the device lacks is a wish or an order) is as it was.
 */
#ifndef CTI_CONFIG_FILES_H
#define CTI_CONFIG_FILES_H

#include "config/doc.h"

/* Whether --config or base: names a file: it ends in .yaml, .yml or .json, or holds a '/'. */
bool cti_config_is_file(const char *name);

typedef struct cti_config_file {
    const char *name; /* as messages show it */
    const cti_doc *doc;
    ct_source source; /* FILE for the one that was asked for, BASE for those below it */
} cti_config_file;
/* A file and those that its base: chain names; memory of the arena. */
typedef struct cti_config_files {
    cti_config_file *items; /* lowest precedence first */
    size_t n;
    const char *base;      /* the registry function at the end of the chain; NULL: a problem was added */
    const char *module;    /* of the nearest file that names one; NULL: none does */
    const char *base_place; /* "my.yaml:1:1", where `base` is named */
} cti_config_files;
/* Problems for what cannot be read, a chain that bites its tail, a base that is missing. Fails: ERR_MEMORY. */
CT_MUST_CHECK ct_status cti_config_files_read(ct_tree *tree, const char *path, cti_config_files *out_files,
                                              cti_problems *problems, ct_err *err);
/* Sets what the files say, in order. */
CT_MUST_CHECK ct_status cti_config_files_apply(ct_tree *tree, ct_component *root, const cti_config_files *files,
                                               cti_problems *problems, ct_err *err);
/* Sets the fields of `component` and of what is below it from one map. */
CT_MUST_CHECK ct_status cti_config_doc_apply(ct_tree *tree, ct_component *component, const cti_config_file *file,
                                             cti_problems *problems, ct_err *err);

/* Sets one field from a node, as its kind reads it. ERR_USAGE with the reason, the field unchanged; ERR_MEMORY. */
CT_MUST_CHECK ct_status cti_field_from_doc(const ct_field *field, void *values, const cti_doc *doc, ct_arena *arena, ct_err *err);

#endif
