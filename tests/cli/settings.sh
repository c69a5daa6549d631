# SPDX-License-Identifier: Apache-2.0
# labels: fast
# Settings from the command line: TorchTitan's 120 flags are all there with its defaults; spellings; precedence; all errors at once with the nearest
# name; what is not there yet is refused with its reason; docs/settings.md is what --help prints (CT_UPDATE_DOCS=1 writes it).
set -eu
unset CTITAN_DEVICE
bin=$1/bin/ctitan
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sel=(--module llama3 --config llama3_debugmodel)
fail() { echo "$*"; exit 1; }

"$bin" config "${sel[@]}" | sed -E 's/  \([a-z]+\)$//' >"$dir/now"
# hf-assets-path: ours is the vocabulary that comes with the program (docs/differences.md).
awk -F'\t' '
    NR == FNR { i = index($0, " = "); k = substr($0, 1, i - 1); gsub("_", "-", k); v[k] = substr($0, i + 3); next }
    /^#/ || $1 == "hf-assets-path" { next }
    { n++; want = $2 == "(empty)" ? "" : $2
      if (!($1 in v)) { print "no flag --" $1; bad = 1 } else if (tolower(v[$1]) != tolower(want)) { print "--" $1 ": " v[$1] ", wanted " want; bad = 1 } }
    END { if (n != 119) { print n, "flags compared, wanted 119"; bad = 1 } exit bad }' "$dir/now" "$here/flags_torchtitan_0.3.0.tsv"

value() { # value PATH ARGS...: the value and its source
    local path=$1
    shift
    "$bin" config "${sel[@]}" "$@" | sed -nE "s/^${path//./\\.} = (.*)/\1/p"
}
[ "$(value training.steps --training.steps 7)" = "7  (flag)" ] || fail "flag"
[ "$(value training.steps --training.steps=1_000)" = "1000  (flag)" ] || fail "--x=V, Python's underscores"
[ "$(value training.seq_len --training.seq-len 64)" = "64  (flag)" ] && [ "$(value training.seq_len --training.seq_len 64)" = "64  (flag)" ] || fail "spelling"
[ "$(value training.steps --training.steps 7 --training.steps 9)" = "9  (flag)" ] || fail "the last one counts"
[ "$(value checkpoint.enable --checkpoint.enable)" = "true  (flag)" ] || fail "boolean"
[ "$(value dataloader.infinite --dataloader.no-infinite)" = "false  (flag)" ] || fail "negated boolean"
[ "$(value dataloader.infinite --dataloader.infinite=false)" = "false  (flag)" ] || fail "boolean with a value"
[ "$(CTITAN_TRAINING__STEPS=5 value training.steps)" = "5  (env)" ] || fail "environment"
[ "$(CTITAN_TRAINING__STEPS=5 value training.steps --training.steps 6)" = "6  (flag)" ] || fail "flags above environment"
[ "$(value training.steps)" = "10  (registry)" ] || fail "registry"
[ "$(value optimizer.param_groups.0.optimizer_kwargs.betas --optimizer.param-groups.0.optimizer-kwargs.betas 0.8 0.9)" = "0.8 0.9  (flag)" ] || fail "list"
[ "$(value optimizer.param_groups.0.optimizer_kwargs.lr --optimizer.lr 1e-3)" = "0.001  (flag)" ] || fail "alias"

# A short name sets every param group, and is refused where that would undo what sets them apart; a group's own name after it counts.
cat >"$dir/groups.yaml" <<'X'
base: llama3_debugmodel
optimizer:
  lr: 2e-3
  param_groups:
    - {pattern: norm, optimizer_kwargs: {weight_decay: 0.0}}
    - {pattern: ".*"}
