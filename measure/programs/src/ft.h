/* The transforms of FT. Complex numbers are pairs of doubles. */
#ifndef FT_H
#define FT_H

#include "program.h"

/* So many transforms go side by side: the inner loops run over them, and what is read
 * of a row far away fills whole lines of the cache. */
enum { LANES = 8 };

/* ---- ft_line.c: transforms along a line ---- */

struct line {
    int n;
    double *re, *im;       /* n times LANES: place j of all lanes, then place j + 1 */
    double *re2, *im2;     /* the same, where a stage writes */
    const double *turn;    /* cos and -sin of 2 pi j / n */
};
/* line_turns fills in the table of a length. */
void line_turns(double *turn, int n);
/* line_transform transforms all lanes; what comes out is in re and im again. With re and
 * im exchanged before and after, it is the inverse, not scaled. */
void line_transform(struct line *l);

/* ---- ft_field.c: the field, and where it is ---- */

enum { X, Y, Z, AXES };

/* In space, a rank has some planes of constant z, and the order is z, y, x; x is
 * contiguous. Among the frequencies it has some of y, and the order is y, z, x. */
struct field {
    struct world *world;
    int n[AXES];
    int y, ny, z, nz;        /* this rank's: from where, how many */
    double *waves;           /* the frequencies, as they are at first */
    double *a, *b;           /* what goes out, what comes in, and what a transform ends in */
    double *plane;           /* one of constant z, between two transforms */
    double *turn[AXES];      /* tables for lines */
    double *lanes;           /* memory of a line */
    double *fade[AXES];      /* by frequency: how much of a wave is left */
    int *send, *send_at, *get, *get_at; /* by rank, in rows of x: what goes from space to frequencies */
    MPI_Datatype row;
};

void field_open(struct field *f, struct world *w, const int n[AXES]);
void field_close(struct field *f);
/* field_line is a line along an axis. */
struct line field_line(const struct field *f, int axis);

/* ---- ft_transform.c: transforms of the field ---- */

/* transform_forward makes the frequencies of the field in space that is in b. */
void transform_forward(struct field *f);
/* transform_back returns the field in space of frequencies that have faded. It is not scaled. */
const double *transform_back(struct field *f);

#endif
