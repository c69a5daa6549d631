/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: metrics base */
/* A metrics.csv of an earlier run, cut off or changed, that a run goes on with: what is kept is the header and whole rows of steps up to the one
 * that it resumes from, and what cannot go on is moved aside as it was. */
#include <fcntl.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "metrics/series.h"

static const char header[] = "step,time,loss,grad_norm\n";
static const char table[] = "step,time,loss,grad_norm\n1,1796036636.945,8.23,1.67\n2,1796036636.993,8.11,1.67\n3,1796036637.990,nan,inf\n10,1796036638.990,7.5,0.5\n";
static const char *const words[] = {"step,time,loss,grad_norm\n", "\n", "\r\n", ",", "-1", "9223372036854775808", "1e3", "nan", "\"", "\xef\xbb\xbf", "2,1,1,1\n"};

static void put(const char *path, const cti_str *bytes)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0 && write(fd, bytes->data, bytes->len) == (ssize_t)bytes->len);
    assert_int_equal(close(fd), 0);
}

int main(void)
{
    const ct_alloc *alloc = ct_alloc_system();
    cti_str bytes = {.alloc = alloc};
    char path[200], moved_to[220];
    int64_t n_moved = 0;
    snprintf(path, sizeof path, "%s/ctitan-fuzz-csv-%d.csv", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
    snprintf(moved_to, sizeof moved_to, "%s.1", path);
    for (fuzz_case c = fuzz_begin("metrics_csv", 3000); fuzz_next(&c);) {
        const int64_t resumed = (int64_t)fuzz_below(&c, 4);
        bool was_moved = false;
        char *text = NULL;
        size_t size = 0;
        ct_err err = {0};
        fuzz_mutate(&c, &bytes, table, sizeof table - 1, words, N_OF(words));
        put(path, &bytes);
        if (cti_csv_prepare(alloc, path, header, resumed, &was_moved, &err) != CT_OK) {
            fail_msg("seed %llu: %s", (unsigned long long)c.seed, err.message);
        }
        assert_int_equal(cti_file_read(alloc, path, 0, &text, &size, &err), CT_OK);
        if (size < sizeof header - 1 || memcmp(text, header, sizeof header - 1) != 0 || text[size - 1] != '\n') {
            fail_msg("seed %llu: '%s' is no table with the header", (unsigned long long)c.seed, text);
        }
        for (const char *row = text + sizeof header - 1; row < text + size; row = (const char *)memchr(row, '\n', (size_t)(text + size - row)) + 1) {
            if (strtoll(row, NULL, 10) > resumed) {
                fail_msg("seed %llu: resumed from %lld, a row is '%.40s'", (unsigned long long)c.seed, (long long)resumed, row);
            }
        }
        ct_alloc_free(alloc, text);
        if (was_moved) {
            n_moved++;
            assert_int_equal(cti_file_read(alloc, moved_to, 0, &text, &size, &err), CT_OK);
            assert_true(size == bytes.len && memcmp(text, bytes.data, size) == 0);
            ct_alloc_free(alloc, text);
            assert_int_equal(unlink(moved_to), 0);
        }
    }
    printf("%lld moved\n", (long long)n_moved);
    cti_str_deinit(&bytes);
    return unlink(path) != 0;
}
