/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: hub tokenizer base */
/* labels: fast */
/* Listings of both services, names that are refused, what a selection takes. */
#include "unit/base_test.h"

#include "hub/hub_internal.h"

#define SHA "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define OID "da39a3ee5e6b4b0d3255bfef95601890afd80709"

static ct_status add(cti_hub_listing *l, ct_hub_source source, const char *json, ct_err *err)
{
    size_t n;
    return cti_hub_listing_add(l, source, json, strlen(json), &n, err);
}

static void test_huggingface(void **state)
{
    (void)state;
    static const char json[] =
        "[{\"type\":\"directory\",\"oid\":\"" OID "\",\"size\":0,\"path\":\"original\"},"
        "{\"type\":\"file\",\"oid\":\"" OID "\",\"size\":9085657,\"path\":\"tokenizer.json\",\"xetHash\":\"x\"},"
        "{\"type\":\"file\",\"oid\":\"" OID "\",\"size\":5,\"lfs\":{\"oid\":\"" SHA "\",\"size\":5000000000,\"pointerSize\":135},\"path\":\"a.safetensors\"}]";
    cti_hub_listing l;
    ct_err err = {0};
    assert_int_equal(cti_hub_listing_init(ct_alloc_system(), &l, &err), CT_OK);
    assert_int_equal(add(&l, CT_HUB_HUGGINGFACE, json, &err), CT_OK);
    cti_hub_listing_sort(&l);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.files[0].path, "a.safetensors");
    assert_int_equal(l.files[0].size, 5000000000);
    assert_string_equal(l.files[0].sha256, SHA);
    assert_string_equal(l.files[0].blob_sha1, ""); /* the oid is that of the pointer */
    assert_string_equal(l.files[1].path, "tokenizer.json");
    assert_int_equal(l.files[1].size, 9085657);
    assert_string_equal(l.files[1].blob_sha1, OID);
    cti_hub_listing_deinit(&l);
}

static void test_modelscope(void **state)
{
    (void)state;
    static const char json[] =
        "{\"Code\":200,\"Data\":{\"Files\":[{\"Path\":\"original\",\"Type\":\"tree\",\"Size\":0},"
        "{\"Path\":\"config.json\",\"Type\":\"blob\",\"Size\":7,\"Sha256\":\"E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855\"},"
        "{\"Path\":\"b\",\"Size\":1,\"Sha256\":null}]},\"Success\":true}";
    cti_hub_listing l;
    ct_err err = {0};
    assert_int_equal(cti_hub_listing_init(ct_alloc_system(), &l, &err), CT_OK);
    assert_int_equal(add(&l, CT_HUB_MODELSCOPE, json, &err), CT_OK);
    assert_int_equal(add(&l, CT_HUB_MODELSCOPE, "{\"Data\":{\"Files\":null}}", &err), CT_OK);
    cti_hub_listing_sort(&l);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.files[0].path, "b");
    assert_string_equal(l.files[0].sha256, "");
    assert_string_equal(l.files[1].sha256, SHA);
    assert_int_equal(l.n_folders, 1);
    assert_string_equal(l.folders[0], "original");
    cti_hub_listing_deinit(&l);
}

