# SPDX-License-Identifier: Apache-2.0
# For the tests of download-assets: a repository org/model, the server hub_server for it, and calls. Sourced with the build folder as $1.
set -eu
build=$1
bin=$build/bin/ctitan
dir=$(mktemp -d)
server=
tls=
end() {
    [ -z "$tls" ] || kill "$tls"
    [ -z "$server" ] || { exec 9>&-; wait "$server" || true; } 2>/dev/null
    rm -rf "$dir"
}
trap end EXIT
unset HF_TOKEN HUGGING_FACE_HUB_TOKEN HF_TOKEN_PATH XDG_CACHE_HOME HF_ENDPOINT MODELSCOPE_ENDPOINT MODELSCOPE_DOMAIN MODELSCOPE_API_TOKEN \
    http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY
export HF_HOME=$dir/hf-home HOME=$dir/home
export LC_ALL=C
cd "$dir"
root=$dir/root
model=$root/org/model
mkdir -p "$model/original"
for i in $(seq 1 300); do
    echo "{\"text\": \"The miller of valley $((i % 7)) sends $((i * 3)) sacks of rye to the village at the lake, and asks for $((i % 5)) lamps.\"}"
done >docs.jsonl
"$bin" tokenizer train docs.jsonl --vocab-size 400 --output vocab >/dev/null
cp vocab/tokenizer.json vocab/tokenizer_config.json "$model"
echo '{"hidden_size": 8}' >"$model/config.json"
echo '{"framework": "other"}' >"$model/configuration.json"
echo '{"max_length": 10}' >"$model/generation_config.json"
echo '{"bos_token": "<|begin_of_text|>"}' >"$model/special_tokens_map.json"
echo '{"dim": 8}' >"$model/original/params.json"
head -c 5000 docs.jsonl >"$model/original/tokenizer.model"
head -c 20000 docs.jsonl >"$model/model-00001-of-00002.safetensors"
head -c 300 docs.jsonl >"$model/model-00002-of-00002.safetensors"
echo '{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}' >"$model/model.safetensors.index.json"
: >"$model/EMPTY"
echo words >"$model/README with blanks+100%.md"

mkfifo stdin
"$build/bin/hub_server" "$root" <stdin &
server=$!
exec 9>stdin
until [ -s "$root/port" ]; do kill -0 "$server"; done
port=$(cat "$root/port")
port2=$(cat "$root/port2")
export HF_ENDPOINT=http://127.0.0.1:$port MODELSCOPE_ENDPOINT=http://127.0.0.1:$port

# faults LINE...: what goes wrong from now on; and an empty log.
faults() {
    printf '%s\n' "$@" >"$root/faults.new"
    mv "$root/faults.new" "$root/faults"
    : >"$root/log"
}
fail() {
    echo "FAILED: $*"
    echo "--- out"; cat out
    echo "--- err"; cat err
    echo "--- log"; cat "$root/log"
    exit 1
}
# get CODE ARGUMENTS...: runs the program, wants the exit code.
get() {
    local want=$1 code=0
    shift
    "$bin" download-assets --repo-id org/model --retry-wait 0 --timeout 20 "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] || fail "exit $code, wanted $want: $*"
}
# says TEXT: the last line of stderr is one line of the program's own and holds the text.
says() {
    tail -n 1 err | grep -F 'ctitan download-assets: ' | grep -qF -- "$1" || fail "no '$1' in the last line"
}
notes() { grep -qF -- "$1" err || fail "no '$1' in stderr"; }
prints() { grep -qF -- "$1" out || fail "no '$1' in stdout"; }
logged() { grep -qF -- "$1" "$root/log" || fail "no '$1' in the log"; }
not_logged() { ! grep -qF -- "$1" "$root/log" || fail "'$1' in the log"; }
same() { cmp "$model/$1" "assets/hf/model/$1" || fail "$1 is not the same"; }
absent() { [ ! -e "assets/hf/model/$1" ] || fail "$1 is there"; }
fresh() { rm -rf assets; }
faults

if ! "$bin" download-assets --repo-id org/model --all --local-dir probe >out 2>err; then
    if grep -q libcurl err; then
        cat err
        echo "skipped: no libcurl"
        exit 77
    fi
    fail "the first download"
fi
