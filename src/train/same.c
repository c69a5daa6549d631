/* SPDX-License-Identifier: Apache-2.0 */
/* Before the first step: all ranks must be the same program with the same settings. Where one is not, all are told what differs. */
#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "train/trainer.h"

enum { MAX_TOLD = 6 };

/* The version, and a hash of the program's file: the same version may have been built twice. */
static ct_status add_program(cti_trainer *t, cti_str *out, ct_err *err)
{
    cti_file_map exe;
    char hex[33] = "unknown";
    if (cti_file_map_open("/proc/self/exe", &exe, NULL) == CT_OK) {
        cti_hash128_hex(exe.data, exe.size, hex);
        cti_file_map_close(&exe);
    }
    cti_str_printf(out, "program.version=%s\nprogram.file=%.16s\n", t->o.version, hex);
    return cti_str_check(out, err);
}

/* The value of a key in lines "key=value"; NULL where it is not there. *out_size: of the value. */
static const char *find(const char *text, const char *key, size_t key_size, size_t *out_size)
{
    for (const char *line = text; *line != '\0';) {
        const size_t n = strcspn(line, "\n");
        if (n > key_size && line[key_size] == '=' && memcmp(line, key, key_size) == 0) {
            *out_size = n - key_size - 1;
            return line + key_size + 1;
        }
        line += n + (line[n] == '\n');
    }
    return NULL;
}

static void add_key(cti_str *out, const char *key, size_t size)
{
    const bool is_program = size > 8 && memcmp(key, "program.", 8) == 0;
    cti_str_add(out, is_program ? "the program's " : "--");
    for (size_t i = is_program ? 8 : 0; i < size; i++) {
        cti_str_add_char(out, key[i] == '_' ? '-' : key[i]);
    }
}

/* Keys of `a` that have another value in `b`, or none; only those that b lacks altogether where only_missing. */
static int add_differences(const char *a, int rank_a, const char *b, int rank_b, bool only_missing, int told, cti_str *out)
{
    for (const char *line = a; *line != '\0';) {
        const size_t n = strcspn(line, "\n"), key = strcspn(line, "=\n");
        size_t other_size = 0;
        const char *other = find(b, line, key, &other_size);
        const size_t size = n > key ? n - key - 1 : 0;
        const bool differs = other == NULL || (!only_missing && (other_size != size || memcmp(other, line + key + 1, size) != 0));
        if (differs && told++ < MAX_TOLD) {
            cti_str_add(out, told > 1 ? "; " : "");
            add_key(out, line, key);
            cti_str_printf(out, " is '%.*s' on rank %d and ", (int)cti_min_i64((int64_t)size, 80), line + key + 1, rank_a);
            if (other == NULL) {
                cti_str_printf(out, "not there on rank %d", rank_b);
            } else {
                cti_str_printf(out, "'%.*s' on rank %d", (int)cti_min_i64((int64_t)other_size, 80), other, rank_b);
            }
        }
        line += n + (line[n] == '\n');
    }
    return told;
}

/* All texts go to all: this is the end of the run, and every rank says why. */
static ct_status tell_difference(cti_trainer *t, const cti_str *mine, ct_err *err)
{
    const int n = ct_comm_size(t->world), me = ct_comm_rank(t->world);
    int64_t length = (int64_t)mine->len + 1;
    CT_TRY(ct_comm_all_reduce(t->world, &length, &length, 1, CT_DTYPE_I64, CT_REDUCE_MAX, NULL, err));
    char *all = ct_alloc_zeroed(t->alloc, (size_t)n, (size_t)length, err);
    if (all == NULL) {
        return CT_ERR_MEMORY;
    }
    memcpy(all + (int64_t)me * length, mine->data, mine->len);
    ct_status st = ct_comm_all_gather(t->world, all + (int64_t)me * length, all, length, CT_DTYPE_U8, NULL, err);
    for (int r = 1; r < n && st == CT_OK; r++) {
        const char *theirs = all + r * length;
        if (strcmp(all, theirs) == 0) {
            continue;
        }
        cti_str text = {.alloc = t->alloc};
        int told = add_differences(all, 0, theirs, r, false, 0, &text);
        told = add_differences(theirs, r, all, 0, true, told, &text);
        if (told > MAX_TOLD) {
            cti_str_printf(&text, "; and %d more", told - MAX_TOLD);
        }
        st = CT_FAIL(err, CT_ERR_USAGE, "all ranks must have the same program and settings: %s", cti_str_text(&text));
        cti_str_deinit(&text);
    }
    ct_alloc_free(t->alloc, all);
    return st;
}

ct_status cti_trainer_check_same(cti_trainer *t, ct_err *err)
{
    if (t->mesh.world_size == 1) {
        return CT_OK;
    }
    cti_str text = {.alloc = t->alloc};
    ct_err differ = {0};
    ct_status st = add_program(t, &text, err);
    if (st == CT_OK) {
        st = cti_config_shared(t->o.run->tree, t->root, &text, err);
    }
    if (st == CT_OK) {
        const ct_status same = ct_comm_check_same(t->world, text.data, text.len, "the settings", &differ);
        st = same == CT_ERR_USAGE ? tell_difference(t, &text, err) : same == CT_OK ? CT_OK : CT_FAIL(err, same, "%s", differ.message);
    }
    cti_str_deinit(&text);
    return st;
}
