/* SP: each step diagonalizes the systems of BT into waves, which are scalar and couple
 * five points: entropy and two shears move with the gas, two sounds against it and with it. */
#include "pipe.h"
#include <math.h>

/* Between the solves the change of the gas is told as entropy, three velocities, and
 * pressure in units of velocity: each axis finds its waves in these without a matrix. */
enum { ENTROPY, SPEED, PUSH = 4 };
enum { DRIFT, AHEAD, ASTERN, KINDS };       /* waves that move with the gas, and the two sounds */

/* to_waves turns changes of the unknowns of a row into those. */
static void to_waves(const double *restrict d, double *restrict r, int n)
{
    for (int x = 1; x < n - 1; x++) {
        double v0 = d[x], v1 = d[n + x], v2 = d[2 * n + x], kin = d[KINETIC * n + x], vol = d[VOLUME * n + x];
        double c = d[SOUND * n + x], mass = r[x], m0 = r[n + x], m1 = r[2 * n + x], m2 = r[3 * n + x];
        double press = GAMMA1 * (kin * mass - v0 * m0 - v1 * m1 - v2 * m2 + r[4 * n + x]);
        double slow = press / c;
        r[x] = mass - slow / c;
        r[n + x] = vol * (m0 - v0 * mass);
        r[2 * n + x] = vol * (m1 - v1 * mass);
        r[3 * n + x] = vol * (m2 - v2 * mass);
        r[4 * n + x] = vol * slow;
    }
}

/* from_waves turns them back and adds them to the unknowns. */
static void from_waves(const double *restrict d, const double *restrict r, double *restrict u, int n)
{
    for (int x = 1; x < n - 1; x++) {
        double v0 = d[x], v1 = d[n + x], v2 = d[2 * n + x], kin = d[KINETIC * n + x], c = d[SOUND * n + x];
        double density = u[x], slow = density * r[4 * n + x], mass = r[x] + slow / c;
        double m0 = v0 * mass + density * r[n + x], m1 = v1 * mass + density * r[2 * n + x];
        double m2 = v2 * mass + density * r[3 * n + x];
        u[x] = density + mass;
        u[n + x] += m0;
        u[2 * n + x] += m1;
        u[3 * n + x] += m2;
        u[4 * n + x] += slow * c * (1 / GAMMA1) - kin * mass + v0 * m0 + v1 * m1 + v2 * m2;
    }
}

/* What is kept of a point: for each kind, value here = known - next * value of the next -
 * second * value of the one after. */
struct row {
    vec next[KINDS], second[KINDS], known[UNKNOWNS];
};

/* What a point gives its neighbours' equations. */
struct local {
    vec speed[KINDS], spread;
};

struct weights {
    double first, second, smooth, fourth;   /* times dt */
};

static inline struct local local_at(const struct lines *l, const struct weights *w, int at)
{
    int n = l->flow->grid.n;
    const double *d = l->derived + at * l->d_step;
    vec v = w->first * lanes_get(d + l->axis * n, l->d_lane), c = w->first * lanes_get(d + SOUND * n, l->d_lane);
    vec vol = lanes_get(d + VOLUME * n, l->d_lane);
    return (struct local){{v, v + c, v - c}, w->smooth + w->second * (CONDUCTION * VISCOSITY) * vol};
}

/* The waves of kind k among the five values of a point. */
static const int kind_of[UNKNOWNS] = {DRIFT, AHEAD, DRIFT, DRIFT, ASTERN};

/* point_get reads a point's values with the sounds in place of the velocity along the axis and the push. */
static inline void point_get(const struct lines *l, const ptrdiff_t o[UNKNOWNS], int at, vec v[UNKNOWNS])
{
    for (int m = 0; m < UNKNOWNS; m++)
        v[m] = lanes_get(l->r + at * l->r_step + o[m], l->r_lane);
    vec along = v[SPEED], push = v[PUSH];
    v[SPEED] = push + along;
    v[PUSH] = push - along;
}

static inline void point_put(const struct lines *l, const ptrdiff_t o[UNKNOWNS], int at, const vec v[UNKNOWNS])
{
    for (int m = 0; m < UNKNOWNS; m++) {
        vec out = m == SPEED ? 0.5 * (v[SPEED] - v[PUSH]) : m == PUSH ? 0.5 * (v[SPEED] + v[PUSH]) : v[m];
        lanes_put(l->r + at * l->r_step + o[m], l->r_lane, out, l->used);
    }
}

static void order_of(const struct lines *l, ptrdiff_t o[UNKNOWNS])
{
    int n = l->flow->grid.n, a = l->axis;
    o[ENTROPY] = 0;
    for (int i = 0; i < 3; i++)
        o[SPEED + i] = (SPEED + (a + i) % 3) * n;
    o[PUSH] = PUSH * n;
}

