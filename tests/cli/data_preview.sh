# SPDX-License-Identifier: Apache-2.0
# labels: fast
# `ctitan data preview` shows rows: pieces with their borders, what goes on in another row, padding, the rows of any step; nothing that a
# document holds reaches the terminal raw.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
printf '{"text": "one two\\nthree"}\n{"text": "\\u001b[31mred \\u009b tab\\t."}\n{"text": "a last one"}\n' >x.jsonl
show() { "$bin" data preview --dataset-path x.jsonl "$@"; }

show --rows 2 --seq-len 16 --chars 0 >out
cat out
grep -q 'x.jsonl: 3 documents' out
grep -qE '^ +0 \.\. [0-9]+ +<\|begin_of_text\|>one two\\nthree -> <\|end_of_text\|>$' out
grep -q 'x1b\[31mred \\x9b' out
grep -q 'tab\\t\.' out
if LC_ALL=C grep -q "$(printf '\033')" out; then echo "an escape came through"; exit 1; fi
grep -qE ' \.\.\.$' out # cut here
grep -qE '^ +0 \.\. [0-9]+ +\.\.\. ' out # goes on here

# First-fit: whole documents, padding at the end.
show --rows 2 --seq-len 14 --packing first-fit --num-packing-bins 1 >out
grep -qE '^row 0  1 piece, 6 of 14 labels count, 8 padding$' out
[ "$(grep -c -e '-> <|end_of_text|>$' out)" = 2 ]
grep -q '(padding)' out

# Step 3 of 2 rows is rows 4 and 5 of one step of 6; with streams, each has rows of its own.
show --rows 6 --seq-len 8 | sed -n '/^row 4/,/^$/p; /^row 5/,/^$/p' | grep -v ^row >a
show --rows 2 --seq-len 8 --step 3 | sed -n '/^row 0/,/^$/p; /^row 1/,/^$/p' | grep -v ^row >b
[ -s a ] && cmp a b
show --rows 2 --streams 2 --seq-len 8 | grep -q '^row 1 (stream 1)'
show --rows 1 --shuffle --seed 7 | grep -q 'shuffled with seed 7'
"$bin" data preview --sources x.jsonl:3 c4_test --rows 1 | grep -q 'x.jsonl: 3 documents, weight 3'

# What is wrong is told in one line.
refused() {
    want=$1
    code=0
    shift
    "$@" >out 2>err || code=$?
    [ $code != 0 ] && grep -q -e "$want" err || { cat out err; echo "wanted: $want ($*)"; exit 1; }
}
refused 'streams do not divide 2 rows' show --rows 2 --streams 3
refused 'leave --dataset-path out' show --sources x.jsonl
refused "source ':1'" "$bin" data preview --sources :1
refused 'packing' show --packing tight
refused '3 documents, fewer than the 4 streams' show --rows 4 --streams 4
echo '{"txt": 1}' >>x.jsonl
show --rows 4 --bad-records skip >out
code=0
show --rows 4 >out 2>err || code=$?
[ $code = 1 ] && grep -q "line 4" err

# Conversations: what users say is masked, what assistants say is learned; long ones and bad ones are left out and counted.
cat >chats.jsonl <<'E2'
{"messages": [{"role": "user", "content": "Hot?"}, {"role": "assistant", "content": "Cold."}, {"role": "user", "content": "Old?"}, {"role": "assistant", "content": "New."}]}
{"q": "Day?", "a": "Night."}
E2
chat() { show --dataset-path chats.jsonl --dataloader.format chat --dataloader.packing=first-fit --num-packing-bins 1 "$@"; }
chat --rows 1 --training.seq-len 60 --bad-records skip --chars 0 >out
masked='\(\(\[user\]\\nHot\?\\n\[assistant\]\\n\)\)Cold\.<\|end_of_text\|>\(\(\\n\[user\]\\nOld\?\\n\[assistant\]\\n\)\)New\. -> <\|end_of_text\|>'
grep -qE "$masked" out || { cat out; exit 1; }
chat --rows 1 --seq-len 24 --question-field q --answer-field a >out
grep -qE '\(\(\[user\]\\nDay\?\\n\[assistant\]\\n\)\)Night\. -> <\|end_of_text\|>$' out || { cat out; exit 1; }
grep -q '^left out up to here: 1 of more tokens than a row$' out
printf '%s' '{{ strftime_now("%d") }}{% for m in messages %}<{{ m.content }}|{% endfor %}{% if add_generation_prompt %}<{% endif %}' >template
printf '{"question": "a", "answer": "b"}\n' >one.jsonl
chat --dataset-path one.jsonl --rows 1 --seq-len 24 --chat-template template --chat-date 2024-01-09 >out
grep -q '((09<a|<))b| -> ' out || { cat out; exit 1; }
refused "line 2: cannot be used: .*'question' is missing" chat --rows 1 --seq-len 60
refused 'nearest is --format' chat --forma chat
refused "date of chat templates '2024-02-30' is none" chat --chat-date 2024-02-30

# A path may stand first, as with the other sub-commands; an option's choices and defaults stand in the help.
show --rows 1 --seq-len 16 >out
"$bin" data preview x.jsonl --rows 1 --seq-len 16 | diff out -
"$bin" data preview --help >help
grep -q -e '--packing {concat-then-split,first-fit}$' help && grep -q 'rows are made of documents (default: concat-then-split)$' help || { cat help; exit 1; }
if grep -q 'default: )\|default: None' help; then cat help; exit 1; fi
# Of a table that sub-commands share each shows its own.
"$bin" tokenizer train --help >help
grep -q -e '--vocab-size INT .* all tokens' help
if grep -qe '--skip-special' help; then cat help; exit 1; fi
"$bin" tokenizer decode --help | grep -qe '--json-lines  *for each line'
