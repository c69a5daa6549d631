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

/* "layers.3", "layers.3.whole" or "layers.3.muon". */
static const char *group_name(ct_arena *arena, const ct_flat_param *p, bool has_tensor, ct_err *err)
{
    const size_t len = group_key(p->name);
    const char *family = p->family != NULL ? p->family : "";
    return ct_arena_printf(arena, err, "%.*s%s%s%s", len == 0 ? 4 : (int)len, len == 0 ? "head" : p->name, has_tensor && !p->cut.is_cut ? ".whole" : "",
                           family[0] != '\0' ? "." : "", family);
}

static ct_status new_group(ct_flat_layout *l, const char *name, const ct_flat_param *p, int32_t n_params, ct_flat_group **out, ct_err *err)
{
    ct_flat_group *g = &l->groups[l->n_groups];
    *g = (ct_flat_group){.name = name, .is_cut = p->cut.is_cut, .is_owing = p->is_owing};
    g->members = ct_arena_alloc(l->arena, (size_t)n_params * sizeof *g->members, err);
    if (g->members == NULL) {
        return CT_ERR_MEMORY;
    }
    l->n_groups++;
    *out = g;
    return CT_OK;
}

static ct_status add_member(ct_flat_layout *l, const ct_flat_param *params, int32_t index, int32_t n_params, bool has_tensor, ct_err *err)
{
    const ct_flat_param *p = &params[index];
    const char *name = group_name(l->arena, p, has_tensor, err);
    ct_flat_group *g = NULL;
    if (name == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = l->n_groups - 1; i >= 0 && g == NULL; i--) {
        g = strcmp(l->groups[i].name, name) == 0 ? &l->groups[i] : NULL;
    }
    if (g == NULL) {
        /* members of one group are at most those left */
        CT_TRY(new_group(l, name, p, n_params - index, &g, err));
    }
    if (g->is_owing != p->is_owing) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "parameters of '%s' are used both on whole rows and on parts of them ('%s')", name, p->name);
    }
    if (p->is_joined && (g->n_members == 0 || g->members[g->n_members - 1].param_index != index - 1)) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s' and '%s' are one weight here, so one family of optimizers must have both (optimizer.param-groups)",
                       params[index - 1].name, p->name);
    }
    ct_flat_member *m = &g->members[g->n_members++];
    *m = (ct_flat_member){.ndim = p->ndim, .param_index = index, .cut = p->cut,
                          .offset = p->is_joined ? g->total : cti_round_up(g->total, CT_FLAT_ALIGN)};
    memcpy(m->dims, p->dims, sizeof m->dims);
    memcpy(m->whole, p->dims, sizeof m->whole);
    if (p->cut.is_cut) {
        m->whole[p->cut.dim] = p->cut.whole;
    }
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
    bool has_tensor = false;
    for (int32_t i = 0; i < n_params; i++) {
        has_tensor = has_tensor || params[i].cut.is_cut || params[i].is_owing;
    }
    for (int32_t i = 0; i < n_params && st == CT_OK; i++) {
        st = add_member(l, params, i, n_params, has_tensor, err);
    }
    if (st != CT_OK) {
        ct_flat_layout_destroy(&l);
        return st;
    }
    for (int32_t i = 0; i < l->n_groups; i++) {
        const int64_t parts = CT_FLAT_LEAVES % degree == 0 ? CT_FLAT_LEAVES : degree;
        l->groups[i].total = cti_round_up(l->groups[i].total, parts * CT_FLAT_ALIGN);
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

int64_t ct_flat_leaves(int64_t degree)
{
    return CT_FLAT_LEAVES % degree == 0 ? CT_FLAT_LEAVES / degree : 1;
}

int64_t ct_flat_whole_run(const ct_flat_member *m, int64_t first, int64_t n, int64_t *out_n)
{
    if (!m->cut.is_cut) {
        *out_n = n;
        return first;
    }
    int64_t inner = 1; /* elements behind the cut dim */
    for (int32_t d = m->cut.dim + 1; d < m->ndim; d++) {
        inner *= m->dims[d];
    }
    const int64_t run = m->dims[m->cut.dim] * inner; /* end to end in both */
    *out_n = cti_min_i64(n, run - first % run);
    return first / run * (m->cut.whole * inner) + m->cut.begin * inner + first % run;
}
