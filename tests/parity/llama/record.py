#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records losses, gradient norms and per-parameter gradient norms of llama3_debugmodel as transformers' Llama and torch's AdamW
compute them, from weights that both sides make from the same integers and from the documents in text.jsonl.

    python3 tests/parity/llama/record.py > tests/parity/llama/recorded.json
    python3 tests/parity/llama/record.py tied > tests/parity/llama/recorded_tied.json
    python3 tests/parity/llama/record.py sgd > tests/parity/llama/recorded_sgd.json
    python3 tests/parity/llama/record.py muon > tests/parity/llama/recorded_muon.json
    python3 tests/parity/llama/record.py bf16 > tests/parity/llama/recorded_bf16.json

`tied`: the head is the embedding, 4 key and value heads, RoPE's factor 32, as in Llama 3.2's small models.

`sgd`: torch.optim.SGD with Nesterov's momentum and weight decay. `muon`: torch.optim.Muon for the layers' matrices, torch.optim.AdamW for the rest;
its Newton-Schulz iteration in float32, as ours is, by torch's own function with one word changed.

`bf16`: two layers, one row of 128 tokens: how far each parameter's gradient is from that of a float64 run (|g - g64| / |g64|, Euclidean) where torch
computes in bfloat16, weights and activations, with the loss in float32, as TorchTitan does. For tests/parity/npu.c.

