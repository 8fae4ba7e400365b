/* Runs the mix at each level and compares with a calculation of its own, in
 * longer numbers. */
#include "mix.h"
#include "probe.h"
#include <math.h>
#include <stdlib.h>

enum { ELEMENTS = 1 << 14, PASSES = 8 };

static struct {
    double *in, *out;
    long double *want;
} mix;

static bool mix_open(uint64_t seed)
{
    static const long double c[] = {0.5, -0.25, 0.125, 1.0 / 3, -0.2, 0.75, -0.625, 0.1};
    mix.in = malloc(2 * ELEMENTS * sizeof *mix.in);
    mix.want = malloc(ELEMENTS * sizeof *mix.want);
    if (!mix.in || !mix.want)
        return false;
    mix.out = mix.in + ELEMENTS;
    long double carry = 0;
    for (int i = 0; i < ELEMENTS; i += 16) {
        long double a[16];
        for (int k = 0; k < 16; k++) {
            mix.in[i + k] = unit(&seed);
            long double x = 1;
            a[k] = 0;
            for (int p = 0; p < 8; p++, x *= mix.in[i + k])
                a[k] += c[p] * x;
        }
        for (int k = 0; k < 16; k++) {
            int row = k / 4 * 4, col = k % 4;
            long double x = a[row] * a[col] + a[row + 1] * a[4 + col] + a[row + 2] * a[8 + col] + a[row + 3] * a[12 + col];
            carry = carry / 2 + x;
            mix.want[i + k] = carry / (1 + x * x) + sqrtl(2 + x * x) - (long double)0.1 * x;
        }
    }
    return true;
}

static double passes(mix_fn *f)
{
    for (int i = 0; i < PASSES; i++)
        f(mix.in, mix.out, ELEMENTS);
#ifdef BREAK_MIX
    mix.out[7] += 1e-3;
#endif
    return (double)PASSES * ELEMENTS * MIX_FLOPS;
}

static double run_O0(void) { return passes(mix_O0); }
static double run_O1(void) { return passes(mix_O1); }
static double run_O2(void) { return passes(mix_O2); }
static double run_O3(void) { return passes(mix_O3); }

static bool mix_right(void)
{
    bool right = true;
    for (int i = 0; i < ELEMENTS; i++) {
        right = right && fabsl(mix.out[i] - mix.want[i]) < 1e-12L;
        mix.out[i] = NAN; /* what is not written again is found */
    }
    return right;
}

static void mix_close(void)
{
    free(mix.in);
    free(mix.want);
}

void mix_run(const struct world *w)
{
#define LEVEL(o) {"mix." #o, "flop/s", 2 * ELEMENTS * sizeof(double), mix_open, run_##o, mix_right, \
                  "every element against longer numbers", mix_close}
    static const struct kernel all[] = {LEVEL(O0), LEVEL(O1), LEVEL(O2), LEVEL(O3)};
    kernels_run(w, "mix", all, sizeof all / sizeof all[0]);
}
