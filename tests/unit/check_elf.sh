#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# labels: fast
# tools/check-elf finds what it should in files made wrong on purpose: symbol versions that Ubuntu 22.04 lacks, libraries that are not in the
# package, search paths that are not relative.
set -u
build=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
cc=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
{ command -v "$cc" && command -v readelf; } >/dev/null || { echo "no compiler or no readelf here"; exit 77; }
failed=0
expect() { # expect CODE TEXT ARGUMENT...
    local out code
    out=$("$root/tools/check-elf" "${@:3}" 2>&1)
    code=$?
    [ $code = "$1" ] && [[ $out == *"$2"* ]] || { echo "wanted exit $1 and '$2', got exit $code and: $out"; failed=1; }
}
# user FOLDER VERSION [FLAG...]: a library there that needs f at VERSION of libgiver.so.
user() {
    mkdir -p "$1" giver
    echo "$2 { global: f; local: *; };" >map
    echo 'int f(void); int f(void) { return 1; }' >f.c
    echo 'int f(void); int g(void); int g(void) { return f(); }' >g.c
    "$cc" -shared -fPIC -nostdlib -Wl,--version-script=map -Wl,-soname,libgiver.so -o giver/libgiver.so f.c
    "$cc" -shared -fPIC -nostdlib "${@:3}" -o "$1/user.so" g.c giver/libgiver.so
}
expect 2 "usage" nowhere
mkdir empty
echo text >empty/text.so
expect 2 "no ELF file" empty
user old GLIBC_2.35
expect 0 "1 files, none wrong" old
user new GLIBC_2.36
expect 1 "user.so: needs GLIBC_2.36, wanted at most GLIBC_2.35" new
user next GLIBC_2.100
expect 1 "needs GLIBC_2.100" next
user stdcxx GLIBCXX_3.4.31
expect 1 "needs GLIBCXX_3.4.31, wanted at most GLIBCXX_3.4.30" stdcxx
user other OTHER_9.9
expect 0 "none wrong" other
expect 1 "needs 'libgiver.so', which is not in the package" other --packaged
cp giver/libgiver.so other/
expect 0 "2 files, none wrong" other --packaged
user path GLIBC_2.2.5 -Wl,-rpath,'$ORIGIN/..:/usr/lib/x'
expect 1 "looks for libraries in '/usr/lib/x'" path --packaged
[ $failed = 0 ] && echo "all fine"
exit $failed
