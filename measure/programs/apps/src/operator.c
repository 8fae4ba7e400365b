/* What the equations do to the unknowns: transport, viscosity and smoothing, all by
 * central differences along the three axes. */
#include "flow.h"
#include <math.h>

const double *fourth(int at, int n)
{
    static const double weights[5][5] = {
        {0, 0, 5, -4, 1}, {0, -4, 6, -4, 1}, {1, -4, 6, -4, 1}, {1, -4, 6, -4, 0}, {1, -4, 5, 0, 0},
    };
    return weights[at < 3 ? at - 1 : at > n - 4 ? at - (n - 1) + 5 : 2];
}

static void derive_row(const double *restrict u, double *restrict d, int n, bool sound)
{
    for (int x = 0; x < n; x++) {
        double volume = 1 / u[x];
        double v0 = u[n + x] * volume, v1 = u[2 * n + x] * volume, v2 = u[3 * n + x] * volume;
        double kinetic = 0.5 * (v0 * v0 + v1 * v1 + v2 * v2);
        d[x] = v0;
        d[n + x] = v1;
        d[2 * n + x] = v2;
        d[KINETIC * n + x] = kinetic;
        d[PRESSURE * n + x] = GAMMA1 * (u[ENERGY * n + x] - u[x] * kinetic);
        d[VOLUME * n + x] = volume;
    }
    for (int x = 0; sound && x < n; x++)
        d[SOUND * n + x] = sqrt(GAMMA * d[PRESSURE * n + x] * d[VOLUME * n + x]);
}

/* derive covers one layer of the halo: its neighbours inside ask for it. */
static void derive(struct flow *f)
{
    const struct grid *g = &f->grid;
    int from[2], to[2];
    for (int d = 0; d < 2; d++) {
        from[d] = g->below[d] == MPI_PROC_NULL ? 0 : -1;
        to[d] = g->count[d] + (g->above[d] == MPI_PROC_NULL ? 0 : 1);
    }
    for (int z = from[1]; z < to[1]; z++)
        for (int y = from[0]; y < to[0]; y++) {
            /* The corners of the halo are nobody's neighbours and were not sent. */
            if ((y < 0 || y >= g->count[0]) && (z < 0 || z >= g->count[1]))
                continue;
            derive_row(f->u + grid_at(g, UNKNOWNS, 0, y, z), f->derived + grid_at(g, DERIVED, 0, y, z), g->n,
                       f->sound);
        }
}

struct axis {
    int n, number;
    ptrdiff_t u, d;             /* strides along it */
    double first, second;       /* weights of the first and the second difference */
    double smooth;
};

static struct axis axis_of(const struct grid *g, int number)
{
    double per = g->n - 1;
    return (struct axis){g->n, number, grid_stride(g, UNKNOWNS, number), grid_stride(g, DERIVED, number),
                         per / 2, per * per, smoothing(number) * per * per};
}

