/* Floating-point numbers on one core. */
#include "probe.h"
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* ---- Fourier transforms --------------------------------------------------- */

enum { POINTS = 1 << 12, BITS = 12, TIMES = 32 };
static struct {
    double complex *in, *mid, *out, *root;
} fft;

static bool fft_open(uint64_t seed)
{
    fft.in = malloc(4 * POINTS * sizeof *fft.in);
    if (!fft.in)
        return false;
    fft.mid = fft.in + POINTS;
    fft.out = fft.mid + POINTS;
    fft.root = fft.out + POINTS;
    for (int i = 0; i < POINTS; i++) {
        double re = unit(&seed), im = unit(&seed);
        fft.in[i] = re + im * I;
        fft.root[i] = cexp(-2 * pi * I * i / POINTS);
    }
    return true;
}

/* transform is Cooley and Tukey's, radix 2, decimation in time; sign -1 is forward. */
static void transform(double complex *v, int sign)
{
    for (unsigned i = 0; i < POINTS; i++) {
        unsigned j = 0;
        for (unsigned b = 0; b < BITS; b++)
            j |= ((i >> b) & 1) << (BITS - 1 - b);
        if (i < j) {
            double complex x = v[i];
            v[i] = v[j];
            v[j] = x;
        }
    }
    for (int half = 1; half < POINTS; half *= 2) {
        int step = POINTS / (2 * half);
        for (int start = 0; start < POINTS; start += 2 * half) {
            for (int k = 0; k < half; k++) {
                double complex r = fft.root[k * step];
                double wr = creal(r), wi = sign < 0 ? cimag(r) : -cimag(r);
                double complex y = v[start + k + half], x = v[start + k];
                double re = creal(y) * wr - cimag(y) * wi, im = creal(y) * wi + cimag(y) * wr;
                v[start + k] = (creal(x) + re) + (cimag(x) + im) * I;
                v[start + k + half] = (creal(x) - re) + (cimag(x) - im) * I;
            }
        }
    }
}

static double fft_run(void)
{
    memcpy(fft.out, fft.in, POINTS * sizeof *fft.in);
    for (int t = 0; t < TIMES; t++) {
        transform(fft.out, -1);
        if (t == 0)
            memcpy(fft.mid, fft.out, POINTS * sizeof *fft.mid);
        transform(fft.out, 1);
        for (int i = 0; i < POINTS; i++)
            fft.out[i] /= POINTS;
    }
    return 2.0 * TIMES * 5 * POINTS * BITS;
}

static bool fft_right(void)
{
    for (int k = 1; k < POINTS; k += POINTS / 4 + 1) { /* some points by the definition */
        double complex sum = 0;
        for (int i = 0; i < POINTS; i++)
            sum += fft.in[i] * fft.root[(int)((int64_t)i * k % POINTS)];
        if (!(cabs(sum - fft.mid[k]) < 1e-9))
            return false;
    }
    for (int i = 0; i < POINTS; i++)
        if (!(cabs(fft.out[i] - fft.in[i]) < 1e-10))
            return false;
    return true;
}

static void fft_close(void)
{
    free(fft.in);
}

/* ---- linear equations ------------------------------------------------------ */

enum { ROWS = 192, SOLVES = 4 };
static struct {
    double (*a)[ROWS], (*lu)[ROWS], x[ROWS], b[ROWS];
} lu;

static bool lu_open(uint64_t seed)
{
    lu.a = malloc(2 * sizeof(double[ROWS][ROWS]));
    if (!lu.a)
        return false;
    lu.lu = lu.a + ROWS;
    for (int i = 0; i < ROWS; i++) {
        lu.b[i] = unit(&seed);
        for (int j = 0; j < ROWS; j++)
            lu.a[i][j] = unit(&seed);
    }
    return true;
}

static void lu_solve(void)
{
    memcpy(lu.lu, lu.a, sizeof(double[ROWS][ROWS]));
    memcpy(lu.x, lu.b, sizeof lu.x);
    for (int k = 0; k < ROWS; k++) {
        int p = k;
        for (int i = k + 1; i < ROWS; i++)
            if (fabs(lu.lu[i][k]) > fabs(lu.lu[p][k]))
                p = i;
        if (p != k) {
            double x = lu.x[k];
            lu.x[k] = lu.x[p], lu.x[p] = x;
            for (int j = 0; j < ROWS; j++)
                x = lu.lu[k][j], lu.lu[k][j] = lu.lu[p][j], lu.lu[p][j] = x;
        }
        for (int i = k + 1; i < ROWS; i++) {
            double f = lu.lu[i][k] / lu.lu[k][k];
            for (int j = k + 1; j < ROWS; j++)
                lu.lu[i][j] -= f * lu.lu[k][j];
            lu.x[i] -= f * lu.x[k];
        }
    }
    for (int i = ROWS - 1; i >= 0; i--) {
        for (int j = i + 1; j < ROWS; j++)
            lu.x[i] -= lu.lu[i][j] * lu.x[j];
        lu.x[i] /= lu.lu[i][i];
    }
}

static double lu_run(void)
{
    for (int i = 0; i < SOLVES; i++)
        lu_solve();
    return SOLVES * (2.0 / 3 * ROWS * ROWS * ROWS + 2.0 * ROWS * ROWS);
}

static bool lu_right(void)
{
    double most = 0, size = 0;
    for (int i = 0; i < ROWS; i++) {
        double sum = -lu.b[i];
        for (int j = 0; j < ROWS; j++)
            sum += lu.a[i][j] * lu.x[j];
        most = fmax(most, fabs(sum));
        size = fmax(size, fabs(lu.x[i]));
    }
    return most <= 1e-11 * ROWS * (1 + size) && size > 0;
}

