/* Vectors of numbers that belong to as many lines of the cube. Compilers make of them
 * what the processor has: one wide register, or two. */
#ifndef LANES_H
#define LANES_H

#include <stddef.h>

enum { LANES = 4 };
typedef double vec __attribute__((vector_size(LANES * sizeof(double))));

static inline vec lanes_get(const double *p, const ptrdiff_t lane[LANES])
{
    return (vec){p[lane[0]], p[lane[1]], p[lane[2]], p[lane[3]]};
}

static inline void lanes_put(double *p, const ptrdiff_t lane[LANES], vec v, int used)
{
    for (int l = 0; l < used; l++)
        p[lane[l]] = v[l];
}

static inline void lanes_add(double *p, const ptrdiff_t lane[LANES], vec v, int used)
{
    for (int l = 0; l < used; l++)
        p[lane[l]] += v[l];
}

#endif
