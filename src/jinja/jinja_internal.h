/* SPDX-License-Identifier: Apache-2.0 */
/* Shared inside the room: values, nodes, the state of a rendering. */
#ifndef CTI_JINJA_INTERNAL_H
#define CTI_JINJA_INTERNAL_H

#include "jinja/jinja.h"

#include <string.h>

/* --- values
 * ------------------------------------------------------------------------------------------------------ */

/* UTF-8 that lives in an arena or in the template. Constant once made. */
typedef struct cti_jn_str {
    const char *p; /* not NUL-terminated */
    size_t n;      /* bytes */
    int64_t chars; /* code points */
    bool is_safe;  /* came out of the filter `safe` */
} cti_jn_str;

typedef enum cti_jn_kind {
    JN_ABSENT, /* an argument that was not given */
    JN_UNDEFINED,
    JN_NONE,
    JN_BOOL,
    JN_INT,
    JN_FLOAT,
    JN_STR,
    JN_LIST,
    JN_TUPLE,
    JN_RANGE,     /* a list of ints to us */
    JN_VIEW,      /* of a dict: keys(), values(), items() */
    JN_GENERATOR, /* what map, select and their kin give: gone over once */
    JN_DICT,
    JN_NAMESPACE,
    JN_MACRO,
    JN_FUNCTION, /* a global function */
    JN_METHOD,
    JN_LOOP
} cti_jn_kind;

typedef struct cti_jn_seq cti_jn_seq;
typedef struct cti_jn_dict cti_jn_dict;
typedef struct cti_jn_macro cti_jn_macro;
typedef struct cti_jn_method cti_jn_method;
typedef struct cti_jn_loop cti_jn_loop;
typedef struct cti_jn_node cti_jn_node;
typedef struct cti_jn_scope cti_jn_scope;

typedef struct cti_jn_val {
    cti_jn_kind kind;
    union {
        bool b;
        int64_t i; /* JN_INT; JN_FUNCTION: cti_jn_function */
        double f;
        const cti_jn_str *s; /* JN_STR; JN_UNDEFINED: why, in words */
        cti_jn_seq *seq;     /* list, tuple, range, view, generator */
        cti_jn_dict *dict;   /* dict, namespace */
        cti_jn_macro *macro;
        cti_jn_method *method;
        cti_jn_loop *loop;
    } as;
} cti_jn_val;

struct cti_jn_seq {
    cti_jn_val *v;
    size_t n;
    bool is_spent;                  /* a generator that has been gone over */
    const struct cti_jn_lazy *lazy; /* a generator not yet begun */
    const char *view_name;          /* JN_VIEW: "dict_keys" */
};

typedef struct cti_jn_pair {
    cti_jn_val key, value;
} cti_jn_pair;

struct cti_jn_dict {
    cti_jn_pair *pairs; /* in the order they came */
    size_t n, cap;
    uint32_t *table; /* open addressing, index + 1; NULL while it is small */
    size_t table_size;
};

struct cti_jn_macro {
    const cti_jn_node *node;
    cti_jn_scope *scope; /* where it was defined */
};

struct cti_jn_method {
    cti_jn_val self;
    const struct cti_jn_method_row *row;
};

struct cti_jn_loop {
    cti_jn_seq *seq;
    size_t at;               /* items of seq taken */
    const cti_jn_node *node; /* the for statement */
    cti_jn_scope *outer;     /* where its filter is evaluated */
    cti_jn_val current, before, after;
    bool has_after, is_sized;
    int64_t index0, length, depth0;
};

