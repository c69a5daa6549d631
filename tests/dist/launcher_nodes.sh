# SPDX-License-Identifier: Apache-2.0
# labels: fast
# `ctitan run --nnodes`, the hosts played by processes of this one: numbers and environment, one failure that ends all with one code, restarts,
# and everything in which launchers can disagree. tests/dist/two_hosts.sh has network namespaces.
set -u
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
fail() { echo "FAILED: $*"; tail -n 20 out.* err.*; exit 1; }
# A port that was free a moment ago.
port=$("$bin" run --nproc_per_node 2 --local-ranks-filter 0 --tee 1 --no-python sh -c 'echo $MASTER_PORT' | sed 's/.*://')
node() { # node NAME ARGS...: out.NAME, err.NAME, code.NAME
    local name=$1 code=0
    shift
    timeout 60 "$bin" run "$@" >"out.$name" 2>"err.$name" || code=$?
    echo $code >"code.$name"
}
at="--nnodes 2 --rdzv_endpoint 127.0.0.1:$port"
pair() { # pair CODE_A CODE_B "ARGS_A" "ARGS_B" SCRIPT
    rm -f out.* err.* code.*
    # shellcheck disable=SC2086
    node a $at $3 --no-python sh -c "$5" &
    # shellcheck disable=SC2086
    node b $at $4 --no-python sh -c "$5"
    wait
    [ "$(cat code.a) $(cat code.b)" = "$1 $2" ] || fail "exit $(cat code.a) and $(cat code.b), wanted $1 and $2: $3 | $4"
}
says() { grep -qF -- "$2" "err.$1" || fail "node $1 does not say: $2"; }

