/* The flow problem that LU, SP and BT share: five unknowns of a compressible gas on a
 * cube, driven by a force chosen so that a known polynomial is the steady answer.
 *
 * The unknowns are density, three momenta and energy. The cube is cut along y and z;
 * x is whole everywhere. A row holds one unknown of all x, the rows of the unknowns of
 * one (y, z) lie side by side: loops over x are loops over memory, and whole planes and
 * pairs of rows are messages as they lie. */
#ifndef FLOW_H
#define FLOW_H

#include "app.h"

enum { UNKNOWNS = 5, HALO = 2 };
enum { DENSITY, MOMENTUM, ENERGY = 4 };     /* momentum has three, from MOMENTUM on */

/* What follows from the unknowns of one point, kept because many use it. */
enum { VELOCITY, KINETIC = 3, PRESSURE, VOLUME, SOUND, DERIVED };   /* per mass: kinetic energy, volume */

struct class {
    const char *name;
    int n, iterations;
    double dt;
    double residual[UNKNOWNS], error[UNKNOWNS], surface;
};
extern const struct class classes_lu[], classes_sp[], classes_bt[];

/* ---- grid.c: who has which part -------------------------------------------- */

struct grid {
    int n;                      /* points along each side of the cube */
    int blocks[2], mine[2];     /* along y and z: how many blocks, and which is mine */
    int count[2], first[2];     /* along y and z: my points, and the first of them in the cube */
    int below[2], above[2];     /* neighbours, or MPI_PROC_NULL */
    MPI_Datatype rows;          /* HALO neighbouring (y) rows of each plane */
};

/* grid_fits says whether so many ranks can share a cube: each needs HALO points at least. */
bool grid_fits(int n, int ranks);
void grid_open(struct grid *g, int n, const struct world *w);
void grid_close(struct grid *g);
/* grid_room is memory for so many values at each point, halo included. */
double *grid_room(const struct grid *g, int values);
/* grid_inner is the range of my points that are not on the surface of the cube; axis 0 is x. */
void grid_inner(const struct grid *g, int axis, int *from, int *to);
void grid_exchange(const struct grid *g, double *u);

/* stride is the distance in memory from a point to the next along an axis. */
static inline ptrdiff_t grid_stride(const struct grid *g, int values, int axis)
{
    ptrdiff_t row = (ptrdiff_t)values * g->n;
    return axis == 0 ? 1 : axis == 1 ? row : row * (g->count[0] + 2 * HALO);
}

/* at is where the first value of a point lies; the next value is n further on. */
static inline ptrdiff_t grid_at(const struct grid *g, int values, int x, int y, int z)
{
    return x + (y + HALO) * grid_stride(g, values, 1) + (z + HALO) * grid_stride(g, values, 2);
}

/* ---- flow.c: one run ---------------------------------------------------------- */

struct flow {
    struct grid grid;
    double dt;
    bool sound;                 /* is the speed of sound of use? */
    double *u, *derived, *force, *r;
};

struct method {
    const char *program, *about;
    const struct class *classes;
    bool sound, surface;
    double (*operations)(double n);     /* of one iteration, as published */
    void (*open)(struct flow *f);
    void (*step)(struct flow *f);       /* one iteration */
    void (*close)(void);
};
int flow_main(const struct method *m, int argc, char **argv);

/* ---- exact.c: the known answer -------------------------------------------------- */

void exact_at(const struct grid *g, int x, int y, int z, double out[UNKNOWNS]);
void exact_fill(struct flow *f);        /* u is the answer */
void exact_start(struct flow *f);       /* u is the answer on the surface, blended from it inside */

/* ---- operator.c: what the equations do to the unknowns --------------------------- */

/* The gas, as published. */
static const double GAMMA = 1.4, GAMMA1 = 0.4, VISCOSITY = 0.1, CONDUCTION = 1.4 * 1.4;
static const double FOURTH = 0.25;

/* smoothing is the second difference that is added along an axis. */
static inline double smoothing(int axis)
{
    return axis == 2 ? 1.0 : 0.75;
}

/* fourth gives the weights of the fourth difference at a point: the ends differ. */
const double *fourth(int at, int n);
/* operator_residual sets r to scale * (force + what the equations say of u). */
void operator_residual(struct flow *f, double scale);

/* ---- norms.c: how near ------------------------------------------------------------ */

void norms_residual(const struct flow *f, double out[UNKNOWNS]);
void norms_error(const struct flow *f, double out[UNKNOWNS]);
/* norms_surface integrates the pressure over the sides of a box inside the cube. */
double norms_surface(const struct flow *f);

#endif
