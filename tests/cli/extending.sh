# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# docs/extending.md, command by command, in an empty folder, with an installed ctitan: its blocks of sh are run as they stand.
set -u
build=$1
src=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
fail() { echo "FAILED: $*"; tail -n 30 log 2>/dev/null; exit 1; }
cc=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
{ command -v "$cc" && command -v pkg-config; } >/dev/null || { echo "no compiler or no pkg-config here"; exit 77; }
grep -q '^CT_SANITIZE:STRING=.' "$build/CMakeCache.txt" && { echo "the commands know nothing of sanitizers"; exit 77; }
DESTDIR=$dir/stage cmake --install "$build" --prefix /opt/c >log 2>&1 || fail "install"
mkdir bin work
ln -s "$(command -v "$cc")" bin/cc
export PATH=$dir/bin:$dir/stage/opt/c/bin:$PATH PKG_CONFIG_PATH=$dir/stage/opt/c/lib/pkgconfig
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$src/docs/extending.md" >commands
[ "$(wc -l <commands)" -gt 100 ] || fail "no commands in docs/extending.md"
sed -n '/^cat >reglu.c/,/^END$/p' commands | sed '1d;$d' >reglu.c
read -r -a flags <<<"$(pkg-config --cflags ctitan)"
"$cc" -std=c17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "${flags[@]}" reglu.c >log 2>&1 || fail "the plug-in has warnings"
(cd work && bash -eu -o pipefail ../commands) >log 2>&1 || fail "a command failed"
grep -q '^reglu 1.0 (.*/work/reglu/reglu.so)$' log || fail "ctitan plugins"
grep -q '^  op         reglu.gate, 2 in, 1 out, element, exact, gradient: yes; cpu: f32 bf16, ref: f32 bf16$' log || fail "the op"
grep -q '^  override   reglu.feed_forward of FeedForward: a ReLU as the gate$' log || fail "the override"
[ "$(grep -c 'Applied 6 override(s)' log)" -ge 3 ] || fail "three runs with 6 layers each"
[ "$(grep -c 'Training completed' log)" -ge 3 ] || fail "three runs to the end"
echo "all fine"
