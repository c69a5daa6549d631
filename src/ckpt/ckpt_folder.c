/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint folder: names, what takes whose place, what is removed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt_internal.h"

/* ---- names ------------------------------------------------------------------------------------------------------- */

bool cti_ckpt_token_ok(const char *token)
{
    size_t n = 0;
    for (; token[n] != '\0'; n++) {
        const char c = token[n];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) {
            return false;
        }
    }
    return n > 0 && n <= 64;
}

/* Digits as we print them: no sign, no leading zero. Returns what follows, NULL where there are none. */
static const char *read_step(const char *text, int64_t *out_step)
{
    int64_t step = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (!cti_mul_i64(step, 10, &step) || !cti_add_i64(step, *p - '0', &step)) {
            return NULL;
        }
    }
    if (p == text || (text[0] == '0' && p != text + 1)) {
        return NULL;
    }
    *out_step = step;
    return p;
}

cti_ckpt_entry cti_ckpt_entry_of(const char *name, int64_t *out_step)
{
    static const char *const prefixes[] = {[CTI_CKPT_STEP] = "step-", [CTI_CKPT_TEMP] = ".tmp-step-", [CTI_CKPT_OLD] = ".old-step-"};
    for (int kind = CTI_CKPT_STEP; kind <= CTI_CKPT_OLD; kind++) {
        if (!cti_starts_with(name, prefixes[kind])) {
            continue;
        }
        const char *rest = read_step(name + strlen(prefixes[kind]), out_step);
        if (rest == NULL) {
            return CTI_CKPT_FOREIGN;
        }
        const bool fits = kind == CTI_CKPT_STEP ? *rest == '\0' : *rest == '-' && cti_ckpt_token_ok(rest + 1);
        return fits ? (cti_ckpt_entry)kind : CTI_CKPT_FOREIGN;
    }
    return CTI_CKPT_FOREIGN;
}

char *cti_ckpt_temp_path(const ct_alloc *alloc, const char *folder, int64_t step, const char *token, ct_err *err)
{
    char name[128];
    (void)snprintf(name, sizeof name, ".tmp-step-%" PRId64 "-%s", step, token); /* fits: 10 + 19 + 1 + 64 */
    return cti_path_join(alloc, folder, name, err);
}

char *cti_ckpt_step_path(const ct_alloc *alloc, const char *folder, int64_t step, ct_err *err)
{
    char name[32];
    (void)snprintf(name, sizeof name, "step-%" PRId64, step); /* fits: 5 + 19 */
    return cti_path_join(alloc, folder, name, err);
}

/* ---- taking a place ---------------------------------------------------------------------------------------------- */

static bool exchange(const char *a, const char *b)
{
#ifdef SYS_renameat2
    return syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2u /* RENAME_EXCHANGE */) == 0;
#else
    (void)a;
    (void)b;
    return false;
#endif
}

ct_status cti_ckpt_put_in_place(const char *folder, const char *temp, const char *target, const char *old, ct_err *err)
{
    if (!cti_path_exists(target)) {
        CT_TRY(cti_rename(temp, target, err));
        return cti_fsync_path(folder, err);
    }
    if (exchange(temp, target)) { /* one step: no instant without a whole one under its name */
        CT_TRY(cti_fsync_path(folder, err));
        return cti_remove_tree(temp, err);
    }
    /* File systems without the exchange: readers find the old one under its .old- name meanwhile. */
    CT_TRY(cti_rename(target, old, err));
    CT_TRY(cti_fsync_path(folder, err));
    CT_TRY(cti_rename(temp, target, err));
    CT_TRY(cti_fsync_path(folder, err));
    return cti_remove_tree(old, err);
}

void cti_ckpt_remove_stale(const ct_alloc *alloc, const char *folder)
{
    cti_names names;
    if (cti_list_dir(alloc, folder, &names, NULL) != CT_OK) {
        return;
    }
    for (size_t i = 0; i < names.n; i++) {
        int64_t step;
        const cti_ckpt_entry kind = cti_ckpt_entry_of(names.names[i], &step);
        if (kind != CTI_CKPT_TEMP && kind != CTI_CKPT_OLD) {
            continue;
        }
        char *path = cti_path_join(alloc, folder, names.names[i], NULL);
        char *target = cti_ckpt_step_path(alloc, folder, step, NULL);
        if (path != NULL && target != NULL && (kind == CTI_CKPT_TEMP || cti_path_exists(target))) {
            const ct_status ignored = cti_remove_tree(path, NULL); /* the next commit tries again */
            (void)ignored;
        }
        ct_alloc_free(alloc, path);
        ct_alloc_free(alloc, target);
    }
    cti_names_free(alloc, &names);
}

void ct_ckpt_clean(const ct_alloc *alloc, const char *folder)
{
    cti_ckpt_remove_stale(alloc, folder);
}

