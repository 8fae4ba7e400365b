/* How ranks cut the cube: into boxes, as many along each axis as is cheapest. The cut is
 * made on a coarse level and is the same on all finer ones, so that points of two levels
 * that meet are on the same rank. Boxes need not be equal, so any product of three small
 * numbers will do. */
#include "mg.h"

/* A level this small is solved by every rank for itself: less work than a message. */
enum { WHOLE = 3 };

static int whole_for(const int parts[AXES])
{
    int level = WHOLE;
    for (int a = 0; a < AXES; a++)
        while (1 << level < parts[a])
            level++;
    return level;
}

/* cost weighs the points of the largest box, those of its faces that are sent, and those
 * that every rank has. Faces across X are not contiguous, and short rows are slow. */
static double cost(const struct cut *c, int levels)
{
    double n[AXES], sum;
    for (int a = 0; a < AXES; a++)
        n[a] = (double)(((1 << c->whole) + c->parts[a] - 1) / c->parts[a] * (1 << (levels - c->whole)));
    sum = n[X] * n[Y] * n[Z] + (double)((int64_t)1 << (3 * c->whole));
    sum += c->parts[X] > 1 ? 16 * n[Y] * n[Z] : 0;
    sum += c->parts[Y] > 1 ? 8 * n[X] * n[Z] : 0;
    sum += c->parts[Z] > 1 ? 6 * n[X] * n[Y] : 0;
    return sum;
}

bool cut_find(struct cut *c, int ranks, int levels)
{
    const int most = 1 << (levels - 1); /* of parts: each has two points at least */
    double best = -1;
    for (int x = 1; x <= most; x++)
        for (int y = 1; ranks % x == 0 && y <= most; y++) {
            struct cut t = {.parts = {x, y, ranks / x / y}};
            if (ranks / x % y != 0 || t.parts[Z] > most || (t.whole = whole_for(t.parts)) >= levels)
                continue;
            double price = cost(&t, levels);
            if (best < 0 || price < best) {
                best = price;
                *c = t;
            }
        }
    return best >= 0;
}

void cut_place(const struct cut *c, int rank, int place[AXES])
{
    place[X] = rank % c->parts[X];
    place[Y] = rank / c->parts[X] % c->parts[Y];
    place[Z] = rank / c->parts[X] / c->parts[Y];
}

int cut_rank(const struct cut *c, const int place[AXES])
{
    return place[X] + c->parts[X] * (place[Y] + c->parts[Y] * place[Z]);
}

void box_at(const struct cut *c, const int place[AXES], int level, struct box *b)
{
    for (int a = 0; a < AXES; a++) {
        int side = 1 << c->whole, scale = level - c->whole;
        b->first[a] = (int)block_start(side, c->parts[a], place[a]) << scale;
        b->n[a] = ((int)block_start(side, c->parts[a], place[a] + 1) << scale) - b->first[a];
    }
    b->y = b->n[X] + 2;
    b->z = b->y * (b->n[Y] + 2);
}

size_t box_points(const struct box *b)
{
    return (size_t)b->z * (size_t)(b->n[Z] + 2);
}
