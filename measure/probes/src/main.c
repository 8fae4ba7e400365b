/* muster-probe: from the command line to the last line of output. */
#include "probe.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* first says whether this process speaks for all, before MPI can tell. */
static bool first(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *v = getenv(names[i]);
        if (v && *v)
            return strcmp(v, "0") == 0;
    }
    return true;
}

static void alone(const struct world *w)
{
    room_say(w);
    dgemm_run(w);
    stream_run(w);
    latency_run(w);
    noise_run(w);
    core_int_run(w);
    core_mem_run(w);
    core_fp_run(w);
    mix_run(w);
    arith_run(w);
}

static bool measure(const struct world *w, const struct rounds *r)
{
    facts_launch(w);
    facts_rank(w);
    transport_begin();
    line_gather(w);
    switch (w->flags->mode) {
    case MODE_ALONE:
        alone(w);
        break;
    case MODE_PAIRS:
        pairs_run(w, r);
        break;
    case MODE_ALL:
        rings_run(w);
        alltoall_run(w);
        break;
    case MODE_IO:
        io_run(w);
        break;
    case MODE_SIZES:
        sizes_run(w, r);
        break;
    case MODE_INSIDE:
        inside_run(w);
        break;
    case MODE_SCALE:
        scale_run(w);
        break;
    case MODE_CLIENTS:
        clients_run(w);
        break;
    case MODE_NONE:
    case MODES:
        break;
    }
    transport_end(w);
    return line_end(w);
}

/* meet reads who meets whom: from the command line, or from the standard input,
 * which mpirun gives to rank 0. It returns how many problems there are, on every rank. */
static int meet(const struct world *w, struct rounds *r)
{
    if (strcmp(w->flags->rounds, "-") != 0)
        return rounds_parse(r, w->flags->rounds, w->size, w->rank == 0);
    const char *why = NULL;
    char *text = world_text(w, w->rank == 0 ? rounds_line(stdin, &why) : NULL);
    if (why)
        fprintf(stderr, "muster-probe: --rounds -: %s\n", why);
    if (!text)
        return 1;
    int problems = rounds_parse(r, text, w->size, w->rank == 0);
    free(text);
    return problems;
}

int main(int argc, char **argv)
{
    struct flags f;
    struct world w;
    struct rounds r = {0};
    int provided, problems = flags_parse(&f, argc, argv, first());
    if (f.help) {
        if (first())
            flags_help();
        return 0;
    }
    if (problems > 0)
        return 2;
    if (f.threads.n == 0) {
        f.threads = (struct list){1, {1}};
        if (cpus_count() > 1)
            f.threads.v[f.threads.n++] = cpus_count();
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    world_open(&w, &f);
    if (f.rounds)
        problems = meet(&w, &r);
    bool ok = problems == 0 && measure(&w, &r);
    rounds_free(&r);
    world_close(&w);
    MPI_Finalize();
    if (problems > 0)
        return 2;
    if (!ok)
        fprintf(stderr, "muster-probe: the output could not be written in full\n");
    return ok ? 0 : 1;
}
