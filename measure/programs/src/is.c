/* IS, integer sort: the rank of every key, that is how many keys are smaller. In each
 * of the ten iterations keys go to the rank that has their range, which counts them. */
#include "is.h"
#include <stdio.h>

enum { ITERATIONS = 10, TESTS = 5 };

/* The rank of each test key is known; it moves by one each iteration, upwards at low
 * keys and downwards at high ones, because two keys change each time. */
static const struct table {
    int log_keys, log_range;
    int64_t at[TESTS], rank[TESTS];
    int up, down; /* what is taken from the iteration, before it is added or subtracted */
} table[CLASSES] = {
    {16, 11, {48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}, 0, 0},
    {20, 16, {357773, 934767, 875723, 898999, 404505}, {1249, 11698, 1039987, 1043896, 1048018}, 2, 0},
    {23, 19, {2112377, 662041, 5336171, 3642833, 4250760}, {104, 17523, 123928, 8288932, 8388264}, 1, 1},
    {25, 21, {41869, 812306, 5102857, 18232239, 26860214}, {33422937, 10244, 59149, 33135281, 99}, 0, 0},
    {27, 23, {44172927, 72999161, 74326391, 129606274, 21736814}, {61147, 882988, 266290, 133997595, 133525895}, 0, 0},
};

static int64_t wanted(const struct table *t, int test, int iteration)
{
    bool low = t->rank[test] < INT64_C(1) << (t->log_keys - 1);
    return low ? t->rank[test] + iteration - t->up : t->rank[test] - iteration + t->down;
}

/* make fills in this rank's share: the sum of four random numbers, as a part of the range. */
static void make(struct sort *s)
{
    enum { BATCH = 512 };
    double u[4 * BATCH];
    const double quarter = (double)(s->range / 4);
    uint64_t state = random_skip(SEED, 4 * (uint64_t)s->first);
    for (int64_t i = 0; i < s->n; i += BATCH) {
        int64_t n = s->n - i < BATCH ? s->n - i : BATCH;
        random_fill(&state, u, 4 * (size_t)n);
        for (int64_t j = 0; j < n; j++)
            s->keys[i + j] = (int32_t)(quarter * (u[4 * j] + u[4 * j + 1] + u[4 * j + 2] + u[4 * j + 3]));
    }
}

static void change(struct sort *s, int64_t at, int32_t key)
{
    if (at >= s->first && at < s->first + s->n)
        s->keys[at - s->first] = key;
}

/* find_tests tells every rank the test keys; none of them changes. */
static void find_tests(const struct sort *s, const struct table *t, int32_t *key)
{
    for (int i = 0; i < TESTS; i++) {
        int64_t at = t->at[i] - s->first;
        key[i] = at >= 0 && at < s->n ? s->keys[at] : -1;
    }
    MPI_Allreduce(MPI_IN_PLACE, key, TESTS, MPI_INT32_T, MPI_MAX, MPI_COMM_WORLD);
}

static void iterate(struct sort *s, int iteration, const int32_t *key, int64_t *rank)
{
    change(s, iteration, iteration);
    change(s, iteration + ITERATIONS, (int32_t)(s->range - iteration));
    sort_count(s);
    for (int i = 0; i < TESTS; i++)
        rank[i] = sort_rank(s, key[i]);
}

static void run(struct world *w, enum class c, struct result *r)
{
    const struct table *t = &table[c];
    struct sort s;
    int32_t key[TESTS];
    int64_t rank[ITERATIONS + 1][TESTS];
    sort_open(&s, w, t->log_keys, t->log_range);
    make(&s);
    find_tests(&s, t, key);
    iterate(&s, 1, key, rank[1]); /* once in vain, so that buffers and connections are there */
    double start = clock_start();
    for (int i = 1; i <= ITERATIONS; i++)
        iterate(&s, i, key, rank[i]);
    r->seconds = clock_stop(start);

    /* Of those that were asked, one rank knew. */
    MPI_Allreduce(MPI_IN_PLACE, rank[1], ITERATIONS * TESTS, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    snprintf(r->size, sizeof r->size, "2^%d keys below 2^%d", t->log_keys, t->log_range);
    r->iterations = ITERATIONS;
    r->operations = (double)ITERATIONS * (double)(INT64_C(1) << t->log_keys); /* keys */
    r->tolerance = 0;
    for (int i = 1; i <= ITERATIONS; i++)
        for (int k = 0; k < TESTS; k++)
            result_value(r, (double)rank[i][k], (double)wanted(t, k, i), "iteration %d, rank of key %lld", i,
                         (long long)t->at[k]);
    result_value(r, (double)sort_wrong(&s), 0, "keys out of order");
    sort_close(&s);
}

const struct program program = {
    .name = "muster-is",
    .title = "integer sort",
    .ranks = "any number up to an eighth of the range of keys: 256 in class S, 8192 in W, and so on",
    .run = run,
};
