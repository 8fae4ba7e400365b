/* The sort of IS. */
#ifndef IS_H
#define IS_H

#include "program.h"

struct sort {
    int ranks, rank;
    int64_t total, first, n; /* of all keys, of this rank's: from where, how many */
    int64_t range;           /* keys are below it */
    int shift, buckets;      /* key >> shift is its bucket */
    int64_t room;            /* for keys that come in */
    int64_t came;            /* how many did */
    int32_t low, high;       /* the keys of this rank's range: low <= key < high */
    int64_t below;           /* how many keys are on ranks before */
    int32_t *keys;           /* of this rank's share */
    int32_t *sorted;         /* the same by bucket; room for as many as may come */
    int32_t *mine;           /* those of this rank's range */
    int32_t *count;          /* by key - low: how many are in its range up to and with it */
    int32_t *here, *all;     /* by bucket: how many keys there are */
    int32_t *to;             /* by bucket: where the next key goes */
    int *first_bucket;       /* by rank, and the end */
    int *send, *send_at, *get, *get_at;
};

/* sort_open ends the program if there are too many ranks. */
void sort_open(struct sort *s, struct world *w, int log_keys, int log_range);
void sort_close(struct sort *s);
/* sort_count brings each key to the rank of its range and counts. */
void sort_count(struct sort *s);
/* sort_rank is how many keys are smaller; -1 if another rank knows. */
int64_t sort_rank(const struct sort *s, int32_t key);
/* sort_wrong places the keys by their ranks and returns how many are out of order, or lost. */
int64_t sort_wrong(struct sort *s);

#endif
