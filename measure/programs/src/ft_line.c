/* Transforms along a line, by the algorithm of Stockham: it needs no reordering, and
 * every stage reads and writes runs of places. Stages have radix 4, and the last one 2
 * if the length is no power of four. All lanes do the same. */
#include "ft.h"
#include <math.h>

void line_turns(double *turn, int n)
{
    for (int j = 0; j < n; j++) {
        double angle = 2 * 3.14159265358979323846 * j / n;
        turn[2 * j] = cos(angle);
        turn[2 * j + 1] = -sin(angle);
    }
}

/* The four quarters of the input that one butterfly reads, and the four runs that it
 * writes, one after the other. */
static void butterflies(const double *restrict re, const double *restrict im, double *restrict re2, double *restrict im2,
                        int quarter, int run, const double *t1, const double *t2, const double *t3)
{
    const double c1 = t1[0], s1 = t1[1], c2 = t2[0], s2 = t2[1], c3 = t3[0], s3 = t3[1];
    for (int q = 0; q < run; q++) {
        double sum_r = re[q] + re[q + 2 * quarter], sum_i = im[q] + im[q + 2 * quarter];
        double dif_r = re[q] - re[q + 2 * quarter], dif_i = im[q] - im[q + 2 * quarter];
        double odd_r = re[q + quarter] + re[q + 3 * quarter], odd_i = im[q + quarter] + im[q + 3 * quarter];
        double off_r = im[q + quarter] - im[q + 3 * quarter], off_i = re[q + 3 * quarter] - re[q + quarter]; /* times -i */
        double b_r = dif_r + off_r, b_i = dif_i + off_i;
        double c_r = sum_r - odd_r, c_i = sum_i - odd_i;
        double d_r = dif_r - off_r, d_i = dif_i - off_i;
        re2[q] = sum_r + odd_r;
        im2[q] = sum_i + odd_i;
        re2[q + run] = b_r * c1 - b_i * s1;
        im2[q + run] = b_r * s1 + b_i * c1;
        re2[q + 2 * run] = c_r * c2 - c_i * s2;
        im2[q + 2 * run] = c_r * s2 + c_i * c2;
        re2[q + 3 * run] = d_r * c3 - d_i * s3;
        im2[q + 3 * run] = d_r * s3 + d_i * c3;
    }
}

static void pairs(const double *restrict in, double *restrict out, int run)
{
    for (int q = 0; q < run; q++) {
        out[q] = in[q] + in[q + run];
        out[q + run] = in[q] - in[q + run];
    }
}

static void exchange(struct line *l)
{
    double *re = l->re, *im = l->im;
    l->re = l->re2;
    l->im = l->im2;
    l->re2 = re;
    l->im2 = im;
}

void line_transform(struct line *l)
{
    int left = l->n, stride = 1; /* what is still to be transformed, in how many parts */
    for (; left >= 4; left /= 4, stride *= 4, exchange(l)) {
        const int quarter = l->n / 4 * LANES, run = stride * LANES;
        for (int p = 0; p < left / 4; p++)
            butterflies(l->re + p * run, l->im + p * run, l->re2 + 4 * p * run, l->im2 + 4 * p * run, quarter, run,
                        l->turn + 2 * p * stride, l->turn + 4 * p * stride, l->turn + 6 * p * stride);
    }
    if (left == 2) {
        pairs(l->re, l->re2, stride * LANES);
        pairs(l->im, l->im2, stride * LANES);
        exchange(l);
    }
}
