/* MG, multigrid: V-cycles for the Poisson equation on a cube that goes round in all
 * directions. */
#include "mg.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int levels, iterations;
    double norm;
} table[CLASSES] = {
    {5, 4, 0.5307707005734e-4},
    {7, 4, 0.6467329375339e-5},
    {8, 4, 0.2433365309069e-5},
    {8, 20, 0.1800564401355e-5},
    {9, 20, 0.5706732285740e-6},
};

/* The weights of the smoother: at the point, across faces, across edges; none across corners. */
static const double *smoother(enum class c)
{
    static const double small[] = {-3.0 / 8, 1.0 / 32, -1.0 / 64}, large[] = {-3.0 / 17, 1.0 / 33, -1.0 / 61};
    return c >= CLASS_B ? large : small;
}

/* down makes the residual of each level out of the one above it. */
static void down(struct grid *g)
{
    for (int k = g->levels - 1; k >= 1; k--) {
        struct box *to = &g->box[k], part;
        const struct box *from = &g->box[k + 1];
        if (k == g->cut.whole) {
            /* The parts are packed without layers; the view begins where one would be. */
            box_at(&g->cut, g->cut.place, k, &part);
            ptrdiff_t y = part.n[X], z = y * part.n[Y];
            restriction(from, from->r, (struct view){g->part - 1 - y - z, y, z});
            whole_gather(g);
        } else {
            restriction(from, from->r, (struct view){to->r, to->y, to->z});
        }
        faces_update(g, k, to->r);
    }
}

/* below is the correction of the level below, as a box sees it. */
static struct view below(const struct grid *g, int level)
{
    const struct box *b = &g->box[level - 1];
    struct view v = {b->u, b->y, b->z};
    if (level - 1 == g->cut.whole) {
        const struct box *fine = &g->box[level];
        v.at += fine->first[Z] / 2 * b->z + fine->first[Y] / 2 * b->y + fine->first[X] / 2;
    }
    return v;
}

static void improve(const struct grid *g, int level, const double *v, const double *weights)
{
    const struct box *b = &g->box[level];
    const bool top = level == g->levels; /* the others start from nothing */
    prolongation(b, top, b->u, below(g, level));
    faces_update(g, level, b->u);
    residual(b, v, b->u, b->r);
    faces_update(g, level, b->r);
    smooth(b, weights, true, b->r, b->u);
    faces_update(g, level, b->u);
}

static void cycle(struct grid *g, const double *weights)
{
    down(g);
    smooth(&g->box[1], weights, false, g->box[1].r, g->box[1].u);
    faces_update(g, 1, g->box[1].u);
    for (int k = 2; k < g->levels; k++)
        improve(g, k, g->box[k].r, weights);
    improve(g, g->levels, g->v, weights);
}

static void find_residual(struct grid *g)
{
    const struct box *b = &g->box[g->levels];
    residual(b, g->v, b->u, b->r);
    faces_update(g, g->levels, b->r);
}

static double norm(const struct grid *g)
{
    const struct box *b = &g->box[g->levels];
    double sum = 0;
    for (int k = 1; k <= b->n[Z]; k++)
        for (int j = 1; j <= b->n[Y]; j++) {
            const double *row = b->r + k * b->z + j * b->y;
            for (int i = 1; i <= b->n[X]; i++)
                sum += row[i] * row[i];
        }
    return sqrt(world_sum(sum) / pow(8, g->levels));
}

static double solve(struct grid *g, const double *weights, int iterations)
{
    find_residual(g);
    for (int i = 0; i < iterations; i++) {
        cycle(g, weights);
        find_residual(g);
    }
    return norm(g);
}

static void run(struct world *w, enum class c, struct result *r)
{
    const int side = 1 << table[c].levels;
    struct grid g;
    grid_open(&g, w, table[c].levels);
    charges_set(&g, g.v);
    solve(&g, smoother(c), 1); /* once in vain, so that caches and connections are there */
    memset(g.box[g.levels].u, 0, sizeof(double) * box_points(&g.box[g.levels]));
    double start = clock_start(), rest = solve(&g, smoother(c), table[c].iterations);
    r->seconds = clock_stop(start);
    grid_close(&g);

    snprintf(r->size, sizeof r->size, "%d x %d x %d points", side, side, side);
    r->iterations = table[c].iterations;
    r->operations = 58.0 * r->iterations * side * side * side;
    r->tolerance = 1e-8;
    result_value(r, rest, table[c].norm, "norm of the residual");
}

const struct program program = {
    .name = "muster-mg",
    .title = "multigrid",
    .ranks = "any product of three numbers up to 16 in class S, 64 in W, 128 in A and B, 256 in C",
    .run = run,
};
