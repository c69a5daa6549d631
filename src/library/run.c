/* SPDX-License-Identifier: Apache-2.0 */
/* The public ct_run_ functions: a trainer with all that it borrows. */
#include "ctitan/run.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "library/library.h"
#include "train/trainer.h"

extern char **environ;

struct ct_run {
    const ct_alloc *alloc;
    ct_log *log; /* owns all of these */
    cti_env env;
    cti_run_config config;
    ct_bootstrap *bootstrap;
    cti_trainer *trainer;
    volatile sig_atomic_t stop;
    bool has_ended, has_failed;
};

static atomic_flag is_open = ATOMIC_FLAG_INIT; /* one run at a time: its threads are the process's */

const char *ct_version(void)
{
    return CT_VERSION;
}

/* Plug-ins take our functions from the process's global scope, in which a library is not that was opened by dlopen, as Python does. */
static void show_to_plugins(void)
{
    Dl_info self;
    if (dladdr(&is_open, &self) != 0) {
        (void)dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL); /* NULL in a program that holds us: it shows them itself */
    }
}

static ct_status open_env(ct_run *r, const ct_run_options *o, ct_err *err)
{
    const char *from_env = o->reads_environment ? getenv("CTITAN_PLUGIN_PATH") : NULL; /* NOLINT(concurrency-mt-unsafe) */
    cti_str path = {.alloc = r->alloc};
    cti_str_printf(&path, "%s:%s", o->plugin_path != NULL ? o->plugin_path : "", from_env != NULL ? from_env : ""); /* empty parts are fine */
    ct_status st = cti_str_check(&path, err);
    if (st == CT_OK) {
        show_to_plugins();
        st = cti_env_create_at(r->alloc, o->prefix, cti_str_text(&path), &r->env, err);
    }
    cti_str_deinit(&path);
    return st;
}

static const char *no_variable(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return NULL;
}

static ct_status resolve(ct_run *r, const ct_run_options *o, const ct_place *place, ct_err *err)
{
    const cti_resolve_options options = {.argc = (int)o->n_settings,
                                         .argv = o->settings,
                                         .environ_list = o->reads_environment ? (const char *const *)environ : NULL,
                                         .world_size = place->world_size};
    cti_problems problems = {.text = {.alloc = r->alloc}};
    ct_err why = {0};
    ct_status st = cti_run_config_resolve(r->alloc, r->env.registry, r->env.plugins, &options, &problems, &r->config, &why);
    if (r->config.wants_help) {
        st = CT_FAIL(err, CT_ERR_USAGE, "--help: a setting of the program, not of the library");
    } else if (problems.n > 0) {
        const char *text = cti_str_text(&problems.text);
        st = CT_FAIL(err, st, "%.*s", (int)strlen(text) - 1, text); /* without the last newline */
    } else if (st != CT_OK) {
        st = CT_FAIL(err, st, "%s", why.message);
    }
    cti_problems_deinit(&problems);
    return st;
}

static ct_status open_run(ct_run *r, const ct_run_options *o, ct_err *err)
{
    ct_place place;
    CT_TRY(ct_log_create(r->alloc, NULL, CT_LOG_INFO, &r->log, err));
    ct_log_set_hook(r->log, o->on_log, o->log_ctx);
    CT_TRY(ct_place_from_env(o->reads_environment ? NULL : no_variable, NULL, &place, err));
    CT_TRY(open_env(r, o, err));
    CT_TRY(resolve(r, o, &place, err));
    CT_INFO(r->log, "ctitan version: %s", ct_version());
    const cti_comm_config *comm = CTI_SECTION(r->config.root, "comm", comm);
    CT_TRY(ct_bootstrap_create(r->alloc, &place, comm->init_timeout_seconds * 1000, &r->bootstrap, err));
    const cti_trainer_options options = {.alloc = r->alloc,
                                         .log = r->log,
                                         .registry = r->env.registry,
                                         .plugins = r->env.plugins,
                                         .run = &r->config,
                                         .module = r->config.module,
                                         .bootstrap = r->bootstrap,
                                         .share_dir = r->env.share_dir,
                                         .version = ct_version(),
                                         .stop = &r->stop,
                                         .backends = cti_backends_for(r->config.root),
                                         .is_plain = true};
    CT_TRY(cti_trainer_open(&options, &r->trainer, err));
    return cti_trainer_start(r->trainer, err);
}

