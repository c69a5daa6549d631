# SPDX-License-Identifier: Apache-2.0
# rooms: comm/gloo
# labels: slow
# A real Slurm, started here on two hosts that network namespaces play: `srun ctitan train` over gloo, and over MPI by its pmix, trains what
# `ctitan run` does; examples/slurm.sbatch runs over both hosts, saves when Slurm warns, is put in the queue again and goes on.
set -u
for tool in slurmctld slurmd srun sbatch scancel unshare; do
    command -v $tool >/dev/null || { echo "skipped: no program $tool here (slurmctld slurmd slurm-client)"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "skipped: slurmd starts jobs as root only"; exit 77; }
# The hosts' names, in a mount namespace of our own.
if [ -z "${SLURM_TEST_MOUNTS:-}" ]; then
    SLURM_TEST_MOUNTS=1 TWO_HOSTS_AS_ROOT=1 exec unshare --mount bash "$0" "$@"
fi
if [ -z "${TWO_HOSTS_INSIDE:-}" ]; then
    hosts=$(mktemp)
    printf '127.0.0.1 localhost\n10.77.0.1 host-a\n10.77.0.2 host-b\n' >"$hosts"
    mount --bind "$hosts" /etc/hosts || { echo "skipped: /etc/hosts cannot be another one here"; exit 77; }
    rm "$hosts"
fi
src=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/helpers/two_hosts.bash
. "$(dirname "$0")/../helpers/two_hosts.bash"
daemons=()
end_all() {
    timeout 10 scancel -u root 2>/dev/null
    kill "${daemons[@]}" 2>/dev/null
    clean_up
}
trap end_all EXIT
export OMP_NUM_THREADS=1 SLURM_CONF=$dir/slurm.conf

# No munge, so that nothing of the system is used.
base=6817 # this network's own
mkdir state spool-host-a spool-host-b
cat >slurm.conf <<END
ClusterName=test
SlurmctldHost=host-a(10.77.0.1)
SlurmctldPort=$base
AuthType=auth/none
CredType=cred/none
SlurmUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/ctld.pid
SlurmdPidFile=$dir/d.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
MinJobAge=600
SlurmdPort=$((base + 1))
NodeName=host-a NodeAddr=10.77.0.1 CPUs=2 State=UNKNOWN
NodeName=host-b NodeAddr=10.77.0.2 CPUs=2 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:4
END
slurmctld -D -c >log.ctld 2>&1 &
daemons+=($!)
slurmd -D >log.host-a 2>&1 &
daemons+=($!)
$b slurmd -D >log.host-b 2>&1 &
daemons+=($!)
sleep 1
for p in "${daemons[@]}"; do # a Slurm that refuses this configuration says so at once
    kill -0 "$p" 2>/dev/null || { echo "skipped: this Slurm does not start here: $(grep -h 'error\|fatal' log.ctld log.host-* | tail -n 1)"; exit 77; }
done
idle() { [ "$(sinfo -h -o '%D %t' 2>/dev/null)" = "2 idle" ]; }
wait_for idle

# The program under a prefix whose ctitan the batch file finds.
mkdir -p p/bin p/share
ln "$build/bin/ctitan" p/bin/ctitan 2>/dev/null || cp "$build/bin/ctitan" p/bin/ctitan
ln -s "$build/lib" p/lib
ln -s "$build/share/ctitan" p/share/ctitan
export PATH=$dir/p/bin:$PATH
train=(--module llama3 --config llama3_debugmodel --training.seq-len 24 --training.local-batch-size 1 --training.global-batch-size 2 --debug.seed 42
       --lr-scheduler.total-steps 10 --lr-scheduler.warmup-steps 0 --metrics.log-freq 1 --metrics.disable-color-printing)
losses() { sed -n 's/.*step: *\([0-9]*\) *loss: *\([0-9.]*\) *grad_norm: *\([0-9.]*\) .*/\1 \2 \3/p' "$@" | sort -un; }
ctitan run --nproc_per_node 2 --tee 3 -m torchtitan.train "${train[@]}" --training.steps 5 --dump-folder one >log.one 2>&1 || fail "ctitan run"
losses log.one >wanted
head -n 3 wanted >wanted.3

# 1. srun: two tasks of one node; of two nodes, with the address of the first.
timeout 120 srun -N 1 -n 2 ctitan train "${train[@]}" --training.steps 3 --dump-folder s1 >log.srun 2>&1 || fail "srun on one node"
losses log.srun | cmp - wanted.3 || fail "srun on one node: losses"
MASTER_ADDR=10.77.0.1 MASTER_PORT=$((base + 3)) timeout 120 srun -N 2 -n 2 ctitan train "${train[@]}" --training.steps 3 --dump-folder s2 >log.srun2 2>&1 ||
    fail "srun on two nodes"
losses log.srun2 | cmp - wanted.3 || fail "srun on two nodes: losses"
timeout 120 srun -N 1 -n 2 ctitan selftest --sizes 1024 >log.selftest 2>&1 || fail "selftest"
# 2. Over MPI, where the engine is there and this Slurm has its pmix.
how=gloo
if ldd "$build/lib/ctitan/engines/mpi.so" 2>/dev/null | grep -q libmpi.so && srun --mpi=list 2>&1 | grep -q pmix; then
    timeout 120 srun --mpi=pmix -N 1 -n 2 ctitan train "${train[@]}" --training.steps 3 --comm.engine mpi --dump-folder s3 >log.pmix 2>&1 || fail "srun --mpi=pmix"
    losses log.pmix | cmp - wanted.3 || fail "srun --mpi=pmix: losses"
    how="gloo and MPI"
fi

# 3. The batch file over both nodes, warned once: saved, queued again, gone on. (A job that is queued again waits two minutes; released at once here.)
id=$(sbatch --parsable --cpus-per-task=1 --output=job.log "$src/examples/slurm.sbatch" "${train[@]}" --training.steps 100000 --dump-folder batch) || fail "sbatch"
stepped() { grep -q 'step: *2 ' job.log 2>/dev/null; }
wait_for stepped
scancel -s TERM "$id"
requeued() { scontrol show job "$id" | grep -q 'Restarts=1'; }
wait_for requeued
ls batch/checkpoint/step-* >/dev/null 2>&1 || fail "Slurm's warning: nothing was saved"
scontrol update jobid="$id" starttime=now 2>/dev/null
saved=$(ls batch/checkpoint | sed 's/step-//' | sort -n | tail -n 1)
again() { grep -q "Training starts at step $((saved + 1))" job.log && grep -q "step: *$((saved + 2)) " job.log; }
for _ in $(seq 2400); do again && break; sleep 0.1; done
again || fail "the job that was queued again did not go on at step $((saved + 1))"
scancel "$id"
ended() { [ -z "$(squeue -h)" ]; }
wait_for ended
losses job.log | head -n 5 | cmp - wanted || fail "the batch file: losses differ from one host's"
echo "Slurm, over $how: as ctitan run; the batch file goes on after a warning"
