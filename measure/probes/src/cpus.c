/* The processors that this process may use. Read once: binding a thread later
 * must not change the answer. */
#include "probe.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CPUS = 8192 };

static int cpus[MOST_CPUS];
static int count;

static void load(void)
{
    if (count > 0)
        return;
    cpu_set_t *set = CPU_ALLOC(MOST_CPUS);
    size_t bytes = CPU_ALLOC_SIZE(MOST_CPUS);
    if (set && sched_getaffinity(0, bytes, set) == 0)
        for (int c = 0; c < MOST_CPUS; c++)
            if (CPU_ISSET_S(c, bytes, set))
                cpus[count++] = c;
    if (set)
        CPU_FREE(set);
    if (count == 0)
        count = 1; /* processor 0, whatever it is */
}

int cpus_count(void)
{
    load();
    return count;
}

int cpus_at(int i)
{
    load();
    return cpus[i % count];
}

void cpus_text(char *out, size_t room)
{
    load();
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < count && n + 24 < room;) {
        int j = i;
        while (j + 1 < count && cpus[j + 1] == cpus[j] + 1)
            j++;
        n += (size_t)snprintf(out + n, room - n, j > i ? "%s%d-%d" : "%s%d", i ? "," : "", cpus[i], cpus[j]);
        i = j + 1;
    }
}
