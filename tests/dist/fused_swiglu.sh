#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rooms: comm/gloo
# labels: slow
# The feed-forward part with one weight w13 (fused_swiglu) is the stock one: the same bits of weights and states after every step, with each family of
# optimizers, on one rank, over two shards, with tensor parallelism and with both; each goes on from the other's checkpoint in the middle of a run; folders of
# Hugging Face and generated text are the same; checkpoints know w1 and w3 alone. Sizes whose rows leave gaps in the stock layout too.
set -euo pipefail
build=$1
ctitan=$build/bin/ctitan
dir=$(mktemp -d "$build/test-fused-swiglu-XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*" >&2; exit 1; }
sizes=(--model-spec.n-layers 2 --model-spec.dim 64 --model-spec.n-heads 4 --model-spec.n-kv-heads 2 --model-spec.ffn-hidden 96)
fused=(--override.imports fused_swiglu.fused_swiglu)
cat >adamw.yaml <<'X'
base: llama3_debugmodel
X
cat >adam.yaml <<'X'
base: llama3_debugmodel
optimizer:
  implementation: fused_opt_states_bf16
  param_groups:
    - {pattern: 'feed_forward.w1', optimizer_name: Adam, optimizer_kwargs: {lr: 0.002}}
    - {pattern: '.*', optimizer_name: AdamW}
X
cat >muon.yaml <<'X'
base: llama3_debugmodel
optimizer:
  param_groups:
    - {pattern: '^layers.*(attention|feed_forward)\.', optimizer_name: Muon, optimizer_kwargs: {lr: 0.02, adjust_lr_fn: match_rms_adamw}}
    - {pattern: '.*'}
X
cat >sgd.yaml <<'X'
base: llama3_debugmodel
optimizer:
  param_groups:
    - {pattern: '.*', optimizer_name: SGD, optimizer_kwargs: {lr: 0.1, momentum: 0.9, nesterov: true}}
X
train() { # NAME OPTIMIZER RANKS STEPS FLAGS...
    local name=$1 config=$2.yaml ranks=$3 steps=$4
    shift 4
    local start=("$ctitan" train)
    [ "$ranks" = 1 ] || start=("$ctitan" run --nproc_per_node "$ranks" -m torchtitan.train)
    OMP_NUM_THREADS=1 "${start[@]}" --module llama3 --config "$config" "${sizes[@]}" --training.seq-len 16 --training.steps "$steps" \
        --training.local-batch-size 2 --training.global-batch-size 8 --dataloader.streams 2 --debug.seed 42 --lr-scheduler.total-steps 10 \
        --lr-scheduler.warmup-steps 0 --training.mixed-precision-param float32 --metrics.disable-color-printing --checkpoint.enable --checkpoint.interval 2 \
        --checkpoint.keep-latest-k 0 --checkpoint.no-last-save-model-only --dump-folder "$name" "$@" >"$name.log" 2>&1 ||
        { tail -n 5 "$name.log"; fail "$name"; }
}
same() { "$ctitan" checkpoint diff "$1" "$2" >diff || { tail -n 3 diff; fail "$1 and $2 differ"; }; }
half_of() { mkdir -p "$2" && cp -r "$1/checkpoint" "$2/" && rm -r "$2/checkpoint/step-4"; }

pair() { # NAME OPTIMIZER RANKS FLAGS...: stock and fused, and each going on from the other's step 2
    local name=$1 config=$2 ranks=$3
    shift 3
    train "$name-stock" "$config" "$ranks" 4 "$@"
    train "$name-fused" "$config" "$ranks" 4 "$@" "${fused[@]}"
    grep -q 'layers.1.feed_forward FeedForward.Config -> FusedSwiGLU.Config' "$name-fused.log" || fail "$name: no override"
    same "$name-stock/checkpoint/step-2" "$name-fused/checkpoint/step-2"
    same "$name-stock/checkpoint/step-4" "$name-fused/checkpoint/step-4"
    half_of "$name-stock" "$name-to-fused"
    half_of "$name-fused" "$name-to-stock"
    train "$name-to-fused" "$config" "$ranks" 4 "$@" "${fused[@]}"
    train "$name-to-stock" "$config" "$ranks" 4 "$@"
    grep -q 'Training starts at step 3' "$name-to-fused.log" || fail "$name: not resumed"
    same "$name-stock/checkpoint/step-4" "$name-to-fused/checkpoint/step-4"
    same "$name-stock/checkpoint/step-4" "$name-to-stock/checkpoint/step-4"
}
pair one-adamw adamw 1
pair one-adam adam 1
pair one-muon muon 1
pair one-sgd sgd 1
pair fsdp adamw 2
pair fsdp-muon muon 2
pair hsdp adam 4 --parallelism.data-parallel-replicate-degree 2 --dataloader.streams 4
tensor=(--parallelism.tensor-parallel-degree 2)
pair tensor adamw 2 "${tensor[@]}"
pair both sgd 4 "${tensor[@]}"
# Without sequence parallelism the same weights are cut; a checkpoint of two shards goes on in tensor parallelism, fused, and back.
pair plain-tensor adam 2 "${tensor[@]}" --parallelism.no-enable-sequence-parallel
half_of fsdp-stock moved
train moved adamw 2 4 "${tensor[@]}" "${fused[@]}"
half_of fsdp-stock moved-stock
train moved-stock adamw 2 4 "${tensor[@]}"
same moved-stock/checkpoint/step-4 moved/checkpoint/step-4
half_of tensor-fused home # and from tensor parallelism to shards, without it
half_of tensor-stock home-stock
train home adamw 2 4
train home-stock adamw 2 4
same home-stock/checkpoint/step-4 home/checkpoint/step-4