static void lu_close(void)
{
    free(lu.a);
}

/* ---- heat -------------------------------------------------------------------- */

enum { SIDE = 257, STEPS = 100 }; /* an even number of steps: the result is in now */
static struct {
    double (*now)[SIDE], (*next)[SIDE], (*first)[SIDE];
} heat;

static bool heat_open(uint64_t seed)
{
    (void)seed;
    heat.now = malloc(3 * sizeof(double[SIDE][SIDE]));
    if (!heat.now)
        return false;
    heat.next = heat.now + SIDE;
    heat.first = heat.next + SIDE;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            heat.first[i][j] = sin(pi * i / (SIDE - 1)) * sin(2 * pi * j / (SIDE - 1));
    return true;
}

static double heat_run(void)
{
    double (*a)[SIDE] = heat.now, (*b)[SIDE] = heat.next;
    memcpy(a, heat.first, sizeof(double[SIDE][SIDE]));
    memcpy(b, heat.first, sizeof(double[SIDE][SIDE])); /* its border stays */
    for (int t = 0; t < STEPS; t++) {
        for (int i = 1; i < SIDE - 1; i++)
            for (int j = 1; j < SIDE - 1; j++)
                b[i][j] = a[i][j] + 0.2 * (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1] - 4 * a[i][j]);
        double (*x)[SIDE] = a;
        a = b;
        b = x;
    }
    return 7.0 * STEPS * (SIDE - 2) * (SIDE - 2);
}

static bool heat_right(void)
{
    /* The wave is an eigenvector of the stencil: each step shrinks it by the same. */
    double s1 = sin(pi / (2 * (SIDE - 1))), s2 = sin(pi / (SIDE - 1));
    double shrink = pow(1 - 0.8 * (s1 * s1 + s2 * s2), STEPS);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            if (!(fabs(heat.now[i][j] - shrink * heat.first[i][j]) < 1e-12))
                return false;
        }
    return true;
}

static void heat_close(void)
{
    free(heat.now);
}

/* ---- bodies ---------------------------------------------------------------------- */

enum { BODIES = 128, KICKS = 20 };
static struct {
    double start[BODIES][3], x[BODIES][3], v[BODIES][3], f[BODIES][3], far;
} sky;

static bool sky_open(uint64_t seed)
{
    for (int i = 0; i < BODIES; i++)
        for (int d = 0; d < 3; d++)
            sky.start[i][d] = unit(&seed);
    return true;
}

static void forces(void)
{
    memset(sky.f, 0, sizeof sky.f);
    for (int i = 0; i < BODIES; i++)
        for (int j = 0; j < i; j++) {
            double d[3], r2 = 0.01; /* softened: close pairs would make it chaotic */
            for (int k = 0; k < 3; k++) {
                d[k] = sky.x[j][k] - sky.x[i][k];
                r2 += d[k] * d[k];
            }
            double g = 1 / (r2 * sqrt(r2));
            for (int k = 0; k < 3; k++) {
                sky.f[i][k] += g * d[k];
                sky.f[j][k] -= g * d[k];
            }
        }
}

/* fly goes some steps of the leapfrog, which can be gone back. */
static void fly(double dt)
{
    forces();
    for (int t = 0; t < KICKS; t++) {
        for (int i = 0; i < BODIES; i++)
            for (int k = 0; k < 3; k++) {
                sky.v[i][k] += 0.5 * dt * sky.f[i][k];
                sky.x[i][k] += dt * sky.v[i][k];
            }
        forces();
        for (int i = 0; i < BODIES; i++)
            for (int k = 0; k < 3; k++)
                sky.v[i][k] += 0.5 * dt * sky.f[i][k];
    }
}

static double sky_run(void)
{
    memcpy(sky.x, sky.start, sizeof sky.x);
    memset(sky.v, 0, sizeof sky.v);
    fly(1e-3);
    sky.far = 0;
    for (int i = 0; i < BODIES; i++)
        for (int k = 0; k < 3; k++)
            sky.far = fmax(sky.far, fabs(sky.x[i][k] - sky.start[i][k]));
    fly(-1e-3);
    return 2.0 * (KICKS + 1) * (BODIES * (BODIES - 1) / 2); /* interactions */
}

static bool sky_right(void)
{
    double off = 0, sum = 0;
    for (int k = 0; k < 3; k++) {
        double p = 0;
        for (int i = 0; i < BODIES; i++) {
            off = fmax(off, fabs(sky.x[i][k] - sky.start[i][k]));
            p += sky.v[i][k];
        }
        sum = fmax(sum, fabs(p));
    }
    return sky.far > 1e-3 && off < 1e-9 && sum < 1e-9;
}

static void sky_close(void)
{
}

void core_fp_run(const struct world *w)
{
    static const struct kernel all[] = {
        {"core.fp.fft", "op/s", 4 * POINTS * sizeof(double complex), fft_open, fft_run, fft_right,
         "some points by the definition, and back again", fft_close},
        {"core.fp.lu", "op/s", 2 * sizeof(double[ROWS][ROWS]), lu_open, lu_run, lu_right, "A x - b is small", lu_close},
        {"core.fp.heat", "op/s", 3 * sizeof(double[SIDE][SIDE]), heat_open, heat_run, heat_right,
         "an eigenvector shrinks as its eigenvalue says", heat_close},
        {"core.fp.bodies", "op/s", sizeof sky, sky_open, sky_run, sky_right,
         "flown back they are where they were; momentum is kept", sky_close},
    };
    kernels_run(w, "core.fp", all, sizeof all / sizeof all[0]);
}
