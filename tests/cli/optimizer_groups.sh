# SPDX-License-Identifier: Apache-2.0
# labels: fast
# Weight decay takes the parameters of the groups that have it and no others, each by the same share; the log tells each group's number of
# parameters. A norm to which gradients are cut holds the weights still, and the norm that is logged is that before the cut. Rates and places of a
# start: after a resume, from initial weights, from a step that is not there.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "$*"; exit 1; }
cat >groups.yaml <<'X'
base: llama3_debugmodel
optimizer:
  param_groups:
    - {pattern: norm, optimizer_kwargs: {lr: 0.1, weight_decay: 0.0}}
    - {pattern: "tok_embeddings|lm_head", optimizer_kwargs: {lr: 0.1, weight_decay: 0.25}}
    - {pattern: ".*", optimizer_kwargs: {lr: 0.1, weight_decay: 0.5}}
X
train() { # NAME CONFIG ARGS...
    local name=$1 config=$2
    shift 2
    "$bin" train --module llama3 --config "$config" --training.seq-len 16 --training.local-batch-size 1 --training.mixed-precision-param float32 \
        --model-spec.n-layers 2 --model-spec.dim 32 --model-spec.n-heads 2 --model-spec.n-kv-heads 1 --model-spec.ffn-hidden 48 --debug.seed 1 \
        --metrics.disable-color-printing --metrics.log-freq 1 --lr-scheduler.warmup-steps 0 --lr-scheduler.decay-ratio 0 --checkpoint.enable \
        --checkpoint.no-last-save-model-only --dump-folder "$name" "$@" 2>$name.log || { tail -n 3 $name.log; fail "$name"; }
}
diff_of() { "$bin" checkpoint diff "$1" "$2" >diff || true; grep -v '^optimizer\.' diff | sed -nE 's/^([a-z_0-9.]+): .* norm of the difference ([0-9.e+-]+) of the first$/\1 \2/p'; }

# Gradients cut to exactly 0: what changes is what decays.
train still llama3_debugmodel --training.steps 1 --training.max-norm 1e-60 --optimizer.lr 0
train decay groups.yaml --training.steps 1 --training.max-norm 1e-60
diff_of still/checkpoint/step-1 decay/checkpoint/step-1 | awk '
    { want = $1 ~ /norm/ ? 0 : $1 ~ /tok_embeddings|lm_head/ ? 0.025 : 0.05; off = $2 - want; n++
      if (want == 0 || off > 1e-6 || off < -1e-6) { print $1, "changed by", $2, "wanted", want; bad = 1 } }
    END { if (n != 16) { print n, "tensors changed, wanted 16"; bad = 1 } exit bad }' || fail 'decay'
for line in "5 params \\[norm\\] .*'weight_decay': 0.0}" "2 params \\[tok_embeddings|lm_head\\] .*'weight_decay': 0.25}" "14 params \\[\\.\\*\\] .*'weight_decay': 0.5}"; do
    grep -q "Optimizer AdamW: $line" decay.log || { grep 'Optimizer AdamW' decay.log; fail "no line $line"; }
done

# Cut to 1e-9 against Adam's 1e-8: three steps move the weights by a few percent of the rate at most; the norm in the log is the whole one.
train cut llama3_debugmodel --training.steps 3 --training.max-norm 1e-9 --optimizer.lr 1e-3 --optimizer.weight-decay 0
train uncut llama3_debugmodel --training.steps 3 --training.max-norm 1e9 --optimizer.lr 1e-3 --optimizer.weight-decay 0
norm() { sed -n 's/.*step:  1 .*grad_norm: *\([0-9.]*\) .*/\1/p' "$1.log"; }
[ -n "$(norm cut)" ] && [ "$(norm cut)" = "$(norm uncut)" ] || fail "norms before the cut: $(norm cut), $(norm uncut)"
"$bin" checkpoint diff still/checkpoint/step-1 cut/checkpoint/step-3 >diff || true
grep -v '^optimizer\.' diff | sed -nE 's/^([a-z_0-9.]+): .* by at most ([0-9.e+-]+);.*/\1 \2/p' |
    awk '{ n++; if ($2 > 3 * 1e-3 * 0.1) { print $1, "moved by", $2; bad = 1 } } END { exit bad || n == 0 }' || fail 'weights moved though gradients are cut'
"$bin" checkpoint diff still/checkpoint/step-1 uncut/checkpoint/step-3 >diff || true
grep -v '^optimizer\.' diff | sed -nE 's/^([a-z_0-9.]+): .* by at most ([0-9.e+-]+);.*/\1 \2/p' | awk '$2 > 1e-3 { n++ } END { exit n < 10 }' || fail 'nothing moves'

# The rate of a step is that of the unbroken run after a resume, for each decay; with another peak it is that peak's, at the same place.
rates() { awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ "^lr/") c = i } NR > 1 { print $1, $c }' "$1/metrics.csv"; }
for decay in "cosine None" "sqrt 0.3"; do
    # shellcheck disable=SC2086
    set -- $decay
    rm -rf whole part
    flags=(--lr-scheduler.warmup-steps 3 --lr-scheduler.decay-type $1 --lr-scheduler.decay-ratio $2 --lr-scheduler.total-steps 12 --checkpoint.interval 5)
    train whole llama3_debugmodel --training.steps 12 "${flags[@]}"
    train part llama3_debugmodel --training.steps 5 "${flags[@]}"
    cp -r part other
    train part llama3_debugmodel --training.steps 12 "${flags[@]}"
    [ "$(rates whole)" = "$(rates part)" ] && [ "$(rates whole | wc -l)" = 12 ] || { rates part; fail "rates after a resume: $decay"; }
    train other llama3_debugmodel --training.steps 12 "${flags[@]}" --optimizer.lr 0.0016
    paste -d' ' <(rates whole) <(rates other) | awk '{ want = $2 * ($1 > 5 ? 2 : 1); off = $4 / want - 1; if (off > 1e-12 || off < -1e-12) { print; bad = 1 } } END { exit bad }' ||
        fail "rates with another peak: $decay"
    rm -rf other
done

# Where a run begins: a step that is not there is refused with what there is; an empty folder or none takes the initial weights that are given.
if (train part llama3_debugmodel --training.steps 13 --checkpoint.load-step 50) >refused; then fail 'began somewhere though step 50 is not there'; fi
grep -q "has no checkpoint of step 50; there are: .*12" part.log || { tail -n 2 part.log; fail 'step 50'; }
mkdir -p empty/checkpoint
for name in empty absent; do
    train $name llama3_debugmodel --training.steps 1 --optimizer.lr 0 --checkpoint.initial-load-path "$dir/uncut/checkpoint/step-3"
    grep -q 'Loading the checkpoint from .*uncut/checkpoint/step-3' $name.log || fail "$name: the log does not tell where it began"
    [ -z "$(diff_of uncut/checkpoint/step-3 $name/checkpoint/step-1)" ] || fail "$name: other weights than those given"
done
