# SPDX-License-Identifier: Apache-2.0
# rooms: comm/gloo
# labels: slow
# Two hosts, played by two network namespaces with a cable between: two `ctitan run` of two ranks each train what four ranks of one host do, bit
# for bit; a rank, a launcher or the cable that goes ends all; restarts go on at the checkpoint.
set -u
# shellcheck source=tests/helpers/two_hosts.bash
. "$(dirname "$0")/../helpers/two_hosts.bash"
export OMP_NUM_THREADS=1

train=(-m torchtitan.train --module llama3 --config llama3_debugmodel --training.seq-len 24 --training.local-batch-size 1
       --training.global-batch-size 4 --dataloader.streams 4 --debug.seed 42 --lr-scheduler.total-steps 10 --lr-scheduler.warmup-steps 0
       --metrics.log-freq 1 --metrics.disable-color-printing)
losses() { sed -n 's/.*step: *\([0-9]*\) *loss: *\([0-9.]*\) *grad_norm: *\([0-9.]*\) .*/\1 \2 \3/p' "$@" | sort -u; }
host() { # host a|b RUN_ARGS... -- TRAIN_ARGS...: log.X, code.X
    local name=$1 code=0 on=() run=()
    shift
    [ "$name" = b ] && read -ra on <<<"$b"
    while [ "$1" != -- ]; do run+=("$1"); shift; done
    shift
    "${on[@]}" timeout 120 "$bin" run --nnodes 2 --nproc_per_node 2 --rdzv_endpoint 10.77.0.1:29400 --rdzv_id two --tee 3 "${run[@]}" \
        "${train[@]}" "$@" >"log.$name" 2>&1 || code=$?
    echo $code >"code.$name"
}
codes() { [ "$(cat code.a) $(cat code.b)" = "$1" ] || fail "exit codes $(cat code.a) and $(cat code.b), wanted $1"; }
says() { grep -qE -- "$2" "log.$1" || fail "host $1 does not say: $2"; }
stepped() { grep -q 'step: *3 ' log.a log.b; }
# Rank, its process and its launcher's, for the four ranks, from their environment.
find_pids() {
    for p in $(pgrep -f 'ctitan train'); do
        { tr '\0' '\n' <"/proc/$p/environ"; } 2>/dev/null >environ
        grep -qx "TEST_DIR=$dir" environ &&
            echo "$(sed -n 's/^RANK=//p' environ) $p $(awk '/^PPid/ { print $2 }' "/proc/$p/status" 2>/dev/null)"
    done | sort >pids
    [ "$(wc -l <pids)" = 4 ]
}
rank_pid() { awk -v r="$1" '$1 == r { print $2 }' pids; }
launcher_pid() { awk -v r="$1" '$1 == r { print $3 }' pids; } # of that rank's host
export TEST_DIR=$dir

# 1. Losses and norms of one host.
timeout 120 "$bin" run --nproc_per_node 4 --tee 3 "${train[@]}" --training.steps 4 --dump-folder one >log.one 2>&1 || fail "one host"
losses log.one >one.losses
[ "$(wc -l <one.losses)" = 4 ] || fail "one host: no losses"
host a --node_rank 0 -- --training.steps 4 --dump-folder two &
host b --node_rank 1 -- --training.steps 4 --dump-folder two
wait_for test -s code.a
codes "0 0"
losses log.a log.b | cmp - one.losses || fail "static: losses differ from one host's"
rm -f code.*
# The interface by name, nodes as they come.
GLOO_SOCKET_IFNAME=va host a --rdzv_backend c10d -- --training.steps 2 --dump-folder two2 &
GLOO_SOCKET_IFNAME=vb host b --rdzv_backend c10d -- --training.steps 2 --dump-folder two2
wait_for test -s code.a
codes "0 0"
losses log.a log.b | cmp - <(head -n 2 one.losses) || fail "c10d: losses differ from one host's"

# begin NAME ARGS...: both, until step 3 is done
begin() {
    local name=$1
    shift
    rm -f code.* log.a log.b
    host a --node_rank 0 "$@" --training.steps 100000 --dump-folder "$name" &
    host b --node_rank 1 "$@" --training.steps 100000 --dump-folder "$name" &
    wait_for stepped
    wait_for find_pids # all four have begun
}
ended() { wait_for test -s code.a; wait_for test -s code.b; find_pids; [ ! -s pids ] || fail "orphans"; }

# 2. A rank is killed: all end with its code, both hosts name it.
begin rank --
kill -KILL "$(rank_pid 3)"
ended
codes "137 137"
for n in a b; do says $n '^ctitan run: rank 3 \(local rank 1, pid [0-9]+\) on host-b was killed by SIGKILL'; done

# 3. A launcher is killed, its host's or the other's.
begin launcher --
kill -KILL "$(launcher_pid 2)"
ended
codes "75 137"
says a '^ctitan run: node 1 \(host-b\) is gone: the connection to its launcher broke'
begin server --
kill -KILL "$(launcher_pid 0)"
ended
codes "137 75"
says b '^ctitan run: the node that serves the meeting is gone'

# 4. The cable is cut.
begin cable --
ip link set va down
ended
codes "75 75"
ip link set va up
wait_for ready

# 5. SIGTERM to one: the step is finished and saved everywhere; a rank killed once: on from the checkpoint, to the same losses.
begin stop -- --checkpoint.enable
kill -TERM "$(launcher_pid 2)"
ended
codes "75 75"
ls stop/checkpoint/step-* >/dev/null 2>&1 || fail "SIGTERM: nothing saved"
begin again --max_restarts 1 -- --checkpoint.enable --checkpoint.interval 1
kill -KILL "$(rank_pid 1)"
restarted() { grep -q 'starting all ranks again (1 of 1)' log.a && sed -n '/starting all ranks again/,$p' log.a | grep -q 'step: *[5-9] *loss'; }
wait_for restarted
wait_for find_pids
kill -TERM "$(launcher_pid 2)"
ended
codes "75 75"
for n in a b; do
    says $n '^ctitan run: starting all ranks again \(1 of 1\)'
    says $n '^ctitan run: rank 1 \(local rank 1, pid [0-9]+\) on host-a was killed by SIGKILL'
done
[ -z "$(losses log.a log.b | cut -d' ' -f1 | uniq -d)" ] || fail "restart: a step has two losses"
losses log.a log.b | sort -n | head -n 4 | cmp - one.losses || fail "restart: losses differ from one host's"
sed -n '/starting all ranks again/,$p' log.a | grep -q 'step: *1 *loss' && fail "restart: from the beginning"
echo "two hosts: as one"
