# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# Two ranks, one file with two objects on line 50 and a string cut off on line 70: both ranks end with the line named, long before any
# time limit; or the lines are skipped and counted. Never a loader that is gone under a trainer that waits.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
for i in $(seq 1 100); do
    case $i in
    50) echo '{"text": "one"} {"text": "two"}' ;;
    70) echo '{"text": "cut off in the mid' ;;
    *) echo "{\"text\": \"Letter $i. The ferry to island $((i % 7)) leaves at $((i % 12)) with $((i * 3)) goats on it, and nobody minds.\"}" ;;
    esac
done >a.jsonl
gzip -k a.jsonl
mkdir gz
mv a.jsonl.gz gz/b.jsonl.gz
two() {
    timeout 120 "$bin" run --nproc_per_node=2 --rdzv_endpoint=localhost:0 -m torchtitan.train --module llama3 --config llama3_debugmodel \
        --training.seq-len 64 --training.local-batch-size 4 --training.steps 12 --metrics.disable-color-printing --debug.seed 3 "$@"
}
for workers in 0 2; do
    for data in a.jsonl gz; do
        code=0
        two --dataloader.dataset-path $data --dataloader.num-workers $workers >log 2>&1 || code=$?
        [ $code != 0 ] && [ $code != 124 ] || { tail log; echo "exit code $code"; exit 1; }
        grep -qE "\.jsonl(\.gz)?' line (50|70): (more than one value on the line|cut off at the end of the line)" log || { tail log; exit 1; }
    done
    two --dataloader.dataset-path a.jsonl --dataloader.num-workers $workers --dataloader.bad-records skip --dataloader.max-bad-share 0.1 >log 2>&1 || { tail log; exit 1; }
    grep -q 'step: 12 ' log && grep -q "a.jsonl' line 50" log || { tail log; exit 1; }
done
