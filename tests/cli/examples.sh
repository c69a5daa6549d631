# SPDX-License-Identifier: Apache-2.0
# labels: fast
# examples/slurm.sbatch with stand-ins for Slurm's programs: two hosts, played by two launchers here, meet and run; 75 is put in the queue
# again, other codes are not.
set -u
build=$1
src=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
fail() { echo "FAILED: $*"; cat log; exit 1; }
bash -n "$src/examples/slurm.sbatch" || fail "the batch file is no bash"
# Settings: the batch file's own, and those of its usage line.
own=$(sed -n 's/.*-m torchtitan.train "$@" \(.*\)$/\1/p' "$src/examples/slurm.sbatch")
usage=$(sed -n 's/^# *sbatch examples.slurm.sbatch \(.*\)$/\1/p' "$src/examples/slurm.sbatch")
[ -n "$own" ] && [ -n "$usage" ] || fail "the batch file's settings are not found"
# shellcheck disable=SC2086
"$build/bin/ctitan" config $usage $own >log 2>&1 || fail "settings of the batch file are refused"
mkdir bin
cat >bin/scontrol <<'END'
#!/bin/bash
if [ "$1" = show ]; then printf '127.0.0.1\n127.0.0.2\n'; else echo "$*" >>requeued; fi
END
cat >bin/srun <<'END'
#!/bin/bash
while [[ $1 == --* ]]; do shift; done
"$@" & first=$!
"$@"; code=$?
wait $first && exit $code
END
# What `ctitan run … -m torchtitan.train …` would start, without the training.
cat >bin/ctitan <<END
#!/bin/bash
args=()
while [ "\$1" != -m ]; do args+=("\$1"); shift; done
exec '$build/bin/ctitan' "\${args[@]}" --no-python sh -c 'echo "rank \$RANK of \$WORLD_SIZE: \$*"; exit \$WANTED' "\$@"
END
chmod +x bin/*
export SLURM_JOB_NODELIST='n[1-2]' SLURM_JOB_NUM_NODES=2 RANKS_PER_NODE=2 PATH=$dir/bin:$PATH
# The file makes the port from the job's number: one at which nobody listens.
SLURM_JOB_ID=$((RANDOM % 10000))
while (exec 3<>"/dev/tcp/127.0.0.1/$((20000 + SLURM_JOB_ID))") 2>/dev/null; do
    SLURM_JOB_ID=$((RANDOM % 10000))
done
export SLURM_JOB_ID
for WANTED in 0 75 3; do
    export WANTED
    rm -f requeued
    code=0
    timeout 60 bash "$src/examples/slurm.sbatch" --module llama3 --config x >log 2>&1 || code=$?
    [ $code = $WANTED ] || fail "exit $code, wanted $WANTED"
    [ $WANTED = 75 ] && want="requeue $SLURM_JOB_ID" || want=
    [ "$(cat requeued 2>/dev/null)" = "$want" ] || fail "requeued: $(cat requeued 2>/dev/null)"
    [ $WANTED != 0 ] || [ "$(grep -c '^\[default0\]:rank [02] of 4: torchtitan.train --module llama3 --config x --checkpoint.enable$' log)" = 2 ] || fail "ranks"
done
echo "all fine"
