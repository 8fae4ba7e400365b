/* muster-probe measures the speed of machines and of what is between them.
 *
 * Every file here has one noun. A measurement makes samples; each sample is the
 * median of several repetitions, and each repetition's result was checked. What
 * was wrong is told (ok = false) and never becomes a figure.
 *
 * docs/decisions/0009-how-speed-is-measured.md has the lines that come out. */
#ifndef PROBE_H
#define PROBE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { MAX_LIST = 64, CHECK_LEN = 200, HOST_LEN = 256 };

/* ---- flags.c: what was asked ------------------------------------------- */

enum mode { MODE_NONE, MODE_ALONE, MODE_PAIRS, MODE_ALL, MODE_IO, MODE_SIZES, MODE_INSIDE, MODE_SCALE, MODE_CLIENTS, MODES };

struct list {
    int n;
    int64_t v[MAX_LIST];
};

struct flags {
    enum mode mode;
    bool help;
    const char *only;   /* metrics or beginnings of their names; NULL: all */
    double seconds;     /* budget of each group of metrics */
    uint64_t seed;
    struct list threads;
    struct list sizes;
    int64_t bytes;      /* 0: chosen by the mode */
    int64_t cache;      /* pretended last-level cache; 0: what the node says */
    int64_t memory;     /* pretended memory of the host; 0: what the node says */
    const char *rounds;
    int window;
    int orders;
    int pairs;
    const char *dir;
    int64_t block;
};

/* flags_parse reads the command line. It returns how many problems it printed. */
int flags_parse(struct flags *f, int argc, char **argv, bool print);
void flags_help(void);
const char *mode_name(enum mode m);

/* ---- metric.c: the names of what is measured --------------------------- */

/* metric_known says whether word is a metric of the mode, or the beginning of one up to a dot. */
bool metric_known(enum mode m, const char *word, size_t len);
/* metric_wanted says whether --only lets this metric, or any below this group, through. */
bool metric_wanted(const struct flags *f, const char *name);
void metric_print(enum mode m);

/* ---- world.c: the ranks ------------------------------------------------ */

struct world {
    int rank, size;
    char host[HOST_LEN];
    char *hosts;        /* HOST_LEN bytes for each rank */
    int on_host;        /* how many ranks this host has */
    bool first_on_host;
    const struct flags *flags;
};

void world_open(struct world *w, const struct flags *f);
void world_close(struct world *w);
const char *world_host(const struct world *w, int rank);
/* world_meet waits for all ranks, asleep while others still work on the same host. */
void world_meet(const struct world *w);
/* world_all says whether ok holds on every rank. */
bool world_all(bool ok);
/* world_most is the largest of all ranks: nodes that differ must still meet equally often. */
int world_most(int mine);

/* world_text has rank 0 tell all others a text of its own; NULL everywhere if it has
 * none. Who has no memory for it ends the launch. */
char *world_text(const struct world *w, char *text);

/* ---- clock.c ----------------------------------------------------------- */

double now(void);              /* seconds of CLOCK_MONOTONIC_RAW */
double clock_step(void);       /* the smallest step seen */

/* ---- random.c ---------------------------------------------------------- */

uint64_t mix64(uint64_t x);    /* a bijection that scatters its input */
uint64_t next64(uint64_t *state);
double unit(uint64_t *state);  /* -1 .. 1 */

/* ---- pattern.c: contents that tell where they belong -------------------- */

/* Contents follow from a key. A stamp stands at the start of each page and tells
 * repetitions of the same contents apart. */
void pattern_fill(void *p, size_t bytes, uint64_t key);
void pattern_stamp(void *p, size_t bytes, uint64_t stamp);
/* pattern_right compares the stamps, and with full also everything else. */
bool pattern_right(const void *p, size_t bytes, uint64_t key, uint64_t stamp, bool full);

/* ---- times.c: repetitions ---------------------------------------------- */

struct times {
    double *v;
    size_t n, room;
    double sum;
};

void times_open(struct times *t);
bool times_add(struct times *t, double seconds); /* false: there is no room for more */
double times_at(struct times *t, double share);  /* quantile; sorts */
void times_close(struct times *t);

/* ---- line.c: what is said ----------------------------------------------- */

struct sample {
    const char *metric, *unit;
    const char *host;   /* NULL: of all ranks together */
    int rank;           /* -1: none, and so on below */
    const char *peer;
    int peer_rank;
    int64_t size;
    int threads;
    int round;
    double value, min, max, seconds;
    double mean;        /* of all repetitions; 0: it is not known */
    int64_t n;
    bool ok;
    char check[CHECK_LEN];
};

/* sample_of starts a sample of this rank. */
struct sample sample_of(const struct world *w, const char *metric, const char *unit);
/* sample_times fills in the median, the mean and the extremes of work / time. With work 0 the value is the time.
 * The mean of rates is the work of all repetitions by the time of all. */
