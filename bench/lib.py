# SPDX-License-Identifier: Apache-2.0
"""What bench/cpu and tools/perf-guard share: statistics, tables, builds, runs of the program and of its PyTorch peer."""
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = os.environ.get("CTITAN_BENCH_PYTHON", "python3")


class Failure(Exception):
    """One sentence for the user; the program ends with exit code 1."""


def quartiles(values):
    """(first quartile, median, third quartile); of one value thrice that."""
    if len(values) < 2:
        return values[0], values[0], values[0]
    q = statistics.quantiles(values, n=4, method="inclusive")
    return q[0], q[1], q[2]


def median_interval(values, doubt):
    """The interval between two order statistics that holds the median of what `values` were drawn from, but for a chance of at most
    `doubt` (the sign test turned round; nothing is assumed of the distribution). None: too few values for so little doubt."""
    ordered, n, below, tail = sorted(values), len(values), 0, 0.0
    for k in range(n // 2):
        tail += math.comb(n, k) / 2 ** n
        if 2 * tail > doubt:
            break
        below = k + 1
    return (ordered[below - 1], ordered[n - below]) if below else None


def table(title, head, rows, note=""):
    """Prints rows of text under a title; the first column is flush left, the others right."""
    print(f"\n{title}")
    rows = [[str(c) for c in r] for r in rows]
    widths = [max(len(r[i]) for r in [head] + rows) for i in range(len(head))]
    for r in [head, ["-" * w for w in widths]] + rows:
        print("  " + "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths))).rstrip())
    if note:
        print("  " + note)
    sys.stdout.flush()


def percent(x):
    return f"{100 * x:.0f} %"


def usable_cores():
    return len(os.sched_getaffinity(0))


def environment(threads):
    """The environment of everything that is measured: the same threads for all, nothing of OpenBLAS's."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    env["OMP_NUM_THREADS"] = str(threads)
    return env


def build(folder, targets=("ctitan", "bench_kernels", "bench_gemm", "bench_limits", "bench_block")):
    """Configures (once) and builds the timing programs and ctitan, or these targets."""
    folder = Path(folder)
    if not (folder / "CMakeCache.txt").exists():
        run_quiet(["cmake", "-S", str(ROOT), "-B", str(folder), "-DCT_BENCH=ON", "-DCT_TESTS=OFF"])
    cache = (folder / "CMakeCache.txt").read_text()
    if "CT_BENCH:BOOL=ON" not in cache:
        run_quiet(["cmake", "-DCT_BENCH=ON", str(folder)])
    run_quiet(["cmake", "--build", str(folder), "--target", *targets, "-j", str(usable_cores())])
    return folder


def run_quiet(command):
    command = [str(c) for c in command]
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if r.returncode != 0:
        raise Failure(f"'{' '.join(command)[:200]}' failed:\n" + "\n".join(r.stdout.splitlines()[-15:]))


def tsv(command, env):
    """Runs a timing program with --tsv; returns its lines, split."""
    if not Path(command[0]).exists():
        raise Failure(f"'{command[0]}' is not there; build with -DCT_BENCH=ON")
    r = subprocess.run([str(c) for c in command] + ["--tsv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    if r.returncode != 0:
        raise Failure(f"{Path(command[0]).name}: {r.stderr.strip() or f'exit code {r.returncode}'}")
    return [line.split("\t") for line in r.stdout.splitlines()]


def limits(folder, threads):
    """The machine's limits, measured now: FLOP/s of f32 FMA (the best moment, and sustained), of bf16 dot products (0: none), bytes/s copied and read,
    exponentials/s, bytes/s of rows copied at random."""
    line = tsv([folder / "bin/bench_limits"], environment(threads))[0]
    return limits_of(line)


def limits_of(line):
    keys = ("fma", "dot_bf16", "copy", "read", "exp")
    found = dict(zip(keys, map(float, line[1:6])))
    found.update(zip(("level", "threads", "cpu", "compiler"), line[6:10]))
    found["sustained"], found["rows"] = map(float, line[10:12])
    return found


def corpus(folder, characters=3_000_000):
    """A file that is one document, longer than any run here reads: every row is one segment, so nothing of attention can be skipped."""
    path = Path(folder) / "one-document.jsonl"
    if not path.exists():
        rng = random.Random(1)
        words = ["".join(rng.choice("aeioubcdfghlmnprst") for _ in range(rng.randint(2, 8))) for _ in range(800)]
        text, size = [], 0
        while size < characters:
            word = words[min(int(rng.expovariate(1 / 120)), 799)]
            text.append(word)
            size += len(word) + 1
        path.write_text(json.dumps({"text": " ".join(text)}) + "\n")
    return path


STEP_LINE = re.compile(r"step:\s*(\d+).*?memory:\s*([\d.]+)GiB.*?tps: ([\d,]+)")


def train_command(folder, batch, seq, steps, precision, data=None, extra=()):
    program = Path(folder) / "bin/ctitan"
    if not program.exists():
        raise Failure(f"'{program}' is not there; build it")
    command = [str(program), "train", "--module", "llama3", "--config", "llama3_debugmodel",
               f"--training.local-batch-size={batch}", f"--training.seq-len={seq}", f"--training.steps={steps}",
               f"--training.mixed-precision-param={precision}", "--debug.seed=1", "--metrics.disable-color-printing"]
    if data:
        command.append(f"--dataloader.dataset-path={data}")
    return command + [*extra, "activation-checkpoint:none"]


def train(folder, threads, batch, seq, steps, precision, data=None, extra=()):
    """Tokens a second of each step, as the program's log says them; and the run's peak resident memory in MiB."""
    with tempfile.TemporaryDirectory() as out:
        command = train_command(folder, batch, seq, steps, precision, data, (f"--dump-folder={out}", *extra))
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(threads))
        log = p.stdout.read()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        rates = [float(m.group(3).replace(",", "")) for m in STEP_LINE.finditer(log)]
        if p.returncode != 0 or len(rates) != steps:
            raise Failure("ctitan train failed:\n" + "\n".join(log.splitlines()[-5:]))
        return rates, usage.ru_maxrss / 1024


def time_to_first_step(folder, threads, batch, seq, precision, extra=()):
    """Seconds from exec to the line of step 1, the step's last act; the process is then left to end."""
    with tempfile.TemporaryDirectory() as out:
        command = train_command(folder, batch, seq, 1, precision, None, (f"--dump-folder={out}", *extra))
        start = time.perf_counter()
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(threads))
        seconds = None
        for line in p.stdout:
            if seconds is None and b"step:" in line:
                seconds = time.perf_counter() - start
        if p.wait() != 0 or seconds is None:
            raise Failure("ctitan train failed at its first step")
        return seconds


def have_torch():
    env = environment(1)
    r = subprocess.run([PYTHON, "-c", "import torch; print(torch.__version__)"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                       text=True, env=env)
    return r.stdout.strip() if r.returncode == 0 else ""


class Peer:
    """A running bench/peer_torch.py: built, compiled and through its first step."""

    def __init__(self, threads, batch, seq, variant, precision, block=False):
        command = [PYTHON, str(ROOT / "bench/peer_torch.py"), f"--batch={batch}", f"--seq={seq}", f"--variant={variant}",
                   f"--precision={precision}"] + (["--block"] if block else [])
        start = time.perf_counter()
        self.name = variant if precision == "float32" else f"{variant}, {precision}"
        self.tokens = batch * seq
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env=environment(threads))
        self.first = self._read()
        self.start_s = time.perf_counter() - start
        self.rss_mb = self.first["rss_mb"]

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failure(f"peer_torch.py ({self.name}) ended early")
        return json.loads(line)

    def steps(self, count):
        """Tokens a second of each of `count` further steps."""
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        answer = self._read()
        self.rss_mb = answer["rss_mb"]
        return [self.tokens / s for s in answer["seconds"]]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# Matrix products of one token's forward, of the debug model: six layers of (q, k, v), wo, w1, w2, w3, and the head.
DEBUGMODEL_WEIGHTS = 6 * (768 * 256 + 256 * 256 + 3 * 768 * 256) + 2048 * 256


def debugmodel_flops(seq):
    """Model FLOPs of one token, forward and backward: 6 a weight, and attention's two products over the causal half, thrice."""
    return 6 * DEBUGMODEL_WEIGHTS + 3 * 6 * 2 * 2 * 256 * (seq + 1) / 2
