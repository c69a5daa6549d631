#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One training step of llama3_debugmodel (or one transformer block) in PyTorch, as the peer of bench/cpu.

    peer_torch.py --batch 8 --seq 256 --variant compile --precision float32
    peer_torch.py --block --seq 512 ...

Builds the model, does the first step and prints one line of JSON; then reads numbers from standard input, a line each, does that
many steps and prints {"seconds": [...], "rss_mb": ...}; ends at end of file. So the driver can alternate it with other programs while
neither imports, compiles nor warms up again.

Shapes as docs/benchmarks.md tells: dim 256, 6 layers, 16 heads, vocabulary 2048, hidden 768, untied head, fused q, k, v; sum of
cross-entropy over all labels divided by their number, gradient norm clipped to 1, AdamW (fused), loss read each step.

variants   plain     products and softmax written out (scores in memory)
           sdpa      scaled_dot_product_attention
           compile   torch.compile of the step's forward and backward, with sdpa
precision  float32   everything
           autocast  float32 weights, products in bfloat16 (torch.autocast)
           bf16      bfloat16 weights for forward and backward, cast each step from float32 masters that AdamW updates
"""
import argparse
import json
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


def rope_table(seq, head_dim, theta=500000.0):
    freq = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angle = torch.outer(torch.arange(seq, dtype=torch.float64), freq).float()
    return torch.polar(torch.ones_like(angle), angle)


def rotate_complex(x, table):
    b, t, h, d = x.shape
    pairs = torch.view_as_complex(x.float().view(b, t, h, d // 2, 2))
    return torch.view_as_real(pairs * table.view(1, t, 1, d // 2)).view(b, t, h, d).to(x.dtype)


def rotate_real(x, cos, sin):
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    c, s = cos[None, :, None, :], sin[None, :, None, :]
    return torch.stack((even * c - odd * s, odd * c + even * s), -1).flatten(-2).to(x.dtype)


class Block(nn.Module):
    def __init__(self, dim, heads, kv_heads, hidden, args):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, dim // heads
        self.plain, self.complex_rope = args.variant == "plain", args.variant != "compile"
        self.wqkv = nn.Linear(dim, (heads + 2 * kv_heads) * self.head_dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)
        self.attention_norm = nn.RMSNorm(dim, eps=1e-5)
        self.ffn_norm = nn.RMSNorm(dim, eps=1e-5)

    def forward(self, x, rope):
        b, t, d = x.shape
        h, k, hd = self.heads, self.kv_heads, self.head_dim
        qkv = self.wqkv(self.attention_norm(x)).view(b, t, h + 2 * k, hd)
        both, value = qkv.split((h + k, k), dim=2)
        both = rotate_complex(both, rope[0]) if self.complex_rope else rotate_real(both, rope[1], rope[2])
        q, key = both.split((h, k), dim=2)
        q, key, value = q.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
        if self.plain:
            if k != h:
                key, value = key.repeat_interleave(h // k, 1), value.repeat_interleave(h // k, 1)
            scores = torch.baddbmm(rope[3].to(q.dtype), q.reshape(b * h, t, hd), key.reshape(b * h, t, hd).transpose(1, 2),
                                   alpha=hd ** -0.5)
            y = torch.bmm(scores.softmax(-1), value.reshape(b * h, t, hd)).view(b, h, t, hd)
        else:
            y = F.scaled_dot_product_attention(q, key, value, is_causal=True, enable_gqa=k != h)
        x = x + self.wo(y.transpose(1, 2).reshape(b, t, d))
        n = self.ffn_norm(x)
        return x + self.w2(F.silu(self.w1(n)) * self.w3(n))


class Model(nn.Module):
    def __init__(self, args):
        super().__init__()
        dim, vocab = 256, 2048
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(Block(dim, 16, 16, 768, args) for _ in range(6))
        self.norm = nn.RMSNorm(dim, eps=1e-5)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids, labels, rope):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, rope)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="sum") / labels.numel()


class OneBlock(nn.Module):
    """Forward and backward of one block of dim 2048, its gradient with respect to the input too."""

    def __init__(self, args):
        super().__init__()
        self.block = Block(2048, 32, 8, 8192, args)

    def forward(self, x, dy, rope):
        return (self.block(x, rope) * dy).sum()


class Step:
    def __init__(self, args):
        torch.manual_seed(1)
        self.block, self.precision = args.block, args.precision
        self.model = OneBlock(args) if args.block else Model(args)
        for p in self.model.parameters():
            if p.ndim == 2:
                nn.init.normal_(p, std=0.02)
        self.masters = list(self.model.parameters())
        if self.precision == "bf16":
            self.masters = [nn.Parameter(p.detach().clone()) for p in self.model.parameters()]
            self.model.bfloat16()
        self.copies = list(self.model.parameters())
        self.optimizer = torch.optim.AdamW(self.masters, lr=8e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        head_dim = 64 if args.block else 16
        table = rope_table(args.seq, head_dim)
        mask = torch.full((args.seq, args.seq), float("-inf")).triu(1) if args.variant == "plain" else None
        self.rope = (table, table.real.contiguous(), table.imag.contiguous(), mask)
        shape = (args.batch, args.seq)
        if args.block:
            dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32
            self.inputs = (torch.randn(*shape, 2048, dtype=dtype, requires_grad=True), torch.randn(*shape, 2048, dtype=dtype))
        else:
            self.inputs = (torch.randint(0, 2048, shape), torch.randint(0, 2048, shape))
        self.forward = torch.compile(self.model) if args.variant == "compile" else self.model

    def __call__(self):
        if self.precision == "bf16" and not self.block:
            with torch.no_grad():
                torch._foreach_copy_(self.copies, self.masters)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "autocast"):
            loss = self.forward(*self.inputs, self.rope)
        loss.backward()
        if not self.block:
            if self.precision == "bf16":
                for master, copy in zip(self.masters, self.copies):
                    master.grad = copy.grad.float()
                    copy.grad = None
            torch.nn.utils.clip_grad_norm_(self.masters, 1.0, foreach=True)
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        for p in self.copies if self.block else ():
            p.grad = None
        return loss.item()


def timed(step, count):
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return seconds


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--seq", type=int, default=256)
    p.add_argument("--variant", choices=("plain", "sdpa", "compile"), default="sdpa")
    p.add_argument("--precision", choices=("float32", "autocast", "bf16"), default="float32")
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--block", action="store_true", help="one block of dim 2048, forward and backward only")
    args = p.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    step = Step(args)

    def report(**what):
        what["rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(what), flush=True)

    report(version=torch.__version__, threads=torch.get_num_threads(), capability=torch.backends.cpu.get_cpu_capability(),
           first_step_s=timed(step, 1)[0])
    for line in sys.stdin:
        report(seconds=timed(step, int(line)))


if __name__ == "__main__":
    main()
