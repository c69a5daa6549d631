#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rooms: comm/gloo
# labels: slow
# check-overrides of what comes with ctitan on the npu backend, over the doubles of CANN's libraries; without CANN it says what is missing. A step with w13
# there is the stock step, bit for bit.
set -eu
build=$1
bin=$build/bin/ctitan
for lib in ascendcl nnopbase opapi; do
    [ -e "$build/fake_cann/lib64/lib$lib.so" ] || { echo "skipped: the double of lib$lib is not built"; exit 77; }
done
dir=$(mktemp -d "$build/test-overrides-npu-XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*"; tail -n 12 out err 2>/dev/null; exit 1; }
code=0
env -u ASCEND_OPP_PATH ASCEND_HOME_PATH="$dir/none" "$bin" check-overrides --device npu fused_swiglu >out 2>err || code=$?
[ $code = 1 ] && grep -q 'ASCEND_HOME_PATH' err || fail "without CANN: $code"
mkdir opp
export ASCEND_HOME_PATH=$build/fake_cann ASCEND_OPP_PATH=$dir/opp FAKE_CANN_LEAKS=fail FAKE_CANN_DELAY=0
"$bin" check-overrides --device npu fused_swiglu npu_compat >out 2>err || fail 'on npu'
grep -q "on 'npu', beside the stock part in double" out && ! grep -q DIFFERS out || fail 'lines'
grep -q '^fused override equivalence: forward OK, gradients OK, parameters OK$' out || fail 'fused_swiglu'
[ "$(tail -n 1 out)" = 'npu override equivalence: rope OK, mask OK' ] || fail 'npu_compat'
for run in stock fused; do
    imports=()
    [ $run = stock ] || imports=(--override.imports fused_swiglu.fused_swiglu)
    "$bin" train --module llama3 --config llama3_debugmodel --device npu --model-spec.n-layers 2 --model-spec.dim 64 --model-spec.n-heads 4 \
        --model-spec.n-kv-heads 2 --model-spec.ffn-hidden 96 --training.seq-len 32 --training.local-batch-size 2 --training.steps 2 --debug.seed 42 --debug.deterministic \
        --checkpoint.enable --checkpoint.no-last-save-model-only --dump-folder $run "${imports[@]}" >out 2>err || fail "train $run"
done
"$bin" checkpoint diff stock/checkpoint/step-2 fused/checkpoint/step-2 >out || fail 'other bits on npu'
# And on two, in tensor parallelism.
for run in stock fused; do
    imports=()
    [ $run = stock ] || imports=(--override.imports fused_swiglu.fused_swiglu)
    FAKE_CANN_DEVICES=2 ASCEND_RT_VISIBLE_DEVICES=0,1 HCCL_NPU_SOCKET_PORT_RANGE=60000-60200 OMP_NUM_THREADS=1 "$bin" run --nproc_per_node=2 -m torchtitan.train \
        --module llama3 --config llama3_debugmodel --device npu --model-spec.n-layers 2 --model-spec.dim 64 --model-spec.n-heads 4 --model-spec.n-kv-heads 2 \
        --model-spec.ffn-hidden 96 --training.seq-len 32 --training.local-batch-size 2 --training.steps 2 --debug.seed 42 --debug.deterministic \
        --parallelism.tensor-parallel-degree 2 --checkpoint.enable --checkpoint.no-last-save-model-only --dump-folder $run-2 "${imports[@]}" >out 2>err ||
        fail "two ranks $run"
done
"$bin" checkpoint diff stock-2/checkpoint/step-2 fused-2/checkpoint/step-2 >out || fail 'other bits on two npus'
echo 'overrides on npu: equal'
