/* Five kernels of the NAS Parallel Benchmarks, written from their specification:
 * D. Bailey, E. Barszcz, J. Barton and others, "The NAS Parallel Benchmarks",
 * NASA RNR-94-007 (1994) and NAS-95-020 (1995). One program for each kernel; what
 * they share is here. docs/internals/programs.md tells how each of them works. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum class { CLASS_S, CLASS_W, CLASS_A, CLASS_B, CLASS_C, CLASSES };
enum { SIZE_LEN = 64, NAME_LEN = 48, MAX_VALUES = 64 };

/* ---- world.c: the ranks ------------------------------------------------ */

struct world {
    int rank, size;
    int per_node;        /* 0: not the same on all nodes */
    MPI_Comm node;       /* the ranks that share this one's memory */
    const char *program; /* "muster-cg" */
    char class;          /* its letter */
};

void world_open(struct world *w, const char *program);
/* stop ends the program with status 2. Every rank calls it with the same text; the
 * first prints it. */
_Noreturn void stop(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_close(struct world *w);
double world_sum(double mine);
/* clock_start waits for all ranks. clock_stop is the seconds since then, of the slowest. */
double clock_start(void);
double clock_stop(double start);

/* ---- blocks.c: shares ---------------------------------------------------- */

/* block_start is where the part-th of so many nearly equal shares of n begins. */
int64_t block_start(int64_t n, int parts, int part);

/* ---- memory.c ------------------------------------------------------------ */

struct need {
    void *at;     /* the address of a pointer */
    size_t bytes;
};
/* memory_get fills in all pointers, with zeroes behind them. If one rank cannot have
 * its memory, no rank goes on. Every rank calls it. */
void memory_get(struct world *w, const struct need *needs, int n);
void memory_free(const struct need *needs, int n);

/* ---- random.c: x <- 5^13 x mod 2^46 --------------------------------------- */

enum { SEED = 314159265 };
/* random_skip is the state n steps further. */
uint64_t random_skip(uint64_t state, uint64_t n);
double random_next(uint64_t *state); /* in (0, 1) */
void random_fill(uint64_t *state, double *out, size_t n);

/* ---- result.c: what came out ---------------------------------------------- */

struct value {
    char name[NAME_LEN];
    double got, wanted, error; /* the error is relative, unless 0 is wanted */
    bool right;
};

struct result {
    char size[SIZE_LEN];
    int iterations;
    double seconds;    /* of the timed section */
    double operations; /* as the specification counts them */
    double tolerance;  /* of the relative error */
    int n;
    struct value v[MAX_VALUES];
};

void result_value(struct result *r, double got, double wanted, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool result_right(const struct result *r);
/* result_print is for one rank. It reports whether everything could be written. */
bool result_print(const struct result *r, const struct world *w, const char *title, bool json);

/* ---- what each kernel has --------------------------------------------------- */

struct program {
    const char *name;  /* "muster-cg" */
    const char *title; /* "conjugate gradient" */
    const char *ranks; /* how many it takes, for people */
    void (*run)(struct world *w, enum class c, struct result *r);
};
extern const struct program program;

#endif
