/* rooms: metrics base */
/* SPDX-License-Identifier: Apache-2.0 */
/* Event files of a run that is stopped after step 8 and goes on from step 5: their bytes are those that TensorBoard's own reader read
 * as one series 1 to 10 (tensorboard/read.py, tensorboard 2.21.0, 2026-11-30). With a folder as argument, writes them there for it. */
#include "unit/base_test.h"

#include "base/base.h"
#include "metrics/metrics.h"

static const char *const recorded[2] = {"ee2218275e02cfdfac56aa8c147fe5d0", "b1587436e4b59fab0ab26da3682de564"};

static void make(int part, cti_str *out)
{
    const int64_t first = part == 0 ? 1 : 6, last = part == 0 ? 8 : 10;
    cti_tfevents_version(out, 1796036636.5 + 1000.0 * part);
    if (part == 1) {
        cti_tfevents_restart(out, 1796037636.5, first);
    }
    for (int64_t step = first; step <= last; step++) {
        const cti_scalar scalars[] = {{"loss_metrics/global_avg_loss", 8.0 - (double)step / 4.0 + 100.0 * part, true},
                                      {"mfu(%)", 50.0, step % 2 == 0},
                                      {"lr/AdamW", 1e-3 / (double)step, true}};
        cti_tfevents_scalars(out, 1796036636.5 + 1000.0 * part + (double)step, step, scalars, 3);
    }
}

static void bytes_are_those_that_were_read(void **state)
{
    (void)state;
    for (int part = 0; part < 2; part++) {
        cti_str s = {.alloc = ct_alloc_system()};
        char hash[33];
        make(part, &s);
        cti_hash128_hex(s.data, s.len, hash);
        assert_string_equal(hash, recorded[part]);
        cti_str_deinit(&s);
    }
}

int main(int argc, char **argv)
{
    for (int part = 0; part < 2 && argc > 1; part++) {
        cti_str s = {.alloc = ct_alloc_system()};
        char path[512], hash[33];
        ct_err err = {0};
        make(part, &s);
        snprintf(path, sizeof path, "%s/events.out.tfevents.179603663%d.host.1.0", argv[1], part);
        if (cti_file_write_atomic(path, s.data, s.len, &err) != CT_OK) {
            fprintf(stderr, "%s\n", err.message);
            return 1;
        }
        cti_hash128_hex(s.data, s.len, hash);
        printf("%s\n", hash);
        cti_str_deinit(&s);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_are_those_that_were_read)};
    return argc > 1 ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
