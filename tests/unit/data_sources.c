/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* labels: slow */
/* Compressed files, kept indexes, limits, and files that change, vanish or are none: documents by number, however they are stored. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "data/data_internal.h"
#include "unit/data_packed.h"

/* Texts of a corpus, joined with their numbers and lengths: every step-th of the documents, round and round, `most` of them. */
static void read_some(const ct_corpus *corpus, int64_t step, int64_t most, cti_str *out)
{
    ct_reader *reader = NULL;
    ct_document document;
    ct_document_init(&document, ct_alloc_system());
    assert_int_equal(ct_reader_create(ct_alloc_system(), corpus, &reader, NULL), CT_OK);
    const int64_t n = ct_corpus_n_documents(corpus);
    cti_str_reset(out);
    for (int64_t i = 0; i < n && i < most; i++) {
        ct_err err = {0};
        const int64_t number = i * step % n; /* step and n share no factor: none twice */
        if (ct_reader_read(reader, number, &document, NULL, NULL, &err) != CT_OK) {
            fail_msg("document %lld: %s", (long long)number, err.message);
        }
        cti_str_printf(out, "%lld:%zu:", (long long)number, document.text.len);
        cti_str_add_n(out, document.text.data, document.text.len);
    }
    ct_document_deinit(&document);
    ct_reader_destroy(&reader);
}

static void read_all(const ct_corpus *corpus, int64_t step, cti_str *out)
{
    read_some(corpus, step, INT64_MAX, out);
}

