/* All ranks at once, each with both neighbours in a ring: in the order of the
 * ranks, where neighbours are often near, and in random orders, where not. */
#include "probe.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TO_LEFT = 21, TO_RIGHT };
enum { SMALL = 8, LARGE = 2000000 };

struct ring {
    const struct world *w;
    int left, right;
    char *memory;
    char *send[2], *receive[2]; /* left, right */
    size_t size;
};

/* neighbours of this rank in the given order. */
static void neighbours(struct ring *r, const int *order)
{
    int n = r->w->size;
    for (int i = 0; i < n; i++)
        if (order[i] == r->w->rank) {
            r->left = order[(i + n - 1) % n];
            r->right = order[(i + 1) % n];
        }
}

static bool ring_open(struct ring *r, size_t size)
{
    size_t step = (size + 4095) / 4096 * 4096;
    r->size = size;
    r->memory = calloc(4, step);
    for (int i = 0; r->memory && i < 2; i++) {
        r->send[i] = r->memory + (size_t)i * step;
        r->receive[i] = r->memory + (size_t)(2 + i) * step;
    }
    return r->memory != NULL;
}

static uint64_t key(const struct ring *r, int from, int direction)
{
    return mix64(r->w->flags->seed + 2 * (uint64_t)from + (uint64_t)(direction == TO_RIGHT));
}

static void fill(struct ring *r)
{
    pattern_fill(r->send[0], r->size, key(r, r->w->rank, TO_LEFT));
    pattern_fill(r->send[1], r->size, key(r, r->w->rank, TO_RIGHT));
}

static void stamp(struct ring *r, uint64_t turn)
{
    pattern_stamp(r->send[0], r->size, key(r, r->w->rank, TO_LEFT) ^ turn);
    pattern_stamp(r->send[1], r->size, key(r, r->w->rank, TO_RIGHT) ^ turn);
    memset(r->receive[0], 0, r->size);
    memset(r->receive[1], 0, r->size);
}

static bool right(const struct ring *r, uint64_t turn)
{
    uint64_t l = key(r, r->left, TO_RIGHT), g = key(r, r->right, TO_LEFT);
    return pattern_right(r->receive[0], r->size, l, l ^ turn, true) && pattern_right(r->receive[1], r->size, g, g ^ turn, true);
}

static void exchange(struct ring *r)
{
    MPI_Request q[4];
    int n = (int)r->size;
    MPI_Irecv(r->receive[0], n, MPI_BYTE, r->left, TO_RIGHT, MPI_COMM_WORLD, &q[0]);
    MPI_Irecv(r->receive[1], n, MPI_BYTE, r->right, TO_LEFT, MPI_COMM_WORLD, &q[1]);
    MPI_Isend(r->send[0], n, MPI_BYTE, r->left, TO_LEFT, MPI_COMM_WORLD, &q[2]);
    MPI_Isend(r->send[1], n, MPI_BYTE, r->right, TO_RIGHT, MPI_COMM_WORLD, &q[3]);
    MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
}

/* turns repeats exchanges until the time is over. It is false if something was wrong,
 * which the sample then says. */
