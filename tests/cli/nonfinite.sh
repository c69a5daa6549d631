#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# labels: fast
# A step whose loss or gradient is not finite changes nothing, is named, and ends the run, or as many as are allowed in a row are passed over, or it takes
# the run back to its newest checkpoint, and what was read since then is not read again.
set -euo pipefail
ctitan=$1/bin/ctitan
share=$(cd "$(dirname "$0")/../../share/ctitan" && pwd)
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

# Two bad documents: the embedding of a byte that no other document has is NaN.
cd "$dir"
words() { for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "{\"text\": \"document $i tells of $1 and of nothing else, once and $i times again\"}"; done; }
words 'the number' >good.jsonl
sed -E '3s/tells/tellѮ/;7s/tells/tellѮ/' good.jsonl >bad.jsonl
small=(--module llama3 --config llama3_debugmodel --training.seq-len 16 --training.local-batch-size 1 --training.mixed-precision-param float32
       --model-spec.n-layers 1 --model-spec.dim 32 --model-spec.n-heads 2 --model-spec.n-kv-heads 1 --model-spec.ffn-hidden 48 --debug.seed 42
       --metrics.log-freq 1 --metrics.disable-color-printing --lr-scheduler.warmup-steps 0)
"$ctitan" train "${small[@]}" --training.steps 1 --optimizer.lr 0 --checkpoint.enable --checkpoint.last-save-model-only --checkpoint.last-save-in-hf \
    --dataloader.dataset-path good.jsonl --dump-folder seed 2>log || fail "weights: $(tail -n 1 log)"
weights=seed/checkpoint/step-1/model.safetensors
header=$(head -c 8 "$weights" | od -An -tu8 | tr -d ' ')
at=$(head -c $((8 + header)) "$weights" | tail -c "$header" | sed -nE 's/.*"model\.embed_tokens\.weight": ?\{[^}]*"data_offsets": ?\[([0-9]+),.*/\1/p')
[ -n "$at" ] || fail "no embedding in $weights"
id=$(printf 'Ѯ' | "$ctitan" tokenizer encode "$share/tokenizer" - | awk '{ print $NF }')
[ -n "$id" ] || fail 'no id of the letter'
for k in $(seq 0 31); do printf '\000\000\300\177'; done | dd of="$weights" bs=1 seek=$((8 + header + at + id * 32 * 4)) conv=notrunc status=none
train() { # NAME DATA EXIT ARGS...
    local name=$1 data=$2 want=$3 rc=0
    shift 3
    "$ctitan" train "${small[@]}" --training.steps 12 --dataloader.dataset-path "$data" --checkpoint.enable --checkpoint.interval 2 --debug.log-batch-hash \
        --checkpoint.initial-load-path "$dir/seed/checkpoint/step-1" --checkpoint.initial-load-in-hf --dump-folder "$name" "$@" 2>"$name.log" || rc=$?
    [ $rc = "$want" ] || fail "$name: exit $rc: $(tail -n 1 "$name.log")"
}
hashes() { sed -n 's/.*Batch of step [0-9]*: tokens \(.*\)/\1/p' "$1.log"; }
train stops bad.jsonl 1
bad=$(sed -nE 's/.*ERROR - step ([0-9]+): loss is .*/\1/p' stops.log)
[ -n "$bad" ] && [ "$bad" -gt 2 ] || fail "the bad document stands in step '$bad': $(tail -n 1 stops.log)"
train passes bad.jsonl 0 --training.max-nonfinite-steps 3
train back bad.jsonl 0 --training.max-rollbacks 3
n=$(grep -c 'gone back to step' back.log)
from=$(((bad - 1) / 2 * 2))
grep -q "WARNING - step $bad: loss is .*: gone back to step $from, 1 of at most 3 times; the batches of $((bad - from)) steps are not read again" back.log ||
    fail "$(grep WARNING back.log)"
[ "$(grep -c 'Batch of step' back.log)" -ge 12 ] && grep -q 'Training completed' back.log || fail "$(tail -n 1 back.log)"
# What is read: all in order but for the bad steps' own batches.
bads=$(sed -nE 's/.*WARNING - step ([0-9]+): .* nothing was updated.*/\1/p' passes.log)
[ "$n" = "$(echo "$bads" | wc -l)" ] && [ "$n" -ge 2 ] || fail "gone back $n times; bad steps:" $bads
cmp <(hashes passes | grep -vFxf <(for k in $bads; do hashes passes | sed -n "${k}p"; done)) <(hashes back | head -n $((12 - n))) ||
    fail 'other batches than those that follow the bad ones'
train bound bad.jsonl 1 --training.max-rollbacks $((n - 1)) --checkpoint.keep-latest-k 0
grep -q 'ERROR - step .*after --training.max-rollbacks' bound.log || fail "$(tail -n 1 bound.log)"
train early bad.jsonl 1 --training.max-rollbacks 2 --checkpoint.interval 100
grep -q "step $bad: loss is .* no checkpoint to go back to yet" early.log || fail "$(tail -n 1 early.log)"
rc=0
"$ctitan" train "${small[@]}" --training.max-rollbacks 1 --dump-folder none 2>log || rc=$?
[ $rc = 2 ] && grep -q 'a run goes back to checkpoints of its own' log || fail "rollback without checkpoints: $(tail -n 1 log)"
# A run that only goes back, since what it goes back to is bad, is stopped as any other.
mkfifo log.fifo
"$ctitan" train "${small[@]}" --training.steps 3 --optimizer.lr 1e30 --checkpoint.enable --checkpoint.interval 1 --training.max-rollbacks 1000000 \
    --dump-folder endless 2>log.fifo &
pid=$!
while read -r line; do
    case $line in *'gone back to step 1, 2 of'*) kill -TERM $pid ;; *'gone back to step 1, 200 of'*) kill -KILL $pid ;; esac
    last=$line
done <log.fifo
rc=0
wait $pid || rc=$?
case $rc:$last in 75:*'stopped on request after step 1'* | 75:*'Process group destroyed'*) ;; *) fail "going back and SIGTERM: $rc: $last" ;; esac
echo "nonfinite: told, and nothing changed"
