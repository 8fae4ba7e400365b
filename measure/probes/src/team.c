/* Threads that work on one thing together, each bound to its own processor. The
 * caller is member 0. */
#include "probe.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct member {
    struct team *team;
    int index;
    pthread_t thread;
};

struct team {
    int n, alive;
    pthread_barrier_t gate;
    pthread_mutex_t hired;
    work_fn *work; /* NULL: go home */
    void *arg;
    struct member *m;
    cpu_set_t before;
    bool bound;
};

static void bind_to(int index)
{
    cpu_set_t set;
    int cpu = cpus_at(index);
    if (cpu >= CPU_SETSIZE)
        return; /* left to the kernel; the mask in force is reported anyway */
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static void *serve(void *arg)
{
    struct member *m = arg;
    struct team *t = m->team;
    pthread_mutex_lock(&t->hired); /* until all are there, or all go */
    bool go = t->alive == t->n;
    pthread_mutex_unlock(&t->hired);
    if (!go)
        return NULL;
    bind_to(m->index);
    for (;;) {
        pthread_barrier_wait(&t->gate);
        if (!t->work)
            return NULL;
        t->work(m->index, t->n, t->arg);
        pthread_barrier_wait(&t->gate);
    }
}

struct team *team_open(int members)
{
    struct team *t = calloc(1, sizeof *t);
    if (!t || !(t->m = calloc((size_t)members, sizeof *t->m))) {
        free(t);
        return NULL;
    }
    t->n = members;
    t->alive = 1;
    t->bound = sched_getaffinity(0, sizeof t->before, &t->before) == 0;
    pthread_barrier_init(&t->gate, NULL, (unsigned)members);
    pthread_mutex_init(&t->hired, NULL);
    pthread_mutex_lock(&t->hired);
    for (; t->alive < members; t->alive++) {
        struct member *m = &t->m[t->alive];
        m->team = t;
        m->index = t->alive;
        if (pthread_create(&m->thread, NULL, serve, m) != 0)
            break;
    }
    pthread_mutex_unlock(&t->hired);
    if (t->alive < members) {
        t->work = NULL;
        for (int i = 1; i < t->alive; i++)
            pthread_join(t->m[i].thread, NULL);
        pthread_barrier_destroy(&t->gate);
        pthread_mutex_destroy(&t->hired);
        free(t->m);
        free(t);
        return NULL;
    }
    bind_to(0);
    return t;
}

double team_run(struct team *t, work_fn *work, void *arg)
{
    t->work = work;
    t->arg = arg;
    pthread_barrier_wait(&t->gate);
    double start = now();
    work(0, t->n, arg);
    pthread_barrier_wait(&t->gate);
    return now() - start;
}

void team_close(struct team *t)
{
    t->work = NULL;
    pthread_barrier_wait(&t->gate);
    for (int i = 1; i < t->n; i++)
        pthread_join(t->m[i].thread, NULL);
    if (t->bound)
        (void)sched_setaffinity(0, sizeof t->before, &t->before);
    pthread_barrier_destroy(&t->gate);
    pthread_mutex_destroy(&t->hired);
    free(t->m);
    free(t);
}
