/* The ranks, and how they meet. */
#include "probe.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void world_open(struct world *w, const struct flags *f)
{
    w->flags = f;
    MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w->size);
    memset(w->host, 0, sizeof w->host);
    if (gethostname(w->host, sizeof w->host - 1) != 0)
        snprintf(w->host, sizeof w->host, "rank-%d", w->rank);
    w->hosts = malloc((size_t)w->size * HOST_LEN);
    if (!w->hosts) {
        fprintf(stderr, "muster-probe: no memory for %d host names\n", w->size);
        MPI_Abort(MPI_COMM_WORLD, 1);
        abort();
    }
    MPI_Allgather(w->host, HOST_LEN, MPI_CHAR, w->hosts, HOST_LEN, MPI_CHAR, MPI_COMM_WORLD);
    w->on_host = 0;
    w->first_on_host = true;
    for (int r = 0; r < w->size; r++) {
        if (strcmp(world_host(w, r), w->host) != 0)
            continue;
        w->on_host++;
        if (r < w->rank)
            w->first_on_host = false;
    }
}

void world_close(struct world *w)
{
    free(w->hosts);
    w->hosts = NULL;
}

const char *world_host(const struct world *w, int rank)
{
    return w->hosts + (size_t)rank * HOST_LEN;
}

void world_meet(const struct world *w)
{
    (void)w;
    /* MPI waits by turning round; on a shared host that would take the time of
     * those who still measure. Sleeping costs a millisecond at most, and the
     * second barrier makes the start sharp. */
    MPI_Request r;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &r);
    for (MPI_Test(&r, &done, MPI_STATUS_IGNORE); !done; MPI_Test(&r, &done, MPI_STATUS_IGNORE))
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

bool world_all(bool ok)
{
    int mine = ok, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return all != 0;
}

int world_most(int mine)
{
    int most = 0;
    MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

char *world_text(const struct world *w, char *text)
{
    int64_t n = text ? (int64_t)strlen(text) : -1;
    MPI_Bcast(&n, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    if (n < 0)
        return NULL;
    if (w->rank != 0)
        text = malloc((size_t)n + 1);
    if (!text) {
        fprintf(stderr, "muster-probe: no memory for a text of %lld bytes\n", (long long)n);
        MPI_Abort(MPI_COMM_WORLD, 1);
        abort();
    }
    MPI_Bcast(text, (int)n + 1, MPI_CHAR, 0, MPI_COMM_WORLD);
    return text;
}
