/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: comm base */
/* Launchers and strangers that say anything to the meeting of nodes, and a meeting that says anything to a launcher: nothing crashes, nothing
 * hangs, the node that serves hears only what can be read. */
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/meet.h"
#include "comm/store.h"
#include "fuzz/fuzz.h"

#define JOINED(rank, host) "JOIN\t2\tv\trun\t2\t" rank "\t1\t1\t" host "\n"

static const char *const words[] = {"JOIN", "READY\t0\t0\n", "READY\t1\t0\n", "DONE\t0\t0\n", "DONE\t0\t75\n", "FAILED\t0\t9\twhy\n",
                                    "FAILED\t0\t75\twhy\n", "STOP\n", "HALT\n", "\n", "\t", "-1", "4096", JOINED("0", "x"), "2147483648", "ROW\t{}\t\n"};
static const char *const samples[] = {JOINED("1", "b") "READY\t0\t0\nDONE\t0\t0\n", JOINED("-1", "b") "READY\t0\t0\nFAILED\t0\t9\trank 1\n",
                                      JOINED("1", "b") "READY\t0\t0\nFAILED\t0\t9\trank 1\nREADY\t1\t0\nSTOP\nDONE\t1\t75\n",
                                      JOINED("1", "b") "READY\t0\t0\nFAILED\t0\t9\trank 1\nROW\t{\"rank\": 1}\t\nROW\t{}\t{}\n"};

/* Takes what is there, for time_ms at most, up to a message of that kind. */
static bool heard(cti_meet_client *client, cti_meet_kind kind, int time_ms)
{
    for (;;) {
        cti_meet_message m;
        const int rc = cti_meet_take(client, &m);
        assert_int_not_equal(rc, -1);
        if (rc > 0 && m.kind == kind) {
            return true;
        }
        struct pollfd p = {.fd = client->fd, .events = POLLIN};
        if (rc == 0 && poll(&p, 1, time_ms) <= 0) {
            return false;
        }
    }
}

static void test_server(void **state)
{
    (void)state;
    const ct_alloc *alloc = ct_alloc_system();
    for (fuzz_case c = fuzz_begin("launcher_meeting", 300); fuzz_next(&c);) {
        const cti_meet_rules rules = {.version = "v", .run_id = "run", .n_nodes = 2, .max_restarts = 1, .join_timeout_ms = 600000, .note = ""};
        cti_meet_server *server = NULL;
        int listen_fd, port, own_fd, fd;
        ct_err err = {0};
        assert_int_equal(cti_store_listen("127.0.0.1", 0, &listen_fd, &port, &err), CT_OK);
        assert_int_equal(cti_meet_server_start(alloc, listen_fd, &rules, &server, &own_fd, &err), CT_OK);
        cti_meet_client own;
        cti_meet_client_init(&own, alloc, own_fd);
        assert_true(cti_meet_send_line(alloc, own_fd, "JOIN\t2\tv\trun\t2\t0\t1\t1\ta"));
        assert_true(heard(&own, CTI_MEET_WELCOME, 60000));
        assert_true(cti_meet_send_line(alloc, own_fd, "READY\t0\t29400"));

        cti_str bytes = {.alloc = alloc};
        const char *sample = samples[fuzz_below(&c, sizeof samples / sizeof samples[0])];
        fuzz_mutate(&c, &bytes, sample, strlen(sample), words, sizeof words / sizeof words[0]);
        assert_int_equal(cti_store_dial("127.0.0.1", port, 60000, &fd, &err), CT_OK);
        (void)!send(fd, cti_str_text(&bytes), bytes.len, MSG_NOSIGNAL);
        (void)shutdown(fd, SHUT_WR);
        char sink[4096];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        while (poll(&p, 1, 60000) > 0 && recv(fd, sink, sizeof sink, MSG_DONTWAIT) > 0) { /* until the server lets go */
        }
        (void)close(fd);
        cti_str_deinit(&bytes);

        /* The one that serves is still served. */
        assert_true(cti_meet_send_line(alloc, own_fd, "STOP"));
        assert_true(cti_meet_send_line(alloc, own_fd, "FAILED\t0\t3\tmine"));
        (void)heard(&own, CTI_MEET_END, 0);
        cti_meet_client_deinit(&own);
        cti_meet_server_stop(&server);
        assert_null(server);
    }
}

static void test_client(void **state)
{
    (void)state;
    static const char text[] = "WELCOME\nSTART\t0\t1\t4\t8\t10.0.0.1\t29400\nSTOP\nEND\t0\t137\t1\t0\trank 3 on b\nROW\t{\"rank\": 1}\t{}\nREFUSED\tno\n";
    const ct_alloc *alloc = ct_alloc_system();
    for (fuzz_case c = fuzz_begin("launcher_messages", 20000); fuzz_next(&c);) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        cti_str bytes = {.alloc = alloc};
        fuzz_mutate(&c, &bytes, text, sizeof text - 1, words, sizeof words / sizeof words[0]);
        (void)!send(pair[1], cti_str_text(&bytes), bytes.len, MSG_NOSIGNAL);
        (void)close(pair[1]);
        cti_meet_client client;
        cti_meet_client_init(&client, alloc, pair[0]);
        cti_meet_message m;
        int rc;
        while ((rc = cti_meet_take(&client, &m)) > 0) {
            assert_non_null(m.text);
            assert_true(strlen(m.address) < 64 && m.exit_code >= 0 && m.exit_code <= 255 && m.node_rank >= 0);
        }
        assert_int_equal(rc, -1);
        cti_meet_client_deinit(&client);
        cti_str_deinit(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_server), cmocka_unit_test(test_client)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
