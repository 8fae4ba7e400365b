/* Files through MPI-IO: one for all ranks, and one for each. What a block has in
 * it follows from where it stands; it is read by another node than wrote it, whose
 * memory cannot have it. Filling and comparing blocks is not in the time. */
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
    int64_t batch;          /* blocks that the buffer holds */
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

/* spent is what the slowest rank took: in all, and for each part of it. */
struct spent {
    double all, open, transfer, close;
};

/* pass writes or reads what this rank has to. Writing ends when all is on the disks. */
static struct spent pass(struct file *f, bool write, uint64_t turn)
{
    const struct world *w = f->w;
    int writer = write ? w->rank : (w->rank + f->shift) % w->size;
    int mode = write ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
    char path[PATH_MAX];
    MPI_File file;
    double aside = 0;
    struct spent slowest = {0};
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
    MPI_Allreduce(&took, &slowest.all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* since is how long it is ago, once all ranks are here. */
static double since(double start)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return now() - start;
}

/* move writes or reads some blocks. */
static void move(struct file *f, MPI_File file, bool write, int writer, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n && !f->wrong[0]; i++) {
        MPI_Status st;
        char *v = f->buffer + i * f->block;
        int code = write ? MPI_File_write_at(file, offset(f, writer, first + i), v, (int)f->block, MPI_BYTE, &st)
                         : MPI_File_read_at(file, offset(f, writer, first + i), v, (int)f->block, MPI_BYTE, &st);
        int bytes = 0;
        if (code == MPI_SUCCESS)
            MPI_Get_count(&st, MPI_BYTE, &bytes);
        if (code != MPI_SUCCESS)
            fail(f, write ? "write" : "read", code);
        else if (bytes != (int)f->block)
            snprintf(f->wrong, sizeof f->wrong, "rank %d %s only %d of %lld bytes of block %lld%s", f->w->rank, write ? "wrote" : "read", bytes,
                     (long long)f->block, (long long)(first + i), write ? ": is there no room left?" : "");
    }
}

/* staged is a pass of which each stage begins when all ranks have ended the one before:
 * with more ranks than processors, what each took by itself would hide that they
 * waited for each other. Some blocks are filled, then all ranks write at once; some
 * are read at once, then compared. Only moving them is in the time. */
