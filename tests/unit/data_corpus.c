/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* Files, folders and patterns to documents; what is refused and in which words. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/pool.h"
#include "data/data_internal.h"
#include "unit/data_test.h"

#define BOM "\xef\xbb\xbf"

static void assert_documents(const char *path, size_t n, const char *const *texts)
{
    ct_corpus *corpus = open_corpus(path);
    cti_str text = {.alloc = ct_alloc_system()};
    assert_int_equal(ct_corpus_n_documents(corpus), n);
    for (size_t i = 0; i < n; i++) {
        ct_err err = {0};
        if (read_text(corpus, (int64_t)i, &text, NULL, &err) != CT_OK) {
            fail_msg("%s", err.message);
        }
        assert_string_equal(text.data, texts[i]);
    }
    cti_str_deinit(&text);
    ct_corpus_destroy(&corpus);
    assert_null(corpus);
}

static void assert_refused(const char *path, ct_status status, const char *const *says, size_t n_says)
{
    ct_corpus *corpus = NULL;
    ct_err err = {0};
    const ct_status st = ct_corpus_open(ct_alloc_system(), path, NULL, &corpus, &err);
    assert_null(corpus);
    if (st != status) {
        fail_msg("%s instead of %s: %s", ct_status_name(st), ct_status_name(status), err.message);
    }
    for (size_t i = 0; i < n_says; i++) {
        assert_says(&err, says[i]);
    }
}
#define REFUSED(path, status, ...) assert_refused(path, CT_##status, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* A file that Windows has saved holds the same documents. */
static void four_forms(void **state)
{
    static const char *const forms[] = {
        "{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"text\":\"c\"}\n",
        BOM "{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"text\":\"c\"}\n",
        "{\"text\":\"a\"}\r\n{\"text\":\"b\"}\r\n{\"text\":\"c\"}\r\n\r\n",
        BOM "{\"text\":\"a\"}\r\n \t \r\n{\"text\":\"b\"}\r\n\n{\"text\":\"c\"}",
    };
    for (size_t i = 0; i < N_OF(forms); i++) {
        assert_documents(put(*state, "x.jsonl", forms[i]), 3, (const char *const[]){"a", "b", "c"});
    }
}

static void two_bom_files(void **state)
{
    data_folder *f = *state;
    put(f, "a.jsonl", BOM "{\"text\":\"1\"}\n{\"text\":\"2\"}\n");
    put(f, "b.jsonl", BOM "{\"text\":\"3\"}\n{\"text\":\"4\"}\n{\"text\":\"5\"}\n" BOM "{\"text\":\"6\"}\n{\"text\":\"7\"}\n{\"text\":\"8\"}\n");
    assert_documents(f->path, 8, (const char *const[]){"1", "2", "3", "4", "5", "6", "7", "8"});
    ct_corpus *corpus = open_corpus(f->path);
    assert_int_equal(ct_corpus_n_files(corpus), 2);
    assert_int_equal(ct_corpus_file_at(corpus, 0).n_documents, 2);
    assert_int_equal(ct_corpus_file_at(corpus, 1).n_documents, 6);
    assert_int_equal(ct_corpus_size_bytes(corpus), ct_corpus_file_at(corpus, 0).size_bytes + ct_corpus_file_at(corpus, 1).size_bytes);
    ct_corpus_destroy(&corpus);
}

