/* SPDX-License-Identifier: Apache-2.0 */
/* YAML into nodes, from libyaml's events. */
#include <inttypes.h>
#include <string.h>
#include <yaml.h>

#include "config/doc.h"

enum { MAX_ANCHORS = 1024, MAX_WRITTEN_OUT = 16 << 20 };

typedef struct anchor {
    const char *name;
    cti_doc *node;
} anchor;

typedef struct reader {
    cti_doc_reader *r;
    yaml_parser_t parser;
    const char *text; /* for the places of bytes that are no text */
    size_t size;
    anchor *anchors; /* MAX_ANCHORS of them, the arena's; NULL before the first */
    size_t n_anchors;
    bool is_bad; /* a problem was added: stop */
} reader;

static int32_t place(size_t from_zero)
{
    return from_zero < INT32_MAX ? (int32_t)from_zero + 1 : INT32_MAX;
}

static ct_status refuse(reader *y, yaml_mark_t at, const char *what, const char *name)
{
    cti_problem_add(y->r->problems, "%s:%" PRId32 ":%" PRId32 ": %s%s%.80s%s", y->r->name, place(at.line), place(at.column), what,
                    name != NULL ? " '" : "", name != NULL ? name : "", name != NULL ? "'" : "");
    y->is_bad = true;
    return CT_OK;
}

/* libyaml's own complaint. */
static ct_status refuse_syntax(reader *y)
{
    const yaml_parser_t *p = &y->parser;
    yaml_mark_t at = p->problem_mark;
    if (p->error == YAML_MEMORY_ERROR) {
        return CT_FAIL(y->r->err, CT_ERR_MEMORY, "no memory for '%s'", y->r->name);
    }
    if (p->error == YAML_READER_ERROR) { /* before lines are counted */
        at = (yaml_mark_t){0};
        for (size_t i = 0; i < p->problem_offset && i < y->size; i++) {
            const bool ends = y->text[i] == '\n';
            at.line += ends;
            at.column = ends ? 0 : at.column + 1;
        }
        return refuse(y, at, "wanted UTF-8 text without control characters", NULL);
    }
    if (at.index < y->size && y->text[at.index] == '\t') {
        return refuse(y, at, "a tab cannot indent or separate here: wanted blanks", NULL);
    }
    return refuse(y, at, p->problem != NULL ? p->problem : "cannot be read", NULL);
}

/* False at an error; then is_bad or the status says which. */
static ct_status next(reader *y, yaml_event_t *event)
{
    memset(event, 0, sizeof *event);
    return yaml_parser_parse(&y->parser, event) != 0 ? CT_OK : refuse_syntax(y);
}

