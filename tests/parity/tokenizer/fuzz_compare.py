#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `ctitan tokenizer encode|decode --json-lines` with PyPI's `tokenizers` on random strings.

    python3 tests/parity/tokenizer/fuzz_compare.py --ctitan build/debug/bin/ctitan --strings 2000          # the built families
    python3 tests/parity/tokenizer/fuzz_compare.py --ctitan build/debug/bin/ctitan --strings 200 --random 50   # random pipelines too

For each tokenizer: ids with special text as text and matched, with and without the file's template, and the decoded texts (special tokens
shown and skipped) must be equal. Prints the differences, then the counts; exits with 1 where there are any.
"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import build


def run(ctitan, command, folder, lines, flags):
    text = "\n".join(json.dumps(x, ensure_ascii=True) for x in lines) + "\n"
    try:
        done = subprocess.run([ctitan, "tokenizer", command, folder, "--json-lines"] + flags, input=text.encode(), capture_output=True, timeout=10)
    except subprocess.TimeoutExpired:
        return None, "hangs"
    if done.returncode != 0:
        return None, done.stderr.decode(errors="replace").strip()
    return [json.loads(x) for x in done.stdout.decode().split("\n")[:-1]], ""


def random_tokenizer(rng):
    """A tokenizer of random components around a small model."""
    norm = [lambda: normalizers.NFC(), lambda: normalizers.NFD(), lambda: normalizers.NFKC(), lambda: normalizers.NFKD(), lambda: normalizers.Lowercase(),
            lambda: normalizers.StripAccents(), lambda: normalizers.Strip(rng.random() < 0.5, rng.random() < 0.5), lambda: normalizers.Nmt(),
            lambda: normalizers.Replace(rng.choice([" ", "a", "  ", "▁", "e", "東"]), rng.choice(["", "▁", "xy", " "])),
            lambda: normalizers.Replace(Regex(rng.choice([r"\s+", r" {2,}", r"\p{P}", r"^\s", r"a|b", r"\d+", r"(?<=a) ", r"$"])), rng.choice(["", " ", "zz"])),
            lambda: normalizers.Prepend(rng.choice(["▁", " ", "ab"])), lambda: normalizers.Precompiled(build.charsmap()),
            lambda: normalizers.BertNormalizer(rng.random() < 0.5, rng.random() < 0.5, rng.choice([None, True, False]), rng.random() < 0.5)]
    behaviours = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
    pre = [lambda: pre_tokenizers.Whitespace(), lambda: pre_tokenizers.WhitespaceSplit(), lambda: pre_tokenizers.BertPreTokenizer(),
           lambda: pre_tokenizers.Punctuation(rng.choice(behaviours)), lambda: pre_tokenizers.Digits(rng.random() < 0.5),
           lambda: pre_tokenizers.CharDelimiterSplit(rng.choice(" a,東")), lambda: pre_tokenizers.FixedLength(rng.randint(1, 5)),
           lambda: pre_tokenizers.Metaspace("▁", rng.choice(["always", "first", "never"]), rng.random() < 0.5),
           lambda: pre_tokenizers.Split(rng.choice([" ", "a", "  ", "th", ""]), rng.choice(behaviours), rng.random() < 0.3),
           lambda: pre_tokenizers.Split(Regex(rng.choice([r"\s+", r"\w+", r"\b", r"a*", r"[^\s\p{L}]", r"(?i:[a-k]+)", r"\p{Lu}?\p{Ll}+", r"^.", r"(?=e)", r"\n|\r\n",
                                                          r"[\p{Han}\p{Hiragana}]+", r"\d{2,3}", r".{3}", r"(?:ab|a)+?", r"[a-c&&[^b]]?x?"][:14])),
                                        rng.choice(behaviours), rng.random() < 0.3),
           lambda: pre_tokenizers.Split(Regex(rng.choice([build.GPT2, build.LLAMA3, build.O200K] + build.DEEPSEEK)), rng.choice(behaviours), rng.random() < 0.2)]
    specials = ["<unk>", "<s>", "</s>"]
    kind = rng.choice(["bpe", "bytes", "wordpiece", "wordlevel", "unigram"])
    chain = [rng.choice(pre)() for _ in range(rng.randint(0, 3))]
    affixes = {}
    if kind == "bytes":
        tok = Tokenizer(models.BPE(ignore_merges=rng.random() < 0.5))
        chain.append(pre_tokenizers.ByteLevel(rng.random() < 0.5, use_regex=rng.random() < 0.5))
    elif kind == "bpe":
        affixes = {k: v for k, v in (("continuing_subword_prefix", "##"), ("end_of_word_suffix", "</w>")) if rng.random() < 0.3}
        tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=rng.random() < 0.5, byte_fallback=rng.random() < 0.5, **affixes))
    elif kind == "wordpiece":
        tok = Tokenizer(models.WordPiece(unk_token="<unk>", max_input_chars_per_word=rng.choice([100, 5])))
    elif kind == "wordlevel":
        tok = Tokenizer(models.WordLevel(unk_token="<unk>"))
    else:
        tok = Tokenizer(models.Unigram())
    tok.normalizer = normalizers.Sequence([rng.choice(norm)() for _ in range(rng.randint(0, 3))])
    tok.pre_tokenizer = pre_tokenizers.Sequence(chain)
    more = rng.choice([[], build.BYTES, build.BYTES[:200]]) if kind in ("bpe", "unigram") else []
    common = {"special_tokens": specials + more, "show_progress": False, "vocab_size": 300 + len(more)}
    trainer = {"bytes": lambda: trainers.BpeTrainer(initial_alphabet=build.ALPHABET, **common),
               "bpe": lambda: trainers.BpeTrainer(limit_alphabet=rng.choice([40, 200]), **affixes, **common),
               "wordpiece": lambda: trainers.WordPieceTrainer(limit_alphabet=rng.choice([40, 200]), **common), "wordlevel": lambda: trainers.WordLevelTrainer(**common),
               "unigram": lambda: trainers.UnigramTrainer(unk_token="<unk>", **common)}[kind]()
    tok.train_from_iterator(build.CORPUS[:8] * 4, trainer)
    state = json.loads(tok.to_str())
    state["added_tokens"] = state["added_tokens"][:3]
    if kind == "unigram" and more and rng.random() < 0.7:
        state["model"]["byte_fallback"] = True
    tok = Tokenizer.from_str(json.dumps(state))
    for text in rng.sample(["<l>", "<r>", "<w>", "<lr>", " word ", "ﬁx", "my_12", "  ", "éa東", "the", "東京", "x"], rng.randint(0, 5)):
        token = AddedToken(text, lstrip=rng.random() < 0.3, rstrip=rng.random() < 0.3, single_word=rng.random() < 0.3, normalized=rng.random() < 0.5)
        (tok.add_special_tokens if rng.random() < 0.3 else tok.add_tokens)([token])
    dec = {"bytes": [lambda: decoders.ByteLevel()],
           "bpe": [lambda: decoders.BPEDecoder(), lambda: decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]),
                   lambda: decoders.Metaspace(prepend_scheme=rng.choice(["always", "never", "first"])), lambda: decoders.Fuse(), lambda: None],
           "wordpiece": [lambda: decoders.WordPiece(cleanup=rng.random() < 0.5), lambda: None],
           "wordlevel": [lambda: None, lambda: decoders.Sequence([decoders.Strip("a", 1, 1), decoders.Replace(Regex("[ae]+"), "_"), decoders.WordPiece()])],
           "unigram": [lambda: decoders.Metaspace(), lambda: decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Strip("▁", 2, 0)])]}
    decoder = rng.choice(dec[kind])()
    if decoder is not None:
        tok.decoder = decoder
    return tok