/* Which file and line a fault is in, with blank lines counted and empty files between. */
static void faults_name_the_line(void **state)
{
    data_folder *f = *state;
    put(f, "a.jsonl", "{\"text\":\"1\"}\n");
    put(f, "b.jsonl", "\n\n");
    put(f, "c.jsonl", "{\"text\":\"2\"}\n\n{\"id\":1}\n{\"text\":null}\n{\"text\":5}\n{\"text\":\"3\"}\n{\"text\":\"cut");
    ct_corpus *corpus = open_corpus(f->path);
    static const struct {
        int64_t document;
        ct_bad bad;
        const char *says;
    } rows[] = {
        {2, CT_BAD_NO_FIELD, "c.jsonl' line 3: text field missing, at byte 1: the object has no field 'text'"},
        {3, CT_BAD_FIELD_TYPE, "c.jsonl' line 4: text field not a string, at byte 9: the field 'text' is null"},
        {4, CT_BAD_FIELD_TYPE, "c.jsonl' line 5: text field not a string, at byte 9: the field 'text' is a number"},
        {6, CT_BAD_CUT_OFF, "c.jsonl' line 7 (the last, without a newline): cut off"},
    };
    cti_str text = {.alloc = ct_alloc_system()};
    for (size_t i = 0; i < N_OF(rows); i++) {
        ct_err err = {0};
        ct_bad bad;
        assert_int_equal(read_text(corpus, rows[i].document, &text, &bad, &err), CT_ERR_DATA);
        assert_int_equal(bad, rows[i].bad);
        assert_says(&err, rows[i].says);
    }
    assert_int_equal(read_text(corpus, 5, &text, NULL, NULL), CT_OK);
    assert_string_equal(text.data, "3");
    assert_int_equal(read_text(corpus, 7, &text, NULL, NULL), CT_ERR_RANGE);
    assert_int_equal(read_text(corpus, -1, &text, NULL, NULL), CT_ERR_RANGE);
    cti_str_deinit(&text);
    ct_corpus_destroy(&corpus);
}

static void raw_nul_between_records(void **state)
{
    static const char bytes[] = "{\"text\":\"A\\u0000B\"}\n\0\n{\"text\":\"after\"}\n";
    ct_corpus *corpus = open_corpus(put_bytes(*state, "x.jsonl", bytes, sizeof bytes - 1));
    cti_str text = {.alloc = ct_alloc_system()};
    ct_err err = {0};
    assert_int_equal(ct_corpus_n_documents(corpus), 3);
    assert_int_equal(read_text(corpus, 0, &text, NULL, NULL), CT_OK);
    assert_int_equal(text.len, 3);
    assert_memory_equal(text.data, "A\0B", 3);
    assert_int_equal(read_text(corpus, 1, &text, NULL, &err), CT_ERR_DATA);
    assert_says(&err, "line 2");
    assert_int_equal(read_text(corpus, 2, &text, NULL, NULL), CT_OK);
    assert_string_equal(text.data, "after");
    cti_str_deinit(&text);
    ct_corpus_destroy(&corpus);
}

static void text_files(void **state)
{
    data_folder *f = *state;
    put(f, "b.txt", BOM "one\r\n\r\ndocument\xff\n");
    put(f, "a.TXT", "first");
    put(f, "blank.txt", BOM " \n\t\r\n");
    put(f, "empty.txt", "");
    assert_documents(f->path, 2, (const char *const[]){"first", "one\r\n\r\ndocument\xef\xbf\xbd\n"});
}

static void other_field(void **state)
{
    ct_corpus *corpus = NULL;
    cti_str text = {.alloc = ct_alloc_system()};
    const char *path = put(*state, "x.ndjson", "{\"text\":\"no\",\"content\":\"yes\"}");
    assert_int_equal(ct_corpus_open(ct_alloc_system(), path, &(ct_corpus_options){.text_field = "content"}, &corpus, NULL), CT_OK);
    assert_int_equal(read_text(corpus, 0, &text, NULL, NULL), CT_OK);
    assert_string_equal(text.data, "yes");
    cti_str_deinit(&text);
    ct_corpus_destroy(&corpus);
}

