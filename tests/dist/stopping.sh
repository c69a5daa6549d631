#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# labels: slow
# How a run is stopped, on one rank and on two: SIGTERM, SIGINT and the time limit end after a whole step with exit code 75, with a checkpoint of it
# where saving is on, and the run goes on from there; a second signal ends at once and leaves the checkpoints as they were.
set -euo pipefail
bin=$1/bin/ctitan
dir=$(mktemp -d)
pid=
trap 'kill -KILL -- ${pid:+-$pid} 2>/dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*"; tail -n 20 log; exit 1; }
flags=(--module llama3 --config llama3_debugmodel --model-spec.n-layers 1 --debug.seed 42 --metrics.log-freq 1 --metrics.disable-color-printing
       --training.local-batch-size 1)
saving=(--checkpoint.enable --checkpoint.interval 100000)
launch() { # launch RANKS FLAGS...: in a process group of its own, as a shell starts it; returns at the first step's line
    local ranks=$1
    shift
    local command=("$bin" train)
    [ "$ranks" = 1 ] || command=("$bin" run --nproc_per_node "$ranks" -m torchtitan.train)
    rm -f lines
    mkfifo lines
    setsid "${command[@]}" "${flags[@]}" "$@" >lines 2>&1 &
    pid=$!
    : >log
    exec 3<lines
    wait_for 'step: *1 '
}
wait_for() { # reads the log up to a line that has the pattern
    local line
    while IFS= read -r line <&3; do
        printf '%s\n' "$line" >>log
        if printf '%s' "$line" | grep -qE -- "$1"; then return; fi
    done
    fail "the log ends before '$1'"
}
ends() { # ends CODE: reads the rest
    local code=0
    cat <&3 >>log
    exec 3<&-
    wait "$pid" || code=$?
    [ "$code" = "$1" ] || fail "exit code $code, wanted $1"
    pid=
}
last_step() { sed -nE 's/.*stopped (on request|by the time limit).* after step ([0-9]+) of.*/\2/p' log | head -n 1; }
goes_on() { # goes_on FOLDER STEP RANKS: by one rank with as many rows
    [ "$(ls "$1/checkpoint")" = "step-$2" ] || fail "checkpoints of $1: $(ls "$1/checkpoint"), wanted step-$2"
    "$bin" checkpoint show "$1/checkpoint" >/dev/null || fail "$1: not whole"
    "$bin" train "${flags[@]}" "${saving[@]}" --training.local-batch-size "$3" --training.seq-len 16 --training.steps $(($2 + 1)) --dump-folder "$1" >log 2>&1 || fail "$1 does not go on"
    grep -q "Training starts at step $(($2 + 1))" log || fail "$1 goes on elsewhere"
}

for ranks in 1 2; do
    for signal in TERM INT; do
        out=$signal$ranks
        launch $ranks "${saving[@]}" --training.seq-len 16 --training.steps 1000000 --dump-folder $out
        kill -$signal -- -"$pid" # as a terminal sends it: to all of the group
        ends 75
        grep -q 'asked to stop: this step is finished first' log || fail 'nothing is said when the signal comes'
        goes_on $out "$(last_step)" $ranks
    done
    # Without saving: the same end, and no folder.
    launch $ranks --training.seq-len 16 --training.steps 1000000 --dump-folder none$ranks
    kill -TERM "$pid"
    ends 75
    [ -n "$(last_step)" ] && [ ! -e none$ranks/checkpoint ] || fail 'a checkpoint that nobody asked for'
    # The time limit, of all ranks together.
    launch $ranks "${saving[@]}" --training.seq-len 16 --training.steps 1000000 --training.time-limit-minutes 0.02 --dump-folder limit$ranks
    ends 75
    grep -q 'by the time limit' log || fail 'not by the time limit'
    goes_on limit$ranks "$(last_step)" $ranks
done

# Twice, in a step that takes long: at once, by the signal itself.
launch 1 "${saving[@]}" --training.seq-len 4096 --training.global-batch-size 4 --training.steps 1000000 --dump-folder long
kill -INT "$pid"
wait_for 'asked to stop'
kill -INT "$pid"
code=0
cat <&3 >>log
exec 3<&-
wait "$pid" || code=$?
[ $code = 130 ] || fail "exit code $code, wanted that of SIGINT"
pid=
if grep -q 'stopped on request' log; then fail 'the step was finished'; fi
[ -z "$(ls long/checkpoint 2>/dev/null | grep -v '^\.' || true)" ] || fail 'checkpoints'
echo ok
