#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# labels: slow
# Two runs that save into one folder: the second waits for the first, is refused where it stays, goes on where it ends. And a disk without room
# for one checkpoint is told before the first step.
set -euo pipefail
ctitan=$1/bin/ctitan
dir=$(mktemp -d)
first=
trap '[ -z "$first" ] || kill -9 $first 2>/dev/null || true; rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
flags=(--module llama3 --config llama3_debugmodel --training.seq-len 16 --training.local-batch-size 1 --debug.seed 42
       --metrics.disable-color-printing --checkpoint.enable --checkpoint.interval 5)
folder=(--dump-folder "$dir/out")
begin() {
    "$ctitan" train "${flags[@]}" "${folder[@]}" --training.steps 1000000 2>"$dir/first" &
    first=$!
    for ((i = 0; i < 600; i++)); do
        ! grep -q 'Training starts' "$dir/first" || return 0
        sleep 0.1
    done
    fail "the first run does not start: $(tail -n 1 "$dir/first")"
}

begin
rc=0
"$ctitan" train "${flags[@]}" "${folder[@]}" --training.steps 3 2>"$dir/log" || rc=$?
[ $rc = 1 ] || fail "exit code $rc: $(tail -n 1 "$dir/log")"
grep -q "ERROR - another run saves checkpoints into '$dir/out/checkpoint'; wait for its end, or choose another --dump-folder" "$dir/log" ||
    fail "$(tail -n 1 "$dir/log")"
! grep -q 'Training starts' "$dir/log" || fail "the second run began"
# One that only reads, or saves elsewhere, is free to run.
"$ctitan" train "${flags[@]}" "${folder[@]}" --checkpoint.folder other --training.steps 3 2>"$dir/log" || fail "$(tail -n 1 "$dir/log")"

"$ctitan" train "${flags[@]}" "${folder[@]}" --training.steps 2 2>"$dir/log" &
second=$!
for ((i = 0; i < 100; i++)); do
    ! grep -q 'Another run saves into' "$dir/log" || break
    sleep 0.1
done
kill -9 $first
{ wait $first || true; } 2>/dev/null
first=
wait $second || fail "it did not go on when the first was killed: $(tail -n 1 "$dir/log")"
grep -q 'Another run saves into' "$dir/log" || fail "it did not wait"

if unshare -rm mount -t tmpfs -o size=1m none /mnt 2>/dev/null; then
    # shellcheck disable=SC2016 # expanded inside
    unshare -rm bash -c 'mount -t tmpfs -o size=1m none /mnt && exec "$0" "$@" --dump-folder /mnt --training.steps 1' \
        "$ctitan" train "${flags[@]}" 2>"$dir/log" || true
    line=$(grep -n "A checkpoint takes .*, the disk of '/mnt/checkpoint' has .* left: saving will fail" "$dir/log" | cut -d: -f1)
    [ -n "$line" ] || fail "a disk without room: $(tail -n 2 "$dir/log")"
    start=$(grep -n 'Training starts' "$dir/log" | cut -d: -f1)
    [ "$line" -lt "$start" ] || fail "the disk is told after the start"
    small='; a small disk is told'
fi
echo "checkpoint folder: one run at a time${small:-}"
