/* The lattice: quarks (spinors) at the points, gluons (links, SU(3)) between them, and
 * the operator of Wilson and Dirac, 1 - kappa * hops to the eight neighbours.
 *
 * Points are even or odd by the sum of their coordinates, and a hop changes that; each
 * kind has its own arrays. The lattice is cut along t. A row is what belongs to one (y, z,
 * t): for each of a spinor's 24 numbers, the values at all its x. */
#ifndef LATTICE_H
#define LATTICE_H

#include "app.h"
#include "lanes.h"

enum { EVEN, ODD, SPINS = 4, COLORS = 3, SPINOR = 24, LINK = 18, HOPS = 8 };

struct lattice {
    int size[4];                /* x, y, z, t of the whole */
    int half, padded;           /* x of one kind in a row; and with room for whole lanes */
    int slices, first;          /* of t: mine, and the first of them */
    int below, above;           /* ranks; the lattice is a ring in t */
    bool alone;
    uint64_t seed;
    double rough;               /* how far links are from one */
    double *link[2];            /* for points of a kind: eight links, those backwards already adjoint */
    double *halo[2];            /* a slice of spinors from below, and from above */
    double *odd;                /* for the operator's own use */
};

/* ---- links.c: fields that do not depend on the number of ranks ---------------- */

/* links_one is the link from a point (of the whole lattice) along axis: re, im of 3 x 3. */
void links_one(const struct lattice *l, const int at[4], int axis, double out[LINK]);
/* links_source is number i of the right side at a point. */
double links_source(const struct lattice *l, const int at[4], int i);
void lattice_open(struct lattice *l, const struct world *w);
void lattice_close(struct lattice *l);
/* links_broken is how far from unitary, with determinant 1, the worst link is. */
double links_broken(const struct lattice *l);

static inline size_t lattice_rows(const struct lattice *l)
{
    return (size_t)l->slices * (size_t)l->size[2] * (size_t)l->size[1];
}

static inline size_t lattice_row(const struct lattice *l, int t, int z, int y)
{
    return ((size_t)t * (size_t)l->size[2] + (size_t)z) * (size_t)l->size[1] + (size_t)y;
}

/* lattice_shift says whether a row's points of a kind are x = 1, 3, 5.. or 0, 2, 4.. */
static inline int lattice_shift(const struct lattice *l, int kind, int t, int z, int y)
{
    return (kind + y + z + t + l->first) & 1;
}

static inline size_t lattice_numbers(const struct lattice *l)
{
    return lattice_rows(l) * SPINOR * (size_t)l->padded;
}

/* ---- dirac.c: the operator, fast ------------------------------------------------ */

/* dirac_hop sets out, of the given kind, to base + scale * hops of in, of the other kind;
 * base may be NULL. */
void dirac_hop(struct lattice *l, int kind, double *out, const double *base, double scale, const double *in);
/* dirac_even is the operator on even points that is left when the odd ones are eliminated. */
void dirac_even(struct lattice *l, double kappa, double *out, const double *in);

/* ---- plain.c: the operator, as the textbook has it -------------------------------- */

/* Spinors of both kinds. */
struct pair {
    double *kind[2];
};

/* plain_apply computes the whole operator with other code, other data and links made anew. */
void plain_apply(struct lattice *l, double kappa, struct pair out, struct pair in);
void plain_gamma5(const struct lattice *l, struct pair v);

#endif
