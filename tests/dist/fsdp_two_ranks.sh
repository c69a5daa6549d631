# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# The quick start for two cards on two processes, float32 and bfloat16 storage: FSDP over both, lines with their prefix, halves that sum to the
# whole, and the losses of one rank that reads two streams.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
common=(--module llama3 --config llama3_debugmodel --training.steps 5 --training.seq-len 128 --metrics.log-freq 1
        --metrics.disable-color-printing --debug.seed 3)
losses() { grep -oE 'step: +[0-9]+ +loss: +[0-9.]+ +grad_norm: +[0-9.]+' "$1" | sed -E 's/[a-z_]+://g'; }

for dtype in float32 bfloat16; do
    "$bin" run --nproc_per_node=2 --rdzv_backend c10d --rdzv_endpoint=localhost:0 --local-ranks-filter 0 --tee 3 -m torchtitan.train \
        "${common[@]}" --training.dtype $dtype --training.mixed-precision-param float32 --training.local-batch-size 1 \
        --debug.print-shards --dump-folder "$dir/two" >two.out 2>two.err
    cat two.out two.err >two.$dtype
    for line in 'Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=2, cp=1, tp=1, ep=1' \
        "Successfully created meshes with active dimensions: ['batch', 'loss', 'dp', 'dp_shard']" 'Applied FSDP to the model' \
        'Synchronizing and adjusting timeout for all ProcessGroups to 0:01:40' 'Training completed' 'Process group destroyed'; do
        grep -F "$line" two.$dtype | grep -q '^\[default0\]:' || { echo "$dtype: no line [default0]:… $line"; cat two.$dtype; exit 1; }
    done
    if grep -vE '^\[default0\]:' two.$dtype; then echo "$dtype: lines without prefix or of rank 1"; exit 1; fi
done

# One rank, two streams: the same rows, so the same losses within the reordering of sums (5 printed decimals, up to 2 in the last).
"$bin" train "${common[@]}" --training.dtype float32 --training.mixed-precision-param float32 --training.local-batch-size 2 \
    --dataloader.streams 2 --dump-folder "$dir/one" 2>one.err
losses one.err >one.losses
losses two.float32 >two.losses
[ "$(wc -l <one.losses)" = 5 ]
paste one.losses two.losses | awk '{ d = $2 - $5; if (d < 0) d = -d; e = $3 - $6; if (e < 0) e = -e
    if ($1 != $4 || d > 0.00002 || e > 0.0002) { print "step", $1, "loss", $2, "and", $5, "norm", $3, "and", $6; bad = 1 } } END { exit bad }'

# Each rank holds half of every group; the ranges of both ranks make each tensor whole.
"$bin" run --nproc_per_node=2 --rdzv_endpoint=localhost:0 --tee 3 -m torchtitan.train "${common[@]}" --training.steps 1 \
    --training.local-batch-size 1 --debug.print-shards --dump-folder "$dir/shards" >shards.out 2>shards.err
cat shards.out shards.err | grep -F '[Shard]' | sed -E 's/.*\[Shard\] rank ([0-9]+): ([^ ]+) \[([0-9]+), ([0-9]+)\) of ([0-9]+).*/\2 \1 \3 \4 \5/' |
    sort -k1,1 -k3,3n -k2,2n | awk '
    $1 != name { if (name != "" && at != total) { print name, "ends at", at, "of", total; bad = 1 } name = $1; at = 0; total = $5; n++ }
    { if ($3 != at && $3 != $4) { print $1, "rank", $2, "begins at", $3, "not", at; bad = 1 } if ($4 > at) at = $4; held[$2] += $4 - $3 }
    END { if (at != total) bad = 1
          if (n != 3 * 57) { print n, "tensors, wanted", 3 * 57; bad = 1 }
          if (held[0] + held[1] != 3 * 6163712) { print "held", held[0], held[1]; bad = 1 }
          d = held[0] - held[1]; if (d < 0) d = -d # each of 8 groups ends with padding of less than 64 leaves of 32 elements
          if (d > 3 * 8 * 64 * 32) { print "not halves:", held[0], held[1]; bad = 1 }
          exit bad }'

# The longest limits that can be given are limits, and not short ones.
"$bin" run --nproc_per_node=2 -m torchtitan.train "${common[@]}" --training.steps 3 --model-spec.n-layers 1 --comm.init-timeout-seconds 9223372036854775807 \
    --comm.train-timeout-seconds 9223372036854775807 --dump-folder "$dir/long" >long.out 2>&1 || { tail -n 5 long.out; exit 1; }
