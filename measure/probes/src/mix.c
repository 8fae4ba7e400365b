/* What is compiled at -O0, -O1, -O2 and -O3; MIX is the name for the level. It
 * is the code that people write, without regard to the machine: a polynomial, a
 * recurrence, division and root, small matrices. */
#include "mix.h"
#include <math.h>

static double polynomial(double x)
{
    static const double c[] = {0.5, -0.25, 0.125, 1.0 / 3, -0.2, 0.75, -0.625, 0.1};
    double y = c[7];
    for (int i = 6; i >= 0; i--)
        y = y * x + c[i];
    return y; /* 14 */
}

static void product(const double a[4][4], double out[4][4])
{
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            double sum = 0;
            for (int k = 0; k < 4; k++)
                sum += a[i][k] * a[k][j];
            out[i][j] = sum;
        }
    /* 128 for 16 elements */
}

void MIX(const double *in, double *out, size_t n)
{
    double carry = 0;
    for (size_t i = 0; i < n; i += 16) {
        double a[4][4], b[4][4];
        for (int k = 0; k < 16; k++)
            a[k / 4][k % 4] = polynomial(in[i + (size_t)k]);
        product((const double (*)[4])a, b);
        for (int k = 0; k < 16; k++) {
            double x = b[k / 4][k % 4];
            carry = 0.5 * carry + x;                                    /* 2 */
            out[i + (size_t)k] = carry / (1 + x * x) + sqrt(2 + x * x) - 0.1 * x; /* 8 */
        }
    }
}
