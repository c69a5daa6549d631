# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# The tokens of a step are the same for one rank and for two, with and without threads, for an unbroken run and for one that stops twice and changes
# its ranks: --debug.log-batch-hash says so. Two sources, shuffled, whole documents. What the order hangs on cannot change on the way.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
for i in $(seq 1 60); do
    echo "{\"text\": \"Letter $i. The ferry to island $((i % 7)) leaves at $((i % 12)) with $((i * 3)) goats on it, and nobody minds.\"}"
done >a.jsonl
for i in $(seq 1 30); do echo "{\"body\": \"$i\", \"text\": \"Item $i\"}"; done >b.jsonl
common=(--module llama3 --config llama3_debugmodel --training.seq-len 64 --metrics.disable-color-printing --debug.seed 3 --debug.log-batch-hash
        --training.mixed-precision-param float32 --checkpoint.enable --checkpoint.interval 2 --lr-scheduler.total-steps 6
        --checkpoint.no-last-save-model-only --training.global-batch-size 8
        --dataloader.sources a.jsonl:0.8 b.jsonl:0.2 --dataloader.shuffle --dataloader.seed 5 --dataloader.packing first-fit --dataloader.num-packing-bins 3)
one() { "$bin" train "${common[@]}" --training.local-batch-size 4 --dataloader.streams 2 "$@"; }
two() { "$bin" run --nproc_per_node=2 --local-ranks-filter 0 --rdzv_endpoint=localhost:0 -m torchtitan.train "${common[@]}" --training.local-batch-size 2 "$@"; }
hashes() { grep -ohE 'Batch of step [0-9]+: tokens [0-9a-f]{16}' "$@"; }

one --training.steps 6 --dump-folder whole 2>whole.log
two --training.steps 2 --dump-folder a --dataloader.num-workers 2 >a1.log 2>&1
one --training.steps 4 --dump-folder a --dataloader.num-workers 1 --dataloader.prefetch-factor 5 2>a2.log
two --training.steps 6 --dump-folder a >a3.log 2>&1
hashes whole.log >want
[ "$(sort -u want | wc -l)" = 6 ]
hashes a1.log a2.log a3.log >got
diff want got || { tail a1.log a2.log a3.log; exit 1; }

# Refused by name, with the way out; which then is one.
refused() {
    want=$1
    code=0
    shift
    one --training.steps 8 --dump-folder a "$@" >r.log 2>&1 || code=$?
    [ $code = 1 ] && grep -q -e "$want" r.log && grep -q -e '--checkpoint.exclude-from-loading dataloader' r.log || { tail r.log; echo "wanted: $want"; exit 1; }
}
refused 'shuffle is off, was on' --dataloader.no-shuffle
refused 'seed is 6, was 5' --dataloader.seed 6
refused 'packing is concat-then-split, was first-fit' --dataloader.packing concat-then-split
refused 'the weight of source 2 is 0.3, was 0.2' --dataloader.sources a.jsonl:0.8 b.jsonl:0.3
refused 'there are 1 sources, there were 2' --dataloader.sources a.jsonl
one --training.steps 7 --dump-folder a --dataloader.no-shuffle --checkpoint.exclude-from-loading dataloader 2>r.log || { tail r.log; exit 1; }
grep -q 'Batch of step 7' r.log
