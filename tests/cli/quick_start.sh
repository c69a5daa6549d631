# SPDX-License-Identifier: Apache-2.0
# labels: slow
# The quick-start command, from another folder, with nothing else set: its lines in their order, exit 0; the same without a supervisor.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
flags=(--module llama3 --config llama3_debugmodel --override.imports npu_compat.npu_attention --comm.mode default
       --training.steps 2 --training.local-batch-size 1 --training.seq-len 256 --metrics.log-freq 1
       --metrics.disable-color-printing --dump-folder "$dir/out")

cat >want <<'E2'
ctitan version: [0-9.]+
\[Override\] npu_compat.npu_attention: model_spec.model.layers.0.attention GQAttention.Config -> NpuGQAttention.Config
\[Override\] npu_compat.npu_attention: model_spec.model.layers.1.attention GQAttention.Config -> NpuGQAttention.Config
\[Override\] npu_compat.npu_attention: model_spec.model.layers.2.attention GQAttention.Config -> NpuGQAttention.Config
\[Override\] npu_compat.npu_attention: model_spec.model.layers.3.attention GQAttention.Config -> NpuGQAttention.Config
\[Override\] npu_compat.npu_attention: model_spec.model.layers.4.attention GQAttention.Config -> NpuGQAttention.Config
\[Override\] npu_compat.npu_attention: model_spec.model.layers.5.attention GQAttention.Config -> NpuGQAttention.Config
Applied 6 override\(s\)
Building llama3 debugmodel
CPU capacity: .* with [0-9.]+GiB memory
CPU: [0-9]+ threads? \(.*\)
Model llama3 debugmodel size: 6,163,712 total parameters
Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=1, cp=1, tp=1, ep=1
Successfully created meshes with active dimensions: \[\]
Applied SelectiveAC activation checkpointing to the model
Applied FSDP to the model
CPU memory usage for model: [0-9.]+GiB\([0-9.]+%\)
Optimizer AdamW: .* params \[\.\*\] .*
Loading tokenizer from .*/tokenizer.json
Preparing c4_test dataset from .*/share/ctitan/.*
Trainer is initialized with local batch size 1, global batch size 1, gradient accumulation steps 1, sequence length 256, total steps 2 \(warmup 2\)
Training starts at step 1
step:  1  loss:  [0-9]\.[0-9]{5}  grad_norm:  [0-9]\.[0-9]{4}  memory:  [0-9.]+GiB\([0-9.]+%\)  tps: [0-9,]+  tflops: [0-9.]+  mfu: [0-9./AN]+%?
Synchronizing and adjusting timeout for all ProcessGroups to 0:01:40
step:  2  loss:  [0-9]\.[0-9]{5}  grad_norm:  [0-9]\.[0-9]{4}  memory:  [0-9.]+GiB\([0-9.]+%\)  tps: [0-9,]+  tflops: [0-9.]+  mfu: [0-9./AN]+%?
Training completed
Process group destroyed
E2

check() { # check NAME LOG: every wanted line, in order
    local at=0 n
    while IFS= read -r pattern; do
        n=$(tail -n +$((at + 1)) "$2" | grep -nE -- "^\[titan\] [0-9-]{10} [0-9:]{8},[0-9]{3} - root - (INFO|WARNING) - $pattern\$" | head -1 | cut -d: -f1)
        if [ -z "$n" ]; then
            echo "$1: after line $at there is no line: $pattern"
            cat "$2"
            exit 1
        fi
        at=$((at + n))
    done <want
    # Nothing in the log that is not a log line.
    if grep -vE '^\[titan\] [0-9-]{10} [0-9:]{8},[0-9]{3} - root - (INFO|WARNING) - ' "$2"; then
        echo "$1: lines of another form"
        exit 1
    fi
}

"$bin" run --nproc_per_node=1 --rdzv_backend c10d --rdzv_endpoint=localhost:0 -m torchtitan.train "${flags[@]}" >run.out 2>run.err
[ ! -s run.out ] || { echo "standard output is not empty:"; cat run.out; exit 1; }
check "ctitan run" run.err
"$bin" train "${flags[@]}" 2>train.err
check "ctitan train" train.err

# Warmup 2 + decay 2 exceed 2 steps: a warning, as upstream.
grep -q 'WARNING - Warmup (2) + decay (2) steps exceed total steps (2). Adjusting decay steps to 0.' run.err
[ "$("$bin" overrides list npu_compat)" = "['npu_compat.npu_attention']" ]
[ "$("$bin" check-overrides npu_compat.npu_attention | tail -n 1)" = "npu override equivalence: rope OK, mask OK" ]
"$bin" --version | grep -qE '^ctitan [0-9.]+$'
