/* Lines in bundles through the blocks of an axis. */
#include "pipe.h"
#include <stdlib.h>

/* slot is a bundle on its way: what was kept of its points, and its messages. */
struct slot {
    vec *keep, *up, *down;
    MPI_Request sent[2];
};

struct pipe {
    const struct flow *flow;
    struct solver solver;
    int axis, across, over;     /* lines lie side by side along across; bundles follow along over */
    int from[3], to[3];         /* inner points of mine */
    int across_batches;         /* of LANES lines, that lie side by side */
    int planes;                 /* of such lines, in a bundle; the last may have fewer */
    int batches;                /* in a bundle */
    int bundles, slots;
    int below, above;
    vec *in;
    struct slot *slot;
};

static size_t vectors(int a, int b, int c)
{
    return (size_t)a * (size_t)b * (size_t)c * sizeof(vec);
}

/* slots_of is how many bundles may be on their way: one for each block above me, one more
 * to hide how long messages take, and as many as caches hold easily: a block that shares
 * its core with other programs then has something to do while it waits for another. */
static int slots_of(const struct grid *g, int axis, int bundles, size_t bundle)
{
    enum { EASY = 2 << 20 };
    int above = axis == 0 ? 0 : g->blocks[axis - 1] - 1 - g->mine[axis - 1], least = above + 2;
    if (above == 0)
        return 1;
    int most = EASY / bundle > (size_t)least ? (int)(EASY / bundle) : least;
    return most < bundles ? most : bundles;
}

/* planes_of makes bundles so large that messages are worth it, and so many that blocks do
 * not wait long for the first. */
static int planes_of(const struct grid *g, int axis, int planes, size_t message)
{
    enum { WORTH = 16384, FILL = 8 };
    int blocks = axis == 0 ? 1 : g->blocks[axis - 1], most = planes / (FILL * blocks), n = 1;
    while (blocks > 1 && n < most && (size_t)n * message < WORTH)
        n++;
    return n;
}

struct pipe *pipe_open(const struct flow *f, const struct solver *s, int axis)
{
    const struct grid *g = &f->grid;
    struct pipe *p = room(sizeof *p);
    *p = (struct pipe){.flow = f, .solver = *s, .axis = axis, .across = axis == 0 ? 1 : 0, .over = axis == 2 ? 1 : 2,
                       .below = MPI_PROC_NULL, .above = MPI_PROC_NULL};
    for (int i = 0; i < 3; i++)
        grid_inner(g, i, &p->from[i], &p->to[i]);
    if (axis > 0) {
        p->below = g->below[axis - 1];
        p->above = g->above[axis - 1];
    }
    int all = p->to[p->over] - p->from[p->over];
    p->across_batches = (p->to[p->across] - p->from[p->across] + LANES - 1) / LANES;
    p->planes = planes_of(g, axis, all, vectors(p->across_batches, s->up, 1));
    p->batches = p->across_batches * p->planes;
    p->bundles = (all + p->planes - 1) / p->planes;
    /* The last block substitutes each batch at once and keeps one only. */
    int kept = p->above == MPI_PROC_NULL ? 1 : p->batches;
    p->slots = slots_of(g, axis, p->bundles, vectors(kept, p->to[axis] - p->from[axis], s->keep));
    p->in = room(vectors(p->batches, 1, s->up > s->down ? s->up : s->down));
    p->slot = room((size_t)p->slots * sizeof *p->slot);
    for (int i = 0; i < p->slots; i++) {
        struct slot *t = &p->slot[i];
        t->keep = room(vectors(kept, p->to[axis] - p->from[axis], s->keep));
        t->up = room(vectors(p->batches, 1, s->up));
        t->down = room(vectors(p->batches, 1, s->down));
        t->sent[0] = t->sent[1] = MPI_REQUEST_NULL;
    }
    return p;
}

void pipe_close(struct pipe *p)
{
    for (int i = 0; i < p->slots; i++) {
        free(p->slot[i].keep);
        free(p->slot[i].up);
        free(p->slot[i].down);
    }
    free(p->slot);
    free(p->in);
    free(p);
}

