# SPDX-License-Identifier: Apache-2.0
# labels: slow
# `ctitan generate` as its users call it: prompts of all kinds, ends, seeds, conversations, number formats, Hugging Face folders, overrides; each
# mistake gives one clear error.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "$*"; exit 1; }
same() { [ "$1" = "$2" ] || fail "wanted: $2
found: $1"; }
train() {
    "$bin" train --module llama3 --config llama3_debugmodel --model-spec.n-layers 2 --training.local-batch-size 2 --training.seq-len 64 \
        --training.steps 3 --debug.seed 3 --metrics.disable-color-printing --checkpoint.enable "$@" 2>log || { cat log; fail "train"; }
}
train --dump-folder out --checkpoint.interval 3
gen() { "$bin" generate --checkpoint out/checkpoint "$@" 2>err || { cat err; fail "generate $*"; }; }
refused() { # refused CODE TEXT ARGUMENTS...: one line that has the text
    local code=0 wanted=$1 text=$2
    shift 2
    "$bin" generate "$@" >answer 2>err || code=$?
    [ "$code" = "$wanted" ] || { cat err; fail "generate $*: exit $code, wanted $wanted"; }
    grep -qF -- "$text" err || { cat err; fail "generate $*: '$text' is not said"; }
    [ "$(wc -l <err)" = 1 ] || { cat err; fail "generate $*: more than one line"; }
}

# What could be neither printed as JSON nor found, and what nothing would ask for.
refused 2 "--prompt: text in UTF-8 is wanted, byte 2 is 0xff" --checkpoint out/checkpoint --prompt $'a\xffb' --json-lines
refused 2 "--stop: text in UTF-8 is wanted, byte 1 is 0xc3" --checkpoint out/checkpoint --prompt a --stop $'\xc3'
refused 2 "--chat-template: no prompt is a conversation" --checkpoint out/checkpoint --prompt a --chat-template t
refused 2 "--chat-date: no prompt is a conversation" --checkpoint out/checkpoint --chat-date 2020-01-01
printf '{"prompt": "a", "messages": [{"role": "user", "content": "b"}]}\n' >two.jsonl
refused 1 "two.jsonl:1: 'prompt' and 'messages' are both there" --checkpoint out/checkpoint --prompts two.jsonl

# A seed gives the same text, another seed another one, at every setting of the draw.
gen --prompt 'The miller' --max-new-tokens 20 --seed 1 >a
gen --prompt 'The miller' --max-new-tokens 20 --seed 1 >b
cmp a b
gen --prompt 'The miller' --max-new-tokens 20 --seed 2 >b
if cmp -s a b; then fail "two seeds, one text"; fi
case $(cat a) in 'The miller'*) ;; *) fail "the prompt is not printed: $(cat a)" ;; esac
grep -qE '^read [0-9]+ tokens \([0-9]+ tokens/s\), wrote [0-9]+ \([0-9.]+ tokens/s\), ended by (eos|length)$' err || { cat err; fail "no counts"; }
# Without a seed the one that was taken is told, and gives the same again.
gen --prompt 'The miller' --max-new-tokens 20 >a
seed=$(sed -n 's/^--seed //p' err)
gen --prompt 'The miller' --max-new-tokens 20 --seed "$seed" >b
cmp a b
# Nothing but the likeliest is left by each of these.
gen --prompt 'The miller' --max-new-tokens 20 --temperature 0 >greedy
for only in '--top-k 1' '--top-p 0' '--min-p 1'; do
    # shellcheck disable=SC2086
    gen --prompt 'The miller' --max-new-tokens 20 --seed 5 $only >b
    cmp greedy b
done
gen --prompt 'The miller' --max-new-tokens 20 --temperature 0 --repetition-penalty 1.5 >b
if cmp -s greedy b; then fail "the penalty changes nothing"; fi
gen --prompt 'The miller' --max-new-tokens 20 --temperature 0 --no-echo >b
same "The miller$(cat b)" "$(cat greedy)"

