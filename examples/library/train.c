/* SPDX-License-Identifier: Apache-2.0 */
/* A program that trains with libctitan: takes the settings that `ctitan train` takes, prints a line a step.
 *
 *     cc -std=c17 train.c $(pkg-config --cflags --libs ctitan) -o train
 *     ./train --module llama3 --config llama3_debugmodel --training.steps 3
 *     ctitan run --nproc_per_node=2 --no-python ./train --module llama3 --config llama3_debugmodel --training.steps 3
 */
#include <signal.h>
#include <stdio.h>

#include <ctitan/run.h>

static ct_run *run;

/* The first Ctrl-C ends the run after its step, the second one the program. */
static void on_interrupt(int number)
{
    signal(number, SIG_DFL);
    ct_run_request_stop(run);
}

static void on_log(void *ctx, ct_log_level level, const char *text)
{
    if (level >= CT_LOG_WARNING) {
        fprintf(ctx, "%s\n", text);
    }
}

int main(int argc, char **argv)
{
    const ct_run_options options = {.size_bytes = sizeof options,
                                    .settings = (const char *const *)argv + 1,
                                    .n_settings = (size_t)argc - 1,
                                    .reads_environment = 1, /* rank and world size, where a launcher set them */
                                    .on_log = on_log,
                                    .log_ctx = stderr};
    ct_run_facts facts = {.size_bytes = sizeof facts};
    ct_step_metrics m = {.size_bytes = sizeof m};
    ct_err err = {0};
    ct_status st = ct_run_open(&options, &run, &err);
    if (st == CT_OK) {
        signal(SIGINT, on_interrupt);
        st = ct_run_facts_get(run, &facts, &err);
    }
    while (st == CT_OK && (st = ct_run_step(run, &m, &err)) == CT_OK) {
        if (facts.rank == 0) {
            printf("step %lld of %lld: loss %.5f, gradient norm %.4f, %.0f tokens/s\n", (long long)m.step, (long long)facts.last_step, m.loss,
                   m.grad_norm, m.tokens_per_second);
        }
    }
    ct_run_close(&run);
    if (st != CT_END_OF_DATA) {
        fprintf(stderr, "%s\n", err.message);
    }
    return ct_status_exit_code(st);
}