/* solve_row puts what is known of the two points below into this one's equations. */
static inline void solve_row(const struct weights *w, const double f[5], const struct local near[3],
                             const struct row below[2], struct row *row)
{
    vec scale[KINDS], lower[KINDS];
    double far = w->fourth * f[0];
    for (int k = 0; k < KINDS; k++) {
        lower[k] = w->fourth * f[1] - near[0].speed[k] - near[0].spread - far * below[0].next[k];
        vec own = w->fourth * f[2] + 1 + 2 * near[1].spread - far * below[0].second[k];
        vec upper = w->fourth * f[3] + near[2].speed[k] - near[2].spread;
        scale[k] = 1 / (own - lower[k] * below[1].next[k]);
        row->next[k] = scale[k] * (upper - lower[k] * below[1].second[k]);
        row->second[k] = scale[k] * (w->fourth * f[4]);
    }
    for (int m = 0; m < UNKNOWNS; m++) {
        int k = kind_of[m];
        row->known[m] = scale[k] * (row->known[m] - far * below[0].known[m] - lower[k] * below[1].known[m]);
    }
}

static void eliminate(const struct lines *l, vec *keep, vec *carried)
{
    double per = l->flow->grid.n - 1, dt = l->flow->dt;
    struct weights w = {dt * per / 2, dt * per * per, dt * per * per * smoothing(l->axis), dt * FOURTH};
    ptrdiff_t o[UNKNOWNS];
    struct local near[3];
    struct row below[2], *row = (struct row *)keep;
    order_of(l, o);
    memcpy(below, carried, sizeof below);
    near[0] = local_at(l, &w, l->from - 1);
    near[1] = local_at(l, &w, l->from);
    for (int at = l->from; at < l->to; at++, row++) {
        near[2] = local_at(l, &w, at + 1);
        point_get(l, o, at, row->known);
        solve_row(&w, fourth(at + l->first, l->flow->grid.n), near, below, row);
        near[0] = near[1];
        near[1] = near[2];
        below[0] = below[1];
        below[1] = *row;
    }
    memcpy(carried, below, sizeof below);
}

/* What is carried back are the values of the next point and of the one after. */
static void substitute(const struct lines *l, const vec *keep, vec *carried)
{
    ptrdiff_t o[UNKNOWNS];
    vec *next = carried, *second = carried + UNKNOWNS;
    order_of(l, o);
    for (int at = l->to - 1; at >= l->from; at--) {
        const struct row *row = (const struct row *)keep + (at - l->from);
        for (int m = 0; m < UNKNOWNS; m++) {
            int k = kind_of[m];
            vec here = row->known[m] - row->next[k] * next[m] - row->second[k] * second[m];
            second[m] = next[m];
            next[m] = here;
        }
        point_put(l, o, at, next);
    }
}

static struct pipe *pipe[3];

static void open(struct flow *f)
{
    enum { ROW = sizeof(struct row) / sizeof(vec) };
    const struct solver s = {ROW, 2 * ROW, 2 * UNKNOWNS, eliminate, substitute};
    for (int i = 0; i < 3; i++)
        pipe[i] = pipe_open(f, &s, i);
}

static void rows(struct flow *f, bool there)
{
    const struct grid *g = &f->grid;
    int y0, y1, z0, z1;
    grid_inner(g, 1, &y0, &y1);
    grid_inner(g, 2, &z0, &z1);
    for (int z = z0; z < z1; z++)
        for (int y = y0; y < y1; y++) {
            ptrdiff_t at = grid_at(g, UNKNOWNS, 0, y, z), d = grid_at(g, DERIVED, 0, y, z);
            if (there)
                to_waves(f->derived + d, f->r + at, g->n);
            else
                from_waves(f->derived + d, f->r + at, f->u + at, g->n);
        }
}

static void step(struct flow *f)
{
    operator_residual(f, f->dt);
    rows(f, true);
    for (int i = 0; i < 3; i++)
        pipe_solve(pipe[i]);
    rows(f, false);
}

static void close(void)
{
    for (int i = 0; i < 3; i++)
        pipe_close(pipe[i]);
}

static double operations(double n)
{
    return 881.174 * n * n * n - 4683.91 * n * n + 11484.5 * n - 19272.4;
}

int main(int argc, char **argv)
{
    static const struct method sp = {.program = "sp", .about = "scalar systems of five diagonals along x, y and z",
                                     .classes = classes_sp, .sound = true, .operations = operations, .open = open,
                                     .step = step, .close = close};
    return flow_main(&sp, argc, argv);
}