Needs PyPI's torch, transformers and tokenizers. The test (tests/parity/llama.c) needs none of them.
"""
import inspect
import json
import os
import sys

import torch
import transformers
import tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
TIED = sys.argv[1:] == ["tied"]
BF16 = sys.argv[1:] == ["bf16"]
STEPS, ROWS, SEQ = (1, 1, 128) if BF16 else (10, 2, 256)
OPTIM = sys.argv[1] if sys.argv[1:] in (["sgd"], ["muon"]) else "adamw"
LR, WARMUP, DECAY_RATIO = 8e-4, 2, 0.8
M64 = (1 << 64) - 1


def splitmix(x):
    x = (x + 0x9E3779B97F4A7C15) & M64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & M64
    return x ^ (x >> 31)


def fnv(name):
    h = 0xCBF29CE484222325
    for b in name.encode():
        h = ((h ^ b) * 0x100000001B3) & M64
    return h


def weight(name, shape):
    """Element i: an integer in [-2^23, 2^23) from splitmix64(fnv1a(name) + i), times a power of two; norms: that plus 1."""
    import numpy as np
    n = 1
    for d in shape:
        n *= d
    x = (np.uint64(fnv(name)) + np.arange(n, dtype=np.uint64)).astype(np.uint64)
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    v = ((x >> np.uint64(40)).astype(np.int64) - (1 << 23)).astype(np.float64) / (1 << 23)
    if "norm" in name:
        v = 1.0 + v / 8
    elif "embed" in name:
        v = v / 8 if TIED else v * 2
    elif "lm_head" in name:
        v = v / 8
    else:
        v = v / 32
    return torch.from_numpy(v.astype(np.float32)).reshape(shape)


def batches():
    tok = tokenizers.Tokenizer.from_file(os.path.join(ROOT, "share/ctitan/tokenizer/tokenizer.json"))
    bos, eos = tok.token_to_id("<|begin_of_text|>"), tok.token_to_id("<|end_of_text|>")
    tok.encode_special_tokens = True
    inputs, labels, positions = [], [], []
    with open(os.path.join(HERE, "text.jsonl"), encoding="utf-8") as f:
        docs = [json.loads(line)["text"] for line in f if line.strip()]
    while len(inputs) < STEPS * ROWS * SEQ:
        for d in docs:
            ids = [bos] + tok.encode(d, add_special_tokens=False).ids + [eos]
            inputs += ids[:-1]
            labels += ids[1:]
            positions += list(range(len(ids) - 1))
    for s in range(STEPS):
        x, y, p, doc = [], [], [], []
        for r in range(ROWS):
            at = (s * ROWS + r) * SEQ
            rows = positions[at:at + SEQ]
            pos, ids, current, start = [], [], -1, 0
            for i, q in enumerate(rows):
                if i == 0 or q == 0:
                    current, start = current + 1, i
                pos.append(i - start)
                ids.append(current)
            x.append(inputs[at:at + SEQ])
            y.append(labels[at:at + SEQ])
            p.append(pos)
            doc.append(ids)
        yield torch.tensor(x), torch.tensor(y), torch.tensor(p), torch.tensor(doc)


def lr_factor(done):
    decay = round(STEPS * DECAY_RATIO)
    decay = min(decay, STEPS - WARMUP)
    stable = STEPS + 1 - WARMUP - decay
    if done < WARMUP:
        return (done + 1) / WARMUP
    if done < WARMUP + stable:
        return 1.0
    return 1.0 - (done + 1 - WARMUP - stable) / decay


def optimizers(params):
    """(optimizer, rate) pairs: the settings that tests/parity/llama.c gives."""
    if OPTIM == "sgd":
        return [(torch.optim.SGD(params.values(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01, foreach=False), 0.05)]
    if OPTIM == "muon":
        inner = [p for n, p in params.items() if "layers" in n and p.ndim == 2]
        rest = [p for n, p in params.items() if not ("layers" in n and p.ndim == 2)]
        return [(torch.optim.Muon(inner, lr=0.02, momentum=0.95, weight_decay=0.1, eps=1e-8), 0.02),
                (torch.optim.AdamW(rest, lr=LR, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, foreach=False), LR)]
    return [(torch.optim.AdamW(params.values(), lr=LR, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, foreach=False), LR)]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(2)
    if OPTIM == "muon":
        module = sys.modules["torch.optim._muon"]
        source = inspect.getsource(module._zeropower_via_newtonschulz)
        assert source.count("torch.bfloat16") == 1
        exec(source.replace("torch.bfloat16", "torch.float32"), module.__dict__)
    json.dump(errors() if BF16 else run(), sys.stdout, indent=1)
    print()


def make(layers=6):
    rope = {"rope_type": "llama3", "factor": 32.0 if TIED else 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192, "rope_theta": 500000.0}
    config = LlamaConfig(vocab_size=2048, hidden_size=256, intermediate_size=768, num_hidden_layers=layers,
                         num_attention_heads=16, num_key_value_heads=4 if TIED else 16, rms_norm_eps=1e-5, rope_theta=500000.0,
                         rope_scaling=rope, rope_parameters=rope, max_position_embeddings=131072, tie_word_embeddings=TIED,
                         attn_implementation="eager")
    model = LlamaForCausalLM(config).float()
    model.train()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(weight(name, tuple(p.shape)))
    return model


def loss_of(model, x, y, pos, doc):
    dtype = next(model.parameters()).dtype
    allowed = (doc[:, :, None] == doc[:, None, :]) & torch.tril(torch.ones(SEQ, SEQ, dtype=torch.bool))
    mask = torch.zeros(ROWS, 1, SEQ, SEQ, dtype=dtype).masked_fill(~allowed[:, None], torch.finfo(dtype).min)
    logits = model(input_ids=x, attention_mask=mask, position_ids=pos, use_cache=False).logits
    logits = logits.float() if dtype == torch.bfloat16 else logits
    return torch.nn.functional.cross_entropy(logits.reshape(-1, 2048), y.reshape(-1), reduction="sum") / y.numel()


def errors():
    x, y, pos, doc = next(batches())
    grads, losses = [], []
    for dtype in (torch.float64, torch.bfloat16):
        model = make(2)
        inv_freq = model.model.rotary_emb.inv_freq.clone()
        model = model.to(dtype)
        model.model.rotary_emb.inv_freq = inv_freq  # rotary embeddings stay float32
        loss = loss_of(model, x, y, pos, doc)
        loss.backward()
        losses.append(float(loss.detach().double()))
        grads.append({n: p.grad.double() for n, p in model.named_parameters()})
    exact, got = grads
    return {"versions": {"torch": torch.__version__, "transformers": transformers.__version__, "tokenizers": tokenizers.__version__},
            "losses": dict(zip(("float64", "bfloat16"), losses)),
            "gradient_errors": {n: float((got[n] - g).norm() / g.norm()) for n, g in exact.items()},
            "gradient_norms": {n: float(g.norm()) for n, g in exact.items()}}


def run():
    model = make()
    inv_freq = model.model.rotary_emb.inv_freq
    params = dict(model.named_parameters())
    opts = optimizers(params)
    out = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__,
                        "tokenizers": tokenizers.__version__, "python": sys.version.split()[0]},
           "inv_freq": [float(f) for f in inv_freq], "losses": [], "grad_norms": [], "first_grad_norms": {}}
    for step, (x, y, pos, doc) in enumerate(batches()):
        loss = loss_of(model, x, y, pos, doc)
        model.zero_grad()
        loss.backward()
        squares = {n: float(p.grad.double().pow(2).sum()) for n, p in params.items()}
        norm = sum(squares.values()) ** 0.5
        if step == 0:
            out["first_grad_norms"] = {n: s ** 0.5 for n, s in squares.items()}
        scale = min(1.0, 1.0 / (norm + 1e-6))
        with torch.no_grad():
            for p in params.values():
                p.grad.mul_(scale)
        for opt, rate in opts:
            for g in opt.param_groups:
                g["lr"] = rate * lr_factor(step)
            opt.step()
        out["losses"].append(float(loss.detach().double()))
        out["grad_norms"].append(norm)
    return out


main()
