# SPDX-License-Identifier: Apache-2.0
# labels: slow
# rooms: comm/gloo
# Training on NPUs, as the doubles of CANN play them: the quick start's two commands, FSDP, tensor parallelism and replicas in bf16 with the losses of the
# CPU, validation and checkpoints that either kind of device goes on from, ranks and devices that do not fit, and faults, each with one clear error on the
# ranks that see it.
set -eu
build=$1
bin=$1/bin/ctitan
for lib in ascendcl nnopbase opapi hccl; do
    [ -e "$build/fake_cann/lib64/lib$lib.so" ] || { echo "skipped: the double of lib$lib is not built"; exit 77; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "$*"; for f in out out.0 out.1; do [ ! -e $f ] || { echo "--- $f"; tail -n 30 $f; }; done; exit 1; }
unset HCCL_HOST_SOCKET_PORT_RANGE HCCL_CONNECT_TIMEOUT HCCL_EXEC_TIMEOUT HCCL_BUFFSIZE HCCL_DETERMINISTIC
export ASCEND_HOME_PATH=$build/fake_cann ASCEND_OPP_PATH=$dir/opp FAKE_CANN_DEVICES=4 FAKE_CANN_LEAKS=fail FAKE_CANN_DELAY=0
mkdir opp
small=(--module llama3 --config llama3_debugmodel --training.steps 3 --training.seq-len 64 --metrics.log-freq 1 --metrics.disable-color-printing --debug.seed 3)
bf16=(--training.mixed-precision-param bfloat16)
losses() { grep -oE 'step: +[0-9]+ +loss: +[0-9.]+ +grad_norm: +[0-9.]+' "$1" | sed -E 's/[a-z_]+://g' | sort -n | uniq; }
# Two runs in bf16 whose sums have other orders: losses within one rounding of bf16 (2^-9 relative), norms, which sum squares of rounded gradients, within 2^-6.
near() { # near A B WHAT
    [ -s "$1" ] && [ "$(wc -l <"$1")" = "$(wc -l <"$2")" ] || fail "$3: $(wc -l <"$1") and $(wc -l <"$2") steps"
    paste "$1" "$2" | awk -v what="$3" '{ d = $2 - $5; if (d < 0) d = -d; e = ($3 - $6) / $6; if (e < 0) e = -e
        if ($1 != $4 || d > $5 / 512 || e > 1 / 64) { print what ": step", $1, "loss", $2, "and", $5, "norm", $3, "and", $6; bad = 1 } } END { exit bad }' || fail "$3"
}

# ---- the quick start: one device, two devices
ASCEND_RT_VISIBLE_DEVICES=0 "$bin" train "${small[@]}" --training.local-batch-size 2 >out 2>&1 || fail "one device"
grep -q 'Device: npu 0 of 1 (--device auto)' out || fail "the device is not named"
grep -q 'NPU capacity: Ascend910B4 with 29.50GiB memory' out || fail "its memory"
grep -q 'Peak FLOPS used for computing MFU: 2.458e+14 (Ascend910B4, bf16, dense)' out || fail "its peak"
losses out >npu
"$bin" train "${small[@]}" "${bf16[@]}" --training.local-batch-size 2 --device cpu >out 2>&1 || fail "the CPU"
losses out >cpu
near npu cpu "one device and the CPU"
two() { # two LOG ARGS...: two ranks, as the quick start does
    local log=$1
    shift
    ASCEND_RT_VISIBLE_DEVICES=0,1 HCCL_NPU_SOCKET_PORT_RANGE=60000-60200 "$bin" run --nproc_per_node=2 --rdzv_backend c10d --rdzv_endpoint=localhost:0 \
        --local-ranks-filter 0 --tee 3 -m torchtitan.train "${small[@]}" "$@" >"$log" 2>&1
}
two out --training.local-batch-size 1 --override.imports npu_compat.npu_attention || fail "two devices"
grep -q 'Collectives of the step over hccl, on the devices' out || fail "HCCL is not named"
grep -q 'Applied 6 override(s)' out || fail "the override"
losses out >npu
two out --training.local-batch-size 1 --device cpu "${bf16[@]}" || fail "two ranks on the CPU"
losses out >cpu
near npu cpu "FSDP over two devices and two ranks on the CPU"
two out --training.local-batch-size 2 --parallelism.tensor-parallel-degree 2 || fail "TP"
losses out >npu
two out --training.local-batch-size 2 --parallelism.tensor-parallel-degree 2 --device cpu "${bf16[@]}" || fail "TP on the CPU"
losses out >cpu
near npu cpu "TP over two devices"
two out --training.local-batch-size 1 --parallelism.data-parallel-replicate-degree 2 --parallelism.data-parallel-shard-degree 1 || fail "DDP"
losses out >ddp
two out --training.local-batch-size 1 --parallelism.data-parallel-replicate-degree 2 --parallelism.data-parallel-shard-degree 1 --device cpu "${bf16[@]}" || fail "DDP on the CPU"
losses out >cpu
near ddp cpu "replicas"

