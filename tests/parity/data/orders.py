"""Prints orders of others as C tables: permutations of an index (grain's index_shuffle, 4 rounds) and of rows (NumPy's
default_rng(seed).permuted). Usage: python3 orders.py   (pip install grain numpy; recorded with the versions that it prints)"""
import importlib.metadata

import numpy
from grain._src.python.experimental.index_shuffle.python import index_shuffle_module

print(f"/* grain {importlib.metadata.version('grain')}, numpy {numpy.__version__} */")
NUMBERS = [2, 3, 4, 10, 255, 2000, 65536, 65538, 100000, 131073, 1 << 32, (1 << 32) + 6, 10**12 + 1, 1 << 40]
for n in NUMBERS:
    for seed in (0, 42, 43, 2**32 - 1):
        at = sorted({i for i in (0, 1, 2, n // 3, n // 2, n - 2, n - 1) if 0 <= i < n})
        at = (at * 7)[:7]
        to = [index_shuffle_module.index_shuffle(i, max_index=n - 1, seed=seed, rounds=4) for i in at]
        print(f"    {{{n}, {seed}u, {{{', '.join(map(str, at))}}}, {{{', '.join(map(str, to))}}}}},")
print()
for seed in (0, 1, 42, 50, 2**32 - 1, 2**32 + 5, 123456789012345, 2**63 - 1):
    for n in (1, 2, 3, 8, 16):
        row = numpy.random.default_rng(seed).permuted(numpy.arange(n)).tolist()
        print(f"    {{{seed}u, {n}, {{{', '.join(map(str, row))}}}}},")
