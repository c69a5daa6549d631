/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: fake/cann */
/* What phase 1 of each operator accepts and refuses, with which status: one good call, then one operand at a
 * time made wrong. */
#include "fake/cann/testing/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct good {
    const char *name, *text;
} good;

/* Each is accepted as it stands. */
static const good goods[] = {
    {"Mm", "self:bf16:4,6 mat2:bf16:6,3 out:bf16:4,3 cube=0"},
    {"Matmul", "self:f32:2,4,6 mat2:f32:2,6,3 out:f32:2,4,3 cube=0"},
    {"BatchMatMul", "self:f32:2,4,6 mat2:f32:2,6,3 out:f32:2,4,3 cube=0"},
    {"Addmm", "self:f32:3 mat1:f32:4,6 mat2:f32:6,3 beta$f32:1 alpha$f32:1 out:f32:4,3 cube=0"},
    {"InplaceAddmm", "self:f32:4,3 mat1:f32:4,6 mat2:f32:6,3 beta$f32:1 alpha$f32:1 cube=0"},
    {"Add", "self:f32:4,3 other:f32:3 alpha$f32:1 out:f32:4,3"},
    {"InplaceAdd", "self:f32:4,3 other:bf16:4,3 alpha$f32:1"},
    {"Mul", "self:f32:4,3 other:f32:3 out:f32:4,3"},
    {"Muls", "self:f32:4,3 other$f32:2 out:f32:4,3"},
    {"LtScalar", "self:f32:4,3 other$f32:2 out:bool:4,3"},
    {"Exp", "self:bf16:4,3 out:bf16:4,3"},
    {"IsFinite", "self:bf16:4,3 out:bool:4,3"},
    {"SiluBackward", "grad:bf16:4,3 self:bf16:4,3 out:bf16:4,3"},
    {"SWhere", "condition:bool:4,3 self:f32:4,3 other:f32:4,3 out:f32:4,3"},
    {"Cast", "self:f32:4,3 dtype%bf16 out:bf16:4,3"},
    {"InplaceCopy", "self:f32:4,3 src:bf16:4,3"},
    {"InplaceZero", "self:f32:4,3"},
    {"InplaceFillScalar", "self:i64:4,3 value$i64:1"},
    {"Cat", "tensors{f32:4,3;f32:4,2} dim=1 out:f32:4,5"},
    {"Arange", "start$i64:0 end$i64:4 step$i64:1 out:i64:4"},
    {"RmsNorm", "x:bf16:4,6 gamma:bf16:6 eps~1e-5 y:bf16:4,6 rstd:f32:4,1"},
    {"RmsNormGrad", "dy:bf16:4,6 x:bf16:4,6 rstd:f32:4,1 gamma:bf16:6 dx:bf16:4,6 dgamma:f32:6"},
    {"RotaryPositionEmbedding", "x:bf16:2,3,4,6 cos:bf16:1,3,1,6 sin:bf16:1,3,1,6 mode=0 out:bf16:2,3,4,6"},
    {"RotaryPositionEmbeddingGrad", "dy:bf16:2,3,4,6 cos:bf16:1,3,1,6 sin:bf16:1,3,1,6 x:null mode=0 "
                                    "dx:bf16:2,3,4,6 dcos:bf16:1,3,1,6 dsin:bf16:1,3,1,6"},
    {"SwiGlu", "x:bf16:4,6 dim=-1 out:bf16:4,3"},
    {"SwiGluGrad", "dy:bf16:4,3 x:bf16:4,6 dim=-1 out:bf16:4,6"},
    {"ApplyAdamWV2", "p:f32:4 m:f32:4 v:f32:4 max:null g:bf16:4 step:i64:1 lr~1 b1~0.9 b2~0.9 wd~0 eps~1e-8 "
                     "amsgrad=0 maximize=0"},
    {"Embedding", "weight:bf16:5,3 indices:i64:2,4 out:bf16:2,4,3"},
    {"EmbeddingDenseBackward", "grad:f32:2,4,3 indices:i64:2,4 rows=5 padding=-1 scale=0 out:f32:5,3"},
    {"IndexSelect", "self:f32:4,3 dim=0 index:i64:2 out:f32:2,3"},
    {"Gather", "self:f32:4,3 dim=1 index:i64:4,1 out:f32:4,1"},
    {"LogSoftmax", "self:f32:4,3 dim=1 out:f32:4,3"},
    {"LogSoftmaxBackward", "grad:f32:4,3 output:f32:4,3 dim=1 out:f32:4,3"},
    {"NLLLoss", "self:f32:4,3 target:i64:4 weight:f32:3 reduction=1 ignore=-100 out:f32:1 total:f32:1"},
    {"NLLLossBackward",
     "grad:f32:1 self:f32:4,3 target:i64:4 weight:f32:3 reduction=1 ignore=-100 total:f32:1 out:f32:4,3"},
    {"CrossEntropyLoss",
     "input:f32:4,3 target:i64:4 weight:null reduction\"mean ignore=-100 smoothing~0 scale~0 z=0 loss:f32:1 "
     "logprob:f32:4,3 zloss:f32:1 lse:f32:4"},
    {"CrossEntropyLossGrad",
     "grad:f32:- logprob:f32:4,3 target:i64:4 weight:null gz:null lse:null reduction\"mean ignore=-100 "
     "smoothing~0 scale~0 out:f32:4,3"},
    {"ReduceSum", "self:bf16:4,3 dims[0 keep=0 dtype%f32 out:f32:3"},
    {"Amax", "self:f32:4,3 dims[1 keep=1 out:f32:4,1"},
    {"LogSumExp", "self:f32:4,3 dims[1 keep=1 out:f32:4,1"},
    {"LinalgVectorNorm", "self:bf16:4,3 ord$f32:2 dims[ keep=0 dtype%f32 out:f32:-"},
    {"FlashAttentionScore",
     "q:bf16:2,4,5,8 k:bf16:2,2,6,8 v:bf16:2,2,6,8 pse:null drop:null pad:null mask:bool:2048,2048/0,0 "
     "prefix:null "
     "scale~1 keep~1 pre=9 next=9 heads=4 layout\"BNSD precise=0 sparse=3 max:f32:2,4,5,8 sum:f32:2,4,5,8 "
     "soft:null out:bf16:2,4,5,8"},
    {"FlashAttentionVarLenScore",
     "q:bf16:9,4,8 k:bf16:9,2,8 v:bf16:9,2,8 pse:null drop:null pad:null mask:bool:2048,2048/0,0 prefix:null "
     "lq[4,9 lk[4,9 scale~1 keep~1 pre=9 next=9 heads=4 layout\"TND precise=0 sparse=2 max:f32:9,4,8 "
     "sum:f32:9,4,8 soft:null out:bf16:9,4,8"},
    {"FlashAttentionScoreGrad",
     "q:bf16:2,4,5,8 k:bf16:2,2,6,8 v:bf16:2,2,6,8 dy:bf16:2,4,5,8 pse:null drop:null pad:null "
     "mask:bool:2048,2048/0,0 max:f32:2,4,5,8 sum:f32:2,4,5,8 soft:null att:bf16:2,4,5,8 prefix:null scale~1 "
     "keep~1 pre=9 next=9 heads=4 layout\"BNSD precise=0 sparse=3 dq:bf16:2,4,5,8 dk:bf16:2,2,6,8 "
     "dv:bf16:2,2,6,8 dpse:null"},
    {"FlashAttentionUnpaddingScoreGrad",
     "q:bf16:9,4,8 k:bf16:9,2,8 v:bf16:9,2,8 dy:bf16:9,4,8 pse:null drop:null pad:null "
     "mask:bool:2048,2048/0,0 max:f32:9,4,8 sum:f32:9,4,8 "
     "soft:null att:bf16:9,4,8 prefix:null lq[4,9 lk[4,9 scale~1 keep~1 pre=9 next=9 heads=4 layout\"TND "
     "precise=0 sparse=2 "
     "dq:bf16:9,4,8 dk:bf16:9,2,8 dv:bf16:9,2,8 dpse:null"},
};

