# SPDX-License-Identifier: Apache-2.0
# labels: slow
# `ctitan data inspect|index|tokenize` on the user's files: what is printed, what is kept, and that training takes the same steps from
# text, compressed text and tokens.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export CTITAN_CACHE_DIR=$dir/cache
fail() { echo "$*"; exit 1; }
says() { grep -q -- "$2" "$1" || { cat "$1"; fail "'$2' is not said"; }; }

for i in $(seq 1 400); do
    echo "{\"text\": \"Letter $i. The miller of valley $((i % 7)) sends $((i * 3)) sacks of rye to the village at the lake.\"}"
done >docs.jsonl
gzip -k docs.jsonl
mkdir gz
mv docs.jsonl.gz gz

"$bin" data inspect docs.jsonl >out
says out '400 documents in 1 file'
says out 'bad documents: 0'
says out 'entropy of the unigrams'
"$bin" data inspect --dataloader.dataset-path=gz >gz.out
says gz.out 'JSON lines, gzip'
[ "$(grep 'tokens to predict' out)" = "$(grep 'tokens to predict' gz.out)" ] || fail "gzip holds other tokens"

# bad documents by kind, with file and line, inside compressed files too
{ head -n 3 docs.jsonl; echo '{"no": 1}'; echo; echo '{"text": "cut'; printf '{"text": ""}'; } >bad.jsonl
gzip -kc bad.jsonl >bad.jsonl.gz
head -c 150 bad.jsonl.gz >cut.jsonl.gz
for file in bad.jsonl bad.jsonl.gz; do
    "$bin" data inspect $file >out
    says out 'bad documents: 2: cut off at the end of the line 1, text field missing 1'
    says out "'$file' line 4: text field missing"
    says out "'$file' line 6: cut off at the end of the line"
    says out 'empty documents: 1'
done
"$bin" data inspect cut.jsonl.gz >out
says out 'damaged: gzip data is cut off'
says out 'compressed data damaged 1'

# conversations: only what assistants say is counted; those that cannot be used are named
cat >chats.jsonl <<'E2'
{"messages": [{"role": "user", "content": "Hot?"}, {"role": "assistant", "content": "Cold."}, {"role": "user", "content": "Old?"}, {"role": "assistant", "content": "New."}]}
{"question": "Day?", "answer": "Night."}
{"q": "Left?", "a": "Right."}
{"messages": [{"role": "user", "content": "Alone?"}]}
E2
"$bin" data inspect chats.jsonl --format chat >out
says out 'bad documents: 2: cannot be used 2'
says out "'chats.jsonl' line 3: cannot be used: .*'question' is missing"
says out "line 4: cannot be used: no message is of role 'assistant'"
"$bin" data inspect chats.jsonl --format chat --dataloader.question-field q --dataloader.answer-field a --training.seq-len 24 >field.out
says field.out "line 2: cannot be used: .*'q' is missing"
says field.out 'conversations of more than 24 tokens, which give nothing: 1'
says field.out 'tokens to predict, what assistants say: [0-9]'
code=0
"$bin" data tokenize chats.jsonl --format chat --output chats.ctok 2>err || code=$?
[ $code = 2 ] && [ ! -e chats.ctok ] || fail "data tokenize of conversations: exit $code"
says err 'a file of tokens holds no labels'

# indexes: built and kept, then found
for i in $(seq 1 60); do cat docs.jsonl; done | gzip -1 >gz/large.jsonl.gz
yes '{"text": "as large as what is kept, incompressible or not"}' | head -n 400000 >large.jsonl
"$bin" data index large.jsonl >out
says out 'index: built, kept'
"$bin" data index large.jsonl >out
says out 'index: was kept'
says out 'indexes: 0 built, 1 kept'
for file in cache/index/*; do echo damage >>"$file"; done
"$bin" data index large.jsonl >out 2>err
says out 'index: built, kept'
says err 'it is built again'
CTITAN_CACHE_DIR=$dir/docs.jsonl "$bin" data index large.jsonl >out 2>err
says err 'is not kept'
says out '400,000 documents'

# tokens: the same bytes with any number of threads, and the same training
"$bin" data tokenize docs.jsonl --output one.ctok >out
OMP_NUM_THREADS=3 "$bin" data tokenize docs.jsonl --output three.ctok >out
cmp one.ctok three.ctok
"$bin" data tokenize docs.jsonl --output one.ctok 2>err && fail "replaced without a word"
says err 'is there already'
"$bin" data tokenize bad.jsonl --output bad.ctok 2>err && fail "bad documents tokenized"
says err "'bad.jsonl' line 4"
[ ! -e bad.ctok ]
"$bin" data tokenize bad.jsonl --output bad.ctok --dataloader.bad-records skip >out
says out 'bad documents, now empty: 2'
"$bin" data tokenize docs.jsonl --output set --shard-tokens 3000 >out
"$bin" data tokenize docs.jsonl --output set --shard-tokens 3000 >out
says out 'of them were there'
rm -f gz/large.jsonl.gz
for data in docs.jsonl gz one.ctok set; do
    "$bin" train --module llama3 --config llama3_debugmodel --dataloader.dataset-path $data --training.steps 2 \
        --training.local-batch-size 2 --training.seq-len 64 --debug.seed 1 --metrics.disable-color-printing --dump-folder run 2>log || { cat log; fail "training on $data"; }
    grep -o "step: *[0-9]* *loss: *[0-9.]* *grad_norm: *[0-9.]*" log >"steps.$(basename $data)"
    [ "$(wc -l <"steps.$(basename $data)")" = 2 ] || { cat log; fail "no steps on $data"; }
    cmp steps.docs.jsonl "steps.$(basename $data)"
done
for wrong in 'data' 'data index nothing' 'data tokenize docs.jsonl' 'data inspect --no-such'; do
    "$bin" $wrong >out 2>&1 && fail "'$wrong' went well"
done
exit 0
