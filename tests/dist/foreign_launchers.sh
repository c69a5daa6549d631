# SPDX-License-Identifier: Apache-2.0
# rooms: comm/gloo
# labels: slow
# `ctitan train` without the launcher: by the variables that torchrun, mpirun and srun set, and by mpirun itself (as root, oversubscribed) over
# gloo and over MPI. Losses, weights and moments are those of `ctitan run`, bit for bit; SIGTERM to mpirun saves; a rank that waits for others can
# be stopped; wrong starts are refused.
set -u
build=$1
bin=$build/bin/ctitan
dir=$(mktemp -d "$build/test-foreign-XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
fail() { echo "FAILED: $*"; tail -n 10 log.*; exit 1; }
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
train=(--module llama3 --config llama3_debugmodel --training.seq-len 24 --training.global-batch-size 4
       --dataloader.streams 4 --debug.seed 42 --lr-scheduler.total-steps 10 --lr-scheduler.warmup-steps 0 --metrics.log-freq 1
       --metrics.disable-color-printing --checkpoint.enable)
three=(--training.steps 3)
two=("${three[@]}" --training.local-batch-size 2)
hsdp=(--parallelism.data-parallel-replicate-degree 2)
losses() { sed -n 's/.*step: *\([0-9]*\) *loss: *\([0-9.]*\) *grad_norm: *\([0-9.]*\) .*/\1 \2 \3/p' "$@" | sort -u; }
same() { # same NAME AS
    losses log."$1"* | cmp - "wanted.$2" || fail "$1: losses differ from those of ctitan run"
    "$bin" checkpoint diff "$2/checkpoint/step-3" "$1/checkpoint/step-3" >log.diff || fail "$1: the checkpoint differs"
}

for n in 2 4; do
    more=(--training.local-batch-size $((4 / n)))
    [ $n = 4 ] && more+=("${hsdp[@]}")
    "$bin" run --nproc_per_node $n --tee 3 -m torchtitan.train "${train[@]}" "${three[@]}" "${more[@]}" --dump-folder run$n >log.run$n 2>&1 || fail "ctitan run of $n"
    losses log.run$n >wanted.run$n
    [ "$(wc -l <wanted.run$n)" = 3 ] || fail "ctitan run of $n: no losses"
done

both() { # both NAME RANK_VARIABLE LOCAL_VARIABLE COMMON...
    local name=$1 rank=$2 local=$3
    shift 3
    env "$@" "$rank=0" "$local=0" timeout 120 "$bin" train "${train[@]}" "${two[@]}" --dump-folder "$name" >"log.$name.0" 2>&1 &
    env "$@" "$rank=1" "$local=1" timeout 120 "$bin" train "${train[@]}" "${two[@]}" --dump-folder "$name" >"log.$name.1" 2>&1 || fail "$name: rank 1"
    wait $! || fail "$name: rank 0"
    same "$name" run2
}
both ompi OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 "PMIX_NAMESPACE=test.$$"
both srun SLURM_PROCID SLURM_LOCALID SLURM_STEP_NUM_TASKS=2 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2 "SLURM_JOB_ID=$$"
port=$((20000 + $$ % 12000))
while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
both torchrun RANK LOCAL_RANK WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port

# A rank that nobody joins ends at once when it is asked to, not at the end of its patience of 60 seconds.
for rank in 0 1; do
    for signal in TERM INT; do
        rm -f lines log.alone
        mkfifo lines
        env RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$bin" train "${train[@]}" "${two[@]}" \
            --comm.init-timeout-seconds 60 --dump-folder alone >lines 2>&1 &
        pid=$!
        exec 4<lines
        while read -r line <&4 && echo "$line" >>log.alone && [[ $line != *'ctitan version'* ]]; do :; done
        kill -$signal $pid
        cat <&4 >>log.alone
        exec 4<&-
        wait $pid
        code=$?
        [ $code = 75 ] && grep -q 'stopped on request before the run began' log.alone && [ ! -e alone/checkpoint ] || fail "$signal for rank $rank that waits: exit $code"
    done
done

mpirun=$(command -v mpirun.openmpi || command -v mpirun)
if [ -z "$mpirun" ] || ! "$mpirun" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE'; then
    echo "torchrun's variables, mpirun's and srun's: as ctitan run (Open MPI's mpirun itself is not here)"
    exit 0
fi
# The engine is of the MPI that was found at build time; only its own mpirun starts it.
engines=(gloo)
ldd "$build/lib/ctitan/engines/mpi.so" 2>/dev/null | grep -q libmpi.so && engines+=(mpi)
for engine in "${engines[@]}"; do
    for n in 2 4; do
        more=(--training.local-batch-size $((4 / n)) --comm.engine "$engine")
        [ $n = 4 ] && more+=("${hsdp[@]}")
        timeout 120 "$mpirun" --oversubscribe -n $n "$bin" train "${train[@]}" "${three[@]}" "${more[@]}" --dump-folder "mpirun$n-$engine" \
            >"log.mpirun$n-$engine" 2>&1 || fail "mpirun of $n over $engine"
        same "mpirun$n-$engine" run$n
    done
done
ldd "$bin" | grep -i 'libmpi' && fail "the program links MPI"

if [ "${engines[-1]}" = mpi ]; then
    # SIGTERM to mpirun: the step is finished and saved, all end with 75. (mpirun passes it on after this many seconds, one by default, and kills after as many again.)
    timeout 120 "$mpirun" --oversubscribe --mca odls_base_sigkill_timeout 3 -n 2 "$bin" train "${train[@]}" --training.local-batch-size 2 --training.steps 100000 --comm.engine mpi \
        --dump-folder stop >log.stop 2>&1 &
    pid=$!
    for _ in $(seq 1200); do grep -q 'step: *3 ' log.stop && break; sleep 0.05; done
    kill -TERM "$(pgrep -P $pid -f mpirun)" || fail "SIGTERM: no mpirun"
    wait $pid
    ls stop/checkpoint/step-* >/dev/null 2>&1 || fail "SIGTERM to mpirun: nothing was saved"
    pgrep -f "$dir" >/dev/null && fail "SIGTERM to mpirun: ranks are left"
    # Ranks that another launcher started are no MPI ranks: refused, with what would be right.
    timeout 120 "$bin" run --nproc_per_node 2 -m torchtitan.train "${train[@]}" "${two[@]}" --comm.engine mpi --dump-folder wrong >log.wrong 2>&1
    [ $? = 2 ] || fail "ctitan run with --comm.engine mpi is not refused"
    grep -q 'MPI knows 1 rank(s), WORLD_SIZE is 2: .*mpirun' log.wrong || fail "ctitan run with --comm.engine mpi: no reason"
    # A setting that is wrong on one rank only: all end, with a code that is not 0.
    timeout 120 "$mpirun" --oversubscribe -n 1 "$bin" train "${train[@]}" "${two[@]}" --comm.engine mpi --dump-folder wrong : \
        -n 1 "$bin" train "${train[@]}" "${two[@]}" --comm.engine mpi --dump-folder wrong --training.seq-len 32 >log.wrong 2>&1
    code=$?
    [ $code = 2 ] || fail "settings that differ: exit code $code"
    grep -q 'all ranks must have the same program and settings: ' log.wrong || fail "settings that differ: not named"
fi
echo "torchrun's variables, mpirun's and srun's, mpirun over ${engines[*]}: as ctitan run"
