#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes small byte-level BPE folders with PyPI's `tokenizers` and records what the library makes of hard strings, with these folders and
with the vocabulary that our own trainer wrote (share/ctitan/tokenizer).

    python3 tests/parity/tokenizer/record.py

Writes <name>/tokenizer.json, <name>/tokenizer_config.json and recorded.json beside itself. The test (tests/parity/tokenizer.c) needs none of it.
"""
import json
import os
import random

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
SPECIALS = ["<|begin_of_text|>", "<|end_of_text|>", "<|pad|>"]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CORPUS = ["the cat and the dog and the bird sat on the mat, and then they're off to the 2024 fair",
          "naïve café déjà vu — über Straße, 東京 東京 東京, мир мир миру", "def f(x):\n    return x * x  # square\n\n\n",
          "1234567 1234 12 1 3.14159", "   spaced    out\ttabs\t\tand\r\nlines\n\n"] * 20


def save(name, tok, config):
    os.makedirs(os.path.join(HERE, name), exist_ok=True)
    tok.save(os.path.join(HERE, name, "tokenizer.json"))
    with open(os.path.join(HERE, name, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=1)
        f.write("\n")


def bpe(pre, vocab_size):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=SPECIALS, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator(CORPUS, trainer)
    return tok


def make():
    config = {"bos_token": SPECIALS[0], "eos_token": SPECIALS[1], "pad_token": SPECIALS[2]}
    save("gpt2", bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), 420), config)
    llama = bpe(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), 420)
    llama.post_processor = processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[(SPECIALS[0], 0)])
    save("llama3", llama, {"bos_token": {"content": SPECIALS[0], "special": True}, "eos_token": SPECIALS[1]})
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    plain = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    plain.add_special_tokens(SPECIALS)
    plain.add_tokens([AddedToken("my_1", normalized=False), AddedToken("my_12", normalized=False)])
    save("bytes", plain, config)


def strings():
    out = ["", " ", "a", "Hello, world!", "the cat and the dog", "they're we'll I'd THEY'RE don't", "  two  spaces   three",
           "tab\tand\ttabs\t\t", "line\nline\r\nline\n\n\n  x", "1 12 123 1234 12345 1234567890", "a1b22c333d4444",
           "naïve café", "e\u0301 combining a\u0308\u0323", "東京タワー 🗼", "👩‍👩‍👧‍👦 family 🏳️‍🌈 flag 👍🏽",
           "שלום עולם مرحبا بالعالم", "мир миру", "नमस्ते दुनिया", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 \U0010FFFD", "\u200b\u200c\u200d\ufeff zero width",
           "\u00a0nbsp\u2003em\u3000ideographic", "x" * 300, "ab" * 200, "\x00\x01\x1f control", "<|begin_of_text|>",
           "text <|end_of_text|> more <|pad|><|pad|>", "<|begin_of_text", "my_1 my_12 my_123", "def f(x):\n    return x**2\n",
           "!!! ??? ... --- ___", "'' '\"' ``", "\n", "\r\n\r\n", " \n \n", "ſ ẞ İ ı ǅ", "½ ² ① Ⅷ ٣ 五"]
    rng = random.Random(5)
    ranges = [(0x20, 0x7e), (0xa0, 0x24f), (0x300, 0x36f), (0x400, 0x4ff), (0x5d0, 0x5ea), (0x4e00, 0x4fff), (0x1f300, 0x1f6ff),
              (0x9, 0xd), (0x2000, 0x206f)]
    for _ in range(120):
        n = rng.randint(1, 60)
        out.append("".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(n)))
    return out


def main():
    make()
    folders = {"gpt2": HERE + "/gpt2", "llama3": HERE + "/llama3", "bytes": HERE + "/bytes",
               "shipped": os.path.join(ROOT, "share/ctitan/tokenizer")}
    result = {"versions": {"tokenizers": tokenizers.__version__}, "strings": strings(), "ids": {}}
    for name, folder in folders.items():
        tok = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        rows = {}
        tok.encode_special_tokens = True
        rows["text"] = [tok.encode(s, add_special_tokens=False).ids for s in result["strings"]]
        tok.encode_special_tokens = False
        rows["match"] = [tok.encode(s, add_special_tokens=False).ids for s in result["strings"]]
        rows["template"] = [tok.encode(s).ids for s in result["strings"]]
        rows["decoded"] = [tok.decode(ids, skip_special_tokens=False) for ids in rows["match"]]
        result["ids"][name] = rows
    with open(os.path.join(HERE, "recorded.json"), "w", encoding="utf-8") as f:
        json.dump(result, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")


main()
