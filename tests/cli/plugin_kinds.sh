# SPDX-License-Identifier: Apache-2.0
# labels: slow
# What plug-ins add beside overrides (ops, data sets, optimizers, registry functions), wrong one way each: one error with file, thing and reason, the
# registry as before; and `ctitan plugins`.
set -eu
bin=$1/bin/ctitan
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cc=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$1/CMakeCache.txt")
command -v "$cc" >/dev/null || { echo "no compiler here"; exit 77; }
export CTITAN_PLUGIN_PATH=$dir
fail() { echo "$*"; cat "$dir/err" 2>/dev/null; exit 1; }

cat >"$dir/kinds.c" <<'C'
#include "ctitan/plugin.h"
static ct_status shape(const ct_graph *g, const ct_value *const *in, int32_t n_in, const void *attrs, ct_value_spec *out, ct_err *err)
{
    (void)g, (void)in, (void)n_in, (void)attrs, (void)out;
    return CT_FAIL(err, CT_ERR_SHAPE, "never");
}
static ct_status run(const ct_launch *l, ct_err *err)
{
    (void)l, (void)err;
    return CT_OK;
}
static ct_status open_set(const ct_alloc *a, const char *path, void **state, int64_t *n, uint64_t *identity, ct_err *err)
{
    (void)a, (void)identity;
    *state = (void *)path;
    *n = SET_N;
    return path[0] == 'x' ? CT_FAIL(err, CT_ERR_IO, "no such thing") : CT_OK;
}
static void close_set(void *state)
{
    (void)state;
}
static ct_status read_set(void *state, int64_t k, ct_text_sink *sink, ct_err *err)
{
    (void)state;
    if (k == 1) {
        return CT_FAIL(err, CT_ERR_DATA, "page 1 is torn");
    }
    return k == 2 ? CT_FAIL(err, CT_ERR_IO, "page 2 is lost") : ct_text_add(sink, "once upon a time ", 17, err);
}
static ct_status emit(const ct_optimizer_call *call, ct_err *err)
{
    (void)call, (void)err;
    return CT_OK; /* and overwrites nothing */
}
static ct_status change(ct_tree *tree, ct_component *root, ct_err *err)
{
    static const char *const layers[] = {"2"}, *const steps[] = {"many"};
    CT_TRY(ct_component_set(tree, ct_component_find(root, "model_spec"), "n_layers", layers, 1, CT_SOURCE_REGISTRY, err));
    return CHANGE_FAILS ? ct_component_set(tree, ct_component_find(root, "training"), "steps", steps, 1, CT_SOURCE_REGISTRY, err) : CT_OK;
}
static ct_status setup(ct_registry *r, ct_err *err)
{
    static const ct_op_kernel kernel = {"ref", {.run = run, .dtypes = CT_BIT(F32)}};
    static const ct_op op = {.name = OP_NAME, .n_in_min = 1, .n_in_max = OP_IN, .n_out = 1, .shard = CT_SHARD_ROWS, .shape = OP_SHAPE, .no_gradient = "none",
                             .kernels = &kernel, .n_kernels = 1};
    static const ct_dataset set = {.name = SELF ".set", .open = open_set, .close = close_set, .read = read_set};
    static const ct_optimizer optimizer = {.name = SELF ".Still", .states = CT_STATE_EXP_AVG, .emit = emit};
    int32_t id;
    CT_TRY(ct_registry_add_dataset(r, &set, err));
    CT_TRY(ct_registry_add_optimizer(r, &optimizer, err));
    CT_TRY(ct_registry_add_variant(r, SELF, "small", "llama3", BASE, change, err));
    CT_TRY(ct_registry_add_op(r, &op, &id, err));
    return FAILS ? CT_FAIL(err, CT_ERR_STATE, "gave up after all") : CT_OK;
}
const ct_plugin_info *ct_plugin_entry(void)
{
    static const ct_plugin_info info = {CT_PLUGIN_ABI, sizeof info, SELF, "1", setup};
    return &info;
}
C
kinds() { # kinds NAME [OP_NAME [OP_IN [OP_SHAPE [FAILS [BASE [CHANGE_FAILS [SET_N]]]]]]]
    "$cc" -std=c17 -shared -fPIC -I "$root/include" -DSELF="\"$1\"" -DOP_NAME="\"${2:-$1.op}\"" -DOP_IN="${3:-1}" -DOP_SHAPE="${4:-shape}" -DFAILS="${5:-0}" \
        -DBASE="\"${6:-llama3_debugmodel}\"" -DCHANGE_FAILS="${7:-0}" -DSET_N="${8:-4}" -o "$dir/$1.so" "$dir/kinds.c"
}
kinds fine
kinds many fine 17
kinds shapeless '' 1 0
kinds robber fine.op
kinds undone '' 1 shape 1
kinds baseless '' 1 shape 0 llama3_nothing
kinds changed '' 1 shape 0 '' 1
kinds empty '' 1 shape 0 '' 0 0
told() { # told CODE PATTERN COMMAND...
    local want=$1 pattern=$2 code=0
    shift 2
    "$@" >"$dir/o" 2>"$dir/err" || code=$?
    [ $code = "$want" ] || fail "exit $code, wanted $want: $*"
    grep -qE -- "$pattern" "$dir/err" || fail "no '$pattern' for $*"
    [ ! -s "$dir/o" ] || fail "printed: $(cat "$dir/o")"
}
told 1 "many.so': its setup failed: the op 'fine': wanted a name such as 'plugin.name'" "$bin" plugins many
told 1 "shapeless.so': its setup failed: the op 'shapeless.op' has no shape rule" "$bin" plugins shapeless
told 1 "robber.so': registers the op 'fine.op', wanted a name that begins with 'robber\.'" "$bin" plugins robber
told 1 "undone.so': its setup failed: gave up after all" "$bin" plugins undone
told 1 "baseless.so': its setup failed: .*'small' of 'baseless' goes out from 'llama3_nothing' of 'llama3', which is not there" "$bin" plugins baseless
told 2 "no plug-in 'nobody': 'nobody.so' is not in" "$bin" plugins nobody
# One that failed and one that is fine, in one process: what the first had added is gone, and the second has the same names free.
told 1 'gave up after all' "$bin" plugins undone fine
"$bin" plugins fine >"$dir/o"
for line in '^fine 1 \(.*/fine.so\)$' '^  op         fine.op, 1 in, 1 out, rows, exact, gradient: none; ref: f32$' '^  data set   fine.set: $' '^  optimizer  fine.Still: $' \
    '^  config     --module fine --config small$'; do
    grep -qE -- "$line" "$dir/o" || { cat "$dir/o"; fail "no line '$line'"; }
