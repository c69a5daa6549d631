/* SPDX-License-Identifier: Apache-2.0 */
/* labels: slow aarch64 */
/* llama3_debugmodel against transformers and torch (tests/parity/llama/record.py): losses and gradient norms of 10 steps (of
 * CT_PARITY_STEPS where it is set: emulators are slow), gradient norms of every parameter at step 1, from the same weights in Hugging
 * Face's layout and the same documents. And the same with tied embeddings; and, at the best level alone, with torch's SGD and (not under an
 * emulator) Muon. */
#include "parity/llama/world.h"

#include "backend/cpu/cpu.h"

/* From what the first step left in exp_avg: (1 - beta1) coef g, whose coef is clip_coef's. */
static double gradient_norm(cti_trainer *t, const char *param, double norm)
{
    const cti_training_config *training = ct_component_values(ct_component_find(t->root, "training"));
    const double coef = fmin(1.0, training->max_norm / (norm + 1e-6)), weight = (1.0 - t->groups[0].beta1) * coef;
    int64_t numel;
    float *host = read_param(t, "exp_avg", param, &numel);
    double sum = 0.0;
    for (int64_t i = 0; i < numel; i++) {
        sum += (double)host[i] * (double)host[i];
    }
    ct_alloc_free(alloc, host);
    return sqrt(sum) / weight;
}

static void compare(const json_t *recorded, const char *level, const ct_backend *cpu, int n_steps)
{
    world w = {0};
    snprintf(w.folder, sizeof w.folder, "/tmp/ctitan-parity-%d", (int)getpid());
    ok(cti_make_dirs(w.folder, &err));
    write_weights(w.folder);
    static const char *const none[] = {NULL};
    open_run(&w, cpu, "float32", none);
    double worst_loss = 0.0, worst_norm = 0.0;
    for (int i = 0; i < n_steps; i++) {
        double loss, norm;
        char what[64];
        ok(cti_trainer_step(w.trainer, &loss, &norm, &err));
        const double want_loss = json_number_value(json_array_get(json_object_get(recorded, "losses"), (size_t)i));
        const double want_norm = json_number_value(json_array_get(json_object_get(recorded, "grad_norms"), (size_t)i));
        snprintf(what, sizeof what, "%s: loss of step %d", level, i + 1);
        close_to(what, loss, want_loss, 1e-5);
        snprintf(what, sizeof what, "%s: gradient norm of step %d", level, i + 1);
        close_to(what, norm, want_norm, 1e-5);
        worst_loss = fmax(worst_loss, fabs(loss - want_loss) / want_loss);
        worst_norm = fmax(worst_norm, fabs(norm - want_norm) / want_norm);
        if (i == 0 && optim == ADAMW) {
            const char *name;
            json_t *value;
            json_object_foreach(json_object_get(recorded, "first_grad_norms"), name, value)
            {
                char native[96];
                native_name(name, native, sizeof native);
                close_to(native, gradient_norm(w.trainer, native, norm), json_number_value(value), 1e-4);
            }
        }
    }
    printf("%s: %d steps; largest relative difference: loss %.1e, gradient norm %.1e\n", level, n_steps, worst_loss,
           worst_norm);
    close_run(&w);
    ok(cti_remove_tree(w.folder, &err));
}

static json_t *recorded(void)
{
    json_t *json = NULL;
    static const char *const names[] = {[ADAMW] = "", [SGD] = "_sgd", [MUON] = "_muon"};
    char path[512];
    snprintf(path, sizeof path, CT_SOURCE_DIR "/tests/parity/llama/recorded%s.json", is_tied ? "_tied" : names[optim]);
    ok(cti_json_read_file(alloc, path, &json, &err));
    assert_int_equal(json_array_size(json_object_get(json, "losses")), 10);
    assert_int_equal(json_object_size(json_object_get(json, "first_grad_norms")), N_TENSORS - is_tied);
    return json;
}

static void test_rope_frequencies(void **state)
{
    (void)state;
    json_t *json = recorded();
    const cti_rope_config c = {.head_dim = 16, .theta = 500000.0, .scaling = "llama", .scaling_factor = is_tied ? 32.0 : 8.0,
                               .low_freq_factor = 1.0, .high_freq_factor = 4.0, .original_max_position_embeddings = 8192};
    double freqs[8];
    cti_rope_frequencies(&c, freqs);
    for (size_t j = 0; j < 8; j++) { /* a few roundings of pow, division and the blend, each of 2^-24 */
        close_to("frequency", freqs[j], json_number_value(json_array_get(json_object_get(json, "inv_freq"), j)),
                 16.0 * ct_dtype_unit_roundoff(CT_DTYPE_F32));
    }
    json_decref(json);
}

static int steps_to_run(void)
{
    const char *given = getenv("CT_PARITY_STEPS");
    const long n = given != NULL ? strtol(given, NULL, 10) : 10;
    assert_true(n >= 1 && n <= 10);
    return (int)n;
}

static void test_every_level(void **state)
{
    (void)state;
    json_t *json = recorded();
    for (int i = 0; i < cti_cpu_level_count(); i++) {
        const ct_backend *cpu = cti_cpu_backend_at(i);
        if (cpu != NULL) {
            compare(json, cti_cpu_level_name(i), cpu, steps_to_run());
        } else {
            printf("%s: not run, this CPU has no such instructions\n", cti_cpu_level_name(i));
        }
    }
    json_decref(json);
}

/* One parameter, its gradient the sum of both its uses. */
static void test_tied(void **state)
{
    is_tied = true;
    test_rope_frequencies(state);
    test_every_level(state);
    is_tied = false;
}

/* Muon's iteration over all matrices is 50 GFLOP a step: an emulator, which CT_PARITY_STEPS says, takes a quarter of an hour for one. */
static void test_optimizers(void **state)
{
    (void)state;
    const int last = getenv("CT_PARITY_STEPS") != NULL ? SGD : MUON;
    for (optim = SGD; (int)optim <= last; optim++) {
        json_t *json = recorded();
        const ct_backend *best = NULL;
        const char *name = "";
        for (int i = 0; i < cti_cpu_level_count(); i++) {
            best = cti_cpu_backend_at(i) != NULL ? cti_cpu_backend_at(i) : best;
            name = best == cti_cpu_backend_at(i) ? cti_cpu_level_name(i) : name;
        }
        compare(json, name, best, steps_to_run());
        json_decref(json);
    }
    optim = ADAMW;
}

int main(void)
{
    alloc = ct_alloc_system();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rope_frequencies), cmocka_unit_test(test_every_level), cmocka_unit_test(test_tied),
                                       cmocka_unit_test(test_optimizers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
