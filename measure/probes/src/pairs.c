/* Two ranks at a time. All pairs of a round work at once, and measure the same
 * thing at the same time; ranks without a partner sleep. */
#include "probe.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_PING = 11, TAG_PONG, TAG_WINDOW, TAG_READY, TAG_DATA, TAG_DONE, TAG_VERDICT };
enum { TRIPS = 8, WARM = 50 }; /* round trips in a repetition; repetitions before the first */
enum { LATENCY_SIZE = 8 };

struct pair pair_of(const struct world *w, const struct rounds *r, int round)
{
    struct pair p = {.w = w, .other = -1, .round = round};
    for (int k = 0; k < r->v[round].n; k++) {
        const int *two = r->v[round].pair[k];
        if (two[0] == w->rank)
            p.other = two[1], p.first = true;
        if (two[1] == w->rank)
            p.other = two[0];
    }
    return p;
}

struct sample pair_sample(const struct pair *p, const char *metric, const char *unit_, int64_t size)
{
    struct sample s = sample_of(p->w, metric, unit_);
    if (!p->inside) {
        s.peer = world_host(p->w, p->other);
        s.peer_rank = p->other;
    }
    s.round = p->round;
    s.size = size;
    return s;
}

/* ---- half a round trip ------------------------------------------------------- */

static const uint64_t last_ping = ~(uint64_t)0;

static uint64_t answer(uint64_t ping)
{
    return ~(ping * 3);
}

