# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/cpu. Each takes the command line and the results so far, adds its own under its name and prints a table."""
import statistics
import tempfile

import lib
from lib import percent, quartiles, table

CASES = {"1x256": (1, 256), "8x256": (8, 256), "2x2048": (2, 2048), "8x2048": (8, 2048)}
# Steps of one turn, of which the first are not counted: the program's start and the first touch of memory.
TURNS = {"1x256": (24, 4), "8x256": (7, 2), "2x2048": (4, 1), "8x2048": (3, 1)}
PEER_TURN = {"1x256": 12, "8x256": 3, "2x2048": 2, "8x2048": 1}
PEER_PRECISIONS = {"float32": ("float32",), "bfloat16": ("bf16", "autocast")}
SLOW_PEER_S = 2.0  # a peer whose step takes longer gets fewer steps, and its kind's other variants are not tried


def precisions(args):
    return [args.precision] if args.precision else ["float32", "bfloat16"]


def short(precision):
    return "f32" if precision == "float32" else "bf16"


def seconds_text(values):
    q1, median, q3 = values
    unit, scale = ("us", 1e6) if median < 0.01 else ("ms", 1e3)
    return f"{median * scale:.1f} {unit}", f"{q1 * scale:.1f} .. {q3 * scale:.1f}"


def rate_text(values):
    q1, median, q3 = quartiles(values)
    return f"{median:.0f}", f"{q1:.0f} .. {q3:.0f}"


def kernels(args, held):
    held["kernels"] = {}
    for precision in precisions(args):
        lines = lib.tsv([args.folder / "bin/bench_kernels", short(precision)] + (["--quick"] if args.quick else []),
                        lib.environment(args.threads))
        rows = []
        for line in lines:
            if line[0] != "row":
                continue
            median, q1, q3, limit = map(float, line[3:7])
            rows.append([line[1], *seconds_text((q1, median, q3)), seconds_text((limit,) * 3)[0], line[7], percent(limit / median)])
            held["kernels"][f"{line[1]} {line[2]}"] = {"median_s": median, "q1_s": q1, "q3_s": q3, "limit_s": limit, "bound": line[7]}
        table(f"kernels, {precision}", ["kernel", "median", "quartiles", "limit", "bound by", "share"], rows)


def gemm(args, held):
    held["gemm"] = {}
    for precision in precisions(args):
        lines = lib.tsv([args.folder / "bin/bench_gemm", short(precision)] + (["--quick"] if args.quick else []),
                        lib.environment(args.threads))
        rows, version = [], ""
        for line in lines:
            if line[0] == "peer":
                version = line[1]
            if line[0] != "gemm":
                continue
            flops, ours, q1, q3, peer, p1, p3, limit = map(float, line[3:11])
            theirs = ["", "", ""]
            if peer:
                theirs = [f"{flops / peer / 1e9:.0f}", f"{flops / p3 / 1e9:.0f} .. {flops / p1 / 1e9:.0f}", f"{peer / ours:.2f}"]
            rows.append([line[1], f"{flops / ours / 1e9:.0f}", f"{flops / q3 / 1e9:.0f} .. {flops / q1 / 1e9:.0f}",
                         percent(flops / ours / limit), *theirs])
            held["gemm"][f"{line[1]} {line[2]}"] = {"gflops": flops / ours / 1e9, "share": flops / ours / limit,
                                                    "onednn_gflops": flops / peer / 1e9 if peer else None,
                                                    "ratio": peer / ours if peer else None}
        note = f"GFLOP/s; beside {version}" if any(r[4] for r in rows) else f"GFLOP/s; no peer ({version})"
        table(f"matrix products, {precision}", ["M x N x K", "ours", "quartiles", "of peak", "oneDNN", "quartiles", "ours / oneDNN"],
              rows, note)


def open_peers(args, case, precision):
    """The PyTorch variants worth measuring, each built, compiled, through its first step and one more, whose seconds it keeps."""
    peers = []
    batch, seq = CASES[case]
    for kind in PEER_PRECISIONS[precision]:
        for variant in ("sdpa", "plain", "compile"):
            if variant == "plain" and seq > 1024 or args.quick and variant == "compile":
                continue
            try:
                peer = lib.Peer(args.threads, batch, seq, variant, kind)
                peer.step_s = peer.tokens / peer.steps(1)[0]
            except lib.Failure as e:
                print(f"  {e}")
                continue
            peers.append(peer)
            if peer.step_s > SLOW_PEER_S * max(1, batch * seq / 2048):
                break
    return peers


