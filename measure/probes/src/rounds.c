/* Rounds of disjoint pairs: "0-1 2-3/0-2 1-3". Of a thousand nodes that is more than
 * an argument may be long: rank 0 can read it, and tell the others. */
#include "probe.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* number reads the digits at *at and goes past them; -1 if there are none. */
static int number(const char **at)
{
    int n = -1;
    for (; isdigit((unsigned char)**at); (*at)++)
        if (n < 100000000)
            n = (n < 0 ? 0 : n) * 10 + (**at - '0');
    return n;
}

/* tell prints a problem, if it is one of the first. */
static void tell(bool print, int problems, int index, const char *word, int len, const char *why, int ranks)
{
    if (!print || problems > MOST_TOLD)
        return;
    if (problems == MOST_TOLD)
        fprintf(stderr, "muster-probe: --rounds: and more\n");
    else
        fprintf(stderr, "muster-probe: --rounds: round %d: \"%.*s\" %s (there are %d ranks)\n", index, len < 40 ? len : 40, word, why, ranks);
}

static int one(struct round *r, int index, const char *text, const char *end, int ranks, bool print)
{
    int problems = 0;
    char *busy = calloc((size_t)ranks, 1);
    size_t room = (size_t)ranks / 2 + 1;
    r->pair = malloc(room * sizeof *r->pair);
    if (!busy || !r->pair) {
        free(busy);
        return 1;
    }
    for (const char *p = text; p < end;) {
        if (*p == ' ') {
            p++;
            continue;
        }
        const char *word = p;
        int len = (int)strcspn(word, " /");
        int a = number(&p), b = -1;
        if (*p == '-') {
            p++;
            b = number(&p);
        }
        const char *why = NULL;
        if (a < 0 || b < 0 || p != word + len)
            why = "is not two ranks, as 0-1";
        else if (a >= ranks || b >= ranks)
            why = "names a rank that is not there";
        else if (a == b)
            why = "is a rank with itself";
        else if (busy[a] || busy[b])
            why = "has a rank that is in this round already";
        p = word + len;
        if (why) {
            tell(print, problems++, index, word, len, why, ranks);
            continue;
        }
        busy[a] = busy[b] = 1;
        r->pair[r->n][0] = a;
        r->pair[r->n++][1] = b;
    }
    if (r->n == 0 && problems == 0) {
        problems++;
        if (print)
            fprintf(stderr, "muster-probe: --rounds: round %d has no pair\n", index);
    }
    free(busy);
    return problems;
}

int rounds_parse(struct rounds *r, const char *text, int ranks, bool print)
{
    int problems = 0, n = 1;
    for (const char *p = text; *p; p++)
        n += *p == '/';
    r->n = 0;
    r->v = NULL;
    if (n > MOST_ROUNDS) {
        if (print)
            fprintf(stderr, "muster-probe: --rounds: more than %d rounds\n", MOST_ROUNDS);
        return 1;
    }
    r->v = calloc((size_t)n, sizeof *r->v);
    if (!r->v)
        return 1;
    for (const char *p = text;;) {
        size_t len = strcspn(p, "/");
        problems += one(&r->v[r->n], r->n, p, p + len, ranks, print);
        r->n++;
        if (!p[len])
            return problems;
        if (problems > MOST_TOLD) /* it is something else */
            return problems;
        p += len + 1;
    }
}

char *rounds_line(FILE *from, const char **why)
{
    size_t room = 1 << 16, n = 0;
    char *text = malloc(room);
    *why = NULL;
    for (int c; text && !*why && (c = getc(from)) != '\n';) {
        if (c == EOF)
            *why = "it was cut off: the end of the line is missing";
        else if (n == MOST_TEXT)
            *why = "it is too long";
        else if (c == '\0')
            *why = "there is a zero byte in it";
        else
            text[n++] = (char)c;
        if (n == room) {
            char *more = realloc(text, room *= 2);
            if (!more)
                free(text);
            text = more;
        }
    }
    if (!text)
        *why = "there is no memory for it";
    if (*why) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    return text;
}

void rounds_free(struct rounds *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->v[i].pair);
    free(r->v);
    *r = (struct rounds){0};
}