# What is saved knows nothing of w13.
for f in one-adamw-fused/checkpoint/step-4/*; do
    ! grep -qa 'w13' "$f" || fail "$f tells of w13"
done
"$ctitan" checkpoint show one-adamw-fused/checkpoint/step-4 >shown
grep -q 'optimizer.exp_avg.layers.1.feed_forward.w3.weight' shown || fail 'no state of w3'
[ "$(grep -o '[0-9]* params' one-adamw-fused.log)" = "$(grep -o '[0-9]* params' one-adamw-stock.log)" ] || fail 'another number of parameters'

# Hugging Face: written by either, read by either.
hf=(--checkpoint.last-save-model-only --checkpoint.last-save-in-hf --checkpoint.interval 100)
train hf-stock adamw 2 2 "${hf[@]}"
train hf-fused adamw 2 2 "${hf[@]}" "${tensor[@]}" --parallelism.tensor-parallel-degree 1 "${fused[@]}"
cat hf-stock/checkpoint/step-2/*.safetensors | cksum >a
cat hf-fused/checkpoint/step-2/*.safetensors | cksum >b
cmp a b || fail 'another Hugging Face folder'
train hf-back adamw 1 1 "${hf[@]}" --optimizer.lr 0 --optimizer.weight-decay 0 --checkpoint.initial-load-in-hf --checkpoint.initial-load-path "$dir/hf-stock/checkpoint/step-2" "${fused[@]}"
cat hf-back/checkpoint/step-1/*.safetensors | cksum >b
cmp a b || fail 'another weight came back'

# Text from it, and the plan.
for run in one-adamw-stock one-adamw-fused; do
    "$ctitan" generate --checkpoint "$run/checkpoint/step-4" --prompt 'the cat' --max-new-tokens 12 --temperature 0 >"$run.text" 2>"$run.err" || { cat "$run.err"; fail "generate $run"; }
done
cmp one-adamw-stock.text one-adamw-fused.text || fail 'other text'
grep -q 'Applied 2 override(s)' one-adamw-fused.err || fail 'generated without it'
for degree in 1 2; do
    flags=(--ranks 2 --module llama3 --config llama3_debugmodel --parallelism.tensor-parallel-degree $degree)
    "$ctitan" plan "${flags[@]}" --json | grep -vE '_seconds"|"scope"' >stock.json # measured; and who emits the product
    "$ctitan" plan "${flags[@]}" --json "${fused[@]}" | grep -vE '_seconds"|"scope"' >fused.json
    cmp stock.json fused.json || fail "another plan at degree $degree"
done

# Rows that leave a gap behind them in the stock layout: other places in the group, so norms add up in another order; the weights are exactly the other's.
sizes=(--model-spec.n-layers 2 --model-spec.dim 36 --model-spec.n-heads 2 --model-spec.n-kv-heads 1 --model-spec.ffn-hidden 27)
for ranks in 1 2; do
    train odd-stock-$ranks adamw $ranks 4
    train odd-fused-$ranks adamw $ranks 4 "${fused[@]}"
    "$ctitan" checkpoint diff odd-stock-$ranks/checkpoint/step-4 odd-fused-$ranks/checkpoint/step-4 >diff || true
    awk '/^layers/ { n++; if ($0 ~ /of the first$/ && $(NF - 3) > 1e-4) { print; bad = 1 } } END { exit bad }' diff || fail "odd sizes on $ranks ranks"
    mkdir -p odd-through-$ranks && cp -r odd-stock-$ranks/checkpoint odd-through-$ranks/
    train odd-through-$ranks adamw $ranks 5 --optimizer.lr 0 --optimizer.weight-decay 0 "${fused[@]}" --checkpoint.interval 1
    "$ctitan" checkpoint diff odd-stock-$ranks/checkpoint/step-4 odd-through-$ranks/checkpoint/step-5 >diff || true
    ! grep -E '^(layers|tok_embeddings|norm|lm_head)' diff || fail 'a weight was not taken over'
done

# One family of optimizers must have both parts.
cat >split.yaml <<'X'
base: llama3_debugmodel
optimizer:
  param_groups:
    - {pattern: 'feed_forward.w1', optimizer_name: Muon, optimizer_kwargs: {lr: 0.02}}
    - {pattern: '.*'}
X
code=0
"$ctitan" train --module llama3 --config split.yaml "${fused[@]}" --training.steps 1 --training.seq-len 16 --training.local-batch-size 1 --dump-folder no >no.log 2>&1 || code=$?
[ $code != 0 ] && grep -q "'layers.0.feed_forward.w1.weight' and 'layers.0.feed_forward.w3.weight' are one weight here" no.log || { tail -n 3 no.log; fail 'split families'; }
echo 'fused_swiglu: the bits of the stock part'
