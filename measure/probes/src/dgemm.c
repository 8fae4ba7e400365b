/* C = A B + C in the BLAS that is loaded. The result is compared with a random
 * vector (Freivalds): C r against A (B r) + C' r takes n^2, not n^3. */
#include "probe.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct problem {
    int n, turn;
    double *a, *b, *c;
    double *r, *before, *br, *abr, *after;
};

static bool problem_open(struct problem *p, int n, uint64_t seed)
{
    size_t nn = (size_t)n * (size_t)n;
    *p = (struct problem){.n = n};
    p->a = malloc((3 * nn + 5 * (size_t)n) * sizeof *p->a);
    if (!p->a)
        return false;
    p->b = p->a + nn;
    p->c = p->b + nn;
    p->r = p->c + nn;
    p->before = p->r + n;
    p->br = p->before + n;
    p->abr = p->br + n;
    p->after = p->abr + n;
    for (size_t i = 0; i < 2 * nn; i++) /* and C in prepare */
        p->a[i] = unit(&seed);
    return true;
}

/* apply is y = M x, column by column as BLAS keeps matrices. */
static void apply(int n, const double *m, const double *x, double *y)
{
    memset(y, 0, (size_t)n * sizeof *y);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            y[i] += m[(size_t)j * (size_t)n + (size_t)i] * x[j];
}

/* Sums that grew for ever would round too coarsely to be compared. */
enum { FRESH = 16 };

static void prepare(struct problem *p, uint64_t *seed)
{
    if (p->turn++ % FRESH == 0)
        for (size_t i = 0; i < (size_t)p->n * (size_t)p->n; i++)
            p->c[i] = unit(seed);
    for (int i = 0; i < p->n; i++)
        p->r[i] = next64(seed) & 1 ? 1 : -1;
    apply(p->n, p->c, p->r, p->before);
}

static double multiply(struct problem *p)
{
    const double one = 1;
    double start = now();
    blas_dgemm()("N", "N", &p->n, &p->n, &p->n, &one, p->a, &p->n, p->b, &p->n, &one, p->c, &p->n);
    double took = now() - start;
#ifdef BREAK_DGEMM
    p->c[(size_t)p->n * (size_t)p->n / 2] += 0.01; /* one wrong element */
#endif
    return took;
}

static bool right(struct problem *p)
{
    apply(p->n, p->b, p->r, p->br);
    apply(p->n, p->a, p->br, p->abr);
    apply(p->n, p->c, p->r, p->after);
    /* Elements of A and B are below 1, sums of n products below n: the rounding
     * of n such sums stays far below eps n^2 sqrt(n), a wrong element does not. */
    double n = p->n, most = 0, allowed = DBL_EPSILON * n * n * sqrt(n);
    for (int i = 0; i < p->n; i++) {
        double off = fabs(p->after[i] - p->before[i] - p->abr[i]);
        most = off > most || off != off ? off : most;
    }
    return most <= allowed;
}

/* edge gives each thread the same work: n^3 grows with their number. */
static int edge(int threads)
{
    return (int)(1024 * cbrt(threads) / 64 + 0.5) * 64;
}

static void measure(const struct world *w, int threads, double budget)
{
    struct sample s = sample_of(w, "dgemm", "flop/s");
    struct problem p;
    struct times t;
    uint64_t seed = w->flags->seed + 77;
    int n = edge(threads);
    bool told = blas_threads(threads);
    s.threads = told ? threads : 1;
    s.size = 3 * (int64_t)sizeof(double) * n * n;
    snprintf(s.check, sizeof s.check, "random vector (Freivalds) in every repetition%s",
             told ? "" : "; this BLAS cannot be told how many threads");
    times_open(&t);
    if (!problem_open(&p, n, seed))
        sample_wrong(&s, "no memory for matrices of %d x %d", n, n);
    if (s.ok) {
        prepare(&p, &seed);
        multiply(&p); /* threads awake, pages touched, clock up */
        if (!right(&p))
            sample_wrong(&s, "the product is wrong in the warm-up (random vector)");
    }
    world_meet(w);
    for (double end = now() + budget; s.ok;) {
        prepare(&p, &seed);
        double took = multiply(&p);
        if (!right(&p))
            sample_wrong(&s, "the product is wrong in repetition %zu (random vector)", t.n);
        else if (!times_add(&t, took))
            break;
        if (now() >= end)
            break;
    }
    sample_times(&s, &t, 2.0 * n * n * n);
    times_close(&t);
    free(p.a);
    line_sample(w, &s);
}

void dgemm_run(const struct world *w)
{
    const struct list *l = &w->flags->threads;
    if (!metric_wanted(w->flags, "dgemm"))
        return;
    for (int i = 0, most = world_most(l->n); i < most; i++) {
        if (i < l->n)
            measure(w, (int)l->v[i], w->flags->seconds / l->n);
        else
            world_meet(w);
    }
    line_gather(w);
}
