/* lattice: quarks on a lattice of gluons, by BiCGSTAB on its even points. */
#include "lattice.h"
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct asked_for {
    const char *size;
    double kappa, tol, rough;
    int64_t seed, most;
    bool json;
};

/* ---- vectors of one kind of points. Lanes without a point are zero everywhere. ---- */

/* dot is the sum of conj(a) * b over my points. Real and imaginary parts are rows apart. */
static double complex dot(const struct lattice *l, const double *restrict a, const double *restrict b)
{
    double re = 0, im = 0;
    size_t p = (size_t)l->padded, all = lattice_numbers(l);
    for (size_t i = 0; i < all; i += 2 * p) {
        vec r = {0}, m = {0};
        for (size_t h = i; h < i + p; h += LANES) {
            vec ar, ai, br, bi;
            memcpy(&ar, a + h, sizeof ar);
            memcpy(&ai, a + h + p, sizeof ai);
            memcpy(&br, b + h, sizeof br);
            memcpy(&bi, b + h + p, sizeof bi);
            r += ar * br + ai * bi;
            m += ar * bi - ai * br;
        }
        re += r[0] + r[1] + r[2] + r[3];
        im += m[0] + m[1] + m[2] + m[3];
    }
    return re + I * im;
}

/* together adds up what all ranks have of n numbers. */
static void together(double complex *v, int n)
{
    MPI_Allreduce(MPI_IN_PLACE, v, 2 * n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static double complex whole_dot(const struct lattice *l, const double *a, const double *b)
{
    double complex d = dot(l, a, b);
    together(&d, 1);
    return d;
}

/* axpy adds s * x to y. */
static void axpy(const struct lattice *l, double complex s, const double *restrict x, double *restrict y)
{
    size_t p = (size_t)l->padded, all = lattice_numbers(l);
    double re = creal(s), im = cimag(s);
    for (size_t i = 0; i < all; i += 2 * p)
        for (size_t h = i; h < i + p; h++) {
            double a = x[h], b = x[h + p];
            y[h] += re * a - im * b;
            y[h + p] += re * b + im * a;
        }
}

/* xpay makes y = x + s * y. */
static void xpay(const struct lattice *l, const double *restrict x, double complex s, double *restrict y)
{
    size_t p = (size_t)l->padded, all = lattice_numbers(l);
    double re = creal(s), im = cimag(s);
    for (size_t i = 0; i < all; i += 2 * p)
        for (size_t h = i; h < i + p; h++) {
            double a = y[h], b = y[h + p];
            y[h] = x[h] + re * a - im * b;
            y[h + p] = x[h + p] + re * b + im * a;
        }
}

static double *field(const struct lattice *l)
{
    return room(lattice_numbers(l) * sizeof(double));
}

static void copy(const struct lattice *l, double *to, const double *from)
{
    memcpy(to, from, lattice_numbers(l) * sizeof *to);
}

/* ---- the solver ------------------------------------------------------------------- */

struct krylov {
    double *r, *shadow, *p, *v, *t;
};

static struct krylov krylov_open(const struct lattice *l)
{
    return (struct krylov){field(l), field(l), field(l), field(l), field(l)};
}

static void krylov_close(struct krylov *k)
{
    free(k->r);
    free(k->shadow);
    free(k->p);
    free(k->v);
    free(k->t);
}

/* bicgstab solves dirac_even x = b from x = 0 and returns how many iterations it took. */
static int64_t bicgstab(struct lattice *l, struct krylov *k, double kappa, double tol, int64_t most, const double *b,
                        double *x)
{
    memset(x, 0, lattice_numbers(l) * sizeof *x);
    copy(l, k->r, b);
    copy(l, k->shadow, b);
    copy(l, k->p, b);
    double complex rho = whole_dot(l, b, b);
    double goal = tol * tol * creal(rho);
    int64_t i = 0;
    for (bool done = creal(rho) <= goal; !done && i < most; i++) {
        dirac_even(l, kappa, k->v, k->p);
        double complex alpha = rho / whole_dot(l, k->shadow, k->v);
        axpy(l, -alpha, k->v, k->r);
        dirac_even(l, kappa, k->t, k->r);
        double complex d[2] = {dot(l, k->t, k->r), dot(l, k->t, k->t)};
        together(d, 2);
        double complex omega = d[0] / creal(d[1]);
        axpy(l, alpha, k->p, x);
        axpy(l, omega, k->r, x);
        axpy(l, -omega, k->t, k->r);
        d[0] = dot(l, k->shadow, k->r);
        d[1] = dot(l, k->r, k->r);
        together(d, 2);
        double complex beta = d[0] / rho * (alpha / omega);
        rho = d[0];
        axpy(l, -omega, k->v, k->p);
        xpay(l, k->r, beta, k->p);
        /* A breakdown ends the search: the true residual then says what it is worth. */
        done = !(creal(d[1]) > goal);
    }
    return i;
}

/* What an iteration does to an even point, and what it takes to get there and back. */
static double operations(const struct lattice *l, int64_t iterations)
{
    double points = 0.5 * l->size[0] * l->size[1] * l->size[2] * l->size[3];
    double even = 2 * 1320 + 48, vectors = 6 * 96 + 3 * 96 + 2 * 48;
    return points * ((double)iterations * (2 * even + vectors) + 2 * (1320 + 48) + 48);
}

/* ---- the whole problem ------------------------------------------------------------- */

static struct pair pair_open(const struct lattice *l)
{
    return (struct pair){{field(l), field(l)}};
}

static void pair_close(struct pair *p)
{
    free(p->kind[EVEN]);
    free(p->kind[ODD]);
}

static void pair_fill(const struct lattice *l, struct pair p, int salt)
{
    for (int kind = 0; kind < 2; kind++)
        for (int t = 0; t < l->slices; t++)
            for (int z = 0; z < l->size[2]; z++)
                for (int y = 0; y < l->size[1]; y++)
                    for (int h = 0; h < l->half; h++) {
                        const int at[4] = {2 * h + lattice_shift(l, kind, t, z, y), y, z, t + l->first};
                        double *v = p.kind[kind] + lattice_row(l, t, z, y) * SPINOR * (size_t)l->padded + h;
                        for (int i = 0; i < SPINOR; i++)
                            v[i * l->padded] = links_source(l, at, salt * SPINOR + i);
                    }
}

static double complex pair_dot(const struct lattice *l, struct pair a, struct pair b)
{
    return whole_dot(l, a.kind[EVEN], b.kind[EVEN]) + whole_dot(l, a.kind[ODD], b.kind[ODD]);
}

static double pair_norm(const struct lattice *l, struct pair a)
{
    return sqrt(creal(pair_dot(l, a, a)));
}

/* fast_apply is the whole operator made of hops. */
static void fast_apply(struct lattice *l, double kappa, struct pair out, struct pair in)
{
    dirac_hop(l, EVEN, out.kind[EVEN], in.kind[EVEN], -kappa, in.kind[ODD]);
    dirac_hop(l, ODD, out.kind[ODD], in.kind[ODD], -kappa, in.kind[EVEN]);
}

/* distance is |a - b| / |b|; a is used up. */
static double distance(const struct lattice *l, struct pair a, struct pair b)
{
    for (int kind = 0; kind < 2; kind++)
        axpy(l, -1, b.kind[kind], a.kind[kind]);
    return pair_norm(l, a) / pair_norm(l, b);
}

/* examine checks the operator before it is used. */
static void examine(struct lattice *l, double kappa, struct report *r)
{
    struct pair a = pair_open(l), b = pair_open(l), ma = pair_open(l), mb = pair_open(l);
    pair_fill(l, a, 1);
    pair_fill(l, b, 2);
    fast_apply(l, kappa, mb, b);
    plain_gamma5(l, a);
    fast_apply(l, kappa, ma, a);
    plain_gamma5(l, a);
    plain_gamma5(l, ma);
    double complex left = pair_dot(l, a, mb), right = pair_dot(l, ma, b);
    double size = pair_norm(l, a) * pair_norm(l, mb);
    report_below(r, "links not unitary", links_broken(l), 1e-13);
    report_below(r, "gamma5 asymmetry", cabs(left - right) / size, 1e-13);
    plain_apply(l, kappa, ma, b);
    report_below(r, "operator differs", distance(l, mb, ma), 1e-13);
    pair_close(&a);
    pair_close(&b);
    pair_close(&ma);
    pair_close(&mb);
}

struct result {
    double seconds;
    int64_t iterations;
};

static struct result solve(struct lattice *l, const struct asked_for *q, struct pair b, struct pair x)
{
    struct krylov k = krylov_open(l);
    double *even = field(l);
    struct result r;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    dirac_hop(l, EVEN, even, b.kind[EVEN], q->kappa, b.kind[ODD]);
    /* The residual of all points is that of the even ones, but less than b is there. */
    double shrink = sqrt(creal(pair_dot(l, b, b)) / creal(whole_dot(l, even, even)));
    r.iterations = bicgstab(l, &k, q->kappa, 0.5 * q->tol * fmin(shrink, 1), q->most, even, x.kind[EVEN]);
    dirac_hop(l, ODD, x.kind[ODD], b.kind[ODD], q->kappa, x.kind[EVEN]);
    r.seconds = world_most(MPI_Wtime() - start);
    free(even);
    krylov_close(&k);
    return r;
}

static int lattice(struct lattice *l, const struct asked_for *q, const struct world *w)
{
    struct report r = {.program = "lattice", .size = {l->size[0], l->size[1], l->size[2], l->size[3]}, .sides = 4};
    lattice_open(l, w);
    examine(l, q->kappa, &r);
    struct pair b = pair_open(l), x = pair_open(l), again = pair_open(l);
    pair_fill(l, b, 0);
    struct result s = solve(l, q, b, x);
    plain_apply(l, q->kappa, again, x);
    report_below(&r, "true residual", distance(l, again, b), q->tol);
    r.iterations = s.iterations;
    r.seconds = s.seconds;
    r.operations = operations(l, s.iterations);
    report_figure(&r, "kappa", "", q->kappa);
    report_figure(&r, "gflops", "Gflop/s", r.operations / r.seconds * 1e-9);
    report_figure(&r, "solution_norm", "", pair_norm(l, x));
    int status = report_print(&r, w, q->json);
    pair_close(&b);
    pair_close(&x);
    pair_close(&again);
    lattice_close(l);
    return status;
}

/* sides reads "8x8x8x16"; NULL, or what is wrong with it. */
static const char *sides(const char *text, int size[4])
{
    char rest;
    if (sscanf(text, "%5dx%5dx%5dx%5d%c", &size[0], &size[1], &size[2], &size[3], &rest) != 4)
        return "give four sides, like 8x8x8x16";
    for (int i = 0; i < 4; i++)
        if (size[i] < 2 || size[i] % 2 != 0 || size[i] > 256)
            return "each side must be even, 2 to 256";
    return NULL;
}

int main(int argc, char **argv)
{
    struct world w = world_open(&argc, &argv);
    struct asked_for q = {.size = "8x8x8x16", .kappa = 0.12, .tol = 1e-8, .rough = 0.3, .seed = 1, .most = 5000};
    const struct option list[] = {
        {"size", "XxYxZxT", "sides of the lattice; ranks share T (8x8x8x16)", OPTION_TEXT, &q.size},
        {"kappa", "K", "strength of the hops (0.12)", OPTION_REAL, &q.kappa},
        {"tol", "E", "residual, relative, at which it is solved (1e-8)", OPTION_REAL, &q.tol},
        {"rough", "R", "how far from one the links are (0.3)", OPTION_REAL, &q.rough},
        {"most", "N", "iterations after which it gives up (5000)", OPTION_NATURAL, &q.most},
        {"seed", "N", "other links and sources for another seed (1)", OPTION_NATURAL, &q.seed},
        {"json", NULL, "print one JSON object", OPTION_FLAG, &q.json},
        {0},
    };
    struct lattice l = {0};
    enum asked asked = options_read(&w, "lattice", "quarks on a lattice of gluons (BiCGSTAB)", list, argc, argv);
    if (asked != ASKED_RUN)
        return world_close(asked == ASKED_HELP ? EXIT_RIGHT : EXIT_USAGE);
    const char *wrong = sides(q.size, l.size);
    if (wrong)
        return world_close(usage(&w, "lattice", "--size %s: %s", q.size, wrong));
    if (l.size[3] % w.ranks != 0)
        return world_close(usage(&w, "lattice", "%d ranks cannot share %d slices; use a divisor of %d, or another T",
                                 w.ranks, l.size[3], l.size[3]));
    if (q.tol < 1e-14 || q.tol >= 1)
        return world_close(usage(&w, "lattice", "--tol %g: give 1e-14 to less than 1", q.tol));
    if (q.rough < 0 || q.rough > 10 || fabs(q.kappa) > 10)
        return world_close(usage(&w, "lattice", "--rough must be 0 to 10, and --kappa -10 to 10"));
    l.seed = (uint64_t)q.seed;
    l.rough = q.rough;
    return world_close(lattice(&l, &q, &w));
}
