/* The names of what is measured. They are stable: what is measured in another
 * way gets another name. */
#include "probe.h"
#include <stdio.h>
#include <string.h>

struct metric {
    enum mode mode;
    const char *name, *what; /* what: NULL is not listed in the help */
};

#define ARITH_AT(mix, precision) \
    {MODE_ALONE, "arith." mix "." precision ".O0", NULL}, {MODE_ALONE, "arith." mix "." precision ".register", NULL}, \
    {MODE_ALONE, "arith." mix "." precision ".O2", NULL}, {MODE_ALONE, "arith." mix "." precision ".O3", NULL}, \
    {MODE_ALONE, "arith." mix "." precision ".fast", NULL}
#define ARITH(mix) ARITH_AT(mix, "double"), ARITH_AT(mix, "float")

static const struct metric metrics[] = {
    {MODE_ALONE, "dgemm", "matrix product in the BLAS that is loaded"},
    {MODE_ALONE, "stream.copy", "c = a"},
    {MODE_ALONE, "stream.copy.time", NULL},
    {MODE_ALONE, "stream.scale", "b = q c"},
    {MODE_ALONE, "stream.scale.time", NULL},
    {MODE_ALONE, "stream.add", "c = a + b"},
    {MODE_ALONE, "stream.add.time", NULL},
    {MODE_ALONE, "stream.triad", "a = b + q c"},
    {MODE_ALONE, "stream.triad.time", NULL},
    {MODE_ALONE, "latency", "one load after the other, by working set"},
    {MODE_ALONE, "noise.median", "fixed work of about a millisecond"},
    {MODE_ALONE, "noise.p99", "99 of 100 are quicker"},
    {MODE_ALONE, "noise.p999", "999 of 1000 are quicker"},
    {MODE_ALONE, "noise.max", "the slowest"},
    {MODE_ALONE, "noise.share", "time lost against the fastest"},
    {MODE_ALONE, "core.int.sort", "sort numbers"},
    {MODE_ALONE, "core.int.crc", "CRC-32 by table"},
    {MODE_ALONE, "core.int.sieve", "find primes"},
    {MODE_ALONE, "core.int.power", "powers modulo a prime"},
    {MODE_ALONE, "core.mem.copy", "copy words"},
    {MODE_ALONE, "core.mem.gather", "read words at random"},
    {MODE_ALONE, "core.mem.scatter", "change words at random"},
    {MODE_ALONE, "core.fp.fft", "Fourier transforms"},
    {MODE_ALONE, "core.fp.lu", "linear equations"},
    {MODE_ALONE, "core.fp.heat", "a stencil in two dimensions"},
    {MODE_ALONE, "core.fp.bodies", "bodies that attract each other"},
    {MODE_ALONE, "mix.O0", "floating-point mix, compiled with -O0"},
    {MODE_ALONE, "mix.O1", "with -O1"},
    {MODE_ALONE, "mix.O2", "with -O2"},
    {MODE_ALONE, "mix.O3", "with -O3"},
    {MODE_ALONE, "arith.MIX", "mixes of + - * /: 1 to 4, and loop, which is empty"},
    {MODE_ALONE, "arith.MIX.double", "in 64 bits, and float in 32"},
    {MODE_ALONE, "arith.MIX.double.O2", "compiled with -O0, -O0 and register, -O2, -O3; fast: -Ofast for this processor"},
    ARITH("1"), ARITH("2"), ARITH("3"), ARITH("4"), ARITH("loop"),
    {MODE_PAIRS, "pair.latency", "half of a round trip of 8 B"},
    {MODE_PAIRS, "pair.bandwidth", "each way by itself, by size"},
    {MODE_PAIRS, "pair.both", "both ways at once, by size"},
    {MODE_ALL, "ring.natural.latency", "8 B to both neighbours, ranks in order"},
    {MODE_ALL, "ring.natural.bandwidth", "2,000,000 B to both neighbours"},
    {MODE_ALL, "ring.random.latency", "the same, ranks in random orders"},
    {MODE_ALL, "ring.random.bandwidth", "the same, ranks in random orders"},
    {MODE_ALL, "alltoall", "each rank to each"},
    {MODE_IO, "io.shared.write", "one file for all ranks"},
    {MODE_IO, "io.shared.read", "by another node than wrote"},
    {MODE_IO, "io.each.write", "one file for each rank"},
    {MODE_IO, "io.each.read", "by another node than wrote"},
    {MODE_SIZES, "size.latency", "half of a round trip, by size"},
    {MODE_SIZES, "size.bandwidth", "each way by itself, by size"},
    {MODE_SIZES, "size.both", "both ways at once, by size"},
    {MODE_INSIDE, "inside.core.latency", "between two threads of one core"},
    {MODE_INSIDE, "inside.core.bandwidth", ""},
    {MODE_INSIDE, "inside.core.both", ""},
    {MODE_INSIDE, "inside.cache.latency", "between two cores with a common cache"},
    {MODE_INSIDE, "inside.cache.bandwidth", ""},
    {MODE_INSIDE, "inside.cache.both", ""},
    {MODE_INSIDE, "inside.socket.latency", "between two caches of one socket"},
    {MODE_INSIDE, "inside.socket.bandwidth", ""},
    {MODE_INSIDE, "inside.socket.both", ""},
    {MODE_INSIDE, "inside.sockets.latency", "between two sockets"},
    {MODE_INSIDE, "inside.sockets.bandwidth", ""},
    {MODE_INSIDE, "inside.sockets.both", ""},
    {MODE_SCALE, "scale.pingpong.latency", "one pair at a time, 8 B and 2,000,000 B"},
    {MODE_SCALE, "scale.pingpong.bandwidth", "the same, as a rate"},
    {MODE_SCALE, "scale.natural.latency", "a ring in order, 8 B and 2,000,000 B"},
    {MODE_SCALE, "scale.natural.bandwidth", "the same, as a rate"},
    {MODE_SCALE, "scale.random.latency", "rings in random orders"},
    {MODE_SCALE, "scale.random.bandwidth", "the same, as a rate"},
    {MODE_CLIENTS, "clients.write", "one file, from opening to closing"},
    {MODE_CLIENTS, "clients.write.open", "until the last rank has opened it"},
    {MODE_CLIENTS, "clients.write.transfer", "until all bytes are on the disks"},
    {MODE_CLIENTS, "clients.write.close", "until the last rank has closed it"},
    {MODE_CLIENTS, "clients.read", "by another rank than wrote"},
    {MODE_CLIENTS, "clients.read.open", ""},
    {MODE_CLIENTS, "clients.read.transfer", ""},
    {MODE_CLIENTS, "clients.read.close", ""},
};

enum { COUNT = sizeof metrics / sizeof metrics[0] };

/* covers says whether word is name, or its beginning up to a dot. */
static bool covers(const char *word, size_t len, const char *name, size_t name_len)
{
    return len <= name_len && memcmp(word, name, len) == 0 && (len == name_len || name[len] == '.');
}

bool metric_known(enum mode m, const char *word, size_t len)
{
    for (int i = 0; i < COUNT; i++)
        if (metrics[i].mode == m && len > 0 && covers(word, len, metrics[i].name, strlen(metrics[i].name)))
            return true;
    return false;
}

bool metric_wanted(const struct flags *f, const char *name)
{
    if (!f->only)
        return true;
    for (const char *p = f->only; *p;) {
        size_t len = strcspn(p, ",");
        if (len > 0 && (covers(p, len, name, strlen(name)) || covers(name, strlen(name), p, len)))
            return true;
        p += len + (p[len] == ',');
    }
    return false;
}

void metric_print(enum mode m)
{
    for (int i = 0; i < COUNT; i++)
        if (metrics[i].mode == m && metrics[i].what)
            printf(metrics[i].what[0] ? "    %-26s%s\n" : "    %s\n", metrics[i].name, metrics[i].what);
}