#define JN_VALUE(KIND, member, x) ((cti_jn_val){.kind = (KIND), .as = {.member = (x)}})
static inline cti_jn_val cti_jn_none(void)
{
    return (cti_jn_val){.kind = JN_NONE};
}
static inline cti_jn_val cti_jn_bool(bool b)
{
    return JN_VALUE(JN_BOOL, b, b);
}
static inline cti_jn_val cti_jn_int(int64_t i)
{
    return JN_VALUE(JN_INT, i, i);
}
static inline cti_jn_val cti_jn_float(double f)
{
    return JN_VALUE(JN_FLOAT, f, f);
}
static inline cti_jn_val cti_jn_text(const cti_jn_str *s)
{
    return JN_VALUE(JN_STR, s, s);
}

/* --- nodes
 * ------------------------------------------------------------------------------------------------------- */

typedef enum cti_jn_node_kind {
    /* expressions */
    JN_N_CONST,
    JN_N_NAME,
    JN_N_LIST,
    JN_N_TUPLE,
    JN_N_DICT,  /* items: key, value, key, value … */
    JN_N_ATTR,  /* a.s */
    JN_N_ITEM,  /* a[b] */
    JN_N_SLICE, /* a[b:c:d], each of b, c, d may be NULL */
    JN_N_CALL,  /* a(items, keys=) */
    JN_N_FILTER,
    JN_N_TEST,
    JN_N_NOT,
    JN_N_NEG,
    JN_N_POS,
    JN_N_AND,
    JN_N_OR,
    JN_N_BINARY,  /* a op b */
    JN_N_COMPARE, /* a, then ops[i] items[i] */
    JN_N_CONCAT,
    JN_N_COND,       /* a if b else c */
    JN_N_BLOCK_TEXT, /* the text that a filtered block has made */
    JN_N_NS_TARGET,  /* s.attr, as a target of set */
    /* statements */
    JN_N_BODY,
    JN_N_DATA,
    JN_N_OUTPUT,
    JN_N_IF,           /* items: test, body, test, body …; a: else */
    JN_N_FOR,          /* a target, b iterable, c filter, items[0] body, items[1] else */
    JN_N_SET,          /* a target, b value */
    JN_N_SET_BLOCK,    /* a target, b filters or NULL, c body */
    JN_N_MACRO,        /* s name, keys parameters, items defaults (the last ones), a body */
    JN_N_CALL_BLOCK,   /* a call, b an anonymous macro */
    JN_N_FILTER_BLOCK, /* a filters, b body */
    JN_N_WITH,         /* items: target, value …; a body */
    JN_N_SCOPE,        /* a body */
    JN_N_BREAK,
    JN_N_CONTINUE
} cti_jn_node_kind;

typedef enum cti_jn_op {
    JN_ADD,
    JN_SUB,
    JN_MUL,
    JN_DIV,
    JN_FLOORDIV,
    JN_MOD,
    JN_POW,
    JN_EQ,
    JN_NE,
    JN_LT,
    JN_LE,
    JN_GT,
    JN_GE,
    JN_IN,
    JN_NOT_IN
} cti_jn_op;

enum { JN_USES_CALLER = 1, JN_USES_KWARGS = 2, JN_USES_VARARGS = 4 };

struct cti_jn_node {
    cti_jn_node_kind kind;
    cti_jn_op op;
    int32_t line, col;
    int32_t depth; /* of the tree below, bounded when compiled */
    uint32_t uses; /* macros: JN_USES_… */
    const cti_jn_node *a, *b, *c, *d;
    const cti_jn_node **items;
    const cti_jn_op *ops;
    const cti_jn_str **keys; /* names of keyword arguments or parameters, interned */
    const cti_jn_node **key_values;
    int32_t n_items, n_keys;
    const cti_jn_str *s;
    const void *row; /* of the filter or test table */
    cti_jn_val v;
};

struct ct_jinja {
    const ct_alloc *alloc;
    ct_arena *arena;
    const char *name;
    const cti_jn_node *root;
    const cti_jn_str **names; /* interned */
    size_t n_names, cap_names;
    bool *is_read; /* one a name */
};

/* --- a rendering
 * ------------------------------------------------------------------------------------------------- */

typedef struct cti_jn_var {
    const cti_jn_str *name;
    cti_jn_val value;
} cti_jn_var;

