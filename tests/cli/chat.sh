# SPDX-License-Identifier: Apache-2.0
# labels: slow
# Fine-tuning on conversations and talking to the model: sft_debugmodel learns, logs its first sample, saves; `ctitan generate --chat` takes
# template and date of the run, or those that it is given.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "$*"; exit 1; }
says() { grep -qF -- "$2" "$1" || { cat "$1"; fail "'$2' is not said"; }; }
sft() {
    "$bin" train --module llama3 --config sft_debugmodel --training.local-batch-size 2 --training.seq-len 128 --metrics.log-freq 1 \
        --metrics.disable-color-printing --debug.seed 7 --checkpoint.enable --checkpoint.last-save-model-only "$@" 2>log || { cat log; fail "train"; }
}
loss() { sed -n "s/.*step: *$1  loss: *\([0-9.]*\).*/\1/p" log; }

sft --training.steps 12 --dump-folder out
says log '[ChatProcessor] First sample full:'
says log "Rosa leaves Copperhill at 6 o'clock"
says log 'dropped, longer than a row'
# By more than a nat: batches differ by less.
awk -v a="$(loss 1)" -v b="$(loss 12)" 'BEGIN { exit !(a != "" && b != "" && b < a - 1) }' || { cat log; fail "the loss does not fall"; }

say() { "$bin" generate --checkpoint out/checkpoint --chat --prompt "What is the opposite of 'hot'?" --max-new-tokens 12 --temperature 0 "$@"; }
say >answer
[ "$(wc -c <answer)" -gt 1 ] || fail "nothing is generated"
if grep -qF '[user]' answer; then fail "the question is printed"; fi
say >again
cmp answer again

# The template makes a difference: of the run where generate is told none.
printf '%s' '{{ strftime_now("%d") }}{% for m in messages %}<{{ m.content }}|{% endfor %}{% if add_generation_prompt %}<{% endif %}' >template
sft --training.steps 1 --dump-folder other --dataloader.chat-template "$dir/template" --dataloader.chat-date 2024-01-09
says log "09<Rosa leaves Copperhill at 6 o'clock"
talk() { "$bin" generate --checkpoint other/checkpoint --chat --prompt hot --max-new-tokens 1 --temperature 0 "$@"; }
talk >plain
talk --chat-template template --chat-date 2024-01-09 >same
cmp plain same
mv template moved
code=0
talk 2>err || code=$?
[ $code != 0 ] || fail "generate without the run's template"
says err 'the chat template of the run (--chat-template names another)'
talk --chat-template moved >same
cmp plain same
code=0
talk --chat-template moved --chat-date today 2>err || code=$?
[ $code = 2 ] || fail "a wrong date: exit $code"
says err "YYYY-MM-DD, but is 'today'"
