/* The ranks, and what they need to agree. */
#include "app.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world world_open(int *argc, char ***argv)
{
    struct world w;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w.ranks);
    return w;
}

int world_close(int status)
{
    MPI_Finalize();
    return status;
}

static double reduced(double mine, MPI_Op op)
{
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
    return all;
}

double world_most(double mine)
{
    return reduced(mine, MPI_MAX);
}

double world_sum(double mine)
{
    return reduced(mine, MPI_SUM);
}

void *room(size_t bytes)
{
    enum { LINE = 64 };
    size_t whole = (bytes / LINE + 1) * LINE;
    void *p = aligned_alloc(LINE, whole);
    if (!p) {
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        fprintf(stderr, "rank %d has no memory for %zu MiB; use more nodes or a smaller problem\n", rank, bytes >> 20);
        MPI_Abort(MPI_COMM_WORLD, EXIT_USAGE);
        abort();
    }
    return memset(p, 0, whole);
}

void most_square(int ranks, int *a, int *b)
{
    *a = 1;
    for (int d = 1; d <= ranks / d; d++)
        if (ranks % d == 0)
            *a = d;
    *b = ranks / *a;
}
