# SPDX-License-Identifier: Apache-2.0
# labels: slow
# What a run leaves behind: with everything on, over a stop and a resume, of two ranks; and that no file that cannot be written stops it.
set -euo pipefail
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*"; exit 1; }
sel=(--module llama3 --config llama3_debugmodel --training.local-batch-size 2 --training.seq-len 32 --debug.seed 3
     --training.mixed-precision-param float32 --metrics.disable-color-printing)
train() { "$bin" train "${sel[@]}" "$@" 2>log || { cat log; fail "exit $?"; }; }
steps() { sed 1d "$1" | cut -d, -f1 | tr '\n' ' '; }

# ---- everything on ----
train --dump-folder out --training.steps 8 --metrics.enable-tensorboard --checkpoint.enable --checkpoint.interval 5 --checkpoint.keep-latest-k 0 \
    --training.global-batch-size 4 --profiler.enable-profiling --profiler.profile-freq 4 --profiler.profiler-warmup 1
[ "$(steps out/metrics.csv)" = '1 2 3 4 5 6 7 8 ' ] || fail "steps of metrics.csv: $(steps out/metrics.csv)"
# The losses are those of the log, and the tokens 4 rows of 32 a step.
paste -d' ' <(grep -oE 'loss: +[0-9.]+' log | grep -oE '[0-9.]+') <(sed 1d out/metrics.csv | cut -d, -f3) |
    awk '{ if (sprintf("%.5f", $2) != $1) { print "log", $1, "file", $2; bad = 1 } } END { exit bad || NR != 8 }' || fail 'losses differ from the log'
