# SPDX-License-Identifier: Apache-2.0
# labels: slow
# download-assets against both services' APIs, as they are when nothing goes wrong: what is taken, checks, tokens, pages, redirects.
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../helpers/hub.bash"

# No other command pays for libcurl.
! ldd "$bin" 2>/dev/null | grep libcurl || fail "ctitan is linked with libcurl"

# All of it, from both services, byte for byte; the path is the last line; a second call asks for the listing only.
for source in huggingface modelscope; do
    fresh
    faults
    get 0 --source $source --all
    [ "$(tail -n 1 out)" = assets/hf/model ] || fail "the last line"
    diff -r "$model" assets/hf/model || fail "not the same files"
    prints 'tokenizer                opens: 400 ids'
    prints 'weights                  2 safetensors files'
    ! grep -q missing out || fail "something is missing"
    ! grep -q 'EMPTY port' "$root/log" || fail "an empty file was asked for"
    faults
    get 0 --source $source --all
    [ "$(wc -l <"$root/log")" = 1 ] || fail "fetched again"
    notes 'is there (same checksum)'
    [ -z "$(find assets -name '*.part')" ] || fail "parts are left"
done

# The addresses are those that the services' own Python clients ask for (tests/parity/hub/clients.py recorded them).
recorded=$here/../parity/hub/requests.txt
mkdir -p "$root/org/clients/original"
for file in config.json original/tokenizer.model 'a b+c%.bin'; do echo words >"$root/org/clients/$file"; done
faults
for source in huggingface modelscope; do get 0 --source $source --repo-id org/clients --all --local-dir $source; done
sed -n 's#org/model#org/clients#; s#=a+b#=a%20b#; s#^/#/#p' "$recorded" | sort >wanted
cut -d ' ' -f 2 "$root/log" | sort | diff wanted - || fail "other addresses than the services' clients"

# The lines that users type; TorchTitan's spelling of flags too.
fresh
get 0 --repo-id org/model --source modelscope --allow-patterns '*.json' '*.model' 'tokenizer*'
[ "$(cd assets/hf/model && find . -type f | sort | tr '\n' ' ')" = './config.json ./configuration.json ./generation_config.json ./model.safetensors.index.json ./original/params.json ./original/tokenizer.model ./special_tokens_map.json ./tokenizer.json ./tokenizer_config.json ' ] ||
    fail "other files than wanted: $(find assets -type f)"
prints 'weights                  none'
for flags in '--assets tokenizer config' '--assets tokenizer,config' '--assets=config,tokenizer'; do
    fresh
    get 0 $flags --local-dir assets/hf
    [ "$(ls assets/hf/model | tr '\n' ' ')" = 'config.json generation_config.json original special_tokens_map.json tokenizer.json tokenizer_config.json ' ] || fail "$flags"
done
fresh
get 0 --assets index --additional_patterns '*.md' --local_dir here/
[ "$(ls here/model | tr '\n' ' ')" = 'README with blanks+100%.md model.safetensors.index.json ' ] || fail "index and pattern: $(ls here/model)"
prints 'tokenizer                cannot be opened'
prints 'tokenizer.json           missing  matters'
prints 'config.json              missing  without it'
[ "$(tail -n 1 out)" = here/model ] || fail "the last line"
get 0 --assets safetensors --local-dir here
rm here/model/model-00002-of-00002.safetensors
get 0 --assets index --local-dir here
prints "not there, of those that the index names: 'model-00002-of-00002.safetensors'"
rm "$model/special_tokens_map.json" # a kind with no file is said, the rest comes
get 0 --assets tokenizer --local-dir here
mv "$model/model.safetensors.index.json" kept
get 0 --assets tokenizer index --local-dir here
notes "no file of kind 'index' in 'org/model'"
mv kept "$model/model.safetensors.index.json"

