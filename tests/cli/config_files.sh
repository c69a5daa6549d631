# SPDX-License-Identifier: Apache-2.0
# labels: fast
# Files of settings: chains of base:, precedence and sources, what YAML 1.1 takes for something else, all problems at once with their places, and
# a run that is saved and loaded again.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "$*"; exit 1; }
value() { # value PATH ARGS...: the value and its source
    local path=$1
    shift
    "$bin" config "$@" | sed -nE "s/^${path//./\\.} = (.*)/\1/p"
}
same() { [ "$1" = "$2" ] || fail "found '$1', wanted '$2'"; }

mkdir sub
cat >root.yaml <<'X'
base: llama3_debugmodel
training: {steps: 3, seq_len: 64, local_batch_size: 1, max_norm: 5}
X
cat >sub/mid.yml <<'X'
base: ../root.yaml
training:
  seq-len: 128
optimizer.lr: 1e-4
X
cat >my.yaml <<'X'
base: sub/mid.yml
training.steps: 4
lr_scheduler:
  decay_ratio: null
activation_checkpoint: full
X
same "$(value training.steps --config my.yaml)" "4  (my.yaml:2)"
same "$(value training.seq_len --config my.yaml)" "128  (sub/mid.yml:3)"
same "$(value training.max_norm --config my.yaml)" "5.0  (sub/../root.yaml:2)"
same "$(value optimizer.param_groups.0.optimizer_kwargs.lr --config my.yaml)" "0.0001  (sub/mid.yml:4)"
same "$(value lr_scheduler.decay_ratio --config my.yaml)" "None  (my.yaml:4)"
same "$(value lr_scheduler.warmup_steps --config my.yaml)" "2  (registry)"
same "$(CTITAN_TRAINING__STEPS=5 value training.steps --config my.yaml)" "5  (env)"
same "$(CTITAN_TRAINING__STEPS=5 value training.steps --config my.yaml --training.steps 6)" "6  (flag)"
same "$(value activation_checkpoint.debug --config my.yaml)" "false  (default)"
same "$(value activation_checkpoint.force_recompute_mm_shapes_by_fqns --config my.yaml)" ""

# The setting says what a text means.
cat >traps.yaml <<'X'
base: llama3_debugmodel
dump_folder: no
hf_assets_path: 1:30
checkpoint: {enable: off, folder: 010, exclude_from_loading: [optimizer, lr_scheduler]}
metrics: {save_tb_folder: 1e3, disable_color_printing: Yes}
optimizer.eps: 1e-9
training: {max_norm: .inf, steps: 1_000}
debug: {save_config_file: "null", seed: ~}
parallelism: {module_fqns_per_model_part: [[a, b], "c,d"]}
compile: {components: []}
X
for want in 'dump_folder = no ' 'hf_assets_path = 1:30 ' 'checkpoint.enable = false ' 'checkpoint.folder = 010 ' \
    'checkpoint.exclude_from_loading = optimizer,lr_scheduler ' 'metrics.save_tb_folder = 1e3 ' 'metrics.disable_color_printing = true ' \
    'optimizer.param_groups.0.optimizer_kwargs.eps = 1e-09 ' 'training.max_norm = inf ' 'training.steps = 1000 ' 'debug.save_config_file = null ' \
    'debug.seed = None ' 'parallelism.module_fqns_per_model_part = a,b c,d ' 'compile.components =  '; do
    "$bin" config --config traps.yaml | grep -qF "$want" || { "$bin" config --config traps.yaml; fail "no line '$want'"; }
done
printf '\xef\xbb\xbfbase: llama3_debugmodel\r\ntraining:\r\n  steps: 7\r\n' >crlf.yaml
same "$(value training.steps --config crlf.yaml)" "7  (crlf.yaml:3)"
same "$(value training.steps --config ./crlf.yaml --module llama3)" "7  (./crlf.yaml:3)"

refused() { # refused FILE-TEXT LINE...: exit 2 and exactly these lines
    local code=0
    printf -- "$1" >bad.yaml
    shift
    "$bin" config --config bad.yaml >/dev/null 2>e || code=$?
    printf '%s\n' "$@" >want
    [ $code = 2 ] && diff want e || fail "exit $code"
}
b='base: llama3_debugmodel\n'
refused "${b}training:\n  stepz: 2\n  steps: x\n  seq_len: 010\nlr: 5\ncheckpoint: 3\n" \
    "bad.yaml:3:3: training.stepz: unknown key (nearest: steps)" \
    "bad.yaml:4:10: training.steps: 'x' is no whole number (INT) that fits in 64 bits" \
    "bad.yaml:5:12: training.seq_len: '010' begins with 0: eights or tens? write it without" \
    "bad.yaml:6:1: lr: unknown key (nearest: optimizer.param_groups.0.optimizer_kwargs.lr)" \
    "bad.yaml:7:13: checkpoint: is a section: wanted keys and values below it"
