/* SPDX-License-Identifier: Apache-2.0 */
/* The corpora that settings name. */
#include "base/file.h"
#include "config/config.h"
#include "data/data.h"

/* The i-th source: its name or path, its weight. */
static ct_status name_source(const ct_sources_options *o, const ct_sources *s, int32_t i, char **out_path, double *out_weight,
                             ct_err *err)
{
    *out_weight = 1.0;
    if (o->n_specs == 0) {
        return ct_dataset_resolve(s->alloc, o->dataset, o->dataset_path, o->share_dir, out_path, err);
    }
    size_t n;
    if (!cti_source_spec(o->specs[i], &n, out_weight)) {
        return CT_FAIL(err, CT_ERR_USAGE, "source '%s': PATH or PATH:WEIGHT with a weight above 0 is wanted", o->specs[i]);
    }
    char *name = ct_alloc_strdup(s->alloc, o->specs[i], err);
    if (name == NULL) {
        return CT_ERR_MEMORY;
    }
    name[n] = '\0';
    const ct_status st = ct_dataset_resolve(s->alloc, name, NULL, o->share_dir, out_path, err);
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
        CT_TRY(name_source(o, s, s->n, &s->paths[s->n], &s->items[s->n].weight, err));
        const ct_status st = ct_corpus_open(s->alloc, s->paths[s->n], o->corpus, &s->corpora[s->n], err);
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