static bool turns(struct ring *r, int64_t size, int times, double budget, struct sample *s, struct times *t)
{
    const struct world *w = r->w;
    double begun = now();
    snprintf(s->check, sizeof s->check, "every byte of every repetition; %d exchanges in each, the slowest of %d ranks counts", times, w->size);
    bool there = world_all(ring_open(r, (size_t)size));
    if (there)
        fill(r);
    else
        sample_wrong(s, "no memory for messages of %lld bytes", (long long)size);
    for (uint64_t turn = 0; there; turn++) { /* turn 0 is the warm-up */
        /* time, whether it was wrong, whether the time is over */
        double mine[3] = {0}, all[3];
        stamp(r, turn);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        for (int i = 0; i < times; i++)
            exchange(r);
        mine[0] = (now() - start) / times;
#ifdef BREAK_RINGS
        r->receive[0][size - 1] ^= 1;
#endif
        mine[1] = !right(r, turn);
        if (turn == 0)
            begun = now();
        mine[2] = w->rank == 0 && turn > 0 && now() - begun >= budget;
        MPI_Allreduce(mine, all, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (all[1] > 0)
            sample_wrong(s, "wrong bytes came in repetition %llu", (unsigned long long)turn);
        bool room = turn == 0 || times_add(t, all[0]);
        if (all[1] > 0 || all[2] > 0 || !world_all(room))
            break;
    }
    free(r->memory);
    return s->ok;
}

static struct sample ring_sample(const struct world *w, const char *metric, bool bandwidth, int64_t size, int round)
{
    struct sample s = sample_of(w, metric, bandwidth ? "B/s" : "s");
    s.host = NULL;
    s.round = round;
    s.size = size;
    return s;
}

/* tell ends a sample. What each rank sends in an exchange is two messages. */
static void tell(const struct world *w, struct sample *s, struct times *t, int times, bool bandwidth)
{
    sample_times(s, t, bandwidth ? 2.0 * (double)s->size : 0);
    s->seconds *= times;
    if (w->rank == 0)
        line_sample(w, s);
}

static void measure(struct ring *r, const char *metric, bool bandwidth, int round, double budget)
{
    struct sample s = ring_sample(r->w, metric, bandwidth, bandwidth ? LARGE : SMALL, round);
    struct times t;
    int times = bandwidth ? 2 : 32; /* exchanges in a repetition */
    times_open(&t);
    (void)turns(r, s.size, times, budget, &s, &t);
    tell(r->w, &s, &t, times, bandwidth);
    times_close(&t);
    line_gather(r->w);
}

/* measure_both makes two figures of the same exchanges: how long one takes, and how
 * many bytes a second that is. */
static void measure_both(struct ring *r, const char *latency, const char *bandwidth, int64_t size, int round, double budget)
{
    const struct flags *f = r->w->flags;
    if (!metric_wanted(f, latency) && !metric_wanted(f, bandwidth))
        return;
    struct sample s = ring_sample(r->w, latency, false, size, round);
    struct times t;
    int times = size == LARGE ? 2 : 32;
    times_open(&t);
    (void)turns(r, size, times, budget, &s, &t);
    struct sample rate = ring_sample(r->w, bandwidth, true, size, round);
    rate.ok = s.ok;
    memcpy(rate.check, s.check, sizeof rate.check);
    tell(r->w, &s, &t, times, false);
    tell(r->w, &rate, &t, times, true);
    times_close(&t);
    line_gather(r->w);
}

/* shuffle gives all ranks the same next order. */
static void shuffle(int *order, int n, uint64_t *seed)
{
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(next64(seed) % (uint64_t)(i + 1)), x = order[i];
        order[i] = order[j];
        order[j] = x;
    }
}

void rings_run(const struct world *w)
{
    const struct flags *f = w->flags;
    struct ring r = {.w = w};
    int *order = malloc((size_t)w->size * sizeof *order);
    uint64_t seed = f->seed;
    if (!world_all(order != NULL)) {
        free(order);
        return;
    }
    for (int i = 0; i < w->size; i++)
        order[i] = i;
    neighbours(&r, order);
    if (metric_wanted(f, "ring.natural.latency"))
        measure(&r, "ring.natural.latency", false, -1, f->seconds);
    if (metric_wanted(f, "ring.natural.bandwidth"))
        measure(&r, "ring.natural.bandwidth", true, -1, f->seconds);
    for (int k = 0; k < f->orders; k++) {
        shuffle(order, w->size, &seed);
        neighbours(&r, order);
        if (metric_wanted(f, "ring.random.latency"))
            measure(&r, "ring.random.latency", false, k, f->seconds / f->orders);
        if (metric_wanted(f, "ring.random.bandwidth"))
            measure(&r, "ring.random.bandwidth", true, k, f->seconds / f->orders);
    }
    free(order);
}

void rings_both(const struct world *w)
{
    const struct flags *f = w->flags;
    struct ring r = {.w = w};
    int *order = malloc((size_t)w->size * sizeof *order);
    uint64_t seed = f->seed;
    static const int64_t sizes[] = {SMALL, LARGE};
    if (!world_all(order != NULL)) {
        free(order);
        return;
    }
    for (int i = 0; i < w->size; i++)
        order[i] = i;
    neighbours(&r, order);
    for (int i = 0; i < 2; i++)
        measure_both(&r, "scale.natural.latency", "scale.natural.bandwidth", sizes[i], -1, f->seconds);
    for (int k = 0; k < f->orders; k++) {
        shuffle(order, w->size, &seed);
        neighbours(&r, order);
        for (int i = 0; i < 2; i++)
            measure_both(&r, "scale.random.latency", "scale.random.bandwidth", sizes[i], k, f->seconds / f->orders);
    }
    free(order);
}
