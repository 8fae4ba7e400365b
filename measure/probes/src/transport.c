/* What carried the messages, as far as it can be told from inside: MPI's modules,
 * what was set for them, bytes by network interface, and open connections. */
#include "probe.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

enum { MOST = 128, NAME = 64 };

/* ---- a set of words ------------------------------------------------------------ */

struct words {
    int n;
    char v[MOST][NAME];
};

static void words_add(struct words *s, const char *word, size_t len)
{
    len = len < NAME - 1 ? len : NAME - 1;
    for (int i = 0; i < s->n; i++)
        if (strncmp(s->v[i], word, len) == 0 && s->v[i][len] == 0)
            return;
    if (s->n == MOST)
        return;
    memcpy(s->v[s->n], word, len);
    s->v[s->n++][len] = 0;
}

static void words_say(const struct words *s, const char *name)
{
    line_array(name);
    for (int i = 0; i < s->n; i++)
        line_item(s->v[i]);
    line_array_end();
}

/* ---- bytes by interface ---------------------------------------------------------- */

struct link {
    char name[NAME];
    long long sent;
};

static struct link links[MOST];
static int link_count;

static int links_read(struct link *v)
{
    char line[512];
    int n = 0;
    FILE *f = fopen("/proc/self/net/dev", "r");
    while (f && n < MOST && fgets(line, sizeof line, f)) {
        char *colon = strrchr(line, ':');
        if (!colon)
            continue;
        *colon = 0;
        const char *name = line + strspn(line, " ");
        if (sscanf(colon + 1, "%*s %*s %*s %*s %*s %*s %*s %*s %lld", &v[n].sent) == 1)
            snprintf(v[n++].name, NAME, "%.*s", NAME - 1, name);
    }
    if (f)
        fclose(f);
    /* Fabrics do not count as network interfaces; their ports count words of four bytes. */
    DIR *d = opendir("/sys/class/infiniband");
    for (struct dirent *e; d && n < MOST && (e = readdir(d));) {
        char path[512];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/sys/class/infiniband/%.64s/ports/1/counters/port_xmit_data", e->d_name);
        f = fopen(path, "r");
        if (f && fscanf(f, "%lld", &v[n].sent) == 1) {
            v[n].sent *= 4;
            snprintf(v[n++].name, NAME, "%.*s", NAME - 1, e->d_name);
        }
        if (f)
            fclose(f);
    }
    if (d)
        closedir(d);
    return n;
}

void transport_begin(void)
{
    link_count = links_read(links);
}

static void say_sent(void)
{
    struct link after[MOST];
    int n = links_read(after);
    line_object("sent");
    for (int i = 0; i < n; i++)
        for (int k = 0; k < link_count; k++)
            if (strcmp(after[i].name, links[k].name) == 0 && after[i].sent > links[k].sent)
                line_integer(after[i].name, after[i].sent - links[k].sent);
    line_object_end();
}

/* ---- modules ------------------------------------------------------------------------ */

/* Open MPI takes back the settings of modules that it closes, so those whose
 * settings can still be read are the ones that it kept. */
static void say_modules(void)
{
    static const char *const kinds[] = {"pml", "btl", "mtl"};
    struct words kept[3] = {{0}, {0}, {0}};
    int provided, n = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS) {
        if (MPI_T_cvar_get_num(&n) != MPI_SUCCESS)
            n = 0;
        for (int i = 0; i < n; i++) {
            char name[256] = "", text[4] = "";
            int len = sizeof name, text_len = sizeof text, verbosity, binding, scope;
            MPI_Datatype type;
            MPI_T_enum values;
            if (MPI_T_cvar_get_info(i, name, &len, &verbosity, &type, &values, text, &text_len, &binding, &scope) != MPI_SUCCESS)
                continue;
            for (int k = 0; k < 3; k++) {
                size_t at = strlen(kinds[k]) + 1, end;
                if (strncmp(name, kinds[k], at - 1) != 0 || name[at - 1] != '_')
                    continue;
                end = strcspn(name + at, "_");
                if (strncmp(name + at, "base", 4) != 0 && name[at + end] == '_')
                    words_add(&kept[k], name + at, end);
            }
        }
        MPI_T_finalize();
    }
    /* Modules of mtl are only used below the pml cm, but not taken back without it. */
    bool cm = false;
    for (int i = 0; i < kept[0].n; i++)
        cm = cm || strcmp(kept[0].v[i], "cm") == 0;
    for (int k = 0; k < (cm ? 3 : 2); k++)
        words_say(&kept[k], kinds[k]);
}