static ct_corpus *open_with(const char *path, const ct_corpus_options *options)
{
    ct_corpus *corpus = NULL;
    ct_err err = {0};
    if (ct_corpus_open(ct_alloc_system(), path, options, &corpus, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return corpus;
}

static const char *in_folder(const data_folder *f, const char *name)
{
    static char path[1100];
    (void)snprintf(path, sizeof path, "%s/%s", f->path, name);
    return path;
}

/* One contents in all its forms: the same documents in order and in any order, the same line in a message. */
static void forms(void **state)
{
    enum { N_MIXED = 60 };
    data_folder *f = *state;
    cti_str lines = {.alloc = ct_alloc_system()}, want = {.alloc = ct_alloc_system()}, want_mixed = {.alloc = ct_alloc_system()};
    cti_str got = {.alloc = ct_alloc_system()}, packed = {.alloc = ct_alloc_system()};
    add_lines(&lines, 2 << 20, 1);
    cti_str_add(&lines, "{\"no\": \"text\"}\n\n{\"text\": \"last\"}");
    const size_t half = lines.len / 2;
    ct_corpus *plain = open_corpus(put_bytes(f, "a.jsonl", lines.data, lines.len));
    const int64_t n = ct_corpus_n_documents(plain), bad = n - 2;
    ct_err plain_err = {0};
    assert_int_equal(read_text(plain, bad, &got, NULL, &plain_err), CT_ERR_DATA);
    const char *line = strstr(plain_err.message, "' line ");
    assert_non_null(line);
    ct_corpus_destroy(&plain);
    const size_t bad_at = (size_t)(strstr(lines.data + lines.len - 64, "{\"no\"") - lines.data);
    lines.data[bad_at + 2] = 't', lines.data[bad_at + 3] = 'e'; /* still no "text"; for the whole reads it is made one below */
    memcpy(lines.data + bad_at, "{\"text\": \"0\"} ", 14);
    plain = open_corpus(put_bytes(f, "a.jsonl", lines.data, lines.len));
    const int64_t step = n % 1009 != 0 ? 1009 : 1013;
    read_all(plain, 1, &want);
    read_some(plain, step, N_MIXED, &want_mixed);
    ct_corpus_destroy(&plain);
    for (int form = 0; form < 8; form++) {
        cti_str_reset(&packed);
        const char *name = form < 4 ? "b.jsonl.gz" : "b.jsonl.zst";
        for (int with_bad = 0; with_bad < 2; with_bad++) {
            memcpy(lines.data + bad_at, with_bad ? "{\"no\": \"text\"}" : "{\"text\": \"0\"} ", 14);
            cti_str_reset(&packed);
            switch (form) {
            case 0:
                add_gzip(&packed, lines.data, lines.len, 6);
                break;
            case 1: /* stored blocks */
                add_gzip(&packed, lines.data, lines.len, 0);
                break;
            case 2: /* members, an empty one among them, zeros behind the last */
                add_gzip(&packed, lines.data, half, 9);
                add_gzip(&packed, "", 0, 6);
                add_gzip(&packed, lines.data + half, lines.len - half, 1);
                cti_str_add_n(&packed, "\0\0\0\0\0", 5);
                break;
            case 3: /* a name that does not tell */
                name = "b.data";
                add_gzip(&packed, lines.data, lines.len, 6);
                break;
            case 4:
                add_zstd(&packed, lines.data, lines.len);
                break;
            case 5: /* frames, with skippable ones first, between and last */
                add_skippable(&packed, "first");
                for (size_t at = 0; at < lines.len; at += 300000) {
                    add_zstd(&packed, lines.data + at, lines.len - at < 300000 ? lines.len - at : 300000);
                    add_skippable(&packed, "between");
                }
                break;
            case 6: /* two frames, the second empty */
                add_zstd(&packed, lines.data, lines.len);
                add_zstd(&packed, "", 0);
                break;
            default:
                name = "b.jsonl"; /* named as if plain */
                add_zstd(&packed, lines.data, lines.len);
            }
            ct_corpus *corpus = open_with(put_bytes(f, name, packed.data, packed.len), &(ct_corpus_options){.cache_dir = ""});
            assert_int_equal(ct_corpus_n_documents(corpus), n);
            assert_int_equal(ct_corpus_file_at(corpus, 0).contents_bytes, lines.len);
            assert_int_equal(ct_corpus_check_whole(corpus, NULL), CT_OK);
            assert_true(ct_corpus_is_random_access(corpus));
            if (with_bad) {
                ct_err err = {0};
                assert_int_equal(read_text(corpus, bad, &got, NULL, &err), CT_ERR_DATA);
                assert_says(&err, line); /* the same line, byte and words */
            } else {
                read_all(corpus, 1, &got);
                assert_int_equal(got.len, want.len);
                assert_memory_equal(got.data, want.data, want.len);
                if (form == 0 || form == 2 || form == 5) {
                    read_some(corpus, step, N_MIXED, &got);
                    assert_memory_equal(got.data, want_mixed.data, want_mixed.len);
                }
            }
            ct_corpus_destroy(&corpus);
            assert_int_equal(unlink(f->file), 0);
        }
    }
    cti_str_deinit(&lines), cti_str_deinit(&want), cti_str_deinit(&want_mixed), cti_str_deinit(&got), cti_str_deinit(&packed);
}

/* Data cut off at every byte: the documents before the cut and one that stands for the rest; never a crash, never silence. */
static void cut_anywhere(void **state)
{
    data_folder *f = *state;
    static const char lines[] = "{\"text\":\"alpha\"}\n{\"text\":\"beta\"}\n{\"text\":\"gamma delta epsilon\"}\n";
    for (int codec = 0; codec < 2; codec++) {
        cti_str packed = {.alloc = ct_alloc_system()}, text = {.alloc = ct_alloc_system()};
        if (codec == 0) {
            add_gzip(&packed, lines, 20, 6);
            add_gzip(&packed, lines + 20, sizeof lines - 1 - 20, 6);
        } else {
            add_zstd(&packed, lines, 20);
            add_zstd(&packed, lines + 20, sizeof lines - 1 - 20);
        }
        int n_whole = 0;
        for (size_t size = 0; size <= packed.len; size++) {
            ct_corpus *corpus = NULL;
            ct_err err = {0};
            const char *path = put_bytes(f, codec == 0 ? "a.jsonl.gz" : "a.jsonl.zst", packed.data, size);
            if (ct_corpus_open(ct_alloc_system(), path, NULL, &corpus, &err) != CT_OK) {
                fail_msg("cut at %zu: %s", size, err.message);
            }
            const int64_t n = ct_corpus_n_documents(corpus);
            const bool is_whole = ct_corpus_check_whole(corpus, &err) == CT_OK;
            n_whole += is_whole;
            for (int64_t i = 0; i < n; i++) {
                ct_bad bad;
                ct_err why = {0};
                const ct_status st = read_text(corpus, i, &text, &bad, &why);
                if (i == n - 1 && !is_whole) {
                    assert_int_equal(st, CT_ERR_DATA);
                    assert_int_equal(bad, CT_BAD_DAMAGED);
                    assert_says(&why, ct_corpus_file_at(corpus, 0).damage);
                    assert_says(&why, "jsonl.");
                } else if (st == CT_OK) {
                    assert_string_equal(text.data, ((const char *const[]){"alpha", "beta", "gamma delta epsilon"})[i]);
                } else { /* a border of members within a line is a line cut off */
                    assert_int_equal(bad, CT_BAD_CUT_OFF);
                }
            }
            if (!is_whole) {
                assert_says(&err, "a.jsonl.");
                assert_says(&err, " line ");
            }
            ct_corpus_destroy(&corpus);
        }
        assert_int_equal(n_whole, 2); /* at the border of the two, and all of it */
        cti_str_deinit(&packed), cti_str_deinit(&text);
    }
}

static void assert_damage(const char *path, int64_t n_good, const char *says)
{
    ct_corpus *corpus = open_corpus(path);
    cti_str text = {.alloc = ct_alloc_system()};
    ct_err err = {0};
    ct_bad bad = CT_BAD_NONE;
    assert_int_equal(ct_corpus_n_documents(corpus), n_good + 1);
    for (int64_t i = 0; i < n_good; i++) {
        assert_int_equal(read_text(corpus, i, &text, NULL, NULL), CT_OK);
    }
    assert_int_equal(read_text(corpus, n_good, &text, &bad, &err), CT_ERR_DATA);
    assert_int_equal(bad, CT_BAD_DAMAGED);
    assert_says(&err, says);
    err = (ct_err){0};
    assert_int_equal(ct_corpus_check_whole(corpus, &err), CT_ERR_DATA);
    assert_says(&err, says);
    /* and the policy for bad documents decides whether a run begins */
    ct_loader *loader = NULL;
    ct_loader_options o = {.seq_len = 4, .rows = 1, .streams = 1, .n_local_streams = 1};
    assert_int_equal(create_loader(ct_alloc_system(), corpus, encode_bytes, &o, &loader, &(ct_err){0}), CT_ERR_DATA);
    o.bad_policy = CT_BAD_SKIP;
    assert_int_equal(create_loader(ct_alloc_system(), corpus, encode_bytes, &o, &loader, &(ct_err){0}), CT_OK);
    ct_batch batch = batch_make(4);
    ct_status st;
    while ((st = ct_loader_next(loader, &batch, NULL)) == CT_OK) {
    }
    assert_int_equal(st, n_good > 0 ? CT_END_OF_DATA : CT_ERR_DATA); /* nothing but the bad one: told */
    assert_int_equal(ct_loader_get_stats(loader).n_bad[CT_BAD_DAMAGED], 1);
    batch_free(&batch);
    ct_loader_destroy(&loader);
    ct_corpus_destroy(&corpus);
    cti_str_deinit(&text);
}

static void damage(void **state)
{
    data_folder *f = *state;
    static const char lines[] = "{\"text\":\"alpha\"}\n{\"text\":\"beta\"}\n";
    cti_str packed = {.alloc = ct_alloc_system()};
    add_gzip(&packed, lines, sizeof lines - 1, 6);
    packed.data[packed.len - 8] ^= 1;
    assert_damage(put_bytes(f, "crc.jsonl.gz", packed.data, packed.len), 2, "incorrect data check");
    packed.data[packed.len - 8] ^= 1;
    packed.data[packed.len - 1] ^= 1;
    assert_damage(put_bytes(f, "size.jsonl.gz", packed.data, packed.len), 2, "incorrect length check");
    packed.data[packed.len - 1] ^= 1;
    cti_str_add(&packed, "garbage");
    assert_damage(put_bytes(f, "after.jsonl.gz", packed.data, packed.len), 2, "7 bytes that are no gzip data");
    cti_str_reset(&packed);
    add_zstd(&packed, lines, sizeof lines - 1);
    packed.data[packed.len - 1] ^= 1;
    assert_damage(put_bytes(f, "sum.jsonl.zst", packed.data, packed.len), 0, "zstd data is");
    packed.data[packed.len - 1] ^= 1;
    cti_str_add(&packed, "garbage behind");
    assert_damage(put_bytes(f, "after.jsonl.zst", packed.data, packed.len), 2, "zstd data is wanted before byte");
    cti_str_deinit(&packed);
}

static void limits(void **state)
{
    data_folder *f = *state;
    cti_str lines = {.alloc = ct_alloc_system()}, text = {.alloc = ct_alloc_system()}, packed = {.alloc = ct_alloc_system()};
    cti_str_add(&lines, "{\"text\":\"a\"}\n{\"text\":\"");
    while (lines.len < 2000000) {
        cti_str_add(&lines, "0123456789");
    }
    cti_str_add(&lines, "\"}\n{\"text\":\"b\"}\n");
    const size_t line = lines.len - 13 - 13 - 1; /* of the long one */
    add_gzip(&packed, lines.data, lines.len, 6);
    for (int codec = 0; codec < 2; codec++) {
        const char *path = codec == 0 ? put_bytes(f, "a.jsonl", lines.data, lines.len) : put_bytes(f, "b.jsonl.gz", packed.data, packed.len);
        for (size_t most = line - 1; most <= line; most++) {
            ct_corpus *corpus = open_with(path, &(ct_corpus_options){.max_document_bytes = (int64_t)most});
            ct_err err = {0};
            ct_bad bad;
            assert_int_equal(ct_corpus_n_documents(corpus), 3);
            assert_int_equal(read_text(corpus, 1, &text, &bad, &err), most == line ? CT_OK : CT_ERR_DATA);
            if (most < line) {
                assert_int_equal(bad, CT_BAD_TOO_LONG);
                assert_says(&err, "line 2: longer than allowed: more than 1.91 MiB (max_document_bytes)");
            }
            assert_int_equal(read_text(corpus, 2, &text, NULL, NULL), CT_OK);
            assert_string_equal(text.data, "b");
            ct_corpus_destroy(&corpus);
        }
    }
    ct_corpus *corpus = open_with(put_bytes(f, "c.txt", lines.data, lines.len), &(ct_corpus_options){.max_document_bytes = 1000});
    ct_bad bad;
    assert_int_equal(read_text(corpus, 0, &text, &bad, NULL), CT_ERR_DATA);
    assert_int_equal(bad, CT_BAD_TOO_LONG);
    ct_corpus_destroy(&corpus);
    corpus = NULL;
    assert_int_equal(ct_corpus_open(ct_alloc_system(), f->file, &(ct_corpus_options){.max_document_bytes = -1}, &corpus, NULL), CT_ERR_RANGE);
    cti_str_deinit(&lines), cti_str_deinit(&text), cti_str_deinit(&packed);
}

static void utf8_and_records(void **state)
{
    cti_str text = {.alloc = ct_alloc_system()};
    ct_err err = {0};
    ct_bad bad;
    const char *path = put(*state, "a.jsonl", "{\"text\":\"a\xff\"}\n{\"text\":\"\\ud800\"}\n{\"text\":\"fine\"}\n[1]\n");
    ct_corpus *corpus = open_with(path, &(ct_corpus_options){.utf8 = CT_UTF8_BAD});
    assert_int_equal(read_text(corpus, 0, &text, &bad, &err), CT_ERR_DATA);
    assert_int_equal(bad, CT_BAD_UTF8);
    assert_says(&err, "line 1: not UTF-8: 1 ill-formed part(s), 0 escaped");
    assert_int_equal(read_text(corpus, 1, &text, &bad, NULL), CT_ERR_DATA);
    assert_int_equal(bad, CT_BAD_UTF8);
    assert_int_equal(read_text(corpus, 2, &text, &bad, NULL), CT_OK);
    ct_corpus_destroy(&corpus);
    corpus = open_with(path, &(ct_corpus_options){.records = true});
    assert_int_equal(read_text(corpus, 0, &text, &bad, NULL), CT_OK);
    assert_string_equal(text.data, "{\"text\":\"a\xef\xbf\xbd\"}");
    assert_int_equal(read_text(corpus, 3, &text, &bad, NULL), CT_ERR_DATA);
    assert_int_equal(bad, CT_BAD_NOT_OBJECT);
    ct_corpus_destroy(&corpus);
    cti_str_deinit(&text);
}

/* Several paths in the order given; one file twice, or in two forms, is refused. */
static void lists(void **state)
{
    data_folder *f = *state;
    ct_corpus *corpus = NULL;
    ct_err err = {0};
    cti_str got = {.alloc = ct_alloc_system()}, packed = {.alloc = ct_alloc_system()};
    char a[1100], b[1100], c[1100];
    add_gzip(&packed, "{\"text\":\"2\"}", 12, 6);
    (void)snprintf(b, sizeof b, "%s", put(f, "b.jsonl", "{\"text\":\"0\"}"));
    (void)snprintf(a, sizeof a, "%s", put(f, "a.txt", "1"));
    (void)snprintf(c, sizeof c, "%s", put_bytes(f, "c.jsonl.gz", packed.data, packed.len));
    assert_int_equal(ct_corpus_open_list(ct_alloc_system(), (const char *const[]){b, a, c}, 3, NULL, &corpus, NULL), CT_OK);
    read_all(corpus, 1, &got);
    assert_string_equal(got.data, "0:1:01:1:12:1:2");
    ct_corpus_destroy(&corpus);
    assert_int_equal(ct_corpus_open_list(ct_alloc_system(), (const char *const[]){b, a, b}, 3, NULL, &corpus, &err), CT_ERR_DATA);
    assert_says(&err, "are the same file");
    assert_int_equal(ct_corpus_open_list(ct_alloc_system(), NULL, 0, NULL, &corpus, NULL), CT_ERR_USAGE);
    put(f, "c.jsonl", "{\"text\":\"2\"}");
    err = (ct_err){0};
    assert_int_equal(ct_corpus_open(ct_alloc_system(), in_folder(f, "*.jsonl*"), NULL, &corpus, &err), CT_ERR_DATA);
    assert_says(&err, "two forms of one file");
    assert_null(corpus);
    cti_str_deinit(&got), cti_str_deinit(&packed);
}

/* A large frame of zstd can be read in order only, and says so. */
static void one_large_frame(void **state)
{
    cti_str lines = {.alloc = ct_alloc_system()}, packed = {.alloc = ct_alloc_system()};
    while (lines.len < (17 << 20)) {
        cti_str_add(&lines, "{\"text\":\"the same again, the same again, the same again, the same again, the same again\"}\n");
    }
    add_zstd(&packed, lines.data, lines.len);
    ct_corpus *corpus = open_corpus(put_bytes(*state, "a.jsonl.zst", packed.data, packed.len));
    ct_err err = {0};
    assert_false(ct_corpus_is_random_access(corpus));
    assert_int_equal(ct_corpus_check_random_access(corpus, &err), CT_ERR_UNSUPPORTED);
    assert_says(&err, "a.jsonl.zst");
    assert_says(&err, "zstd -dc");
    ct_corpus_destroy(&corpus);
    cti_str_deinit(&lines), cti_str_deinit(&packed);
}

/* --- the cache --- */

typedef struct kept {
    data_folder *f;
    char cache[700], path[700], index[1100];
    cti_str want, got;
} kept;

/* Opens with the cache; the documents are right in any case. */
static void open_kept(kept *k, bool from_cache, const char *says)
{
    ct_corpus *corpus = open_with(k->path, &(ct_corpus_options){.cache_dir = k->cache});
    assert_int_equal(ct_corpus_file_at(corpus, 0).is_index_built, !from_cache);
    assert_true(ct_corpus_file_at(corpus, 0).is_index_kept || says != NULL);
    if (says == NULL) {
        assert_string_equal(ct_corpus_notes(corpus), "");
    } else if (strstr(ct_corpus_notes(corpus), says) == NULL) {
        fail_msg("'%s' does not say '%s'", ct_corpus_notes(corpus), says);
    }
    read_all(corpus, 1, &k->got);
    assert_int_equal(k->got.len, k->want.len);
    assert_memory_equal(k->got.data, k->want.data, k->want.len);
    ct_corpus_destroy(&corpus);
}

static void find_index_file(kept *k)
{
    cti_names names;
    char folder[1000];
    (void)snprintf(folder, sizeof folder, "%s/index", k->cache);
    assert_int_equal(cti_list_dir(ct_alloc_system(), folder, &names, NULL), CT_OK);
    assert_int_equal(names.n, 1); /* no temporary file is left */
    (void)snprintf(k->index, sizeof k->index, "%.600s/%.400s", folder, names.names[0]);
    cti_names_free(ct_alloc_system(), &names);
}

static void kept_index(void **state)
{
    data_folder *f = *state;
    kept k = {.f = f, .want = {.alloc = ct_alloc_system()}, .got = {.alloc = ct_alloc_system()}};
    cti_str lines = {.alloc = ct_alloc_system()}, packed = {.alloc = ct_alloc_system()};
    add_lines(&lines, 2 << 20, 3);
    add_gzip(&packed, lines.data, lines.len, 0); /* stored: large enough to be kept */
    (void)snprintf(k.path, sizeof k.path, "%.600s", put_bytes(f, "a.jsonl.gz", packed.data, packed.len));
    (void)snprintf(k.cache, sizeof k.cache, "%s/cache", f->path);
    ct_corpus *corpus = open_with(k.path, &(ct_corpus_options){.cache_dir = ""});
    read_all(corpus, 1, &k.want);
    ct_corpus_destroy(&corpus);
    open_kept(&k, false, NULL);
    open_kept(&k, true, NULL);
    find_index_file(&k);
    char *bytes;
    size_t size;
    assert_int_equal(cti_file_read(ct_alloc_system(), k.index, 0, &bytes, &size, NULL), CT_OK);
    static const struct {
        size_t at;
        const char *says;
    } flips[] = {{0, "first bytes"}, {8, "version"}, {16, "check sum"}, {24, "sizes are wrong"}, {40, "check sum"}, {72, "sizes are wrong"}, {300, "check sum"}};
    for (size_t i = 0; i < N_OF(flips); i++) {
        bytes[flips[i].at] = (char)(bytes[flips[i].at] ^ 1);
        assert_int_equal(cti_file_write_atomic(k.index, bytes, size, NULL), CT_OK);
        open_kept(&k, false, flips[i].says);
        bytes[flips[i].at] = (char)(bytes[flips[i].at] ^ 1);
    }
    bytes[size - 1] = (char)(bytes[size - 1] ^ 1);
    assert_int_equal(cti_file_write_atomic(k.index, bytes, size, NULL), CT_OK);
    open_kept(&k, false, "check sum");
    assert_int_equal(truncate(k.index, (off_t)size - 1), 0);
    open_kept(&k, false, "cut off");
    assert_int_equal(truncate(k.index, 0), 0);
    open_kept(&k, false, "first bytes");
    open_kept(&k, true, NULL);
    /* another file under the name */
    cti_str_reset(&packed);
    add_gzip(&packed, lines.data, lines.len, 0);
    cti_str_add_n(&packed, "\0", 1);
    (void)put_bytes(f, "a.jsonl.gz", packed.data, packed.len);
    open_kept(&k, false, "another state");
    open_kept(&k, true, NULL);
    /* a cache that cannot be written is a note */
    (void)snprintf(k.cache, sizeof k.cache, "%.600s", put(f, "nofolder", "a file"));
    open_kept(&k, false, "is not kept");
    ct_alloc_free(ct_alloc_system(), bytes);
    cti_str_deinit(&k.want), cti_str_deinit(&k.got), cti_str_deinit(&lines), cti_str_deinit(&packed);
}

static void cache_folder(void **state)
{
    (void)state;
    static const struct {
        const char *ctitan, *xdg, *home, *want;
    } rows[] = {{"/c", "/x", "/h", "/c"}, {NULL, "/x", "/h", "/x/ctitan"}, {"", "", "/h", "/h/.cache/ctitan"}, {NULL, NULL, NULL, ""}};
    static const char *const names[] = {"CTITAN_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
    char *saved[3];
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        saved[i] = value != NULL ? ct_alloc_strdup(ct_alloc_system(), value, NULL) : NULL;
    }
    for (size_t r = 0; r < N_OF(rows); r++) {
        const char *const values[] = {rows[r].ctitan, rows[r].xdg, rows[r].home};
        char *path = NULL;
        for (int i = 0; i < 3; i++) {
            assert_int_equal(values[i] != NULL ? setenv(names[i], values[i], 1) : unsetenv(names[i]), 0);
        }
        assert_int_equal(ct_data_cache_dir(ct_alloc_system(), &path, NULL), CT_OK);
        assert_string_equal(path, rows[r].want);
        ct_alloc_free(ct_alloc_system(), path);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(saved[i] != NULL ? setenv(names[i], saved[i], 1) : unsetenv(names[i]), 0);
        ct_alloc_free(ct_alloc_system(), saved[i]);
    }
}

/* --- files that change --- */

static void put_at_end(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

static void changing_files(void **state)
{
    data_folder *f = *state;
    cti_str lines = {.alloc = ct_alloc_system()}, packed = {.alloc = ct_alloc_system()};
    add_lines(&lines, 1 << 20, 4);
    add_gzip(&packed, lines.data, lines.len, 6);
    for (int form = 0; form < 2; form++) {
        const cti_str *bytes = form == 0 ? &lines : &packed;
        const char *name = form == 0 ? "a.jsonl" : "a.jsonl.gz";
        for (int change = 0; change < 5; change++) {
            ct_corpus *corpus = open_corpus(put_bytes(f, name, bytes->data, bytes->len));
            ct_reader *reader = NULL;
            ct_document document;
            ct_err err = {0};
            ct_bad bad = CT_BAD_COUNT;
            const int64_t last = ct_corpus_n_documents(corpus) - 1;
            ct_document_init(&document, ct_alloc_system());
            assert_int_equal(ct_reader_create(ct_alloc_system(), corpus, &reader, NULL), CT_OK);
            assert_int_equal(ct_reader_read(reader, 0, &document, NULL, NULL, NULL), CT_OK);
            const char *says = NULL;
            int fd;
            switch (change) {
            case 0: /* cut */
                assert_int_equal(truncate(f->file, 5000), 0);
                says = "it has 5000 now";
                break;
            case 1:
                put_at_end(f->file, "more\n");
                says = "has changed while it is in use";
                break;
            case 2: /* other bytes, same size */
                fd = open(f->file, O_WRONLY);
                assert_int_equal(pwrite(fd, "{}", 2, (off_t)bytes->len - 3), 2);
                assert_int_equal(close(fd), 0);
                assert_int_equal(utimensat(AT_FDCWD, f->file, (const struct timespec[2]){{.tv_sec = 5}, {.tv_sec = 5}}, 0), 0);
                says = "bytes are others";
                break;
            case 3: /* touched only */
                assert_int_equal(utimensat(AT_FDCWD, f->file, (const struct timespec[2]){{.tv_sec = 5}, {.tv_sec = 5}}, 0), 0);
                break;
            default: /* gone: a reader that has it open reads on, another one cannot */
                assert_int_equal(unlink(f->file), 0);
            }
            const ct_status st = ct_reader_read(reader, last, &document, &bad, NULL, &err);
            assert_int_equal(st, says != NULL ? CT_ERR_DATA : CT_OK);
            if (says != NULL) {
                assert_int_equal(bad, CT_BAD_NONE); /* of the file, not of a document: no policy skips it */
                assert_says(&err, says);
                assert_says(&err, name);
            }
            if (change == 4) {
                cti_str text = {.alloc = ct_alloc_system()};
                assert_int_equal(read_text(corpus, last, &text, NULL, &err), CT_ERR_NOT_FOUND);
                assert_says(&err, name);
                cti_str_deinit(&text);
            }
            ct_document_deinit(&document);
            ct_reader_destroy(&reader);
            ct_corpus_destroy(&corpus);
        }
    }
    cti_str_deinit(&lines), cti_str_deinit(&packed);
}

/* --- what is no data file --- */

static void refused(const char *path, ct_status status, const char *says)
{
    ct_corpus *corpus = NULL;
    ct_err err = {0};
    assert_int_equal(ct_corpus_open(ct_alloc_system(), path, NULL, &corpus, &err), status);
    assert_null(corpus);
    assert_says(&err, says);
}

static void odd_files(void **state)
{
    data_folder *f = *state;
    char path[1100];
    (void)snprintf(path, sizeof path, "%s/a.jsonl", f->path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused(path, CT_ERR_UNSUPPORTED, "neither a file nor a folder");
    refused(f->path, CT_ERR_UNSUPPORTED, "a pipe");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("a.jsonl", path), 0);
    refused(path, CT_ERR_IO, "go in a circle");
    refused(f->path, CT_ERR_IO, "go in a circle");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("nothing", path), 0);
    refused(f->path, CT_ERR_NOT_FOUND, "a.jsonl");
    assert_int_equal(unlink(path), 0);
    if (geteuid() != 0) { /* rights do not bind root */
        assert_int_equal(mkdir(path, 0), 0);
        refused(path, CT_ERR_IO, "Permission denied");
        assert_int_equal(rmdir(path), 0);
        put(f, "a.jsonl", "{\"text\":\"x\"}");
        assert_int_equal(chmod(path, 0), 0);
        refused(path, CT_ERR_IO, "Permission denied");
        assert_int_equal(unlink(path), 0);
    }
    static const char *const names[] = {"two words.jsonl", "line\nbreak.jsonl", "\xe6\x96\x87\xe4\xbb\xb6.jsonl", "-dash.jsonl", "'quote\".jsonl", "*.jsonl"};
    for (size_t i = 0; i < N_OF(names); i++) {
        put(f, names[i], "{\"text\":\"x\"}\n");
    }
    for (size_t i = 0; i < N_OF(names); i++) {
        ct_corpus *corpus = open_corpus(in_folder(f, names[i]));
        assert_int_equal(ct_corpus_n_files(corpus), 1);
        ct_corpus_destroy(&corpus);
    }
    ct_corpus *corpus = open_corpus(f->path);
    assert_int_equal(ct_corpus_n_documents(corpus), N_OF(names));
    ct_corpus_destroy(&corpus);
}

/* Where documents are short the points of a compressed file stand nearer to each other: a jump costs half the way between two. */
static void points_of_short_documents(void **state)
{
    data_folder *f = *state;
    static const struct {
        int line_bytes;
        int64_t least, most; /* bytes from one point to the next; a deflate block of this text has some 30 KiB */
    } cases[] = {{80, 64 << 10, 256 << 10}, {1024, 256 << 10, 512 << 10}, {20000, 512 << 10, 768 << 10}};
    for (size_t k = 0; k < N_OF(cases); k++) {
        cti_str lines = {.alloc = ct_alloc_system()}, packed = {.alloc = ct_alloc_system()};
        uint64_t x = 7;
        for (int i = 1; lines.len < 4 << 20; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            cti_str_add_char(&lines, i % cases[k].line_bytes == 0 ? '\n' : (char)('a' + (x >> 33) % 26));
        }
        add_gzip(&packed, lines.data, lines.len, 6);
        cti_source source = {.path = put_bytes(f, "a.jsonl.gz", packed.data, packed.len), .codec = CT_CODEC_GZIP};
        cti_index index;
        const int fd = open(source.path, O_RDONLY);
        assert_true(fd >= 0);
        assert_int_equal(cti_stamp_take(source.path, fd, &source.stamp, NULL), CT_OK);
        assert_int_equal(close(fd), 0);
        assert_int_equal(cti_index_build(ct_alloc_system(), &source, CT_FILE_JSONL, &index, NULL), CT_OK);
        assert_true(index.n_points > 3);
        for (int64_t i = 1; i < index.n_points; i++) {
            const int64_t gap = index.points[i].out - index.points[i - 1].out;
            if (gap < cases[k].least || gap > cases[k].most) {
                fail_msg("lines of %d bytes: %lld bytes from point to point", cases[k].line_bytes, (long long)gap);
            }
        }
        cti_index_deinit(ct_alloc_system(), &index);
        cti_str_deinit(&lines);
        cti_str_deinit(&packed);
    }
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(forms),      IN_FOLDER(cut_anywhere),   IN_FOLDER(damage),
        IN_FOLDER(limits),     IN_FOLDER(utf8_and_records),  IN_FOLDER(lists),          IN_FOLDER(one_large_frame),
        IN_FOLDER(kept_index), cmocka_unit_test(cache_folder), IN_FOLDER(changing_files), IN_FOLDER(odd_files),
        IN_FOLDER(points_of_short_documents),
    };
    return cmocka_run_group_tests_name("data_sources", tests, NULL, NULL);
}