# A stop text ends the answer before it, wherever it stands; what only begins like one is printed.
text=$(cat b)
middle=${text:6:5}
gen --prompt 'The miller' --max-new-tokens 20 --temperature 0 --no-echo --stop 'nowhere in it' --stop "$middle" >c
same "$(cat c)" "${text%%"$middle"*}"
grep -qF 'ended by stop' err || fail "the end is not told"
gen --prompt 'The miller' --max-new-tokens 20 --temperature 0 --no-echo --stop "${text: -3}~" >c
same "$(cat c)" "$text"
# A stop token, by id and by its text.
gen --prompt 'The miller' --max-new-tokens 20 --temperature 0 --json-lines >line
third=$(sed 's/.*"ids": \[[0-9]*, [0-9]*, \([0-9]*\).*/\1/' line)
gen --prompt 'The miller' --max-new-tokens 20 --temperature 0 --json-lines --stop-token "$third" >line
grep -qF '"end": "eos"' line || { cat line; fail "the stop token does not end it"; }
gen --prompt x --stop-token '<|pad|>' --max-new-tokens 2 >c

# Several prompts: each as if it were alone where nothing is drawn; files of lines, an empty one too, and of JSON lines.
gen --prompt one --prompt two --temperature 0 --max-new-tokens 5 >both
grep -qxF -- '--- 2 of 2 ---' both || fail "no line between prompts"
gen --prompt two --temperature 0 --max-new-tokens 5 >alone
same "$(tail -n 1 both)" "$(cat alone)"
printf 'one\n\ntwo\r\nlast without an end' >lines.txt
gen --prompts lines.txt --temperature 0 --max-new-tokens 5 --json-lines >a
[ "$(wc -l <a)" = 4 ] || fail "4 lines in, $(wc -l <a) out"
gen --prompts - --temperature 0 --max-new-tokens 5 --json-lines <lines.txt >b
cmp a b
printf '\357\273\277"one"\n{"prompt": ""}\n{"prompt": "two", "id": 7}\n"last without an end"\n' >lines.jsonl
gen --prompts lines.jsonl --temperature 0 --max-new-tokens 5 --json-lines >b
cmp a b

# Text comes as soon as it is whole: the last token is not waited for.
mkfifo pipe
"$bin" generate --checkpoint out/checkpoint --prompt 'The miller' --temperature 0 --max-new-tokens 100000 --ignore-eos >pipe 2>/dev/null &
writer=$!
head -c 40 pipe >beginning
kill "$writer" 2>/dev/null || true
wait "$writer" 2>/dev/null || true
[ "$(wc -c <beginning)" = 40 ] || fail "nothing is streamed"

# Conversations.
printf '%s' '{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}' >template
printf '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hot?"}]' >talk.json
gen --messages talk.json --chat-template template --temperature 0 --max-new-tokens 5 >a
gen --prompt '[system]Be brief.[user]Hot?[assistant]' --no-echo --temperature 0 --max-new-tokens 5 >b
cmp a b
printf '{"messages": [{"role": "user", "content": "Hot?"}]}\n' >talk.jsonl
gen --prompts talk.jsonl --chat-template template --temperature 0 --max-new-tokens 5 >a
gen --chat --prompt 'Hot?' --chat-template template --temperature 0 --max-new-tokens 5 >b
cmp a b

# Hugging Face folders: exported weights say what the checkpoint says; the tokenizer beside them is found.
train --dump-folder hf --checkpoint.interval 3 --checkpoint.last-save-in-hf --checkpoint.last-save-model-only
hf=hf/checkpoint/step-3
"$bin" generate --checkpoint hf/checkpoint --prompt x >b 2>err && fail "a folder without checkpoints"
grep -q "^passed over 'hf/checkpoint/step-3': .* takes this folder\$" err && grep -q "^ctitan generate: 'hf/checkpoint' holds no whole checkpoint" err ||
    { cat err; fail "what was passed over is to be told in lines of its own"; }