struct cti_jn_scope {
    cti_jn_scope *parent;
    cti_jn_var *vars;
    size_t n, cap;
};

typedef struct cti_jn_ctx {
    const ct_jinja *template;
    const json_t *variables;
    ct_arena *arena;
    ct_err *err;
    cti_str out;
    cti_jn_scope *globals; /* the variables that were read, as values */
    cti_jn_scope *scope;
    struct tm now;
    bool has_now;
    int64_t memory, max_memory, steps, max_steps;
    size_t max_output;
    int32_t depth;
    bool is_placed;        /* the error names its place */
    cti_jn_val block_text; /* of the innermost filtered block */
} cti_jn_ctx;

enum { JN_MAX_NODE_DEPTH = 200, JN_MAX_DEPTH = 2000, JN_MAX_VALUE_DEPTH = 200 };

typedef struct cti_jn_args {
    const cti_jn_val *v;
    size_t n;
    const cti_jn_str *const *keys;
    const cti_jn_val *key_values;
    size_t n_keys;
} cti_jn_args;

#define JN_FAIL(x, status, ...) CT_FAIL((x)->err, (status), __VA_ARGS__)
/* A precision and a pointer for "%.*s", cut to what a message should hold. */
#define JN_P(str) (int)((str)->n > 200 ? 200 : (str)->n), (str)->p

/* jinja_value.c */
const char *cti_jn_type_name(cti_jn_val v); /* as Python names it */
CT_MUST_CHECK ct_status cti_jn_step(cti_jn_ctx *x, int64_t n);
void *cti_jn_alloc(cti_jn_ctx *x, size_t count, size_t size_bytes); /* NULL: err is set */
CT_MUST_CHECK ct_status cti_jn_str_new(cti_jn_ctx *x, const char *p, size_t n, cti_jn_val *out); /* copies */
CT_MUST_CHECK ct_status cti_jn_str_borrow(cti_jn_ctx *x, const char *p, size_t n,
                                          cti_jn_val *out); /* does not */
CT_MUST_CHECK ct_status cti_jn_str_of(cti_jn_ctx *x, cti_str *text,
                                      cti_jn_val *out); /* copies and deinits text */
CT_MUST_CHECK ct_status cti_jn_undefined(cti_jn_ctx *x, cti_jn_val *out, const char *fmt, ...)
    CT_PRINTF(3, 4);
CT_MUST_CHECK ct_status cti_jn_seq_new(cti_jn_ctx *x, cti_jn_kind kind, size_t n,
                                       cti_jn_val *out); /* n values, absent ones */
CT_MUST_CHECK ct_status cti_jn_dict_new(cti_jn_ctx *x, cti_jn_kind kind, size_t cap, cti_jn_val *out);
CT_MUST_CHECK ct_status cti_jn_dict_put(cti_jn_ctx *x, cti_jn_dict *d, cti_jn_val key, cti_jn_val value);
/* *out NULL where it is not there. Fails where key cannot be one. */
CT_MUST_CHECK ct_status cti_jn_dict_find(cti_jn_ctx *x, const cti_jn_dict *d, cti_jn_val key,
                                         cti_jn_pair **out);
cti_jn_pair *cti_jn_dict_find_text(const cti_jn_dict *d, const char *p, size_t n);
bool cti_jn_is_hashable(cti_jn_val v, int depth);
CT_MUST_CHECK ct_status cti_jn_from_json(cti_jn_ctx *x, const json_t *json, int depth, cti_jn_val *out);
CT_MUST_CHECK ct_status cti_jn_truth(cti_jn_ctx *x, cti_jn_val v, bool *out);
/* The items of anything that Python would go over: an array that must not be changed. */
CT_MUST_CHECK ct_status cti_jn_iterate(cti_jn_ctx *x, cti_jn_val v, cti_jn_seq **out);
CT_MUST_CHECK ct_status cti_jn_equal(cti_jn_ctx *x, cti_jn_val a, cti_jn_val b, int depth, bool *out);
CT_MUST_CHECK ct_status cti_jn_compare(cti_jn_ctx *x, cti_jn_op op, cti_jn_val a, cti_jn_val b, int depth,
                                       bool *out); /* < <= > >= */
