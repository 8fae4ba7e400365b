/* Shares of n items: contiguous, in the order of the ranks, their sizes differ by one
 * at most. */
#include "program.h"

int64_t block_start(int64_t n, int parts, int part)
{
    return n / parts * part + n % parts * part / parts;
}
