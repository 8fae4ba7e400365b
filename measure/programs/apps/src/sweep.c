/* Sweeps: chunks of x, diagonals of rows, and what blocks leave for each other. */
#include "sweep.h"
#include <stdlib.h>

struct sweep {
    const struct flow *flow;
    int from[3], to[3];         /* inner points of mine */
    int chunk, chunks;
    double *in;
    double *out[2];             /* of all chunks: what is left along y and along z */
    MPI_Request *sent;
};

static int inner(const struct sweep *s, int axis)
{
    return s->to[axis] - s->from[axis];
}

/* A message has the points of a face, so many rows of one chunk. */
static int face(const struct sweep *s, int axis)
{
    return inner(s, axis == 1 ? 2 : 1) * UNKNOWNS * s->chunk;
}

struct sweep *sweep_open(const struct flow *f)
{
    const struct grid *g = &f->grid;
    struct sweep *s = room(sizeof *s);
    s->flow = f;
    for (int i = 0; i < 3; i++)
        grid_inner(g, i, &s->from[i], &s->to[i]);
    /* Few points let the next block start early, many make few messages. */
    bool alone = g->blocks[0] * g->blocks[1] == 1;
    s->chunk = alone ? inner(s, 0) : g->n < 64 ? 4 : g->n / 16;
    s->chunks = (inner(s, 0) + s->chunk - 1) / s->chunk;
    int most = face(s, 1) > face(s, 2) ? face(s, 1) : face(s, 2);
    s->in = room((size_t)most * sizeof(double));
    for (int d = 0; d < 2; d++)
        s->out[d] = room((size_t)face(s, d + 1) * (size_t)s->chunks * sizeof(double));
    s->sent = room(2 * (size_t)s->chunks * sizeof *s->sent);
    return s;
}

void sweep_close(struct sweep *s)
{
    free(s->in);
    free(s->out[0]);
    free(s->out[1]);
    free(s->sent);
    free(s);
}

/* rows_of is the row, of r, that is number i of the face of an axis. */
static double *row_of(const struct sweep *s, int axis, int at, int i)
{
    int y = axis == 1 ? at : s->from[1] + i, z = axis == 1 ? s->from[2] + i : at;
    return s->flow->r + grid_at(&s->flow->grid, UNKNOWNS, 0, y, z);
}

struct span {
    int from, to;
};

static void take(const struct sweep *s, int axis, int at, struct span x, const double *message)
{
    int n = s->flow->grid.n, rows = inner(s, axis == 1 ? 2 : 1);
    for (int i = 0; i < rows; i++) {
        double *r = row_of(s, axis, at, i);
        for (int m = 0; m < UNKNOWNS; m++)
            for (int p = x.from; p < x.to; p++)
                r[m * n + p] += *message++;
    }
}

/* give empties the halo into a message. */
static void give(const struct sweep *s, int axis, int at, struct span x, double *message)
{
    int n = s->flow->grid.n, rows = inner(s, axis == 1 ? 2 : 1);
    for (int i = 0; i < rows; i++) {
        double *r = row_of(s, axis, at, i);
        for (int m = 0; m < UNKNOWNS; m++)
            for (int p = x.from; p < x.to; p++) {
                *message++ = r[m * n + p];
                r[m * n + p] = 0;
            }
    }
}

/* diagonals visits the block's rows, LANES of a diagonal at a time. Rows are counted in
 * the way of the sweep. */
static void diagonals(const struct sweep *s, int way, struct span x, void (*visit)(const struct visit *v))
{
    const struct flow *f = s->flow;
    const struct grid *g = &f->grid;
    int rows = inner(s, 1), planes = inner(s, 2);
    int y0 = way > 0 ? s->from[1] : s->to[1] - 1, z0 = way > 0 ? s->from[2] : s->to[2] - 1;
    struct visit v = {.flow = f, .way = way, .from = way > 0 ? x.from : x.to - 1, .points = x.to - x.from};
    for (int i = 0; i < 3; i++)
        v.next[i] = way * grid_stride(g, UNKNOWNS, i);
    ptrdiff_t dy = way * grid_stride(g, DERIVED, 1), dz = way * grid_stride(g, DERIVED, 2);
    for (int sum = 0; sum < rows + planes - 1; sum++) {
        int first = sum < planes ? 0 : sum - planes + 1, last = sum < rows ? sum : rows - 1;
        for (int a = first; a <= last; a += LANES) {
            int left = last - a + 1, y = y0 + way * a, z = z0 + way * (sum - a);
            v.used = left < LANES ? left : LANES;
            for (int l = 0; l < LANES; l++) {
                int lane = l < v.used ? l : v.used - 1;
                v.lane[l] = lane * (v.next[1] - v.next[2]);
                v.derived_lane[l] = lane * (dy - dz);
            }
            v.r = f->r + grid_at(g, UNKNOWNS, 0, y, z);
            v.u = f->u + grid_at(g, UNKNOWNS, 0, y, z);
            v.derived = f->derived + grid_at(g, DERIVED, 0, y, z);
            visit(&v);
        }
    }
}

void sweep_run(struct sweep *s, int way, void (*visit)(const struct visit *v))
{
    const struct grid *g = &s->flow->grid;
    enum { TAG = 21 };
    for (int c = 0; c < s->chunks; c++) {
        int from = s->from[0] + (way > 0 ? c : s->chunks - 1 - c) * s->chunk, to = from + s->chunk;
        struct span x = {from, to < s->to[0] ? to : s->to[0]};
        for (int d = 0; d < 2; d++) {
            int source = way > 0 ? g->below[d] : g->above[d];
            if (source == MPI_PROC_NULL)
                continue;
            MPI_Recv(s->in, face(s, d + 1), MPI_DOUBLE, source, TAG + d, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            take(s, d + 1, way > 0 ? 0 : g->count[d] - 1, x, s->in);
        }
        diagonals(s, way, x, visit);
        for (int d = 0; d < 2; d++) {
            int target = way > 0 ? g->above[d] : g->below[d], size = face(s, d + 1);
            double *message = s->out[d] + (size_t)c * (size_t)size;
            s->sent[2 * c + d] = MPI_REQUEST_NULL;
            if (target == MPI_PROC_NULL)
                continue;
            give(s, d + 1, way > 0 ? g->count[d] : -1, x, message);
            MPI_Isend(message, size, MPI_DOUBLE, target, TAG + d, MPI_COMM_WORLD, &s->sent[2 * c + d]);
        }
    }
    MPI_Waitall(2 * s->chunks, s->sent, MPI_STATUSES_IGNORE);
}
