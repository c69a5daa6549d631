/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: comm base */
/* The flight recorder: what is read of the ring, of shared memory and of files, and who is said to hang. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "comm/flight.h"

static const int pair[] = {0, 1}, world_of_3[] = {0, 1, 2};

static cti_recorder *make(int rank, int world_size, int fd, int64_t n, const char *path)
{
    ct_err err = {0};
    const ct_place place = {.rank = rank, .world_size = world_size, .watch_fd = fd, .run_id = "r"};
    cti_recorder *r = NULL;
    assert_int_equal(cti_recorder_create(ct_alloc_system(), &place, "gloo", n, path, "1", &r, &err), CT_OK);
    return r;
}

/* A rank that called n collectives of the world, the last of `bytes`, which is done or not. */
static void stand(cti_flight_rank *out, int rank, uint64_t n, int64_t bytes, bool done)
{
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cti_recorder *r = make(rank, 3, fd, 4, "");
    const int g = cti_recorder_add_group(r, "world", 77, world_of_3, 3, rank);
    for (uint64_t i = 1; i <= n; i++) {
        const uint64_t id = cti_recorder_begin(r, g, CT_COMM_ALL_REDUCE, i, i == n ? bytes : 8, CT_DTYPE_I64, -1);
        cti_recorder_start(r, id);
        if (i < n || done) {
            cti_recorder_end(r, id, true);
        }
    }
    cti_recorder_note(r, 7, "step");
    *out = (cti_flight_rank){.rank = rank};
    assert_true(cti_flight_read_memory(fd, out));
    cti_recorder_destroy(&r);
    (void)close(fd);
}

static void test_ring(void **state)
{
    (void)state;
    char dir[] = "/tmp/ctitan-recorder-XXXXXX", path[64], cause[64];
    ct_err err = {0};
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/a/rank_1", dir);
    cti_recorder *r = make(1, 2, 0, 4, path);
    const int g = cti_recorder_add_group(r, "tp", 5, pair, 2, 1);
    uint64_t id = 0;
    for (uint64_t i = 1; i <= 10; i++) { /* the ring goes round */
        id = cti_recorder_begin(r, g, CT_COMM_ALL_GATHER, i, (int64_t)i, CT_DTYPE_F32, -1);
        cti_recorder_start(r, id);
        cti_recorder_end(r, id, i < 10);
    }
    cti_recorder_end(r, 3, false); /* long gone: nothing happens */
    assert_int_equal(cti_recorder_dump(r, "a \"cause\"", &err), CT_OK);
    assert_int_equal(cti_recorder_dump(r, "another", &err), CT_OK); /* the first one stays */
    cti_recorder_destroy(&r);
    cti_flight_rank f;
    assert_int_equal(cti_flight_read_file(ct_alloc_system(), path, &f, cause, sizeof cause, &err), CT_OK);
    assert_string_equal(cause, "a \"cause\"");
    assert_int_equal(f.rank, 1);
    assert_int_equal(f.head.n_begun, 10);
    assert_int_equal(f.head.groups[0].last_number, 10);
    assert_true(f.has_op);
    assert_int_equal(f.op.number, 10);
    assert_int_equal(f.op.state, CTI_RECORD_FAILED);
    assert_int_equal(f.op.op, CT_COMM_ALL_GATHER);
    /* It is the last four calls, and nothing else. */
    char *data;
    size_t size;
    assert_int_equal(cti_file_read(ct_alloc_system(), path, 0, &data, &size, &err), CT_OK);
    int lines = 0;
    for (size_t i = 0; i < size; i++) {
        lines += data[i] == '\n';
    }
    assert_int_equal(lines, 1 + 4);
    assert_non_null(strstr(data, "\"id\": 7, "));
    assert_null(strstr(data, "\"id\": 6, "));
    /* Cut anywhere it is read up to there or refused, and named. */
    for (size_t cut = 0; cut < size; cut += 61) {
        assert_int_equal(cti_file_write_atomic(path, data, cut, &err), CT_OK);
        ct_err why = {0};
        if (cti_flight_read_file(ct_alloc_system(), path, &f, cause, sizeof cause, &why) != CT_OK) {
            assert_non_null(strstr(why.message, path));
        }
    }
    ct_alloc_free(ct_alloc_system(), data);
    assert_int_equal(cti_remove_tree(dir, &err), CT_OK);
}

