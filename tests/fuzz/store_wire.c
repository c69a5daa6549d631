/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: comm base */
/* Peers that say anything to the store of a run: greetings and requests with bytes changed, in any pieces. The server neither crashes nor stops:
 * after each of them a rank that keeps to the protocol is answered, and what it had stored is there. */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "comm/store.h"
#include "comm/store_wire.h"
#include "fuzz/fuzz.h"

static const char run_id[] = "run";

static void hello(cti_str *out, uint64_t run_hash, int rank, int world_size, int restart)
{
    unsigned char p[CTI_WIRE_HELLO_BYTES] = {0};
    memcpy(p, CTI_WIRE_MAGIC, 8);
    cti_wire_put(p + 8, (uint64_t)rank, 4);
    cti_wire_put(p + 12, (uint64_t)world_size, 4);
    cti_wire_put(p + 16, run_hash, 8);
    cti_wire_put(p + 24, (uint64_t)restart, 4);
    cti_str_add_n(out, p, sizeof p);
}

static void request(cti_str *out, int op, const char *key, const void *rest, size_t rest_size)
{
    unsigned char p[7];
    const size_t n = strlen(key);
    cti_wire_put(p, 3 + n + rest_size, 4);
    p[4] = (unsigned char)op;
    cti_wire_put(p + 5, n, 2);
    cti_str_add_n(out, p, sizeof p);
    cti_str_add_n(out, key, n);
    cti_str_add_n(out, rest, rest_size);
}

/* Sent in one piece or two; then the peer hears what comes for a moment, or goes at once. A reset leaves no port waiting. */
static void say(fuzz_case *c, int port, const cti_str *bytes)
{
    int fd;
    ct_err err = {0};
    const struct linger reset = {.l_onoff = 1};
    assert_int_equal(cti_store_dial("127.0.0.1", port, 60000, &fd, &err), CT_OK);
    const size_t cut = fuzz_below(c, 2) == 0 ? bytes->len : fuzz_below(c, bytes->len + 1);
    (void)!send(fd, bytes->data, cut, MSG_NOSIGNAL);
    (void)!send(fd, bytes->data + cut, bytes->len - cut, MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
    char sink[4096];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (fuzz_below(c, 8) > 0 && poll(&p, 1, 60000) > 0 && recv(fd, sink, sizeof sink, MSG_DONTWAIT) > 0) {
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    (void)close(fd);
}

int main(void)
{
    static const char *const words[] = {CTI_WIRE_MAGIC, "\x01", "\x02", "\x03", "\x04", "\xff\xff\xff\xff", "\x01\x00\x00\x00", "own", "key"};
    const ct_alloc *alloc = ct_alloc_system();
    int listen_fd, port;
    ct_err err = {0};
    cti_store_server *server = NULL;
    cti_store_client *own = NULL;
    assert_int_equal(cti_store_listen("127.0.0.1", 0, &listen_fd, &port, &err), CT_OK);
    assert_int_equal(cti_store_server_start(alloc, listen_fd, 2, run_id, &server, &err), CT_OK);
    const cti_store_hello mine = {.rank = 0, .world_size = 2, .run_id = run_id};
    assert_int_equal(cti_store_client_connect(alloc, "127.0.0.1", port, &mine, 60000, &own, &err), CT_OK);
    assert_int_equal(cti_store_client_set(own, "own", "mine", 4, &err), CT_OK);
    cti_str bytes = {.alloc = alloc}, sample = {.alloc = alloc};
    const uint64_t run_hash = cti_hash64(run_id, strlen(run_id), 0);
    const unsigned char wait[8] = {0}, one[8] = {1};
    for (fuzz_case c = fuzz_begin("store_wire", 2000); fuzz_next(&c);) {
        cti_str_reset(&sample);
        hello(&sample, run_hash, 1, 2, (int)fuzz_below(&c, 3));
        request(&sample, CTI_WIRE_SET, "key", "value", 5);
        request(&sample, CTI_WIRE_GET, "key", wait, 8);
        request(&sample, CTI_WIRE_ADD, "n", one, 8);
        request(&sample, CTI_WIRE_BYE, "x", NULL, 0);
        fuzz_mutate(&c, &bytes, sample.data, sample.len, words, N_OF(words));
        say(&c, port, &bytes);
        void *value = NULL;
        size_t size = 0;
        if (cti_store_client_get(own, "own", 60000, &value, &size, &err) != CT_OK) {
            fail_msg("seed %llu: %s", (unsigned long long)c.seed, err.message);
        }
        ct_alloc_free(alloc, value);
    }
    cti_str_deinit(&bytes);
    cti_str_deinit(&sample);
    cti_store_client_destroy(&own);
    cti_store_server_stop(&server);
    return 0;
}