static ct_status remember(reader *y, const yaml_char_t *name, yaml_mark_t at, cti_doc *node)
{
    if (name == NULL) {
        return CT_OK;
    }
    if (y->anchors == NULL) {
        y->anchors = ct_arena_alloc(y->r->arena, MAX_ANCHORS * sizeof *y->anchors, y->r->err);
        if (y->anchors == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    const char *copy = ct_arena_strdup(y->r->arena, (const char *)name, y->r->err);
    if (copy == NULL) {
        return CT_ERR_MEMORY;
    }
    if (y->n_anchors == MAX_ANCHORS) {
        return refuse(y, at, "more than 1024 anchors are not taken", NULL);
    }
    y->anchors[y->n_anchors++] = (anchor){copy, node};
    return CT_OK;
}

/* The node that an alias stands for; the last one of its name counts. */
static ct_status follow(reader *y, const yaml_event_t *event, cti_doc **out)
{
    const char *name = (const char *)event->data.alias.anchor;
    for (size_t i = y->n_anchors; i > 0; i--) {
        if (cti_str_eq(y->anchors[i - 1].name, name)) {
            *out = y->anchors[i - 1].node;
            y->r->weight += (*out)->weight;
            return y->r->weight <= MAX_WRITTEN_OUT ? CT_OK
                                                   : refuse(y, event->start_mark, "the aliases stand for more than 16 MiB", NULL);
        }
    }
    return refuse(y, event->start_mark, "no finished node has the anchor", name);
}

/* "str" of "tag:yaml.org,2002:str"; the whole tag where it is another's. */
static const char *tag_name(const yaml_char_t *tag)
{
    static const char core[] = "tag:yaml.org,2002:";
    return cti_starts_with((const char *)tag, core) ? (const char *)tag + sizeof core - 1 : (const char *)tag;
}

static ct_status read_scalar(reader *y, const yaml_event_t *event, cti_doc **out)
{
    static const char *const plain_tags[] = {"int", "float", "bool", "null"};
    const char *text = (const char *)event->data.scalar.value;
    const size_t n = event->data.scalar.length;
    cti_doc *doc = cti_doc_new(y->r, CTI_DOC_SCALAR, place(event->start_mark.line), place(event->start_mark.column));
    char *copy = ct_arena_alloc(y->r->arena, n + 1, y->r->err);
    if (doc == NULL || copy == NULL) {
        return CT_ERR_MEMORY;
    }
    if (memchr(text, '\0', n) != NULL) {
        return refuse(y, event->start_mark, "a text with a NUL character is not taken", NULL);
    }
    memcpy(copy, text, n);
    doc->text = copy;
    doc->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    doc->weight += n;
    if (event->data.scalar.tag != NULL) {
        const char *tag = tag_name(event->data.scalar.tag);
        bool known = cti_str_eq(tag, "str");
        doc->is_quoted = doc->is_quoted || known;
        for (size_t i = 0; i < sizeof plain_tags / sizeof plain_tags[0]; i++) {
            known = known || cti_str_eq(tag, plain_tags[i]);
        }
        if (!known) {
            return refuse(y, event->start_mark, "nodes are not taken with the tag", tag);
        }
    }
    *out = doc;
    return CT_OK;
}

static ct_status read_node(reader *y, const yaml_event_t *event, int depth, cti_doc **out);

/* The elements of a list, or the keys and values of a map, up to its end. */
static ct_status read_children(reader *y, cti_doc *doc, int depth)
{
    const bool is_map = doc->kind == CTI_DOC_MAP;
    cti_doc *key = NULL;
    while (!y->is_bad) {
        yaml_event_t event;
        CT_TRY(next(y, &event));
        if (y->is_bad || event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            break;
        }
        cti_doc *child = NULL;
        const yaml_mark_t at = event.start_mark;
        ct_status st = read_node(y, &event, depth + 1, &child);
        yaml_event_delete(&event);
        CT_TRY(st);
        if (y->is_bad) {
            break;
        }
        if (is_map && key == NULL) {
            if (child->kind != CTI_DOC_SCALAR) {
                return refuse(y, at, "a key must be a word", NULL);
            }
            if (cti_str_eq(child->text, "<<") && !child->is_quoted) {
                return refuse(y, at, "merge keys are not taken: put what is shared into a file of its own, named by base:", NULL);
            }
            key = child;
            continue;
        }
        CT_TRY(cti_doc_add(y->r, doc, is_map ? key : NULL, child));
        key = NULL;
    }
    if (is_map && !y->is_bad && !cti_doc_check_keys(y->r, doc)) {
        y->is_bad = true;
    }
    return CT_OK;
}

static ct_status read_collection(reader *y, const yaml_event_t *event, int depth, cti_doc **out)
{
    const bool is_map = event->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag = is_map ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    const yaml_char_t *name = is_map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    if (tag != NULL && !cti_str_eq(tag_name(tag), is_map ? "map" : "seq")) {
        return refuse(y, event->start_mark, "nodes are not taken with the tag", tag_name(tag));
    }
    if (depth > CTI_DOC_MAX_DEPTH) {
        return refuse(y, event->start_mark, "nested more than 64 deep", NULL);
    }
    cti_doc *doc = cti_doc_new(y->r, is_map ? CTI_DOC_MAP : CTI_DOC_LIST, place(event->start_mark.line),
                               place(event->start_mark.column));
    if (doc == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(read_children(y, doc, depth));
    *out = doc;
    return y->is_bad ? CT_OK : remember(y, name, event->start_mark, doc);
}

static ct_status read_node(reader *y, const yaml_event_t *event, int depth, cti_doc **out)
{
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return follow(y, event, out);
    case YAML_SCALAR_EVENT:
        CT_TRY(read_scalar(y, event, out));
        return y->is_bad ? CT_OK : remember(y, event->data.scalar.anchor, event->start_mark, *out);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return read_collection(y, event, depth, out);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        break;
    }
    return refuse(y, event->start_mark, "wanted a value", NULL);
}

/* One document: its first node; *out stays NULL where the stream has none. */
static ct_status read_stream(reader *y, cti_doc **out)
{
    for (int n_documents = 0; !y->is_bad;) {
        yaml_event_t event;
        CT_TRY(next(y, &event));
        ct_status st = CT_OK;
        const yaml_event_type_t type = event.type;
        if (!y->is_bad && type == YAML_DOCUMENT_START_EVENT && ++n_documents > 1) {
            st = refuse(y, event.start_mark, "a second document begins here, wanted one a file", NULL);
        } else if (!y->is_bad && type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT &&
                   type != YAML_DOCUMENT_END_EVENT && type != YAML_STREAM_END_EVENT) {
            st = read_node(y, &event, 1, out);
        }
        yaml_event_delete(&event);
        CT_TRY(st);
        if (type == YAML_STREAM_END_EVENT) {
            break;
        }
    }
    return CT_OK;
}

ct_status cti_doc_read_yaml(cti_doc_reader *r, const char *text, size_t size, cti_doc **out_doc)
{
    reader y = {.r = r, .text = text, .size = size};
    if (yaml_parser_initialize(&y.parser) == 0) {
        return CT_FAIL(r->err, CT_ERR_MEMORY, "no memory for '%s'", r->name);
    }
    yaml_parser_set_input_string(&y.parser, (const unsigned char *)text, size);
    cti_doc *doc = NULL;
    ct_status st = read_stream(&y, &doc);
    yaml_parser_delete(&y.parser);
    CT_TRY(st);
    if (y.is_bad) {
        return CT_OK;
    }
    if (doc == NULL || cti_doc_is_null(doc)) {
        doc = cti_doc_new(r, CTI_DOC_MAP, 1, 1);
        if (doc == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    *out_doc = doc;
    return CT_OK;
}