def one_case(args, case, precision, data):
    """Alternates ours and each of PyTorch's variants; tokens a second of all counted steps."""
    batch, seq = CASES[case]
    steps, skip = TURNS[case]
    rounds = args.rounds or (2 if args.quick else 5)
    peers = open_peers(args, case, precision) if args.torch and case != "8x2048" else []
    ours, theirs, peaks, sustained, rss = [], {p.name: [] for p in peers}, [], [], []
    for r in range(rounds):
        limit = lib.limits(args.folder, args.threads)
        sustained.append(limit["sustained"])
        peaks.append(limit["dot_bf16"] if precision == "bfloat16" and limit["dot_bf16"] else limit["fma"])
        rates, mb = lib.train(args.folder, args.threads, batch, seq, steps, precision, data)
        ours += rates[skip:]
        rss.append(mb)
        for p in peers:
            if p.step_s < 8 or r == 0:
                theirs[p.name] += p.steps(max(1, min(PEER_TURN[case], int(3 / p.step_s))))
    for p in peers:
        p.close()
    peak = statistics.median(peaks)
    median = statistics.median(ours)
    return {"ours": ours, "share": median * lib.debugmodel_flops(seq) / peak, "peak": peak,
            "of_sustained": median * lib.debugmodel_flops(seq) / statistics.median(sustained),
            "peers": theirs, "rss_mb": max(rss), "peer_rss_mb": {p.name: p.rss_mb for p in peers}}


def step(args, held):
    found = held.setdefault("step", {})
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        data = lib.corpus(folder)
        for precision in precisions(args):
            for case in CASES:
                if args.case and case not in args.case or args.quick and case == "8x2048" and not args.case:
                    continue
                r = one_case(args, case, precision, data)
                found[f"{case} {precision}"] = r
                args.keep("step")
                rows.append([f"{case} {short(precision)}", "ctitan", *rate_text(r["ours"]), percent(r["share"]),
                             percent(r["of_sustained"]) if precision == "float32" else "", ""])
                for name, rates in r["peers"].items():
                    rows.append(["", f"PyTorch {name}", *rate_text(rates), "", "",
                                 f"{statistics.median(r['ours']) / statistics.median(rates):.2f}"])
    table("training step of llama3_debugmodel, tokens a second", ["case", "program", "median", "quartiles", "of peak", "of sustained", "ours / its"],
          rows, "each row one document, no recomputing; model FLOPs with the causal half of attention")


def block(args, held):
    held["block"] = {}
    rows = []
    for precision in precisions(args):
        lines = lib.tsv([args.folder / "bin/bench_block", short(precision)] + (["--quick", "1x512"] if args.quick else []),
                        lib.environment(args.threads))
        for line in lines:
            if line[0] == "row":
                median, q1, q3, limit = map(float, line[3:7])
                rows.append([f"{line[1]} {line[2]}", *seconds_text((q1, median, q3)), percent(limit / median)])
                held["block"][f"{line[1]} {line[2]}"] = {"median_s": median, "limit_s": limit, "share": limit / median}
    table("transformer block of dim 2048, forward and backward", ["case", "median", "quartiles", "of peak"], rows)


def memory(args, held):
    found = held.setdefault("memory", {})
    rows = []
    for case in ("1x256", "8x256", "2x2048"):
        if args.case and case not in args.case:
            continue
        batch, seq = CASES[case]
        _, ours = lib.train(args.folder, args.threads, batch, seq, 3, "float32")
        found[case] = {"ours_mb": ours, "peer_mb": None}
        row = [case, f"{ours:.0f}", "", ""]
        if args.torch:
            peer = lib.Peer(args.threads, batch, seq, "sdpa", "float32")
            peer.steps(2)
            peer.close()
            found[case]["peer_mb"] = peer.rss_mb
            row[2:] = [f"{peer.rss_mb:.0f}", f"{ours / peer.rss_mb:.2f}"]
        rows.append(row)
    table("peak resident memory, MiB, float32", ["case", "ctitan", "PyTorch sdpa", "ours / its"], rows)


def startup(args, held):
    count = 5 if args.quick else 15
    values = [lib.time_to_first_step(args.folder, args.threads, 1, 256, "float32") for _ in range(count)]
    q1, median, q3 = quartiles(values)
    held["startup"] = {"median_s": median, "q1_s": q1, "q3_s": q3}
    table("exec to the end of the first step, 1x256 float32", ["runs", "median", "quartiles"],
          [[str(count), f"{median:.3f} s", f"{q1:.3f} .. {q3:.3f}"]])


def threads(args, held):
    steps, skip = TURNS["8x256"]
    rates = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        data = lib.corpus(folder)
        for _ in range(2 if args.quick else 5):
            for n in rates:
                rates[n] += lib.train(args.folder, n, 8, 256, steps, "float32", data)[0][skip:]
    ratio = statistics.median(rates[2]) / statistics.median(rates[1])
    held["threads"] = {"one": rates[1], "two": rates[2], "ratio": ratio}
    table("threads, 8x256 float32, tokens a second", ["threads", "median", "quartiles"],
          [[str(n), *rate_text(v)] for n, v in rates.items()], f"two over one: {ratio:.2f}")
