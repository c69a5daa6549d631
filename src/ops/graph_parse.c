/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the text form of a graph (docs/formats/graph.md) back. Lines are read into records first; then values
 * and nodes are added in order of id, inputs are joined (they may name later values), and the order is set.
 * The text is not trusted; whether the graph makes sense is the verifier's question. */
#include <inttypes.h>
#include <string.h>

#include "base/fields.h"
#include "base/num.h"
#include "base/str.h"
#include "ops/ops.h"

enum { MAX_TEXT_IDS = 1 << 29 };

typedef struct value_line {
    ct_value_spec spec;
    ct_placement placement[CT_MAX_AXES];
    ct_value_id alias_of;
    int64_t alias_offset;
    int32_t line;
    int32_t maker; /* index of the node line that makes it; -1: none */
} value_line;

typedef struct id_list {
    ct_value_id *items; /* arena */
    int32_t n;
} id_list;

typedef struct node_line {
    int32_t id, line;
    const ct_op *op;
    void *attrs; /* the graph's arena */
    id_list in, out;
    const char *scope;
    ct_program_id program;
    uint8_t stream;
    int32_t wait;
    bool is_recompute, is_dead;
} node_line;

typedef struct parser {
    const char *p, *end, *line_start;
    int32_t line;
    const char *name;
    const ct_alloc *alloc;
    ct_arena *scratch; /* names, id lists, attribute texts */
    ct_graph *graph;
    value_line *values; /* owns */
    int32_t n_values, cap_values;
    node_line *nodes; /* owns */
    int32_t n_nodes, cap_nodes;
    ct_err *err;
} parser;

static ct_status fail(const parser *s, const char *wanted)
{
    int n = 0;
    while (n < 24 && s->p + n < s->end && s->p[n] >= ' ') {
        n++;
    }
    return CT_FAIL(s->err, CT_ERR_FORMAT, "graph '%s', line %d, column %d: wanted %s, found '%.*s'", s->name,
                   (int)s->line, (int)(s->p - s->line_start) + 1, wanted, n, s->p);
}

static void skip_blanks(parser *s)
{
    while (s->p < s->end && *s->p == ' ') {
        s->p++;
    }
}

/* Takes one character, after blanks. */
static bool take(parser *s, char c)
{
    skip_blanks(s);
    if (s->p == s->end || *s->p != c) {
        return false;
    }
    s->p++;
    return true;
}

static ct_status want(parser *s, char c)
{
    const char text[] = {'\'', c, '\'', '\0'};
    return take(s, c) ? CT_OK : fail(s, text);
}

/* Takes the end of the line or of the text. */
static ct_status want_line_end(parser *s)
{
    skip_blanks(s);
    if (s->p == s->end) {
        return CT_OK;
    }
    if (*s->p != '\n') {
        return fail(s, "the end of the line");
    }
    s->p++;
    s->line++;
    s->line_start = s->p;
    return CT_OK;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '+' || c == '-' || c == '.';
}

/* The run of word characters here, in the arena. */
static ct_status want_word(parser *s, const char *wanted, const char **out, ct_err *err)
{
    skip_blanks(s);
    const char *start = s->p;
    while (s->p < s->end && is_word(*s->p)) {
        s->p++;
    }
    if (s->p == start) {
        return fail(s, wanted);
    }
    char *word = ct_arena_alloc(s->scratch, (size_t)(s->p - start) + 1, err);
    if (word == NULL) {
        return CT_ERR_MEMORY;
    }
    memcpy(word, start, (size_t)(s->p - start));
    *out = word;
    return CT_OK;
}

/* Takes `word` where it stands here as a whole. */
static bool take_word(parser *s, const char *word)
{
    skip_blanks(s);
    const size_t n = strlen(word);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0 ||
        (s->p + n < s->end && is_word(s->p[n]))) {
        return false;
    }
    s->p += n;
    return true;
}

