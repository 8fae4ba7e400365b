/* Runs the mixes of arith.h on one core at each level. Results are compared with
 * those of an interpreter of the same steps, in longer numbers, which counts the
 * operations, too. The time of the empty loop is subtracted. */
#include "arith.h"
#include "probe.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ELEMENTS = 1024, LEVELS = 5, LEAST_NANOSECONDS = 100000 };

struct step {
    char op;    /* of the variable with x, or of z or w with the variable */
    char then;  /* + or - c */
    char var;   /* y or u */
    double c;
};

#define MA(v, c) {'*', '+', #v[0], c},
#define MS(v, c) {'*', '-', #v[0], c},
#define DA(v, c) {'/', '+', #v[0], c},
#define DS(v, c) {'/', '-', #v[0], c},
#define SA(v) {'+', 0, #v[0], 0},
#define SS(v) {'-', 0, #v[0], 0},
#define M(v) {'w', 0, #v[0], 0},

static const struct step steps_1[] = {MIX_1}, steps_2[] = {MIX_2}, steps_3[] = {MIX_3}, steps_4[] = {MIX_4};

#define COUNT(a) (int)(sizeof a / sizeof a[0])

/* of each mix: its steps, and how many additions, subtractions, multiplications and
 * divisions they must be. */
static const struct {
    const struct step *steps;
    int n, shares[4];
} mixes[ARITH_MIXES] = {
    {steps_1, COUNT(steps_1), {40, 23, 27, 10}},
    {steps_2, COUNT(steps_2), {38, 9, 43, 9}},
    {steps_3, COUNT(steps_3), {43, 3, 51, 3}},
    {steps_4, COUNT(steps_4), {43, 2, 55, 0}},
};

static const char *const level_names[LEVELS] = {"O0", "register", "O2", "O3", "fast"};

static struct {
    double *in, *out;
    float *in_float, *out_float;
    long double *want; /* by mix */
    int operations[ARITH_MIXES];
} arith;

/* interpret calculates one element of a mix and counts what it takes. */
static long double interpret(int mix, long double x, int counts[4])
{
    long double y = x, u = x, z = x, w = x;
    counts[0] = 2; /* y + z + w */
    counts[1] = counts[2] = counts[3] = 0;
    for (int i = 0; i < mixes[mix].n; i++) {
        const struct step *s = &mixes[mix].steps[i];
        long double *v = s->var == 'y' ? &y : &u, c = s->then == '-' ? -(long double)s->c : (long double)s->c;
        switch (s->op) {
        case '*':
            *v = *v * x + c;
            counts[2]++;
            break;
        case '/':
            *v = s->then == '-' ? (long double)s->c - x / *v : c + x / *v;
            counts[3]++;
            break;
        case '+':
            z += *v;
            counts[0]++;
            break;
        case '-':
            z -= *v;
            counts[1]++;
            break;
        case 'w':
            w *= *v;
            counts[2]++;
            break;
        }
        if (s->then)
            counts[s->then == '-']++;
    }
    return y + z + w;
}

static bool arith_open(uint64_t seed)
{
    arith.in = malloc(2 * ELEMENTS * sizeof *arith.in);
    arith.in_float = malloc(2 * ELEMENTS * sizeof *arith.in_float);
    arith.want = malloc(ARITH_MIXES * ELEMENTS * sizeof *arith.want);
    if (!arith.in || !arith.in_float || !arith.want)
        return false;
    arith.out = arith.in + ELEMENTS;
    arith.out_float = arith.in_float + ELEMENTS;
    for (int i = 0; i < ELEMENTS; i++) {
        arith.in_float[i] = (float)(0.25 * unit(&seed)); /* both have the same */
        arith.in[i] = (double)arith.in_float[i];
    }
    for (int m = 0; m < ARITH_MIXES; m++) {
        int counts[4] = {0};
        for (int i = 0; i < ELEMENTS; i++)
            arith.want[m * ELEMENTS + i] = interpret(m, (long double)arith.in[i], counts);
        arith.operations[m] = 0;
        for (int k = 0; k < 4; k++) {
            if (counts[k] != mixes[m].shares[k])
                return false; /* seen by make check: a mix is not what it says */
            arith.operations[m] += counts[k];
        }
    }
    return true;
}

static void arith_close(void)
{
    free(arith.in);
    free(arith.in_float);
    free(arith.want);
    arith.in = NULL;
    arith.in_float = NULL;
    arith.want = NULL;
}

/* levels are what this processor can run, the last one for the widest vectors that
 * it has; how says for which. */
static void levels(const struct arith_level *out[LEVELS], const char **how)
{
    out[0] = &arith_O0;
    out[1] = &arith_register;
    out[2] = &arith_O2;
    out[3] = &arith_O3;
    out[4] = &arith_fast;
    *how = "";
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
        out[4] = &arith_avx512;
        *how = " for AVX-512";
    } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        out[4] = &arith_avx2;
        *how = " for AVX2 and FMA";
    }
#endif
}

