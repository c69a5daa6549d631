/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMP's variables (OpenMP 5.2, chapter 21), as far as the pool has a use for them. */
#include "base/pool_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/pool.h"
#include "base/pool_places.h"
#include "base/str.h"
#include "base/sys.h"

enum { SPIN_US = 50, LONG_SPIN_US = 1000, ACTIVE_SPIN_US = 100000 };

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
        (void)snprintf(s->wrong, sizeof s->wrong, "environment variable %s: expected %s, got '%.100s'", name, wanted,
                       variable(name));
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
    s->long_spin_ns = LONG_SPIN_US * 1000;
    if (text != NULL && first_word_is(text, "active")) {
        s->spin_ns = s->long_spin_ns = ACTIVE_SPIN_US * 1000;
    } else if (text != NULL && first_word_is(text, "passive")) {
        s->spin_ns = s->long_spin_ns = 0;
    } else if (text != NULL) {
        tell_wrong(s, "OMP_WAIT_POLICY", "active or passive");
    }
}

/* One of `ranks` equal parts of the places, from the first on. With more ranks than places some share one. */
static void take_share(cti_pool_settings *s, const cti_places *all)
{
    const int64_t ranks = cti_max_i64(1, of_launcher("LOCAL_WORLD_SIZE", 1)), rank = of_launcher("LOCAL_RANK", 0) % ranks;
    const int64_t begin = all->n * rank / ranks, end = cti_max_i64(begin + 1, all->n * (rank + 1) / ranks);
    memmove(s->places, s->places + begin, (size_t)(end - begin) * sizeof *s->places);
    s->n_places = (int)(end - begin);
}

static void read_binding(cti_pool_settings *s)
{
    const char *bind = variable("OMP_PROC_BIND"), *places = variable("OMP_PLACES");
    const bool is_spread = bind != NULL && first_word_is(bind, "spread");
    const bool is_primary = bind != NULL && (first_word_is(bind, "primary") || first_word_is(bind, "master"));
    bool is_bound = bind != NULL ? is_spread || is_primary || first_word_is(bind, "true") || first_word_is(bind, "close")
                                 : places != NULL;
    if (bind != NULL && !is_bound && !first_word_is(bind, "false")) {
        tell_wrong(s, "OMP_PROC_BIND", "false, true, close, spread or primary");
    }
    cpu_set_t usable;
    if ((!is_bound && places == NULL) || sched_getaffinity(0, sizeof usable, &usable) != 0) {
        return; /* more cores than the set holds: threads stay where the system likes */
    }
    s->places = calloc(CTI_POOL_MAX, sizeof *s->places);
    cti_places all = {.items = s->places};
    if (s->places != NULL && places != NULL && !cti_places_read(places, &usable, &all)) {
        tell_wrong(s, "OMP_PLACES", "threads, cores, sockets or a list such as {0,1},{2,3} or {0:2}:4:2");
        is_bound = false;
    } else if (s->places != NULL && places == NULL) {
        (void)cti_places_read("threads", &usable, &all);
    }
    if (!is_bound || all.n == 0) {
        free(s->places);
        s->places = NULL;
        return;
    }
    take_share(s, &all);
    s->step_places = is_primary ? 0 : is_spread ? (int)cti_max_i64(1, s->n_places / s->n_threads) : 1;
}

void cti_pool_settings_read(cti_pool_settings *out)
{
    *out = (cti_pool_settings){0};
    read_threads(out);
    read_wait_policy(out);
    read_binding(out);
}

void cti_pool_settings_deinit(cti_pool_settings *s)
{
    free(s->places);
    *s = (cti_pool_settings){0};
}

void cti_pool_bind_process(const cti_pool_settings *s)
{
    if (s->places == NULL) {
        return;
    }
    cpu_set_t all = s->places[0];
    for (int i = 1; i < s->n_places; i++) {
        CPU_OR(&all, &all, &s->places[i]);
    }
    (void)sched_setaffinity(0, sizeof all, &all); /* a wish: where it is refused the system decides */
}

void cti_pool_bind_worker(const cti_pool_settings *s, int worker)
{
    if (s->places != NULL) {
        const int64_t place = (int64_t)worker * s->step_places % s->n_places;
        (void)sched_setaffinity(0, sizeof *s->places, &s->places[place]); /* as above */
    }
}