static ct_status want_i64(parser *s, const char *wanted, int64_t low, int64_t high, int64_t *out)
{
    skip_blanks(s);
    const char *start = s->p;
    const bool is_negative = s->p < s->end && *s->p == '-';
    s->p += is_negative;
    const char *digits = s->p;
    int64_t value = 0;
    bool fits = true;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9') {
        const int64_t digit = *s->p - '0';
        fits = fits && cti_mul_i64(value, 10, &value) &&
               cti_add_i64(value, is_negative ? -digit : digit, &value);
        s->p++;
    }
    if (s->p == digits || !fits || value < low || value > high) {
        s->p = start;
        return fail(s, wanted);
    }
    *out = value;
    return CT_OK;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "text", in the arena. */
static ct_status want_quoted(parser *s, const char **out)
{
    CT_TRY(want(s, '"'));
    const char *start = s->p;
    while (s->p < s->end && *s->p != '"' && *s->p != '\n') {
        s->p += *s->p == '\\' && s->p + 1 < s->end ? 2 : 1;
    }
    if (s->p >= s->end || *s->p != '"') {
        s->p = start - 1;
        return fail(s, "a text that is closed on its line");
    }
    char *text = ct_arena_alloc(s->scratch, (size_t)(s->p - start) + 1, s->err);
    if (text == NULL) {
        return CT_ERR_MEMORY;
    }
    size_t n = 0;
    for (const char *p = start; p < s->p; p++) {
        char c = *p;
        if (c == '\\') {
            p++;
            c = *p;
            if (c == 'x') {
                const int high = s->p - p > 2 ? hex_digit(p[1]) : -1, low = high < 0 ? -1 : hex_digit(p[2]);
                c = low < 0 ? '\0' : (char)(16 * high + low);
                p += 2;
            } else if (c != '"' && c != '\\') {
                c = '\0';
            }
        }
        if (c == '\0') {
            s->p = start - 1;
            return fail(s, "a text without NUL, with no escapes but \\\", \\\\ and \\xNN");
        }
        text[n++] = c;
    }
    s->p++;
    *out = text;
    return CT_OK;
}

static bool next_is(parser *s, char c)
{
    skip_blanks(s);
    return s->p < s->end && *s->p == c;
}

/* Room for one more item in an array of the parser. */
static ct_status grow(parser *s, void **array, int32_t n, int32_t *cap, size_t item_bytes)
{
    if (n < *cap) {
        return CT_OK;
    }
    if (n >= MAX_TEXT_IDS) {
        return CT_FAIL(s->err, CT_ERR_RANGE, "graph '%s': more than %d lines", s->name, MAX_TEXT_IDS);
    }
    const int32_t new_cap = *cap == 0 ? 64 : 2 * *cap;
    void *grown = ct_alloc_resize(s->alloc, *array, (size_t)new_cap, item_bytes, s->err);
    if (grown == NULL) {
        return CT_ERR_MEMORY;
    }
    *array = grown;
    *cap = new_cap;
    return CT_OK;
}

/* ---- value lines
 * ------------------------------------------------------------------------------------------------ */

static ct_status parse_kind(parser *s, ct_value_kind *out)
{
    for (int k = 0; k < CT_VALUE_KIND_COUNT; k++) {
        if (take_word(s, cti_value_kind_name((ct_value_kind)k))) {
            *out = (ct_value_kind)k;
            return CT_OK;
        }
    }
    return fail(s, "a kind of value");
}

