/* Two ranks at a time, by many sizes of messages. */
#include "probe.h"
#include <stdio.h>

struct list sizes_of(const struct flags *f)
{
    struct list l = f->sizes;
    if (l.n > 0)
        return l;
    for (int64_t size = 1; size <= 4 << 20; size *= 2) {
        if (size == 2 << 20)
            l.v[l.n++] = 2000000;
        l.v[l.n++] = size;
    }
    return l;
}

static void latency(const struct pair *p, const char *metric, int64_t size, double budget)
{
    if (p->other < 0)
        return;
    struct sample s = pair_sample(p, metric, "s", size);
    struct times t;
    times_open(&t);
    ping(p, size, budget, &s, &t);
    if (p->first) {
        sample_times(&s, &t, 0);
        s.seconds *= 2 * (size <= 1024 ? 8 : 1);
        line_sample(p->w, &s);
    }
    times_close(&t);
}

void sizes_pair(const struct pair *p, const char *prefix, const struct list *sizes)
{
    const struct flags *f = p->w->flags;
    char one[40], way[40], both[40];
    snprintf(one, sizeof one, "%s.latency", prefix);
    snprintf(way, sizeof way, "%s.bandwidth", prefix);
    snprintf(both, sizeof both, "%s.both", prefix);
    for (int i = 0; i < sizes->n && metric_wanted(f, one); i++) {
        world_meet(p->w);
        latency(p, one, sizes->v[i], f->seconds / sizes->n);
    }
    for (int turned = 0; turned < 2 && metric_wanted(f, way); turned++)
        for (int i = 0; i < sizes->n; i++) {
            world_meet(p->w);
            pair_bandwidth(p, way, p->first == (turned == 0), false, sizes->v[i], f->seconds / (2 * sizes->n));
        }
    for (int i = 0; i < sizes->n && metric_wanted(f, both); i++) {
        world_meet(p->w);
        pair_bandwidth(p, both, p->first, true, sizes->v[i], f->seconds / sizes->n);
    }
    line_gather(p->w);
}

void sizes_run(const struct world *w, const struct rounds *r)
{
    struct list sizes = sizes_of(w->flags);
    for (int i = 0; i < r->n; i++) {
        struct pair p = pair_of(w, r, i);
        sizes_pair(&p, "size", &sizes);
    }
}
