# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# Data that ends (--dataloader.no-infinite): all ranks stop after the same step; with a fixed number of streams that step and its losses are those of
# every layout; by default streams are the data ranks, so the step may be another one, but is the same on all ranks still.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
for i in $(seq 1 40); do
    echo "{\"text\": \"Letter $i. The ferry to island $((i % 7)) leaves at $((i % 12)) with $((i * i)) goats on it, and nobody minds.\"}"
done >few.jsonl
run() { # run RANKS ARGS...: "rank step loss" of each rank's last step
    local n=$1
    shift
    OMP_NUM_THREADS=1 timeout 120 "$bin" run --nproc_per_node="$n" --rdzv_endpoint=localhost:0 -m torchtitan.train --module llama3 --config llama3_debugmodel \
        --training.seq-len 32 --training.local-batch-size $((4 / n)) --training.global-batch-size 4 --dataloader.dataset-path few.jsonl \
        --dataloader.no-infinite --training.steps 1000 --metrics.log-freq 1 --metrics.disable-color-printing --debug.seed 3 \
        --training.mixed-precision-param float32 --model-spec.n-layers 1 --model-spec.dim 32 --model-spec.n-heads 2 --model-spec.n-kv-heads 2 \
        --model-spec.ffn-hidden 32 --dump-folder "out$n" "$@" >log 2>&1 || { tail log; exit 1; }
    [ "$(grep -c 'Ran out of data; last step was canceled' log)" = "$n" ] || { tail log; echo "not every rank of $n ran out of data"; exit 1; }
    sed -n 's/^\(\[default\([0-9]\)\]:\)\{0,1\}.*step: *\([0-9]*\) *loss: *\([0-9.]*\).*/\2 \3 \4/p' log |
        awk '{ last[NF > 2 ? $1 : 0] = $(NF - 1) " " substr($NF, 1, 6) } END { for (r in last) print last[r] }' | sort -u
}
one=$(run 1 --dataloader.streams 4)
case $one in "" | "1 "*) echo "one rank: '$one'"; exit 1 ;; esac
for n in 2 4; do
    many=$(run $n --dataloader.streams 4)
    [ "$many" = "$one" ] || { echo "$n ranks end with '$many', one with '$one'"; exit 1; }
    [ "$(run $n | wc -l)" = 1 ] || { echo "$n ranks do not end together"; exit 1; }
done