/* What the caller has of the struct, over ours. A caller that knows more than we do must have asked for nothing of it. */
static ct_status take_options(const ct_run_options *given, ct_run_options *out, ct_err *err)
{
    *out = (ct_run_options){0};
    const size_t least = offsetof(ct_run_options, n_settings) + sizeof given->n_settings;
    if (given->size_bytes < least) {
        return CT_FAIL(err, CT_ERR_USAGE, "ct_run_options.size_bytes is %zu, wanted sizeof(ct_run_options), here %zu", given->size_bytes,
                       sizeof *out);
    }
    for (size_t i = sizeof *out; i < given->size_bytes; i++) {
        if (((const unsigned char *)given)[i] != 0) {
            return CT_FAIL(err, CT_ERR_USAGE, "ct_run_options has fields that this libctitan, %s, does not know", ct_version());
        }
    }
    memcpy(out, given, given->size_bytes < sizeof *out ? given->size_bytes : sizeof *out);
    if (out->reserved != 0 || out->n_settings > INT32_MAX || (out->settings == NULL && out->n_settings > 0)) {
        return CT_FAIL(err, CT_ERR_USAGE, "ct_run_options: %s", out->reserved != 0 ? "reserved is not 0" : "n_settings is not the number of settings");
    }
    for (size_t i = 0; i < out->n_settings; i++) {
        if (out->settings[i] == NULL) {
            return CT_FAIL(err, CT_ERR_USAGE, "ct_run_options.settings[%zu] is NULL", i);
        }
    }
    return CT_OK;
}

ct_status ct_run_open(const ct_run_options *options, ct_run **out_run, ct_err *err)
{
    ct_run_options o;
    *out_run = NULL;
    CT_TRY(take_options(options, &o, err));
    if (atomic_flag_test_and_set(&is_open)) {
        return CT_FAIL(err, CT_ERR_STATE, "a run is open in this process: close it before the next one is opened");
    }
    ct_run *r = CT_NEW(ct_alloc_system(), ct_run, err);
    if (r == NULL) {
        atomic_flag_clear(&is_open);
        return CT_ERR_MEMORY;
    }
    r->alloc = ct_alloc_system();
    ct_err why = {0};
    const ct_status st = open_run(r, &o, &why);
    if (st != CT_OK) {
        ct_run_close(&r);
        return CT_FAIL(err, st, "%s", why.message);
    }
    *out_run = r;
    return CT_OK;
}

void ct_run_close(ct_run **run)
{
    ct_run *r = run != NULL ? *run : NULL;
    if (r == NULL) {
        return;
    }
    cti_trainer_close(&r->trainer);
    ct_bootstrap_destroy(&r->bootstrap);
    cti_run_config_deinit(&r->config);
    cti_env_deinit(r->alloc, &r->env);
    ct_log_destroy(&r->log);
    ct_alloc_free(r->alloc, r);
    *run = NULL;
    atomic_flag_clear(&is_open);
}

/* Fields that the caller's struct has; the size stays the caller's. */
static ct_status give(void *to, const void *from, size_t size, const char *name, ct_err *err)
{
    size_t wanted;
    memcpy(&wanted, to, sizeof wanted);
    if (wanted < sizeof wanted + sizeof(int64_t)) {
        return CT_FAIL(err, CT_ERR_USAGE, "%s.size_bytes is %zu, wanted sizeof(%s), here %zu", name, wanted, name, size);
    }
    memset((unsigned char *)to + sizeof wanted, 0, wanted - sizeof wanted);
    memcpy((unsigned char *)to + sizeof wanted, (const unsigned char *)from + sizeof wanted, (wanted < size ? wanted : size) - sizeof wanted);
    return CT_OK;
}