CT_MUST_CHECK ct_status cti_jn_less(cti_jn_ctx *x, cti_jn_val a, cti_jn_val b, bool *out);
bool cti_jn_is_number(cti_jn_val v); /* bool, int, float */
double cti_jn_as_double(cti_jn_val v);
static inline bool cti_jn_is_text(cti_jn_val v, const char *text)
{
    return v.kind == JN_STR && v.as.s->n == strlen(text) && memcmp(v.as.s->p, text, v.as.s->n) == 0;
}

/* jinja_text.c */
CT_MUST_CHECK ct_status cti_jn_add_str(cti_jn_ctx *x, cti_str *out, cti_jn_val v); /* Python's str() */
CT_MUST_CHECK ct_status cti_jn_add_repr(cti_jn_ctx *x, cti_str *out, cti_jn_val v,
                                        int depth);                                  /* and repr() */
CT_MUST_CHECK ct_status cti_jn_to_str(cti_jn_ctx *x, cti_jn_val v, cti_jn_val *out); /* str(), as a value */
CT_MUST_CHECK ct_status cti_jn_to_json(cti_jn_ctx *x, cti_jn_val v, const cti_jn_args *args, cti_jn_val *out);
CT_MUST_CHECK ct_status cti_jn_check_text(cti_jn_ctx *x,
                                          const cti_str *text); /* memory and limits of a text being made */

/* jinja_ops.c */
CT_MUST_CHECK ct_status cti_jn_binary(cti_jn_ctx *x, cti_jn_op op, cti_jn_val a, cti_jn_val b,
                                      cti_jn_val *out);
CT_MUST_CHECK ct_status cti_jn_unary(cti_jn_ctx *x, bool negative, cti_jn_val a, cti_jn_val *out);
CT_MUST_CHECK ct_status cti_jn_contains(cti_jn_ctx *x, cti_jn_val item, cti_jn_val container, bool *out);
CT_MUST_CHECK ct_status cti_jn_attr(cti_jn_ctx *x, cti_jn_val v, const cti_jn_str *name, cti_jn_val *out);
CT_MUST_CHECK ct_status cti_jn_item(cti_jn_ctx *x, cti_jn_val v, cti_jn_val key, cti_jn_val *out);
/* parts: start, stop, step; JN_NONE where left out. */
CT_MUST_CHECK ct_status cti_jn_slice(cti_jn_ctx *x, cti_jn_val v, const cti_jn_val parts[3], cti_jn_val *out);
CT_MUST_CHECK ct_status cti_jn_loop_attr(cti_jn_ctx *x, cti_jn_loop *loop, const cti_jn_str *name,
                                         cti_jn_val *out, bool *out_found);

/* jinja_eval.c, jinja_term.c, jinja_call.c */
CT_MUST_CHECK ct_status cti_jn_exec(cti_jn_ctx *x, const cti_jn_node *n, int *out_flow);
CT_MUST_CHECK ct_status cti_jn_eval(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out);
CT_MUST_CHECK ct_status cti_jn_enter(cti_jn_ctx *x,
                                     const cti_jn_node *n); /* one level deeper; x->depth-- leaves */
ct_status cti_jn_place(cti_jn_ctx *x, const cti_jn_node *n,
                       ct_status st); /* names the place of a failure, once */
CT_MUST_CHECK ct_status cti_jn_scope_push(cti_jn_ctx *x, cti_jn_scope *parent);
CT_MUST_CHECK ct_status cti_jn_scope_set(cti_jn_ctx *x, cti_jn_scope *scope, const cti_jn_str *name,
                                         cti_jn_val value);
