/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: comm base */
/* A store that says anything to a rank: replies with bytes changed. The rank gets a value, or one error with words, and never waits for more
 * than a server that has gone would send. */
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/store.h"
#include "comm/store_wire.h"
#include "fuzz/fuzz.h"

/* The other side of one connection, in a thread of its own. */
typedef struct answerer {
    int listen_fd;
    const cti_str *bytes;
} answerer;

static void *answer(void *arg)
{
    const answerer *a = arg;
    const struct linger reset = {.l_onoff = 1};
    char sink[4096];
    const int fd = accept(a->listen_fd, NULL, NULL);
    assert_true(fd >= 0);
    (void)!recv(fd, sink, CTI_WIRE_HELLO_BYTES, MSG_WAITALL);
    (void)!send(fd, a->bytes->data, a->bytes->len, MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
    while (recv(fd, sink, sizeof sink, 0) > 0) { /* until the rank has had enough */
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    (void)close(fd);
    return NULL;
}

static void reply(cti_str *out, int code, const void *data, size_t size)
{
    unsigned char head[5];
    cti_wire_put(head, size + 1, 4);
    head[4] = (unsigned char)code;
    cti_str_add_n(out, head, sizeof head);
    cti_str_add_n(out, data, size);
}

static void told(const fuzz_case *c, ct_status st, ct_err *err)
{
    if (st != CT_OK && err->message[0] == '\0') {
        fail_msg("seed %llu: %s without words", (unsigned long long)c->seed, ct_status_name(st));
    }
    *err = (ct_err){0};
}

int main(void)
{
    static const char *const words[] = {"\x01", "\x02", "\x05", "\xff\xff\xff\xff", "\x01\x00\x00\x00", "it belongs to another run\n\x1b[31m"};
    const ct_alloc *alloc = ct_alloc_system();
    const cti_store_hello hello = {.rank = 1, .world_size = 2, .run_id = "run"};
    const unsigned char seven[8] = {7};
    cti_str bytes = {.alloc = alloc}, sample = {.alloc = alloc};
    int listen_fd, port;
    int64_t n_values = 0;
    ct_err err = {0};
    assert_int_equal(cti_store_listen("127.0.0.1", 0, &listen_fd, &port, &err), CT_OK);
    for (fuzz_case c = fuzz_begin("store_replies", 1500); fuzz_next(&c);) {
        cti_str_reset(&sample);
        reply(&sample, fuzz_below(&c, 8) == 0 ? CTI_WIRE_REFUSED : CTI_WIRE_OK, "", 0);
        reply(&sample, CTI_WIRE_OK, NULL, 0);
        reply(&sample, CTI_WIRE_OK, "value", 5);
        reply(&sample, CTI_WIRE_OK, seven, 8);
        fuzz_mutate(&c, &bytes, sample.data, sample.len, words, N_OF(words));
        answerer a = {listen_fd, &bytes};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, answer, &a), 0);
        cti_store_client *client = NULL;
        void *value = NULL;
        size_t size = 0;
        int64_t counter;
        const ct_status st = cti_store_client_connect(alloc, "127.0.0.1", port, &hello, 60000, &client, &err);
        told(&c, st, &err);
        if (st == CT_OK) {
            told(&c, cti_store_client_set(client, "key", "x", 1, &err), &err);
            const ct_status got = cti_store_client_get(client, "key", 60000, &value, &size, &err);
            told(&c, got, &err);
            volatile unsigned char sum = 0;
            for (size_t i = 0; got == CT_OK && i < size; i++) {
                sum = (unsigned char)(sum + ((const unsigned char *)value)[i]);
            }
            n_values += got == CT_OK;
            told(&c, cti_store_client_add(client, "n", 1, &counter, &err), &err);
        }
        ct_alloc_free(alloc, value);
        cti_store_client_destroy(&client);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    printf("%lld values\n", (long long)n_values);
    cti_str_deinit(&bytes);
    cti_str_deinit(&sample);
    return close(listen_fd) != 0;
}
