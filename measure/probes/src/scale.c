/* What grows with the number of ranks: ping-pong of one pair at a time, and rings of
 * all, with a small and a large message. */
#include "probe.h"
#include <stdlib.h>
#include <string.h>

/* draw fills in pairs of ranks, the same on every rank, none twice; it returns how
 * many. Where there are no more than that, all are taken. */
static int draw(const struct world *w, int (*pair)[2])
{
    int64_t all = (int64_t)w->size * (w->size - 1) / 2;
    int most = w->flags->pairs, n = 0;
    uint64_t seed = w->flags->seed;
    if (all <= most) {
        for (int a = 0; a < w->size; a++)
            for (int b = a + 1; b < w->size; b++)
                pair[n][0] = a, pair[n++][1] = b;
        return n;
    }
    while (n < most) {
        int a = (int)(next64(&seed) % (uint64_t)w->size), b = (int)(next64(&seed) % (uint64_t)w->size), i = 0;
        if (a == b)
            continue;
        int low = a < b ? a : b, high = a < b ? b : a;
        while (i < n && (pair[i][0] != low || pair[i][1] != high))
            i++;
        if (i == n)
            pair[n][0] = low, pair[n++][1] = high;
    }
    return n;
}

/* pingpong makes two figures of the same round trips. */
static void pingpong(const struct pair *p, int64_t size, double budget)
{
    if (p->other < 0)
        return;
    struct sample s = pair_sample(p, "scale.pingpong.latency", "s", size);
    struct times t;
    times_open(&t);
    ping(p, size, budget, &s, &t);
    if (p->first) {
        struct sample rate = pair_sample(p, "scale.pingpong.bandwidth", "B/s", size);
        rate.ok = s.ok;
        memcpy(rate.check, s.check, sizeof rate.check);
        sample_times(&s, &t, 0);
        line_sample(p->w, &s);
        sample_times(&rate, &t, (double)size);
        line_sample(p->w, &rate);
    }
    times_close(&t);
}

void scale_run(const struct world *w)
{
    static const int64_t sizes[] = {8, 2000000};
    const struct flags *f = w->flags;
    int (*pair)[2] = malloc((size_t)f->pairs * sizeof *pair);
    bool wanted = metric_wanted(f, "scale.pingpong");
    int n = world_all(pair != NULL) && wanted ? draw(w, pair) : 0;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 2; i++) {
            struct pair p = {.w = w, .other = -1, .round = -1};
            if (pair[k][0] == w->rank)
                p.other = pair[k][1], p.first = true;
            else if (pair[k][1] == w->rank)
                p.other = pair[k][0];
            world_meet(w);
            pingpong(&p, sizes[i], f->seconds / n);
        }
    free(pair);
    line_gather(w);
    rings_both(w);
}
