# SPDX-License-Identifier: Apache-2.0
# labels: slow
# The number of threads changes no bit of what is trained; what is used is said, and what is not understood is refused. Ranks share the cores.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
unset OMP_NUM_THREADS OMP_THREAD_LIMIT OMP_PROC_BIND OMP_PLACES OMP_WAIT_POLICY
flags=(--module llama3 --config llama3_debugmodel --training.steps 2 --training.local-batch-size 2 --training.seq-len 50
       --debug.seed 7 --metrics.log-freq 1 --metrics.disable-color-printing)

for dtype in float32 bfloat16; do
    for threads in 1 3 $([ $dtype = bfloat16 ] || echo 2); do
        OMP_NUM_THREADS=$threads "$bin" train "${flags[@]}" --training.mixed-precision-param $dtype --checkpoint.enable \
            --checkpoint.interval 2 --dump-folder $dtype-$threads >log 2>&1 || { cat log; exit 1; }
        grep -q "CPU: $threads threads\\? (OMP_NUM_THREADS)" log || { echo "no line says $threads threads"; cat log; exit 1; }
        (cd $dtype-$threads && find . -name '*.safetensors' -exec sha256sum {} +) >$dtype-$threads.sum
        [ -s $dtype-$threads.sum ] || { echo "$dtype: nothing was saved"; exit 1; }
        cmp $dtype-1.sum $dtype-$threads.sum || { echo "$dtype: $threads threads train other weights than one"; exit 1; }
    done
done
if cmp -s float32-1.sum bfloat16-1.sum; then
    echo "float32 and bfloat16 train the same weights: this test sees nothing"
    exit 1
fi

status=0
OMP_NUM_THREADS=several "$bin" train "${flags[@]}" >log 2>&1 || status=$?
[ $status = 2 ] && grep -q "OMP_NUM_THREADS: expected a number of threads from 1 on, or a list of such, got 'several'" log || {
    echo "OMP_NUM_THREADS=several: exit $status"; cat log; exit 1; }

# Without a word from the environment: all usable cores; two ranks have half of them each, at least one.
"$bin" train "${flags[@]}" --training.steps 1 --dump-folder one >log 2>&1 || { cat log; exit 1; }
cores=$(sed -nE 's/.*CPU: ([0-9]+) threads? \(\1 usable cores?\)$/\1/p' log)
want=$((${cores:-0} / 2 > 0 ? cores / 2 : 1))
[ -n "$cores" ] || { echo "no line says how many cores there are"; cat log; exit 1; }
"$bin" run --nproc_per_node 2 --no-python sh -c 'echo "each has $OMP_NUM_THREADS"' >log 2>&1 || { cat log; exit 1; }
[ "$(grep -c "each has $want\$" log)" = 2 ] || { echo "of $cores cores each of two ranks is to have $want"; cat log; exit 1; }