refused 1 "the tokenizer beside the weights (--hf-assets-path names another folder)" --checkpoint "$hf" --prompt x
cp "$(dirname "$bin")"/../share/ctitan/tokenizer/tokenizer*.json "$hf"
"$bin" generate --checkpoint "$hf" --prompt 'The miller' --max-new-tokens 20 --temperature 0 >b 2>err || { cat err; fail "generate from $hf"; }
cmp greedy b
"$bin" generate --checkpoint "$hf" --prompt 'The miller' --max-new-tokens 20 --temperature 0 --dtype bfloat16 >b 2>err || { cat err; fail "bfloat16"; }
[ "$(wc -c <b)" -gt 11 ] || fail "nothing in bfloat16"
refused 2 'has no steps' --checkpoint "$hf" --step 3 --prompt x
# EOS of generation_config.json.
id=$("$bin" generate --checkpoint "$hf" --prompt 'The miller' --max-new-tokens 2 --temperature 0 --json-lines 2>/dev/null | sed 's/.*"ids": \[[0-9]*, \([0-9]*\).*/\1/')
printf '{"eos_token_id": [99999999, %s]}' "$id" >"$hf/generation_config.json"
"$bin" generate --checkpoint "$hf" --prompt 'The miller' --temperature 0 --json-lines >line 2>err
grep -qF '"tokens": 1, "end": "eos"' line || { cat line; fail "EOS of generation_config.json is not taken"; }
"$bin" generate --checkpoint "$hf" --prompt 'The miller' --temperature 0 --json-lines --ignore-eos --max-new-tokens 3 >line 2>err
grep -qF '"tokens": 3, "end": "length"' line || { cat line; fail "--ignore-eos"; }
sed -i 's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 8/' "$hf/config.json"
"$bin" generate --checkpoint "$hf" --prompt 'x' --temperature 0 --json-lines --ignore-eos >line 2>err
grep -qF '"end": "context"' line || { cat line; fail "goes on past the context"; }
refused 2 'the prompt has' --checkpoint "$hf" --prompt 'A prompt of more than eight tokens, for which there is no room'

# The overrides of the run.
train --dump-folder other --checkpoint.interval 3 --override.imports npu_compat.npu_attention
"$bin" generate --checkpoint other/checkpoint --prompt 'The miller' --max-new-tokens 20 --temperature 0 >a 2>err
grep -qF "Applied 2 override(s) of the run's" err || { cat err; fail "no word of the overrides"; }
"$bin" generate --checkpoint other/checkpoint --prompt 'The miller' --max-new-tokens 20 --temperature 0 --no-run-overrides >b 2>err
grep -qF "without the overrides of the run" err || { cat err; fail "no word of the overrides"; }

# Mistakes.
refused 2 '--checkpoint DIR is wanted' --prompt x
refused 1 "'nowhere' does not exist" --checkpoint nowhere --prompt x
refused 2 "--stop: an empty text" --checkpoint out/checkpoint --prompt x --stop ''
refused 2 "'<|none|>' is no token" --checkpoint out/checkpoint --prompt x --stop-token '<|none|>'
refused 1 "'none.txt'" --checkpoint out/checkpoint --prompts none.txt
: >empty.txt
refused 2 "'empty.txt' is empty" --checkpoint out/checkpoint --prompts empty.txt
printf '"one"\n\n"two"\n' >hole.jsonl
refused 1 'hole.jsonl:2' --checkpoint out/checkpoint --prompts hole.jsonl
refused 1 "a list of messages" --checkpoint out/checkpoint --messages <(printf '{"role": "user"}')
refused 2 'a question is wanted' --checkpoint out/checkpoint --chat
refused 2 'cannot both be standard input' --checkpoint out/checkpoint --prompts - --messages -
mkdir wide
cp -r out/checkpoint wide/
printf '{"added_tokens_decoder": {"5000": {"content": "<|far|>", "special": true}}}' >wide/more.json
mkdir far
cp "$(dirname "$bin")"/../share/ctitan/tokenizer/tokenizer.json far/
cp wide/more.json far/tokenizer_config.json
refused 2 'the model'"'"'s vocabulary 2048 rows' --checkpoint out/checkpoint --prompt x --hf-assets-path far
echo ok