void sample_times(struct sample *s, struct times *t, double work);
/* sample_wrong makes a finding of it. */
void sample_wrong(struct sample *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Lines are kept by each rank until line_gather lets the first one print them: none is torn. */
void line_open(const char *kind);
void line_text(const char *name, const char *value);
void line_number(const char *name, double value);
void line_integer(const char *name, int64_t value);
void line_natural(const char *name, uint64_t value);
void line_flag(const char *name, bool value);
void line_array(const char *name);              /* then items, then line_array_end */
void line_item(const char *value);
void line_array_end(void);
void line_object(const char *name);             /* then named values, then line_object_end */
void line_object_end(void);
void line_close(void);
void line_sample(const struct world *w, struct sample *s);
/* line_gather prints what all ranks have said. Every rank calls it. */
void line_gather(const struct world *w);
/* line_end prints the last line; false if something could not be written. */
bool line_end(const struct world *w);

/* ---- cpus.c, cache.c, team.c: threads and where they run ---------------- */

int cpus_count(void);                      /* that this process may use */
int cpus_at(int i);                        /* the number of the i-th of them, modulo their count */
void cpus_text(char *out, size_t room);    /* "0-3,8" */
int64_t cache_bytes(const struct flags *f); /* of all last-level caches of these processors */

/* ---- room.c: whether memory is enough ----------------------------------- */

int64_t machine_says(const char *key);      /* what the node's agent wrote down of its machine; 0: nothing */
int64_t room_bytes(const struct world *w);  /* that a rank may use */
/* room_enough says whether arrays of 4 x the last cache have room. */
bool room_enough(const struct world *w);
/* room_say tells what is omitted since there is no room for it. */
void room_say(const struct world *w);

struct team;
typedef void work_fn(int member, int members, void *arg);
struct team *team_open(int members);       /* each is bound to a processor; NULL: no threads to be had */
double team_run(struct team *t, work_fn *work, void *arg); /* seconds from the start of all to the end of the last */
void team_close(struct team *t);

/* ---- kernel.c: one kind of work on one core ------------------------------ */

struct kernel {
    const char *metric, *unit;
    int64_t size;               /* bytes that it works on */
    bool (*open)(uint64_t seed); /* false: no memory */
    double (*run)(void);        /* the work; returns how many operations it was */
    bool (*right)(void);        /* was the result of the last run right? */
    const char *check;          /* how that is found */
    void (*close)(void);
};

void kernels_run(const struct world *w, const char *group, const struct kernel *k, int n);

/* ---- the measurements ---------------------------------------------------- */

void dgemm_run(const struct world *w);
void stream_run(const struct world *w);
void latency_run(const struct world *w);
void noise_run(const struct world *w);
void core_int_run(const struct world *w);
void core_mem_run(const struct world *w);
void core_fp_run(const struct world *w);
void mix_run(const struct world *w);
void arith_run(const struct world *w);

struct round {
    int n;
    int (*pair)[2];
};
struct rounds {
    int n;
    struct round *v;
};
/* What is taken for rounds: bytes of text, rounds, and how many problems are told. */
enum { MOST_TEXT = 8 << 20, MOST_ROUNDS = 4096, MOST_TOLD = 20 };
/* rounds_line reads one line, without its end. NULL: why says what is wrong with it. */
char *rounds_line(FILE *from, const char **why);
/* rounds_parse reads "0-1 2-3/0-2 1-3" and returns how many problems there are; it
 * prints the first of them. */
int rounds_parse(struct rounds *r, const char *text, int ranks, bool print);
void rounds_free(struct rounds *r);
void pairs_run(const struct world *w, const struct rounds *r);

/* pair is two ranks that measure with each other. */
struct pair {
    const struct world *w;
    int other;      /* rank of the partner; -1: none in this round */
    bool first;     /* of the two */
    int round;      /* -1: there are none */
    bool inside;    /* both are of one host, which is what is measured */
};
/* pair_of finds the partner of this rank in a round. */
struct pair pair_of(const struct world *w, const struct rounds *r, int round);
/* pair_sample starts a sample of this rank and its partner. */
struct sample pair_sample(const struct pair *p, const char *metric, const char *unit, int64_t size);
/* pair_bandwidth measures from the one that leads to the other, or both ways at once. */
void pair_bandwidth(const struct pair *p, const char *metric, bool leads, bool both, int64_t size, double budget);

/* ping sends size bytes there and back for as long as budget says. The first of the
 * two has the times of one way; what was wrong stands in its sample. */
void ping(const struct pair *p, int64_t size, double budget, struct sample *s, struct times *t);

void sizes_run(const struct world *w, const struct rounds *r);
/* sizes_of are those that were asked for, or all powers of two from 1 B to 4 MiB, and 2,000,000 B. */
struct list sizes_of(const struct flags *f);
/* sizes_pair measures PREFIX.latency, .bandwidth and .both by size. All ranks call it,
 * also those without a partner. */
void sizes_pair(const struct pair *p, const char *prefix, const struct list *sizes);

/* ---- places.c: how near two processors of a host are --------------------- */

enum near { NEAR_CORE, NEAR_CACHE, NEAR_SOCKET, NEAR_SOCKETS, NEARS };
struct places {
    bool there[NEARS];
    int cpu[NEARS][2];
};
/* near_name is the word in names of metrics; near_lacks says what a host lacks that has none. */
const char *near_name(enum near n);
const char *near_lacks(enum near n);
/* places_find looks for two of these processors at each distance. sys is where the
 * kernel says how they are built: /sys/devices/system/cpu. */
struct places places_find(const char *sys, const int *cpus, int n);

void inside_run(const struct world *w);
/* rings_both measures what scale has of rings. */
void rings_both(const struct world *w);
void scale_run(const struct world *w);
void clients_run(const struct world *w);

void rings_run(const struct world *w);
void alltoall_run(const struct world *w);
void io_run(const struct world *w);

/* ---- facts.c, blas.c, transport.c ----------------------------------------- */

void facts_launch(const struct world *w);
void facts_rank(const struct world *w);
void transport_begin(void);
void transport_end(const struct world *w);

typedef void dgemm_fn(const char *, const char *, const int *, const int *, const int *, const double *,
                      const double *, const int *, const double *, const int *, const double *, double *, const int *);
dgemm_fn *blas_dgemm(void);
bool blas_threads(int n);                   /* false: this BLAS cannot be told */
void blas_file(char *out, size_t room);     /* the file that holds dgemm in this process */
const char *blas_config(void);              /* NULL: it does not tell */

#endif