static struct lines lines_of(const struct pipe *p, int bundle, int batch)
{
    const struct flow *f = p->flow;
    const struct grid *g = &f->grid;
    int start = batch % p->across_batches * LANES, left = p->to[p->across] - p->from[p->across] - start;
    int at[3] = {0, 0, 0};
    at[p->across] = p->from[p->across] + start;
    at[p->over] = p->from[p->over] + bundle * p->planes + batch / p->across_batches;
    ptrdiff_t r = grid_at(g, UNKNOWNS, at[0], at[1], at[2]), d = grid_at(g, DERIVED, at[0], at[1], at[2]);
    struct lines l = {.flow = f, .axis = p->axis, .from = p->from[p->axis], .to = p->to[p->axis],
                      .first = p->axis == 0 ? 0 : g->first[p->axis - 1], .used = left < LANES ? left : LANES,
                      .r = f->r + r, .u = f->u + r, .derived = f->derived + d,
                      .r_step = grid_stride(g, UNKNOWNS, p->axis), .d_step = grid_stride(g, DERIVED, p->axis)};
    for (int i = 0; i < LANES; i++) {
        int line = i < l.used ? i : l.used - 1;
        l.r_lane[i] = line * grid_stride(g, UNKNOWNS, p->across);
        l.d_lane[i] = line * grid_stride(g, DERIVED, p->across);
    }
    return l;
}

enum { TAG_UP = 11, TAG_DOWN };

static int batches_of(const struct pipe *p, int bundle)
{
    int left = p->to[p->over] - p->from[p->over] - bundle * p->planes;
    return p->across_batches * (left < p->planes ? left : p->planes);
}

static void receive(struct pipe *p, int from, int batches, int values, int tag)
{
    MPI_Recv(p->in, batches * values * LANES, MPI_DOUBLE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void go_up(struct pipe *p, int bundle)
{
    const struct solver *s = &p->solver;
    struct slot *t = &p->slot[bundle % p->slots];
    bool last = p->above == MPI_PROC_NULL;
    int batches = batches_of(p, bundle);
    size_t points = (size_t)(p->to[p->axis] - p->from[p->axis]) * (size_t)s->keep;
    MPI_Waitall(2, t->sent, MPI_STATUSES_IGNORE);
    if (p->below != MPI_PROC_NULL)
        receive(p, p->below, batches, s->up, TAG_UP);
    else
        memset(p->in, 0, vectors(batches, s->up, 1));
    for (int b = 0; b < batches; b++) {
        struct lines l = lines_of(p, bundle, b);
        vec *keep = t->keep + (last ? 0 : (size_t)b * points), *up = t->up + b * s->up, *down = t->down + b * s->down;
        memcpy(up, p->in + b * s->up, vectors(1, s->up, 1));
        s->eliminate(&l, keep, up);
        if (last) {
            memset(down, 0, vectors(1, s->down, 1));
            s->substitute(&l, keep, down);
        }
    }
    if (!last)
        MPI_Isend(t->up, batches * s->up * LANES, MPI_DOUBLE, p->above, TAG_UP, MPI_COMM_WORLD, &t->sent[0]);
}

static void come_down(struct pipe *p, int bundle)
{
    const struct solver *s = &p->solver;
    struct slot *t = &p->slot[bundle % p->slots];
    int batches = batches_of(p, bundle);
    size_t points = (size_t)(p->to[p->axis] - p->from[p->axis]) * (size_t)s->keep;
    if (p->above != MPI_PROC_NULL) {
        receive(p, p->above, batches, s->down, TAG_DOWN);
        memcpy(t->down, p->in, vectors(batches, s->down, 1));
        for (int b = 0; b < batches; b++) {
            struct lines l = lines_of(p, bundle, b);
            s->substitute(&l, t->keep + (size_t)b * points, t->down + b * s->down);
        }
    }
    if (p->below != MPI_PROC_NULL)
        MPI_Isend(t->down, batches * s->down * LANES, MPI_DOUBLE, p->below, TAG_DOWN, MPI_COMM_WORLD,
                  &t->sent[1]);
}

void pipe_solve(struct pipe *p)
{
    for (int up = 0, down = 0; down < p->bundles;) {
        if (up < p->bundles && up - down < p->slots)
            go_up(p, up++);
        else
            come_down(p, down++);
    }
    for (int i = 0; i < p->slots; i++)
        MPI_Waitall(2, p->slot[i].sent, MPI_STATUSES_IGNORE);
}
