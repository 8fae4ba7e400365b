/* Files through MPI-IO: one for all ranks, and one for each. What a block has in
 * it follows from where it stands; it is read by another node than wrote it, whose
 * memory cannot have it. Filling and comparing blocks is not measured. */
#include "probe.h"
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct file {
    const struct world *w;
    bool shared;
    const char *token;
    int64_t blocks;         /* of each rank */
    int64_t block;
    int shift;              /* this many ranks further is who wrote what we read */
    char *buffer;
    char wrong[CHECK_LEN];  /* empty: nothing */
};

/* What a signal must remove: unlink is safe in its handler. Open MPI makes another
 * file beside each that it opens, for a moment, to see whether locks work, and a
 * semaphore of its name where all ranks are on one host. */
enum { NAMES = 3 };
static char ours[2 * NAMES][PATH_MAX];

static void clean(int sig)
{
    for (int i = 0; i < 2 * NAMES; i++)
        if (ours[i][0])
            unlink(ours[i]);
    signal(sig, SIG_DFL);
    raise(sig);
}

static void name_of(const struct file *f, int rank, char *out, size_t room)
{
    if (f->shared)
        snprintf(out, room, "%s/muster-probe.%s.shared", f->w->flags->dir, f->token);
    else
        snprintf(out, room, "%s/muster-probe.%s.each.%d", f->w->flags->dir, f->token, rank);
}

static void fail(struct file *f, const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    if (f->wrong[0])
        return;
    MPI_Error_string(code, text, &n);
    for (int i = 0; i < n; i++)
        if (text[i] == '\n')
            text[i] = ' ';
    snprintf(f->wrong, sizeof f->wrong, "rank %d cannot %s: %.*s", f->w->rank, what, 120, text);
}

static uint64_t key(const struct file *f, int writer, int64_t block)
{
    /* Words of one file never repeat: a block at another place is found. */
    uint64_t of = f->shared ? 0 : (uint64_t)writer + 1;
    int64_t at = f->shared ? (int64_t)writer * f->blocks + block : block;
    return mix64(f->w->flags->seed + of) + (uint64_t)(at * f->block);
}

static MPI_Offset offset(const struct file *f, int writer, int64_t block)
{
    return (f->shared ? (int64_t)writer * f->blocks + block : block) * f->block;
}

/* agree tells all ranks what went wrong on the first of them that had a problem. */
static bool agree(struct file *f)
{
    int mine = f->wrong[0] ? f->w->rank : INT_MAX, first;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == INT_MAX)
        return true;
    MPI_Bcast(f->wrong, sizeof f->wrong, MPI_CHAR, first, MPI_COMM_WORLD);
    return false;
}

