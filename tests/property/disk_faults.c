/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: ckpt base */
/* labels: slow */
/* Disks that fail: of a save, a replacing save, retention, an export and a small file every single call that reaches the disk fails in turn,
 * once or from then on, with ENOSPC (after half of a write), EIO, EROFS. The error names a path of the folder and the reason; what was whole
 * before is whole after; nothing is left behind where the disk works again; and the next save does what this one could not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/hf.h"

/* ---- the disk ---------------------------------------------------------------------------------------------------- */

static char folder[256]; /* calls on what lies below fail */
static struct {
    int at, code;   /* the call that fails, from 0 on; -1: none */
    bool is_sticky; /* so do all after it */
    int n;          /* calls so far */
    int n_failed;
} disk = {.at = -1};

static bool fails(const char *path)
{
    if (folder[0] == '\0' || strncmp(path, folder, strlen(folder)) != 0) {
        return false;
    }
    const int n = disk.n++;
    if (disk.at < 0 || (disk.is_sticky ? n < disk.at : n != disk.at)) {
        return false;
    }
    disk.n_failed++;
    errno = disk.code;
    return true;
}

static const char *path_of(int fd, char out[512])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, out, 511);
    out[n > 0 ? n : 0] = '\0';
    return out;
}

/* The program's own calls land here; these are what glibc has. */
#define REAL(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

static int open_on(const char *path, int flags, mode_t mode)
{
    static int (*real)(const char *, int, ...);
    real = real != NULL ? real : (int (*)(const char *, int, ...))(uintptr_t)dlsym(RTLD_NEXT, "open");
    return (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0 && fails(path) ? -1 : real(path, flags, mode);
}
int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_on(path, flags, mode);
}
ssize_t write(int fd, const void *data, size_t size)
{
    static __typeof__(&write) real;
    char path[512];
    real = real != NULL ? real : REAL(write);
    if (!fails(path_of(fd, path))) {
        return real(fd, data, size);
    }
    return disk.code == ENOSPC && size > 1 && disk.n_failed == 1 ? real(fd, data, size / 2) : -1;
}
int fsync(int fd)
{
    char path[512];
    return fails(path_of(fd, path)) ? -1 : 0; /* nothing need reach a disk */
}
int rename(const char *from, const char *to)
{
    static __typeof__(&rename) real;
    real = real != NULL ? real : REAL(rename);
    return fails(from) ? -1 : real(from, to);
}
int mkdir(const char *path, mode_t mode)
{
    static __typeof__(&mkdir) real;
    real = real != NULL ? real : REAL(mkdir);
    return fails(path) ? -1 : real(path, mode);
}
int unlink(const char *path)
{
    static __typeof__(&unlink) real;
    real = real != NULL ? real : REAL(unlink);
    return fails(path) ? -1 : real(path);
}
int rmdir(const char *path)
{
    static __typeof__(&rmdir) real;
    real = real != NULL ? real : REAL(rmdir);
    return fails(path) ? -1 : real(path);
}

/* ---- what is written --------------------------------------------------------------------------------------------- */

static const ct_alloc *alloc;
enum { N = 600, WORLD = 2 };

static void ok(ct_status st, const ct_err *err)
{
    if (st != CT_OK) {
        fail_msg("%s: %s", ct_status_name(st), err->message);
    }
}

static ct_status source(void *ctx, int32_t piece, int64_t begin, int64_t end, void *dst, ct_err *err)
{
    const int64_t step = *(const int64_t *)ctx;
    (void)err;
    for (int64_t i = begin; i < end; i++) {
        ((float *)dst)[i - begin] = (float)(i + piece) + (float)step / 16.0F;
    }
    return CT_OK;
}

/* As ranks of a run do it, those that failed told by the others. */
static ct_status save(int64_t step, ct_err *err)
{
    static int n_saves;
    char token[17];
    ct_status st = CT_OK;
    snprintf(token, sizeof token, "t%d", n_saves++);
    for (int r = 0; r < WORLD; r++) {
        const ct_ckpt_piece piece = {"w", CT_DTYPE_F32, 1, {N}, N * r / WORLD, N * (r + 1) / WORLD, 0, 0};
        ct_err mine = {0};
        const ct_status one = ct_ckpt_write_rank(alloc, folder, step, token, r, WORLD, &piece, 1, source, &step, &mine);
        if (st == CT_OK && one != CT_OK) {
            st = one;
            *err = mine;
        }
    }
    st = st == CT_OK ? ct_ckpt_commit(alloc, folder, step, token, WORLD, NULL, err) : st;
    if (st != CT_OK) {
        ct_ckpt_abandon(alloc, folder, step, token);
    }
    return st;
}