/* echo is the part of the second rank. */
static void echo(const struct pair *p)
{
    for (;;) {
        uint64_t ping;
        MPI_Recv(&ping, sizeof ping, MPI_BYTE, p->other, TAG_PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (ping == last_ping)
            return;
        uint64_t pong = answer(ping);
#ifdef BREAK_PAIRS
        pong ^= 1;
#endif
        MPI_Send(&pong, sizeof pong, MPI_BYTE, p->other, TAG_PONG, MPI_COMM_WORLD);
    }
}

/* trips makes one repetition and reports whether every answer was right. */
static bool trips(const struct pair *p, uint64_t *count, double *took)
{
    uint64_t pong[TRIPS];
    bool right = true;
    double start = now();
    for (int i = 0; i < TRIPS; i++) {
        uint64_t ping = *count + (uint64_t)i;
        MPI_Send(&ping, sizeof ping, MPI_BYTE, p->other, TAG_PING, MPI_COMM_WORLD);
        MPI_Recv(&pong[i], sizeof pong[i], MPI_BYTE, p->other, TAG_PONG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    *took = now() - start;
    for (int i = 0; i < TRIPS; i++)
        right = right && pong[i] == answer(*count + (uint64_t)i);
    *count += TRIPS;
    return right;
}

static void latency(const struct pair *p, double budget)
{
    if (p->other < 0)
        return;
    if (!p->first) {
        echo(p);
        return;
    }
    struct sample s = pair_sample(p, "pair.latency", "s", LATENCY_SIZE);
    struct times t;
    uint64_t count = p->w->flags->seed >> 1; /* never last_ping */
    double took, end = now() + budget;
    snprintf(s.check, sizeof s.check, "every answer belongs to its question; %d round trips in a repetition", TRIPS);
    times_open(&t);
    for (int i = 0; i < WARM && (i == 0 || now() < end) && s.ok; i++)
        if (!trips(p, &count, &took))
            sample_wrong(&s, "a wrong answer in the warm-up");
    while (s.ok) {
        if (!trips(p, &count, &took))
            sample_wrong(&s, "a wrong answer in repetition %zu", t.n);
        else if (!times_add(&t, took / (2 * TRIPS)))
            break;
        if (now() >= end)
            break;
    }
    MPI_Send(&last_ping, sizeof last_ping, MPI_BYTE, p->other, TAG_PING, MPI_COMM_WORLD);
    sample_times(&s, &t, 0);
    s.seconds *= 2 * TRIPS;
    times_close(&t);
    line_sample(p->w, &s);
}

/* ---- bandwidth ------------------------------------------------------------------ */

/* box has the messages of one window, in one direction. */
struct box {
    char *memory;
    size_t size, step;
    int n;
    uint64_t key;
    MPI_Request *request;
};

static bool box_open(struct box *b, size_t size, int window, uint64_t key)
{
    *b = (struct box){.size = size, .step = (size + 63) / 64 * 64, .n = window, .key = key};
    b->memory = aligned_alloc(4096, (b->step * (size_t)window + 4095) / 4096 * 4096);
    b->request = malloc((size_t)window * sizeof *b->request);
    if (!b->memory || !b->request)
        return false;
    memset(b->memory, 0, b->step * (size_t)window);
    return true;
}

static void box_close(struct box *b)
{
    free(b->memory);
    free(b->request);
}

static char *box_at(const struct box *b, int i)
{
    return b->memory + b->step * (size_t)i;
}

static uint64_t box_key(const struct box *b, int i)
{
    return mix64(b->key + (uint64_t)i);
}

static void box_fill(struct box *b)
{
    for (int i = 0; i < b->n; i++)
        pattern_fill(box_at(b, i), b->size, box_key(b, i));
}

static void box_stamp(struct box *b, uint64_t turn)
{
    for (int i = 0; i < b->n; i++)
        pattern_stamp(box_at(b, i), b->size, box_key(b, i) ^ turn);
}

static bool box_right(const struct box *b, uint64_t turn, bool full)
{
    for (int i = 0; i < b->n; i++)
        if (!pattern_right(box_at(b, i), b->size, box_key(b, i), box_key(b, i) ^ turn, full))
            return false;
    return true;
}

static void box_receive(struct box *b, int from)
{
    for (int i = 0; i < b->n; i++)
        MPI_Irecv(box_at(b, i), (int)b->size, MPI_BYTE, from, TAG_DATA, MPI_COMM_WORLD, &b->request[i]);
}

static void box_send(struct box *b, int to)
{
    for (int i = 0; i < b->n; i++)
        MPI_Isend(box_at(b, i), (int)b->size, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD, &b->request[i]);
}

static void box_wait(struct box *b)
{
    MPI_Waitall(b->n, b->request, MPI_STATUSES_IGNORE);
}

/* What the one that leads says before each window. */
struct window {
    uint64_t turn;  /* number from 1 */
    int32_t full;   /* compare every byte, not only the stamps */
    int32_t stop;
};

/* verdict of the one that follows, when all is over. */
struct verdict {
    uint64_t wrong; /* first window that was wrong; 0: none */
};

static void exchange(int other, int tag)
{
    char a = 0, b = 0;
    MPI_Sendrecv(&a, 1, MPI_BYTE, other, tag, &b, 1, MPI_BYTE, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* one_window is what both sides do between the same two points of the clock. in
 * and out are NULL where that direction is not used. */
static double one_window(struct box *in, struct box *out, int other)
{
    if (in)
        box_receive(in, other);
    exchange(other, TAG_READY); /* receives are posted on both sides */
    double start = now();
    if (out)
        box_send(out, other);
    if (in)
        box_wait(in);
    if (out)
        box_wait(out);
    exchange(other, TAG_DONE); /* the other has everything, too */
    return now() - start;
}

static void lead(const struct pair *p, struct box *in, struct box *out, double budget, struct sample *s)
{
    struct times t;
    struct window win = {.turn = 1, .full = 1};
    struct verdict v;
    uint64_t wrong = 0;
    double work = (double)out->size * out->n * (in ? 2 : 1), end = now() + budget;
    times_open(&t);
    for (bool last = false; !win.stop; win.turn++) {
        /* The first window is the warm-up. The last one is compared in full. */
        last = win.turn > 1 && now() >= end;
        win.full = win.turn == 1 || last;
        box_stamp(out, win.turn);
        MPI_Send(&win, sizeof win, MPI_BYTE, p->other, TAG_WINDOW, MPI_COMM_WORLD);
        double took = one_window(in, out, p->other);
        if (in && !wrong && !box_right(in, ~win.turn, win.full))
            wrong = win.turn;
        if (win.turn > 1 && !times_add(&t, took))
            last = true;
        win.stop = last;
    }
    MPI_Send(&win, sizeof win, MPI_BYTE, p->other, TAG_WINDOW, MPI_COMM_WORLD);
    MPI_Recv(&v, sizeof v, MPI_BYTE, p->other, TAG_VERDICT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (wrong || v.wrong)
        sample_wrong(s, "wrong bytes came in window %llu", (unsigned long long)(wrong ? wrong : v.wrong));
    sample_times(s, &t, work);
    times_close(&t);
}

static void follow(const struct pair *p, struct box *in, struct box *out)
{
    struct verdict v = {0};
    for (;;) {
        struct window win;
        MPI_Recv(&win, sizeof win, MPI_BYTE, p->other, TAG_WINDOW, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (win.stop)
            break;
        if (out)
            box_stamp(out, ~win.turn);
        (void)one_window(in, out, p->other);
#ifdef BREAK_PAIRS
        box_at(in, in->n - 1)[in->size - 1] ^= 1;
#endif
        if (!v.wrong && !box_right(in, win.turn, win.full))
            v.wrong = win.turn;
    }
    MPI_Send(&v, sizeof v, MPI_BYTE, p->other, TAG_VERDICT, MPI_COMM_WORLD);
}

void pair_bandwidth(const struct pair *p, const char *metric, bool leads, bool both, int64_t size, double budget)
{
    if (p->other < 0)
        return;
    struct sample s = pair_sample(p, metric, "B/s", size);
    struct box in = {0}, out = {0};
    uint64_t seed = mix64(p->w->flags->seed + (uint64_t)p->round);
    bool receives = both || !leads, sends = both || leads;
    bool there = true;
    int window = p->w->flags->window;
    /* 256 MiB at once is enough for every network, and not too much for any node. */
    while (window > 1 && (int64_t)window * size > 256 << 20)
        window--;
    if (receives)
        there = box_open(&in, (size_t)size, window, mix64(seed + (uint64_t)p->other)) && there;
    if (sends)
        there = box_open(&out, (size_t)size, window, mix64(seed + (uint64_t)p->w->rank)) && there;
    if (there && sends)
        box_fill(&out);
    snprintf(s.check, sizeof s.check, "pages of every window, every byte of the first and the last; windows of %d", window);
    char mine = there, theirs = 0;
    MPI_Sendrecv(&mine, 1, MPI_BYTE, p->other, TAG_READY, &theirs, 1, MPI_BYTE, p->other, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!mine || !theirs)
        sample_wrong(&s, "no memory for %d messages of %lld bytes", window, (long long)size);
    else if (leads)
        lead(p, receives ? &in : NULL, &out, budget, &s);
    else
        follow(p, &in, sends ? &out : NULL);
    if (leads)
        line_sample(p->w, &s);
    box_close(&in);
    box_close(&out);
}

static void round_run(struct pair *p, const struct list *sizes)
{
    const struct flags *f = p->w->flags;
    world_meet(p->w);
    if (metric_wanted(f, "pair.latency"))
        latency(p, f->seconds);
    for (int way = 0; way < 2 && metric_wanted(f, "pair.bandwidth"); way++)
        for (int i = 0; i < sizes->n; i++) {
            world_meet(p->w);
            pair_bandwidth(p, "pair.bandwidth", p->first == (way == 0), false, sizes->v[i], f->seconds / (2 * sizes->n));
        }
    for (int i = 0; i < sizes->n && metric_wanted(f, "pair.both"); i++) {
        world_meet(p->w);
        pair_bandwidth(p, "pair.both", p->first, true, sizes->v[i], f->seconds / sizes->n);
    }
    line_gather(p->w);
}

void pairs_run(const struct world *w, const struct rounds *r)
{
    struct list sizes = w->flags->sizes;
    if (sizes.n == 0)
        sizes = (struct list){4, {8, 1024, 65536, 2000000}};
    for (int i = 0; i < r->n; i++) {
        struct pair p = pair_of(w, r, i);
        round_run(&p, &sizes);
    }
}
