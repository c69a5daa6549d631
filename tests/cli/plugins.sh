# SPDX-License-Identifier: Apache-2.0
# labels: fast
# Plug-ins built from the installed headers alone: a good one works; one that is missing, has no entry, another ABI or name, or fails half-way
# is refused by name, with exit code 2 or 1 and nothing trained.
set -eu
bin=$1/bin/ctitan
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cc=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$1/CMakeCache.txt")
command -v "$cc" >/dev/null || { echo "no compiler here"; exit 77; }
export CTITAN_PLUGIN_PATH=$dir
fail() { echo "$*"; cat "$dir/err" 2>/dev/null; exit 1; }

build() { # build NAME ABI ENTRY REGISTERED_AS SETUP_END [SIZE] [CALLS_ITSELF] [SETUP] [ANSWER]
    cat >"$dir/p.c" <<C
#include "ctitan/plugin.h"
static ct_class cls = {.name = "Plain$1"};
static ct_status factory(ct_tree *t, ct_component *m, const char *a, ct_component **out, ct_err *err)
{
    if (a[1] != '}') {
        return CT_FAIL(err, CT_ERR_USAGE, "$1 takes no arguments");
    }
    return ct_component_derive(t, m, &cls, out, err);
}
static ct_status setup(ct_registry *r, ct_err *err)
{
    const ct_class *norm = ct_registry_class(r, "RMSNorm");
    if (norm == 0) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "no RMSNorm");
    }
    cls = *norm;
    cls.name = "Plain$1";
    cls.base = norm;
    static const char *const last[] = {"model_spec.model.norm"};
    const ct_override all = {.name = "$4.all", .target = norm, .factory = factory};
    const ct_override one = {.name = "$4.last", .target = norm, .fqns = last, .n_fqns = 1, .factory = factory};
    CT_TRY(ct_registry_add_override(r, &all, err));
    CT_TRY(ct_registry_add_override(r, &one, err));
    $5
}
const ct_plugin_info *$3(void)
{
    static const ct_plugin_info info = {$2, ${6:-sizeof info}, "${7:-$1}", "1", ${8:-setup}};
    return ${9:-&info};
}
C
    "$cc" -std=c17 -shared -fPIC -I "$root/include" -o "$dir/$1.so" "$dir/p.c"
}
build good CT_PLUGIN_ABI ct_plugin_entry good 'return CT_OK;'
build other CT_PLUGIN_ABI ct_plugin_entry other 'return CT_OK;'
build abi 'CT_PLUGIN_ABI + 1' ct_plugin_entry abi 'return CT_OK;'
build noentry CT_PLUGIN_ABI something_else noentry 'return CT_OK;'
build half CT_PLUGIN_ABI ct_plugin_entry half 'return CT_FAIL(err, CT_ERR_STATE, "gave up half-way");'
build size CT_PLUGIN_ABI ct_plugin_entry size 'return CT_OK;' 'sizeof info - 8'
build name CT_PLUGIN_ABI ct_plugin_entry name 'return CT_OK;' '' stranger
build nosetup CT_PLUGIN_ABI ct_plugin_entry nosetup 'return CT_OK;' '' '' 0
build nothing CT_PLUGIN_ABI ct_plugin_entry nothing 'return CT_OK;' '' '' '' '(void)info.abi, NULL'
build thief CT_PLUGIN_ABI ct_plugin_entry good 'return CT_OK;'
build silent CT_PLUGIN_ABI ct_plugin_entry silent 'return CT_ERR_MEMORY;'
sed 's/^static ct_status setup/extern int ct_of_no_version(void);\n&/; s/^    static const char \*const last/    CT_TRY((ct_status)ct_of_no_version());\n&/' "$dir/p.c" >"$dir/q.c"
"$cc" -std=c17 -shared -fPIC -I "$root/include" -o "$dir/newer.so" "$dir/q.c"
echo garbage >"$dir/garbage.so"

run() {
    "$bin" train --module llama3 --config llama3_debugmodel --training.steps 1 --training.local-batch-size 1 --training.seq-len 16 \
        --metrics.disable-color-printing --dump-folder "$dir/out" --override.imports "$@" 2>"$dir/err"
}
run good.all || fail "good.all"
[ "$(grep -c '\[Override\] good.all: .* RMSNorm.Config -> Plaingood.Config' "$dir/err")" = 13 ] && grep -q 'Applied 13 override(s)' "$dir/err" || fail "nodes"
run good.last || fail "good.last"
grep -q '\[Override\] good.last: model_spec.model.norm RMSNorm.Config -> Plaingood.Config' "$dir/err" && grep -q 'Applied 1 override(s)' "$dir/err" || fail "glob"
[ "$("$bin" overrides list good)" = "['good.all', 'good.last']" ] || fail "list"

refused() { # refused PATTERN TOKEN...
    local pattern=$1 code=0
    shift
    run "$@" || code=$?
    [ $code != 0 ] && [ $code -lt 100 ] || fail "exit $code for $*"
    grep -qE -- "$pattern" "$dir/err" || fail "no '$pattern' for $*"
    ! grep -q 'Training starts' "$dir/err" || fail "trained with $*"
}
refused 'missing' missing.x
refused 'abi' abi.all
refused 'ct_plugin_entry' noentry.all
refused 'gave up half-way' half.all
refused 'garbage' garbage.all
refused "size.so': its ct_plugin_info has [0-9]+ bytes, wanted [0-9]+" size.all
refused "calls itself 'stranger', wanted 'name'" name.all
refused 'has no setup function' nosetup.all
refused 'gave nothing' nothing.all
refused "registers the override 'good.all', wanted a name that begins with 'thief.'" thief.all
refused 'setup failed: memory ran out' silent.all
refused 'newer.so.*ct_of_no_version' newer.all
# One that failed leaves no room taken: the next one in the same command works as ever, and what the failed one had registered is not there.
refused "half.*gave up half-way" good.last half.all
refused "good.nothing.*good.all, good.last" good.nothing
refused 'nodot' nodot
refused "good.all.*good.last|good.last.*good.all" good.all good.last
refused "other.all|good.all" good.all other.all
refused 'good.all' good.all good.all
refused 'takes no arguments' 'good.last={"k": 1}'
refused 'JSON|json' 'good.last={"k": '
# After a plug-in that failed half-way nothing of it is there.
code=0
"$bin" overrides list half >"$dir/o" 2>"$dir/err" || code=$?
[ $code != 0 ] && [ ! -s "$dir/o" ] || fail "half is listed"
