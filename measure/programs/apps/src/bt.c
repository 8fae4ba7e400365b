/* BT: each step solves, along x, then y, then z, a block tridiagonal system for every
 * line of the cube. */
#include "pipe.h"

/* A block couples the unknowns of two points, in the order density, momentum along the
 * axis, the two across it, energy: so one solver serves all axes. */
struct block {
    vec at[UNKNOWNS][UNKNOWNS];
};

struct factors {
    double first, second, smooth;   /* times dt */
};

static struct factors factors_of(const struct lines *l)
{
    double per = l->flow->grid.n - 1, dt = l->flow->dt;
    return (struct factors){dt * per / 2, dt * per * per, dt * per * per * smoothing(l->axis)};
}

/* An order of the unknowns in memory. */
struct order {
    ptrdiff_t u[UNKNOWNS], v[3];
};

static struct order order_of(const struct lines *l)
{
    int n = l->flow->grid.n, a = l->axis, b = (a + 1) % 3, c = (a + 2) % 3;
    return (struct order){{DENSITY, (MOMENTUM + a) * n, (MOMENTUM + b) * n, (MOMENTUM + c) * n, ENERGY * n},
                          {a * n, b * n, c * n}};
}

/* The three blocks that a point's state gives: for the line's point above it (which has
 * it below), for itself, and for the point below it. */
struct trio {
    struct block to_above, own, to_below;
};

/* entry spreads one entry of the Jacobians of transport and viscosity over the trio. */
static inline void entry(struct trio *t, const struct factors *f, int i, int j, vec transport, vec viscous)
{
    vec a = f->first * transport, b = f->second * viscous;
    t->to_above.at[i][j] = -a - b;
    t->to_below.at[i][j] = a - b;
    t->own.at[i][j] = 2 * b;
}

static void couple(const struct lines *l, const struct factors *f, const struct order *o, int at, struct trio *t)
{
    int n = l->flow->grid.n;
    const double *d = l->derived + at * l->d_step;
    vec v0 = lanes_get(d + o->v[0], l->d_lane), v1 = lanes_get(d + o->v[1], l->d_lane);
    vec v2 = lanes_get(d + o->v[2], l->d_lane), kin = lanes_get(d + KINETIC * n, l->d_lane);
    vec vol = lanes_get(d + VOLUME * n, l->d_lane), press = lanes_get(d + PRESSURE * n, l->d_lane);
    vec energy = press * vol * (1 / GAMMA1) + kin, total = energy + press * vol;
    vec zero = {0}, one = zero + 1, c = VISCOSITY * vol, k = (1 - CONDUCTION) * c;
    /* Its last use has filled it. */
    t->own = (struct block){0};
    entry(t, f, 0, 0, zero, zero);
    entry(t, f, 0, 1, one, zero);
    entry(t, f, 1, 0, GAMMA1 * kin - v0 * v0, -(4.0 / 3) * c * v0);
    entry(t, f, 1, 1, (2 - GAMMA1) * v0, (4.0 / 3) * c);
    entry(t, f, 1, 2, -GAMMA1 * v1, zero);
    entry(t, f, 1, 3, -GAMMA1 * v2, zero);
    entry(t, f, 1, 4, GAMMA1 * one, zero);
    entry(t, f, 2, 0, -v0 * v1, -c * v1);
    entry(t, f, 2, 1, v1, zero);
    entry(t, f, 2, 2, v0, c);
    entry(t, f, 3, 0, -v0 * v2, -c * v2);
    entry(t, f, 3, 1, v2, zero);
    entry(t, f, 3, 3, v0, c);
    entry(t, f, 4, 0, v0 * (GAMMA1 * kin - total), -2 * k * kin - (1.0 / 3) * c * v0 * v0 - CONDUCTION * c * energy);
    entry(t, f, 4, 1, total - GAMMA1 * v0 * v0, (k + (1.0 / 3) * c) * v0);
    entry(t, f, 4, 2, -GAMMA1 * v0 * v1, k * v1);
    entry(t, f, 4, 3, -GAMMA1 * v0 * v2, k * v2);
    entry(t, f, 4, 4, GAMMA * v0, CONDUCTION * c);
    for (int i = 0; i < UNKNOWNS; i++) {
        t->to_above.at[i][i] -= f->smooth;
        t->to_below.at[i][i] -= f->smooth;
        t->own.at[i][i] += 1 + 2 * f->smooth;
    }
}

/* What is kept of a point and carried to the next: x here = known - next * (x of the next). */
struct row {
    struct block next;
    vec known[UNKNOWNS];
};

/* less takes away, from a row of a point's equations, factor times a row already solved below. */
static inline void less(vec own[UNKNOWNS], vec *known, vec factor, const struct row *below, int j)
{
    for (int i = 0; i < UNKNOWNS; i++)
        own[i] -= factor * below->next.at[j][i];
    *known -= factor * below->known[j];
}

/* fold puts what is known of the point below into this one. The zeros of the blocks are
 * the equations': density meets one momentum, a momentum across meets two others. */
