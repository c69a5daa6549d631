#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# labels: fast
# `ctitan plan`: its bytes are those of the run; a run that does not fit is refused by plan and train alike, and each way out that is
# offered fits when it is taken; what is wrong is named.
set -euo pipefail
build=$1
ctitan=$build/bin/ctitan
dir=$(mktemp -d "$build/test-plan-XXXXXX")
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
debug=(--module llama3 --config llama3_debugmodel)

# 1. The block that plan counts is the block that train takes.
planned() { "$ctitan" plan "$@" | sed -n 's/^  in one block  *\([0-9.]* [A-Za-z]*\).*/\1/p'; }
taken() { "$ctitan" train "$@" --training.steps 1 --dump-folder "$dir/out" 2>&1 | sed -n 's/.*Planned memory: \([0-9.]* [A-Za-z]*\) in one block.*/\1/p'; }
for case in "--training.local-batch-size 1 --training.seq-len 128" \
            "--training.local-batch-size 2 --training.seq-len 64 activation-checkpoint:full" \
            "--training.local-batch-size 2 --training.seq-len 64 activation-checkpoint:none --training.global-batch-size 4" \
            "--training.local-batch-size 2 --training.seq-len 64 --training.mixed-precision-param bfloat16"; do
    # shellcheck disable=SC2086
    a=$(planned "${debug[@]}" $case) b=$(taken "${debug[@]}" $case)
    [ -n "$a" ] && [ "$a" = "$b" ] || fail "plan says '$a', the run took '$b': $case"
done

# 2. The largest model, without allocating it; its size is that of the reference.
"$ctitan" plan --module llama3 --config llama3_405b --parallelism.tensor-parallel-degree 1 --ranks 512 --target h200 >"$dir/405b" ||
    fail "405B on 512 ranks: $(cat "$dir/405b")"
grep -q '405,853,388,800 parameters, 2,625,449,459,712 FLOPs a token' "$dir/405b" || fail "405B: $(head -n 1 "$dir/405b")"
grep -q 'fits' "$dir/405b" || fail "405B on 512 ranks should fit"
grep -q '254 all_gather' "$dir/405b" || fail "126 blocks, each gathered twice, and two groups more, once: 254 gathers"

# 3. What does not fit: exit code 2 and ways out, each of which fits.
rc=0
"$ctitan" plan --module llama3 --config llama3_8b --target a100-80g >"$dir/8b" || rc=$?
[ $rc = 2 ] || fail "8B on one 80 GB card: exit code $rc"
grep -q 'DOES NOT FIT' "$dir/8b" || fail "8B on one 80 GB card: $(cat "$dir/8b")"
ranks=$(sed -n 's/^  \([0-9]*\) ranks (needs.*/\1/p' "$dir/8b")
[ -n "$ranks" ] || fail "no number of ranks is offered: $(tail -n 3 "$dir/8b")"
"$ctitan" plan --module llama3 --config llama3_8b --target a100-80g --ranks "$ranks" >/dev/null || fail "$ranks ranks are offered and do not fit"
rc=0
"$ctitan" train "${debug[@]}" --training.local-batch-size 40000 --training.seq-len 1024 --dump-folder "$dir/out" >"$dir/train" 2>&1 || rc=$?
[ $rc = 2 ] || fail "train with too many rows: exit code $rc: $(tail -n 1 "$dir/train")"
rows=$(sed -n 's/.*it would fit with .*--training.local-batch-size \([0-9]*\).*/\1/p' "$dir/train")
[ -n "$rows" ] || fail "no batch size is offered: $(tail -n 1 "$dir/train")"
"$ctitan" plan "${debug[@]}" --training.local-batch-size "$rows" --training.seq-len 1024 >/dev/null || fail "$rows rows are offered and do not fit"

# 4. More ranks share parameters and states.
params() { "$ctitan" plan "${debug[@]}" --json --target h200 --ranks "$1" | sed -n 's/^ *"parameters": \([0-9]*\),$/\1/p' | tail -n 1; }
one=$(params 1) four=$(params 4)
[ $((4 * four - one)) -ge 0 ] && [ $((4 * four - one)) -le 65536 ] || fail "parameters of 1 rank $one, of 4 ranks $four each"

