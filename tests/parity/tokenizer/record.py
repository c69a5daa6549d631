#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the small tokenizers of build.py as folders beside itself and records what PyPI's `tokenizers` (and `tiktoken`) make of hard strings with
them, and with the vocabulary that our own trainer wrote (share/ctitan/tokenizer).

    pip install tokenizers tiktoken && python3 tests/parity/tokenizer/record.py

recorded.json holds the strings; for each tokenizer and mode the ids of the first strings and a hash over each ten strings (FNV-1a of the ids as four
bytes each, or of the texts, with 0xff behind each string). The test (tests/parity/tokenizer.c) needs none of these programs.
"""
import json
import os
import random

import tiktoken
import tokenizers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

import build
from fuzz_compare import has_cut_bytes

HERE = os.path.dirname(os.path.abspath(__file__))
BLOCK, SHOWN = 10, 12
KEYS = ["bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token"]


def fnv(chunks):
    h = 0xCBF29CE484222325
    for chunk in chunks:
        for byte in chunk + b"\xff":
            h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return "%016x" % h


def blocks(chunks):
    return [fnv(chunks[i:i + BLOCK]) for i in range(0, len(chunks), BLOCK)]


def id_bytes(ids):
    return b"".join(i.to_bytes(4, "little") for i in ids)


def add_config(tok, config):
    """Adds what tokenizer_config.json names, as TorchTitan does, but for tokens that tokenizer.json has among its own already: ctitan matches them
    as tokenizer.json says (TorchTitan lets the config's flags replace those)."""
    known = {t.content for t in tok.get_added_tokens_decoder().values()}

    def token(value):
        value = {"content": value} if isinstance(value, str) else value
        return AddedToken(value["content"], single_word=value.get("single_word", False), lstrip=value.get("lstrip", False),
                          rstrip=value.get("rstrip", False), normalized=value.get("normalized", True), special=value.get("special", True))
    for value in config.get("added_tokens_decoder", {}).values():
        if token(value).content not in known:
            tok.add_special_tokens([token(value)])
    for key in KEYS:
        if config.get(key) and token(config[key]).content not in known:
            tok.add_special_tokens([token(config[key])])


def record(tok, strings):
    rows = {}
    for mode in ("text", "match", "template"):
        tok.encode_special_tokens = mode == "text"
        ids = [tok.encode(s, add_special_tokens=mode == "template").ids for s in strings]
        rows[mode] = {"ids": ids[:SHOWN], "blocks": blocks([id_bytes(i) for i in ids])}
    for skip in (False, True):
        # A run of byte tokens that is no UTF-8 is decoded otherwise by the library: left out.
        texts = ["" if has_cut_bytes(tok, i) else tok.decode(i, skip_special_tokens=skip) for i in ids]
        rows["skipped" if skip else "decoded"] = {"blocks": blocks([t.encode() for t in texts])}
    rows["cut"] = [k for k, i in enumerate(ids) if has_cut_bytes(tok, i)]
    return rows


def record_tiktoken(strings, ranks, specials):
    enc = tiktoken.Encoding("test", pat_str=build.LLAMA3, mergeable_ranks=ranks, special_tokens=specials)
    text = [enc.encode(s, disallowed_special=()) for s in strings]
    match = [enc.encode(s, allowed_special="all") for s in strings]
    decoded = [enc.decode_bytes(i) for i in match]
    rows = {"text": text, "match": match, "template": match}
    rows = {k: {"ids": v[:SHOWN], "blocks": blocks([id_bytes(i) for i in v])} for k, v in rows.items()}
    return rows | {"decoded": {"blocks": blocks(decoded)}, "cut": []}


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write(text)


def main():
    rng = random.Random(5)
    strings = build.HARD + [build.random_string(rng) for _ in range(300)]
    raw = [bytes(rng.randrange(256) if rng.random() < 0.5 else rng.choice(b"a \n\xe2\x96\x81\xf0\x9f\x98\xed\xa0\xc0\xf4\x90") for _ in range(rng.randint(1, 24)))
           for _ in range(100)]
    result = {"versions": {"tokenizers": tokenizers.__version__, "tiktoken": tiktoken.__version__}, "strings": strings,
              "raw": [b.hex() for b in raw], "tokenizers": {}}
    for name, (tok, config) in build.build().items():
        folder = os.path.join(HERE, name)
        if name == "added":
            config = {"mask_token": "<mask>", "added_tokens_decoder": {str(tok.get_vocab_size()): {"content": "<cfg>", "lstrip": True, "normalized": False}}}
        os.makedirs(folder, exist_ok=True)
        tok.save(os.path.join(folder, "tokenizer.json"), pretty=False)
        write(os.path.join(folder, "tokenizer_config.json"), json.dumps(config, indent=1, ensure_ascii=False) + "\n")
        tok = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        add_config(tok, config)
        rows = record(tok, strings)
        repaired = [b.decode("utf-8", errors="replace") for b in raw]
        tok.encode_special_tokens = True
        rows["raw"] = {"blocks": blocks([id_bytes(tok.encode(s, add_special_tokens=False).ids) for s in repaired])}
        result["tokenizers"][name] = rows
    result["tokenizers"]["shipped"] = record(Tokenizer.from_file(os.path.join(HERE, "../../../share/ctitan/tokenizer/tokenizer.json")), strings)
    # GPT-2's files, with the pipeline that TorchTitan puts round them.
    folder = os.path.join(HERE, "vocab_merges")
    state = json.loads(build.build()["gpt2"][0].to_str())
    merges = [m if isinstance(m, str) else " ".join(m) for m in state["model"]["merges"]]
    write(folder + "/vocab.json", json.dumps(state["model"]["vocab"], ensure_ascii=False))
    write(folder + "/merges.txt", "#version: 0.2\n" + "\n".join(merges) + "\n")
    tok = Tokenizer(models.BPE.from_file(folder + "/vocab.json", folder + "/merges.txt"))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    result["tokenizers"]["vocab_merges"] = record(tok, strings)
    # tiktoken's file, with Llama 3's special tokens.
    ranks = build.tiktoken_ranks()
    write(os.path.join(HERE, "tiktoken", "tokenizer.model"), build.tiktoken_text())
    named = {0: "<|begin_of_text|>", 1: "<|end_of_text|>", 6: "<|start_header_id|>", 7: "<|end_header_id|>", 9: "<|eot_id|>"}
    reserved = iter(range(256))
    specials = {named.get(i) or "<|reserved_special_token_%d|>" % next(reserved): len(ranks) + i for i in range(256)}
    result["tokenizers"]["tiktoken"] = record_tiktoken(strings, {t: i for i, t in enumerate(ranks)}, specials)
    with open(os.path.join(HERE, "recorded.json"), "w", encoding="utf-8") as f:
        json.dump(result, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
