/* EP, embarrassingly parallel: pairs of random numbers that are normally distributed,
 * their sums, and how many lie in which square ring around zero. Each rank works on a
 * share of the pairs and finds its first random number by itself; the ranks meet once,
 * at the end. */
#include "program.h"
#include <math.h>
#include <stdio.h>

/* Numbers are made and used in batches that stay in the nearest cache. */
enum { RINGS = 10, BATCH = 1024, EP_SEED = 271828183 };

struct sums {
    double x, y, ring[RINGS]; /* doubles, so that one message carries all: they count exactly below 2^53 */
};

static const struct {
    int log; /* of the number of pairs */
    double x, y, inside;
} table[CLASSES] = {
    {24, -3.247834652034740e3, -6.958407078382297e3, 13176389},
    {25, -2.863319731645753e3, -6.320053679109499e3, 26354769},
    {28, -4.295875165629892e3, -1.580732573678431e4, 210832767},
    {30, 4.033815542441498e4, -2.660669192809235e4, 843345606},
    {32, 4.764367927995374e4, -8.084072988043731e4, 3373275903},
};

/* inside keeps the pairs in the unit circle, with their squared radius, and returns how
 * many there are. It writes each pair and moves on if it is kept: a branch would be
 * guessed wrongly for one pair in five. */
static int inside(const double *restrict u, int pairs, double *restrict x, double *restrict y, double *restrict square)
{
    int n = 0;
    for (int i = 0; i < pairs; i++) {
        double a = 2 * u[2 * i] - 1, b = 2 * u[2 * i + 1] - 1, t = a * a + b * b;
        x[n] = a;
        y[n] = b;
        square[n] = t;
        n += t <= 1;
    }
    return n;
}

static void batch(uint64_t *state, int pairs, struct sums *s)
{
    double u[2 * BATCH], x[BATCH], y[BATCH], scale[BATCH];
    int64_t ring[RINGS] = {0};
    random_fill(state, u, 2 * (size_t)pairs);
    int n = inside(u, pairs, x, y, scale);
    for (int i = 0; i < n; i++)
        scale[i] = -2 * log(scale[i]) / scale[i];
    for (int i = 0; i < n; i++) {
        double f = sqrt(scale[i]);
        x[i] *= f;
        y[i] *= f;
    }
    for (int i = 0; i < n; i++) {
        double a = fabs(x[i]), b = fabs(y[i]);
        s->x += x[i];
        s->y += y[i];
        ring[(int)(a > b ? a : b)]++;
    }
    for (int i = 0; i < RINGS; i++)
        s->ring[i] += (double)ring[i];
}

static void run(struct world *w, enum class c, struct result *r)
{
    const int64_t pairs = INT64_C(1) << table[c].log;
    int64_t from = block_start(pairs, w->size, w->rank), to = block_start(pairs, w->size, w->rank + 1);
    struct sums s = {0};
    double inside = 0, start = clock_start();
    uint64_t state = random_skip(EP_SEED, 2 * (uint64_t)from);
    for (; from < to; from += BATCH)
        batch(&state, to - from < BATCH ? (int)(to - from) : BATCH, &s);
    MPI_Allreduce(MPI_IN_PLACE, &s, sizeof s / sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    r->seconds = clock_stop(start);

    for (int i = 0; i < RINGS; i++)
        inside += s.ring[i];
    snprintf(r->size, sizeof r->size, "2^%d pairs", table[c].log);
    r->iterations = 1;
    r->operations = 2 * (double)pairs; /* random numbers */
    r->tolerance = 1e-8;
    result_value(r, s.x, table[c].x, "sum of x");
    result_value(r, s.y, table[c].y, "sum of y");
    result_value(r, inside, table[c].inside, "pairs inside");
}

const struct program program = {
    .name = "muster-ep",
    .title = "embarrassingly parallel",
    .ranks = "any number",
    .run = run,
};
