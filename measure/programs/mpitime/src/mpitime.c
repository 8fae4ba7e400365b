/* Measures from MPI_Init to MPI_Finalize of programs that know nothing of it: loaded before
 * them (LD_PRELOAD), rank 0 of each MPI job appends its seconds to $MUSTER_MPI_TIME.
 *
 * No header of MPI is needed, so it serves every MPI: what it wraps has the same arguments in
 * all of them, and is found by name. Fortran has names of its own, which call C's beneath: only
 * the outermost counts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct timespec began;
static int running;

static void *next(const char *name)
{
    void *f = dlsym(RTLD_NEXT, name);
    if (!f) {
        fprintf(stderr, "muster-mpitime: there is no %s\n", name);
        abort();
    }
    return f;
}

/* first reports whether this process is rank 0, as its launcher says. */
static int first(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rank = getenv(names[i]);
        if (rank)
            return strcmp(rank, "0") == 0;
    }
    return 1; /* a program alone */
}

static void begin(void)
{
    if (running)
        return;
    running = 1;
    clock_gettime(CLOCK_MONOTONIC, &began);
}

/* end writes one line with one write: several MPI jobs may share the file. */
static void end(void)
{
    const char *path = getenv("MUSTER_MPI_TIME");
    struct timespec now;
    char line[64];
    if (!running)
        return;
    running = 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!path || !first())
        return;
    int n = snprintf(line, sizeof line, "%.6f\n", (double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) * 1e-9);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return; /* the program's own business comes first */
    if (write(fd, line, (size_t)n) != n)
        fputs("muster-mpitime: the time could not be written\n", stderr);
    close(fd);
}

int MPI_Init(int *argc, char ***argv)
{
    begin();
    return ((int (*)(int *, char ***))next("MPI_Init"))(argc, argv);
}

int MPI_Init_thread(int *argc, char ***argv, int wanted, int *given)
{
    begin();
    return ((int (*)(int *, char ***, int, int *))next("MPI_Init_thread"))(argc, argv, wanted, given);
}

int MPI_Finalize(void)
{
    int status = ((int (*)(void))next("MPI_Finalize"))();
    end();
    return status;
}

#define FORTRAN(suffix)                                                                                                  \
    void mpi_init##suffix(int *error)                                                                                    \
    {                                                                                                                    \
        begin();                                                                                                         \
        ((void (*)(int *))next("mpi_init" #suffix))(error);                                                              \
    }                                                                                                                    \
    void mpi_init_thread##suffix(int *wanted, int *given, int *error)                                                    \
    {                                                                                                                    \
        begin();                                                                                                         \
        ((void (*)(int *, int *, int *))next("mpi_init_thread" #suffix))(wanted, given, error);                          \
    }                                                                                                                    \
    void mpi_finalize##suffix(int *error)                                                                                \
    {                                                                                                                    \
        ((void (*)(int *))next("mpi_finalize" #suffix))(error);                                                          \
        end();                                                                                                           \
    }
FORTRAN(_)
FORTRAN(_f08_)
