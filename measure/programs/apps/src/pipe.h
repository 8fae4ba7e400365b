/* Systems of equations along the lines of one axis, many lines at once.
 *
 * A solver eliminates from the first point to the last and substitutes back. Where the
 * axis is cut, what it carries from point to point is sent to the next block. Lines go
 * in bundles, so that the next block starts on the first bundle while this one does the
 * second; each block then takes turns between bundles that go up and that come back,
 * which keeps few of them in memory. */
#ifndef PIPE_H
#define PIPE_H

#include "flow.h"
#include "lanes.h"
#include <string.h>

/* LANES neighbouring lines of one axis; the last ones may be one line again. */
struct lines {
    const struct flow *flow;
    int axis;
    int from, to;               /* inner points of mine along the axis */
    int first;                  /* the number of point 0 in the whole cube */
    int used;                   /* lines that are real */
    double *r;                  /* point 0 of the first line */
    const double *u, *derived;
    ptrdiff_t r_lane[LANES], d_lane[LANES];     /* where the lines begin */
    ptrdiff_t r_step, d_step;                   /* from point to point */
};

struct solver {
    int keep;                   /* values kept at each point until it is substituted */
    int up, down;               /* values carried forward, and back */
    /* Each starts from what is carried, zero at the end of the cube, and leaves what it carries on. */
    void (*eliminate)(const struct lines *l, vec *keep, vec *carried);
    void (*substitute)(const struct lines *l, const vec *keep, vec *carried);
};

struct pipe;
struct pipe *pipe_open(const struct flow *f, const struct solver *s, int axis);
void pipe_close(struct pipe *p);
/* pipe_solve solves all lines; the answer replaces r. */
void pipe_solve(struct pipe *p);

#endif
