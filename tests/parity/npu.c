/* SPDX-License-Identifier: Apache-2.0 */
/* labels: slow */
/* Training on the npu backend, over the doubles of CANN's libraries, with two layers of llama3_debugmodel: in float32 beside the CPU backend; in
 * bfloat16 each parameter's gradient is from the reference's (float32, whose sums are float64) at most 1.5 times as far as torch's in bfloat16 is from
 * torch's float64 (tests/parity/llama/record.py bf16). */
#include "parity/llama/world.h"

#include "npu.h"

#include "backend/cpu/cpu.h"
#include "backend/npu/npu.h"
#include "backend/ref/ref.h"

enum { STEPS = 4 };

typedef struct result {
    double losses[STEPS], norms[STEPS];
    double weight[64]; /* of the gradients: what the first step multiplied them with */
    float *moments[64]; /* exp_avg behind the first step, by the order of hf_specs */
} result;

static const char *folder_of(char *out, size_t size)
{
    snprintf(out, size, "/tmp/ctitan-parity-npu-%d", (int)getpid());
    return out;
}

static void train(const ct_backend *backend, const char *dtype, int steps, result *r)
{
    static const char *const small[] = {"--model-spec.n-layers", "2", "--training.local-batch-size", "1", "--training.seq-len", "128", NULL};
    static ct_st_spec specs[N_TENSORS];
    static char names[N_TENSORS][96];
    world w = {0};
    memset(r, 0, sizeof *r);
    folder_of(w.folder, sizeof w.folder);
    open_run(&w, backend, dtype, small);
    for (int i = 0; i < steps; i++) {
        ok(cti_trainer_step(w.trainer, &r->losses[i], &r->norms[i], &err));
        for (int32_t t = 0, n = hf_specs(specs, names); i == 0 && t < n; t++) {
            const cti_training_config *training = ct_component_values(ct_component_find(w.trainer->root, "training"));
            char native[96];
            int64_t numel;
            native_name(names[t], native, sizeof native);
            r->moments[t] = read_param(w.trainer, "exp_avg", native, &numel);
            r->weight[t] = (1.0 - w.trainer->groups[0].beta1) * fmin(1.0, training->max_norm / (r->norms[0] + 1e-6));
        }
    }
    close_run(&w);
}

static void free_result(result *r)
{
    for (size_t i = 0; i < sizeof r->moments / sizeof r->moments[0]; i++) {
        ct_alloc_free(alloc, r->moments[i]);
    }
}

/* |a - b| / |b| of the gradients of tensor t. */
static double distance(const result *a, const result *b, int32_t t, int64_t numel)
{
    double off = 0.0, whole = 0.0;
    for (int64_t i = 0; i < numel; i++) {
        const double x = (double)a->moments[t][i] / a->weight[t], y = (double)b->moments[t][i] / b->weight[t];
        off += (x - y) * (x - y);
        whole += y * y;
    }
    return sqrt(off / whole);
}

/* Sums in another order, and AdamW in f32 on both sides. */
static void float32_beside_cpu(void **state)
{
    (void)state;
    result cpu, npu;
    double worst = 0.0;
    train(ct_backend_cpu(), "float32", STEPS, &cpu);
    train(ct_backend_npu(), "float32", STEPS, &npu);
    for (int i = 0; i < STEPS; i++) {
        worst = fmax(worst, fabs(npu.losses[i] - cpu.losses[i]) / cpu.losses[i]);
        worst = fmax(worst, fabs(npu.norms[i] - cpu.norms[i]) / cpu.norms[i]);
    }
    printf("float32: %d steps, loss %.6f to %.6f; largest relative difference of losses and norms from the CPU backend's: %.1e\n", STEPS, npu.losses[0],
           npu.losses[STEPS - 1], worst);
    assert_true(worst < 1e-5); /* as parity.llama holds the CPU backend to torch */
    free_result(&cpu);
    free_result(&npu);
}

static void bfloat16_gradients(void **state)
{
    (void)state;
    static ct_st_spec specs[N_TENSORS];
    static char names[N_TENSORS][96];
    json_t *json = NULL;
    result exact, npu, cpu;
    double worst = 0.0, worst_cpu = 0.0;
    ok(cti_json_read_file(alloc, CT_SOURCE_DIR "/tests/parity/llama/recorded_bf16.json", &json, &err));
    train(ct_backend_ref(), "float32", 1, &exact);
    train(ct_backend_npu(), "bfloat16", STEPS, &npu);
    train(ct_backend_cpu(), "bfloat16", STEPS, &cpu);
    const double torch64 = json_number_value(json_object_get(json_object_get(json, "losses"), "float64"));
    /* Some 20 values are stored in float32 between a token and its loss; their roundings add up as their root, three times which is rare. */
    close_to("loss of the reference", exact.losses[0], torch64, 3.0 * sqrt(20.0) * ct_dtype_unit_roundoff(CT_DTYPE_F32));
    for (int32_t t = 0, n = hf_specs(specs, names); t < n; t++) {
        const double of_torch = json_number_value(json_object_get(json_object_get(json, "gradient_errors"), names[t]));
        const int64_t numel = cti_dims_product(specs[t].dims, specs[t].ndim);
        const double of_npu = distance(&npu, &exact, t, numel), of_cpu = distance(&cpu, &exact, t, numel);
        printf("%-50s npu %.5f  cpu %.5f  torch %.5f  npu / torch %.2f\n", names[t], of_npu, of_cpu, of_torch, of_npu / of_torch);
        worst = fmax(worst, of_npu / of_torch);
        worst_cpu = fmax(worst_cpu, of_cpu / of_torch);
    }
    printf("bfloat16: gradient errors at most %.2f of torch's (CPU backend: %.2f)\n", worst, worst_cpu);
    for (int i = 0; i < STEPS; i++) {
        printf("step %d: loss npu %.5f cpu %.5f\n", i + 1, npu.losses[i], cpu.losses[i]);
    }
    assert_true(worst <= 1.5);
    /* Of a sum of many tokens' losses, each off by some roundings to bf16 of what it was computed from. */
    for (int i = 0; i < STEPS; i++) {
        close_to("loss in bfloat16", npu.losses[i], cpu.losses[i], ct_dtype_unit_roundoff(CT_DTYPE_BF16));
    }
    json_decref(json);
    free_result(&exact);
    free_result(&npu);
    free_result(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(float32_beside_cpu), cmocka_unit_test(bfloat16_gradients)};
    char folder[256];
    if (!npu_use_doubles()) {
        return 77;
    }
    alloc = ct_alloc_system();
    n_layers = 2;
    ok(cti_make_dirs(folder_of(folder, sizeof folder), &err));
    write_weights(folder);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ok(cti_remove_tree(folder, &err));
    return failed;
}
