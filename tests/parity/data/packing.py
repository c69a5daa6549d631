"""Prints rows of grain's first-fit packing as C tables: the documents of each row, in order. Usage: python3 packing.py
(pip install grain numpy; recorded with the versions that it prints)"""
import importlib.metadata

import grain
import grain.experimental
import numpy

CASES = [(10, 2, False, 42, 8), (10, 2, True, 42, 8), (10, 4, True, 42, 3), (10, 8, True, 7, 40), (16, 8, True, 1000, 60), (12, 3, True, 0, 60), (9, 5, False, 3, 50), (16, 8, True, 2**32 - 3, 60)]


def rows(lengths, seq, bins, shuffle, seed):
    source = [{"input": numpy.full(n, i + 1)} for i, n in enumerate(lengths)]
    data = grain.MapDataset.source(source).to_iter_dataset()
    packed = grain.experimental.FirstFitPackIterDataset(data, length_struct={"input": seq}, num_packing_bins=bins, seed=seed, shuffle_bins=shuffle)
    return [[int(k) for k in dict.fromkeys(r["input"].tolist()) if k] for r in packed]


def lengths(seq, n):
    return [1 + (i * i * 7 + i * 3) % seq for i in range(n)]


if __name__ == "__main__":
    print(f"/* grain {importlib.metadata.version('grain')}, numpy {numpy.__version__}; document i (from 1) has 1 + ((i-1)^2 * 7 + (i-1) * 3) % seq inputs */")
    for seq, bins, shuffle, seed, n in CASES:
        flat = []
        for row in rows(lengths(seq, n), seq, bins, shuffle, seed):
            flat += row + [0]
        print(f"    {{{seq}, {bins}, {str(shuffle).lower()}, {seed}, {n}, {len(flat)}, {{{', '.join(map(str, flat))}}}}},")
