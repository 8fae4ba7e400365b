/* Whether the ranks of all keys sort them. */
#include "is.h"

/* before reports whether no key of a rank before is larger than this one's first. */
static bool before(const struct sort *s, const int32_t *out)
{
    int32_t last = s->came > 0 ? out[s->came - 1] : -1, most = -1;
    MPI_Exscan(&last, &most, 1, MPI_INT32_T, MPI_MAX, MPI_COMM_WORLD);
    return s->rank == 0 || s->came == 0 || most <= out[0];
}

/* kept reports whether all ranks together have the keys that they began with: as many,
 * with the same sum, and the same sum of squares. */
static bool kept(const struct sort *s, const int32_t *out)
{
    uint64_t sum[3] = {(uint64_t)(s->n - s->came), 0, 0}; /* it overflows, and comes back to zero */
    for (int64_t i = 0; i < s->n; i++) {
        uint64_t key = (uint64_t)s->keys[i];
        sum[1] += key;
        sum[2] += key * key;
    }
    for (int64_t i = 0; i < s->came; i++) {
        uint64_t key = (uint64_t)out[i];
        sum[1] -= key;
        sum[2] -= key * key;
    }
    MPI_Allreduce(MPI_IN_PLACE, sum, 3, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return sum[0] == 0 && sum[1] == 0 && sum[2] == 0;
}

int64_t sort_wrong(struct sort *s)
{
    const int32_t *in = s->ranks == 1 ? s->sorted : s->mine;
    int32_t *out = s->ranks == 1 ? s->mine : s->sorted;
    int64_t wrong = 0;
    for (int64_t i = 0; i < s->came; i++)
        out[--s->count[in[i] - s->low]] = in[i];
    for (int64_t i = 1; i < s->came; i++)
        wrong += out[i - 1] > out[i];
    wrong += !before(s, out);
    wrong += !kept(s, out);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return wrong;
}
