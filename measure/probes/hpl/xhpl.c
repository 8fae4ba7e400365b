/* HPL with a beginning of our own: what ran, on which processors and with which
 * BLAS, then HPL's own text. HPL itself is compiled as its authors wrote it (the
 * Makefile says where from); what it asks of its surroundings is here. */
#include "hpcc.h"

#include "../src/probe.h"
#include <dlfcn.h>
#include <string.h>

#ifndef XHPL_COMPILER
#define XHPL_COMPILER "unknown"
#endif
#ifndef XHPL_FLAGS
#define XHPL_FLAGS "unknown"
#endif
#ifndef XHPL_SOURCE
#define XHPL_SOURCE "unknown"
#endif

/* xhpl_open stands where HPL opens files. This edition of HPL would take its
 * sizes from hpccinf.txt and write beside it; here they are in HPL.dat, as
 * everywhere else, and what comes out goes to standard output. */
FILE *xhpl_open(const char *name, const char *mode)
{
    if (strcmp(name, "hpccinf.txt") == 0)
        return fopen("HPL.dat", mode);
    return strcmp(name, "hpccoutf.txt") == 0 ? stdout : NULL;
}

/* HPCC_Defaults is called when HPL.dat cannot be used. To measure something else
 * than what was asked would be worse than to measure nothing. */
int HPCC_Defaults(HPL_T_test *test, int *ns, int *n, int *nbs, int *nb, HPL_T_ORDER *order, int *npqs, int *p, int *q,
                  int *npfs, HPL_T_FACT *pf, int *nbms, int *nbm, int *ndvs, int *ndv, int *nrfs, HPL_T_FACT *rf,
                  int *ntps, HPL_T_TOP *tp, int *ndhs, int *dh, HPL_T_SWAP *swap, int *threshold, int *l1, int *u, int *equil,
                  int *align, MPI_Comm comm);

int HPCC_Defaults(HPL_T_test *test, int *ns, int *n, int *nbs, int *nb, HPL_T_ORDER *order, int *npqs, int *p, int *q,
                  int *npfs, HPL_T_FACT *pf, int *nbms, int *nbm, int *ndvs, int *ndv, int *nrfs, HPL_T_FACT *rf,
                  int *ntps, HPL_T_TOP *tp, int *ndhs, int *dh, HPL_T_SWAP *swap, int *threshold, int *l1, int *u, int *equil,
                  int *align, MPI_Comm comm)
{
    (void)test, (void)ns, (void)n, (void)nbs, (void)nb, (void)order, (void)npqs, (void)p, (void)q, (void)npfs, (void)pf;
    (void)nbms, (void)nbm, (void)ndvs, (void)ndv, (void)nrfs, (void)rf, (void)ntps, (void)tp, (void)ndhs, (void)dh;
    (void)swap, (void)threshold, (void)l1, (void)u, (void)equil, (void)align;
    fprintf(stderr, "xhpl: HPL.dat is missing or cannot be used\n");
    MPI_Abort(comm, 2);
    return 1;
}

/* blas_runs says with how many threads the BLAS multiplies; 0 is unknown. */
static int blas_runs(void)
{
    int (*get)(void);
    void *p = dlsym(RTLD_DEFAULT, "openblas_get_num_threads");
    memcpy(&get, &p, sizeof get);
    return p ? get() : 0;
}

static void tell(const struct world *w)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "", cpus[1024], file[512];
    const char *config = blas_config();
    int n = 0;
    if (w->rank == 0) {
        MPI_Get_library_version(mpi, &n);
        mpi[strcspn(mpi, ",\n")] = 0;
        line_open("hpl");
        line_integer("v", 1);
        line_integer("ranks", w->size);
        line_text("mpi", mpi);
        line_text("compiler", XHPL_COMPILER);
        line_text("flags", XHPL_FLAGS);
        line_text("source", XHPL_SOURCE);
        line_close();
    }
    cpus_text(cpus, sizeof cpus);
    blas_file(file, sizeof file);
    line_open("rank");
    line_integer("rank", w->rank);
    line_text("host", w->host);
    line_text("cpus", cpus);
    line_text("blas", file);
    line_text("blas_config", config ? config : "");
    line_integer("threads", blas_runs());
    line_close();
    line_gather(w);
}

int main(int argc, char **argv)
{
    struct flags none = {0};
    struct world w;
    HPL_RuntimeData best = {0};
    int failure = 0; /* HPL's own text says it, too */
    MPI_Init(&argc, &argv);
    world_open(&w, &none);
    tell(&w);
    HPL_main(argc, argv, &best, &failure);
    world_close(&w);
    MPI_Finalize();
    return 0;
}
