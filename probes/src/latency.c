/* How long one load takes that has to wait for the one before it. Lines are
 * visited in one random circle, so no prefetcher can know the next. */
#include "probe.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LINE = 64, STEPS = 1 << 14 };

struct line {
    struct line *next;
    uint64_t place; /* in the circle */
    char rest[LINE - 16];
};

/* circle links all lines into one cycle (Sattolo 1986). */
static void circle(struct line *v, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        v[i].next = &v[i];
    for (size_t i = n; i-- > 1;) {
        size_t j = (size_t)(next64(&seed) % i);
        struct line *x = v[i].next;
        v[i].next = v[j].next;
        v[j].next = x;
    }
#ifdef BREAK_LATENCY
    v[0].next = &v[0]; /* a circle of one: much too fast */
#endif
}

/* number walks once round and tells whether that met every line. It is the warm-up, too. */
static bool number(struct line *v, size_t n)
{
    struct line *p = v;
    for (size_t i = 0; i < n; i++) {
        p->place = i;
        p = p->next;
        if (p == v)
            return i + 1 == n;
    }
    return false;
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
    size_t n = (size_t)size / LINE < 2 ? 2 : (size_t)size / LINE, bytes = n * LINE;
    s.size = size;
    s.threads = 1;
    snprintf(s.check, sizeof s.check, "the circle has every line, and every stretch ended where it must");
    times_open(&t);
    struct line *v = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (v == MAP_FAILED) {
        sample_wrong(&s, "no memory for %zu bytes", bytes);
    } else {
        circle(v, n, w->flags->seed);
        if (!number(v, n))
            sample_wrong(&s, "the circle does not have every line");
    }
    world_meet(w);
    struct line *p = v;
    uint64_t place = 0;
    for (double end = now() + budget; s.ok;) {
        double start = now();
        p = chase(p, STEPS);
        double took = now() - start;
        place = (place + STEPS) % n;
        if (p->place != place)
            sample_wrong(&s, "repetition %zu ended at line %llu instead of %llu", t.n, (unsigned long long)p->place,
                         (unsigned long long)place);
        else if (!times_add(&t, took / STEPS))
            break;
        if (now() >= end)
            break;
    }
    sample_times(&s, &t, 0);
    s.seconds *= STEPS;
    times_close(&t);
    if (v != MAP_FAILED)
        munmap(v, bytes);
    line_sample(w, &s);
}

void latency_run(const struct world *w)
{
    struct list l = w->flags->sizes;
    if (!metric_wanted(w->flags, "latency"))
        return;
    if (l.n == 0) {
        int64_t most = 4 * cache_bytes(w->flags);
        for (int64_t size = 4096; size < most && l.n < MAX_LIST - 1; size *= 4)
            l.v[l.n++] = size;
        l.v[l.n++] = most;
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
