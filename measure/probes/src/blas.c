/* The BLAS that the loader chose. It is only known by asking the process. */
#include "probe.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

dgemm_fn dgemm_;

/* symbol looks a function up; POSIX lets a data pointer stand for it. */
static void symbol(const char *name, void *fn, size_t size)
{
    void *p = dlsym(RTLD_DEFAULT, name);
    memcpy(fn, &p, size);
}

dgemm_fn *blas_dgemm(void)
{
    return dgemm_;
}

bool blas_threads(int n)
{
    static const char *const setters[] = {"openblas_set_num_threads", "MKL_Set_Num_Threads", "bli_thread_set_num_threads"};
    for (size_t i = 0; i < sizeof setters / sizeof setters[0]; i++) {
        void (*set)(int);
        symbol(setters[i], &set, sizeof set);
        if (set) {
            if (i == 2) { /* BLIS takes a dim_t */
                void (*wide)(int64_t);
                symbol(setters[i], &wide, sizeof wide);
                wide(n);
            } else {
                set(n);
            }
            return true;
        }
    }
    return false;
}

const char *blas_config(void)
{
    char *(*config)(void);
    symbol("openblas_get_config", &config, sizeof config);
    return config ? config() : NULL;
}

/* mapped finds the file of /proc/self/maps that holds an address. */
static bool mapped(uintptr_t at, char *out, size_t room)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[PATH_MAX + 128];
    bool found = false;
    if (!f)
        return false;
    while (!found && fgets(line, sizeof line, f)) {
        unsigned long from, to;
        int path = 0;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &path) < 2 || at < from || at >= to || !path)
            continue;
        line[strcspn(line, "\n")] = 0;
        found = line[path] == '/';
        if (found)
            snprintf(out, room, "%s", line + path);
    }
    fclose(f);
    return found;
}

void blas_file(char *out, size_t room)
{
    /* Where the core of OpenBLAS lies in a file of its own, that one says more
     * than the small one with the interface. */
    void *core = dlsym(RTLD_DEFAULT, "openblas_get_config");
    dgemm_fn *f = dgemm_;
    uintptr_t at = (uintptr_t)core;
    if (!core)
        memcpy(&at, &f, sizeof at);
    if (!mapped(at, out, room))
        snprintf(out, room, "unknown");
}
