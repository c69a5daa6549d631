#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks PyPI's `tokenizers` what each of its components makes of every code point, and writes

    src/tokenizer/tokenizer_unicode_tables.h   where its Unicode versions differ from version 14 (Python 3.11's unicodedata)
    tests/parity/tokenizer/unicode.json        a hash over all code points of each class and mapping

The library is built of parts that follow different versions of Unicode: its regular expressions 16, its normal forms and accents 9, its
punctuation and control characters 8, its digits and lower case 17. Each table holds what that part knows otherwise.

    python3.11 tests/parity/tokenizer/unicode.py
"""
import json
import os
import sys
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers as N, pre_tokenizers as P

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "..", "..", "src", "tokenizer", "tokenizer_unicode_tables.h")
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf".split()
assert unicodedata.unidata_version == "14.0.0", "needs a Python with Unicode 14"


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def regex_class(pattern):
    pre = P.Split(Regex(r"(?<=\n)" + pattern), "isolated")
    return {c for c in POINTS if len(pre.pre_tokenize_str("\n" + chr(c))) > 1}


def splits(pre):
    return {c for c in POINTS if len(pre.pre_tokenize_str("a" + chr(c))) > 1}


def mapping(norm):
    return {c: norm.normalize_str(chr(c)) for c in POINTS}


def fnv(data, h=0xCBF29CE484222325):
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def hash_set(points):
    """Over the ends of the ranges, three bytes each."""
    return "%016x" % fnv(b"".join(x.to_bytes(3, "little") for r in ranges(points) for x in r))


def hash_map(m):
    """Over each code point that changes and what it becomes."""
    return "%016x" % fnv(b"".join(c.to_bytes(3, "little") + m[c].encode() + b"\xff" for c in POINTS if m[c] != chr(c)))


def emit(f, comment, name, rows):
    f.write("/* %s */\nstatic const unicode_range %s[] = {\n" % (comment, name))
    line = "   "
    for row in rows:
        row = list(row) + [0] * (3 - len(row))
        cell = " {0x%x, 0x%x, %s}," % (row[0], row[1], row[2])
        if len(line) + len(cell) > 118:
            f.write(line + "\n")
            line = "   "
        line += cell
    f.write(line + "\n};\n")


def main():
    onig = {cat: regex_class(r"\p{%s}" % cat) for cat in CATEGORIES}
    major = {letter: set().union(*(onig[c] for c in CATEGORIES if c[0] == letter)) for letter in "LMNPSZ"}
    newer = sorted((lo, hi, cat) for cat in CATEGORIES for lo, hi in ranges(c for c in onig[cat] if unicodedata.category(chr(c)) != cat))
    han = regex_class(r"\p{Han}")
    han_newer = ranges(c for c in han if unicodedata.category(chr(c)) == "Cn")
    accents = mapping(N.StripAccents())
    marks = {c for c in POINTS if accents[c] == ""}
    bert = N.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    nonspacing = {c for c in POINTS if bert.normalize_str("a" + chr(c)) == "a"}
    clean = mapping(N.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False))
    removed = {c for c in POINTS if clean[c] == ""}
    punctuation = splits(P.Punctuation())
    ours = major["P"] | set(map(ord, "$+<=>^`|~"))
    numeric = splits(P.Digits(individual_digits=True))
    lower = mapping(N.Lowercase())
    lower_newer = [(c, ord(lower[c])) for c in POINTS if lower[c] != chr(c).lower()]
    lower_rows = []
    for c, to in lower_newer:
        if lower_rows and lower_rows[-1][1] == c - 1 and lower_rows[-1][2] == to - c:
            lower_rows[-1][1] = c
        else:
            lower_rows.append([c, c, to - c])
    with open(OUT, "w", encoding="ascii") as f:
        f.write("/* SPDX-License-Identifier: Apache-2.0 */\n/* Written by tests/parity/tokenizer/unicode.py from what PyPI's tokenizers %s does with each code point. */\n"
                % tokenizers.__version__)
        f.write("typedef struct unicode_range {\n    uint32_t first, last;\n    int32_t value;\n} unicode_range;\n\n")
        emit(f, "Assigned after Unicode 14, with the category.", "newer", [(a, b, "UTF8PROC_CATEGORY_" + c.upper()) for a, b, c in newer])
        emit(f, "Han ideographs after Unicode 14.", "han_newer", han_newer)
        emit(f, "Marks that its normal forms (Unicode 9) do not know: combining class 0, no accents.", "marks_unknown",
             ranges(major["M"] - marks))
        emit(f, "No marks any more, but accents for it.", "marks_only_there", ranges(marks - major["M"]))
        emit(f, "Nonspacing marks that BertNormalizer does not know.", "nonspacing_unknown", ranges(onig["Mn"] - nonspacing))
        emit(f, "The reverse.", "nonspacing_only_there", ranges(nonspacing - onig["Mn"]))
        emit(f, "Punctuation that it does not know.", "punctuation_unknown", ranges(ours - punctuation))
        emit(f, "The reverse.", "punctuation_only_there", ranges(punctuation - ours))
        emit(f, "Digits beyond Unicode 16.", "numeric_newer", ranges(numeric - major["N"]))
        assert not major["N"] - numeric
        emit(f, "What BertNormalizer's clean_text removes.", "bert_removed", ranges(removed))
        emit(f, "Lower case beyond Unicode 14: what is added to the code point.", "lower_newer", lower_rows)
        # Decompositions younger than its normal forms, among what Python's Unicode 14 knows; what is younger still is in `newer`.
        nfkd = mapping(N.NFKD())
        young = {c for c in POINTS if nfkd[c] != unicodedata.normalize("NFKD", chr(c))}
        emit(f, "Decompositions that its normal forms do not know.", "decompositions_unknown", ranges(young))
    word = P.Whitespace()
    out = {"version": tokenizers.__version__, "sets": {}, "maps": {}}
    for name in ["L", "M", "N", "P", "S", "Z"]:
        out["sets"]["regex \\p{%s}" % name] = hash_set(major[name])
    for name in ["Lu", "Ll", "Lt", "Lm", "Lo", "Nd"]:
        out["sets"]["regex \\p{%s}" % name] = hash_set(onig[name])
    out["sets"]["regex \\p{Han}"] = hash_set(han)
    out["sets"]["regex \\w"] = hash_set(regex_class(r"\w"))
    out["sets"]["regex \\s"] = hash_set(regex_class(r"\s"))
    out["sets"]["regex \\d"] = hash_set(regex_class(r"\d"))
    out["sets"]["punctuation"] = hash_set(punctuation)
    out["sets"]["numeric"] = hash_set(numeric)
    out["sets"]["word"] = hash_set(c for c in POINTS if len(word.pre_tokenize_str("a" + chr(c) + "a")) == 1)
    out["sets"]["space"] = hash_set(c for c in POINTS if word.pre_tokenize_str("a" + chr(c) + "a") == [("a", (0, 1)), ("a", (2, 3))])
    out["sets"]["marks"] = hash_set(marks)
    out["sets"]["nonspacing"] = hash_set(nonspacing)
    for name, norm in {"NFC": N.NFC(), "NFD": N.NFD(), "NFKC": N.NFKC(), "NFKD": N.NFKD(), "Nmt": N.Nmt(), "Strip": N.Strip(),
                       "Lowercase": N.Lowercase(), "StripAccents": N.StripAccents(), "ByteLevel": N.ByteLevel(),
                       "BertNormalizer": N.BertNormalizer()}.items():
        out["maps"][name] = hash_map(mapping(norm))
    # The order of marks: each after one of class 230 and before one of class 220.
    out["maps"]["order"] = hash_map({c: N.NFC().normalize_str("a\u0301" + chr(c) + "\u0323") for c in POINTS if c in major["M"]} |
                                    {c: chr(c) for c in POINTS if c not in major["M"]})
    with open(os.path.join(HERE, "unicode.json"), "w", encoding="ascii") as f:
        json.dump(out, f, indent=1)
        f.write("\n")


main()