CT_MUST_CHECK ct_status cti_jn_lookup(cti_jn_ctx *x, const cti_jn_str *name, cti_jn_val *out);
CT_MUST_CHECK ct_status cti_jn_assign(cti_jn_ctx *x, const cti_jn_node *target, cti_jn_val value);
CT_MUST_CHECK ct_status cti_jn_capture(cti_jn_ctx *x, const cti_jn_node *body, int *out_flow,
                                       cti_jn_val *out);
CT_MUST_CHECK ct_status cti_jn_call(cti_jn_ctx *x, cti_jn_val callee, const cti_jn_args *args,
                                    cti_jn_val *out);
CT_MUST_CHECK ct_status cti_jn_loop_next(cti_jn_ctx *x, cti_jn_loop *loop, bool *out_has);
CT_MUST_CHECK ct_status cti_jn_loop_peek(cti_jn_ctx *x, cti_jn_loop *loop);
CT_MUST_CHECK ct_status cti_jn_loop_length(cti_jn_ctx *x, cti_jn_loop *loop, int64_t *out);
bool cti_jn_function_find(const cti_jn_str *name, cti_jn_val *out); /* a global function */

/* Lays arguments out by name: names "a b c", the first n_required of which must be there; slots are JN_ABSENT
 * where not given. */
CT_MUST_CHECK ct_status cti_jn_bind(cti_jn_ctx *x, const char *what, const cti_jn_args *args,
                                    const char *names, size_t n_required, cti_jn_val *slots);
CT_MUST_CHECK ct_status cti_jn_want_int(cti_jn_ctx *x, const char *what, cti_jn_val v, int64_t *out);
CT_MUST_CHECK ct_status cti_jn_want_str(cti_jn_ctx *x, const char *what, cti_jn_val v,
                                        const cti_jn_str **out);

/* jinja_filters.c, jinja_sequences.c, jinja_tests.c, jinja_methods.c, jinja_str.c, jinja_str_parts.c */
typedef ct_status (*cti_jn_filter_fn)(cti_jn_ctx *x, cti_jn_val v, const cti_jn_args *args, cti_jn_val *out);
typedef struct cti_jn_filter_row {
    const char *name;
    cti_jn_filter_fn fn; /* NULL: known to jinja2, not here */
} cti_jn_filter_row;
typedef ct_status (*cti_jn_test_fn)(cti_jn_ctx *x, cti_jn_val v, cti_jn_val arg, bool *out);
/* A filter that jinja2 carries out only when its result is gone over. */
typedef struct cti_jn_lazy {
    cti_jn_filter_fn fn;
    cti_jn_val v;
    cti_jn_args args;
} cti_jn_lazy;
typedef struct cti_jn_test_row {
    const char *name;
    int n_args;
    cti_jn_test_fn fn;
} cti_jn_test_row;
typedef ct_status (*cti_jn_method_fn)(cti_jn_ctx *x, cti_jn_val self, const cti_jn_args *args,
                                      cti_jn_val *out);
typedef struct cti_jn_method_row {
    const char *name;
    cti_jn_method_fn fn; /* NULL: Python has it, we do not */
} cti_jn_method_row;
const cti_jn_filter_row *cti_jn_filter_find(const char *p, size_t n);
const cti_jn_test_row *cti_jn_test_find(const char *p, size_t n);
const cti_jn_method_row *cti_jn_method_find(cti_jn_val self,
                                            const cti_jn_str *name); /* NULL: Python has none either */
CT_MUST_CHECK ct_status cti_jn_test_run(cti_jn_ctx *x, const cti_jn_test_row *row, cti_jn_val v,
                                        const cti_jn_args *args, bool *out);
#define JN_FILTER(name) \
    CT_MUST_CHECK ct_status name(cti_jn_ctx *x, cti_jn_val v, const cti_jn_args *args, cti_jn_val *out)
