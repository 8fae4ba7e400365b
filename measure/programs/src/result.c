/* What came out: some lines for people, or one JSON object. */
#include "program.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* The Makefile says what it did. */
#ifndef PROGRAM_COMPILER
#define PROGRAM_COMPILER "unknown"
#endif
#ifndef PROGRAM_FLAGS
#define PROGRAM_FLAGS "unknown"
#endif

enum { MOST_LINES = 4 }; /* people get the worst value if there are more */

void result_value(struct result *r, double got, double wanted, const char *format, ...)
{
    struct value *v = &r->v[r->n++];
    va_list args;
    va_start(args, format);
    vsnprintf(v->name, sizeof v->name, format, args);
    va_end(args);
    v->got = got;
    v->wanted = wanted;
    v->error = fabs(got - wanted);
    if (wanted != 0)
        v->error /= fabs(wanted);
    v->right = v->error <= r->tolerance; /* never of what is not a number */
}

bool result_right(const struct result *r)
{
    bool right = r->n > 0;
    for (int i = 0; i < r->n; i++)
        right = right && r->v[i].right;
    return right;
}

static double mops(const struct result *r)
{
    return r->seconds > 0 ? r->operations / r->seconds / 1e6 : 0;
}

static void text(const char *name, const char *value, const char *after)
{
    printf("\"%s\":\"", name);
    for (; *value; value++)
        if (*value == '"' || *value == '\\')
            printf("\\%c", *value);
        else if ((unsigned char)*value >= ' ')
            putchar(*value);
    printf("\"%s", after);
}

/* number writes null where JSON has no number. */
static void number(const char *name, double value, const char *after)
{
    if (isfinite(value))
        printf("\"%s\":%.17g%s", name, value, after);
    else
        printf("\"%s\":null%s", name, after);
}

static void print_json(const struct result *r, const struct world *w)
{
    putchar('{');
    text("program", w->program, ",");
    text("class", (char[]){w->class, 0}, ",");
    text("size", r->size, ",");
    printf("\"iterations\":%d,\"ranks\":%d,", r->iterations, w->size);
    if (w->per_node > 0)
        printf("\"ranks_per_node\":%d,", w->per_node);
    number("seconds", r->seconds, ",");
    number("operations", r->operations, ",");
    number("mops", mops(r), ",");
    printf("\"verified\":%s,", result_right(r) ? "true" : "false");
    number("tolerance", r->tolerance, ",\"values\":[");
    for (int i = 0; i < r->n; i++) {
        const struct value *v = &r->v[i];
        printf("%s{", i > 0 ? "," : "");
        text("name", v->name, ",");
        number("got", v->got, ",");
        number("wanted", v->wanted, ",");
        number("error", v->error, "}");
    }
    printf("],");
    text("compiler", PROGRAM_COMPILER, ",");
    text("flags", PROGRAM_FLAGS, "}\n");
}

static void print_value(const struct value *v)
{
    printf("  %-11s %s: %.15g, wanted %.15g, relative error %.2g\n", v->right ? "right" : "WRONG", v->name, v->got,
           v->wanted, v->error);
}

static void print_values(const struct result *r)
{
    int worst = 0, wrong = 0;
    for (int i = 0; i < r->n; i++) {
        wrong += !r->v[i].right;
        if (!(r->v[i].error <= r->v[worst].error))
            worst = i;
    }
    printf("  %-11s %s: %d of %d values within %g\n", "verified", result_right(r) ? "yes" : "NO", r->n - wrong, r->n,
           r->tolerance);
    if (r->n > MOST_LINES)
        print_value(&r->v[worst]);
    else
        for (int i = 0; i < r->n; i++)
            print_value(&r->v[i]);
}

static void print_people(const struct result *r, const struct world *w, const char *title)
{
    printf("%s, class %c: %s\n", w->program, w->class, title);
    printf("  %-11s %s, %d iterations\n", "size", r->size, r->iterations);
    printf("  %-11s %d", "ranks", w->size);
    if (w->per_node > 0)
        printf(", %d per node", w->per_node);
    printf("\n  %-11s %.4g\n", "seconds", r->seconds);
    printf("  %-11s %.6g\n", "operations", r->operations);
    printf("  %-11s %.1f\n", "Mop/s", mops(r));
    print_values(r);
    printf("  %-11s %s\n  %-11s %s\n", "compiler", PROGRAM_COMPILER, "flags", PROGRAM_FLAGS);
}

bool result_print(const struct result *r, const struct world *w, const char *title, bool json)
{
    if (json)
        print_json(r, w);
    else
        print_people(r, w, title);
    return fflush(stdout) == 0 && !ferror(stdout);
}