# Ranks by node rank, whoever comes first; what torchrun sets.
show='echo "$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $NODE_RANK $GROUP_WORLD_SIZE $ROLE_RANK $ROLE_WORLD_SIZE $TORCHELASTIC_RUN_ID"'
pair 0 0 "-nproc-per-node=2 --node_rank 1 --rdzv_id r" "--nproc_per_node 1 --node-rank 0 --rdzv-id=r" "$show"
[ "$(cat out.b)" = "0 0 3 1 0 0 2 0 3 r" ] && [ "$(sort out.a)" = "[default0]:1 0 3 2 1 1 2 1 3 r
[default1]:2 1 3 2 1 1 2 2 3 r" ] || fail "environment"
# c10d: whoever comes first serves here; together they have all numbers. Without --rdzv-id: none.
pair 0 0 "--rdzv_backend c10d" "--rdzv_backend c10d" "$show"
[ "$(sort out.a out.b)" = "0 0 2 1 0 0 2 0 2 none
1 0 2 1 1 1 2 1 2 none" ] || fail "c10d"
# One of them asks for a number.
pair 0 0 "--rdzv_backend c10d" "--rdzv_backend c10d --node_rank 0" "$show"
[ "$(cut -d' ' -f1 out.b)" = 0 ] || fail "c10d with a number"
# --master_addr and --master_port alone.
rm -f out.* err.* code.*
node a --nnodes 2 --node_rank 0 --master_addr 127.0.0.1 --master_port "$port" --no-python sh -c "$show" &
node b --nnodes 2 --node_rank 1 --master_addr 127.0.0.1 --master_port "$port" --no-python sh -c "$show"
wait
[ "$(cat code.a code.b)" = "0
0" ] || fail "master_addr"

# Flags from the environment, as torchrun reads them; the command line goes first.
rm -f out.* err.* code.*
export PET_NNODES=2 PET_RDZV_ENDPOINT=127.0.0.1:$port PET_NPROC_PER_NODE=1 PET_RDZV_BACKEND=c10d
node a --no-python sh -c "$show" &
node b --nproc_per_node 2 --no-python sh -c "$show"
wait
PET_NNODES=x node c --no-python true
unset PET_NNODES PET_RDZV_ENDPOINT PET_NPROC_PER_NODE PET_RDZV_BACKEND
[ "$(cat code.a) $(cat code.b) $(cat code.c)" = "0 0 2" ] && [ "$(cat out.a out.b | wc -l)" = 3 ] || fail "PET_ variables"
says c "environment variable PET_NNODES: "

# A failure on either ends both with its code; both name the rank.
pair 9 9 "--node_rank 0 --nproc_per_node 2" "--node_rank 1" '[ $RANK = 2 ] && exit 9; exec sleep 50'
for n in a b; do says $n "rank 2 (local rank 0, pid "; says $n "ended with exit code 9"; done
pair 137 137 "--node_rank 0" "--node_rank 1" '[ $RANK = 0 ] && kill -KILL $$; exec sleep 50'
for n in a b; do says $n "rank 0 (local rank 0, pid "; says $n "was killed by SIGKILL"; done
# A rank that lost its peer (75) is an effect; the cause is told, although it comes later.
pair 9 9 "--node_rank 0" "--node_rank 1" '[ $RANK = 0 ] && { : >told; exit 75; }; until [ -e told ]; do :; done; exit 9'
says a "rank 1 (local rank 0, pid "
# One node is done, then the other fails.
pair 5 5 "--node_rank 0" "--node_rank 1" '[ $RANK = 0 ] && { : >gone; exit 0; }; until [ -e gone ]; do :; done; exit 5'

# Restarts, counted on all; a wrong command line (2) is not tried again.
pair 0 0 "--node_rank 0 --max_restarts 2" "--node_rank 1 --max_restarts 2" '[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exec echo again; [ $RANK = 1 ] && exit 3; exec sleep 50'
for n in a b; do says $n "starting all ranks again (1 of 2)"; [ "$(cat out.$n)" = again ] || fail "again"; done
pair 4 4 "--node_rank 0 --max_restarts 1" "--node_rank 1 --max_restarts 1" '[ $RANK = 0 ] && exit 4; exec sleep 50'
pair 2 2 "--node_rank 0 --max_restarts 1" "--node_rank 1 --max_restarts 1" '[ $RANK = 0 ] && exit 2; exec sleep 50'
grep -q again err.a err.b && fail "started again after exit code 2"

# A node's launcher is killed: the other ends; whichever it is.
for victim in a b; do
    rm -f out.* err.* code.*
    # shellcheck disable=SC2086
    node a $at --node_rank 0 --no-python sh -c 'echo $PPID >pid.a; : >up.a; exec sleep 50' &
    # shellcheck disable=SC2086
    node b $at --node_rank 1 --no-python sh -c 'echo $PPID >pid.b; : >up.b; exec sleep 50' &
    for _ in $(seq 200); do [ -e up.a ] && [ -e up.b ] && break; sleep 0.05; done
    kill -KILL "$(cat pid.$victim)" || fail "no launcher"
    wait
    rm -f up.a up.b
    [ "$(cat code.$victim)" = 137 ] || fail "the killed launcher: $(cat code.$victim)"
    if [ $victim = a ]; then
        [ "$(cat code.b)" = 75 ] || fail "node b: $(cat code.b)"
        says b "the node that serves the meeting is gone"
    else
        [ "$(cat code.a)" = 75 ] || fail "node a: $(cat code.a)"
        says a "node 1 ("
        says a "is gone: the connection to its launcher broke"
    fi
done

# SIGTERM to one launcher reaches all ranks; their own exit code is the run's.
rm -f out.* err.* code.*
script='trap "echo stopping; exit 75" TERM; echo ready; while :; do sleep 0.1; done'
# shellcheck disable=SC2086
node a $at --node_rank 0 --no-python sh -c "$script" &
# shellcheck disable=SC2086
node b $at --node_rank 1 --no-python sh -c 'echo $PPID >pid.b; '"$script" &
for _ in $(seq 200); do grep -q ready out.a && grep -q ready out.b && break; sleep 0.05; done
kill -TERM "$(cat pid.b)"
wait
[ "$(cat code.a code.b)" = "75
75" ] && grep -q stopping out.a && grep -q stopping out.b || fail "SIGTERM"
# A scheduler asks both launchers, and ranks too, at once: that is one request, and ranks have their time. Asked again, all end at once.
for again in 0 1; do
    rm -f out.* err.* code.* pid.* go
    script='trap "echo stopping; while [ ! -e go ]; do sleep 0.05; done; echo saved; exit 75" TERM; echo ready; while :; do sleep 0.05; done'
    # shellcheck disable=SC2086
    node a $at --node_rank 0 --no-python sh -c 'echo $PPID >pid.a; '"$script" &
    # shellcheck disable=SC2086
    node b $at --node_rank 1 --no-python sh -c 'echo $PPID >pid.b; '"$script" &
    for _ in $(seq 200); do grep -q ready out.a && grep -q ready out.b && break; sleep 0.05; done
    kill -TERM "$(cat pid.a)" "$(cat pid.b)"
    for _ in $(seq 200); do grep -q stopping out.a && grep -q stopping out.b && grep -q 'another node\|SIGTERM' err.a err.b && break; sleep 0.05; done
    if [ $again = 1 ]; then
        kill -TERM "$(cat pid.b)"
        wait
        grep -q saved out.a out.b && fail "asked again: the ranks had their time"
        [ "$(cat code.a code.b)" = "137
137" ] || fail "asked again: $(cat code.a code.b)"
    else
        : >go
        wait
        [ "$(cat code.a code.b)" = "75
75" ] && grep -q saved out.a && grep -q saved out.b || fail "both launchers were asked: $(cat code.a code.b)"
    fi
done

# Disagreements: one line each, and all end.
late="--rdzv_conf join_timeout=1"
pair 2 2 "--node_rank 0" "--node_rank 1 --max_restarts 3" true
says a "node 1 ("; says b "was started with --max-restarts 3, the node that serves with 0"
pair 75 2 "--node_rank 0 $late" "--node_rank 1 --rdzv_id other $late" true
says b "turns this one away: its --rdzv-id is 'other', this run's is 'none'"
says a "2 nodes are wanted, within 1 s there came 1: node 0 ("; says a "its --rdzv-id is 'other'"
pair 2 2 "--node_rank 0" "--node_rank 1 --nnodes 3" true
says a "was started with --nnodes 3, the node that serves with 2"
rm -f out.* err.* code.*
for n in a b c; do
    # shellcheck disable=SC2086
    node $n $at --nnodes 3 --node_rank $([ $n = a ] && echo 0 || echo 1) --no-python true &
done
wait
[ "$(cat code.a code.b code.c | sort -u)" = 2 ] || fail "one number twice"
for n in a b c; do says $n "node 1 came twice, from "; [ "$(wc -l <err.$n)" = 1 ] || fail "more than a line"; done
# Nobody serves; nobody comes.
# shellcheck disable=SC2086
node a $at --node_rank 1 $late --no-python true
[ "$(cat code.a)" = 75 ] && says a "nobody serves the meeting of the nodes at 127.0.0.1:$port within 1 s: Connection refused; node 0 does, where it runs"
# shellcheck disable=SC2086
node a $at --rdzv_backend c10d $late --no-python true
[ "$(cat code.a)" = 75 ] && says a "2 nodes are wanted, within 1 s there came 1: the node on "

# Wrong command lines.
for bad in "--nnodes 2 --node_rank 0" "--nnodes 2 --rdzv_endpoint h:1" "--nnodes 2 --rdzv_endpoint h:0 --node_rank 0" "--nnodes 1:2" "--nnodes 0" \
    "--nnodes 2 --node_rank 2 --rdzv_endpoint h:1" "--node_rank 1" "--nnodes 2 --standalone --node_rank 0" "--rdzv_conf x" "--rdzv_conf x=1" "--rdzv_conf is_host=maybe"; do
    # shellcheck disable=SC2086
    node a $bad --no-python true
    [ "$(cat code.a)" = 2 ] && [ "$(wc -l <err.a)" = 1 ] || fail "not one line and exit 2: $bad"
done
echo "all fine"