void ct_ckpt_abandon(const ct_alloc *alloc, const char *folder, int64_t step, const char *token)
{
    char *temp = cti_ckpt_temp_path(alloc, folder, step, token, NULL);
    const ct_status ignored = temp != NULL ? cti_remove_tree(temp, NULL) : CT_OK; /* or the next run does it */
    (void)ignored;
    ct_alloc_free(alloc, temp);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

typedef struct found_step {
    int64_t step;
    char *path; /* owns */
    bool is_old;
} found_step;

typedef struct found_steps {
    found_step *items; /* newest first */
    size_t n;
} found_steps;

static void steps_free(const ct_alloc *alloc, found_steps *steps)
{
    for (size_t i = 0; i < steps->n; i++) {
        ct_alloc_free(alloc, steps->items[i].path);
    }
    ct_alloc_free(alloc, steps->items);
    *steps = (found_steps){0};
}

static bool comes_before(const found_step *a, const found_step *b)
{
    return a->step != b->step ? a->step > b->step : !a->is_old && b->is_old;
}

/* step-<N> and .old-step-<N>-… folders, newest first, of one step the one in place first. A missing folder has none. */
static ct_status list_steps(const ct_alloc *alloc, const char *folder, found_steps *out, ct_err *err)
{
    cti_names names = {0};
    *out = (found_steps){0};
    if (!cti_path_exists(folder)) {
        return CT_OK;
    }
    CT_TRY(cti_list_dir(alloc, folder, &names, err));
    out->items = CT_NEW_ARRAY(alloc, found_step, names.n + 1, err);
    ct_status st = out->items != NULL ? CT_OK : CT_ERR_MEMORY;
    for (size_t i = 0; i < names.n && st == CT_OK; i++) {
        found_step s = {0};
        const cti_ckpt_entry kind = cti_ckpt_entry_of(names.names[i], &s.step);
        if (kind != CTI_CKPT_STEP && kind != CTI_CKPT_OLD) {
            continue;
        }
        s.is_old = kind == CTI_CKPT_OLD;
        s.path = cti_path_join(alloc, folder, names.names[i], err);
        if (s.path == NULL) {
            st = CT_ERR_MEMORY;
            break;
        }
        size_t at = out->n++;
        for (; at > 0 && comes_before(&s, &out->items[at - 1]); at--) {
            out->items[at] = out->items[at - 1];
        }
        out->items[at] = s;
    }
    cti_names_free(alloc, &names);
    if (st != CT_OK) {
        steps_free(alloc, out);
    }
    return st;
}

static void note(cti_str *notes, const char *fmt, const char *path, const char *why)
{
    if (notes == NULL) {
        return;
    }
    if (notes->len > 0) {
        cti_str_add_char(notes, '\n');
    }
    cti_str_printf(notes, "%s '%s'", fmt, path);
    if (why != NULL) {
        cti_str_printf(notes, ": %s", why);
    }
}

static ct_status open_step(const ct_alloc *alloc, const found_step *s, cti_ckpt_depth depth, ct_ckpt **out, ct_err *err)
{
    ct_ckpt *ckpt = NULL;
    CT_TRY(cti_ckpt_open_path(alloc, s->path, depth, &ckpt, err));
    if (ct_ckpt_step(ckpt) != s->step) {
        const int64_t said = ct_ckpt_step(ckpt);
        ct_ckpt_close(&ckpt);
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': its manifest is of step %" PRId64, s->path, said);
    }
    *out = ckpt;
    return CT_OK;
}

ct_status ct_ckpt_newest(const ct_alloc *alloc, const char *folder, ct_ckpt **out, ct_ckpt_steps *out_damaged, cti_str *notes, ct_err *err)
{
    found_steps steps;
    CT_TRY(list_steps(alloc, folder, &steps, err));
    ct_status st = CT_OK;
    *out = NULL;
    for (size_t i = 0; i < steps.n && *out == NULL && st == CT_OK; i++) {
        ct_err why = {0};
        st = open_step(alloc, &steps.items[i], CTI_CKPT_ALL, out, &why);
        if (st == CT_ERR_MEMORY) { /* says nothing about the checkpoint */
            st = CT_FAIL(err, st, "%s", why.message);
        } else if (st != CT_OK) {
            note(notes, "passed over", steps.items[i].path, why.message);
            st = CT_OK;
            if (out_damaged != NULL && !steps.items[i].is_old && out_damaged->n < (int)(sizeof out_damaged->steps / sizeof out_damaged->steps[0])) {
                out_damaged->steps[out_damaged->n++] = steps.items[i].step;
            }
        }
    }
    steps_free(alloc, &steps);
    return st;
}

static ct_status open_wanted(const ct_alloc *alloc, const char *folder, int64_t step, cti_ckpt_depth depth, ct_ckpt **out, ct_err *err)
{
    found_steps steps;
    CT_TRY(list_steps(alloc, folder, &steps, err));
    ct_status st = CT_ERR_NOT_FOUND;
    cti_str have = {.alloc = alloc};
    for (size_t i = 0; i < steps.n && st == CT_ERR_NOT_FOUND; i++) {
        if (steps.items[i].step == step) {
            st = open_step(alloc, &steps.items[i], depth, out, err);
            break;
        }
        cti_str_printf(&have, "%s%" PRId64, have.len > 0 ? ", " : "", steps.items[i].step);
    }
    if (st == CT_ERR_NOT_FOUND) { /* keeps the first reason where there is one */
        (void)CT_FAIL(err, st, "'%s' has no checkpoint of step %" PRId64 "; there are: %s", folder, step,
                      have.len > 0 ? cti_str_text(&have) : "none");
    }
    cti_str_deinit(&have);
    steps_free(alloc, &steps);
    return st;
}

ct_status ct_ckpt_open_verified(const ct_alloc *alloc, const char *folder, int64_t step, ct_ckpt **out_ckpt, ct_err *err)
{
    return open_wanted(alloc, folder, step, CTI_CKPT_PIECES, out_ckpt, err);
}

static bool is_export(const ct_alloc *alloc, const char *folder)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    bool is = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ct_err none = {0};
        char *path = cti_path_join(alloc, folder, names[i], &none);
        is = is || (path != NULL && cti_path_exists(path));
        ct_alloc_free(alloc, path);
    }
    return is;
}

