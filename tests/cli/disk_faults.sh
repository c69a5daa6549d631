#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# labels: slow
# Disks that fill up, turn read-only or lose the folder during a run: a save that fails is one error that names path and reason, the checkpoint
# before it is resumed from once there is room, and no rank waits; records that cannot be written are told once, and training goes on.
set -euo pipefail
if [ "${2:-}" != inside ]; then
    unshare -rm mount -t tmpfs none /mnt 2>/dev/null || { echo "skipped: no file systems can be mounted here"; exit 77; }
    exec unshare -rm bash "$0" "$1" inside
fi
ctitan=$1/bin/ctitan
dir=$(mktemp -d)
run=
trap '[ -z "$run" ] || kill -9 $run 2>/dev/null || true; umount -l "$dir"/* 2>/dev/null || true; rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
disk() { mkdir -p "$dir/$1" && mount -t tmpfs -o size="$2" none "$dir/$1"; }
flags=(--module llama3 --config llama3_debugmodel --training.seq-len 16 --training.local-batch-size 1 --debug.seed 42 --metrics.disable-color-printing)
saves=(--checkpoint.enable --checkpoint.interval 2 --checkpoint.no-last-save-model-only)
wait_for() { # words, log
    for ((i = 0; i < 600; i++)); do
        ! grep -q "$1" "$2" || return 0
        sleep 0.1
    done
    fail "no '$1': $(tail -n 2 "$2")"
}
one_error() { # of $dir/log: words of it
    [ "$(grep -c ' ERROR - ' "$dir/log")" = 1 ] || fail "$(grep -c ' ERROR - ' "$dir/log") errors: $(tail -n 3 "$dir/log")"
    local words
    for words in "$@"; do grep ' ERROR - ' "$dir/log" | grep -qF -- "$words" || fail "no '$words': $(grep ' ERROR - ' "$dir/log")"; done
}

# 1. A disk with room for one checkpoint and a part of the next. The save at step 4 fails; what it had written is given back; with more room the
# run goes on from step 2, though its disk is still too small to keep two.
disk full 120m
"$ctitan" train "${flags[@]}" "${saves[@]}" --training.steps 2 --dump-folder "$dir/full" 2>"$dir/log" || fail "$(tail -n 1 "$dir/log")"
size=$(du -sm "$dir/full" | cut -f1)
[ "$size" -gt 40 ] && [ "$size" -lt 110 ] || fail "a checkpoint has $size MiB: mend this test"
rc=0
"$ctitan" train "${flags[@]}" "${saves[@]}" --training.steps 6 --dump-folder "$dir/full" 2>"$dir/log" || rc=$?
[ $rc = 1 ] || fail "a full disk: exit code $rc: $(tail -n 1 "$dir/log")"
one_error "$dir/full/checkpoint"
[ "$(ls -A "$dir/full/checkpoint")" = step-2 ] || fail "left in the folder: $(ls -A "$dir/full/checkpoint")"
mount -o remount,size=400m "$dir/full"
"$ctitan" train "${flags[@]}" "${saves[@]}" --training.steps 4 --dump-folder "$dir/full" 2>"$dir/log" || fail "more room: $(tail -n 1 "$dir/log")"
grep -q 'Loading the checkpoint from .*step-2' "$dir/log" || fail "not resumed from step 2"

# 2. The folder turns read-only between two saves.
disk ro 400m
"$ctitan" train "${flags[@]}" "${saves[@]}" --training.steps 100000 --dump-folder "$dir/ro/out" 2>"$dir/log" &
run=$!
wait_for 'Finished saving' "$dir/log"
mount --bind "$dir/ro/out/checkpoint" "$dir/ro/out/checkpoint" && mount -o remount,bind,ro "$dir/ro/out/checkpoint"
rc=0
wait $run || rc=$?
run=
[ $rc = 1 ] || fail "a read-only folder: exit code $rc: $(tail -n 1 "$dir/log")"
one_error "$dir/ro/out/checkpoint" 'Read-only file system'
umount "$dir/ro/out/checkpoint"
"$ctitan" checkpoint show "$dir/ro/out/checkpoint" >/dev/null || fail "the checkpoint before the fault does not load"

