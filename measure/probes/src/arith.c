/* What is compiled at each level; LEVEL is the name of what comes out. HELD is the
 * word register where variables are to be kept in registers without optimisation. */
#include "arith.h"

#ifndef HELD
#define HELD
#endif

#define MA(v, c) v = v * x + (number)(c);
#define MS(v, c) v = v * x - (number)(c);
#define DA(v, c) v = (number)(c) + x / v;
#define DS(v, c) v = (number)(c) - x / v;
#define SA(v) z = z + v;
#define SS(v) z = z - v;
#define M(v) w = w * v;

#define LOOP(name, type)                                                                        \
    static void name(HELD const type *restrict in, HELD type *restrict out, HELD size_t n)      \
    {                                                                                           \
        for (HELD size_t i = 0; i < n; i++)                                                     \
            out[i] = in[i];                                                                     \
    }

#define MIX(name, type, steps)                                                                  \
    static void name(HELD const type *restrict in, HELD type *restrict out, HELD size_t n)      \
    {                                                                                           \
        typedef type number;                                                                    \
        for (HELD size_t i = 0; i < n; i++) {                                                   \
            HELD number x = in[i], y = x, u = x, z = x, w = x;                                  \
            steps                                                                               \
            out[i] = y + z + w;                                                                 \
        }                                                                                       \
    }

LOOP(loop_double, double)
MIX(double_1, double, MIX_1)
MIX(double_2, double, MIX_2)
MIX(double_3, double, MIX_3)
MIX(double_4, double, MIX_4)
LOOP(loop_float, float)
MIX(float_1, float, MIX_1)
MIX(float_2, float, MIX_2)
MIX(float_3, float, MIX_3)
MIX(float_4, float, MIX_4)

const struct arith_level LEVEL = {
    loop_double, {double_1, double_2, double_3, double_4},
    loop_float, {float_1, float_2, float_3, float_4},
};
