/* FT, Fourier transform: a field that spreads by diffusion. It is transformed once; for
 * each time, frequencies fade as far as they have by then and are transformed back, and
 * some points are added up. */
#include "ft.h"
#include "ft_sums.h"
#include <math.h>
#include <stdio.h>

enum { POINTS = 1024 };

/* The diffusion times 4 pi^2. */
#define SPREAD (1e-6 * 4 * 3.14159265358979323846 * 3.14159265358979323846)

static const struct {
    int n[AXES], iterations;
} table[CLASSES] = {
    {{64, 64, 64}, 6}, {{128, 128, 32}, 6}, {{256, 256, 128}, 6}, {{512, 256, 256}, 20}, {{512, 512, 512}, 20},
};

static void set_tables(struct field *f)
{
    for (int a = X; a <= Z; a++)
        line_turns(f->turn[a], f->n[a]);
}

/* set_field gives each point two random numbers, in the order of the points. */
static void set_field(struct field *f)
{
    const int64_t plane = (int64_t)f->n[X] * f->n[Y];
    uint64_t state = random_skip(SEED, (uint64_t)(2 * plane * f->z));
    random_fill(&state, f->b, (size_t)(2 * plane * f->nz));
}

/* set_fade: what is left of a wave is a product over the axes. */
static void set_fade(struct field *f, int time)
{
    for (int a = X; a <= Z; a++)
        for (int j = 0, n = f->n[a]; j < n; j++) {
            double k = j < n / 2 ? j : j - n;
            f->fade[a][j] = exp(-SPREAD * time * k * k);
        }
}

/* add_up is this rank's part of the sum over points all over the field. */
static void add_up(const struct field *f, const double *field, double sum[2])
{
    sum[0] = sum[1] = 0;
    for (int j = 1; j <= POINTS; j++) {
        int x = j % f->n[X], y = 3 * j % f->n[Y], z = 5 * j % f->n[Z] - f->z;
        if (z < 0 || z >= f->nz)
            continue;
        const double *point = field + 2 * (((ptrdiff_t)z * f->n[Y] + y) * f->n[X] + x);
        sum[0] += point[0];
        sum[1] += point[1];
    }
}

static void solve(struct field *f, int iterations, double sum[][2])
{
    set_tables(f);
    set_field(f);
    transform_forward(f);
    for (int i = 0; i < iterations; i++) {
        set_fade(f, i + 1);
        add_up(f, transform_back(f), sum[i]);
    }
    MPI_Allreduce(MPI_IN_PLACE, sum, 2 * iterations, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void run(struct world *w, enum class c, struct result *r)
{
    const int *n = table[c].n, iterations = table[c].iterations;
    const double points = (double)n[X] * n[Y] * n[Z];
    double sum[MOST_TIMES][2] = {{0}};
    struct field f;
    field_open(&f, w, n);
    solve(&f, 1, sum); /* once in vain, so that caches and connections are there */
    double start = clock_start();
    solve(&f, iterations, sum);
    r->seconds = clock_stop(start);
    field_close(&f);

    snprintf(r->size, sizeof r->size, "%d x %d x %d points", n[X], n[Y], n[Z]);
    r->iterations = iterations;
    /* The operations of transforms of complex numbers, as the specification counts them. */
    r->operations = points * (14.8157 + 7.19641 * log(points) + (5.23518 + 7.21113 * log(points)) * iterations);
    r->tolerance = 1e-12;
    for (int i = 0; i < iterations; i++) {
        result_value(r, sum[i][0] / points, ft_sums[c][i][0], "time %d, real part", i + 1);
        result_value(r, sum[i][1] / points, ft_sums[c][i][1], "time %d, imaginary part", i + 1);
    }
}

const struct program program = {
    .name = "muster-ft",
    .title = "Fourier transform",
    .ranks = "any number up to that of the planes: 64 in class S, 32 in W, 128 in A, 256 in B, 512 in C",
    .run = run,
};
