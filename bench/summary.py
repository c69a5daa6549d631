# SPDX-License-Identifier: Apache-2.0
"""The table at the end of bench/cpu: each figure, what it must and what it should be, what was measured."""
import json
import statistics

import lib

RECORDED = lib.ROOT / "bench/recorded.json"


def recorded():
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def record(held):
    """Writes the ratios to PyTorch that `held` has, for machines without it."""
    ratios = {name: round(statistics.median(c["ours"]) / best_peer(c)[1], 2) for name, c in held.get("step", {}).items() if best_peer(c)}
    memory = {name: round(v["ours_mb"] / v["peer_mb"], 3) for name, v in held.get("memory", {}).items() if v["peer_mb"]}
    m = held["machine"]
    RECORDED.write_text(json.dumps({"date": held["measured"]["step"][:10], "machine": f"{m['cpu']}, level {m['level']}, {m['threads']} threads",
                                    "peer": f"PyTorch {held['torch']}", "over_pytorch": ratios, "memory": memory}, indent=1) + "\n")


def best_peer(case):
    """(name, median tokens a second) of the fastest PyTorch variant of a case, or None."""
    medians = {name: statistics.median(v) for name, v in case["peers"].items() if v}
    return max(medians.items(), key=lambda item: item[1]) if medians else None


def at_least(must, aim):
    return lambda x: "aim" if x >= aim else "must" if x >= must else "no"


def at_most(must, aim):
    return lambda x: "aim" if x <= aim else "must" if x <= must else "no"


def ratio(x):
    return f"{x:.2f}"


def step_rows(held):
    cases = held.get("step", {})
    old = recorded()

    def share(case):
        return cases[f"{case} float32"]["share"] if f"{case} float32" in cases else None

    def sustained(case):
        of = cases.get(f"{case} float32", {}).get("of_sustained")
        return f"{lib.percent(of)} of what an FMA loop sustains beside it" if of else ""

    def over_peer(case, precision):
        c = cases.get(f"{case} {precision}")
        if c and best_peer(c):
            name, rate = best_peer(c)
            return statistics.median(c["ours"]) / rate, f"PyTorch {name}"
        r = old.get("over_pytorch", {}).get(f"{case} {precision}")
        return (r, f"recorded {old['date']}, {old['machine']}, {old['peer']}") if r else (None, "")

    def over_f32(case):
        pair = [cases.get(f"{case} {p}") for p in ("bfloat16", "float32")]
        return statistics.median(pair[0]["ours"]) / statistics.median(pair[1]["ours"]) if all(pair) else None

    yield "1x256, share of FMA peak", "60 %", "70 %", at_least(0.6, 0.7), share("1x256"), lib.percent, sustained("1x256")
    for case in ("8x256", "8x2048"):
        yield f"{case}, share of FMA peak", "65 %", "75 %", at_least(0.65, 0.75), share(case), lib.percent, sustained(case)
    for case, must in (("8x256", 1.4), ("8x2048", 1.3)):
        yield f"{case}, bf16 over float32", f"{must}", "1.6", at_least(must, 1.6), over_f32(case), ratio, ""
    b = held.get("block", {})
    found = max((v["share"] for k, v in b.items() if k.endswith("f32") and not k.endswith("bf16")), default=None)
    yield "block of dim 2048, share of FMA peak", "65 %", "70 %", at_least(0.65, 0.7), found, lib.percent, ""
    for case, must, aim in (("1x256", 2.2, 2.7), ("8x256", 2.0, 2.5), ("2x2048", 2.5, 3.2)):
        value, note = over_peer(case, "float32")
        yield f"{case}, over PyTorch's best", f"{must}", f"{aim}", at_least(must, aim), value, ratio, note
    for case in ("8x256", "2x2048"):
        value, note = over_peer(case, "bfloat16")
        yield f"{case} bf16, over PyTorch's best bf16", "1.7", "2.2", at_least(1.7, 2.2), value, ratio, note


def other_rows(held):
    for case, v in held.get("memory", {}).items():
        share = v["ours_mb"] / v["peer_mb"] if v["peer_mb"] else recorded().get("memory", {}).get(case)
        note = "" if v["peer_mb"] else "recorded"
        yield f"{case}, peak memory over PyTorch's", "1/3", "1/5", at_most(1 / 3, 1 / 5), share, ratio, note
    start = held.get("startup", {}).get("median_s")
    yield "exec to the end of the first step", "0.3 s", "0.1 s", at_most(0.3, 0.1), start, lambda x: f"{x:.3f} s", ""
    yield "8x256, 2 threads over 1", "1.8", "1.9", at_least(1.8, 1.9), held.get("threads", {}).get("ratio"), ratio, ""
    for name, v in held.get("kernels", {}).items():
        if v["bound"] in ("FMA", "dot"):
            continue  # products stand below, beside oneDNN
        yield name, "85 %", "ahead", at_least(0.85, 1.0), v["limit_s"] / v["median_s"], lib.percent, f"of {v['bound']}"
    for name, v in held.get("gemm", {}).items():
        if v["ratio"]:
            yield f"product {name}", "0.95", "1.0", at_least(0.95, 1.0), v["ratio"], ratio, "over oneDNN"


def show(held):
    rows = []
    for figure, must, aim, judge, value, text, note in [*step_rows(held), *other_rows(held)]:
        if value is None:
            rows.append([figure, must, aim, "not measured", "", note])
        else:
            rows.append([figure, must, aim, text(value), judge(value), note])
    m = held.get("machine")
    where = f"{m['cpu']}, {m['threads']} threads, level {m['level']}, {m['compiler']}" if m else ""
    lib.table("summary", ["figure", "must", "aim", "measured", "met", "beside"], rows, where)
