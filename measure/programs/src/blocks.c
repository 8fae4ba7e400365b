/* Shares of n items: contiguous, in the order of the ranks, their sizes differ by one
 * at most. */
#include "program.h"

int64_t block_start(int64_t n, int parts, int part)
{
    return n / parts * part + n % parts * part / parts;
}

int block_owner(int64_t n, int parts, int64_t item)
{
    int part = (int)(item * parts / n);
    while (part + 1 < parts && block_start(n, parts, part + 1) <= item)
        part++;
    while (block_start(n, parts, part) > item)
        part--;
    return part;
}
