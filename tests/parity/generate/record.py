#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what transformers generates greedily from small Llama models, whose weights both sides make from the same integers, and what
its logits processors leave of recorded logits.

    python3 tests/parity/generate/record.py > tests/parity/generate/recorded.json

Needs PyPI's torch and transformers. The test (tests/parity/generate.c) needs neither.
"""
import json
import sys

import numpy as np
import torch
import transformers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
from transformers.generation.logits_process import (LogitsProcessorList, MinPLogitsWarper, RepetitionPenaltyLogitsProcessor,
                                                    TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)

M64 = (1 << 64) - 1
NEW = 24
SCALED = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16, "rope_theta": 500000.0}
MODELS = {
    "plain": dict(num_key_value_heads=4, rope_parameters={"rope_type": "default", "rope_theta": 10000.0}, tie_word_embeddings=False),
    "tied, grouped, scaled": dict(num_key_value_heads=2, rope_parameters=SCALED, tie_word_embeddings=True),
    "wide heads": dict(num_key_value_heads=1, head_dim=32, rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
                       tie_word_embeddings=False),
}
PROMPTS = [1, 7, 45, 70]


def fnv(name):
    h = 0xCBF29CE484222325
    for b in name.encode():
        h = ((h ^ b) * 0x100000001B3) & M64
    return h


def integers(name, n):
    """splitmix64(fnv1a(name) + i) >> 40, less 2^23."""
    x = (np.uint64(fnv(name)) + np.arange(n, dtype=np.uint64)).astype(np.uint64)
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x >> np.uint64(40)).astype(np.int64) - (1 << 23)


def weight(name, shape):
    n = int(np.prod(shape))
    v = integers(name, n).astype(np.float64) / (1 << 23)
    v = 1.0 + v / 8 if "norm" in name else v / 2 if "embed" in name else v / 4
    return torch.from_numpy(v.astype(np.float32)).reshape(shape)


def record_model(name, given):
    config = LlamaConfig(vocab_size=320, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                         rms_norm_eps=1e-5, max_position_embeddings=128, attn_implementation="eager", **given)
    model = LlamaForCausalLM(config).float().eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.copy_(weight(key, tuple(p.shape)))
    model.generation_config = GenerationConfig(do_sample=False, max_new_tokens=NEW, pad_token_id=0)
    keys = ["model_type", "hidden_act", "attention_bias", "mlp_bias", "hidden_size", "num_hidden_layers", "num_attention_heads",
            "num_key_value_heads", "intermediate_size", "vocab_size", "max_position_embeddings", "head_dim", "rms_norm_eps",
            "tie_word_embeddings", "rope_parameters"]
    written = config.to_dict()
    out = {"name": name, "config": {k: written[k] for k in keys}, "prompts": []}
    for n in PROMPTS:
        ids = [int(v) % 320 for v in integers("prompt %d" % n, n)]
        got = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, n, dtype=torch.long), output_logits=True,
                             return_dict_in_generate=True)
        margin = 1.0
        for logits in got.logits:
            top = torch.topk(logits[0].double(), 2).values
            margin = min(margin, float((top[0] - top[1]) / logits[0].abs().max()))
        assert margin > 1e-4, (name, n, margin)
        new = got.sequences[0, n:].tolist()
        assert len(set(new)) > 4, "a text that repeats itself proves little"
        out["prompts"].append({"ids": ids, "new": new, "margin": margin, "first_logits": [float(v) for v in got.logits[0][0]],
                               "last_logits": [float(v) for v in got.logits[-1][0]]})
    return out


CASES = [dict(t=1.0), dict(t=0.7), dict(t=1.0, k=5), dict(t=1.0, k=1), dict(t=1.0, k=1000), dict(t=1.0, p=0.5), dict(t=1.0, p=0.9),
         dict(t=2.0, p=0.95), dict(t=1.0, p=0.0), dict(t=0.8, k=50, p=0.95), dict(t=0.8, k=7, p=0.6), dict(t=1.0, m=0.1),
         dict(t=1.5, m=0.02), dict(t=1.0, m=1.0), dict(t=0.9, k=40, p=0.9, m=0.05), dict(t=1.0, r=1.3), dict(t=0.8, r=1.3, k=30, p=0.9),
         dict(t=1.0, r=0.5, p=0.8)]


def record_case(case):
    logits = torch.from_numpy((integers("logits", 300).astype(np.float64) / (1 << 21)).astype(np.float32)).double()[None]
    seen = torch.tensor([[int(v) % 300 for v in integers("seen", 40)]])
    chain = LogitsProcessorList()
    if "r" in case:
        chain.append(RepetitionPenaltyLogitsProcessor(case["r"]))
    if case["t"] != 1.0:
        chain.append(TemperatureLogitsWarper(case["t"]))
    if "k" in case:
        chain.append(TopKLogitsWarper(case["k"]))
    if "p" in case:
        chain.append(TopPLogitsWarper(case["p"]))
    if "m" in case:
        chain.append(MinPLogitsWarper(case["m"]))
    probabilities = torch.softmax(chain(seen, logits.clone()), dim=-1)[0]
    kept = [i for i in range(300) if probabilities[i] > 0]
    return {"temperature": case["t"], "top_k": case.get("k", 0), "top_p": case.get("p", 1.0), "min_p": case.get("m", 0.0),
            "penalty": case.get("r", 1.0), "kept": kept, "probabilities": [float(probabilities[i]) for i in kept]}


def main():
    torch.set_num_threads(1)
    out = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__},
           "models": [record_model(name, given) for name, given in MODELS.items()], "cases": [record_case(c) for c in CASES]}
    json.dump(out, sys.stdout)
    print()


main()