static void paths(void **state)
{
    data_folder *f = *state;
    char pattern[1100];
    put(f, "b.json", "{\"text\":\"b\"}");
    put(f, "a.json", "\n {\"text\":\"a\"}");
    put(f, ".hidden.jsonl", "{\"text\":\"hidden\"}");
    put(f, "README.md", "not data");
    assert_documents(f->path, 2, (const char *const[]){"a", "b"});
    (void)snprintf(pattern, sizeof pattern, "%s/[ab].js*", f->path);
    assert_documents(pattern, 2, (const char *const[]){"a", "b"});
    (void)snprintf(pattern, sizeof pattern, "%s/b.?son", f->path);
    assert_documents(pattern, 1, (const char *const[]){"b"});
    assert_documents(put(f, "odd[1].jsonl", "{\"text\":\"odd\"}"), 1, (const char *const[]){"odd"});
    assert_documents(put(f, "data.dump", BOM "\n {\"text\":\"by its bytes\"}"), 1, (const char *const[]){"by its bytes"});
    (void)snprintf(pattern, sizeof pattern, "%s/nothing*", f->path);
    REFUSED(pattern, ERR_NOT_FOUND, "no file matches", "nothing*");
    (void)snprintf(pattern, sizeof pattern, "%s/a.jsn", f->path);
    REFUSED(pattern, ERR_NOT_FOUND, "does not exist", "holds 'a.json'");
    (void)snprintf(pattern, sizeof pattern, "%s/no/a.json", f->path);
    REFUSED(pattern, ERR_NOT_FOUND, "nor does its folder");
    REFUSED("", ERR_USAGE, "empty");
    REFUSED("https://example.org/a.jsonl", ERR_UNSUPPORTED, "local files");
    REFUSED("/dev/null", ERR_UNSUPPORTED, "neither a file nor a folder");
}

static void folders_refused(void **state)
{
    data_folder *f = *state;
    char sub[1100];
    REFUSED(f->path, ERR_DATA, "holds no .jsonl", "0 other files and 0 folders");
    (void)snprintf(sub, sizeof sub, "%s/sub", f->path);
    assert_int_equal(mkdir(sub, 0777), 0);
    put(f, "sub/deep.jsonl", "{\"text\":\"deep\"}");
    put(f, "x.csv", "a,b");
    REFUSED(f->path, ERR_DATA, "1 other files and 1 folders, which are not entered");
    (void)snprintf(sub, sizeof sub, "%s/*/*.jsonl", f->path);
    assert_documents(sub, 1, (const char *const[]){"deep"});
    (void)snprintf(sub, sizeof sub, "%s/s*", f->path);
    REFUSED(sub, ERR_NOT_FOUND, "1 folders and no file");
    put(f, "a.jsonl", "{\"text\":\"a\"}");
    put(f, "LICENSE.txt", "free");
    REFUSED(f->path, ERR_DATA, "more than one kind", "1 .jsonl, 0 .json, 1 .txt", "/*.jsonl");
    put(f, "b.jsonl.bz2", "BZh");
    REFUSED(f->path, ERR_UNSUPPORTED, "b.jsonl.bz2", "compressed with bzip2", "bzip2 -dc");
}

static void one_file_twice(void **state)
{
    data_folder *f = *state;
    char link[1100];
    put(f, "a.jsonl", "{\"text\":\"a\"}");
    (void)snprintf(link, sizeof link, "%s/b.jsonl", f->path);
    assert_int_equal(symlink("a.jsonl", link), 0);
    REFUSED(f->path, ERR_DATA, "a.jsonl", "b.jsonl", "the same file");
}

