/* Numbers that look random and are the same everywhere for the same seed. The
 * mixer is the finalizer of SplitMix64 (Steele, Lea, Flood 2014). */
#include "probe.h"

uint64_t mix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t next64(uint64_t *state)
{
    return mix64((*state)++);
}

double unit(uint64_t *state)
{
    return (double)(int64_t)next64(state) * 0x1p-63;
}
