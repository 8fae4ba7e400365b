/* The last-level cache, as the kernel tells it in /sys. */
#include "probe.h"
#include <stdio.h>
#include <string.h>

enum { MOST_CACHES = 256, GUESS = 64 << 20 };

static bool word(char *out, int room, int cpu, int index, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", cpu, index, name);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    bool ok = fgets(out, room, f) != NULL;
    fclose(f);
    if (ok)
        out[strcspn(out, "\n")] = 0;
    return ok;
}

/* last tells the size of the highest cache of a processor, and who shares it. */
static int64_t last(int cpu, char *sharers, int room)
{
    int best = 0;
    int64_t size = 0;
    for (int i = 0; i < 16; i++) {
        char level[16], text[32], mates[256];
        int l;
        long long n;
        char suffix = 0;
        if (!word(level, sizeof level, cpu, i, "level"))
            break;
        if (sscanf(level, "%d", &l) != 1 || l <= best || !word(text, sizeof text, cpu, i, "size"))
            continue;
        if (sscanf(text, "%lld%c", &n, &suffix) < 1 || n <= 0)
            continue;
        best = l;
        size = n * (suffix == 'K' ? 1 << 10 : suffix == 'M' ? 1 << 20 : 1);
        if (!word(mates, sizeof mates, cpu, i, "shared_cpu_list"))
            snprintf(mates, sizeof mates, "%d", cpu);
        snprintf(sharers, (size_t)room, "%s", mates);
    }
    return size;
}

int64_t cache_bytes(const struct flags *f)
{
    static char seen[MOST_CACHES][256];
    int n = 0;
    int64_t sum = 0;
    if (f->cache > 0)
        return f->cache;
    for (int i = 0; i < cpus_count(); i++) {
        char mates[256];
        int64_t size = last(cpus_at(i), mates, sizeof mates);
        bool known = size == 0;
        for (int k = 0; k < n && !known; k++)
            known = strcmp(seen[k], mates) == 0;
        if (known || n == MOST_CACHES)
            continue;
        snprintf(seen[n++], sizeof seen[0], "%s", mates);
        sum += size;
    }
    /* A virtual machine may show another one than its host has. */
    int64_t host = machine_says("cache_bytes");
    if (host > sum)
        sum = host;
    /* Some hide it. Too large is harmless, too small measures the cache. */
    return sum > 0 ? sum : GUESS;
}
