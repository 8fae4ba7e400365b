/* How much memory there is for what is measured, and whether that is enough. */
#include "probe.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What the agent of the node knows of its machine: the kernel of a slice tells the memory of its
 * whole host, and that of a virtual machine other caches than its host has. */
static const char *const machine_file = "/etc/muster/machine";

int64_t machine_says(const char *key)
{
    char line[128];
    long long value = 0;
    FILE *f = fopen(machine_file, "r");
    if (!f)
        return 0;
    while (fgets(line, sizeof line, f)) {
        char name[64];
        long long n;
        if (sscanf(line, "%63s %lld", name, &n) == 2 && strcmp(name, key) == 0 && n > 0)
            value = n;
    }
    fclose(f);
    return value;
}

int64_t room_bytes(const struct world *w)
{
    int64_t all = w->flags->memory;
    if (all == 0)
        all = machine_says("memory_bytes");
    if (all == 0)
        all = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    /* Ranks themselves take some. */
    return all / 10 * 9 / (w->on_host > 0 ? w->on_host : 1);
}

bool room_enough(const struct world *w)
{
    return 4 * cache_bytes(w->flags) <= room_bytes(w);
}

/* mib writes a number of bytes for people. */
static long long mib(int64_t bytes)
{
    return (long long)(bytes >> 20);
}

void room_say(const struct world *w)
{
    const struct flags *f = w->flags;
    bool stream = f->bytes == 0 && metric_wanted(f, "stream"), latency = f->sizes.n == 0 && metric_wanted(f, "latency");
    char text[CHECK_LEN];
    if (!w->first_on_host || !(stream || latency) || room_enough(w))
        return;
    snprintf(text, sizeof text, "beyond the caches it takes %lld MiB a rank, 4 x the last cache, and a rank may use %lld MiB here", mib(4 * cache_bytes(f)),
             mib(room_bytes(w)));
    line_open("omitted");
    line_text("host", w->host);
    line_text("what", stream ? "stream" : "latency");
    line_text("text", text);
    line_close();
}
