/* Two ranks of one host, on processors that are near to each other, and farther
 * apart. All hosts do so at the same time. */
#include "probe.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_PLACES = 41, MOST_CPUS = 8192 };

/* bind has this process run on these processors only. */
static bool bind(const int *cpus, int n)
{
    cpu_set_t *set = CPU_ALLOC(MOST_CPUS);
    size_t bytes = CPU_ALLOC_SIZE(MOST_CPUS);
    if (!set)
        return false;
    CPU_ZERO_S(bytes, set);
    for (int i = 0; i < n; i++)
        CPU_SET_S(cpus[i], bytes, set);
    bool ok = sched_setaffinity(0, bytes, set) == 0;
    CPU_FREE(set);
    return ok;
}

/* partner finds who measures with this rank: the first two of each host do. */
static struct pair partner(const struct world *w)
{
    struct pair p = {.w = w, .other = -1, .round = -1, .inside = true};
    int two[2], n = 0;
    for (int r = 0; r < w->size && n < 2; r++)
        if (strcmp(world_host(w, r), w->host) == 0)
            two[n++] = r;
    if (n == 2 && w->rank == two[0])
        p.other = two[1], p.first = true;
    else if (n == 2 && w->rank == two[1])
        p.other = two[0];
    return p;
}

/* lacks tells what this host has no pair for. */
static void lacks(const struct world *w, const struct places *at)
{
    char text[200] = "";
    for (int d = 0; d < NEARS; d++)
        if (!at->there[d])
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", text[0] ? ", " : "left out, as it has none: ", near_lacks((enum near)d));
    if (!text[0])
        return;
    line_open("omitted");
    line_text("host", w->host);
    line_text("what", "inside");
    line_text("text", text);
    line_close();
}

void inside_run(const struct world *w)
{
    struct list sizes = sizes_of(w->flags);
    struct pair p = partner(w);
    struct places at = {0};
    int n = cpus_count(), *cpus = malloc((size_t)n * sizeof *cpus);
    for (int i = 0; cpus && i < n; i++)
        cpus[i] = cpus_at(i);
    if (p.first && cpus)
        at = places_find("/sys/devices/system/cpu", cpus, n);
    /* Both must mean the same processors. */
    if (p.other >= 0 && p.first)
        MPI_Send(&at, sizeof at, MPI_BYTE, p.other, TAG_PLACES, MPI_COMM_WORLD);
    else if (p.other >= 0)
        MPI_Recv(&at, sizeof at, MPI_BYTE, p.other, TAG_PLACES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int d = 0; d < NEARS; d++) {
        struct pair q = p;
        char prefix[32];
        snprintf(prefix, sizeof prefix, "inside.%s", near_name((enum near)d));
        if (!at.there[d])
            q.other = -1;
        if (q.other >= 0) {
            char mine = bind(&at.cpu[d][p.first ? 0 : 1], 1), theirs = 0;
            MPI_Sendrecv(&mine, 1, MPI_BYTE, p.other, TAG_PLACES, &theirs, 1, MPI_BYTE, p.other, TAG_PLACES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (!mine || !theirs) {
                q.other = -1; /* processors that may not be used */
                at.there[d] = false;
            }
        }
        sizes_pair(&q, prefix, &sizes);
    }
    if (cpus)
        (void)bind(cpus, n);
    free(cpus);
    if (w->first_on_host)
        lacks(w, &at);
    line_gather(w);
}
