/* Whole numbers on one core. */
#include "probe.h"
#include <stdlib.h>
#include <string.h>

/* ---- sort --------------------------------------------------------------- */

enum { KEYS = 1 << 18 };
static struct {
    uint32_t *from, *to;
    uint64_t sum, xor_;
} sort;

static bool sort_open(uint64_t seed)
{
    sort.from = malloc(KEYS * sizeof *sort.from);
    sort.to = malloc(KEYS * sizeof *sort.to);
    if (!sort.from || !sort.to)
        return false;
    sort.sum = sort.xor_ = 0;
    for (int i = 0; i < KEYS; i++) {
        sort.from[i] = (uint32_t)next64(&seed);
        sort.sum += sort.from[i];
        sort.xor_ ^= mix64(sort.from[i]);
    }
    return true;
}

/* quick is Hoare's, with the middle of three as pivot and insertion for the rest. */
static void quick(uint32_t *v, ptrdiff_t n)
{
    while (n > 24) {
        uint32_t a = v[0], b = v[n / 2], c = v[n - 1];
        uint32_t pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        ptrdiff_t i = 0, j = n - 1;
        while (i <= j) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i <= j) {
                uint32_t x = v[i];
                v[i++] = v[j];
                v[j--] = x;
            }
        }
        if (j + 1 < n - i) { /* the shorter part by recursion: the stack stays small */
            quick(v, j + 1);
            v += i;
            n -= i;
        } else {
            quick(v + i, n - i);
            n = j + 1;
        }
    }
    for (ptrdiff_t i = 1; i < n; i++) {
        uint32_t x = v[i];
        ptrdiff_t j = i;
        for (; j > 0 && v[j - 1] > x; j--)
            v[j] = v[j - 1];
        v[j] = x;
    }
}

static double sort_run(void)
{
    memcpy(sort.to, sort.from, KEYS * sizeof *sort.to);
    quick(sort.to, KEYS);
#ifdef BREAK_CORE
    sort.to[KEYS / 2] = 0;
#endif
    return KEYS;
}

static bool sort_right(void)
{
    uint64_t sum = 0, xor_ = 0;
    for (int i = 0; i < KEYS; i++) {
        if (i > 0 && sort.to[i - 1] > sort.to[i])
            return false;
        sum += sort.to[i];
        xor_ ^= mix64(sort.to[i]);
    }
    return sum == sort.sum && xor_ == sort.xor_;
}

static void sort_close(void)
{
    free(sort.from);
    free(sort.to);
}

/* ---- crc ---------------------------------------------------------------- */

enum { TEXT = 1 << 20 };
static struct {
    unsigned char *text;
    uint32_t table[256], start, want, got;
} crc;

static uint32_t crc_bits(uint32_t c, const unsigned char *p, size_t n)
{
    while (n--) {
        c ^= *p++;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    }
    return c;
}

static uint32_t crc_table(uint32_t c, const unsigned char *p, size_t n)
{
    while (n--)
        c = crc.table[(c ^ *p++) & 0xff] ^ (c >> 8);
    return c;
}

static bool crc_open(uint64_t seed)
{
    crc.text = malloc(TEXT);
    if (!crc.text)
        return false;
    pattern_fill(crc.text, TEXT, seed);
    crc.start = (uint32_t)mix64(seed);
    for (unsigned i = 0; i < 256; i++) {
        unsigned char zero = (unsigned char)i;
        crc.table[i] = crc_bits(0, &zero, 1);
    }
    crc.want = crc_bits(crc.start, crc.text, TEXT);
    return true;
}

static double crc_run(void)
{
    crc.got = crc_table(crc.start, crc.text, TEXT);
    return TEXT;
}

static bool crc_right(void)
{
    /* The published check value, and the same text bit by bit. */
    return ~crc_table(~0u, (const unsigned char *)"123456789", 9) == 0xcbf43926u && crc.got == crc.want;
}

static void crc_close(void)
{
    free(crc.text);
}

/* ---- sieve --------------------------------------------------------------- */

enum { BELOW = 2000000, PRIMES = 148933 }; /* primes below two million */
static struct {
    unsigned char *composite; /* of 2 i + 1 */
    int found;
} sieve;

static bool sieve_open(uint64_t seed)
{
    (void)seed;
    sieve.composite = malloc(BELOW / 2);
    return sieve.composite != NULL;
}

static double sieve_run(void)
{
    memset(sieve.composite, 0, BELOW / 2);
    int found = 1; /* 2 */
    for (int i = 1; i < BELOW / 2; i++) {
        if (sieve.composite[i])
            continue;
        found++;
        int64_t p = 2 * (int64_t)i + 1;
        for (int64_t q = p * p; q < BELOW; q += 2 * p)
            sieve.composite[q / 2] = 1;
    }
    sieve.found = found;
    return BELOW;
}

static bool sieve_right(void)
{
    int found = 1;
    for (int i = 1; i < BELOW / 2; i++)
        found += !sieve.composite[i];
    return sieve.found == PRIMES && found == PRIMES;
}

static void sieve_close(void)
{
    free(sieve.composite);
}

/* ---- power ---------------------------------------------------------------- */

enum { BASES = 4096 };
static const uint64_t prime = ((uint64_t)1 << 61) - 1;
static struct {
    uint64_t *base, *up, *down, exponent;
} power;

static uint64_t times_mod(uint64_t a, uint64_t b)
{
    unsigned __int128 x = (unsigned __int128)a * b;
    uint64_t r = (uint64_t)(x & prime) + (uint64_t)(x >> 61);
    return r >= prime ? r - prime : r;
}

static uint64_t power_mod(uint64_t a, uint64_t e)
{
    uint64_t r = 1;
    for (; e; e >>= 1) {
        if (e & 1)
            r = times_mod(r, a);
        a = times_mod(a, a);
    }
    return r;
}

static bool power_open(uint64_t seed)
{
    power.base = malloc(3 * BASES * sizeof *power.base);
    if (!power.base)
        return false;
    power.up = power.base + BASES;
    power.down = power.up + BASES;
    for (int i = 0; i < BASES; i++)
        power.base[i] = 2 + next64(&seed) % (prime - 3);
    power.exponent = prime / 3; /* fixed: its bits are the work */
    return true;
}

static double power_run(void)
{
    for (int i = 0; i < BASES; i++) {
        power.up[i] = power_mod(power.base[i], power.exponent);
        power.down[i] = power_mod(power.base[i], prime - 1 - power.exponent);
    }
    return 2 * BASES;
}

static bool power_right(void)
{
    for (int i = 0; i < BASES; i++)
        if (times_mod(power.up[i], power.down[i]) != 1)
            return false;
    return true;
}

static void power_close(void)
{
    free(power.base);
}

void core_int_run(const struct world *w)
{
    static const struct kernel all[] = {
        {"core.int.sort", "op/s", 2 * KEYS * sizeof(uint32_t), sort_open, sort_run, sort_right,
         "ascending, the same numbers as before", sort_close},
        {"core.int.crc", "op/s", TEXT, crc_open, crc_run, crc_right, "the same bit by bit, and CRC-32's check value", crc_close},
        {"core.int.sieve", "op/s", BELOW / 2, sieve_open, sieve_run, sieve_right, "148933 primes below two million", sieve_close},
        {"core.int.power", "op/s", 3 * BASES * sizeof(uint64_t), power_open, power_run, power_right,
         "powers e and p - 1 - e multiply to 1 (Fermat)", power_close},
    };
    kernels_run(w, "core.int", all, sizeof all / sizeof all[0]);
}
