/* How keys are counted. Their upper bits are a bucket. All ranks add up how many keys
 * each bucket has, and cut the buckets into ranges of nearly as many keys for each
 * rank; keys travel by bucket, and are counted where they come. */
#include "is.h"
#include <stdio.h>
#include <string.h>

/* Few enough buckets that the places where they are written stay in the cache, and
 * several for each rank, so that the ranges can be cut evenly. */
enum { BUCKETS = 256, BUCKETS_PER_RANK = 8 };

static int needs(struct sort *s, struct need *out)
{
    const size_t key = sizeof(int32_t), b = (size_t)s->buckets, ranks = (size_t)s->ranks;
    const struct need list[] = {
        {&s->keys, key * (size_t)s->n},        {&s->sorted, key * (size_t)s->room},
        {&s->mine, key * (size_t)s->room},     {&s->count, key * (size_t)s->range},
        {&s->here, key * b},                   {&s->all, key * b},
        {&s->to, key * b},                     {&s->first_bucket, sizeof(int) * (ranks + 1)},
        {&s->send, sizeof(int) * ranks},       {&s->send_at, sizeof(int) * ranks},
        {&s->get, sizeof(int) * ranks},        {&s->get_at, sizeof(int) * ranks},
    };
    memcpy(out, list, sizeof list);
    return sizeof list / sizeof *list;
}

void sort_open(struct sort *s, struct world *w, int log_keys, int log_range)
{
    struct need list[16];
    int log_buckets = 8;
    memset(s, 0, sizeof *s);
    s->ranks = w->size;
    s->rank = w->rank;
    s->total = INT64_C(1) << log_keys;
    s->range = INT64_C(1) << log_range;
    if (w->size > s->range / BUCKETS_PER_RANK)
        stop(w, "class %c takes at most %lld ranks, not %d: use fewer, or a larger class", w->class,
             (long long)(s->range / BUCKETS_PER_RANK), w->size);
    while (1 << log_buckets < BUCKETS_PER_RANK * w->size)
        log_buckets++;
    s->buckets = 1 << log_buckets;
    s->shift = log_range - log_buckets;
    s->first = block_start(s->total, w->size, w->rank);
    s->n = block_start(s->total, w->size, w->rank + 1) - s->first;
    /* A range has a rank's share and one bucket at most. The densest is 8/3 of the mean. */
    s->room = s->total / w->size + 3 * (s->total / s->buckets) + 64;
    memory_get(w, list, needs(s, list));
}

void sort_close(struct sort *s)
{
    struct need list[16];
    memory_free(list, needs(s, list));
}

/* cut gives each rank its buckets. All ranks come to the same. */
static void cut(struct sort *s)
{
    int64_t sum = 0;
    int rank = 0;
    s->first_bucket[0] = 0;
    s->below = 0;
    for (int b = 0; b < s->buckets; b++) {
        while (rank + 1 < s->ranks && sum >= block_start(s->total, s->ranks, rank + 1)) {
            s->first_bucket[++rank] = b;
            if (rank == s->rank)
                s->below = sum;
        }
        sum += s->all[b];
    }
    while (rank < s->ranks)
        s->first_bucket[++rank] = s->buckets;
    s->low = s->first_bucket[s->rank] << s->shift;
    s->high = s->first_bucket[s->rank + 1] << s->shift;
}

static void count_buckets(struct sort *s)
{
    const int32_t *restrict keys = s->keys;
    int32_t *restrict here = s->here;
    const int shift = s->shift;
    memset(here, 0, sizeof *here * (size_t)s->buckets);
    for (int64_t i = 0, n = s->n; i < n; i++)
        here[keys[i] >> shift]++;
}

static void by_bucket(struct sort *s)
{
    const int32_t *restrict keys = s->keys;
    int32_t *restrict to = s->to, *restrict sorted = s->sorted;
    const int shift = s->shift;
    int32_t at = 0;
    for (int b = 0; b < s->buckets; b++) {
        to[b] = at;
        at += s->here[b];
    }
    for (int64_t i = 0, n = s->n; i < n; i++)
        sorted[to[keys[i] >> shift]++] = keys[i];
}

static void exchange(struct sort *s)
{
    int sent = 0, came = 0;
    for (int r = 0; r < s->ranks; r++) {
        s->send[r] = 0;
        for (int b = s->first_bucket[r]; b < s->first_bucket[r + 1]; b++)
            s->send[r] += s->here[b];
        s->send_at[r] = sent;
        sent += s->send[r];
    }
    MPI_Alltoall(s->send, 1, MPI_INT, s->get, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < s->ranks; r++) {
        s->get_at[r] = came;
        came += s->get[r];
    }
    if (came > s->room) {
        fprintf(stderr, "muster-is: %d keys came to rank %d, which has room for %lld: not those of the specification\n", came,
                s->rank, (long long)s->room);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    s->came = came;
    MPI_Alltoallv(s->sorted, s->send, s->send_at, MPI_INT32_T, s->mine, s->get, s->get_at, MPI_INT32_T, MPI_COMM_WORLD);
}

static void count_keys(struct sort *s)
{
    const int32_t *restrict mine = s->ranks == 1 ? s->sorted : s->mine;
    int32_t *restrict count = s->count, low = s->low, sum = 0;
    memset(count, 0, sizeof *count * (size_t)(s->high - low));
    for (int64_t i = 0, n = s->came; i < n; i++)
        count[mine[i] - low]++;
    for (int32_t k = 0, n = s->high - low; k < n; k++)
        count[k] = sum += count[k];
}

void sort_count(struct sort *s)
{
    count_buckets(s);
    MPI_Allreduce(s->here, s->all, s->buckets, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
    cut(s);
    by_bucket(s);
    if (s->ranks > 1)
        exchange(s);
    else
        s->came = s->n;
    count_keys(s);
}

int64_t sort_rank(const struct sort *s, int32_t key)
{
    if (key < s->low || key >= s->high)
        return -1;
    return s->below + (key > s->low ? s->count[key - s->low - 1] : 0);
}
