# SPDX-License-Identifier: Apache-2.0
# labels: slow
# download-assets where the server, the network or what it lists is wrong: one line that says it, nothing wrong under a good name.
source "$(dirname "$0")/../helpers/hub.bash"
sha256() { sha256sum <"$1" | cut -d ' ' -f 1; }

# --- the command line: exit 2 ---
get 2 --repo-id org
says "nothing is asked for"
get 2 --repo-id ../x --all
says "'../x' is no repository"
get 2 --repo-id 'a/b?c' --all
get 2 --source modelscope --repo-id one --all
says 'owner/name'
get 2
says 'nothing is asked for'
get 2 --assets tokenizers
says "nearest: tokenizer"
get 2 --source github --all
grep -q github err || fail "the wrong source is not named"
get 2 --all --revision a/../b
says "no revision"
get 2 --all --local-dir ''
says 'folder is empty'
get 2 --asets tokenizer
grep -q 'nearest is --assets' err || fail "no nearest flag"
get 2 --assets
get 2 --source modelscope --all --hf-token good
says 'MODELSCOPE_API_TOKEN'
HF_TOKEN=$'go\nod: x' get 2 --all
says 'the token of HF_TOKEN is none'
for endpoint in ftp://host 'http://user:secret@host' http:// 'https://host?x=1' 'a b'; do
    HF_ENDPOINT=$endpoint get 2 --all
    says 'is no endpoint'
    ! grep -q secret err || fail "a password is shown"
done
absent ''

# --- who may, and what is there ---
touch "$root/org/model.gated"
get 1 --all
says "'org/model' is closed to the public (403): open http://127.0.0.1:$port/org/model and accept its terms, then give a token of that account in HF_TOKEN"
HF_TOKEN=bad get 1 --all
says '(the one of HF_TOKEN was sent)'
get 1 --all --source modelscope
says "http://127.0.0.1:$port/models/org/model and accept its terms, then give a token of that account in MODELSCOPE_API_TOKEN"
rm "$root/org/model.gated"
touch "$root/org/model.private"
get 1 --all
says "or it is not public (401): check the name, or give a token in HF_TOKEN; it says: Invalid username or password."
MODELSCOPE_API_TOKEN=bad get 1 --all --source modelscope
says 'does not take the token of MODELSCOPE_API_TOKEN'
rm "$root/org/model.private"
HF_TOKEN=good get 1 --repo-id org/modle --all
says "has no 'org/modle', or not its revision 'main' (404)"
get 1 --all --revision mian
says "has no revision 'mian' (404); most have 'main'"
get 1 --all --source modelscope --revision main2
says "has no revision 'main2'"
get 1 --additional-patterns tokenizr.json
says "nearest to 'tokenizr.json' is 'tokenizer.json'"
faults '1 *tree* echo'
HF_TOKEN=hf_SECRET get 1 --all
says 'its words hold the token'
! grep -q SECRET out err || fail "the token is shown"
absent ''

# --- servers that are busy or gone: exit 75, and further tries help ---
faults '3 *tree* status 503' '2 */tokenizer.json status 429 Retry-After: 0'
get 0 --assets tokenizer
notes 'answers 503; trying again in 0 s (3 of 5)'
notes 'answers 429 (too many requests); trying again in 0 s (2 of 5)'
same tokenizer.json
fresh
faults '1 *tree* status 429 Retry-After: 1'
get 0 --assets config
notes 'trying again in 1 s'
faults '1 *tree* status 429 ratelimit: "api";r=0;t=1'
get 0 --assets config
notes 'trying again in 1 s'
faults '99 *tree* status 429'
get 75 --assets tokenizer --retries 2
says 'answers 429 (too many requests); 3 tries'
[ "$(wc -l <"$root/log")" = 3 ] || fail "other than three tries"
faults '99 *tree* status 429 Retry-After: 9999'
get 75 --assets tokenizer
says 'it asks to wait 9999 seconds'
faults '99 *tree* status 500'
get 75 --assets tokenizer --retries 0
says 'answers 500'
faults '99 *tree* status 418'
get 1 --assets tokenizer
says 'answers 418'
HF_ENDPOINT=http://no-such-host.invalid get 75 --all --retries 1
says 'no-such-host.invalid'
HF_ENDPOINT=http://127.0.0.1:1 get 75 --all --retries 1
says "'127.0.0.1' cannot be reached"
HF_ENDPOINT=https://127.0.0.1:$port get 1 --all
says "no secure connection to '127.0.0.1'"
grep -q 'trying again' err && fail "TLS is tried again"
faults '99 *tree* redirect /api/models/org/model/tree/main?recursive=true'
get 1 --all
says 'more than 10 redirects'
faults '99 *tree* redirect ftp://127.0.0.1/x'
get 1 --all
says 'no http or https address'
faults '99 *tree* status 302'
get 1 --all
says 'does not say where'
fresh
faults '1 */tokenizer.json stall 10'
get 0 --assets tokenizer --timeout 1
notes 'tokenizer.json: '
logged '206 /org/model/resolve/main/tokenizer.json port1 token=none range=bytes=10-'
same tokenizer.json
fresh

