# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# A run saved by two ranks goes on with one, and the reverse, at the same place in the data and within rounding of the run that never changed; and
# a rank that dies ends the other one with a line that names it.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
common=(--module llama3 --config llama3_debugmodel --training.seq-len 64 --metrics.log-freq 1 --metrics.disable-color-printing --debug.seed 3
        --training.mixed-precision-param float32 --checkpoint.enable --checkpoint.interval 3 --lr-scheduler.total-steps 6)
one() { "$bin" train "${common[@]}" --training.local-batch-size 2 --dataloader.streams 2 "$@"; }
two() { "$bin" run --nproc_per_node=2 --local-ranks-filter 0 --rdzv_endpoint=localhost:0 -m torchtitan.train "${common[@]}" --training.local-batch-size 1 "$@"; }
losses() { grep -ohE 'step: +[0-9]+ +loss: +[0-9.]+ +grad_norm: +[0-9.]+' "$@" | sed -E 's/[a-z_]+://g'; }

one --training.steps 6 --dump-folder whole 2>whole.log
two --training.steps 3 --dump-folder a >a1.log 2>&1
one --training.steps 6 --dump-folder a >a2.log 2>&1
one --training.steps 3 --dump-folder b >b1.log 2>&1
two --training.steps 6 --dump-folder b >b2.log 2>&1
grep -q 'Training starts at step 4' a2.log && grep -q 'Training starts at step 4' b2.log
losses whole.log >whole.losses
[ "$(wc -l <whole.losses)" = 6 ]
for run in a b; do
    losses ${run}1.log ${run}2.log >$run.losses
    # 5 and 4 decimals are printed; sums in another order move the last ones by a few
    paste whole.losses $run.losses | awk '{ d = $2 - $5; if (d < 0) d = -d; e = $3 - $6; if (e < 0) e = -e
        if ($1 != $4 || d > 0.00005 || e > 0.0005) { print "step", $1, "loss", $2, "and", $5, "norm", $3, "and", $6; bad = 1 } } END { exit bad }' ||
        { echo "layout change $run"; exit 1; }
done

# Three streams cannot be dealt to two ranks: refused, not silently changed.
code=0
two --training.steps 1 --dataloader.streams 3 --dump-folder c >c.log 2>&1 || code=$?
[ $code = 2 ] || { cat c.log; exit 1; }

"$bin" run --nproc_per_node=2 --rdzv_endpoint=localhost:0 -m torchtitan.train "${common[@]}" --training.local-batch-size 1 --training.steps 100000 \
    --checkpoint.interval 100000 --dump-folder d >d.log 2>&1 &
pid=$!
for _ in $(seq 300); do
    grep -q 'step:  2' d.log && break
    sleep 0.1
done
victim=$(pgrep -P $pid | tail -n 1)
kill -KILL "$victim"
start=$(date +%s)
code=0
wait $pid || code=$?
[ $code != 0 ] && [ $(($(date +%s) - start)) -lt 20 ] || { tail d.log; echo "exit $code"; exit 1; }
grep -qE '^ctitan run: rank [01] .* was killed by SIGKILL' d.log || { tail d.log; exit 1; }
[ -z "$(pgrep -P "$pid" || true)" ]

# Where checkpoints are there and none is whole, the run is refused: beginning anew would write over them.
for f in a/checkpoint/step-*/*.safetensors; do truncate -s 900 "$f"; done
code=0
one --training.steps 6 --dump-folder a >e.log 2>&1 || code=$?
[ $code = 1 ] && grep -q 'can be resumed from' e.log && ! grep -q 'Training starts' e.log || { cat e.log; exit 1; }

# Ranks that do not see one folder are told before the first step, not at the first save.
code=0
for only in "" 1; do
    rm -rf apart
    # shellcheck disable=SC2016
    APART=$only BIN=$bin "$bin" run --nproc_per_node=2 --rdzv_endpoint=localhost:0 --no-python bash -c \
        'exec "$BIN" train "$@" --dump-folder "apart/$((RANK * ${APART:-0}))"' bash "${common[@]}" --training.local-batch-size 1 --training.steps 4 \
        --checkpoint.interval 1 --checkpoint.keep-latest-k 2 >f.log 2>&1 || code=$?
    if [ -z "$only" ]; then
        [ $code = 0 ] && [ "$(ls -A apart/0/checkpoint | tr '\n' ' ')" = 'step-3 step-4 ' ] || { tail f.log; ls -A apart/0/checkpoint; exit 1; }
    else
        [ $code != 0 ] && grep -q "the folder is not shared: what rank 0 writes into 'apart/1/checkpoint' is not there for rank 1" f.log &&
            ! grep -q 'step:  1' f.log && [ -z "$(ls -A apart/*/checkpoint 2>/dev/null | grep -v ':$' || true)" ] || { tail f.log; ls -AR apart; exit 1; }
    fi
done
