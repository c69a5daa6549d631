#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of llama3_debugmodel in PyTorch's FSDP2 over Gloo, as the peer of bench/ranks: one process a rank, told by RANK and WORLD_SIZE.

    RANK=0 WORLD_SIZE=2 peer_fsdp.py --batch 2 --seq 256 --steps 16 --store /tmp/store

The model is that of peer_torch.py (variant sdpa); fully_shard on each block and on the whole, gradients clipped to norm 1, AdamW (fused), loss
read each step. Rank 0 prints {"seconds": [...]} of all steps."""
import argparse
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import peer_torch  # noqa: E402


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch", type=int, required=True)
    p.add_argument("--seq", type=int, required=True)
    p.add_argument("--steps", type=int, required=True)
    p.add_argument("--store", required=True)
    args = p.parse_args()
    args.variant, args.block = "sdpa", False
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    dist.init_process_group("gloo", init_method=f"file://{args.store}", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(1)
    model = peer_torch.Model(args)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    table = peer_torch.rope_table(args.seq, 16)
    rope = (table, table.real.contiguous(), table.imag.contiguous(), None)
    torch.manual_seed(2 + rank)
    ids, labels = (torch.randint(0, 2048, (args.batch, args.seq)) for _ in range(2))
    seconds = []
    for _ in range(args.steps):
        begin = time.perf_counter()
        loss = model(ids, labels, rope)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        mean = loss.detach()
        dist.all_reduce(mean)
        mean.item()
        seconds.append(time.perf_counter() - begin)
    if rank == 0:
        print(json.dumps({"seconds": seconds}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