# --- listings ---
listing() { printf '%s' "$1" >"$root/org/model.listing"; }
refuses() { # JSON, words
    listing "$1"
    get 1 --all
    says "$2"
    [ ! -e assets ] || [ -z "$(find assets -type f)" ] || fail "something was written: $(find assets)"
}
entry() { printf '{"type":"file","oid":"%s","size":%s,"path":"%s"}' "$(printf '%040d' 0)" "${2:-3}" "$1"; }
refuses '<html>no</html>' "'org/model' at 'http://127.0.0.1:$port': 'the listing', line 1"
refuses '[{"type":' 'the listing'
refuses '{"error": "x"}' 'no JSON array'
refuses "[$(entry a -5)]" "'size' is negative"
refuses "[$(entry a '"x"')]" 'size'
refuses '[]' "has no files"
refuses "[$(entry ../x.json)]" "the file name '../x.json' that the server lists is refused"
refuses "[$(entry a/../../../x.json)]" "refused: '.' and '..' are no names"
refuses "[$(entry /etc/x.json)]" 'begins at the root'
refuses "[$(entry '..\\\\x.json')]" 'backslash'
refuses "[$(entry 'a\u0000.json')]" "has a NUL in it: 'a\\x00.json'"
refuses "[$(entry 'a\u001b[2J.json')]" "'a\\x1b[2J.json'"
refuses "[$(entry a.json),$(entry a.json)]" 'it is there twice'
refuses "[$(entry a),$(entry a/b)]" "another file's name is that of its folder"
refuses "[$(entry Config.json),$(entry config.json)]" 'case of letters'
refuses "[$(entry "$(printf 'a%.0s' $(seq 300))")]" 'longer than 255 bytes'
refuses "[$(entry .git/config)]" "'.git'"
refuses "[$(entry a 9223372036854775807),$(entry b 9)]" 'more than any disk holds'
refuses "[$(entry a 4611686018427387904)]" 'are to come, and the disk'
fresh
{ printf '['; for i in 1 2 3 4 5 6 7 8; do seq -f "{\"path\":\"${i}_%.0f\",\"type\":\"file\",\"size\":1}," 30000; done; printf '{}]'; } >"$root/org/model.listing"
get 1 --all
says 'more than 200000 entries'
listing "{\"Success\": false, \"Message\": \"over quota\"}"
get 1 --all --source modelscope
says 'the service says no: over quota'
listing "[$(entry config.json 19),$(entry ../x.json)]" # what is not asked for is not looked at
get 1 --assets config
says 'config.json: the checksum (git blob) is'
absent config.json
absent config.json.part
rm "$root/org/model.listing"
faults '99 *tree* endless'
get 1 --all
says 'sends more than the 67108864 bytes'
faults '99 *tree* pages 0'
get 1 --all
says 'does not end'
fresh

