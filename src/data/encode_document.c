/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer as the loader's encode function. */
#include "data/data.h"

ct_status ct_encode_document(void *encoder, const char *text, size_t size, ct_tokens *ids, ct_err *err)
{
    return ct_encoder_encode(encoder, text, size, CT_ENCODE_DOCUMENT, ids, err);
}
