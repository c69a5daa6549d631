/* rooms: base */
/* SPDX-License-Identifier: Apache-2.0 */
/* Checked integers, element types, and the 16-bit floats. */
#include "base_test.h"

#include "base/num.h"
#include "ctitan/dtype.h"

static void checked_integers(void **state)
{
    (void)state;
    static const struct {
        int64_t a, b, product, sum;
        bool product_fits, sum_fits;
    } rows[] = {{3, 4, 12, 7, true, true},
                {INT64_MAX, 1, INT64_MAX, 0, true, false},
                {INT64_MIN, -1, 0, 0, false, false},
                {(int64_t)1 << 32, (int64_t)1 << 31, 0, ((int64_t)1 << 32) + ((int64_t)1 << 31), false, true},
                {INT64_MIN, 0, 0, INT64_MIN, true, true}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        int64_t out = -77;
        assert_int_equal(cti_mul_i64(rows[i].a, rows[i].b, &out), rows[i].product_fits);
        assert_int_equal(out, rows[i].product_fits ? rows[i].product : -77);
        out = -77;
        assert_int_equal(cti_add_i64(rows[i].a, rows[i].b, &out), rows[i].sum_fits);
        assert_int_equal(out, rows[i].sum_fits ? rows[i].sum : -77);
    }
    static const struct {
        int64_t dims[4];
        int n;
        int64_t product;
    } products[] = {{{0}, 0, 1},
                    {{5}, 1, 5},
                    {{2, 3, 4, 5}, 4, 120},
                    {{2, -3}, 2, -1},
                    {{(int64_t)1 << 40, (int64_t)1 << 40}, 2, -1},
                    {{(int64_t)1 << 40, (int64_t)1 << 40, 0}, 3, 0},
                    {{0, -1}, 2, -1}};
    for (size_t i = 0; i < N_OF(products); i++) {
        assert_int_equal(cti_dims_product(products[i].dims, products[i].n), products[i].product);
    }
    assert_int_equal(cti_ceil_div(0, 8), 0);
    assert_int_equal(cti_ceil_div(8, 8), 1);
    assert_int_equal(cti_ceil_div(9, 8), 2);
    assert_int_equal(cti_ceil_div(INT64_MAX, 2), INT64_MAX / 2 + 1);
    assert_int_equal(cti_round_up(9, 8), 16);
    assert_int_equal(cti_min_i64(-1, 2), -1);
    assert_int_equal(cti_max_i64(-1, 2), 2);
}

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void bf16_rounds_to_even(void **state)
{
    (void)state;
    static const struct {
        uint32_t from;
        uint16_t to;
    } rows[] = {{0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x3f800000, 0x3f80},
                {0xbf800000, 0xbf80}, {0x3f808000, 0x3f80}, /* tie, even below */
                {0x3f818000, 0x3f82},                       /* tie, even above */
                {0x3f808001, 0x3f81}, {0x3f807fff, 0x3f80}, {0x00008000, 0x0000},
                {0x00008001, 0x0001}, {0x00018000, 0x0002}, {0x7f7fffff, 0x7f80}, /* overflow by rounding */
                {0x7f7f7fff, 0x7f7f}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80},
                {0x7f800001, 0x7fc0}, /* NaN whose payload would be lost stays NaN */
                {0x7fffffff, 0x7fff}, {0xff800001, 0xffc0}, {0xffc12345, 0xffc1}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        assert_int_equal(cti_f32_to_bf16(float_of(rows[i].from)), rows[i].to);
    }
    for (uint32_t h = 0; h < 0x10000; h++) {
        const float f = cti_bf16_to_f32((uint16_t)h);
        assert_int_equal(bits_of(f), h << 16);
        const bool is_nan = (h & 0x7fff) > 0x7f80;
        assert_int_equal(cti_f32_to_bf16(f), is_nan ? h | 0x40 : h);
    }
}

static void f16_round_trips(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const float f = cti_f16_to_f32((uint16_t)h);
        const bool is_nan = (h & 0x7fff) > 0x7c00;
        assert_int_equal(f != f, is_nan);
        assert_int_equal(cti_f32_to_f16(f), is_nan ? h | 0x200 : h);
        if ((h & 0x7c00) != 0x7c00) { /* the definition, without the tricks */
            const int e = (int)(h >> 10 & 31), m = (int)(h & 1023);
            double want = e == 0 ? (double)m : (double)(m + 1024);
            for (int i = e == 0 ? 1 : e; i < 25; i++) {
                want /= 2.0;
            }
            for (int i = 25; i < e; i++) {
                want *= 2.0;
            }
            assert_true((double)f == ((h & 0x8000) != 0 ? -want : want));
        }
    }
}

