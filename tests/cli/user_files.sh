# SPDX-License-Identifier: Apache-2.0
# labels: slow
# The user's own files, nothing shipped in the path: vocabulary, training from JSONL, text and a folder, resume, text from the checkpoint.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir texts
for i in $(seq 1 40); do
    echo "{\"text\": \"Letter $i. The miller of valley $((i % 7)) sends $((i * 3)) sacks of rye to the village at the lake, and asks for $((i % 5)) lamps.\"}"
done >docs.jsonl
sed -E 's/.*"text": "(.*)"\}/\1/' docs.jsonl >texts/a.txt
head -n 10 texts/a.txt >texts/b.txt

"$bin" tokenizer train docs.jsonl --vocab-size 360 --output vocab
[ -s vocab/tokenizer.json ] && [ -s vocab/tokenizer_config.json ]
for data in docs.jsonl texts/a.txt texts; do
    rm -rf out
    "$bin" train --module llama3 --config llama3_debugmodel --hf-assets-path vocab --dataloader.dataset-path $data --checkpoint.enable \
        --training.steps 3 --training.local-batch-size 2 --training.seq-len 64 --dump-folder out 2>log || { cat log; exit 1; }
    grep -q "Preparing c4_test dataset from .*$data" log && grep -q 'Loading tokenizer from .*vocab/tokenizer.json' log
    grep -q '/share/ctitan' log && { echo "something shipped is in the path"; cat log; exit 1; }
    [ -d out/checkpoint/step-3 ]
done
"$bin" train --module llama3 --config llama3_debugmodel --hf-assets-path vocab --dataloader.dataset-path texts --checkpoint.enable \
    --training.steps 5 --training.local-batch-size 2 --training.seq-len 64 --dump-folder out 2>log
grep -q 'Training starts at step 4' log
text=$("$bin" generate --checkpoint out/checkpoint --prompt 'The miller' --max-new-tokens 12 --seed 1)
case $text in 'The miller'*) ;; *) echo "generate gave: $text"; exit 1 ;; esac
[ "$text" = "$("$bin" generate --checkpoint out/checkpoint --prompt 'The miller' --max-new-tokens 12 --seed 1)" ]
