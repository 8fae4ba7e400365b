/* The four kernels of STREAM (McCalpin 1995), with its way of counting bytes:
 * what the program reads and writes, not what the caches add to it. Every thread
 * touches first what it will use, so that the memory is near it. */
#include "probe.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* With this factor a repetition gives back the a that it began with: 2 q + q^2 = 1. */
#define Q 0.41421356237309504880

enum { COPY, SCALE, ADD, TRIAD, KERNELS };
static const char *const names[] = {"stream.copy", "stream.scale", "stream.add", "stream.triad"};
static const char *const time_names[] = {"stream.copy.time", "stream.scale.time", "stream.add.time", "stream.triad.time"};
static const int words[] = {2, 2, 3, 3};

struct arrays {
    double *restrict a, *restrict b, *restrict c;
    size_t n;
    int kernel;      /* the one to run */
    size_t *wrong;   /* by member */
    double allowed;  /* relative; each repetition rounds a few times */
};

static double first(size_t i)
{
    return 1 + (double)(i % 1021) / 1024;
}

static void slice(size_t n, int member, int members, size_t *from, size_t *to)
{
    *from = n / (size_t)members * (size_t)member;
    *to = member + 1 == members ? n : n / (size_t)members * (size_t)(member + 1);
}

static void fill(int member, int members, void *arg)
{
    struct arrays *x = arg;
    size_t from, to;
    slice(x->n, member, members, &from, &to);
    for (size_t i = from; i < to; i++) {
        x->a[i] = first(i);
        x->b[i] = 0;
        x->c[i] = 0;
    }
}

static void work(int member, int members, void *arg)
{
    struct arrays *x = arg;
    double *restrict a = x->a, *restrict b = x->b, *restrict c = x->c;
    size_t from, to;
    slice(x->n, member, members, &from, &to);
    switch (x->kernel) {
    case COPY:
        for (size_t i = from; i < to; i++)
            c[i] = a[i];
        break;
    case SCALE:
        for (size_t i = from; i < to; i++)
            b[i] = Q * c[i];
        break;
    case ADD:
        for (size_t i = from; i < to; i++)
            c[i] = a[i] + b[i];
        break;
    case TRIAD:
        for (size_t i = from; i < to; i++)
            a[i] = b[i] + Q * c[i];
        break;
    }
}

static bool near(double x, double y, double allowed)
{
    return fabs(x - y) <= allowed * fabs(y);
}

/* compare looks at every element: a wrong one in any repetition stays wrong. */
static void compare(int member, int members, void *arg)
{
    struct arrays *x = arg;
    size_t from, to, wrong = 0;
    slice(x->n, member, members, &from, &to);
    for (size_t i = from; i < to; i++) {
        double a = first(i), b = Q * a, c = a + b;
        wrong += !near(x->a[i], b + Q * c, x->allowed) || !near(x->b[i], b, x->allowed) || !near(x->c[i], c, x->allowed);
    }
    x->wrong[member] = wrong;
}

/* say tells the bandwidth, and how long a repetition took: on average, at least and
 * at most, as STREAM does. */
static void say(const struct world *w, int kernel, struct sample *s, struct times *t, double bytes)
{
    struct sample took = *s;
    took.metric = time_names[kernel];
    took.unit = "s";
    sample_times(s, t, bytes);
    sample_times(&took, t, 0);
    if (took.ok)
        took.value = t->sum / (double)t->n;
    if (took.value < took.min) /* a sum is rounded */
        took.value = took.min;
    if (took.value > took.max)
        took.value = took.max;
    line_sample(w, s);
    line_sample(w, &took);
}

static void measure(const struct world *w, int threads, double budget)
{
    struct sample s[KERNELS];
    struct times t[KERNELS];
    int64_t cache = cache_bytes(w->flags), bytes = w->flags->bytes ? w->flags->bytes : 4 * cache;
    struct arrays x = {.n = (size_t)(bytes / (3 * (int64_t)sizeof(double))) + 1};
    size_t one = (x.n * sizeof(double) + 4095) / 4096 * 4096, all = 3 * one + 3 * 4096;
    bool enough = bytes >= 4 * cache;
    for (int k = 0; k < KERNELS; k++) {
        s[k] = sample_of(w, names[k], "B/s");
        s[k].threads = threads;
        s[k].size = bytes;
        snprintf(s[k].check, sizeof s[k].check, "every element at the end, which hangs on all repetitions; arrays are %.3g x the last cache",
                 (double)bytes / (double)cache);
        if (!enough)
            sample_wrong(&s[k], "arrays of %lld bytes are less than 4 x the last cache (%lld): that measures the cache",
                         (long long)bytes, (long long)cache);
        times_open(&t[k]);
    }
    /* Not from malloc: pages that were used before would lie where another thread put them. */
    char *memory = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct team *team = team_open(threads);
    x.wrong = calloc((size_t)threads, sizeof *x.wrong);
    bool there = memory != MAP_FAILED && team && x.wrong;
    if (there) {
        /* A page apart from each other: arrays in step would fight for the same sets of the caches. */
        x.a = (double *)(void *)memory;
        x.b = (double *)(void *)(memory + one + 4096);
        x.c = (double *)(void *)(memory + 2 * one + 2 * 4096);
        team_run(team, fill, &x); /* the warm-up, too: it goes through all arrays */
    }
    world_meet(w);
    if (there) {
        for (double end = now() + budget;;) {
            bool room = true;
            for (x.kernel = 0; x.kernel < KERNELS; x.kernel++)
                room = times_add(&t[x.kernel], team_run(team, work, &x)) && room;
            if (!room || now() >= end)
                break;
        }
#ifdef BREAK_STREAM
        x.a[x.n / 3] *= 1.001;
#endif
        x.allowed = 1e-13 + 2e-15 * (double)t[0].n;
        team_run(team, compare, &x);
    }
    size_t wrong = 0;
    for (int m = 0; there && m < threads; m++)
        wrong += x.wrong[m];
    for (int k = 0; k < KERNELS; k++) {
        if (!there)
            sample_wrong(&s[k], "no memory for %zu bytes, or no %d threads", all, threads);
        if (wrong > 0)
            sample_wrong(&s[k], "%zu elements are wrong", wrong);
        say(w, k, &s[k], &t[k], (double)words[k] * sizeof(double) * (double)x.n);
        times_close(&t[k]);
    }
    if (team)
        team_close(team);
    if (memory != MAP_FAILED)
        munmap(memory, all);
    free(x.wrong);
}

void stream_run(const struct world *w)
{
    const struct list *l = &w->flags->threads;
    if (!metric_wanted(w->flags, "stream"))
        return;
    bool room = w->flags->bytes > 0 || room_enough(w); /* nodes may differ */
    for (int i = 0, most = world_most(l->n); i < most; i++) {
        if (i < l->n && room)
            measure(w, (int)l->v[i], w->flags->seconds / l->n);
        else
            world_meet(w);
    }
    line_gather(w);
}
