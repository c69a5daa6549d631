/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: component autodiff backend/ref base */
/* The ops of examples/plugin against PyTorch (tests/parity/plugins/record.py), and their kernels against each other. Tolerances: each float
 * operation adds a relative error of at most u = 2^-24; a product of three and one rounding more are below 4 u. */
#include "unit/base_test.h"

#include <float.h>
#include <math.h>

#define setup squared_relu_setup
#define ct_plugin_entry squared_relu_entry
#include "../examples/plugin/squared_relu.c"
#undef setup
#undef ct_plugin_entry
#define setup lion_setup
#define ct_plugin_entry lion_entry
#include "../examples/plugin/lion.c"

#include "base/rng.h"

enum { MAX_N = 64, STEPS = 3 };
static const float U = FLT_EPSILON / 2;

/* The numbers of one line of the recorded file. */
static int64_t recorded(const char *name, float out[MAX_N])
{
    char *text = NULL;
    size_t size;
    ct_err err = {0};
    if (cti_file_read(ct_alloc_system(), CT_SOURCE_DIR "/tests/parity/plugins/recorded.txt", 0, &text, &size, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    int64_t n = 0;
    const size_t len = strlen(name);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strncmp(line, name, len) == 0 && line[len] == ' ') {
            for (char *p = line + len, *end; n < MAX_N && (out[n] = strtof(p, &end), end != p); p = end) {
                n++;
            }
        }
    }
    ct_alloc_free(ct_alloc_system(), text);
    assert_true(n > 0);
    return n;
}

static ct_tensor vector(void *data, ct_dtype dtype, int64_t n)
{
    return (ct_tensor){.data = data, .dtype = dtype, .ndim = 1, .dims = {n}};
}

static void launch(const ct_op_kernel *kernel, const ct_tensor *in, int32_t n_in, const ct_tensor *out, int32_t n_out, const void *attrs)
{
    ct_err err = {0};
    const ct_launch l = {.in = in, .n_in = n_in, .out = out, .n_out = n_out, .attrs = attrs};
    if (kernel->kernel.run(&l, &err) != CT_OK) {
        fail_msg("%s: %s", kernel->backend, err.message);
    }
}

static void near(const char *what, const float *got, const float *want, int64_t n, float relative)
{
    for (int64_t i = 0; i < n; i++) {
        if (!(fabsf(got[i] - want[i]) <= relative * fabsf(want[i]) + FLT_MIN)) {
            fail_msg("%s[%d] is %.9g, recorded is %.9g", what, (int)i, (double)got[i], (double)want[i]);
        }
    }
}

static void squared_relu_as_recorded(void **state)
{
    (void)state;
    float g[MAX_N], u[MAX_N], dy[MAX_N], y[MAX_N], dg[MAX_N], du[MAX_N], want[MAX_N];
    const int64_t n = recorded("g", g);
    assert_int_equal(recorded("u", u), n);
    assert_int_equal(recorded("dy", dy), n);
    for (int k = 0; k < 2; k++) { /* cpu, ref */
        const ct_tensor in[3] = {vector(dy, CT_DTYPE_F32, n), vector(g, CT_DTYPE_F32, n), vector(u, CT_DTYPE_F32, n)};
        const ct_tensor out[3] = {vector(y, CT_DTYPE_F32, n), vector(dg, CT_DTYPE_F32, n), vector(du, CT_DTYPE_F32, n)};
        launch(&kernels[k], in + 1, 2, out, 1, NULL);
        launch(&grad_kernels[k], in, 3, out + 1, 2, NULL);
        recorded("y", want);
        near("y", y, want, n, 4 * U);
        recorded("dg", want);
        near("dg", dg, want, n, 4 * U);
        recorded("du", want);
        near("du", du, want, n, 4 * U);
    }
}

