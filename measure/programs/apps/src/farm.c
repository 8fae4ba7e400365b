/* farm: many independent tasks of uneven length, shared out beforehand or on demand.
 *
 * A task walks a sequence of whole numbers. Where it ends is also known without walking,
 * so every task is checked, and lengths are counted in steps, not in time: the same tasks
 * make the same checksum on any machine, for any way of sharing and any number of ranks. */
#include "app.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Knuth's multiplier for sequences of 64 bits. */
static const uint64_t FACTOR = 6364136223846793005u, TERM = 1442695040888963407u;

enum {
    STEPS_PER_MS = 600000,      /* what one core of some years ago does */
    SLICE = 300000,             /* steps between two looks for requests: 0.5 ms */
    LONGEST = 1000,             /* times the mean */
    MOST_LISTED = 64,
};

struct farm {
    int64_t tasks, seed;
    double mean_ms;
    const char *share;
    bool json;
};

struct load {
    double busy;
    uint64_t sum;
    int64_t done, wrong, steps;
};

static uint64_t scatter(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t task_start(const struct farm *f, int64_t task)
{
    return scatter((uint64_t)f->seed * 0x9e3779b97f4a7c15u + (uint64_t)task + 1);
}

/* task_steps has the tail of a Pareto law with exponent 2: few tasks are very long. Only
 * operations that all machines round alike are used. */
static int64_t task_steps(const struct farm *f, int64_t task)
{
    double u = ((double)(scatter(task_start(f, task)) >> 11) + 1) * 0x1p-53;
    double times = 0.5 / sqrt(u);
    if (times > LONGEST)
        times = LONGEST;
    return (int64_t)(times * f->mean_ms * STEPS_PER_MS) + 1;
}

static uint64_t walk(uint64_t x, int64_t steps)
{
    while (steps-- > 0)
        x = x * FACTOR + TERM;
    return x;
}

/* jump is where walk ends: steps are doubled instead of done. */
static uint64_t jump(uint64_t x, int64_t steps)
{
    uint64_t factor = FACTOR, term = TERM;
    for (; steps > 0; steps >>= 1) {
        if (steps & 1)
            x = x * factor + term;
        term = factor * term + term;
        factor *= factor;
    }
    return x;
}

/* run does one task; between slices it calls between, if there is one. */
static void run(const struct farm *f, int64_t task, struct load *l, void (*between)(void *), void *arg)
{
    int64_t steps = task_steps(f, task);
    uint64_t x = task_start(f, task);
    for (int64_t left = steps; left > 0; left -= SLICE) {
        double start = MPI_Wtime();
        x = walk(x, left < SLICE ? left : SLICE);
        l->busy += MPI_Wtime() - start;
        if (between)
            between(arg);
    }
    l->wrong += x != jump(task_start(f, task), steps);
    l->sum += scatter(x);
    l->steps += steps;
    l->done++;
}

static void run_static(const struct farm *f, const struct world *w, struct load *l)
{
    int64_t each = f->tasks / w->ranks, more = f->tasks % w->ranks;
    int64_t from = w->rank * each + (w->rank < more ? w->rank : more), to = from + each + (w->rank < more ? 1 : 0);
    for (int64_t i = from; i < to; i++)
        run(f, i, l, NULL, NULL);
}

enum { TAG_ASK = 1, TAG_TASK };

struct counter {
    int64_t next, tasks;
    int waiting;                /* ranks that have not been told that all is done */
};

static int64_t counter_take(struct counter *c)
{
    return c->next < c->tasks ? c->next++ : -1;
}

/* answer gives one rank its next task, or -1. */
static void answer(struct counter *c)
{
    MPI_Status s;
    MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_ASK, MPI_COMM_WORLD, &s);
    int64_t task = counter_take(c);
    if (task < 0)
        c->waiting--;
    MPI_Send(&task, 1, MPI_INT64_T, s.MPI_SOURCE, TAG_TASK, MPI_COMM_WORLD);
}

static void answer_all(void *arg)
{
    for (int asked = 1; asked;) {
        MPI_Iprobe(MPI_ANY_SOURCE, TAG_ASK, MPI_COMM_WORLD, &asked, MPI_STATUS_IGNORE);
        if (asked)
            answer(arg);
    }
}

/* Rank 0 counts, and works like the others between two looks for requests. A counter in
 * one-sided memory would need no rank, but many networks move it only while its owner is
 * inside MPI, and the owner works. */
static void lead(const struct farm *f, const struct world *w, struct load *l)
{
    struct counter c = {0, f->tasks, w->ranks - 1};
    for (int64_t task; (task = counter_take(&c)) >= 0;)
        run(f, task, l, w->ranks > 1 ? answer_all : NULL, &c);
    while (c.waiting > 0)
        answer(&c);
}

