#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rooms: comm/gloo
# labels: slow
# Layouts of up to four ranks, from equal weights on equal rows. FSDP, HSDP and DDP of one degree: all bits of weights and moments after two
# steps; with collectives in line as beside the computation. Tensor and sequence parallelism in every mix with them: each gradient (the first moment after one step is a tenth of it) is at
# most half as far again from the plain reference's as the one rank's is. What a layout saved, every other reads bit for bit.
# LAYOUTS=all runs layouts of eight ranks, too (tools/long does).
set -euo pipefail
build=$1
ctitan=$build/bin/ctitan
dir=$(mktemp -d "$build/test-layouts-XXXXXX")
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
ROWS=4
[ "${LAYOUTS:-}" = all ] && ROWS=8

# train NAME RANKS STEPS FLAGS...: loss and norm of each step on stdout
train() {
    local name=$1 ranks=$2 steps=$3
    shift 3
    OMP_NUM_THREADS=1 "$ctitan" run --nproc_per_node "$ranks" -m torchtitan.train --module llama3 --config llama3_debugmodel \
        --training.seq-len 24 --training.steps "$steps" --training.global-batch-size $ROWS --dataloader.streams $ROWS --debug.seed 42 \
        --lr-scheduler.total-steps 10 --lr-scheduler.warmup-steps 0 --training.mixed-precision-param float32 --metrics.log-freq 1 \
        --metrics.disable-color-printing --checkpoint.enable --checkpoint.interval 1 --checkpoint.keep-latest-k 0 \
        --dump-folder "$dir/$name" "$@" >"$dir/$name.log" 2>&1 || { tail -n 5 "$dir/$name.log"; fail "$name"; }
    sed -n 's/^\(\[default0\]:\)\{0,1\}\[titan\].*step: *\([0-9]*\) *loss: *\([0-9.]*\) *grad_norm: *\([0-9.]*\) .*/\2 \3 \4/p' "$dir/$name.log"
}
overlap=--parallelism.data-parallel-overlap replicas=--parallelism.data-parallel-replicate-degree tensor=--parallelism.tensor-parallel-degree rows=--training.local-batch-size
at() { echo "$dir/$1/checkpoint/step-$2"; }

# 1. FSDP, HSDP, DDP of degree 4: bits.
train fsdp4 4 2 $rows $((ROWS / 4)) $overlap never >"$dir/lines"
for layout in "fsdp4_beside 1 always" "hsdp4 2 never" "hsdp4_beside 2 always" "ddp4 4 never" "ddp4_beside 4 always"; do
    # shellcheck disable=SC2086
    set -- $layout
    train "$1" 4 2 $rows $((ROWS / 4)) $replicas "$2" $overlap "$3" >"$dir/more"
    cmp "$dir/lines" "$dir/more" || fail "$1: loss or norm differ from FSDP's"
    for step in 1 2; do
        "$ctitan" checkpoint diff "$(at fsdp4 $step)" "$(at "$1" $step)" || fail "$1: step $step is not FSDP's"
    done
done

# 2. Every other mix: gradients as near to the reference's as those of one rank.
train ref 1 1 $rows $ROWS --device ref >"$dir/lines"
train one 1 1 $rows $ROWS >/dev/null
check() { # NAME RANKS FLAGS...
    local name=$1
    train "$@" >"$dir/more"
    "$ctitan" checkpoint diff "$(at one 1)" "$(at "$name" 1)" --of "$(at ref 1)" >"$dir/diff" || true
    awk -v name="$name" '/exp_avg\./ { gsub(",", "", $3); n++; r = $5 / $3; if (r > most) { most = r; which = $1 } }
        END { printf "%s: %d gradients, the farthest is %.2f times as far from the reference as one rank'"'"'s (%s)\n", name, n, most, which
              exit n != 57 || most > 1.5 }' "$dir/diff" || fail "$name"
}
check tp2 2 1 $rows $ROWS $tensor 2
check tp2_whole 2 1 $rows $ROWS $tensor 2 --parallelism.no-enable-sequence-parallel
check tp4 4 1 $rows $ROWS $tensor 4
check tp2_ddp2_whole 4 1 $rows $((ROWS / 2)) $tensor 2 $replicas 2 --parallelism.no-enable-sequence-parallel activation-checkpoint:none
check tp2_fsdp2_beside 4 1 $rows $((ROWS / 2)) $tensor 2 activation-checkpoint:full $overlap always
check tp2_fsdp2_inline 4 1 $rows $((ROWS / 2)) $tensor 2 activation-checkpoint:full $overlap never
"$ctitan" checkpoint diff "$(at tp2_fsdp2_beside 1)" "$(at tp2_fsdp2_inline 1)" || fail 'tensor parallelism: overlap changes bits'
check fsdp2 2 1 $rows $((ROWS / 2)) --parallelism.fsdp-reshard-after-forward always
if [ "${LAYOUTS:-}" = all ]; then
    check tp2_hsdp22 8 1 $rows 2 $tensor 2 $replicas 2
    check tp4_fsdp2 8 1 $rows 4 $tensor 4
    check tp8 8 1 $rows 8 $tensor 8
    check tp8_whole 8 1 $rows 8 $tensor 8 --parallelism.no-enable-sequence-parallel
    train fsdp8 8 2 $rows 1 >"$dir/lines"
    for n in 2 4 8; do
        train "r$n" 8 2 $rows 1 $replicas "$n" >"$dir/more"
        cmp "$dir/lines" "$dir/more" && "$ctitan" checkpoint diff "$(at fsdp8 2)" "$(at "r$n" 2)" || fail "8 ranks, $n replicas"
    done
fi

# 3. What one layout saved, another reads: a step at rate 0 leaves every weight as it was.
resume() { # FROM NAME RANKS FLAGS...
    local from=$1 name=$2 ranks=$3
    shift 3
    mkdir -p "$dir/$name/checkpoint"
    cp -r "$(at "$from" 1)" "$dir/$name/checkpoint/"
    train "$name" "$ranks" 2 --optimizer.lr 0 "$@" >"$dir/more"
    [ "$(cut -d' ' -f1 "$dir/more")" = 2 ] || fail "$name did not go on at step 2: $(cat "$dir/more")"
    "$ctitan" checkpoint diff "$(at "$from" 1)" "$(at "$name" 2)" >"$dir/diff" || true
    grep -v '^optimizer\.\|tensors,' "$dir/diff" && fail "$name: weights changed on the way from $from"
    return 0
}
resume tp2_fsdp2_beside a 1 $rows $ROWS
resume tp2_fsdp2_beside b 2 $rows $((ROWS / 2)) $replicas 2
resume one c 4 $rows $((ROWS / 2)) $tensor 2
resume tp4 d 2 $rows $ROWS $tensor 2 --parallelism.no-enable-sequence-parallel
echo "layouts: as one rank"