refused "${b}training: {steps: 2}\ntraining: {seq_len: 3}\n" "bad.yaml:3:1: the key 'training' is there already, in line 2"
refused "${b}training: {steps: 2, }\ntraining.steps: 3\n" "bad.yaml:3:1: training.steps: is set already, at bad.yaml:2"
refused "${b}training:\n\tsteps: 2\n" "bad.yaml:3:1: a tab cannot indent or separate here: wanted blanks"
refused "${b}--- \n${b}" "bad.yaml:2:1: a second document begins here, wanted one a file"
refused "${b}a: &a {b: *a}\n" "bad.yaml:2:11: no finished node has the anchor 'a'"
refused "${b}x: &x {steps: 2}\ntraining: {<<: *x}\n" \
    "bad.yaml:3:12: merge keys are not taken: put what is shared into a file of its own, named by base:"
refused "${b}training: {steps: !!python/object 2}\n" "bad.yaml:2:19: nodes are not taken with the tag 'python/object'"
refused "training: {steps: 2}\n" \
    "bad.yaml: base: is missing: the registry function or the file that this one goes on from, such as base: llama3_debugmodel"
refused "- a\n" "bad.yaml:1:1: wanted sections and settings, such as training: {steps: 10}"
refused "${b}dump_folder: \"a\\\\0b\"\n" "bad.yaml:2:14: a text with a NUL character is not taken"
refused "${b}activation_checkpoint: ful\n" \
    "bad.yaml:2:24: activation_checkpoint: 'ful' is none of selective, full, memory-budget, none (nearest: 'full')"
refused "${b}model_spec: {flavor: 8B}\n" "bad.yaml:2:22: model_spec.flavor: is set by the registry function: choose another base"
refused "${b}optimizer: {param_groups: [$(printf '{},%.0s' {1..65})]}\n" "bad.yaml:2:27: optimizer.param_groups: has 65 entries, wanted 1 to 64"
refused "base: nowhere.yaml\n" "--config: 'nowhere.yaml' cannot be opened: No such file or directory (the base that bad.yaml:1:7 names)"
refused "base: llama3_8c\n" "$("$bin" config --module llama3 --config llama3_8c 2>&1 | sed 's/^--config: /bad.yaml:1:7: base: /')"
{ # a billion laughs
    printf "${b}a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for i in 1 2 3 4 5 6 7 8 9; do
        p="*a$((i - 1))"
        echo "a$i: &a$i [$p, $p, $p, $p, $p, $p, $p, $p, $p, $p]"
    done
} >laughs.yaml
code=0
"$bin" config --config laughs.yaml 2>e >/dev/null || code=$?
[ $code = 2 ] && grep -q 'laughs.yaml:[0-9]*:[0-9]*: the aliases stand for more than 16 MiB' e || { cat e; fail "laughs: $code"; }
printf 'base: two.yaml\n' >one.yaml
printf 'base: one.yaml\n' >two.yaml
code=0
"$bin" config --config one.yaml 2>e >/dev/null || code=$?
[ $code = 2 ] && grep -qx 'two.yaml: base: leads back to a file that it began from: one.yaml -> two.yaml -> one.yaml' e || { cat e; fail "cycle"; }

# A run, saved and loaded again, is the same run; the second time it writes the same file.
cat >run.yaml <<'X'
base: llama3_debugmodel
training: {steps: 2, local_batch_size: 1, seq_len: 32}
activation_checkpoint: none
model_spec: {n_layers: 2, dim: 64, n_heads: 4, n_kv_heads: 2, ffn_hidden: 128}
debug: {seed: 7, save_config_file: saved.yaml}
X
losses() { sed -n 's/.*\(step: .*loss: *[0-9.]*\).*/\1/p' | sed 's/\x1b\[[0-9;]*m//g'; }
"$bin" train --config run.yaml --dump-folder a 2>log1
"$bin" train --config a/saved.yaml 2>log2 || { cat log2; fail "what was saved does not load"; }
[ "$(losses <log1)" = "$(losses <log2)" ] && [ "$(losses <log1 | wc -l)" = 2 ] || { cat log1 log2; fail "another run"; }
"$bin" train --config a/saved.yaml --debug.save-config-file again.json 2>/dev/null
"$bin" config --config a/again.json --yaml --debug.save-config-file saved.yaml >again.yaml
cmp a/saved.yaml again.yaml || { diff a/saved.yaml again.yaml; fail "saved again, it is another file"; }
