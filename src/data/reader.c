/* SPDX-License-Identifier: Apache-2.0 */
/* One thread's reads of a corpus. */
#include "data/data_internal.h"

struct ct_reader {
    const ct_alloc *alloc;
    const ct_corpus *corpus; /* borrows */
};

ct_status ct_reader_create(const ct_alloc *alloc, const ct_corpus *corpus, ct_reader **out_reader, ct_err *err)
{
    ct_reader *reader = CT_NEW(alloc, ct_reader, err);
    if (reader == NULL) {
        return CT_ERR_MEMORY;
    }
    *reader = (ct_reader){.alloc = alloc, .corpus = corpus};
    *out_reader = reader;
    return CT_OK;
}

void ct_reader_destroy(ct_reader **reader)
{
    if (reader != NULL && *reader != NULL) {
        ct_alloc_free((*reader)->alloc, *reader);
        *reader = NULL;
    }
}

ct_status cti_reader_read(ct_reader *reader, int64_t number, ct_document *document, ct_text_repairs *repairs,
                          cti_line_fault *fault, ct_err *err)
{
    const ct_corpus *corpus = reader->corpus;
    const cti_corpus_part *part = cti_corpus_part_of(corpus, number);
    const unsigned char *p = part->map.data + corpus->offsets[number];
    const unsigned char *end = part->map.data + part->map.size;
    cti_str *text = &document->text;
    document->kind = CT_DOCUMENT_TEXT;
    document->ids.n = 0;
    fault->bad = CT_BAD_NONE;
    cti_str_reset(text);
    cti_str_add_n(text, "", 0);
    if (part->format == CT_FILE_JSONL) {
        end = cti_line_end(p, end);
        (void)cti_jsonl_text(p, (size_t)(end - p), corpus->text_field, text, repairs, fault); /* in fault->bad */
    } else {
        repairs->n_invalid_utf8 += cti_text_add_repaired(text, p, (size_t)(end - p));
    }
    return cti_str_check(text, err);
}

ct_status cti_corpus_fail(const ct_corpus *corpus, int64_t number, const cti_line_fault *fault, ct_err *err)
{
    char place[CTI_PLACE_BYTES];
    ct_corpus_place(corpus, number, place, sizeof place);
    return fault->column > 0 ? CT_FAIL(err, CT_ERR_DATA, "%s: %s, at byte %zu: %s", place, ct_bad_words(fault->bad),
                                       fault->column, fault->detail)
                             : CT_FAIL(err, CT_ERR_DATA, "%s: %s: %s", place, ct_bad_words(fault->bad), fault->detail);
}

ct_status ct_reader_read(ct_reader *reader, int64_t number, ct_document *document, ct_bad *out_bad, ct_text_repairs *repairs,
                         ct_err *err)
{
    ct_text_repairs unused = {0};
    cti_line_fault fault;
    if (number < 0 || number >= reader->corpus->n_documents) {
        return CT_FAIL(err, CT_ERR_RANGE, "document %lld of %lld", (long long)number, (long long)reader->corpus->n_documents);
    }
    CT_TRY(cti_reader_read(reader, number, document, repairs != NULL ? repairs : &unused, &fault, err));
    if (out_bad != NULL) {
        *out_bad = fault.bad;
    }
    return fault.bad == CT_BAD_NONE ? CT_OK : cti_corpus_fail(reader->corpus, number, &fault, err);
}
