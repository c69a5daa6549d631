/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMP's variables (OpenMP 5.2, chapter 21), as far as the pool has a use for them. */
#include "base/pool_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/pool.h"
#include "base/str.h"
#include "base/sys.h"

enum { SPIN_US = 50, ACTIVE_SPIN_US = 100000 };

/* NULL where unset or empty, as shells export it. Blanks in front do not count. */
static const char *variable(const char *name)
{
    const char *text = getenv(name); /* NOLINT(concurrency-mt-unsafe): nothing of ours writes the environment */
    text = text == NULL ? "" : text + strspn(text, " \t");
    return text[0] == '\0' ? NULL : text;
}

static void tell_wrong(cti_pool_settings *s, const char *name, const char *wanted)
{
    if (s->wrong[0] == '\0') {
        (void)snprintf(s->wrong, sizeof s->wrong, "environment variable %s: expected %s, got '%.100s'", name, wanted, variable(name));
    }
}

/* The first number of a list with commas; 0 where the variable is not given or wrong. */
static int64_t first_number(cti_pool_settings *s, const char *name)
{
    const char *text = variable(name);
    char first[32];
    int64_t n;
    if (text == NULL) {
        return 0;
    }
    const size_t len = strcspn(text, ",");
    (void)snprintf(first, sizeof first, "%.*s", (int)cti_min_i64((int64_t)len, sizeof first - 1), text);
    if (len >= sizeof first || !cti_parse_i64(first, &n) || n < 1) {
        tell_wrong(s, name, "a number of threads from 1 on, or a list of such");
        return 0;
    }
    return n;
}

/* The first word of a list with commas is `word`, in letters of any case. */
static bool first_word_is(const char *text, const char *word)
{
    const size_t n = strlen(word);
    return strncasecmp(text, word, n) == 0 && strchr(", \t", text[n]) != NULL; /* finds the end as well */
}

static int64_t of_launcher(const char *name, int64_t otherwise)
{
    const char *text = variable(name);
    int64_t n;
    return text != NULL && cti_parse_i64(text, &n) && n >= 0 && n < INT32_MAX ? n : otherwise; /* comm checks these */
}

static void read_threads(cti_pool_settings *s)
{
    const int64_t limit = first_number(s, "OMP_THREAD_LIMIT"), asked = first_number(s, "OMP_NUM_THREADS");
    const int64_t ranks = cti_max_i64(1, of_launcher("LOCAL_WORLD_SIZE", 1)), cores = cti_usable_cores();
    int64_t n = cti_max_i64(1, cores / ranks);
    if (asked > 0) {
        n = asked;
        (void)snprintf(s->why, sizeof s->why, "OMP_NUM_THREADS");
    } else if (ranks > 1) {
        (void)snprintf(s->why, sizeof s->why, "%d usable core%s, %d ranks", (int)cores, cores == 1 ? "" : "s", (int)ranks);
    } else {
        (void)snprintf(s->why, sizeof s->why, "%d usable core%s", (int)cores, cores == 1 ? "" : "s");
    }
    if (limit > 0 && n > limit) {
        n = limit;
        (void)snprintf(s->why, sizeof s->why, "OMP_THREAD_LIMIT");
    }
    s->n_threads = (int)cti_min_i64(n, CTI_POOL_MAX);
}

static void read_wait_policy(cti_pool_settings *s)
{
    const char *text = variable("OMP_WAIT_POLICY");
    s->spin_ns = SPIN_US * 1000;
    if (text != NULL && first_word_is(text, "active")) {
        s->spin_ns = ACTIVE_SPIN_US * 1000;
    } else if (text != NULL && first_word_is(text, "passive")) {
        s->spin_ns = 0;
    } else if (text != NULL) {
        tell_wrong(s, "OMP_WAIT_POLICY", "active or passive");
    }
}

static void read_binding(cti_pool_settings *s)
{
    const char *text = variable("OMP_PROC_BIND");
    if (text == NULL || first_word_is(text, "false")) {
        return;
    }
    s->is_spread = first_word_is(text, "spread");
    if (!s->is_spread && !first_word_is(text, "true") && !first_word_is(text, "close")) {
        tell_wrong(s, "OMP_PROC_BIND", "false, true, close or spread");
        return;
    }
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all) != 0) {
        return; /* more cores than the set holds: they stay as the system likes */
    }
    const int64_t cores = CPU_COUNT(&all), ranks = cti_max_i64(1, of_launcher("LOCAL_WORLD_SIZE", 1));
    const int64_t rank = of_launcher("LOCAL_RANK", 0) % ranks, begin = cores * rank / ranks, end = cores * (rank + 1) / ranks;
    CPU_ZERO(&s->share);
    int64_t at = 0;
    for (int c = 0; c < CPU_SETSIZE; c++) {
        if (CPU_ISSET(c, &all)) {
            if (at >= begin && at < end) {
                CPU_SET(c, &s->share);
            }
            at++;
        }
    }
    s->is_bound = end > begin; /* with more ranks than cores some have none */
}

void cti_pool_settings_read(cti_pool_settings *out)
{
    *out = (cti_pool_settings){0};
    read_threads(out);
    read_wait_policy(out);
    read_binding(out);
}

void cti_pool_bind_process(const cti_pool_settings *s)
{
    if (s->is_bound) {
        (void)sched_setaffinity(0, sizeof s->share, &s->share); /* a wish */
    }
}

void cti_pool_bind_worker(const cti_pool_settings *s, int worker)
{
    if (!s->is_bound) {
        return;
    }
    const int cores = CPU_COUNT(&s->share);
    int left = s->is_spread && cores > s->n_threads ? worker * cores / s->n_threads : worker % cores;
    for (int c = 0; c < CPU_SETSIZE; c++) {
        if (CPU_ISSET(c, &s->share) && left-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(c, &one);
            (void)sched_setaffinity(0, sizeof one, &one);
            return;
        }
    }
}
