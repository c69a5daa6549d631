/* SPDX-License-Identifier: Apache-2.0 */
/* Flat groups. */
#include "mesh/flat.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "mesh/mesh.h"

/* The length of the group's name at the head of a parameter's name; 0: the group "head". */
static size_t group_key(const char *name)
{
    if (strncmp(name, "layers.", 7) == 0) {
        const char *dot = strchr(name + 7, '.');
        return dot != NULL ? (size_t)(dot - name) : 0;
    }
    return strncmp(name, "tok_embeddings.", 15) == 0 ? 14 : 0;
}

static bool same_group(const ct_flat_group *g, const char *name)
{
    const size_t len = group_key(name);
    if (len == 0) {
        return strcmp(g->name, "head") == 0;
    }
    return strlen(g->name) == len && strncmp(g->name, name, len) == 0;
}

static ct_status new_group(ct_flat_layout *l, const char *name, int32_t n_params, ct_flat_group **out, ct_err *err)
{
    ct_flat_group *g = &l->groups[l->n_groups];
    const size_t len = group_key(name);
    g->name = len == 0 ? ct_arena_strdup(l->arena, "head", err) : ct_arena_printf(l->arena, err, "%.*s", (int)len, name);
    g->members = ct_arena_alloc(l->arena, (size_t)n_params * sizeof *g->members, err);
    if (g->name == NULL || g->members == NULL) {
        return CT_ERR_MEMORY;
    }
    l->n_groups++;
    *out = g;
    return CT_OK;
}

static ct_status add_member(ct_flat_layout *l, const ct_flat_param *params, int32_t index, int32_t n_params, ct_err *err)
{
    const ct_flat_param *p = &params[index];
    ct_flat_group *g = NULL;
    for (int32_t i = l->n_groups - 1; i >= 0 && g == NULL; i--) {
        g = same_group(&l->groups[i], p->name) ? &l->groups[i] : NULL;
    }
    if (g == NULL) {
        /* members of one group are at most those left */
        CT_TRY(new_group(l, p->name, n_params - index, &g, err));
    }
    ct_flat_member *m = &g->members[g->n_members++];
    *m = (ct_flat_member){.ndim = p->ndim, .param_index = index, .offset = cti_round_up(g->total, CT_FLAT_ALIGN)};
    memcpy(m->dims, p->dims, sizeof m->dims);
    m->name = ct_arena_strdup(l->arena, p->name, err);
    m->numel = cti_dims_product(p->dims, p->ndim);
    if (m->name == NULL) {
        return CT_ERR_MEMORY;
    }
    if (m->numel <= 0 || !cti_add_i64(m->offset, m->numel, &g->total)) {
        return CT_FAIL(err, CT_ERR_SHAPE, "parameter '%s' has no elements or too many", p->name);
    }
    return CT_OK;
}

ct_status ct_flat_layout_create(const ct_alloc *alloc, const ct_flat_param *params, int32_t n_params, int64_t degree,
                                ct_flat_layout **out_layout, ct_err *err)
{
    ct_flat_layout *l = CT_NEW(alloc, ct_flat_layout, err);
    if (l == NULL) {
        return CT_ERR_MEMORY;
    }
    l->alloc = alloc;
    l->degree = degree;
    ct_status st = ct_arena_create(alloc, 0, &l->arena, err);
    if (st == CT_OK) {
        l->groups = ct_arena_alloc(l->arena, (size_t)(n_params + 1) * sizeof *l->groups, err);
        st = l->groups == NULL ? CT_ERR_MEMORY : CT_OK;
    }
    for (int32_t i = 0; i < n_params && st == CT_OK; i++) {
        st = add_member(l, params, i, n_params, err);
    }
    if (st != CT_OK) {
        ct_flat_layout_destroy(&l);
        return st;
    }
    for (int32_t i = 0; i < l->n_groups; i++) {
        l->groups[i].total = cti_round_up(l->groups[i].total, degree * CT_FLAT_ALIGN);
    }
    *out_layout = l;
    return CT_OK;
}

void ct_flat_layout_destroy(ct_flat_layout **layout)
{
    if (*layout == NULL) {
        return;
    }
    ct_arena_destroy(&(*layout)->arena);
    ct_alloc_free((*layout)->alloc, *layout);
    *layout = NULL;
}

void ct_flat_local_range(const ct_flat_group *group, int32_t member, int64_t degree, int64_t coord, int64_t *out_begin,
                         int64_t *out_end)
{
    const ct_flat_member *m = &group->members[member];
    int64_t begin, end;
    ct_flat_range(group->total, degree, coord, &begin, &end);
    *out_begin = cti_min_i64(cti_max_i64(begin - m->offset, 0), m->numel);
    *out_end = cti_max_i64(*out_begin, cti_min_i64(end - m->offset, m->numel));
}

int32_t ct_flat_find(const ct_flat_layout *layout, const char *param, int32_t *out_member)
{
    for (int32_t g = 0; g < layout->n_groups; g++) {
        for (int32_t m = 0; m < layout->groups[g].n_members; m++) {
            if (strcmp(layout->groups[g].members[m].name, param) == 0) {
                *out_member = m;
                return g;
            }
        }
    }
    return -1;
}
