/* What the applications share: options, the ranks, and the report at the end.
 *
 * A program solves a problem whose answer is known, times it, and says whether the
 * answer was right. Exit status: 0 right, 1 wrong, 2 asked for in a way it cannot do. */
#ifndef APP_H
#define APP_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_RIGHT = 0, EXIT_WRONG = 1, EXIT_USAGE = 2 };

/* ---- world.c: the ranks ------------------------------------------------ */

struct world {
    int rank, ranks;
};

struct world world_open(int *argc, char ***argv);
/* world_close ends MPI and returns the status, for main to return. */
int world_close(int status);
double world_most(double mine);
double world_sum(double mine);
/* room is zeroed, aligned memory. A rank without it ends the launch: the others would wait for ever. */
void *room(size_t bytes);
/* most_square finds a * b = ranks with a <= b as near to each other as can be. */
void most_square(int ranks, int *a, int *b);

/* ---- options.c: what was asked ------------------------------------------ */

enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_NATURAL, OPTION_REAL };

struct option {
    const char *name, *value, *help;
    enum option_kind kind;
    void *into;         /* bool, const char *, int64_t or double */
};

enum asked { ASKED_RUN, ASKED_HELP, ASKED_WRONG };

/* options_read reads the command line, alike on every rank; rank 0 prints help or the
 * first problem. The list ends with a name of NULL. */
enum asked options_read(const struct world *w, const char *program, const char *about, const struct option *list,
                        int argc, char **argv);
/* usage has rank 0 say what is wrong with a request; it returns EXIT_USAGE. */
int usage(const struct world *w, const char *program, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- report.c: what came out --------------------------------------------- */

enum { MAX_CHECKS = 16, MAX_EXTRAS = 16 };

struct check {
    const char *name;
    double got, want, error;
    bool limit, right;      /* limit: want is the most that got may be */
};

struct extra {
    const char *name, *unit, *text;     /* text, or a list of n values, or one */
    const double *list;
    double value;
    int n;
};

struct report {
    const char *program, *class;        /* class NULL: the program has none */
    int size[4], sides;
    int64_t iterations;
    double seconds, operations;         /* operations 0: they say nothing here */
    int checks, extras;
    struct check check[MAX_CHECKS];
    struct extra extra[MAX_EXTRAS];
};

/* report_near adds a check that got is want within a relative error. */
void report_near(struct report *r, const char *name, double got, double want, double within);
/* report_below adds a check that got, of which 0 is best, is at most most. */
void report_below(struct report *r, const char *name, double got, double most);
void report_figure(struct report *r, const char *name, const char *unit, double value);
void report_list(struct report *r, const char *name, const char *unit, const double *list, int n);
void report_text(struct report *r, const char *name, const char *text);
/* report_print has rank 0 print all and returns the exit status, the same on every rank. */
int report_print(const struct report *r, const struct world *w, bool json);

/* ---- facts.c: how this program was made ---------------------------------- */

extern const char facts_compiler[], facts_flags[];

#endif
