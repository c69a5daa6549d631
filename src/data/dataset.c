/* SPDX-License-Identifier: Apache-2.0 */
/* Names of datasets: what comes with the program, what lives elsewhere. */
#include "base/file.h"
#include "base/nearest.h"
#include "data/data.h"

/* X(name, file in the share folder or NULL, where it lives otherwise) */
/* clang-format off */
#define DATASET_LIST(X)                                                            \
    X("c4_test",            "demo.jsonl", NULL)                                    \
    X("c4_validation_test", "demo.jsonl", NULL)                                    \
    X("demo",               "demo.jsonl", NULL)                                    \
    X("sft_test",           "sft.jsonl", NULL)                                     \
    X("c4",                 NULL, "allenai/c4 (en, split train), on a hub")        \
    X("c4_validation",      NULL, "allenai/c4 (en, split validation), on a hub")   \
    X("obelics",            NULL, "a set of images and text, on a hub")            \
    X("cc12m",              NULL, "a set of images and text, on a hub")            \
    X("cc12m-test",         NULL, "a set of images and text")                      \
    X("cc12m-wds",          NULL, "a set of images and text, on a hub")            \
    X("coco-validation",    NULL, "a set of images and text, on a hub")
/* clang-format on */

static const struct {
    const char *name, *file, *elsewhere;
} datasets[] = {
#define DATASET_ROW(name, file, elsewhere) {name, file, elsewhere},
    DATASET_LIST(DATASET_ROW)
#undef DATASET_ROW
};
enum { N_DATASETS = sizeof datasets / sizeof datasets[0] };

const char *ct_dataset_name(size_t i)
{
    for (size_t k = 0; k < N_DATASETS; k++) {
        if (datasets[k].file != NULL && i-- == 0) {
            return datasets[k].name;
        }
    }
    return NULL;
}

static ct_status unknown(const ct_alloc *alloc, const char *name, ct_err *err)
{
    const char *names[N_DATASETS];
    cti_str list = {.alloc = alloc};
    for (size_t i = 0; i < N_DATASETS; i++) {
        names[i] = datasets[i].name;
        if (datasets[i].file != NULL) {
            cti_str_printf(&list, "%s'%s'", list.len > 0 ? ", " : "", names[i]);
        }
    }
    const int nearest = cti_nearest(name, names, N_DATASETS);
    const ct_status st =
        CT_FAIL(err, CT_ERR_USAGE, "dataset '%s' is not known%s%s%s; there are %s, or a path (--dataloader.dataset-path FILE.jsonl)",
                name, nearest >= 0 ? "; did you mean '" : "", nearest >= 0 ? names[nearest] : "", nearest >= 0 ? "'" : "",
                cti_str_text(&list));
    cti_str_deinit(&list);
    return st;
}

static ct_status copy_path(const ct_alloc *alloc, const char *path, char **out_path, ct_err *err)
{
    char *copy = ct_alloc_strdup(alloc, path, err);
    if (copy == NULL) {
        return CT_ERR_MEMORY;
    }
    *out_path = copy;
    return CT_OK;
}

ct_status ct_dataset_resolve(const ct_alloc *alloc, const char *name, const char *dataset_path, const char *share_dir,
                             char **out_path, ct_err *err)
{
    if (dataset_path != NULL && dataset_path[0] != '\0') {
        return copy_path(alloc, dataset_path, out_path, err);
    }
    for (size_t i = 0; i < N_DATASETS; i++) {
        if (!cti_str_eq(name, datasets[i].name)) {
            continue;
        }
        if (datasets[i].file == NULL) {
            return CT_FAIL(err, CT_ERR_UNSUPPORTED,
                           "dataset '%s' is %s; datasets are local files: save it as JSON lines and give --dataloader.dataset-path FILE.jsonl",
                           name, datasets[i].elsewhere);
        }
        char *path = cti_path_join(alloc, share_dir, datasets[i].file, err);
        if (path == NULL) {
            return CT_ERR_MEMORY;
        }
        *out_path = path;
        return CT_OK;
    }
    if (strchr(name, '/') != NULL || cti_path_exists(name)) {
        return copy_path(alloc, name, out_path, err);
    }
    return unknown(alloc, name, err);
}
