# SPDX-License-Identifier: Apache-2.0
# labels: slow
# Documents that cannot be used: they end the run with file and line, or are skipped, counted by kind, and named in the log after the first pass and at the
# end; more of them than allowed end the run all the same. The text's field and what becomes of bytes that are no UTF-8 are settings. Settings that
# cannot go together are told all at once.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
for i in $(seq 1 40); do echo "{\"story\": \"Letter $i. The miller sends $((i * 3)) sacks of rye.\"}"; done >x.jsonl
echo '{"text": "wrong field"}' >>x.jsonl
echo '{"story": 3}' >>x.jsonl
echo 'oops' >>x.jsonl
printf '{"story": "caf\xe9"}\n' >>x.jsonl
train() { "$bin" train --module llama3 --config llama3_debugmodel --dataloader.dataset-path x.jsonl --dataloader.text-field story --training.seq-len 64 \
    --training.local-batch-size 4 --training.steps 8 --metrics.disable-color-printing --dump-folder out "$@"; }
fails() {
    want=$1 code=0
    shift
    train "$@" >log 2>&1 || code=$?
    [ $code = 1 ] && grep -q -e "$want" log || { tail -n 5 log; echo "wanted: $want"; exit 1; }
}

fails "x.jsonl' line 41: text field missing"
grep -q 'step:' log # the documents before it were used

train --dataloader.bad-records skip --dataloader.max-bad-share 0.1 >log 2>&1 || { tail -n 5 log; exit 1; }
grep -q 'Documents of this rank, first pass: .* 1 ill-formed parts of UTF-8 made U+FFFD' log
grep -q 'Skipped 3 bad documents (1 not JSON, 1 text field missing, 1 text field not a string); the first:' log
for line in 41 42 43; do grep -q "x.jsonl' line $line" log; done
[ "$(grep -c 'Skipped 3 bad documents' log)" = 2 ] # first pass, whole run

train --dataloader.bad-records skip --dataloader.max-bad-share 0.1 --dataloader.invalid-utf8 bad --dataloader.num-workers 2 >log 2>&1
grep -q 'Skipped 4 bad documents (.*1 not UTF-8' log
fails '2 of 44 documents are bad, more than the share of 0.03 allowed' --dataloader.bad-records skip --dataloader.max-bad-share 0.03
fails "line 41: text field missing" --dataloader.bad-records skip --dataloader.max-bad-share 0

code=0
"$bin" train --module llama3 --config llama3_debugmodel --dataloader.dataset-path x.jsonl --dataloader.sources x.jsonl:0 --dataloader.packing tight \
    --dataloader.num-packing-bins 0 --dataloader.max-bad-share 2 >log 2>&1 || code=$?
[ $code = 2 ]
for want in 'dataloader.packing' 'dataloader.num-packing-bins' 'dataloader.max-bad-share' 'a weight above 0' 'leave dataset-path out'; do
    grep -q -e "$want" log || { cat log; echo "wanted: $want"; exit 1; }
done