/* pass writes or reads what this rank has to, and returns the seconds of the slowest rank. */
static double pass(struct file *f, bool write, uint64_t turn)
{
    const struct world *w = f->w;
    int writer = write ? w->rank : (w->rank + f->shift) % w->size;
    int mode = write ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
    char path[PATH_MAX];
    MPI_File file;
    double aside = 0, slowest;
    name_of(f, writer, path, sizeof path);
    /* Every rank may create the shared one, so the last to be ended removes it. */
    if (write) {
        int at = f->shared ? 0 : NAMES;
        snprintf(ours[at], PATH_MAX, "%s", path);
        snprintf(ours[at + 1], PATH_MAX, "%.*s.locktest.%d", PATH_MAX - 32, path, f->shared ? w->rank : 0);
        snprintf(ours[at + 2], PATH_MAX, "/dev/shm/sem.OMPIO_%.*s", 200, strrchr(path, '/') + 1);
    }
    world_meet(w);
    double start = now();
    int code = MPI_File_open(f->shared ? MPI_COMM_WORLD : MPI_COMM_SELF, path, mode, MPI_INFO_NULL, &file);
    if (code != MPI_SUCCESS) {
        fail(f, write ? "create a file" : "open a file", code);
    } else {
        for (int64_t b = 0; b < f->blocks && !f->wrong[0]; b++) {
            MPI_Status st;
            uint64_t k = key(f, writer, b);
            double t = now();
            if (write) {
                pattern_fill(f->buffer, (size_t)f->block, k);
                pattern_stamp(f->buffer, (size_t)f->block, k ^ turn);
#ifdef BREAK_IO
                f->buffer[f->block / 2] ^= 1;
#endif
            } else {
                memset(f->buffer, 0, (size_t)f->block);
            }
            aside += now() - t;
            code = write ? MPI_File_write_at(file, offset(f, writer, b), f->buffer, (int)f->block, MPI_BYTE, &st)
                         : MPI_File_read_at(file, offset(f, writer, b), f->buffer, (int)f->block, MPI_BYTE, &st);
            int n = 0;
            if (code == MPI_SUCCESS)
                MPI_Get_count(&st, MPI_BYTE, &n);
            if (code != MPI_SUCCESS)
                fail(f, write ? "write" : "read", code);
            else if (n != (int)f->block)
                snprintf(f->wrong, sizeof f->wrong, "rank %d %s only %d of %lld bytes of block %lld%s", w->rank, write ? "wrote" : "read",
                         n, (long long)f->block, (long long)b, write ? ": is there no room left?" : "");
            t = now();
            if (!write && !f->wrong[0] && !pattern_right(f->buffer, (size_t)f->block, k, k ^ turn, true))
                snprintf(f->wrong, sizeof f->wrong, "rank %d read other bytes in block %lld than rank %d wrote", w->rank, (long long)b, writer);
            aside += now() - t;
        }
        if (write && (code = MPI_File_sync(file)) != MPI_SUCCESS)
            fail(f, "bring to the disks", code);
        if ((code = MPI_File_close(&file)) != MPI_SUCCESS)
            fail(f, "close a file", code);
    }
    double took = now() - start - aside;
    MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* farthest finds how many ranks further most ranks meet another host. */
static int farthest(const struct world *w, int *others)
{
    int best = w->size > 1 ? 1 : 0;
    *others = 0;
    for (int s = 1; s < w->size; s++) {
        int n = 0;
        for (int r = 0; r < w->size; r++)
            n += strcmp(world_host(w, r), world_host(w, (r + s) % w->size)) != 0;
        if (n > *others)
            *others = n, best = s;
        if (n == w->size)
            break;
    }
    return best;
}

/* memory of all nodes in bytes. */
static double memory(const struct world *w)
{
    double mine = 0, all = 0;
    if (w->first_on_host)
        mine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void measure(struct file *f, const char *write, const char *read)
{
    const struct world *w = f->w;
    struct sample s[2] = {sample_of(w, write, "B/s"), sample_of(w, read, "B/s")};
    struct times t[2];
    int others;
    double total = (double)f->blocks * (double)f->block * w->size, mem = memory(w);
    f->shift = farthest(w, &others);
    f->wrong[0] = 0;
    times_open(&t[0]);
    times_open(&t[1]);
    if (!f->buffer)
        snprintf(f->wrong, sizeof f->wrong, "rank %d has no memory for a block", w->rank);
    double begun = now();
    for (uint64_t turn = 1; agree(f); turn++) {
        double took[2] = {pass(f, true, turn), 0};
        char path[PATH_MAX];
        int over;
        if (agree(f))
            took[1] = pass(f, false, turn);
        bool fine = agree(f);
        name_of(f, w->rank, path, sizeof path);
        if (!f->shared || w->rank == 0)
            unlink(path);
        for (int i = 0; i < 2 && fine; i++)
            if (!times_add(&t[i], took[i]))
                break;
        over = !fine || now() - begun >= w->flags->seconds;
        MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (over)
            break;
    }
    memset(ours, 0, sizeof ours);
    for (int i = 0; i < 2; i++) {
        s[i].host = NULL;
        s[i].size = (int64_t)total;
        snprintf(s[i].check, sizeof s[i].check, "every byte, %s; %.2g x the memory of all nodes",
                 others == w->size ? "read on another node than wrote it"
                 : others > 0      ? "read on another node by most ranks"
                 : w->size > 1     ? "read by another rank of the only node"
                                   : "read by the only rank",
                 mem > 0 ? total / mem : 0);
        if (f->wrong[0])
            sample_wrong(&s[i], "%s", f->wrong);
        sample_times(&s[i], &t[i], total);
        if (w->rank == 0)
            line_sample(w, &s[i]);
        times_close(&t[i]);
    }
    line_gather(w);
}

void io_run(const struct world *w)
{
    char token[40] = "";
    double mem = memory(w), bytes = w->flags->bytes > 0 ? (double)w->flags->bytes : 1.1 * mem;
    struct file f = {.w = w, .token = token, .block = w->flags->block};
    if (w->rank == 0)
        snprintf(token, sizeof token, "%lld.%ld", (long long)time(NULL), (long)getpid());
    MPI_Bcast(token, sizeof token, MPI_CHAR, 0, MPI_COMM_WORLD);
    f.blocks = (int64_t)(bytes / w->size / (double)f.block);
    if (f.blocks < 1)
        f.blocks = 1;
    f.buffer = aligned_alloc(4096, ((size_t)f.block + 4095) / 4096 * 4096);
    struct sigaction act = {.sa_handler = clean};
    const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    for (int i = 0; i < 3; i++)
        sigaction(signals[i], &act, NULL);
    if (metric_wanted(w->flags, "io.shared")) {
        f.shared = true;
        measure(&f, "io.shared.write", "io.shared.read");
    }
    if (metric_wanted(w->flags, "io.each")) {
        f.shared = false;
        measure(&f, "io.each.write", "io.each.read");
    }
    for (int i = 0; i < 3; i++)
        signal(signals[i], SIG_DFL);
    free(f.buffer);
}