static void test_memory(void **state)
{
    (void)state;
    /* A file of somebody's is no memory for us: it stays as it is. */
    char path[] = "/tmp/ctitan-recorder-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file > 0);
    cti_recorder *r = make(0, 2, file, 4, "");
    cti_recorder_destroy(&r);
    assert_int_equal(lseek(file, 0, SEEK_END), 0);
    cti_flight_rank f = {.rank = 0};
    assert_false(cti_flight_read_memory(file, &f));
    assert_false(cti_flight_read_memory(-1, &f));
    (void)close(file);
    (void)unlink(path);
    /* Bytes at random in shared memory are refused or read, never trusted. */
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    r = make(0, 2, fd, 4, "");
    const int g = cti_recorder_add_group(r, "world", 9, pair, 2, 0);
    (void)cti_recorder_begin(r, g, CT_COMM_BARRIER, 1, 0, CT_DTYPE_U8, -1);
    assert_true(cti_flight_read_memory(fd, &f));
    assert_true(f.has_op);
    unsigned seed = 12345;
    for (int i = 0; i < 20000; i++) {
        unsigned char byte;
        seed = seed * 1664525u + 1013904223u;
        const off_t at = (off_t)((seed >> 8) % (sizeof(cti_recorder_head) + 4 * sizeof(cti_record)));
        seed = seed * 1664525u + 1013904223u;
        const unsigned char junk = (unsigned char)(seed >> 24);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        assert_int_equal(pwrite(fd, &junk, 1, at), 1);
        cti_str text = {.alloc = ct_alloc_system()};
        if (cti_flight_read_memory(fd, &f)) {
            cti_flight_table(&f, 1, &text);
            cti_flight_verdict(&f, 1, &text);
        }
        cti_str_deinit(&text);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    cti_recorder_destroy(&r);
    (void)close(fd);
}

static void verdict(const cti_flight_rank *ranks, int n, const char *want)
{
    cti_str text = {.alloc = ct_alloc_system()};
    cti_flight_verdict(ranks, n, &text);
    if (strcmp(cti_str_text(&text), want) != 0) {
        print_error("found %swanted %s", cti_str_text(&text), want);
    }
    assert_string_equal(cti_str_text(&text), want);
    cti_str_deinit(&text);
}

static void test_verdict(void **state)
{
    (void)state;
    cti_flight_rank f[3];
    stand(&f[0], 0, 31, 16, false);
    stand(&f[1], 1, 30, 8, true);
    stand(&f[2], 2, 31, 16, false);
    verdict(f, 3, "  all_reduce 31 of 'world' (16 bytes, i64): ranks 0, 2 called it; rank 1 did not\n");
    f[1] = (cti_flight_rank){.rank = 1}; /* never came so far */
    verdict(f, 3, "  all_reduce 31 of 'world' (16 bytes, i64): ranks 0, 2 called it; rank 1 did not\n");
    stand(&f[1], 1, 31, 24, false); /* the same call of another size */
    verdict(f, 3, "  all_reduce 31 of 'world' (16 bytes, i64): ranks 0, 2 called it; rank 1 called another instead, all_reduce 31 of "
                  "'world' (24 bytes, i64)\n");
    stand(&f[1], 1, 31, 16, false);
    verdict(f, 3, "  all_reduce 31 of 'world' (16 bytes, i64): ranks 0, 1, 2 called it, as did all others of that group that are known: look "
                  "at the network between them\n");
    stand(&f[1], 1, 31, 16, true); /* got through already */
    verdict(f, 3, "  all_reduce 31 of 'world' (16 bytes, i64): ranks 0, 2 called it, as did all others of that group that are known: look at "
                  "the network between them\n");
    for (int i = 0; i < 3; i++) {
        stand(&f[i], i, 5, 8, true);
    }
    verdict(f, 3, ""); /* nobody waits */
}

static void test_pack(void **state)
{
    (void)state;
    cti_flight_rank in, out;
    stand(&in, 2, 31, 16, false);
    (void)snprintf(in.state, sizeof in.state, "stopped");
    cti_str line = {.alloc = ct_alloc_system()};
    ct_err err = {0};
    assert_int_equal(cti_flight_pack(ct_alloc_system(), &in, &line, &err), CT_OK);
    assert_null(strchr(line.data, '\n'));
    assert_true(cti_flight_unpack(line.data, &out));
    cti_str a = {.alloc = ct_alloc_system()}, b = {.alloc = ct_alloc_system()};
    cti_flight_table(&in, 1, &a);
    cti_flight_table(&out, 1, &b);
    assert_string_equal(a.data, b.data);
    for (size_t cut = 0; cut < line.len; cut++) { /* from the wire */
        char kept = line.data[cut];
        line.data[cut] = '\0';
        (void)cti_flight_unpack(line.data, &out);
        line.data[cut] = kept;
    }
    /* One that had not come so far keeps its number and its state. */
    cti_str_reset(&line);
    in = (cti_flight_rank){.rank = 5, .state = "killed by SIGKILL"};
    assert_int_equal(cti_flight_pack(ct_alloc_system(), &in, &line, &err), CT_OK);
    assert_true(cti_flight_unpack(line.data, &out));
    assert_false(out.is_known);
    assert_int_equal(out.rank, 5);
    assert_string_equal(out.state, "killed by SIGKILL");
    cti_str_deinit(&line);
    cti_str_deinit(&a);
    cti_str_deinit(&b);
}

/* Calls of a device end together: those that were begun and have not ended; also where the ring went round since. */
static void test_enqueued(void **state)
{
    (void)state;
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cti_recorder *r = make(0, 2, fd, 8, "");
    const int g = cti_recorder_add_group(r, "dp_shard", 5, pair, 2, 0);
    uint64_t ids[12];
    cti_flight_rank f = {.rank = 0};
    for (uint64_t i = 1; i <= 4; i++) {
        ids[i] = cti_recorder_begin(r, g, CT_COMM_ALL_GATHER, i, 8, CT_DTYPE_F32, -1);
        cti_recorder_start(r, ids[i]);
    }
    cti_recorder_end(r, ids[2], true);
    cti_recorder_end_from(r, ids[2], true);
    assert_true(cti_flight_read_memory(fd, &f));
    assert_int_equal(f.op.number, 1); /* before the first: still on its way */
    cti_recorder_end_from(r, ids[1], true);
    assert_true(cti_flight_read_memory(fd, &f));
    assert_int_equal(f.op.number, 4);
    assert_int_equal(f.op.state, CTI_RECORD_COMPLETED);
    for (uint64_t i = 5; i <= 11; i++) {
        ids[i] = cti_recorder_begin(r, g, CT_COMM_ALL_GATHER, i, 8, CT_DTYPE_F32, -1);
        cti_recorder_start(r, ids[i]);
    }
    assert_true(cti_flight_read_memory(fd, &f));
    assert_int_equal(f.op.number, 5);
    cti_recorder_end_from(r, ids[1], false); /* 1 to 3 are gone */
    assert_true(cti_flight_read_memory(fd, &f));
    assert_int_equal(f.op.number, 5); /* the oldest that is not complete: all of them failed */
    assert_int_equal(f.op.state, CTI_RECORD_FAILED);
    cti_recorder_end_from(r, 0, true); /* nothing was enqueued */
    cti_recorder_end_from(NULL, 1, true);
    cti_recorder_destroy(&r);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ring), cmocka_unit_test(test_enqueued), cmocka_unit_test(test_memory), cmocka_unit_test(test_verdict),
                                       cmocka_unit_test(test_pack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
