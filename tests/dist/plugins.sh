# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# Ops, an optimizer, a data set and a registry function of plug-ins (examples/plugin) through everything: one rank, two ranks with FSDP, two with tensor
# parallelism and sequence parallelism, recomputation, the reference backend, accumulated micro-batches, a plan, a checkpoint that another layout goes on from.
# Losses are those of one rank.
set -u
build=$1
bin=$build/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
export CTITAN_PLUGIN_PATH=$build/tests/plugins
fail() { { echo "FAILED: $*"; tail -n 20 log 2>/dev/null; } >&2; exit 1; }
common=(--training.steps 4 --training.global-batch-size 4 --training.seq-len 32 --debug.seed 5 --lr-scheduler.warmup-steps 1
        --metrics.log-freq 1 --metrics.disable-color-printing --training.mixed-precision-param float32 --dataloader.streams 2)
losses() { sed -nE 's/.*step: +([0-9]+) +loss: +([0-9.]+) +grad_norm: +([0-9.]+).*/\1 \2 \3/p' log; }
one() { "$bin" train "$@" "${common[@]}" 2>log || fail "$*"; losses; }
two() { "$bin" run --nproc_per_node=2 --local-ranks-filter 0 -m torchtitan.train "$@" "${common[@]}" >log 2>&1 || fail "two ranks: $*"; losses; }
# As many steps, each loss and norm as far from the other's as printing (a unit of the 5th and of the 4th decimal) and another order of float32 sums
# may put them: at most 2048 terms (the vocabulary), whose roundings add up as their root.
near() { paste -d' ' "$1" "$2" | awk -v n="$3" '
    function off(a, b, unit) { return (a > b ? a - b : b - a) > unit + 2 ^ -24 * sqrt(2048) * b }
    { if ($1 != $4 || off($2, $5, 1e-5) || off($3, $6, 1e-4)) bad = 1 } END { exit bad || NR != n }'; }
llama=(--module llama3 --config llama3_debugmodel)
relu=("${llama[@]}" --override.imports squared_relu.feed_forward)

# ops
one "${relu[@]}" --training.local-batch-size 4 --debug.dump-graph dump >relu
one "${llama[@]}" --training.local-batch-size 4 >plain
[ "$(wc -l <relu)" = 4 ] && ! cmp -s relu plain || fail "the override changes nothing"
graph=(dump/*autodiff*)
[ "$(grep -c 'squared_relu.gated(' "${graph[0]}")" = 6 ] && [ "$(grep -c 'squared_relu.gated_grad(' "${graph[0]}")" = 6 ] || fail "the graph"
! grep -rqh ' silu_mul' dump || fail "the stock op is there, too"
two "${relu[@]}" --training.local-batch-size 2 >fsdp
near relu fsdp 4 || fail "FSDP: $(cat fsdp)"
two "${relu[@]}" --training.local-batch-size 4 --parallelism.tensor-parallel-degree 2 >tp
near relu tp 4 || fail "TP: $(cat tp)"
two "${relu[@]}" --training.local-batch-size 4 --parallelism.tensor-parallel-degree 2 --parallelism.no-enable-sequence-parallel >tp_whole
near relu tp_whole 4 || fail "TP without sequence parallelism: $(cat tp_whole)"
one "${relu[@]}" --training.local-batch-size 2 >micro
near relu micro 4 || fail "two micro-batches: $(cat micro)"
one "${relu[@]}" --training.local-batch-size 4 activation-checkpoint:full >full
cmp -s relu full || fail "recomputation: $(diff relu full)"
tiny=("${relu[@]}" "${common[@]}" --model-spec.n-layers 1 --training.global-batch-size 2 --training.local-batch-size 2 --training.seq-len 8 --training.steps 2)
for device in cpu ref; do
    "$bin" train "${tiny[@]}" --device $device 2>log || fail "$device"
    losses >$device
done
near cpu ref 2 || fail "the reference backend: $(cat ref)"
"$bin" plan --target h200 --ranks 16 --module llama3 --config llama3_8b --override.imports squared_relu.feed_forward --json >plan.json 2>log || fail "plan"

# an optimizer and a registry function
lion=(--module lion --config llama3_debugmodel_lion)
one "${lion[@]}" --training.local-batch-size 4 >lion1
grep -q "Optimizer lion.Lion: 57 params .*'lr': 0.0001, 'betas': (0.9, 0.99)" log || fail "the optimizer's line"
one "${llama[@]}" --training.local-batch-size 4 --optimizer.name lion.Lion --optimizer.lr 1e-4 --optimizer.betas 0.9 0.99 >lion2
cmp -s lion1 lion2 || fail "the registry function and its flags"
two "${lion[@]}" --training.local-batch-size 2 >lion_fsdp
near lion1 lion_fsdp 4 || fail "Lion with FSDP: $(cat lion_fsdp)"
two "${lion[@]}" --training.local-batch-size 4 --parallelism.tensor-parallel-degree 2 >lion_tp
near lion1 lion_tp 4 || fail "Lion with TP: $(cat lion_tp)"
cat >groups.yaml <<'END'
base: llama3_debugmodel
optimizer:
  param_groups:
    - {pattern: 'norm', optimizer_name: SGD, optimizer_kwargs: {lr: 0.1, momentum: 0.9}}
    - {optimizer_name: lion.Lion, optimizer_kwargs: {lr: 0.0001, betas: [0.9, 0.99]}}
END
one --module llama3 --config groups.yaml --training.local-batch-size 4 >mixed
two --module llama3 --config groups.yaml --training.local-batch-size 2 >mixed_fsdp
near mixed mixed_fsdp 4 && ! cmp -s mixed lion1 || fail "a group of its own: $(cat mixed_fsdp)"

# a data set; a checkpoint of one rank that two go on from, with the optimizer's state and the data's place
numbers=("${lion[@]}" --dataloader.dataset counting.numbers --dataloader.dataset-path 300 --dataloader.shuffle)
one "${numbers[@]}" --training.local-batch-size 4 >numbers
grep -q 'Preparing counting.numbers dataset from 300' log || fail "the data set's line"
! cmp -s numbers lion1 || fail "the data set changes nothing"
save=(--checkpoint.enable --checkpoint.interval 2 --dump-folder out)
one "${numbers[@]}" --training.local-batch-size 4 "${save[@]}" >saved
cmp -s saved numbers || fail "with checkpoints"
rm -r out/checkpoint/step-4
two "${numbers[@]}" --training.local-batch-size 2 "${save[@]}" >resumed
sed -n '3,4p' numbers >last
near last resumed 2 || fail "resumed by two ranks: $(cat resumed)"
rm -r out/checkpoint/step-4
"$bin" train "${numbers[@]}" --training.local-batch-size 4 "${common[@]}" "${save[@]}" --dataloader.dataset-path 301 2>log && fail "resumed with other documents"
grep -q 'the data has changed since the state was saved' log || fail "what is said of other documents"
one "${llama[@]}" --training.local-batch-size 4 --dataloader.sources counting.numbers:1 "$(dirname "$build")/../share/ctitan/demo.jsonl:2" >mixture
grep -q 'Preparing dataset from counting.numbers: 33.33% of the tokens' log || fail "a mixture"
echo "all fine"
