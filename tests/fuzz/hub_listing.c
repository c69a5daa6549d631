/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: hub tokenizer base */
/* labels: fast */
/* Mutated listings of both services: refused with one line, or files whose names, after the check, stay below their folder. */
#include "fuzz/fuzz.h"

#include "hub/hub_internal.h"

static const char hf[] =
    "[{\"type\":\"directory\",\"oid\":\"da39a3ee5e6b4b0d3255bfef95601890afd80709\",\"size\":0,\"path\":\"original\"},"
    "{\"type\":\"file\",\"oid\":\"da39a3ee5e6b4b0d3255bfef95601890afd80709\",\"size\":9085657,\"path\":\"tokenizer.json\"},"
    "{\"type\":\"file\",\"oid\":\"da39a3ee5e6b4b0d3255bfef95601890afd80709\",\"size\":3,\"path\":\"original/a.txt\"},"
    "{\"type\":\"file\",\"oid\":\"da39a3ee5e6b4b0d3255bfef95601890afd80709\",\"size\":5,\"lfs\":{\"oid\":"
    "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\",\"size\":50,\"pointerSize\":135},\"path\":\"a.safetensors\"}]";
static const char ms[] =
    "{\"Code\":200,\"Data\":{\"Files\":[{\"Path\":\"original\",\"Type\":\"tree\",\"Size\":0},{\"Path\":\"original/config.json\",\"Type\":\"blob\","
    "\"Size\":7,\"Sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"},{\"Path\":\"b\",\"Size\":1,\"Sha256\":null}]},"
    "\"Message\":\"success\",\"Success\":true}";
static const char *const words[] = {"../", "/", "\\\\", "\\u0000", "\\n", "..", ".git/", "null", "-1", "1e9", "[", "{", "}", "]", "\"path\":", "\"Path\":",
                                    "false", ".part", "\\ud800", "original", "99999999999999999999", "\\u202e", "Tokenizer.json", ","};

static void check_safe(const cti_hub_file *f, uint64_t seed)
{
    const char *p = f->path;
    if (*p == '/' || *p == '\0' || strstr(p, "//") != NULL || strchr(p, '\\') != NULL || strcmp(p, "..") == 0 || strncmp(p, "../", 3) == 0 ||
        strstr(p, "/../") != NULL || cti_ends_with(p, "/..") || cti_ends_with(p, "/") || f->size < 0) {
        fail_msg("case %llu: '%s' passed", (unsigned long long)seed, p);
    }
    for (; *p != '\0'; p++) {
        assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
    }
}

static void test_listing(void **state)
{
    (void)state;
    const ct_alloc *alloc = ct_alloc_system();
    cti_str bytes = {.alloc = alloc};
    size_t n_ok = 0, n_refused = 0;
    for (fuzz_case c = fuzz_begin("hub_listing", 3000); fuzz_next(&c);) {
        const bool is_hf = fuzz_below(&c, 2) == 0;
        cti_hub_listing l;
        ct_err err = {0};
        size_t n_entries;
        fuzz_mutate(&c, &bytes, is_hf ? hf : ms, is_hf ? sizeof hf - 1 : sizeof ms - 1, words, N_OF(words));
        assert_int_equal(cti_hub_listing_init(alloc, &l, &err), CT_OK);
        ct_status st = cti_hub_listing_add(&l, is_hf ? CT_HUB_HUGGINGFACE : CT_HUB_MODELSCOPE, cti_str_text(&bytes), bytes.len, &n_entries, &err);
        if (st == CT_OK) {
            const ct_hub_selection all = {.all = true}, some = {.assets = 15};
            cti_str notes = {.alloc = alloc};
            cti_hub_listing_sort(&l);
            st = cti_hub_select(&l, fuzz_below(&c, 2) == 0 ? &all : &some, "o/n", &notes, &err);
            st = st == CT_OK ? cti_hub_check_names(alloc, l.files, l.n, &err) : st;
            for (size_t i = 0; st == CT_OK && i < l.n; i++) {
                check_safe(&l.files[i], c.seed);
            }
            cti_str_deinit(&notes);
        }
        if (st != CT_OK) { /* one line that can be shown */
            for (const char *p = err.message; *p != '\0'; p++) {
                assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
            }
            assert_true(err.message[0] != '\0');
        }
        n_ok += st == CT_OK;
        n_refused += st != CT_OK;
        cti_hub_listing_deinit(&l);
    }
    printf("%zu taken, %zu refused\n", n_ok, n_refused);
    assert_true(n_ok + n_refused < 1000 || (n_ok > 50 && n_refused > 50));
    cti_str_deinit(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_listing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
