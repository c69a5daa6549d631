# SPDX-License-Identifier: Apache-2.0
# labels: slow
# download-assets that ends in the middle: cut connections, kill -9, Ctrl-C, a full disk; and the same command again. Two at once.
source "$(dirname "$0")/../helpers/hub.bash"
weights=model-00001-of-00002.safetensors
part=assets/hf/model/$weights.part
head -c 3000000 /dev/urandom >"$model/$weights"
size=$(stat -c %s "$model/$weights")
# held N: waits until the part has N bytes while the process $pid lives.
held() { until [ "$(stat -c %s "$part" 2>/dev/null || echo 0)" = "$1" ]; do kill -0 "$pid" || fail "ended early"; done; }
start() { # ARGUMENTS...: in the background
    "$bin" download-assets --repo-id org/model --retry-wait 0 "$@" >out 2>err &
    pid=$!
}

# Cuts within one call: it goes on where it was, told with the ETag what it has; with a token only where that belongs.
faults "1 */$weights cut 1000" "1 */$weights cut 100000" "1 */$weights cut 0" "1 */$weights cut 2000000"
get 0 --assets safetensors
same $weights
notes 'cut the connection'
for from in 1000 101000 2101000; do logged "range=bytes=$from- if-range=\""; done
fresh
faults "1 */$weights redirect http://127.0.0.1:%2/cdn/org/model/$weights" "1 /cdn* cut 5000" "1 */resolve/*$weights redirect http://127.0.0.1:%2/cdn/org/model/$weights"
HF_TOKEN=good get 0 --assets safetensors
same $weights
logged "206 /cdn/org/model/$weights port2 token=none range=bytes=5000-"
fresh
faults "9 */$weights cut 0"
get 75 --assets safetensors --retries 3
says 'cut the connection'
says '; 4 tries'
[ "$(grep -c $weights "$root/log")" = 4 ] || fail "other than four tries"

# A server that ignores Range, or has another version by then (its ETag says so), or sends another place than asked for.
fresh
faults "1 */$weights cut 1000" "1 */$weights norange"
get 0 --assets safetensors
same $weights
notes 'begins at the start again, not at byte 1000'
fresh
faults "1 */$weights cut 1000" "1 */$weights etag changed"
get 0 --assets safetensors
same $weights
notes 'begins at the start again'
fresh
faults "1 */$weights cut 1000" "1 */$weights badrange"
get 1 --assets safetensors
says 'the server sends bytes from 1001 of 3000000, wanted were those from 1000 of 3000000'
absent $weights
[ "$(stat -c %s $part)" = 1000 ] || fail "the part is not kept"

# kill -9 in mid-download: nothing under the good name; the same command goes on. Both services.
for source in huggingface modelscope; do
    fresh
    rm -f "$root/go"
    faults "1 *model/resolve/*$weights hold 1234567 go" "1 /api/v1/models/org/model/repo hold 1234567 go"
    start --source $source --allow-patterns "$weights"
    held 1234567
    kill -9 $pid
    wait $pid || true
    touch "$root/go"
    absent $weights
    faults
    get 0 --source $source --allow-patterns "$weights"
    same $weights
    notes 'goes on at 1.18 MiB of 2.86 MiB'
    logged 'range=bytes=1234567-'
    [ ! -e $part ] || fail "the part is left"
done

# What is in a part may be of another version: it is thrown away then, once.
fresh
mkdir -p assets/hf/model
head -c 500000 /dev/zero >$part
faults
get 0 --assets safetensors
same $weights
notes 'is not of this version'
fresh
mkdir -p assets/hf/model
head -c $((size + 5)) /dev/zero >$part
get 0 --assets safetensors
same $weights
fresh
mkdir -p assets/hf/model
cp "$model/$weights" $part # all of it came, and the end was lost: nothing is asked for
faults
get 0 --allow-patterns $weights
same $weights
not_logged "resolve"

