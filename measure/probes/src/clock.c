/* Time. CLOCK_MONOTONIC_RAW is not slewed by a time service while we measure. */
#include "probe.h"
#include <time.h>

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double clock_step(void)
{
    double best = 1;
    for (int i = 0; i < 1000; i++) {
        struct timespec a, b;
        int64_t d;
        clock_gettime(CLOCK_MONOTONIC_RAW, &a);
        do {
            clock_gettime(CLOCK_MONOTONIC_RAW, &b);
            d = (int64_t)(b.tv_sec - a.tv_sec) * 1000000000 + (b.tv_nsec - a.tv_nsec);
        } while (d == 0);
        if (1e-9 * (double)d < best)
            best = 1e-9 * (double)d;
    }
    return best;
}
