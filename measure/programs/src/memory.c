/* Memory that all ranks have, or none. */
#include "program.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

/* available is what the kernel can still give on this node; 0: it does not say. Linux
 * promises more than it has, and kills whoever takes the promise at its word. */
static double available(void)
{
    char line[128];
    double kib = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    if (!f)
        return 0;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lf", &kib) == 1)
            break;
    fclose(f);
    return 1024 * kib;
}

static size_t rounded(size_t bytes)
{
    return (bytes + LINE) / LINE * LINE;
}

static bool take(const struct need *needs, int n)
{
    for (int i = 0; i < n; i++) {
        void *p = aligned_alloc(LINE, rounded(needs[i].bytes));
        if (!p)
            return false;
        memcpy(needs[i].at, &p, sizeof p);
    }
    return true;
}

/* refuse names the node of the first rank that has too little. */
static _Noreturn void refuse(struct world *w, int lacking, double mine)
{
    char node[MPI_MAX_PROCESSOR_NAME] = "";
    int len;
    MPI_Get_processor_name(node, &len);
    MPI_Bcast(node, sizeof node, MPI_CHAR, lacking, MPI_COMM_WORLD);
    MPI_Bcast(&mine, 1, MPI_DOUBLE, lacking, MPI_COMM_WORLD);
    stop(w, "class %c on %d rank%s takes %.0f MiB on rank %d, which node %s does not have: use more nodes, or a smaller class",
         w->class, w->size, w->size == 1 ? "" : "s", mine / 1048576, lacking, node);
}

void memory_get(struct world *w, const struct need *needs, int n)
{
    double mine = 0, here, there = available();
    int lacking = INT_MAX;
    for (int i = 0; i < n; i++)
        mine += (double)rounded(needs[i].bytes);
    MPI_Allreduce(&mine, &here, 1, MPI_DOUBLE, MPI_SUM, w->node);
    MPI_Allreduce(MPI_IN_PLACE, &there, 1, MPI_DOUBLE, MPI_MIN, w->node);
    if ((there > 0 && here > there) || !take(needs, n))
        lacking = w->rank;
    MPI_Allreduce(MPI_IN_PLACE, &lacking, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (lacking != INT_MAX)
        refuse(w, lacking, mine);
    /* Every page is touched here, so that no kernel pays for that in its timed section. */
    for (int i = 0; i < n; i++) {
        void *p;
        memcpy(&p, needs[i].at, sizeof p);
        memset(p, 0, rounded(needs[i].bytes));
    }
}

void memory_free(const struct need *needs, int n)
{
    for (int i = 0; i < n; i++) {
        void *p;
        memcpy(&p, needs[i].at, sizeof p);
        free(p);
    }
}
