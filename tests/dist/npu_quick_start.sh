# SPDX-License-Identifier: Apache-2.0
# labels: long
# rooms: comm/gloo
# The two commands of the quick start on NPUs as they are typed, 8 x 2048 tokens a rank and step, on the doubles of CANN, and the losses of the CPU. A step
# takes minutes there: QUICK_STEPS (10, as in the quick start) says how many.
set -eu
build=$1
export PATH=$1/bin:$PATH
for lib in ascendcl nnopbase opapi hccl; do
    [ -e "$build/fake_cann/lib64/lib$lib.so" ] || { echo "skipped: the double of lib$lib is not built"; exit 77; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
steps=${QUICK_STEPS:-10}
export ASCEND_HOME_PATH=$build/fake_cann ASCEND_OPP_PATH=$dir FAKE_CANN_LEAKS=fail FAKE_CANN_DELAY=0 CTITAN_DEBUG__SEED=3 CTITAN_METRICS__LOG_FREQ=1 CTITAN_METRICS__DISABLE_COLOR_PRINTING=true
export CTITAN_COMM__INIT_TIMEOUT_SECONDS=7200 CTITAN_COMM__TRAIN_TIMEOUT_SECONDS=7200
losses() { grep -oE 'step: +[0-9]+ +loss: +[0-9.]+ +grad_norm: +[0-9.]+' "$1" | sed -E 's/[a-z_]+://g' | sort -n | uniq; }
near() { # losses within one rounding of bf16, norms within 2^-6
    [ -s "$1" ] && [ "$(wc -l <"$1")" = "$(wc -l <"$2")" ] || { echo "steps are missing"; exit 1; }
    paste "$1" "$2" | awk '{ d = $2 - $5; if (d < 0) d = -d; e = ($3 - $6) / $6; if (e < 0) e = -e
        if (d > $5 / 512 || e > 1 / 64) { print "step", $1, "loss", $2, "and", $5, "norm", $3, "and", $6; bad = 1 } } END { exit bad }'
}
ASCEND_RT_VISIBLE_DEVICES=0 ctitan train --module llama3 --config llama3_debugmodel --training.steps "$steps" >one 2>&1 || { tail -n 5 one; exit 1; }
grep -q 'Device: npu 0 of 1' one
ctitan train --module llama3 --config llama3_debugmodel --training.steps "$steps" --device cpu --training.mixed-precision-param bfloat16 >cpu 2>&1 || { tail -n 5 cpu; exit 1; }
losses one >one.losses
losses cpu >cpu.losses
near one.losses cpu.losses
ASCEND_RT_VISIBLE_DEVICES=0,1 HCCL_NPU_SOCKET_PORT_RANGE=60000-60200 ctitan run --nproc_per_node=2 --local-ranks-filter 0 --tee 3 -m torchtitan.train \
    --module llama3 --config llama3_debugmodel --training.steps "$steps" --override.imports npu_compat.npu_attention >two 2>&1 || { tail -n 5 two; exit 1; }
grep -q 'Applied 6 override(s)' two
ctitan run --nproc_per_node=2 --local-ranks-filter 0 --tee 3 -m torchtitan.train --module llama3 --config llama3_debugmodel --training.steps "$steps" \
    --override.imports npu_compat.npu_attention --device cpu --training.mixed-precision-param bfloat16 >cpu 2>&1 || { tail -n 5 cpu; exit 1; }
losses two >two.losses
losses cpu >cpu.losses
near two.losses cpu.losses
paste two.losses cpu.losses
