/* Contents of messages and blocks. Filling and comparing everything takes as
 * long as sending it, so most repetitions only change and compare one word in
 * each page: that tells a stale or misplaced page. */
#include "probe.h"
#include <string.h>

enum { PAGE = 4096, WORD = 8 };

static size_t part(size_t bytes, size_t at)
{
    return bytes - at < WORD ? bytes - at : WORD;
}

void pattern_fill(void *p, size_t bytes, uint64_t key)
{
    unsigned char *to = p;
    for (size_t at = 0; at < bytes; at += WORD) {
        uint64_t x = mix64(key + at);
        memcpy(to + at, &x, part(bytes, at));
    }
}

void pattern_stamp(void *p, size_t bytes, uint64_t stamp)
{
    unsigned char *to = p;
    for (size_t at = 0; at < bytes; at += PAGE) {
        uint64_t x = mix64(stamp ^ at);
        memcpy(to + at, &x, part(bytes, at));
    }
}

bool pattern_right(const void *p, size_t bytes, uint64_t key, uint64_t stamp, bool full)
{
    const unsigned char *from = p;
    for (size_t at = 0; at < bytes; at += full ? WORD : PAGE) {
        uint64_t x = at % PAGE == 0 ? mix64(stamp ^ at) : mix64(key + at);
        if (memcmp(from + at, &x, part(bytes, at)) != 0)
            return false;
    }
    return true;
}
