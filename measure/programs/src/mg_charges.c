/* The right side: points get random numbers in their order, X first; the ten largest
 * become 1 and the ten smallest -1. */
#include "mg.h"
#include <string.h>

enum { TEN = 10, MOST_SIDE = 1024 };

/* The ten largest so far, in ascending order, and where they are. */
struct ten {
    double value[TEN];
    int64_t at[TEN];
};

static void offer(struct ten *t, double value, int64_t at)
{
    int i = 0;
    if (value <= t->value[0])
        return;
    for (; i + 1 < TEN && t->value[i + 1] < value; i++) {
        t->value[i] = t->value[i + 1];
        t->at[i] = t->at[i + 1];
    }
    t->value[i] = value;
    t->at[i] = at;
}

/* find looks at this rank's box. The smallest are the largest of the negatives. */
static void find(const struct grid *g, struct ten *most, struct ten *least)
{
    const struct box *b = &g->box[g->levels];
    const int64_t side = INT64_C(1) << g->levels;
    double row[MOST_SIDE];
    for (int k = 0; k < b->n[Z]; k++)
        for (int j = 0; j < b->n[Y]; j++) {
            int64_t at = ((b->first[Z] + k) * side + b->first[Y] + j) * side + b->first[X];
            uint64_t state = random_skip(SEED, (uint64_t)at);
            random_fill(&state, row, (size_t)b->n[X]);
            for (int i = 0; i < b->n[X]; i++) {
                offer(most, row[i], at + i);
                offer(least, -row[i], at + i);
            }
        }
}

/* agree finds the ten of all ranks: the largest that is left, ten times. */
static void agree(struct ten *mine)
{
    int left = TEN - 1;
    struct ten all;
    for (int i = TEN - 1; i >= 0; i--) {
        struct {
            double value;
            int rank;
        } best = {left >= 0 ? mine->value[left] : -2, 0};
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        best.rank = rank;
        MPI_Allreduce(MPI_IN_PLACE, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
        all.value[i] = best.value;
        all.at[i] = best.rank == rank ? mine->at[left--] : -1;
    }
    MPI_Allreduce(MPI_IN_PLACE, all.at, TEN, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    *mine = all;
}

static void set(const struct grid *g, double *v, const struct ten *t, double value)
{
    const struct box *b = &g->box[g->levels];
    for (int i = 0; i < TEN; i++) {
        int64_t p = t->at[i];
        int inside[AXES];
        for (int a = X; a <= Z; a++, p >>= g->levels)
            inside[a] = (int)(p & ((1 << g->levels) - 1)) - b->first[a];
        bool mine = true;
        for (int a = X; a <= Z; a++)
            mine = mine && inside[a] >= 0 && inside[a] < b->n[a];
        if (mine)
            v[(inside[Z] + 1) * b->z + (inside[Y] + 1) * b->y + inside[X] + 1] = value;
    }
}

void charges_set(const struct grid *g, double *v)
{
    struct ten most, least;
    for (int i = 0; i < TEN; i++)
        most.value[i] = least.value[i] = -2; /* below all, also of the negatives */
    find(g, &most, &least);
    agree(&most);
    agree(&least);
    memset(v, 0, sizeof *v * box_points(&g->box[g->levels]));
    set(g, v, &most, 1);
    set(g, v, &least, -1);
}