/* Between neighbouring halves: below, at and above the middle. */
static void f16_rounds_to_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7c00; h++) {
        const double a = (double)cti_f16_to_f32((uint16_t)h);
        const double b = h + 1 == 0x7c00 ? 65536.0 : (double)cti_f16_to_f32((uint16_t)(h + 1));
        const float middle = (float)((a + b) / 2.0); /* exact */
        const uint32_t bits = bits_of(middle);
        assert_int_equal(cti_f32_to_f16(middle), h % 2 == 0 ? h : h + 1);
        assert_int_equal(cti_f32_to_f16(float_of(bits - 1)), h);
        assert_int_equal(cti_f32_to_f16(float_of(bits + 1)), h + 1);
        assert_int_equal(cti_f32_to_f16(-middle), (h % 2 == 0 ? h : h + 1) | 0x8000);
    }
    static const struct {
        float from;
        uint16_t to;
    } rows[] = {{65504.0f, 0x7bff}, {65519.0f, 0x7bff}, {65520.0f, 0x7c00}, {1e30f, 0x7c00},
                {-1e30f, 0xfc00},   {1e-30f, 0x0000},   {-1e-30f, 0x8000},  {1e-45f, 0x0000}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        assert_int_equal(cti_f32_to_f16(rows[i].from), rows[i].to);
    }
    assert_int_equal(cti_f32_to_f16(float_of(0x7f800000)), 0x7c00);
    assert_int_equal(cti_f32_to_f16(float_of(0x7f800001)), 0x7e00);
}

static void dtypes(void **state)
{
    (void)state;
    static const struct {
        ct_dtype dtype;
        const char *name, *torch, *st;
        size_t size;
        int is_float;
        double roundoff;
    } rows[] = {{CT_DTYPE_F32, "f32", "float32", "F32", 4, 1, 0x1p-24},
                {CT_DTYPE_BF16, "bf16", "bfloat16", "BF16", 2, 1, 0x1p-8},
                {CT_DTYPE_F16, "f16", "float16", "F16", 2, 1, 0x1p-11},
                {CT_DTYPE_F64, "f64", "float64", "F64", 8, 1, 0x1p-53},
                {CT_DTYPE_I32, "i32", "int32", "I32", 4, 0, 0.0},
                {CT_DTYPE_I64, "i64", "int64", "I64", 8, 0, 0.0},
                {CT_DTYPE_U8, "u8", "uint8", "U8", 1, 0, 0.0}};
    assert_int_equal(N_OF(rows), CT_DTYPE_COUNT);
    for (size_t i = 0; i < N_OF(rows); i++) {
        assert_string_equal(ct_dtype_name(rows[i].dtype), rows[i].name);
        assert_string_equal(ct_dtype_torch_name(rows[i].dtype), rows[i].torch);
        assert_int_equal(ct_dtype_size_bytes(rows[i].dtype), rows[i].size);
        assert_int_equal(ct_dtype_is_float(rows[i].dtype), rows[i].is_float);
        assert_true(ct_dtype_unit_roundoff(rows[i].dtype) == rows[i].roundoff);
        const char *const names[] = {rows[i].name, rows[i].torch, rows[i].st};
        for (int k = 0; k < 3; k++) {
            ct_dtype got = CT_DTYPE_COUNT;
            assert_int_equal(ct_dtype_parse(names[k], &got), 1);
            assert_int_equal(got, rows[i].dtype);
        }
    }
    static const char *const wrong[] = {"", "float", "F3", "f322", "Float32", "torch.float32"};
    for (size_t i = 0; i < N_OF(wrong); i++) {
        ct_dtype got = CT_DTYPE_I64;
        assert_int_equal(ct_dtype_parse(wrong[i], &got), 0);
        assert_int_equal(got, CT_DTYPE_I64);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checked_integers), cmocka_unit_test(bf16_rounds_to_even),
        cmocka_unit_test(f16_round_trips),  cmocka_unit_test(f16_rounds_to_even),
        cmocka_unit_test(dtypes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