# ---- validation, a checkpoint, and going on with it on the CPU and on devices: the step's and the host's collectives side by side
cut() { # cut FOLDER STEPS ARGS...
    local folder=$1 steps=$2
    shift 2
    two out --training.local-batch-size 1 --training.steps "$steps" --lr-scheduler.total-steps 4 --checkpoint.enable --checkpoint.interval 2 --validator.enable --validator.steps 1 --validator.freq 2 \
        --validator.dataloader.dataset c4_test --dump-folder "$dir/$folder" "$@"
}
cut whole 4 --debug.deterministic || fail "four steps"
losses out >whole.txt
grep -q 'validate step:  2' out || fail "no validation"
cut half 2 --debug.deterministic || fail "two steps"
cp -r half other
cut half 4 --debug.deterministic || fail "two more"
losses out >rest.txt
tail -n 2 whole.txt | cmp -s - rest.txt || fail "resumed on devices: $(cat rest.txt) after $(cat whole.txt)"
cut other 4 --device cpu "${bf16[@]}" || fail "two more on the CPU"
losses out >rest.txt
tail -n 2 whole.txt >want.txt
near rest.txt want.txt "resumed on the CPU"

# ---- ranks and devices that do not fit
refused() { # refused CODE TEXT LOG
    [ "$1" = 2 ] || fail "exit code $1: $2"
    grep -qF -- "$2" out || fail "no line: $2"
}
rc=0; ASCEND_RT_VISIBLE_DEVICES=0 "$bin" run --nproc_per_node=2 --rdzv_endpoint=localhost:0 --tee 3 -m torchtitan.train "${small[@]}" >out 2>&1 || rc=$?
refused $rc "this host has local ranks 0 to 1 and npu devices 0: each rank takes the device of its LOCAL_RANK (ASCEND_RT_VISIBLE_DEVICES is '0'"
rc=0; ASCEND_RT_VISIBLE_DEVICES=0,1,9 "$bin" train "${small[@]}" >out 2>&1 || rc=$?
refused $rc "ASCEND_RT_VISIBLE_DEVICES is '0,1,9', 3 devices, and CANN sees 2 of them"
rc=0; ASCEND_RT_VISIBLE_DEVICES=1,0 "$bin" train "${small[@]}" --device npu >out 2>&1 || rc=$?
refused $rc "ASCEND_RT_VISIBLE_DEVICES is '1,0', wanted numbers in ascending order"

# A launcher may give each rank its own device, as Slurm does.
both() { # both LOG LIST0 LIST1: two ranks with lists of their own
    local port=$((20000 + RANDOM % 20000)) r rc=0 pids=()
    for r in 0 1; do
        env RANK=$r WORLD_SIZE=2 LOCAL_RANK=$r LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port ASCEND_RT_VISIBLE_DEVICES="$(eval echo "\$$((r + 2))")" \
            timeout 120 "$bin" train "${small[@]}" --training.steps 1 --training.local-batch-size 1 >"$1.$r" 2>&1 &
        pids+=($!)
    done
    for r in 0 1; do wait "${pids[$r]}" || rc=$?; done
    return $rc
}
both out 2 3 || fail "lists of their own"
grep -q 'Device: npu 0 of 1' out.0 && grep -q 'Device: npu 0 of 1' out.1 || fail "the devices of lists of their own"
rc=0; both out 2 2 || rc=$?
[ $rc = 2 ] && grep -q "this host has local ranks 0 to 1 and npu devices 0: .*'2'" out.1 || fail "one device in two lists: $rc"

