# SPDX-License-Identifier: Apache-2.0
# rooms: comm/gloo
# labels: slow
# A rank with another setting, another component or another program is refused before the first step, and told with both values.
set -eu
build=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAILED: $*"; tail -n 12 log; exit 1; }
export OMP_NUM_THREADS=1
# The same program with a byte behind it: the same version, built otherwise.
mkdir other
cp "$build/bin/ctitan" other/ctitan
ln -s "$build/lib" lib
ln -s "$build/share" share
printf x >>other/ctitan
common='train --module llama3 --config llama3_debugmodel --training.seq-len 16 --training.local-batch-size 1 --training.steps 2
    --model-spec.n-layers 1 --model-spec.dim 32 --model-spec.n-heads 2 --model-spec.n-kv-heads 2 --model-spec.ffn-hidden 32'
# refused PATTERN PROGRAM ARGS...: rank 1 of 3 is that program with these arguments added
refused() {
    local pattern=$1 program=$2 code=0
    shift 2
    # shellcheck disable=SC2016
    timeout 60 "$build/bin/ctitan" run --nproc_per_node 3 --no-python sh -c '
        program=$0 other=$1; shift
        if [ "$RANK" = 1 ]; then program=$other; shift; else set --; fi
        exec "$program" '"$(echo $common)"' --dump-folder out "$@"' "$build/bin/ctitan" "$program" - "$@" >log 2>&1 || code=$?
    [ $code = 2 ] || fail "$pattern: exit $code"
    grep -qE "$pattern" log || fail "not told: $pattern"
    ! grep -q 'step:  1 ' log || fail "$pattern: a step was made"
}
refused "settings: --training.seq-len is '16' on rank 0 and '32' on rank 1\$" "$build/bin/ctitan" --training.seq-len 32
refused "settings: --training.steps is '2' on rank 0 and '3' on rank 1\$" "$build/bin/ctitan" --training.steps 3
refused "settings: --training.steps is '2' on rank 0 and '4' on rank 1; --checkpoint.enable is 'false' on rank 0 and 'true' on rank 1\$" "$build/bin/ctitan" \
    --checkpoint.enable --training.steps 4
refused "settings: .*--activation-checkpoint.* is '.*' on rank 0 and '.*' on rank 1" "$build/bin/ctitan" activation-checkpoint:full
[ "$("$dir/other/ctitan" --version)" = "$("$build/bin/ctitan" --version)" ] || fail 'the versions differ'
refused "settings: the program's file is '[0-9a-f]{16}' on rank 0 and '[0-9a-f]{16}' on rank 1\$" "$dir/other/ctitan"
# What each rank may have for itself is no difference.
code=0
# shellcheck disable=SC2016
timeout 60 "$build/bin/ctitan" run --nproc_per_node 2 --no-python sh -c 'exec "$0" '"$(echo $common)"' --dump-folder out --metrics.log-freq $((RANK + 1))' \
    "$build/bin/ctitan" >log 2>&1 || code=$?
[ $code = 0 ] || fail "metrics that differ: exit $code"
echo ok
