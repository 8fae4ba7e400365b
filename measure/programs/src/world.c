/* The ranks: how many there are, where, and how they end together. */
#include "program.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void world_open(struct world *w, const char *program)
{
    int here, range[2];
    MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w->size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, w->rank, MPI_INFO_NULL, &w->node);
    MPI_Comm_size(w->node, &here);
    range[0] = here, range[1] = -here;
    MPI_Allreduce(MPI_IN_PLACE, range, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    w->per_node = range[0] == -range[1] ? here : 0;
    w->program = program;
    w->class = '?';
}

void stop(struct world *w, const char *format, ...)
{
    if (w->rank == 0) {
        va_list args;
        va_start(args, format);
        fprintf(stderr, "%s: ", w->program);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
    }
    world_close(w);
    exit(2);
}

void world_close(struct world *w)
{
    MPI_Comm_free(&w->node);
    MPI_Finalize();
}

double world_sum(double mine)
{
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return mine;
}

double clock_start(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

double clock_stop(double start)
{
    double seconds = MPI_Wtime() - start;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}
