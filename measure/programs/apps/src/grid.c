/* Who has which part of the cube, and the exchange of its edges. */
#include "flow.h"

static int start(int n, int blocks, int block)
{
    return (int)((int64_t)n * block / blocks);
}

bool grid_fits(int n, int ranks)
{
    int a, b;
    most_square(ranks, &a, &b);
    return n / b >= HALO;
}

void grid_open(struct grid *g, int n, const struct world *w)
{
    g->n = n;
    most_square(w->ranks, &g->blocks[0], &g->blocks[1]);
    g->mine[0] = w->rank % g->blocks[0];
    g->mine[1] = w->rank / g->blocks[0];
    int step = 1;
    for (int d = 0; d < 2; d++) {
        int at = g->mine[d], of = g->blocks[d];
        g->first[d] = start(n, of, at);
        g->count[d] = start(n, of, at + 1) - g->first[d];
        g->below[d] = at > 0 ? w->rank - step : MPI_PROC_NULL;
        g->above[d] = at < of - 1 ? w->rank + step : MPI_PROC_NULL;
        step *= of;
    }
    int row = UNKNOWNS * n;
    MPI_Type_vector(g->count[1], HALO * row, (g->count[0] + 2 * HALO) * row, MPI_DOUBLE, &g->rows);
    MPI_Type_commit(&g->rows);
}

void grid_close(struct grid *g)
{
    MPI_Type_free(&g->rows);
}

double *grid_room(const struct grid *g, int values)
{
    enum { SLACK = 16 };
    size_t points = (size_t)g->n * (size_t)(g->count[0] + 2 * HALO) * (size_t)(g->count[1] + 2 * HALO);
    return room((points * (size_t)values + SLACK) * sizeof(double));
}

void grid_inner(const struct grid *g, int axis, int *from, int *to)
{
    if (axis == 0) {
        *from = 1;
        *to = g->n - 1;
        return;
    }
    int d = axis - 1;
    *from = g->mine[d] == 0 ? 1 : 0;
    *to = g->count[d] - (g->mine[d] == g->blocks[d] - 1 ? 1 : 0);
}

void grid_exchange(const struct grid *g, double *u)
{
    enum { TAG_UP = 1, TAG_DOWN };
    int ny = g->count[0], nz = g->count[1], planes = (int)(HALO * grid_stride(g, UNKNOWNS, 2));
    double *row[4], *plane[4];
    /* In this order: halo below, mine below, mine above, halo above. */
    for (int i = 0; i < 4; i++) {
        row[i] = u + grid_at(g, UNKNOWNS, 0, i < 2 ? (i - 1) * HALO : ny + (i - 3) * HALO, 0);
        plane[i] = u + grid_at(g, UNKNOWNS, 0, -HALO, i < 2 ? (i - 1) * HALO : nz + (i - 3) * HALO);
    }
    MPI_Request r[8];
    MPI_Irecv(row[0], 1, g->rows, g->below[0], TAG_UP, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(row[3], 1, g->rows, g->above[0], TAG_DOWN, MPI_COMM_WORLD, &r[1]);
    MPI_Irecv(plane[0], planes, MPI_DOUBLE, g->below[1], TAG_UP, MPI_COMM_WORLD, &r[2]);
    MPI_Irecv(plane[3], planes, MPI_DOUBLE, g->above[1], TAG_DOWN, MPI_COMM_WORLD, &r[3]);
    MPI_Isend(row[2], 1, g->rows, g->above[0], TAG_UP, MPI_COMM_WORLD, &r[4]);
    MPI_Isend(row[1], 1, g->rows, g->below[0], TAG_DOWN, MPI_COMM_WORLD, &r[5]);
    MPI_Isend(plane[2], planes, MPI_DOUBLE, g->above[1], TAG_UP, MPI_COMM_WORLD, &r[6]);
    MPI_Isend(plane[1], planes, MPI_DOUBLE, g->below[1], TAG_DOWN, MPI_COMM_WORLD, &r[7]);
    MPI_Waitall(8, r, MPI_STATUSES_IGNORE);
}
