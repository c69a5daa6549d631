/* SPDX-License-Identifier: Apache-2.0 */
/* main(): the list of commands. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/cmd_checkpoint.h"
#include "cli/cmd_completion.h"
#include "cli/cmd_config.h"
#include "cli/cmd_data.h"
#include "cli/cmd_devices.h"
#include "cli/cmd_doctor.h"
#include "cli/cmd_download_assets.h"
#include "cli/cmd_flight_recorder.h"
#include "cli/cmd_generate.h"
#include "cli/cmd_overrides.h"
#include "cli/cmd_plan.h"
#include "cli/cmd_plugins.h"
#include "cli/cmd_report.h"
#include "cli/cmd_run.h"
#include "cli/cmd_selftest.h"
#include "cli/cmd_tokenizer.h"
#include "cli/cmd_train.h"

/* X(name on the command line, function, what it does) */
#define COMMANDS(X)                                                                                                  \
    X("train", cti_cmd_train, "train a model; one rank, or all of a run that `run`, mpirun or srun started")         \
    X("run", cti_cmd_run, "start the ranks of a run on this host and watch over them (what torchrun is)")            \
    X("selftest", cti_cmd_selftest, "test the connections of the ranks: right bytes and sums, latency, bandwidth")     \
    X("generate", cti_cmd_generate, "let the model of a checkpoint write text")                                      \
    X("plan", cti_cmd_plan, "what a run would take: memory, work, collectives, on any device and number of ranks")  \
    X("plugins", cti_cmd_plugins, "list the plug-ins, or what one of them adds")                                     \
    X("overrides", cti_cmd_overrides, "list the overrides of a plug-in")                                             \
    X("check-overrides", cti_cmd_check_overrides, "prove overrides equal to what they replace")                      \
    X("devices", cti_cmd_devices, "list the devices that are seen here: NPUs, GPUs, the CPU")                         \
    X("doctor", cti_cmd_doctor, "look for what is missing on this machine, and say what to do")                      \
    X("data", cti_cmd_data, "look at a data set, index it, turn it into tokens, see rows as training does")           \
    X("flight-recorder", cti_cmd_flight_recorder, "which rank hung or died in which collective: reads what ranks left behind") \
    X("report", cti_cmd_report, "draw what runs left behind, and say where they part")                               \
    X("checkpoint", cti_cmd_checkpoint, "look at a checkpoint, or at what two of them differ in")                     \
    X("config", cti_cmd_config, "print every setting of a run with where it comes from")                             \
    X("tokenizer", cti_cmd_tokenizer, "train a vocabulary; encode, decode, inspect")                                 \
    X("download-assets", cti_cmd_download_assets, "fetch a tokenizer, or a whole model, from Hugging Face or ModelScope")  \
    X("completion", cti_cmd_completion, "a script for bash or zsh that completes commands, flags and values")

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} command;
static const command commands[] = {
#define COMMAND_ROW(name, fn, what) {name, fn, what},
    COMMANDS(COMMAND_ROW)
#undef COMMAND_ROW
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

bool cti_command_at(size_t i, const char **out_name, const char **out_what)
{
    if (i >= N_COMMANDS) {
        return false;
    }
    *out_name = commands[i].name;
    *out_what = commands[i].what;
    return true;
}

static void print_usage(FILE *to)
{
    fprintf(to, "usage: " CTI_PROGRAM " COMMAND [ARGUMENTS]\n\n");
    for (int i = 0; i < N_COMMANDS; i++) {
        fprintf(to, "  %-16s %s\n", commands[i].name, commands[i].what);
    }
    fprintf(to, "\n  --version        print the version\n  COMMAND --help   what a command takes\n\n"
                "The quick start:\n"
                "  " CTI_PROGRAM " train --module llama3 --config llama3_debugmodel --training.steps 10\n");
}

/* What was printed may still wait in the buffer: where it cannot be written, the command has failed. */
static int finish(const char *name, int code)
{
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0) {
        fprintf(stderr, CTI_PROGRAM "%s%s: standard output cannot be written\n", name[0] != '\0' ? " " : "", name);
        return 1;
    }
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf(CTI_PROGRAM " %s\n", cti_version_text());
        return finish("", 0);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return finish("", 0);
    }
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return finish(commands[i].name, commands[i].run(argc - 1, argv + 1));
        }
        names[i] = commands[i].name;
    }
    const int nearest = cti_nearest(argv[1], names, N_COMMANDS);
    fprintf(stderr, CTI_PROGRAM ": there is no command '%s'%s%s%s; `" CTI_PROGRAM " --help` lists them\n", argv[1],
            nearest >= 0 ? "; nearest is '" : "", nearest >= 0 ? names[nearest] : "", nearest >= 0 ? "'" : "");
    return 2;
}