static void test_wrong_listings(void **state)
{
    (void)state;
    static const struct {
        ct_hub_source source;
        const char *json, *words;
    } cases[] = {
        {CT_HUB_HUGGINGFACE, "", "listing"},
        {CT_HUB_HUGGINGFACE, "<html>\n\001</html>", "listing"},
        {CT_HUB_HUGGINGFACE, "{}", "no JSON array"},
        {CT_HUB_HUGGINGFACE, "[1]", "entry 0 is no JSON object"},
        {CT_HUB_HUGGINGFACE, "[{}]", "'path' is missing"},
        {CT_HUB_HUGGINGFACE, "[{\"path\":1}]", "'path' is something else"},
        {CT_HUB_HUGGINGFACE, "[{\"path\":\"a\"}]", "entry 0 ('a'): 'type' is missing"},
        {CT_HUB_HUGGINGFACE, "[{\"path\":\"a\\u0000b\",\"type\":\"file\"}]", "NUL in it: 'a\\x00b'"},
        {CT_HUB_HUGGINGFACE, "[{\"path\":\"a\",\"type\":\"file\"}]", "size"},
        {CT_HUB_HUGGINGFACE, "[{\"path\":\"a\",\"type\":\"file\",\"size\":-1,\"oid\":\"" OID "\"}]", "'size' is negative"},
        {CT_HUB_HUGGINGFACE, "[{\"path\":\"a\",\"type\":\"file\",\"size\":1.5,\"oid\":\"" OID "\"}]", "size"},
        {CT_HUB_HUGGINGFACE, "[{\"path\":\"a\",\"type\":\"file\",\"size\":1,\"oid\":\"xyz\"}]", "40 hexadecimal digits"},
        {CT_HUB_HUGGINGFACE, "[{\"path\":\"a\",\"type\":\"file\",\"size\":1,\"lfs\":{\"oid\":\"" OID "\",\"size\":1}}]", "64 hexadecimal digits"},
        {CT_HUB_MODELSCOPE, "[]", "no JSON object"},
        {CT_HUB_MODELSCOPE, "{\"Success\":false,\"Message\":\"no\\u001b[2J\"}", "the service says no: no\\x1b[2J"},
        {CT_HUB_MODELSCOPE, "{\"Data\":[]}", "Data"},
        {CT_HUB_MODELSCOPE, "{\"Data\":{\"Files\":{}}}", "Files"},
        {CT_HUB_MODELSCOPE, "{\"Data\":{\"Files\":[{\"Path\":\"a\",\"Size\":99999999999999999999}]}}", "listing"},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        cti_hub_listing l;
        ct_err err = {0};
        assert_int_equal(cti_hub_listing_init(ct_alloc_system(), &l, &err), CT_OK);
        assert_int_not_equal(add(&l, cases[i].source, cases[i].json, &err), CT_OK);
        if (strstr(err.message, cases[i].words) == NULL || strchr(err.message, '\n') != NULL) {
            fail_msg("case %zu: '%s' does not hold '%s'", i, err.message, cases[i].words);
        }
        cti_hub_listing_deinit(&l);
    }
}

static void test_names(void **state)
{
    (void)state;
    char longest[1100], part[300];
    memset(longest, 'a', sizeof longest);
    memset(part, 'b', sizeof part);
    for (size_t i = 200; i < 1001; i += 200) {
        longest[i] = '/';
    }
    longest[1001] = part[256] = '\0';
    const struct {
        const char *names[3], *words; /* sorted */
    } cases[] = {
        {{"a.json", "b/c.json", "b/d.json"}, NULL},
        {{".gitattributes", "\xc3\xa9/\xe6\x96\x87.json", NULL}, NULL},
        {{"..a", "a..", "b/..c"}, NULL},
        {{"", NULL, NULL}, "it is empty"},
        {{"../x.json", NULL, NULL}, "'.' and '..' are no names"},
        {{"a/../../x.json", NULL, NULL}, "'.' and '..' are no names"},
        {{"./x", NULL, NULL}, "'.' and '..' are no names"},
        {{"a/..", NULL, NULL}, "'.' and '..' are no names"},
        {{"/etc/passwd", NULL, NULL}, "begins at the root"},
        {{"a//b", NULL, NULL}, "an empty part"},
        {{"a/", NULL, NULL}, "an empty part"},
        {{"..\\x", NULL, NULL}, "backslash"},
        {{"a\nb", NULL, NULL}, "'a\\x0ab'"},
        {{"a\x1b[2Jb", NULL, NULL}, "control characters"},
        {{"a\xe2\x80\xae" "nosj.b", NULL, NULL}, "control characters"}, /* U+202E turns the rest around */
        {{"a\xff", NULL, NULL}, "not UTF-8"},
        {{".git/config", NULL, NULL}, "'.git'"},
        {{"x/.GIT/hooks/a", NULL, NULL}, "'.git'"},
        {{"a.json.part", NULL, NULL}, "'.part'"},
        {{longest, NULL, NULL}, "longer than 1000 bytes"},
        {{part, NULL, NULL}, "longer than 255 bytes"},
        {{"a", "a", NULL}, "it is there twice"},
        {{"a", "a/b", NULL}, "another file's name is that of its folder"},
        {{"a", "a-b", "a/b"}, "another file's name is that of its folder"},
        {{"Config.json", "config.json", NULL}, "case of letters"},
        {{"A", "a/b", NULL}, "case of letters"},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        cti_hub_file files[3];
        size_t n = 0;
        for (; n < 3 && cases[i].names[n] != NULL; n++) {
            files[n] = (cti_hub_file){.path = cases[i].names[n]};
        }
        ct_err err = {0};
        const ct_status st = cti_hub_check_names(ct_alloc_system(), files, n, &err);
        if (cases[i].words == NULL) {
            assert_int_equal(st, CT_OK);
        } else if (st != CT_ERR_FORMAT || strstr(err.message, cases[i].words) == NULL) {
            fail_msg("case %zu: '%s' does not hold '%s'", i, err.message, cases[i].words);
        }
    }
}