grep -qE 'Peak FLOPS used for computing MFU: [0-9.e+]+ \(.+, f32, dense\)' log || grep -q 'no MFU' log || fail 'what MFU divides by'
column() { awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR > 1 { print $c }' "$1"; }
[ "$(column out/metrics.csv n_tokens_seen | tail -n 1)" = 1024 ] || fail 'n_tokens_seen'
[ "$(ls out/tb)" != '' ] && ls out/tb/*/events.out.tfevents.* >/dev/null || fail 'no event file'
grep -qa 'lr/AdamW' out/tb/*/events* || fail 'no tag lr/AdamW'
trace=$(ls out/structured_logs/training.global_rank_0.*.jsonl)
for name in torch_distributed_init model_parallelism_init checkpoint_load step fetching_batch fwd_bwd post_dataloading_process optim collect_dist_metrics \
    checkpoint_save kineto_profiler_step_call torch_distributed_teardown; do
    b=$(grep -c "\"${name}_start\"" "$trace" || true)
    e=$(grep -c "\"${name}_end\"" "$trace" || true)
    [ "$b" -gt 0 ] && [ "$b" = "$e" ] || fail "span $name: $b begins, $e ends"
done
[ "$(grep -c '"step_start"' "$trace")" = 8 ] && grep -q '"local_valid_tokens"' "$trace" && grep -q '"training_start"' "$trace" || fail 'trace'
grep -q '"checkpoint_save"\]' "$trace" || fail 'no step tag'
! grep -q '/tests/\|'"$dir" <(grep -o '"caller":"[^"]*"' "$trace") || fail 'a path of the building machine in the trace'
grep -q '"flavor": "debugmodel"' out/run.json || fail 'run.json'

# ---- profile: steps 4 and 8; ops inside programs inside the step ----
[ "$(ls out/profiling/traces | tr '\n' ' ')" = 'iteration_4 iteration_8 ' ] || fail "traces: $(ls out/profiling/traces)"
gzip -dc out/profiling/traces/iteration_8/rank0_trace.json.gz >trace.json
awk '
function number(key,    t) { t = $0; if (!sub(".*\"" key "\":", "", t)) return -1; sub(/[,}].*/, "", t); return t + 0 }
function text(key,    t) { t = $0; if (!sub(".*\"" key "\":\"", "", t)) return ""; sub(/".*/, "", t); return t }
/"ph":"X"/ {
    cat = text("cat"); n[cat]++; sum[cat] += number("dur")
    b[cat, n[cat]] = number("ts"); e[cat, n[cat]] = number("ts") + number("dur")
    if (cat == "op" && (text("program") == "" || text("shapes") == "")) { print "bare op: " $0; bad = 1 }
    if (cat == "op" && text("program") != "optimizer") micro[number("micro_batch")]++
}
/"ph":"C"/ { n_counter++ }
function inside(inner, outer,    i, j, ok) {
    for (i = 1; i <= n[inner]; i++) {
        ok = 0
        for (j = 1; j <= n[outer]; j++) ok = ok || (b[inner, i] >= b[outer, j] - 1e-3 && e[inner, i] <= e[outer, j] + 1e-3)
        if (!ok) { print inner, i, "lies in no", outer; bad = 1 }
    }
}
END {
    inside("op", "program"); inside("program", "step"); inside("host", "step")
    if (n["step"] != 1 || n["program"] != 5 || n["op"] < 100 || n_counter < 50) { print n["step"], n["program"], n["op"], n_counter; bad = 1 }
    if (sum["op"] > sum["program"] || sum["program"] > sum["step"]) { print "sums", sum["op"], sum["program"], sum["step"]; bad = 1 }
    if (micro[0] != micro[1] || micro[0] == 0) { print "micro-batches", micro[0], micro[1]; bad = 1 }
    exit bad
}' trace.json || fail 'profile'

# ---- a resume after step 5: one axis, no step twice ----
cp out/metrics.csv before.csv
rm -rf out/checkpoint/step-8
train --dump-folder out --training.steps 10 --metrics.enable-tensorboard --checkpoint.enable --checkpoint.interval 5 --training.global-batch-size 4
[ "$(steps out/metrics.csv)" = '1 2 3 4 5 6 7 8 9 10 ' ] || fail "after the resume: $(steps out/metrics.csv)"
cmp <(head -n 6 before.csv) <(head -n 6 out/metrics.csv) || fail 'rows before the resume changed'
[ "$(ls out/tb | wc -l)" = 1 ] && [ "$(ls out/tb/*/events* | wc -l)" = 2 ] || fail 'the resumed run writes to another folder of event files'
[ "$(ls out/structured_logs | wc -l)" = 2 ] || fail 'a trace of each process'
grep -q '"resumed_from_step": 5' out/run.json || fail 'run.json does not say where it went on'
# A fresh run in the same folder keeps the old file.
train --dump-folder out --training.steps 1 --training.global-batch-size 4
[ "$(steps out/metrics.csv)" = '1 ' ] && [ "$(steps out/metrics.csv.1)" = '1 2 3 4 5 6 7 8 9 10 ' ] || fail 'the old metrics.csv is gone'

# ---- nothing that cannot be written stops a run ----
touch file
train --dump-folder file/out --training.steps 2 --metrics.enable-tensorboard --profiler.enable-profiling --profiler.profile-freq 1 --profiler.profiler-warmup 0
[ "$(grep -c 'WARNING.*training goes on' log)" = 1 ] && grep -q "WARNING.*'file'" log && grep -q 'Training completed' log || { cat log; fail 'no folder to write to'; }
# A disk that is full after 2 KiB: a limit on the size of files stands for it (the signal is ignored, the write fails).
(trap '' XFSZ; ulimit -f 2; exec "$bin" train "${sel[@]}" --dump-folder small --training.steps 20 --metrics.enable-tensorboard) 2>&1 | cat >log
[ "$(grep -c 'WARNING.*cannot be written' log)" = 1 ] && grep -q 'Training completed' log || { cat log; fail 'a full disk'; }
# Everything off: nothing is written.
train --dump-folder none --training.steps 1 --metrics.no-enable-csv --debug.no-enable-structured-logging
[ ! -e none ] || fail "written though off: $(find none)"

# ---- the progress line: on a terminal only, whole lines above it, nothing left behind ----
command="$bin train ${sel[*]} --dump-folder tty --training.steps 4"
terminal() { # extra environment; the log as the terminal got it
    env -u NO_COLOR -u CI TERM=xterm "$@" script -qec "stty cols 100; $command" /dev/null </dev/null >tty.log 2>&1 || { cat tty.log; fail 'on a terminal'; }
}
if command -v script >/dev/null; then
    terminal
    grep -q 'step 4/4 ━' tty.log && grep -q 'tok/s' tty.log || { cat tty.log; fail 'no progress line'; }
    # What stands in each line when the cursor leaves it: all behind the last erasure.
    sed -e 's/\r*$//' -e 's/.*\r\x1b\[J//' tty.log >lines
    ! grep -vE '^\[titan\] [0-9-]+ [0-9:,]+ - root - [A-Z]+ - ' lines || fail 'garbled lines'
    [ "$(grep -c 'step: ' lines)" = 4 ] && tail -n 1 lines | grep -q 'Process group destroyed$' || { cat lines; fail 'lines of the log'; }
    for plain in NO_COLOR=1 CI=true TERM=dumb; do
        terminal $plain
        ! grep -q '4/4' tty.log || fail "a progress line with $plain"
    done
    command="$bin train ${sel[*]/--metrics.disable-color-printing/} --dump-folder tty --training.steps 1 --metrics.no-enable-progress"
    terminal
    grep -q $'\033\\[31mstep:' tty.log && ! grep -q '1/1' tty.log || fail 'colours, and no progress line where it is off'
    terminal NO_COLOR=1
    ! grep -q $'\033' tty.log || fail 'colours with NO_COLOR'
fi

# ---- two ranks ----
"$bin" run --nproc_per_node=2 -m torchtitan.train "${sel[@]}" --dump-folder two --training.steps 5 --metrics.enable-tensorboard --metrics.save-for-all-ranks \
    --training.seq-len 16 --training.local-batch-size 2 >log 2>&1 || { cat log; fail 'two ranks'; }
[ "$(ls two/tb/*/ | tr '\n' ' ')" = 'rank_0 rank_1 ' ] && [ -f two/metrics.rank_1.csv ] && [ "$(ls two/structured_logs | wc -l)" = 2 ] || fail "$(find two)"
[ "$(column two/metrics.csv n_tokens_seen | tail -n 1)" = 320 ] || fail 'tokens of two ranks'
for c in loss_metrics/global_avg_loss loss_metrics/global_max_loss grad_norm n_tokens_seen; do
    cmp <(column two/metrics.csv $c) <(column two/metrics.rank_1.csv $c) || fail "$c differs between the ranks"
done
paste <(column two/metrics.csv loss_metrics/global_avg_loss) <(column two/metrics.csv loss_metrics/global_max_loss) |
    awk '{ n += $2 > $1; bad = bad || $2 < $1 * (1 - 1e-12) } END { exit bad || n == 0 }' || fail 'the largest loss of a rank is below the mean'
"$bin" run --nproc_per_node=2 -m torchtitan.train "${sel[@]}" --dump-folder six --training.steps 5 --training.seq-len 16 --training.global-batch-size 12 \
    >log 2>&1 || { cat log; fail 'two ranks, three micro-batches'; }
[ "$(column six/metrics.csv n_tokens_seen | tail -n 1)" = 960 ] || fail 'tokens of two ranks and three micro-batches'
echo ok
