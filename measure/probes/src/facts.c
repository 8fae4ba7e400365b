/* Under which conditions this was measured. */
#include "probe.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The Makefile says what it did. */
#ifndef PROBE_COMPILER
#define PROBE_COMPILER "unknown"
#endif
#ifndef PROBE_FLAGS
#define PROBE_FLAGS "unknown"
#endif
#ifndef PROBE_SOURCE
#define PROBE_SOURCE "unknown"
#endif

void facts_launch(const struct world *w)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n = 0;
    if (w->rank != 0)
        return;
    MPI_Get_library_version(mpi, &n);
    mpi[strcspn(mpi, ",\n")] = 0; /* the rest is where it was built */
    line_open("launch");
    line_integer("v", 1);
    line_text("mode", mode_name(w->flags->mode));
    line_natural("seed", w->flags->seed);
    line_integer("started", (int64_t)time(NULL));
    line_integer("ranks", w->size);
    line_text("mpi", mpi);
    line_text("compiler", PROBE_COMPILER);
    line_text("flags", PROBE_FLAGS);
    line_text("source", PROBE_SOURCE);
    line_text("timer", "CLOCK_MONOTONIC_RAW");
    line_number("clock", clock_step());
    line_integer("cache", cache_bytes(w->flags));
    line_close();
}

void facts_rank(const struct world *w)
{
    char cpus[1024], file[512];
    const char *config = blas_config();
    cpus_text(cpus, sizeof cpus);
    blas_file(file, sizeof file);
    line_open("rank");
    line_integer("rank", w->rank);
    line_text("host", w->host);
    line_text("cpus", cpus);
    line_text("blas", file);
    line_text("blas_config", config ? config : "");
    line_integer("threads", cpus_count());
    line_close();
}