static int64_t newest(void)
{
    ct_err err = {0};
    ct_ckpt *ckpt = NULL;
    float w[N];
    ok(ct_ckpt_open(alloc, folder, -1, &ckpt, NULL, &err), &err);
    const int64_t step = ct_ckpt_step(ckpt);
    ok(ct_ckpt_read(ckpt, "w", 0, N, CT_DTYPE_F32, w, &err), &err);
    for (int i = 0; i < N; i++) {
        assert_true(w[i] == (float)i + (float)step / 16.0F);
    }
    ct_ckpt_close(&ckpt);
    return step;
}

/* Only step-<N> folders are left. */
static void expect_clean(void)
{
    ct_err err = {0};
    cti_names names = {0};
    ok(cti_list_dir(alloc, folder, &names, &err), &err);
    for (size_t i = 0; i < names.n; i++) {
        if (strncmp(names.names[i], "step-", 5) != 0) {
            fail_msg("'%s' is left", names.names[i]);
        }
    }
    cti_names_free(alloc, &names);
}

static void expect_named(const ct_err *err)
{
    char reason[128];
    const char *why = strerror_r(disk.code, reason, sizeof reason);
    if (strstr(err->message, folder) == NULL || strstr(err->message, why) == NULL || strchr(err->message, '\n') != NULL) {
        fail_msg("call %d: '%s' does not name '%s' and '%s'", disk.at, err->message, folder, why);
    }
}

static void fresh_folder(void)
{
    disk.at = -1;
    if (cti_path_exists(folder)) {
        ct_err err = {0};
        ok(cti_remove_tree(folder, &err), &err);
    }
    ct_err err = {0};
    ok(cti_make_dirs(folder, &err), &err);
}

static const int codes[] = {ENOSPC, EIO, EROFS};

