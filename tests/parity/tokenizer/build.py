# SPDX-License-Identifier: Apache-2.0
"""Small tokenizers with the pipelines of well-known families, trained by PyPI's `tokenizers` on a corpus that this script makes; and hard
strings. Used by record.py and fuzz_compare.py."""
import base64
import functools
import json
import os
import random
import struct
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK = [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CORPUS = ["the cat and the dog and the bird sat on the mat, and then they're off to the 2024 fair",
          "naïve café déjà vu — über Straße, 東京 東京 東京, мир мир миру", "def f(x):\n    return x * x  # square\n\n\n",
          "1234567 1234 12 1 3.14159", "   spaced    out\ttabs\t\tand\r\nlines\n\n", "שלום עולם مرحبا بالعالم नमस्ते दुनिया",
          "It's what we'll say: \"don't!\" (they've said so). HELLO World, I'm here; you'd know?", "👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 ∑ ≤ € ½ ²"] * 20
BYTES = ["<0x%02X>" % b for b in range(256)]
ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())


def byte_bpe(pre, size, specials, **model):
    tok = Tokenizer(models.BPE(**model))
    tok.pre_tokenizer = pre
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, special_tokens=specials, show_progress=False,
                                                        initial_alphabet=ALPHABET))
    return tok


def split_bytes(*patterns):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), "isolated") for p in patterns] +
                                   [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def sentence_bpe(size=520):
    """BPE on U+2581 with byte fallback, as converted from SentencePiece: ids 0-2 special, then the bytes."""
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tok.train_from_iterator([t for t in CORPUS if all(ord(c) < 0x400 for c in t)], trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<unk>", "<s>", "</s>"] + BYTES, show_progress=False))
    state = json.loads(tok.to_str())
    state["added_tokens"] = state["added_tokens"][:3]
    tok = Tokenizer.from_str(json.dumps(state))
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tok


def darts(table):
    """A double-array trie in Darts-clone's layout over {key: text}, with the texts: what SentencePiece calls a precompiled charsmap."""
    texts, offsets = b"", {}
    for text in table.values():
        if text not in offsets:
            offsets[text] = len(texts)
            texts += text.encode() + b"\0"
    trie = {}
    for key, text in table.items():
        node = trie
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[-1] = offsets[text]
    units, used = {0: 0}, {0}

    def place(node, at):
        labels = [b for b in node if b >= 0] + ([0] if -1 in node else [])
        base = 1
        while any((base ^ label) in used for label in labels) or base == at:
            base += 1
        used.update(base ^ label for label in labels)
        offset = base ^ at
        assert offset < 1 << 21
        units[at] |= offset << 10
        if -1 in node:
            units[at] |= 1 << 8
            units[base] = node[-1] | 1 << 31
        for byte in (b for b in node if b >= 0):
            units[base ^ byte] = byte
        for byte in (b for b in node if b >= 0):
            place(node[byte], base ^ byte)

    place(trie, 0)
    size = (max(units) | 255) + 1
    blob = b"".join(struct.pack("<I", units.get(i, 0)) for i in range(size))
    return struct.pack("<I", len(blob)) + blob + texts


@functools.lru_cache
def charsmap():
    table = {chr(c): unicodedata.normalize("NFKC", chr(c)) for c in list(range(0xA0, 0x250)) + list(range(0xFF01, 0xFF5F)) + list(range(0x2460, 0x2474))}
    table = {k: v for k, v in table.items() if k != v}
    table.update({"\t": " ", "\n": " ", "\r": " ", "\u200b": "", "\ufeff": "", "\u3000": " ", "e\u0301": "é", "a\u0300": "à", "o\u0302": "ô"})
    return darts(table)


def unigram(size, normalizer, pre, **more):
    tok = Tokenizer(models.Unigram())
    tok.normalizer = normalizer
    tok.pre_tokenizer = pre
    tok.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=size, unk_token="<unk>", show_progress=False,
                                                            special_tokens=["<pad>", "</s>", "<unk>"], **more))
    tok.decoder = decoders.Metaspace()
    return tok


