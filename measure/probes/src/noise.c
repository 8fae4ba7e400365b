/* What the system takes away: the same work again and again, on every processor
 * at once. What takes longer than the fastest was disturbed. */
#include "probe.h"
#include <stdio.h>
#include <stdlib.h>

/* A chain of multiplications and additions: four or five cycles each on every
 * processor of the last ten years, so 0.6 to 1.5 ms. It is the same everywhere, so
 * that two machines can be compared. */
enum { QUANTUM = 750000, MOST = 1 << 16 };
static const uint64_t factor = 6364136223846793005u, addend = 1442695040888963407u;

static uint64_t work(uint64_t x, uint64_t a, uint64_t c, int steps)
{
    for (int i = 0; i < steps; i++)
        x = a * x + c;
    return x;
}

/* jump goes the same steps in a few: (a, c) composed with itself. */
static uint64_t jump(uint64_t x, int steps)
{
    uint64_t a = factor, c = addend;
    for (; steps; steps >>= 1) {
        if (steps & 1)
            x = a * x + c;
        c = a * c + c;
        a = a * a;
    }
    return x;
}

struct member {
    float *took;
    int n, wrong;
    double fastest, sum;
};

struct watch {
    struct member *m;
    double seconds;
    uint64_t factor, addend; /* not constants: the compiler must do the work */
};

static void listen(int member, int members, void *arg)
{
    struct watch *x = arg;
    struct member *m = &x->m[member];
    (void)members;
    uint64_t v = mix64((uint64_t)member);
    double last = now(), end = last + x->seconds;
    m->fastest = 1e9;
    for (; last < end && m->n < MOST;) {
        uint64_t got = work(v, x->factor, x->addend, QUANTUM);
        double t = now(), took = t - last;
        m->wrong += got != jump(v, QUANTUM);
        v = got;
        last = t;
        m->took[m->n++] = (float)took;
        m->sum += took;
        if (took < m->fastest)
            m->fastest = took;
    }
}

static void share(const struct world *w, const struct member *m, int n, struct sample *s)
{
    double lost = 0, sum = 0;
    s->min = 1;
    s->max = 0;
    for (int i = 0; i < n; i++) {
        double mine = m[i].sum - m[i].fastest * m[i].n, part = m[i].sum > 0 ? mine / m[i].sum : 0;
        part = part < 0 ? 0 : part; /* rounding */
        lost += part * m[i].sum;
        sum += m[i].sum;
        s->min = part < s->min ? part : s->min;
        s->max = part > s->max ? part : s->max;
    }
    s->value = sum > 0 ? lost / sum : 0;
    line_sample(w, s);
}

void noise_run(const struct world *w)
{
    static const struct {
        const char *metric;
        double at;
    } quantiles[] = {{"noise.median", 0.5}, {"noise.p99", 0.99}, {"noise.p999", 0.999}, {"noise.max", 1}};
    int n = cpus_count(), wrong = 0;
    if (!metric_wanted(w->flags, "noise"))
        return;
    struct watch x = {.m = calloc((size_t)n, sizeof *x.m), .seconds = 0.02, .factor = factor, .addend = addend};
    struct team *team = team_open(n);
    bool there = x.m && team;
    for (int i = 0; there && i < n; i++)
        there = (x.m[i].took = malloc(MOST * sizeof(float))) != NULL;
    if (there) {
        team_run(team, listen, &x); /* warm-up */
        for (int i = 0; i < n; i++)
            x.m[i].n = 0, x.m[i].sum = 0;
    }
    world_meet(w);
    x.seconds = w->flags->seconds;
    struct sample s = sample_of(w, "noise.share", "1");
    struct times t;
    times_open(&t);
    if (there)
        team_run(team, listen, &x);
    else
        sample_wrong(&s, "no memory for %d processors, or no threads", n);
    for (int i = 0; there && i < n; i++) {
        wrong += x.m[i].wrong;
        for (int k = 0; k < x.m[i].n; k++)
            if (!times_add(&t, x.m[i].took[k]))
                break;
    }
#ifdef BREAK_NOISE
    wrong++;
#endif
    if (wrong > 0)
        sample_wrong(&s, "%d quanta gave a wrong result", wrong);
    s.n = (int64_t)t.n;
    s.seconds = t.sum;
    s.threads = n;
    s.size = -1;
    if (s.ok)
        snprintf(s.check, sizeof s.check, "each of %d steps against its jump; min and max are of processors", QUANTUM);
    struct sample q = s;
    if (there)
        share(w, x.m, n, &s);
    else
        line_sample(w, &s);
    if (q.ok)
        snprintf(q.check, sizeof q.check, "each of %d steps against its jump", QUANTUM);
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
        q.metric = quantiles[i].metric;
        q.unit = "s";
        q.value = times_at(&t, quantiles[i].at);
        q.min = times_at(&t, 0);
        q.max = times_at(&t, 1);
        line_sample(w, &q);
    }
    for (int i = 0; x.m && i < n; i++)
        free(x.m[i].took);
    free(x.m);
    if (team)
        team_close(team);
    times_close(&t);
    line_gather(w);
}