# Ctrl-C: exit 75, the part stays, and what to do is said.
fresh
rm -f "$root/go"
faults "1 */$weights hold 700000 go"
start --allow-patterns "$weights"
held 700000
kill -INT $pid
code=0
wait $pid || code=$?
touch "$root/go"
[ $code = 75 ] || fail "exit $code after SIGINT"
says 'the same command goes on where this one ended'
faults
get 0 --allow-patterns "$weights"
same $weights
logged 'range=bytes=700000-'
# ... also while it waits for another try
fresh
faults '99 *tree* status 503'
start --allow-patterns "$weights" --retry-wait 60
until grep -q 'trying again in 60 s' err; do kill -0 $pid; done
kill -TERM $pid
code=0
wait $pid || code=$?
[ $code = 75 ] || fail "exit $code after SIGTERM"
says 'stopped'

# Two at once into one folder: the second is refused, the first ends well.
fresh
rm -f "$root/go"
faults "1 */$weights hold 5000 go"
start --allow-patterns "$weights"
held 5000
mv out first.out && mv err first.err
get 1 --allow-patterns "$weights"
says "another ctitan download-assets is at work in 'assets/hf/model'"
get 0 --allow-patterns "$weights" --local-dir elsewhere
touch "$root/go"
wait $pid || fail "the first of two"
same $weights

# On a terminal a bar is drawn, and wiped; elsewhere no control characters are written.
fresh
faults
get 0 --allow-patterns "$weights"
! grep -q "$(printf '[\r\033]')" out err || fail "control characters without a terminal"
if command -v script >/dev/null; then
    fresh
    script -qec "'$bin' download-assets --repo-id org/model --allow-patterns '$weights'" /dev/null >tty </dev/null
    grep -q "$(printf '\r')\[[.#]*\] *[0-9]*%  .* of 2.86 MiB  .*/s  $weights" tty || fail "no bar: $(cat tty)"
    tail -n 1 tty | tr -d '\r' | grep -qx 'assets/hf/model' || fail "the last line on a terminal"
fi

# A full disk. A limit on the size of files stands for it: the write fails in the middle, as it would.
fresh
faults
(
    ulimit -f 1000
    get 1 --allow-patterns "$weights"
)
says "cannot be written after"
says 'once there is room the same command goes on'
absent $weights
[ "$(stat -c %s $part)" -gt 1000000 ] || fail "the part is gone"
get 0 --allow-patterns "$weights"
same $weights
logged '206 '
# A file system that is full, where one can be made without being asked for rights.
fresh
rm -f "$root/go"
mkdir -p small
cat >full.sh <<'S'
mount -t tmpfs -o size=4m none small || exit 77
"$1" download-assets --repo-id org/model --allow-patterns "$2" --local-dir small --retry-wait 0 >out 2>err &
until [ "$(stat -c %s "small/model/$2.part" 2>/dev/null || echo 0)" -ge 5000 ]; do kill -0 $! || exit 1; done
cat /dev/zero >small/filler 2>/dev/null
touch "$3/go"
wait $! && exit 1
grep -q 'No space left on device' err && grep -q "; once there is room the same command goes on" err || exit 1
[ ! -e "small/model/$2" ] || exit 1
code=0
"$1" download-assets --repo-id org/model --allow-patterns "$2" --local-dir small >out 2>err || code=$?
[ $code = 1 ] && grep -q "are to come, and the disk of 'small/model' has only 0 B left" err || exit 1
rm small/filler
"$1" download-assets --repo-id org/model --allow-patterns "$2" --local-dir small >out 2>err && cmp "small/model/$2" "$3/org/model/$2"
S
faults "1 */$weights hold 5000 go"
code=0
unshare -rm bash full.sh "$bin" "$weights" "$root" || code=$?
if unshare -rm mount -t tmpfs none small 2>/dev/null; then
    [ $code = 0 ] || fail "the full file system: $code"
else
    echo "the full file system is left out: no tmpfs can be mounted here"
fi
echo "done"
