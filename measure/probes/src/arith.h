/* Four mixes of additions, subtractions, multiplications and divisions. The same
 * source is compiled at several levels, for doubles and for floats.
 *
 * A mix is a list of steps. x is the element that is read, y and u are two chains
 * that the processor may follow at once, z sums up and w is a product. No step can
 * be folded into another one: each hangs on a value that was new. With |x| <= 1/4
 * and constants from 1.125 to 1.75 no chain comes near to zero.
 *
 *   MA(v, c)  v = v * x + c       MS(v, c)  v = v * x - c
 *   DA(v, c)  v = c + x / v       DS(v, c)  v = c - x / v
 *   SA(v)     z = z + v           SS(v)     z = z - v          M(v)  w = w * v
 *
 * All variables begin as x, and y + z + w is the result: two more additions. */
#ifndef ARITH_H
#define ARITH_H

#include <stddef.h>

#define A4 MA(y, 1.25) MA(u, 1.5) MA(y, 1.125) MA(u, 1.75)
#define A8 A4 MA(y, 1.375) MA(u, 1.125) MA(y, 1.625) MA(u, 1.25)
#define S2 MS(y, 1.375) MS(u, 1.625)
#define D2 DA(y, 1.5) DA(u, 1.25)
#define E2 DS(y, 1.75) DS(u, 1.375)
#define T2 SA(y) SA(u)
#define U2 SS(y) SS(u)
#define M2 M(y) M(u)

/* Of additions, subtractions, multiplications, divisions: 40, 23, 27, 10 in 100. */
#define MIX_1 A4 T2 S2 U2 D2 T2 S2 U2 A4 T2 E2 U2 S2 T2 A4 U2 D2 T2 S2 SS(y) A4 T2 S2 SA(u) E2 T2 MA(y, 1.5) D2
/* 38, 9, 43, 9 in 99. */
#define MIX_2 A8 M2 D2 A4 S2 M2 E2 A8 SS(y) D2 M2 S2 A8 DS(y, 1.625) M2 MS(u, 1.25) D2 MA(y, 1.25) MA(u, 1.75)
/* 43, 3, 51, 3 in 100. */
#define MIX_3 A8 M2 A4 M2 T2 A8 M2 DA(y, 1.5) DA(u, 1.125) A4 M2 DS(y, 1.625) M2 A8 M2 SS(u) MS(y, 1.25) M2 A4 SA(u)
/* 43, 2, 55, 0 in 100. */
#define MIX_4 A8 M2 A4 M2 T2 A8 M2 A4 M2 MS(u, 1.5) A8 M2 SS(y) A4 M2 MA(y, 1.25) MA(u, 1.5) M2 SA(u) M2

enum { ARITH_MIXES = 4 };

/* What one level was compiled to: the empty loop, and the mixes. */
struct arith_level {
    void (*loop_double)(const double *in, double *out, size_t n);
    void (*doubles[ARITH_MIXES])(const double *in, double *out, size_t n);
    void (*loop_float)(const float *in, float *out, size_t n);
    void (*floats[ARITH_MIXES])(const float *in, float *out, size_t n);
};

extern const struct arith_level arith_O0, arith_register, arith_O2, arith_O3, arith_fast;
#ifdef __x86_64__
extern const struct arith_level arith_avx2, arith_avx512;
#endif

#endif
