/* Which processors of a host are how near to each other, as the kernel says. */
#include "probe.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* site is where a processor is. Each part is named by the first processor in it; -1:
 * the kernel does not say. */
struct site {
    int core, cache, socket;
};

const char *near_name(enum near n)
{
    static const char *const names[] = {"core", "cache", "socket", "sockets"};
    return names[n];
}

const char *near_lacks(enum near n)
{
    static const char *const texts[] = {"two threads of one core", "two cores with a common cache", "two caches of one socket", "two sockets"};
    return texts[n];
}

/* number is the first one in a file; -1 if there is none. */
static int number(const char *dir, const char *name)
{
    char path[PATH_MAX];
    int n = -1;
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return -1;
    FILE *f = fopen(path, "r");
    if (!f)
        return -1;
    if (fscanf(f, "%9d", &n) != 1 || n < 0)
        n = -1;
    fclose(f);
    return n;
}

/* last_cache is the one farthest from the core. */
static int last_cache(const char *dir)
{
    int best = 0, at = -1;
    for (int i = 0; i < 16; i++) {
        char cache[PATH_MAX];
        if (snprintf(cache, sizeof cache, "%s/cache/index%d", dir, i) >= (int)sizeof cache)
            return -1;
        int level = number(cache, "level");
        if (level > best)
            best = level, at = number(cache, "shared_cpu_list");
    }
    return best > 1 ? at : -1; /* the first level is part of a core */
}

static struct site site_of(const char *sys, int cpu)
{
    char dir[PATH_MAX - 64];
    struct site s = {-1, -1, -1};
    if (snprintf(dir, sizeof dir, "%s/cpu%d", sys, cpu) >= (int)sizeof dir)
        return s;
    s.core = number(dir, "topology/core_cpus_list");
    if (s.core < 0)
        s.core = number(dir, "topology/thread_siblings_list"); /* its older name */
    s.socket = number(dir, "topology/physical_package_id");
    s.cache = last_cache(dir);
    return s;
}

/* apart says how near two are; NEARS: that is not known. */
static enum near apart(struct site a, struct site b)
{
    if (a.socket < 0 || b.socket < 0 || a.core < 0 || b.core < 0)
        return NEARS;
    if (a.socket != b.socket)
        return NEAR_SOCKETS;
    if (a.core == b.core)
        return NEAR_CORE;
    if (a.cache < 0 || b.cache < 0)
        return NEARS;
    return a.cache == b.cache ? NEAR_CACHE : NEAR_SOCKET;
}

struct places places_find(const char *sys, const int *cpus, int n)
{
    struct places p = {0};
    struct site *site = malloc((size_t)(n > 0 ? n : 1) * sizeof *site);
    if (!site)
        return p;
    for (int i = 0; i < n; i++)
        site[i] = site_of(sys, cpus[i]);
    for (int i = 0, found = 0; i < n && found < NEARS; i++)
        for (int j = i + 1; j < n; j++) {
            enum near d = apart(site[i], site[j]);
            if (d == NEARS || p.there[d])
                continue;
            p.there[d] = true;
            p.cpu[d][0] = cpus[i];
            p.cpu[d][1] = cpus[j];
            found++;
        }
    free(site);
    return p;
}
