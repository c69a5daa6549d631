/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: base */
/* The kernels' exponentials, at what the compiler targets without flags, against the C library's in f64: the errors that cpu_simd.h tells. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#pragma GCC diagnostic ignored "-Wpsabi"
#define CTI_CPU_ISA test
#include "backend/cpu/isa/cpu_simd.h"

/* Units in the last place between y and the exact value. */
static double error_of(float y, double exact)
{
    return fabs((double)y - exact) / ldexp(1.0, ilogb(exact) - 23);
}

/* The largest error of a function over some million numbers from `from` to `to`, evenly and, around 0, by powers of two. */
static double worst(bool base_two, double from, double to)
{
    enum { STEPS = 4000000 };
    double most = 0;
    for (int64_t i = 0; i < STEPS; i += CTI_VL) {
        float x[CTI_VL], y[CTI_VL];
        for (int64_t k = 0; k < CTI_VL; k++) {
            const double even = from + (to - from) * (double)(i + k) / STEPS;
            x[k] = (float)(i % 3 == 0 ? ldexp(even, -(int)(i % 30)) : even);
        }
        v_store(y, base_two ? v_exp2_neg(v_load(x)) : v_exp(v_load(x)));
        for (int64_t k = 0; k < CTI_VL; k++) {
            most = fmax(most, error_of(y[k], base_two ? exp2((double)x[k]) : exp((double)x[k])));
        }
    }
    return most;
}

static void errors_are_as_told(void **state)
{
    (void)state;
    const double natural = worst(false, (double)-CTI_EXP_MAX, (double)CTI_EXP_MAX), two = worst(true, -125.9, 0);
    /* Below 1 a unit is 2^-24 of the value and more: the polynomial with rounded coefficients; the last sum's rounding; those of r, of q's last
     * sum and, where they are not fused, of q r, each half a unit of a number below 1/2 */
    const double limit = 9.6e-8 / ldexp(1.0, -24) + 0.5 + 3 * 0.25;
    print_message("exp %.3f, 2^x %.3f units in the last place\n", natural, two);
    assert_true(limit < 3 && natural > 0.5 && natural < limit && two > 0.5 && two < limit);
}

static void ends(void **state)
{
    (void)state;
    const float inf = INFINITY, past = nextafterf(CTI_EXP_MAX, inf);
    assert_true(v_exp(v_set1(0.0f))[0] == 1.0f && v_exp(v_set1(-0.0f))[0] == 1.0f);
    assert_true(v_exp(v_set1(inf))[0] == v_exp(v_set1(CTI_EXP_MAX))[0] && v_exp(v_set1(-inf))[0] == v_exp(v_set1(-CTI_EXP_MAX))[0]);
    assert_true(v_exp_neg(v_set1(-past))[0] == 0.0f && v_exp_neg(v_set1(-inf))[0] == 0.0f && v_exp_neg(v_set1(-CTI_EXP_MAX))[0] > 0.0f);
    assert_true(v_exp2_neg(v_set1(-127.0f))[0] == 0.0f && v_exp2_neg(v_set1(-inf))[0] == 0.0f);
    assert_true(isnan(v_exp(v_set1(NAN))[0]) && isnan(v_exp_neg(v_set1(NAN))[0]) && isnan(v_exp2_neg(v_set1(NAN))[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(errors_are_as_told), cmocka_unit_test(ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
