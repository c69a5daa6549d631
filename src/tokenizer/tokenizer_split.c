/* SPDX-License-Identifier: Apache-2.0 */
/* The pre-tokenizer: a text becomes pieces, step by step. Each step reads one list of pieces and writes the next. */
#include "tokenizer/tokenizer_internal.h"

void cti_step_deinit(cti_step *step, const ct_alloc *alloc)
{
    cti_pattern_deinit(&step->pattern, alloc);
}

ct_status cti_pieces_push(cti_pieces *pieces, const ct_alloc *alloc, cti_span span, ct_err *err)
{
    if (span.size == 0) {
        return CT_OK;
    }
    if (pieces->n == pieces->cap) {
        const size_t cap = pieces->cap ? pieces->cap * 2 : 256;
        cti_span *spans = ct_alloc_resize(alloc, pieces->spans, cap, sizeof *spans, err);
        if (spans == NULL) {
            return CT_ERR_MEMORY;
        }
        pieces->spans = spans;
        pieces->cap = cap;
    }
    pieces->spans[pieces->n++] = span;
    return CT_OK;
}

/* Collects the parts of one piece under a behaviour. A part is held back in `held` as long as the next may join it. */
typedef struct splitter {
    const cti_step *step;
    const cti_span *piece;
    const ct_alloc *alloc;
    cti_pieces *out;
    size_t held_start, held_end; /* relative to the piece */
    bool has_held, held_is_match;
} splitter;

static ct_status splitter_flush(splitter *s, ct_err *err)
{
    if (!s->has_held) {
        return CT_OK;
    }
    s->has_held = false;
    return cti_pieces_push(s->out, s->alloc,
                           (cti_span){.start = s->piece->start + s->held_start,
                                      .size = s->held_end - s->held_start,
                                      .origin = s->piece->origin + (s->out->is_rewritten ? 0 : s->held_start),
                                      .at_start = s->piece->at_start && s->held_start == 0},
                           err);
}

/* The next part, left to right. The rules are those of SplitDelimiterBehavior; `previous match` is kept in
 * held_is_match, which is also what the part before was. */
static ct_status splitter_part(splitter *s, size_t start, size_t end, bool is_match, ct_err *err)
{
    if (s->step->invert) {
        is_match = !is_match;
    }
    bool join = false;
    switch (s->step->behaviour) {
    case CTI_BEHAVIOUR_REMOVED:
        if (is_match) {
            return splitter_flush(s, err);
        }
        break;
    case CTI_BEHAVIOUR_ISOLATED:
        break;
    case CTI_BEHAVIOUR_CONTIGUOUS:
        join = s->has_held && s->held_is_match == is_match;
        break;
    case CTI_BEHAVIOUR_MERGED_WITH_PREVIOUS:
        join = s->has_held && is_match && !s->held_is_match;
        break;
    case CTI_BEHAVIOUR_MERGED_WITH_NEXT:
        join = s->has_held && !is_match && s->held_is_match;
        break;
    case CTI_BEHAVIOUR_COUNT:
        break;
    }
    if (!join) {
        CT_TRY(splitter_flush(s, err));
        s->held_start = start;
    }
    s->held_end = end;
    s->has_held = true;
    s->held_is_match = is_match;
    return CT_OK;
}

static ct_status step_split(const cti_step *step, cti_scratch *scratch, const cti_pieces *in, cti_pieces *out, ct_err *err)
{
    out->text = in->text;
    out->is_rewritten = in->is_rewritten;
    for (size_t i = 0; i < in->n; i++) {
        const cti_span *piece = &in->spans[i];
        splitter s = {.step = step, .piece = piece, .alloc = scratch->alloc, .out = out};
        cti_walk walk = cti_walk_start(&step->pattern, scratch->matcher, in->text + piece->start, piece->size);
        size_t done = 0, start = 0, end = 0;
        for (;;) {
            CT_TRY(cti_walk_next(&walk, &start, &end, err));
            if (start == SIZE_MAX) {
                break;
            }
            if (start > done) {
                CT_TRY(splitter_part(&s, done, start, false, err));
            }
            CT_TRY(splitter_part(&s, start, end, true, err));
            done = end;
        }
        if (done < piece->size) {
            CT_TRY(splitter_part(&s, done, piece->size, false, err));
        }
        CT_TRY(splitter_flush(&s, err));
    }
    return CT_OK;
}

