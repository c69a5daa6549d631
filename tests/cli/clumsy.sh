# SPDX-License-Identifier: Apache-2.0
# labels: fast
# What hands do wrong: results that go nowhere, a data set written over by its own tokens, words behind a sub-command, links to nothing.
set -eu
bin=$1/bin/ctitan
share=$(cd "$(dirname "$0")/../../share/ctitan" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export CTITAN_CACHE_DIR=$dir/cache
fail() { echo "FAILED: $*"; cat out err 2>/dev/null; exit 1; }
refused() { # CODE WORDS COMMAND...
    local code=$1 words=$2 rc=0
    shift 2
    "$bin" "$@" >out 2>err || rc=$?
    [ "$rc" = "$code" ] || fail "exit code $rc, wanted $code: $*"
    grep -qF -- "$words" err || fail "no '$words': $*"
}
printf '{"text":"a"}\n' >docs.jsonl

# A full disk behind standard output is an error of every command.
if [ -w /dev/full ]; then
    for words in "--help" "--version" "tokenizer encode $share/tokenizer hi" "tokenizer info $share/tokenizer" "data inspect docs.jsonl" \
                 "data preview --dataset-path docs.jsonl" "checkpoint --help" "overrides --help"; do
        rc=0
        # shellcheck disable=SC2086
        "$bin" $words >/dev/full 2>err || rc=$?
        [ $rc = 1 ] && grep -q 'standard output cannot be written' err || fail "exit code $rc: $words"
    done
fi

# Tokens do not replace the files that they are made of; what a killed call has left beside its file goes.
"$bin" data tokenize docs.jsonl --output set >out
cp set/tokens-00000.ctok before
refused 2 "'set' holds the data set itself" data tokenize set --output set --replace
refused 2 "'./set/.' holds the data set itself" data tokenize set/tokens-00000.ctok --output ./set/. --replace
refused 2 "'.' holds the data set itself" data tokenize docs.jsonl --output .
cmp set/tokens-00000.ctok before || fail 'the data set was written over'
true & gone=$!
wait $gone
: >"one.ctok.tmp.$gone"
: >"one.ctok.tmp.$$"
"$bin" data tokenize docs.jsonl --output one.ctok >out
[ ! -e "one.ctok.tmp.$gone" ] && [ -e "one.ctok.tmp.$$" ] || fail 'what a killed call left is still there, or what a living one writes is gone'

# Words
[ "$("$bin" tokenizer encode "$share/tokenizer" -- --eos)" = "$(printf %s --eos | "$bin" tokenizer encode "$share/tokenizer" -)" ] || fail "no text behind --"
refused 2 'nearest is --vocab-size' tokenizer train docs.jsonl --vocab_sise 300
refused 2 '--vocab-size: is an option of train, not of encode' tokenizer encode "$share/tokenizer" hi --vocab-size 300
refused 2 '--output: is an option of tokenize, not of inspect' data inspect docs.jsonl --output set
refused 2 "wanted bash or zsh, found 'fish'" completion fish
refused 2 'wanted bash or zsh, found nothing' completion
"$bin" checkpoint show --help | grep -q '^usage: ctitan checkpoint show' || fail 'no help behind a sub-command'

# What is not there, and what is something else.
ln -s nothing link.jsonl
refused 1 "'link.jsonl' is a symbolic link to something that does not exist" data inspect link.jsonl
refused 1 "'nowhere' does not exist" checkpoint show nowhere
refused 1 "'nowhere' does not exist" generate --checkpoint nowhere --prompt hi
mkdir export
: >export/model.safetensors
refused 1 "'export' holds no whole checkpoint, but weights in Hugging Face's layout" checkpoint show export

# All that is wrong is named, and nothing that is right.
train="train --module llama3 --config llama3_debugmodel --training.seq-len 32 --training.local-batch-size 2 --dump-folder run"
# shellcheck disable=SC2086
refused 2 "('docs.jsonl:-1', 'set:nan')" $train --dataloader.sources docs.jsonl:-1 set:nan
grep -q validator err && fail 'settings of the validator are blamed'
# shellcheck disable=SC2086
refused 1 "begins at 'docs.jsonl' line 1 has 1 documents, fewer than the 2 streams" $train --dataloader.sources "$share/demo.jsonl" docs.jsonl --dataloader.streams 2