def has_cut_bytes(tok, ids):
    """A run of byte tokens that is no UTF-8: the library makes all of it U+FFFD, byte by byte; ctitan keeps what is whole."""
    run = b""
    for token in [tok.id_to_token(i) for i in ids] + [""]:
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            run += bytes([int(token[3:5], 16)])
            continue
        try:
            run.decode()
        except UnicodeDecodeError:
            return True
        run = b""
    return False


def compare(ctitan, name, folder, strings, show):
    """(ids compared, texts compared, differences)"""
    tok = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    n_ids = n_texts = 0
    bad = []
    for mode, flags in (("text", []), ("match", ["--special-text", "match"]), ("template", ["--special-text", "match", "--template"])):
        tok.encode_special_tokens = mode == "text"
        wanted = [tok.encode(s, add_special_tokens=mode == "template").ids for s in strings]
        found, error = run(ctitan, "encode", folder, strings, flags + ["--on-unknown", "drop"])
        if found is None:
            return n_ids, n_texts, [(name, mode, "refused", error)]
        n_ids += len(strings)
        bad += [(name, mode, s, "%s, wanted %s" % (f[:40], w[:40])) for s, w, f in zip(strings, wanted, found) if w != f]
        if len(found) != len(strings):
            bad.append((name, mode, "lines", "%d, wanted %d" % (len(found), len(strings))))
    # The library does not skip a special token whose normal form is another text.
    hidden = {i for i, t in tok.get_added_tokens_decoder().items() if t.special and tok.id_to_token(i) != t.content}
    for skip in (False, True):
        texts = [tok.decode(ids, skip_special_tokens=skip) for ids in wanted]
        found, error = run(ctitan, "decode", folder, wanted, ["--skip-special"] if skip else [])
        if found is None:
            return n_ids, n_texts, bad + [(name, "decode", "refused", error)]
        n_texts += len(texts)
        bad += [(name, "decode skip" if skip else "decode", ids[:30], "%r, wanted %r" % (f[:200], w[:200])) for ids, w, f in zip(wanted, texts, found)
                if w != f and not has_cut_bytes(tok, ids) and not (skip and hidden & set(ids))]
    for row in bad[:show]:
        print("%s %s: %r: %s" % row, flush=True)
    return n_ids, n_texts, bad


