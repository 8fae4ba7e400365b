/* The levels of a rank, and their memory. */
#include "mg.h"
#include <string.h>

static int needs(struct grid *g, size_t points, size_t part, struct need *out)
{
    const struct box *top = &g->box[g->levels];
    const size_t ranks = (size_t)g->world->size, whole = (size_t)1 << (3 * g->cut.whole);
    size_t yz = (size_t)(top->n[Y] + 2) * (size_t)(top->n[Z] + 2), xz = (size_t)(top->n[X] + 2) * (size_t)(top->n[Z] + 2),
           face = yz > xz ? yz : xz;
    const struct need list[] = {
        {&g->u, sizeof(double) * points},       {&g->r, sizeof(double) * points},
        {&g->v, sizeof(double) * box_points(top)}, {&g->face[0], sizeof(double) * face},
        {&g->face[1], sizeof(double) * face},   {&g->face[2], sizeof(double) * face},
        {&g->face[3], sizeof(double) * face},   {&g->part, sizeof(double) * part},
        {&g->parts, sizeof(double) * whole},    {&g->count, sizeof(int) * ranks},
        {&g->at, sizeof(int) * ranks},
    };
    memcpy(out, list, sizeof list);
    return sizeof list / sizeof *list;
}

static void beside(struct cut *c, int rank)
{
    cut_place(c, rank, c->place);
    for (int a = 0; a < AXES; a++) {
        int other[AXES];
        memcpy(other, c->place, sizeof other);
        other[a] = (c->place[a] + c->parts[a] - 1) % c->parts[a];
        c->low[a] = cut_rank(c, other);
        other[a] = (c->place[a] + 1) % c->parts[a];
        c->high[a] = cut_rank(c, other);
    }
}

/* open_boxes sets the box of each level and returns how many points they have. */
static size_t open_boxes(struct grid *g)
{
    const struct cut all = {.parts = {1, 1, 1}, .whole = 0};
    size_t points = 0;
    for (int k = 1; k <= g->levels; k++) {
        const bool whole = k <= g->cut.whole;
        box_at(whole ? &all : &g->cut, whole ? all.place : g->cut.place, k, &g->box[k]);
        points += box_points(&g->box[k]);
    }
    return points;
}

/* place_parts counts which points of the finest whole level come from which rank. */
static int place_parts(struct grid *g, bool fill)
{
    int sum = 0, mine = 0;
    for (int r = 0; r < g->world->size; r++) {
        struct box b;
        int place[AXES];
        cut_place(&g->cut, r, place);
        box_at(&g->cut, place, g->cut.whole, &b);
        int n = b.n[X] * b.n[Y] * b.n[Z];
        if (fill) {
            g->count[r] = n;
            g->at[r] = sum;
        }
        if (r == g->world->rank)
            mine = n;
        sum += n;
    }
    return mine;
}

void grid_open(struct grid *g, struct world *w, int levels)
{
    struct need list[16];
    int fewer = w->size;
    size_t points;
    memset(g, 0, sizeof *g);
    g->world = w;
    g->levels = levels;
    while (!cut_find(&g->cut, fewer, levels))
        fewer--;
    if (fewer != w->size)
        stop(w, "class %c: a cube of %d points a side cannot be cut for %d ranks: use %d, or a larger class", w->class,
             1 << levels, w->size, fewer);
    beside(&g->cut, w->rank);
    points = open_boxes(g);
    memory_get(w, list, needs(g, points, (size_t)place_parts(g, false), list));
    place_parts(g, true);
    points = 0;
    for (int k = levels; k >= 1; k--) {
        g->box[k].u = g->u + points;
        g->box[k].r = g->r + points;
        points += box_points(&g->box[k]);
    }
}

void grid_close(struct grid *g)
{
    struct need list[16];
    memory_free(list, needs(g, 0, 0, list));
}