JN_FILTER(cti_jn_filter_map);
JN_FILTER(cti_jn_filter_select);
JN_FILTER(cti_jn_filter_reject);
JN_FILTER(cti_jn_filter_selectattr);
JN_FILTER(cti_jn_filter_rejectattr);
JN_FILTER(cti_jn_filter_first);
JN_FILTER(cti_jn_filter_last);
JN_FILTER(cti_jn_filter_join);
JN_FILTER(cti_jn_filter_list);
JN_FILTER(cti_jn_filter_items);
JN_FILTER(cti_jn_filter_dictsort);
JN_FILTER(cti_jn_filter_sort);
JN_FILTER(cti_jn_filter_unique);
JN_FILTER(cti_jn_filter_reverse);
JN_FILTER(cti_jn_filter_sum);
JN_FILTER(cti_jn_filter_min);
JN_FILTER(cti_jn_filter_max);
JN_FILTER(cti_jn_filter_length);

/* jinja_unicode.c */
bool cti_jn_is_space(uint32_t cp);
bool cti_jn_is_printable(uint32_t cp);
typedef enum cti_jn_case { JN_LOWER, JN_UPPER, JN_TITLE } cti_jn_case;
/* Adds the text in that case as Python's lower(), upper() and title() do; JN_TITLE of a single letter is its
 * title case. */
void cti_jn_add_cased(cti_str *out, const char *p, size_t n, cti_jn_case c);
void cti_jn_add_titled(cti_str *out, const char *p, size_t n);      /* str.title() */
void cti_jn_add_capitalized(cti_str *out, const char *p, size_t n); /* str.capitalize() */
bool cti_jn_is_letter(uint32_t cp);
bool cti_jn_is_digit(uint32_t cp);
bool cti_jn_is_numeric(uint32_t cp);
bool cti_jn_is_cased_all(const char *p, size_t n, cti_jn_case c); /* islower(), isupper() */
/* The bytes of the blanks at the front or the back. */
size_t cti_jn_blank_front(const char *p, size_t n);
size_t cti_jn_blank_back(const char *p, size_t n);
size_t cti_jn_char_offset(const cti_jn_str *s,
                          int64_t index); /* bytes before the index-th character, 0 <= index <= chars */
int64_t cti_jn_count_chars(const char *p, size_t n);

/* jinja_time.c: false, and the offending directive, where the format asks for what is not there. */
bool cti_jn_time_check(const char *p, size_t n, const char **out_bad);
void cti_jn_time_format(cti_str *out, const char *p, size_t n, const struct tm *now);

/* jinja_lex.c */
typedef enum cti_jn_token_kind {
    JN_T_DATA,
    JN_T_VAR_BEGIN,
    JN_T_VAR_END,
    JN_T_BLOCK_BEGIN,
    JN_T_BLOCK_END,
    JN_T_NAME,
    JN_T_STRING,
    JN_T_INT,
    JN_T_FLOAT,
    JN_T_OP,
    JN_T_END
} cti_jn_token_kind;
typedef struct cti_jn_token {
    cti_jn_token_kind kind;
    int32_t line, col;
    const char *p; /* the text: data, the name, the decoded string, the operator */
    size_t n;
    int64_t i;
    double f;
} cti_jn_token;

typedef struct cti_jn_compiler {
    ct_jinja *template;
    ct_err *err;
    const char *src;
    size_t n, at;
    const char *counted;  /* up to here lines were counted */
    int32_t line, col;    /* of it */
    cti_jn_token *tokens; /* owns, on template->alloc */
    size_t n_tokens, cap_tokens, pos;
    int32_t depth, loops;
    uint32_t uses;
    bool is_line_start;                   /* the lexer stands at the start of a line */
    char brackets[JN_MAX_NODE_DEPTH + 1]; /* open in the tag being read: what closes them */
    int32_t n_brackets;
} cti_jn_compiler;

