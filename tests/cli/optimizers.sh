#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# labels: fast
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
states() { "$bin" plan --module llama3 --config "$1" "${small[@]}" --json "${@:2}" | tr -d ' \n' | sed -nE 's/.*"state":([0-9]+).*/\1/p'; }

# bfloat16 moments: half the bytes, saved in bfloat16.
resumed bf16 llama3_debugmodel --optimizer.implementation fused_opt_states_bf16
"$bin" checkpoint show bf16/checkpoint/step-6 >show
[ "$(grep -c '^ *optimizer\.exp_avg.*bf16' show)" = 42 ] || { grep optimizer show; fail "42 moments in bf16"; }
echo "optimizers: resumed bit for bit"
