/* The four operators. Each point takes part with the 26 around it: 6 share a face with
 * it, 12 an edge, 8 a corner. For each row, the four neighbours across a face and the
 * four across an edge that lie beside it in Y and Z are added up first; a point and its
 * two neighbours in X all need them. */
#include "mg.h"

enum { MOST_ROW = 1026 };

/* The weights of A: at the point, across edges, across corners; none across faces. */
#define A0 (-8.0 / 3)
#define A2 (1.0 / 6)
#define A3 (1.0 / 12)

/* around adds up the rows beside a row: those across a face, and those across an edge. */
static void around(const double *restrict a, ptrdiff_t y, ptrdiff_t z, int n, double *restrict face, double *restrict edge)
{
    for (int i = 0; i < n; i++) {
        face[i] = a[i - y] + a[i + y] + a[i - z] + a[i + z];
        edge[i] = a[i - y - z] + a[i + y - z] + a[i - y + z] + a[i + y + z];
    }
}

/* The right side and the result may be the same row. */
static void residual_row(int n, const double *v, const double *restrict u, const double *restrict face,
                         const double *restrict edge, double *r)
{
    for (int i = 1; i <= n; i++)
        r[i] = v[i] - A0 * u[i] - A2 * (edge[i] + face[i - 1] + face[i + 1]) - A3 * (edge[i - 1] + edge[i + 1]);
}

void residual(const struct box *b, const double *v, const double *u, double *r)
{
    double face[MOST_ROW], edge[MOST_ROW];
    for (int k = 1; k <= b->n[Z]; k++)
        for (int j = 1; j <= b->n[Y]; j++) {
            const ptrdiff_t at = k * b->z + j * b->y;
            around(u + at, b->y, b->z, b->n[X] + 2, face, edge);
            residual_row(b->n[X], v + at, u + at, face, edge, r + at);
        }
}

static void smooth_row(int n, const double c[3], double keep, const double *restrict r, const double *restrict face,
                       const double *restrict edge, double *restrict u)
{
    const double c0 = c[0], c1 = c[1], c2 = c[2];
    for (int i = 1; i <= n; i++)
        u[i] = keep * u[i] + c0 * r[i] + c1 * (r[i - 1] + r[i + 1] + face[i]) + c2 * (edge[i] + face[i - 1] + face[i + 1]);
}

void smooth(const struct box *b, const double c[3], bool add, const double *r, double *u)
{
    double face[MOST_ROW], edge[MOST_ROW];
    for (int k = 1; k <= b->n[Z]; k++)
        for (int j = 1; j <= b->n[Y]; j++) {
            const ptrdiff_t at = k * b->z + j * b->y;
            around(r + at, b->y, b->z, b->n[X] + 2, face, edge);
            smooth_row(b->n[X], c, add ? 1 : 0, r + at, face, edge, u + at);
        }
}

static void restriction_row(int n, const double *restrict r, const double *restrict face, const double *restrict edge,
                            double *restrict out)
{
    for (int i = 1; i <= n; i++)
        out[i] = 0.5 * r[2 * i] + 0.25 * (r[2 * i - 1] + r[2 * i + 1] + face[2 * i]) +
                 0.125 * (face[2 * i - 1] + face[2 * i + 1] + edge[2 * i]) + 0.0625 * (edge[2 * i - 1] + edge[2 * i + 1]);
}

/* Point i of a coarse level is where point 2 i of the finer one is, counted from 1. */
void restriction(const struct box *fine, const double *r, struct view coarse)
{
    double face[MOST_ROW], edge[MOST_ROW];
    for (int k = 1; k <= fine->n[Z] / 2; k++)
        for (int j = 1; j <= fine->n[Y] / 2; j++) {
            const double *row = r + 2 * k * fine->z + 2 * j * fine->y;
            around(row, fine->y, fine->z, fine->n[X] + 2, face, edge);
            restriction_row(fine->n[X] / 2, row, face, edge, coarse.at + k * coarse.z + j * coarse.y);
        }
}

static void prolongation_row(int n, double weight, double keep, const double *restrict sum, double *restrict u)
{
    for (int i = 1; i <= n; i++) {
        u[2 * i - 1] = keep * u[2 * i - 1] + 0.5 * weight * (sum[i - 1] + sum[i]);
        u[2 * i] = keep * u[2 * i] + weight * sum[i];
    }
}

/* Of the four fine rows that a coarse row begins, one lies on it, two lie between two
 * rows, and one between four. */
void prolongation(const struct box *fine, bool add, double *u, struct view coarse)
{
    double sum[MOST_ROW];
    const int n = fine->n[X] / 2;
    const double keep = add ? 1 : 0;
    for (int k = 1; k <= fine->n[Z] / 2; k++)
        for (int j = 1; j <= fine->n[Y] / 2; j++) {
            const double *restrict c = coarse.at + k * coarse.z + j * coarse.y;
            double *row = u + 2 * k * fine->z + 2 * j * fine->y;
            prolongation_row(n, 1, keep, c, row);
            for (int i = 0; i <= n; i++)
                sum[i] = c[i] + c[i - coarse.y];
            prolongation_row(n, 0.5, keep, sum, row - fine->y);
            for (int i = 0; i <= n; i++)
                sum[i] += c[i - coarse.z] + c[i - coarse.y - coarse.z];
            prolongation_row(n, 0.25, keep, sum, row - fine->y - fine->z);
            for (int i = 0; i <= n; i++)
                sum[i] = c[i] + c[i - coarse.z];
            prolongation_row(n, 0.5, keep, sum, row - fine->z);
        }
}
