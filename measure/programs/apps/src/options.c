/* The command line. */
#include "app.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int usage(const struct world *w, const char *program, const char *format, ...)
{
    if (w->rank == 0) {
        va_list args;
        va_start(args, format);
        fprintf(stderr, "muster-%s: ", program);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
    }
    return EXIT_USAGE;
}

static void help(const char *program, const char *about, const struct option *list)
{
    printf("muster-%s: %s\n\n", program, about);
    for (const struct option *o = list; o->name; o++) {
        char left[64];
        snprintf(left, sizeof left, "--%s %s", o->name, o->value ? o->value : "");
        printf("  %-22s %s\n", left, o->help);
    }
    printf("  %-22s %s\n", "--help", "print this");
    printf("\nExit status: 0 the result is right, 1 it is wrong, 2 the request cannot be done.\n");
}

static bool natural(const char *text, int64_t *into)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || v < 0)
        return false;
    *into = v;
    return true;
}

static bool real(const char *text, double *into)
{
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    if (errno || end == text || *end || v != v || v - v != 0)
        return false;
    *into = v;
    return true;
}

/* take reads one value; NULL, or what would have been right. */
static const char *take(const struct option *o, const char *value)
{
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)o->into = true;
        break;
    case OPTION_TEXT:
        *(const char **)o->into = value;
        break;
    case OPTION_NATURAL:
        return natural(value, o->into) ? NULL : "a whole number";
    case OPTION_REAL:
        return real(value, o->into) ? NULL : "a number";
    }
    return NULL;
}

static const struct option *find(const struct option *list, const char *word)
{
    if (strncmp(word, "--", 2) != 0)
        return NULL;
    size_t len = strcspn(word + 2, "=");
    for (; list->name; list++)
        if (strlen(list->name) == len && strncmp(list->name, word + 2, len) == 0)
            return list;
    return NULL;
}

static bool asks_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

enum asked options_read(const struct world *w, const char *program, const char *about, const struct option *list,
                        int argc, char **argv)
{
    if (asks_help(argc, argv)) {
        if (w->rank == 0)
            help(program, about, list);
        return ASKED_HELP;
    }
    for (int i = 1; i < argc; i++) {
        const struct option *o = find(list, argv[i]);
        if (!o)
            return usage(w, program, "unknown option %s; --help lists the options", argv[i]), ASKED_WRONG;
        const char *value = strchr(argv[i], '=');
        value = value ? value + 1 : NULL;
        if (o->kind == OPTION_FLAG && value)
            return usage(w, program, "--%s takes no value", o->name), ASKED_WRONG;
        if (o->kind != OPTION_FLAG && !value)
            value = ++i < argc ? argv[i] : NULL;
        if (o->kind != OPTION_FLAG && !value)
            return usage(w, program, "--%s needs a value: %s", o->name, o->value), ASKED_WRONG;
        const char *wanted = take(o, value);
        if (wanted)
            return usage(w, program, "--%s %s: give %s", o->name, value, wanted), ASKED_WRONG;
    }
    return ASKED_RUN;
}
