# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# Activation checkpointing by budget on two ranks that share parameters (FSDP), and on two that share products and sequences (TP, SP), in
# bfloat16: parameters and states after three steps have the bits of mode none; what backward runs again includes collectives of TP.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
train() {
    local to=$1
    shift
    "$bin" run --nproc_per_node=2 --rdzv_endpoint=localhost:0 -m torchtitan.train --module llama3 --config llama3_debugmodel --training.steps 3 \
        --training.seq-len 64 --training.local-batch-size 2 --debug.seed 5 --checkpoint.enable --checkpoint.interval 3 --checkpoint.no-last-save-model-only \
        --dump-folder "$dir/$to" "$@" >"$dir/$to.log" 2>&1 || { cat "$dir/$to.log"; exit 1; }
}
tp=(--parallelism.tensor-parallel-degree 2)
for layout in fsdp tp; do
    more=(--training.mixed-precision-param bfloat16)
    [ $layout = fsdp ] || more+=("${tp[@]}")
    train $layout.none "${more[@]}" activation-checkpoint:none
    train $layout.budget "${more[@]}" activation-checkpoint:memory-budget --activation-checkpoint.memory-budget 0.1
    grep -q "Selected 0.1 budget option" "$dir/$layout.budget.log" || { echo "no line about the budget"; exit 1; }
    "$bin" checkpoint diff "$dir/$layout.none/checkpoint" "$dir/$layout.budget/checkpoint" >"$dir/diff" 2>&1 || { echo "$layout:"; cat "$dir/diff"; exit 1; }
done
plan=$("$bin" plan --module llama3 --config llama3_debugmodel --ranks 2 "${tp[@]}" activation-checkpoint:memory-budget --activation-checkpoint.memory-budget 0.1)
grep -q ' x all_gather of layers' <<<"$plan" || { echo "no collective is run again: $plan"; exit 1; }
echo "memory_budget: bits of mode none"