static void ask(int64_t *task, MPI_Request *r)
{
    MPI_Irecv(task, 1, MPI_INT64_T, 0, TAG_TASK, MPI_COMM_WORLD, r);
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ASK, MPI_COMM_WORLD);
}

/* follow asks for the next task before it does one, so that the answer is there in time. */
static void follow(const struct farm *f, struct load *l)
{
    MPI_Request r;
    int64_t task, next;
    ask(&next, &r);
    for (;;) {
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        task = next;
        if (task < 0)
            return;
        ask(&next, &r);
        run(f, task, l, NULL, NULL);
    }
}

static double timed(const struct farm *f, const struct world *w, struct load *l)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    if (strcmp(f->share, "static") == 0)
        run_static(f, w, l);
    else if (w->rank == 0)
        lead(f, w, l);
    else
        follow(f, l);
    return world_most(MPI_Wtime() - start);
}

static uint64_t expected(const struct farm *f)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < f->tasks; i++)
        sum += scatter(jump(task_start(f, i), task_steps(f, i)));
    return sum;
}

static struct load total_of(struct load mine)
{
    struct load t = {0};
    MPI_Allreduce(&mine.sum, &t.sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    int64_t counts[3] = {mine.done, mine.wrong, mine.steps};
    MPI_Allreduce(MPI_IN_PLACE, counts, 3, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    t.done = counts[0];
    t.wrong = counts[1];
    t.steps = counts[2];
    t.busy = world_sum(mine.busy);
    return t;
}

static int farm(const struct farm *f, const struct world *w)
{
    struct load mine = {0};
    struct report r = {.program = "farm", .size = {(int)f->tasks}, .sides = 1, .iterations = f->tasks};
    r.seconds = timed(f, w, &mine);
    struct load total = total_of(mine);
    double *loads = room((size_t)w->ranks * sizeof *loads);
    MPI_Gather(&mine.busy, 1, MPI_DOUBLE, loads, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    char checksum[17];
    snprintf(checksum, sizeof checksum, "%016llx", (unsigned long long)total.sum);
    r.operations = (double)total.steps;
    report_text(&r, "share", f->share);
    report_text(&r, "checksum", checksum);
    report_figure(&r, "work_seconds", "s", total.busy);
    report_figure(&r, "efficiency", "", total.busy / (r.seconds * w->ranks));
    report_figure(&r, "most_load", "s", world_most(mine.busy));
    report_figure(&r, "least_load", "s", -world_most(-mine.busy));
    report_list(&r, "loads", "s", loads, w->ranks < MOST_LISTED ? w->ranks : MOST_LISTED);
    report_below(&r, "tasks missing", fabs((double)(f->tasks - total.done)), 0);
    report_below(&r, "tasks wrong", (double)total.wrong, 0);
    report_below(&r, "checksum off", total.sum != expected(f), 0);
    int status = report_print(&r, w, f->json);
    free(loads);
    return status;
}

int main(int argc, char **argv)
{
    struct world w = world_open(&argc, &argv);
    struct farm f = {.tasks = 200, .seed = 1, .mean_ms = 5, .share = "demand"};
    const struct option list[] = {
        {"tasks", "N", "how many tasks (200)", OPTION_NATURAL, &f.tasks},
        {"mean-ms", "MS", "how long they are on average, about, in milliseconds (5)", OPTION_REAL, &f.mean_ms},
        {"share", "static|demand", "beforehand, each rank as many; or one by one (demand)", OPTION_TEXT, &f.share},
        {"seed", "N", "other lengths for another seed (1)", OPTION_NATURAL, &f.seed},
        {"json", NULL, "print one JSON object", OPTION_FLAG, &f.json},
        {0},
    };
    enum asked asked = options_read(&w, "farm", "independent tasks of uneven length", list, argc, argv);
    if (asked != ASKED_RUN)
        return world_close(asked == ASKED_HELP ? EXIT_RIGHT : EXIT_USAGE);
    if (strcmp(f.share, "static") != 0 && strcmp(f.share, "demand") != 0)
        return world_close(usage(&w, "farm", "--share %s: give static or demand", f.share));
    if (f.tasks < 1 || f.tasks > 100000000)
        return world_close(usage(&w, "farm", "--tasks %lld: give 1 to 100000000", (long long)f.tasks));
    if (f.mean_ms < 0.001 || f.mean_ms > 1e7)
        return world_close(usage(&w, "farm", "--mean-ms %g: give 0.001 to 1e7", f.mean_ms));
    return world_close(farm(&f, &w));
}
