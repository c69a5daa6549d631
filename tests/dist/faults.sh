# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# A rank that stands still or is killed ends the others within the limit that was set, with a line that names rank, collective and step, and no
# checkpoint that is not whole; a port that is taken is named; a signal to the whole group saves, with threads of the loader and without; and
# nothing stays behind.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*"; tail -n 12 log; exit 1; }
common=(-m torchtitan.train --module llama3 --config llama3_debugmodel --training.seq-len 16 --training.local-batch-size 1 --training.steps 1000000
    --model-spec.n-layers 1 --model-spec.dim 32 --model-spec.n-heads 2 --model-spec.n-kv-heads 2 --model-spec.ffn-hidden 32 --metrics.log-freq 1
    --metrics.disable-color-printing --debug.seed 1 --checkpoint.enable --checkpoint.interval 1000000 --checkpoint.no-last-save-model-only)
export OMP_NUM_THREADS=1
start() { # start DUMP-FOLDER ARGS...: in the background, in a process group of its own, until it has made a step
    local folder=$1
    shift
    rm -rf log "$folder"
    setsid "$bin" run "$@" "${common[@]}" "${more[@]}" --dump-folder "$dir/$folder" >log 2>&1 &
    pid=$!
    for _ in $(seq 300); do
        grep -q 'step:  2 ' log && return
        sleep 0.1
    done
    fail "no step of $folder"
}
ends() { # ends SECONDS: it does, within them; its exit code in $code
    for _ in $(seq $((10 * $1))); do
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    kill -0 $pid 2>/dev/null && fail 'it goes on'
    code=0
    wait $pid || code=$?
    ! pgrep -f -- "--dump-folder $dir/" >/dev/null || fail "left behind: $(pgrep -af -- "--dump-folder $dir/")"
}
rank() { pgrep -P $pid | sed -n "$(($1 + 1))p"; } # processes are started in the order of ranks

# Rank 1 stands still: the limit is 3 seconds.
more=(--comm.train-timeout-seconds 3 --comm.init-timeout-seconds 60)
start still --nproc_per_node 3 --rdzv_endpoint=localhost:0
grep -q 'timeout for all ProcessGroups to 0:00:03' log || fail 'the limit in force is not told'
kill -STOP "$(rank 1)"
ends 20
[ $code != 0 ] || fail 'exit 0'
grep -qE 'ERROR - step [0-9]+: .*(all_reduce|all_gather|reduce_scatter|barrier).*: rank 1 did not answer within 3000 ms' log || fail 'who, what and when'
! ls still/checkpoint/step-* 2>/dev/null || fail 'a checkpoint'
# One table says who stood where, and the files of the flight recorder who lacks which call; that of the rank that stood still is there, too.
[ "$(grep -c 'the ranks as they stood' log)" = 1 ] && grep -qE '^ +1 +[^ ]+ +stopped +[0-9]+ ' log || fail 'no table'
# It stands still between two calls or in one; then the others may be in it, too, or one call further.
lacks="^  [a-z_]+ [0-9]+ of '[a-z_.]+'.*(rank 1 did not|ranks 0, 1 did not|ranks 1, 2 did not|rank 1 is stopped in it)"
grep -qE "$lacks" log || fail 'who lacks which call'
"$bin" flight-recorder still/comm_traces >table || fail 'the files are not read'
grep -q '3 of 3 ranks left a file' table && grep -qE '(rank 1|ranks 0, 1|ranks 1, 2) did not|rank 1 is stopped in it|rank 1 [a-z ]*in it' table || { cat table; fail 'the files say otherwise'; }

# For less than the limit: it is told, and goes on.
more=(--comm.trace-buf-size 0)
start pause --nproc_per_node 2 --rdzv_endpoint=localhost:0
kill -STOP "$(rank 1)"
until grep -q '^ctitan run: rank 1 .* was stopped by SIGSTOP' log; do kill -0 $pid || fail 'ended'; done
kill -CONT "$(rank 1)"
until grep -q '^ctitan run: rank 1 .* goes on' log; do kill -0 $pid || fail 'ended'; done
lines=$(wc -l <log)
until tail -n +"$lines" log | grep -q 'step: '; do kill -0 $pid || fail 'ended'; done
kill -TERM $pid
ends 20
[ $code = 75 ] && [ ! -e pause/comm_traces ] || fail "exit $code, or a flight recorder that is off wrote"

# Killed: at once, not at the end of the limit of 100 seconds.
more=()
start killed --nproc_per_node 4 --rdzv_endpoint=localhost:0
kill -KILL "$(rank 2)"
ends 20
[ $code = 137 ] && grep -q '^ctitan run: rank 2 .* was killed by SIGKILL' log || fail "exit $code"

# SIGTERM and SIGINT to all at once: every rank ends by itself, and what was reached is saved.
for signal in TERM INT; do
    for workers in 0 4; do
        more=(--dataloader.num-workers $workers)
        start "signal$workers" --nproc_per_node 2 --rdzv_endpoint=localhost:0
        kill -$signal -- -$pid
        ends 20
        [ $code = 75 ] && ls -d "signal$workers"/checkpoint/step-* >/dev/null || fail "$signal, $workers threads: exit $code"
        "$bin" checkpoint show "signal$workers/checkpoint" >/dev/null || fail "$signal, $workers threads: not whole"
    done
done

# A port that is taken, here by another job; which goes on.
more=()
port=$("$bin" run --nproc_per_node 2 --local-ranks-filter 0 --tee 1 --no-python sh -c 'echo $MASTER_PORT' | sed 's/.*://')
start holder --nproc_per_node 2 --rdzv_endpoint="localhost:$port"
code=0
timeout 20 "$bin" run --nproc_per_node 2 --rdzv_endpoint="localhost:$port" "${common[@]}" --dump-folder "$dir/second" 2>second.log || code=$?
[ $code != 0 ] && [ $code != 124 ] && grep -q "localhost:$port: Address already in use" second.log || { cat second.log; fail "exit $code"; }
# With defaults each job has a port of its own.
timeout 60 "$bin" run --nproc_per_node 2 "${common[@]}" --training.steps 2 --dump-folder "$dir/third" >third.log 2>&1 || { cat third.log; fail 'a job beside another'; }
kill -0 $pid || fail 'the first job is gone'
kill -TERM $pid
ends 20
echo ok