# 3. Two ranks: both end where one cannot save.
if grep -q '^CT_GLOO:BOOL=ON' "$1/CMakeCache.txt" && grep -q '^CT_GLOO_LIB:FILEPATH=/' "$1/CMakeCache.txt"; then
    disk two 120m
    rc=0
    "$ctitan" run --nproc_per_node=2 --rdzv_endpoint=localhost:0 -m torchtitan.train "${flags[@]}" "${saves[@]}" --training.steps 6 \
        --dump-folder "$dir/two" >"$dir/log" 2>&1 || rc=$?
    [ $rc = 1 ] || fail "two ranks: exit code $rc: $(tail -n 3 "$dir/log")"
    grep ' ERROR - ' "$dir/log" | grep -qF "$dir/two/checkpoint" || fail "two ranks: no error names the folder: $(tail -n 5 "$dir/log")"
    [ "$(ls -A "$dir/two/checkpoint")" = step-2 ] || fail "two ranks: left in the folder: $(ls -A "$dir/two/checkpoint")"
fi

# 4. The folder is removed during the run: the next save makes it anew.
"$ctitan" train "${flags[@]}" "${saves[@]}" --training.steps 100000 --dump-folder "$dir/gone" 2>"$dir/log" &
run=$!
wait_for 'Finished saving' "$dir/log"
rm -rf "$dir/gone" 2>/dev/null || rm -rf "$dir/gone" # a save may be going on
n=$(grep -c 'Finished saving' "$dir/log")
for ((i = 0; i < 600; i++)); do
    [ "$(grep -c 'Finished saving' "$dir/log")" -le $((n + 1)) ] && kill -0 $run 2>/dev/null || break
    sleep 0.1
done
kill -0 $run 2>/dev/null || { grep -q " ERROR - .*$dir/gone" "$dir/log" || fail "a removed folder: $(tail -n 1 "$dir/log")"; }
kill -9 $run 2>/dev/null || true
{ wait $run || true; } 2>/dev/null
run=
"$ctitan" train "${flags[@]}" "${saves[@]}" --training.steps 2 --dump-folder "$dir/gone" 2>"$dir/log" || fail "after the removal: $(tail -n 1 "$dir/log")"

# 5. Records on a full disk: told once, and training goes on to its end.
disk small 64k
head -c 60k /dev/zero >"$dir/small/ballast"
"$ctitan" train "${flags[@]}" --training.steps 6 --dump-folder "$dir/small" --metrics.log-freq 1 --metrics.enable-tensorboard \
    --profiler.enable-profiling --profiler.profile-freq 3 --profiler.profiler-active 1 --profiler.profiler-warmup 1 \
    2>"$dir/log" || fail "records on a full disk: $(tail -n 1 "$dir/log")"
[ "$(grep -c 'WARN.*training goes on without this record' "$dir/log")" = 1 ] || fail "records: $(grep -i warn "$dir/log")"
grep 'training goes on without this record' "$dir/log" | grep -qF "$dir/small/" || fail "the record is not named"
grep -q 'Training completed' "$dir/log" || fail "no end"

# 6. An export that finds no room leaves no part of itself, and says where.
disk export 40m
rc=0
"$ctitan" train "${flags[@]}" --checkpoint.enable --checkpoint.interval 100 --checkpoint.last-save-in-hf --checkpoint.last-save-model-only --training.steps 2 --dump-folder "$dir/export" \
    --checkpoint.export-dtype float32 2>"$dir/log" || rc=$?
[ $rc = 1 ] || fail "an export without room: exit code $rc: $(tail -n 1 "$dir/log")"
one_error "$dir/export/checkpoint"
[ -z "$(ls -A "$dir/export/checkpoint")" ] || fail "an export without room leaves: $(ls -A "$dir/export/checkpoint")"

# 7. Two runs in one folder that save nothing: the second leaves metrics.csv to the first.
"$ctitan" train "${flags[@]}" --training.steps 1000000 --metrics.log-freq 1 --dump-folder "$dir/shared" 2>"$dir/log" &
run=$!
wait_for 'Training starts' "$dir/log"
"$ctitan" train "${flags[@]}" --training.steps 2 --metrics.log-freq 1 --dump-folder "$dir/shared" 2>"$dir/second" || fail "the second run: $(tail -n 1 "$dir/second")"
grep -qF "another run writes its records into '$dir/shared'" "$dir/second" || fail "the second run says nothing"
kill -9 $run
{ wait $run || true; } 2>/dev/null
run=
[ "$(cut -d, -f1 "$dir/shared/metrics.csv" | grep -cx 1)" = 1 ] || fail "rows of two runs: $(cut -d, -f1 "$dir/shared/metrics.csv" | head -n 5)"
"$ctitan" train "${flags[@]}" --training.steps 2 --dump-folder "$dir/shared" 2>"$dir/log" || fail "after the first: $(tail -n 1 "$dir/log")"
! grep -q 'another run writes' "$dir/log" || fail "the folder stays taken"
echo "disk faults: told, and nothing lost"
