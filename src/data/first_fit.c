/* SPDX-License-Identifier: Apache-2.0 */
/* First-fit packing: whole documents into the first open row with room. */
#include "data/stream.h"

ct_status cti_bins_init(cti_bins *bins, const ct_alloc *alloc, int32_t n_bins, int64_t seq_len, ct_err *err)
{
    const int64_t n = n_bins * seq_len; /* checked with the options */
    *bins = (cti_bins){.n_bins = n_bins, .seq_len = seq_len};
    bins->tokens = CT_NEW_ARRAY(alloc, int32_t, n, err);
    bins->labels = CT_NEW_ARRAY(alloc, int32_t, n, err);
    bins->positions = CT_NEW_ARRAY(alloc, int32_t, n, err);
    bins->filled = CT_NEW_ARRAY(alloc, int64_t, n_bins, err);
    bins->order = CT_NEW_ARRAY(alloc, int32_t, n_bins, err);
    const bool ok = bins->tokens != NULL && bins->labels != NULL && bins->positions != NULL && bins->filled != NULL &&
                    bins->order != NULL;
    return ok ? CT_OK : CT_ERR_MEMORY;
}

void cti_bins_deinit(cti_bins *bins, const ct_alloc *alloc)
{
    ct_alloc_free(alloc, bins->tokens);
    ct_alloc_free(alloc, bins->labels);
    ct_alloc_free(alloc, bins->positions);
    ct_alloc_free(alloc, bins->filled);
    ct_alloc_free(alloc, bins->order);
    *bins = (cti_bins){0};
}

void cti_bins_clear(cti_bins *bins)
{
    bins->n_rows = 0;
    memset(bins->filled, 0, (size_t)bins->n_bins * sizeof *bins->filled);
}

bool cti_bins_add(cti_bins *bins, const ct_sample *sample)
{
    const int64_t n = sample->ids.n - 1;
    const ct_tokens *labels = sample->labels.n > 0 ? &sample->labels : &sample->ids;
    for (int32_t b = 0; b < bins->n_bins; b++) {
        if (bins->seq_len - bins->filled[b] < n) {
            continue;
        }
        const int64_t at = b * bins->seq_len + bins->filled[b];
        memcpy(bins->tokens + at, sample->ids.ids, (size_t)n * sizeof(int32_t));
        memcpy(bins->labels + at, labels->ids + 1, (size_t)n * sizeof(int32_t));
        for (int64_t i = 0; i < n; i++) {
            bins->positions[at + i] = (int32_t)i;
        }
        bins->filled[b] += n;
        bins->n_rows = b + 1 > bins->n_rows ? b + 1 : bins->n_rows; /* rows fill from the first on */
        return true;
    }
    return false;
}

void cti_bins_close(cti_bins *bins, bool is_shuffled, uint64_t seed)
{
    if (is_shuffled) {
        cti_row_order(seed, bins->n_rows, bins->order);
        return;
    }
    for (int32_t b = 0; b < bins->n_rows; b++) {
        bins->order[b] = b;
    }
}
