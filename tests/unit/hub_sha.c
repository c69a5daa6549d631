/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: hub base */
/* labels: fast */
/* SHA-1 and SHA-256 against the examples of FIPS 180 (NIST's "Secure Hash Standard" example files and CAVP's long ones), and fed in pieces. */
#include "unit/base_test.h"

#include "hub/sha.h"

static void sum(bool is_256, const void *data, size_t size, size_t piece, char hex[65])
{
    cti_sha sha;
    if (is_256) {
        cti_sha256_init(&sha);
    } else {
        cti_sha1_init(&sha);
    }
    for (size_t at = 0; at < size; at += piece) {
        cti_sha_update(&sha, (const char *)data + at, piece < size - at ? piece : size - at);
    }
    cti_sha_hex(&sha, hex);
}

static void test_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sha1, *sha256;
    } cases[] = {
        {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "a49b2446a02c645bf419f995b67091253a04a259", "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char hex[65];
    for (size_t i = 0; i < N_OF(cases); i++) {
        for (size_t piece = 1; piece < 70; piece += 9) {
            sum(false, cases[i].text, strlen(cases[i].text), piece, hex);
            assert_string_equal(hex, cases[i].sha1);
            sum(true, cases[i].text, strlen(cases[i].text), piece, hex);
            assert_string_equal(hex, cases[i].sha256);
        }
    }
    /* what `git hash-object` says of a file that holds "hello\n" */
    sum(false, "blob 6\0hello\n", 13, 13, hex);
    assert_string_equal(hex, "ce013625030ba8dba906f756967f9e9ca394464a");
}

static void test_million(void **state)
{
    (void)state;
    char *a = malloc(1000000), hex[65];
    assert_non_null(a);
    memset(a, 'a', 1000000);
    sum(false, a, 1000000, 1000000, hex);
    assert_string_equal(hex, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    sum(true, a, 1000000, 997, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(a);
}

/* Every length around the block and its padding: pieces and the whole agree. */
static void test_lengths(void **state)
{
    (void)state;
    unsigned char data[200];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (unsigned char)(i * 37 + 11);
    }
    for (size_t n = 0; n <= sizeof data; n++) {
        char whole[65], pieces[65];
        for (int is_256 = 0; is_256 < 2; is_256++) {
            sum(is_256 != 0, data, n, sizeof data, whole);
            sum(is_256 != 0, data, n, 7, pieces);
            assert_string_equal(whole, pieces);
            assert_int_equal(strlen(whole), is_256 ? 64 : 40);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors), cmocka_unit_test(test_million), cmocka_unit_test(test_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
