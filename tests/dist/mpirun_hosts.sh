# SPDX-License-Identifier: Apache-2.0
# rooms: comm/gloo
# labels: slow
# mpirun over two hosts, played by two network namespaces: two ranks each, over gloo and over MPI, train what `ctitan run` of four does, bit for
# bit; a rank that is killed ends all. mpirun reaches the other host by an agent that enters its namespace, as ssh would.
set -u
mpirun=$(command -v mpirun.openmpi || command -v mpirun)
if [ -z "$mpirun" ] || ! "$mpirun" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE'; then
    echo "skipped: no mpirun of Open MPI here"
    exit 77
fi
# shellcheck source=tests/helpers/two_hosts.bash
. "$(dirname "$0")/../helpers/two_hosts.bash"
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MASTER_ADDR=10.77.0.1 TEST_DIR=$dir
# agent HOST COMMAND...
printf '#!/bin/bash\n[ "$1" = host-b ] || exit 1\necho "$*" >>%s\nshift\nexec %s sh -c "$*"\n' "$dir/agent.log" "$b" >agent
chmod +x agent
train=(--module llama3 --config llama3_debugmodel --training.seq-len 24 --training.local-batch-size 1 --training.global-batch-size 4
       --dataloader.streams 4 --debug.seed 42 --lr-scheduler.total-steps 10 --lr-scheduler.warmup-steps 0 --metrics.log-freq 1
       --metrics.disable-color-printing --checkpoint.enable)
losses() { sed -n 's/.*step: *\([0-9]*\) *loss: *\([0-9.]*\) *grad_norm: *\([0-9.]*\) .*/\1 \2 \3/p' "$@" | sort -u; }
MASTER_PORT=29600
over() { # over ENGINE ARGS...: log.ENGINE
    local engine=$1
    shift
    MASTER_PORT=$((MASTER_PORT + 1))
    timeout 200 "$mpirun" --oversubscribe --host host-a:2,host-b:2 --mca plm_rsh_agent "$dir/agent" --mca oob_tcp_if_include 10.77.0.0/24 \
        --mca btl_tcp_if_include 10.77.0.0/24 -x MASTER_ADDR -x MASTER_PORT=$MASTER_PORT -x OMP_NUM_THREADS -x TEST_DIR -n 4 "$bin" train "${train[@]}" \
        --comm.engine "$engine" "$@" >"log.$engine" 2>&1
}
"$bin" run --nproc_per_node 4 --tee 3 -m torchtitan.train "${train[@]}" --training.steps 3 --dump-folder one >log.one 2>&1 || fail "one host"
losses log.one >wanted
[ "$(wc -l <wanted)" = 3 ] || fail "one host: no losses"
engines=(gloo)
ldd "$build/lib/ctitan/engines/mpi.so" 2>/dev/null | grep -q libmpi.so && engines+=(mpi)
for engine in "${engines[@]}"; do
    over "$engine" --training.steps 3 --dump-folder "two-$engine" || fail "mpirun over $engine"
    losses "log.$engine" | cmp - wanted || fail "$engine: losses differ from one host's"
    "$bin" checkpoint diff one/checkpoint/step-3 "two-$engine/checkpoint/step-3" >log.diff || fail "$engine: the checkpoint differs from one host's"
done
[ "$(grep -c ^host-b agent.log)" = ${#engines[@]} ] || fail "mpirun did not start ranks on host b: $(cat agent.log)"

# A rank of the other host is killed: mpirun ends all.
engine=${engines[-1]}
over "$engine" --training.steps 100000 --dump-folder "kill" &
job=$!
ranks() { # the processes of this test's ranks; of rank $1, where it is given
    for p in $(pgrep -f 'ctitan train'); do # of this test
        { tr '\0' '\n' <"/proc/$p/environ"; } 2>/dev/null >environ
        grep -qx "TEST_DIR=$dir" environ && grep -qx "OMPI_COMM_WORLD_RANK=${1:-[0-9]*}" environ && echo "$p"
    done
}
stepped() { grep -q 'step: *2 ' "log.$engine"; }
wait_for stepped
ranks 3 >pid
kill -KILL "$(cat pid)" || fail "no rank 3"
wait $job
code=$?
[ $code = 137 ] || fail "a rank is killed: exit code $code"
gone() { [ -z "$(ranks)" ]; }
wait_for gone
echo "mpirun over two hosts, ${engines[*]}: as one"