static void formats_refused(void **state)
{
    data_folder *f = *state;
    REFUSED(put(f, "a.parquet", "PAR1"), ERR_UNSUPPORTED, "a.parquet' is a Parquet file", "duckdb -c", "pandas.read_parquet('");
    REFUSED(put(f, "p.jsonl", "PAR1"), ERR_UNSUPPORTED, "a Parquet file", "pandas.read_parquet");
    REFUSED(put(f, "a.arrow", "x"), ERR_UNSUPPORTED, "an Arrow file", "pandas.read_feather");
    REFUSED(put(f, "a.jsonl.xz", "x"), ERR_UNSUPPORTED, "compressed with xz", "xz -dc");
    REFUSED(put_bytes(f, "x.jsonl", "\xfd" "7zXZ\0", 6), ERR_UNSUPPORTED, "compressed with xz");
    REFUSED(put(f, "l.jsonl.lz4", "x"), ERR_UNSUPPORTED, "lz4 -dc");
    REFUSED(put(f, "z.zip", "x"), ERR_UNSUPPORTED, "a zip archive");
    REFUSED(put(f, "t.tar.gz", "x"), ERR_UNSUPPORTED, "a tar archive", "tar -xf");
    REFUSED(put(f, "t.tgz", "x"), ERR_UNSUPPORTED, "a tar archive");
    REFUSED(put(f, "n.npy", "x"), ERR_UNSUPPORTED, "a NumPy array", ".ctok");
    REFUSED(put_bytes(f, "wide.txt", "\xff\xfeh\0i\0", 6), ERR_UNSUPPORTED, "UTF-16", "iconv");
    REFUSED(put(f, "plain.jsonl.gz", "{\"text\":\"a\"}"), ERR_FORMAT, "plain.jsonl.gz", "named as gzip data", "7b 22 74 65");
    REFUSED(put(f, "array.json", " [{\"text\":\"a\"}]"), ERR_UNSUPPORTED, "one JSON array", "jq");
    REFUSED(put(f, "tokens.bin", "abc"), ERR_FORMAT, "no file of tokens that is known", ".idx");
    REFUSED(put(f, "tokens.dump", "abc"), ERR_UNSUPPORTED, "of no kind that is known");
    REFUSED(put(f, "empty.jsonl", ""), ERR_DATA, "has no document");
    REFUSED(put(f, "blank.jsonl", BOM "\n \r\n\t\n"), ERR_DATA, "has no document");
}

/* Slices: contiguous, balanced, the longer ones first; exact beyond 32 bits. */
static void slices(void **state)
{
    (void)state;
    int64_t begin;
    int64_t end;
    for (int64_t n = 0; n < 30; n++) {
        for (int64_t parts = 1; parts < 12; parts++) {
            int64_t at = 0;
            for (int64_t i = 0; i < parts; i++) {
                ct_slice(n, parts, i, &begin, &end);
                assert_int_equal(begin, at);
                assert_int_equal(end - begin, n / parts + (i < n % parts ? 1 : 0));
                at = end;
            }
            assert_int_equal(at, n);
        }
    }
    ct_slice(INT64_C(2147483658), 7, 6, &begin, &end); /* 2^31 + 10 = 7 * 306783379 + 5 */
    assert_int_equal(begin, INT64_C(1840700279));
    assert_int_equal(end, INT64_C(2147483658));
    ct_slice(INT64_MAX, 3, 2, &begin, &end);
    assert_int_equal(begin, INT64_C(6148914691236517205));
    assert_int_equal(end, INT64_MAX);
}

/* Every allocation fails once: an error, no leak, no crash. */
static void out_of_memory(void **state)
{
    data_folder *f = *state;
    put(f, "a.jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\"}");
    put(f, "b.jsonl", "{\"text\":\"c\"}");
    cti_pool_set_threads(1); /* the allocator that fails counts for one thread */
    for (int64_t at = 1;; at++) {
        test_alloc t;
        test_alloc_init(&t, at);
        ct_corpus *corpus = NULL;
        ct_err err = {0};
        const ct_status st = ct_corpus_open(&t.alloc, f->path, NULL, &corpus, &err);
        if (st == CT_OK) {
            ct_corpus_destroy(&corpus);
            assert_int_equal(t.n_live, 0);
            assert_true(at > 5);
            break;
        }
        assert_int_equal(st, CT_ERR_MEMORY);
        assert_int_equal(t.n_live, 0);
        assert_null(corpus);
    }
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(four_forms),      IN_FOLDER(two_bom_files),     IN_FOLDER(faults_name_the_line),
        IN_FOLDER(raw_nul_between_records), IN_FOLDER(text_files), IN_FOLDER(other_field),
        IN_FOLDER(paths),           IN_FOLDER(folders_refused),   IN_FOLDER(one_file_twice),
        IN_FOLDER(formats_refused), cmocka_unit_test(slices),     IN_FOLDER(out_of_memory),
    };
    return cmocka_run_group_tests_name("data_corpus", tests, NULL, NULL);
}
