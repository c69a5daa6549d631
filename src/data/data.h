/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `data`: documents -> tokens -> packed rows -> batches, exactly resumable.
 *
 *     ct_corpus *corpus = NULL;
 *     CT_TRY(ct_dataset_resolve(alloc, "c4_test", dataset_path, share_dir, &path, err));
 *     CT_TRY(ct_corpus_open(alloc, path, NULL, &corpus, err));
 *     ct_text_processor text = {.tokenizer = tokenizer, .flags = CT_ENCODE_DOCUMENT};
 *     ct_processor processor = ct_processor_of_text(&text);
 *     ct_loader_options options = {.seq_len = 256, .rows = 8, .streams = 2, .n_local_streams = 2, .repeat = true,
 *                                  .prefetch_batches = 2};
 *     ct_loader *loader = NULL;
 *     CT_TRY(ct_loader_create(alloc, corpus, &processor, &options, &loader, err));
 *     CT_TRY(ct_loader_next(loader, &batch, err));                     // as often as wanted; CT_END_OF_DATA ends it
 *     ct_loader_destroy(&loader);
 *     ct_corpus_destroy(&corpus);
 *
 * The order. A corpus is a list of documents in file order. Stream s of G reads the s-th of G contiguous, balanced
 * slices of it (the first N mod G are one document longer), in file order in every epoch, and fills the rows
 * [s*B/G, (s+1)*B/G) of each micro-batch of B rows; micro-batches are consecutive calls. A document's ids are what the
 * processor gives (BOS + tokens + EOS); input = ids[:-1], label = ids[1:], so no label crosses documents. Inputs
 * are concatenated and cut at seq_len: a document that does not fit goes on at the start of the stream's next row, and
 * nothing is lost. Positions count within the document and start again at 0 at a row's start. Documents of fewer than 2
 * ids give nothing. This is TorchTitan's order without shuffling where G is its data-parallel degree.
 *
 * What it does not do yet: shuffling, mixing, first-fit packing.
 *
 * Headers: document.h (documents, samples, processors), corpus.h (files and their documents), loader.h (batches, state).
 * Files: dataset (names), corpus_files (paths to files), corpus_format (what a file is), source, decode, cursor (a file's contents by
 * offset), index, index_cache (where documents begin), tokens, tokens_megatron (files of tokens), output (files written whole or not
 * at all), corpus (files together), reader (one thread's reads), jsonl (one line),
 * text_repair (UTF-8), document (the processor of text), stream (cursor and packing), loader (batches), loader_thread
 * (prefetch), loader_state (resume), entropy.
 */
#ifndef CTI_DATA_DATA_H
#define CTI_DATA_DATA_H

#include "data/corpus.h"
#include "data/document.h"
#include "data/loader.h"

#endif