ct_status ct_run_facts_get(const ct_run *run, ct_run_facts *out, ct_err *err)
{
    const cti_trainer *t = run->trainer;
    const ct_run_facts facts = {.n_parameters = t->n_params,
                                .planned_bytes = t->engine->plan->total_bytes,
                                .first_step = t->loaded_step + 1,
                                .last_step = t->last_step,
                                .global_batch = t->global_batch,
                                .seq_len = t->seq_len,
                                .rank = t->mesh.rank,
                                .world_size = t->mesh.world_size};
    return give(out, &facts, sizeof facts, "ct_run_facts", err);
}

static ct_step_metrics metrics_of(const cti_trainer *t, const cti_step_report *report)
{
    const double seconds = (double)report->spent_ns / 1e9;
    return (ct_step_metrics){.step = t->current_step,
                             .loss = report->loss,
                             .max_loss = report->max_loss,
                             .grad_norm = report->grad_norm,
                             .learning_rate = t->groups[0].lr * ct_lr_factor(&t->schedule, t->current_step - 1),
                             .seconds = seconds,
                             .tokens_per_second = (double)(t->global_batch * t->seq_len / t->mesh.world_size) / seconds,
                             .tokens_seen = t->tokens_seen,
                             .peak_memory_bytes = cti_peak_rss_bytes(),
                             .was_updated = report->was_updated,
                             .is_last = cti_trainer_is_done(t)};
}

static ct_status check_usable(const ct_run *r, ct_err *err)
{
    return r->has_failed ? CT_FAIL(err, CT_ERR_STATE, "the run has failed: it can only be closed") : CT_OK;
}

ct_status ct_run_step(ct_run *r, ct_step_metrics *out, ct_err *err)
{
    CT_TRY(check_usable(r, err));
    cti_step_report report;
    ct_step_metrics room = {.size_bytes = sizeof room};
    CT_TRY(out != NULL ? give(out, &room, sizeof room, "ct_step_metrics", err) : CT_OK); /* a wrong size is told before the step */
    if (r->has_ended) {
        return CT_END_OF_DATA;
    }
    ct_err why = {0};
    ct_status st = cti_trainer_is_done(r->trainer) ? CT_END_OF_DATA : cti_trainer_advance(r->trainer, &report, &why);
    if (st == CT_END_OF_DATA) {
        r->has_ended = true;
        st = cti_trainer_finish(r->trainer, &why);
        st = st == CT_OK ? CT_END_OF_DATA : st;
    }
    if (st != CT_OK && st != CT_END_OF_DATA) {
        r->has_failed = true;
        return CT_FAIL(err, st, "%s", why.message);
    }
    if (st == CT_OK && out != NULL) {
        room = metrics_of(r->trainer, &report);
        CT_TRY(give(out, &room, sizeof room, "ct_step_metrics", err));
    }
    return st;
}

ct_status ct_run_save(ct_run *r, ct_err *err)
{
    CT_TRY(check_usable(r, err));
    const cti_checkpoint_config *c = CTI_SECTION(r->trainer->root, "checkpoint", checkpoint);
    if (!c->enable || c->load_only) {
        return CT_FAIL(err, CT_ERR_STATE, "--checkpoint.%s: this run saves nothing", c->enable ? "load-only is on" : "enable is off");
    }
    if (r->trainer->current_step == 0) {
        return CT_FAIL(err, CT_ERR_STATE, "no step is done yet: there is nothing to save");
    }
    return cti_trainer_save(r->trainer, r->trainer->current_step, false, true, err);
}

void ct_run_request_stop(ct_run *run)
{
    run->stop = 1;
}
