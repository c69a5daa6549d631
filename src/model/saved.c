/* SPDX-License-Identifier: Apache-2.0 */
/* A model as the settings that a checkpoint holds tell it. */
#include <string.h>

#include "base/json.h"
#include "config/files.h"
#include "model/model.h"

ct_status cti_llama3_spec_saved(const ct_alloc *alloc, ct_tree *tree, const char *flavor, const json_t *config,
                                ct_component **out_spec, ct_err *err)
{
    const json_t *saved = json_object_get(config, "model_spec");
    CT_TRY(cti_llama3_spec(tree, flavor, out_spec, err));
    if (!json_is_object(saved)) {
        return CT_OK;
    }
    char *text = NULL;
    cti_doc *doc = NULL;
    cti_problems problems = {.text = {.alloc = alloc}};
    ct_status st;
    CT_TRY_GOTO(st, cti_json_dump(alloc, saved, 0, &text, err), out);
    CT_TRY_GOTO(st, cti_doc_parse(ct_tree_arena(tree), "model_spec.json", text, strlen(text), &doc, &problems, err), out);
    /* Its own fields first, which say what the parts are; then those of the parts. What does not fit was put there by overrides. */
    const cti_config_file sizes = {.name = "sizes", .doc = doc, .source = CT_SOURCE_FILE};
    const cti_config_file parts = {.name = "parts", .doc = doc, .source = CT_SOURCE_FILE};
    CT_TRY_GOTO(st, cti_config_doc_apply(tree, *out_spec, &sizes, &problems, err), out);
    CT_TRY_GOTO(st, cti_llama3_build(tree, *out_spec, err), out);
    st = cti_config_doc_apply(tree, *out_spec, &parts, &problems, err);
out:
    cti_problems_deinit(&problems);
    ct_alloc_free(alloc, text);
    return st;
}
