/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `data`: documents -> tokens -> packed rows -> batches, exactly resumable.
 *
 *     ct_sources sources = {0};
 *     CT_TRY(ct_sources_open(alloc, &(ct_sources_options){.dataset = "c4_test", .share_dir = dir}, &sources, err));
 *     ct_text_processor text = {.tokenizer = tokenizer, .flags = CT_ENCODE_DOCUMENT};
 *     ct_processor processor = ct_processor_of_text(&text);
 *     ct_loader_options options = {.seq_len = 256, .rows = 8, .streams = 2, .n_local_streams = 2, .repeat = true,
 *                                  .prefetch_batches = 2};
 *     ct_loader *loader = NULL;
 *     CT_TRY(ct_loader_create(alloc, sources.items, sources.n, &processor, &options, &loader, err));
 *     CT_TRY(ct_loader_next(loader, &batch, err));                     // as often as wanted; CT_END_OF_DATA ends it
 *     ct_loader_destroy(&loader);
 *     ct_sources_close(&sources);
 *
 * The order (docs/data-order.md). A corpus is a list of documents in file order. Stream s of G reads the s-th of G contiguous,
 * balanced slices of it (the first N mod G are one document longer) and fills the rows [s*B/G, (s+1)*B/G) of each micro-batch of B
 * rows; micro-batches are consecutive calls. Where the loader shuffles, the slice is one of that epoch's permutation of the list. Several
 * sources are mixed document by document: next comes the source that is furthest behind its share of the stream's tokens.
 *
 * The rows. A document's ids are what the processor gives (BOS + tokens + EOS); input = ids[:-1], label = ids[1:], so no label crosses
 * documents. Documents of fewer than 2 ids give nothing. Positions count within the document and start again at 0 at a row's start.
 * Concat-then-split: inputs are concatenated and cut at seq_len, a document that does not fit goes on at the start of the stream's next
 * row, and nothing is lost. First-fit: a document goes whole into the first of a set of open rows with room; one that fits nowhere sends
 * the set out and begins the next. This is TorchTitan's order where G is its data-parallel degree.
 *
 * Headers: document.h (documents, samples, processors), corpus.h (files and their documents), loader.h (batches, state).
 * Files: dataset (names), corpus_files (paths to files), corpus_format (what a file is), source, decode, cursor (a file's contents by
 * offset), index, index_cache (where documents begin), tokens, tokens_megatron (files of tokens), output (files written whole or not
 * at all), corpus (files together), reader (one thread's reads), jsonl (one line),
 * text_repair (UTF-8), document (the processor of text), stream (rows, batches), loader (batches), loader_thread
 * (prefetch), loader_state (resume), survey (what a corpus holds), token_writer, tokenize (files of tokens made); sources (corpora that settings name); inside stream.h: permutation, mix, feed (documents to
 * samples, by threads), first_fit.
 */
#ifndef CTI_DATA_DATA_H
#define CTI_DATA_DATA_H

#include "data/chat.h"
#include "data/corpus.h"
#include "data/document.h"
#include "data/loader.h"
#include "data/tokenize.h"

#endif
