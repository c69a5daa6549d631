# SPDX-License-Identifier: Apache-2.0
# For tests of two hosts: two network namespaces with a cable between, 10.77.0.1 (host-a, interface va) and 10.77.0.2 (host-b, vb). Sourced by a
# shell test with its arguments, which then runs on host a in a folder of its own, $dir; "$b COMMAND" runs on host b. Skips where no
# namespaces are permitted. TWO_HOSTS_AS_ROOT: without a namespace of users, where that is possible.
build=$1
bin=$build/bin/ctitan
# Host a is this script again, in namespaces of its own; host b's are held open by a process that sleeps.
if [ -z "${TWO_HOSTS_INSIDE:-}" ]; then
    for tool in unshare nsenter ip; do
        command -v $tool >/dev/null || { echo "skipped: no program $tool here"; exit 77; }
    done
    for flags in ${TWO_HOSTS_AS_ROOT:+"--net --uts"} "--user --map-root-user --net --uts" "--net --uts"; do
        # shellcheck disable=SC2086
        unshare $flags sh -c 'ip link set lo up && ip link add va type veth peer name vb && hostname host-a' 2>/dev/null || continue
        # shellcheck disable=SC2086
        TWO_HOSTS_INSIDE=1 exec unshare $flags bash "$0" "$@"
    done
    echo "skipped: no network namespaces with a veth pair are permitted here"
    exit 77
fi
dir=$(mktemp -d "$build/test-two-hosts-XXXXXX")
unshare --net --uts sh -c 'echo $$ >"$0/holder"; exec sleep 600' "$dir" &
clean_up() { # ends what a test has listed in the file pids, too
    # shellcheck disable=SC2046
    kill $(jobs -p) $(awk '{ print $2, $3 }' pids 2>/dev/null) 2>/dev/null
    wait 2>/dev/null
    rm -rf "$dir"
}
trap clean_up EXIT
cd "$dir" || exit 1
fail() { echo "FAILED: $*"; tail -n 15 log.* 2>/dev/null; exit 1; }
wait_for() { # wait_for COMMAND...: until it succeeds, a minute at most
    for _ in $(seq 1200); do "$@" && return 0; sleep 0.05; done
    fail "waited in vain: $*"
}
wait_for test -s holder
b="nsenter --target $(cat holder) --net --uts"
different() { [ "$(readlink /proc/self/ns/net)" != "$($b readlink /proc/self/ns/net)" ]; }
wait_for different
hostname host-a && $b hostname host-b && ip link set lo up && ip link add va type veth peer name vb &&
    ip link set vb netns "$(cat holder)" && ip addr add 10.77.0.1/24 dev va && ip link set va up &&
    $b ip addr add 10.77.0.2/24 dev vb && $b ip link set vb up && $b ip link set lo up || fail "the cable"
ready() { [ "$(cat /sys/class/net/va/operstate 2>/dev/null || echo up)" = up ]; }
wait_for ready
