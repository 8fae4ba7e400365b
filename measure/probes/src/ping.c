/* There and back: half of the time that a message of some size takes. Whoever is
 * asked sends back what came, and whoever asks compares it with what was sent. */
#include "probe.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_PING = 31, TAG_PONG, TAG_OVER, TAG_ROOM };
/* Round trips of a repetition of small messages, one of which the clock cannot see
 * well; the largest of these; and repetitions before the first. */
enum { TRIPS = 8, SMALL = 1024, WARM = 4 };

/* echo is the part of the one that is asked. */
static void echo(const struct pair *p, char *v, int size)
{
    for (;;) {
        MPI_Status st;
        MPI_Recv(v, size, MPI_BYTE, p->other, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
        if (st.MPI_TAG == TAG_OVER)
            return;
#ifdef BREAK_PING
        v[size - 1] ^= 1;
#endif
        MPI_Send(v, size, MPI_BYTE, p->other, TAG_PONG, MPI_COMM_WORLD);
    }
}

/* ask is the part of the other one. in has room for the answers of a repetition. */
static void ask(const struct pair *p, char *out, char *in, int size, double budget, struct sample *s, struct times *t)
{
    int trips = size <= SMALL ? TRIPS : 1;
    uint64_t key = mix64(p->w->flags->seed + (uint64_t)size + ((uint64_t)(unsigned)p->other << 32));
    double end = now() + budget;
    snprintf(s->check, sizeof s->check, "pages of every answer, every byte of the first and the last; round trips in a repetition: %d", trips);
    pattern_fill(out, (size_t)size, key);
    for (uint64_t turn = 0; s->ok; turn++) {
        bool over = turn > WARM && now() >= end, full = turn == 0 || over;
        pattern_stamp(out, (size_t)size, key ^ turn);
        double start = now();
        for (int i = 0; i < trips; i++) {
            MPI_Send(out, size, MPI_BYTE, p->other, TAG_PING, MPI_COMM_WORLD);
            MPI_Recv(in + (size_t)i * (size_t)size, size, MPI_BYTE, p->other, TAG_PONG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        double took = now() - start;
        for (int i = 0; i < trips; i++)
            if (!pattern_right(in + (size_t)i * (size_t)size, (size_t)size, key, key ^ turn, full))
                sample_wrong(s, "another answer than what was sent in repetition %llu", (unsigned long long)turn);
        if (turn >= WARM && !times_add(t, took / (2 * trips)))
            break;
        if (over)
            break;
    }
    MPI_Send(out, 0, MPI_BYTE, p->other, TAG_OVER, MPI_COMM_WORLD);
}

void ping(const struct pair *p, int64_t size, double budget, struct sample *s, struct times *t)
{
    if (p->other < 0)
        return;
    char *out = malloc((size_t)size), *in = calloc((size_t)size, size <= SMALL ? TRIPS : 1);
    char mine = out && in, theirs = 0;
    MPI_Sendrecv(&mine, 1, MPI_BYTE, p->other, TAG_ROOM, &theirs, 1, MPI_BYTE, p->other, TAG_ROOM, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!mine || !theirs)
        sample_wrong(s, "no memory for messages of %lld bytes", (long long)size);
    else if (p->first)
        ask(p, out, in, (int)size, budget, s, t);
    else
        echo(p, in, (int)size);
    free(out);
    free(in);
}