static void test_repo_ids(void **state)
{
    (void)state;
    static const struct {
        ct_hub_source source;
        const char *id, *name; /* NULL: refused */
    } cases[] = {
        {CT_HUB_HUGGINGFACE, "meta-llama/Llama-3.1-8B", "Llama-3.1-8B"}, {CT_HUB_HUGGINGFACE, "gpt2", "gpt2"},
        {CT_HUB_MODELSCOPE, "gpt2", NULL}, {CT_HUB_HUGGINGFACE, "", NULL}, {CT_HUB_HUGGINGFACE, "a/b/c", NULL},
        {CT_HUB_HUGGINGFACE, "a/..", NULL}, {CT_HUB_HUGGINGFACE, "../a", NULL}, {CT_HUB_HUGGINGFACE, "a/", NULL},
        {CT_HUB_HUGGINGFACE, "/a", NULL}, {CT_HUB_HUGGINGFACE, "a/b c", NULL}, {CT_HUB_HUGGINGFACE, "a/b?x=1", NULL},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        const char *name = NULL;
        ct_err err = {0};
        const ct_status st = cti_hub_check_repo_id(cases[i].source, cases[i].id, &name, &err);
        assert_int_equal(st, cases[i].name != NULL ? CT_OK : CT_ERR_USAGE);
        if (cases[i].name != NULL) {
            assert_string_equal(name, cases[i].name);
        }
    }
}

/* What is taken, as "abc" letters of the files below. */
static const char *const paths[] = {"README.md", "config.json", "configuration.json", "generation_config.json", "model-00001-of-00002.safetensors",
                                    "model.safetensors.index.json", "original/params.json", "original/tokenizer.model", "special_tokens_map.json",
                                    "tokenizer.json", "tokenizer_config.json"};

