/* How near processors are, in trees as the kernel shows them: made for the test, of
 * machines that this one is not. */
#include "../src/probe.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[PATH_MAX - 512];

static void put(int cpu, const char *name, const char *text)
{
    char path[PATH_MAX];
    size_t n = (size_t)snprintf(path, sizeof path, "%s/cpu%d/%s", root, cpu, name);
    for (char *p = path + 1; p < path + n; p++)
        if (*p == '/') {
            *p = 0;
            (void)mkdir(path, 0700);
            *p = '/';
        }
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

/* made is a processor of a core, a last cache and a socket, each named as in the kernel's lists. */
static void made(int cpu, const char *core, const char *cache, const char *socket)
{
    if (core)
        put(cpu, "topology/core_cpus_list", core);
    if (socket)
        put(cpu, "topology/physical_package_id", socket);
    put(cpu, "cache/index0/level", "1\n");
    put(cpu, "cache/index0/shared_cpu_list", core ? core : "0\n");
    if (cache) {
        put(cpu, "cache/index1/level", "3\n");
        put(cpu, "cache/index1/shared_cpu_list", cache);
    }
}

static int found(const char *what, const int *cpus, int n, const char *want)
{
    struct places p = places_find(root, cpus, n);
    char got[200] = "";
    for (int d = 0; d < NEARS; d++)
        if (p.there[d])
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s %d-%d;", near_name((enum near)d), p.cpu[d][0], p.cpu[d][1]);
    if (strcmp(got, want) == 0)
        return 0;
    fprintf(stderr, "places: %s: \"%s\", not \"%s\"\n", what, got, want);
    return 1;
}

int main(int argc, char **argv)
{
    snprintf(root, sizeof root, "%s", argc > 1 ? argv[1] : "/nowhere");
    /* Two sockets of two caches of two cores of two threads. */
    const char *const core[8] = {"0,8\n", "1,9\n", "2,10\n", "3,11\n", "4,12\n", "5,13\n", "6,14\n", "7,15\n"};
    for (int i = 0; i < 16; i++)
        made(i, core[i % 8], (const char *[]){"0-1,8-9\n", "2-3,10-11\n", "4-5,12-13\n", "6-7,14-15\n"}[i % 8 / 2], i % 8 < 4 ? "0\n" : "1\n");
    made(20, NULL, "20\n", "0\n");      /* the kernel does not know the core */
    made(21, "21\n", NULL, "0\n");      /* nor the last cache */
    made(22, "22\n", NULL, "0\n");
    made(23, "23\n", "x\n", "-1\n");    /* nor anything */
    int bad = found("all", (int[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 16, "core 0-8;cache 0-1;socket 0-2;sockets 0-4;");
    bad |= found("one of each core", (int[]){7, 6, 5, 4}, 4, "cache 7-6;socket 7-5;");
    bad |= found("threads of one core", (int[]){3, 11}, 2, "core 3-11;");
    bad |= found("one", (int[]){3}, 1, "");
    bad |= found("none", NULL, 0, "");
    bad |= found("unknown", (int[]){20, 21, 22, 23, 99}, 5, "");
    bad |= found("known in part", (int[]){21, 22, 4}, 3, "sockets 21-4;");
    if (!bad)
        printf("places: right\n");
    return bad;
}
