#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# labels: fast
# A run with a time limit ends between two steps, with a checkpoint of the last one, exit code 75, and goes on from there.
set -euo pipefail
ctitan=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
flags=(--module llama3 --config llama3_debugmodel --training.seq-len 16 --training.local-batch-size 1 --debug.seed 42 --metrics.log-freq 1
       --metrics.disable-color-printing --checkpoint.enable --checkpoint.interval 100000 --dump-folder "$dir/out")
rc=0
"$ctitan" train "${flags[@]}" --training.steps 1000000 --training.time-limit-minutes 0.01 2>"$dir/log" || rc=$?
[ $rc = 75 ] || fail "exit code $rc: $(tail -n 1 "$dir/log")"
step=$(sed -n 's/.*stopped by the time limit.* after step \([0-9]*\) of 1000000.*/\1/p' "$dir/log")
[ -n "$step" ] || fail "$(tail -n 1 "$dir/log")"
[ -d "$dir/out/checkpoint/step-$step" ] || fail "no checkpoint of step $step: $(ls "$dir/out/checkpoint")"
"$ctitan" train "${flags[@]}" --training.steps $((step + 1)) 2>"$dir/log" || fail "$(tail -n 1 "$dir/log")"
grep -q "Training starts at step $((step + 1))" "$dir/log" || fail "it did not go on"
echo "time limit: stopped after step $step, went on"
