/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the small commands (generate, data, ops): one table a command, parsed and checked with the field kinds of settings.
 *
 *     #define OPTIONS(X) X(prompt, STR, "", "", "", "", "", 0, NULL, "text to go on from")
 *     CTI_OPTIONS(OPTIONS);      struct options, the table fields[N_FIELDS]
 */
#ifndef CTI_CLI_OPTIONS_H
#define CTI_CLI_OPTIONS_H

#include "ctitan/field.h"

#define CTI_OPTION_ROW(...) CT_FIELD_ROW_IN(options, __VA_ARGS__)
#define CTI_OPTIONS(LIST) \
    typedef struct options { \
        LIST(CT_FIELD_MEMBER) \
    } options; \
    static const ct_field fields[] = {LIST(CTI_OPTION_ROW)}; \
    enum { N_FIELDS = sizeof fields / sizeof fields[0] }

typedef struct cti_command_help {
    const char *usage;   /* "ctitan generate --checkpoint DIR --prompt TEXT [options]" */
    const char *summary;
    /* Where several sub-commands share a table: whose help this is. Options whose help begins with "other: " or "one, other: " are left
     * out, and this beginning is not printed. NULL: all are of one command. */
    const char *sub_command;
} cti_command_help;

/* Sets defaults, then what argv[1..] says ("--a-b V", "--a_b=V", "--flag", "--no-flag"; STR_LISTS and TOKENS
 * take all words up to the next "--", or with CT_SET_REPEATED one, and more where they are given again). *out_done: help was printed on stdout. Wrong
 * options: every one is named on stderr and ERR_USAGE comes back. */
CT_MUST_CHECK ct_status cti_options_parse(int argc, char **argv, const ct_field *fields, size_t n, void *values,
                                          const cti_command_help *help, ct_arena *arena, bool *out_done, ct_err *err);

/* For commands that read their words one by one: the value of "--name value" or "--name=value" at argv[*i], "" where it is missing, and *i
 * on its last word; NULL where argv[*i] is another word. */
const char *cti_option_value(const char *name, int argc, char **argv, int *i);

#endif
