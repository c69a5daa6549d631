# SPDX-License-Identifier: Apache-2.0
# labels: slow
# `ctitan devices`, `ctitan doctor` and plans with NPUs as the doubles of CANN play them: rows, faults, what is missing of CANN, a library that hangs.
set -eu
build=$1
bin=$1/bin/ctitan
for lib in ascendcl nnopbase opapi hccl; do
    [ -e "$build/fake_cann/lib64/lib$lib.so" ] || { echo "skipped: the double of lib$lib is not built"; exit 77; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "$*"; cat out 2>/dev/null; exit 1; }
unset ASCEND_RT_VISIBLE_DEVICES ASCEND_TOOLKIT_HOME LD_LIBRARY_PATH
unset HCCL_NPU_SOCKET_PORT_RANGE HCCL_HOST_SOCKET_PORT_RANGE HCCL_CONNECT_TIMEOUT HCCL_EXEC_TIMEOUT HCCL_IF_BASE_PORT HCCL_BUFFSIZE
export ASCEND_HOME_PATH=$build/fake_cann ASCEND_OPP_PATH=$dir/opp FAKE_CANN_DEVICES=3
mkdir -p opp/built-in/op_impl/ai_core/tbe

# ---- devices
"$bin" devices >out || fail "devices fails"
[ "$(grep -cE '^npu +[0-2] +Ascend910B4 +OK +[0-9.]+ [KMG]?i?B / 29.50 GiB +- +-$' out)" = 3 ] || fail "not three rows"
ASCEND_RT_VISIBLE_DEVICES=1,2 "$bin" devices >out || fail "two of them"
[ "$(grep -c '^npu  *[01] ' out)" = 2 ] && grep -q "^npu: ASCEND_RT_VISIBLE_DEVICES is '1,2'$" out || fail "the visible ones"
FAKE_CANN_SOC=Ascend910_9392 "$bin" devices | grep -qE '^npu +0 +Ascend910_9392 +OK .* 61.00 GiB' || fail "a die of 910C"
FAKE_CANN_FAULT=open "$bin" devices >out || fail "devices that do not open"
[ "$(grep -cE '^npu .* fault ' out)" = 3 ] && grep -q '507033' out && grep -q '^cpu' out || fail "a device that does not open has its row and its reason"
FAKE_CANN_DEVICES=0 "$bin" devices >out || fail "no device"
grep -q '^npu: .*207004' out && ! grep -q '^npu: npu' out || fail "no device: why"
ASCEND_HOME_PATH=/nowhere "$bin" devices >out || fail "no CANN"
[ -d /usr/local/Ascend ] || grep -q '^npu: there is no CANN: ' out || fail "no CANN: why"
"$bin" devices --json >out && grep -q '"kind": "npu"' out && grep -q '"health": "OK"' out || fail "JSON"

# ---- doctor: all there, and each thing missing
root=$dir/root
mkdir -p "$root/usr/local/Ascend/driver" "$root/dev/shm"
printf 'Version=25.2.0\n' >"$root/usr/local/Ascend/driver/version.info"
touch "$root"/dev/{davinci0,davinci1,davinci2,davinci_manager,devmm_svm,hisi_hdc}
export CTITAN_DOCTOR_ROOT=$root
rc=0; "$bin" doctor npu >out || rc=$?
[ $rc = 0 ] || fail "doctor npu with all there: exit code $rc"
for line in 'driver +version 25.2.0' 'device files +3 of' 'stub libraries' 'CANN +loads from' 'CANN version +CANN 9.1' 'kernel package' 'HCCL +loads' \
    'devices +CANN sees 3, Ascend910B4' 'HCCL variables'; do
    grep -qE "^ok +$line" out || fail "no line: $line"
done
wrong() { # wrong LINE VARIABLE=VALUE...
    local want=$1 rc=0
    shift
    env "$@" "$bin" doctor npu --timeout-seconds 2 >out || rc=$?
    [ $rc = 1 ] && grep -qE -- "^fail +$want" out || fail "$*: exit code $rc, wanted a line: $want"
    grep -A1 -E -- "^fail +$want" out | grep -q -- '-> ' || fail "$*: it is not said what to do"
}
wrong 'kernel package +ASCEND_OPP_PATH is not set' ASCEND_OPP_PATH=
wrong 'kernel package +.* has no built-in' ASCEND_OPP_PATH="$dir"
wrong "visible devices +ASCEND_RT_VISIBLE_DEVICES is '0,1,7', CANN sees" ASCEND_RT_VISIBLE_DEVICES=0,1,7
wrong "visible devices +ASCEND_RT_VISIBLE_DEVICES is '2,1'" ASCEND_RT_VISIBLE_DEVICES=2,1
wrong "HCCL variables +HCCL_DETERMINISTIC is 'maybe', wanted false, true or strict" HCCL_DETERMINISTIC=maybe
wrong "HCCL variables +HCCL_CONNECT_TIMEOUT is '5', wanted 120 to 7200" HCCL_CONNECT_TIMEOUT=5
HCCL_EXEC_TIMEOUT=0 "$bin" doctor npu >out || fail "no limit is a doubt"
grep -qE '^warn +HCCL variables +HCCL_EXEC_TIMEOUT is 0' out || fail "no limit"
for version in 7.0 10.0 80.1; do
    FAKE_CANN_VERSION=$version "$bin" doctor npu >out || fail "CANN $version is a doubt"
    grep -qE "^warn +CANN version +CANN $version" out || fail "CANN $version"