/* passes goes so often through all elements; mix -1 is the empty loop. */
static double passes(const struct arith_level *l, int mix, bool single, int64_t n)
{
    double start = now();
    for (int64_t i = 0; i < n; i++)
        if (single)
            (mix < 0 ? l->loop_float : l->floats[mix])(arith.in_float, arith.out_float, ELEMENTS);
        else
            (mix < 0 ? l->loop_double : l->doubles[mix])(arith.in, arith.out, ELEMENTS);
    return now() - start;
}

/* right compares every element. Steps of a mix round some hundred times, and the
 * highest level may divide by multiplying. */
static bool right(int mix, bool single)
{
    bool ok = true;
#ifdef BREAK_ARITH
    arith.out[7] += 1e-3 * arith.out[7] + 1e-3;
    arith.out_float[7] += 1e-1F * arith.out_float[7] + 1e-1F;
#endif
    for (int i = 0; i < ELEMENTS; i++) {
        long double want = mix < 0 ? (long double)arith.in[i] : arith.want[mix * ELEMENTS + i];
        long double got = single ? (long double)arith.out_float[i] : (long double)arith.out[i];
        long double allowed = (single ? 1e-4L : 1e-12L) * (1 + fabsl(want));
        ok = ok && fabsl(got - want) <= allowed; /* not a number is not */
        arith.out[i] = NAN;
        arith.out_float[i] = NAN; /* what is not written again is found */
    }
    return ok;
}

/* enough is how many passes the clock can measure well. */
static int64_t enough(const struct arith_level *l, int mix, bool single)
{
    (void)passes(l, mix, single, 1);
    for (int64_t n = 1;; n *= 2)
        if (passes(l, mix, single, n) * 1e9 >= LEAST_NANOSECONDS || n >= (int64_t)1 << 30)
            return n;
}

static void repeat(struct sample *s, struct times *t, const struct arith_level *l, int mix, bool single, double empty, double budget)
{
    int64_t n = enough(l, mix, single);
    (void)right(mix, single);
    for (double end = now() + budget; s->ok;) {
        double took = passes(l, mix, single, n) / (double)n;
        /* Where others disturbed the empty loop more than the work, nothing is subtracted: that
         * is no wrong result. */
        if (took > empty)
            took -= empty;
        if (!right(mix, single))
            sample_wrong(s, "wrong in repetition %zu: an element differs from longer numbers", t->n);
        else if (!times_add(t, took))
            break;
        if (now() >= end)
            break;
    }
}

/* precision measures one level: the empty loop, and then the mixes. */
static void precision(const struct world *w, const struct arith_level *l, const char *level, const char *how, bool single, bool there, double budget)
{
    double empty = 0;
    for (int mix = -1; mix < ARITH_MIXES; mix++) {
        char name[32];
        if (mix < 0)
            snprintf(name, sizeof name, "arith.loop.%s.%s", single ? "float" : "double", level);
        else
            snprintf(name, sizeof name, "arith.%d.%s.%s", mix + 1, single ? "float" : "double", level);
        struct sample s = sample_of(w, name, mix < 0 ? "s" : "flop/s");
        struct times t;
        s.threads = 1;
        s.size = 2 * ELEMENTS * (int64_t)(single ? sizeof(float) : sizeof(double));
        times_open(&t);
        world_meet(w);
        if (there)
            repeat(&s, &t, l, mix, single, empty, budget);
        else
            sample_wrong(&s, "no memory for %d elements, or a mix has other shares than it says", ELEMENTS);
        double took = times_at(&t, 0.5);
        if (s.ok && mix < 0)
            snprintf(s.check, sizeof s.check, "every element; time for each of %d elements%s%s", ELEMENTS, *how ? "; compiled" : "", how);
        else if (s.ok)
            snprintf(s.check, sizeof s.check, "every element against longer numbers%s%s; the empty loop, %.2g %% of the time, is subtracted",
                     *how ? "; compiled" : "", how, 100 * empty / (took + empty));
        if (mix < 0)
            empty = took;
        for (size_t i = 0; mix < 0 && i < t.n; i++)
            t.v[i] /= ELEMENTS;
        if (mix < 0)
            t.sum /= ELEMENTS;
        sample_times(&s, &t, mix < 0 ? 0 : (double)arith.operations[mix] * ELEMENTS);
        times_close(&t);
        line_sample(w, &s);
    }
}

void arith_run(const struct world *w)
{
    const struct arith_level *all[LEVELS];
    const char *how;
    if (!metric_wanted(w->flags, "arith"))
        return;
    levels(all, &how);
    struct team *core = team_open(1); /* binds us to one processor */
    bool there = arith_open(w->flags->seed);
    for (int i = 0; i < LEVELS; i++)
        for (int single = 0; single < 2; single++)
            precision(w, all[i], level_names[i], i == LEVELS - 1 ? how : "", single, there, w->flags->seconds / (2 * LEVELS * (ARITH_MIXES + 1)));
    arith_close();
    if (core)
        team_close(core);
    line_gather(w);
}
