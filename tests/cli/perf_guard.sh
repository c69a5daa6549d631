#!/usr/bin/env bash
# labels: slow
# tools/perf-guard: its statistic on made-up times, and that it runs on two equal builds. No verdict about times is tested here.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
build=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() {
    echo "FAILED: $*"
    [ -f "$tmp/out" ] && cat "$tmp/out"
    exit 1
}

# The interval holds the median of what was drawn, as often as it says; shifted data lies wholly above 1.
python3 - "$root/bench" <<'PY'
import random
import sys

sys.path.insert(0, sys.argv[1])
import lib

assert lib.median_interval([1.0] * 5, 0.05) is None, "5 values cannot bound a median with 5 % doubt: 2 / 2^5 is more"
assert lib.median_interval([3, 1, 2, 6, 5, 4], 0.05) == (1, 6), "6 values: the extremes, 2 / 2^6 = 3 %"
assert lib.median_interval(range(1, 21), 0.05) == (6, 15), "20 values: the 6th and the 15th (sign test tables)"
rng = random.Random(7)
missed, rounds, doubt = 0, 2000, 0.05
for _ in range(rounds):
    low, high = lib.median_interval([rng.lognormvariate(0, 0.1) for _ in range(15)], doubt)
    missed += not low <= 1.0 <= high
# 15 values: the true chance is 2 * P(Binomial(15, 1/2) < 4) = 3.5 %; six standard deviations of 2000 draws around `doubt`
assert missed <= rounds * doubt + 6 * (rounds * doubt * (1 - doubt)) ** 0.5, missed
low, high = lib.median_interval([1.1 + 0.001 * i for i in range(15)], 0.001)
assert low > 1.09
PY

run() { python3 "$root/tools/perf-guard" "$@" >"$tmp/out" 2>&1; }

code=0
run "$build" "$build" --pairs 6 --case 1x32 --steps 3 --no-kernels --precision float32 || code=$?
[ "$code" -le 1 ] || fail "exit code $code where 0 or 1 was wanted"
grep -Eq '^  step 1x32 float32 +[0-9.]+ ms +[0-9.]+ ms +[0-9.]+ +[0-9.]+ \.\. [0-9.]+ +(same|SLOWER|faster)$' "$tmp/out" || fail "no row of the step"
if grep -q SLOWER "$tmp/out"; then
    [ "$code" = 1 ] || fail "a slower row and exit code $code"
else
    [ "$code" = 0 ] || fail "no slower row and exit code $code"
fi

if run "$tmp" "$build"; then fail "a folder that is no build was taken"; else code=$?; fi
[ "$code" = 2 ] || fail "exit code $code where 2 was wanted"
grep -q "no bin/ctitan" "$tmp/out" || fail "no reason given"
if run "$build" "$build" --pairs 3 --no-kernels; then fail "three pairs decide nothing"; else code=$?; fi
[ "$code" = 2 ] || fail "exit code $code where 2 was wanted"

if ! command -v valgrind >/dev/null || grep -q '^CT_SANITIZE:STRING=.' "$build/CMakeCache.txt"; then
    echo "instructions are not counted: no valgrind, or a build with sanitizers"
    exit 0
fi
run "$build" "$build" --instructions --no-times --instruction-case 1x16 --precision float32 || fail "instructions of equal builds"
read -r a b < <(sed -nE 's/^  instructions 1x16 float32 +([0-9]+) +([0-9]+) .*/\1 \2/p' "$tmp/out")
[ -n "$a" ] && [ "$a" -gt 1000000 ] || fail "'$a' instructions are no step"
[ "$a" = "$b" ] || fail "equal builds, $a and $b instructions"
echo "equal builds: $a instructions each"