# --- files ---
faults '1 */tokenizer.json longer 7'
get 1 --assets tokenizer
says 'by its listing it should be'
absent tokenizer.json
faults '1 */tokenizer.json shorter 7'
get 1 --assets tokenizer
says 'by its listing it should be'
absent tokenizer.json
faults '1 */tokenizer.json endless'
get 1 --assets tokenizer
says "tokenizer.json: the server sends more than the $(stat -c %s "$model/tokenizer.json") bytes that are wanted"
absent tokenizer.json
head -c "$(stat -c %s "$model/tokenizer.json")" /dev/zero >"$root/zeros"
fresh
faults '1 */tokenizer.json file zeros'
get 1 --assets tokenizer
says 'tokenizer.json: the checksum (git blob) is'
absent tokenizer.json
absent tokenizer.json.part
head -c 20000 /dev/zero >"$root/zeros"
fresh
faults '1 */model-00001* file zeros'
get 1 --assets safetensors
says "the checksum (sha256) is $(sha256 "$root/zeros"), by the server's listing it should be $(sha256 "$model/model-00001-of-00002.safetensors"); what came is removed"
absent model-00001-of-00002.safetensors
fresh
faults '1 */tokenizer.json status 404'
get 1 --assets tokenizer
says "has no 'tokenizer.json' any more (404)"
faults '1 */tokenizer.json status 403'
get 1 --assets tokenizer
says 'is closed to the public (403)'
faults '1 */tokenizer.json redirect https://127.0.0.1:%1/x'
get 1 --assets tokenizer
says 'no secure connection'
absent tokenizer.json
faults '2 */tokenizer.json drip 7' '1 */tokenizer_config.json nolength'
get 0 --assets tokenizer
same tokenizer.json
same tokenizer_config.json

# --- what is in the way ---
fresh
mkdir -p assets/hf/model/config.json
get 1 --assets config
says "config.json' is in the way"
fresh
mkdir -p assets/hf/model/config.json.part
get 1 --assets config
says 'config.json.part'
fresh
mkdir -p assets/hf/model
ln -s "$dir/outside" assets/hf/model/config.json.part # a link is not followed
get 1 --assets config
[ ! -e outside ] || fail "a link was followed"
fresh
echo >file
get 1 --assets config --local-dir file
says file

# --- TLS: certificates are looked at; from https nothing leads to http. openssl stands for the server ---
fresh
if command -v openssl >/dev/null; then
    openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
    mkdir -p www/api/models/org/model/tree
    printf 'HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1:%s/x\r\nContent-Length: 0\r\n\r\n' "$port" \
        >'www/api/models/org/model/tree/main?recursive=true&expand=false'
    (cd www && exec openssl s_server -accept 0 -cert ../cert.pem -key ../key.pem -HTTP >../tls.log 2>&1) &
    tls=$!
    until grep -q ACCEPT tls.log 2>/dev/null; do kill -0 $tls; done
    tls_port=$(sed -n 's/^ACCEPT.*:\([0-9]*\)$/\1/p' tls.log)
    HF_ENDPOINT=https://localhost:$tls_port get 1 --all
    says "no secure connection to 'localhost'"
    faults
    HF_ENDPOINT=https://localhost:$tls_port CURL_CA_BUNDLE=$dir/cert.pem HF_TOKEN=good get 1 --all
    says "points from https to the unencrypted 'http://127.0.0.1'"
    [ ! -s "$root/log" ] || fail "http was asked"
    HF_ENDPOINT=https://localhost:$tls_port SSL_CERT_FILE=$dir/nothing.pem get 1 --all
    says 'no secure connection'
    kill $tls
    wait $tls || true
    tls=
else
    echo "TLS is left out: no openssl here"
fi

# --- no libcurl: an empty file in its place, where that can be done without being asked for rights ---
libraries=$(/sbin/ldconfig -p | sed -n 's/.*libcurl\(-gnutls\)\{0,1\}\.so\.4 .*=> //p')
code=0
unshare -rm bash -c 'for l in $2; do mount --bind /dev/null "$(readlink -f "$l")" || exit 77; done; exec "$1" download-assets --repo-id org/model --all' \
    - "$bin" "$libraries" >out 2>err || code=$?
if grep -q 'ctitan download-assets' err; then
    [ $code = 1 ] || fail "exit $code without libcurl"
    says 'install the package libcurl4'
else
    echo "a missing libcurl is left out: nothing can be mounted here"
fi
echo "done"
