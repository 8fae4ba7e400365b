/* How near the answer is: root mean squares, and an integral for LU. */
#include "flow.h"
#include <math.h>

static void finish(const struct grid *g, double sum[UNKNOWNS])
{
    double inner = g->n - 2;
    MPI_Allreduce(MPI_IN_PLACE, sum, UNKNOWNS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int m = 0; m < UNKNOWNS; m++)
        sum[m] = sqrt(sum[m] / (inner * inner * inner));
}

/* squares adds up the squares of v, less those of the known answer if that is wanted. */
static void squares(const struct flow *f, const double *v, bool answer, double out[UNKNOWNS])
{
    const struct grid *g = &f->grid;
    int y0, y1, z0, z1;
    grid_inner(g, 1, &y0, &y1);
    grid_inner(g, 2, &z0, &z1);
    for (int m = 0; m < UNKNOWNS; m++)
        out[m] = 0;
    for (int z = z0; z < z1; z++)
        for (int y = y0; y < y1; y++)
            for (int x = 1; x < g->n - 1; x++) {
                double less[UNKNOWNS] = {0};
                if (answer)
                    exact_at(g, x, y, z, less);
                const double *p = v + grid_at(g, UNKNOWNS, x, y, z);
                for (int m = 0; m < UNKNOWNS; m++) {
                    double d = p[m * g->n] - less[m];
                    out[m] += d * d;
                }
            }
    finish(g, out);
}

void norms_residual(const struct flow *f, double out[UNKNOWNS])
{
    squares(f, f->r, false, out);
}

void norms_error(const struct flow *f, double out[UNKNOWNS])
{
    squares(f, f->u, true, out);
}

/* weight is that of the trapezoid rule over from..to; 0 outside. */
static double weight(int at, int from, int to)
{
    if (at < from || at > to)
        return 0;
    return at == from || at == to ? 0.5 : 1;
}

double norms_surface(const struct flow *f)
{
    const struct grid *g = &f->grid;
    int n = g->n;
    /* The box of the specification is not in the middle. */
    const int from[3] = {1, 1, 2}, to[3] = {n - 2, n - 3, n - 2};
    double sum = 0;
    for (int z = 0; z < g->count[1]; z++)
        for (int y = 0; y < g->count[0]; y++)
            for (int x = 0; x < n; x++) {
                const int at[3] = {x, y + g->first[0], z + g->first[1]};
                double w[3], share = 0;
                for (int d = 0; d < 3; d++)
                    w[d] = weight(at[d], from[d], to[d]);
                for (int d = 0; d < 3; d++)
                    if (at[d] == from[d] || at[d] == to[d])
                        share += w[(d + 1) % 3] * w[(d + 2) % 3];
                if (share > 0)
                    sum += share * f->derived[grid_at(g, DERIVED, x, y, z) + PRESSURE * n];
            }
    double step = 1.0 / (n - 1);
    return world_sum(sum) * step * step;
}
