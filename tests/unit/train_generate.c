/* SPDX-License-Identifier: Apache-2.0 */
/* labels: fast */
/* The KV cache: a prompt fed in chunks, one token at a time, or anew in one piece leaves the same logits within the rounding of f32; what was
 * padding in a chunk leaves no trace. bfloat16 is within its rounding. Sampling follows seed, temperature and top-k. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "backend/ref/ref.h"
#include "base/base.h"
#include "model/model.h"
#include "train/generate.h"

enum { N = 45 };

static const cti_generator_options f32 = {.cache_len = N + 3, .dtype = CT_DTYPE_F32};

static cti_generator *make(const ct_backend *backend, ct_tree **tree)
{
    ct_err err = {0};
    ct_component *spec;
    cti_generator *gen = NULL;
    assert_int_equal(ct_tree_create(ct_alloc_system(), tree, &err), CT_OK);
    assert_int_equal(cti_llama3_spec(*tree, "debugmodel", &spec, &err), CT_OK);
    ct_component_find(spec, "model.layers")->n_children = 2;
    if (cti_generator_create(ct_alloc_system(), backend, spec, &f32, &gen, &err) != CT_OK ||
        cti_engine_init_weights(gen->engine, gen->layout, &gen->builds[0], 0, 7, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return gen;
}

static void feed(cti_generator *gen, const int32_t *ids, int64_t n)
{
    ct_err err = {0};
    if (cti_generator_feed(gen, ids, n, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
}

/* Largest difference of logits over their largest magnitude. */
static double difference(const cti_generator *a, const cti_generator *b)
{
    double worst = 0.0, top = 0.0;
    for (int64_t i = 0; i < a->vocab_size; i++) {
        worst = fmax(worst, fabs((double)a->logit_values[i] - (double)b->logit_values[i]));
        top = fmax(top, fabs((double)a->logit_values[i]));
    }
    return worst / top;
}

static void test_cache(void **state)
{
    (void)state;
    /* Each logit passes about 12 sums of at most 768 terms; their worst case is far above what happens, their root is not. */
    const double bound = 12.0 * sqrt(768.0) * ct_dtype_unit_roundoff(CT_DTYPE_F32) * 4.0;
    ct_tree *trees[3];
    cti_generator *whole = make(ct_backend_cpu(), &trees[0]), *single = make(ct_backend_cpu(), &trees[1]),
                  *ref = make(ct_backend_ref(), &trees[2]);
    int32_t ids[N];
    for (int i = 0; i < N; i++) {
        ids[i] = (i * 97 + 13) % 2048;
    }
    feed(whole, ids, N);
    feed(ref, ids, N);
    for (int i = 0; i < N; i++) {
        feed(single, &ids[i], 1);
    }
    assert_true(difference(whole, single) <= bound);
    assert_true(difference(whole, ref) <= bound);
    /* Another history gives other logits: the comparison can fail. */
    ct_tree *tree;
    cti_generator *other = make(ct_backend_cpu(), &tree);
    ids[N - 2]++;
    feed(other, ids, N);
    assert_true(difference(whole, other) > 10.0 * bound);
    ct_err err = {0};
    assert_int_equal(cti_generator_feed(other, ids, 4, &err), CT_ERR_RANGE); /* 3 tokens of room are left */
    const int32_t beyond = 2048;
    assert_int_equal(cti_generator_feed(other, &beyond, 1, &err), CT_ERR_RANGE); /* the vocabulary's size */
    feed(other, ids, 3);
    /* After a reset nothing of what was read is left. */
    cti_generator_reset(other);
    ids[N - 2]--;
    feed(other, ids, N);
    assert_true(memcmp(other->logit_values, whole->logit_values, (size_t)whole->vocab_size * sizeof(float)) == 0);
    cti_generator_destroy(&whole);
    cti_generator_destroy(&single);
    cti_generator_destroy(&ref);
    cti_generator_destroy(&other);
    ct_tree_destroy(&tree);
    for (int i = 0; i < 3; i++) {
        ct_tree_destroy(&trees[i]);
    }
}

