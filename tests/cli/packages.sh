# SPDX-License-Identifier: Apache-2.0
# labels: long
# The packages are made, hold nothing that Ubuntu 22.04 lacks, and run in a bare Debian 12: minutes, root and a Debian mirror.
set -u
cd "$(dirname "$0")/../.." || exit 1
{ [ "$(id -u)" = 0 ] && command -v debootstrap cmake ninja; } >/dev/null || { echo "root, debootstrap, cmake and ninja are needed"; exit 77; }
tools/make-packages || exit 1
exec tools/check-packages
