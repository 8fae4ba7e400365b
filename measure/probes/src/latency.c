/* How long one load takes that has to wait for the one before it. Lines are
 * visited in one circle that looks random, so no prefetcher can know the next. */
#include "probe.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LINE = 64, STEPS = 1 << 14 };

struct line {
    struct line *next;
    char rest[LINE - sizeof(struct line *)];
};

/* With n a power of two, this factor (1 modulo 4) and an odd addend, x -> a x + c
 * modulo n meets every number before it comes back (Hull and Dobell 1962). Linking
 * the lines so takes one pass in order, where shuffling them would take seconds; and where a stretch must end can be calculated. */
static const uint64_t factor = 2862933555777941757u, addend = 3037000493u;

static void circle(struct line *v, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        v[i].next = &v[(factor * i + addend) & (n - 1)];
#ifdef BREAK_LATENCY
    v[0].next = &v[0]; /* a circle of one: much too fast */
#endif
}

/* jump goes the same steps in a few: (a, c) composed with itself. */
static uint64_t jump(uint64_t x, uint64_t n, unsigned steps)
{
    uint64_t a = factor, c = addend;
    for (; steps; steps >>= 1) {
        if (steps & 1)
            x = a * x + c;
        c = a * c + c;
        a = a * a;
    }
    return x & (n - 1);
}

static struct line *chase(struct line *p, size_t steps)
{
    for (size_t i = 0; i < steps; i += 8)
        p = p->next->next->next->next->next->next->next->next;
    return p;
}

static void measure(const struct world *w, int64_t size, double budget)
{
    struct sample s = sample_of(w, "latency", "s");
    struct times t;
    uint64_t n = (uint64_t)size / LINE, at = mix64(w->flags->seed) & (n - 1);
    s.size = size;
    s.threads = 1;
    snprintf(s.check, sizeof s.check, "every stretch of %d loads ended where it must", STEPS);
    times_open(&t);
    struct line *v = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (v == MAP_FAILED)
        sample_wrong(&s, "no memory for %lld bytes", (long long)size);
    else
        circle(v, n);
    world_meet(w);
    double end = now() + budget;
    for (bool warm = false; s.ok; warm = true) { /* the first stretch is the warm-up */
        double start = now();
        struct line *p = chase(&v[at], STEPS);
        double took = now() - start;
        at = jump(at, n, STEPS);
        if (p != &v[at])
            sample_wrong(&s, "stretch %zu ended at line %lld instead of %llu", t.n, (long long)(p - v), (unsigned long long)at);
        else if (warm && !times_add(&t, took / STEPS))
            break;
        if (warm && now() >= end)
            break;
    }
    sample_times(&s, &t, 0);
    s.seconds *= STEPS;
    times_close(&t);
    if (v != MAP_FAILED)
        munmap(v, (size_t)size);
    line_sample(w, &s);
}

void latency_run(const struct world *w)
{
    struct list l = w->flags->sizes;
    if (!metric_wanted(w->flags, "latency"))
        return;
    if (l.n == 0) {
        int64_t most = 4 * cache_bytes(w->flags);
        int64_t last = 4096;
        while (last < most)
            last *= 2;
        while (last > 4096 && last > room_bytes(w))
            last /= 2;
        for (int64_t size = 4096; size < last && l.n < MAX_LIST - 1; size *= 4)
            l.v[l.n++] = size;
        l.v[l.n++] = last;
    }
    struct team *core = team_open(1);
    for (int i = 0, most = world_most(l.n); i < most; i++) {
        if (i < l.n)
            measure(w, l.v[i], w->flags->seconds / l.n);
        else
            world_meet(w);
    }
    if (core)
        team_close(core);
    line_gather(w);
}
