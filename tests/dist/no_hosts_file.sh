# SPDX-License-Identifier: Apache-2.0
# labels: fast
# A bare container: no /etc/hosts, no name server. The ranks of one host meet all the same. Needs namespaces.
set -u
bin=$1/bin/ctitan
unshare --user --map-root-user --mount --net true 2>/dev/null || { echo "no namespaces here"; exit 77; }
out=$(timeout 60 unshare --user --map-root-user --mount --net sh -c '
    mount --bind /dev/null /etc/hosts && mount --bind /dev/null /etc/resolv.conf && ip link set lo up || exit 77
    exec "$0" run --nproc_per_node=2 --no-python sh -c "echo rank \$RANK at \$MASTER_ADDR"' "$bin" 2>&1)
code=$?
[ $code != 77 ] || { echo "no bind mounts here, or no ip"; exit 77; }
[ $code = 0 ] && [ "$(grep -c 'rank [01] at ' <<<"$out")" = 2 ] || { echo "exit $code: $out"; exit 1; }
echo "all fine"
