/* SPDX-License-Identifier: Apache-2.0 */
/* OMP_PROC_BIND and OMP_PLACES (OpenMP 5.2, 21.1.6 and 21.1.7): sets of cores, and which of them this process's threads have. */
#include "base/pool_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/pool.h"

/* Reads a number and steps over it and blanks. */
static bool take_number(const char **p, int64_t *out)
{
    char *end;
    const long n = strtol(*p, &end, 10);
    if (end == *p || n < -CPU_SETSIZE || n > CPU_SETSIZE) {
        return false;
    }
    *out = n;
    *p = end + strspn(end, " \t");
    return true;
}

static bool take_char(const char **p, char c)
{
    if (**p != c) {
        return false;
    }
    *p += 1 + strspn(*p + 1, " \t");
    return true;
}

/* ":count:step" behind a number or a place, either left out. */
static bool take_interval(const char **p, int64_t *count, int64_t *step)
{
    *count = *step = 1;
    return !take_char(p, ':') || (take_number(p, count) && *count > 0 && (!take_char(p, ':') || take_number(p, step)));
}

/* "{0,1}", "{0:4}", "{0:4:2}"; cores outside of what a set holds are left out. */
static bool take_place(const char **p, cpu_set_t *out)
{
    CPU_ZERO(out);
    if (!take_char(p, '{')) {
        return false;
    }
    do {
        int64_t first, count, step;
        if (!take_number(p, &first) || !take_interval(p, &count, &step)) {
            return false;
        }
        for (int64_t i = 0; i < count; i++) {
            const int64_t core = first + i * step;
            if (core >= 0 && core < CPU_SETSIZE) {
                CPU_SET((size_t)core, out);
            }
        }
    } while (take_char(p, ','));
    return take_char(p, '}');
}

/* Appends what of the place may be used. */
static void add_place(cti_places *s, const cpu_set_t *place, const cpu_set_t *usable)
{
    cpu_set_t both;
    CPU_AND(&both, place, usable);
    if (s->n < CTI_POOL_MAX && CPU_COUNT(&both) > 0) {
        s->items[s->n++] = both;
    }
}

/* "{0,1},{2,3}", "{0:2}:4:2". */
static bool list_places(const char *text, const cpu_set_t *usable, cti_places *out)
{
    const char *p = text;
    do {
        cpu_set_t place;
        int64_t count, step;
        if (!take_place(&p, &place) || !take_interval(&p, &count, &step)) {
            return false;
        }
        for (int64_t i = 0; i < count; i++) {
            cpu_set_t moved;
            CPU_ZERO(&moved);
            for (int64_t c = 0; c < CPU_SETSIZE; c++) {
                const int64_t core = c + i * step;
                if (CPU_ISSET((size_t)c, &place) && core >= 0 && core < CPU_SETSIZE) {
                    CPU_SET((size_t)core, &moved);
                }
            }
            add_place(out, &moved, usable);
        }
    } while (take_char(&p, ','));
    return *p == '\0';
}

/* The first number in a core's topology file; otherwise the core's own. */
static int64_t group_of(int core, const char *file)
{
    char path[128], text[32] = "";
    int64_t group = core;
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", core, file);
    FILE *f = file[0] == '\0' ? NULL : fopen(path, "re");
    if (f != NULL) {
        const char *p = fgets(text, sizeof text, f) == NULL ? "" : text;
        if (!take_number(&p, &group)) {
            group = core;
        }
        (void)fclose(f); /* nothing was written */
    }
    return group;
}

/* A place for the cores of each group, in order of their first. */
static void group_places(const char *file, const cpu_set_t *usable, cti_places *out)
{
    int64_t groups[CTI_POOL_MAX];
    for (int c = 0; c < CPU_SETSIZE; c++) {
        if (!CPU_ISSET((size_t)c, usable)) {
            continue;
        }
        const int64_t group = group_of(c, file);
        int i = 0;
        while (i < out->n && groups[i] != group) {
            i++;
        }
        if (i == out->n) {
            if (i == CTI_POOL_MAX) {
                return;
            }
            groups[i] = group;
            CPU_ZERO(&out->items[out->n++]);
        }
        CPU_SET((size_t)c, &out->items[i]);
    }
}

bool cti_places_read(const char *text, const cpu_set_t *usable, cti_places *out)
{
    static const struct {
        const char *name, *file;
    } KINDS[] = {{"threads", ""}, {"cores", "thread_siblings_list"}, {"sockets", "physical_package_id"}};
    out->n = 0;
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) {
        const size_t len = strlen(KINDS[k].name);
        if (strncasecmp(text, KINDS[k].name, len) != 0) {
            continue;
        }
        const char *p = text + len + strspn(text + len, " \t");
        int64_t most = CTI_POOL_MAX; /* "cores(4)" */
        if (take_char(&p, '(') && (!take_number(&p, &most) || most < 1 || !take_char(&p, ')'))) {
            return false;
        }
        if (*p != '\0') {
            return false;
        }
        group_places(KINDS[k].file, usable, out);
        out->n = (int)cti_min_i64(out->n, most);
        return true;
    }
    return list_places(text, usable, out);
}