/* along adds what happens along one axis, for the inner points of one row. */
static void along(const struct axis *a, const double *restrict u, const double *restrict d, double *restrict r)
{
    int n = a->n;
    ptrdiff_t su = a->u, sd = a->d;
    int here = a->number, side = (here + 1) % 3, other = (here + 2) % 3;
    const double *mass = u, *m0 = u + (MOMENTUM + here) * n, *m1 = u + (MOMENTUM + side) * n;
    const double *m2 = u + (MOMENTUM + other) * n, *energy = u + ENERGY * n;
    const double *v0 = d + here * n, *v1 = d + side * n, *v2 = d + other * n;
    const double *kin = d + KINETIC * n, *press = d + PRESSURE * n, *vol = d + VOLUME * n;
    double *r0 = r + (MOMENTUM + here) * n, *r1 = r + (MOMENTUM + side) * n, *r2 = r + (MOMENTUM + other) * n;
    double *re = r + ENERGY * n;
    double c = a->first, s = a->smooth, vis = VISCOSITY * a->second;
    double kvis = (1 - CONDUCTION) * vis, cvis = CONDUCTION * vis;
    for (int x = 1; x < n - 1; x++) {
        ptrdiff_t p = x + su, q = x - su, dp = x + sd, dq = x - sd;
        double vp = v0[dp], v = v0[x], vq = v0[dq];
        r[x] += s * (mass[p] - 2 * mass[x] + mass[q]) - c * (m0[p] - m0[q]);
        r0[x] += s * (m0[p] - 2 * m0[x] + m0[q]) + vis * (4.0 / 3) * (vp - 2 * v + vq) -
                 c * (m0[p] * vp - m0[q] * vq + press[dp] - press[dq]);
        r1[x] += s * (m1[p] - 2 * m1[x] + m1[q]) + vis * (v1[dp] - 2 * v1[x] + v1[dq]) - c * (m1[p] * vp - m1[q] * vq);
        r2[x] += s * (m2[p] - 2 * m2[x] + m2[q]) + vis * (v2[dp] - 2 * v2[x] + v2[dq]) - c * (m2[p] * vp - m2[q] * vq);
        re[x] += s * (energy[p] - 2 * energy[x] + energy[q]) + kvis * (kin[dp] - 2 * kin[x] + kin[dq]) +
                 vis * (1.0 / 6) * (vp * vp - 2 * v * v + vq * vq) +
                 cvis * (energy[p] * vol[dp] - 2 * energy[x] * vol[x] + energy[q] * vol[dq]) -
                 c * ((energy[p] + press[dp]) * vp - (energy[q] + press[dq]) * vq);
    }
}

/* damp takes the fourth difference away from points from..to of one row. */
static void damp(const double *restrict u, double *restrict r, ptrdiff_t s, const double w[5], int from, int to)
{
    double a = w[0] * FOURTH, b = w[1] * FOURTH, c = w[2] * FOURTH, d = w[3] * FOURTH, e = w[4] * FOURTH;
    for (int x = from; x < to; x++)
        r[x] -= a * u[x - 2 * s] + b * u[x - s] + c * u[x] + d * u[x + s] + e * u[x + 2 * s];
}

static void damp_x(const double *u, double *r, int n)
{
    damp(u, r, 1, fourth(1, n), 1, 2);
    damp(u, r, 1, fourth(2, n), 2, 3);
    damp(u, r, 1, fourth(3, n), 3, n - 3);
    damp(u, r, 1, fourth(n - 3, n), n - 3, n - 2);
    damp(u, r, 1, fourth(n - 2, n), n - 2, n - 1);
}

static void residual_row(struct flow *f, const struct axis axis[3], int y, int z, double scale)
{
    const struct grid *g = &f->grid;
    int n = g->n;
    ptrdiff_t at = grid_at(g, UNKNOWNS, 0, y, z);
    const double *u = f->u + at, *d = f->derived + grid_at(g, DERIVED, 0, y, z), *force = f->force + at;
    double *r = f->r + at;
    for (int i = 0; i < UNKNOWNS * n; i++)
        r[i] = force[i];
    for (int i = 0; i < 3; i++)
        along(&axis[i], u, d, r);
    for (int m = 0; m < UNKNOWNS; m++) {
        damp_x(u + m * n, r + m * n, n);
        damp(u + m * n, r + m * n, axis[1].u, fourth(y + g->first[0], n), 1, n - 1);
        damp(u + m * n, r + m * n, axis[2].u, fourth(z + g->first[1], n), 1, n - 1);
    }
    for (int i = 0; i < UNKNOWNS * n; i++)
        r[i] *= scale;
}

void operator_residual(struct flow *f, double scale)
{
    const struct grid *g = &f->grid;
    grid_exchange(g, f->u);
    derive(f);
    struct axis axis[3];
    for (int i = 0; i < 3; i++)
        axis[i] = axis_of(g, i);
    int y0, y1, z0, z1;
    grid_inner(g, 1, &y0, &y1);
    grid_inner(g, 2, &z0, &z1);
    for (int z = z0; z < z1; z++)
        for (int y = y0; y < y1; y++)
            residual_row(f, axis, y, z, scale);
}
