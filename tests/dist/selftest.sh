# SPDX-License-Identifier: Apache-2.0
# rooms: comm/gloo
# labels: slow
# `ctitan selftest`: right and with all its parts on 1, 2 and 4 ranks and on a mesh, over gloo and MPI; a damaged link, a sum in another order, a
# rank that hangs, options that differ: each is named, with the exit code that belongs to it.
set -u
build=$1
bin=$build/bin/ctitan
dir=$(mktemp -d "$build/test-selftest-XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
fail() { echo "FAILED: $*"; tail -n 20 log; exit 1; }
export OMP_NUM_THREADS=1
sizes=(--sizes 1024,100000 --link-size 20000)
says() { grep -qE -- "$1" "${2:-log}" || fail "not said: $1"; }
count() { [ "$(grep -cE -- "$1" "$2")" = "$3" ] || fail "$(grep -cE -- "$1" "$2") lines '$1', wanted $3"; }

# 1. All is well. One rank needs no launcher.
"$bin" selftest "${sizes[@]}" >log 2>&1 || fail "one rank"
says '^1 rank over local$'
says '^every link, collective and ordered sum: right$'
for n in 2 4; do
    "$bin" run --nproc_per_node $n selftest "${sizes[@]}" --output "table.$n" >log 2>&1 || fail "$n ranks"
    says "^$n ranks over gloo\$" table.$n
    count "^ *[0-9]+ +$(hostname) +[0-9.]+ [GM]B/s +[0-9.]+ us +[0-9.]+ [GM]B/s\$" table.$n $n
    count "^ +[0-9] +[0-9] +[0-9.]+ [GM]B/s +[0-9.]+ us\$" table.$n $((n * (n - 1)))
    count "^  (all_reduce|all_gather|reduce_scatter|broadcast|all_to_all) +(1.00|97.66) KiB +[0-9.]+ us +[0-9.]+ [GM]B/s\$" table.$n 10
    says "^slowest links: rank [0-9] \($(hostname)\), " table.$n
    says "^slowest rank in itself: rank [0-9] \($(hostname)\), " table.$n
done
"$bin" run --nproc-per-node=4 -m selftest "${sizes[@]}" --json --tensor-parallel-degree 2 --data-parallel-replicate-degree=2 >log 2>&1 || fail "a mesh"
sed -n 's/^\[default0\]:{/{/p' log >mesh.json
says '^\{"engine": "gloo", "world_size": 4, "ok": true, .*"failures": \[\]\}$' mesh.json
for group in '"world", "ranks": 4' '"dp_replicate", "ranks": 2' '"tp", "ranks": 2'; do
    [ "$(grep -o "{\"group\": $group" mesh.json | wc -l)" = 11 ] || fail "mesh: $group"
done
grep -q dp_shard mesh.json && fail "mesh: an axis of one"

# 2. Over MPI, started by mpirun.
mpirun=$(command -v mpirun.openmpi || command -v mpirun)
if [ -n "$mpirun" ] && "$mpirun" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE' && ldd "$build/lib/ctitan/engines/mpi.so" 2>/dev/null | grep -q libmpi.so; then
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 "$mpirun" --oversubscribe -n 2 "$bin" selftest "${sizes[@]}" --engine mpi \
        >log 2>&1 || fail "mpirun"
    says '^2 ranks over mpi$'
    says '^every link, collective and ordered sum: right$'
fi

# 3. Faults: the program with an engine that damages messages in the place of MPI's.
mkdir -p faulty/bin faulty/lib/ctitan/engines
cp "$bin" faulty/bin/ctitan
cp "$build/tests/engines/mpi.so" "$build/lib/ctitan/engines/gloo.so" faulty/lib/ctitan/engines/
faulty() { timeout 120 faulty/bin/ctitan run --nproc_per_node 4 selftest "${sizes[@]}" --engine mpi "$@" >log 2>&1; }
faulty || fail "the engine of the test, without a fault"
export TEST_FAULT=flip:1:3
faulty
[ $? = 1 ] || fail "a damaged link: exit code"
host=$(hostname)
says "^\[default0\]:ctitan selftest: link from rank 1 \($host\) to rank 3 \($host\): 1 of 20000 bytes are wrong, the first is number 10000\$"
says "^\[default0\]:ctitan selftest: rank 3 \($host\): all_gather of 97.66 KiB f32 in group 'world' from rank 1 \($host\): 1 of 6250 elements are wrong"
says "^\[default0\]:ctitan selftest: rank 3 \($host\): all_to_all of 97.66 KiB f32 in group 'world' from rank 1 "
says '^\[default0\]:every link, collective and ordered sum: WRONG'
says '^\[default0\]:ctitan selftest: [0-9]+ checks failed$'
grep -E 'link from' log | grep -v 'from rank 1 .*to rank 3' && fail "a damaged link: others are accused"
faulty --json
says '"ok": false'
says '"failures": .*\{"rank": 3, "from": 1, "op": "exchange", '
export TEST_FAULT=swap:0
faulty
[ $? = 1 ] || fail "sums in another order: exit code"
says "^\[default0\]:ctitan selftest: rank 0 \($host\): all_reduce of 256.00 KiB, bits of the ordered sum, f32 in group 'world': "
says "reduce_scatter of .*bits of the ordered sum, f64 "
grep -E 'reduce_scatter of [0-9.]+ .iB f32' log && fail "sums in another order: a sum of whole numbers is accused"
unset TEST_FAULT

# 4. A rank that hangs is named within the time limit, options that differ are refused.
cat >hang <<END
#!/bin/sh
[ "\$RANK" != 1 ] || exec sleep 100
exec "$bin" selftest ${sizes[*]} --timeout-seconds 2
END
cat >differ <<END
#!/bin/sh
exec "$bin" selftest --sizes \$((1024 + RANK)) --link-size 1024
END
chmod +x hang differ
timeout 60 "$bin" run --nproc_per_node 2 --no-python ./hang >log 2>&1
[ $? = 75 ] || fail "a rank that hangs: exit code"
says 'rank 1 did not come within 2000 ms'
timeout 60 "$bin" run --nproc_per_node 2 --no-python ./differ >log 2>&1
[ $? = 2 ] || fail "options that differ: exit code"
says 'the options of selftest: rank 1 and rank 0 differ'

# 5. What cannot be meant.
refuse() { # refuse MESSAGE ARGS...
    local message=$1
    shift
    "$bin" selftest "$@" >log 2>&1
    [ $? = 2 ] || fail "$*: exit code"
    says "$message"
}
refuse "^ctitan selftest: --sizes: numbers of bytes from 1 to 1073741824 are wanted, found '0'\$" --sizes 4,0
refuse "^ctitan selftest: --sizes: 1 to 16 numbers are wanted, found 17\$" --sizes 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
refuse "the degrees 1 \(replicas\) x 1 \(shards\) x 3 \(tensor\) are not the 1 ranks" --tensor-parallel-degree 3
refuse "the degrees 1 \(replicas\) x 0 \(shards\) x 1 \(tensor\) are not the 1 ranks" --data-parallel-shard-degree 0
refuse "^--sises: there is no such option; nearest is --sizes" --sises 3
refuse "^--engine: 'nccl' is none of auto, gloo, mpi" --engine nccl
echo "selftest: right where all is right, names what is wrong"