static struct spent staged(struct file *f, bool write, uint64_t turn)
{
    const struct world *w = f->w;
    int writer = write ? w->rank : (w->rank + f->shift) % w->size;
    char path[PATH_MAX];
    MPI_File file;
    struct spent mine = {0}, slowest = {0};
    name_of(f, writer, path, sizeof path);
    if (write) {
        snprintf(ours[0], PATH_MAX, "%s", path);
        snprintf(ours[1], PATH_MAX, "%.*s.locktest.%d", PATH_MAX - 32, path, w->rank);
        snprintf(ours[2], PATH_MAX, "/dev/shm/sem.OMPIO_%.*s", 200, strrchr(path, '/') + 1);
    }
    world_meet(w);
    double start = now();
    int code = MPI_File_open(MPI_COMM_WORLD, path, write ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    mine.open = since(start);
    if (code != MPI_SUCCESS)
        fail(f, write ? "create a file" : "open a file", code);
    bool opened = code == MPI_SUCCESS;
    if (!world_all(opened)) {
        if (opened)
            (void)MPI_File_close(&file);
        return mine;
    }
    for (int64_t first = 0; first < f->blocks; first += f->batch) {
        int64_t n = f->blocks - first < f->batch ? f->blocks - first : f->batch;
        for (int64_t i = 0; i < n; i++) {
            char *v = f->buffer + i * f->block;
            uint64_t k = key(f, writer, first + i);
            memset(v, 0, (size_t)f->block);
            if (!write)
                continue;
            pattern_fill(v, (size_t)f->block, k);
            pattern_stamp(v, (size_t)f->block, k ^ turn);
#ifdef BREAK_IO
            v[f->block / 2] ^= 1;
#endif
        }
        MPI_Barrier(MPI_COMM_WORLD);
        start = now();
        move(f, file, write, writer, first, n);
        if (write && first + n == f->blocks && (code = MPI_File_sync(file)) != MPI_SUCCESS)
            fail(f, "bring to the disks", code);
        mine.transfer += since(start);
        for (int64_t i = 0; i < n && !write && !f->wrong[0]; i++) {
            uint64_t k = key(f, writer, first + i);
            if (!pattern_right(f->buffer + i * f->block, (size_t)f->block, k, k ^ turn, true))
                snprintf(f->wrong, sizeof f->wrong, "rank %d read other bytes in block %lld than rank %d wrote", w->rank, (long long)(first + i), writer);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    start = now();
    if ((code = MPI_File_close(&file)) != MPI_SUCCESS)
        fail(f, "close a file", code);
    mine.close = since(start);
    mine.all = mine.open + mine.transfer + mine.close;
    MPI_Allreduce(&mine, &slowest, (int)(sizeof mine / sizeof(double)), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
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

/* part is one figure of a pass: a rate of all bytes, or a time. */
struct part {
    const char *name[2]; /* of writing, of reading */
    bool rate;
    size_t at;           /* in struct spent */
};

enum { MOST_PARTS = 4 };

/* measure makes a figure of each part of a pass, n of them, for writing and for reading. */
static void measure(struct file *f, struct spent (*go)(struct file *, bool, uint64_t), const struct part *parts, int n)
{
    const struct world *w = f->w;
    struct times t[MOST_PARTS][2];
    int others;
    double total = (double)f->blocks * (double)f->block * w->size, mem = memory(w);
    f->shift = farthest(w, &others);
    f->wrong[0] = 0;
    for (int k = 0; k < n; k++)
        times_open(&t[k][0]), times_open(&t[k][1]);
    if (!f->buffer)
        snprintf(f->wrong, sizeof f->wrong, "rank %d has no memory for a block", w->rank);
    double begun = now();
    for (uint64_t turn = 1; agree(f); turn++) {
        struct spent took[2] = {0};
        char path[PATH_MAX];
        int over;
        took[0] = go(f, true, turn);
        if (agree(f))
            took[1] = go(f, false, turn);
        bool fine = agree(f);
        name_of(f, w->rank, path, sizeof path);
        if (!f->shared || w->rank == 0)
            unlink(path);
        for (int k = 0; k < n && fine; k++)
            for (int i = 0; i < 2; i++) {
                double seconds;
                memcpy(&seconds, (char *)&took[i] + parts[k].at, sizeof seconds);
                (void)times_add(&t[k][i], seconds);
            }
        over = !fine || now() - begun >= w->flags->seconds;
        MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (over)
            break;
    }
    memset(ours, 0, sizeof ours);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 2; i++) {
            struct sample s = sample_of(w, parts[k].name[i], parts[k].rate ? "B/s" : "s");
            s.host = NULL;
            s.size = (int64_t)total;
            snprintf(s.check, sizeof s.check, "every byte, %s; %.2g x the memory of all nodes",
                     others == w->size ? "read on another node than wrote it"
                     : others > 0      ? "read on another node by most ranks"
                     : w->size > 1     ? "read by another rank of the only node"
                                       : "read by the only rank",
                     mem > 0 ? total / mem : 0);
            if (f->wrong[0])
                sample_wrong(&s, "%s", f->wrong);
            sample_times(&s, &t[k][i], parts[k].rate ? total : 0);
            if (w->rank == 0)
                line_sample(w, &s);
            times_close(&t[k][i]);
        }
    line_gather(w);
}

/* files prepares, has measured, and clears away. */
static void files(const struct world *w, int64_t batch, void (*all)(struct file *f))
{
    char token[40] = "";
    double mem = memory(w), bytes = w->flags->bytes > 0 ? (double)w->flags->bytes : 1.1 * mem;
    struct file f = {.w = w, .token = token, .block = w->flags->block, .batch = batch};
    if (w->rank == 0)
        snprintf(token, sizeof token, "%lld.%ld", (long long)time(NULL), (long)getpid());
    MPI_Bcast(token, sizeof token, MPI_CHAR, 0, MPI_COMM_WORLD);
    f.blocks = (int64_t)(bytes / w->size / (double)f.block);
    if (f.blocks < 1)
        f.blocks = 1;
    f.buffer = aligned_alloc(4096, ((size_t)(f.block * f.batch) + 4095) / 4096 * 4096);
    struct sigaction act = {.sa_handler = clean};
    const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    for (int i = 0; i < 3; i++)
        sigaction(signals[i], &act, NULL);
    all(&f);
    for (int i = 0; i < 3; i++)
        signal(signals[i], SIG_DFL);
    free(f.buffer);
}

static void shared_and_each(struct file *f)
{
    static const struct part shared = {{"io.shared.write", "io.shared.read"}, true, offsetof(struct spent, all)};
    static const struct part each = {{"io.each.write", "io.each.read"}, true, offsetof(struct spent, all)};
    f->shared = true;
    if (metric_wanted(f->w->flags, "io.shared"))
        measure(f, pass, &shared, 1);
    f->shared = false;
    if (metric_wanted(f->w->flags, "io.each"))
        measure(f, pass, &each, 1);
}

void io_run(const struct world *w)
{
    files(w, 1, shared_and_each);
}

static void by_parts(struct file *f)
{
    static const struct part parts[MOST_PARTS] = {
        {{"clients.write", "clients.read"}, true, offsetof(struct spent, all)},
        {{"clients.write.open", "clients.read.open"}, false, offsetof(struct spent, open)},
        {{"clients.write.transfer", "clients.read.transfer"}, true, offsetof(struct spent, transfer)},
        {{"clients.write.close", "clients.read.close"}, false, offsetof(struct spent, close)},
    };
    f->shared = true;
    measure(f, staged, parts, MOST_PARTS);
}

void clients_run(const struct world *w)
{
    files(w, 8, by_parts); /* 8 MiB a rank, with blocks of 1 MiB */
}
