# SPDX-License-Identifier: Apache-2.0
# labels: slow
# `ctitan devices`, `ctitan doctor` and the choice of a device on a machine without any: the CPU's row, vendors' libraries that are missing, hang, die or
# answer; a root folder with a driver in it; settings of the environment that are wrong; --device npu where there is none.
set -eu
unset CTITAN_DEVICE
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; cat out 2>/dev/null; exit 1; }
cd "$dir"
unset ASCEND_RT_VISIBLE_DEVICES ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME ASCEND_OPP_PATH LD_LIBRARY_PATH
unset HCCL_NPU_SOCKET_PORT_RANGE HCCL_HOST_SOCKET_PORT_RANGE HCCL_CONNECT_TIMEOUT HCCL_EXEC_TIMEOUT HCCL_IF_BASE_PORT HCCL_BUFFSIZE
[ ! -e /usr/local/Ascend ] || { echo "this machine has Ascend software"; exit 77; }

# ---- devices
"$bin" devices >out || fail "devices fails"
grep -qE '^cpu +0 .* (GiB|MiB) */ *[0-9.]+ GiB' out || fail "no row of the CPU"
grep -qE '^cpu: [0-9]+ usable cores?, instruction set (base|v3|v4|v4bf16|v4amx|neon)$' out || fail "no cores"
CTITAN_CPU_ISA=base "$bin" devices | grep -qE 'instruction set (base|neon)$' || fail "CTITAN_CPU_ISA"
"$bin" devices --json >out
for key in '"kind": "cpu"' '"memory_total_bytes": [0-9]' '"memory_used_bytes": [0-9]' '"bus_id": null' '"usable_cores": [0-9]' '"notes": {'; do
    grep -q "$key" out || fail "no $key"
done
rc=0; "$bin" devices --wrong >out 2>&1 || rc=$?
[ $rc = 2 ] && grep -q -- '--wrong: there is no such option' out || fail "an unknown option: $rc"
rc=0; "$bin" devices --timeout-seconds soon >out 2>&1 || rc=$?
[ $rc = 2 ] && grep -q "found 'soon'" out || fail "a timeout: $rc"

# A driver of NVIDIA's that answers, one that hangs, one that dies, one that lacks a function.
mkdir answers hangs dies lacks
cat >nvml.c <<'X'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { char legacy[16]; unsigned domain, bus, device, ids, subsystem; char id[32]; } pci;
typedef struct { unsigned pid; unsigned long long bytes; unsigned a, b; } process;
#ifdef HANGS
int nvmlInit_v2(void) { for (;;) pause(); }
#elif defined DIES
int nvmlInit_v2(void) { abort(); }
#else
int nvmlInit_v2(void) { puts("noise"); return 0; }
#endif
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)(size_t)(i + 1); return i == 1 ? 15 : 0; }
int nvmlDeviceGetName(void *d, char *out, unsigned n) { (void)d; snprintf(out, n, "NVIDIA Sample"); return 0; }
int nvmlDeviceGetMemoryInfo(void *d, memory *m) { (void)d; m->total = 80ull << 30; m->used = 20ull << 30; m->free = 60ull << 30; return 0; }
#ifndef LACKS
int nvmlDeviceGetPciInfo_v3(void *d, pci *p) { (void)d; memset(p, 0, sizeof *p); strcpy(p->id, "00000000:C1:00.0"); return 0; }
#endif
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, process *p) { (void)d; *n = 1; p[0].pid = 4321; p[0].bytes = 1ull << 30; return 0; }
const char *nvmlErrorString(int code) { return code == 15 ? "GPU is lost" : "another error"; }
X
${CC:-cc} -shared -fPIC -o answers/libnvidia-ml.so.1 nvml.c
for kind in HANGS DIES LACKS; do
    ${CC:-cc} -shared -fPIC -D$kind -o "$(echo $kind | tr A-Z a-z)/libnvidia-ml.so.1" nvml.c
done
LD_LIBRARY_PATH=$dir/answers "$bin" devices >out || fail "with a driver"
grep -qE '^nvidia +0 +NVIDIA Sample +OK +20.00 GiB / 80.00 GiB +00000000:C1:00.0 +4321 \(1.00 GiB\)$' out || fail "the GPU's row"
grep -qE '^nvidia +1 .* fault' out && grep -q 'GPU is lost' out || fail "the lost GPU's row"
grep -q 'noise' out && fail "what a library prints is shown"
for what in 'hangs did not answer within 1 s' 'dies ended the process that asked it' 'lacks has no nvmlDeviceGetPciInfo_v3()'; do
    LD_LIBRARY_PATH=$dir/${what%% *} "$bin" devices --timeout-seconds 1 >out || fail "a library that ${what%% *}"
    grep -qF "libnvidia-ml.so.1 ${what#* }" out || fail "a library that ${what%% *} is not named"
    grep -q '^cpu' out || fail "no CPU beside a library that ${what%% *}"
