#!/bin/bash
# labels: fast
# SPDX-License-Identifier: Apache-2.0
# tools/check-layers finds what it should in a tree made wrong on purpose, and nothing in ours.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
tool=$root/tools/check-layers
tree=$(mktemp -d "$1/test-layers-XXXXXX")
trap 'rm -rf "$tree"' EXIT
failed=0

# expect CODE TEXT: the tool on $tree exits with CODE and prints TEXT.
expect() {
    local out rc
    out=$("$tool" "$tree" 2>&1)
    rc=$?
    if [ $rc -ne "$1" ] || [[ $out != *"$2"* ]]; then
        printf 'wanted exit %s and "%s", got exit %s and:\n%s\n' "$1" "$2" "$rc" "$out"
        failed=1
    fi
}

# put FILE LINE...: writes the lines to FILE of the tree.
put() {
    mkdir -p "$tree/$(dirname "$1")"
    printf '%s\n' "${@:2}" >"$tree/$1"
}

put CMakeLists.txt '# ct_room(ghost)' 'ct_room(base)' 'ct_room(ir base)' 'if(X)' '  ct_room(backend ir base)' 'endif()' \
    'ct_room(backend/a backend ir base)' 'ct_room(backend/b backend ir base)'
put include/ctitan/x.h '#include <stdint.h>' '#include "ctitan/y.h"'
put src/base/b.c '#include "base/b.h"' '#include "ctitan/x.h"' '#include "neighbour.h"' '#include <sys/stat.h>'
put src/ir/i.h '#include "base/b.h"'
put src/backend/back.c '#include "ir/i.h"' '#include "backend/back_internal.h"'
put src/backend/a/a.cu '  #  include "backend/back.h"' '#include "backend/a/own.h"'
put src/cli/main.c '#include "backend/b/b.h"' '#include "ir/i.h"'
expect 0 'none wrong'

put src/base/up.c '/* one */' '' '#include "ir/i.h"'
expect 1 'src/base/up.c:3: base may not include ir'
put src/base/up.c '#include "ir/i.h" /* layers: a reason */'
expect 0 '1 excused'
put src/base/up.c '#include "ir/i.h" /* layers: */'
expect 1 'src/base/up.c:1: base may not include ir'
put src/base/up.c '#include <ir/i.h>'
expect 1 'src/base/up.c:1: base may not include ir'
put src/base/up.c '#include "../ir/i.h"'
expect 1 'src/base/up.c:1: "../ir/i.h": write the path from src/'
put src/base/up.c '#include "ghost/i.h"'
expect 1 'src/base/up.c:1: "ghost/i.h" lies in no room'
put src/base/up.c '#include "cli/i.h"'
expect 1 'src/base/up.c:1: base may not include cli'
put src/base/up.c '/* #include "ir/i.h" is what it must not say */'
expect 0 'none wrong'

put src/backend/a/side.cc '#include "backend/b/b.h"'
expect 1 'src/backend/a/side.cc:1: backend/a may not include backend/b'
put src/backend/a/side.cc '#include "backend/back_internal.h"'
expect 1 'src/backend/a/side.cc:1: "backend/back_internal.h" stays inside backend'
rm "$tree/src/backend/a/side.cc"

put include/ctitan/x.h '#include "base/b.h"'
expect 1 'include/ctitan/x.h:1: include/ctitan may not include "base/b.h"'
put include/ctitan/x.h '#include <stdint.h>'
put src/ghost/g.c 'int x;'
expect 1 'src/ghost/g.c:1: this file lies in no room'
rm -r "$tree/src/ghost"
put CMakeLists.txt 'ct_room(base)' 'ct_room(ir basse)'
expect 1 'the row of ir names basse'
put CMakeLists.txt 'project(x)'
expect 2 'no ct_room() line'
rm "$tree/CMakeLists.txt"
expect 2 'no CMakeLists.txt'

"$tool" "$root" || failed=1
exit $failed
