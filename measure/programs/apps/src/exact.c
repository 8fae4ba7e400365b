/* The known answer: for each unknown a polynomial of fourth degree along each axis. */
#include "flow.h"

/* A constant, then the first to the fourth power, each of x, y and z. */
static const double poly[UNKNOWNS][13] = {
    {2, 0, 0, 4, 5, 3, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
    {1, 0, 0, 0, 1, 2, 3, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
    {2, 2, 0, 0, 0, 2, 3, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
    {2, 2, 0, 0, 0, 2, 3, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
    {5, 4, 3, 2, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2},
};

static void evaluate(const double at[3], double out[UNKNOWNS])
{
    for (int m = 0; m < UNKNOWNS; m++) {
        double sum = poly[m][0];
        for (int d = 0; d < 3; d++) {
            double power = 0;
            for (int e = 3; e >= 0; e--)
                power = (power + poly[m][1 + 3 * e + d]) * at[d];
            sum += power;
        }
        out[m] = sum;
    }
}

static void place(const struct grid *g, int x, int y, int z, double at[3])
{
    double step = 1.0 / (g->n - 1);
    at[0] = x * step;
    at[1] = (y + g->first[0]) * step;
    at[2] = (z + g->first[1]) * step;
}

void exact_at(const struct grid *g, int x, int y, int z, double out[UNKNOWNS])
{
    double at[3];
    place(g, x, y, z, at);
    evaluate(at, out);
}

/* blend joins the answers at the six points where the axes through here leave the cube. */
static void blend(const double at[3], double out[UNKNOWNS])
{
    double along[3][UNKNOWNS];
    for (int d = 0; d < 3; d++) {
        double end[3] = {at[0], at[1], at[2]}, low[UNKNOWNS], high[UNKNOWNS];
        end[d] = 0;
        evaluate(end, low);
        end[d] = 1;
        evaluate(end, high);
        for (int m = 0; m < UNKNOWNS; m++)
            along[d][m] = (1 - at[d]) * low[m] + at[d] * high[m];
    }
    for (int m = 0; m < UNKNOWNS; m++) {
        double a = along[0][m], b = along[1][m], c = along[2][m];
        out[m] = a + b + c - a * b - a * c - b * c + a * b * c;
    }
}

static bool outermost(const double at[3])
{
    for (int d = 0; d < 3; d++)
        if (at[d] <= 0 || at[d] >= 1)
            return true;
    return false;
}

static void fill(struct flow *f, bool answer)
{
    const struct grid *g = &f->grid;
    for (int z = 0; z < g->count[1]; z++)
        for (int y = 0; y < g->count[0]; y++)
            for (int x = 0; x < g->n; x++) {
                double at[3], v[UNKNOWNS];
                place(g, x, y, z, at);
                if (answer || outermost(at))
                    evaluate(at, v);
                else
                    blend(at, v);
                double *u = f->u + grid_at(g, UNKNOWNS, x, y, z);
                for (int m = 0; m < UNKNOWNS; m++)
                    u[m * g->n] = v[m];
            }
}

void exact_fill(struct flow *f)
{
    fill(f, true);
}

void exact_start(struct flow *f)
{
    fill(f, false);
}