enum { NULLPTR = 161001, INVALID = 161002, TILING = 561002, VIEW = 561103 };

/* What is changed, and the status; 0: accepted too. */
static const struct {
    const char *name, *change;
    int status;
} rows[] = {
    {"Mm", "self:null", NULLPTR},
    {"Mm", "mat2:null", NULLPTR},
    {"Mm", "out:null", NULLPTR},
    {"Mm", "self:f32:4,6", INVALID}, /* BFLOAT16 with FLOAT */
    {"Mm", "self:f16:4,6", INVALID},
    {"Mm", "out:f32:4,3", INVALID}, /* a FLOAT result of BFLOAT16 */
    {"Mm", "self:i32:4,6", INVALID},
    {"Mm", "self:bf16:4,5", INVALID},
    {"Mm", "self:bf16:1,4,6", INVALID},
    {"Mm", "out:bf16:3,4", INVALID},
    {"Mm", "cube=2", INVALID},
    {"Mm", "cube=3", INVALID},
    {"Mm", "cube=9", INVALID},
    {"Mm", "cube=1", 0},
    {"Mm", "self:f16:4,6 mat2:f32:6,3 out:f32:4,3", 0},
    {"Mm", "self:bf16:4,6/1,4", 0},
    {"Mm", "self:bf16:0,6 out:bf16:0,3", 0},
    {"Mm", "self:bf16:1,1,1,1,1,1,1,4,6", INVALID},
    {"Matmul", "mat2:f32:3,6,3", INVALID},
    {"Matmul", "mat2:f32:6,3", 0},
    {"Matmul", "self:f32:1,1,1,1,1,4,6", INVALID},
    {"BatchMatMul", "mat2:f32:1,6,3", 0},
    {"BatchMatMul", "mat2:f32:3,6,3", INVALID},
    {"BatchMatMul", "mat2:f32:6,3", INVALID},
    {"Addmm", "self:f32:4", INVALID},
    {"Addmm", "self:bf16:3", INVALID},
    {"InplaceAddmm", "self:f32:3", INVALID},
    {"Add", "other:f32:2", INVALID},
    {"Add", "out:f32:3,4", INVALID},
    {"Add", "out:i32:4,3", INVALID},
    {"Add", "self:i64:4,3 other:i64:3 alpha$f32:1.5 out:i64:4,3", INVALID},
    {"Add", "other:c64:3", INVALID},
    {"Add", "other:u64:3", INVALID},
    {"Add", "other:bf16:3", 0},
    {"InplaceAdd", "self:f32:3 other:f32:4,3", INVALID},
    {"Mul", "self:i64:4,3 other:f32:3 out:i64:4,3", INVALID},
    {"Muls", "self:i64:4,3 out:i64:4,3", INVALID},
    {"Muls", "out:f32:3,4", INVALID},
    {"LtScalar", "out:f32:4,2", INVALID},
    {"Exp", "self:i64:4,3", INVALID},
    {"Exp", "out:bf16:3,4", INVALID},
    {"Exp", "out:f32:4,3", 0},
    {"IsFinite", "out:f32:4,3", INVALID},
    {"SiluBackward", "self:bf16:4,2", INVALID},
    {"SWhere", "condition:f32:4,3", INVALID},
    {"SWhere", "condition:bool:2,3", INVALID},
    {"SWhere", "other:i64:4,3 self:f32:4,3 out:i64:4,3", INVALID},
    {"Cast", "out:bf16:3,4", INVALID},
    {"Cast", "dtype%f16", INVALID},
    {"Cast", "self:bool:4,3/1,4", VIEW},
    {"InplaceCopy", "src:bf16:4", INVALID},
    {"InplaceCopy", "src:f32:3", 0},
    {"InplaceZero", "self:c64:4,3", INVALID},
    {"InplaceFillScalar", "value$f32:1", INVALID},
    {"Cat", "tensors{f32:4,3;bf16:4,2}", INVALID},
    {"Cat", "tensors{f32:4,3;f32:3,2}", INVALID},
    {"Cat", "dim=2", INVALID},
    {"Arange", "end$f64:4", INVALID},
    {"Arange", "out:i64:5", INVALID},
    {"RmsNorm", "gamma:null", NULLPTR},
    {"RmsNorm", "rstd:bf16:4,1", INVALID},
    {"RmsNorm", "gamma:f16:6", INVALID},
    {"RmsNorm", "gamma:f32:6", 0},
    {"RmsNorm", "y:f32:4,6", INVALID},
    {"RmsNorm", "gamma:bf16:4", TILING},
    {"RmsNorm", "rstd:f32:4", TILING},
    {"RmsNorm", "rstd:f32:3,1", TILING},
    {"RmsNormGrad", "dgamma:bf16:6", INVALID},
    {"RmsNormGrad", "dy:f32:4,6", INVALID},
    {"RmsNormGrad", "rstd:f32:4", 0},
    {"RmsNormGrad", "rstd:f32:3,1", TILING},
    {"RmsNormGrad", "dx:bf16:6,4", TILING},
    {"RotaryPositionEmbedding", "cos:f32:1,3,1,6", INVALID},
    {"RotaryPositionEmbedding", "mode=2", TILING},
    {"RotaryPositionEmbedding", "x:bf16:2,3,4,5 cos:bf16:1,3,1,5 sin:bf16:1,3,1,5 out:bf16:2,3,4,5", TILING},
    {"RotaryPositionEmbedding", "x:bf16:2,3,4,896 cos:bf16:1,3,1,896 sin:bf16:1,3,1,896 out:bf16:2,3,4,896",
     TILING},
    {"RotaryPositionEmbedding", "cos:bf16:1,1,1,6 sin:bf16:1,1,1,6", TILING},
    {"RotaryPositionEmbedding", "cos:bf16:2,3,1,6 sin:bf16:2,3,1,6", 0},
    {"RotaryPositionEmbedding", "cos:bf16:2,3,1,6 sin:bf16:2,3,1,6 mode=1", TILING},
    {"RotaryPositionEmbedding", "x:bf16:1000,3,4,6 out:bf16:1000,3,4,6", TILING},
    {"RotaryPositionEmbedding", "x:bf16:3,4,6 cos:bf16:3,1,6 sin:bf16:3,1,6 out:bf16:3,4,6", TILING},
    {"RotaryPositionEmbedding", "out:bf16:2,3,4,6/72,6,18,1", VIEW},
    {"RotaryPositionEmbedding", "x:bf16:2,3,4,6/72,6,18,1", 0},
    {"RotaryPositionEmbeddingGrad", "dcos:null", NULLPTR},
    {"RotaryPositionEmbeddingGrad", "x:bf16:2,3,4,6", 0},
    {"RotaryPositionEmbeddingGrad", "dy:bf16:40,3,40,6 x:bf16:40,3,40,6 dx:bf16:40,3,40,6", TILING},
    {"RotaryPositionEmbeddingGrad", "dy:bf16:40,3,40,6 dx:bf16:40,3,40,6", 0},
    {"SwiGlu", "x:bf16:4,5", TILING},
    {"SwiGlu", "dim=2", INVALID},
    {"SwiGlu", "x:bf16:4,6/1,4", VIEW},
    {"SwiGlu", "out:bf16:4,6", TILING},
    {"SwiGluGrad", "dy:bf16:4,3/1,4", VIEW},
    {"SwiGluGrad", "dy:bf16:0,3 x:bf16:0,6 out:bf16:0,6", INVALID},
    {"ApplyAdamWV2", "m:f32:3", INVALID},
    {"ApplyAdamWV2", "m:bf16:4", INVALID},
    {"ApplyAdamWV2", "step:i64:2", INVALID},
    {"ApplyAdamWV2", "step:i32:1", INVALID},
    {"ApplyAdamWV2", "amsgrad=1", NULLPTR},
    {"ApplyAdamWV2", "max:f32:4", INVALID},
    {"ApplyAdamWV2", "p:bf16:4 m:bf16:4 v:bf16:4 g:f32:4", INVALID},
    {"Embedding", "indices:f32:2,4", INVALID},
    {"Embedding", "out:f32:2,4,3", INVALID},
    {"Embedding", "out:bf16:8,3", INVALID},
    {"EmbeddingDenseBackward", "out:f32:6,3", INVALID},
    {"EmbeddingDenseBackward", "out:bf16:5,3", INVALID},
    {"EmbeddingDenseBackward", "grad:f32:8,3", INVALID},
    {"IndexSelect", "index:i64:2,1", INVALID},
    {"IndexSelect", "dim=2", INVALID},
    {"Gather", "index:i64:4", INVALID},
    {"Gather", "index:i64:5,1 out:f32:5,1", INVALID},
    {"Gather", "out:f32:4,3", INVALID},
    {"LogSoftmax", "dim=2", INVALID},
    {"LogSoftmax", "self:i64:4,3", INVALID},
    {"LogSoftmaxBackward", "output:f32:3,4", INVALID},
    {"NLLLoss", "weight:null", NULLPTR},
    {"NLLLoss", "total:null", NULLPTR},
    {"NLLLoss", "weight:bf16:3", INVALID},
    {"NLLLoss", "weight:f32:4", INVALID},
    {"NLLLoss", "reduction=3", INVALID},
    {"NLLLoss", "out:f32:4", INVALID},
    {"NLLLoss", "target:i64:3", INVALID},
    {"NLLLossBackward", "out:f32:3,4", INVALID},
    {"CrossEntropyLoss", "zloss:null", NULLPTR},
    {"CrossEntropyLoss", "lse:null", NULLPTR},
    {"CrossEntropyLoss", "weight:bf16:3", INVALID},
    {"CrossEntropyLoss", "loss:f32:-", TILING},
    {"CrossEntropyLoss", "reduction\"avg", TILING},
    {"CrossEntropyLoss", "smoothing~1.5", TILING},
    {"CrossEntropyLoss", "target:i32:4", 0},
    {"CrossEntropyLossGrad", "target:i32:4", INVALID},
    {"CrossEntropyLossGrad", "smoothing~0.1", TILING},
    {"CrossEntropyLossGrad", "grad:f32:1", TILING},
    {"CrossEntropyLossGrad", "logprob:bf16:4,3", INVALID},
    {"ReduceSum", "dims:null", NULLPTR},
    {"ReduceSum", "dims[0,0", INVALID},
    {"ReduceSum", "dims[2", INVALID},
    {"ReduceSum", "dtype%bf16", INVALID},
    {"ReduceSum", "out:f32:4", INVALID},
    {"Amax", "out:bf16:4,1", INVALID},
    {"LogSumExp", "dims:null", NULLPTR},
    {"LinalgVectorNorm", "dims:null", NULLPTR},
    {"LinalgVectorNorm", "ord$f64:2", INVALID},
    {"LinalgVectorNorm", "self:f32:4,3 dtype%bf16 out:bf16:-", INVALID},
    {"LinalgVectorNorm", "dtype%bf16", INVALID},
    {"FlashAttentionScore", "max:null", NULLPTR},
    {"FlashAttentionScore", "layout:null", NULLPTR},
    {"FlashAttentionScore", "k:f32:2,2,6,8", INVALID},
    {"FlashAttentionScore", "k:bf16:2,2,6,4 v:bf16:2,2,6,4", INVALID},
    {"FlashAttentionScore", "v:bf16:2,2,6,16", INVALID},
    {"FlashAttentionScore", "heads=0", INVALID},
    {"FlashAttentionScore", "q:bf16:2,4,5,770 k:bf16:2,2,6,770 v:bf16:2,2,6,770 out:bf16:2,4,5,770", INVALID},
    {"FlashAttentionScore", "q:bf16:2,4,5,768 k:bf16:2,2,6,768 v:bf16:2,2,6,768 out:bf16:2,4,5,768", 0},
    {"FlashAttentionScore", "v:bf16:2,2,6,4 out:bf16:2,4,5,4", 0},
    {"FlashAttentionScore", "heads=2", TILING},
    {"FlashAttentionScore", "layout\"bnsd", INVALID},
    {"FlashAttentionScore", "layout\"TND", INVALID},
    {"FlashAttentionScore", "layout\"BSH", INVALID},
    {"FlashAttentionScore", "k:bf16:2,3,6,8 v:bf16:2,3,6,8", TILING},
    {"FlashAttentionScore", "keep~0", TILING},
    {"FlashAttentionScore", "sparse=9", TILING},
    {"FlashAttentionScore", "sparse=7", TILING},
    {"FlashAttentionScore", "mask:bool:5,6", TILING},
    {"FlashAttentionScore", "sparse=1 mask:bool:5,6", 0},
    {"FlashAttentionScore", "sparse=0 mask:u8:2,1,5,6", 0},
    {"FlashAttentionScore", "sparse=1", TILING},
    {"FlashAttentionScore", "mask:f32:2048,2048", INVALID},
    {"FlashAttentionScore", "mask:null", 0},
    {"FlashAttentionScore", "max:bf16:2,4,5,8", INVALID},
    {"FlashAttentionScore", "max:f32:2,4,5", TILING},
    {"FlashAttentionScore", "out:bf16:2,5,4,8", INVALID},
    {"FlashAttentionVarLenScore", "lq[4,8", TILING},
    {"FlashAttentionVarLenScore", "lq[9,4", TILING},
    {"FlashAttentionVarLenScore", "lq[4,5,9", TILING},
    {"FlashAttentionVarLenScore", "lq:null", TILING},
    {"FlashAttentionVarLenScore", "lq[5,9 sparse=3", TILING},
    {"FlashAttentionVarLenScore", "max:f32:4,9,8", TILING},
    {"FlashAttentionVarLenScore", "layout\"BSND", INVALID},
    {"FlashAttentionScoreGrad", "att:null", NULLPTR},
    {"FlashAttentionScoreGrad", "dk:null", NULLPTR},
    {"FlashAttentionScoreGrad", "dy:f32:2,4,5,8", INVALID},
    {"FlashAttentionScoreGrad", "dk:bf16:2,4,6,8", INVALID},
    {"FlashAttentionScoreGrad", "dpse:bf16:0", 0},
    {"FlashAttentionUnpaddingScoreGrad", "lk[9,4", TILING},
    {"FlashAttentionUnpaddingScoreGrad", "dq:bf16:9,2,8", INVALID},
};

static const char *text_of(const char *name)
{
    for (size_t i = 0; i < sizeof goods / sizeof goods[0]; i++) {
        if (strcmp(goods[i].name, name) == 0) {
            return goods[i].text;
        }
    }
    return "";
}

static int try(const char *name, const char *change, int want)
{
    op *o = op_new_with(name, text_of(name), change);
    int r = op_phase1(o);
    const char *text = r ? aclGetRecentErrMsg() : "";
    int bad = r != want || (r != 0 && (!text || !strstr(text, name)));
    if (bad) {
        fprintf(stderr, "%s %s: wanted %d, got %d: %s\n", name, change, want, r, text ? text : "no text");
    }
    if (r == 0) {
        aclDestroyAclOpExecutor(o->executor);
    }
    op_free(o);
    return bad;
}

int main(void)
{
    int bad = 0;
    ops_begin();
    for (size_t i = 0; i < sizeof goods / sizeof goods[0]; i++) {
        bad += try(goods[i].name, "", 0);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bad += try(rows[i].name, rows[i].change, rows[i].status);
    }
    printf("%zu operators, %zu changes, %d wrong\n", sizeof goods / sizeof goods[0],
           sizeof rows / sizeof rows[0], bad);
    return bad != 0;
}
