/* The times of repetitions. */
#include "probe.h"
#include <stdlib.h>

enum { MOST = 1 << 18 };

void times_open(struct times *t)
{
    *t = (struct times){0};
}

bool times_add(struct times *t, double seconds)
{
    if (t->n == t->room) {
        size_t room = t->room ? 2 * t->room : 256;
        double *v = t->n >= MOST ? NULL : realloc(t->v, room * sizeof *v);
        if (!v)
            return false;
        t->v = v;
        t->room = room;
    }
    t->v[t->n++] = seconds;
    t->sum += seconds;
    return true;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double times_at(struct times *t, double share)
{
    if (t->n == 0)
        return 0;
    qsort(t->v, t->n, sizeof *t->v, ascending);
    double at = share * (double)(t->n - 1);
    size_t i = (size_t)at;
    if (i + 1 >= t->n)
        return t->v[t->n - 1];
    return t->v[i] + (at - (double)i) * (t->v[i + 1] - t->v[i]);
}

void times_close(struct times *t)
{
    free(t->v);
    *t = (struct times){0};
}
