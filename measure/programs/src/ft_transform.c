/* Transforms of the whole field. Two axes are local to a rank; for the third, rows of x
 * go to the ranks that have their y. What one transform reads, the one before has just
 * written where it is needed: on its way out, or in a plane that is still in the cache. */
#include "ft.h"

/* The lanes' parts of a line: exchanged for the inverse. */
struct parts {
    double *restrict re, *restrict im;
};

static struct parts parts(const struct line *l, bool back)
{
    return back ? (struct parts){l->im, l->re} : (struct parts){l->re, l->im};
}

/* read_across takes the same LANES places out of rows that are stride apart. */
static void read_across(const struct parts p, int n, const double *restrict from, ptrdiff_t stride)
{
    for (int j = 0; j < n; j++, from += stride)
        for (int b = 0; b < LANES; b++) {
            p.re[j * LANES + b] = from[2 * b];
            p.im[j * LANES + b] = from[2 * b + 1];
        }
}

static void write_across(const struct parts p, int n, double *restrict to, ptrdiff_t stride)
{
    for (int j = 0; j < n; j++, to += stride)
        for (int b = 0; b < LANES; b++) {
            to[2 * b] = p.re[j * LANES + b];
            to[2 * b + 1] = p.im[j * LANES + b];
        }
}

/* read_along takes LANES whole rows that lie one after the other. */
static void read_along(const struct parts p, int n, const double *restrict from)
{
    for (int j = 0; j < n; j++)
        for (int b = 0; b < LANES; b++) {
            p.re[j * LANES + b] = from[2 * (b * n + j)];
            p.im[j * LANES + b] = from[2 * (b * n + j) + 1];
        }
}

static void write_along(const struct parts p, int n, double *restrict to)
{
    for (int b = 0; b < LANES; b++)
        for (int j = 0; j < n; j++) {
            to[2 * (b * n + j)] = p.re[j * LANES + b];
            to[2 * (b * n + j) + 1] = p.im[j * LANES + b];
        }
}

/* read_faded is read_across for frequencies of one y: it takes what is left of each. */
static void read_faded(const struct field *f, const struct parts p, int y, int x, const double *restrict from)
{
    const double *restrict fade = f->fade[X] + x;
    for (int z = 0; z < f->n[Z]; z++, from += 2 * (ptrdiff_t)f->n[X]) {
        const double left = f->fade[Y][y] * f->fade[Z][z];
        for (int b = 0; b < LANES; b++) {
            p.re[z * LANES + b] = from[2 * b] * (left * fade[b]);
            p.im[z * LANES + b] = from[2 * b + 1] * (left * fade[b]);
        }
    }
}

/* along_x transforms the rows of a plane. */
static void along_x(const struct field *f, bool back, const double *from, double *to)
{
    const ptrdiff_t rows = 2 * (ptrdiff_t)f->n[X] * LANES;
    for (int y = 0; y < f->n[Y]; y += LANES, from += rows, to += rows) {
        struct line l = field_line(f, X);
        read_along(parts(&l, back), l.n, from);
        line_transform(&l);
        write_along(parts(&l, back), l.n, to);
    }
}

/* rows_of is where the rows of one z lie that go to a rank: those that go out are ordered
 * by rank, then z, then y. */
static double *rows_of(const struct field *f, double *all, int rank, int z)
{
    const int y = f->send[rank] / f->nz;
    return all + 2 * (ptrdiff_t)f->n[X] * (f->send_at[rank] + (ptrdiff_t)z * y);
}

/* along_y transforms the columns of a plane. One side is whole, the other in the parts of the ranks. */
static void along_y(const struct field *f, bool back, double *plane, double *all, int z)
{
    const ptrdiff_t row = 2 * (ptrdiff_t)f->n[X];
    for (int x = 0; x < f->n[X]; x += LANES) {
        struct line l = field_line(f, Y);
        struct parts in = parts(&l, back);
        if (!back)
            read_across(in, l.n, plane + 2 * x, row);
        for (int r = 0, y = 0; back && r < f->world->size; r++) {
            struct parts some = {in.re + y * LANES, in.im + y * LANES};
            const int n = f->send[r] / f->nz;
            read_across(some, n, rows_of(f, all, r, z) + 2 * x, row);
            y += n;
        }
        line_transform(&l);
        struct parts out = parts(&l, back);
        if (back)
            write_across(out, l.n, plane + 2 * x, row);
        for (int r = 0, y = 0; !back && r < f->world->size; r++) {
            struct parts some = {out.re + y * LANES, out.im + y * LANES};
            const int n = f->send[r] / f->nz;
            write_across(some, n, rows_of(f, all, r, z) + 2 * x, row);
            y += n;
        }
    }
}

void transform_forward(struct field *f)
{
    const ptrdiff_t row = 2 * (ptrdiff_t)f->n[X];
    const double *in = f->a;
    for (int z = 0; z < f->nz; z++) {
        along_x(f, false, f->b + z * row * f->n[Y], f->plane);
        along_y(f, false, f->plane, f->a, z);
    }
    if (f->world->size > 1) {
        MPI_Alltoallv(f->a, f->send, f->send_at, f->row, f->b, f->get, f->get_at, f->row, MPI_COMM_WORLD);
        in = f->b;
    }
    /* Rows have come in the order z, y. */
    for (int y = 0; y < f->ny; y++)
        for (int x = 0; x < f->n[X]; x += LANES) {
            struct line l = field_line(f, Z);
            read_across(parts(&l, false), l.n, in + y * row + 2 * x, row * f->ny);
            line_transform(&l);
            write_across(parts(&l, false), l.n, f->waves + y * row * f->n[Z] + 2 * x, row);
        }
}

const double *transform_back(struct field *f)
{
    const ptrdiff_t row = 2 * (ptrdiff_t)f->n[X];
    double *in = f->a, *out = f->b;
    for (int y = 0; y < f->ny; y++)
        for (int x = 0; x < f->n[X]; x += LANES) {
            struct line l = field_line(f, Z);
            read_faded(f, parts(&l, true), f->y + y, x, f->waves + y * row * f->n[Z] + 2 * x);
            line_transform(&l);
            write_across(parts(&l, true), l.n, f->a + y * row + 2 * x, row * f->ny);
        }
    if (f->world->size > 1) {
        MPI_Alltoallv(f->a, f->get, f->get_at, f->row, f->b, f->send, f->send_at, f->row, MPI_COMM_WORLD);
        in = f->b;
        out = f->a;
    }
    for (int z = 0; z < f->nz; z++) {
        along_y(f, true, f->plane, in, z);
        along_x(f, true, f->plane, out + z * row * f->n[Y]);
    }
    return out;
}
