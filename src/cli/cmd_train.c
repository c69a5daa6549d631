/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan train`: one rank of a run. */
#include "cli/cmd_train.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "metrics/progress.h"
#include "train/trainer.h"

extern char **environ;

static volatile sig_atomic_t stop_requested;
static volatile sig_atomic_t has_met;        /* the ranks have found each other */
static volatile sig_atomic_t shows_progress; /* a line stands below the log */
static volatile sig_atomic_t tells_stop;     /* of several ranks the first */
static volatile sig_atomic_t is_supervised;  /* the launcher kills when it is asked again */

/* A rank that waits for others still has nothing to finish or to save: it ends at once, with the code of a run that was asked to stop. Then: the
 * first signal asks for the end of the step; the second ends the process by its default effect, with the terminal left clean. Under the
 * launcher more signals change nothing: a scheduler's comes to the ranks directly and through the launcher, which is one request. */
static void on_signal(int number)
{
    static const char erase_line[] = "\r\033[J";
    if (has_met == 0 && is_supervised == 0) {
        static const char told[] = "ctitan train: stopped on request before the run began\n";
        if (write(STDERR_FILENO, told, sizeof told - 1) < 0) {
            has_met = 0; /* nobody reads it */
        }
        _exit(ct_status_exit_code(CT_ERR_STOPPED));
    }
    if (stop_requested == 0) {
        static const char told[] = "ctitan train: asked to stop: this step is finished first, and saved where saving is on (once more: at once)\n";
        const int before = errno;
        stop_requested = 1;
        const bool erases = tells_stop != 0 && shows_progress != 0;
        if ((erases && write(STDERR_FILENO, erase_line, sizeof erase_line - 1) < 0) ||
            (tells_stop != 0 && write(STDERR_FILENO, told, sizeof told - 1) < 0)) {
            tells_stop = 0; /* nobody reads it */
        }
        errno = before;
        return;
    }
    if (is_supervised != 0) {
        return;
    }
    if (shows_progress != 0 && write(STDERR_FILENO, erase_line, sizeof erase_line - 1) < 0) {
        shows_progress = 0; /* the terminal is gone */
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    (void)sigaction(number, &action, NULL); /* a valid signal */
    (void)raise(number);                    /* comes when this handler returns */
}

static void catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static int help_width(void)
{
    const char *columns = getenv("COLUMNS");
    int64_t width = 100;
    return columns != NULL && cti_parse_i64(columns, &width) && width >= 40 && width <= 400 ? (int)width : 100;
}

static ct_status print_help(cti_run_config *run, ct_err *err)
{
    cti_str text = {.alloc = ct_alloc_system()};
    ct_status st = cti_help(run->tree, run->root, CTI_PROGRAM " train", help_width(), &text, err);
    if (st == CT_OK && fputs(cti_str_text(&text), stdout) < 0) {
        st = CT_FAIL(err, CT_ERR_IO, "standard output cannot be written");
    }
    cti_str_deinit(&text);
    return st;
}

static ct_status train(const ct_alloc *alloc, ct_log *log, cti_env *env, cti_run_config *run, const ct_place *place,
                       ct_err *err)
{
    ct_bootstrap *boot = NULL;
    cti_trainer *trainer = NULL;
    const cti_comm_config *comm = CTI_SECTION(run->root, "comm", comm);
    const char *no_color = getenv("NO_COLOR");
    shows_progress = cti_terminal_is_interactive(ct_log_fd(log));
    tells_stop = place->rank == 0;
    is_supervised = place->store_is_supervised;
    catch_signals();
    CT_INFO(log, "ctitan version: %s", cti_version_text());
    CT_TRY(ct_bootstrap_create(alloc, place, comm->init_timeout_seconds * 1000, &boot, err));
    const cti_trainer_options options = {.alloc = alloc,
                                         .log = log,
                                         .registry = env->registry,
                                         .plugins = env->plugins,
                                         .run = run,
                                         .module = run->module,
                                         .bootstrap = boot,
                                         .share_dir = env->share_dir,
                                         .version = cti_version_text(),
                                         .stop = &stop_requested,
                                         .met = &has_met,
                                         .backends = cti_backends_for(run->root),
                                         .is_interactive = shows_progress != 0,
                                         .is_plain = no_color != NULL && no_color[0] != '\0'};
    ct_status st = cti_trainer_open(&options, &trainer, err);
    if (st == CT_OK) {
        st = cti_trainer_run(trainer, err);
    }
    cti_trainer_close(&trainer);
    ct_bootstrap_destroy(&boot);
    if (st == CT_OK) {
        CT_INFO(log, "Process group destroyed");
    }
    return st;
}

int cti_cmd_train(int argc, char **argv)
{
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    cti_env env = {0};
    ct_log *log = NULL;
    cti_run_config run = {0};
    cti_problems problems = {.text = {.alloc = alloc}};
    ct_place place;
    ct_status st;
    CT_TRY_GOTO(st, ct_log_create(alloc, stderr, CT_LOG_INFO, &log, &err), out);
    CT_TRY_GOTO(st, ct_place_from_env(NULL, NULL, &place, &err), out);
    CT_TRY_GOTO(st, cti_env_create(alloc, &env, &err), out);
    const cti_resolve_options options = {.argc = argc - 1,
                                         .argv = (const char *const *)(argv + 1),
                                         .environ_list = (const char *const *)environ,
                                         .world_size = place.world_size};
    CT_TRY_GOTO(st, cti_run_config_resolve(alloc, env.registry, env.plugins, &options, &problems, &run, &err), out);
    st = run.wants_help ? print_help(&run, &err) : train(alloc, log, &env, &run, &place, &err);
out:;
    int code = ct_status_exit_code(st);
    if (problems.n > 0 && !run.wants_help) {
        fprintf(stderr, "%s", cti_str_text(&problems.text));
    } else if (st != CT_OK && log != NULL) {
        CT_ERROR(log, "%s", err.status != CT_OK ? err.message : ct_status_sentence(st));
    } else if (st != CT_OK) {
        code = cti_report("train", st, &err);
    }
    cti_problems_deinit(&problems);
    cti_run_config_deinit(&run);
    cti_env_deinit(alloc, &env);
    ct_log_destroy(&log);
    return code;
}
