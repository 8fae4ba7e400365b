/* The random numbers of the specification: x <- 5^13 x mod 2^46, and x / 2^46 in
 * (0, 1). 2^46 divides 2^64, so the product of 64-bit integers that overflows is still
 * right in its low 46 bits. */
#include "program.h"

#ifndef BREAK_RANDOM
#define FACTOR UINT64_C(1220703125) /* 5^13 */
#else
#define FACTOR UINT64_C(1220703133)
#endif
#define MASK ((UINT64_C(1) << 46) - 1)

/* So many states go side by side in random_fill: one multiplication need not wait for
 * the one before it. */
enum { LANES = 8 };

static uint64_t power(uint64_t factor, uint64_t n)
{
    uint64_t p = 1;
    for (; n > 0; n >>= 1) {
        if (n & 1)
            p = p * factor & MASK;
        factor = factor * factor & MASK;
    }
    return p;
}

uint64_t random_skip(uint64_t state, uint64_t n)
{
    return state * power(FACTOR, n) & MASK;
}

static double unit(uint64_t state)
{
    return (double)(int64_t)state * 0x1p-46; /* signed: that is one instruction */
}

double random_next(uint64_t *state)
{
    *state = *state * FACTOR & MASK;
    return unit(*state);
}

void random_fill(uint64_t *state, double *out, size_t n)
{
    const uint64_t stride = power(FACTOR, LANES);
    uint64_t lane[LANES], last = *state;
    size_t i = 0;
    for (int l = 0; l < LANES; l++)
        lane[l] = last = last * FACTOR & MASK;
    last = *state;
    for (; i + LANES <= n; i += LANES) {
        last = lane[LANES - 1];
        for (int l = 0; l < LANES; l++) {
            out[i + (size_t)l] = unit(lane[l]);
            lane[l] = lane[l] * stride & MASK;
        }
    }
    for (; i < n; i++)
        out[i] = random_next(&last);
    *state = last;
}
