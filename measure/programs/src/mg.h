/* The grids of MG, and what is done on them. */
#ifndef MG_H
#define MG_H

#include "program.h"

enum { X, Y, Z, AXES, MOST_LEVELS = 10 };

/* How the ranks cut the cube. */
struct cut {
    int parts[AXES], place[AXES];  /* how many, and this rank's */
    int low[AXES], high[AXES];     /* the ranks beside it */
    int whole;                     /* levels up to this one are whole on every rank */
};

/* One level: a cube of 2^level points along each axis, of which this rank has a box. A
 * box has one layer of its neighbours' points around it. X is contiguous. */
struct box {
    int first[AXES], n[AXES];
    ptrdiff_t y, z;  /* from one row, and from one plane, to the next */
    double *u, *r;   /* the solution, or its correction, and the residual */
};

struct grid {
    struct world *world;
    struct cut cut;
    int levels;                      /* the finest; 1 is the coarsest */
    struct box box[MOST_LEVELS + 1]; /* by level */
    double *u, *r, *v;               /* memory of all levels; the right side, on the finest */
    double *face[4];                 /* two that go out, two that come in */
    double *part, *parts;            /* a residual that is made whole: of this rank, and of all */
    int *count, *at;                 /* by rank: how many points of it, from where */
};

/* ---- mg_grid.c, mg_cut.c ---- */
void grid_open(struct grid *g, struct world *w, int levels);
void grid_close(struct grid *g);
/* cut_find reports whether so many ranks can cut a cube of so many levels, and how. */
bool cut_find(struct cut *c, int ranks, int levels);
/* cut_place says where a rank is. */
void cut_place(const struct cut *c, int rank, int place[AXES]);
int cut_rank(const struct cut *c, const int place[AXES]);
/* box_at is the points that a place has on a level. */
void box_at(const struct cut *c, const int place[AXES], int level, struct box *b);
size_t box_points(const struct box *b); /* with the layer around it */

/* ---- mg_faces.c, mg_whole.c ---- */
/* faces_update brings the layer around a box up to date. */
void faces_update(const struct grid *g, int level, double *a);
/* whole_gather makes the residual of the finest whole level out of every rank's part. */
void whole_gather(struct grid *g);

/* ---- mg_stencil.c ---- */
/* Points of one box or of a part of it, from the layer around them on. */
struct view {
    double *at;
    ptrdiff_t y, z;
};
void residual(const struct box *b, const double *v, const double *u, double *r); /* r = v - A u */
void smooth(const struct box *b, const double c[3], bool add, const double *r, double *u); /* u = S r, or u += S r */
void restriction(const struct box *fine, const double *r, struct view coarse);
void prolongation(const struct box *fine, bool add, double *u, struct view coarse);

/* ---- mg_charges.c ---- */
/* charges_set makes the right side: zero, but 1 and -1 at ten points each. */
void charges_set(const struct grid *g, double *v);

#endif