/* Blanks become the mark; a mark is put in front as the scheme says. */
static void metaspace(const cti_step *step, const char *text, const cti_span *piece, cti_str *out)
{
    const size_t mark_size = strlen(step->mark);
    const char *p = text + piece->start, *end = p + piece->size;
    const bool marked = *p == ' ' || (piece->size >= mark_size && memcmp(p, step->mark, mark_size) == 0);
    if (!marked && (step->scheme == CTI_SCHEME_ALWAYS || (step->scheme == CTI_SCHEME_FIRST && piece->at_start))) {
        cti_str_add_n(out, step->mark, mark_size);
    }
    while (p < end) {
        const char *blank = memchr(p, ' ', (size_t)(end - p));
        const char *stop = blank ? blank : end;
        cti_str_add_n(out, p, (size_t)(stop - p));
        if (blank) {
            cti_str_add_n(out, step->mark, mark_size);
        }
        p = stop + (blank != NULL);
    }
}

/* Steps that write each piece anew. */
static ct_status step_rewrite(const cti_step *step, cti_scratch *scratch, const cti_pieces *in, cti_pieces *out,
                              ct_err *err)
{
    cti_str_reset(&out->own);
    out->is_rewritten = true;
    for (size_t i = 0; i < in->n; i++) {
        const cti_span *piece = &in->spans[i];
        const char *p = in->text + piece->start;
        const size_t start = out->own.len;
        if (step->kind == CTI_STEP_BYTES) {
            cti_bytes_to_alphabet(p, piece->size, &out->own);
        } else if (step->kind == CTI_STEP_METASPACE) {
            metaspace(step, in->text, piece, &out->own);
        } else {
            if (*p != ' ') {
                cti_str_add_char(&out->own, ' ');
            }
            cti_str_add_n(&out->own, p, piece->size);
        }
        CT_TRY(cti_str_check(&out->own, err));
        CT_TRY(cti_pieces_push(out, scratch->alloc,
                               (cti_span){.start = start,
                                          .size = out->own.len - start,
                                          .origin = piece->origin,
                                          .at_start = piece->at_start},
                               err));
    }
    out->text = cti_str_text(&out->own);
    return CT_OK;
}

ct_status cti_pretokenize(const cti_step *steps, size_t n_steps, cti_scratch *scratch, const char *text, size_t size,
                          size_t origin, bool at_start, const cti_pieces **out_pieces, ct_err *err)
{
    cti_pieces *in = &scratch->pieces[0], *out = &scratch->pieces[1];
    in->text = text;
    in->n = 0;
    in->is_rewritten = false;
    CT_TRY(cti_pieces_push(in, scratch->alloc, (cti_span){.size = size, .origin = origin, .at_start = at_start}, err));
    for (size_t i = 0; i < n_steps; i++) {
        out->n = 0;
        if (steps[i].kind == CTI_STEP_SPLIT) {
            CT_TRY(step_split(&steps[i], scratch, in, out, err));
            /* The text of `in` stays alive: let `out` own it, so that the next step may overwrite the other. */
            if (in->text == in->own.data) {
                const cti_str own = out->own;
                out->own = in->own;
                in->own = own;
            }
        } else {
            CT_TRY(step_rewrite(&steps[i], scratch, in, out, err));
        }
        cti_pieces *swap = in;
        in = out;
        out = swap;
    }
    *out_pieces = in;
    return CT_OK;
}

ct_status cti_scratch_init(cti_scratch *scratch, const ct_alloc *alloc, bool cache, ct_err *err)
{
    *scratch = (cti_scratch){.alloc = alloc,
                             .repaired = {.alloc = alloc},
                             .norm_a = {.alloc = alloc},
                             .norm_b = {.alloc = alloc},
                             .piece = {.alloc = alloc},
                             .pieces = {{.own = {.alloc = alloc}}, {.own = {.alloc = alloc}}}};
    if (cache) {
        scratch->cache = CT_NEW_ARRAY(alloc, cti_cache_slot, CTI_CACHE_SLOTS, err);
        if (scratch->cache == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    return cti_matcher_create(alloc, &scratch->matcher, err);
}

void cti_scratch_deinit(cti_scratch *scratch)
{
    if (scratch->alloc == NULL) {
        return;
    }
    cti_matcher_destroy(&scratch->matcher);
    cti_str_deinit(&scratch->repaired);
    cti_str_deinit(&scratch->norm_a);
    cti_str_deinit(&scratch->norm_b);
    cti_str_deinit(&scratch->piece);
    ct_alloc_free(scratch->alloc, scratch->best);
    for (int i = 0; i < 2; i++) {
        cti_str_deinit(&scratch->pieces[i].own);
        ct_alloc_free(scratch->alloc, scratch->pieces[i].spans);
    }
    ct_alloc_free(scratch->alloc, scratch->points);
    ct_alloc_free(scratch->alloc, scratch->symbols);
    ct_alloc_free(scratch->alloc, scratch->heap);
    ct_alloc_free(scratch->alloc, scratch->cache);
    *scratch = (cti_scratch){0};
}
