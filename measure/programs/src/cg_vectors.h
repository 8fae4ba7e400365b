/* The sparse random vectors that the matrix of CG is the sum of. */
#ifndef CG_VECTORS_H
#define CG_VECTORS_H

#include "cg.h"

/* Of all vectors, those that touch the rows first to first + n. */
struct vectors {
    int first, n;
    int kept;        /* how many */
    int64_t hits;    /* entries that are in those rows */
    int64_t most;    /* entries that those rows can have at most */
    int *number;     /* by vector kept: which of all it is */
    int64_t *start;  /* by vector kept, and the end: where its entries are */
    int32_t *row;
    double *value;
};

void vectors_open(struct vectors *v, struct world *w, const struct cg_size *size, int first, int n);
void vectors_close(struct vectors *v);

#endif
