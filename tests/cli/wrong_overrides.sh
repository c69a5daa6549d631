# SPDX-License-Identifier: Apache-2.0
# labels: slow
# Overrides that are wrong are found: exit 1, the part, the place and the amount. The right one emits other ops than what it replaces.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CTITAN_PLUGIN_PATH=$1/tests/plugins

for part in rope mask; do
    code=0
    "$bin" check-overrides npu_wrong.wrong_$part >"$dir/out" || code=$?
    [ "$code" = 1 ] || { echo "wrong_$part: exit $code, wanted 1"; cat "$dir/out"; exit 1; }
    want="npu override equivalence: rope OK, mask DIFFERS"
    [ $part = mask ] || want="npu override equivalence: rope DIFFERS, mask OK"
    [ "$(tail -n 1 "$dir/out")" = "$want" ] || { echo "wrong_$part:"; cat "$dir/out"; exit 1; }
done
"$bin" check-overrides npu_wrong.wrong_rope 2>&1 | grep -E 'rope differs \(.* inputs\): q of token [0-9]+, head [0-9]+, element [0-9]+: wanted .*, found .*, off by' >/dev/null
"$bin" check-overrides npu_wrong.wrong_mask 2>&1 | grep -E 'attention differs: token [0-9]+ \(document [0-9]+, its token [0-9]+\), head [0-9]+: off by .*, bound' >/dev/null

code=0
"$bin" check-overrides npu_compat.nothing >"$dir/out" 2>"$dir/err" || code=$?
[ "$code" = 2 ] && grep -q "npu_compat.npu_attention" "$dir/err" || { echo "unknown target: $code"; cat "$dir/err"; exit 1; }

for target in "" npu_compat.npu_attention; do
    "$bin" train --module llama3 --config llama3_debugmodel --training.steps 1 --training.local-batch-size 1 --training.seq-len 32 \
        --dump-folder "$dir/run" --debug.dump-graph "$dir/graph$target" --override.imports $target 2>/dev/null
done
stock=$(cat "$dir"/graph/*-forward.txt) other=$(cat "$dir"/graphnpu_compat.npu_attention/*-forward.txt)
has() { printf "%s\n" "$1" | grep -qF -- "= $2("; }
has "$stock" rope && has "$stock" sdpa && ! has "$stock" rotary_mul && ! has "$stock" sdpa_tnd
has "$other" rotary_mul && has "$other" sdpa_tnd && ! has "$other" rope && ! has "$other" sdpa
