# SPDX-License-Identifier: Apache-2.0
# rooms: comm/gloo
# labels: slow
# What each rank sends over each axis of the mesh is, to the byte, what `ctitan plan` says: layouts of two and four ranks, with and without
# accumulation, checkpointing and resharding.
set -u
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
fail() { echo "FAILED: $*"; tail -n 5 log; exit 1; }
export OMP_NUM_THREADS=1
steps=2
# bytes_of AXIS: of one step, from the plan's JSON
bytes_of() { awk -v axis="\"$1\":" '$1 == axis { on = 1 } on && /_bytes"/ { gsub(",", "", $2); sum += $2 } on && /}/ { printf "%d", sum; exit }' plan.json; }
n_checked=0
try() { # try RANKS SETTINGS...
    local n=$1 r axis want got file
    shift
    local model=(--module llama3 --config llama3_debugmodel --training.seq-len 24 --training.steps $steps "$@")
    rm -rf out
    "$bin" run --nproc_per_node "$n" -m torchtitan.train "${model[@]}" --dump-folder out >log 2>&1 || fail "$n ranks: $*"
    for ((r = 0; r < n; r++)); do
        "$bin" plan --json --ranks "$n" --rank "$r" "${model[@]}" >plan.json 2>log || fail "plan of $n ranks: $*"
        file=$(ls out/structured_logs/*.global_rank_"$r".*) || fail "$n ranks: $*: no trace of rank $r"
        for axis in dp_replicate dp_shard tp; do
            want=$(($(bytes_of $axis) * steps))
            got=$(grep -o "\"event_name\":\"sent_bytes/$axis\".*" "$file" | sed -n 's/.*"value":\([0-9]*\).*/\1/p')
            [ -n "$got" ] || got=$(sed -n "s/.*\"value\":\([0-9]*\).*\"event_name\":\"sent_bytes\/$axis\".*/\1/p" "$file")
            [ "${got:-0}" = "$want" ] || fail "$n ranks, $*: rank $r sent ${got:-no} bytes over $axis, the plan says $want"
            [ "$want" = 0 ] || n_checked=$((n_checked + 1))
        done
    done
}
rows=--training.local-batch-size replicas=--parallelism.data-parallel-replicate-degree tensor=--parallelism.tensor-parallel-degree
try 2 $rows 2
try 2 $rows 1 --training.global-batch-size 4 activation-checkpoint:full
try 2 $rows 1 $replicas 2
try 2 $rows 2 $tensor 2
try 2 $rows 2 $tensor 2 --parallelism.no-enable-sequence-parallel
try 4 $rows 1 --parallelism.fsdp-reshard-after-forward always
try 4 $rows 1 --parallelism.fsdp-reshard-after-forward never --training.mixed-precision-param bfloat16
try 4 $rows 1 $replicas 2 --training.global-batch-size 8
try 4 $rows 1 $replicas 4
try 4 $rows 2 $tensor 2
try 4 $rows 2 $tensor 2 $replicas 2
try 4 $rows 2 $tensor 4
[ $n_checked = 50 ] || fail "$n_checked axes were looked at"
echo "$n_checked times: what was sent is what was planned"
