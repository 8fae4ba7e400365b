/* Each rank sends to each. */
#include "probe.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 2000000, ROOM = 64 << 20 };

static uint64_t key(const struct world *w, int from, int to)
{
    return mix64(w->flags->seed + (uint64_t)from * (uint64_t)w->size + (uint64_t)to);
}

static void stamp(const struct world *w, char *v, size_t size, uint64_t turn)
{
    for (int to = 0; to < w->size; to++)
        pattern_stamp(v + (size_t)to * size, size, key(w, w->rank, to) ^ turn);
}

static bool right(const struct world *w, const char *v, size_t size, uint64_t turn)
{
    for (int from = 0; from < w->size; from++) {
        uint64_t k = key(w, from, w->rank);
        if (!pattern_right(v + (size_t)from * size, size, k, k ^ turn, true))
            return false;
    }
    return true;
}

void alltoall_run(const struct world *w)
{
    struct sample s = sample_of(w, "alltoall", "B/s");
    struct times t;
    if (!metric_wanted(w->flags, "alltoall"))
        return;
    size_t size = ROOM / (size_t)w->size < MOST ? ROOM / (size_t)w->size / 8 * 8 : MOST;
    char *out = malloc(size * (size_t)w->size), *in = malloc(size * (size_t)w->size);
    bool there = world_all(out && in);
    double begun = now();
    s.size = (int64_t)size;
    snprintf(s.check, sizeof s.check, "every byte of every repetition, from %d ranks", w->size);
    times_open(&t);
    if (!there)
        sample_wrong(&s, "no memory for %zu bytes from each rank", size);
    for (int to = 0; there && to < w->size; to++)
        pattern_fill(out + (size_t)to * size, size, key(w, w->rank, to));
    for (uint64_t turn = 0; there; turn++) {
        int mine[2] = {0}, all[2];
        stamp(w, out, size, turn);
        memset(in, 0, size * (size_t)w->size);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        MPI_Alltoall(out, (int)size, MPI_BYTE, in, (int)size, MPI_BYTE, MPI_COMM_WORLD);
        double took = now() - start;
#ifdef BREAK_ALLTOALL
        in[size - 1] ^= 1;
#endif
        bool fine = right(w, in, size, turn);
        if (!fine)
            sample_wrong(&s, "wrong bytes came in repetition %llu", (unsigned long long)turn);
        if (turn == 0)
            begun = now();
        else
            mine[1] = !times_add(&t, took);
        mine[0] = !fine;
        mine[1] |= w->rank == 0 && turn > 0 && now() - begun >= w->flags->seconds;
        MPI_Allreduce(mine, all, 2, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
        if (all[0] || all[1])
            break;
    }
    /* A rank alone sends to itself. */
    sample_times(&s, &t, (double)size * (w->size > 1 ? w->size - 1 : 1));
    line_sample(w, &s);
    times_close(&t);
    free(out);
    free(in);
    line_gather(w);
}