done
[ "$(wc -l <"$dir/o")" = 5 ] || fail "more than five lines"
"$bin" plugins >"$dir/o" && grep -q "^fine  $dir/fine.so\$" "$dir/o" && grep -q '^npu_compat  ' "$dir/o" || fail "the list"
small=(train --training.steps 1 --training.local-batch-size 1 --training.seq-len 16 --metrics.disable-color-printing --dump-folder "$dir/out")
debug=("${small[@]}" --module llama3 --config llama3_debugmodel)
"$bin" "${small[@]}" --module fine --config small 2>"$dir/err" || fail "a variant"
grep -q 'Training completed' "$dir/err" || fail "a variant"
[ "$("$bin" config --all --module fine --config small | grep -cE '^model_spec.model.layers.[0-9]+.feed_forward.w1.in_features = ')" = 2 ] || fail "a variant of two layers"
told 2 "the registry function 'small' of 'changed': .*'many'" "$bin" "${small[@]}" --module changed --config small
told 2 "dataloader.dataset: 'fine.sett' is no data set: the plug-in 'fine' has fine.set" "$bin" "${debug[@]}" --dataloader.dataset fine.sett
told 2 "optimizer-name: 'fine.Stil' is no optimizer: the plug-in 'fine' has fine.Still" "$bin" "${debug[@]}" --optimizer.name fine.Stil
told 2 "optimizer-name: 'nobody.X': no plug-in 'nobody'" "$bin" "${debug[@]}" --optimizer.name nobody.X
told 1 "optimizer-name: 'undone.X': .*gave up after all" "$bin" "${debug[@]}" --optimizer.name undone.X
told 1 "the optimizer 'fine.Still' overwrites no parameters" "$bin" "${debug[@]}" --optimizer.name fine.Still
told 1 "the data set 'fine.set': no such thing" "$bin" "${debug[@]}" --dataloader.dataset fine.set --dataloader.dataset-path x
told 1 "the data set 'empty.set' has no document" "$bin" "${debug[@]}" --dataloader.dataset empty.set
told 1 "'fine.set' document 1.*page 1 is torn" "$bin" "${debug[@]}" --dataloader.dataset fine.set --training.seq-len 64
told 1 "the data set 'fine.set', document 2: page 2 is lost" "$bin" "${debug[@]}" --dataloader.dataset fine.set --training.seq-len 64 --dataloader.bad-records skip \
    --dataloader.max-bad-share 0.9
echo "all fine"
