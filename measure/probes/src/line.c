/* Lines of JSON. Each rank writes into its own memory; the first one prints for
 * all, so that no line is torn by another. */
#include "probe.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    char *v;
    size_t n, room;
    bool comma;
    int64_t samples; /* printed; of the first rank */
    bool failed;
} out;

static void put(const char *s, size_t n)
{
    if (out.n + n > out.room) {
        size_t room = 2 * (out.n + n) + 4096;
        char *v = realloc(out.v, room);
        if (!v) {
            fprintf(stderr, "muster-probe: no memory for %zu bytes of output\n", room);
            MPI_Abort(MPI_COMM_WORLD, 1);
            abort();
        }
        out.v = v;
        out.room = room;
    }
    memcpy(out.v + out.n, s, n);
    out.n += n;
}

static void puts_raw(const char *s)
{
    put(s, strlen(s));
}

/* quoted writes a JSON string. Bytes that are no ASCII become '?': host names and
 * paths here are ASCII, and half a character would spoil the line. */
static void quoted(const char *s)
{
    puts_raw("\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        char esc[8];
        if (c == '"' || c == '\\') {
            esc[0] = '\\';
            esc[1] = (char)c;
            put(esc, 2);
        } else if (c == '\n') {
            put("\\n", 2);
        } else if (c < 0x20) {
            put(esc, (size_t)snprintf(esc, sizeof esc, "\\u%04x", c));
        } else {
            esc[0] = c < 0x7f ? (char)c : '?';
            put(esc, 1);
        }
    }
    puts_raw("\"");
}

static void name(const char *n)
{
    if (out.comma)
        puts_raw(",");
    out.comma = true;
    if (n) {
        quoted(n);
        puts_raw(":");
    }
}

void line_open(const char *kind)
{
    out.comma = false;
    puts_raw("{");
    line_text("kind", kind);
}

void line_text(const char *n, const char *value)
{
    name(n);
    quoted(value);
}

void line_number(const char *n, double value)
{
    char text[40];
    name(n);
    snprintf(text, sizeof text, "%.9g", isfinite(value) ? value : 0);
    puts_raw(text);
}

void line_integer(const char *n, int64_t value)
{
    char text[24];
    name(n);
    snprintf(text, sizeof text, "%lld", (long long)value);
    puts_raw(text);
}

void line_natural(const char *n, uint64_t value)
{
    char text[24];
    name(n);
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    puts_raw(text);
}

void line_flag(const char *n, bool value)
{
    name(n);
    puts_raw(value ? "true" : "false");
}

void line_array(const char *n)
{
    name(n);
    puts_raw("[");
    out.comma = false;
}

void line_item(const char *value)
{
    name(NULL);
    quoted(value);
}

void line_array_end(void)
{
    puts_raw("]");
    out.comma = true;
}

void line_object(const char *n)
{
    name(n);
    puts_raw("{");
    out.comma = false;
}

void line_object_end(void)
{
    puts_raw("}");
    out.comma = true;
}

void line_close(void)
{
    puts_raw("}\n");
}

struct sample sample_of(const struct world *w, const char *metric, const char *unit_)
{
    return (struct sample){.metric = metric, .unit = unit_, .host = w->host, .rank = w->rank,
                           .peer_rank = -1, .size = -1, .round = -1, .ok = true};
}

void sample_wrong(struct sample *s, const char *format, ...)
{
    va_list args;
    if (!s->ok)
        return; /* the first reason counts */
    s->ok = false;
    va_start(args, format);
    vsnprintf(s->check, sizeof s->check, format, args);
    va_end(args);
}

void sample_times(struct sample *s, struct times *t, double work)
{
    double slow = times_at(t, 1), mid = times_at(t, 0.5), fast = times_at(t, 0);
    s->n = (int64_t)t->n;
    s->seconds = t->sum;
    s->value = mid, s->min = fast, s->max = slow;
    s->mean = t->n > 0 ? t->sum / (double)t->n : 0;
    if (work > 0 && fast > 0)
        s->value = work / mid, s->min = work / slow, s->max = work / fast, s->mean = work / s->mean;
    if (t->n == 0)
        sample_wrong(s, "no repetition was finished");
    else if (fast <= 0)
        sample_wrong(s, "a repetition took no time that the clock can see");
}

void line_sample(const struct world *w, struct sample *s)
{
    if (!metric_wanted(w->flags, s->metric))
        return;
    if (!isfinite(s->value) || !isfinite(s->min) || !isfinite(s->max) || !isfinite(s->mean) || s->value < 0)
        sample_wrong(s, "the figure is not a number");
    if (!s->ok)
        s->value = s->min = s->max = s->mean = 0; /* never a figure */
    line_open("sample");
    line_text("metric", s->metric);
    line_number("value", s->value);
    line_text("unit", s->unit);
    if (s->host)
        line_text("host", s->host);
    if (s->rank >= 0 && s->host)
        line_integer("rank", s->rank);
    if (s->peer) {
        line_text("peer", s->peer);
        line_integer("peer_rank", s->peer_rank);
    }
    if (s->size >= 0)
        line_integer("size", s->size);
    if (s->threads > 0)
        line_integer("threads", s->threads);
    if (s->round >= 0)
        line_integer("round", s->round);
    line_integer("n", s->n);
    line_number("min", s->min);
    line_number("max", s->max);
    if (s->mean > 0)
        line_number("mean", s->mean);
    line_number("seconds", s->seconds);
    line_flag("ok", s->ok);
    line_text("check", s->check);
    line_close();
}

static void print(const char *v, size_t n)
{
    static const char mark[] = "{\"kind\":\"sample\",";
    for (const char *p = v; n > 0;) {
        const char *end = memchr(p, '\n', n);
        size_t len = end ? (size_t)(end - p) + 1 : n;
        if (len >= sizeof mark && memcmp(p, mark, sizeof mark - 1) == 0)
            out.samples++;
        if (fwrite(p, 1, len, stdout) != len)
            out.failed = true;
        p += len;
        n -= len;
    }
}

void line_gather(const struct world *w)
{
    /* One rank after the other: memory of the first stays that of one rank's
     * lines. Others sleep meanwhile in world_meet. */
    world_meet(w);
    if (w->rank == 0) {
        print(out.v, out.n);
        for (int r = 1; r < w->size; r++) {
            MPI_Status st;
            int n = 0;
            MPI_Probe(r, 7, MPI_COMM_WORLD, &st);
            MPI_Get_count(&st, MPI_CHAR, &n);
            char *v = malloc((size_t)n + 1);
            if (!v) {
                fprintf(stderr, "muster-probe: no memory for %d bytes of rank %d\n", n, r);
                MPI_Abort(MPI_COMM_WORLD, 1);
                abort();
            }
            MPI_Recv(v, n, MPI_CHAR, r, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            print(v, (size_t)n);
            free(v);
        }
        if (fflush(stdout) != 0)
            out.failed = true;
    } else {
        MPI_Send(out.v, (int)out.n, MPI_CHAR, 0, 7, MPI_COMM_WORLD);
    }
    out.n = 0;
}

bool line_end(const struct world *w)
{
    line_gather(w);
    if (w->rank == 0) {
        line_open("end");
        line_integer("samples", out.samples);
        line_close();
        print(out.v, out.n);
        if (fflush(stdout) != 0)
            out.failed = true;
    }
    free(out.v);
    bool ok = !out.failed;
    memset(&out, 0, sizeof out);
    return ok;
}
