/* SPDX-License-Identifier: Apache-2.0 */
/* The pre-tokenizer: a text becomes pieces, step by step. Pieces are drawn one at a time: each step holds one piece of the step
 * before and gives out its parts, so that a text of any length needs no list of them. */
#include "tokenizer/tokenizer_internal.h"

void cti_step_deinit(cti_step *step, const ct_alloc *alloc)
{
    cti_pattern_deinit(&step->pattern, alloc);
}

/* --- a split --- */

/* The next match or gap, left to right; empty matches too. False at the end. */
static ct_status raw_part(cti_frame *f, cti_part *out, bool *out_any, ct_err *err)
{
    if (!f->has_match && !f->no_more) {
        CT_TRY(cti_walk_next(&f->walk, &f->match.start, &f->match.end, err));
        f->no_more = f->match.start == SIZE_MAX;
        f->has_match = !f->no_more;
    }
    *out_any = true;
    if (f->has_match && f->match.start <= f->done) {
        *out = f->match;
        f->has_match = false;
    } else if (f->done < f->piece.size) {
        *out = (cti_part){.start = f->done, .end = f->has_match ? f->match.start : f->piece.size};
    } else {
        *out_any = false;
        return CT_OK;
    }
    f->done = out->end;
    return CT_OK;
}

/* Whether the part after `held` joins it. The rules are those of SplitDelimiterBehavior. */
static bool joins(cti_behaviour behaviour, const cti_part *held, const cti_part *part)
{
    switch (behaviour) {
    case CTI_BEHAVIOUR_CONTIGUOUS:
        return held->is_match == part->is_match;
    case CTI_BEHAVIOUR_MERGED_WITH_PREVIOUS:
        return part->is_match && !held->is_match;
    case CTI_BEHAVIOUR_MERGED_WITH_NEXT:
        return !part->is_match && held->is_match;
    case CTI_BEHAVIOUR_REMOVED:
    case CTI_BEHAVIOUR_ISOLATED:
    case CTI_BEHAVIOUR_COUNT:
        break;
    }
    return false;
}

/* The next part that is not empty; size 0 at the end. */
static ct_status split_next(const cti_step *step, cti_frame *f, cti_piece *out, ct_err *err)
{
    for (;;) {
        bool any = true;
        cti_part part = f->ahead, next = {0};
        if (!f->has_ahead) {
            CT_TRY(raw_part(f, &part, &any, err));
            part.is_match ^= step->invert;
        }
        f->has_ahead = false;
        if (!any) {
            *out = (cti_piece){0};
            return CT_OK;
        }
        while (step->behaviour > CTI_BEHAVIOUR_ISOLATED) {
            CT_TRY(raw_part(f, &next, &any, err));
            next.is_match ^= step->invert;
            if (!any || !joins(step->behaviour, &part, &next)) {
                f->has_ahead = any;
                f->ahead = next;
                break;
            }
            part.end = next.end;
            part.is_match = next.is_match;
        }
        if (part.end > part.start && !(step->behaviour == CTI_BEHAVIOUR_REMOVED && part.is_match)) {
            *out = (cti_piece){.text = f->piece.text + part.start,
                               .size = part.end - part.start,
                               .origin = f->piece.origin + (f->piece.is_rewritten ? 0 : part.start),
                               .first_size = cti_left_of(f->piece.first_size, part.start, part.end),
                               .is_rewritten = f->piece.is_rewritten};
            return CT_OK;
        }
    }
}

/* The next so many characters. */
static void fixed_next(const cti_step *step, cti_frame *f, cti_piece *out)
{
    const size_t start = f->done;
    for (int64_t n = 0; n < step->length && f->done < f->piece.size; n++) {
        const unsigned char *p = (const unsigned char *)f->piece.text + f->done;
        f->done += (size_t)cti_utf8_len(p, p + (f->piece.size - f->done));
    }
    *out = f->piece;
    out->text += start;
    out->size = f->done - start;
    out->origin += f->piece.is_rewritten ? 0 : start;
    out->first_size = cti_left_of(f->piece.first_size, start, f->done);
}

/* --- steps that write a piece anew --- */

/* What a step puts in front of a piece. */
static const char *prefix_of(const cti_step *step, const cti_piece *piece)
{
    if (*piece->text == ' ' || step->kind == CTI_STEP_BYTES) {
        return "";
    }
    if (step->kind != CTI_STEP_METASPACE) {
        return " ";
    }
    const size_t mark_size = strlen(step->mark);
    const bool marked = piece->size >= mark_size && memcmp(piece->text, step->mark, mark_size) == 0;
    const bool wanted = step->scheme == CTI_SCHEME_ALWAYS || (step->scheme == CTI_SCHEME_FIRST && piece->first_size > 0);
    return !marked && wanted ? step->mark : "";
}