done
wrong 'devices +CANN sees 0: .*207004' FAKE_CANN_DEVICES=0
"$build/bin/fake_cann_home" "$build/fake_cann" "$dir/lame" --no libhccl
wrong 'HCCL +there is no HCCL' ASCEND_HOME_PATH="$dir/lame"
"$build/bin/fake_cann_home" "$build/fake_cann" "$dir/none" --no libopapi
wrong 'operators +0 of [0-9]+$' ASCEND_HOME_PATH="$dir/none"
"$build/bin/fake_cann_home" "$build/fake_cann" "$dir/few" --without aclnnSwiGlu,aclnnSwiGluGetWorkspaceSize,aclnnRmsNorm
ASCEND_HOME_PATH=$dir/few "$bin" doctor npu >out || fail "operators that not every run needs"
grep -qE '^warn +operators +[0-9]+ of [0-9]+; not there: (aclnnRmsNorm, aclnnSwiGlu|aclnnSwiGlu, aclnnRmsNorm)$' out || fail "operators that are missing are named"
"$build/bin/fake_cann_home" "$build/fake_cann" "$dir/old" --cann 8.1
printf 'Version=8.0.RC3\n' >opp/version.info
ASCEND_HOME_PATH=$dir/old FAKE_CANN_VERSION=8.1 "$bin" doctor npu >out || fail "CANN 8.1"
grep -qE '^ok +CANN version +CANN 8.1' out && grep -qE '^warn +kernel package .*version 8.0.RC3, and the toolkit is CANN 8.1' out || fail "kernels of another version"
rm opp/version.info
mkdir -p hangs/lib64
echo '#include <unistd.h>
__attribute__((constructor)) static void hang(void) { for (;;) pause(); }' >hang.c
${CC:-cc} -shared -fPIC -o hangs/lib64/libascendcl.so hang.c
wrong 'CANN +CANN did not answer within 2 s' ASCEND_HOME_PATH="$dir/hangs"
ASCEND_HOME_PATH=$dir/hangs "$bin" devices --timeout-seconds 1 >out || fail "devices with a CANN that hangs"
grep -q '^npu: CANN did not answer within 1 s$' out && grep -q '^cpu' out || fail "a CANN that hangs"

# ---- CANN without a part
run=(--module llama3 --config llama3_debugmodel --training.steps 1 --training.seq-len 64 --training.local-batch-size 1)
rc=0; ASCEND_HOME_PATH=$dir/lame "$bin" run --nproc_per_node 2 --rdzv_endpoint=localhost:0 -m torchtitan.train "${run[@]}" >out 2>&1 || rc=$?
[ $rc = 1 ] && grep -q 'there is no HCCL: neither libhccl.so nor libhcomm.so' out || fail "two ranks without HCCL: exit code $rc"
for home in --hcomm '--cann 8.1' '--without HcclBarrier,HcclCommInitRootInfoConfig,HcclBatchSendRecv'; do
    rm -rf home
    "$build/bin/fake_cann_home" "$build/fake_cann" home $home
    ASCEND_HOME_PATH=$dir/home "$bin" run --nproc_per_node 2 --rdzv_endpoint=localhost:0 -m torchtitan.train "${run[@]}" >out 2>&1 || fail "two ranks with CANN $home"
    grep -q 'Training completed' out || fail "two ranks with CANN $home"
done

# ---- plans: every chip has its memory and its peak
while read -r target memory; do
    "$bin" plan --module llama3 --config llama3_8b --ranks 1 --target "$target" >out || [ $? = 2 ] || fail "plan for $target"
    grep -qE "% of $memory GiB" out && grep -qE 'at least \(all overlapped\)' out || fail "$target: memory $memory GiB and a time"
done <<'X'
ascend-910b1 61.00
ascend-910b2 61.00
ascend-910b3 61.00
ascend-910b4-1 61.00
ascend-910c 61.00
ascend-910c-9372 61.00
ascend-950pr-957 119.20
ascend-950dt-959 134.10
X
# Of several ranks each group of HCCL takes twice its buffer.
"$bin" plan --module llama3 --config llama3_8b --ranks 64 --parallelism.tensor-parallel-degree 8 --target ascend-910b2 >out || fail "plan for 64 ranks"
grep -qE "HCCL's buffers, beside the block +800.00 MiB" out && grep -qE "% of 60.22 GiB: fits" out || fail "four groups of 200 MiB"
HCCL_BUFFSIZE=50 "$bin" plan --module llama3 --config llama3_8b --ranks 64 --parallelism.tensor-parallel-degree 8 --target ascend-910b2 >out || fail "with HCCL_BUFFSIZE"
grep -qE "HCCL's buffers, beside the block +400.00 MiB" out || fail "four groups of 100 MiB"
echo fine
