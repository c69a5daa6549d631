/* SPDX-License-Identifier: Apache-2.0 */
/* Listings of a repository's files, as either service sends them. */
#include "helpers/hub_server/server.h"
#include "hub/sha.h"

static void add_entry(cti_str *out, int is_hf, const char *base, const char *path, int is_dir)
{
    char hex[65], head[64];
    size_t size = 0;
    cti_sha sha;
    char *full = hub_in_root("%s/%s", base, path);
    if (out->len > 0) {
        cti_str_add(out, "\n");
    }
    if (is_dir) {
        cti_str_printf(out, is_hf ? "{\"type\":\"directory\",\"oid\":\"0\",\"size\":0,\"path\":\"%s\"}" : "{\"Type\":\"tree\",\"Path\":\"%s\",\"Size\":0}", path);
    } else {
        char *data = hub_slurp(full, &size);
        const int is_git = cti_ends_with(path, ".json") || cti_ends_with(path, ".txt") || strchr(cti_path_base(path), '.') == NULL;
        if (is_hf && is_git) {
            cti_sha1_init(&sha);
            cti_sha_update(&sha, head, (size_t)snprintf(head, sizeof head, "blob %zu", size) + 1);
        } else {
            cti_sha256_init(&sha);
        }
        cti_sha_update(&sha, data, size);
        cti_sha_hex(&sha, hex);
        if (!is_hf) {
            cti_str_printf(out, "{\"Type\":\"blob\",\"Path\":\"%s\",\"Size\":%zu,\"Sha256\":\"%s\"}", path, size, hex);
        } else if (is_git) {
            cti_str_printf(out, "{\"type\":\"file\",\"oid\":\"%s\",\"size\":%zu,\"path\":\"%s\"}", hex, size, path);
        } else {
            cti_str_printf(out, "{\"type\":\"file\",\"oid\":\"%040d\",\"size\":%zu,\"lfs\":{\"oid\":\"%s\",\"size\":%zu,\"pointerSize\":134},\"path\":\"%s\"}", 0,
                           size, hex, size, path);
        }
        free(data);
    }
    free(full);
}

static void walk(cti_str *out, int is_hf, const char *base, const char *below, int recursive)
{
    char *dir = hub_in_root("%s/%s", base, below);
    cti_names names = {0};
    ct_err err = {0};
    if (cti_list_dir(ct_alloc_system(), dir, &names, &err) == CT_OK) {
        for (size_t i = 0; i < names.n; i++) {
            char path[2048], *full;
            (void)snprintf(path, sizeof path, "%s%s%s", below, below[0] != '\0' ? "/" : "", names.names[i]);
            full = hub_in_root("%s/%s", base, path);
            const int is_dir = cti_path_is_dir(full);
            add_entry(out, is_hf, base, path, is_dir);
            if (is_dir && recursive) {
                walk(out, is_hf, base, path, 1);
            }
            free(full);
        }
        cti_names_free(ct_alloc_system(), &names);
    }
    free(dir);
}

void hub_send_listing(hub_request *r, int is_hf, const char *base)
{
    cti_str lines = {.alloc = ct_alloc_system()}, body = {.alloc = ct_alloc_system()};
    char below[1024], word[64], headers[1024] = "", *next = NULL, *own = hub_in_root("%s.listing", base);
    size_t own_size, from = 0, per_page = SIZE_MAX, i = 0;
    char *own_text = hub_slurp(own, &own_size);
    free(own);
    if (own_text != NULL) {
        hub_answer(r, 200, "", own_text, own_size);
        free(own_text);
        return;
    }
    (void)hub_get_query(r, "Root", below, sizeof below);
    walk(&lines, is_hf, base, below, is_hf || (hub_get_query(r, "Recursive", word, sizeof word) && strcmp(word, "True") == 0));
    if (hub_get_query(r, "cursor", word, sizeof word)) {
        from = strtoul(word, NULL, 10);
    }
    per_page = hub_is_kind(r, "pages") ? strtoul(r->f.rest, NULL, 10) : per_page;
    cti_str_add(&body, is_hf ? "[" : "{\"Code\":200,\"Data\":{\"Files\":[");
    const size_t start = body.len;
    for (char *line = lines.data != NULL ? strtok_r(lines.data, "\n", &next) : NULL; line != NULL; line = strtok_r(NULL, "\n", &next), i++) {
        if (i == from + per_page) {
            (void)snprintf(headers, sizeof headers, "Link: <http://127.0.0.1:%d%.700s?recursive=true&cursor=%zu>; rel=\"next\"\r\n", hub_ports[r->which], r->raw, i);
        }
        if (i >= from && i - from < per_page && (is_hf || i < 3000)) { /* where ModelScope ends */
            cti_str_printf(&body, "%s%s", body.len > start ? "," : "", line);
        }
    }
    cti_str_add(&body, is_hf ? "]" : "]},\"Message\":\"success\",\"Success\":true}");
    hub_answer(r, 200, headers, body.data, body.len);
    cti_str_deinit(&lines);
    cti_str_deinit(&body);
}