/* The parameters of another generator, rounded. */
static ct_status rounded(const void *ctx, const char *name, int64_t begin, int64_t end, ct_dtype dtype, void *dst, ct_err *err)
{
    cti_generator *from = *(cti_generator *const *)ctx;
    for (int32_t g = 0; g < from->layout->n_groups; g++) {
        for (int32_t m = 0; m < from->layout->groups[g].n_members; m++) {
            const ct_flat_member *member = &from->layout->groups[g].members[m];
            if (strcmp(member->name, name) == 0) {
                float *values = dst;
                uint16_t *bits = dst;
                float *host = CT_NEW_ARRAY(ct_alloc_system(), float, end - begin, err);
                CT_TRY(cti_engine_read_flat(from->engine, "flat", from->layout->groups[g].name, member->offset + begin, end - begin, host, err));
                for (int64_t i = 0; i < end - begin; i++) {
                    const uint16_t b = cti_f32_to_bf16(host[i]);
                    if (dtype == CT_DTYPE_BF16) {
                        bits[i] = b;
                    } else {
                        values[i] = cti_bf16_to_f32(b);
                    }
                }
                ct_alloc_free(ct_alloc_system(), host);
                return CT_OK;
            }
        }
    }
    return CT_ERR_NOT_FOUND;
}

static void test_bf16(void **state)
{
    (void)state;
    ct_err err = {0};
    ct_tree *trees[2];
    cti_generator *drawn = make(ct_backend_cpu(), &trees[0]), *wide = make(ct_backend_cpu(), &trees[1]), *narrow = NULL;
    const cti_generator_options bf16 = {.cache_len = N + 3, .dtype = CT_DTYPE_BF16};
    ct_component *spec;
    ct_tree *tree;
    assert_int_equal(ct_tree_create(ct_alloc_system(), &tree, &err), CT_OK);
    assert_int_equal(cti_llama3_spec(tree, "debugmodel", &spec, &err), CT_OK);
    ct_component_find(spec, "model.layers")->n_children = 2;
    if (cti_generator_create(ct_alloc_system(), ct_backend_cpu(), spec, &bf16, &narrow, &err) != CT_OK ||
        cti_generator_load(narrow, rounded, &drawn, &err) != CT_OK || cti_generator_load(wide, rounded, &drawn, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    int32_t ids[N];
    for (int i = 0; i < N; i++) {
        ids[i] = (i * 97 + 13) % 2048;
    }
    feed(wide, ids, N);
    feed(narrow, ids, N);
    /* A value passes about 24 roundings between ops (12 a layer); their root, four times over. */
    const double bound = 4.0 * sqrt(24.0) * ct_dtype_unit_roundoff(CT_DTYPE_BF16), far = difference(wide, narrow);
    assert_true(far <= bound);
    assert_true(far > 0.0); /* it did round */
    ids[N - 1]++; /* another text: the comparison can fail */
    cti_generator_reset(narrow);
    feed(narrow, ids, N);
    assert_true(difference(wide, narrow) > bound);
    cti_generator_destroy(&drawn);
    cti_generator_destroy(&wide);
    cti_generator_destroy(&narrow);
    ct_tree_destroy(&tree);
    ct_tree_destroy(&trees[0]);
    ct_tree_destroy(&trees[1]);
}

static void test_sampling(void **state)
{
    (void)state;
    ct_tree *tree;
    ct_err err = {0};
    cti_generator *gen = make(ct_backend_cpu(), &tree);
    const int32_t id = 5;
    feed(gen, &id, 1);
    int32_t best, drawn;
    assert_int_equal(cti_generator_sample(gen, &(cti_sampling){.temperature = 0.0}, cti_rng_key_make(1, "s"), &best, &err), CT_OK);
    for (int64_t i = 0; i < gen->vocab_size; i++) {
        assert_true(gen->logit_values[i] <= gen->logit_values[best]);
    }
    int n_other = 0;
    for (uint64_t seed = 0; seed < 64; seed++) {
        int32_t again;
        const cti_sampling s = {.temperature = 1.0, .top_k = 3, .top_p = 1.0};
        const cti_rng_key key = cti_rng_key_make(seed, "s");
        assert_int_equal(cti_generator_sample(gen, &s, key, &drawn, &err), CT_OK);
        assert_int_equal(cti_generator_sample(gen, &s, key, &again, &err), CT_OK);
        assert_int_equal(drawn, again);
        int n_better = 0;
        for (int64_t i = 0; i < gen->vocab_size; i++) {
            n_better += gen->logit_values[i] > gen->logit_values[drawn];
        }
        assert_true(n_better < 3); /* top-k */
        n_other += drawn != best;
    }
    assert_true(n_other > 0);
    gen->logit_values[9] = NAN;
    assert_int_equal(cti_generator_sample(gen, &(cti_sampling){.temperature = 1.0, .top_p = 1.0}, cti_rng_key_make(1, "s"), &drawn, &err),
                     CT_ERR_NUMERIC);
    cti_generator_destroy(&gen);
    ct_tree_destroy(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cache), cmocka_unit_test(test_bf16), cmocka_unit_test(test_sampling)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
