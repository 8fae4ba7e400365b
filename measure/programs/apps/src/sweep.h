/* Sweeps through the cube: each point after its three neighbours below, or above.
 *
 * A visit takes what the neighbours have left at the points and leaves something at the
 * next ones. Rows on a diagonal of y and z do not wait for each other, so LANES of them
 * are visited together. The blocks work on chunks of x: when one has passed a chunk on,
 * the next blocks start on it. */
#ifndef SWEEP_H
#define SWEEP_H

#include "flow.h"
#include "lanes.h"

struct visit {
    const struct flow *flow;
    int way;                    /* 1 up, -1 down */
    int from, points;           /* of x: the first, and how many, in this way */
    int used;                   /* lanes that are real; the others are the last one again */
    double *r, *u;              /* x = 0 of the first row */
    const double *derived;
    ptrdiff_t lane[LANES], derived_lane[LANES];
    ptrdiff_t next[3];          /* to the next point of r in this way, along each axis */
};

struct sweep;
struct sweep *sweep_open(const struct flow *f);
void sweep_close(struct sweep *s);
void sweep_run(struct sweep *s, int way, void (*visit)(const struct visit *v));

#endif
