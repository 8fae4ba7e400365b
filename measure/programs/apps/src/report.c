/* The report: lines for people or one JSON object, from rank 0. */
#include "app.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void add_check(struct report *r, struct check c)
{
    if (r->checks == MAX_CHECKS)
        abort();
    r->check[r->checks++] = c;
}

void report_near(struct report *r, const char *name, double got, double want, double within)
{
    double error = fabs((got - want) / want);
    /* A comparison with NaN is false, so NaN is never right. */
    add_check(r, (struct check){name, got, want, error, false, error <= within});
}

void report_below(struct report *r, const char *name, double got, double most)
{
    add_check(r, (struct check){name, got, most, got, true, got <= most});
}

static void add_extra(struct report *r, struct extra e)
{
    if (r->extras == MAX_EXTRAS)
        abort();
    r->extra[r->extras++] = e;
}

void report_figure(struct report *r, const char *name, const char *unit, double value)
{
    add_extra(r, (struct extra){.name = name, .unit = unit, .value = value});
}

void report_list(struct report *r, const char *name, const char *unit, const double *list, int n)
{
    add_extra(r, (struct extra){.name = name, .unit = unit, .list = list, .n = n});
}

void report_text(struct report *r, const char *name, const char *text)
{
    add_extra(r, (struct extra){.name = name, .text = text});
}

static bool verified(const struct report *r)
{
    for (int i = 0; i < r->checks; i++)
        if (!r->check[i].right)
            return false;
    return r->checks > 0;
}

static double mops(const struct report *r)
{
    return r->seconds > 0 ? r->operations / r->seconds * 1e-6 : 0;
}

/* quoted prints text that may hold quotes or backslashes: flags do. */
static void quoted(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        if ((unsigned char)*text >= ' ')
            putchar(*text);
    }
    putchar('"');
}

/* JSON knows no NaN and no infinity. */
static void number(double v)
{
    if (isfinite(v))
        printf("%.17g", v);
    else
        printf("null");
}

static void json_extra(const struct extra *e)
{
    printf(",\"%s\":", e->name);
    if (e->text) {
        quoted(e->text);
        return;
    }
    if (!e->list) {
        number(e->value);
        return;
    }
    putchar('[');
    for (int i = 0; i < e->n; i++) {
        if (i > 0)
            putchar(',');
        number(e->list[i]);
    }
    putchar(']');
}

static void json_check(const struct check *c)
{
    printf("{\"name\":\"%s\",\"got\":", c->name);
    number(c->got);
    printf(",\"want\":");
    number(c->want);
    printf(",\"error\":");
    number(c->error);
    printf(",\"right\":%s}", c->right ? "true" : "false");
}

static void json(const struct report *r, const struct world *w)
{
    printf("{\"program\":\"%s\"", r->program);
    if (r->class)
        printf(",\"class\":\"%s\"", r->class);
    printf(",\"size\":[");
    for (int i = 0; i < r->sides; i++)
        printf(i > 0 ? ",%d" : "%d", r->size[i]);
    printf("],\"iterations\":%lld,\"ranks\":%d,\"seconds\":", (long long)r->iterations, w->ranks);
    number(r->seconds);
    if (r->operations > 0) {
        printf(",\"operations\":");
        number(r->operations);
        printf(",\"mops\":");
        number(mops(r));
    }
    for (int i = 0; i < r->extras; i++)
        json_extra(&r->extra[i]);
    printf(",\"verified\":%s,\"checks\":[", verified(r) ? "true" : "false");
    for (int i = 0; i < r->checks; i++) {
        if (i > 0)
            putchar(',');
        json_check(&r->check[i]);
    }
    printf("],\"compiler\":");
    quoted(facts_compiler);
    printf(",\"flags\":");
    quoted(facts_flags);
    printf("}\n");
}

static void line(const char *name, double value, const char *unit)
{
    printf("%-18s %.6g%s%s\n", name, value, *unit ? " " : "", unit);
}

static void people_extra(const struct extra *e)
{
    if (e->text) {
        printf("%-18s %s\n", e->name, e->text);
        return;
    }
    if (!e->list) {
        line(e->name, e->value, e->unit);
        return;
    }
    printf("%-18s", e->name);
    for (int i = 0; i < e->n; i++)
        printf(" %.4g", e->list[i]);
    printf(" %s\n", e->unit);
}

static void people(const struct report *r, const struct world *w)
{
    printf("%-18s %s%s%s\n", "program", r->program, r->class ? ", class " : "", r->class ? r->class : "");
    printf("%-18s ", "size");
    for (int i = 0; i < r->sides; i++)
        printf(i > 0 ? " x %d" : "%d", r->size[i]);
    printf("\n%-18s %lld\n%-18s %d\n", "iterations", (long long)r->iterations, "ranks", w->ranks);
    line("seconds", r->seconds, "");
    if (r->operations > 0)
        line("speed", mops(r), "Mop/s");
    for (int i = 0; i < r->extras; i++)
        people_extra(&r->extra[i]);
    for (int i = 0; i < r->checks; i++) {
        const struct check *c = &r->check[i];
        printf("%-18s ", c->name);
        if (c->limit)
            printf("got %.3g, at most %.3g", c->got, c->want);
        else
            printf("got %.13e want %.13e error %.1e", c->got, c->want, c->error);
        puts(c->right ? " right" : " WRONG");
    }
    printf("%-18s %s\n%-18s %s\n", "verified", verified(r) ? "yes" : "NO", "compiler", facts_compiler);
    printf("%-18s %s\n", "flags", facts_flags);
}

int report_print(const struct report *r, const struct world *w, bool as_json)
{
    int status = verified(r) ? EXIT_RIGHT : EXIT_WRONG;
    if (w->rank == 0) {
        (as_json ? json : people)(r, w);
        if (fflush(stdout) != 0 && status == EXIT_RIGHT)
            status = EXIT_WRONG;
    }
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return status;
}
