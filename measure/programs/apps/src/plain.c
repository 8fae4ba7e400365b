/* The operator as the textbook has it, to check the fast one: points one after the other,
 * gammas as matrices, links made anew from the seed. */
#include "lattice.h"
#include <complex.h>
#include <stdlib.h>

/* gamma is one entry of the matrix of an axis; 4 is gamma 5. */
static double complex gamma_at(int axis, int i, int j)
{
    static const double complex table[5][SPINS][SPINS] = {
        {{0, 0, 0, I}, {0, 0, I, 0}, {0, -I, 0, 0}, {-I, 0, 0, 0}},
        {{0, 0, 0, -1}, {0, 0, 1, 0}, {0, 1, 0, 0}, {-1, 0, 0, 0}},
        {{0, 0, I, 0}, {0, 0, 0, -I}, {-I, 0, 0, 0}, {0, I, 0, 0}},
        {{0, 0, 1, 0}, {0, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, 0}},
        {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, -1, 0}, {0, 0, 0, -1}},
    };
    return table[axis][i][j];
}

struct spinor {
    double complex v[SPINS][COLORS];
};

/* point is where a point's numbers lie; its coordinates are of the whole lattice, t of mine. */
static double *point(const struct lattice *l, struct pair p, const int at[4])
{
    int kind = (at[0] + at[1] + at[2] + at[3]) & 1;
    return p.kind[kind] + lattice_row(l, at[3] - l->first, at[2], at[1]) * SPINOR * (size_t)l->padded + at[0] / 2;
}

static struct spinor get(const struct lattice *l, struct pair p, const int at[4])
{
    const double *v = point(l, p, at);
    struct spinor s;
    for (int i = 0; i < SPINS * COLORS; i++)
        s.v[i / COLORS][i % COLORS] = v[2 * i * l->padded] + I * v[(2 * i + 1) * l->padded];
    return s;
}

static void put(const struct lattice *l, struct pair p, const int at[4], const struct spinor *s)
{
    double *v = point(l, p, at);
    for (int i = 0; i < SPINS * COLORS; i++) {
        v[2 * i * l->padded] = creal(s->v[i / COLORS][i % COLORS]);
        v[(2 * i + 1) * l->padded] = cimag(s->v[i / COLORS][i % COLORS]);
    }
}

static size_t cell(const struct lattice *l, const int at[4])
{
    return ((size_t)at[2] * (size_t)l->size[1] + (size_t)at[1]) * (size_t)l->size[0] + (size_t)at[0];
}

/* each calls visit for every point of mine. */
typedef void visit_fn(struct lattice *l, const int at[4], void *arg);

static void each(struct lattice *l, int from, int to, visit_fn *visit, void *arg)
{
    int at[4];
    for (at[3] = from; at[3] < to; at[3]++)
        for (at[2] = 0; at[2] < l->size[2]; at[2]++)
            for (at[1] = 0; at[1] < l->size[1]; at[1]++)
                for (at[0] = 0; at[0] < l->size[0]; at[0]++)
                    visit(l, at, arg);
}

struct work {
    struct pair in, out;
    struct spinor *edge, *below, *above;
    double kappa;
};

static void to_edge(struct lattice *l, const int at[4], void *arg)
{
    struct work *w = arg;
    w->edge[cell(l, at)] = get(l, w->in, at);
}

/* swap sends a slice one way and receives the one that comes from the other. */
static void swap(struct lattice *l, struct work *w, int t, int to, int from, struct spinor *into)
{
    size_t size = (size_t)l->size[0] * (size_t)l->size[1] * (size_t)l->size[2] * sizeof *into;
    each(l, t, t + 1, to_edge, w);
    MPI_Sendrecv(w->edge, (int)(size / sizeof(double)), MPI_DOUBLE, to, 3, into, (int)(size / sizeof(double)),
                 MPI_DOUBLE, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static struct spinor neighbour(struct lattice *l, const struct work *w, const int at[4])
{
    if (at[3] < l->first)
        return w->below[cell(l, at)];
    return at[3] < l->first + l->slices ? get(l, w->in, at) : w->above[cell(l, at)];
}

/* add_hop takes kappa (1 -+ gamma) U in off out. */
static void add_hop(struct lattice *l, const struct work *w, const int at[4], int axis, int way, struct spinor *out)
{
    int there[4] = {at[0], at[1], at[2], at[3]}, origin[4];
    there[axis] += way;
    if (axis < 3)
        there[axis] = (there[axis] + l->size[axis]) % l->size[axis];
    for (int i = 0; i < 4; i++)
        origin[i] = way > 0 ? at[i] : (there[i] + l->size[i]) % l->size[i];
    bool over = there[3] < 0 || there[3] >= l->size[3];
    double u[LINK], sign = over ? -1 : 1;
    links_one(l, origin, axis, u);
    struct spinor in = neighbour(l, w, there);
    for (int s = 0; s < SPINS; s++)
        for (int r = 0; r < SPINS; r++) {
            double complex g = (s == r) - way * gamma_at(axis, s, r);
            for (int c = 0; g != 0 && c < COLORS; c++)
                for (int d = 0; d < COLORS; d++) {
                    int e = 2 * (way > 0 ? 3 * c + d : 3 * d + c);
                    double complex link = u[e] + way * I * u[e + 1];
                    out->v[s][c] -= w->kappa * sign * g * link * in.v[r][d];
                }
        }
}

static void apply_at(struct lattice *l, const int at[4], void *arg)
{
    const struct work *w = arg;
    struct spinor out = get(l, w->in, at);
    for (int axis = 0; axis < 4; axis++) {
        add_hop(l, w, at, axis, 1, &out);
        add_hop(l, w, at, axis, -1, &out);
    }
    put(l, w->out, at, &out);
}

void plain_apply(struct lattice *l, double kappa, struct pair out, struct pair in)
{
    size_t slice = (size_t)l->size[0] * (size_t)l->size[1] * (size_t)l->size[2] * sizeof(struct spinor);
    struct work w = {in, out, room(slice), room(slice), room(slice), kappa};
    int last = l->first + l->slices - 1;
    swap(l, &w, last, l->above, l->below, w.below);
    swap(l, &w, l->first, l->below, l->above, w.above);
    each(l, l->first, last + 1, apply_at, &w);
    free(w.edge);
    free(w.below);
    free(w.above);
}

static void gamma5_at(struct lattice *l, const int at[4], void *arg)
{
    struct spinor in = get(l, *(struct pair *)arg, at), out = {0};
    for (int s = 0; s < SPINS; s++)
        for (int r = 0; r < SPINS; r++)
            for (int c = 0; c < COLORS; c++)
                out.v[s][c] += gamma_at(4, s, r) * in.v[r][c];
    put(l, *(struct pair *)arg, at, &out);
}

void plain_gamma5(const struct lattice *l, struct pair v)
{
    struct lattice copy = *l;
    each(&copy, l->first, l->first + l->slices, gamma5_at, &v);
}
