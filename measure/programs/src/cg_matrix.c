/* The matrix of CG: the sum of outer products w x x^T of sparse random vectors x, with
 * weights w from 1 down to the condition number that is asked for, and the identity
 * times the latter, less the shift. A row is the sum of all vectors that touch it. */
#include "cg_vectors.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONDITION 0.1

/* Which vectors touch which row. */
struct touch {
    int64_t *start; /* by row of this rank, and the end */
    int *vector;    /* its place among those kept */
    double *value;  /* what it has in that row */
};

/* A row while it is added up: dense, with a list of the columns that have something. */
struct row {
    double *value;
    int *stamp; /* by column: the last row that had something here, counted from 1 */
    int *column;
    int n;
};

static int needs(struct touch *t, struct row *r, const struct vectors *v, int rows, struct need *out)
{
    const struct need list[] = {
        {&t->start, sizeof *t->start * (size_t)(v->n + 2)},
        {&t->vector, sizeof *t->vector * (size_t)v->hits},
        {&t->value, sizeof *t->value * (size_t)v->hits},
        {&r->value, sizeof *r->value * (size_t)rows},
        {&r->stamp, sizeof *r->stamp * (size_t)rows},
        {&r->column, sizeof *r->column * (size_t)rows},
    };
    memcpy(out, list, sizeof list);
    return sizeof list / sizeof *list;
}

static int matrix_needs(struct matrix *m, int64_t entries, struct need *out)
{
    const struct need list[] = {
        {&m->start, sizeof *m->start * (size_t)(m->n + 1)},
        {&m->column, sizeof *m->column * (size_t)entries},
        {&m->value, sizeof *m->value * (size_t)entries},
    };
    memcpy(out, list, sizeof list);
    return sizeof list / sizeof *list;
}

static bool in_rows(const struct vectors *v, int64_t entry)
{
    return v->row[entry] >= v->first && v->row[entry] < v->first + v->n;
}

/* find_touch counts the vectors of each row one place too far, so that filling them in
 * moves each start to where it belongs. */
static void find_touch(const struct vectors *v, struct touch *t)
{
    for (int64_t e = 0; e < v->start[v->kept]; e++)
        if (in_rows(v, e))
            t->start[v->row[e] - v->first + 2]++;
    for (int i = 0; i < v->n; i++)
        t->start[i + 2] += t->start[i + 1];
    for (int k = 0; k < v->kept; k++)
        for (int64_t e = v->start[k]; e < v->start[k + 1]; e++)
            if (in_rows(v, e)) {
                int64_t at = t->start[v->row[e] - v->first + 1]++;
                t->vector[at] = k;
                t->value[at] = v->value[e];
            }
}

static void add(struct row *r, int stamp, int column, double value)
{
    if (r->stamp[column] != stamp) {
        r->stamp[column] = stamp;
        r->value[column] = 0;
        r->column[r->n++] = column;
    }
    r->value[column] += value;
}

static int ascending(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static void fill_row(struct matrix *m, int i, const struct vectors *v, const struct touch *t, struct row *r, double shift)
{
    int64_t end = m->start[i];
    r->n = 0;
    for (int64_t at = t->start[i]; at < t->start[i + 1]; at++) {
        int k = t->vector[at];
        double f = t->value[at] * pow(CONDITION, (double)v->number[k] / m->rows);
        for (int64_t e = v->start[k]; e < v->start[k + 1]; e++)
            add(r, i + 1, v->row[e], f * v->value[e]);
    }
    add(r, i + 1, m->first + i, CONDITION - shift);
    /* In order, so that x is read forwards. */
    qsort(r->column, (size_t)r->n, sizeof *r->column, ascending);
    for (int c = 0; c < r->n; c++) {
        m->column[end] = r->column[c];
        m->value[end++] = r->value[r->column[c]];
    }
    m->start[i + 1] = end;
}

void matrix_open(struct matrix *m, struct world *w, const struct cg_size *size)
{
    struct need list[6], matrix_list[3];
    struct vectors v;
    struct touch t;
    struct row r;
    memset(m, 0, sizeof *m);
    m->rows = size->rows;
    m->first = (int)block_start(size->rows, w->size, w->rank);
    m->n = (int)block_start(size->rows, w->size, w->rank + 1) - m->first;
    vectors_open(&v, w, size, m->first, m->n);
    memory_get(w, matrix_list, matrix_needs(m, v.most, matrix_list));
    int n = needs(&t, &r, &v, size->rows, list);
    memory_get(w, list, n);
    find_touch(&v, &t);
    for (int i = 0; i < m->n; i++)
        fill_row(m, i, &v, &t, &r, size->shift);
    memory_free(list, n);
    vectors_close(&v);
}

void matrix_close(struct matrix *m)
{
    struct need list[3];
    memory_free(list, matrix_needs(m, 0, list));
}

/* Four sums at once: an addition need not wait for the one before it. */
static double row_times(const double *restrict value, const int32_t *restrict column, int64_t n, const double *restrict x)
{
    double a = 0, b = 0, c = 0, d = 0;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        a += value[i] * x[column[i]];
        b += value[i + 1] * x[column[i + 1]];
        c += value[i + 2] * x[column[i + 2]];
        d += value[i + 3] * x[column[i + 3]];
    }
    for (; i < n; i++)
        a += value[i] * x[column[i]];
    return (a + b) + (c + d);
}

double matrix_times(const struct matrix *m, const double *restrict x, double *restrict out)
{
    double sum = 0;
    for (int i = 0; i < m->n; i++) {
        int64_t at = m->start[i];
        out[i] = row_times(m->value + at, m->column + at, m->start[i + 1] - at, x);
        sum += x[m->first + i] * out[i];
    }
    return sum;
}
