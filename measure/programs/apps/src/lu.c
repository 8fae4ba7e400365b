/* LU: each step relaxes one system for the whole cube, up and then down (SSOR).
 *
 * The system couples each point to its six neighbours by 5 x 5 blocks, which are never
 * formed: a visit multiplies by them, and sends the products ahead. Between the sweeps r
 * holds the diagonal block times the change, which is all that the way down needs. */
#include "sweep.h"

static const double RELAX = 1.2;

struct weights {
    double first, second;       /* times dt */
};

static struct weights weights_of(const struct flow *f)
{
    double per = f->grid.n - 1;
    return (struct weights){f->dt * per / 2, f->dt * per * per};
}

/* state is the gas at a point. */
struct state {
    vec v[3], kin, vol, energy, total;  /* energy and enthalpy are per mass */
};

static inline struct state state_at(const struct visit *v, int x)
{
    int n = v->flow->grid.n;
    const double *d = v->derived + x;
    struct state s;
    for (int i = 0; i < 3; i++)
        s.v[i] = lanes_get(d + (VELOCITY + i) * n, v->derived_lane);
    s.kin = lanes_get(d + KINETIC * n, v->derived_lane);
    s.vol = lanes_get(d + VOLUME * n, v->derived_lane);
    vec press = lanes_get(d + PRESSURE * n, v->derived_lane) * s.vol;
    s.energy = press * (1 / GAMMA1) + s.kin;
    s.total = s.energy + press;
    return s;
}

static inline vec dot(const vec a[3], const vec b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* divide solves for a point alone. The diagonal block is a triangle: viscosity couples a
 * momentum to density, and energy to all. */
static inline void divide(const struct state *s, const struct weights *w, const vec b[UNKNOWNS], vec x[UNKNOWNS])
{
    double two = 2 * w->second, base = 1 + two * (smoothing(0) + smoothing(1) + smoothing(2));
    vec c = two * VISCOSITY * s->vol, drag = (10.0 / 3) * c, work = (3 * (1 - CONDUCTION) + 1.0 / 3) * c;
    vec heat = 3 * CONDUCTION * c, scale = 1 / (base + drag);
    x[0] = b[0] * (1 / base);
    for (int i = 0; i < 3; i++)
        x[MOMENTUM + i] = scale * (b[MOMENTUM + i] + drag * s->v[i] * x[0]);
    x[ENERGY] = (b[ENERGY] - work * (dot(s->v, x + MOMENTUM) - 2 * s->kin * x[0]) + heat * s->energy * x[0]) /
                (base + heat);
}

/* What a change at a point is along every axis. */
struct change {
    const vec *x;
    vec press, viscous[UNKNOWNS];
};

static inline struct change change_of(const struct state *s, const struct weights *w, const vec x[UNKNOWNS])
{
    struct change c = {.x = x};
    vec work = dot(s->v, x + MOMENTUM), k = w->second * VISCOSITY * s->vol;
    c.press = GAMMA1 * (x[ENERGY] - work + s->kin * x[0]);
    c.viscous[0] = (vec){0};
    for (int i = 0; i < 3; i++)
        c.viscous[MOMENTUM + i] = k * (x[MOMENTUM + i] - s->v[i] * x[0]);
    c.viscous[ENERGY] = k * ((1 - CONDUCTION) * (work - 2 * s->kin * x[0]) + CONDUCTION * (x[ENERGY] - s->energy * x[0]));
    return c;
}

/* product is what a change leaves at the next point along an axis: the block times it. */
static inline void product(const struct state *s, const struct change *c, const struct weights *w, int way, int axis,
                           vec out[UNKNOWNS])
{
    const vec *x = c->x;
    double first = way * w->first, smooth = w->second * smoothing(axis);
    vec v = s->v[axis], flux = x[MOMENTUM + axis] - v * x[0], more = (1.0 / 3) * c->viscous[MOMENTUM + axis];
    vec in[UNKNOWNS];
    in[0] = x[MOMENTUM + axis];
    for (int i = 0; i < 3; i++)
        in[MOMENTUM + i] = v * x[MOMENTUM + i] + s->v[i] * flux;
    in[MOMENTUM + axis] += c->press;
    in[ENERGY] = s->total * flux + v * (x[ENERGY] + c->press);
    for (int m = 0; m < UNKNOWNS; m++)
        out[m] = first * in[m] + c->viscous[m] + smooth * x[m];
    out[MOMENTUM + axis] += more;
    out[ENERGY] += v * more;
    for (int m = 0; m < UNKNOWNS; m++)
        out[m] *= RELAX;
}

/* send leaves a product at points of r. */
static inline void send(const struct visit *v, double *to, const vec out[UNKNOWNS])
{
    for (int m = 0; m < UNKNOWNS; m++)
        lanes_add(to + m * v->flow->grid.n, v->lane, out[m], v->used);
}

static inline void walk(const struct visit *v, int way)
{
    struct weights w = weights_of(v->flow);
    int n = v->flow->grid.n;
    vec ahead[UNKNOWNS] = {0};
    for (int i = 0, at = v->from; i < v->points; i++, at += way) {
        vec b[UNKNOWNS], x[UNKNOWNS], out[UNKNOWNS];
        double *r = v->r + at;
        for (int m = 0; m < UNKNOWNS; m++)
            b[m] = lanes_get(r + m * n, v->lane) + ahead[m];
        if (way > 0)
            for (int m = 0; m < UNKNOWNS; m++)
                lanes_put(r + m * n, v->lane, b[m], v->used);
        struct state s = state_at(v, at);
        divide(&s, &w, b, x);
        if (way < 0)
            for (int m = 0; m < UNKNOWNS; m++)
                lanes_add(v->u + at + m * n, v->lane, x[m] * (1 / (RELAX * (2 - RELAX))), v->used);
        struct change c = change_of(&s, &w, x);
        product(&s, &c, &w, way, 0, ahead);
        product(&s, &c, &w, way, 1, out);
        send(v, r + v->next[1], out);
        product(&s, &c, &w, way, 2, out);
        send(v, r + v->next[2], out);
    }
    /* The next chunk finds the last product as if from memory; past the end nobody reads it. */
    send(v, v->r + v->from + way * v->points, ahead);
}

static void up(const struct visit *v)
{
    walk(v, 1);
}

static void down(const struct visit *v)
{
    walk(v, -1);
}

static struct sweep *sweep;

static void open(struct flow *f)
{
    sweep = sweep_open(f);
}

static void step(struct flow *f)
{
    operator_residual(f, f->dt);
    sweep_run(sweep, 1, up);
    sweep_run(sweep, -1, down);
}

static void close(void)
{
    sweep_close(sweep);
}

static double operations(double n)
{
    return 1984.77 * n * n * n - 10923.3 * n * n + 27770.9 * n - 144010;
}

int main(int argc, char **argv)
{
    static const struct method lu = {.program = "lu", .about = "one system for the whole cube, relaxed up and down",
                                     .classes = classes_lu, .surface = true, .operations = operations, .open = open,
                                     .step = step, .close = close};
    return flow_main(&lu, argc, argv);
}
