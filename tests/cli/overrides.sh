#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# labels: slow
# Overrides of any component: optimizer, loss, dataloader, metrics, checkpoint and training as well as parts of the model, from the command line with
# arguments in JSON and from YAML; what check-overrides says of each, with exit codes.
set -eu
bin=$1/bin/ctitan
dir=$(mktemp -d "$1/test-overrides-XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export CTITAN_PLUGIN_PATH=$1/tests/plugins
fail() { echo "FAILED: $*"; tail -n 12 out err 2>/dev/null; exit 1; }
small=(--model-spec.n-layers 2 --model-spec.dim 64 --model-spec.n-heads 4 --model-spec.n-kv-heads 2 --model-spec.ffn-hidden 96 --training.seq-len 16
       --training.local-batch-size 2 --metrics.disable-color-printing --debug.seed 42 --training.mixed-precision-param float32)
train() { # CONFIG FLAGS...
    local config=$1
    shift
    rm -rf outputs
    "$bin" train --module llama3 --config "$config" "${small[@]}" "$@" >out 2>err || fail "train $*"
}
says() { grep -qF -- "$1" err || fail "not said: $1"; }
loss_of() { sed -nE "s/.*step: +$1 +loss: +([0-9.]+).*/\1/p" err; }

# ---- sections ----------------------------------------------------------------------------------------------------------
train llama3_debugmodel --training.steps 4
stock=$(loss_of 1)
train llama3_debugmodel --training.steps 4 --checkpoint.enable --override.imports 'any_part.kwargs={"lr": 0.002, "betas": [0.8, 0.99]}' \
    'any_part.metrics={"log_freq": 3, "enable_tensorboard": true}' 'any_part.checkpoint={"folder": "kept here", "interval": 2, "keep_latest_k": 0}' \
    'any_part.training={"steps": 5}' 'any_part.loader={"seed": 9, "shuffle": true}'
says "[Override] any_part.kwargs: optimizer.param_groups.0.optimizer_kwargs OptimizerKwargs.Config -> OptimizerKwargs.Config with lr=0.002, betas=[0.8, 0.99]"
says "[Override] any_part.metrics: metrics MetricsProcessor.Config -> MetricsProcessor.Config with log_freq=3, enable_tensorboard=True"
says "[Override] any_part.loader: validator.dataloader ValidationDataLoader.Config -> ValidationDataLoader.Config with seed=9, shuffle=True"
says "Applied 6 override(s)"
says "'lr': 0.002, 'betas': (0.8, 0.99)"
says 'total steps 5'
says '/kept here'
[ "$(grep -cE ' step: +[0-9]+ +loss' err)" = 2 ] || fail 'lines are written at other steps than 1 and 3'
[ -d 'outputs/kept here/step-2' ] && [ -d 'outputs/kept here/step-5' ] && ls outputs/tb/* >/dev/null || fail 'checkpoints or events are elsewhere'
[ "$(loss_of 1)" != "$stock" ] || fail 'the loader reads the same rows with another seed'
train llama3_debugmodel --training.steps 2 --validator.dataloader.dataset c4_test --override.imports 'any_part.validator={"enable": true, "freq": 2, "steps": 1}'
grep -q 'validate step:' err || fail 'the validator is as it was'
code=0
"$bin" train --module llama3 --config llama3_debugmodel "${small[@]}" --override.imports any_part.loader any_part.validator >out 2>err || code=$?
[ $code = 2 ] && grep -q "'any_part.validator' claims 'validator', which holds 'validator.dataloader', claimed by 'any_part.loader'" err || fail "nested sections: $code"
# From the environment, too.
(export CTITAN_OVERRIDE__IMPORTS='any_part.kwargs={"lr":0.003} any_part.good_norm'; train llama3_debugmodel --training.steps 1)
says 'OptimizerKwargs.Config with lr=0.003'
says 'Applied 6 override(s)'
# What the settings alone would refuse is refused of overrides too.
code=0
"$bin" train --module llama3 --config llama3_debugmodel "${small[@]}" --override.imports 'any_part.training={"global_batch_size": 3}' >out 2>err || code=$?
[ $code = 2 ] && grep -q 'global' err && ! grep -q 'Training starts' err || fail "a batch that does not divide: $code"

# ---- the loss ----------------------------------------------------------------------------------------------------------
train llama3_debugmodel --training.steps 1 --override.imports any_part.same_loss
says '[Override] any_part.same_loss: loss ChunkedCELoss.Config -> SameLoss.Config'
[ "$(loss_of 1)" = "$stock" ] || fail "the same loss is $(loss_of 1), not $stock"
train llama3_debugmodel --training.steps 1 --override.imports any_part.cold_loss
[ "$(loss_of 1)" != "$stock" ] || fail 'another loss changes nothing'

# ---- YAML --------------------------------------------------------------------------------------------------------------
cat >run.yaml <<'X'
base: llama3_debugmodel
override:
  imports:
    - any_part.good_norm
    - any_part.kwargs: {lr: 2e-3, betas: [0.8, 0.99]}
    - 'any_part.metrics={"log_freq": 3}'
    - any_part.checkpoint: {folder: 'null', export_dtype: "bfloat16", last_save_in_hf: false}
X
train run.yaml --training.steps 1
says "[Override] any_part.kwargs: optimizer.param_groups.0.optimizer_kwargs OptimizerKwargs.Config -> OptimizerKwargs.Config with lr=0.002, betas=[0.8, 0.99]"
says "with folder='null', export_dtype='bfloat16', last_save_in_hf=False"
says 'Applied 8 override(s)'
"$bin" config --module llama3 --config run.yaml --as yaml >again.yaml 2>err || "$bin" config --module llama3 --config run.yaml >again.yaml 2>err || fail 'config'
grep -q 'any_part.kwargs' again.yaml || fail 'config does not tell'
printf 'base: llama3_debugmodel\noverride:\n  imports:\n    - any_part.kwargs: 3\n' >bad.yaml
code=0
"$bin" train --module llama3 --config bad.yaml >out 2>err || code=$?
[ $code = 2 ] && grep -q 'bad.yaml' err || fail "arguments that are no section: $code"

# ---- overrides show ----
"$bin" overrides show any_part >out 2>err || fail 'overrides show'
grep -qF 'any_part.swapped: (no description)' out && grep -qF '  in the place of FeedForward and what is derived from it, at *.layers.0.*' out || fail 'overrides show: lines'
"$bin" overrides show fused_swiglu | grep -qF 'fused_swiglu.fused_swiglu: gate and up as one weight w13 and one product' || fail 'description'

# ---- check-overrides ---------------------------------------------------------------------------------------------------
check() { # CODE LAST-LINE TARGET...
    local want=$1 last=$2 code=0
    shift 2
    "$bin" check-overrides "$@" >out 2>err || code=$?
    [ $code = "$want" ] || fail "check-overrides $*: exit $code, wanted $want"
    [ "$last" = - ] || [ "$(tail -n 1 out)" = "$last" ] || fail "check-overrides $*: another last line than '$last'"
}
ok='any override equivalence: forward OK, gradients OK, parameters OK'
differs='any override equivalence: forward DIFFERS, gradients DIFFER, parameters OK'
check 0 "$ok" any_part.good_norm
for part in layers.0.attention_norm layers.0.ffn_norm norm 'whole model'; do
    grep -qE "^  $part +difference +allowed" out || fail "good_norm: $part is not compared"
done
grep -qE '^    gradient of norm.weight +f64 ' out && ! grep -q DIFFERS out || fail 'good_norm: lines'
check 1 "$differs" any_part.wide_norm # 2 percent of epsilon
grep -qE '^    forward +f32 .*DIFFERS at .*x of size 0.001' out || fail 'wide_norm: where'
check 1 'any override equivalence: forward DIFFERS, gradients OK, parameters OK' any_part.late_norm # only where single tokens are generated
grep -qE '^    logits of prompt and next tokens +f32 .*DIFFERS at' out || fail 'late_norm: where'
check 1 "$differs" any_part.swapped
check 1 'any override equivalence: forward DIFFERS, gradients DIFFER, parameters DIFFER' any_part.renamed # weights are drawn by name
grep -q "the replacement has no parameter 'feed_forward.w3.weight'\|the stock part has no parameter 'feed_forward.up.w3.weight'" out || fail 'renamed: which'
check 1 - any_part.deeper
grep -q "the stock part has no parameter 'feed_forward.scale'" out || fail 'deeper: which'
check 0 "$ok" any_part.same_loss
check 1 "$differs" any_part.cold_loss
for target in rope head embedding; do
    check 0 "$ok" any_part.$target
done
check 0 - 'any_part.metrics={"log_freq": 3}'
grep -q 'settings alone are replaced' out || fail 'settings'
check 1 "$differs" 'any_part.rope={"theta": 499000.0}' # arguments are heeded
check 0 'fused override equivalence: forward OK, gradients OK, parameters OK' fused_swiglu.fused_swiglu
check 0 - --device ref fused_swiglu npu_compat # plug-ins: all that they have
grep -q "on 'ref'" out && [ "$(tail -n 1 out)" = 'npu override equivalence: rope OK, mask OK' ] || fail 'two plug-ins on ref'
check 2 - --device nothing fused_swiglu
grep -q "no backend 'nothing'; there are cpu, ref" err || fail 'unknown device'
check 2 -
check 2 - --devise cpu fused_swiglu
check 2 - any_part.nothing
grep -q 'any_part.good_norm, any_part.wide_norm' err || fail 'unknown override: which there are'
check 2 - nothing
check 2 - 'any_part.metrics={"log_freq": '
echo 'overrides: all components'
