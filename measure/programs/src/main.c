/* The command line, which is the same for all kernels. */
#include "program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char letters[] = "SWABC";

struct flags {
    int class; /* -1: not said */
    bool json, help;
};

/* parse returns what is wrong, with the word that it is about, or NULL. */
static const char *parse(struct flags *f, int argc, char **argv, const char **word)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = *word = argv[i];
        if (strcmp(arg, "--json") == 0) {
            f->json = true;
        } else if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            f->help = true;
        } else if (strcmp(arg, "--class") == 0 || strncmp(arg, "--class=", 8) == 0) {
            const char *letter = arg[7] ? arg + 8 : i + 1 < argc ? argv[++i] : "";
            const char *at = *letter && !letter[1] ? strchr(letters, *letter) : NULL;
            *word = letter;
            if (!at)
                return "no such class: use --class with S, W, A, B or C";
            f->class = (int)(at - letters);
        } else {
            return "no such flag: use --class S, W, A, B or C, --json, --help";
        }
    }
    *word = "";
    return f->class < 0 && !f->help ? "no class: use --class with S, W, A, B or C" : NULL;
}

static void help(void)
{
    printf("%s: %s, a kernel of the NAS Parallel Benchmarks, from their specification\n\n"
           "  mpirun %s --class CLASS [--json]\n\n"
           "  --class  S (tests), W (a workstation), A, B or C (each about 4 or 16 times the one before)\n"
           "  --json   print one JSON object instead of lines\n\n"
           "Ranks: %s.\n"
           "Exit status: 0 the result is right, 1 it is wrong, 2 this run cannot be.\n",
           program.name, program.title, program.name, program.ranks);
}

int main(int argc, char **argv)
{
    struct flags f = {.class = -1};
    struct result r = {0};
    struct world w;
    const char *word = "";
    int right = 0;
    MPI_Init(&argc, &argv);
    world_open(&w, program.name);
    const char *wrong = parse(&f, argc, argv, &word);
    if (wrong)
        stop(&w, "%s%s%s", word, *word ? ": " : "", wrong);
    if (f.help) {
        if (w.rank == 0)
            help();
        world_close(&w);
        return 0;
    }
    w.class = letters[f.class];
    program.run(&w, (enum class)f.class, &r);
    /* Only the first rank knows the values; all ranks end with the same status. */
    if (w.rank == 0)
        right = result_right(&r);
    if (w.rank == 0 && !result_print(&r, &w, program.title, f.json))
        right = 0;
    MPI_Bcast(&right, 1, MPI_INT, 0, MPI_COMM_WORLD);
    world_close(&w);
    return right ? 0 : 1;
}