static ct_status parse_placements(parser *s, ct_placement *out)
{
    static const char letters[] = {[CT_PLACE_REPLICATE] = 'R',
                                   [CT_PLACE_OWING] = 'O',
                                   [CT_PLACE_SHARD] = 'S',
                                   [CT_PLACE_PARTIAL] = 'P',
                                   [CT_PLACE_FLAT] = 'F'};
    CT_TRY(want(s, '['));
    for (int i = 0; i < CT_MAX_AXES; i++) {
        skip_blanks(s);
        const char *hit = s->p < s->end ? memchr(letters, *s->p, sizeof letters) : NULL;
        if (hit == NULL) {
            return fail(s, "a placement (R, O, S, P or F)");
        }
        s->p++;
        out[i].kind = (uint8_t)(hit - letters);
        int64_t dim = 0, parts = 0;
        if (s->p < s->end && *s->p != ' ' && *s->p != ']' && *s->p != '/') {
            CT_TRY(want_i64(s, "a dim", INT8_MIN, INT8_MAX, &dim));
        }
        if (s->p < s->end && *s->p == '/') {
            s->p++;
            CT_TRY(want_i64(s, "a number of parts", 1, UINT8_MAX, &parts));
        }
        out[i].parts = (uint8_t)parts;
        out[i].dim = (int8_t)dim;
    }
    return want(s, ']');
}

static ct_status parse_value(parser *s)
{
    CT_TRY(grow(s, (void **)&s->values, s->n_values, &s->cap_values, sizeof *s->values));
    value_line v = {.alias_of = CT_NO_VALUE, .line = s->line, .maker = -1};
    int64_t number = 0;
    CT_TRY(want(s, '%'));
    CT_TRY(want_i64(s, "the next value's id", s->n_values, s->n_values, &number));
    CT_TRY(parse_kind(s, &v.spec.kind));
    const char *word = "";
    CT_TRY(want_word(s, "a dtype", &word, s->err));
    if (!ct_dtype_parse(word, &v.spec.dtype)) {
        s->p -= strlen(word);
        return fail(s, "a dtype");
    }
    CT_TRY(want(s, '['));
    while (!take(s, ']')) {
        if (v.spec.ndim == CT_MAX_NDIM) {
            return fail(s, "']' (a tensor has no more dims)");
        }
        CT_TRY(want_i64(s, "a dim of 0 or more, or ']'", 0, INT64_MAX, &v.spec.dims[v.spec.ndim]));
        v.spec.ndim++;
    }
    if (next_is(s, '"')) {
        CT_TRY(want_quoted(s, &v.spec.name));
    }
    if (take_word(s, "place")) {
        CT_TRY(parse_placements(s, v.placement));
    }
    if (take_word(s, "alias")) {
        CT_TRY(want(s, '%'));
        CT_TRY(want_i64(s, "a value's id", 0, MAX_TEXT_IDS, &number));
        v.alias_of = (ct_value_id)number;
        CT_TRY(want_i64(s, "an offset in elements", INT64_MIN, INT64_MAX, &v.alias_offset));
    }
    CT_TRY(want_line_end(s));
    s->values[s->n_values++] = v;
    return CT_OK;
}

/* ---- node lines
 * ------------------------------------------------------------------------------------------------- */

/* "%1, _, %3", possibly empty, until `end`, which is taken. */
static ct_status parse_ids(parser *s, char end, id_list *out)
{
    ct_value_id few[CTI_OP_MAX_IN];
    int32_t n = 0;
    while (!take(s, end)) {
        if (n > 0) {
            CT_TRY(want(s, ','));
        }
        if (n == CTI_OP_MAX_IN) {
            return fail(s, "the end of the list (it holds no more values)");
        }
        if (take(s, '_')) {
            few[n++] = CT_NO_VALUE;
            continue;
        }
        int64_t id = 0;
        CT_TRY(want(s, '%'));
        CT_TRY(want_i64(s, "a value's id", 0, MAX_TEXT_IDS, &id));
        few[n++] = (ct_value_id)id;
    }
    out->n = n;
    out->items = ct_arena_alloc(s->scratch, (size_t)n * sizeof few[0], s->err);
    if (out->items == NULL) {
        return CT_ERR_MEMORY;
    }
    memcpy(out->items, few, (size_t)n * sizeof few[0]);
    return CT_OK;
}