def build():
    """name -> (tokenizer, tokenizer_config)"""
    out = {}
    ends = ["<|begin_of_text|>", "<|end_of_text|>", "<|pad|>"]
    config = {"bos_token": ends[0], "eos_token": ends[1], "pad_token": ends[2]}
    out["gpt2"] = byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), 420, ends), config
    llama3 = byte_bpe(split_bytes(LLAMA3), 420, ends, ignore_merges=True)
    llama3.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<|begin_of_text|> $A", special_tokens=[(ends[0], 0)])])
    out["llama3"] = llama3, {"bos_token": {"content": ends[0], "special": True}, "eos_token": ends[1]}
    plain = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(ALPHABET)}, merges=[]))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    plain.add_special_tokens(ends)
    plain.add_tokens([AddedToken("my_1", normalized=False), AddedToken("my_12", normalized=False)])
    out["bytes"] = plain, config
    llama2 = sentence_bpe()
    llama2.pre_tokenizer = None
    state = json.loads(llama2.to_str())
    state["pre_tokenizer"] = None
    llama2 = Tokenizer.from_str(json.dumps(state))
    llama2.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    sentence = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    out["llama2"] = llama2, sentence
    mistral = sentence_bpe()
    mistral.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    out["mistral"] = mistral, sentence
    qwen2 = byte_bpe(split_bytes(QWEN2), 480, [])
    qwen2.normalizer = normalizers.NFC()
    qwen2.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    qwen2.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    out["qwen2"] = qwen2, {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    deepseek = byte_bpe(split_bytes(*DEEPSEEK), 480, [])
    deepseek.add_special_tokens(["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"])
    deepseek.add_tokens([AddedToken("<｜User｜>", normalized=False), AddedToken("<｜Assistant｜>", normalized=False)])
    out["deepseek_v3"] = deepseek, {"bos_token": "<｜begin▁of▁sentence｜>", "eos_token": "<｜end▁of▁sentence｜>"}
    out["o200k"] = byte_bpe(split_bytes(O200K), 480, ["<|endoftext|>"]), {"eos_token": "<|endoftext|>"}
    bert = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    bert.normalizer = normalizers.BertNormalizer()
    bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    bert.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=400, show_progress=False,
                                                               special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    bert.add_tokens([AddedToken("[MASK]", lstrip=True, special=True, normalized=False)])
    bert.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    bert.decoder = decoders.WordPiece()
    out["bert"] = bert, {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}
    t5 = unigram(320, normalizers.Sequence([normalizers.Precompiled(charsmap()), normalizers.Replace(Regex(" {2,}"), " ")]),
                 pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]))
    t5.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    out["t5"] = t5, {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    gemma = unigram(200, normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous"))
    state = json.loads(gemma.to_str())
    state["model"]["vocab"][3:3] = [[b, -20.0 - i / 16] for i, b in enumerate(BYTES)]
    state["model"]["byte_fallback"] = True
    gemma = Tokenizer.from_str(json.dumps(state))
    gemma.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    out["gemma"] = gemma, {"eos_token": "</s>", "pad_token": "<pad>"}
    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.train_from_iterator(CORPUS, trainers.WordLevelTrainer(vocab_size=200, special_tokens=["[UNK]", "[PAD]"], show_progress=False))
    out["wordlevel"] = words, {"pad_token": "[PAD]"}
    clip = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>", fuse_unk=False))
    clip.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    clip.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    clip.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=700, end_of_word_suffix="</w>", initial_alphabet=ALPHABET, show_progress=False,
                                                         special_tokens=["<|startoftext|>", "<|endoftext|>"]))
    clip.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0), trim_offsets=False, add_prefix_space=False)
    clip.decoder = decoders.BPEDecoder(suffix="</w>")
    out["clip"] = clip, {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>"}
    added = byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=True), 300, [])
    added.normalizer = normalizers.NFKC()
    added.add_tokens([AddedToken("<l>", lstrip=True, normalized=False), AddedToken("<r>", rstrip=True, normalized=False), AddedToken("<w>", single_word=True),
                      AddedToken("word", single_word=True, normalized=False), AddedToken("<lr>", lstrip=True, rstrip=True), AddedToken("ﬁx", normalized=True),
                      AddedToken("  ", normalized=False), AddedToken("    ", normalized=False)])
    added.add_tokens([AddedToken("ｆull", normalized=True)])
    added.add_special_tokens([AddedToken("<|s|>", normalized=False), AddedToken("<|s|>x", normalized=False)])
    out["added"] = added, {}
    marks = sentence_bpe(300)  # what stands for the first character, where normalizers put characters in front and take some away again
    marks.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Prepend("ab"), normalizers.Replace(Regex("a|the "), ""), normalizers.Replace(Regex(r"^b\s*e?"), "zz"),
                                             normalizers.StripAccents(), normalizers.Strip(True, False)])
    marks.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex("z|t"), "isolated"), pre_tokenizers.Metaspace("▁", "first", False)])
    out["marks"] = marks, {}
    return out


