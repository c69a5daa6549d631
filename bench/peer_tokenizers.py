#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyPI's `tokenizers` on the same documents, for bench/text; the same lines in and out as bench_tokenizer:

    peer_tokenizers.py FOLDER DOCUMENTS

Threads are set by the environment (TOKENIZERS_PARALLELISM, RAYON_NUM_THREADS), so N says nothing here. `encode` takes
encode_batch_fast (no offsets) of all documents, `encode1` encode() of each; lists of ids are made outside the time. `decode`
is decode_batch, `decode1` decode() of each. `train SIZE` is the trainer with our own trainer's settings."""
import json
import os
import sys
import time
import zlib
from array import array

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIALS = ["<|begin_of_text|>", "<|end_of_text|>", "<|pad|>"]


def documents(path):
    data = open(path, "rb").read()
    at, out = 0, []
    while at + 4 <= len(data):
        size = int.from_bytes(data[at:at + 4], "little")
        out.append(data[at + 4:at + 4 + size].decode("utf-8", errors="replace"))
        at += 4 + size
    return out


def train(texts, size):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PATTERN), "isolated"),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIALS, show_progress=False,
                                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tok


def main():
    tok = None if sys.argv[1] == "-" else Tokenizer.from_file(os.path.join(sys.argv[1], "tokenizer.json"))
    if tok:
        tok.encode_special_tokens = True
    texts = documents(sys.argv[2])
    print(json.dumps({"documents": len(texts)}), flush=True)
    ids = []
    for line in sys.stdin:
        what, n = line.split()
        start, cpu = time.perf_counter(), time.process_time()
        if what == "encode":
            result = tok.encode_batch_fast(texts, add_special_tokens=False)
        elif what == "encode1":
            result = [tok.encode(t, add_special_tokens=False) for t in texts]
        elif what == "decode":
            tok.decode_batch(ids, skip_special_tokens=False)
        elif what == "decode1":
            for i in ids:
                tok.decode(i, skip_special_tokens=False)
        else:
            train(texts, int(n))
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        rss = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:")) / 1024
        if what.startswith("encode"):
            ids = [e.ids for e in result]
            del result
        flat = array("i")
        for i in ids:
            flat.extend(i)
        print(json.dumps({"seconds": seconds, "cpu": cpu, "ids": len(flat), "crc": zlib.crc32(flat.tobytes()), "rss_mb": rss}), flush=True)


main()