static ct_status parse_attr(parser *s, node_line *node, uint64_t *seen)
{
    const char *name = "", *text = "";
    CT_TRY(want_word(s, "an attribute", &name, s->err));
    const ct_field *field = ct_field_find(node->op->attr_fields, (size_t)node->op->n_attr_fields, name);
    if (field == NULL) {
        return CT_FAIL(s->err, CT_ERR_FORMAT, "graph '%s', line %d: op '%s' has no attribute '%.60s'",
                       s->name, (int)s->line, node->op->name, name);
    }
    const uint64_t bit = (uint64_t)1 << (field - node->op->attr_fields);
    if ((*seen & bit) != 0) {
        return CT_FAIL(s->err, CT_ERR_FORMAT, "graph '%s', line %d: attribute '%s' comes twice", s->name,
                       (int)s->line, field->name);
    }
    *seen |= bit;
    CT_TRY(want(s, '='));
    if (next_is(s, '"')) {
        CT_TRY(want_quoted(s, &text));
    } else {
        CT_TRY(want_word(s, "a value or a quoted text", &text, s->err));
    }
    cti_tokens tokens;
    ct_status st = cti_field_split(field, text, s->scratch, &tokens, s->err);
    st = st != CT_OK
             ? st
             : ct_field_set(field, node->attrs, tokens.items, tokens.n, ct_graph_arena(s->graph), s->err);
    if (st == CT_ERR_USAGE && s->err != NULL) {
        ct_err_prefix(s->err, "graph '%s', line %d: attribute '%s'", s->name, (int)s->line, field->name);
        s->err->status = CT_ERR_FORMAT;
    }
    return st == CT_ERR_USAGE ? CT_ERR_FORMAT : st;
}

static ct_status parse_attrs(parser *s, node_line *node)
{
    const ct_op *op = node->op;
    CT_ASSERT(op->n_attr_fields < 64);
    if (op->n_attr_fields == 0) {
        return CT_OK;
    }
    node->attrs = ct_arena_alloc(ct_graph_arena(s->graph), op->attrs_bytes, s->err);
    if (node->attrs == NULL) {
        return CT_ERR_MEMORY;
    }
    uint64_t seen = 0;
    CT_TRY(want(s, '{'));
    do {
        CT_TRY(parse_attr(s, node, &seen));
    } while (take(s, ','));
    CT_TRY(want(s, '}'));
    for (int32_t i = 0; i < op->n_attr_fields; i++) {
        if ((seen >> i & 1) == 0) {
            return CT_FAIL(s->err, CT_ERR_FORMAT, "graph '%s', line %d: op '%s' wants attribute '%s'",
                           s->name, (int)s->line, op->name, op->attr_fields[i].name);
        }
    }
    return CT_OK;
}

static ct_status parse_program(parser *s, ct_program_id *out)
{
    for (int p = 0; p < CT_PROGRAM_COUNT; p++) {
        if (take_word(s, ct_program_name((ct_program_id)p))) {
            *out = (ct_program_id)p;
            return CT_OK;
        }
    }
    return fail(s, "a program");
}

static ct_status parse_node(parser *s)
{
    CT_TRY(grow(s, (void **)&s->nodes, s->n_nodes, &s->cap_nodes, sizeof *s->nodes));
    node_line node = {.line = s->line, .scope = ""};
    int64_t number = 0;
    const char *word = "";
    node.is_dead = take_word(s, "dead");
    CT_TRY(want(s, '#'));
    CT_TRY(want_i64(s, "a node's id", 0, MAX_TEXT_IDS, &number));
    node.id = (int32_t)number;
    CT_TRY(parse_ids(s, '=', &node.out));
    CT_TRY(want_word(s, "an op", &word, s->err));
    node.op = ct_op_find(word);
    if (node.op == NULL) {
        s->p -= strlen(word);
        return fail(s, "an op");
    }
    CT_TRY(want(s, '('));
    CT_TRY(parse_ids(s, ')', &node.in));
    CT_TRY(parse_attrs(s, &node));
    CT_TRY(parse_program(s, &node.program));
    if (next_is(s, '"')) {
        CT_TRY(want_quoted(s, &node.scope));
    }
    if (take_word(s, "stream")) {
        CT_TRY(want_i64(s, "a stream", 0, UINT8_MAX, &number));
        node.stream = (uint8_t)number;
    }
    if (take_word(s, "wait")) {
        CT_TRY(want_i64(s, "how many nodes of stream 1 to wait for", 1, INT32_MAX, &number));
        node.wait = (int32_t)number;
    }
    node.is_recompute = take_word(s, "recompute");
    CT_TRY(want_line_end(s));
    s->nodes[s->n_nodes++] = node;
    return CT_OK;
}

