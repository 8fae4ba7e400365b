/* Where the field of a rank is, and what goes to whom when it is turned round. */
#include "ft.h"
#include <string.h>

static int needs(struct field *f, struct need *out)
{
    const size_t pair = 2 * sizeof(double), x = (size_t)f->n[X];
    const size_t space = pair * x * (size_t)f->n[Y] * (size_t)f->nz, waves = pair * x * (size_t)f->n[Z] * (size_t)f->ny;
    const size_t most = space > waves ? space : waves, ranks = sizeof(int) * (size_t)f->world->size;
    int longest = f->n[X] > f->n[Y] ? f->n[X] : f->n[Y];
    longest = longest > f->n[Z] ? longest : f->n[Z];
    const struct need list[] = {
        {&f->waves, waves},
        {&f->a, most},
        {&f->b, most},
        {&f->plane, pair * x * (size_t)f->n[Y]},
        {&f->lanes, 2 * pair * LANES * (size_t)longest},
        {&f->turn[X], pair * x}, {&f->turn[Y], pair * (size_t)f->n[Y]}, {&f->turn[Z], pair * (size_t)f->n[Z]},
        {&f->fade[X], pair * x}, {&f->fade[Y], pair * (size_t)f->n[Y]}, {&f->fade[Z], pair * (size_t)f->n[Z]},
        {&f->send, ranks}, {&f->send_at, ranks}, {&f->get, ranks}, {&f->get_at, ranks},
    };
    memcpy(out, list, sizeof list);
    return sizeof list / sizeof *list;
}

/* share counts the rows that go from this rank's planes to each rank's part of y, and
 * those that come from each rank's planes to this one's part. */
static void share(struct field *f)
{
    const int ranks = f->world->size;
    for (int r = 0; r < ranks; r++) {
        int y = (int)block_start(f->n[Y], ranks, r), z = (int)block_start(f->n[Z], ranks, r);
        f->send[r] = f->nz * ((int)block_start(f->n[Y], ranks, r + 1) - y);
        f->send_at[r] = f->nz * y;
        f->get[r] = f->ny * ((int)block_start(f->n[Z], ranks, r + 1) - z);
        f->get_at[r] = f->ny * z;
    }
}

void field_open(struct field *f, struct world *w, const int n[AXES])
{
    struct need list[16];
    const int most = n[Y] < n[Z] ? n[Y] : n[Z];
    memset(f, 0, sizeof *f);
    f->world = w;
    memcpy(f->n, n, sizeof f->n);
    if (w->size > most)
        stop(w, "class %c has %d planes, too few for %d ranks: use fewer, or a larger class", w->class, most, w->size);
    f->y = (int)block_start(n[Y], w->size, w->rank);
    f->ny = (int)block_start(n[Y], w->size, w->rank + 1) - f->y;
    f->z = (int)block_start(n[Z], w->size, w->rank);
    f->nz = (int)block_start(n[Z], w->size, w->rank + 1) - f->z;
    memory_get(w, list, needs(f, list));
    share(f);
    MPI_Type_contiguous(2 * n[X], MPI_DOUBLE, &f->row);
    MPI_Type_commit(&f->row);
}

void field_close(struct field *f)
{
    struct need list[16];
    MPI_Type_free(&f->row);
    memory_free(list, needs(f, list));
}

struct line field_line(const struct field *f, int axis)
{
    const size_t part = (size_t)f->n[axis] * LANES;
    return (struct line){.n = f->n[axis],
                         .re = f->lanes,
                         .im = f->lanes + part,
                         .re2 = f->lanes + 2 * part,
                         .im2 = f->lanes + 3 * part,
                         .turn = f->turn[axis]};
}
