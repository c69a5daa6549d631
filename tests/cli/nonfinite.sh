#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# labels: fast
# A step whose loss or gradient is not finite changes nothing, is named, and ends the run, or as many as are allowed in a row are passed over.
set -euo pipefail
ctitan=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
flags=(--module llama3 --config llama3_debugmodel --training.seq-len 16 --training.local-batch-size 1 --debug.seed 42 --metrics.log-freq 1
       --metrics.disable-color-printing --lr-scheduler.warmup-steps 0 --optimizer.lr 1e30 --checkpoint.enable --checkpoint.interval 1
       --checkpoint.keep-latest-k 0 --training.steps 6)
rc=0
"$ctitan" train "${flags[@]}" --dump-folder "$dir/stop" 2>"$dir/log" || rc=$?
[ $rc = 1 ] || fail "exit code $rc"
grep -q 'ERROR - step 2: loss is .* nothing was updated' "$dir/log" || fail "$(tail -n 1 "$dir/log")"
rc=0
"$ctitan" train "${flags[@]}" --training.max-nonfinite-steps 3 --dump-folder "$dir/skip" 2>"$dir/log" || rc=$?
[ $rc = 1 ] || fail "exit code $rc after passing over"
[ "$(grep -c 'WARNING - step [234]: .* such steps in a row' "$dir/log")" = 3 ] || fail "three steps are passed over: $(grep WARNING "$dir/log")"
grep -q 'ERROR - step 5: .*max-nonfinite-steps' "$dir/log" || fail "$(tail -n 1 "$dir/log")"
"$ctitan" checkpoint diff "$dir/skip/checkpoint/step-1" "$dir/skip/checkpoint/step-4" >/dev/null || fail "a step that was passed over changed weights or moments"
echo "nonfinite: told, and nothing changed"