# ---- faults: rank 1 alone has them
export FAKE_CANN_TIME_SCALE=0.01 FAKE_CANN_LEAKS=print
faulty() { # faulty CODE0 CODE1 NAME=VALUE...
    local want0=$1 want1=$2 port=$((20000 + RANDOM % 20000)) r rc pids=()
    shift 2
    for r in 0 1; do
        (
            [ $r = 0 ] || export "$@"
            exec env RANK=$r WORLD_SIZE=2 LOCAL_RANK=$r LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port timeout 120 "$bin" train "${small[@]}" \
                --training.local-batch-size 1 --dump-folder "$dir/faulty" >out.$r 2>&1
        ) &
        pids+=($!)
    done
    rc=0; wait "${pids[0]}" || rc=$?
    [ $rc = "$want0" ] || fail "$*: rank 0 ended with $rc, wanted $want0"
    rc=0; wait "${pids[1]}" || rc=$?
    [ $rc = "$want1" ] || fail "$*: rank 1 ended with $rc, wanted $want1"
    for r in 0 1; do
        [ "$(grep -c 'ERROR' out.$r)" = 1 ] || fail "$*: rank $r has not one error"
    done
}
says() { grep 'ERROR' "out.$1" | grep -qE -- "$2" || fail "rank $1 does not say: $2"; }
faulty 75 1 FAKE_CANN_FAULT=port_npu
says 1 "group 'dp_shard' of 2 ranks: .*EI0020.*set HCCL_NPU_SOCKET_PORT_RANGE"
says 0 "group 'dp_shard' of 2 ranks: .*have not come: 1"
faulty 75 1 FAKE_CANN_FAULT=open
says 0 "waiting for the devices of all ranks: .*rank 1 is gone"
says 1 'npu 1: aclrtSetDevice .*507033'
grep -q 'on the devices: each may take 0:05:00 (HCCL_EXEC_TIMEOUT)' out.0 || fail "the limit in force"
HCCL_EXEC_TIMEOUT=200 faulty 75 75 FAKE_CANN_FAULT=hccl_absent=40
grep -q 'on the devices: each may take 0:03:20 (HCCL_EXEC_TIMEOUT)' out.0 || fail "the limit that the user set"
says 0 "step 2: rank 0, with all_gather [0-9]+ of 'dp_shard.beside' to .* on the device's streams .*EI0002"
"$bin" flight-recorder "$dir/faulty/comm_traces" >out || fail "the flight recorder"
grep -qE "of 'dp_shard(.beside)?'" out || fail "the recorder has no call of the devices"
faulty 75 1 FAKE_CANN_FAULT=ecc=500
says 1 'step 1: rank 1, .*507054 \(device memory error of several bits \(ECC\)\)'
faulty 75 1 FAKE_CANN_FAULT=lost=900
says 1 "507010 \\(the device's heartbeat is lost\\)"
faulty 75 1 FAKE_CANN_MEMORY=100
says 1 'EI0011.*lower HCCL_BUFFSIZE'

faulty 2 2 ASCEND_HOME_PATH=/nowhere
says 0 "this rank took 'npu': what --device auto takes .* rank 1 and rank 0 differ"
says 1 "this rank took 'cpu', not npu: .*no CANN"

# A rank that is killed: the launcher ends the other, and one line says who it was.
rc=0
ASCEND_RT_VISIBLE_DEVICES=0,1 FAKE_CANN_TIME_SCALE=1 timeout 120 "$bin" run --nproc_per_node=2 --rdzv_endpoint=localhost:0 --tee 3 -m torchtitan.train "${small[@]}" \
    --training.steps 100000 --training.local-batch-size 1 --dump-folder "$dir/killed" >out 2>&1 &
launcher=$!
until grep -q 'step:  2' out 2>/dev/null; do kill -0 $launcher 2>/dev/null || fail "it ended by itself"; sleep 0.1; done
victim=$(pgrep -P "$(pgrep -P $launcher)" | sort -n | tail -n 1) # under timeout, under the launcher
kill -KILL "$victim"
wait $launcher || rc=$?
[ $rc = 137 ] || fail "a killed rank: exit code $rc"
grep -qE 'ctitan run: rank [01] .*SIGKILL' out || fail "it is not said who was killed"

# Out of memory: the numbers and a way out, on one device.
rc=0; FAKE_CANN_MEMORY=64 ASCEND_RT_VISIBLE_DEVICES=0 "$bin" train "${small[@]}" >out 2>&1 || rc=$?
refused $rc 'on each rank, the device has 64.00 MiB; it would fit with'
echo fine
