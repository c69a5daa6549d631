#!/bin/bash
# labels: fast
# SPDX-License-Identifier: Apache-2.0
# tools/check-symbols finds wrong names in a library made for it, and none in the libraries of the build.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
tool=$root/tools/check-symbols
folder=$(mktemp -d "$build/test-symbols-XXXXXX")
trap 'rm -rf "$folder"' EXIT
failed=0

expect() {
    local out rc
    out=$("$tool" "$folder" 2>&1)
    rc=$?
    if [ $rc -ne "$1" ] || [[ $out != *"$2"* ]]; then
        printf 'wanted exit %s and "%s", got exit %s and:\n%s\n' "$1" "$2" "$rc" "$out"
        failed=1
    fi
}

from_cache() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
cc=$(from_cache CMAKE_C_COMPILER) ar=$(from_cache CMAKE_AR)

expect 2 'build it first'
# library CODE: makes libct_x.a of the C text.
library() {
    rm -f "$folder/libct_x.a"
    printf '%s\n' "$1" >"$folder/x.c"
    "$cc" -c "$folder/x.c" -o "$folder/x.o" && "$ar" rc "$folder/libct_x.a" "$folder/x.o" || failed=1
}
library 'int ct_a; int cti_b(void) { return 1; } static int own(void) { return 2; } int (*cti_c)(void) = own; int puts(const char *); int ct_d(void) { return puts(""); }'
expect 0 'none wrong'
library 'int ct_a; int helper(void) { return 1; }'
expect 1 'libct_x.a: helper'
library 'int ct_a; int table[4];'
expect 1 'libct_x.a: table'
library 'const int ctitan_x = 1;'
expect 1 'libct_x.a: ctitan_x'
library 'static int own = 1; int *cti_p = &own; __attribute__((weak)) int theirs(void) { return 1; }'
expect 0 'none wrong'

rm -rf "$folder"
"$tool" "$build" || failed=1
exit $failed
