# SPDX-License-Identifier: Apache-2.0
# rooms: comm/gloo
# labels: slow
# The cable between two hosts is cut at random moments: both end in time with 75 and leave nothing behind, one table names both hosts' ranks, and
# the run that goes on ends with the weights of one that nothing happened to, bit for bit. A sample; CT_CAMPAIGN=whole cuts 10 times.
set -u
# shellcheck source=tests/helpers/two_hosts.bash
. "$(dirname "$0")/../helpers/two_hosts.bash"
export OMP_NUM_THREADS=1
seed=${CT_TEST_SEED:-$RANDOM}
RANDOM=$seed
cuts=1
[ "${CT_CAMPAIGN:-}" != whole ] || cuts=10
echo "seed $seed (CT_TEST_SEED repeats it): $cuts cuts"
steps=12
train=(-m torchtitan.train --module llama3 --config llama3_debugmodel --training.seq-len 16 --training.local-batch-size 1 --training.steps $steps
    --model-spec.n-layers 2 --model-spec.dim 32 --model-spec.n-heads 2 --model-spec.n-kv-heads 2 --model-spec.ffn-hidden 32 --metrics.log-freq 1
    --metrics.disable-color-printing --debug.seed 5 --checkpoint.enable --checkpoint.interval 2 --checkpoint.keep-latest-k 3
    --comm.init-timeout-seconds 8 --comm.train-timeout-seconds 4 --checkpoint.no-last-save-model-only)
weights() { find "$1/checkpoint/step-$steps" -name '*.safetensors' -exec sha256sum {} + | awk '{ print $1 }' | sort; }
host() { # host a|b NODE-RANK FOLDER: log.X, code.X
    local on=() code=0
    [ "$1" = b ] && read -ra on <<<"$b"
    "${on[@]}" timeout 120 "$bin" run --nnodes 2 --node_rank "$2" --nproc_per_node 1 --tee 3 --rdzv_endpoint 10.77.0.1:29400 --rdzv_id cable "${train[@]}" \
        --dump-folder "$dir/$3" >"log.$1" 2>&1 || code=$?
    echo $code >"code.$1"
}
both() { # both FOLDER: in the background
    rm -f code.* log.*
    host a 0 "$1" &
    host b 1 "$1" &
}
ended() { wait_for test -s code.a; wait_for test -s code.b; }
both whole
ended
[ "$(cat code.a code.b | tr '\n' ' ')" = '0 0 ' ] || fail 'a run that nothing happens to'
want=$(weights whole)
for ((i = 0; i < cuts; i++)); do
    rm -rf cut
    at=$((1 + RANDOM % (steps - 4)))
    ms=$((RANDOM % 50))
    moment="step $at and $ms"
    both cut
    reached() { grep -qE "step: +$at " log.a log.b; }
    wait_for reached
    sleep "$(awk -v ms=$ms 'BEGIN { printf "%.3f", ms / 1000 }')"
    ip link set va down
    ended
    ! pgrep -f -- "--dump-folder $dir/cut" >/dev/null || fail "cut at $moment ms: left behind"
    codes="$(cat code.a) $(cat code.b)"
    for c in $codes; do [ "$c" = 75 ] || [ "$c" = 0 ] || fail "cut at $moment ms: exit codes $codes"; done
    cp log.a "cut.a"
    ip link set va up
    wait_for ready
    if [ "$codes" != '0 0' ]; then
        both cut
        ended
        [ "$(cat code.a) $(cat code.b)" = '0 0' ] || fail "after the cut at $moment ms it does not go on"
    fi
    [ "$(weights cut)" = "$want" ] || fail "cut at $moment ms (exit codes $codes): other weights than the run that nothing happened to"
    echo "cut at $moment ms: exit codes $codes, same weights"
done
# One table of both hosts: a rank of host b is killed, host a prints it.
rm -rf cut
steps=100000
train+=(--training.steps $steps)
both cut
stepped() { grep -q 'step: *3 ' log.a log.b; }
wait_for stepped
kill -KILL "$(pgrep -f -- "ctitan train.*--dump-folder $dir/cut" | while read -r p; do tr '\0' '\n' <"/proc/$p/environ" | grep -qx RANK=1 && echo "$p"; done)"
ended
[ "$(cat code.a) $(cat code.b)" = '137 137' ] || fail "exit codes $(cat code.a) $(cat code.b)"
grep -q '^ctitan run: the ranks as they stood:' log.a || fail 'host a prints no table'
grep -qE '^ +0 +host-a +(running|in the kernel) ' log.a && grep -qE '^ +1 +host-b +killed by SIGKILL +[0-9]+ ' log.a || fail 'the table lacks a rank'
! grep -q 'as they stood' log.b || fail 'host b prints a table, too'
[ -s cut/comm_traces/rank_0 ] && [ -s cut/comm_traces/rank_1 ] || fail 'a file of the flight recorder is missing'
"$bin" flight-recorder cut/comm_traces | grep -qE '^ +1 +host-b ' || fail 'the files are not read'
echo ok
