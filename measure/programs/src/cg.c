/* CG, conjugate gradient: inverse iteration for the smallest eigenvalue of a sparse
 * symmetric matrix. Each rank has some rows, and those places of every vector. The
 * vector that the matrix is multiplied with is gathered on all ranks each time. */
#include "cg.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 25 }; /* of the conjugate gradient in each iteration */

static const struct {
    struct cg_size size;
    int iterations;
    double zeta;
} table[CLASSES] = {
    {{1400, 7, 10}, 15, 8.5971775078648},
    {{7000, 8, 12}, 15, 10.362595087124},
    {{14000, 11, 20}, 15, 17.130235054029},
    {{75000, 13, 60}, 75, 22.712745482631},
    {{150000, 15, 110}, 75, 28.973605592845},
};

struct solver {
    struct matrix m;
    double *x, *z, *r, *q; /* the places of this rank */
    double *all;           /* what is multiplied next: all places */
    double *p;             /* those of this rank in it */
    int *count, *at;       /* by rank: how many places, from where */
};

static int needs(struct solver *s, int ranks, struct need *out)
{
    const size_t mine = sizeof(double) * (size_t)s->m.n;
    const struct need list[] = {
        {&s->x, mine}, {&s->z, mine}, {&s->r, mine}, {&s->q, mine},
        {&s->all, sizeof(double) * (size_t)s->m.rows},
        {&s->count, sizeof(int) * (size_t)ranks},
        {&s->at, sizeof(int) * (size_t)ranks},
    };
    memcpy(out, list, sizeof list);
    return sizeof list / sizeof *list;
}

static void solver_open(struct solver *s, struct world *w, const struct cg_size *size)
{
    struct need list[8];
    if (w->size > size->rows)
        stop(w, "class %c has %d rows, too few for %d ranks: use fewer, or a larger class", w->class, size->rows, w->size);
    matrix_open(&s->m, w, size);
    memory_get(w, list, needs(s, w->size, list));
    s->p = s->all + s->m.first;
    for (int r = 0; r < w->size; r++) {
        s->at[r] = (int)block_start(size->rows, w->size, r);
        s->count[r] = (int)block_start(size->rows, w->size, r + 1) - s->at[r];
    }
}

static void solver_close(struct solver *s, int ranks)
{
    struct need list[8];
    memory_free(list, needs(s, ranks, list));
    matrix_close(&s->m);
}

/* times is q = A p, and returns p q. */
static double times(struct solver *s)
{
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, s->all, s->count, s->at, MPI_DOUBLE, MPI_COMM_WORLD);
    return world_sum(matrix_times(&s->m, s->all, s->q));
}

/* begin sets z = 0, r = p = x and returns r r. */
static double begin(struct solver *s)
{
    double sum = 0;
    for (int i = 0; i < s->m.n; i++) {
        s->z[i] = 0;
        s->r[i] = s->p[i] = s->x[i];
        sum += s->x[i] * s->x[i];
    }
    return world_sum(sum);
}

/* step goes alpha along p and returns r r. */
static double step(const struct solver *s, double alpha)
{
    const double *restrict p = s->p, *restrict q = s->q;
    double *restrict z = s->z, *restrict r = s->r, sum = 0;
    for (int i = 0, n = s->m.n; i < n; i++) {
        z[i] += alpha * p[i];
        r[i] -= alpha * q[i];
        sum += r[i] * r[i];
    }
    return world_sum(sum);
}

static void turn(const struct solver *s, double beta)
{
    const double *restrict r = s->r;
    double *restrict p = s->p;
    for (int i = 0, n = s->m.n; i < n; i++)
        p[i] = r[i] + beta * p[i];
}

/* solve makes A z = x, nearly, and returns the norm of what is left. */
static double solve(struct solver *s)
{
    double rho = begin(s), left = 0;
    for (int i = 0; i < STEPS; i++) {
        double before = rho;
        rho = step(s, before / times(s));
        turn(s, rho / before);
    }
    memcpy(s->p, s->z, sizeof *s->p * (size_t)s->m.n);
    times(s);
    for (int i = 0; i < s->m.n; i++)
        left += (s->x[i] - s->q[i]) * (s->x[i] - s->q[i]);
    return sqrt(world_sum(left));
}

/* iterate returns the estimate of the eigenvalue, and makes a unit vector of z for the
 * next. Nothing hangs on what is left of the equation: the specification has it found
 * all the same. */
static double iterate(struct solver *s, double shift)
{
    double dot[2] = {0, 0};
    solve(s);
    for (int i = 0; i < s->m.n; i++) {
        dot[0] += s->x[i] * s->z[i];
        dot[1] += s->z[i] * s->z[i];
    }
    MPI_Allreduce(MPI_IN_PLACE, dot, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < s->m.n; i++)
        s->x[i] = s->z[i] / sqrt(dot[1]);
    return shift + 1 / dot[0];
}

static void ones(struct solver *s)
{
    for (int i = 0; i < s->m.n; i++)
        s->x[i] = 1;
}

static void run(struct world *w, enum class c, struct result *r)
{
    const struct cg_size *size = &table[c].size;
    const double row = (double)size->nonzeros * (size->nonzeros + 1); /* entries, as the specification estimates them */
    struct solver s;
    double zeta = 0;
    solver_open(&s, w, size);
    ones(&s);
    iterate(&s, size->shift); /* once in vain, so that caches and connections are there */
    ones(&s);
    double start = clock_start();
    for (int i = 0; i < table[c].iterations; i++)
        zeta = iterate(&s, size->shift);
    r->seconds = clock_stop(start);
    solver_close(&s, w->size);

    snprintf(r->size, sizeof r->size, "%d rows", size->rows);
    r->iterations = table[c].iterations;
    r->operations = 2.0 * r->iterations * size->rows * (3 + row + (int)STEPS * (5 + row) + 3);
    r->tolerance = 1e-10;
    result_value(r, zeta, table[c].zeta, "zeta");
}

const struct program program = {
    .name = "muster-cg",
    .title = "conjugate gradient",
    .ranks = "any number up to that of the rows",
    .run = run,
};
