#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# Sizes that do not divide by the ranks, small models: a vocabulary of 257 rows over 2 and 3 ranks of tensor parallelism with large logits, data
# parallelism of 3, 5 and 7 where some tensors have fewer elements than there are ranks, exports of 3 and 8 ranks with 2 key and value heads, tied
# embeddings; all against one rank. And what is counted does not count a row twice where ranks share it.
set -euo pipefail
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*" >&2; exit 1; }
export OMP_NUM_THREADS=1

# 257 tokens: one for what is unknown, and the bytes.
mkdir tok
{
    printf '{"model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>", "merges": [], "vocab": {"<unk>": 0'
    for b in $(seq 0 255); do printf ', "<0x%02X>": %d' "$b" $((b + 1)); done
    echo '}}}'
} >tok/tokenizer.json
common=(--module llama3 --config llama3_debugmodel --training.seq-len 24 --debug.seed 3 --metrics.log-freq 1 --metrics.disable-color-printing
    --training.mixed-precision-param float32 --hf-assets-path "$dir/tok" --model-spec.n-layers 2 --model-spec.vocab-size 257
    --lr-scheduler.warmup-steps 2 --training.max-norm 1)
# go NAME RANKS FLAGS...: "step loss norm" of each step on stdout
go() {
    local name=$1 ranks=$2
    shift 2
    "$bin" run --nproc_per_node "$ranks" --rdzv_endpoint=localhost:0 --tee 3 -m torchtitan.train "${common[@]}" \
        --dump-folder "$dir/$name" "$@" >"$name.log" 2>&1 || { tail -n 5 "$name.log"; fail "$name"; }
    sed -n 's/^\(\[default0\]:\)\{0,1\}\[titan\].*step: *\([0-9]*\) *loss: *\([0-9.]*\) *grad_norm: *\([0-9.]*\) .*/\2 \3 \4/p' "$name.log" >"$name.steps"
}
# same A B STEPS: losses and norms within 1e-5 of them, and what the last decimal printed hides
same() {
    [ "$(wc -l <"$1.steps")" = "$3" ] && [ "$(wc -l <"$2.steps")" = "$3" ] || fail "$1, $2: not $3 steps"
    paste -d' ' "$1.steps" "$2.steps" | awk '
        function off(a, b, last) { return (a > b ? a - b : b - a) > 1e-5 * a + last }
        { if ($1 != $4 || off($2, $5, 1.1e-5) || off($3, $6, 1.1e-4)) { print; bad = 1 } } END { exit bad }' || fail "$2 is not as $1"
}
tensor=--parallelism.tensor-parallel-degree hf=(--checkpoint.enable --checkpoint.last-save-model-only --checkpoint.last-save-in-hf)
sum() { cat "$dir/$1/checkpoint/step-$2"/*.safetensors | cksum; }

# Tensor parallelism: 6 heads over 2 and 3 ranks, logits of about 50, gradients far above the norm they are cut to.
shape=(--model-spec.dim 48 --model-spec.n-heads 6 --model-spec.n-kv-heads 6 --model-spec.ffn-hidden 96 --training.local-batch-size 2)
large=(--model-spec.model.lm-head.init-std 7.2 --model-spec.model.lm-head.init-cutoff 100 --training.steps 20 "${hf[@]}")
go one 1 "${shape[@]}" "${large[@]}"
awk '{ n += $2 > 50 && $3 > 5 } END { exit n != 20 }' one.steps || fail 'losses and norms are not large'
for n in 2 3; do
    for plain in enable no-enable; do
        go "tp$n$plain" $n "${shape[@]}" "${large[@]}" $tensor $n --parallelism.$plain-sequence-parallel
        same one "tp$n$plain" 20
    done
    for name in lm_head model.embed_tokens; do
        grep -qa "\"$name.weight\": {\"dtype\": \"F32\", \"shape\": \[257, 48\]" "tp${n}enable/checkpoint/step-20/model.safetensors" ||
            fail "tp$n: $name has not 257 rows in the export"
    done
done

# Tied embeddings, one tensor for both uses, over tensor parallelism and FSDP.
tied=(--model-spec.tied-embeddings --training.steps 5 --dataloader.streams 2 "${hf[@]}")
go tied 1 "${shape[@]}" "${tied[@]}"
go tied_tp2 2 "${shape[@]}" "${tied[@]}" $tensor 2
go tied_tp3 3 "${shape[@]}" "${tied[@]}" $tensor 3
go tied_mix 4 "${shape[@]}" "${tied[@]}" $tensor 2 --training.local-batch-size 1
for name in tied_tp2 tied_tp3 tied_mix; do
    same tied $name 5
    ! grep -qa lm_head $name/checkpoint/step-5/*.safetensors || fail "$name: a head in the export"
done

# Data parallelism over an odd number of ranks; norms of 4 elements, an inner width of 5. FSDP gives each rank its shard of them, or none.
tiny=(--model-spec.dim 4 --model-spec.n-heads 2 --model-spec.n-kv-heads 1 --model-spec.ffn-hidden 5 --training.steps 3 --debug.print-shards)
for n in 3 5 7; do
    go "rows$n" 1 "${tiny[@]}" --training.local-batch-size $n --dataloader.streams $n
    go "dp$n" $n "${tiny[@]}" --training.local-batch-size 1
    same "rows$n" "dp$n" 3
done
grep -q ' norm.weight \[\([0-9]\), \1) of 4' dp7.log || fail 'no rank without an element of a tensor'

# Exports from degrees that do not divide 4 heads and 2 key and value heads: the bytes of one rank's, as no weight moves.
heads=(--model-spec.dim 64 --model-spec.n-heads 4 --model-spec.n-kv-heads 2 --model-spec.ffn-hidden 128 --training.local-batch-size 1
    --training.steps 1 --optimizer.lr 0 --optimizer.weight-decay 0 "${hf[@]}")
go export1 1 "${heads[@]}"
go export3 3 "${heads[@]}"
go export8 8 "${heads[@]}"
go export_tp 2 "${heads[@]}" $tensor 2
for name in export3 export8 export_tp; do
    [ "$(sum export1 1)" = "$(sum $name 1)" ] || fail "$name: other bytes than one rank's"
    cmp export1/checkpoint/step-1/config.json $name/checkpoint/step-1/config.json
done

# What one layout saved, another goes on from with the same bits of weights and moments: with a norm so small that gradients are cut to 0, a step
# at rate 0 leaves the weights, and moments that are the loaded ones times their betas.
still=("${shape[@]}" --training.steps 2 --training.max-norm 1e-60 --optimizer.lr 0 --checkpoint.exclude-from-loading dataloader --lr-scheduler.total-steps 2
    --checkpoint.enable --checkpoint.interval 1 --checkpoint.no-last-save-model-only)
resume() { # FROM NAME RANKS FLAGS...
    local from=$1 name=$2 ranks=$3
    shift 3
    mkdir -p "$name/checkpoint"
    cp -r "$from/checkpoint/step-1" "$name/checkpoint/"
    go "$name" "$ranks" "${still[@]}" "$@"
    grep -q 'Training starts at step 2' "$name.log" || fail "$name did not go on"
}
moves=("${shape[@]}" --training.steps 1 --lr-scheduler.total-steps 2 --checkpoint.enable --checkpoint.no-last-save-model-only)
go from_one 1 "${moves[@]}"
go from_two 2 "${moves[@]}"
go from_tp3 3 "${moves[@]}" $tensor 3
for from in from_one from_two from_tp3; do
    resume $from ${from}_1 1
    resume $from ${from}_3 3
    resume $from ${from}_4 4 $tensor 2
    resume $from ${from}_tp3 3 $tensor 3
    for name in ${from}_3 ${from}_4 ${from}_tp3; do
        "$bin" checkpoint diff ${from}_1/checkpoint/step-2 $name/checkpoint/step-2 >diff || { head -n 5 diff; fail "$name: other bits than on one rank"; }
    done
    if "$bin" checkpoint diff $from/checkpoint/step-1 ${from}_1/checkpoint/step-2 >diff; then fail 'no moment changed'; fi
    ! grep -v '^optimizer\.\|tensors,' diff || fail "$from: weights changed"
done

# 5 steps of 2 ranks that have 2 rows of 16 each are 320 tokens, also where each is two ranks; rates are of a rank, and all ranks' are the whole.
column() { awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR > 1 { print $c }' "$1/metrics.csv"; }
seen=("${shape[@]}" --training.seq-len 16 --training.steps 5)
go seen_dp2 2 "${seen[@]}"
go seen_tp2 4 "${seen[@]}" $tensor 2
go seen_hsdp 4 "${seen[@]}" $tensor 2 --parallelism.data-parallel-replicate-degree 2
for name in seen_dp2 seen_tp2 seen_hsdp; do
    [ "$(column $name n_tokens_seen | tail -n 1)" = 320 ] || fail "$name: $(column $name n_tokens_seen | tr '\n' ' ')"
    ranks=4
    [ $name = seen_dp2 ] && ranks=2
    paste -d' ' <(column $name 'throughput(tps)') <(column $name 'time_metrics/end_to_end(s)') | awk -v ranks=$ranks '
        { n = $1 * $2 * ranks; if (n < 63.9 || n > 64.1) { print "rate", $1, "of", ranks, "ranks for", $2, "s"; bad = 1 } } END { exit bad }' ||
        fail "$name: rates of all ranks are not 64 tokens a step"
done

# Two ranks, 10 labels that count on one and 1 on the other: each label weighs the same, as in one batch, and in two micro-batches of one rank.
for i in 1 2 3 4; do echo '{"text": "abcdefghijk"}'; done >labels.jsonl
for i in 1 2; do echo '{"text": "xy"}' && echo '{"text": "lmnopqrstuv"}'; done >>labels.jsonl
few=("${shape[@]}" --training.seq-len 10 --training.steps 3 --dataloader.dataset-path "$dir/labels.jsonl" --dataloader.packing first-fit
    --dataloader.num-packing-bins 1 --training.global-batch-size 2 --debug.enable-structured-logging)
go few1 1 "${few[@]}" --dataloader.streams 2
go few2 2 "${few[@]}" --training.local-batch-size 1
same few1 few2 3
labels=$(grep -h local_valid_tokens few2/structured_logs/*rank_1* | sed -n 's/.*"value": *\([0-9]*\).*/\1/p' | tr '\n' ' ')
[ "$labels" = '1 10 1 ' ] || fail "labels of the second rank: $labels"
echo ok