/* Runs `check` with call 0, 1, 2, … failing, until it needs fewer calls. */
static void every_call(const char *what, void (*prepare)(void), ct_status (*act)(ct_err *), void (*check)(ct_status))
{
    int n = 0;
    for (size_t c = 0; c < sizeof codes / sizeof codes[0]; c++) {
        for (int sticky = codes[c] == EROFS; sticky < (codes[c] == EIO ? 1 : 2); sticky++) { /* a disk is read-only for good, an I/O error may pass */
            for (int at = 0;; at++) {
                ct_err err = {0};
                fresh_folder();
                prepare();
                disk.at = at;
                disk.code = codes[c];
                disk.is_sticky = sticky;
                disk.n = disk.n_failed = 0;
                const ct_status st = act(&err);
                if (st != CT_OK) {
                    expect_named(&err);
                }
                disk.at = -1;
                check(st);
                if (disk.n_failed == 0) {
                    assert_int_equal(st, CT_OK);
                    break;
                }
                n++;
            }
        }
    }
    printf("%s: %d faults\n", what, n);
    assert_true(n > 20);
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static void has_one(void)
{
    ct_err err = {0};
    ok(save(1, &err), &err);
}

static void has_two(void)
{
    ct_err err = {0};
    ok(save(1, &err), &err);
    ok(save(2, &err), &err);
}

static ct_status save_two(ct_err *err)
{
    return save(2, err);
}

static void check_two(ct_status st)
{
    ct_err err = {0};
    const int64_t step = newest();
    assert_true(step == 2 || (step == 1 && st != CT_OK));
    ok(save(3, &err), &err);
    assert_int_equal(newest(), 3);
    expect_clean();
}

static ct_status retain_one(ct_err *err)
{
    return ct_ckpt_retain(alloc, folder, 1, NULL, NULL, err);
}

static void check_retained(ct_status st)
{
    (void)st;
    ct_err err = {0};
    assert_int_equal(newest(), 2);
    ok(save(3, &err), &err);
    ok(retain_one(&err), &err);
    assert_int_equal(newest(), 3);
    expect_clean();
}

static void test_saves(void **state)
{
    (void)state;
    every_call("a save", has_one, save_two, check_two);
    every_call("a save that replaces one", has_two, save_two, check_two);
}

static void has_three(void)
{
    ct_err err = {0};
    has_two();
    ok(ct_ckpt_retain(alloc, folder, 2, NULL, NULL, &err), &err);
    ok(save(0, &err), &err);
}

static void test_retention(void **state)
{
    (void)state;
    every_call("retention", has_three, retain_one, check_retained);
}

/* ---- an export --------------------------------------------------------------------------------------------------- */

static const ct_hf_shape shape = {.dim = 8, .n_layers = 1, .n_heads = 2, .n_kv_heads = 1, .head_dim = 4, .ffn_hidden = 12, .vocab_size = 10,
                                  .rope_theta = 10000.0, .norm_eps = 1e-5, .max_seq_len = 64, .bos_id = -1, .eos_id = -1};
static float exported;

static ct_status ones(void *ctx, const char *name, int64_t begin, int64_t end, float *dst, ct_err *err)
{
    (void)ctx;
    (void)name;
    (void)err;
    for (int64_t i = begin; i < end; i++) {
        dst[i - begin] = exported;
    }
    return CT_OK;
}

static ct_status export(ct_err *err)
{
    char at[300];
    snprintf(at, sizeof at, "%s/step-9", folder);
    exported += 1.0F;
    return ct_hf_write(alloc, at, &shape, CT_DTYPE_F32, 1200, ones, NULL, err);
}

static void has_export(void)
{
    ct_err err = {0};
    exported = 0.0F;
    ok(export(&err), &err);
}

static void check_export(ct_status st)
{
    ct_err err = {0};
    ct_hf *hf = NULL;
    char at[300];
    float got[8];
    for (int again = 0; again < 2; again++) {
        snprintf(at, sizeof at, "%s/step-9", folder);
        ok(ct_hf_open(alloc, at, &shape, &hf, &err), &err);
        ok(ct_hf_read(hf, "norm.weight", 0, 8, CT_DTYPE_F32, got, &err), &err);
        ct_hf_close(&hf);
        assert_true(got[0] == 2.0F + (float)again || (again == 0 && st != CT_OK && got[0] == 1.0F));
        if (again == 0) {
            ok(export(&err), &err);
        }
    }
    expect_clean();
}

static void test_export(void **state)
{
    (void)state;
    every_call("an export", has_export, export, check_export);
}

/* ---- a small file ------------------------------------------------------------------------------------------------ */

static ct_status write_small(ct_err *err)
{
    char at[300];
    snprintf(at, sizeof at, "%s/a/b/run.json", folder);
    char dir[300];
    snprintf(dir, sizeof dir, "%s/a/b", folder);
    CT_TRY(cti_make_dirs(dir, err));
    return cti_file_write_atomic(at, "the new one", 11, err);
}

static void has_small(void)
{
    char at[300];
    ct_err err = {0};
    snprintf(at, sizeof at, "%s/a/b/run.json", folder);
    ok(write_small(&err), &err);
    ok(cti_file_write_atomic(at, "the old one", 11, &err), &err);
}

static void check_small(ct_status st)
{
    char at[300], *text = NULL;
    size_t size;
    ct_err err = {0};
    snprintf(at, sizeof at, "%s/a/b/run.json", folder);
    ok(cti_file_read(alloc, at, 0, &text, &size, &err), &err);
    assert_true(size == 11 && (memcmp(text, "the new one", 11) == 0 || (st != CT_OK && memcmp(text, "the old one", 11) == 0)));
    ct_alloc_free(alloc, text);
}

static void test_small_file(void **state)
{
    (void)state;
    every_call("a small file", has_small, write_small, check_small);
}

int main(void)
{
    alloc = ct_alloc_system();
    const char *dir = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof folder, "%s/ctitan-faults-%d", dir, (int)getpid());
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_saves), cmocka_unit_test(test_retention), cmocka_unit_test(test_export),
                                       cmocka_unit_test(test_small_file)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ct_err err = {0};
    disk.at = -1;
    const ct_status ignored = cti_remove_tree(folder, &err);
    (void)ignored;
    return failed;
}
