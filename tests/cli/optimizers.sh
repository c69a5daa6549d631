#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# labels: slow
# Each kind of optimizer state is saved as it is kept and resumed bit for bit; the plan counts its bytes.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*" >&2; exit 1; }
small=(--training.seq-len 32 --training.local-batch-size 2 --training.mixed-precision-param float32 --model-spec.n-layers 2 --model-spec.dim 64
       --model-spec.n-heads 4 --model-spec.n-kv-heads 2 --model-spec.ffn-hidden 96)
train() { # NAME CONFIG STEPS ARGS...
    local name=$1 config=$2 steps=$3
    shift 3
    "$bin" train --module llama3 --config "$config" "${small[@]}" --debug.seed 7 --metrics.disable-color-printing --metrics.log-freq 1 \
        --lr-scheduler.total-steps 6 --lr-scheduler.warmup-steps 1 --checkpoint.enable --checkpoint.interval 3 --checkpoint.no-last-save-model-only \
        --training.steps "$steps" --dump-folder "$name" "$@" >>"$name.log" 2>&1 || { tail -n 3 "$name.log"; fail "$name"; }
}
resumed() { # NAME CONFIG ARGS...: six steps at once, and three and three
    local name=$1 config=$2
    shift 2
    train "$name" "$config" 6 "$@"
    train "$name-parts" "$config" 3 "$@"
    train "$name-parts" "$config" 6 "$@"
    grep -q 'Training starts at step 4' "$name-parts.log" || fail "$name: not resumed"
    "$bin" checkpoint diff "$name/checkpoint/step-6" "$name-parts/checkpoint/step-6" >diff || { tail -n 3 diff; fail "$name: the resumed run has other bits"; }
}
states() { # CONFIG ARGS...: bytes that the plan gives to optimizer states
    "$bin" plan --module llama3 --config "$1" "${small[@]}" --json "${@:2}" | tr -d ' \n' | sed -nE 's/.*"optimizer_states":([0-9]+).*/\1/p'
}

# bfloat16 moments: half the bytes, saved in bfloat16.
resumed bf16 llama3_debugmodel --optimizer.implementation fused_opt_states_bf16
"$bin" checkpoint show bf16/checkpoint/step-6 >show
[ "$(grep -c '^ *optimizer\.exp_avg.*bf16' show)" = 42 ] || { grep optimizer show; fail "42 moments in bf16"; }
whole=$(states llama3_debugmodel)
[ "$(states llama3_debugmodel --optimizer.implementation fused_opt_states_bf16)" = $((whole / 2)) ] || fail "the plan's bytes of moments in bf16"

# SGD: no state without momentum, one with it. Adam: AdamW's states.
resumed adam llama3_debugmodel --optimizer.name Adam
resumed sgd llama3_debugmodel --optimizer.name SGD --optimizer.lr 0.1
"$bin" checkpoint show sgd/checkpoint/step-6 >show
if grep -q 'optimizer\.' show; then fail 'states of SGD without momentum'; fi
[ "$(states llama3_debugmodel --optimizer.name SGD)" = 0 ] || fail "the plan's bytes of SGD"
cat >momentum.yaml <<'X'
base: llama3_debugmodel
optimizer:
  param_groups:
    - {optimizer_name: SGD, optimizer_kwargs: {lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 0.01}}
X
resumed momentum momentum.yaml
[ "$(states momentum.yaml)" = $((whole / 2)) ] || fail "the plan's bytes of SGD with momentum"

# Muon for the matrices of the layers, AdamW for the rest.
cat >muon.yaml <<'X'
base: llama3_debugmodel
optimizer:
  param_groups:
    - {pattern: '^layers.*(attention|feed_forward)\.', optimizer_name: Muon, optimizer_kwargs: {lr: 0.02}}
    - {pattern: '.*'}
X
resumed muon muon.yaml
grep -q "Optimizer Muon: 14 params .*'momentum': 0.95, 'nesterov': True, 'ns_coefficients': (3.4445, -4.775, 2.0315), 'ns_steps': 5, 'adjust_lr_fn': 'original'" muon.log &&
    grep -q 'Optimizer AdamW: 7 params' muon.log || { grep Optimizer muon.log; fail 'groups of Muon and AdamW'; }
"$bin" checkpoint show muon/checkpoint/step-6 >show
[ "$(grep -c 'optimizer\.momentum_buffer\.layers' show)" = 14 ] && [ "$(grep -c 'optimizer\.exp_avg' show)" = 14 ] || { grep optimizer show; fail 'states of Muon and AdamW'; }

# What cannot be is refused before step 1, by name.
refused() { # PATTERN EXIT ARGS...
    local pattern=$1 want=$2 code=0
    shift 2
    "$bin" train --module llama3 "${small[@]}" --training.steps 1 --dump-folder refused "$@" >out 2>&1 || code=$?
    [ $code = "$want" ] && grep -qE -- "$pattern" out || { tail -n 3 out; fail "exit $code, wanted $want and $pattern"; }
    if grep -q 'Training starts' out; then fail "trained: $*"; fi
}
refused "Muon takes matrices, 'layers.0.attention_norm.weight' has 1 dims" 2 --config llama3_debugmodel --optimizer.name Muon
refused "'Sgd'.*SGD" 2 --config llama3_debugmodel --optimizer.name Sgd
refused 'nothing to look ahead along without momentum' 2 --config llama3_debugmodel --optimizer.name SGD --optimizer.param-groups.0.optimizer-kwargs.nesterov true
refused "option that this optimizer does not have.*(betas .* of group 0, which is SGD's)" 2 --config llama3_debugmodel --optimizer.name SGD --optimizer.param-groups.0.optimizer-kwargs.betas 0.9 0.99
refused "momentum 0.9 of group 0, which is AdamW's" 2 --config llama3_debugmodel --optimizer.param-groups.0.optimizer-kwargs.momentum 0.9
refused 'wanted three numbers' 2 --config llama3_debugmodel --optimizer.param-groups.0.optimizer-kwargs.ns-coefficients 3 2
code=0
"$bin" plan --module llama3 --config muon.yaml --ranks 2 --parallelism.tensor-parallel-degree 2 >out 2>&1 || code=$?
[ $code = 2 ] && grep -q 'Muon takes whole matrices, tensor parallelism cuts them' out || { cat out; fail 'Muon with tensor parallelism'; }
cp -r sgd/checkpoint momentum-from && mkdir from && mv momentum-from from/checkpoint
refused "has no 'optimizer.momentum_buffer.*another optimizer.*exclude-from-loading|holds weights only" 1 --config momentum.yaml --checkpoint.enable --dump-folder from
mkdir other && cp -r muon/checkpoint other/checkpoint
refused "has no 'optimizer.exp_avg.layers.*another optimizer.*exclude-from-loading" 1 --config llama3_debugmodel --checkpoint.enable --dump-folder other
echo "optimizers: resumed bit for bit"
