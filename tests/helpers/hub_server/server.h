/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of hub_server share. */
#ifndef CT_TESTS_HUB_SERVER_H
#define CT_TESTS_HUB_SERVER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

typedef struct hub_fault {
    char kind[32], rest[900];
} hub_fault;

typedef struct hub_request {
    int fd, which; /* the port's index */
    char method[8], target[8192], raw[8192], path[8192], query[8192]; /* path: raw, decoded */
    char auth[512], cookie[512], range[128], if_range[256];
    hub_fault f;
} hub_request;

extern const char *hub_root;
extern int hub_ports[2];
extern FILE *hub_log;

/* answer.c */
char *hub_slurp(const char *path, size_t *out_size); /* NULL: it cannot be read; caller frees */
char *hub_in_root(const char *fmt, ...) CT_PRINTF(1, 2); /* caller frees */
void hub_find_fault(hub_request *r); /* the first line of ROOT/faults that holds for the path and is not used up */
int hub_is_kind(const hub_request *r, const char *kind);
int hub_send_all(int fd, const void *data, size_t n);
void hub_decode(char *text); /* %XX, in place */
void hub_get_header(const char *head, const char *name, char *to, size_t cap);
int hub_get_query(const hub_request *r, const char *name, char *to, size_t cap);
void hub_answer(hub_request *r, int status, const char *headers, const void *body, size_t size);
void hub_answer_error(hub_request *r, int status, const char *code, const char *text);
void hub_send_file(hub_request *r, const char *data, size_t size);

/* listing.c */
void hub_send_listing(hub_request *r, int is_hf, const char *base);

#endif
