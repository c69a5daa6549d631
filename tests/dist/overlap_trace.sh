# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# The trace of two ranks shows, by the order of starts, waits and ops on the track of computation: the parameters of a block are gathered while the
# block before it computes (forward and backward), its gradients are summed while the next one computes, and each collective ran on a track of its
# own between its start and the wait for it. With --parallelism.data-parallel-overlap never all is in line. Same losses both ways, and the bytes
# that were sent are those of the plan.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
model=(--module llama3 --config llama3_debugmodel --training.seq-len 64 --training.local-batch-size 2 --training.global-batch-size 8)
run() { # run FOLDER ARGS...
    local folder=$1
    shift
    "$bin" run --nproc_per_node=2 --rdzv_endpoint=localhost:0 -m torchtitan.train "${model[@]}" --training.steps 2 --metrics.disable-color-printing \
        --debug.seed 3 --metrics.log-freq 1 --profiler.enable-profiling --profiler.profile-freq 1 --profiler.profiler-warmup 0 --profiler.profiler-active 1 --dump-folder "$folder" "$@" >"$folder.log" 2>&1 ||
        { tail "$folder.log"; exit 1; }
}
run beside --parallelism.data-parallel-overlap always
run in-line --parallelism.data-parallel-overlap never
check() { # check FILE WANTED-OVERLAP: of blocks 0 to 5
    gzip -dc "$1" | awk -v wanted="$2" '
    function text(key) { return match($0, "\"" key "\":\"[^\"]*\"") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 5) : "" }
    function number(key) { return match($0, "\"" key "\":[0-9.]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : -1 }
    function fail(what) { if (!failed) print "in " p ": " what; failed = 1 }
    # Ops of a block between two places of the track of computation.
    function ops_between(block, from, to,    i, n) { n = 0; for (i = from + 1; i < to; i++) n += (op[p, i] "") == (block ""); return n }
    # The collective of flat.layers.<of> runs while layers.<block> computes, and is waited for before an op of `of` (gathers).
    function beside(name, of, block,    s, n) {
        s = started[p, name, "flat.layers." of]
        if (s == "") { fail(name " of block " of " was not started"); return }
        n = num[p, s]
        if (!((p, n) in waited)) { fail("nobody waits for " name " of block " of); return }
        if (ops_between(block, s, waited[p, n]) == 0) fail("no op of block " block " runs beside " name " of block " of)
        if (name == "all_gather" && ops_between(of, s, waited[p, n]) > 0) fail("block " of " computes before its parameters are waited for")
        if (!((p, n) in ran)) fail(name " of block " of " is not on the track of communication")
        else if (ran[p, n] != name " flat.layers." of) fail("number " n " is " ran[p, n])
        else if (ran_from[p, n] < started_us[p, s] || ran_to[p, n] > waited_us[p, n]) fail(name " of block " of " ran outside of its start and wait")
        n_beside++
    }
    /"ph":"X"/ {
        cat = text("cat"); p = text("program") " of micro-batch " number("micro_batch"); n = number("number"); scope = text("scope"); name = text("name")
        ts = number("ts"); end = ts + number("dur")
        if (number("tid") == 1) { n_side++; ran[p, n] = name " " scope; ran_from[p, n] = ts; ran_to[p, n] = end; next }
        if (cat != "op" && cat != "collective" && cat != "start" && cat != "wait") next
        programs[p] = 1
        at = ++length_of[p]
        if (cat == "start") { started[p, name, scope] = at; num[p, at] = n; started_us[p, at] = ts }
        if (cat == "wait") for (k = last_waited[p] + 1; k <= n; k++) { waited[p, k] = at; waited_us[p, k] = end; last_waited[p] = k }
        if (cat == "op" && match(scope, /^layers\.[0-9]+/)) op[p, at] = substr(scope, 8, RLENGTH - 7)
    }
    END {
        for (p in programs) {
            if (wanted == 0) continue
            if (p ~ /^forward/) { n_programs++; for (i = 0; i < 5; i++) beside("all_gather", i + 1, i) }
            if (p ~ /^backward/) {
                n_programs++
                for (i = 5; i > 0; i--) { beside("all_gather", i - 1, i); beside("reduce_scatter", i, i - 1) }
            }
        }
        if (wanted && (n_programs != 4 || n_beside != 2 * 15)) { print n_programs " programs, " n_beside " collectives beside the computation"; failed = 1 }
        if (!wanted && n_side > 0) { print n_side " collectives on a track of their own"; failed = 1 }
        exit failed
    }' || { echo "FAILED: $1"; exit 1; }
}
for rank in 0 1; do
    check beside/profiling/traces/iteration_2/rank${rank}_trace.json.gz 1
    check in-line/profiling/traces/iteration_2/rank${rank}_trace.json.gz 0
done
gzip -dc beside/profiling/traces/iteration_2/rank0_trace.json.gz | grep -q '"thread_name".*"communication"' || { echo 'the track has no name'; exit 1; }
losses() { grep -ohE 'step: +[0-9]+ +loss: +[0-9.]+ +grad_norm: +[0-9.]+' "$1"; }
[ "$(losses beside.log | wc -l)" = 4 ] && [ "$(losses beside.log | sort)" = "$(losses in-line.log | sort)" ] || { echo 'the losses differ'; exit 1; }
# The check itself can fail: what was in line is no overlap.
! (check in-line/profiling/traces/iteration_2/rank0_trace.json.gz 1) >/dev/null || { echo 'the check takes anything'; exit 1; }

# Bytes: two steps of the plan's.
want=$("$bin" plan --json --ranks 2 "${model[@]}" 2>/dev/null | awk '/"dp_shard": \{/ { on = 1 } on && /_bytes"/ { sum += $2 } on && /}/ { printf "%d", 2 * sum; exit }')
for folder in beside in-line; do
    for log in "$folder"/structured_logs/*; do
        got=$(sed -n 's/.*"value":\([0-9]*\).*"event_name":"sent_bytes\/dp_shard".*/\1/p; s/.*"event_name":"sent_bytes\/dp_shard".*"value":\([0-9]*\).*/\1/p' "$log")
        [ "${want:-0}" -gt 0 ] && [ "$got" = "$want" ] || { echo "$log: $got bytes were sent, the plan says $want"; exit 1; }
    done
done