/* ---- building
 * --------------------------------------------------------------------------------------------------- */

static ct_status line_fail(const parser *s, int32_t line, const char *what)
{
    return CT_FAIL(s->err, CT_ERR_FORMAT, "graph '%s', line %d: %s", s->name, (int)line, what);
}

/* by_id[i]: index of the line of node i. */
static ct_status index_nodes(parser *s, int32_t *by_id)
{
    for (int32_t i = 0; i < s->n_nodes; i++) {
        by_id[i] = -1;
    }
    for (int32_t i = 0; i < s->n_nodes; i++) {
        const node_line *node = &s->nodes[i];
        if (node->id >= s->n_nodes || by_id[node->id] >= 0) {
            return line_fail(s, node->line, "nodes must be numbered from 0, each once");
        }
        by_id[node->id] = i;
        for (int32_t k = 0; k < node->out.n; k++) {
            const ct_value_id id = node->out.items[k];
            if (id < 0 || id >= s->n_values || s->values[id].maker >= 0) {
                return line_fail(s, node->line, "an output is no value, or is made twice");
            }
            s->values[id].maker = i;
        }
        for (int32_t k = 0; k < node->in.n; k++) {
            if (node->in.items[k] >= s->n_values) {
                return line_fail(s, node->line, "an input is no value");
            }
        }
    }
    return CT_OK;
}

/* Adds a node whose outputs are the values from *next_value on; inputs are absent until all values are there.
 */
static ct_status add_node(parser *s, const node_line *node, int32_t *next_value)
{
    for (int32_t k = 0; k < node->out.n; k++) {
        if (node->out.items[k] != *next_value + k) {
            return line_fail(s, node->line, "outputs must be numbered in order of nodes");
        }
    }
    ct_value_id *absent = ct_arena_alloc(s->scratch, (size_t)node->in.n * sizeof *absent, s->err);
    ct_value_spec *specs = ct_arena_alloc(s->scratch, (size_t)node->out.n * sizeof *specs, s->err);
    if (absent == NULL || specs == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t k = 0; k < node->in.n; k++) {
        absent[k] = CT_NO_VALUE;
    }
    for (int32_t k = 0; k < node->out.n; k++) {
        specs[k] = s->values[*next_value + k].spec;
    }
    CT_TRY(ct_graph_set_scope(s->graph, node->scope, s->err));
    ct_graph_set_program(s->graph, node->program);
    ct_node_id id;
    CT_TRY(ct_graph_add_node(s->graph, node->op->id, node->attrs, node->op->attrs_bytes, absent, node->in.n,
                             specs, node->out.n, &id, s->err));
    ct_node *made = ct_graph_node(s->graph, id);
    made->stream = node->stream;
    made->wait = node->wait;
    made->is_recompute = node->is_recompute;
    *next_value += node->out.n;
    return CT_OK;
}

