# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# libctitan as its users have it: installed under another prefix, found by pkg-config, used from C and from Python. The losses are those of
# the program, in one process and in two; nothing is printed but by the example; only what the headers declare is exported.
set -u
build=$1
src=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
fail() { echo "FAILED: $*"; tail -n 30 out err 2>/dev/null; exit 1; }
cc=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
{ command -v "$cc" && command -v pkg-config; } >/dev/null || { echo "no compiler or no pkg-config here"; exit 77; }
read -r -a sanitize <<<"$(sed -n 's/^CT_SANITIZE:STRING=\(..*\)/-fsanitize=\1/p' "$build/CMakeCache.txt")"

DESTDIR=$dir/stage cmake --install "$build" --prefix /opt/c >log 2>&1 || { cat log; fail "install"; }
mv stage/opt/c moved # an installation may be moved
export PKG_CONFIG_PATH=$dir/moved/lib/pkgconfig LD_LIBRARY_PATH=$dir/moved/lib
read -r -a flags <<<"$(pkg-config --cflags --libs ctitan)"
"$cc" -std=c17 -Wall -Wextra -Wpedantic -Werror "${sanitize[@]}" "$src/examples/library/train.c" "${flags[@]}" -o example || fail "the example cannot be built"

nm -D --defined-only moved/lib/libctitan.so >all
awk '$3 !~ /^(ct_[a-z0-9_]+@@CTITAN_0|CTITAN_0|cti?_[a-z0-9_]+@@CTITAN_ENGINES_[0-9.]+|CTITAN_ENGINES_[0-9.]+)$/' all >out
[ ! -s out ] || fail "exported, and neither declared in include/ctitan nor for engines"
# What engines take is there, in the library as in the program.
for engine in moved/lib/ctitan/engines/*.so; do
    nm -D --undefined-only "$engine" | awk '$2 ~ /^cti?_/ { print $2 }' | sort >wanted
    for host in moved/lib/libctitan.so moved/bin/ctitan; do
        nm -D --defined-only $host | awk '{ sub(/@.*/, "", $3); print $3 }' | sort >there
        comm -23 wanted there >out
        [ -s wanted ] && [ ! -s out ] || fail "${engine##*/} finds not all in $host"
    done
done
# A build's symbol versions are those of its machine: packages are made where they are old enough.
if [ "$(getconf GNU_LIBC_VERSION | sed 's/.* 2\.//')" -le 36 ] && [ ${#sanitize[@]} = 0 ]; then
    "$src/tools/check-elf" moved >out || fail "check-elf"
fi
for f in ct_run_open ct_run_step ct_run_close ct_registry_add_override ct_op_reshape ct_class_list; do
    grep -q " $f@" all || fail "$f is not exported"
done

settings=(--module llama3 --config llama3_debugmodel --training.steps 3 --training.local-batch-size 2 --training.seq-len 64 --training.mixed-precision-param float32 --debug.seed 5 --lr-scheduler.warmup-steps 1)
losses() { sed -nE 's/.*step:? +([0-9]+).*loss:? +([0-9.]+).*grad(ient)?[_ ]norm:? +([0-9.]+).*/\1 \2 \4/p' "$1"; }
"$build/bin/ctitan" train "${settings[@]}" --metrics.log-freq 1 --metrics.disable-color-printing --dump-folder a 2>log || fail "train"
losses log >want
[ "$(wc -l <want)" = 3 ] || fail "no losses in the log"
./example "${settings[@]}" --dump-folder b >out 2>err || fail "the example"
losses out | diff - want || fail "the example's losses"
[ ! -s err ] && [ "$(wc -l <out)" = 3 ] || fail "more was printed than the example's lines"

./example "${settings[@]}" --training.stepss 3 --training.seq-len -4 >out 2>err
[ $? = 2 ] && grep -q 'unknown flag (nearest: --training.steps)' err && grep -q "seq-len: '-4' is too small" err && [ "$(wc -l <err)" = 2 ] || fail "wrong settings"
./example --help >out 2>err
[ $? = 2 ] && grep -q -- '--help: a setting of the program' err && [ ! -s out ] || fail "help"

two=(run --nproc_per_node=2 --local-ranks-filter 0)
"$build/bin/ctitan" "${two[@]}" -m torchtitan.train "${settings[@]}" --metrics.log-freq 1 --metrics.disable-color-printing --dump-folder a2 >log 2>&1 || fail "train, two ranks"
losses log >want2
[ "$(wc -l <want2)" = 3 ] || fail "no losses in the log of two ranks"
"$build/bin/ctitan" "${two[@]}" --no-python ./example "${settings[@]}" --dump-folder b2 >out 2>&1 || fail "the example, two ranks"
losses out | diff - want2 || fail "the example's losses, two ranks"

# Without the module of the engine: named, with its path.
mv moved/lib/ctitan/engines engines
"$build/bin/ctitan" "${two[@]}" --no-python ./example "${settings[@]}" --dump-folder b3 >out 2>&1 && fail "two ranks without an engine"
grep -q "the comm engine 'gloo' cannot be loaded: .*moved/lib/../lib/ctitan/engines/gloo.so: .*install libgloo-dev" out || fail "what is said without the engine"
mv engines moved/lib/ctitan/engines

# A plug-in from the installed headers alone, loaded by the installed program and by the library.
mkdir plugins
read -r -a flags <<<"$(pkg-config --cflags ctitan)"
"$cc" -std=c17 -Wall -Wextra -Wpedantic -Werror "${sanitize[@]}" -shared -fPIC "${flags[@]}" "$src/examples/plugin/example_norm.c" -o plugins/example_norm.so || fail "the plug-in cannot be built"
for header in moved/include/ctitan/*.h; do
    echo "#include <ctitan/${header##*/}>" >one.c
    "$cc" -std=c17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "${flags[@]}" one.c || fail "${header##*/} does not stand alone"
done
[ "$(pkg-config --variable=plugindir ctitan)" -ef moved/lib/ctitan/plugins ] || fail "plugindir"
logged=("${settings[@]}" --metrics.log-freq 1 --metrics.disable-color-printing --dump-folder d)
"$build/bin/ctitan" train "${logged[@]}" --model-spec.norm-eps 0.01 2>log || fail "train with another epsilon"
losses log >want3
[ "$(wc -l <want3)" = 3 ] && ! diff -q want want3 >log || fail "the epsilon changes nothing"
export CTITAN_PLUGIN_PATH=$dir/plugins
moved/bin/ctitan train "${logged[@]}" --override.imports example_norm.wide_eps 2>log || fail "a plug-in in the program"
grep -q 'Applied 13 override(s)' log || fail "the plug-in's nodes"
losses log | diff - want3 || fail "the plug-in's losses in the program"
./example "${settings[@]}" --dump-folder e --override.imports example_norm.wide_eps >out 2>err || fail "a plug-in in the library"
losses out | diff - want3 || fail "the plug-in's losses in the library"

if command -v python3 >/dev/null && [ ${#sanitize[@]} = 0 ]; then
    python3 -B "$src/examples/library/train.py" "${settings[@]}" --dump-folder c --override.imports npu_compat.npu_attention >out 2>err || fail "train.py"
    cut -d' ' -f1,2 want >w
    losses out | cut -d' ' -f1,2 | diff - w || fail "train.py's losses, with a plug-in"
    [ ! -s err ] || fail "train.py: more was printed"
    python3 -B "$src/examples/library/train.py" --module llama9 --config x >out 2>err
    [ $? = 2 ] && grep -q llama9 err || fail "train.py: a wrong module"
fi
echo "all fine"
