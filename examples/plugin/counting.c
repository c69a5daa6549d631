/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in with a data set that is made as it is read: document k counts from k on, "7 8 9 10 …".
 *
 *     cc -std=c17 -shared -fPIC $(pkg-config --cflags ctitan) counting.c -o counting.so
 *     CTITAN_PLUGIN_PATH=$PWD ctitan train --module llama3 --config llama3_debugmodel --dataloader.dataset counting.numbers
 *     … --dataloader.dataset-path 5000          (that many documents; 1000 without it)
 */
#include <stdio.h>
#include <stdlib.h>

#include <ctitan/plugin.h>

enum { NUMBERS_EACH = 40 };

static ct_status open_numbers(const ct_alloc *alloc, const char *path, void **out_state, int64_t *out_n, uint64_t *out_identity, ct_err *err)
{
    char *end = NULL;
    const long long n = path[0] != '\0' ? strtoll(path, &end, 10) : 1000;
    if (n < 1 || n > 1000000000 || (end != NULL && *end != '\0')) {
        return CT_FAIL(err, CT_ERR_USAGE, "dataset-path: how many documents, from 1 to 1000000000, is wanted, found '%s'", path);
    }
    (void)alloc;
    static char nothing; /* no state: any address but NULL */
    *out_state = &nothing;
    *out_n = n;
    *out_identity = 1; /* of this way to make documents */
    return CT_OK;
}

static void close_numbers(void *state)
{
    (void)state;
}

static ct_status read_numbers(void *state, int64_t number, ct_text_sink *sink, ct_err *err)
{
    (void)state;
    for (int64_t k = number; k < number + NUMBERS_EACH; k++) {
        char word[32];
        const int size = snprintf(word, sizeof word, k > number ? " %lld" : "%lld", (long long)k);
        CT_TRY(ct_text_add(sink, word, (size_t)size, err));
    }
    return CT_OK;
}

static ct_status setup(ct_registry *registry, ct_err *err)
{
    const ct_dataset numbers = {.name = "counting.numbers",
                                .description = "documents that count",
                                .open = open_numbers,
                                .close = close_numbers,
                                .read = read_numbers};
    return ct_registry_add_dataset(registry, &numbers, err);
}

__attribute__((visibility("default"))) const ct_plugin_info *ct_plugin_entry(void);
const ct_plugin_info *ct_plugin_entry(void)
{
    static const ct_plugin_info info = {CT_PLUGIN_ABI, sizeof(ct_plugin_info), "counting", "1.0", setup};
    return &info;
}
