/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins: shared objects `<name>.so` with one entry symbol. A plug-in stays open until the end, since classes and factories
 * lie in it; one that fails is closed and forgotten, and the registry is as before. */
#include <dlfcn.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "component/registry_internal.h"
#include "ops/ops.h"

typedef struct plugin {
    const char *name, *path, *version; /* the arena's */
    void *handle;                      /* owns (dlopen) */
    cti_registry_mark before, after;   /* of what it registered */
} plugin;

struct cti_plugins {
    const ct_alloc *alloc;  /* borrows */
    ct_registry *registry;  /* borrows */
    ct_arena *arena;        /* owns: names and folders */
    const char **folders;   /* in order of search */
    size_t n_folders;
    plugin *open; /* owns the array */
    size_t n_open;
};

/* The folders of "a:b:c"; empty parts are left out. */
static ct_status take_folders(cti_plugins *p, const char *path, const char *install_dir, ct_err *err)
{
    size_t room = 2;
    for (const char *at = path; at != NULL && *at != '\0'; at++) {
        room += *at == ':';
    }
    p->folders = ct_arena_alloc(p->arena, room * sizeof *p->folders, err);
    if (p->folders == NULL) {
        return CT_ERR_MEMORY;
    }
    while (path != NULL && *path != '\0') {
        const size_t n = strcspn(path, ":");
        if (n > 0) {
            p->folders[p->n_folders] = ct_arena_printf(p->arena, err, "%.*s", (int)n, path);
            if (p->folders[p->n_folders++] == NULL) {
                return CT_ERR_MEMORY;
            }
        }
        path += n + (path[n] == ':');
    }
    if (install_dir != NULL) {
        p->folders[p->n_folders] = ct_arena_strdup(p->arena, install_dir, err);
        if (p->folders[p->n_folders++] == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    return CT_OK;
}

ct_status cti_plugins_create(const ct_alloc *alloc, ct_registry *registry, const char *path, const char *install_dir,
                             cti_plugins **out_plugins, ct_err *err)
{
    cti_plugins *p = CT_NEW(alloc, cti_plugins, err);
    if (p == NULL) {
        return CT_ERR_MEMORY;
    }
    p->alloc = alloc;
    p->registry = registry;
    ct_status st;
    CT_TRY_GOTO(st, ct_arena_create(alloc, 4096, &p->arena, err), fail);
    CT_TRY_GOTO(st, take_folders(p, path, install_dir, err), fail);
    *out_plugins = p;
    return CT_OK;
fail:
    cti_plugins_destroy(&p);
    return st;
}

void cti_plugins_destroy(cti_plugins **plugins)
{
    if (plugins == NULL || *plugins == NULL) {
        return;
    }
    cti_plugins *p = *plugins;
    for (size_t i = p->n_open; i-- > 0;) {
        cti_registry_rollback(p->registry, p->open[i].before); /* what it points to is about to go */
        (void)dlclose(p->open[i].handle); /* nothing to do about it at the end */
    }
    ct_alloc_free(p->alloc, p->open);
    ct_arena_destroy(&p->arena);
    ct_alloc_free(p->alloc, p);
    *plugins = NULL;
}

/* A name is part of a path: letters, digits, '_', '-' and dots between them. */
static bool is_plugin_name(const char *name)
{
    const size_t n = strlen(name);
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    return n > 0 && n <= 200 && strspn(name, legal) == n && name[0] != '.' && name[n - 1] != '.';
}

/* The first folder's `<name>.so`; NULL where none holds one (err only for memory). */
static char *find_file(const cti_plugins *p, const char *name, ct_err *err)
{
    for (size_t i = 0; is_plugin_name(name) && i < p->n_folders; i++) {
        char *path = ct_arena_printf(p->arena, err, "%s/%s.so", p->folders[i], name);
        if (path == NULL || cti_path_is_file(path)) {
            return path;
        }
    }
    return NULL;
}

bool cti_plugins_finds(const cti_plugins *plugins, const char *name)
{
    return find_file(plugins, name, NULL) != NULL;
}

static ct_status not_found(const cti_plugins *p, const char *name, ct_err *err)
{
    if (!is_plugin_name(name)) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%.160s' cannot name a plug-in: wanted letters, digits, '_', '-' and dots", name);
    }
    const char *folders = "";
    for (size_t i = 0; i < p->n_folders && folders != NULL; i++) {
        folders = ct_arena_printf(p->arena, err, "%s%s'%s'", folders, i > 0 ? ", " : "", p->folders[i]);
    }
    if (folders == NULL) {
        return CT_ERR_MEMORY;
    }
    return CT_FAIL(err, CT_ERR_USAGE, "no plug-in '%s': '%s.so' is not in %s (CTITAN_PLUGIN_PATH names more folders)", name, name,
                   p->n_folders > 0 ? folders : "any folder, since none was given");
}

/* The entry's answer, checked. */
static ct_status check_info(const char *path, const char *name, const ct_plugin_info *info, ct_err *err)
{
    if (info == NULL) {
        return CT_FAIL(err, CT_ERR_PLUGIN, "'%s': " CT_PLUGIN_ENTRY "() gave nothing", path);
    }
    if (info->abi != CT_PLUGIN_ABI) {
        return CT_FAIL(err, CT_ERR_PLUGIN, "'%s': made for plug-in ABI %u, this program has %u: build it again", path,
                       (unsigned)info->abi, (unsigned)CT_PLUGIN_ABI);
    }
    if (info->size_bytes != sizeof(ct_plugin_info)) {
        return CT_FAIL(err, CT_ERR_PLUGIN, "'%s': its ct_plugin_info has %u bytes, wanted %zu: build it again", path,
                       (unsigned)info->size_bytes, sizeof(ct_plugin_info));
    }
    if (info->name == NULL || strcmp(info->name, name) != 0) {
        return CT_FAIL(err, CT_ERR_PLUGIN, "'%s': calls itself '%s', wanted '%s' as its file", path,
                       info->name != NULL ? info->name : "", name);
    }
    if (info->setup == NULL) {
        return CT_FAIL(err, CT_ERR_PLUGIN, "'%s': has no setup function", path);
    }
    return CT_OK;
}

/* "<owner>" or "<owner>.…" */
static bool is_of(const char *owner, const char *name)
{
    const size_t n = strlen(owner);
    return strncmp(name, owner, n) == 0 && (name[n] == '\0' || name[n] == '.');
}

static ct_status check_name(const char *path, const char *owner, const char *what, const char *name, ct_err *err)
{
    return is_of(owner, name) && strcmp(owner, name) != 0
               ? CT_OK
               : CT_FAIL(err, CT_ERR_PLUGIN, "'%s': registers the %s '%s', wanted a name that begins with '%s.'", path, what, name, owner);
}

/* What a plug-in registers bears its name, so that two cannot be taken for each other. */
static ct_status check_names(const ct_registry *r, cti_registry_mark before, const char *path, const char *name,
                             ct_err *err)
{
    for (size_t i = before.n_overrides; i < r->n_overrides; i++) {
        CT_TRY(check_name(path, name, "override", r->overrides[i].name, err));
    }
    for (size_t i = before.n_ops; i < r->n_ops; i++) {
        CT_TRY(check_name(path, name, "op", ct_op_row(r->ops[i])->name, err));
    }
    for (size_t i = before.n_datasets; i < r->n_datasets; i++) {
        CT_TRY(check_name(path, name, "data set", r->datasets[i].name, err));
    }
    for (size_t i = before.n_optimizers; i < r->n_optimizers; i++) {
        CT_TRY(check_name(path, name, "optimizer", r->optimizers[i].name, err));
    }
    for (size_t i = before.n_configs; i < r->n_configs; i++) {
        if (!is_of(name, r->configs[i].module)) {
            return CT_FAIL(err, CT_ERR_PLUGIN, "'%s': registers the module '%s', wanted '%s' or a name that begins with it",
                           path, r->configs[i].module, name);
        }
    }
    return CT_OK;
}

static ct_status setup(cti_plugins *p, const char *path, const char *name, void *handle, plugin *out, ct_err *err)
{
    void *symbol = dlsym(handle, CT_PLUGIN_ENTRY);
    if (symbol == NULL) {
        return CT_FAIL(err, CT_ERR_PLUGIN, "'%s': has no symbol '" CT_PLUGIN_ENTRY "': it is no plug-in of ctitan", path);
    }
    ct_plugin_entry_fn entry;
    memcpy(&entry, &symbol, sizeof entry); /* POSIX: a data pointer that holds a function */
    const ct_plugin_info *info = entry();
    CT_TRY(check_info(path, name, info, err));
    const cti_registry_mark before = cti_registry_mark_now(p->registry);
    ct_err why = {0};
    ct_status st = info->setup(p->registry, &why);
    if (st != CT_OK) {
        (void)CT_FAIL(err, CT_ERR_PLUGIN, "'%s': its setup failed: %s", path,
                      why.message[0] != '\0' ? why.message : ct_status_sentence(st)); /* st says the rest */
        st = CT_ERR_PLUGIN;
    } else {
        st = check_names(p->registry, before, path, name, err);
    }
    if (st == CT_OK) {
        out->path = ct_arena_strdup(p->arena, path, err);
        out->version = ct_arena_strdup(p->arena, info->version != NULL ? info->version : "", err);
        st = out->path != NULL && out->version != NULL ? CT_OK : CT_ERR_MEMORY;
    }
    out->before = before;
    out->after = cti_registry_mark_now(p->registry);
    if (st != CT_OK) {
        cti_registry_rollback(p->registry, before);
    }
    return st;
}

ct_status cti_plugins_load(cti_plugins *plugins, const char *name, ct_err *err)
{
    cti_plugins *p = plugins;
    for (size_t i = 0; i < p->n_open; i++) {
        if (strcmp(p->open[i].name, name) == 0) {
            return CT_OK;
        }
    }
    const char *path = find_file(p, name, err);
    if (path == NULL) {
        return not_found(p, name, err);
    }
    plugin *open = ct_alloc_resize(p->alloc, p->open, p->n_open + 1, sizeof *open, err);
    const char *copy = ct_arena_strdup(p->arena, name, err);
    if (open != NULL) {
        p->open = open;
    }
    if (open == NULL || copy == NULL) {
        return CT_ERR_MEMORY;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *why = dlerror();
        return CT_FAIL(err, CT_ERR_PLUGIN, "'%s' cannot be opened: %s", path, why != NULL ? why : "no reason given");
    }
    plugin opened = {.name = copy, .handle = handle};
    const ct_status st = setup(p, path, name, handle, &opened, err);
    if (st != CT_OK) {
        (void)dlclose(handle); /* the failure is told already */
        return st;
    }
    p->open[p->n_open++] = opened;
    return CT_OK;
}

bool cti_plugins_describe(const cti_plugins *plugins, const char *name, cti_plugin_facts *out)
{
    for (size_t i = 0; i < plugins->n_open; i++) {
        const plugin *p = &plugins->open[i];
        if (strcmp(p->name, name) == 0) {
            *out = (cti_plugin_facts){p->path, p->version, p->before, p->after};
            return true;
        }
    }
    return false;
}

const char *cti_plugins_folder(const cti_plugins *plugins, size_t i)
{
    return i < plugins->n_folders ? plugins->folders[i] : NULL;
}
