/* Random texts for the parser of rounds: what it takes must be pairs of ranks that
 * are there, nobody twice in a round, and as many as the text has words; what it
 * refuses must be told. Made under the sanitizers by `make check`. */
#include "../src/probe.h"
#include <stdlib.h>
#include <string.h>

static const char letters[] = "0123456789--  //,x";

/* text is a right one now and then, and else one with mistakes. */
static size_t text(char *out, size_t room, int ranks, uint64_t *state)
{
    size_t n = 0, words = next64(state) % 12;
    for (size_t i = 0; i < words && n + 32 < room; i++) {
        if (i > 0)
            out[n++] = next64(state) % 3 ? ' ' : '/';
        n += (size_t)snprintf(out + n, room - n, "%llu-%llu", (unsigned long long)(next64(state) % (unsigned)ranks),
                              (unsigned long long)(next64(state) % (unsigned)ranks));
    }
    for (size_t i = next64(state) % 4; n > 0 && i > 0; i--)
        out[next64(state) % n] = letters[next64(state) % (sizeof letters - 1)];
    out[n] = '\0';
    return n;
}

static int wrong(const char *why, const char *text)
{
    fprintf(stderr, "rounds: %s: \"%s\"\n", why, text);
    return 1;
}

/* right checks what was made of a text that was taken. */
static int right(const struct rounds *r, const char *text, int ranks)
{
    int words = 0, rounds = 1, pairs = 0;
    for (const char *p = text; *p; p++) {
        rounds += *p == '/';
        words += *p != ' ' && *p != '/' && (p == text || p[-1] == ' ' || p[-1] == '/');
    }
    if (rounds != r->n)
        return wrong("rounds are missing", text);
    for (int i = 0; i < r->n; i++) {
        char *busy = calloc((size_t)ranks, 1);
        for (int k = 0; busy && k < r->v[i].n; k++, pairs++)
            for (int side = 0; side < 2; side++) {
                int rank = r->v[i].pair[k][side];
                if (rank < 0 || rank >= ranks || busy[rank]++)
                    return wrong("a pair that cannot be", text);
            }
        free(busy);
        if (r->v[i].n == 0)
            return wrong("an empty round", text);
    }
    return pairs == words ? 0 : wrong("pairs are missing", text);
}

/* line has a text read back. */
static int line(const char *text, size_t n, const char *end, const char *says)
{
    FILE *f = tmpfile();
    const char *why;
    if (!f || fwrite(text, 1, n, f) != n || fputs(end, f) < 0)
        return wrong("no file", "");
    rewind(f);
    char *got = rounds_line(f, &why);
    int bad = says ? got || !why || !strstr(why, says) : !got || strlen(got) != n || memcmp(got, text, n) != 0;
    free(got);
    fclose(f);
    return bad ? wrong(says ? says : "a line came back as another one", "") : 0;
}

int main(int argc, char **argv)
{
    uint64_t state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, seed = state;
    long times = argc > 2 ? atol(argv[2]) : 100000, taken = 0;
    char some[1024];
    for (long i = 0; i < times; i++) {
        int ranks = 1 + (int)(next64(&state) % 40);
        size_t n = text(some, sizeof some, ranks, &state);
        struct rounds r;
        int problems = rounds_parse(&r, some, ranks, false);
        int bad = problems == 0 ? right(&r, some, ranks) : 0;
        taken += problems == 0;
        rounds_free(&r);
        if (bad || (i % 1000 == 0 && line(some, n, "\n", NULL)))
            return 1;
    }
    size_t many = (size_t)MOST_TEXT + 1;
    char *large = malloc(many);
    if (!large || taken == 0 || taken == times)
        return wrong("texts of one kind only", "");
    memset(large, '1', many);
    struct rounds r;
    large[MOST_ROUNDS * 2] = '\0';
    for (int i = 1; i < MOST_ROUNDS * 2; i += 2)
        large[i] = '/';
    int bad = rounds_parse(&r, large, 2, false) != 1 || r.n != 0;
    rounds_free(&r);
    memset(large, '1', many);
    bad |= line(large, many - 1, "\n", NULL) | line(large, many, "\n", "too long") | line(large, 200000, "", "cut off") |
           line("0-1", 3, "", "cut off") | line("", 0, "", "cut off") | line("", 0, "\nmore\n", NULL) | line("0\0001\n", 4, "", "zero byte");
    free(large);
    printf("rounds: %ld of %ld texts taken, seed %llu\n", taken, times, (unsigned long long)seed);
    return bad;
}
