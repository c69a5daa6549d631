# SPDX-License-Identifier: Apache-2.0
# labels: slow
# Training on one Ascend NPU as a user starts it, over the doubles of CANN's libraries, beside the CPU backend: losses and norms to the digits that are
# printed or so; the same bits twice where sums have one order; nothing left, nothing doubtful; what is said where there is no CANN.
set -u
build=$1
[ -f "$build/fake_cann/lib64/libopapi.so" ] || { echo 'skipped: this build has no doubles of CANN'; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*"; tail -n 5 "$dir/log"; exit 1; }
export ASCEND_HOME_PATH="$build/fake_cann" ASCEND_OPP_PATH="$build/fake_cann/opp" FAKE_CANN_LEAKS=fail FAKE_CANN_LINTS=trap NO_COLOR=1
unset ASCEND_RT_VISIBLE_DEVICES

# steps DEVICE ARGUMENTS...: "loss norm" a line.
steps() {
    local device=$1
    shift
    ASCEND_RT_VISIBLE_DEVICES=0 "$build/bin/ctitan" train --module llama3 --device "$device" --model-spec.n-layers 2 --training.local-batch-size 2 --training.seq-len 64 \
        --training.steps 3 --debug.seed 7 --dump-folder "$dir/out" "$@" > "$dir/log" 2>&1 || fail "$device $*"
    sed -n 's/.*step: *\([0-9]*\) *loss: *\([0-9.]*\) *grad_norm: *\([0-9.]*\).*/\1 \2 \3/p' "$dir/log"
}

# near WHAT ROUNDOFF: two files of steps, each number as far from the other as printing (a unit of the 5th decimal of losses, of the 4th of norms) and
# ROUNDOFF of itself may put it.
near() {
    paste -d ' ' "$dir/npu" "$dir/cpu" | awk -v roundoff="$2" '
        { for (i = 2; i <= 3; i++) { d = $i - $(i + 3); d = d < 0 ? -d : d; may = 10 ^ -(7 - i) + roundoff * $(i + 3); worst = d / may > worst ? d / may : worst } n++ }
        END { printf "%s: %d steps, the largest difference is %.2f of what may be\n", "'"$1"'", n, worst; exit !(n == 3 && worst <= 1) }' || fail "$1"
}

# float32: sums of at most 2048 terms (the vocabulary) in another order, whose roundings add up as their root. bfloat16: its unit roundoff, a bound for what both
# round in the same places.
f32=$(awk 'BEGIN { print 2 ^ -24 * sqrt(2048) }') bf16=$(awk 'BEGIN { print 2 ^ -8 }')
both() {
    local what=$1 roundoff=$2
    shift 2
    steps npu "$@" > "$dir/npu"
    steps cpu "$@" > "$dir/cpu"
    near "$what" "$roundoff"
}
both float32 $f32 --config llama3_debugmodel --training.mixed-precision-param float32
both 'bfloat16, two micro-batches' $bf16 --config llama3_debugmodel --training.mixed-precision-param bfloat16 --training.global-batch-size 4
both 'npu_compat.npu_attention' $bf16 --config llama3_debugmodel --training.mixed-precision-param bfloat16 --override.imports npu_compat.npu_attention
cat > "$dir/muon.yaml" <<'YAML'
base: llama3_debugmodel
optimizer:
  param_groups:
    - {pattern: '^layers.*(attention|feed_forward)\.', optimizer_name: Muon, optimizer_kwargs: {lr: 0.02}}
    - {pattern: '.*', optimizer_name: SGD, optimizer_kwargs: {lr: 0.05, momentum: 0.9, nesterov: true, weight_decay: 0.01}}
YAML
both 'Muon and SGD' $f32 --config "$dir/muon.yaml" --training.mixed-precision-param float32
both 'validation' $f32 --config llama3_debugmodel --training.mixed-precision-param float32 --validator.enable --validator.freq 2 --validator.steps 1 \
    --validator.dataloader.dataset c4_test

# A step waits for the device twice: before the first update and at its end. Attention enqueues more where there are more documents, all else the same.
FAKE_CANN_COUNTS="$dir/counts" steps npu --config llama3_debugmodel --training.mixed-precision-param bfloat16 > "$dir/npu"
grep '^sync' "$dir/counts" | tail -n 4 | awk '{ n[NR] = $4 } END { printf "a step: %d launches, 2 waits\n", n[1] + n[2]; exit !(NR == 4 && n[1] > 100 && n[3] > 100 && n[2] < 100 && n[2] == n[4]) }' ||
    fail 'steps wait at other places'

# The doubles add up in another order each time unless they are told not to.
for i in 1 2; do
    steps npu --config llama3_debugmodel --training.mixed-precision-param bfloat16 --debug.deterministic --checkpoint.enable --checkpoint.folder "c$i" > "$dir/npu"
done
cmp -s "$dir/out/c1/step-3/"*.safetensors "$dir/out/c2/step-3/"*.safetensors || fail 'two runs with --debug.deterministic have other weights'
echo 'deterministic: the same bits in two runs'

# What was trained writes the same text here and there: a prompt that is read in calls of 256 and 32 tokens, then one after another.
prompt=$(head -c 900 /dev/zero | tr '\0' 'e')
for device in npu cpu; do
    ASCEND_RT_VISIBLE_DEVICES=0 "$build/bin/ctitan" generate --device $device --checkpoint "$dir/out/c1" --prompt "$prompt" --max-new-tokens 8 --temperature 0 --json-lines \
        > "$dir/text.$device" 2> "$dir/log" || fail "generate on $device"
done
cmp -s "$dir/text.npu" "$dir/text.cpu" && [ -s "$dir/text.npu" ] || fail 'other text on npu'

# Nothing prepared, and each operator waited for: the same results.
steps cpu --config llama3_debugmodel --training.mixed-precision-param bfloat16 > "$dir/cpu"
CTITAN_NPU_PREPARE=0 CTITAN_NPU_SYNC=1 steps npu --config llama3_debugmodel --training.mixed-precision-param bfloat16 > "$dir/npu"
near 'nothing prepared, each operator waited for' $bf16

FAKE_CANN_VERSION=7.0 "$build/bin/ctitan" train --module llama3 --config llama3_debugmodel --model-spec.n-layers 1 --training.local-batch-size 1 --training.seq-len 32 \
    --training.steps 1 --dump-folder "$dir/out" --device npu > "$dir/log" 2>&1 || fail 'CANN 7.0, which has all that is needed'
grep -q 'WARNING - CANN 7.0.* is here, wanted CANN 8.0 to 9.x' "$dir/log" || fail 'a release that is too old, and nothing says so'
FAKE_CANN_LEAKS=print FAKE_CANN_FAULT=oom_host=1 "$build/bin/ctitan" train --module llama3 --config llama3_debugmodel --device npu > "$dir/log" 2>&1 && fail 'trained without pinned memory'
grep -q 'pinned memory of the host' "$dir/log" || fail 'no word of which memory'
FAKE_CANN_LEAKS=print FAKE_CANN_FAULT=phase2=1 "$build/bin/ctitan" train --module llama3 --config llama3_debugmodel --device npu > "$dir/log" 2>&1 && fail 'trained without a cast'
grep -q "node 'flat.tok_embeddings': cast: aclnnCast: error 561000" "$dir/log" || fail 'an operator that fails when it is enqueued'

if ASCEND_HOME_PATH=/nonexistent "$build/bin/ctitan" train --module llama3 --config llama3_debugmodel --device npu > "$dir/log" 2>&1; then
    [ -d /usr/local/Ascend ] || fail 'trained without CANN'
fi
grep -q "there is no CANN: .*'/nonexistent'.*set_env.sh" "$dir/log" || [ -d /usr/local/Ascend ] || fail 'no CANN, and nothing says so'
ASCEND_HOME_PATH=/nonexistent "$build/bin/ctitan" train --module llama3 --config llama3_debugmodel --model-spec.n-layers 1 --training.local-batch-size 1 --training.seq-len 32 \
    --training.steps 1 --dump-folder "$dir/out" > "$dir/log" 2>&1 || fail '--device auto without CANN'
grep -q 'WARNING - Device: cpu (--device auto; not npu: ' "$dir/log" || [ -d /usr/local/Ascend ] || fail 'CANN is not where the environment says, and nothing warns'
FAKE_CANN_LEAKS=print FAKE_CANN_MEMORY=40 "$build/bin/ctitan" train --module llama3 --config llama3_debugmodel --device npu > "$dir/log" 2>&1 && fail 'trained in 40 MiB'
grep -q 'run needs .*the device has 40.00 MiB\|device memory ran out' "$dir/log" || fail 'no word of memory'
echo ok