X
rates() { "$bin" config --module llama3 --config "$dir/groups.yaml" "$@" | sed -nE 's/^optimizer\.param_groups\.[01]\.optimizer_kwargs\.lr = (.*)  .*/\1/p' | tr '\n' ' '; }
[ "$(rates)" = "0.002 0.002 " ] || fail "a file's short name: $(rates)"
[ "$(rates --optimizer.lr 5e-4)" = "0.0005 0.0005 " ] || fail "a short flag: $(rates --optimizer.lr 5e-4)"
[ "$(CTITAN_OPTIMIZER__LR=7e-4 rates)" = "0.0007 0.0007 " ] || fail "a short name in the environment"
[ "$(rates --optimizer.lr 5e-4 --optimizer.param-groups.1.optimizer-kwargs.lr 1e-4)" = "0.0005 0.0001 " ] || fail "a group's own after the short one"
for flag in weight-decay=0.2 lr=0.2; do
    code=0
    "$bin" config --module llama3 --config "$dir/groups.yaml" --optimizer.param-groups.1.optimizer-kwargs.lr 1e-4 --optimizer.$flag >/dev/null 2>"$dir/e" || code=$?
    [ $code = 2 ] && grep -q "optimizer.${flag%=*}: the optimizer's 2 param groups have different values.*optimizer-kwargs.${flag%=*}" "$dir/e" ||
        { cat "$dir/e"; fail "groups that differ: $flag, $code"; }
done

refused() { # refused PATTERN ARGS...: exit 2, one line that matches, nothing trained
    local pattern=$1 code=0
    shift
    "$bin" train "${sel[@]}" --dump-folder "$dir/out" "$@" >"$dir/o" 2>"$dir/e" || code=$?
    [ $code = 2 ] || fail "exit $code, wanted 2: $*"
    grep -qE -- "$pattern" "$dir/e" || { cat "$dir/e"; fail "no line '$pattern' for $*"; }
    ! grep -q 'Training starts' "$dir/e" || fail "trained: $*"
}
refused '--trainin.steps: unknown flag \(nearest: --training.steps\)' --trainin.steps 2
refused "--training.steps: 'x'" --training.steps x
refused "--training.steps: '-3' is too small" --training.steps -3
refused "--training.seq-len: '0'" --training.seq-len 0
refused "--metrics.log-freq: '0'" --metrics.log-freq 0
# numbers that would end as NaN or run backwards: rates, what is divided by, schedules, limits
kwargs=--optimizer.param-groups.0.optimizer-kwargs
for case in "--optimizer.eps 0" "--optimizer.eps 1e-60" "--optimizer.eps inf" "--optimizer.lr -1" "--optimizer.lr nan" "--optimizer.lr inf" "--optimizer.weight-decay inf" \
    "$kwargs.betas 0.9 nan" "$kwargs.ns-coefficients nan 1 1" "--training.max-norm 0" "--training.max-norm nan" "--lr-scheduler.total-steps -1" \
    "--lr-scheduler.total-steps 0" "--lr-scheduler.warmup-steps -1" "--lr-scheduler.decay-ratio 1.5" "--lr-scheduler.min-lr-factor 1.5" \
    "--lr-scheduler.min-lr-factor nan" "--comm.init-timeout-seconds 0" "--comm.train-timeout-seconds 0"; do
    # shellcheck disable=SC2086
    refused "^${case%% *}: '.*' is (too (small|large), wanted |no number)" $case
done
refused "--training.dtype: 'fp8'.*(bfloat16|float32)" --training.dtype fp8
refused 'tensor-parallel-degree 3' --parallelism.tensor-parallel-degree 3
refused 'npu_compat.npu_attention' --override.imports npu_compat.nothing
refused "dataset 'nope'|'nope'" --dataloader.dataset nope
refused "global-batch-size 12" --training.global-batch-size 12
refused 'local-batch-size 3 .*wanted -1 or a multiple of 3; the nearest are 6 and 9' --training.global-batch-size 8 --training.local-batch-size 3
for case in "4 10 4 8 12" "2 7 2 6 8"; do # ranks, what is asked for, multiples of what, the two nearest
    # shellcheck disable=SC2086
    set -- $case
    code=0
    "$bin" plan "${sel[@]}" --ranks "$1" --training.local-batch-size 1 --training.global-batch-size "$2" >"$dir/o" 2>"$dir/e" || code=$?
    [ $code = 2 ] && grep -q "global-batch-size $2 .*a multiple of $3; the nearest are $4 and $5" "$dir/e" || { cat "$dir/e"; fail "batch $2 on $1 ranks"; }
