/* The matrix of CG. */
#ifndef CG_H
#define CG_H

#include "program.h"

struct cg_size {
    int rows, nonzeros; /* of the matrix; of each random vector that it is made of */
    double shift;
};

/* Rows first to first + n, in compressed rows: those of row i are start[i] to start[i + 1]. */
struct matrix {
    int rows, first, n;
    int64_t *start;
    int32_t *column;
    double *value;
};

void matrix_open(struct matrix *m, struct world *w, const struct cg_size *size);
void matrix_close(struct matrix *m);
/* matrix_times is out = A x for the rows of this rank, and returns its part of x A x. */
double matrix_times(const struct matrix *m, const double *restrict x, double *restrict out);

#endif
