/* The operator, fast: lanes of x, halves of spinors, and the slices at the edges last,
 * while those of the neighbours travel. */
#include "lattice.h"
#include <stdbool.h>
#include <string.h>

struct number {
    vec re, im;
};

/* turn multiplies by i to a power that the compiler knows. */
static inline struct number turn(struct number a, int power)
{
    switch (power & 3) {
    case 1:
        return (struct number){-a.im, a.re};
    case 2:
        return (struct number){-a.re, -a.im};
    case 3:
        return (struct number){a.im, -a.re};
    }
    return a;
}

static inline struct number plus(struct number a, struct number b)
{
    return (struct number){a.re + b.re, a.im + b.im};
}

static inline vec load(const double *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline struct number number_at(const double *p, int i, int step)
{
    return (struct number){load(p + 2 * i * step), load(p + (2 * i + 1) * step)};
}

/* In the basis where gamma 5 is diagonal, a gamma maps each of the first two spins to one
 * of the last two times a power of i: partner and power of each axis, for both spins. */
static const int PARTNER[4][2] = {{3, 2}, {3, 2}, {2, 3}, {2, 3}};
static const int POWER[4][2] = {{1, 1}, {2, 0}, {1, 3}, {0, 0}};

/* hop adds (1 -+ gamma) U in to sum. The last two spins of that follow from the first two. */
static inline __attribute__((always_inline)) void hop(int axis, bool back, const double *in, const double *link,
                                                      int step, struct number sum[SPINS][COLORS])
{
    for (int s = 0; s < 2; s++) {
        int partner = PARTNER[axis][s], sign = back ? 0 : 2, power = POWER[axis][s];
        struct number half[COLORS];
        for (int c = 0; c < COLORS; c++)
            half[c] = plus(number_at(in, COLORS * s + c, step),
                           turn(number_at(in, COLORS * partner + c, step), power + sign));
        for (int c = 0; c < COLORS; c++) {
            struct number u = number_at(link, 3 * c, step);
            struct number g = {u.re * half[0].re - u.im * half[0].im, u.re * half[0].im + u.im * half[0].re};
            for (int d = 1; d < COLORS; d++) {
                u = number_at(link, 3 * c + d, step);
                g.re += u.re * half[d].re - u.im * half[d].im;
                g.im += u.re * half[d].im + u.im * half[d].re;
            }
            sum[s][c] = plus(sum[s][c], g);
            sum[partner][c] = plus(sum[partner][c], turn(g, sign - power));
        }
    }
}

/* moved copies a row with its points one place further, around the ring. */
static void moved(const struct lattice *l, double *out, const double *in, int by)
{
    int n = l->half, p = l->padded;
    for (int i = 0; i < SPINOR; i++, in += p, out += p) {
        if (by > 0) {
            memcpy(out, in + 1, (size_t)(n - 1) * sizeof *out);
            out[n - 1] = in[0];
        } else {
            memcpy(out + 1, in, (size_t)(n - 1) * sizeof *out);
            out[0] = in[n - 1];
        }
    }
}

struct sources {
    const double *in[HOPS];
};

static void row(const struct lattice *l, const struct sources *from, const double *link, double *out,
                const double *base, double scale)
{
    int p = l->padded;
    for (int h = 0; h < p; h += LANES) {
        struct number sum[SPINS][COLORS];
        memset(sum, 0, sizeof sum);
        const double *u = link + h;
        hop(0, false, from->in[0] + h, u, p, sum);
        hop(0, true, from->in[1] + h, u + LINK * p, p, sum);
        hop(1, false, from->in[2] + h, u + 2 * LINK * p, p, sum);
        hop(1, true, from->in[3] + h, u + 3 * LINK * p, p, sum);
        hop(2, false, from->in[4] + h, u + 4 * LINK * p, p, sum);
        hop(2, true, from->in[5] + h, u + 5 * LINK * p, p, sum);
        hop(3, false, from->in[6] + h, u + 6 * LINK * p, p, sum);
        hop(3, true, from->in[7] + h, u + 7 * LINK * p, p, sum);
        const vec *v = (const vec *)sum;
        for (int i = 0; i < SPINOR; i++) {
            vec o = scale * v[i];
            if (base)
                o += load(base + i * p + h);
            memcpy(out + i * p + h, &o, sizeof o);
        }
    }
}

/* slice_at is a slice of in, of mine or of a neighbour. */
static const double *slice_at(const struct lattice *l, const double *in, int t)
{
    size_t slice = lattice_numbers(l) / (size_t)l->slices;
    if (l->alone)
        t = (t + l->slices) % l->slices;
    if (t < 0)
        return l->halo[0];
    return t < l->slices ? in + (size_t)t * slice : l->halo[1];
}

static void one_slice(struct lattice *l, int kind, int t, double *out, const double *base, double scale,
                      const double *in)
{
    int p = l->padded, ny = l->size[1], nz = l->size[2];
    size_t size = SPINOR * (size_t)p;
    double aside[size];
    memset(aside, 0, sizeof aside);
    const double *here = slice_at(l, in, t), *below = slice_at(l, in, t - 1), *above = slice_at(l, in, t + 1);
    for (int z = 0; z < nz; z++)
        for (int y = 0; y < ny; y++) {
            size_t mine = lattice_row(l, 0, z, y) * size, whole = lattice_row(l, t, z, y);
            bool shift = lattice_shift(l, kind, t, z, y);
            struct sources s = {{here + mine, here + mine, here + lattice_row(l, 0, z, (y + 1) % ny) * size,
                                 here + lattice_row(l, 0, z, (y + ny - 1) % ny) * size,
                                 here + lattice_row(l, 0, (z + 1) % nz, y) * size,
                                 here + lattice_row(l, 0, (z + nz - 1) % nz, y) * size, above + mine, below + mine}};
            moved(l, aside, here + mine, shift ? 1 : -1);
            s.in[shift ? 0 : 1] = aside;
            row(l, &s, l->link[kind] + whole * HOPS * LINK * (size_t)p, out + whole * size,
                base ? base + whole * size : NULL, scale);
        }
}

void dirac_hop(struct lattice *l, int kind, double *out, const double *base, double scale, const double *in)
{
    enum { TAG_UP = 1, TAG_DOWN };
    MPI_Request r[4];
    int last = l->slices - 1, slice = (int)(lattice_numbers(l) / (size_t)l->slices);
    if (!l->alone) {
        MPI_Irecv(l->halo[0], slice, MPI_DOUBLE, l->below, TAG_UP, MPI_COMM_WORLD, &r[0]);
        MPI_Irecv(l->halo[1], slice, MPI_DOUBLE, l->above, TAG_DOWN, MPI_COMM_WORLD, &r[1]);
        MPI_Isend(in + (size_t)last * (size_t)slice, slice, MPI_DOUBLE, l->above, TAG_UP, MPI_COMM_WORLD, &r[2]);
        MPI_Isend(in, slice, MPI_DOUBLE, l->below, TAG_DOWN, MPI_COMM_WORLD, &r[3]);
    }
    for (int t = 1; t < last; t++)
        one_slice(l, kind, t, out, base, scale, in);
    if (!l->alone)
        MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
    one_slice(l, kind, 0, out, base, scale, in);
    if (last > 0)
        one_slice(l, kind, last, out, base, scale, in);
}

void dirac_even(struct lattice *l, double kappa, double *out, const double *in)
{
    dirac_hop(l, ODD, l->odd, NULL, 1, in);
    dirac_hop(l, EVEN, out, in, -kappa * kappa, l->odd);
}