done
# heads that do not divide: how many, by what, and what does
tensor() { # tensor PATTERN DEGREE DIM HEADS KV_HEADS
    local code=0
    "$bin" plan "${sel[@]}" --ranks "$2" --parallelism.tensor-parallel-degree "$2" --model-spec.dim "$3" --model-spec.n-heads "$4" \
        --model-spec.n-kv-heads "$5" >"$dir/o" 2>"$dir/e" || code=$?
    [ $code = 2 ] && grep -q "tensor-parallel-degree $2 .*$1" "$dir/e" || { cat "$dir/e"; fail "no '$1' for $*"; }
}
for case in pipeline context expert; do
    code=0
    "$bin" plan "${sel[@]}" --ranks 4 --parallelism.$case-parallel-degree 2 >"$dir/o" 2>"$dir/e" || code=$?
    [ $code = 2 ] && grep -q "$case parallelism is not there yet: set --parallelism.$case-parallel-degree 1" "$dir/e" || { cat "$dir/e"; fail "$case parallelism"; }
done
refused "--checkpoint.async-mode: 'async' is refused" --checkpoint.enable --checkpoint.async-mode async
tensor '2 key and value heads; the nearest that divides all is 2' 4 64 8 2
tensor '6 query heads, 6 key and value heads; the nearest that divide all are 3 and 6' 4 48 6 6
refused "activation-checkpoint:nope" activation-checkpoint:nope
refused 'wanted an absolute path' --checkpoint.initial-load-path relative
for flag in --profiler.enable-memory-snapshot --metrics.enable-wandb --training.enable-cpu-offload \
    --debug.detect-anomaly; do
    refused "^$flag: 'true' is refused: .* not there|^$flag: 'true' is refused: " $flag
done
code=0
"$bin" train "${sel[@]}" --trainin.steps 2 --training.seq-len x --metrics.log-freq 0 2>"$dir/e" || code=$?
[ $code = 2 ] && [ "$(wc -l <"$dir/e")" = 3 ] || { cat "$dir/e"; fail "not all errors at once"; }
for bad in "--module llama3 --config llama3_debugmodl" "--module lama3 --config llama3_debugmodel" "--config llama3_debugmodel"; do
    code=0
    # shellcheck disable=SC2086
    "$bin" train $bad 2>"$dir/e" || code=$?
    [ $code = 2 ] || fail "$bad: exit $code"
done

{
    echo '# Settings'
    echo
    echo 'Made from the field tables (`src/config/sections.h`); `tests/cli/settings.sh` holds this page to them. Precedence, lowest first: default,'
    echo 'registry function, files ([configuration.md](configuration.md)), `CTITAN_SECTION__FIELD` in the environment, flags. `-` and `_` are the same in names; `--x V` and `--x=V`; the last'
    echo 'one counts; `--a.b`, `--a.no-b` and `--a.b=true|false` for booleans. `ctitan config` prints each value with its source.'
    echo
    echo '```'
    COLUMNS=110 "$bin" train "${sel[@]}" --help
    echo '```'
} >"$dir/settings.md"
if [ -n "${CT_UPDATE_DOCS:-}" ]; then
    cp "$dir/settings.md" "$here/../../docs/settings.md"
fi
diff "$here/../../docs/settings.md" "$dir/settings.md" >"$dir/d" || { head -n 20 "$dir/d"; fail "docs/settings.md is not what --help prints: CT_UPDATE_DOCS=1 writes it"; }