static void say_mapped(void)
{
    static const char *const marks[] = {"mca_pml", "mca_btl", "mca_mtl", "libuc", "libfabric", "libpsm",
                                        "libibverbs", "libmlx", "libefa", "libmpi.", "libxpmem"};
    struct words found = {0};
    char line[4352];
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *name = strrchr(line, '/');
        if (!name)
            continue;
        name[strcspn(name, "\n")] = 0;
        name++;
        for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
            if (strncmp(name, marks[i], strlen(marks[i])) == 0)
                words_add(&found, name, strlen(name));
    }
    if (f)
        fclose(f);
    words_say(&found, "mapped");
}

static void say_set(void)
{
    static const char *const marks[] = {"OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_mtl", "OMPI_MCA_osc", "OMPI_MCA_coll",
                                        "OMPI_MCA_mpi_", "OMPI_MCA_io", "OMPI_MCA_opal_common_ucx", "UCX_", "FI_",
                                        "OPENBLAS_", "OMP_", "MKL_", "BLIS_"};
    line_object("set");
    for (char **e = environ; *e; e++) {
        const char *eq = strchr(*e, '=');
        for (size_t i = 0; eq && i < sizeof marks / sizeof marks[0]; i++)
            if (strncmp(*e, marks[i], strlen(marks[i])) == 0) {
                char name[128];
                char value[256];
                snprintf(name, sizeof name, "%.*s", (int)(eq - *e), *e);
                snprintf(value, sizeof value, "%s", eq + 1);
                line_text(name, value);
                break;
            }
    }
    line_object_end();
}

/* ---- connections --------------------------------------------------------------------- */

/* own says whether a socket, by its number, is one of this process. */
static bool own(const unsigned long *inodes, int n, unsigned long inode)
{
    for (int i = 0; i < n; i++)
        if (inodes[i] == inode)
            return true;
    return false;
}

static int sockets(unsigned long *out, int room)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; d && n < room && (e = readdir(d));) {
        char path[300], to[64];
        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        ssize_t len = readlink(path, to, sizeof to - 1);
        if (len <= 0)
            continue;
        to[len] = 0;
        if (sscanf(to, "socket:[%lu]", &out[n]) == 1)
            n++;
    }
    if (d)
        closedir(d);
    return n;
}

/* address turns the kernel's hexadecimal words, each in the machine's order, to text. */
static void address(const char *hex, char *out, size_t room)
{
    uint32_t word[4];
    size_t n = strlen(hex) / 8;
    out[0] = 0;
    for (size_t i = 0; i < n && i < 4; i++)
        if (sscanf(hex + 8 * i, "%8x", &word[i]) != 1)
            return;
    inet_ntop(n == 1 ? AF_INET : AF_INET6, word, out, (socklen_t)room);
}

static void say_tcp(void)
{
    static const char *const files[] = {"/proc/self/net/tcp", "/proc/self/net/tcp6"};
    static unsigned long inodes[65536];
    int n = sockets(inodes, 65536);
    struct words peers = {0};
    for (int i = 0; i < 2; i++) {
        char line[512];
        FILE *f = fopen(files[i], "r");
        while (f && fgets(line, sizeof line, f)) {
            char remote[40], text[INET6_ADDRSTRLEN];
            unsigned state;
            unsigned long inode;
            if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%*x %32[0-9A-Fa-f]:%*x %x %*s %*s %*s %*s %*s %lu", remote, &state, &inode) != 3)
                continue;
            if (state != 1 || !own(inodes, n, inode)) /* 1: established */
                continue;
            address(remote, text, sizeof text);
            words_add(&peers, text, strlen(text));
        }
        if (f)
            fclose(f);
    }
    words_say(&peers, "tcp");
}

void transport_end(const struct world *w)
{
    line_open("transport");
    line_integer("rank", w->rank);
    say_modules();
    say_mapped();
    say_set();
    say_sent();
    say_tcp();
    line_close();
}
