# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# Tied embeddings stay one tensor: counted once, one optimizer state, the same losses on one rank and over two shards, in checkpoints and in
# Hugging Face's layout, which holds no head and is read back to the same weights.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "$*"; exit 1; }
common=(--module llama3 --config llama3_debugmodel --training.steps 5 --training.seq-len 64 --metrics.disable-color-printing --debug.seed 3
        --training.mixed-precision-param float32 --model-spec.n-layers 2 --model-spec.dim 64 --model-spec.n-heads 4 --model-spec.n-kv-heads 2
        --model-spec.ffn-hidden 128 --model-spec.tied-embeddings --dataloader.streams 2)
hf=(--checkpoint.enable --checkpoint.last-save-model-only --checkpoint.last-save-in-hf)
losses() { grep -oE 'step: +[0-9]+ +loss: +[0-9.]+ +grad_norm: +[0-9.]+' "$1" | sed -E 's/[a-z_]+://g'; }
names() { head -c 4000 "$1" | tr -c '[:print:]' '\n' | grep -oE '"[a-z_0-9.]*weight"' | sort -u; }

"$bin" train "${common[@]}" --training.local-batch-size 2 "${hf[@]}" --dump-folder one 2>one.err || { cat one.err; fail "one rank"; }
"$bin" run --nproc_per_node=2 --rdzv_endpoint=localhost:0 --local-ranks-filter 0 --tee 3 -m torchtitan.train "${common[@]}" \
    --training.local-batch-size 1 "${hf[@]}" --dump-folder two >two.err 2>&1 || { cat two.err; fail "two ranks"; }
# 2048 x 64 once, two blocks of 36,864 weights and two norms, the last norm.
grep -q 'size: 205,120 total parameters' one.err && grep -q '20 params' one.err || { cat one.err; fail "counted otherwise"; }
losses one.err >one.losses
losses two.err >two.losses
[ "$(wc -l <one.losses)" = 5 ]
# Sums in another order: 5 printed decimals, up to 2 in the last.
paste one.losses two.losses | awk '{ d = $2 - $5; if (d < 0) d = -d; e = $3 - $6; if (e < 0) e = -e
    if ($1 != $4 || d > 0.00002 || e > 0.0002) { print "step", $1, "loss", $2, "and", $5, "norm", $3, "and", $6; bad = 1 } } END { exit bad }'

# No head in the export, and none in its index where there is one; config.json says that it is tied.
for run in one two; do
    out=$run/checkpoint/step-5
    names $out/*.safetensors >$run.names
    grep -q '"model.embed_tokens.weight"' $run.names || { cat $run.names; fail "$run: no embedding"; }
    ! grep -rqa 'lm_head' $out || fail "$run: a head that is none"
    grep -qE '"tie_word_embeddings": *true' $out/config.json || fail "$run: config.json"
done
# Read back: step 1 begins from the weights of step 5, on one rank from what two wrote and the other way.
again=(--training.steps 1 --optimizer.lr 0 --optimizer.weight-decay 0 --checkpoint.initial-load-in-hf)
"$bin" train "${common[@]}" --training.local-batch-size 2 "${again[@]}" --checkpoint.initial-load-path "$dir/two/checkpoint/step-5" \
    "${hf[@]}" --dump-folder back 2>back.err || { cat back.err; fail "not read back"; }
cmp two/checkpoint/step-5/config.json back/checkpoint/step-1/config.json
cat two/checkpoint/step-5/*.safetensors | cksum >a
cat back/checkpoint/step-1/*.safetensors | cksum >b
cmp a b || fail "another weight came back"
# An untied model does not take it for its own: the head is missing.
code=0
"$bin" train "${common[@]}" --model-spec.no-tied-embeddings --training.local-batch-size 2 "${again[@]}" \
    --checkpoint.initial-load-path "$dir/two/checkpoint/step-5" --dump-folder no 2>no.err || code=$?
[ $code != 0 ] && grep -q 'tie_word_embeddings\|lm_head' no.err || { cat no.err; fail "an untied model read it: $code"; }