def job(args, temp, name, tok):
    rng = random.Random(name + str(args.seed))
    if tok is None:
        rng = random.Random(int(name.split()[1]))
        tok = random_tokenizer(rng)
    folder = os.path.join(temp, name.replace(" ", "_"))
    os.makedirs(folder, exist_ok=True)
    tok.save(os.path.join(folder, "tokenizer.json"))
    strings = build.HARD + [build.random_string(rng) for _ in range(args.strings)]
    n_ids, n_texts, bad = compare(args.ctitan, name, folder, strings, 5)
    if bad and bad[0][2] == "refused":
        print(*bad[0])
    if bad and args.keep:
        os.makedirs(args.keep, exist_ok=True)
        tok.save(os.path.join(args.keep, name.replace(" ", "_") + ".json"))
    if not name.startswith("random") or bad:
        print("%-16s %d lists of ids, %d texts, %d differences" % (name, n_ids, n_texts, len(bad)), flush=True)
    return n_ids, n_texts, len(bad)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ctitan", required=True)
    parser.add_argument("--strings", type=int, default=1000, help="for each tokenizer")
    parser.add_argument("--random", type=int, default=0, help="random pipelines beside the families")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="names of families, with commas")
    parser.add_argument("--keep", default="", help="folder to keep random tokenizers in that differ")
    args = parser.parse_args()
    total, gave_up = [0, 0, 0], 0
    with tempfile.TemporaryDirectory() as temp:
        jobs = []
        if args.only != "none":
            for name, (tok, _) in build.build().items():
                if not args.only or name in args.only.split(","):
                    jobs.append((name, tok))
        for i in range(args.random):
            jobs.append(("random %d" % (args.seed * 100000 + i), None))
        for name, tok in jobs:
            # In a process of its own: the library's trainers and models panic or hang on some random pipelines.
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(read)
                signal.alarm(20 if tok is None else 3600)
                result = job(args, temp, name, tok)
                os.write(write, json.dumps(result).encode())
                os._exit(0)
            os.close(write)
            with os.fdopen(read) as f:
                text = f.read()
            os.waitpid(pid, 0)
            if not text:
                gave_up += 1
                continue
            total = [a + b for a, b in zip(total, json.loads(text))]
    print("in all %d lists of ids, %d texts, %d differences; the library gave up on %d pipelines" % (*total, gave_up))
    sys.exit(1 if total[2] else 0)


if __name__ == "__main__":
    main()
