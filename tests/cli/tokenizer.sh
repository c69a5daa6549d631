# SPDX-License-Identifier: Apache-2.0
# labels: slow
# ctitan tokenizer: ids and back in every form, what info tells of each kind of folder, messages, training on the files that training reads.
set -eu
bin=$1/bin/ctitan
here=$(cd "$(dirname "$0")/../parity/tokenizer" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "$1"; exit 1; }
has() { grep -qF -- "$2" "$1" || { cat "$1"; fail "no '$2' in it"; }; }

# One text, standard input and lines of JSON give the same ids, and the text comes back.
text="the cat's 12345 naïve  東京"
ids=$("$bin" tokenizer encode "$here/llama3" "$text")
[ "$ids" = "$(printf '%s' "$text" | "$bin" tokenizer encode "$here/llama3" -)" ]
[ "$("$bin" tokenizer decode "$here/llama3" $ids)" = "$text" ]
printf '"%s"\n\n"a\\u0000b"\n' "$text" | "$bin" tokenizer encode "$here/llama3" --json-lines >lines
[ "$(head -n 1 lines)" = "[$(echo $ids | sed 's/ /,/g')]" ] || [ "$(head -n 1 lines | tr -d ' ')" = "[$(echo $ids | sed 's/ /,/g')]" ] || { cat lines; fail 'other ids in lines'; }
# Line n of the output is that of line n of the input, an empty one too; nothing for the end of the file.
[ "$(wc -l <lines)" = 3 ] && [ -z "$(sed -n 2p lines)" ] || { cat lines; fail 'an empty line'; }
"$bin" tokenizer decode "$here/llama3" --json-lines <lines >back
[ "$(wc -l <back)" = 3 ] && [ -z "$(sed -n 2p back)" ] || { cat back; fail 'an empty line'; }
[ "$(printf '"a"' | "$bin" tokenizer encode "$here/llama3" --json-lines | wc -l)" = 1 ]
[ "$(head -n 1 back)" = "\"$text\"" ]
# The decoder of WordPiece looks at what stands before: a whole list is decoded, not id by id.
[ "$("$bin" tokenizer decode "$here/bert" $("$bin" tokenizer encode "$here/bert" 'the cat and the dog'))" = 'the cat and the dog' ]
# Special text, BOS and EOS, the file's own template.
[ "$("$bin" tokenizer encode "$here/llama3" '<|pad|>' --special-text match)" = 2 ]
[ "$("$bin" tokenizer encode "$here/llama3" '<|pad|>')" != 2 ]
[ "$("$bin" tokenizer encode "$here/llama3" '' --bos --eos)" = '0 1' ]
[ "$("$bin" tokenizer encode "$here/llama3" '' --template --bos --eos)" = '0 1' ]

# info: each kind of folder.
"$bin" tokenizer info "$here/llama2" >info
has info 'model: BPE'; has info 'normalizer: Prepend Replace'; has info 'decoder: Replace ByteFallback Fuse Strip'; has info 'eos: 2 </s>'
has info 'config.json                   missing: needed to load'
"$bin" tokenizer info "$here/t5" >info
has info 'model: Unigram'; has info 'normalizer: Precompiled Replace'
"$bin" tokenizer info "$here/tiktoken" >info
has info "Llama 3's split pattern and special tokens"; has info 'special tokens: 256'; has info '243 more'
mkdir words chat
printf 'the\n\ncat\n[UNK]\n' >words/vocab.txt
"$bin" tokenizer info words >info 2>warn
has info 'Loading WordLevel tokenizer from vocab.txt'; has info 'ids: 4, tokens: 3'; has warn 'a whole text is one word'
[ "$("$bin" tokenizer encode words cat)" = 2 ] && [ "$("$bin" tokenizer encode words 'the cat')" = 3 ]
cp "$here/gpt2/tokenizer.json" chat; echo '{"chat_template": "{{ messages }}"}' >chat/tokenizer_config.json
echo '{"bos_token": "<|begin_of_text|>", "eos_token": {"content": "<|end_of_text|>"}}' >chat/special_tokens_map.json
"$bin" tokenizer info chat >info
has info 'chat template: there'; has info 'bos: 0 <|begin_of_text|>'; has info 'eos: 1 <|end_of_text|>'

# Refused by name, with the way out.
refused() { # words, then the command
    want=$1; shift
    "$@" >out 2>err && fail "accepted: $*"
    has err "$want"
}
mkdir sp junk empty merges
printf '\n\016\n\005<unk>\025\000\000\000\000\030\002' >sp/tokenizer.model
refused 'a SentencePiece model (protobuf), which is not implemented' "$bin" tokenizer info sp
refused 'save_pretrained' "$bin" tokenizer info sp
echo 'what is this' >junk/tokenizer.model
refused 'neither a tiktoken file' "$bin" tokenizer info junk
refused "no tokenizer in 'empty'" "$bin" tokenizer info empty
echo 'a b' >merges/merges.txt
refused 'there is merges.txt, but no vocabulary' "$bin" tokenizer info merges
refused 'does not exist' "$bin" tokenizer info nowhere
refused 'is no token id' "$bin" tokenizer decode "$here/gpt2" 1 x
refused 'id 9999 has no token' "$bin" tokenizer decode "$here/gpt2" 9999
mkdir bare; echo the >bare/vocab.txt
refused 'U+6771' "$bin" tokenizer encode bare '東'
[ -z "$("$bin" tokenizer encode bare '東' --on-unknown drop 2>err)" ] && has err '1 characters without a token were left out'
echo '{' | refused 'standard input, line 1' "$bin" tokenizer encode "$here/gpt2" --json-lines
echo '[-1]' | refused 'is no token id' "$bin" tokenizer decode "$here/gpt2" --json-lines
refused 'there is no sub-command' "$bin" tokenizer inof "$here/gpt2"

# Training reads what `ctitan train` reads, by the same rules.
mkdir data mixed
for i in $(seq 1 60); do echo "{\"text\": \"Parcel $i goes to house $((i % 9)) behind the mill, weight $((i * 7)).\"}"; done | gzip >data/a.jsonl.gz
"$bin" tokenizer train data --vocab-size 300 --output trained >out
has out '300 tokens from 60 documents'
gzip -dc data/a.jsonl.gz >plain.jsonl
"$bin" tokenizer train plain.jsonl --vocab-size 300 --output trained2 >out
cmp trained/tokenizer.json trained2/tokenizer.json
cp plain.jsonl mixed/; echo 'some text' >mixed/b.txt
refused 'more than one kind of file' "$bin" tokenizer train mixed --vocab-size 300 --output trained3
[ ! -e trained3 ]

# A tokenizer larger than the model's vocabulary is refused before step 1, with both numbers.
"$bin" tokenizer train "$here/../../../share/ctitan/demo.jsonl" --vocab-size 2100 --output large >out
refused "the tokenizer has 2100 ids, the model's vocabulary 2048 rows" "$bin" train --module llama3 --config llama3_debugmodel --hf-assets-path large --training.steps 1
refused '--vocab-size 2048' "$bin" train --module llama3 --config llama3_debugmodel --hf-assets-path large --training.steps 1
grep -q 'step: *1' err && fail 'a step was made' || true
