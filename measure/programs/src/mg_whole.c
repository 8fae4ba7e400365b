/* Coarse levels have too few points to share. Every rank gets the whole residual of the
 * finest of them, solves the same small problem, and takes its part of the correction. */
#include "mg.h"
#include <string.h>

static void unpack(const struct box *whole, const struct box *part, const double *in)
{
    for (int k = 0; k < part->n[Z]; k++)
        for (int j = 0; j < part->n[Y]; j++, in += part->n[X])
            memcpy(whole->r + (part->first[Z] + k + 1) * whole->z + (part->first[Y] + j + 1) * whole->y + part->first[X] + 1, in,
                   sizeof *in * (size_t)part->n[X]);
}

void whole_gather(struct grid *g)
{
    const int ranks = g->world->size;
    MPI_Allgatherv(g->part, g->count[g->world->rank], MPI_DOUBLE, g->parts, g->count, g->at, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++) {
        struct box part;
        int place[AXES];
        cut_place(&g->cut, r, place);
        box_at(&g->cut, place, g->cut.whole, &part);
        unpack(&g->box[g->cut.whole], &part, g->parts + g->at[r]);
    }
}