# 5. What tensor parallelism sends. With sequences: six blocks make their two inputs whole, and so do the head and the log-sum-exps (14
# gathers), and take their two sums apart, as the embedding does (13 scatters); backward turns all but the log-sum-exps around. Sums: seven
# groups of norms, the loss, the norm. Without: the sums and the way back of the inputs are all_reduces.
sent() { "$ctitan" plan "${debug[@]}" activation-checkpoint:none --parallelism.tensor-parallel-degree 2 "$@" | sed -n "s/.*sent over $axis .*(\([0-9]*\) all_gather.* \([0-9]*\) reduce_scatter.* \([0-9]*\) all_reduce.*/\1 \2 \3/p"; }
axis=tp
[ "$(sent --ranks 2)" = "$((14 + 13)) $((13 + 13)) $((7 + 2))" ] || fail "with sequences: $(sent --ranks 2)"
whole=$(sent --ranks 4 --parallelism.no-enable-sequence-parallel --parallelism.data-parallel-replicate-degree 2)
[ "$whole" = "1 0 $((13 + 13 + 2))" ] || fail "without sequences: $whole"
axis=dp_replicate
replicas=$(sent --ranks 4 --parallelism.no-enable-sequence-parallel --parallelism.data-parallel-replicate-degree 2)
[ "$replicas" = "0 0 $((8 + 7 + 1))" ] || fail "replicas: eight groups of parts and seven of whole ones, and the loss: $replicas"

# 6. Tensor parallelism with parts of a plug-in, whose products stay apart, and of a single token a row.
tensor=(--ranks 2 --parallelism.tensor-parallel-degree 2)
"$ctitan" plan "${debug[@]}" "${tensor[@]}" --override.imports npu_compat.npu_attention >"$dir/npu" 2>&1 || fail "plug-in's attention: $(cat "$dir/npu")"
"$ctitan" plan "${debug[@]}" "${tensor[@]}" --training.seq-len 1 --parallelism.no-enable-sequence-parallel >"$dir/one" 2>&1 ||
    fail "rows of one token: $(cat "$dir/one")"

# 7. A limit in GiB is the largest budget that fits; one that nothing fits is refused with what is the least. What does not fit is offered a budget.
limit() { "$ctitan" plan "${debug[@]}" --json "$@" | sed -n 's/^ *"total": \([0-9]*\),*$/\1/p'; }
taken=$(limit activation-checkpoint:memory-budget --activation-checkpoint.memory-limit-gib 1)
[ "$taken" -le $((1 << 30)) ] && [ "$taken" -gt $((950 << 20)) ] || fail "within a GiB: $taken bytes"
[ "$(limit activation-checkpoint:memory-budget --activation-checkpoint.memory-limit-gib 100)" = "$(limit activation-checkpoint:none)" ] || fail "a limit above none"
rc=0
"$ctitan" plan "${debug[@]}" activation-checkpoint:memory-budget --activation-checkpoint.memory-limit-gib 0.1 2>"$dir/err.txt" >/dev/null || rc=$?
[ $rc = 2 ] && grep -q 'memory-limit-gib: a rank that recomputes all of its blocks needs .* MiB, the limit is 102.40 MiB' "$dir/err.txt" || fail "$(cat "$dir/err.txt")"
rc=0
"$ctitan" plan --module llama3 --config llama3_8b --ranks 16 --target a100-40g --training.local-batch-size 2 activation-checkpoint:none >"$dir/8b" || rc=$?
budget=$(sed -n 's/.*--activation-checkpoint.memory-budget \([0-9.]*\) (needs.*/\1/p' "$dir/8b")
[ $rc = 2 ] && [ -n "$budget" ] || fail "no budget is offered: $(tail -n 3 "$dir/8b")"
"$ctitan" plan --module llama3 --config llama3_8b --ranks 16 --target a100-40g --training.local-batch-size 2 activation-checkpoint:memory-budget \
    --activation-checkpoint.memory-budget "$budget" >/dev/null || fail "budget $budget is offered and does not fit"

# 8. Wrong words.
refused() {
    local says=$1 rc=0
    shift
    "$ctitan" plan "$@" >"$dir/out.txt" 2>"$dir/err.txt" || rc=$?
    [ $rc = 2 ] || fail "plan $*: exit code $rc"
    grep -qF -- "$says" "$dir/err.txt" || fail "plan $*: wanted '$says', found: $(cat "$dir/err.txt")"
    [ "$(wc -l <"$dir/err.txt")" = 1 ] || fail "plan $*: more than one line: $(cat "$dir/err.txt")"
}
refused "'h20' is not known; did you mean 'h200'" "${debug[@]}" --target h20
refused "--ranks: '0' is given" "${debug[@]}" --ranks 0
refused "--ranks: 'x' is given" "${debug[@]}" --ranks=x
refused "--rank: 3 is not one of 2 ranks" "${debug[@]}" --ranks 2 --rank 3
refused "'x': no flag stands before it" --json x "${debug[@]}"
refused "'x': no flag stands before it" --module llama3 --config llama3_debugmodel x
refused "--training.stepz" "${debug[@]}" --training.stepz 3
"$ctitan" plan --help | grep -q -- '--target DEVICE' || fail "no help"
echo "plan: all as planned"
