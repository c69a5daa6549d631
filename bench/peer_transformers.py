#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generation beside transformers: a Llama of random weights is written into a folder, which `ctitan generate` and transformers' `generate`
read in turns, greedily, float32, with a cache. Prints tokens a second of reading a prompt and of writing, medians over the turns.

    python3 bench/peer_transformers.py CTITAN [--small] [--turns 5] [--threads 2]

CTITAN: the program, of a Release build. --small: the debug model's sizes rather than 100 M parameters. Needs PyPI's torch and transformers.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

PROMPT, NEW = 256, 64


def ours(program, folder, text, threads):
    out = subprocess.run([program, "generate", "--checkpoint", folder, "--prompt", text, "--max-new-tokens", str(NEW), "--temperature", "0",
                          "--ignore-eos", "--json-lines"], capture_output=True, text=True, check=True,
                         env=dict(os.environ, OMP_NUM_THREADS=str(threads)))
    read, wrote = re.search(r"read \d+ tokens \((\d+) tokens/s\), wrote \d+ \(([\d.]+) tokens/s\)", out.stderr).groups()
    return float(read), float(wrote), json.loads(out.stdout)["ids"], json.loads(out.stdout)["prompt_tokens"]


def theirs(model, ids):
    """Reading: a forward pass of the prompt for one new token; writing: the rest of NEW tokens."""
    x = torch.tensor([ids])
    how = dict(attention_mask=torch.ones_like(x), do_sample=False, pad_token_id=0, eos_token_id=None)
    start = time.perf_counter()
    model.generate(x, max_new_tokens=1, **how)
    one = time.perf_counter() - start
    start = time.perf_counter()
    new = model.generate(x, max_new_tokens=NEW, **how)[0, len(ids):].tolist()
    return len(ids) / one, (NEW - 1) / max(time.perf_counter() - start - one, 1e-9), new


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    sizes = (dict(hidden_size=256, intermediate_size=768, num_hidden_layers=6, num_attention_heads=16) if a.small
             else dict(hidden_size=768, intermediate_size=2048, num_hidden_layers=14, num_attention_heads=12))
    model = LlamaForCausalLM(LlamaConfig(vocab_size=2048, max_position_embeddings=2048, **sizes)).float().eval()
    share = os.path.join(os.path.dirname(os.path.abspath(a.program)), "..", "share", "ctitan", "tokenizer")
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(os.path.join(share, name), folder)
        text = " ".join("%d" % (i * 7919 % 1000) for i in range(PROMPT))[:PROMPT * 2]
        encoded = subprocess.run([a.program, "tokenizer", "encode", share, text, "--bos"], capture_output=True, text=True, check=True).stdout
        ids = [int(i) for i in encoded.split()]
        rows, same = [], True
        for _ in range(a.turns + 1):  # the first turn of each warms up
            r, w, new, n = ours(a.program, folder, text, a.threads)
            pr, pw, peer = theirs(model, ids)
            assert n == len(ids)
            same = same and new == peer
            rows.append((r, w, pr, pw))
    middle = [statistics.median(c) for c in zip(*rows[1:])]
    print("%.0f M parameters, prompt of %d tokens, %d new, %d threads, %d turns, torch %s, transformers %s" % (
        sum(p.numel() for p in model.parameters()) / 1e6, len(ids), NEW, a.threads, a.turns, torch.__version__, transformers.__version__))
    print("  reading  ctitan %.0f tokens/s, transformers %.0f, ratio %.2f" % (
        middle[0], middle[2], statistics.median(r[0] / r[2] for r in rows[1:])))
    print("  writing  ctitan %.1f tokens/s, transformers %.1f, ratio %.2f" % (
        middle[1], middle[3], statistics.median(r[1] / r[3] for r in rows[1:])))
    print("  the same text: %s" % ("yes" if same else "no"))


sys.exit(main())