static void fold(const struct block *lower, const struct row *below, struct block *own, vec known[UNKNOWNS])
{
    static const int meets[UNKNOWNS][UNKNOWNS] = {
        {0, 1}, {0, 1, 2, 3, 4}, {0, 1, 2}, {0, 1, 3}, {0, 1, 2, 3, 4},
    };
    static const int count[UNKNOWNS] = {2, 5, 3, 3, 5};
    for (int i = 0; i < UNKNOWNS; i++)
        for (int k = 0; k < count[i]; k++)
            less(own->at[i], &known[i], lower->at[i][meets[i][k]], below, meets[i][k]);
}

/* divide solves own * x = (next, known). The diagonal dominates: no pivots are sought. */
static void divide(struct block *own, struct block *next, vec known[UNKNOWNS])
{
    for (int p = 0; p < UNKNOWNS; p++) {
        vec pivot = 1 / own->at[p][p];
        for (int j = p + 1; j < UNKNOWNS; j++)
            own->at[p][j] *= pivot;
        for (int j = 0; j < UNKNOWNS; j++)
            next->at[p][j] *= pivot;
        known[p] *= pivot;
        for (int i = p + 1; i < UNKNOWNS; i++) {
            vec factor = own->at[i][p];
            for (int j = p + 1; j < UNKNOWNS; j++)
                own->at[i][j] -= factor * own->at[p][j];
            for (int j = 0; j < UNKNOWNS; j++)
                next->at[i][j] -= factor * next->at[p][j];
            known[i] -= factor * known[p];
        }
    }
    for (int p = UNKNOWNS - 1; p > 0; p--)
        for (int i = 0; i < p; i++) {
            vec factor = own->at[i][p];
            for (int j = 0; j < UNKNOWNS; j++)
                next->at[i][j] -= factor * next->at[p][j];
            known[i] -= factor * known[p];
        }
}

static void eliminate(const struct lines *l, vec *keep, vec *carried)
{
    struct factors f = factors_of(l);
    struct order o = order_of(l);
    struct trio trio[3] = {0};
    struct row *row = (struct row *)keep;
    const struct row *below = (const struct row *)carried;
    couple(l, &f, &o, l->from - 1, &trio[0]);
    couple(l, &f, &o, l->from, &trio[1]);
    for (int at = l->from, turn = 0; at < l->to; at++, turn = (turn + 1) % 3) {
        struct trio *lower = &trio[turn], *here = &trio[(turn + 1) % 3], *upper = &trio[(turn + 2) % 3];
        couple(l, &f, &o, at + 1, upper);
        for (int m = 0; m < UNKNOWNS; m++)
            row->known[m] = lanes_get(l->r + at * l->r_step + o.u[m], l->r_lane);
        row->next = upper->to_below;
        fold(&lower->to_above, below, &here->own, row->known);
        divide(&here->own, &row->next, row->known);
        below = row++;
    }
    memcpy(carried, below, sizeof *below);
}

static void substitute(const struct lines *l, const vec *keep, vec *x)
{
    struct order o = order_of(l);
    for (int at = l->to - 1; at >= l->from; at--) {
        const struct row *row = (const struct row *)keep + (at - l->from);
        vec here[UNKNOWNS];
        for (int i = 0; i < UNKNOWNS; i++) {
            here[i] = row->known[i];
            for (int j = 0; j < UNKNOWNS; j++)
                here[i] -= row->next.at[i][j] * x[j];
        }
        for (int i = 0; i < UNKNOWNS; i++) {
            x[i] = here[i];
            lanes_put(l->r + at * l->r_step + o.u[i], l->r_lane, x[i], l->used);
        }
    }
}

static struct pipe *pipe[3];

static void open(struct flow *f)
{
    const struct solver s = {sizeof(struct row) / sizeof(vec), sizeof(struct row) / sizeof(vec), UNKNOWNS, eliminate,
                             substitute};
    for (int i = 0; i < 3; i++)
        pipe[i] = pipe_open(f, &s, i);
}

static void add(struct flow *f)
{
    const struct grid *g = &f->grid;
    size_t row = (size_t)(UNKNOWNS * g->n);
    for (int z = 0; z < g->count[1]; z++)
        for (int y = 0; y < g->count[0]; y++) {
            ptrdiff_t at = grid_at(g, UNKNOWNS, 0, y, z);
            double *restrict u = f->u + at;
            const double *restrict r = f->r + at;
            for (size_t i = 0; i < row; i++)
                u[i] += r[i];
        }
}

static void step(struct flow *f)
{
    operator_residual(f, f->dt);
    for (int i = 0; i < 3; i++)
        pipe_solve(pipe[i]);
    add(f);
}

static void close(void)
{
    for (int i = 0; i < 3; i++)
        pipe_close(pipe[i]);
}

static double operations(double n)
{
    return 3478.8 * n * n * n - 17655.7 * n * n + 28023.7 * n;
}

int main(int argc, char **argv)
{
    static const struct method bt = {.program = "bt", .about = "block tridiagonal systems along x, y and z",
                                     .classes = classes_bt, .operations = operations, .open = open, .step = step,
                                     .close = close};
    return flow_main(&bt, argc, argv);
}
