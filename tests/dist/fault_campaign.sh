# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# Ranks are killed and stopped, and launchers killed, at random moments: each time all ends in time and nothing stays behind, no checkpoint
# that was whole is lost, and the run that goes on ends with the weights of one that nothing happened to, bit for bit. A sample of the
# moments; CT_CAMPAIGN=whole takes 50 kills, 20 stops and 10 launchers (`tools/long` does). CT_TEST_SEED repeats one.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
seed=${CT_TEST_SEED:-$RANDOM}
RANDOM=$seed
kills=3 stops=1 launchers=1
[ "${CT_CAMPAIGN:-}" != whole ] || { kills=50 stops=20 launchers=10; }
echo "seed $seed (CT_TEST_SEED repeats it): $kills kills, $stops stops, $launchers launchers"
export OMP_NUM_THREADS=1
n=3 steps=10
train=(-m torchtitan.train --module llama3 --config llama3_debugmodel --training.seq-len 16 --training.local-batch-size 1 --training.steps $steps
    --model-spec.n-layers 2 --model-spec.dim 32 --model-spec.n-heads 2 --model-spec.n-kv-heads 2 --model-spec.ffn-hidden 32 --metrics.log-freq 1
    --metrics.disable-color-printing --debug.seed 5 --checkpoint.enable --checkpoint.interval 2 --checkpoint.keep-latest-k 3
    --checkpoint.no-last-save-model-only)
fail() { echo "FAILED: $*"; tail -n 40 log; exit 1; }
weights() { find "$1/checkpoint/step-$steps" -name '*.safetensors' -exec sha256sum {} + | awk '{ print $1 }' | sort; }
whole_run() { timeout 120 "$bin" run --nproc_per_node $n "${train[@]}" --dump-folder "$dir/$1" >log 2>&1 || fail "a run that nothing happens to: exit $?"; }
now_ms() { date +%s%3N; }
last_step() { find cut/checkpoint -maxdepth 1 -name 'step-*' 2>/dev/null | sed 's/.*step-//' | sort -n | tail -n 1; }
ranks() { pgrep -P $pid -f 'ctitan train' || true; }

whole_run whole
want=$(weights whole)
start=$(now_ms)
whole_run timed
span=$(($(now_ms) - start))
times=()
met=0 missed=0 resumed=0

# fault KIND: one start of a fresh run that the fault meets at a random moment, and then the rest of it.
fault() {
    local kind=$1 more=() moment=$((RANDOM % span)) who=$((RANDOM % n)) victim='' was began code=0 hit=0
    rm -rf cut
    [ "$kind" != stop ] || more=(--comm.init-timeout-seconds 8 --comm.train-timeout-seconds 4)
    "$bin" run --nproc_per_node $n "${train[@]}" "${more[@]}" --dump-folder "$dir/cut" >log 2>&1 &
    pid=$!
    sleep "$(awk -v ms=$moment 'BEGIN { printf "%.3f", ms / 1000 }')"
    for _ in $(seq 100); do
        victim=$(ranks | sed -n "$((who + 1))p")
        [ -z "$victim" ] && kill -0 $pid 2>/dev/null || break
    done
    was=$(last_step)
    began=$(now_ms)
    case $kind in
    kill) [ -n "$victim" ] && kill -KILL "$victim" 2>/dev/null && hit=1 ;;
    stop) [ -n "$victim" ] && kill -STOP "$victim" 2>/dev/null && hit=1 ;;
    launcher) [ -n "$victim" ] && kill -KILL $pid 2>/dev/null && hit=1 ;;
    esac || true
    for _ in $(seq 1200); do # a minute: the limits, 5 s for ranks that do not end, and a machine that does other work
        if ! kill -0 $pid 2>/dev/null && ! pgrep -f -- "--dump-folder $dir/cut" >/dev/null; then break; fi
        sleep 0.05
    done
    pgrep -f -- "--dump-folder $dir/cut" >/dev/null && fail "$kind at $moment ms: left behind: $(pgrep -af -- "--dump-folder $dir/cut")"
    [ $hit = 0 ] || times+=("$kind $(($(now_ms) - began))")
    wait $pid 2>/dev/null || code=$?
    if [ $code != 0 ]; then
        case $kind in
        kill | launcher) [ $code = 137 ] || [ $code = 75 ] ;;
        stop) [ $code = 75 ] || [ $code = 137 ] ;; # 137: it was stopped when the others had no more calls to make
        esac || fail "$kind of rank $who at $moment ms: exit $code"
    fi
    if [ -n "$was" ]; then # what was there is there, or has made room for later ones
        [ "$(last_step)" -ge "$was" ] && "$bin" checkpoint show "$dir/cut/checkpoint" >/dev/null || fail "$kind at $moment ms: the checkpoint of step $was is lost"
    fi
    if [ $code != 0 ]; then
        cp log "log.$kind"
        whole_run cut
        resumed=$((resumed + 1))
    fi
    [ "$(weights cut)" = "$want" ] || fail "$kind of rank $who at $moment ms (exit $code): other weights than the run that nothing happened to"
    [ $hit = 0 ] && missed=$((missed + 1)) || met=$((met + 1))
}
many() { # many N KIND: as many as met a process; a run may have been over before its moment
    local until=$((met + $1))
    while [ $met -lt $until ]; do fault "$2"; done
}
many $kills kill
many $stops stop
many $launchers launcher

# A rank that hangs, and a launcher that may start again: the run ends by itself, with the same weights.
rm -rf cut
"$bin" run --nproc_per_node $n --max_restarts 1 "${train[@]}" --comm.train-timeout-seconds 4 --dump-folder "$dir/cut" >log 2>&1 &
pid=$!
until grep -q 'step:  3 ' log; do kill -0 $pid 2>/dev/null || break; sleep 0.02; done
kill -STOP "$(ranks | sed -n 2p)" 2>/dev/null || true
code=0
wait $pid || code=$?
[ $code = 0 ] && [ "$(weights cut)" = "$want" ] || fail "restart after a hang: exit $code, or other weights"

printf '%s\n' "${times[@]}" | sort -k1,1 -k2,2n | awk '{ n[$1]++; t[$1, n[$1]] = $2 } END { for (k in n)
    printf "%s: %d, to all ended: median %d ms, longest %d ms\n", k, n[k], t[k, int((n[k] + 1) / 2)], t[k, n[k]] }'
echo "$met faults ($missed more came after the end), $resumed runs went on, all with the same weights"
