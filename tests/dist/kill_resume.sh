# SPDX-License-Identifier: Apache-2.0
# labels: slow
# A run that is killed at 20 random moments and started again each time ends with the same bits as one that never stopped.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
seed=${CT_TEST_SEED:-$RANDOM}
echo "seed $seed (CT_TEST_SEED repeats it)"
RANDOM=$seed
flags=(--module llama3 --config llama3_debugmodel --training.steps 12 --training.local-batch-size 2 --training.seq-len 64
       --metrics.log-freq 1 --metrics.disable-color-printing --debug.seed 5 --checkpoint.enable --checkpoint.interval 2
       --checkpoint.keep-latest-k 3)
weights() { find "$1" -name '*.safetensors' -exec sha256sum {} + | awk '{ print $1 }' | sort; }

"$bin" train "${flags[@]}" --dump-folder whole 2>whole.err
start=$(date +%s%N)
"$bin" train "${flags[@]}" --dump-folder timed 2>/dev/null
span=$((($(date +%s%N) - start) / 1000000))
rm -rf timed

kills=0
while [ $kills -lt 20 ]; do
    rm -rf cut
    while :; do
        "$bin" train "${flags[@]}" --dump-folder cut 2>>cut.err &
        pid=$!
        sleep "$(awk -v ms=$((RANDOM % (span + 50))) 'BEGIN { printf "%.3f", ms / 1000 }')"
        if kill -KILL $pid 2>/dev/null && ! wait $pid 2>/dev/null; then
            kills=$((kills + 1))
            [ $kills -lt 20 ] || break
        else
            wait $pid 2>/dev/null || true
            break
        fi
    done
    "$bin" train "${flags[@]}" --dump-folder cut 2>>cut.err
    [ "$(weights whole/checkpoint/step-12)" = "$(weights cut/checkpoint/step-12)" ] || {
        echo "after $kills kills the weights differ"; tail -n 60 cut.err; exit 1; }
    # metrics.csv is one series, with the numbers of the whole run. (Kept as .1, .2 where a kill came before the first checkpoint.)
    cmp <(cut -d, -f1,3,5 whole/metrics.csv) <(cut -d, -f1,3,5 cut/metrics.csv) || { echo "after $kills kills metrics.csv differs"; exit 1; }
    # What a killed save or deletion leaves is named .tmp-step-… and goes with the next save.
    if ls -A cut/checkpoint | grep -vE '^(step-|\.tmp-step-)'; then echo 'left behind in the folder'; exit 1; fi
done
# Every loss that any of the starts logged is the loss of the whole run.
grep -hoE 'step: +[0-9]+ +loss: +[0-9.]+ +grad_norm: +[0-9.]+' cut.err | sort -u >cut.losses
grep -hoE 'step: +[0-9]+ +loss: +[0-9.]+ +grad_norm: +[0-9.]+' whole.err | sort -u >whole.losses
[ -z "$(comm -23 cut.losses whole.losses)" ] || { echo "losses differ:"; comm -3 cut.losses whole.losses; exit 1; }
echo "$kills kills"