/* Blanks become the mark. */
static void mark_blanks(const cti_step *step, const char *p, size_t size, cti_str *out)
{
    const size_t mark_size = strlen(step->mark);
    const char *end = p + size;
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

static void put_anew(const cti_step *step, const char *text, size_t size, cti_str *out)
{
    if (step->kind == CTI_STEP_BYTES) {
        cti_bytes_to_alphabet(text, size, out);
    } else if (step->kind == CTI_STEP_METASPACE) {
        mark_blanks(step, text, size, out);
    } else {
        cti_str_add_n(out, text, size);
    }
}

static ct_status rewrite(const cti_step *step, cti_frame *f, cti_piece *out, ct_err *err)
{
    if (f->no_more) {
        *out = (cti_piece){0};
        return CT_OK;
    }
    f->no_more = true;
    const size_t first = f->piece.first_size;
    cti_str_reset(&f->own);
    cti_str_add(&f->own, prefix_of(step, &f->piece));
    put_anew(step, f->piece.text, first, &f->own);
    const size_t new_first = first > 0 ? f->own.len : 0;
    put_anew(step, f->piece.text + first, f->piece.size - first, &f->own);
    CT_TRY(cti_str_check(&f->own, err));
    *out = f->piece;
    out->first_size = new_first;
    out->text = cti_str_text(&f->own);
    out->size = f->own.len;
    out->is_rewritten = true;
    return CT_OK;
}

/* --- all steps --- */

static void open_frame(cti_scratch *s, const cti_piece *piece)
{
    cti_frame *f = &s->frames[s->depth];
    const cti_step *step = &s->steps[s->depth++];
    const cti_str own = f->own;
    *f = (cti_frame){.own = own, .piece = *piece};
    if (step->kind == CTI_STEP_SPLIT) {
        f->walk = cti_walk_start(&step->pattern, s->matcher, piece->text, piece->size);
        f->match.is_match = true;
    }
}

ct_status cti_pieces_start(cti_scratch *s, const cti_step *steps, size_t n_steps, const cti_piece *whole, ct_err *err)
{
    if (n_steps > s->n_frames) {
        cti_frame *frames = ct_alloc_resize(s->alloc, s->frames, n_steps, sizeof *frames, err);
        if (frames == NULL) {
            return CT_ERR_MEMORY;
        }
        s->frames = frames;
        while (s->n_frames < n_steps) {
            frames[s->n_frames++] = (cti_frame){.own = {.alloc = s->alloc}};
        }
    }
    s->steps = steps;
    s->n_steps = n_steps;
    s->depth = 0;
    s->whole = (cti_piece){0};
    if (whole->size > 0 && n_steps > 0) {
        open_frame(s, whole);
    } else {
        s->whole = *whole;
    }
    return CT_OK;
}

ct_status cti_pieces_next(cti_scratch *s, cti_piece *out, ct_err *err)
{
    while (s->depth > 0) {
        cti_frame *f = &s->frames[s->depth - 1];
        const cti_step *step = &s->steps[s->depth - 1];
        if (step->kind == CTI_STEP_FIXED) {
            fixed_next(step, f, out);
        } else {
            CT_TRY(step->kind == CTI_STEP_SPLIT ? split_next(step, f, out, err) : rewrite(step, f, out, err));
        }
        if (out->size == 0) {
            s->depth--;
        } else if (s->depth == s->n_steps) {
            return CT_OK;
        } else {
            open_frame(s, out);
        }
    }
    *out = s->whole; /* without steps the text is its only piece */
    s->whole = (cti_piece){0};
    return CT_OK;
}

/* --- scratch memory --- */

ct_status cti_scratch_init(cti_scratch *scratch, const ct_alloc *alloc, bool cache, ct_err *err)
{
    *scratch = (cti_scratch){.alloc = alloc,
                             .repaired = {.alloc = alloc},
                             .norm_a = {.alloc = alloc},
                             .norm_b = {.alloc = alloc},
                             .spelt = {.alloc = alloc},
                             .long_word = {.alloc = alloc},
                             .piece = {.alloc = alloc}};
    CT_TRY(cti_matcher_create(alloc, &scratch->matcher, err));
    return cache ? cti_cache_create(alloc, &scratch->cache, err) : CT_OK;
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
    cti_str_deinit(&scratch->spelt);
    for (size_t i = 0; i < scratch->n_frames; i++) {
        cti_str_deinit(&scratch->frames[i].own);
    }
    ct_alloc_free(scratch->alloc, scratch->frames);
    ct_alloc_free(scratch->alloc, scratch->points);
    ct_alloc_free(scratch->alloc, scratch->ids);
    cti_long_word_deinit(&scratch->long_word);
    cti_cache_destroy(&scratch->cache);
    *scratch = (cti_scratch){0};
}
