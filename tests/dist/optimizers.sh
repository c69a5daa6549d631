#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rooms: comm/gloo
# labels: slow
# Muon, SGD with momentum and Adam's moments in bfloat16 on four ranks: FSDP, HSDP and DDP have the same bits of weights and states; one of more ranks than a
# group has matrices; a run saved by one layout goes on in another, with the bits of the run that never changed. And all ranks go back together from a step
# that is not finite.
set -euo pipefail
build=$1
ctitan=$build/bin/ctitan
dir=$(mktemp -d "$build/test-optimizers-XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*" >&2; exit 1; }
cat >muon.yaml <<'X'
base: llama3_debugmodel
optimizer:
  implementation: fused_opt_states_bf16
  param_groups:
    - {pattern: '^layers.*(attention|feed_forward)\.', optimizer_name: Muon, optimizer_kwargs: {lr: 0.02, adjust_lr_fn: match_rms_adamw}}
    - {pattern: 'norm', optimizer_name: SGD, optimizer_kwargs: {lr: 0.1, momentum: 0.9, nesterov: true}}
    - {pattern: '.*'}
X
train() { # NAME RANKS STEPS FLAGS...
    local name=$1 ranks=$2 steps=$3
    shift 3
    OMP_NUM_THREADS=1 "$ctitan" run --nproc_per_node "$ranks" -m torchtitan.train --module llama3 --config muon.yaml --model-spec.n-layers 2 --model-spec.dim 64 \
        --model-spec.n-heads 4 --model-spec.n-kv-heads 2 --model-spec.ffn-hidden 96 --training.seq-len 16 --training.steps "$steps" --training.local-batch-size 1 \
        --training.global-batch-size 4 --dataloader.streams 4 --debug.seed 42 --lr-scheduler.total-steps 10 --lr-scheduler.warmup-steps 0 \
        --training.mixed-precision-param float32 --metrics.disable-color-printing --checkpoint.enable --checkpoint.interval 2 --checkpoint.keep-latest-k 0 \
        --checkpoint.no-last-save-model-only --dump-folder "$name" "$@" >>"$name.log" 2>&1 || { tail -n 5 "$name.log"; fail "$name"; }
}
same() { "$ctitan" checkpoint diff "$1" "$2" >diff || { tail -n 3 diff; fail "$1 and $2 differ"; }; }
replicas=--parallelism.data-parallel-replicate-degree
train fsdp 4 4
train hsdp 4 4 $replicas 2
train ddp 4 4 $replicas 4
for name in hsdp ddp; do
    same fsdp/checkpoint/step-2 $name/checkpoint/step-2
    same fsdp/checkpoint/step-4 $name/checkpoint/step-4
done
mkdir moved && cp -r ddp/checkpoint moved/ && rm -r moved/checkpoint/step-4
train moved 4 4
grep -q 'Training starts at step 3' moved.log || fail 'not resumed'
same fsdp/checkpoint/step-4 moved/checkpoint/step-4
# More ranks than a group has matrices: some make none; as one rank makes them, but for the order of the gradients' sums.
train eight 8 1 --training.global-batch-size 8 --dataloader.streams 8 --parallelism.data-parallel-replicate-degree 1
train one 1 1 --training.global-batch-size 8 --training.local-batch-size 8 --dataloader.streams 8
"$ctitan" checkpoint diff one/checkpoint/step-1 eight/checkpoint/step-1 >diff || true
awk '/^layers/ { n++; if ($0 ~ /of the first$/ && $(NF - 3) > 1e-4) { print; bad = 1 } } END { exit bad }' diff || fail 'eight ranks are not one'

# Every rank's loss is infinite at step 2: all go back to step 1, twice, and end with one clear line.
code=0
OMP_NUM_THREADS=1 "$ctitan" run --nproc_per_node 2 -m torchtitan.train --module llama3 --config llama3_debugmodel --training.seq-len 16 --training.local-batch-size 1 \
    --debug.seed 42 --lr-scheduler.warmup-steps 0 --optimizer.lr 1e30 --training.steps 6 --checkpoint.enable --checkpoint.interval 1 --training.max-rollbacks 2 \
    --metrics.disable-color-printing --dump-folder back >back.log 2>&1 || code=$?
[ $code != 0 ] && [ "$(grep -c 'default0.*gone back to step 1' back.log)" = 2 ] && [ "$(grep -c 'default1.*gone back to step 1' back.log)" = 2 ] &&
    grep -q 'step 2: .*after --training.max-rollbacks' back.log || { grep -E 'WARN|ERROR' back.log | tail -n 5; fail 'two ranks going back'; }
echo "optimizers: the bits of every layout"
