/* The i-th vector has so many random entries, and 0.5 at place i. All ranks make all of
 * them, as they come from one stream of random numbers, and keep what they need. */
#include "cg_vectors.h"
#include <string.h>

static int needs(struct vectors *v, const struct cg_size *size, struct need *out)
{
    const size_t rows = (size_t)size->rows, entries = rows * (size_t)(size->nonzeros + 1);
    const struct need list[] = {
        {&v->number, sizeof *v->number * rows},
        {&v->start, sizeof *v->start * (rows + 1)},
        {&v->row, sizeof *v->row * entries},
        {&v->value, sizeof *v->value * entries},
    };
    memcpy(out, list, sizeof list);
    return sizeof list / sizeof *list;
}

static int find(const int32_t *row, int n, int32_t wanted)
{
    int i = 0;
    while (i < n && row[i] != wanted)
        i++;
    return i;
}

/* make draws pairs of a value and a place until it has enough different places. Places
 * are drawn below a power of two; those that the matrix does not have are drawn again. */
static int make(uint64_t *random, const struct cg_size *size, int number, int32_t *row, double *value)
{
    int places = 1, n = 0;
    while (places < size->rows)
        places *= 2;
    while (n < size->nonzeros) {
        double x = random_next(random);
        int32_t place = (int32_t)(places * random_next(random));
        if (place >= size->rows || find(row, n, place) < n)
            continue;
        row[n] = place;
        value[n++] = x;
    }
    int at = find(row, n, number);
    row[at] = number;
    value[at] = 0.5;
    return at == n ? n + 1 : n;
}

void vectors_open(struct vectors *v, struct world *w, const struct cg_size *size, int first, int n)
{
    struct need list[4];
    uint64_t random = random_skip(SEED, 1); /* the specification uses one number before */
    int64_t end = 0;
    memset(v, 0, sizeof *v);
    v->first = first;
    v->n = n;
    memory_get(w, list, needs(v, size, list));
    for (int i = 0; i < size->rows; i++) {
        int entries = make(&random, size, i, v->row + end, v->value + end), hits = 0;
        for (int k = 0; k < entries; k++)
            hits += v->row[end + k] >= first && v->row[end + k] < first + n;
        if (hits == 0)
            continue;
        v->number[v->kept++] = i;
        end += entries;
        v->start[v->kept] = end;
        v->hits += hits;
        v->most += hits * entries;
    }
}

void vectors_close(struct vectors *v)
{
    struct need list[4];
    memory_free(list, needs(v, &(struct cg_size){0}, list));
}
