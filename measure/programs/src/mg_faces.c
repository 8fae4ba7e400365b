/* The layer around a box, which repeats the points of its neighbours; the cube goes
 * round in all directions. X comes first and Z last, each with what the axes before it
 * have brought, so that edges and corners come along and nobody speaks across them. */
#include "mg.h"
#include <string.h>

/* pack copies the layer at a place of an axis to a buffer, or back. Points in the layers
 * of earlier axes go along. */
static int pack(const struct box *b, int axis, int at, double *a, double *buffer, bool back)
{
    const int x = b->n[X] + 2;
    int n = 0;
    for (int k = 1; k <= b->n[Z]; k++) {
        double *plane = a + k * b->z;
        if (axis == Y) {
            double *row = plane + at * b->y;
            memcpy(back ? row : buffer + n, back ? buffer + n : row, sizeof *row * (size_t)x);
            n += x;
            continue;
        }
        for (int j = 1; j <= b->n[Y]; j++, n++) {
            double *point = plane + j * b->y + at;
            if (back)
                *point = buffer[n];
            else
                buffer[n] = *point;
        }
    }
    return n;
}

static void wrap(const struct box *b, int axis, double *a)
{
    const int n = b->n[axis];
    if (axis == X) {
        for (int k = 1; k <= b->n[Z]; k++)
            for (int j = 1; j <= b->n[Y]; j++) {
                double *row = a + k * b->z + j * b->y;
                row[0] = row[n];
                row[n + 1] = row[1];
            }
    } else if (axis == Y) {
        for (int k = 1; k <= b->n[Z]; k++) {
            double *plane = a + k * b->z;
            memcpy(plane, plane + n * b->y, sizeof *a * (size_t)b->y);
            memcpy(plane + (n + 1) * b->y, plane + b->y, sizeof *a * (size_t)b->y);
        }
    } else {
        memcpy(a, a + n * b->z, sizeof *a * (size_t)b->z);
        memcpy(a + (n + 1) * b->z, a + b->z, sizeof *a * (size_t)b->z);
    }
}

enum { DOWN, UP };

/* exchange sends both faces of an axis and gets both layers. Where an axis has two
 * parts both neighbours are the same rank: the tag says which way a face goes. */
static void exchange(const struct cut *c, int axis, int n, double *down, double *up, double *from_low, double *from_high)
{
    MPI_Request r[4];
    MPI_Irecv(from_low, n, MPI_DOUBLE, c->low[axis], UP, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(from_high, n, MPI_DOUBLE, c->high[axis], DOWN, MPI_COMM_WORLD, &r[1]);
    MPI_Isend(down, n, MPI_DOUBLE, c->low[axis], DOWN, MPI_COMM_WORLD, &r[2]);
    MPI_Isend(up, n, MPI_DOUBLE, c->high[axis], UP, MPI_COMM_WORLD, &r[3]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
}

static void across(const struct grid *g, const struct box *b, int axis, double *a)
{
    const int last = b->n[axis];
    if (axis == Z) { /* planes are contiguous: no copies */
        exchange(&g->cut, Z, (int)b->z, a + b->z, a + last * b->z, a, a + (last + 1) * b->z);
        return;
    }
    int n = pack(b, axis, 1, a, g->face[0], false);
    pack(b, axis, last, a, g->face[1], false);
    exchange(&g->cut, axis, n, g->face[0], g->face[1], g->face[2], g->face[3]);
    pack(b, axis, 0, a, g->face[2], true);
    pack(b, axis, last + 1, a, g->face[3], true);
}

void faces_update(const struct grid *g, int level, double *a)
{
    const struct box *b = &g->box[level];
    for (int axis = X; axis <= Z; axis++)
        if (level <= g->cut.whole || g->cut.parts[axis] == 1)
            wrap(b, axis, a);
        else
            across(g, b, axis, a);
}
