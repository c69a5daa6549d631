/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of a repository are wanted. */
#include <string.h>

#include "base/file.h"
#include "base/nearest.h"
#include "hub/hub_internal.h"

static const struct {
    const char *word, *patterns;
} assets[] = {
#define ASSET_ROW(NAME, word, patterns) {word, patterns},
    CT_HUB_ASSET_LIST(ASSET_ROW)
#undef ASSET_ROW
};

ct_status ct_hub_asset_from(const char *word, unsigned *out_flag, ct_err *err)
{
    const char *words[CT_HUB_ASSET_COUNT];
    for (unsigned i = 0; i < CT_HUB_ASSET_COUNT; i++) {
        words[i] = assets[i].word;
        if (strcmp(word, words[i]) == 0) {
            *out_flag = 1u << i;
            return CT_OK;
        }
    }
    const int nearest = cti_nearest(word, words, CT_HUB_ASSET_COUNT);
    char shown[CTI_HUB_SHOWN_BYTES];
    return CT_FAIL(err, CT_ERR_USAGE, "'%s' is no kind of asset: tokenizer, safetensors, index, config%s%s%s",
                   cti_hub_shown(word, strlen(word), shown), nearest >= 0 ? " (nearest: " : "", nearest >= 0 ? words[nearest] : "",
                   nearest >= 0 ? ")" : "");
}

/* One of "a|b|c" matches. */
static bool any_matches(const char *patterns, const char *name)
{
    char one[64];
    for (const char *at = patterns; at != NULL;) {
        const char *bar = strchr(at, '|');
        const size_t n = bar != NULL ? (size_t)(bar - at) : strlen(at);
        CT_ASSERT(n < sizeof one);
        memcpy(one, at, n);
        one[n] = '\0';
        if (cti_glob_match(one, name)) {
            return true;
        }
        at = bar != NULL ? bar + 1 : NULL;
    }
    return false;
}

/* "x/" means all of the folder x, as the services' own programs have it. */
static bool path_matches(const char *pattern, const char *path)
{
    const size_t n = strlen(pattern);
    return cti_glob_match(pattern, path) || (n > 0 && pattern[n - 1] == '/' && strncmp(pattern, path, n) == 0);
}

static bool is_selected(const ct_hub_selection *s, const char *path, unsigned *assets_seen)
{
    bool yes = s->all;
    const char *name = cti_path_base(path);
    for (unsigned i = 0; i < CT_HUB_ASSET_COUNT; i++) {
        if ((s->assets & 1u << i) != 0 && any_matches(assets[i].patterns, name)) {
            *assets_seen |= 1u << i;
            yes = true;
        }
    }
    for (size_t i = 0; i < s->n_name_patterns && !yes; i++) {
        yes = cti_glob_match(s->name_patterns[i], name);
    }
    for (size_t i = 0; i < s->n_path_patterns && !yes; i++) {
        yes = path_matches(s->path_patterns[i], path);
    }
    return yes;
}

/* "; nearest to 'tokenizr.json' is 'tokenizer.json'", for the first pattern that has one. */
static void add_nearest(const cti_hub_listing *l, const ct_hub_selection *s, cti_str *text)
{
    enum { MAX_NAMES = 2000 };
    const char *names[MAX_NAMES];
    size_t n = 0;
    char shown[CTI_HUB_SHOWN_BYTES], shown2[CTI_HUB_SHOWN_BYTES];
    for (size_t i = 0; i < l->n && n < MAX_NAMES; i++) {
        if (strlen(l->files[i].path) < 200) {
            names[n++] = l->files[i].path;
        }
    }
    for (size_t i = 0; i < s->n_name_patterns + s->n_path_patterns; i++) {
        const char *pattern = i < s->n_name_patterns ? s->name_patterns[i] : s->path_patterns[i - s->n_name_patterns];
        const int nearest = strlen(pattern) < 200 ? cti_nearest(pattern, names, n) : -1;
        if (nearest >= 0) {
            cti_str_printf(text, "; nearest to '%s' is '%s'", cti_hub_shown(pattern, strlen(pattern), shown),
                           cti_hub_shown(names[nearest], strlen(names[nearest]), shown2));
            return;
        }
    }
}

static ct_status nothing(const cti_hub_listing *l, const ct_hub_selection *s, const char *repo_id, ct_err *err)
{
    enum { SHOW = 12 };
    char shown[CTI_HUB_SHOWN_BYTES];
    if (l->n == 0) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' has no files", repo_id);
    }
    cti_str there = {.alloc = l->alloc};
    for (size_t i = 0; i < l->n && i < SHOW; i++) {
        cti_str_printf(&there, "%s%s", i > 0 ? ", " : "", cti_hub_shown(l->files[i].path, strlen(l->files[i].path), shown));
    }
    if (l->n > SHOW) {
        cti_str_printf(&there, " and %zu more", l->n - SHOW);
    }
    add_nearest(l, s, &there);
    const ct_status st = CT_FAIL(err, CT_ERR_NOT_FOUND, "no file of '%s' is what was asked for; there are: %s", repo_id,
                                 cti_str_text(&there));
    cti_str_deinit(&there);
    return st;
}

ct_status cti_hub_select(cti_hub_listing *listing, const ct_hub_selection *selection, const char *repo_id, cti_str *notes, ct_err *err)
{
    unsigned seen = 0;
    size_t n = 0;
    for (size_t i = 0; i < listing->n; i++) { /* looks first, so that nothing() still has them all */
        n += is_selected(selection, listing->files[i].path, &seen);
    }
    if (n == 0) {
        return nothing(listing, selection, repo_id, err);
    }
    for (unsigned i = 0; i < CT_HUB_ASSET_COUNT; i++) {
        if ((selection->assets & ~seen & 1u << i) != 0) {
            cti_str_printf(notes, "no file of kind '%s' in '%s'\n", assets[i].word, repo_id);
        }
    }
    n = 0;
    for (size_t i = 0; i < listing->n; i++) {
        if (is_selected(selection, listing->files[i].path, &seen)) {
            listing->files[n++] = listing->files[i];
        }
    }
    listing->n = n;
    return cti_str_check(notes, err);
}
