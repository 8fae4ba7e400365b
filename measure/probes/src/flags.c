/* The command line. All of its problems are told at once. */
#include "probe.h"
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALONE = 1 << MODE_ALONE, PAIRS = 1 << MODE_PAIRS, ALL = 1 << MODE_ALL, IO = 1 << MODE_IO, SIZES = 1 << MODE_SIZES,
       INSIDE = 1 << MODE_INSIDE, SCALE = 1 << MODE_SCALE, CLIENTS = 1 << MODE_CLIENTS, EVERY = (1 << MODES) - 1 };

static const char *const names[] = {"", "alone", "pairs", "all", "io", "sizes", "inside", "scale", "clients"};

const char *mode_name(enum mode m)
{
    return names[m];
}

struct parser {
    struct flags *f;
    int problems;
    bool print;
};

static void problem(struct parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void problem(struct parser *p, const char *format, ...)
{
    va_list args;
    p->problems++;
    if (!p->print)
        return;
    va_start(args, format);
    fprintf(stderr, "muster-probe: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}

/* whole reads a number, with KiB, MiB or GiB behind it where bytes are meant. */
static bool whole(const char *text, size_t len, bool bytes, int64_t *out)
{
    int64_t n = 0;
    size_t i = 0;
    for (; i < len && isdigit((unsigned char)text[i]); i++) {
        if (n > (INT64_MAX >> 34) / 10)
            return false; /* so that a suffix fits, too */
        n = 10 * n + (text[i] - '0');
    }
    if (i == 0)
        return false;
    size_t rest = len - i;
    if (bytes && rest == 3 && strncmp(text + i, "KiB", 3) == 0)
        n <<= 10, rest = 0;
    else if (bytes && rest == 3 && strncmp(text + i, "MiB", 3) == 0)
        n <<= 20, rest = 0;
    else if (bytes && rest == 3 && strncmp(text + i, "GiB", 3) == 0)
        n <<= 30, rest = 0;
    *out = n;
    return rest == 0;
}

static void one(struct parser *p, const char *flag, const char *text, bool bytes, int64_t low, int64_t high, int64_t *out)
{
    if (!whole(text, strlen(text), bytes, out) || *out < low || *out > high)
        problem(p, "%s %s: must be a whole number from %lld to %lld%s", flag, text, (long long)low, (long long)high,
                bytes ? ", as 4096, 64KiB, 8MiB or 2GiB" : "");
}

static void many(struct parser *p, const char *flag, const char *text, bool bytes, int64_t low, int64_t high, struct list *out)
{
    out->n = 0;
    for (const char *at = text;;) {
        size_t len = strcspn(at, ",");
        int64_t v = 0;
        if (out->n == MAX_LIST) {
            problem(p, "%s: more than %d values", flag, MAX_LIST);
            return;
        }
        if (!whole(at, len, bytes, &v) || v < low || v > high)
            problem(p, "%s: \"%.*s\" is not a whole number from %lld to %lld", flag, (int)len, at, (long long)low, (long long)high);
        out->v[out->n++] = v;
        if (!at[len])
            return;
        at += len + 1;
    }
}

static void only(struct parser *p)
{
    const struct flags *f = p->f;
    for (const char *at = f->only;;) {
        size_t len = strcspn(at, ",");
        if (!metric_known(f->mode, at, len))
            problem(p, "--only: \"%.*s\" is not measured by mode %s; see muster-probe --help", (int)len, at, mode_name(f->mode));
        if (!at[len])
            return;
        at += len + 1;
    }
}

static void flag(struct parser *p, const char *name, const char *value)
{
    struct flags *f = p->f;
    int64_t n = 0;
    if (strcmp(name, "--only") == 0) {
        f->only = value;
    } else if (strcmp(name, "--seconds") == 0) {
        char *end;
        f->seconds = strtod(value, &end);
        if (end == value || *end || !(f->seconds >= 0.001 && f->seconds <= 86400))
            problem(p, "--seconds %s: must be a number from 0.001 to 86400", value);
    } else if (strcmp(name, "--seed") == 0) {
        char *end;
        errno = 0;
        f->seed = strtoull(value, &end, 10);
        if (!isdigit((unsigned char)*value) || *end || errno != 0)
            problem(p, "--seed %s: must be a whole number below 2^64", value);
    } else if (strcmp(name, "--threads") == 0) {
        many(p, name, value, false, 1, 4096, &f->threads);
    } else if (strcmp(name, "--sizes") == 0) {
        many(p, name, value, true, 1, (int64_t)1 << 40, &f->sizes);
    } else if (strcmp(name, "--bytes") == 0) {
        one(p, name, value, true, 1, (int64_t)1 << 60, &f->bytes);
    } else if (strcmp(name, "--cache") == 0) {
        one(p, name, value, true, 1 << 12, (int64_t)1 << 40, &f->cache);
    } else if (strcmp(name, "--memory") == 0) {
        one(p, name, value, true, 1 << 20, (int64_t)1 << 50, &f->memory);
    } else if (strcmp(name, "--rounds") == 0) {
        f->rounds = value;
    } else if (strcmp(name, "--window") == 0) {
        one(p, name, value, false, 1, 1024, &n);
        f->window = (int)n;
    } else if (strcmp(name, "--orders") == 0) {
        one(p, name, value, false, 1, 1000, &n);
        f->orders = (int)n;
    } else if (strcmp(name, "--pairs") == 0) {
        one(p, name, value, false, 1, 100000, &n);
        f->pairs = (int)n;
    } else if (strcmp(name, "--dir") == 0) {
        f->dir = value;
    } else if (strcmp(name, "--block") == 0) {
        one(p, name, value, true, 512, 1 << 30, &f->block);
        if (f->block % 512)
            problem(p, "--block %s: must be a multiple of 512", value);
    } else {
        problem(p, "unknown flag %s; see muster-probe --help", name);
    }
}

/* modes of a flag, for the message that it is of no use here. */
static unsigned modes_of(const char *name)
{
    static const struct {
        const char *name;
        unsigned modes;
    } of[] = {{"--threads", ALONE},        {"--sizes", ALONE | PAIRS | SIZES | INSIDE}, {"--bytes", ALONE | IO | CLIENTS}, {"--cache", ALONE}, {"--memory", ALONE},
              {"--rounds", PAIRS | SIZES}, {"--window", PAIRS | SIZES | INSIDE},        {"--orders", ALL | SCALE},         {"--pairs", SCALE},
              {"--dir", IO | CLIENTS},     {"--block", IO | CLIENTS}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        if (strcmp(of[i].name, name) == 0)
            return of[i].modes;
    return EVERY;
}

int flags_parse(struct flags *f, int argc, char **argv, bool print)
{
    *f = (struct flags){.seconds = 1, .seed = 1, .window = 16, .orders = 3, .pairs = 16, .block = 1 << 20};
    struct parser p = {.f = f, .print = print};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            f->help = true;
            return 0;
        }
    int i = 1;
    if (argc > 1 && argv[1][0] != '-') {
        for (int m = MODE_ALONE; m < MODES; m++)
            if (strcmp(argv[1], names[m]) == 0)
                f->mode = (enum mode)m;
        if (f->mode == MODE_NONE)
            problem(&p, "there is no mode %s: it is alone, pairs, all, io, sizes, inside, scale or clients", argv[1]);
        i = 2;
    } else {
        problem(&p, "no mode: muster-probe alone|pairs|all|io|sizes|inside|scale|clients [flags]; see muster-probe --help");
    }
    while (i < argc) {
        char name[32];
        const char *eq = strchr(argv[i], '='), *value = NULL;
        size_t len = eq ? (size_t)(eq - argv[i]) : strlen(argv[i]);
        if (strncmp(argv[i], "--", 2) != 0 || len >= sizeof name) {
            problem(&p, "\"%s\" is no flag; see muster-probe --help", argv[i++]);
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)len, argv[i++]);
        if (eq)
            value = eq + 1;
        else if (i < argc)
            value = argv[i++];
        if (!value || !*value) {
            problem(&p, "%s needs a value", name);
            continue;
        }
        flag(&p, name, value);
        if (f->mode != MODE_NONE && !(modes_of(name) & (1u << f->mode)))
            problem(&p, "%s is of no use in mode %s", name, mode_name(f->mode));
    }
    if (f->mode != MODE_NONE && f->only)
        only(&p);
    if ((f->mode == MODE_PAIRS || f->mode == MODE_SIZES) && !f->rounds)
        problem(&p, "--rounds is missing, for instance --rounds \"0-1 2-3/0-2 1-3\"");
    if ((f->mode == MODE_IO || f->mode == MODE_CLIENTS) && !f->dir)
        problem(&p, "--dir is missing: a directory that all nodes share");
    if (f->mode == MODE_ALONE)
        for (int k = 0; k < f->sizes.n; k++)
            if (f->sizes.v[k] < 128 || (f->sizes.v[k] & (f->sizes.v[k] - 1)))
                problem(&p, "--sizes: a working set must be a power of two, at least 128");
    if (f->mode == MODE_PAIRS || f->mode == MODE_SIZES || f->mode == MODE_INSIDE)
        for (int k = 0; k < f->sizes.n; k++)
            if (f->sizes.v[k] > 1 << 30)
                problem(&p, "--sizes: a message has at most 1GiB");
    return p.problems;
}

void flags_help(void)
{
    printf(
        "usage: mpirun -n RANKS muster-probe MODE [flags]\n"
        "\n"
        "Measures machines and what is between them, and prints lines of JSON.\n"
        "Each sample is the median of its repetitions; every result is checked.\n"
        "\n"
        "modes\n"
        "  alone   each node by itself, all nodes at the same time: one rank per node,\n"
        "          not bound to a single processor (mpirun --map-by node --bind-to none)\n"
        "  pairs   two ranks at a time, in rounds of disjoint pairs\n"
        "  all     every rank at once: rings and all-to-all\n"
        "  io      files of all ranks through MPI-IO, read by another node than wrote\n"
        "  sizes   two ranks at a time, as pairs, by many sizes of messages\n"
        "  inside  the same between two processors of one node: two ranks per node, not\n"
        "          bound (mpirun --map-by ppr:2:node --bind-to none); they bind themselves\n"
        "  scale   ping-pong and rings of all ranks, 8 B and 2,000,000 B\n"
        "  clients one file of all ranks through MPI-IO: opening, transfer and closing apart\n"
        "\n"
        "flags of every mode\n"
        "  --only LIST      these metrics, or groups of them: stream.triad,core\n"
        "  --seconds S      for each group of metrics (default 1), shared by its members;\n"
        "                   filling memory beforehand and checking afterwards are not in it\n"
        "  --seed N         of all contents and orders (default 1)\n"
        "  --help\n"
        "alone\n"
        "  --threads LIST   of dgemm and stream (default: 1 and all processors)\n"
        "  --sizes LIST     working sets of latency, powers of two (default: 4KiB to at least\n"
        "                   4 x the last cache)\n"
        "  --bytes N        the arrays of stream in sum (default 4 x the last cache)\n"
        "  --cache N        take the last cache to be this large\n"
        "  --memory N       take the host's memory to be this large: what has no room is\n"
        "                   omitted (default: what the node's agent or its kernel says)\n"
        "pairs\n"
        "  --rounds TEXT    ranks of the pairs: \"0-1 2-3/0-2 1-3\" are two rounds; - is a line\n"
        "                   of standard input, for texts that no argument can hold\n"
        "  --sizes LIST     of messages (default 8,1024,65536,2000000)\n"
        "  --window N       messages on their way at once (default 16)\n"
        "sizes, inside\n"
        "  --rounds TEXT    as of pairs (sizes only)\n"
        "  --sizes LIST     of messages (default: powers of two to 4MiB, and 2000000)\n"
        "  --window N       as of pairs\n"
        "scale\n"
        "  --pairs N        pairs of ranks for ping-pong, drawn by chance (default 16)\n"
        "all, scale\n"
        "  --orders N       random orders of the ring (default 3)\n"
        "io, clients\n"
        "  --dir DIR        shared by all nodes; files in it are removed at the end\n"
        "  --bytes N        of all ranks in sum (default: 1.1 x the memory of all nodes)\n"
        "  --block N        of one read or write (default 1MiB)\n"
        "\n"
        "metrics\n");
    for (int m = MODE_ALONE; m < MODES; m++) {
        printf("  %s\n", mode_name((enum mode)m));
        metric_print((enum mode)m);
    }
    printf(
        "\n"
        "examples\n"
        "  mpirun -n 4 --map-by node --bind-to none muster-probe alone --seconds 0.5\n"
        "  mpirun -n 4 --map-by node muster-probe pairs --rounds \"0-1 2-3/0-2 1-3/0-3 1-2\"\n"
        "  srun --mpi=pmix -N 2 muster-probe pairs --rounds 0-1 --sizes 8,64KiB,4MiB\n"
        "  mpirun -n 16 muster-probe all --orders 5 --seed 7\n"
        "  mpirun -n 16 muster-probe io --dir /shared/home/anna --bytes 64GiB\n"
        "\n"
        "exit status: 0 all was measured (what was wrong stands in the lines as ok: false),\n"
        "1 it could not run to its end, 2 a mistake in the command line\n");
}