done

# ---- doctor
rc=0; "$bin" doctor >out || rc=$?
[ $rc = 0 ] || fail "doctor: exit code $rc"
grep -q 'nothing of Ascend is here' out || fail "NPUs on a machine without"
rc=0; "$bin" doctor npu >out || rc=$?
[ $rc = 1 ] || fail "doctor npu: exit code $rc"
for line in 'fail  driver' 'fail  device files' 'fail  CANN '; do
    grep -q "^$line" out || fail "no line $line"
done
[ "$(grep -c '^fail' out)" = "$(grep -A1 '^fail' out | grep -c -- '-> ')" ] || fail "a failing line says not what to do"
rc=0; "$bin" doctor gpu >out 2>&1 || rc=$?
[ $rc = 2 ] || fail "doctor gpu: $rc"
root=$dir/root
mkdir -p "$root/usr/local/Ascend/driver" "$root/dev" "$root/dev/shm" "$root/sys/kernel/mm/transparent_hugepage" opp
printf 'Version=24.1.0\nascendhal_version=7.35\n' >"$root/usr/local/Ascend/driver/version.info"
touch "$root"/dev/{davinci0,davinci1,davinci_manager,devmm_svm,hisi_hdc}
echo 'always madvise [never]' >"$root/sys/kernel/mm/transparent_hugepage/enabled"
export CTITAN_DOCTOR_ROOT=$root
"$bin" doctor >out || true
grep -q '^ok    driver .*version 24.1.0$' out || fail "the driver's version"
grep -q '^ok    device files .*2 of /dev/davinci\*$' out || fail "device files"
grep -q '^warn  huge pages .*never$' out || fail "huge pages"
grep -q '^ok    HCCL variables' out || fail "HCCL's variables"
wrong() { # wrong LINE VARIABLE=VALUE...
    local want=$1 rc=0
    shift
    env "$@" "$bin" doctor >out || rc=$?
    [ $rc = 1 ] && grep -qF -- "$want" out || fail "$*: exit code $rc, wanted a line: $want"
}
wrong "LD_LIBRARY_PATH has '/opt/cann/devlib/'" LD_LIBRARY_PATH=/lib:/opt/cann/devlib/
wrong "LD_LIBRARY_PATH has '/opt/stub'" LD_LIBRARY_PATH=/opt/stub
wrong "HCCL_CONNECT_TIMEOUT is '5', wanted 120 to 7200" HCCL_CONNECT_TIMEOUT=5
wrong "HCCL_BUFFSIZE is 'much'" HCCL_BUFFSIZE=much
for ports in 60000- 1-2-3 70000 60010-60000 '60000, 60001' -5 Auto; do
    wrong "HCCL_NPU_SOCKET_PORT_RANGE is '$ports'" HCCL_NPU_SOCKET_PORT_RANGE="$ports"
done
for list in 1,0 0,0 '0, 1' a ',' '0,' -1; do
    wrong "ASCEND_RT_VISIBLE_DEVICES is '$list'" ASCEND_RT_VISIBLE_DEVICES="$list"
done
HCCL_NPU_SOCKET_PORT_RANGE=60000-60200,61000 "$bin" doctor >out || true
grep -q '^ok    HCCL variables .*60000-60200,61000' out || fail "a good range"
"$bin" doctor --json >out || true
grep -q '"verdict": "ok"' out && grep -q '"do": "' out || fail "JSON"
unset CTITAN_DOCTOR_ROOT

# ---- the choice of a device
args=(--module llama3 --config llama3_debugmodel --training.steps 1 --training.seq-len 64 --training.local-batch-size 1)
ASCEND_RT_VISIBLE_DEVICES=0 "$bin" train "${args[@]}" >out 2>&1 || fail "train with --device auto"
grep -q 'Device: cpu (--device auto; not npu: ' out || fail "it is not said why not npu"
rc=0; "$bin" train "${args[@]}" --device npu >out 2>&1 || rc=$?
[ $rc = 1 ] && grep -q -- '--device npu: ' out && grep -q 'ctitan doctor' out || fail "--device npu: exit code $rc"
rc=0; "$bin" train "${args[@]}" --comm.engine hccl >out 2>&1 || rc=$?
[ $rc = 2 ] && grep -q -- "--comm.engine hccl is for NPUs, and this run computes on 'cpu'" out || fail "--comm.engine hccl: exit code $rc"
echo fine
