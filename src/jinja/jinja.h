/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `jinja`: chat templates, an own evaluator of the part of Jinja that they use.
 *
 *     ct_jinja *t = NULL;
 *     CT_TRY(ct_jinja_compile(alloc, text, size, "chat_template.jinja", &t, err));
 *     cti_str out = {.alloc = alloc};
 *     CT_TRY_GOTO(st, ct_jinja_render(t, variables, NULL, &out, err), done);   // variables: a JSON object
 *     ct_jinja_destroy(&t);
 *
 * The meaning of a template is jinja2's (3.1) in the environment that the transformers library makes for chat
 * templates: trim_blocks, lstrip_blocks, break and continue, `{% generation %}` (rendered as its body), the
 * sandbox that lets no template change a list or a dict, undefined names that print as nothing and fail when
 * looked into, values printed as Python's str() prints them, and tojson as Python's
 * json.dumps(ensure_ascii=False).
 *
 * What is there. Statements: if/elif/else, for (with tuple targets, `if`, `else`), set (also of namespace
 * attributes, tuples and blocks), macro, call, filter, with, print, raw, break, continue, generation.
 * Expressions: literals, lists, tuples, dicts, all operators, chains of comparisons, inline if, slices, calls
 * with keywords, tests, filters. The lists of filters and tests are tables in jinja_filters.c and
 * jinja_tests.c, methods of strings and dicts in jinja_methods.c. Globals: range, namespace, dict,
 * raise_exception, strftime_now.
 *
 * What is not there is refused by name with line and column: when the template is compiled wherever its text
 * shows it (statements, filters, tests, `*args`, recursive loops, formats of strftime), else when it is met
 * (methods of a value whose type is known only then, integers beyond 64 bits, formatting with `%`).
 *
 * Files: jinja_lex (text to tokens), jinja_parse and jinja_expr (tokens to nodes), jinja_eval (statements),
 * jinja_term (expressions), jinja_call (macros, globals), jinja_ops (operators, subscripts), jinja_value
 * (values), jinja_text (values as text), jinja_filters, jinja_sequences, jinja_tests, jinja_methods,
 * jinja_unicode (letters), jinja_time (strftime).
 */
#ifndef CTI_JINJA_JINJA_H
#define CTI_JINJA_JINJA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/json.h"
#include "base/str.h"
#include "ctitan/alloc.h"
#include "ctitan/status.h"

/* A compiled template: constant, any number of threads may render it. */
typedef struct ct_jinja ct_jinja;

/**
 * Compiles a template.
 *
 * text  UTF-8, size bytes; copied
 * name  in messages: a path, or what the template is of; copied
 *
 * Fails, naming line and column (both from 1; columns in characters): CT_ERR_FORMAT where it is not a
 * template, CT_ERR_UNSUPPORTED where it uses what is not there, CT_ERR_RANGE where it is nested too deeply,
 * CT_ERR_MEMORY.
 */
CT_MUST_CHECK ct_status ct_jinja_compile(const ct_alloc *alloc, const char *text, size_t size,
                                         const char *name, ct_jinja **out_template, ct_err *err);
void ct_jinja_destroy(ct_jinja **template);

/* True where the template reads the variable or calls the function of that name somewhere. */
bool ct_jinja_uses(const ct_jinja *template, const char *name);

/* Zero-initialise; 0 is the default. The limits hold for one rendering. */
typedef struct ct_jinja_options {
    const struct tm *now;     /* what strftime_now sees; NULL: the local time */
    int64_t max_output_bytes; /* 64 MiB */
    int64_t max_memory_bytes; /* 256 MiB: all values made on the way */
    int64_t max_steps;        /* 20 million: nodes evaluated, items gone over, and 64 bytes of text each */
} ct_jinja_options;

/**
 * Renders.
 *
 * variables  a JSON object, unchanged; NULL: no variables
 * options    NULL: the defaults
 * out        added to; unchanged where it fails
 *
 * Fails, naming the template, line and column: CT_ERR_DATA where the template calls raise_exception (with its
 * message), where a value is of the wrong type or something undefined is used; CT_ERR_UNSUPPORTED;
 * CT_ERR_RANGE for the limits; CT_ERR_MEMORY.
 */
CT_MUST_CHECK ct_status ct_jinja_render(const ct_jinja *template, const json_t *variables,
                                        const ct_jinja_options *options, cti_str *out, ct_err *err);

#endif