/* Random inputs, bfloat16 too: both kernels round the same number, but for what float added to it. */
static void kernels_agree(void **state)
{
    (void)state;
    enum { N = 10000 };
    static uint16_t h[3][N], out[2][2][N];
    static float f[3][N], fout[2][2][N];
    const cti_rng_key key = cti_rng_key_make(3, "squared_relu");
    for (int64_t i = 0; i < 3 * N; i++) {
        f[i / N][i % N] = (float)(8.0 * cti_rng_uniform(key, (uint64_t)i) - 4.0);
        h[i / N][i % N] = ct_f32_to_bf16(f[i / N][i % N]);
    }
    for (int k = 0; k < 2; k++) {
        const ct_tensor in[3] = {vector(f[0], CT_DTYPE_F32, N), vector(f[1], CT_DTYPE_F32, N), vector(f[2], CT_DTYPE_F32, N)};
        const ct_tensor o[2] = {vector(fout[k][0], CT_DTYPE_F32, N), vector(fout[k][1], CT_DTYPE_F32, N)};
        launch(&grad_kernels[k], in, 3, o, 2, NULL);
        const ct_tensor hin[3] = {vector(h[0], CT_DTYPE_BF16, N), vector(h[1], CT_DTYPE_BF16, N), vector(h[2], CT_DTYPE_BF16, N)};
        const ct_tensor ho[2] = {vector(out[k][0], CT_DTYPE_BF16, N), vector(out[k][1], CT_DTYPE_BF16, N)};
        launch(&grad_kernels[k], hin, 3, ho, 2, NULL);
    }
    for (int o = 0; o < 2; o++) {
        near("f32", fout[0][o], fout[1][o], N, 4 * U);
        for (int64_t i = 0; i < N; i++) {
            const float a = ct_bf16_to_f32(out[0][o][i]), b = ct_bf16_to_f32(out[1][o][i]);
            assert_true(fabsf(a - b) <= 0x1p-7f * fabsf(b)); /* neighbours at most */
        }
    }
}

static void lion_as_recorded(void **state)
{
    (void)state;
    float p[MAX_N], m[MAX_N] = {0}, grad[MAX_N], want[MAX_N], coef[] = {1.0f, 0.5f, 0.25f};
    double lr[] = {0.01, 0.002};
    int32_t go = 1;
    const int64_t n = recorded("p", p);
    int64_t segments[] = {0, n / 2, 0, n / 2, n, 1};
    double beta1[] = {0.9, 0.95}, beta2[] = {0.99, 0.98}, decay[] = {0.1, 0.0};
    const update_attrs attrs = {{6, segments}, {2, beta1}, {2, beta2}, {2, decay}};
    for (int s = 0; s < STEPS; s++) {
        char name[16];
        (void)snprintf(name, sizeof name, "grad%d", s);
        assert_int_equal(recorded(name, grad), n);
        ct_tensor in[6] = {vector(p, CT_DTYPE_F32, n), vector(grad, CT_DTYPE_F32, n), vector(m, CT_DTYPE_F32, n),
                           vector(lr, CT_DTYPE_F64, 2), vector(&coef[s], CT_DTYPE_F32, 1), vector(&go, CT_DTYPE_I32, 1)};
        const ct_tensor out[2] = {in[0], in[2]};
        launch(&update_kernels[0], in, 6, out, 2, &attrs);
        /* Of a step: p times keep and the product with the rate, m by two products and a sum; numbers are below 8. */
        (void)snprintf(name, sizeof name, "p%d", s);
        recorded(name, want);
        for (int64_t i = 0; i < n; i++) {
            if (!(fabsf(p[i] - want[i]) <= (float)(s + 1) * 4 * U * 8)) {
                fail_msg("step %d: p[%d] is %.9g, recorded is %.9g", s, (int)i, (double)p[i], (double)want[i]);
            }
        }
        (void)snprintf(name, sizeof name, "m%d", s);
        recorded(name, want);
        for (int64_t i = 0; i < n; i++) {
            if (!(fabsf(m[i] - want[i]) <= (float)(s + 1) * 4 * U * 8)) {
                fail_msg("step %d: m[%d] is %.9g, recorded is %.9g", s, (int)i, (double)m[i], (double)want[i]);
            }
        }
        float kept[2][MAX_N];
        memcpy(kept[0], p, sizeof p);
        memcpy(kept[1], m, sizeof m);
        go = 0; /* nothing is written */
        launch(&update_kernels[1], in, 6, out, 2, &attrs);
        go = 1;
        assert_memory_equal(m, kept[1], sizeof m);
        assert_memory_equal(p, kept[0], (size_t)n * sizeof *p);
    }
    /* Segments that lie outside are told. */
    int64_t wrong[] = {0, n + 1, 0};
    const update_attrs bad = {{3, wrong}, {2, beta1}, {2, beta2}, {2, decay}};
    const ct_tensor in[6] = {vector(p, CT_DTYPE_F32, n), vector(grad, CT_DTYPE_F32, n), vector(m, CT_DTYPE_F32, n),
                             vector(lr, CT_DTYPE_F64, 2), vector(coef, CT_DTYPE_F32, 1), vector(&go, CT_DTYPE_I32, 1)};
    const ct_launch l = {.in = in, .n_in = 6, .out = in, .n_out = 2, .attrs = &bad};
    ct_err err = {0};
    assert_int_equal(update_kernels[0].kernel.run(&l, &err), CT_ERR_RANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(squared_relu_as_recorded), cmocka_unit_test(kernels_agree), cmocka_unit_test(lion_as_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
