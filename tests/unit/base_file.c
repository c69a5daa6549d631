/* rooms: base */
/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders, and what failures say and leave behind. */
#include "base_test.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

static char folder[512];

static int make_folder(void **state)
{
    (void)state;
    test_folder_make(folder, sizeof folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return cti_path_exists(folder) ? -1 : 0;
}

/* "<folder>/name" in one of four turns of static memory. */
static const char *in(const char *name)
{
    static char paths[4][1024];
    static int turn;
    char *path = paths[turn++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_file(const char *path, const char *text)
{
    ct_err err = {0};
    if (cti_file_write_atomic(path, text, strlen(text), &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
}

static size_t n_names(const char *path)
{
    cti_names names;
    assert_int_equal(cti_list_dir(ct_alloc_system(), path, &names, NULL), CT_OK);
    const size_t n = names.n;
    cti_names_free(ct_alloc_system(), &names);
    return n;
}

static void read_what_was_written(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 62, 63, 64, 4095, 4096, 4097, 1 << 20};
    test_alloc t;
    test_alloc_init(&t, 0);
    for (size_t i = 0; i < N_OF(sizes); i++) {
        ct_err err = {0};
        char *bytes = ct_alloc_zeroed(ct_alloc_system(), sizes[i], 1, NULL);
        for (size_t k = 0; k < sizes[i]; k++) {
            bytes[k] = (char)(k * 7 + i);
        }
        assert_int_equal(cti_file_write_atomic(in("data"), bytes, sizes[i], &err), CT_OK);
        char *back = NULL;
        size_t size = 99;
        assert_int_equal(cti_file_read(&t.alloc, in("data"), 0, &back, &size, &err), CT_OK);
        assert_int_equal(size, sizes[i]);
        assert_memory_equal(back, bytes, size);
        assert_int_equal(back[size], '\0');
        ct_alloc_free(&t.alloc, back);
        int64_t on_disk = -1;
        assert_int_equal(cti_file_size(in("data"), &on_disk, &err), CT_OK);
        assert_int_equal(on_disk, sizes[i]);
        cti_file_map map;
        assert_int_equal(cti_file_map_open(in("data"), &map, &err), CT_OK);
        assert_non_null(map.data);
        assert_int_equal(map.size, sizes[i]);
        assert_memory_equal(map.data, bytes, sizes[i]);
        cti_file_map_close(&map);
        assert_null(map.data);
        cti_file_map_close(&map);
        ct_alloc_free(ct_alloc_system(), bytes);
    }
    assert_int_equal(n_names(folder), 1); /* no temp file is left */
    assert_int_equal(t.n_live, 0);
}

static void limits_and_kinds(void **state)
{
    (void)state;
    write_file(in("ten"), "0123456789");
    char *data = NULL;
    size_t size;
    ct_err err = {0};
    assert_int_equal(cti_file_read(ct_alloc_system(), in("ten"), 10, &data, &size, &err), CT_OK);
    ct_alloc_free(ct_alloc_system(), data);
    assert_int_equal(cti_file_read(ct_alloc_system(), in("ten"), 9, &data, &size, &err), CT_ERR_RANGE);
    assert_non_null(strstr(err.message, "ten"));
    assert_non_null(strstr(err.message, "9 bytes"));
    /* A file that says it is empty and is not: the limit holds while reading. */
    err = (ct_err){0};
    assert_int_equal(cti_file_read(ct_alloc_system(), "/proc/self/status", 0, &data, &size, &err), CT_OK);
    assert_true(size > 100);
    ct_alloc_free(ct_alloc_system(), data);
    assert_int_equal(cti_file_read(ct_alloc_system(), "/proc/self/status", 100, &data, &size, &err),
                     CT_ERR_RANGE);
    cti_file_map map;
    const struct {
        const char *path;
        ct_status status;
        const char *words;
    } rows[] = {{in("none"), CT_ERR_NOT_FOUND, "No such file"},
                {folder, CT_ERR_IO, "directory"},
                {in("ten/below"), CT_ERR_IO, "Not a directory"}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        err = (ct_err){0};
        assert_int_equal(cti_file_read(ct_alloc_system(), rows[i].path, 0, &data, &size, &err),
                         rows[i].status);
        assert_non_null(strstr(err.message, rows[i].path));
        assert_non_null(strstr(err.message, rows[i].words));
        err = (ct_err){0};
        assert_int_equal(cti_file_map_open(rows[i].path, &map, &err), rows[i].status);
        assert_non_null(strstr(err.message, rows[i].path));
        err = (ct_err){0};
        int64_t n = -5;
        assert_int_equal(cti_file_size(rows[i].path, &n, &err), rows[i].status);
        assert_int_equal(n, -5);
    }
    assert_true(cti_path_exists(folder) && cti_path_is_dir(folder) && !cti_path_is_file(folder));
    assert_true(cti_path_exists(in("ten")) && !cti_path_is_dir(in("ten")) && cti_path_is_file(in("ten")));
    assert_false(cti_path_exists(in("none")) || cti_path_is_dir(in("none")) || cti_path_is_file(in("none")));
}

static void read_without_memory(void **state)
{
    (void)state;
    write_file(in("x"), "text");
    int n_failed = 0;
    for (int64_t fail_at = 1; fail_at <= 3; fail_at++) {
        test_alloc t;
        test_alloc_init(&t, fail_at);
        char *data = NULL;
        size_t size;
        ct_err err = {0};
        const ct_status st = cti_file_read(&t.alloc, in("x"), 0, &data, &size, &err);
        assert_true(st == CT_OK || st == CT_ERR_MEMORY);
        n_failed += st != CT_OK;
        ct_alloc_free(&t.alloc, data);
        assert_int_equal(t.n_live, 0);
    }
    assert_true(n_failed > 0);
}

static void failed_write_leaves_all_as_it_was(void **state)
{
    (void)state;
    ct_err err = {0};
    write_file(in("kept"), "old");
    /* The target is a folder: everything works up to the rename. */
    assert_int_equal(cti_make_dirs(in("dir/sub"), &err), CT_OK);
    assert_int_equal(cti_file_write_atomic(in("dir"), "new", 3, &err), CT_ERR_IO);
    assert_non_null(strstr(err.message, in("dir")));
    assert_int_equal(n_names(folder), 2);
    err = (ct_err){0};
    assert_int_equal(cti_file_write_atomic(in("none/x"), "new", 3, &err), CT_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, in("none/x")));
    err = (ct_err){0};
    assert_int_equal(cti_file_write_atomic(in("kept/x"), "new", 3, &err), CT_ERR_IO);
    /* The disk is full, so to speak. */
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct rlimit tight = {.rlim_cur = 4096, .rlim_max = limit.rlim_max};
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    char *large = ct_alloc_zeroed(ct_alloc_system(), 10000, 1, NULL);
    err = (ct_err){0};
    const ct_status st = cti_file_write_atomic(in("kept"), large, 10000, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ct_alloc_free(ct_alloc_system(), large);
    assert_int_equal(st, CT_ERR_IO);
    assert_non_null(strstr(err.message, "kept.tmp."));
    assert_int_equal(n_names(folder), 2);
    char *data = NULL;
    size_t size;
    assert_int_equal(cti_file_read(ct_alloc_system(), in("kept"), 0, &data, &size, &err), CT_OK);
    assert_string_equal(data, "old");
    ct_alloc_free(ct_alloc_system(), data);
}

static void write_here_and_replace(void **state)
{
    (void)state;
    char before[1024];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    write_file("plain", "one"); /* no folder in the path */
    write_file("plain", "two");
    assert_int_equal(chdir(before), 0);
    char *data = NULL;
    size_t size;
    assert_int_equal(cti_file_read(ct_alloc_system(), in("plain"), 0, &data, &size, NULL), CT_OK);
    assert_string_equal(data, "two");
    ct_alloc_free(ct_alloc_system(), data);
    assert_int_equal(cti_fsync_path(in("plain"), NULL), CT_OK);
    assert_int_equal(cti_fsync_path(folder, NULL), CT_OK);
    ct_err err = {0};
    assert_int_equal(cti_fsync_path(in("none"), &err), CT_ERR_NOT_FOUND);
}

static void make_list_remove(void **state)
{
    (void)state;
    ct_err err = {0};
    assert_int_equal(cti_make_dirs(in("a//b/c/"), &err), CT_OK);
    assert_int_equal(cti_make_dirs(in("a/b"), &err), CT_OK);
    assert_int_equal(cti_make_dirs("/", &err), CT_OK);
    assert_true(cti_path_is_dir(in("a/b/c")));
    write_file(in("a/file"), "x");
    assert_int_equal(cti_make_dirs(in("a/file"), &err), CT_ERR_IO);
    assert_non_null(strstr(err.message, in("a/file")));
    err = (ct_err){0};
    assert_int_equal(cti_make_dirs(in("a/file/sub"), &err), CT_ERR_IO);
    err = (ct_err){0};
    assert_int_equal(cti_make_dirs("", &err), CT_ERR_NOT_FOUND);

    static const char *const made[] = {"B", "a", ".hidden", "\xc3\xa9", "step-10", "step-9"};
    for (size_t i = 0; i < N_OF(made); i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "a/b/c/%s", made[i]);
        write_file(in(name), "x");
    }
    static const char *const sorted[] = {".hidden", "B", "a", "step-10", "step-9", "\xc3\xa9"};
    for (int64_t fail_at = 0; fail_at < 8; fail_at++) {
        test_alloc t;
        test_alloc_init(&t, fail_at);
        cti_names names;
        err = (ct_err){0};
        const ct_status st = cti_list_dir(&t.alloc, in("a/b/c"), &names, &err);
        assert_int_equal(st, fail_at == 0 ? CT_OK : CT_ERR_MEMORY);
        if (st == CT_OK) {
            assert_int_equal(names.n, N_OF(sorted));
            for (size_t i = 0; i < names.n; i++) {
                assert_string_equal(names.names[i], sorted[i]);
            }
            cti_names_free(&t.alloc, &names);
            cti_names_free(&t.alloc, &names);
        }
        assert_int_equal(t.n_live, 0);
    }
    err = (ct_err){0};
    cti_names names;
    assert_int_equal(cti_list_dir(ct_alloc_system(), in("none"), &names, &err), CT_ERR_NOT_FOUND);

    /* Links are removed, not what they point to. */
    assert_int_equal(cti_make_dirs(in("outside"), &err), CT_OK);
    write_file(in("outside/precious"), "x");
    assert_int_equal(symlink(in("outside"), in("a/b/link")), 0);
    assert_int_equal(symlink("nowhere", in("a/b/dangling")), 0);
    assert_int_equal(cti_remove_tree(in("a"), &err), CT_OK);
    assert_false(cti_path_exists(in("a")));
    assert_true(cti_path_is_file(in("outside/precious")));
    assert_int_equal(cti_remove_tree(in("a"), &err), CT_ERR_NOT_FOUND);
    err = (ct_err){0};
    assert_int_equal(cti_remove_tree(in("outside/precious"), &err), CT_OK);
    assert_int_equal(n_names(in("outside")), 0);
}

static void deep_trees_are_removed(void **state)
{
    (void)state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit few = {.rlim_cur = 16, .rlim_max = limit.rlim_max};
    cti_str path = {.alloc = ct_alloc_system()};
    cti_str_add(&path, in("deep"));
    for (int i = 0; i < 300; i++) {
        cti_str_add(&path, "/d");
    }
    assert_int_equal(cti_make_dirs(path.data, NULL), CT_OK);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    const ct_status st = cti_remove_tree(in("deep"), NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(st, CT_OK);
    cti_str_deinit(&path);
}

static void rename_and_free_space(void **state)
{
    (void)state;
    ct_err err = {0};
    write_file(in("from"), "x");
    assert_int_equal(cti_rename(in("from"), in("to"), &err), CT_OK);
    assert_true(cti_path_is_file(in("to")) && !cti_path_exists(in("from")));
    assert_int_equal(cti_rename(in("from"), in("to"), &err), CT_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, in("from")));
    assert_non_null(strstr(err.message, in("to")));
    const char *const paths[] = {folder, in("not/there/yet"), in("to/below/a/file"), "/", "", "not-there",
                                 "x//y/"};
    for (size_t i = 0; i < N_OF(paths); i++) {
        int64_t bytes = -1;
        assert_int_equal(cti_disk_free_bytes(paths[i], &bytes, NULL), CT_OK);
        assert_true(bytes >= 0);
    }
}

static void paths(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b, *joined;
    } rows[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"a", "/b", "/b"},
                {"/", "b", "/b"},  {"a", "", "a/"},    {"", "", ""},   {"a/b", "c/d", "a/b/c/d"}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        char *joined = cti_path_join(ct_alloc_system(), rows[i].a, rows[i].b, NULL);
        assert_string_equal(joined, rows[i].joined);
        ct_alloc_free(ct_alloc_system(), joined);
    }
    test_alloc t;
    test_alloc_init(&t, 1);
    ct_err err = {0};
    assert_null(cti_path_join(&t.alloc, "a", "b", &err));
    assert_int_equal(err.status, CT_ERR_MEMORY);
    assert_string_equal(cti_path_base("a/b/c.txt"), "c.txt");
    assert_string_equal(cti_path_base("c.txt"), "c.txt");
    assert_string_equal(cti_path_base("a/"), "");
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(read_what_was_written),  IN_FOLDER(limits_and_kinds),
        IN_FOLDER(read_without_memory),    IN_FOLDER(failed_write_leaves_all_as_it_was),
        IN_FOLDER(write_here_and_replace), IN_FOLDER(make_list_remove),
        IN_FOLDER(deep_trees_are_removed), IN_FOLDER(rename_and_free_space),
        cmocka_unit_test(paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
