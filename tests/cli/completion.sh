# SPDX-License-Identifier: Apache-2.0
# labels: fast
# The completion scripts as bash (and zsh, where there is one) runs them: commands, flags, values, registry functions, files, and what bash cuts at
# '=' and ':'.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; exit 1; }
cd "$dir"
touch my.yaml 'a file.jsonl'
export PATH=$1/bin:$PATH

"$bin" completion bash >bash.sh
"$bin" completion zsh >zsh.sh
cat >try.sh <<'X'
set -u
. ./bash.sh
complete -p ctitan >/dev/null || exit 1
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_ctitan
printf '%s\n' "${COMPREPLY[@]}" | sort
X
has() { # has WANTED WORDS...: among the completions of the last word
    local want=$1
    shift
    bash try.sh "$@" >got 2>err || { cat err; fail "failed for: $*"; }
    [ ! -s err ] || { cat err; fail "said something for: $*"; }
    grep -qxF -- "$want" got || { head -n 20 got; fail "no '$want' for: $*"; }
}
only() { # only "A B" WORDS...: exactly these
    local want=$1
    shift
    bash try.sh "$@" >got 2>err
    [ ! -s err ] && [ "$(tr '\n' ' ' <got | sed 's/ $//')" = "$want" ] || { cat got err; fail "wanted '$want' for: $*"; }
}
only "train" ctitan tr
has plan ctitan ""
has completion ctitan ""
only "--training.steps" ctitan train --training.st
only "--checkpoint.no-enable --checkpoint.no-enable-first-step-checkpoint" ctitan train --checkpoint.no-en
only "--optimizer.lr" ctitan train --optimizer.l
has --activation-checkpoint.memory-budget ctitan config --activation
only "bfloat16 float32" ctitan train --training.dtype ""
only "float32" ctitan train --training.dtype fl
only "float32" ctitan train --training.dtype = f
only "bfloat16 float32" ctitan train --training.mixed_precision_param =
only "false true" ctitan train --checkpoint.enable =
has --training.steps ctitan train --checkpoint.enable ""
only "llama3" ctitan train --module ""
has llama3_8b ctitan train --config llama3
has my.yaml ctitan train --config ""
only "a file.jsonl" ctitan train --dataloader.dataset-path a
only "" ctitan train --training.steps ""
has activation-checkpoint:full ctitan train act
only "full" ctitan train activation-checkpoint : f
only "full memory-budget none selective" ctitan train activation-checkpoint :
has --nproc-per-node ctitan run --np
has --training.steps ctitan run --nproc-per-node 2 -m torchtitan.train --training.s
has --checkpoint ctitan generate --ch
only "a file.jsonl" ctitan generate --messages a
has --max-new-tokens ctitan generate --chat --max
only "bfloat16" ctitan generate --dtype b
only "bash zsh" ctitan completion ""
# Every flag of --help is there.
"$bin" train --module llama3 --config llama3_debugmodel --help | grep -oE '^  --[a-z0-9.-]+' | tr -d ' ' | grep -v '^--module$' >flags
[ "$(wc -l <flags)" -gt 120 ]
bash -c '. ./bash.sh; printf "%s\n" $_ctitan_flags' | sort -u >have
sort -u flags | comm -23 - have >missing
[ ! -s missing ] || { cat missing; fail "flags without completion"; }

if command -v zsh >/dev/null; then
    cat >try.zsh <<'X'
compadd() { shift; print -l -- "$@" }
compset() { : }
compdef() { : }
_files() { print -l -- * }
source ./zsh.sh
words=("$@")
CURRENT=$#words
_ctitan
X
    zsh() { command zsh -f try.zsh "$@" | sort; }
    [ "$(zsh ctitan train --training.dtype '' | tr '\n' ' ')" = "bfloat16 float32 " ] || fail "zsh: values"
    zsh ctitan train --training.dtype=b | grep -qx bfloat16 || fail "zsh: values behind ="
    zsh ctitan '' | grep -qx train || fail "zsh: commands"
    zsh ctitan train '' | grep -qx -- --training.steps || fail "zsh: flags"
    zsh ctitan train --config '' | grep -qx my.yaml || fail "zsh: files"
    zsh ctitan train '' | grep -qx activation-checkpoint:full || fail "zsh: kinds"
fi
