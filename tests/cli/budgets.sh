#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# labels: fast
# Budgets in tokens and in epochs beside steps: rounded up to whole steps, over the end of an epoch, with the schedule laid over them; what a resumed
# run has left, in steps of its own size; two that contradict are refused.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*" >&2; exit 1; }
for i in 1 2 3 4 5 6 7 8 9 10; do echo "{\"text\": \"document number $i tells of the number $i and of nothing else, again and again $i\"}"; done >data.jsonl
common=(--module llama3 --config llama3_debugmodel --training.seq-len 16 --training.local-batch-size 2 --training.mixed-precision-param float32 --model-spec.n-layers 1
        --model-spec.dim 32 --model-spec.n-heads 2 --model-spec.n-kv-heads 1 --model-spec.ffn-hidden 48 --debug.seed 7 --metrics.disable-color-printing
        --metrics.log-freq 1 --dataloader.dataset-path data.jsonl --debug.log-batch-hash --checkpoint.enable --checkpoint.no-last-save-model-only)
train() { # NAME ARGS...
    local name=$1
    shift
    "$bin" train "${common[@]}" --dump-folder "$name" "$@" >>"$name.log" 2>&1 || { tail -n 3 "$name.log"; fail "$name"; }
}
steps() { grep -c ' step: ' "$1.log"; }
hashes() { sed -n 's/.*Batch of step \([0-9]*\): tokens \(.*\)/\1 \2/p' "$1.log"; }
rates() { awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ "^lr/") c = i } NR > 1 { print $1, $c }' "$1/metrics.csv"; }

# The tokens of an epoch are those that the documents give to be predicted.
tokens=$("$bin" data inspect data.jsonl | sed -n 's/.*tokens to predict: //p' | tr -d ,)
[ -n "$tokens" ] || fail 'data inspect tells no tokens'

# 2.5 epochs: rounded up to steps of 32 tokens; the same as that many steps, schedule and all; and as a budget of that many tokens.
want=$(((tokens * 5 / 2 + tokens * 5 % 2 + 31) / 32))
train epochs --training.epochs 2.5
grep -q "An epoch has $(printf "%'d" "$tokens") tokens\|An epoch has $tokens tokens" epochs.log || { grep 'An epoch' epochs.log; fail "wanted $tokens"; }
[ "$(steps epochs)" = $want ] || fail "$(steps epochs) steps of 2.5 epochs of $tokens tokens, wanted $want"
train steps --training.steps $want
train tokens --training.tokens $((want * 32 - 31))
for name in epochs tokens; do
    "$bin" checkpoint diff "steps/checkpoint/step-$want" "$name/checkpoint/step-$want" >diff || { tail -n 2 diff; fail "$name: another run than the same number of steps"; }
    [ "$(rates $name)" = "$(rates steps)" ] && [ -n "$(rates $name)" ] || fail "$name: rates"
    grep -q "Training budget: .* $want steps of 32" $name.log || fail "$name: the log does not tell the budget"
done

# Interrupted in the second epoch: the same documents, and the same end.
half=$((tokens / 32 + 2))
train parts --training.epochs 2.5 --training.steps $want --checkpoint.interval $half
rm -rf parts/checkpoint/step-"$want"
hashes parts >whole
: >parts.log
train parts --training.epochs 2.5
[ "$(hashes parts)" = "$(tail -n $((want - want / half * half)) whole)" ] || fail 'documents after a resume in a later epoch'

# Other rows after a resume: what is left of the tokens, in larger steps.
train larger --training.tokens 320 --training.steps 10 --checkpoint.interval 4
rm -rf larger/checkpoint/step-10 larger/checkpoint/step-8
: >larger.log
train larger --training.tokens 320 --training.global-batch-size 4
[ "$(steps larger)" = 3 ] && grep -q 'step:  7 ' larger.log || { grep 'step:' larger.log; fail '192 tokens are three steps of 64'; }
: >larger.log
train larger --training.tokens 320 --training.global-batch-size 4
grep -q 'nothing is left to do' larger.log || fail 'a budget that is used up'

refused() { # PATTERN ARGS...
    local pattern=$1 code=0
    shift
    "$bin" train "${common[@]}" --dump-folder refused "$@" >out 2>&1 || code=$?
    [ $code = 2 ] && grep -qE -- "$pattern" out || { tail -n 3 out; fail "exit $code, wanted 2 and $pattern"; }
    if grep -q 'Training starts' out; then fail "trained: $*"; fi
}
refused '--training.steps 3 and --training.tokens contradict: 320 tokens, 10 steps of 32' --training.steps 3 --training.tokens 320
refused '--training.tokens 32 and --training.epochs 2 contradict' --training.tokens 32 --training.epochs 2
refused "training.tokens: '0'" --training.tokens 0
refused "training.epochs: '0'" --training.epochs 0
refused 'no second epoch' --training.epochs 2 --dataloader.no-infinite
refused 'first-fit, give --training.tokens' --training.epochs 1 --dataloader.packing first-fit
"$bin" plan --module llama3 --config llama3_debugmodel --training.tokens 1000000 >out
grep -q 'the run: 1,000,000 tokens, 62 steps of 16,384' out || { sed -n 1,5p out; fail 'the plan does not tell the budget'; }
"$bin" plan --module llama3 --config llama3_debugmodel --training.epochs 3 >out
grep -q 'the run: 3 epochs, whose tokens are counted when training starts' out || fail 'the plan of epochs'
echo "budgets: steps, tokens and epochs are one"
