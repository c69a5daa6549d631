/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: hub tokenizer base */
/* labels: fast */
/* Headers and refusals of a server: what they say; and mutated, what is kept stays fit to be shown and never holds the token. */
#include "fuzz/fuzz.h"

#include "hub/hub_internal.h"

/* Each line is one header, as libcurl hands them over. */
static void read_all(cti_http_answer *a, const char *text, size_t size)
{
    *a = (cti_http_answer){.content_bytes = -1, .range_from = -1, .range_total = -1};
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t n = end != NULL ? (size_t)(end - (text + at)) + 1 : size - at;
        char *line = malloc(n); /* its own block: a byte beyond it is found */
        assert_non_null(line);
        memcpy(line, text + at, n);
        cti_http_read_header(a, line, n, "hf_token");
        free(line);
        at += n;
    }
}

static const char sample[] = "HTTP/1.1 100 Continue\r\nX-Error-Code: Old\r\n\r\nHTTP/2 429 \r\nETag: \"abc\"\r\ncontent-range:  bytes 100-199/5000000000\r\n"
                             "Link: <https://a/p?cursor=1>; rel=\"prev\", <https://a/p?cursor=3>; rel=\"next\"\r\nRateLimit: \"api\";r=0;t=55\r\n"
                             "X-Error-Code: GatedRepo\r\nX-Error-Message: closed \x1b[2J\r\n";

static void test_sample(void **state)
{
    (void)state;
    cti_http_answer a;
    read_all(&a, sample, sizeof sample - 1);
    assert_int_equal(a.status, 429);
    assert_string_equal(a.etag, "\"abc\"");
    assert_int_equal(a.range_from, 100);
    assert_true(a.range_total == 5000000000);
    assert_string_equal(a.next_url, "https://a/p?cursor=3");
    assert_true(a.retry_after_s == 55.0);
    assert_string_equal(a.error_code, "GatedRepo");
    assert_string_equal(a.error_text, "closed \\x1b[2J");
    static const char weak[] = "HTTP/1.1 206 X\r\nEtag: W/\"abc\"\r\nContent-Range: bytes */100\r\nLink: <x\r\nX-Error-Message: bad hf_token here\r\n";
    read_all(&a, weak, sizeof weak - 1);
    assert_string_equal(a.etag, ""); /* a weak one says nothing of bytes */
    assert_int_equal(a.range_from, -1);
    assert_string_equal(a.next_url, "");
    assert_null(strstr(a.error_text, "hf_token"));
    a = (cti_http_answer){0};
    static const char refusal[] = "{\"error\":\"no\\nline\"}";
    cti_http_read_refusal(&a, refusal, sizeof refusal - 1, NULL);
    assert_string_equal(a.error_text, "no\\x0aline");
}

static const char *const words[] = {"\r\n", "HTTP/1.1 200\r\n", "hf_token", "<", ">", "rel=\"next\"", ";t=", "bytes ", "\"", ":", "-", "/", "99999999999999999999",
                                    "Link: <a>; rel=next\r\n", "X-Error-Message: ", "{\"error\":\"", "\"}", "\\u0000", "{\"Message\":"};

static void test_mutated(void **state)
{
    (void)state;
    static const char body[] = "{\"Code\":1,\"Message\":\"no such model\",\"error\":\"x\"}";
    cti_str bytes = {.alloc = ct_alloc_system()};
    for (fuzz_case c = fuzz_begin("hub_headers", 3000); fuzz_next(&c);) {
        cti_http_answer a = {0};
        if (fuzz_below(&c, 4) == 0) {
            fuzz_mutate(&c, &bytes, body, sizeof body - 1, words, N_OF(words));
            cti_http_read_refusal(&a, cti_str_text(&bytes), bytes.len, "hf_token");
        } else {
            fuzz_mutate(&c, &bytes, sample, sizeof sample - 1, words, N_OF(words));
            read_all(&a, cti_str_text(&bytes), bytes.len);
        }
        assert_true(strlen(a.etag) < sizeof a.etag && strlen(a.next_url) < sizeof a.next_url && strlen(a.error_code) < sizeof a.error_code);
        assert_true(a.status >= -99 && a.status <= 999 && a.retry_after_s >= 0.0);
        assert_null(strstr(a.error_text, "hf_token"));
        for (const char *p = a.error_text; *p != '\0'; p++) {
            assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
        }
    }
    cti_str_deinit(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sample), cmocka_unit_test(test_mutated)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
