/* Links and sources, each from its place alone: any rank makes the same. */
#include "lattice.h"
#include <complex.h>
#include <math.h>
#include <stdlib.h>

static uint64_t scatter(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t place(const struct lattice *l, const int at[4])
{
    uint64_t p = 0;
    for (int i = 3; i >= 0; i--)
        p = p * (uint64_t)l->size[i] + (uint64_t)at[i];
    return p;
}

/* chance is number i of a place, -1 .. 1. */
static double chance(const struct lattice *l, const int at[4], uint64_t i)
{
    uint64_t key = scatter(l->seed + 0x9e3779b97f4a7c15u * (place(l, at) * 256 + i + 1));
    return (double)(int64_t)(key >> 10) * 0x1p-53 - 1;
}

static void unit(double complex v[COLORS])
{
    double sum = 0;
    for (int c = 0; c < COLORS; c++)
        sum += creal(v[c]) * creal(v[c]) + cimag(v[c]) * cimag(v[c]);
    for (int c = 0; c < COLORS; c++)
        v[c] /= sqrt(sum);
}

/* links_one makes the first two rows orthonormal; the third follows from them with determinant 1. */
void links_one(const struct lattice *l, const int at[4], int axis, double out[LINK])
{
    double complex u[COLORS][COLORS], overlap = 0;
    uint64_t number = (uint64_t)axis * LINK;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < COLORS; j++, number += 2)
            u[i][j] = (i == j) + l->rough * (chance(l, at, number) + I * chance(l, at, number + 1));
    unit(u[0]);
    for (int j = 0; j < COLORS; j++)
        overlap += u[1][j] * conj(u[0][j]);
    for (int j = 0; j < COLORS; j++)
        u[1][j] -= overlap * u[0][j];
    unit(u[1]);
    for (int j = 0; j < COLORS; j++) {
        int a = (j + 1) % 3, b = (j + 2) % 3;
        u[2][j] = conj(u[0][a] * u[1][b] - u[0][b] * u[1][a]);
    }
    for (int i = 0; i < COLORS * COLORS; i++) {
        out[2 * i] = creal(u[i / 3][i % 3]);
        out[2 * i + 1] = cimag(u[i / 3][i % 3]);
    }
}

double links_source(const struct lattice *l, const int at[4], int i)
{
    return chance(l, at, 128 + (uint64_t)i);
}

static void adjoint(double u[LINK])
{
    for (int i = 0; i < COLORS; i++)
        for (int j = i; j < COLORS; j++) {
            double *a = u + 2 * (3 * i + j), *b = u + 2 * (3 * j + i), re = a[0], im = a[1];
            a[0] = b[0];
            a[1] = -b[1];
            b[0] = re;
            b[1] = -im;
        }
}

/* hop_link is the link of a hop; one over the end of t changes the sign, as quarks do. */
static void hop_link(const struct lattice *l, const int at[4], int hop, double out[LINK])
{
    int axis = hop / 2, from[4] = {at[0], at[1], at[2], at[3]};
    if (hop % 2 == 1)
        from[axis] = (at[axis] + l->size[axis] - 1) % l->size[axis];
    links_one(l, from, axis, out);
    if (hop % 2 == 1)
        adjoint(out);
    for (int i = 0; axis == 3 && from[3] == l->size[3] - 1 && i < LINK; i++)
        out[i] = -out[i];
}

static void fill_row(struct lattice *l, int kind, int t, int z, int y)
{
    double *row = l->link[kind] + lattice_row(l, t, z, y) * HOPS * LINK * (size_t)l->padded;
    for (int h = 0; h < l->half; h++) {
        const int at[4] = {2 * h + lattice_shift(l, kind, t, z, y), y, z, t + l->first};
        for (int hop = 0; hop < HOPS; hop++) {
            double u[LINK];
            hop_link(l, at, hop, u);
            for (int i = 0; i < LINK; i++)
                row[(hop * LINK + i) * l->padded + h] = u[i];
        }
    }
}

void lattice_open(struct lattice *l, const struct world *w)
{
    l->half = l->size[0] / 2;
    l->padded = (l->half + LANES - 1) / LANES * LANES;
    l->slices = l->size[3] / w->ranks;
    l->first = l->slices * w->rank;
    l->below = (w->rank + w->ranks - 1) % w->ranks;
    l->above = (w->rank + 1) % w->ranks;
    l->alone = w->ranks == 1;
    size_t slice = lattice_numbers(l) / (size_t)l->slices;
    for (int kind = 0; kind < 2; kind++) {
        l->link[kind] = room(lattice_rows(l) * HOPS * LINK * (size_t)l->padded * sizeof(double));
        l->halo[kind] = room(slice * sizeof(double));
        for (int t = 0; t < l->slices; t++)
            for (int z = 0; z < l->size[2]; z++)
                for (int y = 0; y < l->size[1]; y++)
                    fill_row(l, kind, t, z, y);
    }
    l->odd = room(lattice_numbers(l) * sizeof(double));
}

void lattice_close(struct lattice *l)
{
    for (int kind = 0; kind < 2; kind++) {
        free(l->link[kind]);
        free(l->halo[kind]);
    }
    free(l->odd);
}

static double complex minor(double complex u[COLORS][COLORS], int j)
{
    int a = (j + 1) % 3, b = (j + 2) % 3;
    return u[1][a] * u[2][b] - u[1][b] * u[2][a];
}

static double broken(const double *link, int step)
{
    double complex u[COLORS][COLORS], det = 0;
    double worst = 0;
    for (int i = 0; i < COLORS * COLORS; i++)
        u[i / 3][i % 3] = link[2 * i * step] + I * link[(2 * i + 1) * step];
    for (int i = 0; i < COLORS; i++) {
        for (int j = 0; j < COLORS; j++) {
            double complex sum = i == j ? -1 : 0;
            for (int k = 0; k < COLORS; k++)
                sum += u[i][k] * conj(u[j][k]);
            worst = fmax(worst, cabs(sum));
        }
        det += u[0][i] * minor(u, i);
    }
    /* Links over the end of t carry a sign: their determinant is -1. */
    return fmax(worst, fmin(cabs(det - 1), cabs(det + 1)));
}

double links_broken(const struct lattice *l)
{
    double worst = 0;
    for (int kind = 0; kind < 2; kind++)
        for (size_t row = 0; row < lattice_rows(l) * HOPS; row++)
            for (int h = 0; h < l->half; h++)
                worst = fmax(worst, broken(l->link[kind] + row * LINK * (size_t)l->padded + h, l->padded));
    return world_most(worst);
}
