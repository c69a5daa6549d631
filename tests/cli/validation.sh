#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rooms: comm/gloo
# labels: slow
# Validation: due at step 1 and every validator.freq; the same each time it is asked of the same weights, on any layout; exact over batches with
# different numbers of labels; and nothing of it is seen by training.
set -euo pipefail
ctitan=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
flags=(--module llama3 --config llama3_debugmodel --training.seq-len 32 --training.steps 4 --debug.seed 42 --metrics.log-freq 1
       --training.local-batch-size 2 --metrics.disable-color-printing --training.mixed-precision-param float32)
lines() { sed -n "s/^\(\[default0\]:\)\{0,1\}\[titan\].* - INFO - \($1 *[0-9]* *loss: *[0-9.]*\).*/\2/p" "$2" | tr -s ' '; }
for i in 1 2 3 4 5; do
    printf '{"text": "%s"}\n' "$(printf 'A line of document %d. %.0s' $(seq $((i * i))))"
done >"$dir/own.jsonl"
own=(--validator.enable --validator.freq 2 --validator.dataloader.dataset-path "$dir/own.jsonl")

"$ctitan" train "${flags[@]}" --dump-folder "$dir/a" 2>"$dir/none"
"$ctitan" train "${flags[@]}" "${own[@]}" --validator.steps 3 --validator.dataloader.infinite --dump-folder "$dir/b" --metrics.enable-tensorboard 2>"$dir/some"
[ "$(lines 'step:' "$dir/none")" = "$(lines 'step:' "$dir/some")" ] || fail "training saw the validation"
[ "$(lines 'validate step:' "$dir/some" | cut -d: -f2 | cut -d' ' -f2 | tr '\n' ' ')" = "1 2 4 " ] || fail "due at 1, 2 and 4: $(lines 'validate step:' "$dir/some")"
grep -aq 'validation_metrics/loss' "$dir"/b/tb/*/events* || fail "no validation in the event file"

# All of it, once: the last batch is partly padding. Bigger batches have the same sum over the same labels.
"$ctitan" train "${flags[@]}" "${own[@]}" --training.steps 1 --validator.steps -1 --validator.dataloader.no-infinite --dump-folder "$dir/c" 2>"$dir/once"
"$ctitan" train "${flags[@]}" "${own[@]}" --training.steps 1 --validator.steps -1 --validator.dataloader.no-infinite --dump-folder "$dir/d" \
    --training.local-batch-size 1 --training.global-batch-size 2 2>"$dir/small"
[ "$(lines 'validate step:' "$dir/once")" = "$(lines 'validate step:' "$dir/small")" ] || fail "rows a batch change the loss: $(lines 'validate step:' "$dir/once") and $(lines 'validate step:' "$dir/small")"
[ -n "$(lines 'validate step:' "$dir/once")" ] || fail "no line: $(tail -n 2 "$dir/once")"

# Two ranks, rows shared or heads: the same rows in the same batches.
for layout in "--training.local-batch-size 1 --training.global-batch-size 2" "--parallelism.tensor-parallel-degree 2"; do
    # shellcheck disable=SC2086
    OMP_NUM_THREADS=1 "$ctitan" run --nproc_per_node 2 -m torchtitan.train "${flags[@]}" "${own[@]}" --validator.steps 3 --validator.dataloader.infinite \
        --dump-folder "$dir/e" --dataloader.streams 2 --validator.dataloader.streams 2 $layout >"$dir/two" 2>&1 || fail "$layout: $(tail -n 3 "$dir/two")"
    lines 'validate step:' "$dir/two" >>"$dir/both"
done
[ "$(wc -l <"$dir/both")" = 6 ] && [ "$(head -n 3 "$dir/both")" = "$(tail -n 3 "$dir/both")" ] || fail "layouts differ: $(cat "$dir/both")"

# A request to stop does not wait for the end of a validation: the next step saves and ends.
mkfifo "$dir/log"
"$ctitan" train "${flags[@]}" "${own[@]}" --validator.steps 1000000000 --validator.dataloader.infinite --checkpoint.enable --dump-folder "$dir/g" 2>"$dir/log" &
pid=$!
while read -r line; do
    printf '%s\n' "$line"
    case $line in *"step:  1 "*) kill -TERM $pid ;; esac
done <"$dir/log" >"$dir/left"
rc=0
wait $pid || rc=$?
[ $rc = 75 ] || fail "asked to stop in a validation: exit code $rc: $(tail -n 3 "$dir/left")"
grep -q 'Validation after step 1 is left' "$dir/left" || fail "asked to stop in a validation: $(tail -n 3 "$dir/left")"
[ -e "$dir/g/checkpoint/step-2/manifest.json" ] || fail "no checkpoint after a request to stop: $(ls "$dir/g/checkpoint")"

# What cannot be.
refused() {
    local says=$1 rc=0
    shift
    "$ctitan" train "${flags[@]}" --validator.enable --dump-folder "$dir/f" "$@" >"$dir/out" 2>&1 || rc=$?
    [ $rc != 0 ] && grep -qF -- "$says" "$dir/out" || fail "wanted '$says', found: $(tail -n 2 "$dir/out")"
}
: >"$dir/empty.jsonl"
refused "--validator.steps" --validator.steps -1 --validator.dataloader.infinite
refused "empty.jsonl" --validator.dataloader.dataset-path "$dir/empty.jsonl"
printf '{"text": "one"}\n' >"$dir/one.jsonl"
refused "validation: " --validator.dataloader.dataset-path "$dir/one.jsonl" --validator.dataloader.streams 2
grep -q 'Training starts' "$dir/out" && fail "too few documents are told before step 1"
refused "gone.jsonl" --validator.dataloader.dataset-path "$dir/gone.jsonl"
echo "validation: exact, and apart"
