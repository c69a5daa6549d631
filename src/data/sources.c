/* SPDX-License-Identifier: Apache-2.0 */
/* The corpora that settings name. */
#include "base/file.h"
#include "component/component.h"
#include "data/data.h"

/* A name, or a plug-in's data set, which is told the path. */
static ct_status open_source(const ct_sources_options *o, const ct_sources *s, int32_t i, const char *name, const char *path, ct_err *err)
{
    const ct_dataset *dataset = cti_registry_dataset(o->registry, name);
    if (dataset == NULL) {
        CT_TRY(ct_dataset_resolve(s->alloc, name, path, o->share_dir, &s->paths[i], err));
        return ct_corpus_open(s->alloc, s->paths[i], o->corpus, &s->corpora[i], err);
    }
    path = path != NULL ? path : "";
    s->paths[i] = ct_alloc_strdup(s->alloc, path[0] != '\0' ? path : name, err);
    return s->paths[i] == NULL ? CT_ERR_MEMORY : ct_corpus_open_dataset(s->alloc, dataset, path, o->corpus, &s->corpora[i], err);
}

/* The i-th source: its name or path, its weight. */
static ct_status open_at(const ct_sources_options *o, const ct_sources *s, int32_t i, ct_err *err)
{
    s->items[i].weight = 1.0;
    if (o->n_specs == 0) {
        return open_source(o, s, i, o->dataset, o->dataset_path, err);
    }
    size_t n;
    if (!cti_source_spec(o->specs[i], &n, &s->items[i].weight)) {
        return CT_FAIL(err, CT_ERR_USAGE, "source '%s': PATH or PATH:WEIGHT with a weight above 0 is wanted", o->specs[i]);
    }
    char *name = ct_alloc_strdup(s->alloc, o->specs[i], err);
    if (name == NULL) {
        return CT_ERR_MEMORY;
    }
    name[n] = '\0';
    const ct_status st = open_source(o, s, i, name, NULL, err);
    ct_alloc_free(s->alloc, name);
    return st;
}

static ct_status open_all(const ct_sources_options *o, ct_sources *s, ct_err *err)
{
    const int64_t n = o->n_specs > 0 ? o->n_specs : 1;
    if (n > CT_DATA_SOURCES_MAX) {
        return CT_FAIL(err, CT_ERR_USAGE, "%lld sources, at most %d are wanted", (long long)n, CT_DATA_SOURCES_MAX);
    }
    s->items = CT_NEW_ARRAY(s->alloc, ct_data_source, n, err);
    s->corpora = CT_NEW_ARRAY(s->alloc, ct_corpus *, n, err);
    s->paths = CT_NEW_ARRAY(s->alloc, char *, n, err);
    if (s->items == NULL || s->corpora == NULL || s->paths == NULL) {
        return CT_ERR_MEMORY;
    }
    for (; s->n < n; s->n++) {
        const ct_status st = open_at(o, s, s->n, err);
        if (st != CT_OK) {
            ct_alloc_free(s->alloc, s->paths[s->n]);
            return st;
        }
        s->items[s->n].corpus = s->corpora[s->n];
    }
    return CT_OK;
}

ct_status ct_sources_open(const ct_alloc *alloc, const ct_sources_options *options, ct_sources *out_sources, ct_err *err)
{
    *out_sources = (ct_sources){.alloc = alloc};
    const ct_status st = open_all(options, out_sources, err);
    if (st != CT_OK) {
        ct_sources_close(out_sources);
    }
    return st;
}

void ct_sources_close(ct_sources *s)
{
    if (s->alloc == NULL) {
        return;
    }
    for (int32_t i = 0; i < s->n; i++) {
        ct_corpus_destroy(&s->corpora[i]);
        ct_alloc_free(s->alloc, s->paths[i]);
    }
    ct_alloc_free(s->alloc, s->corpora);
    ct_alloc_free(s->alloc, s->paths);
    ct_alloc_free(s->alloc, s->items);
    *s = (ct_sources){0};
}

int64_t ct_sources_size_bytes(const ct_sources *s)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < s->n; i++) {
        sum += ct_corpus_size_bytes(s->corpora[i]);
    }
    return sum;
}
