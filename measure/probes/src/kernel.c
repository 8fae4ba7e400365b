/* Runs kinds of work on one core, one after the other, within the budget of
 * their group. */
#include "probe.h"
#include <stdio.h>

static void repeat(const struct kernel *k, struct sample *s, double budget)
{
    struct times t;
    double work = 0;
    times_open(&t);
    (void)k->run(); /* warm-up: pages, caches, clock speed */
    if (!k->right())
        sample_wrong(s, "wrong in the warm-up: %s", k->check);
    /* What is checked is not measured, but it is waited for. */
    for (double end = now() + budget; s->ok;) {
        double start = now();
        work = k->run();
        double took = now() - start;
        if (!k->right())
            sample_wrong(s, "wrong in repetition %zu: %s", t.n, k->check);
        else if (!times_add(&t, took))
            break;
        if (now() >= end)
            break;
    }
    sample_times(s, &t, work);
    times_close(&t);
}

void kernels_run(const struct world *w, const char *group, const struct kernel *k, int n)
{
    int wanted = 0;
    if (!metric_wanted(w->flags, group))
        return;
    for (int i = 0; i < n; i++)
        wanted += metric_wanted(w->flags, k[i].metric);
    struct team *core = team_open(1); /* binds us to one processor */
    for (int i = 0; i < n; i++) {
        if (!metric_wanted(w->flags, k[i].metric))
            continue;
        struct sample s = sample_of(w, k[i].metric, k[i].unit);
        s.threads = 1;
        s.size = k[i].size;
        snprintf(s.check, sizeof s.check, "%s", k[i].check);
        bool there = k[i].open(w->flags->seed);
        world_meet(w);
        if (there)
            repeat(&k[i], &s, w->flags->seconds / wanted);
        else
            sample_wrong(&s, "no memory for %lld bytes", (long long)k[i].size);
        k[i].close();
        line_sample(w, &s);
    }
    if (core)
        team_close(core);
    line_gather(w);
}
