/* The floating-point mix: the same source is compiled at four levels. */
#ifndef MIX_H
#define MIX_H

#include <stddef.h>

enum { MIX_FLOPS = 32 }; /* for each element; a division or a root is one, x * x is once */

typedef void mix_fn(const double *in, double *out, size_t n);
mix_fn mix_O0, mix_O1, mix_O2, mix_O3;

#endif
