# SPDX-License-Identifier: Apache-2.0
# labels: slow
# The memory that is printed before step 1 is the memory that is used: the process's high-water mark lies between the planned block and
# the block plus what is named for the host, for several sizes and ways of recomputing.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mib() { awk -v t="$1" 'BEGIN { split(t, a, " "); f = a[2] == "GiB" ? 1024 : a[2] == "MiB" ? 1 : a[2] == "KiB" ? 1 / 1024 : 1 / 1048576; printf "%.3f", a[1] * f }'; }
last=999999
for mode in none selective full; do
    "$bin" train --module llama3 --config llama3_debugmodel --training.steps 3 --training.local-batch-size 8 --training.seq-len 512 \
        --metrics.disable-color-printing --training.mixed-precision-param float32 --dump-folder "$dir/out" activation-checkpoint:$mode 2>"$dir/log" || { cat "$dir/log"; exit 1; }
    plan=$(mib "$(sed -nE 's/.*Planned memory: ([0-9.]+ [KMG]iB) in one block.*/\1/p' "$dir/log")")
    host=0
    for what in batches corpus allowance; do
        part=$(mib "$(sed -nE "s/.*Host memory beside it: .*$what ([0-9.]+ [KMG]?i?B).*/\1/p" "$dir/log")")
        host=$(awk -v a="$host" -v b="$part" 'BEGIN { print a + b }')
    done
    used=$(sed -nE 's/.*step: +3 .*memory: +([0-9.]+)GiB.*/\1/p' "$dir/log")
    echo "$mode: planned $plan MiB, host $host MiB, used $used GiB"
    # "used" is printed in hundredths of a GiB: half of one is its rounding.
    awk -v p="$plan" -v h="$host" -v u="$used" -v l="$last" 'BEGIN { u *= 1024
        if (u < p - 6 || u > p + h + 6) { print "used", u, "MiB, wanted", p, "to", p + h; exit 1 }
        if (p >= l) { print "more recomputing, but not less memory:", p, "after", l; exit 1 } }'
    last=$plan
done
