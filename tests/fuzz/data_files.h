/* SPDX-License-Identifier: Apache-2.0 */
/* For the fuzz tests of data: files that are written often and need not reach a disk. */
#ifndef CT_TESTS_FUZZ_DATA_FILES_H
#define CT_TESTS_FUZZ_DATA_FILES_H

#include <fcntl.h>
#include <unistd.h>

#include "data/data_internal.h"
#include "fuzz/fuzz.h"

static inline void fuzz_put(const char *path, const void *bytes, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    assert_int_equal(ftruncate(fd, (off_t)size), 0); /* a file cut to nothing first is brought to the disk by some systems */
    assert_int_equal(close(fd), 0);
}

/* A failure has a status of those that input may have, and says something. */
static inline void fuzz_check_refusal(const fuzz_case *c, ct_status st, const ct_err *err)
{
    if (st == CT_OK || err->message[0] == '\0' ||
        (st != CT_ERR_FORMAT && st != CT_ERR_DATA && st != CT_ERR_UNSUPPORTED && st != CT_ERR_NOT_FOUND && st != CT_ERR_IO)) {
        fail_msg("case %llu: %s: '%s'", (unsigned long long)c->seed, ct_status_name(st), err->message);
    }
}

/* Reads every document, forwards and then some backwards: each is given or refused in words. Returns how many were given. */
static inline int64_t fuzz_read_all(const fuzz_case *c, const ct_corpus *corpus)
{
    ct_reader *reader = NULL;
    ct_document document;
    int64_t n_good = 0;
    const int64_t n = ct_corpus_n_documents(corpus);
    ct_document_init(&document, ct_alloc_system());
    assert_int_equal(ct_reader_create(ct_alloc_system(), corpus, &reader, NULL), CT_OK);
    for (int64_t i = 0; i < n + 8; i++) {
        ct_err err = {0};
        ct_bad bad = CT_BAD_NONE;
        const int64_t number = i < n ? i : (n - 1) * (n + 7 - i) / 8;
        const ct_status st = ct_reader_read(reader, number, &document, &bad, NULL, &err);
        n_good += st == CT_OK && i < n;
        if (st != CT_OK) {
            fuzz_check_refusal(c, st, &err);
        }
    }
    ct_document_deinit(&document);
    ct_reader_destroy(&reader);
    return n_good;
}

#endif
