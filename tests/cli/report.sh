# SPDX-License-Identifier: Apache-2.0
# labels: slow
# `ctitan report`: the page and the summary of real runs, where two runs part, and what it refuses.
set -euo pipefail
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*"; exit 1; }
train() {
    "$bin" train --module llama3 --config llama3_debugmodel --training.local-batch-size 2 --training.seq-len 32 --debug.seed 3 --training.steps 6 \
        --training.mixed-precision-param float32 "$@" 2>log || { cat log; fail "exit $?"; }
}
train --dump-folder a --checkpoint.enable --checkpoint.interval 3
train --dump-folder b
train --dump-folder c --optimizer.lr 0.01 --lr-scheduler.warmup-steps 1

"$bin" report a b c/ >out || fail 'a report'
grep -q '^page: a/report.html$' out && [ -s a/report.html ] || fail 'the page'
grep -A2 '^a and b$' out | grep -q 'loss  *the same to the last bit at all 6 steps' || { cat out; fail 'equal runs'; }
# The rates differ from step 1 on: the loss of step 2 is the first to show it.
grep -A2 '^a and c$' out | grep -q 'loss  *first differs at step 2 ' || { cat out; fail 'runs that part'; }
"$bin" report a c --text --tolerance 10 >out
grep -q 'never by more than 10;' out && ! grep -q '^page' out || { cat out; fail 'tolerance'; }
# One file that needs nothing else.
! grep -oiE '(src|href)=|url\(|@import|https?://[^"'"'"' )]*' a/report.html | grep -v '^http://www.w3.org/2000/svg' || fail 'the page asks for other files'
[ "$(grep -o '<polyline' a/report.html | wc -l)" -ge $((3 * 6 * 2)) ] || fail 'curves'
for text in 'Loss' 'Learning rate' 'Gradient norm' 'Throughput' 'Memory' '>tokens<' 'AMD\|Intel\|device' 'optimizer.param_groups.0.optimizer_kwargs.lr' '3, 6'; do
    grep -q "$text" a/report.html || fail "the page lacks $text"
done
# Validation: its own table and curve, which goes on after a resume and drops what is done again.
valid=(--validator.enable --validator.freq 2 --validator.steps 1 --validator.dataloader.dataset c4_test --checkpoint.enable --checkpoint.interval 3)
train --dump-folder v "${valid[@]}"
[ "$(cut -d, -f1 v/validation.csv | tr '\n' ' ')" = 'step 1 2 4 6 ' ] || { cat v/validation.csv; fail 'validation.csv'; }
cp v/validation.csv whole.csv
rm -r v/checkpoint/step-6
train --dump-folder v "${valid[@]}"
cmp <(cut -d, -f1,3,5 whole.csv) <(cut -d, -f1,3,5 v/validation.csv) || fail 'validation.csv after a resume'
"$bin" report v a >out && grep -q 'Validation loss' v/report.html || fail 'no curve of validation'
"$bin" report a >out && ! grep -q 'Validation loss' a/report.html || fail 'a curve of validation that there was none of'
# A table alone.
mkdir t && cp a/metrics.csv t/x.csv
(cd t && "$bin" report x.csv >out && [ -s report.html ]) || fail 'a table alone'

refused() { # exit code, text, arguments
    code=0
    "$bin" report "${@:3}" >out 2>e || code=$?
    [ $code = "$1" ] && grep -q -- "$2" e && [ "$(wc -l <e)" = 1 ] || { cat e; fail "exit $code for ${*:3}"; }
}
refused 2 'the folder of a run is wanted'
refused 2 'there is no such option' a --nope
refused 2 "a number from 0 on is wanted" a --tolerance x
refused 2 'a value is wanted' a --out
refused 1 "'none' cannot be opened: No such file" none
mkdir empty
refused 1 "'empty' holds no metrics.csv" empty
echo garbage >empty/metrics.csv
refused 1 'this is no metrics.csv' a empty
refused 1 "/dev/full\|cannot be" a --out /dev/null/x
"$bin" report --help | grep -q '^usage: ctitan report' || fail help
echo ok
