# SPDX-License-Identifier: Apache-2.0
# rooms: comm/gloo
# labels: slow
# `ctitan train` started by mpirun or srun: two ranks, told by the variables that these set, train what `ctitan run` of two trains. mpirun itself
# is used where it is there.
set -u
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
fail() { echo "FAILED: $*"; tail -n 10 log.*; exit 1; }
export OMP_NUM_THREADS=1
train=(--module llama3 --config llama3_debugmodel --training.seq-len 24 --training.local-batch-size 1 --training.global-batch-size 2
       --training.steps 3 --debug.seed 42 --lr-scheduler.warmup-steps 0 --metrics.log-freq 1 --metrics.disable-color-printing)
losses() { sed -n 's/.*step: *\([0-9]*\) *loss: *\([0-9.]*\) *grad_norm: *\([0-9.]*\) .*/\1 \2 \3/p' "$@" | sort -u; }

"$bin" run --nproc_per_node 2 --tee 3 -m torchtitan.train "${train[@]}" --dump-folder run >log.run 2>&1 || fail "ctitan run"
losses log.run >wanted
[ "$(wc -l <wanted)" = 3 ] || fail "ctitan run: no losses"

both() { # both NAME RANK_VARIABLE LOCAL_VARIABLE COMMON...
    local name=$1 rank=$2 local=$3
    shift 3
    env "$@" "$rank=0" "$local=0" timeout 120 "$bin" train "${train[@]}" --dump-folder "$name" >"log.$name.0" 2>&1 &
    env "$@" "$rank=1" "$local=1" timeout 120 "$bin" train "${train[@]}" --dump-folder "$name" >"log.$name.1" 2>&1 || fail "$name: rank 1"
    wait $! || fail "$name: rank 0"
    losses "log.$name.0" "log.$name.1" | cmp - wanted || fail "$name: losses differ"
}
both ompi OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 "PMIX_NAMESPACE=test.$$"
both srun SLURM_PROCID SLURM_LOCALID SLURM_STEP_NUM_TASKS=2 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2 "SLURM_JOB_ID=$$"
if command -v mpirun >/dev/null; then
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun --oversubscribe -n 2 "$bin" train "${train[@]}" \
        --dump-folder mpirun >log.mpirun 2>&1 || fail "mpirun"
    losses log.mpirun | cmp - wanted || fail "mpirun: losses differ"
    echo "mpirun, and the variables of mpirun and srun: as ctitan run"
else
    echo "the variables of mpirun and srun: as ctitan run (mpirun itself is not here)"
fi
