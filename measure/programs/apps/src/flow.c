/* One run of LU, SP or BT: from the command line to the report. */
#include "flow.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct class *class_find(const struct class *list, const char *name)
{
    for (; list->name; list++)
        if (strcmp(list->name, name) == 0)
            return list;
    return NULL;
}

static void flow_open(struct flow *f, const struct class *c, bool sound, const struct world *w)
{
    grid_open(&f->grid, c->n, w);
    f->dt = c->dt;
    f->sound = sound;
    f->u = grid_room(&f->grid, UNKNOWNS);
    f->r = grid_room(&f->grid, UNKNOWNS);
    f->force = grid_room(&f->grid, UNKNOWNS);
    f->derived = grid_room(&f->grid, DERIVED);
}

static void flow_close(struct flow *f)
{
    free(f->u);
    free(f->r);
    free(f->force);
    free(f->derived);
    grid_close(&f->grid);
}

/* push makes the known answer the steady one: the force undoes what the equations do to it. */
static void push(struct flow *f)
{
    exact_fill(f);
    operator_residual(f, -1);
    double *zero = f->force;
    f->force = f->r;
    f->r = zero;
}

static double timed(struct flow *f, const struct method *m, int iterations)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < iterations; i++)
        m->step(f);
    return world_most(MPI_Wtime() - start);
}

static void judge(struct flow *f, const struct method *m, const struct class *c, struct report *r)
{
    static const char *const residuals[] = {"residual 1", "residual 2", "residual 3", "residual 4", "residual 5"};
    static const char *const errors[] = {"error 1", "error 2", "error 3", "error 4", "error 5"};
    const double within = 1e-8;
    double residual[UNKNOWNS], error[UNKNOWNS];
    operator_residual(f, 1);
    norms_residual(f, residual);
    norms_error(f, error);
    for (int i = 0; i < UNKNOWNS; i++)
        report_near(r, residuals[i], residual[i], c->residual[i], within);
    for (int i = 0; i < UNKNOWNS; i++)
        report_near(r, errors[i], error[i], c->error[i], within);
    if (m->surface)
        report_near(r, "surface", norms_surface(f), c->surface, within);
}

static int solve(const struct method *m, const struct class *c, const struct world *w, bool json)
{
    struct report r = {.program = m->program, .class = c->name, .size = {c->n, c->n, c->n}, .sides = 3,
                       .iterations = c->iterations};
    struct flow f;
    flow_open(&f, c, m->sound, w);
    m->open(&f);
    push(&f);
    /* Once before the clock runs: pages, connections and caches are not what is timed. */
    exact_start(&f);
    m->step(&f);
    exact_start(&f);
    r.seconds = timed(&f, m, c->iterations);
    r.operations = m->operations(c->n) * c->iterations;
    judge(&f, m, c, &r);
    m->close();
    flow_close(&f);
    return report_print(&r, w, json);
}

/* most_ranks is the largest number of ranks that can share a cube. */
static int most_ranks(int n)
{
    return (n / HALO) * (n / HALO);
}

int flow_main(const struct method *m, int argc, char **argv)
{
    struct world w = world_open(&argc, &argv);
    const char *name = "S";
    bool json = false;
    const struct option list[] = {
        {"class", "S|W|A|B|C", "the size of the problem (S)", OPTION_TEXT, &name},
        {"json", NULL, "print one JSON object", OPTION_FLAG, &json},
        {0},
    };
    enum asked asked = options_read(&w, m->program, m->about, list, argc, argv);
    if (asked != ASKED_RUN)
        return world_close(asked == ASKED_HELP ? EXIT_RIGHT : EXIT_USAGE);
    const struct class *c = class_find(m->classes, name);
    if (!c)
        return world_close(usage(&w, m->program, "there is no class %s; give S, W, A, B or C", name));
    if (!grid_fits(c->n, w.ranks))
        return world_close(usage(&w, m->program,
                                 "%d ranks cannot share class %s; use a number like 1, 2, 4, 9, up to %d ranks in a "
                                 "square, or a larger class",
                                 w.ranks, c->name, most_ranks(c->n)));
    return world_close(solve(m, c, &w, json));
}