static void test_select(void **state)
{
    (void)state;
    static const char *const issue[] = {"*.json", "*.model", "tokenizer*"}, *const folder[] = {"original/"}, *const readme[] = {"R*.md"},
                      *const wrong[] = {"tokenizr.json"}, *const base_only[] = {"params.json"};
    static const struct {
        ct_hub_selection s;
        const char *taken, *words; /* letters a.. of paths; words: in the notes or the failure */
    } cases[] = {
        {{.all = true}, "abcdefghijk", ""},
        {{.assets = CT_HUB_ASSET_TOKENIZER}, "hijk", ""},
        {{.assets = CT_HUB_ASSET_CONFIG}, "bd", ""},
        {{.assets = CT_HUB_ASSET_SAFETENSORS}, "ef", ""},
        {{.assets = CT_HUB_ASSET_INDEX}, "f", ""},
        {{.assets = CT_HUB_ASSET_INDEX | CT_HUB_ASSET_CONFIG}, "bdf", ""},
        {{.path_patterns = issue, .n_path_patterns = 3}, "bcdfghijk", ""},
        {{.path_patterns = folder, .n_path_patterns = 1}, "gh", ""},
        {{.path_patterns = base_only, .n_path_patterns = 1}, NULL, "no file of 'o/n'"},
        {{.name_patterns = base_only, .n_name_patterns = 1}, "g", ""},
        {{.name_patterns = readme, .n_name_patterns = 1, .assets = CT_HUB_ASSET_CONFIG}, "abd", ""},
        {{.name_patterns = wrong, .n_name_patterns = 1}, NULL, "nearest to 'tokenizr.json' is 'tokenizer.json'"},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        cti_hub_listing l;
        cti_str notes = {.alloc = ct_alloc_system()};
        ct_err err = {0};
        assert_int_equal(cti_hub_listing_init(ct_alloc_system(), &l, &err), CT_OK);
        l.files = CT_NEW_ARRAY(ct_alloc_system(), cti_hub_file, N_OF(paths), &err);
        for (l.n = 0; l.n < N_OF(paths); l.n++) {
            l.files[l.n].path = paths[l.n];
        }
        const ct_status st = cti_hub_select(&l, &cases[i].s, "o/n", &notes, &err);
        char taken[N_OF(paths) + 1] = "";
        for (size_t k = 0; st == CT_OK && k < l.n; k++) {
            for (size_t p = 0; p < N_OF(paths); p++) {
                if (l.files[k].path == paths[p]) {
                    taken[k] = (char)('a' + p);
                }
            }
        }
        if (cases[i].taken == NULL) {
            assert_int_equal(st, CT_ERR_NOT_FOUND);
            assert_non_null(strstr(err.message, cases[i].words));
        } else if (strcmp(taken, cases[i].taken) != 0) {
            fail_msg("case %zu takes '%s', wanted '%s'", i, taken, cases[i].taken);
        }
        cti_str_deinit(&notes);
        cti_hub_listing_deinit(&l);
    }
}

static void test_kind_without_file(void **state)
{
    (void)state;
    cti_hub_listing l;
    cti_str notes = {.alloc = ct_alloc_system()};
    ct_err err = {0};
    assert_int_equal(cti_hub_listing_init(ct_alloc_system(), &l, &err), CT_OK);
    assert_int_equal(add(&l, CT_HUB_HUGGINGFACE, "[{\"type\":\"file\",\"path\":\"config.json\",\"size\":1,\"oid\":\"" OID "\"}]", &err), CT_OK);
    const ct_hub_selection s = {.assets = CT_HUB_ASSET_CONFIG | CT_HUB_ASSET_INDEX};
    assert_int_equal(cti_hub_select(&l, &s, "o/n", &notes, &err), CT_OK);
    assert_string_equal(cti_str_text(&notes), "no file of kind 'index' in 'o/n'\n");
    cti_str_deinit(&notes);
    cti_hub_listing_deinit(&l);
    unsigned flag = 0;
    assert_int_equal(ct_hub_asset_from("index", &flag, &err), CT_OK);
    assert_int_equal(flag, CT_HUB_ASSET_INDEX);
    assert_int_equal(ct_hub_asset_from("tokenizers", &flag, &err), CT_ERR_USAGE);
    assert_non_null(strstr(err.message, "nearest: tokenizer"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_huggingface),     cmocka_unit_test(test_modelscope), cmocka_unit_test(test_wrong_listings),
                                       cmocka_unit_test(test_names),           cmocka_unit_test(test_repo_ids),   cmocka_unit_test(test_select),
                                       cmocka_unit_test(test_kind_without_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