CT_MUST_CHECK ct_status cti_jn_lex(cti_jn_compiler *c);
/* A failure at a line and column. */
#define JN_SYNTAX(c, line, col, status, ...) cti_jn_syntax_error((c), (line), (col), (status), __VA_ARGS__)
ct_status cti_jn_syntax_error(cti_jn_compiler *c, int32_t line, int32_t col, ct_status status,
                              const char *fmt, ...) CT_PRINTF(5, 6);
void *cti_jn_compile_alloc(cti_jn_compiler *c, size_t count, size_t size_bytes);

/* jinja_parse.c, jinja_nodes.c, jinja_primary.c, jinja_expr.c */
CT_MUST_CHECK ct_status cti_jn_intern(cti_jn_compiler *c, const char *p, size_t n, bool is_read,
                                      const cti_jn_str **out);
CT_MUST_CHECK ct_status cti_jn_node_new(cti_jn_compiler *c, cti_jn_node_kind kind, const cti_jn_token *at,
                                        cti_jn_node **out);
CT_MUST_CHECK ct_status cti_jn_node_done(cti_jn_compiler *c, cti_jn_node *n); /* sets the depth, checks it */
/* A node of kind over a and b (NULL: of a alone), done. */
CT_MUST_CHECK ct_status cti_jn_node_of_two(cti_jn_compiler *c, cti_jn_node_kind kind, cti_jn_op op,
                                           const cti_jn_token *at, cti_jn_node *a, cti_jn_node *b,
                                           cti_jn_node **out);
/* One level deeper in the parser itself, so that it does not recurse without end; c->depth-- leaves. */
CT_MUST_CHECK ct_status cti_jn_descend(cti_jn_compiler *c);
typedef struct cti_jn_list {
    const cti_jn_node **v;
    int32_t n, cap;
} cti_jn_list;
CT_MUST_CHECK ct_status cti_jn_list_add(cti_jn_compiler *c, cti_jn_list *list, const cti_jn_node *n);
const cti_jn_token *cti_jn_now(const cti_jn_compiler *c);
bool cti_jn_is_op(const cti_jn_token *t, const char *op);
bool cti_jn_is_name(const cti_jn_token *t, const char *name);
bool cti_jn_skip_op(cti_jn_compiler *c, const char *op);
bool cti_jn_skip_name(cti_jn_compiler *c, const char *name);
CT_MUST_CHECK ct_status cti_jn_expect_op(cti_jn_compiler *c, const char *op);
ct_status cti_jn_unexpected(cti_jn_compiler *c, const char *wanted);
CT_MUST_CHECK ct_status cti_jn_parse_expr(cti_jn_compiler *c, bool with_cond, cti_jn_node **out);
/* An expression, or a tuple of some; `stop` is a name that ends it ("in"), or NULL. */
CT_MUST_CHECK ct_status cti_jn_parse_tuple(cti_jn_compiler *c, bool with_cond, bool in_parens,
                                           const char *stop, cti_jn_node **out);
CT_MUST_CHECK ct_status cti_jn_parse_primary(cti_jn_compiler *c, cti_jn_node **out);
/* What follows a value, round *n; an open bracket was taken: the call of base. */
CT_MUST_CHECK ct_status cti_jn_parse_postfix(cti_jn_compiler *c, cti_jn_node **n);
CT_MUST_CHECK ct_status cti_jn_parse_call(cti_jn_compiler *c, cti_jn_node *base, const cti_jn_token *t,
                                          cti_jn_node **out);
CT_MUST_CHECK ct_status cti_jn_parse_filters(cti_jn_compiler *c, cti_jn_node *base, bool starts_inline,
                                             cti_jn_node **out);
CT_MUST_CHECK ct_status cti_jn_parse_unary(cti_jn_compiler *c, bool with_filter, cti_jn_node **out);
CT_MUST_CHECK ct_status cti_jn_parse_call_args(cti_jn_compiler *c, cti_jn_node *call);

#endif