static ct_status add_all(parser *s, const int32_t *by_id)
{
    int32_t next_value = 0, next_node = 0;
    while (next_value < s->n_values || next_node < s->n_nodes) {
        const int32_t maker = next_value < s->n_values ? s->values[next_value].maker : -1;
        const bool node_is_next =
            next_node < s->n_nodes && (maker == by_id[next_node] || s->nodes[by_id[next_node]].out.n == 0);
        ct_status st;
        int32_t line;
        if (node_is_next) {
            line = s->nodes[by_id[next_node]].line;
            st = add_node(s, &s->nodes[by_id[next_node++]], &next_value);
        } else if (next_value < s->n_values && maker < 0) {
            ct_value_id id;
            line = s->values[next_value].line;
            st = ct_graph_add_value(s->graph, &s->values[next_value++].spec, &id, s->err);
        } else {
            const int32_t at = maker < 0 ? by_id[next_node] : maker;
            return line_fail(s, s->nodes[at].line, "outputs must be numbered in order of nodes");
        }
        if (st != CT_OK) {
            if (st != CT_ERR_FORMAT) {
                ct_err_prefix(s->err, "graph '%s', line %d", s->name, (int)line);
            }
            return st;
        }
    }
    return CT_OK;
}

/* What adding could not set: inputs, kinds of outputs, placements, aliases, the order. */
static ct_status join(parser *s)
{
    for (int32_t i = 0; i < s->n_values; i++) {
        const value_line *line = &s->values[i];
        if (line->alias_of >= s->n_values) {
            return line_fail(s, line->line, "the alias is no value");
        }
        ct_value *v = ct_graph_value(s->graph, i);
        v->kind = line->spec.kind;
        memcpy(v->placement, line->placement, sizeof v->placement);
        v->alias_of = line->alias_of;
        v->alias_offset = line->alias_offset;
    }
    ct_node_id *order = ct_arena_alloc(s->scratch, (size_t)s->n_nodes * sizeof *order, s->err);
    if (order == NULL) {
        return CT_ERR_MEMORY;
    }
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_nodes; i++) {
        const node_line *line = &s->nodes[i];
        ct_node *node = ct_graph_node(s->graph, line->id);
        if (line->in.n > 0) {
            memcpy(node->in, line->in.items, (size_t)line->in.n * sizeof *node->in);
        }
        if (!line->is_dead) {
            order[n++] = line->id;
        }
    }
    CT_TRY(ct_graph_set_order(s->graph, order, n, s->err));
    ct_graph_set_program(s->graph, CT_PROGRAM_FORWARD);
    return ct_graph_set_scope(s->graph, "", s->err);
}

static ct_status parse_lines(parser *s)
{
    const size_t n = strlen(CTI_GRAPH_TEXT_HEAD);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, CTI_GRAPH_TEXT_HEAD, n) != 0) {
        return fail(s, "'" CTI_GRAPH_TEXT_HEAD "'");
    }
    s->p += n;
    CT_TRY(want_line_end(s));
    while (s->p < s->end) {
        if (next_is(s, '%')) {
            CT_TRY(parse_value(s));
        } else if (next_is(s, '#') || next_is(s, 'd')) {
            CT_TRY(parse_node(s));
        } else {
            CT_TRY(want_line_end(s)); /* a blank line, or the error */
        }
    }
    return CT_OK;
}

static ct_status parse(parser *s)
{
    CT_TRY(parse_lines(s));
    int32_t *by_id = ct_arena_alloc(s->scratch, (size_t)s->n_nodes * sizeof *by_id, s->err);
    if (by_id == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(index_nodes(s, by_id));
    CT_TRY(add_all(s, by_id));
    return join(s);
}

ct_status ct_graph_parse(const ct_alloc *alloc, const char *text, size_t size, const char *name,
                         ct_graph **out_graph, ct_err *err)
{
    parser s = {.p = text,
                .end = text + size,
                .line_start = text,
                .line = 1,
                .name = name,
                .alloc = alloc,
                .err = err};
    ct_status st = ct_graph_create(alloc, name, &s.graph, err);
    CT_TRY_GOTO(st, st, out);
    CT_TRY_GOTO(st, ct_arena_create(alloc, 0, &s.scratch, err), out);
    CT_TRY_GOTO(st, parse(&s), out);
    *out_graph = s.graph;
    s.graph = NULL;
out:
    ct_graph_destroy(&s.graph);
    ct_arena_destroy(&s.scratch);
    ct_alloc_free(alloc, s.values);
    ct_alloc_free(alloc, s.nodes);
    return st;
}