# A file that is there and wrong, longer or changed, is fetched again; the right ones are not.
get 0 --assets tokenizer --local-dir here
echo >>here/model/tokenizer.json
sed -i 's/true/maybe/; s/false/maybe/' here/model/tokenizer_config.json
faults
get 0 --assets tokenizer --local-dir here
cmp "$model/tokenizer.json" here/model/tokenizer.json && cmp "$model/tokenizer_config.json" here/model/tokenizer_config.json || fail "not mended"
[ "$(grep -c resolve "$root/log")" = 2 ] || fail "asked for other than the two"

# A damaged file of the repository itself is told by the check.
echo '{"a": ' >"$model/config.json"
get 0 --assets config --local-dir here
prints 'config.json              there    matters: damaged'

# Pages of a listing; a revision with a slash.
fresh
faults '100 /api/models/* pages 3'
get 0 --all --revision refs/pr/1
[ "$(grep -c '/api/models/org/model/tree/refs%2Fpr%2F1?recursive=true&cursor' "$root/log")" = 4 ] || fail "pages"
diff -r "$model" assets/hf/model || fail "not the same files over pages"

# ModelScope cuts a listing at 3000 entries: folders are listed one by one then.
mkdir "$model/many" "$model/more"
(cd "$model/many" && seq -f 'f%g.bin' 2500 | xargs touch)
(cd "$model/more" && seq -f 'f%g.bin' 700 | xargs touch && echo 1 >last.txt)
fresh
faults
get 0 --source modelscope --allow-patterns 'more/last.txt' 'tokenizer*'
same more/last.txt
logged 'Recursive=False'
logged 'Root=more'
rm -r "$model/many" "$model/more"

# The CDN: another origin gets no token, and the file comes from there.
touch "$root/org/model.gated"
fresh
for source in huggingface modelscope; do
    faults '99 /org/model/resolve/* redirect http://127.0.0.1:%2/cdn/org/model/tokenizer.json?signature=abc' \
        '99 /api/v1/models/org/model/repo redirect http://127.0.0.1:%2/cdn/org/model/tokenizer.json'
    fresh
    HF_TOKEN=good MODELSCOPE_API_TOKEN=good get 0 --source $source --allow-patterns tokenizer.json
    same tokenizer.json
    grep 'port1' "$root/log" | grep -v 'token=good' && fail "no token for the service"
    grep 'port2' "$root/log" | grep -v 'token=none' && fail "the token went elsewhere"
    ! grep 'port2' "$root/log" | grep cookie || fail "the cookie went elsewhere"
    ! grep -q good out err || fail "the token is shown"
done
logged 'token=good+cookie' # ModelScope's older services look there

# Where tokens come from.
faults
fresh
mkdir -p hf-home
echo good >hf-home/token
get 0 --assets config
rm hf-home/token
echo ' good ' >elsewhere
HF_TOKEN_PATH=elsewhere get 0 --assets config
HUGGING_FACE_HUB_TOKEN=good get 0 --assets config
get 0 --assets config --hf-token good
HF_TOKEN=bad get 0 --assets config --hf-token=good
rm "$root/org/model.gated"

# A relative redirect on the same host keeps the token; a proxy is used, and localhost's token is not for other hosts.
touch "$root/org/model.private"
faults '1 /org/model/resolve/*/tokenizer.json redirect /cdn/org/model/tokenizer.json'
HF_TOKEN=good get 0 --assets tokenizer
grep -q '/cdn/org/model/tokenizer.json port1 token=good' "$root/log" || fail "the same host's redirect"
rm "$root/org/model.private"
fresh
faults
HF_ENDPOINT=http://hub.invalid http_proxy=http://127.0.0.1:$port2 get 0 --assets config
logged 'http://hub.invalid/org/model/resolve/main/config.json port2'
HF_ENDPOINT=http://hub.invalid http_proxy=http://127.0.0.1:$port2 HF_TOKEN=good get 2 --assets config
says 'unencrypted'
HF_ENDPOINT=http://hub.invalid http_proxy=http://127.0.0.1:$port2 HF_TOKEN=good get 0 --assets config --allow-http-token
logged 'hub.invalid/api/models/org/model/tree/main?recursive=true&expand=false port2 token=good'
echo "done"