def tiktoken_ranks():
    """The bytes of each token of the `llama3` tokenizer, in the order of ids without the special ones: what a tiktoken file holds."""
    tok = build()["llama3"][0]
    to_byte = {}
    extra = 256
    for b in range(256):
        printable = 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255
        to_byte[chr(b if printable else extra)] = b
        extra += not printable
    vocab = sorted(((i, t) for t, i in tok.get_vocab(with_added_tokens=True).items() if i >= 3))
    return [bytes(to_byte[c] for c in t) for _, t in vocab]


def tiktoken_text():
    return "".join("%s %d\n" % (base64.b64encode(t).decode(), i) for i, t in enumerate(tiktoken_ranks()))


HARD = ["", " ", "a", "Hello, world!", "the cat and the dog", "they're we'll I'd THEY'RE don't", "  two  spaces   three", "tab\tand\ttabs\t\t",
        "line\nline\r\nline\n\n\n  x", "1 12 123 1234 12345 1234567890", "a1b22c333d4444", "naïve café", "e\u0301 combining a\u0308\u0323", "東京タワー 🗼",
        "👩‍👩‍👧‍👦 family 🏳️‍🌈 flag 👍🏽", "שלום עולם مرحبا بالعالم", "мир миру", "नमस्ते दुनिया", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 \U0010FFFD",
        "\u200b\u200c\u200d\ufeff zero width", "\u00a0nbsp\u2003em\u3000ideographic", "x" * 300, "ab" * 200, "\x00\x01\x1f control",
        "<|begin_of_text|>", "text <|end_of_text|> more <|pad|><|pad|>", "<|begin_of_text", "my_1 my_12 my_123", "def f(x):\n    return x**2\n",
        "!!! ??? ... --- ___", "'' '\"' ``", "\n", "\r\n\r\n", " \n \n", "ſ ẞ İ ı ǅ", "½ ² ① Ⅷ ٣ 五", "<s>a</s> <unk> <0x41>", "[CLS] a [MASK]b [SEP] [UNK]",
        "a <l> b <r>  c <w> <w>d word words <lr>  ﬁx fix full ｆull", "<|im_start|>user\nhi<|im_end|>\n<think>x</think>", "<｜User｜>hi<｜Assistant｜>",
        "▁a▁▁b ▁ c", "\u2581", "ab</w>c", "��", "\ufffd", "don''t '''s", "l'été d'où", "a.b.c,d;e", "x²³", "一二三abc五", "각각 각", "s\u0307\u0323 s\u0323\u0307",
        "\u212a\u212b\ufb01\ufb06", "Ω Ω", "a\u200db", "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", "z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢", "\u0b95\u0bcd\u0bb7", "ใจดี", "\u202eabc\u202c",
        "0x1F 1e-5 1_000 3.14.15", "snake_case camelCase PascalCase SCREAMING_CASE", "https://example.org/a?b=c&d=%20", "{\"k\": [1, 2, {\"x\": null}]}", "  \u00a0 \u2003 x"]
RANGES = [(0x20, 0x7E), (0x61, 0x7A), (0xA0, 0x24F), (0x300, 0x36F), (0x400, 0x4FF), (0x5D0, 0x5EA), (0x621, 0x64A), (0x4E00, 0x4FFF), (0x1F300, 0x1F6FF),
          (0x9, 0xD), (0x2000, 0x206F), (0x3040, 0x30FF), (0xAC00, 0xAD00), (0xFF00, 0xFFEF), (0x900, 0x97F), (0x1100, 0x11FF), (0x10000, 0x10FFFF), (0x1D400, 0x1D7FF)]
WORDS = ["the ", "cat", " and", "'re", "they", "東京", "мир", "  ", "\n", "1234", "2024", " <", "<|pad|>", "<s>", "</s>", "[MASK]", "<l>", "<r>", "<w>", "<lr>", " word ", "ﬁx",
         "<|s|>", "ｆull", "<think>", "my_12", "café", "e\u0301", "▁", "🏳️‍🌈", "é", ".", ",", " n't", "\u3000", "\u200b", "x", "</w>", "<0xE2>", "<unk>", "[UNK]", "\u0323", "\u0301"]


def random_string(rng):
    out = []
    for _ in range(rng.randint(1, 30)):
        kind = rng.random()
        if kind < 0.45:
            out.append(rng.choice(WORDS))
        elif kind < 0.55:
            out.append(rng.choice(" \n\tab1'") * rng.randint(1, 6))
        elif kind < 0.6:
            out.append(bytes(rng.randrange(256) for _ in range(rng.randint(1, 8))).decode("utf-8", errors="replace"))
        else:
            low, high = rng.choice(RANGES)
            out.append("".join(chr(c) for c in (rng.randint(low, high) for _ in range(rng.randint(1, 6))) if not 0xD800 <= c < 0xE000))
    return "".join(out)
