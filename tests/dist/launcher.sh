# SPDX-License-Identifier: Apache-2.0
# labels: fast
# `ctitan run`: prefixes, the filter, environment, exit codes, a failed rank, restarts, logs, no orphans.
set -u
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
fail() { echo "$*"; cat out err 2>/dev/null; exit 1; }
go() { # go CODE ARGS...: runs, wants that exit code
    local want=$1 code=0
    shift
    timeout 60 "$bin" run "$@" >out 2>err || code=$?
    [ $code = "$want" ] || fail "exit $code, wanted $want: $*"
}

# One rank without --tee: its streams untouched.
go 0 --no-python sh -c 'echo to out; echo to err >&2; printf "no newline"'
[ "$(cat out)" = "to out
no newline" ] && [ "$(cat err)" = "to err" ] || fail "pass-through"

# Prefixes; both streams; an unfinished last line; spellings.
go 0 --nproc-per-node=2 -tee 3 --role worker --no_python sh -c 'echo "rank $RANK of $WORLD_SIZE local $LOCAL_RANK"; printf "end" >&2'
for r in 0 1; do
    grep -qx "\[worker$r\]:rank $r of 2 local $r" out && grep -qx "\[worker$r\]:end" err || fail "prefixes of rank $r"
done
go 0 --nproc_per_node 3 --local-ranks-filter 0,2 --tee 3 --no-python sh -c 'echo "$LOCAL_RANK"'
[ "$(sort out)" = "[default0]:0
[default2]:2" ] || fail "filter"
go 0 --nproc_per_node 2 --no-python sh -c '[ -n "$MASTER_ADDR" ] && [ "$MASTER_PORT" -gt 0 ] && [ "$LOCAL_WORLD_SIZE" = 2 ] && [ "$OMP_NUM_THREADS" -ge 1 ] && [ "$GROUP_RANK" = 0 ]'

# Exit codes are those of the first rank that failed; one line tells which and why; the others end at once.
for code in 1 2 75; do
    start=$(date +%s)
    go $code --nproc_per_node 2 --no-python sh -c '[ "$RANK" = 0 ] && exec sleep 30; exit '$code
    [ $(($(date +%s) - start)) -lt 15 ] || fail "the other rank went on"
    [ "$(grep -c '^ctitan run: rank' err)" = 1 ] && grep -qE "^ctitan run: rank 1 \(local rank 1, pid [0-9]+\) on .* ended with exit code $code; ending the other rank$" err || fail "line"
done
go 137 --nproc_per_node 2 --no-python sh -c '[ "$RANK" = 1 ] && exec sleep 30; kill -KILL $$'
grep -q 'rank 0 .* was killed by SIGKILL; ending the other rank' err || fail "killed"
# A rank that ignores SIGTERM is killed; a rank that is not shown has its last words shown.
go 3 --nproc_per_node 2 --local-ranks-filter 0 --tee 3 --no-python sh -c 'if [ "$RANK" = 0 ]; then trap "" TERM; while :; do sleep 0.2; done; fi; echo last words >&2; exit 3'
grep -q 'last words' err || fail "tail of a hidden rank"

# Restarts: the second start succeeds.
go 0 --nproc_per_node 2 --max-restarts 1 --no-python sh -c '[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || exit 1; echo again'
grep -q 'starting all ranks again (1 of 1)' err && [ "$(grep -c again out)" = 2 ] || fail "restart"
go 1 --nproc_per_node 2 --max-restarts 2 --no-python sh -c 'exit 1'

# Logs.
go 0 --nproc_per_node 2 --log-dir logs --redirects 3 --no-python sh -c 'echo "o$RANK"; echo "e$RANK" >&2'
[ "$(cat logs/1/stdout.log)" = o1 ] && [ "$(cat logs/0/stderr.log)" = e0 ] && [ ! -s out ] || fail "redirects"
go 0 --nproc_per_node 2 --log_dir short -r 2 -t=1 --no-python sh -c 'echo "o$RANK"; echo "e$RANK" >&2'
[ "$(cat short/1/stderr.log)" = e1 ] && [ ! -s err ] && grep -qx '\[default1\]:o1' out || fail "-r, -t"

# Wrong command lines.
for bad in "--nproc_per_nod 2 train" "--nproc_per_node 0 train" "--nproc_per_node x train" "--tee 9 train" "--rdzv_endpoint : train" "" "-m torchtitan.trian" "--rdzv_backend etcd train"; do
    # shellcheck disable=SC2086
    go 2 $bad
    [ "$(wc -l <err)" = 1 ] || fail "not one line for '$bad'"
done
for flag in event-log-handler=x start_method -run-path logs_specs=x log-line-prefix-template=x duplicate-stdout-filters=x duplicate_stderr_filters=x local_addr=x \
    virtual_local_rank numa-binding=node signals-to-handle=SIGTERM shutdown_timeout=3; do
    go 2 "--${flag#-}" train
    grep -qE "^ctitan run: --${flag#-}: torchrun's, and not there: " err || fail "--${flag#-}: no reason"
done
"$bin" run --nproc_per_nod 2 train 2>&1 | grep -q 'nearest is --nproc_per_node' || fail "nearest"
"$bin" run --help | grep -q -- --local_ranks_filter || fail "help"
if [ ! -e "$1/bin/ctitan-emulated" ]; then # an emulated program cannot start itself
    go 2 --nproc_per_node 2 train --module llama3 --config llama3_debugmodl
fi

# The supervisor is killed: no rank stays.
mark="sleep 31.$$"
"$bin" run --nproc_per_node 2 --no-python sh -c "exec $mark" 2>/dev/null &
pid=$!
for _ in $(seq 100); do
    [ "$(pgrep -fc "^$mark")" = 2 ] && break
    sleep 0.05
done
[ "$(pgrep -fc "^$mark")" = 2 ] || fail "the ranks did not start"
kill -KILL $pid
wait $pid 2>/dev/null
for _ in $(seq 100); do
    pgrep -f "^$mark" >/dev/null || break
    sleep 0.05
done
! pgrep -f "^$mark" >/dev/null || fail "orphans"

# SIGTERM: passed on once; every rank ends.
"$bin" run --nproc_per_node 2 --tee 3 --no-python sh -c 'trap "echo stopping; exit 75" TERM; echo ready; while :; do sleep 0.1; done' >out 2>err &
pid=$!
for _ in $(seq 100); do
    [ "$(grep -c ready out)" = 2 ] && break
    sleep 0.05
done
kill -TERM $pid
code=0
wait $pid || code=$?
[ $code = 75 ] && [ "$(grep -c stopping out)" = 2 ] || fail "SIGTERM: exit $code"
echo "all fine"
