/* Memory on one core. The working sets are the same on every machine. */
#include "probe.h"
#include <stdlib.h>
#include <string.h>

enum { WORDS = 1 << 22, BYTES = WORDS * 8 }; /* 32 MiB */

static struct {
    uint64_t *a, *b, expected, got, turn;
    uint32_t *order; /* a random permutation */
} mem;

static bool words_open(uint64_t seed, bool ordered)
{
    mem.a = malloc(BYTES);
    mem.b = ordered ? NULL : malloc(BYTES);
    mem.order = ordered ? malloc(WORDS * sizeof *mem.order) : NULL;
    mem.turn = 0;
    if (!mem.a || (ordered ? !mem.order : !mem.b))
        return false;
    mem.expected = 0;
    for (size_t i = 0; i < WORDS; i++) {
        mem.a[i] = mix64(seed + i);
        mem.expected += mem.a[i];
    }
    if (!ordered) {
        memset(mem.b, 0, BYTES);
        return true;
    }
    for (uint32_t i = 0; i < WORDS; i++)
        mem.order[i] = i;
    for (uint32_t i = WORDS - 1; i > 0; i--) {
        uint32_t j = (uint32_t)(next64(&seed) % (i + 1)), x = mem.order[i];
        mem.order[i] = mem.order[j];
        mem.order[j] = x;
    }
    return true;
}

static bool copy_open(uint64_t seed) { return words_open(seed, false); }
static bool random_open(uint64_t seed) { return words_open(seed, true); }

static void mem_close(void)
{
    free(mem.a);
    free(mem.b);
    free(mem.order);
    mem.a = mem.b = NULL;
    mem.order = NULL;
}

static double copy_run(void)
{
    memcpy(mem.b, mem.a, BYTES);
    return WORDS;
}

static bool copy_right(void)
{
    bool same = memcmp(mem.a, mem.b, BYTES) == 0;
    /* Another content for the next time: an old copy does not pass. */
    pattern_stamp(mem.a, BYTES, ++mem.turn);
    return same;
}

static double gather_run(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < WORDS; i++)
        sum += mem.a[mem.order[i]];
    mem.got = sum;
    return WORDS;
}

static bool gather_right(void)
{
    return mem.got == mem.expected;
}

static double scatter_run(void)
{
    for (size_t i = 0; i < WORDS; i++)
        mem.a[mem.order[i]] ^= i;
    mem.turn++;
    return WORDS;
}

static bool scatter_right(void)
{
    /* Each even turn takes back the odd one before it. */
    uint64_t sum = 0;
    for (size_t i = 0; i < WORDS; i++)
        sum += mem.turn % 2 ? mem.a[mem.order[i]] ^ i : mem.a[i];
    return sum == mem.expected;
}

void core_mem_run(const struct world *w)
{
    static const struct kernel all[] = {
        {"core.mem.copy", "op/s", 2L * BYTES, copy_open, copy_run, copy_right, "every word is the same", mem_close},
        {"core.mem.gather", "op/s", BYTES + WORDS * 4L, random_open, gather_run, gather_right, "the sum in order is the same", mem_close},
        {"core.mem.scatter", "op/s", BYTES + WORDS * 4L, random_open, scatter_run, scatter_right,
         "doing it again takes it back", mem_close},
    };
    kernels_run(w, "core.mem", all, sizeof all / sizeof all[0]);
}