ct_status ct_ckpt_open(const ct_alloc *alloc, const char *folder, int64_t step, ct_ckpt **out_ckpt, cti_str *notes, ct_err *err)
{
    if (step >= 0) {
        return open_wanted(alloc, folder, step, CTI_CKPT_ALL, out_ckpt, err);
    }
    char *manifest = cti_path_join(alloc, folder, CTI_CKPT_MANIFEST, err);
    if (manifest == NULL) {
        return CT_ERR_MEMORY;
    }
    const bool is_itself = cti_path_exists(manifest);
    ct_alloc_free(alloc, manifest);
    if (is_itself) {
        return cti_ckpt_open_path(alloc, folder, CTI_CKPT_ALL, out_ckpt, err);
    }
    ct_ckpt *ckpt = NULL;
    CT_TRY(ct_ckpt_newest(alloc, folder, &ckpt, NULL, notes, err));
    if (ckpt == NULL && !cti_path_exists(folder)) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' does not exist", folder);
    }
    if (ckpt == NULL) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' holds no whole checkpoint%s%s", folder,
                       is_export(alloc, folder) ? ", but weights in Hugging Face's layout (--checkpoint.initial-load-in-hf)" : "",
                       notes != NULL && notes->len > 0 ? " (those passed over are listed before)" : "");
    }
    *out_ckpt = ckpt;
    return CT_OK;
}

/* ---- retention --------------------------------------------------------------------------------------------------- */

/* Out of the list first, in one step, so that a kill leaves no half-deleted step-<N>. */
static ct_status delete_step(const ct_alloc *alloc, const char *folder, const found_step *s, ct_err *err)
{
    char *temp = cti_ckpt_temp_path(alloc, folder, s->step, "deleted", err);
    if (temp == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st = cti_path_exists(temp) ? cti_remove_tree(temp, err) : CT_OK;
    if (st == CT_OK) {
        st = cti_rename(s->path, temp, err);
    }
    if (st == CT_OK) {
        st = cti_remove_tree(temp, err);
    }
    ct_alloc_free(alloc, temp);
    return st;
}

static bool is_among(const ct_ckpt_steps *steps, int64_t step)
{
    bool is = false;
    for (int i = 0; steps != NULL && i < steps->n; i++) {
        is |= steps->steps[i] == step;
    }
    return is;
}

ct_status ct_ckpt_retain(const ct_alloc *alloc, const char *folder, int64_t keep_latest_k, const ct_ckpt_steps *damaged, cti_str *out_deleted,
                         ct_err *err)
{
    if (keep_latest_k <= 0) {
        return CT_OK;
    }
    found_steps steps;
    CT_TRY(list_steps(alloc, folder, &steps, err));
    ct_status st = CT_OK;
    int64_t whole = 0;
    for (size_t i = 0; i < steps.n && st == CT_OK; i++) {
        ct_ckpt *ckpt = NULL;
        if (steps.items[i].is_old || is_among(damaged, steps.items[i].step) ||
            open_step(alloc, &steps.items[i], CTI_CKPT_SIZES, &ckpt, NULL) != CT_OK) {
            continue; /* not whole, or not ours: stays */
        }
        ct_ckpt_close(&ckpt);
        if (++whole > keep_latest_k) {
            st = delete_step(alloc, folder, &steps.items[i], err);
            if (st == CT_OK) {
                note(out_deleted, "deleted", steps.items[i].path, NULL);
            }
        }
    }
    steps_free(alloc, &steps);
    return st;
}
